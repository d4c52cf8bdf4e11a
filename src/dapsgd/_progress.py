"""Progress bars: widgets in a notebook that has them, text everywhere else."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

__all__ = ["bar", "counting"]


def bar(**options: Any) -> Any:
    """Show a bar; the options are tqdm's."""
    from tqdm import TqdmWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TqdmWarning)  # text will do
        from tqdm.auto import tqdm
    return tqdm(**options)


@contextmanager
def counting(show: bool, total: int, unit: str) -> Iterator[Callable[[], None]]:
    """Show a bar, if asked to; what this gives is called, from any thread, whenever one more is done."""
    if not show:
        yield lambda: None
        return
    lock = Lock()  # guards the bar
    with bar(total=total, unit=unit, desc="dapsgd") as shown:

        def count() -> None:
            with lock:
                shown.update()

        yield count
