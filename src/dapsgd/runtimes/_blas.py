"""BLAS runs in one thread while workers run: they are the parallelism. Loops of ours beside it use as many threads as it."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any

from .._passes import WORTH_A_THREAD, for_each, standing_threads, threads_of_a_pass

if TYPE_CHECKING:
    from ..problem import Problem

__all__ = ["blas_threads", "calm_blas", "calm_for", "over_rows", "own_threads", "single_threaded_blas", "threads_for"]

_SMALL, _LARGE = 1 << 23, 1 << 26  # bytes of data


@cache
def _controller() -> Any:
    import scipy.linalg  # noqa: F401  # load its BLAS first: the controller knows only libraries that are loaded
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


class _Limit:
    """The one limit of this process: set by the first run that starts, lifted by the last that ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the two below
        self._runs = 0
        self._limiter: Any = None

    def enter(self) -> None:
        with self._lock:
            if self._limiter is None:
                self._limiter = _controller().limit(limits=1, user_api="blas")
            self._runs += 1

    def leave(self) -> None:
        with self._lock:
            self._runs -= 1
            if self._runs == 0:
                self._limiter.restore_original_limits()
                self._limiter = None


_limit = _Limit()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS and LAPACK to one thread, and restore what was set before when no run needs the limit any more."""
    _limit.enter()
    try:
        yield
    finally:
        _limit.leave()


def calm_blas(problem: Problem) -> AbstractContextManager[None]:
    """Limit BLAS to one thread if the data is small: threads would mostly wait for each other, and on a busy machine long."""
    return calm_for(max(problem.bytes, math.prod(problem.packed_shape) * problem.dtype.itemsize))


def calm_for(size: int) -> AbstractContextManager[None]:
    """Limit BLAS to one thread for work on so few bytes, if they are few."""
    return single_threaded_blas() if size < _SMALL else nullcontext()


@contextmanager
def own_threads(size: int, sparse: bool) -> Iterator[None]:
    """Let threads of ours do what threads of BLAS would, if there are many bytes.

    Those wait for each other awake: at once where they have the machine to themselves, next to other processes for long. With
    sparse data they only have vectors to work on, and would be awake for nothing.
    """
    if size < (WORTH_A_THREAD if sparse else _LARGE):
        yield
        return
    threads = blas_threads()
    with single_threaded_blas(), standing_threads(threads):
        yield


def blas_threads() -> int:
    """Return how many threads BLAS may use at the moment."""
    return min((library.num_threads for library in _controller().select(user_api="blas").lib_controllers), default=1)


def threads_for(size: int) -> int:
    """Return how many threads shall read so many bytes: as many as BLAS may use, or as a pass has, if there are enough."""
    return max(blas_threads(), threads_of_a_pass(size)) if size > WORTH_A_THREAD else 1


def over_rows(n: int, size: int, task: Callable[[int, int], object]) -> None:
    """Call ``task(start, stop)`` for rows that make up all n, in as many threads as BLAS may use if there are enough bytes."""
    count = max(1, min(threads_for(size), n))
    spans = [slice(n * k // count, n * (k + 1) // count) for k in range(count)]
    for_each(spans, lambda span: task(span.start, span.stop), count)
