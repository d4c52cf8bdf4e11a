"""BLAS runs in one thread while workers run: they are the parallelism."""

from __future__ import annotations

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


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS and LAPACK to one thread, and restore what was set before."""
    with _controller().limit(limits=1, user_api="blas"):
        yield
