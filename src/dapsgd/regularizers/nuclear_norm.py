"""The nuclear norm."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .._checks import non_negative, validated
from .._jit import kernel
from ._elementwise import norm
from .group_lasso import shrinkage

Array = np.ndarray[Any, Any]

# The eigenvalues of a Gram matrix are exact to about 1e-16 of the largest, so a singular value s is exact to
# 1e-16 * top^2 / s. Where every singular value that matters is above this share of the largest, that is 1e-13 of the top.
_GRAM_IS_ACCURATE = 1e-3


@validated(lam=non_negative)
class NuclearNorm(NamedTuple):
    r"""The nuclear norm, :math:`\lambda \|W\|_*`, the sum of singular values: an answer of low rank.

    The prox soft-thresholds the singular values at :math:`\eta\lambda`. For a single target it is the Euclidean norm.

    Parameters
    ----------
    lam : float
        The strength.

    Examples
    --------
    >>> import dapsgd as ds
    >>> ds.prox(ds.NuclearNorm(1.0), [[3.0, 0.0], [0.0, 0.5]], step=1.0).round(12) + 0.0
    array([[2., 0.],
           [0., 0.]])
    """

    lam: float

    def value(self, w: Array) -> float:
        """Return the regulariser's value."""
        if w.ndim == 1:
            return self.lam * norm(w)
        if not np.isfinite(w).all():
            return np.nan
        return self.lam * np.linalg.svd(w, full_matrices=False)[1].sum()

    def prox(self, v: Array, step: float, out: Array) -> None:
        """Soft-threshold the singular values."""
        if v.ndim == 1:
            out[:] = v.dtype.type(shrinkage(norm(v), step * self.lam)) * v
        else:
            threshold_singular_values(v, step * self.lam, out)

    def lam_max(self, gradient: Array) -> float:
        """Return the smallest strength whose answer is zero: the spectral norm."""
        return float(np.linalg.norm(gradient, 2)) if gradient.size else 0.0

    def subgradient_bound(self, shape: tuple[int, ...]) -> float:
        r"""Return :math:`\lambda\sqrt{\min(p, q)}`."""
        return self.lam * math.sqrt(min(shape) if len(shape) == 2 else 1)


@kernel
def threshold_singular_values(v: Array, threshold: float, out: Array) -> None:
    """Write ``v`` with its singular values soft-thresholded to ``out``."""
    if not np.isfinite(v).all():
        out[:] = np.nan
        return
    size = np.abs(v).max()
    if size == 0.0 or 1e-9 < size < 1e9:
        threshold_moderate(v, threshold, out)
    else:  # the Gram matrix would overflow or underflow
        threshold_moderate(v / size, threshold / size, out)
        out *= size


@kernel
def threshold_moderate(v: Array, threshold: float, out: Array) -> None:
    """Soft-threshold the singular values of a matrix whose entries have squares."""
    tall = v.shape[0] >= v.shape[1]
    gram = v.T @ v if tall else v @ v.T
    eigenvalues, vectors = np.linalg.eigh(gram)
    top = math.sqrt(max(eigenvalues[-1], 0.0))
    relevant = max(threshold, math.sqrt(max(eigenvalues[0], 0.0)))
    if relevant > _GRAM_IS_ACCURATE * top and np.isfinite(top):
        factors = np.empty_like(eigenvalues)
        for k in range(eigenvalues.size):
            factors[k] = shrinkage(math.sqrt(max(eigenvalues[k], 0.0)), threshold)
        kept = (vectors * factors) @ vectors.T
        out[:] = v @ kept if tall else kept @ v
    else:
        u, s, vt = np.linalg.svd(v, full_matrices=False)
        out[:] = (u * np.maximum(s - s.dtype.type(threshold), s.dtype.type(0.0))) @ vt
