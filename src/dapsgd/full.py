"""Algorithms that look at all rows at once: accelerated gradients, the Gram matrix, working sets.

Each is ``run(problem, limits, monitor, progress)``. They use the cores that BLAS uses.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import fista, gram, quadratic, working_set
from ._halt import end_if_asked
from .rows import is_sparse
from .runtimes._blas import own_threads, single_threaded_blas
from .runtimes._plan import Clock, Outcome
from .sprint import Sprint

if TYPE_CHECKING:
    from ._monitor import RunMonitor
    from .checkpoints import Keeper, Saved
    from .problem import Problem

__all__ = ["FULL", "Full", "Limits", "Progress"]

Array = np.ndarray[Any, Any]


class Limits(NamedTuple):
    """How long a run may be, and how often it is recorded."""

    max_iter: int
    every: int
    tol: float  # of the run as the user gave it
    quick: bool  # the answer alone is asked for, not the reference
    given: bool  # by the user; otherwise another algorithm that goes on with a run has a limit of its own


class Progress:
    """How far a run is: what a checkpoint keeps of it. It goes on from the point, without the momentum.

    All the time it is that of the last point known, so that a signal need not wait for the next.
    """

    def __init__(self, x0: Array, keeper: Keeper) -> None:
        self.clock = Clock()
        self.reach(0, lambda: x0)
        self._keeper = keeper
        self.resumed = keeper.join("run", self, always=True)

    @property
    def x(self) -> Array:
        """The last point."""
        return self._here[1]()

    @property
    def iteration(self) -> int:
        """The number of iterations to it."""
        return self._here[0]

    def reach(self, iteration: int, point: Callable[[], Array]) -> None:
        """Be at another point, which nobody will change."""
        self._here = iteration, point  # in one go: a signal may come at any moment

    def keep(self, iteration: int, point: Callable[[], Array]) -> None:
        """Be at another point, and have it written if it is time to."""
        self.reach(iteration, point)
        self.offer()

    def offer(self) -> None:
        """Have the last point written if it is time to."""
        end_if_asked()
        if self._keeper.is_due:
            self._keeper.offer()

    def outcome(self, x: Array, iterations: int) -> Outcome:
        """End the run here."""
        self.reach(iterations, lambda: x)
        return Outcome(x, x[:0], iterations, self.clock.seconds, np.array([iterations]), None)

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps."""
        iteration, point = self._here
        return {"x": point().copy(), "iteration": iteration, "seconds": self.clock.seconds}

    def restore(self, saved: Saved) -> None:
        """Go on from a checkpoint."""
        x = saved.array("x", self.x)
        self.reach(saved.integer("iteration", 0, 1 << 62), lambda: x)
        self.clock.set(saved.number("seconds", 0.0, np.inf))


class Full(NamedTuple):
    """One algorithm."""

    run: Callable[[Problem, Limits, RunMonitor, Progress], Outcome]
    can_solve: Callable[[Problem], bool]
    needs: str  # said if it cannot
    max_iter: int  # by default
    passes: Callable[[int], float]  # that so many iterations make


def _observer(limits: Limits, monitor: RunMonitor, progress: Progress) -> Callable[..., bool]:
    """Return a function that hands a point, so many iterations from here, to the monitor, off the clock."""
    clock, done = progress.clock, progress.iteration

    def observe(iteration: int, x: Array, *known: Array, bound: gram.Bound | None = None, smooth: float = math.nan) -> bool:
        clock.__exit__()
        iteration += done
        progress.reach(iteration, lambda: x)  # first: what was recorded must not be ahead of it
        due = iteration % limits.every == 0 or iteration == limits.max_iter
        stop = due and monitor.observe(iteration, clock.seconds, x, *known, bound=bound, smooth=smooth)
        progress.offer()
        clock.__enter__()
        return stop

    return observe


def _is_there(monitor: RunMonitor, progress: Progress, max_iter: int, briefly: bool = True) -> bool:
    """Record the start, or go on from a checkpoint; tell whether the run ends here."""
    there = monitor.start(briefly)
    progress.offer()
    return there or (progress.resumed and progress.iteration >= max_iter)


def _run_fista(problem: Problem, limits: Limits, monitor: RunMonitor, progress: Progress) -> Outcome:
    x0 = progress.x
    fista.proximal_step(problem, x0, 1.0, search=True)  # compile before the clock starts
    # Of a first point only zero can be the answer: another need not be exactly sparse or fused.
    if _is_there(monitor, progress, limits.max_iter, bool(x0.any())) and (progress.resumed or not x0.any()):
        return progress.outcome(x0, progress.iteration)
    return _accelerate(problem, limits, monitor, progress)


def _accelerate(problem: Problem, limits: Limits, monitor: RunMonitor, progress: Progress) -> Outcome:
    """Run accelerated gradients from where the run is; if the answer is all that is wanted, by the shortest way."""
    done, observe = progress.iteration, _observer(limits, monitor, progress)
    with progress.clock:
        if limits.quick:
            return Sprint(problem, observe, progress).run(limits.max_iter)
        found = fista.minimise(
            problem,
            progress.x,
            tol=monitor.residual_tol,
            scale=monitor.scale if monitor.residual_tol > 0.0 else 1.0,
            max_iter=limits.max_iter - done,
            observe=observe,
            keep=lambda iteration, point: progress.keep(done + iteration, point),
        )
    return progress.outcome(found.x, done + found.iterations)


def _run_gram(problem: Problem, limits: Limits, monitor: RunMonitor, progress: Progress) -> Outcome:
    x0, done = progress.x, progress.iteration
    with single_threaded_blas():  # whose threads would stay awake, and take the cores that the matrix is made on
        quadratic.compile_for(problem)
    if done == 0 or progress.resumed:
        if _is_there(monitor, progress, limits.max_iter):
            return progress.outcome(x0, done)
    observe = _observer(limits._replace(every=1), monitor, progress)
    with progress.clock:
        x, more = quadratic.minimise(
            problem,
            x0,
            tol=limits.tol,
            max_iter=limits.max_iter - done,
            observe=lambda iteration, x, bound: observe(iteration, x, bound=bound),
            keep=lambda iteration, point: progress.keep(done + iteration, point),
        )
    return progress.outcome(x, done + more)


def _run_working_set(problem: Problem, limits: Limits, monitor: RunMonitor, progress: Progress) -> Outcome:
    x0, done = progress.x, progress.iteration
    problem.packed_prox(x0, 1.0)
    working_set.compile_for(problem)
    # Where too many coordinates are not zero all of them go on, for longer unless the user set the limit.
    few = gram.can_solve(problem) and problem.p <= min(gram.FEW_COLUMNS, problem.n)
    longer = limits.max_iter if limits.given else FULL["gram" if few else "fista"].max_iter
    if _is_there(monitor, progress, longer):
        return progress.outcome(x0, done)
    if done < limits.max_iter or not progress.resumed:
        observe = _observer(limits._replace(every=1), monitor, progress)
        with progress.clock, own_threads(problem.bytes, is_sparse(problem._rows)):
            predictions = None if progress.resumed else monitor.at_start
            x, more, finished = working_set.minimise(
                problem, x0, max_iter=limits.max_iter - done, observe=observe, predictions=predictions
            )
        outcome = progress.outcome(x, done + more)
        if finished:
            return outcome
    limits = limits._replace(max_iter=longer, quick=True)
    if few:
        return _run_gram(problem, limits, monitor, progress)
    return _accelerate(problem, limits, monitor, progress)


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
        "the regulariser falls into parts (l1, elastic_net, group_lasso, ...) and the loss has second derivatives",
        100,
        float,
    ),
}
