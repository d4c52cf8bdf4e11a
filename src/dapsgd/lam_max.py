"""The largest useful strength of a regulariser."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .regularizers import L1, FusedLasso, Zero

if TYPE_CHECKING:
    from .problem import Problem

__all__ = ["best_constant", "best_unseen", "lam_max"]

Array = np.ndarray[Any, Any]


def lam_max(problem: Problem) -> float:
    """Return the regulariser's ``lam_max`` at the best parameter that it does not see; infinite if it has none."""
    bound = problem._bound
    if not hasattr(type(bound), "lam_max"):
        return math.inf
    null = best_unseen(problem, isinstance(bound, FusedLasso))
    return float(bound.lam_max(problem.packed_gradient(null)[: problem.p]))


def best_unseen(problem: Problem, fused: bool) -> Array:
    """Return the best packed parameter of zeros but for the intercept; of equal entries if ``fused``."""
    if fused:
        return _best_equal(problem)
    return best_constant(problem) if problem.fit_intercept else np.zeros(problem.packed_shape, problem.dtype)


def best_constant(problem: Problem, l2: float = 0.0, tol: float = 1e-12, max_iter: int = 10_000) -> Array:
    """Return zeros and the best intercept, packed; ``l2`` times its square draws it towards zero."""
    reduced = _reduced(problem, np.ones(problem.n), l2=l2)
    result = np.zeros(problem.packed_shape, problem.dtype)
    result[problem.p] = _solved(reduced, tol, max_iter)[0]
    return result


def _best_equal(problem: Problem) -> Array:
    """Return the best packed parameter of equal entries.

    What matters of the data is the sum of all columns: centred and scaled, so that it is easy.
    """
    ones = np.append(np.ones(problem.p, problem.dtype), np.zeros(int(problem.fit_intercept), problem.dtype))
    column, centre = problem.predict(ones)[:, 0].astype(np.float64), 0.0
    if problem.fit_intercept:
        centre = float(np.average(column, weights=problem._weights))
    size = float(np.sqrt(np.average((column - centre) ** 2, weights=problem._weights))) or 1.0
    l1 = problem._bound.l1 * problem.p / size
    reduced = _reduced(
        problem,
        (column - centre) / size,
        L1(l1) if l1 > 0.0 else Zero(),
        l2=problem.l2 * problem.p / size**2,
        fit_intercept=problem.fit_intercept,
    )
    fitted = _solved(reduced, 1e-12, 10_000)
    result = np.empty(problem.packed_shape, problem.dtype)
    result[: problem.p] = fitted[0] / size
    result[problem.p :] = fitted[1:] - centre * fitted[0] / size
    return result


def _reduced(problem: Problem, column: Array, regularizer: Any = None, **options: Any) -> Problem:
    """Return the problem with one column in place of all."""
    from .problem import Problem

    targets = problem._targets if len(problem.shape) == 2 else problem._targets[:, 0]
    X = column.astype(problem.dtype)[:, None]
    return Problem(X, targets, problem.loss, regularizer or Zero(), sample_weight=problem._weights, **options)


def _solved(reduced: Problem, tol: float, max_iter: int) -> Array:
    from .fista import minimise

    start = reduced.pack(np.zeros(reduced.shape))
    return minimise(reduced, start, tol=tol, scale=reduced.packed_residual(start), max_iter=max_iter).x
