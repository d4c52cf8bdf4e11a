"""Python threads, each in compiled code that holds no interpreter lock: the paper's shared-memory architecture."""

from __future__ import annotations

import time
from functools import partial

from .._checks import positive_integer
from ._blas import single_threaded_blas
from ._crew import Crew, make_crew
from ._plan import Monitor, Outcome, Plan, available_cores
from ._team import Team

__all__ = ["Threads"]

_POLL_SECONDS = 0.1  # how long Ctrl-C, progress and callbacks may have to wait
_PATIENT_SECONDS = 1.0  # and what is recorded, if nobody waits for it: a pause costs as much as many updates


class Threads:
    """Run every worker in a thread of its own.

    Workers run until the end of the run, or until a recorded parameter waits to be evaluated or a checkpoint is due; then
    they finish their current update and pause, off the clock, while the calling thread evaluates. All threads have ended
    when ``run`` returns or raises, also after Ctrl-C.

    Parameters
    ----------
    active : int, optional
        How many workers work at once; by default as many as this process may use cores. The others wait for their turn, so
        that a worker which holds a version of the parameter always has a core to work on it.

    Examples
    --------
    >>> import dapsgd as ds
    >>> ds.Threads()
    Threads()
    """

    def __init__(self, active: int | None = None) -> None:
        self.active = None if active is None else positive_integer("Threads: active", active)

    def run(self, plan: Plan, monitor: Monitor) -> Outcome:
        """Run the plan to its end, or until the monitor says stop."""
        # BLAS is limited also while points are evaluated: its threads spin for a while afterwards, on the workers' cores.
        active = available_cores() if self.active is None else self.active
        with single_threaded_blas(), Team(plan.workers) as team, make_crew(plan, active) as crew:
            plan.keeper.join("run", crew)
            stop, slices = monitor.start(), 0
            plan.keeper.offer()
            while crew.iteration < plan.max_iter and not stop:
                crew.prepare(plan.next_stop(crew.iteration))
                with crew.clock:
                    crew.refresh()
                    self._slice(crew, team, monitor, first=slices)
                    crew.refresh()
                stop = crew.report(monitor)
                plan.keeper.offer()
                slices += 1
            return crew.outcome()

    def _slice(self, crew: Crew, team: Team, monitor: Monitor, first: int) -> None:
        """Let all workers run until the end, or until something waits to be evaluated; another one starts each time."""
        workers = crew.plan.workers
        try:
            for place in range(workers):
                worker = (first + place) % workers
                team.assign(worker, partial(crew.advance, worker))
            patience = time.monotonic() + (_PATIENT_SECONDS if monitor.is_patient else 0.0)
            while team.is_busy:
                team.wait(_POLL_SECONDS)
                monitor.progress(crew.iteration)
                if (crew.records_wait and time.monotonic() >= patience) or crew.plan.keeper.is_due:
                    break
        finally:
            crew.pause()
        team.finish()

    def __repr__(self) -> str:
        return "Threads()" if self.active is None else f"Threads(active={self.active})"
