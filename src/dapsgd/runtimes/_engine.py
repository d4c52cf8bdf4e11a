"""The asynchronous engine: what a worker does between two visits to Python, and what workers share.

One compiled function, :func:`run`, is the life of a worker: read the parameter, call ``work`` on the private copy, wait
until the bound on the delay allows the update, call ``apply`` on the shared parameter, over and over. ``serial`` runs it
once, ``threads`` in many threads at once.

**Where the parameter is.** In the copy of whoever updated it last: to update it, a worker adds its message to the last
updater's copy and writes the sum over its own, which is at once the shared parameter and the version it goes on working
with. Updating and reading again is one pass over memory. A worker's copy is written only by that worker, under the lock,
and read by others only under the lock, so that it may read it without.

**Who may touch what.** The parameter is cut into stripes of rows, each with a lock, which guards whose copy the stripe is
in, and the stripe's part of all copies, of ``mean`` and of the record being taken. A worker goes through the stripes in
order and takes the next lock before it lets go of the last (lock coupling), so that no worker overtakes another: every
stripe sees the updates in the same order, and a reader sees the very same version on all stripes, exactly as under one
lock, while several workers are at work on different stripes. A prox that couples coordinates needs them all at once: there
is one stripe then. The first stripe's lock, the head, also guards every counter, the leases, the histogram and the schedule.

**The bound on the delay.** A worker that reads at version p takes a lease on p, and gives it back when it applies its
update at version t, with delay t - p. Leases are kept in the order they were taken, hence sorted. Whoever applies next,
the i-th oldest of the other leases can at best be applied i updates later; so an update may be applied now only if
afterwards ``t + i - lease[i] <= max_delay`` for every i. The holder of the oldest lease is always allowed, so somebody can
always go on. (Asking only that the oldest lease stay within the bound deadlocks: two leases may come due at once.)
At most max_delay + 1 leases are given out. A worker that has to wait sleeps at a gate of its own, which is opened after
every update.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._jit import kernel
from ..steps import StepRule, allowed_step, step_at
from ..updates import Buffers, Pace, Parts, apply, work
from ._locks import acquire, release

__all__ = ["DIVERGED", "DONE", "PAUSED", "RECORDED", "REFILL", "Own", "Shared", "leave", "pause", "run"]

Array = np.ndarray[Any, Any]

# Why a worker came back to Python.
DONE, PAUSED, REFILL, RECORDED, DIVERGED = range(5)

# The counters, by their place in Shared.counters.
ITERATION, LAST, PAUSE, LEASES, RECORD_NEXT, RECORD_EVERY, RECORDS, BAD_ITERATION = range(8)
COUNTERS = 8

# What a worker remembers between two visits to the compiled code, by its place in Own.state.
DRAWN, HAS_READ, VERSION, SLOT = range(4)
STATES = 4


class Shared(NamedTuple):
    """What all workers share. Everything is guarded by the head lock, except for what a stripe's own lock guards."""

    copies: Array  # one of the parameter for each worker; stripe s is rows bounds[s]:bounds[s + 1], guarded by stripes[s]
    holder: Array  # for each stripe, whose copy is the parameter now
    mean: Array  # the mean of all iterates so far, likewise; empty if nobody asked
    records: Array  # copies of x (or of the mean) at recorded iterations, likewise
    bounds: Array
    stripes: Array  # addresses of locks; the first is the head
    gates: Array  # addresses of locks, one a worker, held while nobody has opened the gate
    waiting: Array  # for each worker: is it at its gate?
    counters: Array
    leases: Array  # versions being worked on, in the order they were read
    spent: Array  # ring: the sum of all steps before iteration t, at t modulo its length
    delays: Array  # histogram
    log_worker: Array  # the schedule, if asked for: for each iteration which worker,
    log_read: Array  # which version it had read,
    log_rows: Array  # and which rows
    record_at: Array  # the iteration of each record
    max_delay: int


