r"""Squared losses of many rows: for a whole path of strengths the data is looked at once.

:math:`\|Xw - y\|^2` is :math:`\|Rw - z\|^2` plus a constant, where R is a triangular matrix with as many rows as columns,
:math:`R^T R = X^T X` and :math:`R^T z = X^T y`. So a path can be found on R, z and one more row for the constant: the same
objective, the same certificate, and a pass costs p^2 instead of n p. An intercept is minimised over first.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import solve_triangular

from . import rows as _rows
from .gram import FEW_COLUMNS
from .losses import Squared
from .result import Result

if TYPE_CHECKING:
    from .problem import Problem

__all__ = ["Factored", "factored"]

Array = np.ndarray[Any, Any]

_ROWS_A_COLUMN = 2.0  # from which there is something to gain
_ENTRIES = 1_000_000  # of the data, from which a pass over it is what takes the time
_COLUMNS_A_PASS = 20.0  # the matrix costs as much as one pass for so many columns, or more
_ROUNDING = 1e3  # units in the last place of the whole sum of squares, which the tolerance must not ask for
_DEPENDENT = 1e-5  # smallest to largest diagonal entry of R


class Factored:
    """A problem on R and z instead of X and y.

    Attributes
    ----------
    problem : Problem
        Without an intercept.
    """

    def __init__(self, original: Problem, problem: Problem) -> None:
        self._original, self.problem = original, problem

    def restore(self, regularizer: Any, result: Result) -> Result:
        """Return a result on R and z as one on the data."""
        original = self._original.with_regularizer(regularizer)
        gram = original._gram
        intercept: Any = result.intercept
        if original.fit_intercept:
            free = gram.centre - gram.means @ result.x.reshape(original.p, -1)
            intercept = float(free[0]) if len(original.shape) == 1 else free
        x, share = original.pack(result.x, intercept), self.problem.n / original.n
        return replace(
            result,
            intercept=intercept,
            passes=share * result.passes,
            trace=replace(result.trace, passes=share * result.trace.passes),
            _residual=partial(original.packed_residual, x),
            message=f"{result.message}, on a factor of the data",
        )


def factored(problem: Problem, strengths: int, options: dict[str, Any]) -> Factored | None:
    """Return the problem on R and z if that pays for so many strengths and is accurate enough; otherwise None."""
    fits = isinstance(problem.loss, Squared) and isinstance(problem._rows, _rows.DenseRows) and problem.dtype == np.float64
    few = problem.p <= min(FEW_COLUMNS, problem.n / _ROWS_A_COLUMN, _COLUMNS_A_PASS * strengths)
    few = few and problem.n * problem.p >= _ENTRIES
    tol = options.get("tol", 1e-4)
    if not (fits and few and isinstance(tol, (int, float)) and tol > 0.0):
        return None
    gram = problem._gram
    curvature = gram.Q.copy()
    curvature[np.diag_indices(problem.p)] -= 2.0 * problem.l2
    try:
        R = np.linalg.cholesky(curvature).T
    except np.linalg.LinAlgError:  # columns depend on each other
        return None
    size = np.diagonal(R)
    z = solve_triangular(R, gram.B, trans="T", check_finite=False)
    rest = gram.constant - 0.5 * float(np.vdot(z, z))
    rounding = _ROUNDING * float(np.finfo(np.float64).eps) * gram.constant
    if not (size.min() > _DEPENDENT * size.max() and rest * tol > rounding):
        return None
    return Factored(problem, _pose(problem, R, z, rest))


def _pose(problem: Problem, R: Array, z: Array, rest: float) -> Problem:
    """Return the problem on R and z, with a last row for the rest of the squares."""
    p, q = problem.p, problem._targets.shape[1]
    scale = np.sqrt((p + 1) / problem.loss.curvature)
    X, targets = np.zeros((p + 1, p)), np.zeros((p + 1, q))
    X[:p], targets[:p], targets[p, 0] = scale * R, scale * z, scale * np.sqrt(2.0 * rest)
    other = problem.with_rows(_rows.DenseRows(X, False), targets, np.ones(p + 1), problem.shape)
    other.fit_intercept = False
    return other
