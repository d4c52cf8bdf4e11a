"""A shard's slice of the parameter: updates are applied in the order of their tickets, each once. Plain NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...updates import Pace

__all__ = ["Push", "Slice", "limit_of"]

Array = np.ndarray[Any, Any]


class Push(NamedTuple):
    """A worker's update of one slice, with its ticket."""

    ticket: int
    worker: int
    pace: Pace
    delta: (
        Any  # an array, a gradient where the master runs the prox; on its way the key of the desk where it is, or None: staged
    )
    cut: bool = False
    read: int = -1  # the version that it was made from
    epoch: int = 0
    message: tuple[int, int] = (0, 0)  # the worker's incarnation, and the number of the message


def limit_of(epoch: int, opened: Sequence[tuple[int, int]]) -> float:
    """Return the ticket from which on those of an epoch are void, because a later one was opened at a version below them.

    ``opened`` has the number of each epoch, and the version from which its tickets were given.
    """
    return min((version for later, version in opened if later > epoch), default=math.inf)


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
    on_cut : callable, optional
        Called right after an update that is marked by ``cut``.
    """

    def __init__(
        self,
        x: Array,
        contributions: Array | None = None,
        mean: Array | None = None,
        run_prox: Callable[[Array, Array, Pace], None] | None = None,
        on_cut: Callable[[], None] | None = None,
    ) -> None:
        self.x, self.contributions, self.mean = x, contributions, mean
        self.version = 0  # the ticket that is applied next
        self.applied = 0
        self.repeated = 0  # updates that came again and were left alone
        self._pending: dict[int, Push] = {}
        self._run_prox, self._on_cut = run_prox, on_cut

    def has(self, ticket: int) -> bool:
        """Tell whether the update with a ticket is here, applied or not."""
        return ticket < self.version or ticket in self._pending

    def push(self, push: Push) -> None:
        """Take an update, to be applied when its turn comes; one that is here already is left alone."""
        if self.has(push.ticket):
            self.repeated += 1
            return
        self._pending[push.ticket] = push
        while self.version in self._pending:
            self._apply(self._pending.pop(self.version))

    def missing(self, until: int) -> list[int]:
        """Return the tickets below ``until`` whose updates are not here."""
        return [ticket for ticket in range(self.version, until) if ticket not in self._pending]

    def go_back(self, version: int, applied: int) -> None:
        """Be at another version, at which the arrays are; nothing waits for its turn."""
        self.version, self.applied = version, applied
        self._pending.clear()

    @property
    def top(self) -> int:
        """One more than the largest ticket that was heard of."""
        return max([self.version, *(t + 1 for t in self._pending)])

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
        if push.cut and self._on_cut is not None:
            self._on_cut()
