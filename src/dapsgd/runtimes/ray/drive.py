"""The driver of a run: lets it go from one stop to the next, records, takes snapshots, and has what breaks looked after.

Workers go through tickets up to a stop: the next record, the next snapshot, the end. There they wait, and the clock stands
still, while the driver evaluates. Between stops it only asks the head, now and then, how things stand.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ... import __version__
from ...result import Schedule
from ...steps import shortened
from .._blas import single_threaded_blas
from .._plan import Clock, Monitor, Outcome, Plan
from .checkpoints import Folder, fingerprint
from .cluster import Cluster
from .crew import Crew
from .masters import Masters
from .refresher import RemoteRefresher
from .statistics import ClusterStatistics

__all__ = ["Drive"]

Array = np.ndarray[Any, Any]

_LOOK_SHORTEST, _LOOK_LONGEST = 0.001, 0.05  # seconds between two looks at the head
_MEND_SECONDS = 1.0  # between two looks at everybody
_PROGRESS_SECONDS = 0.5


class Drive:
    """One run on a cluster."""

    def __init__(self, cluster: Cluster, plan: Plan, monitor: Monitor) -> None:
        self._cluster, self._plan, self._monitor = cluster, plan, monitor
        self._config, self._ray = cluster.config, cluster.ray
        self._clock = Clock()
        self._rule = plan.rule
        self._target = 0  # the next stop
        cluster.config.check_coupled(plan.algorithm, cluster.problem)
        edges = np.linspace(0, len(plan.x0), self._config.shards + 1).astype(np.int64)  # of the shards
        self._crew = Crew(cluster, plan, edges)
        self._masters = Masters(cluster, plan, edges, self._crew)
        if isinstance(plan.refresh, RemoteRefresher):
            plan.refresh.restarted = self._crew.again
        self._mended = self._shown = time.monotonic()
        self._began = 0  # the iteration that this run started from

    def run(self) -> Outcome:
        """Run the plan to its end, or until the monitor says stop."""
        plan, config = self._plan, self._config
        keeps = Folder(config.checkpoint_dir, config.shards) if config.checkpoint_dir is not None else None
        if keeps is not None:
            keeps.prepare(self._facts())
        self._masters.make("0" if keeps is None else keeps.run)
        self._began = done = min(self._masters.version, plan.max_iter)
        self._crew.prepare()
        with single_threaded_blas():
            with self._clock:
                self._refresh(failed=False, due=plan.refresh is not None)  # first: the start is evaluated from what it knows
            stop = self._monitor.start() if done == 0 else False
            self._crew.launch()
            while done < plan.max_iter and not stop:
                record = plan.records.after(done)
                target = min(record, plan.next_stop(done))
                with self._clock:
                    done = self._go_on(target)
                    if done == target:
                        self._refresh(failed=False, due=plan.is_due(done))
                if done == record:
                    x, mean = self._collect()
                    stop = self._monitor.observe(done, self._clock.seconds, mean if plan.average else x, spend=True)
                self._show(done)
            return self._end(keeps)

    # From one stop to the next.

    def _go_on(self, target: int) -> int:
        """Let workers run until a stop, or until one of them failed; return the iteration."""
        self._target = target
        self._masters.advance(target, False, self._rule)
        seconds, began, first = _LOOK_SHORTEST, time.monotonic(), self._masters.version
        while True:
            state = self._masters.look()
            if state["bad"] >= 0 and state["is_settled"]:
                self._fail(state["bad"])
                self._masters.advance(target, False, self._rule)
            elif state["version"] >= target and state["is_settled"]:
                if all(other["version"] >= target for other in self._masters.look_at_all()):
                    return target
            self._tend()
            rate = max(state["version"] - first, 1) / max(time.monotonic() - began, 1e-6)
            seconds = float(np.clip(0.5 * (target - state["version"]) / rate, _LOOK_SHORTEST, _LOOK_LONGEST))
            time.sleep(seconds)

    def _collect(self) -> tuple[Array, Array]:
        """Return the parameter and the mean of all iterates, if asked for, until they are collected again."""
        while (found := self._masters.collect()) is None:
            self._go_on(self._target)
        return found

    def _fail(self, iteration: int) -> None:
        """Go back to the last snapshot where that is possible; a number was not finite."""
        before = self._rule
        if self._plan.careful:
            self._refresh(failed=True, due=True)
        if self._rule == before:
            self._monitor.diverged(iteration)

    def _refresh(self, failed: bool, due: bool) -> None:
        """Take a snapshot, which may put the parameter back, and tell everybody."""
        refresh = self._plan.refresh
        if not due or refresh is None:
            return
        assert isinstance(refresh, RemoteRefresher)
        x, _ = self._collect()
        before = x.copy()
        factor = refresh(x, failed)
        self._rule = self._crew.rule = shortened(self._plan.rule, factor)
        self._masters.advance(0, True, self._rule)  # what workers are at belongs to the old snapshot
        if not np.array_equal(x, before, equal_nan=True):
            self._masters.put_back(x)
        self._crew.tell("use_snapshot", refresh.mean, self._rule)

    def _tend(self) -> None:
        """Look after workers, shards and the progress line."""
        self._crew.tend()
        if time.monotonic() - self._mended > _MEND_SECONDS:
            self._mended = time.monotonic()
            self._masters.mend()
        if time.monotonic() - self._shown > _PROGRESS_SECONDS:
            self._show(self._masters.version)

    # The end.

    def _end(self, keeps: Folder | None) -> Outcome:
        plan = self._plan
        x, mean = self._collect()
        while any(state["version"] < self._target for state in self._masters.look_at_all()):  # one died, and all went back
            self._go_on(self._target)
            x, mean = self._collect()
        self._masters.finish()
        schedule = None
        if plan.record_schedule:
            log = self._masters.ask_head("schedule")
            rows = np.stack([rows for _, _, rows in log]) if log else np.zeros((0, plan.batch_size), np.int64)
            schedule = Schedule([who for who, _, _ in log], [read for _, read, _ in log], rows, plan.max_delay)
        if keeps is not None:
            self._masters.rest()
            keeps.remove()
        statistics = self._statistics()
        delays = self._masters.states[0]["delays"].copy()
        # Not copies: nobody will collect again.
        return Outcome(x, mean, self._masters.version, self._clock.seconds, delays, schedule, statistics)

    def _statistics(self) -> ClusterStatistics:
        return ClusterStatistics.collect(
            self._masters.states,
            self._began,
            self._clock.seconds,
            self._crew.restarts,
            self._crew.moves,
            self._masters.restarts,
            self._masters.undone,
        )

    def _show(self, iteration: int) -> None:
        self._shown = time.monotonic()
        self._monitor.progress(iteration, self._statistics().brief)

    def _facts(self) -> dict[str, Any]:
        """Return what must be the same for a run to go on from a checkpoint."""
        plan, problem = self._plan, self._cluster.problem
        terms = (problem.loss, problem.regularizer, problem.l2, problem.fit_intercept)
        return {
            "version": __version__.partition("+")[0],
            "algorithm": plan.algorithm,
            "shards": self._config.shards,
            "workers": plan.workers,
            "rows": plan.rows,
            "parameter": list(plan.x0.shape),
            "problem": fingerprint(problem._targets, problem._weights, plan.x0, *terms),
        }
