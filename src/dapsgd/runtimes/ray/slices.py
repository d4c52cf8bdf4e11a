"""A shard's slice of the parameter: updates are applied in the order of their tickets, each once. Plain NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...updates import Pace

__all__ = ["Push", "Slice"]

Array = np.ndarray[Any, Any]


class Push(NamedTuple):
    """A worker's update of one slice."""

    ticket: int
    worker: int
    pace: Pace
    delta: Any  # an array, a gradient where the master runs the prox; or, on its way, the key of the desk where it is
    cut: bool = False


class Slice:
    """A part of the parameter with what belongs to it.

    Parameters
    ----------
    x : array
        Owned by this object from now on.
    contributions : array, shape (workers, *x.shape), optional
        What each worker has in x, kept up to date: a worker that lost its memory learns from it what it had put in.
    mean : array, optional
        The mean of all iterates, if asked for.
    run_prox : callable, optional
        ``run_prox(x, gradient, pace)`` updates x in place, where the master runs the prox; otherwise updates are added.
    """

    def __init__(
        self,
        x: Array,
        contributions: Array | None = None,
        mean: Array | None = None,
        run_prox: Callable[[Array, Array, Pace], None] | None = None,
    ) -> None:
        self.x, self.contributions, self.mean = x, contributions, mean
        self.version = 0  # the ticket that is applied next
        self.applied = 0
        self.repeated = 0  # updates that came again and were left alone
        self.voided: set[int] = set()  # tickets whose update was given up
        self.cut_at = -1  # where a checkpoint was asked for last
        self._pending: dict[int, Push] = {}
        self._void: set[int] = set()  # those that lie ahead
        self._run_prox = run_prox

    def push(self, push: Push) -> bool:
        """Take an update, to be applied when its turn comes; return False if it was given up before it came."""
        if push.ticket in self.voided or push.ticket in self._void:
            return False
        if push.ticket < self.version or push.ticket in self._pending:
            self.repeated += 1
            return True
        self._pending[push.ticket] = push
        self._go_on()
        return True

    def skip(self, ticket: int) -> None:
        """Give up a ticket whose update will not come; one that did come stays."""
        if ticket >= self.version and ticket not in self._pending:
            self._void.add(ticket)
            self._go_on()

    def fill(self, until: int) -> None:
        """Give up all tickets below ``until`` whose updates are not here."""
        self._void.update(t for t in range(self.version, until) if t not in self._pending)
        self._go_on()

    @property
    def top(self) -> int:
        """One more than the largest ticket that was heard of."""
        return max([self.version, *(t + 1 for t in self._pending), *(t + 1 for t in self._void)])

    def _go_on(self) -> None:
        while True:
            if self.version in self._void:
                self._void.discard(self.version)
                self.voided.add(self.version)
                self.version += 1
            elif self.version in self._pending:
                self._apply(self._pending.pop(self.version))
            else:
                return

    def _apply(self, push: Push) -> None:
        if self._run_prox is not None:
            self._run_prox(self.x, push.delta, push.pace)
        else:
            factor = min(1.0, push.pace.allowed / push.pace.read)
            delta = push.delta if factor == 1.0 else push.delta * self.x.dtype.type(factor)
            self.x += delta
            if self.contributions is not None:
                self.contributions[push.worker] += delta
        self.version += 1
        self.applied += 1
        if self.mean is not None:
            self.mean += (self.x - self.mean) * self.x.dtype.type(1.0 / (self.version + 1))
        if push.cut:
            self.cut_at = self.version
