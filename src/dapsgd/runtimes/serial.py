"""One worker in the calling thread: repeatable to the last bit."""

from __future__ import annotations

import time

from ._blas import single_threaded_blas
from ._crew import make_crew
from ._plan import Monitor, Outcome, Plan

__all__ = ["Serial"]

_SLICE_SECONDS = 0.1  # how long Ctrl-C, progress and callbacks may have to wait


class Serial:
    """Run one worker in the calling thread, in slices of about a tenth of a second.

    Examples
    --------
    >>> import dapsgd as ds
    >>> ds.Serial()
    Serial()
    """

    def run(self, plan: Plan, monitor: Monitor) -> Outcome:
        """Run the plan to its end, or until the monitor says stop."""
        with single_threaded_blas(), make_crew(plan, 1) as crew:
            plan.keeper.join("run", crew)
            with crew.clock:
                crew.refresh()  # first: the start is evaluated from what the snapshot knows
            updates, stop = 64, monitor.start()
            plan.keeper.offer()
            while crew.iteration < plan.max_iter and not stop:
                crew.prepare(min(crew.iteration + updates, plan.next_stop(crew.iteration, monitor.is_attended)))
                began = time.perf_counter()
                with crew.clock:
                    crew.advance()
                    crew.refresh()
                took = time.perf_counter() - began
                updates = max(1, min(int(updates * _SLICE_SECONDS / max(took, 1e-9)), 4 * updates))
                stop = crew.report(monitor)
                plan.keeper.offer()
            return crew.outcome()

    def __repr__(self) -> str:
        return "Serial()"
