"""Python threads, each in compiled code that holds no interpreter lock: the paper's shared-memory architecture."""

from __future__ import annotations

import time
from functools import partial

from .._checks import positive_integer
from .._team import Team, available_cores
from ._blas import single_threaded_blas
from ._crew import Crew, make_crew
from ._plan import Monitor, Outcome, Plan

__all__ = ["Threads"]

_POLL_SECONDS = 0.1  # how long Ctrl-C, progress and callbacks may have to wait
_PATIENT_SECONDS = 1.0  # and what is recorded, if nobody waits for it: a pause costs as much as many updates


class Threads:
    """Run workers in threads, as many at once as there are cores.

    Workers run until the end of the run, or until a recorded parameter waits to be evaluated or a checkpoint is due; then
    they finish their current update and pause, off the clock, while the calling thread evaluates. If there are callbacks they
    run to each recorded point and no further, so that a run which is asked to stop ends right there. All threads have ended
    when ``run`` returns or raises, also after Ctrl-C.

    Parameters
    ----------
    active : int, optional
        How many workers work at once, each in a thread; by default as many as this process may use cores. The others wait for
        their turn, so that a worker which holds a version of the parameter always has a core to work on it.

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
        threads = min(active, plan.workers, plan.max_delay + 1)
        with single_threaded_blas(), Team(threads) as team, make_crew(plan, threads) as crew:
            plan.keeper.join("run", crew)
            with crew.clock:
                crew.refresh()  # first: the start is evaluated from what the snapshot knows
            stop = monitor.start()
            plan.keeper.offer()
            while crew.iteration < plan.max_iter and not stop:
                crew.prepare(plan.next_stop(crew.iteration, monitor.is_attended))
                with crew.clock:
                    self._slice(crew, team, monitor)
                    crew.refresh()
                stop = crew.report(monitor)
                plan.keeper.offer()
            return crew.outcome()

    def _slice(self, crew: Crew, team: Team, monitor: Monitor) -> None:
        """Let workers run until the end, or until something waits to be evaluated."""
        try:
            for thread in range(team.size):
                team.assign(thread, partial(crew.advance, thread if team.size == available_cores() else None))
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
