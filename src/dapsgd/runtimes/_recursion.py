"""The paper's recursion along a given order of updates, in one thread: what ``replay`` and ``simulated`` have in common."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .._jit import compiled, kernel
from .._loops import copy
from ..result import Schedule
from ..steps import StepRule, allowed_step, step_at
from ..updates import Buffers, Pace, Parts, apply, make_buffers, work
from ._blas import single_threaded_blas
from ._engine import average
from ._plan import Clock, Monitor, Outcome, Plan

__all__ = ["Piece", "follow"]

Array = np.ndarray[Any, Any]

_SLICE_SECONDS = 0.1  # how long Ctrl-C, progress and callbacks may have to wait
_SLICE_UPDATES = 1 << 16


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
    mean: Array  # empty if nobody asked
    versions: Array  # ring: those that may still be read
    spent: Array  # ring: the sum of all steps before iteration t, at t modulo its length
    delays: Array  # histogram
    buffers: Buffers


@kernel
def advance(parts: Parts, rule: StepRule, course: Course, start: int, read: Array, rows: Array) -> int:
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
        if course.mean.size > 0:
            average(course.mean.ravel(), course.x.ravel(), t + 2)
    return read.size


def follow(plan: Plan, monitor: Monitor, length: int, longest: int, take: Callable[[int, int], Piece]) -> Outcome:
    """Run ``length`` updates whose delays are at most ``longest``; ``take(start, stop)`` says which."""
    course = _make_course(plan, longest)
    none = np.zeros(0, np.int64)
    run = compiled(advance, plan.parts, plan.rule, course, 0, none, np.zeros((0, plan.batch_size), np.int64))
    pieces: list[Piece] = []
    clock, seconds, updates = Clock(), 0.0, 64
    done, stop, rule, snapshot_at = 0, monitor.start(), plan.rule, -1
    with single_threaded_blas():
        while done < length and not stop:
            record = (done // plan.record_every + 1) * plan.record_every
            piece = take(done, min(done + updates, record, length, plan.next_stop(done)))
            began = time.perf_counter()
            with clock:
                if snapshot_at != done and plan.is_due(done):
                    rule, snapshot_at = _refresh(plan, course, rule, False), done
                start = done
                while done < start + len(piece.read):
                    done += run(plan.parts, rule, course, done, piece.read[done - start :], piece.rows[done - start :])
                    if done < start + len(piece.read):  # a number was not finite
                        shorter = _refresh(plan, course, rule, True) if plan.careful else rule
                        if shorter == rule:
                            monitor.diverged(done)
                        rule = shorter
                if plan.is_due(done):
                    rule, snapshot_at = _refresh(plan, course, rule, False), done
            took = time.perf_counter() - began
            if done - start == updates:
                updates = max(1, min(int(updates * _SLICE_SECONDS / max(took, 1e-9)), 4 * updates, _SLICE_UPDATES))
            seconds = clock.seconds if piece.finished is None else float(piece.finished[-1])
            if plan.record_schedule:
                pieces.append(piece)
            if done == record:
                stop = monitor.observe(done, seconds, (course.mean if plan.average else course.x).copy())
            monitor.progress(done)
    return Outcome(course.x, course.mean, done, seconds, course.delays, _schedule(plan, pieces))


def _refresh(plan: Plan, course: Course, rule: StepRule, failed: bool) -> StepRule:
    """Take a snapshot, which may put the parameter back; return the rule for the steps from now on."""
    if plan.refresh is None:
        return rule
    factor = plan.refresh(course.x, failed)
    following = plan.rule._replace(scale=plan.rule.scale * factor)
    if following != rule:
        course.versions[:] = course.x  # nobody shall go on from where it went wrong
    return following


def _make_course(plan: Plan, longest: int) -> Course:
    x = plan.x0
    return Course(
        x=x.copy(),
        own=x.copy(),
        message=np.zeros_like(x),
        mean=x.copy() if plan.average else x[:0].copy(),
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
