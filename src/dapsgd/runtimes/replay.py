"""Re-run a recorded schedule: the proof that an asynchronous run computed the paper's recursion and nothing else."""

from __future__ import annotations

import time

import numpy as np

from .._jit import compiled
from ..result import Schedule
from ..steps import allowed_step, step_at
from ..updates import Pace, apply, make_buffers, work
from ._blas import single_threaded_blas
from ._plan import Clock, Monitor, Outcome, Plan

__all__ = ["Replay"]

_REPORT_SECONDS = 0.1


class Replay:
    """Apply the updates of a schedule one by one, each computed at the version of the parameter that was read.

    Parameters
    ----------
    schedule : Schedule
        What a run with ``record_schedule=True`` left in ``result.schedule``, or one of your own: for each master iteration
        which worker, which version it had read, and which rows.

    Examples
    --------
    >>> import dapsgd as ds
    >>> import numpy as np
    >>> X, y = np.eye(4), np.arange(4.0)
    >>> problem = ds.Problem(X, y, regularizer=ds.L1(0.1))
    >>> step = ds.Constant(0.1)
    >>> run = ds.solve(problem, "dap-sgd", workers=2, step=step, max_iter=50, tol=0, record_schedule=True, seed=0)
    >>> again = ds.solve(problem, "dap-sgd", runtime=ds.Replay(run.schedule), step=step, tol=0)
    >>> np.array_equal(run.iterate, again.iterate)
    True
    """

    def __init__(self, schedule: Schedule) -> None:
        if not isinstance(schedule, Schedule):
            raise TypeError(
                f"Replay: schedule must be a Schedule, such as result.schedule of a run with record_schedule=True; "
                f"got {type(schedule).__name__}"
            )
        self.schedule = schedule

    def run(self, plan: Plan, monitor: Monitor) -> Outcome:
        """Run the plan along the schedule."""
        schedule, parts, rule = self.schedule, plan.parts, plan.rule
        schedule.check(plan.rows)
        length = min(plan.max_iter, len(schedule))
        memory = int(schedule.delays[:length].max(initial=0)) + 1  # versions that may still be read
        x, own, message = plan.x0.copy(), plan.x0.copy(), np.zeros_like(plan.x0)
        buffers = make_buffers(plan.targets, plan.x0)
        mean = x.copy() if plan.average else x[:0].copy()
        versions = np.zeros((memory, *x.shape), x.dtype)
        spent = np.zeros(memory + 1)
        delays = np.zeros(max(plan.max_delay + 1, memory), np.int64)
        compiled_work = compiled(work, parts, x, schedule.rows[0], 1.0, buffers, message)
        compiled_apply = compiled(apply, parts, x, message, own, Pace(1.0, 1.0, 1.0), 0, len(x), buffers)
        clock = Clock()
        done, stop, shown = 0, monitor.start(), time.perf_counter()
        with single_threaded_blas():
            while done < length and not stop:
                read = int(schedule.read[done])
                with clock:
                    versions[done % memory] = x
                    eta = step_at(rule, read)
                    own[...] = versions[read % memory]
                    if not compiled_work(parts, own, schedule.rows[done], eta, buffers, message):
                        monitor.diverged(done)
                    allowed = allowed_step(rule, spent[done % len(spent)] - spent[read % len(spent)])
                    pace = Pace(eta, step_at(rule, done), allowed)
                    compiled_apply(parts, x, message, own, pace, 0, len(x), buffers)
                    spent[(done + 1) % len(spent)] = spent[done % len(spent)] + min(eta, allowed)
                    delays[done - read] += 1
                    done += 1
                    if plan.average:
                        mean += (x - mean) * x.dtype.type(1.0 / (done + 1))
                if done % plan.record_every == 0:
                    stop = monitor.observe(done, clock.seconds, (mean if plan.average else x).copy())
                if time.perf_counter() - shown > _REPORT_SECONDS:
                    monitor.progress(done)
                    shown = time.perf_counter()
        return Outcome(x, mean, done, clock.seconds, delays, schedule[:done])

    def __repr__(self) -> str:
        return f"Replay({self.schedule!r})"
