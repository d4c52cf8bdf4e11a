"""The workers of a run, as its driver sees them: what they are told, and what becomes of those that die, or may move."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ClusterError
from ...steps import StepRule
from .cluster import Cluster, cause_of
from .refresher import RemoteRefresher
from .worker import Task

if TYPE_CHECKING:
    from .._plan import Plan

__all__ = ["Crew"]

Array = np.ndarray[Any, Any]

_MOVE_SECONDS = 1.0  # between two looks at whether there is room
_LEASES = 2.0  # that run out before a worker for which there are no CPUs goes on without


class Crew:
    """The workers.

    Parameters
    ----------
    cluster : Cluster
    plan : Plan
    edges : array
        Shard s owns rows ``edges[s]:edges[s + 1]`` of the parameter.

    Attributes
    ----------
    rule : StepRule
        What a worker that joins is to go by.
    restarts, moves : int
    """

    def __init__(self, cluster: Cluster, plan: Plan, edges: Array) -> None:
        self._cluster, self._plan, self._edges = cluster, plan, edges
        self._config, self._ray = cluster.config, cluster.ray
        self.rule = plan.rule
        self.restarts = self.moves = 0
        self._runs: dict[Any, int] = {}  # calls under way, and which worker each is of
        self._waiting: dict[int, float] = {}  # workers that are being restarted, since when
        self._looked = time.monotonic()

    def prepare(self) -> None:
        """Have everything compiled, by the first worker alone: the others find it on the disk, at least on its machine."""
        told = [self._told(worker) for worker in range(self._plan.workers)]
        first = self._cluster.call("prepare", told, restarted=self.again, only=[0])
        others = self._cluster.call("prepare", told, restarted=self.again, only=list(range(1, self._plan.workers)))
        self._pids = first + others

    def launch(self) -> None:
        """Let all of them go."""
        for worker in range(self._plan.workers):
            self._launch(worker)

    def tell(self, method: str, *arguments: Any) -> list[Any]:
        """Call all of them with the same arguments."""
        return self._cluster.call(method, [arguments] * self._plan.workers, restarted=self.again)

    def ask(self, method: str, *arguments: Any) -> list[Any]:
        """Ask those that answer soon."""
        refs = [getattr(handle, method).remote(*arguments) for handle in self._cluster.handles]
        ready, _ = self._ray.wait(refs, num_returns=len(refs), timeout=self._config.lease_seconds)
        answers = []
        for ref in ready:
            with contextlib.suppress(self._ray.exceptions.RayError):
                answers.append(self._ray.get(ref))
        return answers

    def tend(self) -> None:
        """Start workers again that died, let some move; raise what went wrong in one that did not die."""
        ended, _ = self._ray.wait(list(self._runs), num_returns=len(self._runs), timeout=0) if self._runs else ([], [])
        for call in ended:
            worker = self._runs.pop(call)
            try:
                self._ray.get(call)
            except self._ray.exceptions.RayActorError:
                self._waiting.setdefault(worker, time.monotonic())
            except self._ray.exceptions.RayTaskError as error:
                raise cause_of(error) from None
        looks = time.monotonic() - self._looked > _MOVE_SECONDS
        for worker, since in list(self._waiting.items()):
            launched, waited = worker in self._runs.values(), time.monotonic() - since
            if launched and self._is_up(worker):
                del self._waiting[worker]
            elif looks and waited > _LEASES * self._config.lease_seconds and self._cluster.seats.crowd(worker):
                continue
            elif waited > self._config.patience:
                raise ClusterError(
                    f"Ray: worker {worker} died and did not come back in {self._config.patience:g} s; "
                    f"{self._cluster.describe_resources()}"
                )
            elif not launched:
                self._launch(worker)
        if looks:
            self._looked = time.monotonic()
            moved = self._cluster.seats.move(lambda worker, handle: handle.prepare.remote(*self._told(worker)))
            if moved is not None:
                self._pids[moved[0]] = moved[1]
                self.moves += 1

    def wait(self, seconds: float) -> None:
        """Wait until all have returned, but not for longer than this."""
        if self._runs:
            self._ray.wait(list(self._runs), num_returns=len(self._runs), timeout=seconds)

    def again(self, worker: int) -> None:
        """Bring a worker that was restarted to where the others are."""
        with contextlib.suppress(self._ray.exceptions.RayActorError, self._ray.exceptions.GetTimeoutError):
            handle, seconds = self._cluster.handles[worker], self._config.start_seconds
            self._ray.get(handle.prepare.remote(*self._told(worker)), timeout=seconds)
            snapshot = self._snapshot()
            if snapshot is not None:
                self._ray.get(handle.snapshot.remote(snapshot[0]), timeout=seconds)

    # Inside.

    def _told(self, worker: int) -> tuple[Task, tuple[Any, ...]]:
        """Return what a worker has to know, also after a restart."""
        plan, cluster, config = self._plan, self._cluster, self._config
        task = Task(
            algorithm=plan.algorithm,
            rule=plan.rule,
            rows=plan.rows,
            first_row=int(cluster.bounds[worker]),
            blocks=plan.blocks,
            batch_size=plan.batch_size,
            neighbours=plan.neighbours,
            max_iter=plan.max_iter,
            entropy=plan.seed.entropy,
            spawn_key=tuple(plan.seed.spawn_key),
            shape=plan.x0.shape,
            dtype=plan.x0.dtype.str,
            bounds=self._edges,
            namespace=cluster.namespace,
            replay_bytes=config.replay_bytes,
            lease_seconds=config.lease_seconds,
            patience=config.patience,
            log_rows=plan.record_schedule,
        )
        return task, cluster.loads[worker]

    def _snapshot(self) -> tuple[Array, Array, StepRule] | None:
        refresh = self._plan.refresh
        if not isinstance(refresh, RemoteRefresher) or refresh.point is None:
            return None
        return refresh.point, refresh.mean, self.rule

    def _launch(self, worker: int) -> None:
        task, load = self._told(worker)
        self._runs[self._cluster.handles[worker].run.remote(task, self._snapshot(), load)] = worker

    def _is_up(self, worker: int) -> bool:
        """Tell whether a worker answers, and count it if it is another process than before."""
        with contextlib.suppress(self._ray.exceptions.RayActorError, self._ray.exceptions.GetTimeoutError):
            pid = self._ray.get(self._cluster.handles[worker].pid.remote(), timeout=0.05)
            self.restarts += pid != self._pids[worker]
            self._pids[worker] = pid
            return True
        return False
