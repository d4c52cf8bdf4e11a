"""The monitor of a run: evaluates recorded points off the clock, and decides whether to go on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ._halt import end_if_asked
from ._passes import shared_passes
from ._progress import bar
from ._team import available_cores
from .dual import compile_for, duality_gap, has_gap
from .errors import DivergenceError, NumbersTooLargeError
from .lam_max import best_constant
from .result import Trace
from .rows import FarRows

if TYPE_CHECKING:
    from .checkpoints import Saved
    from .gram import Bound
    from .problem import Problem
    from .snapshots import Refresher

__all__ = ["Checkup", "RunMonitor"]

Array = np.ndarray[Any, Any]

_CLOSER = 0.01  # of the tolerance: where columns are correlated a small residual may still be far from the optimum
_ROUGHLY = 1e-3  # how well an intercept is known where only a scale is asked for
_ROUNDING = 1e5  # times the precision of a number: no residual is asked to be smaller
_PROMISING = 1.1  # times the tolerance: an estimate of a gap is mostly closer to it than that, and the exact gap costs a pass
_MANY = 1 << 17  # numbers, whose losses take as long as some threads take to start
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
    intercept : float or array
        The intercept that belongs to ``x``; 0.0 without one.
    problem : Problem
        The problem that is being solved.
    """

    iteration: int
    passes: float
    seconds: float
    objective: float
    residual: float
    distance: float
    x: Array
    intercept: Any = 0.0
    problem: Problem | None = field(default=None, repr=False, compare=False)


