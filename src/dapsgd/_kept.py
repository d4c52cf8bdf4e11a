"""What must be the same in a run that goes on from a checkpoint, and what is kept of one beside its workers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ._fingerprint import fact_of, problem_facts
from .runtimes import Replay, Serial, Simulated, Threads
from .runtimes._plan import Plan
from .updates import Aggregated

if TYPE_CHECKING:
    from ._monitor import RunMonitor
    from .checkpoints import Keeper, Saved
    from .problem import Problem

__all__ = ["keep_full", "keep_plan"]

Array = np.ndarray[Any, Any]


def keep_full(keeper: Keeper, name: str, x0: Array, problem: Problem, monitor: RunMonitor) -> None:
    """Open the checkpoint of an algorithm that looks at all rows."""
    if keeper:
        keeper.open({**problem_facts(problem), "algorithm": name, "x0": fact_of(x0)})
        keeper.join("trace", monitor)


def keep_plan(plan: Plan, name: str, runtime: Any, seed: Any, problem: Problem, monitor: RunMonitor) -> Plan:
    """Open the checkpoint of a stochastic run; return the plan to follow, which may be that of a run that goes on."""
    keeper = plan.keeper
    if not keeper:
        return plan
    if not isinstance(runtime, (Serial, Threads, Simulated, Replay)):
        raise ValueError(f"checkpoint needs the runtime 'serial', 'threads', Simulated(...) or Replay(...); got {runtime!r}")
    order: tuple[Any, ...] = ()
    if isinstance(runtime, Simulated):
        order = (runtime.work, runtime.apply, runtime.handover, runtime.masters, runtime.delays)
    elif isinstance(runtime, Replay):
        order = (runtime.schedule.worker, runtime.schedule.read, runtime.schedule.rows)
    facts = {
        **problem_facts(problem),  # first: with other data steps and epochs may be others, too
        "algorithm": name,
        "runtime": type(runtime).__name__ + (f" {fact_of(order)}" if order else ""),
        "workers": plan.workers,
        "batch_size": plan.batch_size,
        "max_delay": plan.max_delay,
        "epochs": None if plan.epochs is None else list(plan.epochs),
        "step": list(plan.rule),
        "average": plan.average,
        "record_schedule": plan.record_schedule,
        "seed": None if seed is None else f"{plan.seed.entropy} {plan.seed.spawn_key}",
        "x0": fact_of(plan.x0),
    }
    keeper.open(facts)
    keeper.join("trace", monitor)
    if plan.refresh is not None:
        keeper.join("snapshots", plan.refresh)
    if isinstance(plan.parts.update, Aggregated):
        keeper.join("memory", _Memory(plan.parts.update.memory))
    kept = _Seed(plan.seed)
    keeper.join("seed", kept)
    return replace(plan, seed=kept.sequence)


class _Memory:
    """What the workers of DAve-RPG remember."""

    def __init__(self, memory: Array) -> None:
        self._memory = memory

    def state(self) -> dict[str, Any]:
        return {"memory": self._memory.copy()}

    def restore(self, saved: Saved) -> None:
        self._memory[...] = saved.array("memory", self._memory)


class _Seed:
    """The seed of a run, which may have been drawn by the operating system."""

    def __init__(self, sequence: np.random.SeedSequence) -> None:
        self.sequence = sequence

    def state(self) -> dict[str, Any]:
        entropy = self.sequence.entropy
        return {"entropy": entropy if isinstance(entropy, int) else [int(word) for word in entropy or ()]}

    def restore(self, saved: Saved) -> None:
        entropy, known = saved.item("entropy"), self.sequence
        words = entropy if isinstance(entropy, list) else [entropy]
        if not all(type(word) is int and word >= 0 for word in words):
            raise saved.damaged("its seed is no integer")
        self.sequence = np.random.SeedSequence(entropy, spawn_key=known.spawn_key, pool_size=known.pool_size)
