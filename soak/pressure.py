"""Scheduling pressure: the engine's own compiled code, with locks that pause at random.

Compiled code finds CPython's locks by the names of their symbols. Here these names are given to other functions before any
code is loaded, which sleep for a moment, or not, and then call the real ones. Nothing in the package knows of it.
Only for a process of its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import sys
import threading
import time
from collections.abc import Iterator

_alive: list[object] = []  # callbacks that compiled code will call


calls = [0]  # of locks


def disturb_locks(seed: int, *, chance: float = 0.15, broken: bool = False) -> None:
    """Let every lock pause at random, before and after it is taken and released; broken ones let everybody in."""
    import llvmlite.binding as llvm

    library = ctypes.CDLL(None)  # unlike pythonapi it lets other threads run meanwhile
    take, give = library.PyThread_acquire_lock, library.PyThread_release_lock
    take.restype, take.argtypes = ctypes.c_int, (ctypes.c_void_p, ctypes.c_int)
    give.restype, give.argtypes = None, (ctypes.c_void_p,)
    rng = random.Random(seed)

    def pause() -> None:
        drawn = rng.random() / chance
        if drawn < 0.02:
            time.sleep(1e-3)
        elif drawn < 0.2:
            time.sleep(1e-5)
        elif drawn < 1.0:
            time.sleep(0.0)

    def acquire(lock: int, wait: int) -> int:
        calls[0] += 1
        pause()
        if broken:
            return 1
        taken = take(lock, wait)
        if not taken and rng.random() < 0.05:  # whoever only tries, tries again: it may as well wait here
            taken = take(lock, 1)
        if taken:
            pause()
        return int(taken)

    def release(lock: int) -> None:
        pause()
        if not broken:
            give(lock)
        pause()

    acquire_c = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)(acquire)
    release_c = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(release)
    _alive.extend([acquire_c, release_c])
    llvm.add_symbol("PyThread_acquire_lock", ctypes.cast(acquire_c, ctypes.c_void_p).value)
    llvm.add_symbol("PyThread_release_lock", ctypes.cast(release_c, ctypes.c_void_p).value)


@contextlib.contextmanager
def disturb_threads(seed: int) -> Iterator[None]:
    """Move threads from core to core, change their priorities, and switch between them as often as possible."""
    rng, stop = random.Random(seed), threading.Event()
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_setaffinity") else []

    def move() -> None:
        while not stop.wait(0.002):
            for task in os.listdir("/proc/self/task"):
                with contextlib.suppress(OSError):
                    if rng.random() < 0.3:
                        os.sched_setaffinity(int(task), rng.sample(cores, rng.randint(1, len(cores))))
                    if rng.random() < 0.1 and int(task) != os.getpid():
                        os.setpriority(os.PRIO_PROCESS, int(task), rng.randint(0, 19))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    thread = threading.Thread(target=move)
    if cores and os.path.isdir("/proc/self/task"):
        thread.start()
    try:
        yield
    finally:
        stop.set()
        if thread.ident is not None:
            thread.join()
            for task in os.listdir("/proc/self/task"):
                with contextlib.suppress(OSError):
                    os.sched_setaffinity(int(task), cores)
        sys.setswitchinterval(before)
