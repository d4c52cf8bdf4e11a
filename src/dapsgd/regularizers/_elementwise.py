"""Compiled helpers that several regularisers share."""

from typing import Any

import numpy as np

from .._jit import kernel

Array = np.ndarray[Any, Any]


@kernel
def soft_threshold(v: Array, threshold: float, out: Array) -> None:
    """Write ``sign(v) * max(|v| - threshold, 0)`` to ``out``; both may have any shape but are C-contiguous."""
    flat, result = v.ravel(), out.ravel()
    t = v.dtype.type(threshold)
    for j in range(flat.size):
        entry = flat[j]
        cut = t if entry > t else entry
        cut = -t if cut < -t else cut
        result[j] = entry - cut


@kernel
def sum_abs(w: Array) -> float:
    """Return the sum of absolute values."""
    total = 0.0
    for entry in w.ravel():
        total += abs(entry)
    return total


@kernel(fastmath={"reassoc", "contract"})
def sum_squares(v: Array) -> float:
    """Return the sum of squares; free to add in any order, but aware of NaN."""
    total = v.dtype.type(0.0)
    for j in range(v.size):
        total += v[j] * v[j]
    return total


@kernel
def norm(v: Array) -> float:
    """Return the Euclidean norm of a flat v without overflow or underflow."""
    total = sum_squares(v)
    if 1e-30 < total < 1e30:
        return np.sqrt(total)
    top = 0.0
    for j in range(v.size):
        if v[j] != v[j]:
            return np.nan
        top = max(top, abs(v[j]))
    if top == 0.0 or not np.isfinite(top):
        return top
    scaled = 0.0
    for j in range(v.size):
        scaled += (v[j] / top) ** 2
    return top * np.sqrt(scaled)
