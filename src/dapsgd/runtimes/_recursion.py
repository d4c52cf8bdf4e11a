"""The paper's recursion along a given order of updates, in one thread: what ``replay`` and ``simulated`` have in common."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._jit import compiled, kernel
from .._loops import copy
from .._memory import require_memory
from ..result import Schedule
from ..steps import StepRule, allowed_step, shortened, step_at
from ..updates import Buffers, Pace, Parts, apply, make_buffers, work
from ._blas import single_threaded_blas
from ._engine import average
from ._plan import Clock, Monitor, Outcome, Plan

if TYPE_CHECKING:
    from ..checkpoints import Saved

__all__ = ["Piece", "follow"]

Array = np.ndarray[Any, Any]

_SLICE_SECONDS = 0.1  # how long Ctrl-C, progress and callbacks may have to wait
_SLICE_UPDATES = 1 << 16
_KEPT = ("x", "mean", "versions", "spent", "delays")  # of a course, in a checkpoint


class Piece(NamedTuple):
    """Some successive updates: one entry each."""

    worker: Array
    read: Array  # which version the worker had read
    rows: Array  # which rows it looked at
    finished: Array | None  # when it was applied, if time is simulated


class Course(NamedTuple):
    """What the recursion works on."""

    x: Array
    own: Array  # the version that a worker had read
    message: Array
    mean: Array  # of iterates; empty if nobody asked
    versions: Array  # ring: those that may still be read
    spent: Array  # ring: the sum of all steps before iteration t, at t modulo its length
    delays: Array  # histogram
    buffers: Buffers


@kernel
def advance(parts: Parts, rule: StepRule, course: Course, mean_from: int, start: int, read: Array, rows: Array) -> int:
    """Apply updates from iteration ``start`` on; return how many, fewer than asked for if one was not finite."""
    memory, ring = course.versions.shape[0], course.spent.size
    for k in range(read.size):
        t, version = start + k, read[k]
        copy(course.x, course.versions[t % memory])
        copy(course.versions[version % memory], course.own)
        eta = step_at(rule, version)
        if not work(parts, course.own, rows[k], eta, course.buffers, course.message):
            return k
        allowed = allowed_step(rule, course.spent[t % ring] - course.spent[version % ring])
        pace = Pace(eta, step_at(rule, t), allowed)
        apply(parts, course.x, course.message, course.own, pace, 0, course.x.shape[0], course.buffers)
        course.spent[(t + 1) % ring] = course.spent[t % ring] + min(eta, allowed)
        course.delays[t - version] += 1
        if course.mean.size > 0 and t >= mean_from:
            average(course.mean.ravel(), course.x.ravel(), t + 1 - mean_from)
    return read.size


class _Walk:
    """How far the recursion is: what a checkpoint keeps of it."""

    def __init__(self, plan: Plan, length: int, longest: int) -> None:
        self.plan, self._length = plan, length
        self.course = _make_course(plan, longest)
        self.clock = Clock()
        self.done = 0
        self.seconds = 0.0  # of the last update, simulated ones included
        self.rule = plan.rule
        self.snapshot_at = -1
        self.mean_from = -1

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps; the order of the updates is found again from the beginning."""
        kept = {name: getattr(self.course, name).copy() for name in _KEPT}
        numbers = {"iteration": self.done, "seconds": self.clock.seconds, "scale": self.rule.scale}
        return {**kept, **numbers, "snapshot_at": self.snapshot_at, "mean_from": self.mean_from}

    def restore(self, saved: Saved) -> None:
        """Go on from a checkpoint."""
        self.done = saved.integer("iteration", 0, self._length)
        self.clock.set(saved.number("seconds", 0.0, np.inf))
        self.seconds = self.clock.seconds
        self.rule = shortened(self.plan.rule, saved.number("scale", 0.0, self.plan.rule.scale) / self.plan.rule.scale)
        self.snapshot_at = saved.integer("snapshot_at", -1, self.done)
        self.mean_from = saved.integer("mean_from", -1, self.plan.max_iter)
        for name in _KEPT:
            array = getattr(self.course, name)
            array[...] = saved.array(name, array)
        if self.course.delays.sum() != self.done or (self.course.delays < 0).any():
            raise saved.damaged("its delays do not add up to its iterations")

    def refresh(self, failed: bool) -> bool:
        """Take a snapshot, which may put the parameter back; tell whether steps are shorter from now on."""
        plan, course = self.plan, self.course
        if plan.refresh is None:
            return False
        factor = plan.refresh(course.x, failed, course.mean if plan.means else None, step_at(self.rule, self.done))
        following = shortened(plan.rule, factor)
        shorter = following != self.rule
        if shorter:
            course.versions[:] = course.x  # nobody shall go on from where it went wrong
        self.rule = following
        self.mean_from = plan.mean_from(self.done)
        if plan.means:
            course.mean[...] = course.x  # whatever was there before, such as NaN
        if not failed:
            self.snapshot_at = self.done
        return shorter


