"""The driver of a run: lets it go from one stop to the next, records, takes snapshots, and mends what breaks.

Workers go through tickets up to a stop: the next record, the next snapshot, the end. There they wait, and the clock stands
still, while the driver evaluates. Between stops it only asks the head, now and then, how things stand.
"""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import numpy as np

from ... import __version__
from ...algorithms import ALGORITHMS
from ...errors import ClusterError
from ...gradients import MiniBatch
from ...result import Schedule
from ...steps import shortened
from ...updates import Aggregated, Coupled
from .._blas import single_threaded_blas
from .._plan import Clock, Monitor, Outcome, Plan
from .checkpoints import Folder, fingerprint
from .cluster import Cluster, cause_of
from .crew import Crew
from .link import actor_name
from .refresher import RemoteRefresher
from .shard import Shard, ShardSetting
from .shared import Desk
from .statistics import ClusterStatistics

__all__ = ["Drive"]

Array = np.ndarray[Any, Any]

_LOOK_SHORTEST, _LOOK_LONGEST = 0.001, 0.05  # seconds between two looks at the head
_MEND_SECONDS = 1.0  # between two looks at everybody
_PROGRESS_SECONDS = 0.5
_DRIVER = -1  # whose desk it is, among those of the workers


class Drive:
    """One run on a cluster."""

    def __init__(self, cluster: Cluster, plan: Plan, monitor: Monitor) -> None:
        self._cluster, self._plan, self._monitor = cluster, plan, monitor
        self._config, self._ray = cluster.config, cluster.ray
        self._clock = Clock()
        self._rule = plan.rule
        self._target = 0  # the next stop
        spec = ALGORITHMS[plan.algorithm]
        cluster.config.check_coupled(plan.algorithm, cluster.problem)
        self._coupled, self._aggregated = spec.update is Coupled, spec.update is Aggregated
        self._balanced = spec.estimator is MiniBatch
        self._edges = np.linspace(0, len(plan.x0), self._config.shards + 1).astype(np.int64)  # of the shards
        self._shards = cluster.shards
        self._boots: list[str] = []
        self._states: list[dict[str, Any]] = []
        self._desk = Desk(plan.x0.shape, plan.x0.dtype)  # where shards put what is collected
        self._from_zero = not plan.x0.any()  # as shards do anyway
        self._crew = Crew(cluster, plan, self._edges)
        self._shard_restarts = 0
        self._stuck: dict[int, tuple[int, float]] = {}  # the version that a shard was last seen at, and since when
        self._mended = self._shown = time.monotonic()
        self._began = 0  # the iteration that this run started from

    def run(self) -> Outcome:
        """Run the plan to its end, or until the monitor says stop."""
        plan, config = self._plan, self._config
        keeps = Folder(config.checkpoint_dir, config.shards) if config.checkpoint_dir is not None else None
        self._began = done = 0 if keeps is None else min(keeps.prepare(self._facts()), plan.max_iter)
        self._make_shards()
        self._crew.prepare()
        stop = self._monitor.start() if done == 0 else False
        with single_threaded_blas():
            with self._clock:
                self._refresh(failed=False, due=plan.refresh is not None)
            self._crew.launch()
            while done < plan.max_iter and not stop:
                record = (done // plan.record_every + 1) * plan.record_every
                target = min(record, plan.next_stop(done))
                with self._clock:
                    done = self._go_on(target)
                    if done == target:
                        self._refresh(failed=False, due=plan.is_due(done))
                if done == record:
                    x, mean = self._collect()
                    stop = self._monitor.observe(done, self._clock.seconds, mean if plan.average else x)
                self._show(done)
            return self._end(keeps)

    # From one stop to the next.

    def _go_on(self, target: int) -> int:
        """Let workers run until a stop, or until one of them failed; return the iteration."""
        self._target = target
        self._tell_head("advance", target, False, self._rule)
        seconds, began, first = _LOOK_SHORTEST, time.monotonic(), self._version
        while True:
            state = self._look()
            if state["bad"] >= 0 and state["is_settled"]:
                self._fail(state["bad"])
                self._tell_head("advance", target, False, self._rule)
            elif state["version"] >= target and state["is_settled"]:
                if all(other["version"] >= target for other in self._look_at_all()):
                    return target
            self._tend()
            rate = max(state["version"] - first, 1) / max(time.monotonic() - began, 1e-6)
            seconds = float(np.clip(0.5 * (target - state["version"]) / rate, _LOOK_SHORTEST, _LOOK_LONGEST))
            time.sleep(seconds)

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
        self._tell_head("advance", 0, True, self._rule)  # what workers are at belongs to the old snapshot
        if not np.array_equal(x, before, equal_nan=True):
            self._tell_all("put_back", [(x[a:b],) for a, b in pairwise(self._edges)])
        self._crew.tell("use_snapshot", refresh.mean, self._rule)

    def _tend(self) -> None:
        """Look after workers, shards and the progress line."""
        self._crew.tend()
        if time.monotonic() - self._mended > _MEND_SECONDS:
            self._mended = time.monotonic()
            self._mend()
        if time.monotonic() - self._shown > _PROGRESS_SECONDS:
            self._show(self._version)

    # Shards.

    def _make_shards(self) -> None:
        plan, config = self._plan, self._config
        parts = tuple(float(part) for part in np.diff(self._cluster.bounds) / plan.rows)
        bound = self._cluster.problem._bound if self._coupled else None
        kind = self._ray.remote(Shard)
        for index, (a, b) in enumerate(pairwise(self._edges)):
            setting = ShardSetting(
                index=index,
                shape=(int(b - a), *plan.x0.shape[1:]),
                dtype=plan.x0.dtype.str,
                workers=plan.workers,
                max_delay=plan.max_delay,
                rule=plan.rule,
                parts=parts,
                balanced=self._balanced,
                aggregated=self._aggregated,
                average=plan.average,
                regularizer=bound,
                penalised=int(max(0, min(self._cluster.problem.p, b) - a)),
                folder=self._cluster.folder(),
                checkpoint_every=config.checkpoint_every,
                lease_seconds=config.lease_seconds,
                log_rows=plan.record_schedule,
            )
            handle = kind.options(
                name=actor_name("shard", index),
                namespace=self._cluster.namespace,
                num_cpus=0,
                max_restarts=-1,
                max_task_retries=0,
                scheduling_strategy="SPREAD",
            ).remote(setting)
            self._cluster.shards.append(handle)
        for shard in range(config.shards):
            self._begin(shard)
        self._states = [self._ask(handle, "state") for handle in self._shards]
        self._boots = [state["boot"] for state in self._states]
        self._tell_head("reopen", max(state["top"] for state in self._states))

    @property
    def _version(self) -> int:
        return int(self._states[0]["version"])

    def _look(self) -> dict[str, Any]:
        """Ask the head how things stand."""
        self._states[0] = self._state_of(0)
        return self._states[0]

    def _look_at_all(self) -> list[dict[str, Any]]:
        self._states = [self._state_of(shard) for shard in range(len(self._shards))]
        return self._states

    def _state_of(self, shard: int) -> dict[str, Any]:
        state: dict[str, Any] = self._ask(self._shards[shard], "state")
        if state["error"]:
            raise OSError(
                f"Ray: checkpoint_dir {self._cluster.folder()} cannot be written by shard {shard} ({state['error']}); make "
                "room, or name another folder"
            )
        if state["boot"] != self._boots[shard]:
            self._boots[shard] = state["boot"]
            self._shard_restarts += 1
            self._recover(shard)
            state = self._ask(self._shards[shard], "state")
        return state

    def _begin(self, shard: int) -> None:
        """Tell a new process of a shard what its constructor does not know."""
        start, stop = (int(edge) for edge in self._edges[shard : shard + 2])
        if self._desk.place is not None:
            self._ask(self._shards[shard], "attach", _DRIVER, self._desk.place, start, stop)
        if not self._from_zero:
            self._ask(self._shards[shard], "begin", self._plan.x0[start:stop])

    def _recover(self, shard: int) -> None:
        """Give a shard that was restarted what it lost, as far as anybody still has it."""
        self._begin(shard)
        tops = [self._ask(handle, "state")["top"] for handle in self._shards]
        known = max(*tops, *(ticket + 1 for ticket in self._crew.ask("last_ticket")))
        self._crew.ask("replay", shard)
        self._ask(self._shards[shard], "fill", known)
        if shard == 0:
            self._ask(self._shards[0], "reopen", known)
            self._ask(self._shards[0], "advance", self._target, False, self._rule)

    def _mend(self) -> None:
        """Look after shards that wait for updates which do not come, because their worker died on the way."""
        if len(self._shards) == 1:
            return
        states = self._look_at_all()
        tickets, now = states[0]["tickets"], time.monotonic()
        for shard, state in enumerate(states):
            version, since = self._stuck.get(shard, (-1, now))
            if state["version"] != version or version >= tickets:
                self._stuck[shard] = (state["version"], now)
            elif now - since > self._config.lease_seconds:
                self._crew.ask("replay", shard)
                self._ask(self._shards[shard], "fill", tickets)
                del self._stuck[shard]

    def _ask(self, handle: Any, method: str, *arguments: Any) -> Any:
        """Call a shard until it answers."""
        since = time.monotonic()
        while True:
            try:
                return self._ray.get(getattr(handle, method).remote(*arguments))
            except self._ray.exceptions.RayActorError as error:
                if time.monotonic() - since > self._config.patience:
                    raise ClusterError(f"Ray: a shard did not come back in {self._config.patience:g} s: {error}") from None
                time.sleep(0.1)
            except self._ray.exceptions.RayTaskError as error:
                raise cause_of(error) from None

    def _tell_head(self, method: str, *arguments: Any) -> None:
        self._ask(self._shards[0], method, *arguments)

    def _tell_all(self, method: str, arguments: list[tuple[Any, ...]]) -> None:
        for handle, own in zip(self._shards, arguments, strict=True):
            self._ask(handle, method, *own)

    def _collect(self) -> tuple[Array, Array]:
        """Return the parameter and the mean of all iterates, if asked for, until they are collected again."""
        desk = self._desk
        for handle, (a, b) in zip(self._shards, pairwise(self._edges), strict=True):
            own, mean = self._ask(handle, "collect", -1 if desk.place is None else desk.place.key)
            if own is not None:
                desk.x[a:b] = own
            if mean is not None:
                desk.message[a:b] = mean
        return desk.x, desk.message if self._plan.average else desk.message[:0]

    # The end.

    def _end(self, keeps: Folder | None) -> Outcome:
        plan = self._plan
        self._tell_head("finish")
        self._crew.wait(self._config.lease_seconds)
        self._tell_head("close")
        states = self._look_at_all()
        x, mean = self._collect()
        schedule = None
        if plan.record_schedule:
            log = self._ask(self._shards[0], "schedule")
            rows = np.stack([rows for _, _, rows in log]) if log else np.zeros((0, plan.batch_size), np.int64)
            schedule = Schedule([who for who, _, _ in log], [read for _, read, _ in log], rows, plan.max_delay)
        if keeps is not None:
            self._tell_all("rest", [()] * len(self._shards))
            keeps.remove()
        statistics = self._statistics()
        return Outcome(
            x.copy(), mean.copy(), self._version, self._clock.seconds, states[0]["delays"].copy(), schedule, statistics
        )

    def _statistics(self) -> ClusterStatistics:
        return ClusterStatistics.collect(
            self._states, self._began, self._clock.seconds, self._crew.restarts, self._crew.moves, self._shard_restarts
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
