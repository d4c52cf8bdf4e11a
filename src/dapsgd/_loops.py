"""Plain loops for compiled code: they compile in a tenth of the time of an assignment to a slice, and run twice as fast."""

from typing import Any

import numpy as np

from ._jit import kernel

__all__ = ["copy", "fill"]

Array = np.ndarray[Any, Any]


@kernel
def copy(source: Array, target: Array) -> None:
    """Copy one C-contiguous array to another of the same size, or do nothing if it is the same."""
    entries, result = source.ravel(), target.ravel()
    if entries is result:
        return
    for j in range(entries.size):
        result[j] = entries[j]


@kernel
def fill(target: Array, value: float) -> None:
    """Fill a C-contiguous array with a number."""
    result = target.ravel()
    for j in range(result.size):
        result[j] = value
