"""The asynchronous engine: what a worker does between two visits to Python, and what workers share.

One compiled function, :func:`run`, is the life of a worker: read the parameter, call ``work`` on the private copy, wait
until the bound on the delay allows the update, call ``apply`` on the shared parameter, over and over. ``serial`` runs it
once, ``threads`` in many threads at once.

**Copies.** To update the parameter is to add to it in place and to write the sum to the worker's copy as well: the version
it goes on working with. Updating and reading again is one pass over memory. The parameter itself moves from core to core as
its lines are written; copies stay where they are, and only their owner ever touches them. (Letting the parameter live in the
last updater's copy saves a store and costs twice the traffic between cores.)

**Who may touch what.** The parameter is cut into stripes of rows, each with a lock, which guards the stripe's
part of the parameter, of ``mean`` and of the record being taken. A worker goes through the stripes in
order and takes the next lock before it lets go of the last (lock coupling), so that no worker overtakes another: every
stripe sees the updates in the same order, and a reader sees the very same version on all stripes, exactly as under one
lock, while several workers are at work on different stripes. A prox that couples coordinates needs them all at once: there
is one stripe then. The first stripe's lock, the head, also guards the :class:`Ledger` and the :class:`Log`.

**The bound on the delay.** A worker that reads at version p takes a lease on p, and gives it back when it applies its
update at version t, with delay t - p. Leases are kept in the order they were taken, hence sorted. Whoever applies next,
the i-th oldest of the other leases can at best be applied i updates later; so an update may be applied now only if
afterwards ``t + i - lease[i] <= max_delay`` for every i. The holder of the oldest lease is always allowed, so somebody can
always go on. (Asking only that the oldest lease stay within the bound deadlocks: two leases may come due at once.)
A worker that has to wait does so at a gate of its own, which is opened by the update that makes its turn come.

**More workers than cores.** Whoever holds a lease but has no core keeps the others waiting. So there are no more threads than
cores (nor than max_delay + 1, so that all leases can be given back in time), and a thread is one worker after another: after a
turn of ``turn`` updates it comes back to be whoever has waited longest, if anybody waits. Nobody
sleeps for want of a core, so nobody has to be woken. (There may be a line where there are as many threads as workers: a
thread comes when the system lets it, and a short run is over by then.)
Whoever is not in the line has a lease, all the time: it is taken before a worker leaves the line, and given back once it is
in it again. So a thread that the system halts, wherever it is, is waited for, and no worker is left behind.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._jit import kernel
from .._loops import copy
from ..steps import StepRule, allowed_step, step_at
from ..updates import Buffers, Pace, Parts, apply, work
from ._leases import in_time, remove
from ._locks import acquire, release
from ._stamps import stamp

__all__ = ["DIVERGED", "DONE", "PAUSED", "REFILL", "TURN_OVER", "Ledger", "Log", "Own", "Shared"]
__all__ += ["leave", "pause", "run", "take_over"]

Array = np.ndarray[Any, Any]

# Why a worker came back to Python.
DONE, PAUSED, REFILL, DIVERGED, TURN_OVER = range(5)

# The counters, by their place in Ledger.counters. IN_LINE, the workers that no thread is, is Python's: what a worker sees of
# it may be old, so that it ends its turn a little early or late.
ITERATION, LAST, PAUSE, LEASES, RECORDS, RECORDS_FULL, BAD_ITERATION, IN_LINE = range(8)
# The next iteration to record, how much later the one after it is, and how much later one is at the most.
RECORD_NEXT, RECORD_EVERY, RECORD_LONGEST = range(8, 11)
# The iteration from which on iterates are averaged: -1 for all of them, the first included.
MEAN_FROM = 11
COUNTERS = 12

# What a worker remembers between two visits to the compiled code, by its place in Own.state.
# HOLDS: one more than the stripe it has locked, 0 for none. UPDATES: of its turn so far. WORKED: the run's iterations when it
# last applied an update.
DRAWN, HAS_READ, VERSION, HOLDS, UPDATES, WORKED = range(6)
STATES = 6

# In Ledger.waiting: nothing, or a worker waits until it may apply an update from a version: WAITS + that version.
NOTHING, WAITS = 0, 1


class Ledger(NamedTuple):
    """Who works on which version, and how far the run is. Guarded by the head lock."""

    head: int  # the address of the first stripe's lock
    gates: Array  # addresses of locks, one a worker, held while nobody has opened the gate
    waiting: Array  # for each worker, whether it waits at its gate, and with what
    counters: Array
    leases: Array  # versions being worked on, in the order they were read
    max_delay: int
    turn: int  # updates after which a worker lets others have its thread, if they wait for one


class Log(NamedTuple):
    """What is written down of every iteration. Guarded by the head lock."""

    spent: Array  # ring: the sum of all steps before iteration t, at t modulo its length
    delays: Array  # histogram
    worker: Array  # the schedule, if asked for: for each iteration which worker,
    read: Array  # which version it had read,
    rows: Array  # and which rows
    record_at: Array  # the iteration of each record,
    stamps: Array  # and its time, by the counter of time.perf_counter_ns; guarded by the last stripe's lock


class Shared(NamedTuple):
    """What all workers share. Stripe s of the arrays is rows bounds[s]:bounds[s + 1], guarded by stripes[s]."""

    x: Array  # the parameter
    mean: Array  # the mean of iterates, as counters[MEAN_FROM] says; empty if nobody asked
    records: Array  # copies of the parameter, or of the mean of all iterates, at recorded iterations
    bounds: Array
    stripes: Array  # addresses of locks
    ledger: Ledger
    log: Log


class Own(NamedTuple):
    """What one worker owns."""

    worker: int
    x: Array  # its copy of the parameter; a worker that is alone has the parameter itself
    message: Array
    buffers: Buffers
    draws: Array  # the rows of its next mini-batches, one a line
    state: Array


@kernel
def run(parts: Parts, rule: StepRule, shared: Shared, own: Own) -> int:
    """Work until there is a reason to go back to Python, and return it."""
    ledger, counters, state = shared.ledger, shared.ledger.counters, own.state
    while True:
        if is_turn_over(ledger, state):
            state[UPDATES] = 0
            return TURN_OVER
        if state[HAS_READ] == 0:
            reason = read(shared, own.x, state)
            if reason >= 0:
                return reason
        if state[DRAWN] == own.draws.shape[0]:
            return REFILL
        batch = own.draws[state[DRAWN]]
        eta = step_at(rule, state[VERSION])
        finite = work(parts, own.x, batch, eta, own.buffers, own.message)
        acquire(ledger.head)
        state[HOLDS] = 1
        while counters[ITERATION] < counters[LAST] and not may_apply(ledger, state[VERSION]):
            wait_at_gate(ledger, own.worker, state[VERSION])
        t = counters[ITERATION]
        if t >= counters[LAST] or not finite:
            drop_lease(ledger, state)
            if not finite and t < counters[LAST]:
                counters[PAUSE] = 1
                counters[BAD_ITERATION] = t
            open_gates(ledger)
            state[HOLDS] = 0
            release(ledger.head)
            return DONE if finite else DIVERGED
        pace = write_down(shared.log, rule, own.worker, t, state[VERSION], eta, batch)
        state[DRAWN] += 1
        drop_lease(ledger, state)
        counters[ITERATION] = state[WORKED] = t + 1
        slot = take_slot(ledger, shared.log, t + 1)
        if goes_on(ledger, state):
            take_lease(ledger, state)  # what this update leaves in the worker's copy is the version it goes on with
        open_gates(ledger)
        for s in range(shared.stripes.size):
            if s > 0:
                acquire(shared.stripes[s])
                state[HOLDS] = s + 1
                release(shared.stripes[s - 1])
            start, stop = shared.bounds[s], shared.bounds[s + 1]
            apply(parts, shared.x, own.message, own.x, pace, start, stop, own.buffers)
            if shared.mean.size > 0 and t >= counters[MEAN_FROM]:
                average(shared.mean[start:stop].ravel(), own.x[start:stop].ravel(), t + 1 - counters[MEAN_FROM])
            if slot >= 0:
                source = shared.mean if shared.mean.size > 0 and counters[MEAN_FROM] < 0 else own.x
                copy(source[start:stop], shared.records[slot, start:stop])
        if slot >= 0:
            stamp(shared.log.stamps[slot : slot + 1])  # before another may record, so that times are in order
        state[HOLDS] = 0
        release(shared.stripes[shared.stripes.size - 1])


@kernel
def read(shared: Shared, x: Array, state: Array) -> int:
    """Copy the parameter, in one version, with a lease on it; return -1, or the reason to go back to Python."""
    ledger = shared.ledger
    acquire(ledger.head)
    if is_slice_over(ledger):
        reason = DONE if ledger.counters[ITERATION] >= ledger.counters[LAST] else PAUSED
        release(ledger.head)
        return reason
    take_lease(ledger, state)
    copy_version(shared, x)
    return -1


@kernel
def take_over(shared: Shared, before: Array, x: Array, state: Array) -> None:
    """Read for the worker that a thread is to be, and give back the lease of the one it was, as one: somebody is waited for.

    ``before`` is the state of the one it was; of the same worker if it was none.
    """
    ledger = shared.ledger
    acquire(ledger.head)
    if before[HAS_READ] == 1:
        drop_lease(ledger, before)
    if is_slice_over(ledger):
        open_gates(ledger)
        release(ledger.head)
        return
    take_lease(ledger, state)
    open_gates(ledger)
    copy_version(shared, x)


@kernel
def copy_version(shared: Shared, x: Array) -> None:
    """Copy the parameter, one stripe after the other, the head being held; let go of it."""
    for s in range(shared.stripes.size):
        if s > 0:
            acquire(shared.stripes[s])
            release(shared.stripes[s - 1])
        start, stop = shared.bounds[s], shared.bounds[s + 1]
        if x is not shared.x:
            copy(shared.x[start:stop], x[start:stop])
    release(shared.stripes[shared.stripes.size - 1])


@kernel
def write_down(log: Log, rule: StepRule, worker: int, t: int, version: int, eta: float, batch: Array) -> Pace:
    """Write down iteration t, an update from ``version``; return the step-sizes it has to do with."""
    allowed = np.inf
    if rule.budget < np.inf:
        ring = log.spent.size
        allowed = allowed_step(rule, log.spent[t % ring] - log.spent[version % ring])
        log.spent[(t + 1) % ring] = log.spent[t % ring] + min(eta, allowed)
    log.delays[t - version] += 1
    if log.worker.size > 0:
        log.worker[t] = worker
        log.read[t] = version
        for b in range(batch.size):
            log.rows[t, b] = batch[b]
    return Pace(eta, step_at(rule, t), allowed)


@kernel
def take_slot(ledger: Ledger, log: Log, iteration: int) -> int:
    """Return where this iteration is to be recorded, -1 if nowhere.

    Pause when room runs short, but early: the updates that other workers are at may have to be recorded, too. A single
    worker pauses at every record, so that a run that is stopped there ends there, whatever the time of day.
    """
    counters = ledger.counters
    if iteration != counters[RECORD_NEXT]:
        return -1
    slot = counters[RECORDS]
    log.record_at[slot] = iteration
    counters[RECORDS] += 1
    counters[RECORD_NEXT] += counters[RECORD_EVERY]
    counters[RECORD_EVERY] = min(2 * counters[RECORD_EVERY], counters[RECORD_LONGEST])
    if counters[RECORDS] >= counters[RECORDS_FULL] or ledger.waiting.size == 1:
        counters[PAUSE] = 1
    return slot


@kernel
def average(mean: Array, x: Array, count: int) -> None:
    """Update the mean of ``count`` successive iterates, of which x is the last."""
    weight = mean.dtype.type(1.0 / count)
    for j in range(x.size):
        mean[j] += (x[j] - mean[j]) * weight


@kernel
def goes_on(ledger: Ledger, state: Array) -> bool:
    """Tell whether a worker that has just applied an update takes the next lease; also if its turn is over."""
    state[UPDATES] += 1
    return not is_slice_over(ledger)


@kernel
def is_slice_over(ledger: Ledger) -> bool:
    """Tell whether nobody may read any more."""
    counters = ledger.counters
    return counters[ITERATION] >= counters[LAST] or counters[PAUSE] != 0


@kernel
def is_turn_over(ledger: Ledger, state: Array) -> bool:
    """Tell whether a worker has to let another have its thread; one for whom nobody waits goes on."""
    return state[UPDATES] >= ledger.turn and ledger.counters[IN_LINE] > 0


@kernel
def take_lease(ledger: Ledger, state: Array) -> None:
    """Take a lease on the current version."""
    counters = ledger.counters
    ledger.leases[counters[LEASES]] = counters[ITERATION]
    counters[LEASES] += 1
    state[HAS_READ] = 1
    state[VERSION] = counters[ITERATION]


@kernel
def drop_lease(ledger: Ledger, state: Array) -> None:
    """Give a worker's lease back."""
    remove(ledger.leases, ledger.counters[LEASES], state[VERSION])
    ledger.counters[LEASES] -= 1
    state[HAS_READ] = 0


