"""The order of updates: who may apply next, and who no longer may. Plain Python; one shard, the head, owns one of these.

An update is applied once it has a ticket, the number of its master iteration. Every shard applies in the order of tickets, so
that all of them go through the same versions, and a delay is the same number everywhere. Whether a ticket may be given is
decided here alone:

- **At most once.** A message is known by worker, incarnation and number. Asked about again, it gets the ticket it had.
- **Fencing.** Whoever joins gets a new incarnation; what an older one still sends is refused. When the run goes back to a
  checkpoint, or the head itself was restarted, an epoch begins, and shards refuse what is left of those before.
- **The bound on the delay.** A worker holds a lease on the version that it read; see :mod:`dapsgd.runtimes._leases`. At most
  ``max_delay + 1`` leases are given, and one that is not renewed for a while expires, so that nobody waits for the dead.
- **Balance.** A mini-batch of a worker's own rows is an unbiased estimate only if workers update in proportion to their rows.
  Whoever is ahead of that gets its next lease later. (Not asked of estimates that are exact at the optimum.)

Waiting for a lease holds nobody up, and the oldest lease may always be applied; so somebody can always go on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...steps import StepRule, allowed_step, step_at
from ...updates import Pace
from .._leases import in_time
from .slices import Push

__all__ = ["ASLEEP", "GRANTED", "MISSING", "OVER", "REFUSED", "UNKNOWN", "WAIT", "Answer", "Order", "Welcome"]

GRANTED, WAIT, REFUSED, OVER = "granted", "wait", "refused", "over"
UNKNOWN = "unknown"  # said by a shard that does not know the worker's desk,
ASLEEP = "asleep"  # that was restarted, and not yet told which epoch it is,
MISSING = "missing"  # or that does not have what was staged

_SLACK = 32  # updates that a worker may be ahead of its part


class Welcome(NamedTuple):
    """What the head says to a worker that joins."""

    incarnation: int
    epoch: int
    opened: Sequence[tuple[int, int]]  # all epochs, and the version at which each began: what was kept above it is void
    orphan: Push | None  # the last message of this worker that got a ticket, without its content


class Answer(NamedTuple):
    """What the head says to a message."""

    kind: str
    ticket: int = -1
    read: int = -1  # the version that the update was made from
    pace: Pace | None = None  # the step-sizes that the update has to do with
    lease: int = -1  # the version that the worker may go on with; -1: ask for a lease later
    cut: bool = False  # is a checkpoint to be made right after this update?


@dataclass
class Member:
    """A worker, as the head knows it."""

    incarnation: int = 0
    lease: int = -1  # the version it works on; -1 for none
    heard: float = 0.0  # when it last gave a sign of life
    stands_by: bool = False  # does it wait for a ticket?
    updates: int = 0  # of all incarnations
    asks: tuple[int, int] | None = None  # the incarnation and the number of a message that has no answer yet
    last: tuple[int, int] = (0, 0)  # the incarnation and the number of its last message with a ticket,
    answer: Answer | None = None  # and what that was told


class Order:
    """Gives out tickets and leases.

    Parameters
    ----------
    workers : int
    max_delay : int
    rule : StepRule
    lease_seconds : float
        A lease that was not renewed for so long expires.
    parts : sequence of float, optional
        The part of the rows that each worker has, if updates are to be in proportion to it.
    """

    def __init__(
        self, workers: int, max_delay: int, rule: StepRule, lease_seconds: float, parts: Sequence[float] | None = None
    ) -> None:
        self.rule = rule
        self.max_delay = max_delay
        self.version = 0  # the next ticket
        self.until = 0  # tickets below this may be given
        self.is_open = False  # a head that was restarted waits until it is told which tickets are known to others
        self.is_over = False
        self.epoch = 0
        self.opened: Sequence[tuple[int, int]] = ()  # all epochs, and the version at which each began
        self.wants_cut = False
        self.delays = np.zeros(max_delay + 1, np.int64)
        self.pushed = 0  # different messages; each gets a ticket or is refused
        self.refused = 0
        self.bad = -1  # where a number was not finite
        self.members = [Member() for _ in range(workers)]
        self._room = min(workers, max_delay + 1)
        self._lease_seconds = lease_seconds
        self._parts = parts
        self._spent = np.zeros(max_delay + 2)  # ring: the sum of all steps before iteration t
        self._replayed: dict[int, Push] = {}  # what a restarted head was told of updates after its checkpoint

    # What workers ask.

    def join(self, worker: int, now: float) -> Welcome | None:
        """Make a worker's older incarnations invalid, and give it a new one; None if it has to ask again."""
        member = self.members[worker]
        if not self.is_open or self.is_over:
            return None
        self._refuse(member)  # what an older incarnation still waits for
        member.incarnation += 1
        member.lease, member.stands_by, member.heard = -1, False, now
        return Welcome(member.incarnation, self.epoch, self.opened, self._granted(worker))

    def lease(self, worker: int, incarnation: int, now: float) -> Answer:
        """Give a lease on the current version, if there is one to be had."""
        member = self.members[worker]
        if self.is_over:
            return Answer(OVER)
        if not self.is_open:
            return Answer(WAIT)
        if incarnation != member.incarnation:
            return Answer(REFUSED)
        member.heard = now
        if member.lease < 0:
            self._try_lease(worker)
        return Answer(WAIT) if member.lease < 0 else Answer(GRANTED, lease=member.lease)

    def ask(self, worker: int, incarnation: int, number: int, now: float) -> Answer:
        """Give a ticket for a message, if its turn has come."""
        member = self.members[worker]
        if member.last == (incarnation, number) and member.answer is not None:
            return member.answer
        if not self.is_open and not self.is_over:
            return Answer(WAIT)
        if member.asks != (incarnation, number):
            self._refuse(member)
            member.asks = (incarnation, number)
            self.pushed += 1
        if self.is_over or incarnation != member.incarnation or member.lease < 0:
            self._refuse(member)
            return Answer(OVER if self.is_over else REFUSED)
        if self.must_wait(worker, incarnation, now):
            member.stands_by = True
            return Answer(WAIT)
        member.asks, member.last, member.answer = None, (incarnation, number), self._give(worker)
        return member.answer

    def must_wait(self, worker: int, incarnation: int, now: float) -> bool:
        """Tell whether a message that is asked about now would have to wait."""
        member = self.members[worker]
        if self.is_over or not self.is_open:
            return not self.is_over
        if incarnation != member.incarnation or member.lease < 0:
            return False
        member.heard = now
        self.expire(now)
        return self.version >= self.until or not self._in_time(member.lease)

    def renew(self, worker: int, incarnation: int, now: float) -> None:
        """Take note of a sign of life."""
        if incarnation == self.members[worker].incarnation:
            self.members[worker].heard = now

    def fail(self, worker: int, incarnation: int) -> None:
        """Take note that a worker met a number that is not finite; nobody goes on until the run does."""
        member = self.members[worker]
        if incarnation == member.incarnation and member.lease >= 0:
            member.lease, member.stands_by = -1, False
            self.bad, self.until = self.version, min(self.until, self.version)

    # What the driver asks.

    def advance(self, until: int, drop: bool) -> None:
        """Let tickets be given up to ``until``; ``drop`` what workers are at, which must start anew."""
        self.until, self.bad = until, -1
        if drop:
            for member in self.members:
                member.lease, member.stands_by = -1, False

    def grants(self, now: float) -> list[tuple[Push, bool]]:
        """Return each worker's last message with a ticket, without its content; and whether the worker is still at it."""
        found = []
        for worker, member in enumerate(self.members):
            push = self._granted(worker)
            if push is not None:
                alive = push.message[0] == member.incarnation and now - member.heard <= self._lease_seconds
                found.append((push, alive))
        return found

    def shut(self) -> None:
        """Give nothing to anybody until :meth:`reopen` is called."""
        self.is_open = False

    def recount(self, push: Push) -> None:
        """Take note, while closed, of an update that got its ticket after the checkpoint."""
        self._replayed[push.ticket] = push

    def catch_up(self, version: int) -> None:
        """Count the updates that were taken note of, as far as they go."""
        while self.version < version and self.version in self._replayed:
            push = self._replayed.pop(self.version)
            self._count(push.ticket, push.worker, push.read, push.pace)
            self.pushed += 1

    def reopen(self, version: int, opened: Sequence[tuple[int, int]] = ((0, 0),)) -> bool:
        """Go on from a version above all tickets that anybody knows of; every worker has to join again.

        Return False, and stay closed, if what was given after the checkpoint is not known.
        """
        self.catch_up(version)
        if self.version < version:
            return False
        self._replayed.clear()
        self.opened, self.epoch = opened, opened[-1][0]
        self.until = min(self.until, self.version)
        self.is_open = True
        for member in self.members:
            # One that was given before a restart may not be in the checkpoint: an epoch has numbers of its own.
            member.incarnation = max(member.incarnation + 1, self.epoch << 20)
            member.lease, member.stands_by = -1, False
        return True

    def expire(self, now: float) -> None:
        """Take back the leases of those that were not heard of for long."""
        for member in self.members:
            if member.lease >= 0 and now - member.heard > self._lease_seconds:
                member.lease, member.stands_by = -1, False

    def close(self) -> None:
        """Refuse what is still asked for by workers that did not live to hear that the run is over."""
        self.is_over = True
        for member in self.members:
            self._refuse(member)

    @property
    def answered(self) -> int:
        """Messages that have a ticket or are refused."""
        return self.pushed - sum(member.asks is not None for member in self.members)

    @property
    def is_settled(self) -> bool:
        """Whether nobody is at work: all wait for a lease, or for a ticket."""
        return all(member.lease < 0 or member.stands_by for member in self.members)

    # Inside.

    def _refuse(self, member: Member) -> None:
        if member.asks is not None:
            self.refused += 1
            member.asks = None

    def _in_time(self, lease: int) -> bool:
        leases = np.array(sorted(member.lease for member in self.members if member.lease >= 0), np.int64)
        return bool(in_time(leases, len(leases), lease, self.version, self.max_delay))

    def _give(self, worker: int) -> Answer:
        member, t = self.members[worker], self.version
        read = member.lease
        pace = self._pace(t, read)
        member.lease, member.stands_by = -1, False
        self._count(t, worker, read, pace)
        self._try_lease(worker)
        cut, self.wants_cut = self.wants_cut, False
        return Answer(GRANTED, t, read, pace, member.lease, cut)

    def _count(self, t: int, worker: int, read: int, pace: Pace) -> None:
        """Take note that a ticket is given."""
        self.delays[t - read] += 1
        self.members[worker].updates += 1
        ring = len(self._spent)
        self._spent[(t + 1) % ring] = self._spent[t % ring] + min(pace.read, pace.allowed)
        self.version = t + 1

    def _granted(self, worker: int) -> Push | None:
        """Return the last message of a worker that got a ticket, without its content."""
        member = self.members[worker]
        answer = member.answer
        if answer is None:
            return None
        assert answer.pace is not None
        return Push(answer.ticket, worker, answer.pace, None, answer.cut, answer.read, self.epoch, member.last)

    def _try_lease(self, worker: int) -> None:
        taken = sum(member.lease >= 0 for member in self.members)
        if self.version >= self.until or taken >= self._room:
            return
        member = self.members[worker]
        total = sum(other.updates for other in self.members)
        if self._parts is None or member.updates <= self._parts[worker] * total + _SLACK:
            member.lease = self.version

    def _pace(self, t: int, version: int) -> Pace:
        rule, ring = self.rule, len(self._spent)
        read, allowed = step_at(rule, version), math.inf
        if rule.budget < math.inf:
            allowed = allowed_step(rule, self._spent[t % ring] - self._spent[version % ring])
        return Pace(float(read), float(step_at(rule, t)), float(allowed))

    # Checkpoints.

    def state(self, version: int) -> dict[str, Any]:
        """Return what a restarted head has to know, as plain numbers; tickets from ``version`` on are not in its checkpoint."""
        return {
            "pushed": self.answered - (self.version - version),
            "refused": self.refused,
            "delays": self.delays.tolist(),
            "spent": self._spent.tolist(),
            "incarnations": [member.incarnation for member in self.members],
            "updates": [member.updates for member in self.members],
        }

    def restore(self, version: int, state: dict[str, Any]) -> None:
        """Go back to a checkpoint; closed until :meth:`reopen` is called. What was refused since then stays refused."""
        self.is_open = False
        for member in self.members:
            self._refuse(member)
        refused = max(self.refused, int(state["refused"]))
        self.version, self.pushed, self.refused = version, int(state["pushed"]) + refused - int(state["refused"]), refused
        self.delays[:] = state["delays"]
        self._spent[:] = state["spent"]
        self._replayed.clear()
        for member, incarnation, updates in zip(self.members, state["incarnations"], state["updates"], strict=True):
            # Incarnations given after the checkpoint must stay invalid: leave a gap that no run fills in one interval.
            member.incarnation = max(member.incarnation, int(incarnation) + (1 << 20))
            member.updates, member.lease, member.stands_by = int(updates), -1, False
            member.last, member.answer = (0, 0), None
