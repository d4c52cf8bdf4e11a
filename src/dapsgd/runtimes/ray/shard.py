"""The shard: an actor that owns a slice of the parameter, and does nothing but add, gate, count and write checkpoints.

It handles one call at a time, so there is no lock, and a reply is packed before the next call can change what it holds. No
call waits: whoever cannot be served yet is told so, and asks again.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...steps import StepRule
from ...updates import Pace
from .checkpoints import ShardFiles, State
from .order import ASLEEP, GRANTED, MISSING, REFUSED, UNKNOWN, Answer, Order, Welcome
from .shared import Neighbours, Place, deliver_once
from .slices import Push, Slice

__all__ = ["Reply", "Shard", "ShardSetting"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class ShardSetting:
    """What a shard is told when it is made, and again when it is restarted."""

    index: int
    shape: tuple[int, ...]
    dtype: str
    workers: int
    max_delay: int
    rule: StepRule
    parts: tuple[float, ...]  # of the rows, for each worker
    balanced: bool  # shall updates be in proportion to these?
    aggregated: bool  # are contributions kept?
    average: bool
    regularizer: Any  # bound, where the master runs the prox
    penalised: int  # rows of the slice that it sees
    folder: str
    run: str  # its name in the files there
    checkpoint_every: float
    lease_seconds: float
    log_rows: bool  # keep the schedule?


class Reply(NamedTuple):
    """What a shard answers to an update, or to a wish to read."""

    answer: Answer | None  # of the head
    version: int
    durable: int  # updates below this are in a checkpoint
    x: Array | None = None
    is_here: bool = False  # is the slice in x, or on the worker's desk? If not: not yet, ask again


class Shard:
    """One slice of the parameter; shard 0, the head, also has the :class:`Order`."""

    def __init__(self, setting: ShardSetting) -> None:
        self._setting = setting
        self._files = ShardFiles(setting.folder, setting.index, setting.run)
        self._boot = os.urandom(8).hex()
        x = np.zeros(setting.shape, setting.dtype)
        run_prox = None if setting.regularizer is None else _prox_runner(setting, x)
        contributions = np.zeros((setting.workers, *x.shape), x.dtype) if setting.aggregated else None
        self._slice = Slice(x, contributions, x.copy() if setting.average else None, run_prox, self._save)
        balance = setting.parts if setting.balanced else None
        self._order = Order(setting.workers, setting.max_delay, setting.rule, setting.lease_seconds, balance)
        self._blank = self._order.state(0)
        self._neighbours = Neighbours()
        self._epoch = -1  # not known until the driver tells
        self._staged: dict[int, tuple[int, tuple[int, int], Array]] = {}  # of each worker: epoch, message and content
        self._log: list[tuple[int, int, Array]] = []
        self._durable = 0
        self._bytes = 0
        self._writer: threading.Thread | None = None
        self._written = time.monotonic()  # when the last checkpoint was begun,
        self._cut_at = 0  # and at which version, as the head knows;
        self._everywhere = 0  # the last one that all shards are known to have
        self._error = ""
        self._checkpoints = 0
        with contextlib.suppress(Exception):  # a constructor that fails is never called again: start from x0 rather
            saved = self._files.load()
            if saved is not None:
                self._restore(saved)

    # What workers call.

    def answer(self, call: list[Any]) -> Any:
        """Make a call that is given by its name and its arguments: Ray takes less long for one list than for each of them."""
        return getattr(self, call[0])(*call[1:])

    def attach(self, worker: int, place: Place, start: int, stop: int) -> bool:
        """Use the desk of a worker on this machine; its key then stands for an update, and for where to put the slice."""
        return self._neighbours.attach(worker, place, start, stop)

    def exchange(
        self, worker: int, incarnation: int, number: int, delta: Array | int, rows: Array | None, hurry: bool, durable: int
    ) -> Reply:
        """Give a ticket to an update, as the head, apply it and read, if its turn has come.

        ``hurry`` if the worker cannot keep many more updates without a checkpoint; all shards have that at ``durable``.
        """
        found = self._neighbours.message(delta) if isinstance(delta, int) else delta
        if found is None:
            return self._reply(Answer(UNKNOWN))
        answer = self._ask(worker, incarnation, number, rows, hurry, durable)
        if answer.kind != GRANTED:
            return self._reply(answer)
        assert answer.pace is not None
        self._push(Push(answer.ticket, worker, answer.pace, found, answer.cut))
        return self._reply(answer) if answer.lease < 0 else self._slice_to(delta, answer)

    def stage(self, worker: int, epoch: int, incarnation: int, number: int, delta: Array | int) -> Reply:
        """Keep the content of a message, that has no ticket yet, in the place of the worker's last one."""
        stale = self._stale(epoch)
        if stale is not None:
            return stale
        found = self._neighbours.message(delta) if isinstance(delta, int) else delta
        if found is None:
            return self._reply(Answer(UNKNOWN))
        self._staged[worker] = epoch, (incarnation, number), found
        return self._reply()

    def must_wait(self, worker: int, incarnation: int) -> bool:
        """Tell, as the head, whether a worker that waits has to go on waiting."""
        return self._order.must_wait(worker, incarnation, time.monotonic())

    def push(self, push: Push, reads: bool, key: int = -1) -> Reply:
        """Take an update that has a ticket; answer with the slice once that is applied, if asked for."""
        stale = self._stale(push.epoch)
        if stale is not None:
            return stale
        if push.delta is None and not self._slice.has(push.ticket):
            epoch, message, staged = self._staged.get(push.worker, (-1, (0, 0), None))
            if staged is None or (epoch, message) != (push.epoch, push.message):
                return self._reply(Answer(MISSING))
            # What has to wait must not be what the worker writes its next message over.
            push = push._replace(delta=staged if push.ticket == self._slice.version else staged.copy())
        if self._setting.index == 0 and not self._order.is_open:
            self._order.recount(push._replace(delta=None))
        self._push(push)
        return self.read(push.ticket + 1, push.epoch, key) if reads else self._reply()

    def read(self, at_least: int, epoch: int, key: int = -1) -> Reply:
        """Answer with the slice, if it has arrived at a version of an epoch."""
        stale = self._stale(epoch)
        if stale is not None:
            return stale
        return self._slice_to(key) if self._slice.version >= at_least else self._reply()

    def join(self, worker: int) -> Welcome | None:
        """Welcome a worker, as the head; None if that must wait."""
        return self._order.join(worker, time.monotonic())

    def lease(self, worker: int, incarnation: int, key: int = -1) -> Reply:
        """Give a lease, as the head, and the slice at the version that it is on, if that is here."""
        answer = self._order.lease(worker, incarnation, time.monotonic())
        if answer.kind != GRANTED:
            return self._reply(answer)
        return self.read(answer.lease, self._epoch, key)._replace(answer=answer)

    def renew(self, worker: int, incarnation: int) -> None:
        """Take note of a sign of life."""
        self._order.renew(worker, incarnation, time.monotonic())

    def fail(self, worker: int, incarnation: int) -> None:
        """Take note that a worker met a number that is not finite."""
        self._order.fail(worker, incarnation)

    def contribution(self, worker: int, at_least: int, epoch: int, key: int = -1) -> Reply:
        """Answer with what a worker has in this slice, once that has arrived at a version of an epoch."""
        stale = self._stale(epoch)
        if stale is not None:
            return stale
        assert self._slice.contributions is not None
        return self._array_to(key, self._slice.contributions[worker]) if self._slice.version >= at_least else self._reply()

    # What the driver calls.

    def pid(self) -> int:
        """Return the number of this process."""
        return os.getpid()

    def state(self) -> dict[str, Any]:
        """Return how things stand."""
        order, own = self._order, self._slice
        order.expire(time.monotonic())
        return {
            "boot": self._boot,
            "pid": os.getpid(),
            "version": own.version,
            "top": max(own.top, order.version),
            "tickets": order.version,
            "until": order.until,
            "is_open": order.is_open,
            "is_settled": order.is_settled,
            "bad": order.bad,
            "pushed": order.answered,
            "refused": order.refused,
            "applied": own.applied,
            "repeated": own.repeated,
            "delays": order.delays,
            "updates": [member.updates for member in order.members],
            "bytes": self._bytes,
            "checkpoints": self._checkpoints,
            "error": self._error,
        }

    def wake(self, epoch: int, x0: Array | None = None) -> None:
        """Take what belongs to an epoch, and nothing else; start from a point other than 0, unless there was a checkpoint.

        (A large argument of a constructor is lost at a restart.)
        """
        own = self._slice
        self._epoch = epoch
        if own.version > 0 or self._durable > 0 or x0 is None:
            return
        own.x[...] = x0
        if own.mean is not None:
            own.mean[...] = x0
        if own.contributions is not None:
            own.contributions[...] = np.array(self._setting.parts, x0.dtype).reshape(-1, *[1] * x0.ndim) * x0

    def advance(self, until: int, drop: bool, rule: StepRule) -> None:
        """Let the run go on, as the head."""
        self._order.rule = rule
        self._order.advance(until, drop)

    def reopen(self, version: int, opened: Sequence[tuple[int, int]]) -> bool:
        """Go on, as the head, from a version that is above all tickets that anybody knows of; return False if it cannot."""
        return opened[-1][0] == self._epoch and self._order.reopen(version, opened)

    def shut(self) -> None:
        """Give no more tickets, as the head, until told to go on."""
        self._order.shut()

    def grants(self) -> list[tuple[Push, bool]]:
        """Return, as the head, what may be under way to other shards, and whether its worker is alive."""
        return self._order.grants(time.monotonic())

    def version(self) -> int:
        """Return the ticket that is applied next."""
        return self._slice.version

    def missing(self, until: int) -> list[int]:
        """Return the tickets below ``until`` whose updates are not here."""
        return self._slice.missing(until)

    def saved(self) -> list[int]:
        """Return the versions to which this shard can go back."""
        self.rest()
        return self._files.whole()

    def go_back(self, version: int) -> None:
        """Be as at a version that is saved, 0 for the start; asleep until the epoch is told."""
        self.rest()
        self._epoch = -1
        self._staged.clear()
        self._files.remove_after(version)
        if self._log:
            del self._log[max(0, len(self._log) - (self._order.version - version)) :]
        self._restore(self._files.read(version) if version else (0, {}, {"applied": 0, "order": self._blank}))

    def collect(self, place: Place | None = None, start: int = 0, stop: int = 0) -> tuple[str, Array | None, Array | None]:
        """Return who this is, the slice, and that of the mean; None if they are in rows ``start:stop`` of the desk there."""
        own = self._slice
        if place is not None and deliver_once(place, start, stop, own.x, own.mean):
            return self._boot, None, None
        return self._boot, own.x, own.mean

    def schedule(self) -> list[tuple[int, int, Array]]:
        """Return what was done in which order, as the head."""
        return self._log

    def put_back(self, version: int, x: Array) -> bool:
        """Replace the slice, also on disk: nobody is at work, and what went wrong is forgotten.

        Return False if this shard is not at the version that it shall replace.
        """
        if self._epoch < 0 or self._slice.version != version:
            return False
        self._slice.x[...] = x
        if self._setting.folder:
            self._save()
            self.rest()
        return True

    def finish(self) -> None:
        """Give no more tickets, and tell everybody so."""
        self._order.is_over = True

    def close(self) -> None:
        """Take it that nobody asks any more."""
        self._order.close()

    def rest(self) -> None:
        """Wait until the checkpoint that is being written, if any, is on disk."""
        if self._writer is not None:
            self._writer.join()

    # Inside.

    def _reply(self, answer: Answer | None = None) -> Reply:
        return Reply(answer, self._slice.version, self._durable)

    def _stale(self, epoch: int) -> Reply | None:
        """Return what to say to something that does not belong to the epoch; None if it does."""
        if epoch == self._epoch:
            return None
        return self._reply(Answer(ASLEEP if self._epoch < 0 else REFUSED))

    def _slice_to(self, key: Array | int, answer: Answer | None = None) -> Reply:
        """Answer with the slice."""
        self._bytes += self._slice.x.nbytes
        return self._array_to(key, self._slice.x, answer)

    def _array_to(self, key: Array | int, array: Array, answer: Answer | None = None) -> Reply:
        """Answer with an array, by way of the desk with this key if that is known."""
        there = isinstance(key, int) and self._neighbours.deliver(key, array)
        return Reply(answer, self._slice.version, self._durable, None if there else array, True)

    def _ask(self, worker: int, incarnation: int, number: int, rows: Array | None, hurry: bool, durable: int) -> Answer:
        """Give a ticket, as the head."""
        order = self._order
        if not order.wants_cut and self._is_due(hurry):
            order.wants_cut = True
        before = order.version
        answer = order.ask(worker, incarnation, number, time.monotonic())
        if order.version > before:
            self._everywhere = max(self._everywhere, durable)
            if self._setting.log_rows and rows is not None:
                self._log.append((worker, answer.read, rows))
            if answer.cut:
                self._written, self._cut_at = time.monotonic(), order.version
        return answer

    def _push(self, push: Push) -> None:
        self._bytes += 0 if push.delta is None else push.delta.nbytes
        self._slice.push(push)

    def _is_due(self, hurry: bool) -> bool:
        """Tell whether it is time for a checkpoint. Each shard keeps two, so that with one at a time all have one in common."""
        if not self._setting.folder or self._cut_at > self._everywhere:
            return False
        wait = min(1.0, self._setting.checkpoint_every) if hurry else self._setting.checkpoint_every
        return time.monotonic() - self._written >= wait

    def _save(self) -> None:
        """Copy the state, and write it from a thread."""
        self.rest()  # should the one before be late: never two at once
        own = self._slice
        self._order.catch_up(own.version)
        self._cut_at = max(self._cut_at, own.version)
        arrays = {"x": own.x.copy()}
        if own.contributions is not None:
            arrays["contributions"] = own.contributions.copy()
        if own.mean is not None:
            arrays["mean"] = own.mean.copy()
        numbers = {"applied": own.applied, "order": self._order.state(own.version)}
        self._writer = threading.Thread(target=self._write, args=((own.version, arrays, numbers),), daemon=True)
        self._writer.start()

    def _write(self, state: State) -> None:
        try:
            self._files.save(state)
            self._durable = state[0]
            self._checkpoints += 1
        except Exception as error:
            self._error = f"{type(error).__name__}: {error}"

    def _restore(self, saved: State) -> None:
        version, arrays, numbers = saved
        own = self._slice
        for name, array in (("x", own.x), ("contributions", own.contributions), ("mean", own.mean)):
            if array is not None:
                array[...] = arrays[name] if version else 0.0
        own.go_back(version, int(numbers["applied"]))
        self._durable = self._cut_at = version
        self._everywhere = 0
        self._order.restore(version, numbers["order"])


def _prox_runner(setting: ShardSetting, x: Array) -> Callable[[Array, Array, Pace], None]:
    """Return the master's part of a coupled update, compiled."""
    from ..._handles import EstimatorHandle, RegularizerHandle
    from ..._jit import compiled
    from ..._terms import prox_handle
    from ...updates import Coupled, Parts, apply, make_buffers

    handle = prox_handle(setting.regularizer, x[: setting.penalised])
    parts = Parts(EstimatorHandle(0, 0), RegularizerHandle(handle.code, handle.data), Coupled(setting.penalised))
    buffers, own, message, pace = make_buffers(1, x), x.copy(), np.zeros_like(x), Pace(1.0, 1.0, 1.0)
    run = compiled(apply, parts, x, message, own, pace, 0, len(x), buffers)

    def run_prox(x: Array, gradient: Array, pace: Pace, alive: Any = handle) -> None:
        message[...] = gradient  # what arrives may be read-only, which is another type to compiled code
        run(parts, x, message, own, pace, 0, len(x), buffers)

    return run_prox
