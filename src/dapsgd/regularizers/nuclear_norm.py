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
        largest = float(np.abs(w).max(initial=0.0))  # in its units nothing overflows
        if not math.isfinite(largest):
            return math.nan
        if largest == 0.0:
            return 0.0
        unit = w.astype(np.float64) / largest
        return self.lam * (
            largest * float(np.linalg.norm(unit) if w.ndim == 1 else np.linalg.svd(unit, compute_uv=False).sum())
        )

    @property
    def in_numpy(self) -> bool:
        """The value is not compiled: it is only asked for from Python."""
        return True

    def large_prox(self, v: Array, step: float, out: Array) -> bool:
        """Write the prox of a large matrix, from Python, and return True; or leave it to :meth:`prox`."""
        if v.ndim == 1 or min(v.shape) < _LARGE or not 1e-9 < np.linalg.norm(v) < 1e9:
            return False
        tall = v if v.shape[0] >= v.shape[1] else v.T
        found = leading(tall.T @ tall, (step * self.lam) ** 2)
        if found is None:
            return False
        values, vectors = found
        factors = np.maximum(1.0 - step * self.lam / np.sqrt(values), 0.0).astype(v.dtype)
        result = (tall @ (vectors * factors)) @ vectors.T
        out[...] = result if tall is v else result.T
        return True

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
        """Return the smallest strength whose answer is zero: the spectral norm.

        From the Gram matrix, whose largest eigenvalue is as exact as the largest singular value, for a third of the price.
        """
        largest = float(np.abs(gradient).max(initial=0.0))
        if largest == 0.0 or not math.isfinite(largest):
            return largest
        unit = gradient.astype(np.float64) / largest  # in its units nothing overflows
        if unit.ndim == 1:
            return largest * float(np.linalg.norm(unit))
        tall = unit if unit.shape[0] >= unit.shape[1] else unit.T
        return largest * math.sqrt(float(np.linalg.eigvalsh(tall.T @ tall)[-1]))

    def prox_cost(self, shape: tuple[int, ...]) -> float:
        """Return how many rows' gradients a prox costs, which decomposes the matrix: measured, for 100 x 50."""
        return 1.8 * min(shape[0], math.prod(shape[1:]))

    def subgradient_bound(self, shape: tuple[int, ...]) -> float:
        r"""Return :math:`\lambda\sqrt{\min(p, q)}`."""
        return self.lam * math.sqrt(min(shape) if len(shape) == 2 else 1)


@kernel
def threshold_singular_values(v: Array, threshold: float, out: Array) -> None:
    """Write ``v`` with its singular values soft-thresholded to ``out``."""
    size = norm(v.ravel(), 0, v.size)
    if not np.isfinite(size):  # LAPACK may not return from NaN
        fill(out, np.nan)
    elif size == 0.0:
        fill(out, 0.0)
    elif 1e-9 < size < 1e9:
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
    values, vectors = np.linalg.eigh(np.dot(v.T, v))
    size = values.size
    for k in range(size):
        values[k] = math.sqrt(max(values[k], 0.0))
    resolve_small(v, threshold, values, vectors)
    rank = 0
    for k in range(size):
        rank += not values[k] <= threshold
    kept, scaled = np.empty((rank, size), v.dtype), np.empty((size, rank), v.dtype)
    row = 0
    for k in range(size):
        if not values[k] <= threshold:
            for j in range(size):
                kept[row, j], scaled[j, row] = vectors[j, k], shrinkage(values[k], threshold) * vectors[j, k]
            row += 1
    if rank == 0:
        fill(out, 0.0)
    elif 2 * rank < size:
        copy(np.dot(np.dot(v, scaled), kept), out)
    else:
        copy(np.dot(v, np.dot(scaled, kept)), out)


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


def leading(gram: Array, limit: float) -> tuple[Array, Array] | None:
    """Return the eigenvalues above a limit with their vectors, by Lanczos's method, or None.

    That is where finding all costs no more, where the limit is blurred by rounding, and where a test says that one was
    missed: ``limit * I - gram``, with what was found taken out, must have a Cholesky factor. The start is the same for every
    matrix of a size, so that results are repeatable.
    """
    size = len(gram)
    eps = float(np.finfo(gram.dtype).eps)
    accurate = _ACCURATE_DOUBLE if gram.itemsize == 8 else _ACCURATE_SINGLE
    most, look = size // 3, _START
    basis = np.empty((most + 1, size), gram.dtype)
    diagonal, beside = np.zeros(most), np.zeros(most)
    basis[0] = np.random.default_rng(0).standard_normal(size)
    basis[0] /= np.linalg.norm(basis[0])
    for k in range(most):
        new = gram @ basis[k]
        diagonal[k] = new @ basis[k]
        known = basis[: k + 1]
        for _ in range(2):  # twice is enough
            new -= (known @ new) @ known
        beside[k] = np.linalg.norm(new)
        exhausted = beside[k] <= eps * size * abs(diagonal[0])
        if k + 1 in (look, most) or exhausted:
            values, vectors = np.linalg.eigh(np.diag(diagonal[: k + 1]) + np.diag(beside[:k], 1) + np.diag(beside[:k], -1))
            above = values > limit
            errors = beside[k] * np.abs(vectors[k, above])
            if limit <= accurate**2 * values[k]:
                return None
            if (errors <= 10.0 * eps * values[k]).all() and not above.all():
                kept, found = values[above].astype(gram.dtype), known.T @ vectors[:, above].astype(gram.dtype)
                rest = (found * kept) @ found.T - gram
                rest[np.diag_indices(size)] += gram.dtype.type(limit + 100.0 * eps * values[k])
                return (kept, found) if _is_positive(rest) else None
            if exhausted:
                return None
            look *= _GROWTH
        basis[k + 1] = new / gram.dtype.type(beside[k])
    return None


def _is_positive(matrix: Array) -> bool:
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True
