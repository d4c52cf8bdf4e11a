"""A model of the asynchronous engine, explored over all interleavings.

The model has the same atomic steps as ``runtimes/_engine.py``: what a worker does while it holds the head lock is one step,
and so are each load and each store of a stripe, each lock and each gate, the coming of a thread to a slice, however late, and
each step of the change from one worker to the next when a turn is over. Decisions under the head lock are not restated: the
engine's own functions make them (``may_apply``, ``open_gates``, ``take_slot``...), uncompiled, on a ledger made from the state.
What is restated is where a worker waits and in which order it takes locks.

A state is a tuple, so that it can be remembered. :func:`explore` visits every state that can be reached, raises
:class:`Violation` if one breaks an invariant, and proves by depth-first search that no run goes round in circles.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dapsgd.runtimes import _engine as engine

# Where a worker is.
# IN_LINE: no thread is this worker. ENTER: a thread is about to be, and holds the entrance. OVER: its turn is over, which
# Python has yet to hear. AGAIN: where the engine's loop begins.
AGAIN, READ, READ_NEXT, WORK, APPLY_GATE, APPLY_WOKEN, STORE, NEXT, OVER, ENTER, IN_LINE = range(11)
FREE = -1


class Violation(AssertionError):
    """An invariant does not hold; the message names it."""


class Rules(NamedTuple):
    """How many, and the functions that decide; a broken variant replaces some of them."""

    workers: int
    max_delay: int
    stops: tuple[int, ...]  # iterations at which slices end, the last being the end of the run
    threads: int
    turn: int = 2
    stripes: int = 2
    pauses: int = 0  # how often Python may ask for a pause, at any moment
    failures: int = 0  # how many workers may raise, at any moment
    records_full: int = 2
    locks: bool = True
    coupling: bool = True
    drops: int = 1  # how often a lease is given back
    keeps_lease: bool = False  # when it is in the line again
    lease_first: bool = True  # does a worker have a lease before it leaves the line?
    oldest_first: bool = True  # is the next worker the one that has not worked for longest?
    may_apply: Any = staticmethod(engine.may_apply)
    open_gates: Any = staticmethod(engine.open_gates)
    goes_on: Any = staticmethod(engine.goes_on)
    is_turn_over: Any = staticmethod(engine.is_turn_over)


class Worker(NamedTuple):
    place: int
    memory: tuple[int, ...]  # Own.state
    stripe: int  # at which it is
    loaded: int  # what it has loaded; of one that enters, who its thread was, or itself
    own: tuple[int, ...]  # the version of each stripe of its copy


class State(NamedTuple):
    counters: tuple[int, ...]
    waiting: tuple[int, ...]
    leases: tuple[int, ...]
    holders: tuple[int, ...]  # of each stripe's lock
    gates: tuple[bool, ...]  # open
    x: tuple[int, ...]  # for each stripe, how many updates it has seen
    workers: tuple[Worker, ...]
    line: tuple[int, ...]  # of workers for whom there is no thread
    entrance: int  # the worker for whom it is held
    late: int  # threads that have not come to this slice yet
    pauses: int
    failures: int
    failed: bool


def start(rules: Rules) -> State:
    counters = [0] * engine.COUNTERS
    counters[engine.LAST] = rules.stops[0]
    counters[engine.RECORD_NEXT] = counters[engine.RECORD_EVERY] = counters[engine.RECORD_LONGEST] = 1
    counters[engine.RECORDS_FULL], counters[engine.BAD_ITERATION] = rules.records_full, -1
    counters[engine.IN_LINE] = rules.workers
    worker = Worker(IN_LINE, (0,) * engine.STATES, 0, 0, (0,) * rules.stripes)
    zeros = (0,) * rules.workers
    return State(
        counters=tuple(counters),
        waiting=zeros,
        leases=zeros,
        holders=(FREE,) * rules.stripes,
        gates=(False,) * rules.workers,
        x=(0,) * rules.stripes,
        workers=(worker,) * rules.workers,
        line=tuple(range(rules.workers)),
        entrance=FREE,
        late=rules.threads,
        pauses=rules.pauses,
        failures=rules.failures,
        failed=False,
    )


class Move:
    """One step from a state: the state unpacked, changed, and packed again."""

    def __init__(self, rules: Rules, state: State, who: int) -> None:
        self.rules, self.state, self.who = rules, state, who
        self.counters = np.array(state.counters)
        self.waiting, self.leases = np.array(state.waiting), np.array(state.leases)
        self.holders, self.gates, self.x = list(state.holders), list(state.gates), list(state.x)
        self.workers, self.line, self.late = list(state.workers), list(state.line), state.late
        self.entrance = state.entrance
        self.pauses, self.failures, self.failed = state.pauses, state.failures, state.failed
        gates = np.arange(rules.workers)  # addresses
        self.ledger = engine.Ledger(0, gates, self.waiting, self.counters, self.leases, rules.max_delay, rules.turn)
        if who >= 0:
            worker = state.workers[who]
            self.place, self.stripe, self.loaded = worker.place, worker.stripe, worker.loaded
            self.memory, self.own = np.array(worker.memory), list(worker.own)

    def pack(self) -> State:
        self.counters[engine.IN_LINE] = len(self.line)
        if self.who >= 0:
            memory = tuple(self.memory.tolist())
            own = tuple(self.own)
            self.workers[self.who] = Worker(self.place, memory, self.stripe, self.loaded, own)
        return State(
            tuple(self.counters.tolist()),
            tuple(self.waiting.tolist()),
            tuple(self.leases.tolist()),
            tuple(self.holders),
            tuple(self.gates),
            tuple(self.x),
            tuple(self.workers),
            tuple(self.line),
            self.entrance,
            self.late,
            self.pauses,
            self.failures,
            self.failed,
        )

    def is_free(self, stripe: int) -> bool:
        return not self.rules.locks or self.holders[stripe] == FREE

    def acquire(self, stripe: int) -> None:
        self.holders[stripe] = self.who

    def release(self, stripe: int) -> None:
        if self.rules.locks and self.holders[stripe] != self.who:
            raise Violation("a lock is released by somebody who does not hold it")
        self.holders[stripe] = FREE

    def open_gates(self) -> None:
        def open_gate(gate: int) -> None:
            if self.gates[gate]:
                raise Violation("a gate is opened twice")
            self.gates[gate] = True

        before = engine.release, engine.may_apply
        engine.release, engine.may_apply = open_gate, self.rules.may_apply
        try:
            self.rules.open_gates(self.ledger)
        finally:
            engine.release, engine.may_apply = before

    def drop_lease(self) -> None:
        for _ in range(self.rules.drops):
            if self.memory[engine.VERSION] not in self.leases[: self.counters[engine.LEASES]]:
                raise Violation("a lease is given back that nobody holds")
            engine.drop_lease(self.ledger, self.memory)

    def leave_thread(self) -> None:
        """Stand in line; the thread has nothing more to do in this slice."""
        self.place = IN_LINE
        self.line.append(self.who)

    def take_next(self) -> None:
        """Take the entrance for the thread that this worker was, or for a thread that comes, and choose who it is to be."""
        if not self.line:  # what it saw of the line was old
            self.place = AGAIN
            return
        following = min(self.line, key=self.worked) if self.rules.oldest_first else self.line[0]
        if any(self.worked(other) < self.worked(following) for other in self.line):
            raise Violation("a worker is not the next that has waited longer")
        self.entrance = following
        before = self.who if self.who >= 0 else following
        self.workers[following] = self.workers[following]._replace(place=ENTER, loaded=before)

    def take_over(self) -> None:
        """Give back the lease of the worker that the thread was, and read."""
        before = self.loaded
        if before != self.who and not self.rules.keeps_lease:
            memory = np.array(self.workers[before].memory)
            if memory[engine.HAS_READ]:
                engine.drop_lease(self.ledger, memory)
                self.workers[before] = self.workers[before]._replace(memory=tuple(memory.tolist()))
        if engine.is_slice_over(self.ledger) or not self.rules.lease_first:
            self.open_gates()
            self.leave_line()
            self.release(0)
        else:
            self.take_lease()
            self.open_gates()

    def take_lease(self) -> None:
        """Note the version, and copy its first stripe."""
        engine.take_lease(self.ledger, self.memory)
        self.own[0] = self.x[0]
        self.stripe, self.place = 0, READ_NEXT
        self.finish_stripe()

    def leave_line(self) -> None:
        """Let the worker that the thread was take the place of this one, and let go of the entrance."""
        before = self.loaded
        self.line.remove(self.who)
        if before != self.who:
            self.line.append(before)
            self.workers[before] = self.workers[before]._replace(place=IN_LINE)
        self.entrance, self.loaded, self.place = FREE, 0, AGAIN

    def worked(self, who: int) -> int:
        """Return the run's iterations when a worker last applied an update."""
        memory = self.memory if who == self.who else self.workers[who].memory
        return int(memory[engine.WORKED])

    def begin(self) -> None:
        """Look whether the turn is over."""
        if self.rules.is_turn_over(self.ledger, self.memory):
            self.memory[engine.UPDATES] = 0
            self.place = OVER
            return
        if self.line and self.memory[engine.UPDATES] >= self.rules.turn:
            raise Violation("a turn is longer than allowed")
        self.place = WORK if self.memory[engine.HAS_READ] else READ

    # What a worker does under the head lock; each ends with a place to go on from.

    def read(self) -> None:
        if engine.is_slice_over(self.ledger):
            self.leave_thread()
            self.release(0)
        else:
            self.take_lease()

    def apply(self) -> None:
        counters, version = self.counters, int(self.memory[engine.VERSION])
        over = counters[engine.ITERATION] >= counters[engine.LAST]
        if not over and not self.rules.may_apply(self.ledger, version):
            self.waiting[self.who] = engine.WAITS + version
            self.place = APPLY_GATE
            self.release(0)
            return
        t = int(counters[engine.ITERATION])
        if over:
            self.drop_lease()
            self.open_gates()
            self.leave_thread()
            self.release(0)
            return
        if t - version > self.rules.max_delay:
            raise Violation("a delay is longer than allowed")
        self.drop_lease()
        counters[engine.ITERATION] = self.memory[engine.WORKED] = t + 1
        room = np.zeros(8, np.int64)
        engine.take_slot(self.ledger, engine.Log(room, room, room, room, room, room, room), t + 1)
        if self.rules.goes_on(self.ledger, self.memory):
            engine.take_lease(self.ledger, self.memory)
        self.open_gates()
        self.stripe, self.loaded, self.place = 0, self.x[0], STORE

    def finish_stripe(self) -> None:
        """Go on to the next stripe, or let go of the last."""
        last = self.stripe == self.rules.stripes - 1
        if last or not self.rules.coupling:
            self.release(self.stripe)
        if last:
            if len(set(self.own)) > 1:
                raise Violation("a copy is of different versions")
            if self.memory[engine.HAS_READ] and self.own[0] != self.memory[engine.VERSION]:
                raise Violation("a copy is not of the version that was noted")
            if self.entrance == self.who:
                self.leave_line()
            self.place = AGAIN

    def next_stripe(self) -> None:
        """Take the next lock, then let go of the last."""
        self.stripe += 1
        self.acquire(self.stripe)
        if self.rules.coupling:
            self.release(self.stripe - 1)


