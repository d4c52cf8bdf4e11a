"""Updates that a worker keeps until they are in a checkpoint, to send them again to a shard that was restarted."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from .slices import Push, limit_of

__all__ = ["Kept"]


class Kept:
    """What one worker has sent to one shard and may have to send again, the newest up to a number of bytes.

    Parameters
    ----------
    room : int
        Bytes; older updates are forgotten when it is full. If the shard dies before its next checkpoint the run then goes back
        to the last one.
    """

    def __init__(self, room: int) -> None:
        self._pushes: deque[Push] = deque()
        self._room = room
        self._bytes = 0
        self.is_full = False  # has something been forgotten, or is about to be?

    def add(self, push: Push) -> None:
        """Keep an update."""
        self._pushes.append(push)
        self._bytes += push.delta.nbytes
        self.is_full = 2 * self._bytes > self._room
        while self._bytes > self._room:
            self._forget()

    def settle(self, durable: int) -> None:
        """Forget the updates below a ticket: they are in a checkpoint."""
        while self._pushes and self._pushes[0].ticket < durable:
            self._forget()
        self.is_full = 2 * self._bytes > self._room

    def since(self, ticket: int) -> Iterator[Push]:
        """Give the updates from a ticket on; another thread may go on to add some."""
        return iter([push for push in list(self._pushes) if push.ticket >= ticket])

    def drop(self, opened: Sequence[tuple[int, int]]) -> None:
        """Forget what is void, because other epochs have begun."""
        self._pushes = deque(push for push in self._pushes if push.ticket < limit_of(push.epoch, opened))
        self._bytes = sum(push.delta.nbytes for push in self._pushes)
        self.is_full = 2 * self._bytes > self._room

    def __len__(self) -> int:
        return len(self._pushes)

    def _forget(self) -> None:
        self._bytes -= self._pushes.popleft().delta.nbytes