class Certificate(NamedTuple):
    """What is known of a point's accuracy."""

    objective: float
    residual: float  # NaN where it was not evaluated
    gap: float  # NaN where no dual is known
    converged: bool
    reason: str  # why a run that has arrived ends

    @property
    def brief(self) -> str:
        """What a progress bar shows."""
        return f"gap {self.gap:.2g}" if math.isfinite(self.gap) else f"residual {self.residual:.2g}"


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
        residuals: bool = True,
        closer: bool = False,
        snapshots: Refresher | None = None,
    ) -> None:
        self._problem = problem
        self._x0, self._x_star = x0, x_star
        self._passes = passes
        self._suggested_step = suggested_step
        self._max_iter = max_iter
        self._callbacks = callbacks
        self._show = progress
        self._bar: Any = None
        self._brief = ""
        self._points: list[tuple[float, ...]] = []
        self._tol = tol
        # What the run goes on to where no gap is known, if that is possible; `tol` decides whether it has converged.
        self._residual_tol = min(tol, max(_CLOSER * tol, _ROUNDING * float(np.finfo(x0.dtype).eps))) if closer else tol
        self._has_gap = has_gap(problem)
        if self._has_gap:
            compile_for(problem)
        self._strict = strict  # ask for a small residual as well, where the gap alone would do
        self._residuals = residuals or strict or not self._has_gap
        self._snapshots = snapshots
        # What a parameter stands for, where that is not itself; in its place, if it may be spent.
        self.answer: Callable[..., Array] = lambda x, spend=False: x
        zero = np.zeros(x0.shape, x0.dtype)  # which takes no memory as long as it is only read
        with shared_passes(available_cores() if problem.n * problem._numbers_a_row > _MANY else 1):
            at_zero = problem.smooth_value(zero, None) + problem.penalty(zero)
        if not math.isfinite(at_zero):
            raise NumbersTooLargeError
        self._nothing = 100.0 * float(np.finfo(problem.dtype).eps) ** 2 * abs(at_zero)  # squares of rounding errors
        # The predictions at the start: algorithms need them, too.
        self.at_start: Array = problem.predict(x0) if x0.any() else np.zeros(problem._targets.shape, problem.dtype)
        self._first = problem.smooth_value(x0, self.at_start) + problem.penalty(x0) if x0.any() else at_zero
        self._ceiling = _BLOWN_UP * max(at_zero, _finite(self._first), 0.0)
        self._last: Certificate | None = None
        self._lower = -math.inf  # a bound on the optimum from below
        self.stopped_by: str | None = None
        self._arrived: str | None = None  # why, if that is because of its accuracy

    def start(self, briefly: bool = False) -> bool:
        """Record the starting point and show progress; return True to end the run here.

        ``briefly`` only its objective: an algorithm that looks at all rows first of all will see whether it is optimal.
        """
        if self._show:
            self._bar = bar(total=self._max_iter, unit="it", unit_scale=True, desc="dapsgd", leave=True)
        if self._points:  # the run goes on from a checkpoint
            return self.stopped_by is not None
        if not briefly or self._residuals or self._callbacks:
            return self.observe(0, 0.0, self._x0)
        self._points.append((0.0, 0, 0.0, self._first, math.nan, self._distance(self._x0)))
        return False

    def close(self) -> None:
        """Leave the progress bar as it stands, and let callbacks finish what they are at."""
        if self._bar is not None:
            self._bar.close()
        for callback in self._callbacks:
            if callable(finish := getattr(callback, "finish", None)):
                finish()

    @property
    def is_patient(self) -> bool:
        """Whether nothing depends on when a point is evaluated: no tolerance, no callback, nothing to show."""
        return self._tol == 0.0 and not self._callbacks and not self._show

    @property
    def has_goal(self) -> bool:
        """Whether there is a tolerance to reach."""
        return self._tol > 0.0

    @property
    def is_attended(self) -> bool:
        """Whether callbacks look at each recorded point and may ask to stop there."""
        return bool(self._callbacks)

    def progress(self, iteration: int, note: str = "") -> None:
        """Move the progress bar; with a note on how the run goes."""
        end_if_asked()
        if self._bar is not None:
            if note:
                self._bar.set_postfix_str(", ".join(part for part in (self._brief, note) if part), refresh=False)
            self._bar.update(iteration - self._bar.n)

    @cached_property
    def scale(self) -> float:
        """The residual at zero, with the best intercept: that of targets far from zero would say nothing of coefficients.

        Where zero is optimal, give or take rounding, its residual says nothing, but the gradient does.
        """
        problem, zero = self._problem, np.zeros(self._x0.shape, self._x0.dtype)
        gradient = problem.packed_gradient(zero, np.zeros_like(problem._targets))
        size = float(np.linalg.norm(gradient.ravel()))
        if problem.fit_intercept and not isinstance(problem._rows, FarRows):
            zero = best_constant(problem, tol=_ROUGHLY, max_iter=100)
            gradient = problem.packed_gradient(zero)
        residual = problem.packed_residual(zero, gradient, spend=True)
        return (residual if residual > 100.0 * np.finfo(self._problem.dtype).eps * size else size) or 1.0

    def observe(
        self,
        iteration: int,
        seconds: float,
        x: Array,
        predictions: Array | None = None,
        gradient: Array | None = None,
        *,
        spend: bool = False,
        answered: bool = False,
        bound: Bound | None = None,
        smooth: float = math.nan,
    ) -> bool:
        """Evaluate a point; return True to end the run. Predictions, gradient and f, ``smooth``, save passes if they are known.

        ``spend`` x if nobody needs it any more; if ``answered``, it is what a parameter stands for already. A ``bound`` on the
        duality gap is believed, if that is all there is to know.
        """
        if self._points and self._points[-1][1] == iteration:
            return self.stopped_by is not None
        problem, x = self._problem, x if answered else self.answer(x, spend=spend)
        if bound is not None and self._has_gap and not self._residuals:
            objective = bound.objective
            certificate = self._by_gap(objective, bound.gap)
        else:
            if predictions is None and self._snapshots is not None and (known := self._snapshots.known(x)) is not None:
                predictions, gradient, smooth = known
            with np.errstate(over="ignore", invalid="ignore"):
                if predictions is None:
                    predictions = problem.predict(x) if x.any() else np.zeros_like(problem._targets)
                objective = problem.smooth_value(x, predictions) if math.isnan(smooth) else smooth
            if not objective <= self._ceiling + abs(self._ceiling) + np.finfo(np.float64).tiny:
                self.diverged(iteration)
            objective += problem.penalty(x)
            certificate = self.certify(x, objective, predictions, gradient, look=self._tol > 0.0)
        distance = self._distance(x)
        passes = self._passes(iteration)
        self._points.append((seconds, iteration, passes, objective, certificate.residual, distance))
        self._last = certificate
        if self._bar is not None:
            self._brief = f"objective {objective:.6g}, {certificate.brief}"
            self._bar.set_postfix_str(self._brief, refresh=False)
        self.progress(iteration)
        if self._is_enough(certificate):
            self._arrived = certificate.reason
            self.stopped_by = self.stopped_by or certificate.reason
        for callback in self._callbacks:
            seen = Checkup(
                iteration,
                passes,
                seconds,
                objective,
                certificate.residual,
                distance,
                x[: problem.p].copy(),
                problem.intercept_of(x),
                problem,
            )
            if callback(seen):
                self.stopped_by = self.stopped_by or "a callback asked to stop"
        return self.stopped_by is not None

    def _is_enough(self, certificate: Certificate) -> bool:
        """Tell whether to stop here."""
        if not certificate.converged:
            return False
        return math.isfinite(certificate.gap) or certificate.residual <= self._residual_tol * self.scale

    def _distance(self, x: Array) -> float:
        if self._x_star is None:
            return math.nan
        return float(np.linalg.norm((x[: self._problem.p] - self._x_star).astype(np.float64).ravel()))

    @property
    def residual_tol(self) -> float:
        """The tolerance for the residual: 0 where the duality gap decides."""
        return 0.0 if self._has_gap else self._residual_tol

    def is_proximal(self, x: Array) -> bool:
        """Tell whether x, where the last snapshot was taken, is exactly sparse, grouped, fused or of low rank."""
        return self._snapshots is not None and self._snapshots.is_proximal(x)

    def known_gradient(self, x: Array) -> Array | None:
        """Return the gradient of f at a packed parameter, if the last snapshot was taken there."""
        known = None if self._snapshots is None else self._snapshots.known(x)
        return None if known is None else known.gradient

    def last(self, iteration: int) -> Certificate | None:
        """Return what is known of the point that was observed last, if it was at this iteration."""
        return self._last if self._points and self._points[-1][1] == iteration else None

    def certify(
        self,
        x: Array,
        objective: float,
        predictions: Array | None = None,
        gradient: Array | None = None,
        look: bool = True,
        final: bool = False,
    ) -> Certificate:
        """Tell how far the objective can be above the optimum, and whether that is little enough.

        ``look`` at the gap; one that is ``final`` must be exact even if it is far from the tolerance.
        """
        problem = self._problem
        if final and not self._residuals and objective - self._lower <= self._tol * abs(objective):
            return self._by_gap(objective, max(objective - self._lower, 0.0))
        predictions = problem.predict(x) if predictions is None else predictions
        if self._residuals:
            problem.lipschitz()  # before there is a gradient: to find L takes as much memory
        known_before = gradient is not None
        gradient = problem.packed_gradient(x, predictions) if gradient is None else gradient
        gap = math.nan
        if self._has_gap and look:
            enough = _PROMISING * self._tol * abs(objective) if self._tol > 0.0 and not final else math.inf
            gap = duality_gap(problem, x, predictions, gradient, objective, enough)
            if gap <= enough:  # else it may be an estimate
                self._lower = max(self._lower, objective - gap)
            if math.isfinite(gap) and not self._by_gap(objective, gap).converged and self._is_unseen(x, objective, gradient):
                gap = math.inf
        known = self._residuals or not math.isfinite(gap)
        residual = problem.packed_residual(x, gradient, spend=not known_before) if known else math.nan
        del gradient  # the scale needs another one
        small = self._tol > 0.0 and known and residual <= self._tol * self.scale
        if not math.isfinite(gap):  # no dual is known, or this point gives no bound
            return Certificate(objective, residual, gap, small, "the residual is below the tolerance")
        by_gap = self._by_gap(objective, gap, residual)
        return by_gap._replace(converged=by_gap.converged and (small or not self._strict))

    def _is_unseen(self, x: Array, objective: float, gradient: Array) -> bool:
        """Tell whether x is a minimum without the penalty, as far as can be told, and the penalty at x less than rounding.

        The minimum without a penalty is a lower bound on that with one. A duality gap says nothing there: of the gradient only
        rounding is left, and scaled down to a strength that is less than that, the slopes vanish.
        """
        penalty = self._problem.penalty(x)
        if not 0.0 < penalty <= _ROUNDING * float(np.finfo(np.float64).eps) * abs(objective):
            return False
        closest = min(self._tol, _ROUNDING * float(np.finfo(self._problem.dtype).eps))
        return float(np.linalg.norm(gradient.ravel())) <= closest * self.scale

    def _by_gap(self, objective: float, gap: float, residual: float = math.nan) -> Certificate:
        """Return what follows from a duality gap, or from there being no residual."""
        enough = self._tol > 0.0 and (gap <= max(self._tol * abs(objective), self._nothing) or residual == 0.0)
        return Certificate(objective, residual, gap, enough, "the duality gap is below the tolerance")

    def diverged(self, iteration: int) -> None:
        """Raise :class:`DivergenceError`."""
        raise DivergenceError(iteration, self._suggested_step())

    def trace(self) -> Trace:
        """Return the points recorded so far."""
        return Trace.from_points(self._points)

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps."""
        return {"points": np.array(self._points).reshape(-1, 6), "arrived": self._arrived, "tol": self._tol}

    def restore(self, saved: Saved) -> None:
        """Go on from a checkpoint; one of a run that had arrived has arrived, unless more accuracy is asked for now."""
        points = saved.item("points")
        if not isinstance(points, np.ndarray) or points.dtype != np.float64 or points.ndim != 2 or points.shape[1] != 6:
            raise saved.damaged("its trace is no table of numbers")
        if not np.array_equal(points[:, 1], np.unique(points[:, 1].round())):
            raise saved.damaged("its trace is not in order")
        self._points = [(row[0], int(row[1]), *row[2:]) for row in points.tolist()]
        arrived, tol = saved.text("arrived"), saved.number("tol", 0.0, math.inf)
        if arrived is not None and self._tol >= tol:
            self.stopped_by = self._arrived = arrived


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0
