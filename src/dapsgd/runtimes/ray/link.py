"""A worker's line to the shards: calls that survive the death of a shard, because each may be made again.

A message goes to all shards at once. The head applies it as soon as it gives it a ticket; the others hold it until they are
told the ticket. Should its worker die before it has told them all, the next process of that worker, or the driver, tells them
instead.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ...errors import ClusterError
from .kept import Kept
from .order import ASLEEP, GRANTED, MISSING, OVER, REFUSED, UNKNOWN, WAIT, Answer, Welcome
from .shard import Reply
from .shared import Desk
from .slices import Push, limit_of

__all__ = ["Link", "actor_name"]

Array = np.ndarray[Any, Any]

_SHORTEST, _LONGEST = 0.0005, 0.05  # seconds between two looks at whether one's turn has come,
_FEWEST = 16  # updates: to keep fewer helps nobody
_PART = 0.1  # and as a part of the time waited so far


def actor_name(kind: str, index: int) -> str:
    """Return the name of an actor in the namespace of its run."""
    return f"{kind}-{index}"


class Link:
    """One worker's messages to all shards.

    Parameters
    ----------
    worker : int
    namespace : str
    bounds : array
        Shard s owns rows ``bounds[s]:bounds[s + 1]`` of the parameter.
    room : int
        Bytes of updates to keep for a shard that is restarted, over all shards.
    patience : float
        Seconds to wait for a shard to come back.
    shape, dtype
        Of the parameter.

    Attributes
    ----------
    x : array
        The parameter, as it was read last.
    message : array
        What is sent: whoever makes an update writes it here.
    """

    def __init__(
        self, worker: int, namespace: str, bounds: Array, room: int, patience: float, shape: tuple[int, ...], dtype: str
    ) -> None:
        import ray

        self._ray = ray
        self._worker = worker
        self._patience = patience
        self._shards = [ray.get_actor(actor_name("shard", s), namespace) for s in range(len(bounds) - 1)]
        self._all = list(range(len(self._shards)))
        self._slices = [slice(int(a), int(b)) for a, b in itertools.pairwise(bounds)]
        self._kept = [Kept(room // len(self._shards)) for _ in self._shards]
        self._desk = Desk(shape, dtype)
        self.x, self.message = self._desk.x, self._desk.message
        self._keeps = _FEWEST * self.x.nbytes <= room  # are updates kept, for a shard that is restarted?
        self._near = [False] * len(self._shards)  # is this one on the same machine, and knows the desk?
        self._attach(range(len(self._shards)))
        self.incarnation = -1
        self._epoch = 0
        self._last = -1, 0  # the last ticket that was given, and in which epoch
        self._number = 0
        self._since = 0  # the version from which on all that this worker sent before it joined is in the parameter
        self._durable = 0  # the last version that all shards are known to have on disk

    def join(self, keeps: bool) -> bool:
        """Become known to the head; return False if the run is over. A worker that ``keeps`` its updates was here before."""
        pause = _Pause()
        while True:
            welcome: Welcome | None = self._call(0, "join", self._worker)
            if welcome is not None:
                break
            if self._call(0, "lease", self._worker, -1).answer.kind == OVER:
                return False
            pause.wait()
        if welcome.epoch != self._epoch:
            for kept in self._kept:
                kept.drop(welcome.opened)
            self._durable = 0
        self.incarnation, self._epoch, self._number = welcome.incarnation, welcome.epoch, 0
        orphan = welcome.orphan
        if not keeps and orphan is not None:  # the one before me may not have told everybody
            self._call_each(lambda s: ("push", orphan, False), self._all[1:])
        self._since = max(welcome.opened[-1][1], 0 if orphan is None else orphan.ticket + 1)
        return True

    def renew(self) -> None:
        """Give a sign of life, without waiting for an answer."""
        self._shards[0].renew.remote(self._worker, self.incarnation)

    def fail(self) -> None:
        """Say that a number was not finite."""
        self._call(0, "fail", self._worker, self.incarnation)

    def contribution(self) -> Array | None:
        """Return what this worker has in the parameter, in the place of x, which is to be read again; None if it must join."""

        def call(s: int) -> tuple[Any, ...]:
            return "contribution", self._worker, self._since, self._epoch, self._key(s)

        return self.x if self._gather(call, [None] * len(self._shards)) else None

    def lease(self) -> tuple[str, int]:
        """Wait for a lease, and read the parameter; return what came of it, and the version."""
        pause = _Pause()
        while True:
            first: Reply = self._call(0, "lease", self._worker, self.incarnation, self._key(0))
            answer = first.answer
            assert answer is not None
            if answer.kind != WAIT:
                break
            pause.wait()
        if answer.kind == GRANTED and not self._read(answer.lease, [first, *[None] * (len(self._shards) - 1)]):
            return REFUSED, -1
        return answer.kind, answer.lease

    def send(self, rows: Array | None) -> tuple[str, int]:
        """Send the message and read the parameter; return what came of it, and the version: -1 if none was read."""
        self._number += 1
        message = self.incarnation, self._number
        first = self._offer(message, rows)
        answer = first.answer
        assert answer is not None
        if answer.kind != GRANTED:
            return answer.kind, -1
        push = self._keep(answer, message)
        replies: list[Reply | None] = [first, *self._tell(push, answer.lease >= 0)]
        if any(_kind_of(reply) == REFUSED for reply in replies):
            return REFUSED, -1
        durable = [reply.durable for reply in replies if reply is not None]
        for kept, own in zip(self._kept, durable, strict=True):
            kept.settle(own)
        self._durable = min(durable)
        if answer.lease >= 0 and not self._read(answer.lease, replies):
            return REFUSED, -1
        return GRANTED, answer.lease

    def _offer(self, message: tuple[int, int], rows: Array | None) -> Reply:
        """Send the message to everybody, and wait for a ticket; return what the head says."""
        hurry = any(kept.is_full for kept in self._kept)

        def call(s: int) -> tuple[Any, ...]:
            if s == 0:
                return "exchange", self._worker, *message, self._sent(s), rows, hurry, self._durable
            return "stage", self._worker, self._epoch, *message, self._sent(s)

        reply: Reply = self._call_each(call, self._all)[0]
        pause = _Pause()
        while _kind_of(reply) == WAIT:
            while self._call(0, "must_wait", self._worker, self.incarnation):
                pause.wait()
            reply = self._call_each(call, [0])[0]
        return reply

    def _tell(self, push: Push, reads: bool) -> list[Reply]:
        """Tell the ticket of a message to the shards that hold it; one that was restarted gets the message again."""
        others = self._all[1:]
        if not others:
            return []
        replies = dict(zip(others, self._call_each(lambda s: ("push", push, reads, self._key(s)), others), strict=True))
        lack = [s for s in others if _kind_of(replies[s]) == MISSING]
        calls = self._call_each(lambda s: ("push", push._replace(delta=self.message[self._slices[s]]), reads), lack)
        replies.update(zip(lack, calls, strict=True))
        return list(replies.values())

    def replay(self, shard: int, opened: Sequence[tuple[int, int]], epoch: int, until: int) -> int:
        """Send again, in an epoch, what a shard that was restarted may have lost below a ticket; return how many updates."""
        version = self._call(shard, "version")
        kept = [push for push in self._kept[shard].since(version) if push.ticket < min(until, limit_of(push.epoch, opened))]
        for push in kept:
            self._call(shard, "push", push._replace(epoch=epoch), False)
        return len(kept)

    def known(self, opened: Sequence[tuple[int, int]]) -> int:
        """Return one more than the last ticket that this worker was given, as far as it is not void."""
        ticket, epoch = self._last
        return int(min(ticket + 1, limit_of(epoch, opened)))

    def _keep(self, answer: Answer, message: tuple[int, int]) -> Push:
        assert answer.pace is not None
        push = Push(answer.ticket, self._worker, answer.pace, None, answer.cut, answer.read, self._epoch, message)
        if self._keeps:
            copy = self.message.copy()  # the next message is written over this one
            for kept, part in zip(self._kept, self._slices, strict=True):
                kept.add(push._replace(delta=copy[part]))
        self._last = answer.ticket, self._epoch
        return push

    def _read(self, version: int, replies: list[Reply | None]) -> bool:
        """Have every slice in x, asking for those that have not arrived at a version yet; return False if that is over."""
        return self._gather(lambda s: ("read", version, self._epoch, self._key(s)), replies)

    def _gather(self, call: Callable[[int], tuple[Any, ...]], replies: list[Reply | None]) -> bool:
        """Call shards until each has answered with an array, and have those in x; return False if an epoch has begun."""
        pause = _Pause()
        while True:
            missing = [s for s, reply in enumerate(replies) if reply is None or not reply.is_here]
            if not missing:
                break
            for s, reply in zip(missing, self._call_each(call, missing), strict=True):
                if _kind_of(reply) == REFUSED:
                    return False
                replies[s] = reply
            if any(not replies[s].is_here for s in missing):  # type: ignore[union-attr]
                pause.wait()
        for part, reply in zip(self._slices, replies, strict=True):
            if reply is not None and reply.x is not None:
                self.x[part] = reply.x
        return True

    # The desk.

    def _attach(self, shards: Iterable[int]) -> None:
        """Show the desk to shards that do not know it."""
        place = self._desk.place
        if place is not None:
            for s in shards:
                own = self._slices[s]
                self._near[s] = self._call(s, "attach", self._worker, place, own.start, own.stop)

    def _key(self, shard: int) -> int:
        """Return what tells a shard where to put its slice; -1: into the answer."""
        return self._desk.place.key if self._near[shard] and self._desk.place is not None else -1

    def _sent(self, shard: int) -> Array | int:
        """Return what stands for the message in a call: where to find it, or itself."""
        return self._key(shard) if self._near[shard] else self.message[self._slices[shard]]

    # Calls.

    def _call(self, shard: int, method: str, *arguments: Any) -> Any:
        return self._call_each(lambda _: (method, *arguments), [shard])[0]

    def _call_each(self, call: Callable[[int], tuple[Any, ...]], shards: list[int]) -> list[Any]:
        """Call some shards at once, by name of a method and arguments, each until it answers, and knows desk and epoch."""
        results: dict[int, Any] = {}
        todo, since = shards, None
        while True:
            refs: dict[int, Any] = {s: self._shards[s].answer.remote(list(call(s))) for s in todo}
            failed, strange, asleep = [], [], []
            for s, ref in refs.items():
                try:
                    results[s] = self._ray.get(ref)
                    kind = _kind_of(results[s])
                    if kind == UNKNOWN:
                        strange.append(s)
                    elif kind == ASLEEP:
                        asleep.append(s)  # the driver will look after it, and if that is gone so am I
                except self._ray.exceptions.RayActorError as error:
                    failed.append(s)
                    why = str(error)
            todo = failed + strange + asleep
            if not todo:
                return [results[s] for s in shards]
            self._attach(strange)
            if failed:
                since = time.monotonic() if since is None else since
                if time.monotonic() - since > self._patience:
                    raise ClusterError(f"shard {failed[0]} did not come back in {self._patience:g} s: {why}") from None
            if failed or asleep:
                time.sleep(0.1)


def _kind_of(result: Any) -> str:
    """Return what kind of answer there is in a reply, if there is one."""
    return result.answer.kind if isinstance(result, Reply) and result.answer is not None else ""


class _Pause:
    """Waits a little, and longer the longer it took so far."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def wait(self) -> None:
        time.sleep(min(max(_PART * (time.monotonic() - self._began), _SHORTEST), _LONGEST))
