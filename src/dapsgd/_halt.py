"""Runs side by side in threads that somebody else has started: they end with the call that they are part of.

Ctrl-C comes to the main thread alone. What has the others waits for nobody: the call would be over, and its runs would go on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Any

__all__ = ["Halt", "end_if_asked"]

_POLL = 0.01  # seconds

_asked: ContextVar[threading.Event | None] = ContextVar("whether the run of this thread is to end", default=None)


class _HaltedError(Exception):
    """The call that a run is part of is over; nobody sees this."""


def end_if_asked() -> None:
    """Raise if the call that this run is part of is over: asked now and then by everything that takes long."""
    event = _asked.get()
    if event is not None and event.is_set():
        raise _HaltedError


class Halt:
    """Ends its tasks, and waits for them, if the block that it is around ends by an exception.

    In a process of its own a task is not ended: whoever started that does it.
    """

    def __init__(self) -> None:
        self._event = threading.Event()
        # Nobody holds a lock that Ctrl-C could leave held: a list is added to, and taken from, in one step of the interpreter.
        self._running: list[object] = []

    def __reduce__(self) -> tuple[Any, ...]:
        """Be another one in another process."""
        return Halt, ()

    def run(self, task: Callable[..., Any], *arguments: Any) -> Any:
        """Do a task, in any thread."""
        me = object()
        self._running.append(me)
        before = _asked.set(self._event)
        try:
            end_if_asked()
            return task(*arguments)
        finally:
            _asked.reset(before)
            self._running.remove(me)

    def __enter__(self) -> Halt:
        """Begin."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """After an exception, wait until no task is left, however often Ctrl-C is pressed meanwhile."""
        if kind is None:
            return
        interrupted = None
        while True:
            try:
                self._event.set()
                while self._running:
                    time.sleep(_POLL)
                break
            except KeyboardInterrupt as again:
                interrupted = again
        if interrupted is not None:
            raise interrupted
