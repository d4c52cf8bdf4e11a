"""The time in compiled code: CPython's own counter, the one of ``time.perf_counter``, without the interpreter lock.

To go back to Python for it would take as long as twenty updates, and others would have to wait for them.
"""

from __future__ import annotations

import ctypes
import sys
import time
from typing import Any

import numpy as np

from .._jit import extern, kernel

__all__ = ["stamp"]

Array = np.ndarray[Any, Any]

if sys.version_info >= (3, 13):

    @extern("PyTime_PerfCounterRaw", "int32", "intp")
    def _write_counter(address: int) -> int:
        ctypes.c_int64.from_address(int(address)).value = time.perf_counter_ns()
        return 0

    @kernel
    def stamp(place: Array) -> None:
        """Write the counter, in nanoseconds, to an array of one entry."""
        _write_counter(place.ctypes.data)

else:

    @extern("_PyTime_GetPerfCounter", "int64")
    def _counter() -> int:
        return time.perf_counter_ns()

    @kernel
    def stamp(place: Array) -> None:
        """Write the counter, in nanoseconds, to an array of one entry."""
        place[0] = _counter()