def moves(rules: Rules, state: State) -> list[State]:
    """Return the states that may follow."""
    following = []
    for who in range(rules.workers):
        following += _moves_of(rules, state, who)
    return following + _moves_of_python(rules, state)


def _moves_of(rules: Rules, state: State, who: int) -> list[State]:
    found = []
    move = Move(rules, state, who)
    place = move.place
    if place == AGAIN:
        move.begin()
    elif place == OVER:
        if state.entrance != FREE:
            return []
        move.take_next()
    elif place in (READ, WORK, APPLY_WOKEN, ENTER):
        if not move.is_free(0):
            return []
        if place == WORK and state.failures > 0:  # as engine.leave does
            failing = Move(rules, state, who)
            failing.acquire(0)
            failing.drop_lease()
            failing.counters[engine.PAUSE] = 1
            failing.open_gates()
            failing.release(0)
            failing.leave_thread()
            failing.failures, failing.failed = state.failures - 1, True
            found.append(failing.pack())
        move.acquire(0)
        if place == READ:
            move.read()
        elif place == ENTER:
            move.take_over()
        else:
            move.apply()
    elif place == APPLY_GATE:
        if not state.gates[who]:
            return []
        move.gates[who] = False
        move.place = APPLY_WOKEN
    elif place in (READ_NEXT, NEXT):
        if not move.is_free(move.stripe + 1):
            return []
        move.next_stripe()
        if place == READ_NEXT:
            move.own[move.stripe] = move.x[move.stripe]
            move.finish_stripe()
        else:
            move.loaded, move.place = move.x[move.stripe], STORE
    elif place == STORE:
        move.x[move.stripe] = move.own[move.stripe] = move.loaded + 1
        move.place = NEXT
        move.finish_stripe()
    else:  # IN_LINE
        return []
    return [*found, move.pack()]


