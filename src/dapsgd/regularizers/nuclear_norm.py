"""The nuclear norm."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .._checks import non_negative, validated
from .._jit import kernel
from .._loops import copy, fill
from ._elementwise import norm
from .group_lasso import shrinkage

Array = np.ndarray[Any, Any]

# The eigenvalues of a Gram matrix are exact to about eps times the largest, so a singular value s is exact to
# eps * top^2 / s. Above this share of the largest, that is 1e-12 of the top in double precision, and 1e-5 in single.
_ACCURATE_DOUBLE, _ACCURATE_SINGLE = 1e-4, 1e-2
_LARGE = 128  # columns, from which only the singular values above the threshold are looked for
_START, _GROWTH = 24, 2  # directions of the first search, and by what their number grows


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
            return self.lam * norm(w, 0, w.size)
        return self.lam * sum_of_singular_values(w)

    def prox(self, v: Array, step: float, out: Array) -> None:
        """Soft-threshold the singular values."""
        if v.ndim == 1:
            factor = v.dtype.type(shrinkage(norm(v, 0, v.size), step * self.lam))
            for j in range(v.size):
                out[j] = factor * v[j]
        else:
            threshold_singular_values(v, step * self.lam, out)

    @property
    def is_norm(self) -> bool:
        """It is a norm times a strength; ``lam_max`` is the dual norm."""
        return True

    def lam_max(self, gradient: Array) -> float:
        """Return the smallest strength whose answer is zero: the spectral norm."""
        return float(np.linalg.norm(gradient, 2)) if gradient.size else 0.0

    def subgradient_bound(self, shape: tuple[int, ...]) -> float:
        r"""Return :math:`\lambda\sqrt{\min(p, q)}`."""
        return self.lam * math.sqrt(min(shape) if len(shape) == 2 else 1)


@kernel
def threshold_singular_values(v: Array, threshold: float, out: Array) -> None:
    """Write ``v`` with its singular values soft-thresholded to ``out``."""
    size = norm(v.ravel(), 0, v.size)
    if not np.isfinite(size):  # LAPACK may not return from NaN
        fill(out, np.nan)
    elif size == 0.0 or 1e-9 < size < 1e9:
        threshold_moderate(v, threshold, out)
    else:  # squares would overflow or underflow
        scaled = np.empty_like(v)
        entries, unit, result = v.ravel(), scaled.ravel(), out.ravel()
        for j in range(entries.size):
            unit[j] = entries[j] / size
        threshold_moderate(scaled, threshold / size, out)
        for j in range(entries.size):
            result[j] *= size


@kernel
def threshold_moderate(v: Array, threshold: float, out: Array) -> None:
    """Threshold the singular values of a matrix whose entries have squares."""
    if v.shape[0] >= v.shape[1]:
        threshold_tall(v, threshold, out)
        return
    turned = np.ascontiguousarray(v.T)
    result = np.empty_like(turned)
    threshold_tall(turned, threshold, result)
    for i in range(v.shape[0]):
        for j in range(v.shape[1]):
            out[i, j] = result[j, i]


@kernel
def threshold_tall(v: Array, threshold: float, out: Array) -> None:
    """Threshold the singular values of a matrix that has at least as many rows as columns."""
    gram = np.dot(v.T, v)
    few, values, vectors = leading(gram, threshold * threshold)
    if not few:
        values, vectors = np.linalg.eigh(gram)
    size = values.size
    for k in range(size):
        values[k] = math.sqrt(max(values[k], 0.0))
    if not few:
        resolve_small(v, threshold, values, vectors)
    scaled = np.empty(vectors.shape, v.dtype)
    for k in range(size):
        factor = shrinkage(values[k], threshold)
        for j in range(gram.shape[0]):
            scaled[j, k] = factor * vectors[j, k]
    turned = np.ascontiguousarray(vectors.T)
    if size == 0:
        fill(out, 0.0)
    elif few:
        copy(np.dot(np.dot(v, scaled), turned), out)
    else:
        copy(np.dot(v, np.dot(scaled, turned)), out)


@kernel
def leading(gram: Array, limit: float) -> tuple[bool, Array, Array]:
    """Return whether only the eigenvalues above a limit were found, by Lanczos's method, and these with their vectors.

    It gives up where that pays no more than finding all, where the limit is blurred by rounding, and where a test says that one
    was missed: ``limit * I - gram``, with what was found taken out, must have a Cholesky factor. The start is the same
    for every matrix of a size, so that results are repeatable.
    """
    size = gram.shape[0]
    eps = 2.2e-16 if gram.itemsize == 8 else 1.2e-7
    accurate = _ACCURATE_DOUBLE if gram.itemsize == 8 else _ACCURATE_SINGLE
    nothing = np.empty(0, gram.dtype), np.empty((size, 0), gram.dtype)
    most = size // 3 if size >= _LARGE else 0
    basis = np.empty((most + 1, size), gram.dtype)
    diagonal, beside = np.zeros(most), np.zeros(most)
    state = 1
    for j in range(size):
        state = (1103515245 * state + 12345) % 2147483648
        basis[0, j] = state / 1073741824.0 - 1.0
    basis[0] /= np.sqrt((basis[0] * basis[0]).sum())
    look = _START
    for k in range(most):
        new = np.dot(gram, basis[k])
        diagonal[k] = (new * basis[k]).sum()
        known = basis[: k + 1]
        for _ in range(2):  # twice is enough
            new = new - np.dot(np.dot(known, new), known)
        beside[k] = math.sqrt((new * new).sum())
        exhausted = beside[k] <= eps * size * abs(diagonal[0])
        if k + 1 == look or k + 1 == most or exhausted:
            small = np.diag(diagonal[: k + 1]) + np.diag(beside[:k], 1) + np.diag(beside[:k], -1)
            values, vectors = np.linalg.eigh(small)
            top = values[k]
            if limit <= accurate * accurate * top:
                return False, nothing[0], nothing[1]
            above, done = 0, True
            while above <= k and values[k - above] > limit:
                done = done and beside[k] * abs(vectors[k, k - above]) <= 10.0 * eps * top
                above += 1
            if done and above <= k:
                chosen = np.ascontiguousarray(vectors[:, k + 1 - above :].T).astype(gram.dtype)
                found = np.ascontiguousarray(np.dot(chosen, known).T)
                kept = values[k + 1 - above :].astype(gram.dtype)
                if nothing_is_above(gram, limit + 100.0 * eps * top, kept, found):
                    return True, kept, found
                return False, nothing[0], nothing[1]
            if exhausted:
                return False, nothing[0], nothing[1]
            look *= _GROWTH
        basis[k + 1] = new / beside[k]
    return False, nothing[0], nothing[1]


@kernel
def nothing_is_above(gram: Array, limit: float, values: Array, vectors: Array) -> bool:
    """Tell whether a symmetric matrix has no eigenvalue above a limit but the given ones."""
    rest = np.dot(vectors * values, np.ascontiguousarray(vectors.T)) - gram
    for j in range(rest.shape[0]):
        rest[j, j] += limit
    try:
        np.linalg.cholesky(rest)
    except Exception:
        return False
    return True


@kernel
def sum_of_singular_values(w: Array) -> float:
    """Return the nuclear norm, computed in double precision; NaN if an entry is not finite."""
    size = norm(w.ravel(), 0, w.size)
    if not np.isfinite(size):
        return np.nan
    if size == 0.0:
        return 0.0
    tall = np.ascontiguousarray(w if w.shape[0] >= w.shape[1] else w.T).astype(np.float64) / size
    values, vectors = np.linalg.eigh(np.dot(tall.T, tall))
    for k in range(values.size):
        values[k] = math.sqrt(max(values[k], 0.0))
    resolve_small(tall, 0.0, values, vectors)
    return size * values.sum()


@kernel
def resolve_small(v: Array, threshold: float, values: Array, vectors: Array) -> None:
    """Find the small singular values, which the Gram matrix blurs, again, and turn their vectors accordingly.

    The space of their vectors is known well, only what lies inside is blurred. There the Gram matrix has small numbers only,
    and its rounding errors are small in proportion: each round resolves values another factor smaller. A value that
    will be cut to zero need not be resolved.
    """
    accurate = _ACCURATE_DOUBLE if v.itemsize == 8 else _ACCURATE_SINGLE
    least = (1e-14 if v.itemsize == 8 else 1e-6) * values[values.size - 1]
    limit = accurate * values[values.size - 1]
    for _ in range(6):
        count = 0
        while count < values.size and values[count] <= limit:
            count += 1
        if count == 0 or limit <= threshold or limit <= least:
            return
        small = np.ascontiguousarray(vectors[:, :count])
        part = np.dot(v, small)
        found, turn = np.linalg.eigh(np.dot(part.T, part))
        turned = np.dot(small, np.ascontiguousarray(turn))
        for k in range(count):
            values[k] = math.sqrt(max(found[k], 0.0))
            for j in range(vectors.shape[0]):
                vectors[j, k] = turned[j, k]
        limit = accurate * values[count - 1]
