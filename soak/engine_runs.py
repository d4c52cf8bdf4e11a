"""Many small runs of the threaded engine under scheduling pressure: every one must replay to the same point.

    python soak/engine_runs.py --runs 10000

Each run has its own number of workers (up to 12), threads, bound on the delay, length of a turn, batch size, number of locks,
algorithm and regulariser, all drawn from the seed. Checked for each: every update applied exactly once, no delay longer than
allowed, the replay of its schedule arrives at the same point, no thread is left. Ends with exit code 1 at the first that fails.
"""

from __future__ import annotations

import argparse
import faulthandler
import sys
import threading
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import dapsgd as ds
from dapsgd.runtimes import _crew

import pressure


def make_problems() -> list[ds.Problem]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 12))
    y = X @ rng.standard_normal(12) + 0.1 * rng.standard_normal(60)
    terms = [ds.L1(0.05), ds.FusedLasso(0.05), ds.GroupLasso(0.05, 3)]
    return [ds.Problem(X, y, regularizer=term, l2=0.05) for term in terms]


def one_run(problems: list[ds.Problem], rng: np.random.Generator) -> dict[str, int]:
    """Run, replay, compare; return what was drawn and seen."""
    problem = problems[rng.integers(len(problems))]
    algorithm = ("dap-sgd", "tap-sgd", "dave-rpg")[rng.integers(3)]
    workers = int(rng.integers(1, 13))
    length = int(rng.integers(20, 120))
    options = {"step": ds.Constant(0.002), "tol": 0, "average": bool(rng.integers(2)) and algorithm != "dave-rpg"}
    if algorithm == "dap-sgd" and rng.integers(2):
        options["step"] = ds.DelayAdaptive(ds.Constant(0.002), budget=0.004)
    _crew._STRIPE = int(rng.integers(1, 13))  # so that there are one to twelve locks
    _crew._TURN = int(rng.integers(1, 40))
    max_delay = int(rng.integers(0, workers + 3))
    run = ds.solve(
        problem,
        algorithm,
        runtime=ds.Threads(active=int(rng.integers(1, workers + 1))),
        workers=workers,
        max_delay=max_delay,
        batch_size="auto" if algorithm == "dave-rpg" else int(rng.integers(1, 4)),
        max_iter=length,
        record_every=int(rng.integers(1, length + 1)),
        seed=int(rng.integers(1 << 30)),
        record_schedule=True,
        **options,
    )
    assert run.iterations == length == len(run.schedule) == run.delays.sum(), "an update is lost or counted twice"
    assert run.schedule.delays.min() >= 0, "an update was applied before it was read"
    assert run.schedule.delays.max() <= max_delay, "a delay is longer than allowed"
    assert set(run.schedule.worker) <= set(range(workers)), "a worker that does not exist"
    if algorithm == "dave-rpg" and len(set(run.schedule.worker)) < workers:
        return {"workers": workers, "delay": int(run.schedule.delays.max()), "replayed": 0}  # it cannot know the shares
    again = ds.solve(problem, algorithm, runtime=ds.Replay(run.schedule), **options)
    assert np.allclose(run.iterate, again.iterate, rtol=1e-11, atol=1e-13), f"the replay differs: {run}, {algorithm}"
    return {"workers": workers, "delay": int(run.schedule.delays.max()), "replayed": 1}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hang", type=float, default=120.0, help="seconds after which a run counts as hung")
    parser.add_argument("--broken", action="store_true", help="with locks that let everybody in: violations must be found")
    options = parser.parse_args()
    pressure.disturb_locks(options.seed, broken=options.broken)
    problems, began, delays, replayed = make_problems(), time.perf_counter(), 0, 0
    for number in range(options.runs):
        rng = np.random.default_rng([options.seed, number])
        faulthandler.dump_traceback_later(options.hang, exit=True)
        before = threading.active_count()
        with pressure.disturb_threads(number):
            seen = one_run(problems, rng)
        assert threading.active_count() == before, "a thread is left"
        delays, replayed = max(delays, seen["delay"]), replayed + seen["replayed"]
        if (number + 1) % 1000 == 0:
            print(f"{number + 1} runs, {time.perf_counter() - began:.0f} s", flush=True)
    faulthandler.cancel_dump_traceback_later()
    print(
        f"{options.runs} runs without a violation, {replayed} replayed, longest delay {delays}, "
        f"{pressure.calls[0]} calls of locks, seed {options.seed}"
    )


if __name__ == "__main__":
    main()
