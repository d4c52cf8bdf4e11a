"""Locks that compiled code can take without the interpreter: CPython's own, on every platform.

``PyThread_acquire_lock`` and its kin are exported by the running interpreter, need no interpreter lock, and block the
thread in the operating system. A lock is an address.

Waiting goes in three steps. Spin, because a critical section here is often shorter than anything else one could do. Then
offer the core to others, for as long as some updates take, because waking a thread that sleeps takes longer than most
updates, and because the one to wait for may need this very core. Then sleep.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._jit import extern, kernel

__all__ = ["Locks", "acquire", "locks", "release"]

_SPINS = 400  # about 2 microseconds: longer than most critical sections
_YIELDS = 2000  # about a millisecond if nobody else wants the core
_SPREAD = 4  # a lock is 32 bytes: take every fourth, so that no two share a cache line


class Locks:
    """Locks by their addresses, and how to tell whether somebody still uses them."""

    def __init__(self, taken: np.ndarray[Any, Any]) -> None:
        self.taken = taken
        self.in_use: Callable[[], bool] = lambda: False


@contextmanager
def locks(count: int) -> Iterator[Locks]:
    """Give so many free locks, and free them afterwards, but for the case that somebody still uses them."""
    allocate, free = ctypes.pythonapi.PyThread_allocate_lock, ctypes.pythonapi.PyThread_free_lock
    allocate.restype, allocate.argtypes = ctypes.c_void_p, ()
    free.restype, free.argtypes = None, (ctypes.c_void_p,)
    made: list[int] = []
    given: Locks | None = None
    try:
        for _ in range(count * _SPREAD):
            address = allocate()
            if not address:
                raise MemoryError("the operating system gives no more locks")
            made.append(address)
        given = Locks(np.array(made[::_SPREAD], dtype=np.intp))
        yield given
    finally:
        if given is None or not given.in_use():
            for address in made:
                free(address)


@extern("PyThread_acquire_lock", "int32", "intp", "int32")
def _try(lock: int, wait: int) -> int:
    call = ctypes.pythonapi.PyThread_acquire_lock
    call.restype, call.argtypes = ctypes.c_int, (ctypes.c_void_p, ctypes.c_int)
    return int(call(int(lock), int(wait)))


@extern("PyThread_release_lock", "void", "intp")
def release(lock: int) -> None:
    """Release a lock; unlike a mutex's, it may have been acquired by another thread."""
    call = ctypes.pythonapi.PyThread_release_lock
    call.restype, call.argtypes = None, (ctypes.c_void_p,)
    call(int(lock))


@extern("SwitchToThread" if sys.platform == "win32" else "sched_yield", "int32")
def _offer_core() -> int:
    time.sleep(0)
    return 0


@kernel
def acquire(lock: int) -> None:
    """Acquire a lock that is mostly held for a short time: spin, then offer the core to others, then sleep."""
    for _ in range(_SPINS):
        if _try(lock, 0) == 1:
            return
    for _ in range(_YIELDS):
        if _try(lock, 0) == 1:
            return
        _offer_core()
    _try(lock, 1)
