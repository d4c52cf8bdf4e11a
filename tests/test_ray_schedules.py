"""Any process of a cluster may die at any call: the short version of ``soak/ray_schedules.py``, which needs no Ray."""

import importlib.util
import math
from pathlib import Path

import pytest

from dapsgd.runtimes.ray.order import Order
from dapsgd.runtimes.ray.shard import Shard

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def schedules():
    spec = importlib.util.spec_from_file_location("ray_schedules", ROOT / "soak" / "ray_schedules.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("first", range(0, 80, 20))
def test_every_update_is_applied_once_by_all_or_none(schedules, first):
    for seed in range(first, first + 20):
        assert schedules.simulate(seed).wrong == [], f"seed {seed}"


def take_any_epoch(schedules, monkeypatch):
    monkeypatch.setattr(Shard, "_stale", lambda self, epoch: None)


def replay_what_is_void(schedules, monkeypatch):
    monkeypatch.setattr(schedules.link_module, "limit_of", lambda epoch, opened: math.inf)


def forget_what_was_replayed(schedules, monkeypatch):
    monkeypatch.setattr(Order, "catch_up", lambda self, version: None)


@pytest.mark.parametrize(
    ("break_it", "seed", "said"),
    [
        (take_any_epoch, 94, "shards differ"),
        (replay_what_is_void, 184, "remembers"),
        (forget_what_was_replayed, 289, "has counted"),
    ],
)
def test_broken_variants_are_found_out(schedules, monkeypatch, break_it, seed, said):
    break_it(schedules, monkeypatch)
    assert said in schedules.simulate(seed).wrong[0]


def test_a_schedule_is_the_same_every_time(schedules):
    first, again = schedules.simulate(3), schedules.simulate(3)
    assert first.steps == again.steps
    assert (first.outcome.x == again.outcome.x).all()