def _moves_of_python(rules: Rules, state: State) -> list[State]:
    """Let a thread come, ask for a pause while workers run; start the next slice when nobody does."""
    found = []
    if state.late > 0 and state.entrance == FREE:
        coming = Move(rules, state, -1)
        coming.take_next()
        coming.late -= 1
        found.append(coming.pack())
    move = Move(rules, state, -1)
    counters = move.counters
    if state.late == 0 and all(worker.place == IN_LINE for worker in state.workers):
        if state.failed or counters[engine.ITERATION] >= rules.stops[-1]:
            return []
        stop = next(stop for stop in rules.stops if stop > counters[engine.ITERATION])
        counters[engine.LAST], counters[engine.PAUSE], counters[engine.RECORDS] = stop, 0, 0
        move.late = rules.threads
        found.append(move.pack())
    elif state.pauses > 0 and move.is_free(0):
        counters[engine.PAUSE] = 1
        move.open_gates()
        move.pauses -= 1
        found.append(move.pack())
    return found


def check(rules: Rules, state: State) -> None:
    """Look at what must hold in every state."""
    held = sum(bool(worker.memory[engine.HAS_READ]) for worker in state.workers)
    counters = state.counters
    if held != counters[engine.LEASES]:
        raise Violation("leases are not held by those who have read")
    if any(worker.place == IN_LINE and worker.memory[engine.HAS_READ] for worker in state.workers):
        raise Violation("a worker without a thread holds a lease")
    over = counters[engine.ITERATION] >= counters[engine.LAST] or counters[engine.PAUSE] != 0
    entering = {state.entrance} | ({state.workers[state.entrance].loaded} if state.entrance != FREE else set())
    for who, worker in enumerate(state.workers):
        if not over and who not in state.line and who not in entering and not worker.memory[engine.HAS_READ]:
            raise Violation("nobody waits for a worker that has left the line")
    since = [counters[engine.ITERATION] - state.workers[who].memory[engine.WORKED] for who in state.line]
    if rules.threads == 1 and max(since, default=0) > rules.workers * rules.turn:
        raise Violation("a worker does not get its turn")
    waits = [who for who, worker in enumerate(state.workers) if worker.place == IN_LINE or who == state.entrance]
    if sorted(state.line) != waits:
        raise Violation("the line does not have those who wait in it, once each")


def check_end(rules: Rules, state: State) -> None:
    """Look at what must hold where nobody can go on."""
    if not all(worker.place == IN_LINE for worker in state.workers):
        raise Violation("deadlock: a worker waits for ever")
    if not state.failed and state.counters[engine.ITERATION] != rules.stops[-1]:
        raise Violation("the run ends early")
    if any(seen != state.counters[engine.ITERATION] for seen in state.x):
        raise Violation("an update is lost or applied twice")
    if state.counters[engine.LEASES] or any(state.waiting) or any(state.gates):
        raise Violation("a lease or an open gate is left over")


def explore(rules: Rules) -> int:
    """Visit every state that can be reached; return how many there are."""
    first = start(rules)
    finished = {first: False}  # False while its successors are being visited
    path = [(first, iter(moves(rules, first)))]
    while path:
        state, following = path[-1]
        for successor in following:
            if successor not in finished:
                check(rules, successor)
                finished[successor] = False
                after = moves(rules, successor)
                if not after:
                    check_end(rules, successor)
                path.append((successor, iter(after)))
                break
            if not finished[successor]:
                raise Violation("a run may go round in circles")
        else:
            finished[state] = True
            path.pop()
    return len(finished)
