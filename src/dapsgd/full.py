"""Algorithms that look at all rows at once: accelerated gradients, the Gram matrix, working sets.

Each is ``run(problem, x0, limits, monitor)``. They use the cores that BLAS uses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import fista, gram, working_set
from .runtimes._plan import Clock, Outcome

if TYPE_CHECKING:
    from ._monitor import RunMonitor
    from .problem import Problem

__all__ = ["FULL", "Full", "Limits"]

Array = np.ndarray[Any, Any]


class Limits(NamedTuple):
    """How long a run may be, and how often it is recorded."""

    max_iter: int
    every: int
    tol: float  # of the run as the user gave it
    quick: bool  # the answer alone is asked for, not the reference


class Full(NamedTuple):
    """One algorithm."""

    run: Callable[[Problem, Array, Limits, RunMonitor], Outcome]
    can_solve: Callable[[Problem], bool]
    needs: str  # said if it cannot
    max_iter: int  # by default
    passes: Callable[[int], float]  # that so many iterations make


def _observer(clock: Clock, limits: Limits, monitor: RunMonitor) -> Callable[..., bool]:
    """Return a function that hands a point to the monitor, off the clock."""

    def observe(iteration: int, x: Array, *known: Array) -> bool:
        clock.__exit__()
        seconds = clock.seconds
        due = iteration % limits.every == 0 or iteration == limits.max_iter
        stop = due and monitor.observe(iteration, seconds, x, *known)
        clock.__enter__()
        return stop

    return observe


def _is_there(x0: Array, monitor: RunMonitor) -> bool:
    """Record the start; tell whether it is the answer. Only zero can be: another point need not be exactly sparse or fused."""
    return monitor.start(briefly=bool(x0.any())) and not x0.any()


def _outcome(x: Array, iterations: int, clock: Clock) -> Outcome:
    return Outcome(x, x[:0], iterations, clock.seconds, np.array([iterations]), None)


def _run_fista(problem: Problem, x0: Array, limits: Limits, monitor: RunMonitor) -> Outcome:
    clock = Clock()
    fista.proximal_step(problem, x0, 1.0, search=True)  # compile before the clock starts
    if _is_there(x0, monitor):
        return _outcome(x0, 0, clock)
    return _accelerate(problem, x0, 0, clock, limits, monitor)


def _accelerate(problem: Problem, x: Array, done: int, clock: Clock, limits: Limits, monitor: RunMonitor) -> Outcome:
    """Run accelerated gradients from a point that took so many iterations to reach."""
    observe = _observer(clock, limits, monitor)
    with clock:
        found = fista.minimise(
            problem,
            x,
            tol=monitor.residual_tol,
            scale=monitor.scale if monitor.residual_tol > 0.0 else 1.0,
            max_iter=limits.max_iter - done,
            observe=lambda iteration, *known: observe(done + iteration, *known),
            quick=limits.quick,
        )
    return _outcome(found.x, done + found.iterations, clock)


def _run_gram(problem: Problem, x0: Array, limits: Limits, monitor: RunMonitor) -> Outcome:
    clock = Clock()
    problem.packed_prox(x0, 1.0)  # compile before the clock starts
    if monitor.start(briefly=True):
        return _outcome(x0, 0, clock)
    observe = _observer(clock, limits._replace(every=1), monitor)
    with clock:
        x, done = gram.minimise(problem, x0, tol=limits.tol, max_iter=limits.max_iter, observe=observe)
    return _outcome(x, done, clock)


def _run_working_set(problem: Problem, x0: Array, limits: Limits, monitor: RunMonitor) -> Outcome:
    clock = Clock()
    problem.packed_prox(x0, 1.0)
    working_set.compile_for(problem)
    if monitor.start(briefly=True):
        return _outcome(x0, 0, clock)
    observe = _observer(clock, limits._replace(every=1), monitor)
    with clock:
        x, done, finished = working_set.minimise(
            problem, x0, max_iter=limits.max_iter, observe=observe, predictions=monitor.at_start
        )
    if finished:
        return _outcome(x, done, clock)
    # Too many coordinates are not zero: go on with all of them, for longer unless the user set the limit.
    longer = FULL["fista"].max_iter if limits.max_iter == FULL["working-set"].max_iter else limits.max_iter
    return _accelerate(problem, x, done, clock, limits._replace(max_iter=longer, quick=True), monitor)


FULL: dict[str, Full] = {
    "fista": Full(_run_fista, lambda problem: True, "", 10_000, float),
    "gram": Full(
        _run_gram,
        gram.can_solve,
        "the loss is squared and the data is dense",
        100_000,
        lambda iterations: float(iterations > 0),
    ),
    "working-set": Full(
        _run_working_set,
        working_set.can_solve,
        "the regulariser falls into parts (l1, elastic_net, group_lasso, ...) and the loss has one second derivative a row",
        100,
        float,
    ),
}
