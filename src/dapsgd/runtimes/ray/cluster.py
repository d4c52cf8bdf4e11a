"""The cluster as the driver sees it: Ray itself, the workers with their rows, and calls to them that survive their deaths."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import socket
import tempfile
import time
import traceback
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ClusterError
from ...problem import Problem
from ...shares import cut
from .seats import Seats

if TYPE_CHECKING:
    from ...snapshots import Refresher
    from .._plan import Monitor, Outcome, Plan
    from .config import Ray

__all__ = ["Cluster", "connect", "import_ray", "on_loopback"]

Array = np.ndarray[Any, Any]

_STORE = 200_000_000  # bytes of shared memory of a private Ray, next to those of the data and of messages
_CONNECT_SECONDS = 5.0
_ANSWER_SECONDS = 15.0
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])  # how HTTP/2, on which Ray speaks, begins
_SETTINGS = 4  # the kind of frame that answers it
_BLOCK_ROWS = 64  # at least, so that the prox does not cost more than the gradient
_ROWS_A_COLUMN = 2  # at least: a block with fewer is so much rougher than the whole that its step loses what it gains
_BLOCKS = 16
_MEMORY = 1 << 28  # bytes for the points that a worker keeps


def import_ray() -> Any:
    """Import Ray, or say how to get it."""
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # Ray's coming default; it warns of the change otherwise
    try:
        import ray
        import ray.exceptions
    except ImportError:
        raise ImportError("the Ray runtime needs Ray: pip install 'dapsgd[ray]'") from None
    return ray


@contextmanager
def connect(config: Ray, cpus: float, store: int) -> Iterator[Any]:
    """Join the cluster, or start a private one, and leave things as they were afterwards."""
    ray = import_ray()
    if ray.is_initialized():  # by the user: it is theirs, and there can be only one
        yield ray
        return
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    if config.address is None:
        _start(
            ray,
            config.start_seconds,
            num_cpus=max(1, round(cpus)),
            include_dashboard=False,
            _node_ip_address="127.0.0.1",
            object_store_memory=_STORE + store,
            **quiet,
        )
    else:
        _check_address(config.address)
        try:
            ray.init(address=config.address, **quiet)
        except (ConnectionError, RuntimeError, ValueError) as error:
            said = " ".join(str(error).split())[:300]
            raise ClusterError(f"Ray: there is no cluster to join at address {config.address!r}: {said}") from None
    try:
        yield ray
    finally:
        ray.shutdown()


@contextmanager
def on_loopback(ray: Any) -> Iterator[None]:
    """Let a Ray that is started now, and all its processes, listen on the loopback interface only.

    Given 127.0.0.1 as its address, Ray takes that of the machine and listens to everybody, except where it supports no
    clusters. This says that here it supports none: to this process, if Ray is imported already, and to those it starts.
    """
    constants, name = getattr(ray._private, "ray_constants", SimpleNamespace()), "ENABLE_RAY_CLUSTER"
    variable = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
    known, said = getattr(constants, name, True), os.environ.get(variable)
    setattr(constants, name, False)
    os.environ[variable] = "0"
    try:
        yield
    finally:
        setattr(constants, name, known)
        if said is None:
            del os.environ[variable]
        else:
            os.environ[variable] = said


def _start(ray: Any, seconds: float, **options: Any) -> None:
    """Start a private Ray; again, for so long, where the machine is so busy that Ray gives up on its own helpers."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")  # by default Ray's workers give way to everybody else's programs
    end = time.monotonic() + seconds
    while True:
        try:
            with on_loopback(ray):
                ray.init(address="local", **options)
            address = ray.util.get_node_ip_address()
            if address not in ("127.0.0.1", "::1"):
                warnings.warn(f"this version of Ray listens on {address}, not on the loopback interface only", stacklevel=2)
            return
        except Exception as error:  # Ray has no class of its own for a start that took too long
            _end_what_began(ray, error)
            said = " ".join(str(error).split())[:300]
            if "timed out" not in said or time.monotonic() > end:
                raise ClusterError(f"Ray: a private Ray did not start, perhaps because the machine is busy: {said}") from error