class Own(NamedTuple):
    """What one worker owns."""

    worker: int
    x: Array  # its copy of the parameter, a view of Shared.copies
    message: Array
    buffers: Buffers
    draws: Array  # the rows of its next mini-batches, one a line
    state: Array


@kernel
def run(parts: Parts, rule: StepRule, shared: Shared, own: Own) -> int:
    """Work until there is a reason to go back to Python, and return it."""
    counters, state = shared.counters, own.state
    head = shared.stripes[0]
    while True:
        if state[HAS_READ] == 0:
            reason = read(shared, own)
            if reason >= 0:
                return reason
        if state[DRAWN] == own.draws.shape[0]:
            return REFILL
        batch = own.draws[state[DRAWN]]
        eta = step_at(rule, state[VERSION])
        finite = work(parts, own.x, batch, eta, own.buffers, own.message)
        acquire(head)
        wait_for_turn(shared, own)
        t = counters[ITERATION]
        if t >= counters[LAST] or not finite:
            drop_lease(shared, own)
            if not finite and t < counters[LAST]:
                counters[PAUSE] = 1
                counters[BAD_ITERATION] = t
            open_gates(shared)
            release(head)
            return DONE if finite else DIVERGED
        state[DRAWN] += 1
        pace = take_iteration(rule, shared, own, t, eta, batch)
        slot = -1
        if t + 1 == counters[RECORD_NEXT]:
            slot = counters[RECORDS]
            counters[RECORDS] += 1
            shared.record_at[slot] = t + 1
            state[SLOT] = slot
            counters[RECORD_NEXT] += counters[RECORD_EVERY]
            if counters[RECORDS] == shared.record_at.size:
                counters[PAUSE] = 1
        if counters[PAUSE] == 0 and t + 1 < counters[LAST] and counters[LEASES] <= shared.max_delay:
            take_lease(shared, own)  # what this update leaves in the worker's copy is the version it goes on with
        open_gates(shared)
        sweep(parts, shared, own, pace, t, slot)
        if slot >= 0:
            return RECORDED


@kernel
def read(shared: Shared, own: Own) -> int:
    """Copy the parameter, in one version, once a lease is to be had; return -1, or the reason to go back to Python."""
    counters, stripes, bounds = shared.counters, shared.stripes, shared.bounds
    acquire(stripes[0])
    while True:
        if counters[ITERATION] >= counters[LAST] or counters[PAUSE] != 0:
            reason = DONE if counters[ITERATION] >= counters[LAST] else PAUSED
            release(stripes[0])
            return reason
        if counters[LEASES] <= shared.max_delay:
            break
        sleep_at_gate(shared, own)
    take_lease(shared, own)
    for s in range(stripes.size):
        if s > 0:
            acquire(stripes[s])
            release(stripes[s - 1])
        if shared.holder[s] != own.worker:
            copy(shared.copies[shared.holder[s], bounds[s] : bounds[s + 1]], own.x[bounds[s] : bounds[s + 1]])
    release(stripes[stripes.size - 1])
    return -1


@kernel
def sweep(parts: Parts, shared: Shared, own: Own, pace: Pace, t: int, slot: int) -> None:
    """Apply the message stripe by stripe, the head being held, and record in passing."""
    stripes, bounds = shared.stripes, shared.bounds
    for s in range(stripes.size):
        if s > 0:
            acquire(stripes[s])
            release(stripes[s - 1])
        start, stop = bounds[s], bounds[s + 1]
        apply(parts, shared.copies[shared.holder[s]], own.message, pace, start, stop, own.buffers, own.x)
        shared.holder[s] = own.worker
        if shared.mean.size > 0:
            average(shared.mean[start:stop].ravel(), own.x[start:stop].ravel(), t + 2)
        if slot >= 0:
            source = shared.mean if shared.mean.size > 0 else own.x
            copy(source[start:stop], shared.records[slot, start:stop])
    release(stripes[stripes.size - 1])


