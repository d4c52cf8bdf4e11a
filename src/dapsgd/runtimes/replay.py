"""Re-run a recorded schedule: the proof that an asynchronous run computed the paper's recursion and nothing else."""

from __future__ import annotations

from dataclasses import replace

from ..result import Schedule
from ._plan import Monitor, Outcome, Plan
from ._recursion import Piece, follow

__all__ = ["Replay"]


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
        schedule = self.schedule
        schedule.check(plan.rows)
        length = min(plan.max_iter, len(schedule))

        def take(start: int, stop: int) -> Piece:
            return Piece(schedule.worker[start:stop], schedule.read[start:stop], schedule.rows[start:stop], None)

        outcome = follow(plan, monitor, length, int(schedule.delays[:length].max(initial=0)), take)
        return replace(outcome, schedule=schedule[: outcome.iterations])

    def __repr__(self) -> str:
        return f"Replay({self.schedule!r})"
