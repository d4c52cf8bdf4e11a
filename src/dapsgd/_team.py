"""Threads that Ctrl-C cannot leave in a mess.

``concurrent.futures`` and ``threading.Thread.start`` wait on locks that are written in Python: an interrupt in the wrong
place leaves one of them held, and everybody waits for ever. Here the calling thread talks to its threads through
``queue.SimpleQueue`` alone, which is written in C.
"""

from __future__ import annotations

import _thread
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import Any

__all__ = ["Team", "available_cores", "go_to_core", "staying_on_core"]

_GOODBYE = object()


class Team:
    """Some threads, each of which does what it is assigned, one after the other.

    Only the calling thread uses the methods. All threads have ended, or are at their last instruction, after ``close``.
    """

    def __init__(self, count: int) -> None:
        self._inboxes: list[SimpleQueue[Callable[[], Any] | None]] = []
        self._outbox: SimpleQueue[Any] = SimpleQueue()
        self._assigned = self._done = self._gone = 0
        self._failures: list[BaseException] = []
        try:
            for _ in range(count):
                inbox: SimpleQueue[Callable[[], Any] | None] = SimpleQueue()
                self._inboxes.append(inbox)
                _thread.start_new_thread(_serve, (inbox, self._outbox))
        except BaseException:
            self.close()
            raise

    @property
    def size(self) -> int:
        """How many threads there are."""
        return len(self._inboxes)

    @property
    def is_busy(self) -> bool:
        """Whether somebody is still at work."""
        return self._done < self._assigned

    @property
    def is_ready(self) -> bool:
        """Whether nobody is at work, and nothing has gone wrong."""
        return not self.is_busy and not self._failures

    def assign(self, who: int, task: Callable[[], Any]) -> None:
        """Let one of the threads do something."""
        self._assigned += 1
        self._inboxes[who].put(task)

    def wait(self, seconds: float) -> None:
        """Wait until one more task is done, for so long at the most."""
        with suppress(Empty):
            self._take(self._outbox.get(timeout=seconds))

    def settle(self) -> None:
        """Wait until all tasks are done."""
        while self.is_busy:
            self.wait(0.1)

    def finish(self) -> None:
        """Wait until all tasks are done, and raise the first exception of any."""
        self.settle()
        if self._failures:
            raise self._failures[0]

    def close(self) -> None:
        """Send everybody home and wait until they are gone, however often Ctrl-C is pressed meanwhile."""
        interrupted = None
        for inbox in self._inboxes:
            inbox.put(None)
        while self._gone < len(self._inboxes):
            try:
                self._take(self._outbox.get(timeout=0.1))
            except Empty:
                pass
            except KeyboardInterrupt as again:
                interrupted = again
        if interrupted is not None:
            raise interrupted

    def _take(self, said: Any) -> None:
        if said is _GOODBYE:
            self._gone += 1
            return
        self._done += 1
        if said is not None:
            self._failures.append(said)

    def __enter__(self) -> Team:
        """Use the team."""
        return self

    def __exit__(self, *_: object) -> None:
        """Send everybody home."""
        self.close()


def _serve(inbox: SimpleQueue[Callable[[], Any] | None], outbox: SimpleQueue[Any]) -> None:
    """Do what comes in, until there is nothing more to do."""
    while (task := inbox.get()) is not None:
        failure: BaseException | None = None
        try:
            task()
        except BaseException as error:
            failure = error
        del task
        outbox.put(failure)
        del failure
    outbox.put(_GOODBYE)


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def go_to_core(k: int) -> None:
    """Move the calling thread to the k-th of the cores that it may use; from there the system may move it wherever it likes.

    Of threads that are woken together two may find themselves on one core, next to one that has nothing to do, for longer than
    a short run takes.
    """
    if not hasattr(os, "sched_setaffinity"):
        return
    allowed = os.sched_getaffinity(0)
    with suppress(OSError):
        os.sched_setaffinity(0, {sorted(allowed)[k % len(allowed)]})
    with suppress(OSError):
        os.sched_setaffinity(0, allowed)


@contextmanager
def staying_on_core(k: int) -> Iterator[None]:
    """Keep the calling thread on the k-th of the cores that it may use.

    A thread that waited for the interpreter's lock is often woken where the one that let go of it works, and two threads share
    a core next to one that has nothing to do.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    try:
        with suppress(OSError):
            os.sched_setaffinity(0, {sorted(allowed)[k % len(allowed)]})
        yield
    finally:
        with suppress(OSError):
            os.sched_setaffinity(0, allowed)