@kernel
def copy(source: Array, target: Array) -> None:
    """Copy; a plain loop is twice as fast here as an assignment to a slice."""
    entries, result = source.ravel(), target.ravel()
    for j in range(entries.size):
        result[j] = entries[j]


@kernel
def average(mean: Array, x: Array, count: int) -> None:
    """Update the mean of the first ``count`` iterates, of which x is the last."""
    weight = mean.dtype.type(1.0 / count)
    for j in range(x.size):
        mean[j] += (x[j] - mean[j]) * weight


@kernel
def take_iteration(rule: StepRule, shared: Shared, own: Own, t: int, eta: float, batch: Array) -> Pace:
    """Make this worker's update iteration t: count, log, give back the lease; return the step-sizes it has to do with."""
    version = own.state[VERSION]
    ring = shared.spent.size
    allowed = allowed_step(rule, shared.spent[t % ring] - shared.spent[version % ring])
    shared.spent[(t + 1) % ring] = shared.spent[t % ring] + min(eta, allowed)
    shared.delays[t - version] += 1
    if shared.log_worker.size > 0:
        shared.log_worker[t] = own.worker
        shared.log_read[t] = version
        shared.log_rows[t, :] = batch
    drop_lease(shared, own)
    shared.counters[ITERATION] = t + 1
    return Pace(eta, step_at(rule, t), allowed)


@kernel
def take_lease(shared: Shared, own: Own) -> None:
    """Take a lease on the current version."""
    counters = shared.counters
    shared.leases[counters[LEASES]] = counters[ITERATION]
    counters[LEASES] += 1
    own.state[HAS_READ] = 1
    own.state[VERSION] = counters[ITERATION]


@kernel
def drop_lease(shared: Shared, own: Own) -> None:
    """Give a lease back: one of those on this worker's version, which are all alike."""
    counters, leases = shared.counters, shared.leases
    place = 0
    while leases[place] != own.state[VERSION]:
        place += 1
    counters[LEASES] -= 1
    for i in range(place, counters[LEASES]):
        leases[i] = leases[i + 1]
    own.state[HAS_READ] = 0


@kernel
def may_apply(shared: Shared, version: int) -> bool:
    """Tell whether all other leases can still be applied in time after an update from this version."""
    leases = shared.leases
    after = shared.counters[ITERATION] + 1
    others = 0
    skipped = False
    for i in range(shared.counters[LEASES]):
        if not skipped and leases[i] == version:
            skipped = True
            continue
        if after + others - leases[i] > shared.max_delay:
            return False
        others += 1
    return True


@kernel
def wait_for_turn(shared: Shared, own: Own) -> None:
    """Wait, the head being held before and after, until this worker's update may be applied or the run is over."""
    while shared.counters[ITERATION] < shared.counters[LAST] and not may_apply(shared, own.state[VERSION]):
        sleep_at_gate(shared, own)


@kernel
def sleep_at_gate(shared: Shared, own: Own) -> None:
    """Let go of the head, sleep until somebody opens the gate, take the head again."""
    shared.waiting[own.worker] = 1
    release(shared.stripes[0])
    acquire(shared.gates[own.worker])
    acquire(shared.stripes[0])


@kernel
def open_gates(shared: Shared) -> None:
    """Wake every worker that waits, the head being held; each looks for itself whether its turn has come."""
    for worker in range(shared.waiting.size):
        if shared.waiting[worker] == 1:
            shared.waiting[worker] = 0
            release(shared.gates[worker])


@kernel
def leave(shared: Shared, own: Own) -> None:
    """Give up as a worker that cannot go on: nobody may wait for its update, and all come back to Python."""
    acquire(shared.stripes[0])
    if own.state[HAS_READ] == 1:
        drop_lease(shared, own)
    shared.counters[PAUSE] = 1
    open_gates(shared)
    release(shared.stripes[0])


@kernel
def pause(shared: Shared) -> None:
    """Ask every worker to finish its update and come back to Python."""
    acquire(shared.stripes[0])
    shared.counters[PAUSE] = 1
    open_gates(shared)
    release(shared.stripes[0])
