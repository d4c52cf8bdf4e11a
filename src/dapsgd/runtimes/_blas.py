"""BLAS runs in one thread while workers run: they are the parallelism."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

__all__ = ["single_threaded_blas"]


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
