"""Memory that a worker shares with the shards on its own machine, so that nothing between them is packed and copied.

A call then only says where to look. The memory has no name in any folder: it is gone when the last process that uses it is,
whoever died in what order. Where there is no such memory, or a shard is on another machine, arrays travel in the calls.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Desk", "Neighbours", "Place", "deliver_once"]

Array = np.ndarray[Any, Any]

_HEADER = 64  # bytes in front of the arrays: the key


class Place(NamedTuple):
    """Where a desk is."""

    machine: str
    pid: int
    file: int
    key: int  # tells a desk from all others that there ever were
    shape: tuple[int, ...]
    dtype: str

    @property
    def nbytes(self) -> int:
        """The size of one of the two arrays."""
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize


class Desk:
    """What a worker has before it: the parameter as it read it, and the message that it makes of that.

    A driver has one as well: shards put the parameter there, and the mean of all iterates in place of the message. Memory is
    taken when it is first written to.

    Parameters
    ----------
    shape : tuple of int
        Of the parameter.
    dtype : str or dtype
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.place: Place | None = None
        if hasattr(os, "memfd_create"):
            file, key = os.memfd_create("dapsgd"), int.from_bytes(os.urandom(7))
            self.place = Place(_machine(), os.getpid(), file, key, shape, np.dtype(dtype).str)
            os.ftruncate(file, _HEADER + 2 * self.place.nbytes)
            os.pwrite(file, key.to_bytes(8), 0)
            self.x, self.message = _arrays(file, self.place)
        else:
            self.x, self.message = np.zeros(shape, dtype), np.zeros(shape, dtype)

    def __del__(self) -> None:
        if self.place is not None:
            os.close(self.place.file)  # the arrays keep the memory itself


class Neighbours:
    """The desks on a shard's own machine, as far as they are its business."""

    def __init__(self) -> None:
        self._desks: dict[int, tuple[int, Array, Array]] = {}  # by key: worker, and its slice of both arrays

    def attach(self, worker: int, place: Place, start: int, stop: int) -> bool:
        """Use rows ``start:stop`` of a worker's desk from now on; return False if it is out of reach."""
        for key in [key for key, (owner, _, _) in self._desks.items() if owner == worker]:
            del self._desks[key]  # of a process that is gone
        found = _find(place)
        if found is not None:
            self._desks[place.key] = worker, found[0][start:stop], found[1][start:stop]
        return found is not None

    def message(self, key: int) -> Array | None:
        """Return what a worker has written; None if its desk is not known here."""
        desk = self._desks.get(key)
        return None if desk is None else desk[2]

    def deliver(self, key: int, x: Array) -> bool:
        """Put the slice on somebody's desk; return False if the desk is not known here."""
        desk = self._desks.get(key)
        if desk is not None:
            desk[1][...] = x
        return desk is not None


def deliver_once(place: Place, start: int, stop: int, x: Array, mean: Array | None) -> bool:
    """Put a slice on a desk, and that of the mean beside it, without holding on to it; return False if it is out of reach."""
    found = _find(place)
    if found is not None:
        found[0][start:stop] = x
        if mean is not None:
            found[1][start:stop] = mean
    return found is not None


def _find(place: Place) -> tuple[Array, Array] | None:
    """Return the arrays of a desk on this machine, None if there is none at this place."""
    if place.machine != _machine():
        return None
    with contextlib.suppress(OSError):
        file = os.open(f"/proc/{place.pid}/fd/{place.file}", os.O_RDWR | os.O_CLOEXEC)
        try:
            if os.pread(file, 8, 0) == place.key.to_bytes(8):
                return _arrays(file, place)
        finally:
            os.close(file)
    return None


def _arrays(file: int, place: Place) -> tuple[Array, Array]:
    size = int(np.prod(place.shape))
    both = np.frombuffer(mmap.mmap(file, 0), place.dtype, 2 * size, _HEADER)
    return both[:size].reshape(place.shape), both[size:].reshape(place.shape)


def _machine() -> str:
    """Return what two processes have in common that see each other in ``/proc``; this process's number where there is none."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return f"process {os.getpid()}"
