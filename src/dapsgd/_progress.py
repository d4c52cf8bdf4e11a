"""Progress: a bar on a terminal, a widget in a notebook that has them, and in a log a line now and then."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

__all__ = ["Lines", "bar", "counting", "in_notebook"]

_SOON = 10.0  # seconds to the first line, and at least between two
_SELDOM = 300.0  # seconds at most: of a job that says nothing for longer one thinks that it hangs
_APART = 0.2  # of the time so far, in between
_MANY = {"it": "iterations", "B": "bytes"}  # what tqdm calls otherwise; other units get an s


def bar(**options: Any) -> Any:
    """Show a bar, or lines if nobody would see it move; the options are tqdm's."""
    if not _is_watched():
        return Lines(**options)
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


class Lines:
    """What a bar is in a log: a line now and then, further and further apart, and none of what does not take long.

    As much of tqdm's interface as is used here. ``clock`` gives seconds.
    """

    def __init__(
        self,
        total: float,
        desc: str = "dapsgd",
        unit: str = "it",
        unit_scale: bool = False,
        disable: bool = False,
        clock: Callable[[], float] = time.monotonic,
        **_: Any,
    ) -> None:
        self.n = 0.0
        self._total, self._name, self._scaled, self._silent = total, desc, unit_scale, disable
        self._units = _MANY.get(unit, f"{unit}s")
        self._note = ""
        self._clock, self._start = clock, clock()
        self._next = _SOON
        self._said: float | None = None  # what was done at the last line

    def set_postfix_str(self, text: str = "", refresh: bool = True) -> None:
        """Keep what is to be said at the end of a line."""
        self._note = text

    def update(self, more: float = 1) -> None:
        """Take note that more is done, and say so if it is time."""
        self.n += more
        seconds = self._clock() - self._start
        if seconds >= self._next and not self._silent and sys.stderr is not None:
            self._say(seconds)
            self._next = seconds + min(max(_SOON, _APART * seconds), _SELDOM)

    def close(self) -> None:
        """Say how it ended, if anything was said before."""
        if self._said is not None and self._said != self.n:
            self._say(self._clock() - self._start)

    def _say(self, seconds: float) -> None:
        from tqdm import tqdm

        done, total = (tqdm.format_sizeof(count) if self._scaled else f"{count:.0f}" for count in (self.n, self._total))
        share = f" ({self.n / self._total:.0%})" if self._total else ""
        rest = f", {self._note}" if self._note else ""
        line = f"{self._name}: {done} of {total} {self._units}{share} after {tqdm.format_interval(seconds)}{rest}"
        print(line, file=sys.stderr, flush=True)
        self._said = self.n

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_watched() -> bool:
    """Tell whether somebody sees a bar move."""
    return in_notebook() or bool(getattr(sys.stderr, "isatty", bool)())


def in_notebook() -> bool:
    """Tell whether this process is the kernel of a notebook."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return hasattr(shell, "kernel")
