"""The workers of one run: their memory, their random streams, and the way they come back to Python."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from .._jit import compiled
from .._memory import require_memory
from .._team import go_to_core
from ..result import Schedule
from ..steps import shortened, step_at
from ..updates import Coupled, make_buffers, padded, padded_copy
from . import _engine as engine
from ._locks import acquire, locks
from ._plan import Clock, Marks, Monitor, Outcome, Plan

if TYPE_CHECKING:
    from ..checkpoints import Saved

__all__ = ["Crew", "count_stripes", "make_crew"]

Array = np.ndarray[Any, Any]

_DRAWS = 1 << 14  # rows drawn ahead
_STRIPE = 4096  # entries of the parameter under one lock, at least
_RECORD_BYTES = 1 << 26  # memory for copies of the parameter that wait to be evaluated
_RECORDS = 128
_TURN = 512  # updates: to go to Python for the next worker takes as long as ten or so


class Crew:
    """The state of a run between slices. While workers run, Python only looks at a counter or two, which may be old.

    ``_entrance`` guards ``_inside``, ``_closed``, ``_line`` and the count of those in it; everything that workers share is
    guarded as the engine says.
    """

    def __init__(self, plan: Plan, stripes: Array, gates: Array) -> None:
        self.plan = plan
        self.clock = Clock()
        self._entrance = threading.Lock()
        self._inside = 0  # threads that are in compiled code, or about to be
        self._line = list(range(plan.workers))  # the workers that no thread is at the moment
        self._closed = False
        self._snapshot_at = -1
        self._rule = plan.rule  # with the factor that snapshots ask for
        self._ledger = _make_ledger(plan, stripes[0], gates)
        self._log = _make_log(plan)
        self._shared = _make_shared(plan, stripes, self._ledger, self._log)
        self._streams = [np.random.default_rng(seed) for seed in plan.seed.spawn(plan.workers)]
        self._drawn_from = [stream.bit_generator.state for stream in self._streams]  # where each was before its last draw
        self._own = [_make_own(plan, worker, self._shared.x) for worker in range(plan.workers)]
        for worker in range(plan.workers):
            self._draw(worker)
            acquire(gates[worker])  # a gate is closed until another worker opens it
        # Compile everything now, before any thread and any clock starts.
        own = self._own[0]
        self._run = compiled(engine.run, plan.parts, plan.rule, self._shared, own)
        self._take_over = compiled(engine.take_over, self._shared, own.state, own.x, own.state)
        self._pause = compiled(engine.pause, self._ledger)
        self._leave = compiled(engine.leave, self._ledger, stripes, own.state)

    @property
    def iteration(self) -> int:
        """How many updates have been applied."""
        return int(self._ledger.counters[engine.ITERATION])

    @property
    def records_wait(self) -> bool:
        """Whether a copy of the parameter waits to be evaluated."""
        return bool(self._ledger.counters[engine.RECORDS])

    def refresh(self) -> None:
        """Take a snapshot if one is due and was not taken yet; no worker runs."""
        if self.plan.refresh is None:
            return
        counters = self._ledger.counters
        failed = self.plan.careful and counters[engine.BAD_ITERATION] >= 0
        if failed or (self.plan.is_due(self.iteration) and self._snapshot_at != self.iteration):
            mean, step = self._shared.mean if self.plan.means else None, step_at(self._rule, self.iteration)
            factor = self.plan.refresh(self._shared.x, failed, mean, step)
            rule = shortened(self.plan.rule, factor)
            waiting = int(counters[engine.RECORDS])
            # If it went back so do all copies that wait to be evaluated; otherwise that of the point which was moved.
            here = self._log.record_at[:waiting] == self.iteration
            self._shared.records[:waiting][here if rule == self._rule else slice(None)] = self._shared.x
            self._rule = rule
            self._snapshot_at = self.iteration
            counters[engine.MEAN_FROM] = self.plan.mean_from(self.iteration)
            if self.plan.means:
                self._shared.mean[...] = self._shared.x  # whatever was there before, such as NaN
            counters[engine.BAD_ITERATION] = -1 if failed else counters[engine.BAD_ITERATION]

    def prepare(self, last: int) -> None:
        """Let the next slice run until iteration ``last`` at the most."""
        self._ledger.counters[engine.PAUSE] = 0
        self._ledger.counters[engine.LAST] = min(last, self.plan.max_iter)

    def advance(self, core: int | None = None) -> None:
        """Be one worker after another, each for a turn, until the slice ends; on a core of one's own, if one is named."""
        worker = -1
        try:
            with self._entrance:
                if self._closed:
                    return
                worker = self._take_next()
                self._inside += 1
            while True:
                if core is not None:
                    go_to_core(core)  # where the thread was woken, with the interpreter's lock, may be where another works
                reason = self._run(self.plan.parts, self._rule, self._shared, self._own[worker])
                if reason == engine.TURN_OVER:
                    with self._entrance:
                        worker = self._take_next(worker)
                elif reason == engine.REFILL:
                    self._draw(worker)
                else:
                    return
        except BaseException:
            if worker >= 0:
                self._leave(self._ledger, self._shared.stripes, self._own[worker].state)
            raise
        finally:
            if worker >= 0:
                with self._entrance:
                    self._inside -= 1  # first: an interrupt after the next call must not keep the door open for ever
                    self._line.append(worker)
                    self._ledger.counters[engine.IN_LINE] = len(self._line)

    def _take_next(self, before: int | None = None) -> int:
        """Take the worker out of the line that has not worked for longest; ``_entrance`` is held.

        Not the one that has stood there for longest: it may have come just to hear that the slice is over, time and again.
        ``before``, whose turn is over, takes its place. The line changes only when the leases have: see the engine.
        """
        if not self._line and before is not None:  # what it saw of the line was old
            return before
        worker = min(self._line, key=lambda worker: int(self._own[worker].state[engine.WORKED]))
        own = self._own[worker]
        self._take_over(self._shared, self._own[worker if before is None else before].state, own.x, own.state)
        self._line.remove(worker)
        if before is not None:
            self._line.append(before)
        self._ledger.counters[engine.IN_LINE] = len(self._line)
        return worker

    def pause(self) -> None:
        """End the slice: ask every worker to come back after its current update."""
        self._pause(self._ledger)

    def is_busy(self) -> bool:
        """Tell whether a worker may still use the locks."""
        return self._inside > 0

    def close(self) -> None:
        """Let no worker in any more and wait until the last is out, however often Ctrl-C is pressed meanwhile.

        Their memory and their locks are in use until then; a worker leaves after its current update.
        """
        interrupted = None
        while True:
            try:
                with self._entrance:
                    self._closed = True
                    empty = self._inside == 0
                if empty:
                    break
                self.pause()
                time.sleep(0.001)
            except KeyboardInterrupt as again:
                interrupted = again
        if interrupted is not None:
            raise interrupted

    def report(self, monitor: Monitor) -> bool:
        """Hand what was recorded to the monitor, off the clock; return whether the run shall end."""
        counters = self._ledger.counters
        if counters[engine.BAD_ITERATION] >= 0:
            monitor.diverged(int(counters[engine.BAD_ITERATION]))
        stop = False
        for slot in range(int(counters[engine.RECORDS])):
            iteration = int(self._log.record_at[slot])
            seconds = self.clock.at(int(self._log.stamps[slot]))
            stop = monitor.observe(iteration, seconds, self._shared.records[slot].copy())
            if stop:
                break
        counters[engine.RECORDS] = 0
        monitor.progress(self.iteration)
        return stop

    def outcome(self) -> Outcome:
        """Collect what is left when the run is over."""
        log, done = self._log, self.iteration
        schedule = None
        if self.plan.record_schedule:
            schedule = Schedule(log.worker[:done], log.read[:done], log.rows[:done], self.plan.max_delay)
        return Outcome(self._shared.x, self._shared.mean, done, self.clock.seconds, log.delays.copy(), schedule)

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps. No worker runs: none holds a lease, and what it has drawn is drawn again."""
        log, done = self._log, self.iteration
        logged = done if self.plan.record_schedule else 0
        return {
            "iteration": done,
            "seconds": self.clock.seconds,
            "scale": self._rule.scale,
            "snapshot_at": self._snapshot_at,
            "mean_from": int(self._ledger.counters[engine.MEAN_FROM]),
            "streams": list(self._drawn_from),
            "drawn": np.array([own.state[engine.DRAWN] for own in self._own]),
            "x": self._shared.x.copy(),
            "mean": self._shared.mean.copy(),
            "spent": log.spent.copy(),
            "delays": log.delays.copy(),
            "worker": log.worker[:logged].copy(),
            "read": log.read[:logged].copy(),
            "rows": log.rows[:logged].copy(),
        }

    def restore(self, saved: Saved) -> None:
        """Go on from a checkpoint."""
        plan, log, counters = self.plan, self._log, self._ledger.counters
        done = saved.integer("iteration", 0, plan.max_iter)
        self.clock.set(saved.number("seconds", 0.0, math.inf))
        self._rule = shortened(plan.rule, saved.number("scale", 0.0, plan.rule.scale) / plan.rule.scale)
        self._snapshot_at = saved.integer("snapshot_at", -1, done)
        counters[engine.MEAN_FROM] = saved.integer("mean_from", -1, plan.max_iter)
        self._shared.x[...] = saved.array("x", self._shared.x)
        self._shared.mean[...] = saved.array("mean", self._shared.mean)
        log.spent[...] = saved.array("spent", log.spent)
        log.delays[...] = saved.array("delays", log.delays)
        if log.delays.sum() != done or (log.delays < 0).any():
            raise saved.damaged("its delays do not add up to its iterations")
        logged = done if plan.record_schedule else 0
        for name, column in (("worker", log.worker), ("read", log.read), ("rows", log.rows)):
            column[:logged] = saved.array(name, column[:logged])
        drawn = saved.array("drawn", np.zeros(plan.workers, np.int64))
        for worker, own in enumerate(self._own):
            saved.stream("streams", worker, self._streams[worker])
            self._draw(worker)
            if not 0 <= drawn[worker] <= len(own.draws):
                raise saved.damaged("a worker has used more rows than it has drawn")
            own.state[engine.DRAWN] = drawn[worker]
        counters[engine.ITERATION] = done
        _set_records(counters, plan.records, done)

    def _draw(self, worker: int) -> None:
        own = self._own[worker]
        self._drawn_from[worker] = self._streams[worker].bit_generator.state
        own.draws[:] = self.plan.draw(worker, self._streams[worker], len(own.draws))
        own.state[engine.DRAWN] = 0


@contextmanager
def make_crew(plan: Plan, threads: int) -> Iterator[Crew]:
    """Allocate a crew for so many threads, and its locks; freed afterwards, when no worker runs any more.

    There may be no more threads than workers, nor than leases that can all be given back in time.
    """
    _check_memory(plan)
    stripes = count_stripes(plan, threads)
    with locks(stripes + plan.workers) as addresses:
        crew = Crew(plan, addresses.taken[:stripes], addresses.taken[stripes:])
        addresses.in_use = crew.is_busy
        try:
            yield crew
        finally:
            crew.close()


def _check_memory(plan: Plan) -> None:
    """Refuse a run that would need more memory than there is."""
    copies = plan.workers * (4 * plan.x0.nbytes + 8 * max(_DRAWS, plan.batch_size))  # a worker's copy, message and buffers
    records = (_slots(plan) + plan.workers) * plan.x0.nbytes
    schedule = plan.max_iter * 8 * (2 + plan.batch_size) if plan.record_schedule else 0
    advice = "use fewer workers" if copies > schedule else "use record_schedule=False or a smaller max_iter"
    require_memory(copies + records + schedule + 16 * plan.max_delay, f"a run of {plan.workers} workers", advice)


def count_stripes(plan: Plan, threads: int) -> int:
    """Return into how many parts, each with a lock of its own, the parameter is cut.

    Not into more than can be worked on at once: handing over a lock costs more than it gains then. A master that only adds
    is done so soon that half as many do: measured, two threads with 50,000 coefficients make a tenth more updates with one
    lock than with thirteen.
    """
    if not plan.elementwise or plan.workers == 1:
        return 1
    at_once = threads if isinstance(plan.parts.update, Coupled) else max(1, threads // 2)
    return min(max(1, math.ceil(plan.x0.size / _STRIPE)), len(plan.x0), at_once)


def _make_ledger(plan: Plan, head: int, gates: Array) -> engine.Ledger:
    # All of it side by side: every cache line that changes hands with the head lock costs each update a tenth of a microsecond.
    memory = padded(engine.COUNTERS + 2 * plan.workers, np.int64)
    counters, waiting, leases = np.split(memory, [engine.COUNTERS, engine.COUNTERS + plan.workers])
    _set_records(counters, plan.records, 0)
    counters[engine.RECORDS_FULL] = _slots(plan)
    counters[engine.BAD_ITERATION] = -1
    counters[engine.MEAN_FROM] = -1
    turn = 1 if plan.shares.size > 0 else _TURN  # a share that stays away for long leaves its old gradient behind
    return engine.Ledger(int(head), gates, waiting, counters, leases, plan.max_delay, turn)


def _set_records(counters: Array, records: Marks, done: int) -> None:
    """Let the next record be the one that is due after so many iterations."""
    following = records.after(done)
    counters[engine.RECORD_NEXT] = following
    counters[engine.RECORD_EVERY] = records.after(following) - following
    counters[engine.RECORD_LONGEST] = records.longest


def _slots(plan: Plan) -> int:
    """Return how many records may wait before workers pause."""
    return int(np.clip(_RECORD_BYTES // max(1, plan.x0.nbytes), 1, _RECORDS))


def _make_log(plan: Plan) -> engine.Log:
    logged = plan.max_iter if plan.record_schedule else 0
    in_flight = -(-plan.workers // plan.records.first)  # records that may still be taken once a pause was asked for
    return engine.Log(
        spent=padded(plan.max_delay + 2, np.float64),
        delays=padded(plan.max_delay + 1, np.int64),
        worker=np.zeros(logged, np.int64),
        read=np.zeros(logged, np.int64),
        rows=np.zeros((logged, plan.batch_size), np.int64),
        record_at=np.zeros(_slots(plan) + in_flight, np.int64),
        stamps=np.zeros(_slots(plan) + in_flight, np.int64),
    )


def _make_shared(plan: Plan, stripes: Array, ledger: engine.Ledger, log: engine.Log) -> engine.Shared:
    x = plan.x0
    return engine.Shared(
        x=padded_copy(x),
        mean=padded_copy(x if plan.average or plan.means else x[:0]),
        records=np.zeros((len(log.record_at), *x.shape), x.dtype),
        bounds=np.linspace(0, len(x), len(stripes) + 1).astype(np.int64),
        stripes=stripes,
        ledger=ledger,
        log=log,
    )


def _make_own(plan: Plan, worker: int, x: Array) -> engine.Own:
    ahead = max(1, _DRAWS // plan.batch_size)
    message = padded(x.shape, x.dtype)
    # In place it is an array less that passes through the cache.
    buffers = make_buffers(plan.targets, plan.x0, point=message if plan.in_place else None)
    return engine.Own(
        worker=worker,
        x=padded_copy(x) if plan.copies or plan.workers > 1 else x,
        message=message,
        buffers=buffers,
        draws=np.zeros((ahead, plan.batch_size), np.int64),
        state=padded(engine.STATES, np.int64),
    )
