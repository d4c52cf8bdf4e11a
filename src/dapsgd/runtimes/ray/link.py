"""A worker's line to the shards: calls that survive the death of a shard, because each may be made again."""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np

from ...errors import ClusterError
from .kept import Kept
from .order import GRANTED, OVER, REFUSED, WAIT, Answer
from .shard import Reply
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
    """

    def __init__(self, worker: int, namespace: str, bounds: Array, room: int, patience: float) -> None:
        import ray

        self._ray = ray
        self._worker = worker
        self._patience = patience
        self._shards = [ray.get_actor(actor_name("shard", s), namespace) for s in range(len(bounds) - 1)]
        self._slices = [slice(int(a), int(b)) for a, b in itertools.pairwise(bounds)]
        self._kept = [Kept(room // len(self._shards)) for _ in self._shards]
        self._room = room
        self.incarnation = -1
        self.last_ticket = -1
        self._number = 0

    @property
    def _one(self) -> bool:
        return len(self._shards) == 1

    def keeps(self, size: int) -> bool:
        """Tell whether an update of so many bytes is kept, so that nobody may write over it."""
        return _FEWEST * size <= self._room

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
        """Return what this worker has in the parameter."""
        return np.concatenate(self._call_all("contribution", self._worker))

    def lease(self, x: Array) -> tuple[str, int]:
        """Wait for a lease, and read the parameter into x; return what came of it, and the version."""
        pause = _Pause()
        while True:
            first: Reply = self._call(0, "lease", self._worker, self.incarnation)
            answer = first.answer
            assert answer is not None
            if answer.kind != WAIT:
                break
            pause.wait()
        if answer.kind == GRANTED:
            self._read(x, answer.lease, [first, *[None] * (len(self._shards) - 1)])
        return answer.kind, answer.lease

    def send(self, delta: Array, rows: Array | None, x: Array) -> tuple[str, int]:
        """Send an update and read the parameter into x; return what came of it, and the version: -1 if none was read."""
        self._number += 1
        if self._one:
            return self._exchange(delta, rows, x)
        pause = _Pause()
        while True:
            hurry = any(kept.is_full for kept in self._kept)
            answer: Answer = self._call(0, "ask", self._worker, self.incarnation, self._number, rows, hurry)
            if answer.kind != WAIT:
                break
            pause.wait()
        if answer.kind != GRANTED:
            return answer.kind, -1
        pushes = self._keep(answer, [delta[part] for part in self._slices])
        reads = answer.lease >= 0
        replies = self._call_each("push", [(push, reads) for push in pushes])
        if any(reply.answer is not None and reply.answer.kind == REFUSED for reply in replies):
            return REFUSED, -1
        for kept, reply in zip(self._kept, replies, strict=True):
            kept.settle(reply.durable)
        if reads:
            self._read(x, answer.lease, replies)
        return GRANTED, answer.lease

    def _exchange(self, delta: Array, rows: Array | None, x: Array) -> tuple[str, int]:
        """Send to the only shard, in one call unless it has to wait."""
        pause = _Pause()
        while True:
            hurry = self._kept[0].is_full
            reply: Reply = self._call(0, "exchange", self._worker, self.incarnation, self._number, delta, rows, hurry)
            answer = reply.answer
            assert answer is not None
            if answer.kind != WAIT:
                break
            while self._call(0, "must_wait", self._worker, self.incarnation):
                pause.wait()
        if answer.kind != GRANTED:
            return answer.kind, -1
        self._keep(answer, [delta])
        self._kept[0].settle(reply.durable)
        if answer.lease >= 0:
            self._read(x, answer.lease, [reply])
        return GRANTED, answer.lease

    def replay(self, shard: int) -> int:
        """Send again what a shard that was restarted may have lost; return how many updates."""
        version = self._call(shard, "read", 1 << 62).version
        again = list(self._kept[shard].since(version))
        for push in again:
            self._call(shard, "push", push, False)
        return len(again)

    def _keep(self, answer: Answer, deltas: list[Array]) -> list[Push]:
        assert answer.pace is not None
        self.last_ticket = answer.ticket
        pushes = [Push(answer.ticket, self._worker, answer.pace, delta, answer.cut) for delta in deltas]
        if self.keeps(sum(delta.nbytes for delta in deltas)):
            for kept, push in zip(self._kept, pushes, strict=True):
                kept.add(push)
        return pushes

    def _read(self, x: Array, version: int, replies: list[Reply | None]) -> None:
        """Copy every slice into x, asking for those that have not arrived at a version yet."""
        pause = _Pause()
        while True:
            missing = [s for s, reply in enumerate(replies) if reply is None or reply.x is None]
            if not missing:
                break
            answers = self._call_each("read", [(version,)] * len(missing), missing)
            for s, reply in zip(missing, answers, strict=True):
                replies[s] = reply
            if any(replies[s].x is None for s in missing):  # type: ignore[union-attr]
                pause.wait()
        for part, reply in zip(self._slices, replies, strict=True):
            x[part] = reply.x  # type: ignore[union-attr]

    # Calls.

    def _call(self, shard: int, method: str, *arguments: Any) -> Any:
        return self._call_each(method, [arguments], [shard])[0]

    def _call_all(self, method: str, *arguments: Any) -> list[Any]:
        return self._call_each(method, [arguments] * len(self._shards))

    def _call_each(self, method: str, arguments: list[Any], shards: list[int] | None = None) -> list[Any]:
        """Call some shards at once, each until it answers."""
        shards = list(range(len(self._shards))) if shards is None else shards
        results: list[Any] = [None] * len(shards)
        todo, since = list(range(len(shards))), None
        while True:
            refs = {k: getattr(self._shards[shards[k]], method).remote(*arguments[k]) for k in todo}
            failed = []
            for k, ref in refs.items():
                try:
                    results[k] = self._ray.get(ref)
                except self._ray.exceptions.RayActorError as error:
                    failed.append(k)
                    gone = error
            if not failed:
                return results
            since = time.monotonic() if since is None else since
            if time.monotonic() - since > self._patience:
                raise ClusterError(f"shard {shards[failed[0]]} did not come back in {self._patience:g} s: {gone}") from None
            time.sleep(0.1)
            todo = failed


class _Pause:
    """Waits a little, and longer the longer it took so far."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def wait(self) -> None:
        time.sleep(min(max(_PART * (time.monotonic() - self._began), _SHORTEST), _LONGEST))
