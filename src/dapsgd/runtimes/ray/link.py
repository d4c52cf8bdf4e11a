"""A worker's line to the shards: calls that survive the death of a shard, because each may be made again."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ...errors import ClusterError
from .kept import Kept
from .order import GRANTED, OVER, REFUSED, UNKNOWN, WAIT, Answer
from .shard import Reply
from .shared import Desk
from .slices import Push

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
        self._slices = [slice(int(a), int(b)) for a, b in itertools.pairwise(bounds)]
        self._kept = [Kept(room // len(self._shards)) for _ in self._shards]
        self._desk = Desk(shape, dtype)
        self.x, self.message = self._desk.x, self._desk.message
        self._keeps = _FEWEST * self.x.nbytes <= room  # are updates kept, for a shard that is restarted?
        self._near = [False] * len(self._shards)  # is this one on the same machine, and knows the desk?
        self._attach(range(len(self._shards)))
        self.incarnation = -1
        self.last_ticket = -1
        self._number = 0

    @property
    def _one(self) -> bool:
        return len(self._shards) == 1

    def join(self, keeps: bool) -> bool:
        """Become known to the head; return False if the run is over. A worker that ``keeps`` its updates was here before."""
        pause = _Pause()
        while True:
            incarnation, orphan = self._call(0, "join", self._worker)
            if incarnation >= 0:
                break
            if self._call(0, "lease", self._worker, -1).answer.kind == OVER:
                return False
            pause.wait()
        self.incarnation, self._number = incarnation, 0
        if not keeps and orphan >= 0:  # what the one before me did not deliver will never come
            self._call_all("skip", orphan)
        return True

    def renew(self) -> None:
        """Give a sign of life, without waiting for an answer."""
        self._shards[0].renew.remote(self._worker, self.incarnation)

    def fail(self) -> None:
        """Say that a number was not finite."""
        self._call(0, "fail", self._worker, self.incarnation)

    def contribution(self) -> Array:
        """Return what this worker has in the parameter, in the place of x, which is to be read again."""
        for part, own in zip(
            self._slices, self._call_each("contribution", lambda s: (self._worker, self._key(s))), strict=True
        ):
            if own is not None:
                self.x[part] = own
        return self.x

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
        if answer.kind == GRANTED:
            self._read(answer.lease, [first, *[None] * (len(self._shards) - 1)])
        return answer.kind, answer.lease

    def send(self, rows: Array | None) -> tuple[str, int]:
        """Send the message and read the parameter; return what came of it, and the version: -1 if none was read."""
        self._number += 1
        if self._one:
            return self._exchange(rows)
        pause = _Pause()
        while True:
            hurry = any(kept.is_full for kept in self._kept)
            answer: Answer = self._call(0, "ask", self._worker, self.incarnation, self._number, rows, hurry)
            if answer.kind != WAIT:
                break
            pause.wait()
        if answer.kind != GRANTED:
            return answer.kind, -1
        pushes = self._keep(answer)
        reads = answer.lease >= 0
        replies = self._call_each("push", lambda s: (pushes[s]._replace(delta=self._sent(s)), reads))
        if any(reply.answer is not None and reply.answer.kind == REFUSED for reply in replies):
            return REFUSED, -1
        for kept, reply in zip(self._kept, replies, strict=True):
            kept.settle(reply.durable)
        if reads:
            self._read(answer.lease, replies)
        return GRANTED, answer.lease

    def _exchange(self, rows: Array | None) -> tuple[str, int]:
        """Send to the only shard, in one call unless it has to wait."""
        pause = _Pause()
        while True:
            reply: Reply = self._call_each(
                "exchange",
                lambda s: (self._worker, self.incarnation, self._number, self._sent(s), rows, self._kept[s].is_full),
            )[0]
            answer = reply.answer
            assert answer is not None
            if answer.kind != WAIT:
                break
            while self._call(0, "must_wait", self._worker, self.incarnation):
                pause.wait()
        if answer.kind != GRANTED:
            return answer.kind, -1
        self._keep(answer)
        self._kept[0].settle(reply.durable)
        if answer.lease >= 0:
            self._read(answer.lease, [reply])
        return GRANTED, answer.lease

    def replay(self, shard: int) -> int:
        """Send again what a shard that was restarted may have lost; return how many updates."""
        version = self._call(shard, "read", 1 << 62).version
        again = list(self._kept[shard].since(version))
        for push in again:
            self._call(shard, "push", push, False)
        return len(again)

    def _keep(self, answer: Answer) -> list[Push]:
        assert answer.pace is not None
        self.last_ticket = answer.ticket
        push = Push(answer.ticket, self._worker, answer.pace, None, answer.cut)
        if self._keeps:
            copy = self.message.copy()  # the next message is written over this one
            for kept, part in zip(self._kept, self._slices, strict=True):
                kept.add(push._replace(delta=copy[part]))
        return [push] * len(self._shards)

    def _read(self, version: int, replies: list[Reply | None]) -> None:
        """Have every slice in x, asking for those that have not arrived at a version yet."""
        pause = _Pause()
        while True:
            missing = [s for s, reply in enumerate(replies) if reply is None or not reply.is_here]
            if not missing:
                break
            for s, reply in zip(missing, self._call_each("read", lambda s: (version, self._key(s)), missing), strict=True):
                replies[s] = reply
            if any(not replies[s].is_here for s in missing):  # type: ignore[union-attr]
                pause.wait()
        for part, reply in zip(self._slices, replies, strict=True):
            if reply is not None and reply.x is not None:
                self.x[part] = reply.x

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
        return self._call_each(method, lambda _: arguments, [shard])[0]

    def _call_all(self, method: str, *arguments: Any) -> list[Any]:
        return self._call_each(method, lambda _: arguments)

    def _call_each(
        self, method: str, arguments: Callable[[int], tuple[Any, ...]], shards: list[int] | None = None
    ) -> list[Any]:
        """Call some shards at once, each until it answers, and again if it did not know the desk."""
        shards = list(range(len(self._shards))) if shards is None else shards
        results: dict[int, Any] = {}
        todo, since = shards, None
        while True:
            refs = {s: getattr(self._shards[s], method).remote(*arguments(s)) for s in todo}
            failed, strange = [], []
            for s, ref in refs.items():
                try:
                    results[s] = self._ray.get(ref)
                    if isinstance(results[s], Reply) and results[s].answer is not None:
                        if results[s].answer.kind == UNKNOWN:
                            strange.append(s)
                except self._ray.exceptions.RayActorError as error:
                    failed.append(s)
                    gone = error
            todo = failed + strange
            if not todo:
                return [results[s] for s in shards]
            self._attach(strange)
            if failed:
                since = time.monotonic() if since is None else since
                if time.monotonic() - since > self._patience:
                    raise ClusterError(f"shard {failed[0]} did not come back in {self._patience:g} s: {gone}") from None
                time.sleep(0.1)


class _Pause:
    """Waits a little, and longer the longer it took so far."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def wait(self) -> None:
        time.sleep(min(max(_PART * (time.monotonic() - self._began), _SHORTEST), _LONGEST))
