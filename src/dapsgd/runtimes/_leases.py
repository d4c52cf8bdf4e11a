"""The bound on the delay, as arithmetic on leases: what the threads and the simulation have in common.

A lease is a version that somebody works on. Leases are kept in the order in which they were taken, hence sorted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._jit import kernel

__all__ = ["in_time", "remove"]

Array = np.ndarray[Any, Any]


@kernel
def in_time(leases: Array, count: int, version: int, iteration: int, max_delay: int) -> bool:
    """Tell whether all other leases can still be applied in time if an update from ``version`` is applied now."""
    others = 0
    skipped = False
    for i in range(count):
        if not skipped and leases[i] == version:
            skipped = True
        elif iteration + 1 + others - leases[i] > max_delay:
            return False
        else:
            others += 1
    return True


@kernel
def remove(leases: Array, count: int, version: int) -> None:
    """Take out one of the leases on a version, which are all alike."""
    place = 0
    while leases[place] != version:
        place += 1
    for i in range(place, count - 1):
        leases[i] = leases[i + 1]
