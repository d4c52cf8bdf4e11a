"""Passes over large data by several threads, in runs whose workers stand still meanwhile: BLAS has one thread there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import cache, partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import numpy as np

from ._team import Team, available_cores, staying_on_core

__all__ = [
    "WORTH_A_THREAD",
    "cut_rows",
    "each_part",
    "for_each",
    "shared_passes",
    "standing_threads",
    "sum_over_rows",
    "threads_of_a_pass",
]

WORTH_A_THREAD = 1 << 24  # bytes: reading them takes some ms, starting a thread a tenth of one
_BLOCKS = 32
_PATIENCE = 2e-3  # seconds
_ENTRIES = 1 << 14  # of a block with a few numbers a row: a logarithm for each takes a tenth of a millisecond
_FEW_ENTRIES = 1 << 16  # which are not worth cutting

Block = TypeVar("Block")
Answer = TypeVar("Answer")

_threads: ContextVar[int] = ContextVar("threads of a pass", default=1)  # a new thread starts with 1: it is one of them
_standing: ContextVar[Callable[[], Team] | None] = ContextVar("threads that wait for a pass", default=None)


@contextmanager
def shared_passes(threads: int) -> Iterator[None]:
    """Let this many threads make the passes over the data that the calling thread asks for."""
    before = _threads.set(threads)
    try:
        yield
    finally:
        _threads.reset(before)


@contextmanager
def standing_threads(threads: int) -> Iterator[None]:
    """Let this many threads make the passes, and wait for the next one in between: starting one takes longer than waking it."""
    with ExitStack() as stack, shared_passes(threads):

        @cache  # they are started by the first pass that needs them
        def team() -> Team:
            return stack.enter_context(Team(threads - 1))

        before = _standing.set(team)
        try:
            yield
        finally:
            _standing.reset(before)


def threads_of_a_pass(size: int) -> int:
    """Return how many threads shall read so many bytes."""
    return _threads.get() if size > WORTH_A_THREAD else 1


def cut_rows(n: int, rows: int = 1) -> list[slice]:
    """Return blocks of so many rows or more that make up all n: the same ones for any number of threads."""
    size = max(rows, -(-n // _BLOCKS))
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def for_each(blocks: Sequence[Block], task: Callable[[Block], Answer], threads: int, *, apart: bool = False) -> list[Answer]:
    """Return what a task gives for each block; several threads, of which the calling one is one, take the next that is left.

    With ``apart`` each stays on a core of its own, if there is one for each: for tasks that ask for the interpreter's lock
    again and again. Where threads of BLAS are still awake on these cores that would only mean to wait for them.
    """
    if min(threads, len(blocks)) <= 1:
        with shared_passes(1):
            return [task(block) for block in blocks]
    results: list[Any] = [None] * len(blocks)
    todo = iter(range(len(blocks)))  # next() on it is one step of the interpreter: no two threads get the same

    settings = np.geterr()  # which another thread has not

    helpers = min(threads, len(blocks)) - 1
    apart = apart and helpers + 1 == available_cores()
    there: SimpleQueue[int] = SimpleQueue()

    def help_out(who: int) -> None:
        with np.errstate(**settings), staying_on_core(who) if apart else nullcontext():
            if who > 0:
                there.put(who)
            elif apart:  # a helper that was woken where this thread works would not get away before its time is over
                with suppress(Empty):
                    for _ in range(helpers):
                        there.get(timeout=_PATIENCE)
            for k in todo:
                results[k] = task(blocks[k])

    waiting = _standing.get()
    standing = waiting() if waiting is not None else None
    ready = standing is not None and standing.size >= helpers and standing.is_ready
    with nullcontext(standing) if standing is not None and ready else Team(helpers) as team:
        try:
            for who in range(helpers):
                team.assign(who, partial(help_out, who + 1))
            with shared_passes(1):
                help_out(0)
        finally:
            deque(todo, maxlen=0)  # after Ctrl-C nobody begins with another one
            team.settle()
        team.finish()
    return results


def sum_over_rows(n: int, numbers: int, part: Callable[[slice], float]) -> float:
    """Return the sum of what blocks of n rows give, where a row is so many numbers; the same for any number of threads."""
    first, *others = each_part(n, numbers, part)
    return sum(others, first)


def each_part(n: int, numbers: int, part: Callable[[slice], Answer]) -> list[Answer]:
    """Return what blocks of n rows give, where a row is so many numbers; the same blocks for any number of threads."""
    first, *others = cut_rows(n, n if n * numbers <= _FEW_ENTRIES else max(1, _ENTRIES // max(numbers, 1)))
    answer = part(first)  # which compiles what it calls, if need be, in the calling thread
    return [answer, *for_each(others, part, _threads.get())]
