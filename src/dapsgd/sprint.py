"""The shortest way to an answer with full gradients: momentum on centred columns, and Newton steps for a fused lasso."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import fista, pieces
from .centred import CentredRows
from .losses import Multinomial

if TYPE_CHECKING:
    from .full import Progress
    from .problem import Problem
    from .runtimes._plan import Outcome

__all__ = ["Sprint"]

Array = np.ndarray[Any, Any]

_BETWEEN = 10  # steps with momentum for each Newton step, so that these never cost most; twice as many if none helped


class Sprint:
    """Accelerated gradients on centred columns, and Newton steps in between for a fused lasso."""

    def __init__(self, problem: Problem, observe: Callable[..., bool], progress: Progress) -> None:
        self._problem, self._observe, self._progress = problem, observe, progress
        self._from = progress.iteration  # which ``observe`` counts from
        self._rows = CentredRows(problem._rows, problem._weights) if problem.fit_intercept else None
        free = problem.fit_intercept and isinstance(problem.loss, Multinomial)
        self._level = progress.x[-1].mean() if free else None  # of the intercepts of all classes, which no gradient changes
        self._step: float | None = None

    def run(self, max_iter: int) -> Outcome:
        """Run until the observer says that it is enough."""
        x, done, length = self._progress.x, self._from, _BETWEEN
        helped = pieces.can_improve(self._problem)
        while True:
            count = max_iter - done if not helped else min(length, max_iter - done)
            x, more, stop = self._accelerate(x, done, count)
            done += more
            if stop or more < count or done >= max_iter:
                return self._progress.outcome(x, done)
            better = pieces.improve(self._problem, x)
            if better is None:
                length *= 2
                continue
            point, steps = better
            x, done, length = self._levelled(point.x), min(done + steps, max_iter), _BETWEEN * steps
            if self._observe(done - self._from, x, point.predictions if x is point.x else self._problem.predict(x)):
                return self._progress.outcome(x, done)

    def _accelerate(self, x: Array, done: int, count: int) -> tuple[Array, int, bool]:
        """Take so many steps with momentum; returns the point, how many they were, and whether it is enough."""
        problem, rows = self._problem, self._rows
        if rows is not None:
            problem = problem.with_rows(rows, problem._targets, problem._weights, problem.shape)
        enough = False

        def observe(iteration: int, x: Array, predictions: Array) -> bool:
            nonlocal enough
            enough = self._observe(done - self._from + iteration, self._outside(x), predictions)
            return enough

        found = fista.minimise(
            problem,
            x if rows is None else rows.inside(x),
            tol=0.0,
            max_iter=count,
            observe=observe,
            keep=lambda iteration, point: self._progress.keep(done + iteration, lambda: self._outside(point())),
            quick=True,
            step=self._step,
        )
        self._step = found.step
        return self._outside(found.x), found.iterations, enough

    def _outside(self, x: Array) -> Array:
        return x if self._rows is None else self._levelled(self._rows.outside(x))

    def _levelled(self, x: Array) -> Array:
        """Return a packed parameter with the mean of all classes' intercepts where it was at the start."""
        if self._level is None:
            return x
        result = x.copy()
        result[-1] += self._level - x[-1].mean()
        return result