def _end_what_began(ray: Any, error: BaseException) -> None:
    """End the processes of a Ray that did not start: it forgets about them, but where it failed they are still known."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        node: Any = frame.f_locals.get("self")
        if hasattr(node, "kill_all_processes"):
            with contextlib.suppress(Exception):
                node.kill_all_processes(check_alive=False, allow_graceful=True)
    ray.shutdown()


def _check_address(address: str) -> None:
    """Raise unless somebody listens at an address and answers as Ray would: Ray itself takes minutes to give up."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS) as line:
            if os.environ.get("RAY_USE_TLS", "0") == "0":
                line.settimeout(_ANSWER_SECONDS)
                line.sendall(_HELLO)
                with line.makefile("rb") as answer:
                    frame = answer.read(4)  # three bytes of length, and the kind
                if len(frame) < 4 or frame[3] != _SETTINGS:
                    raise OSError("whoever listens there is no Ray")
    except (OSError, ValueError, OverflowError) as error:
        raise ClusterError(
            f"Ray: address {address!r} cannot be reached ({error}); it must be 'auto', or host:port as 'ray start --head' says"
        ) from None


class Cluster:
    """The workers of one run, placed with their rows; a runtime for the rest of :func:`dapsgd.solve`.

    Parameters
    ----------
    config : Ray
    ray : module
    loads : list of tuples
        For each worker the name of its method that gets its rows, and what to call it with.
    """

    def __init__(self, config: Ray, ray: Any, loads: list[tuple[Any, ...]]) -> None:
        self.config, self.ray = config, ray
        self.namespace = f"dapsgd-{uuid.uuid4().hex[:12]}"
        self.workers = len(loads)
        self.seats = Seats(ray, config, self.namespace, self.workers)
        self.shards: list[Any] = []
        self.problem: Problem
        self.bounds: Array  # worker w has rows bounds[w]:bounds[w + 1]
        self.loads = loads
        self._closed = False
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    def start(self) -> None:
        """Make the workers."""
        self.seats.start()

    @property
    def handles(self) -> list[Any]:
        """The workers."""
        return self.seats.handles

    def prepare(self) -> None:
        """Have everything ready for :attr:`problem`."""
        self.load()

    def load(self) -> list[dict[str, Any]]:
        """Have the workers get their rows; return what they say about them."""
        arguments = [load[1:] for load in self.loads]
        return self.call(self.loads[0][0], arguments, timeout=self.config.start_seconds, restarted=lambda _: None)

    def call(
        self,
        method: str,
        arguments: Sequence[tuple[Any, ...]] | None = None,
        timeout: float | None = None,
        restarted: Callable[[int], None] | None = None,
        only: list[int] | None = None,
    ) -> list[Any]:
        """Call all workers at once, or only some; one that died is called again, after ``restarted`` tells it things."""
        if self._closed:
            raise ClusterError("Ray: the run is over, and its workers have ended; evaluate such things while it runs")
        arguments = [()] * self.workers if arguments is None else arguments
        results: dict[int, Any] = {}
        asked = list(range(self.workers)) if only is None else only
        todo, began = asked, time.monotonic()
        timeout = self.config.patience if timeout is None else timeout
        while todo:
            refs = [getattr(self.handles[k], method).remote(*arguments[k]) for k in todo]
            failed = []
            for k, ref in zip(todo, refs, strict=True):
                try:
                    results[k] = self.ray.get(ref, timeout=max(0.1, timeout - (time.monotonic() - began)))
                except self.ray.exceptions.GetTimeoutError:
                    raise ClusterError(
                        f"Ray: worker {k} did not answer within {timeout:g} s; {self.describe_resources()}"
                    ) from None
                except self.ray.exceptions.RayActorError as error:
                    if time.monotonic() - began > timeout:
                        raise ClusterError(f"Ray: worker {k} died and did not come back in {timeout:g} s: {error}") from None
                    failed.append(k)
                except self.ray.exceptions.RayTaskError as error:
                    raise cause_of(error) from None
            todo = failed
            if todo:
                time.sleep(0.2)
                for k in todo:
                    (self.revive if restarted is None else restarted)(k)
        return [results[k] for k in asked]

    def revive(self, worker: int) -> None:
        """Have a worker that was restarted get its rows again."""
        with contextlib.suppress(self.ray.exceptions.RayActorError, self.ray.exceptions.GetTimeoutError):
            name, *arguments = self.loads[worker]
            self.ray.get(getattr(self.handles[worker], name).remote(*arguments), timeout=self.config.start_seconds)

    def describe_resources(self) -> str:
        """Say what the cluster has."""
        has = self.ray.cluster_resources().get("CPU", 0.0)
        needs = self.workers * self.config.cpus_per_worker
        return f"the cluster has {has:g} CPUs, and {self.workers} workers need {needs:g}; ask for fewer workers, or add nodes"

    def refresher(self, careful: bool) -> Refresher:
        """Return what takes snapshots for variance reduction."""
        from .refresher import RemoteRefresher

        return RemoteRefresher(self.problem, self, careful)

    def pick_blocks(self, problem: Problem) -> int:
        """Return into how many blocks a worker cuts its rows: one step for each, and a point to be kept."""
        if self.config.blocks is not None:
            return self.config.blocks
        if not math.isfinite(float(getattr(problem.loss, "curvature", math.inf))):
            return 1  # how much rougher a block is than the whole is not known
        size = int(np.prod(problem.packed_shape))
        rows = int(np.diff(self.bounds).min())
        fewest = max(_BLOCK_ROWS, _ROWS_A_COLUMN * problem.p)
        return max(1, min(rows // fewest, _BLOCKS, _MEMORY // (size * problem.dtype.itemsize)))

    def folder(self) -> str:
        """Return where shards write checkpoints: a temporary folder unless the user named one."""
        if self.config.checkpoint_dir is not None:
            return self.config.checkpoint_dir
        if self._temporary is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="dapsgd-", ignore_cleanup_errors=True)
        return self._temporary.name

    def run(self, plan: Plan, monitor: Monitor) -> Outcome:
        """Run the plan to its end, or until the monitor says stop."""
        from .drive import Drive

        return Drive(self, plan, monitor).run()

    def close(self) -> None:
        """End every actor of this run."""
        self._closed = True
        for actor in [*self.seats.made, *self.shards]:
            with contextlib.suppress(Exception):
                self.ray.kill(actor, no_restart=True)
        if self._temporary is not None:
            self._temporary.cleanup()

    def __repr__(self) -> str:
        return repr(self.config)


def cause_of(error: Any) -> BaseException:
    """Return what was raised in an actor, without the pages about where."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, BaseException) else ClusterError(str(error))


class Share:
    """A worker's rows of a problem in the driver's memory, by way of the object store."""

    def __init__(self, reference: Any) -> None:
        self._reference = reference

    def __call__(self) -> Problem:
        """Return the problem with these rows; the data itself is not copied."""
        import ray

        problem: Problem = ray.get(self._reference)
        problem._targets, problem._weights = problem._targets.copy(), problem._weights.copy()
        return problem


def place(config: Ray, ray: Any, problem: Problem, workers: int) -> tuple[Cluster, list[Any]]:
    """Cut a problem in memory into shares, and give one to each worker; return also what must stay alive."""
    bounds = cut(problem.n, workers)
    references = [ray.put(problem.part(slice(int(a), int(b)))) for a, b in itertools.pairwise(bounds)]
    cluster = Cluster(config, ray, [("load", Share(reference)) for reference in references])
    cluster.problem, cluster.bounds = problem, bounds
    return cluster, references