def follow(plan: Plan, monitor: Monitor, length: int, longest: int, take: Callable[[int, int], Piece]) -> Outcome:
    """Run ``length`` updates whose delays are at most ``longest``; ``take(start, stop)`` says which."""
    walk = _Walk(plan, length, longest)
    course, clock = walk.course, walk.clock
    none = np.zeros(0, np.int64)
    run = compiled(advance, plan.parts, plan.rule, course, 0, 0, none, np.zeros((0, plan.batch_size), np.int64))
    pieces: list[Piece] = []

    def next_piece(start: int, stop: int) -> Piece:
        piece = take(start, stop)
        if plan.record_schedule:
            pieces.append(piece)
        if piece.finished is not None:
            walk.seconds = float(piece.finished[-1])
        return piece

    if plan.keeper.join("run", walk):
        for start in range(0, walk.done, _SLICE_UPDATES):
            next_piece(start, min(start + _SLICE_UPDATES, walk.done))
    with single_threaded_blas():
        with clock:
            if walk.snapshot_at != walk.done and plan.is_due(walk.done):
                walk.refresh(False)  # first: the start is evaluated from what the snapshot knows
        updates, stop = 64, monitor.start()
        plan.keeper.offer()
        while walk.done < length and not stop:
            record = plan.records.after(walk.done)
            piece = next_piece(walk.done, min(walk.done + updates, record, length, plan.next_stop(walk.done)))
            began = time.perf_counter()
            with clock:
                start = walk.done
                while walk.done < start + len(piece.read):
                    ahead = walk.done - start
                    left = piece.read[ahead:], piece.rows[ahead:]
                    walk.done += run(plan.parts, walk.rule, course, walk.mean_from, walk.done, *left)
                    if walk.done < start + len(piece.read):  # a number was not finite
                        if not (plan.careful and walk.refresh(True)):
                            monitor.diverged(walk.done)
                if plan.is_due(walk.done):
                    walk.refresh(False)
            took = time.perf_counter() - began
            if walk.done - start == updates:
                updates = max(1, min(int(updates * _SLICE_SECONDS / max(took, 1e-9)), 4 * updates, _SLICE_UPDATES))
            if piece.finished is None:
                walk.seconds = clock.seconds
            if walk.done == record:
                stop = monitor.observe(walk.done, walk.seconds, (course.mean if plan.average else course.x).copy())
            monitor.progress(walk.done)
            plan.keeper.offer()
    return Outcome(course.x, course.mean, walk.done, walk.seconds, course.delays, _schedule(plan, pieces))


def _make_course(plan: Plan, longest: int) -> Course:
    x = plan.x0
    require_memory(
        (longest + 8) * (x.nbytes + 16),
        f"a run with delays up to {longest}, which remembers as many versions of the parameter,",
        "use a smaller max_delay",
    )
    return Course(
        x=x.copy(),
        own=x.copy(),
        message=np.zeros_like(x),
        mean=x.copy() if plan.average or plan.means else x[:0].copy(),
        versions=np.zeros((longest + 1, *x.shape), x.dtype),
        spent=np.zeros(longest + 2),
        delays=np.zeros(max(plan.max_delay, longest) + 1, np.int64),
        buffers=make_buffers(plan.targets, x),
    )


def _schedule(plan: Plan, pieces: list[Piece]) -> Schedule | None:
    if not plan.record_schedule:
        return None
    if not pieces:
        return Schedule([], [], np.zeros((0, plan.batch_size), np.int64), plan.max_delay)
    worker, read, rows = (np.concatenate([piece[k] for piece in pieces]) for k in range(3))
    return Schedule(worker, read, rows, plan.max_delay)
