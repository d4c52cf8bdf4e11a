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
    if flat is result:  # said apart: the compiler gives up on vector instructions where arrays may overlap
        for j in range(result.size):
            result[j] = beyond(result[j], t)
    else:
        for j in range(flat.size):
            result[j] = beyond(flat[j], t)


@kernel
def beyond(entry: float, t: float) -> float:
    """Return how far an entry is beyond ``[-t, t]``."""
    cut = t if entry > t else entry
    cut = -t if cut < -t else cut
    return entry - cut


def largest_size(v: Array) -> float:
    """Return the largest absolute value, without a copy."""
    return max(float(v.max(initial=0.0)), -float(v.min(initial=0.0)))


@kernel
def sum_abs(w: Array) -> float:
    """Return the sum of absolute values."""
    total = 0.0
    for entry in w.ravel():
        total += abs(entry)
    return total


@kernel(fastmath={"reassoc", "contract"})
def sum_squares(v: Array, start: int, stop: int) -> float:
    """Return the sum of squares of ``v[start:stop]``; free to add in any order, but aware of NaN.

    The indices are unsigned because the compiler can then tell that none is negative, and uses vector instructions.
    """
    total = v.dtype.type(0.0)
    for j in range(np.uint64(start), np.uint64(stop)):
        total += v[j] * v[j]
    return total


@kernel
def norm(v: Array, start: int, stop: int) -> float:
    """Return the Euclidean norm of ``v[start:stop]`` without overflow or underflow."""
    total = sum_squares(v, start, stop)
    if 1e-30 < total < 1e30:
        return np.sqrt(total)
    top = 0.0
    for j in range(start, stop):
        if v[j] != v[j]:  # a maximum would forget it
            return np.nan
        top = max(top, abs(v[j]))
    if top == 0.0 or not np.isfinite(top):
        return top
    scaled = 0.0
    for j in range(start, stop):
        scaled += (v[j] / top) ** 2
    return top * np.sqrt(scaled)
