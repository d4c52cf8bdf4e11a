"""The monitor of a run: evaluates recorded points off the clock, and decides whether to go on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .dual import duality_gap, has_gap
from .errors import DivergenceError
from .result import Trace

if TYPE_CHECKING:
    from .problem import Problem

__all__ = ["Checkup", "RunMonitor"]

Array = np.ndarray[Any, Any]

_BLOWN_UP = 1e4  # an objective this many times that of the starting point, or of zero, is on its way to infinity


@dataclass(frozen=True)
class Checkup:
    """What a callback gets at every recorded point of a run.

    Attributes
    ----------
    iteration : int
    passes, seconds, objective, residual, distance : float
        As in :class:`Trace`.
    x : array
        A copy of the raw iterate, or of the average with ``average=True``.
    """

    iteration: int
    passes: float
    seconds: float
    objective: float
    residual: float
    distance: float
    x: Array


class Certificate(NamedTuple):
    """What is known of a point's accuracy."""

    gap: float  # NaN where no dual is known
    converged: bool
    reason: str  # why a run that has arrived ends


class RunMonitor:
    """Collects the trace, shows progress, calls callbacks, and stops a run that has arrived or blown up."""

    def __init__(
        self,
        problem: Problem,
        *,
        x0: Array,
        x_star: Array | None,
        tol: float,
        strict: bool,
        passes: Callable[[int], float],
        suggested_step: Callable[[], float],
        max_iter: int,
        callbacks: Sequence[Callable[[Checkup], Any]],
        progress: bool,
    ) -> None:
        self._problem = problem
        self._x0, self._x_star = x0, x_star
        self._passes = passes
        self._suggested_step = suggested_step
        self._max_iter = max_iter
        self._callbacks = callbacks
        self._show = progress
        self._bar: Any = None
        self._points: list[tuple[float, ...]] = []
        zero = np.zeros_like(x0)
        at_zero = problem.packed_gradient(zero)
        # Where zero is optimal its residual is 0, give or take rounding, and says nothing about the scale; its gradient does.
        residual, size = problem.packed_residual(zero, at_zero), float(np.linalg.norm(at_zero.ravel()))
        self.scale = (residual if residual > 100.0 * np.finfo(problem.dtype).eps * size else size) or 1.0
        self._tol = tol
        self._has_gap = has_gap(problem)
        self._strict = strict  # ask for a small residual as well, where the gap alone would do
        self._ceiling = _BLOWN_UP * max(problem.packed_objective(zero), _finite(problem.packed_objective(x0)), 0.0)
        self.stopped_by: str | None = None

    def start(self) -> bool:
        """Record the starting point and show the progress bar; return True to end the run here."""
        if self._show:
            from tqdm.auto import tqdm

            self._bar = tqdm(total=self._max_iter, unit="it", unit_scale=True, desc="dapsgd", leave=True)
        return self.observe(0, 0.0, self._x0)

    def close(self) -> None:
        """Leave the progress bar as it stands."""
        if self._bar is not None:
            self._bar.close()

    def progress(self, iteration: int) -> None:
        """Move the progress bar."""
        if self._bar is not None:
            self._bar.update(iteration - self._bar.n)

    def observe(self, iteration: int, seconds: float, x: Array) -> bool:
        """Evaluate a point; return True to end the run."""
        if self._points and self._points[-1][1] == iteration:
            return self.stopped_by is not None
        problem = self._problem
        with np.errstate(over="ignore", invalid="ignore"):
            predictions = problem.predict(x)
            objective = problem.smooth_value(x, predictions)
        if not objective <= self._ceiling + abs(self._ceiling) + np.finfo(np.float64).tiny:
            self.diverged(iteration)
        objective += problem.penalty(x)
        residual = problem.packed_residual(x, problem.packed_gradient(x, predictions))
        distance = math.nan
        if self._x_star is not None:
            distance = float(np.linalg.norm((x[: problem.p] - self._x_star).astype(np.float64).ravel()))
        passes = self._passes(iteration)
        self._points.append((seconds, iteration, passes, objective, residual, distance))
        self.progress(iteration)
        if self._bar is not None:
            self._bar.set_postfix_str(f"objective {objective:.6g}, residual {residual:.2g}", refresh=False)
        if self._tol > 0.0:
            certificate = self.certify(x, objective, residual)
            if certificate.converged:
                self.stopped_by = self.stopped_by or certificate.reason
        for callback in self._callbacks:
            if callback(Checkup(iteration, passes, seconds, objective, residual, distance, x[: problem.p].copy())):
                self.stopped_by = self.stopped_by or "a callback asked to stop"
        return self.stopped_by is not None

    @property
    def residual_tol(self) -> float:
        """The tolerance for the residual: 0 where the duality gap decides."""
        return 0.0 if self._has_gap else self._tol

    def certify(self, x: Array, objective: float, residual: float) -> Certificate:
        """Tell how far the objective can be above the optimum, and whether that is little enough."""
        small = self._tol > 0.0 and residual <= self._tol * self.scale
        gap = duality_gap(self._problem, x) if self._has_gap else math.nan
        if not math.isfinite(gap):  # no dual is known, or this point gives no bound
            return Certificate(gap, small, "the residual is below the tolerance")
        enough = self._tol > 0.0 and (gap <= self._tol * abs(objective) or residual == 0.0)
        return Certificate(gap, enough and (small or not self._strict), "the duality gap is below the tolerance")

    def diverged(self, iteration: int) -> None:
        """Raise :class:`DivergenceError`."""
        raise DivergenceError(iteration, self._suggested_step())

    def trace(self) -> Trace:
        """Return the points recorded so far."""
        return Trace.from_points(self._points)


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0
