"""Whether there is memory for something, asked before it is taken: a machine that runs out of it kills without a word.

And a place for what is not needed for a while.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from .errors import OutOfMemoryError

__all__ = ["available_memory", "require_memory", "set_aside"]

Array = np.ndarray[Any, Any]

_SMALL = 1 << 26  # bytes that are not worth asking for
_LARGE = 1 << 23  # bytes that are worth a file


def require_memory(size: int, what: str, advice: str) -> None:
    """Raise :class:`OutOfMemoryError` if so many bytes are more than there are.

    Examples
    --------
    >>> require_memory(1000, "a little", "be happy")
    >>> require_memory(1 << 60, "the matrix", "take fewer columns")
    Traceback (most recent call last):
    dapsgd.errors.OutOfMemoryError: the matrix would need 1,073,741,824.0 GiB of memory; ... available; take fewer columns
    """
    if size < _SMALL:
        return
    there = available_memory()
    if there is not None and size > there:
        raise OutOfMemoryError(
            f"{what} would need {size / 2**30:,.1f} GiB of memory; {there / 2**30:,.1f} GiB are available; {advice}"
        )


def available_memory() -> int | None:
    """Return how many bytes this process may still take without pushing others out; None if the system does not say."""
    return min(_limits(), default=None)


def set_aside(array: Array) -> Callable[[], Array]:
    """Return what gives an array back later: a large one is in a temporary file until then, if there is room for it.

    Examples
    --------
    >>> import numpy as np
    >>> again = set_aside(np.arange(3.0))
    >>> again()
    array([0., 1., 2.])
    """
    if array.nbytes >= _LARGE:
        with suppress(OSError):
            return _Aside(array)
    copy = array.copy()
    return lambda: copy


class _Aside:
    """An array in a temporary file, which is gone when this object is."""

    def __init__(self, array: Array) -> None:
        self._dtype, self._shape = array.dtype, array.shape
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (for longer than a block)
        array.tofile(self._file)
        if self._file.seek(0, os.SEEK_END) != array.nbytes:  # NumPy says nothing of a disk that is full at the very end
            raise OSError("the file is too short")

    def __call__(self) -> Array:
        self._file.seek(0)
        return np.fromfile(self._file, self._dtype, math.prod(self._shape)).reshape(self._shape)

    def __del__(self) -> None:
        if hasattr(self, "_file"):  # there may not even have been room for that
            with suppress(OSError):
                self._file.close()


def _limits() -> Iterator[int]:
    if sys.platform == "linux":
        with suppress(OSError, ValueError, IndexError):
            lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
            yield int(lines["MemAvailable"].split()[0]) << 10
        with suppress(OSError, ValueError, IndexError):
            yield from _of_container()
    elif hasattr(os, "sysconf") and "SC_AVPHYS_PAGES" in os.sysconf_names:
        yield os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(ImportError, OSError, ValueError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            yield max(0, limit - pages * os.sysconf("SC_PAGE_SIZE"))


def _of_container() -> Iterator[int]:
    """Yield what the control groups of this process, version 2, leave it; cached files do not count."""
    group = Path(Path("/proc/self/cgroup").read_text().split("::", 1)[1].split("\n", 1)[0].lstrip("/"))
    for folder in (Path("/sys/fs/cgroup") / group, *(Path("/sys/fs/cgroup") / group).parents[: len(group.parts)]):
        with suppress(OSError, ValueError):
            limit = (folder / "memory.max").read_text().strip()
            if limit == "max":
                continue
            counts = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
            used = int((folder / "memory.current").read_text()) - int(counts.get("inactive_file", 0))
            yield max(0, int(limit) - used)