@kernel
def may_apply(ledger: Ledger, version: int) -> bool:
    """Tell whether all other leases can still be applied in time after an update from this version."""
    counters = ledger.counters
    return in_time(ledger.leases, counters[LEASES], version, counters[ITERATION], ledger.max_delay)


@kernel
def wait_at_gate(ledger: Ledger, worker: int, version: int) -> None:
    """Let go of the head, wait until somebody opens the gate, take the head again."""
    ledger.waiting[worker] = WAITS + version
    release(ledger.head)
    acquire(ledger.gates[worker])
    acquire(ledger.head)


@kernel
def open_gates(ledger: Ledger) -> None:
    """Let the workers go on that may apply their updates now, the head being held; each looks again for itself."""
    counters, waiting = ledger.counters, ledger.waiting
    over = counters[ITERATION] >= counters[LAST]
    for worker in range(waiting.size):
        if waiting[worker] != NOTHING and (over or may_apply(ledger, waiting[worker] - WAITS)):
            waiting[worker] = NOTHING
            release(ledger.gates[worker])


@kernel
def pause(ledger: Ledger) -> None:
    """Ask every worker to finish its update and come back to Python."""
    acquire(ledger.head)
    ledger.counters[PAUSE] = 1
    open_gates(ledger)
    release(ledger.head)


@kernel
def leave(ledger: Ledger, stripes: Array, state: Array) -> None:
    """Give up as a worker that cannot go on: nobody may wait for its update, and all come back to Python.

    An exception in a term may have come up while it held a lock.
    """
    if state[HOLDS] != 1:
        if state[HOLDS] > 1:
            release(stripes[state[HOLDS] - 1])
        acquire(ledger.head)
    state[HOLDS] = 0
    if state[HAS_READ] == 1:
        drop_lease(ledger, state)
    ledger.counters[PAUSE] = 1
    open_gates(ledger)
    release(ledger.head)
