"""The largest useful strength of a regulariser."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .regularizers import L1, FusedLasso, Zero

if TYPE_CHECKING:
    from .problem import Problem

__all__ = ["best_unseen", "lam_max"]

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
    from .fista import minimise
    from .problem import Problem

    null = np.zeros(problem.packed_shape, problem.dtype)
    if not (fused or problem.fit_intercept):
        return null
    # All entries being equal, what matters of the data is the sum of all columns: centred and scaled, so that it is easy.
    column, centre, size = np.zeros(problem.n), 0.0, 1.0
    if fused:
        ones = np.append(np.ones(problem.p, problem.dtype), np.zeros(int(problem.fit_intercept), problem.dtype))
        column = problem.predict(ones)[:, 0].astype(np.float64)
        centre = float(np.average(column, weights=problem._weights)) if problem.fit_intercept else 0.0
        size = float(np.sqrt(np.average((column - centre) ** 2, weights=problem._weights))) or 1.0
    l1 = problem._bound.l1 * problem.p / size if fused else 0.0
    reduced = Problem(
        ((column - centre) / size).astype(problem.dtype)[:, None],
        problem._targets if len(problem.shape) == 2 else problem._targets[:, 0],
        problem.loss,
        L1(l1) if l1 > 0.0 else Zero(),
        l2=problem.l2 * problem.p / size**2,
        sample_weight=problem._weights,
        fit_intercept=problem.fit_intercept,
    )
    start = reduced.pack(np.zeros(reduced.shape))
    fitted = minimise(reduced, start, tol=1e-12, scale=reduced.packed_residual(start), max_iter=10_000).x
    null[: problem.p] = fitted[0] / size
    null[problem.p :] = fitted[1:] - centre * fitted[0] / size
    return null
