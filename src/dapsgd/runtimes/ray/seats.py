"""The processes of the workers: which of them have CPUs of their own, and who moves when machines join or leave.

There are as many workers as shares of the rows, from the first update to the last. Where the cluster has CPUs for fewer of
them, the others run without, beside the rest; as soon as there is room, one after the other moves there. The new process gets
ready before the old one ends, and then joins like one that was restarted.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .link import actor_name
from .worker import Worker

if TYPE_CHECKING:
    from .config import Ray

__all__ = ["Seats"]

_ROOM_SECONDS = 3.0  # until a run that has ended has given back its CPUs


class Seats:
    """The worker processes of one run.

    Parameters
    ----------
    ray : module
    config : Ray
    namespace : str
        Of the run's actors.
    count : int
        Of the workers.
    """

    def __init__(self, ray: Any, config: Ray, namespace: str, count: int) -> None:
        self._ray, self._config, self._namespace, self._count = ray, config, namespace, count
        self.handles: list[Any] = []
        self.made: list[Any] = []  # all processes that there ever were
        self.crowded: set[int] = set()  # workers without CPUs of their own
        self._coming: tuple[int, Any, Any] | None = None  # who is about to move, the new process, and the call it is at

    def start(self) -> None:
        """Make the workers; the first waits for a CPU, whatever happens."""
        end = time.monotonic() + _ROOM_SECONDS
        while (room := self._room(self._ray.available_resources())) < self._count and time.monotonic() < end:
            if self._room(self._ray.cluster_resources()) < self._count:
                break
            time.sleep(0.05)
        self.crowded = set(range(max(1, int(min(room, self._count))), self._count))
        self.handles = [self._make(worker, worker in self.crowded) for worker in range(self._count)]

    def move(self, begin: Callable[[int, Any], Any]) -> tuple[int, Any] | None:
        """Go on with moving workers to CPUs of their own; return who has moved by now, and what ``begin`` came to.

        ``begin`` has a new process get ready, and returns the call.
        """
        if self._coming is None:
            if self.crowded and self._room(self._ray.available_resources()) >= 1:
                worker = min(self.crowded)
                handle = self._make(worker, crowded=False)
                self._coming = worker, handle, begin(worker, handle)
            return None
        worker, handle, call = self._coming
        if not self._ray.wait([call], timeout=0)[0]:
            return None
        self._coming = None
        try:
            answer = self._ray.get(call)
        except self._ray.exceptions.RayError:  # it left again
            self._end(handle)
            return None
        self._replace(worker, handle)
        self.crowded.discard(worker)
        return worker, answer

    def crowd(self, worker: int) -> bool:
        """Let a worker that has waited long go on without CPUs of its own, if there are none; return whether it does."""
        if worker in self.crowded or self._room(self._ray.available_resources()) >= 1:
            return False
        self._replace(worker, self._make(worker, crowded=True))
        self.crowded.add(worker)
        return True

    def _make(self, worker: int, crowded: bool) -> Any:
        handle = (
            self._ray.remote(Worker)
            .options(
                name=f"{actor_name('worker', worker)}.{len(self.made)}",
                namespace=self._namespace,
                num_cpus=0 if crowded else self._config.cpus_per_worker,
                max_restarts=-1,
                max_task_retries=0,
                max_concurrency=4,
                scheduling_strategy="SPREAD",
            )
            .remote(worker)
        )
        self.made.append(handle)
        return handle

    def _replace(self, worker: int, handle: Any) -> None:
        before, self.handles[worker] = self.handles[worker], handle
        self._end(before)

    def _end(self, handle: Any) -> None:
        with contextlib.suppress(Exception):
            self._ray.kill(handle, no_restart=True)

    def _room(self, resources: dict[str, float]) -> float:
        """Return for how many workers there are CPUs."""
        each = self._config.cpus_per_worker
        return math.inf if each == 0 else resources.get("CPU", 0.0) // each
