"""Columns and targets near zero: the same model, with another intercept."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .._memory import require_memory
from ..centred import are_far, column_moments, less
from ..errors import OutOfMemoryError
from ..losses import Huber, Squared
from ..path import Path, stack_intercepts
from ..problem import Problem
from ..result import Result
from ..rows import DenseRows, is_mapped

__all__ = ["Origin", "far_centre", "loses_digits", "near"]

Array = np.ndarray[Any, Any]

_FAR = 10.0  # times their spread: where targets cost accuracy, and every algorithm for the Huber loss many steps


_SOME = 1000  # rows, which tell roughly where columns are
_SHARE = 0.1  # of the tolerance may be rounding,
_FINEST = 1e-5  # and no tolerance in single precision is finer


class Origin(NamedTuple):
    """Where the zero of a problem is, in the data as given: what the intercept makes up for. None is where it was.

    Coefficients, objective and duality gap are the same wherever it is.
    """

    columns: Array | None = None  # (p,)
    targets: Array | None = None  # () or (q,)
    classes: bool = False  # whose intercepts are known but for a constant

    def inside(self, w: Array, intercept: Any) -> Any:
        """Return the intercept of the problem, given that for the data as given."""
        return intercept + self._shift(w)

    def outside(self, w: Array, intercept: Any) -> Any:
        """Return the intercept for the data as given."""
        return intercept - self._shift(w)

    def _shift(self, w: Array) -> Any:
        shift = 0.0 if self.columns is None else self.columns @ w.astype(np.float64)
        return shift if self.targets is None else shift - self.targets

    def restored(self, result: Result) -> Result:
        """Return a result with the intercept for the data as given."""
        if self.columns is None and self.targets is None:
            return result
        intercept = np.asarray(self.outside(result.x, result.intercept))
        if self.classes:  # as they are where nothing was moved
            intercept = intercept - intercept.mean()
        return replace(result, intercept=intercept if intercept.ndim else float(intercept))

    def restored_path(self, path: Path) -> Path:
        """Return a path with the intercepts for the data as given."""
        if self.columns is None and self.targets is None:
            return path
        results = [self.restored(result) for result in path.results]
        return replace(path, results=results, intercepts=stack_intercepts(results, path.coefs.shape[:-1]))


def near(problem: Problem) -> tuple[Problem, Array | None]:
    """Return the same problem on columns less their means, and the means; None if they are left as they are.

    They are where they are near zero, sparse, or in a file, and where there is no memory for a copy and for as much again.
    """
    rows = problem._rows
    if not problem.fit_intercept or not isinstance(rows, DenseRows) or is_mapped(rows):
        return problem, None
    means, deviations = column_moments(rows.X, problem._weights)
    if not are_far(means, deviations, problem.n):
        return problem, None
    try:
        require_memory(2 * rows.X.nbytes, "a copy of X less the means of its columns", "it is not needed")
    except OutOfMemoryError:
        return problem, None
    return problem.with_rows(DenseRows(less(rows.X, means), True), problem._targets, problem._weights, problem.shape), means


def loses_digits(problem: Problem, tol: Any) -> bool:
    """Tell whether columns in single precision are so far from zero that gradients are not good enough for a tolerance."""
    rows = problem._rows
    if not (problem.fit_intercept and isinstance(rows, DenseRows) and problem.dtype == np.float32):
        return False
    some = rows.X[:: max(1, problem.n // _SOME)]
    means, spreads = column_moments(some, np.ones(len(some)))
    usual = (
        float(np.median(spreads[spreads > 0.0])) if spreads.any() else 1.0
    )  # beside which a constant column is large, or not
    beyond = np.abs(means) / np.where(spreads > 0.0, spreads, usual)
    finest = max(float(tol), _FINEST) if isinstance(tol, numbers.Real) else _FINEST
    return float(np.finfo(np.float32).eps) * float(beyond.max(initial=0.0)) > _SHARE * finest


def far_centre(targets: Array, loss: Any, weights: Array | None) -> Array | None:
    """Return the centre of targets that are far from zero, of a loss that only sees differences; None of others.

    Of the Huber loss it is the median, which outliers do not move.
    """
    middle = _MIDDLES.get(type(loss))
    if middle is None:
        return None
    targets = targets.astype(np.float64)
    weights = np.ones(len(targets)) if weights is None else weights.astype(np.float64)
    if not weights.any():  # which the problem will refuse
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        centre = middle(targets, weights)
        spread = middle(np.abs(targets - centre), weights)
        return centre if np.isfinite(centre).all() and (np.abs(centre) > _FAR * spread).any() else None


def _mean(values: Array, weights: Array) -> Array:
    return np.asarray(np.average(values, axis=0, weights=weights))


def _median(values: Array, weights: Array) -> Array:
    """Return a weighted median of every column.

    Examples
    --------
    >>> _median(np.array([3.0, 1.0, 1e9]), np.ones(3)), _median(np.array([[3.0], [1.0], [1e9]]), np.array([0.0, 1.0, 5.0]))
    (array(3.), array([1.e+09]))
    """
    order = np.argsort(values, axis=0, kind="stable")
    below = np.cumsum(weights[order], axis=0)
    place = np.argmax(below >= 0.5 * below[-1], axis=0)
    return np.asarray(np.take_along_axis(np.take_along_axis(values, order, 0), place[None], 0)[0])


_MIDDLES: dict[type, Callable[[Array, Array], Array]] = {Squared: _mean, Huber: _median}
