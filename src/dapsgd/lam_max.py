"""The largest useful strength of a regulariser."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .regularizers import L1, FusedLasso, Zero

if TYPE_CHECKING:
    from .problem import Problem

__all__ = ["lam_max"]


def lam_max(problem: Problem) -> float:
    """Return the regulariser's ``lam_max`` at the best parameter that it does not see; infinite if it has none."""
    from .fista import minimise
    from .problem import Problem

    bound = problem._bound
    if not hasattr(type(bound), "lam_max"):
        return math.inf
    fused = isinstance(bound, FusedLasso)
    null = np.zeros(problem.packed_shape, problem.dtype)
    if fused or problem.fit_intercept:
        # A fused lasso does not see a constant: fit that alone, on the sum of all columns. Others see all but the intercept.
        total = problem.predict(np.append(np.ones(problem.p), np.zeros(int(problem.fit_intercept))))
        column = total.astype(problem.dtype) if fused else np.zeros((problem.n, 1), problem.dtype)
        reduced = Problem(
            column,
            problem._targets if len(problem.shape) == 2 else problem._targets[:, 0],
            problem.loss,
            L1(bound.l1 * problem.p) if fused and bound.l1 > 0.0 else Zero(),
            l2=problem.l2 * problem.p,
            sample_weight=problem._weights,
            fit_intercept=problem.fit_intercept,
        )
        start = reduced.pack(np.zeros(reduced.shape))
        fitted = minimise(reduced, start, tol=1e-12, scale=reduced.packed_residual(start), max_iter=10_000).x
        null[: problem.p] = fitted[0]
        null[problem.p :] = fitted[1:]
    return float(bound.lam_max(problem.packed_gradient(null)[: problem.p]))
