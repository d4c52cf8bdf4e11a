"""What ``work`` and ``apply`` cost on this machine: the numbers a simulation is fed with.

They are measured on parts of a run, never fitted to a whole asynchronous one, so that comparing a simulation with a
measured run says something.
"""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .._jit import compiled, kernel
from .._loops import copy
from .._team import Team, available_cores
from ..updates import Aggregated, Buffers, Coupled, Decoupled, Pace, Parts, make_buffers, work
from ._blas import single_threaded_blas
from ._crew import make_crew
from ._plan import Marks, Plan

__all__ = ["Costs", "measure_costs"]

Array = np.ndarray[Any, Any]

_SECONDS = 0.25  # of each run that is timed
_WHOLE_SECONDS = 1.5  # of one that is timed to its end, if it ends: a prox may take longer the further a run is
_REPEATS = 3
_MANY = 1 << 30

_known: dict[Any, Costs] = {}
_lock = threading.Lock()  # guards _known; held while measuring, so that two measurements do not disturb each other


class Costs(NamedTuple):
    """Seconds that one update takes.

    Attributes
    ----------
    work : float
        At the worker, while the other cores are busy as well.
    apply : float
        At the master, if the same worker's update was the last.
    handover : float
        What another worker's update costs in addition.
    """

    work: float
    apply: float
    handover: float


class WithoutProx(NamedTuple):
    """DAP-SGD without its prox, and without the gradient, too, if that is not wanted: the master's part is left."""

    descends: bool
    update: Decoupled

    def send(self, parts: Any, x: Array, batch: Array, eta: float, buffers: Any, out: Array) -> bool:
        """Write ``x - eta * g(x)``, or leave the message as it is."""
        if self.descends:
            return parts.estimator.estimate(x, batch, 1.0, -eta, buffers, out)
        return True

    def apply(self, regularizer: Any, x: Array, message: Array, own: Array, pace: Pace, start: int, buffers: Any) -> None:
        """Do what the master does."""
        self.update.apply(regularizer, x, message, own, pace, start, buffers)


class NoProx(NamedTuple):
    """A regulariser whose prox moves its argument and does nothing else."""

    lam: float = 0.0  # compiled code knows no tuples without anything in them

    def prox(self, v: Array, step: float, out: Array) -> None:
        """Copy."""
        copy(v, out)


@kernel
def repeat_work(parts: Parts, x: Array, draws: Array, eta: float, buffers: Buffers, message: Array) -> None:
    """Do a worker's part for all the mini-batches."""
    for k in range(draws.shape[0]):
        work(parts, x, draws[k], eta, buffers, message)


def measure_costs(plan: Plan, again: bool = False) -> Costs:
    """Measure a plan's costs, or return what was measured for its like before in this process, unless ``again``.

    The whole of an update is timed in runs of one worker each, on as many cores at once as the workers will use, and on a
    copy of the parameter if there will be others. In DAP-SGD the master's part is timed alone and the rest is work; in TAP-
    SGD, whose prox depends on the data, it is the other way round. The handover is what two workers need longer than two
    that share nothing, without any prox. Several masters, if there are so many, do what they do in the run, so that waiting
    for one another is in it; one who does all of TAP-SGD's updates only adds here, because it would be busy for most of the
    time, and waiting for it is no handover.
    """
    together = min(plan.workers, available_cores())
    terms = [handle.alive[1] for handle in plan.alive]
    kind = (
        type(plan.parts.update),
        tuple(type(term) for term in terms),
        tuple(type(part) for part in terms[0]),
        (plan.rows, plan.targets, plan.x0.shape, plan.x0.dtype.str, plan.batch_size, plan.average, tuple(plan.shares)),
        together,
    )
    with _lock:
        if again or kind not in _known:
            with single_threaded_blas():
                _known[kind] = _measure(plan, together)
        return _known[kind]


def _measure(plan: Plan, together: int) -> Costs:
    coupled = isinstance(plan.parts.update, Coupled)
    one = replace(plan, workers=1, copies=together > 1, record_schedule=False, records=Marks(_MANY, _MANY))
    adding, plain = (
        replace(one, parts=plan.parts._replace(update=WithoutProx(descends, Decoupled(len(plan.x0)))), max_iter=_MANY)
        for descends in (False, True)
    )
    if coupled and plan.elementwise:
        plain = replace(one, parts=plan.parts._replace(regularizer=NoProx()), max_iter=_MANY)
    sharing = replace(plain, workers=2, max_delay=2, elementwise=True)
    whole, add, moved, send = [], [], [], []
    for _ in range(_REPEATS):  # interleaved, so that a slow moment of the machine hits all
        whole.append(_seconds_per_update(one, together, _WHOLE_SECONDS))
        add.append(_seconds_per_update(adding, 1, 0.2 * _SECONDS))
        if together > 1:
            moved.append(2.0 * _seconds_per_update(sharing, 1, _SECONDS) - _seconds_per_update(plain, 2, _SECONDS))
        if coupled:
            send.append(_seconds_of_work(one))
    total = float(np.median(whole))
    handover = max(float(np.median(moved)), 0.0) if moved else 0.0
    if send:
        sends = min(float(np.median(send)), total)
        return Costs(sends, total - sends, handover)
    adds = min(float(np.median(add)), total)
    return Costs(total - adds, adds, handover)


def _seconds_per_update(plan: Plan, runs: int, seconds: float) -> float:
    """Time so many runs at once from their start, each of so many workers, until enough time has passed."""
    workers = plan.workers
    with ExitStack() as stack:
        crews = [stack.enter_context(make_crew(_apart(plan), workers)) for _ in range(runs)]
        team = stack.enter_context(Team(runs * workers))
        spent, length, done = 0.0, 0, 0
        while spent < seconds and length < plan.max_iter:
            rate = length / spent if spent else 0.0
            length = min(plan.max_iter, max(64, 2 * length if spent < 0.1 * seconds else int(rate * seconds * 1.05) + 1))
            for crew in crews:
                crew.prepare(length)
            began = time.perf_counter()
            for place, crew in enumerate(crew for crew in crews for _ in range(workers)):
                team.assign(place, crew.advance)
            team.finish()
            spent += time.perf_counter() - began
            done = min(crew.iteration for crew in crews)
            if done < length:  # it has diverged; the run itself will say so
                break
    return spent / max(done, 1)


def _apart(plan: Plan) -> Plan:
    """Return a plan that leaves no traces in the memory of this one."""
    update = plan.parts.update
    if not isinstance(update, Aggregated):
        return plan
    return replace(plan, parts=plan.parts._replace(update=update._replace(memory=update.memory.copy())))


def _seconds_of_work(plan: Plan) -> float:
    """Time what a worker does, at the starting point."""
    x, message, buffers = plan.x0.copy(), np.zeros_like(plan.x0), make_buffers(plan.targets, plan.x0)
    draws = plan.draw(0, np.random.default_rng(0), 256)
    loop = compiled(repeat_work, plan.parts, x, draws, 1.0, buffers, message)
    spent, updates = 0.0, 0
    while spent < 0.1 * _SECONDS:
        began = time.perf_counter()
        loop(plan.parts, x, draws, 1.0, buffers, message)
        spent += time.perf_counter() - began
        updates += len(draws)
    return spent / updates
