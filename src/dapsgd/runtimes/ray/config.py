"""``Ray(...)``: how to run on a cluster."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..._calls import has_trait
from ..._checks import non_negative, positive, positive_integer
from ..._team import available_cores
from ...algorithms import ALGORITHMS
from ...updates import Aggregated, Coupled

if TYPE_CHECKING:
    from ...problem import Problem
    from .cluster import Cluster

__all__ = ["Ray"]


class Ray:
    """Run on a cluster: the paper's parameter server, with as many masters as asked for.

    The parameter is cut into shards, each owned by an actor that only adds; every worker is an actor with a share of the
    rows. Workers and shards may die: they are restarted and the run goes on. See the guide ``docs/cluster.md``.

    Parameters
    ----------
    address : str, optional
        ``"auto"`` or ``"host:port"`` joins a cluster and leaves it running. By default a private Ray is started on this
        machine, and stopped afterwards; one that this process has started before is used as it is.
    shards : int, default 1
        Into how many slices the parameter is cut.
    workers : int, optional
        By default ``workers`` of :func:`dapsgd.solve`, or as many as there are CPUs for. With more, some run without CPUs of
        their own until machines join.
    cpus_per_worker : float, default 1
        What each worker reserves. Shards reserve none.
    blocks : int, optional
        With ``"dave-rpg"``: into how many blocks a worker cuts its rows, one step for each, before it sends a message. By
        default as many as pay.
    checkpoint_dir : path, optional
        A folder that all machines see. With it the whole run can be killed, driver included, and the same call goes on
        from there. Without it checkpoints live in a temporary folder, for shards that are restarted on the same machine.
    checkpoint_every : float, default 5.0
        Seconds between two checkpoints.
    lease_seconds : float, default 5.0
        A worker that gives no sign of life for so long is no longer waited for.
    replay_bytes : int, default 64 MB
        Of updates that a worker keeps until they are in a checkpoint, for a shard that is restarted.
    patience : float, default 300.0
        Seconds to wait for an actor to be restarted, as long as the cluster has no room for it.
    start_seconds : float, default 120.0
        Seconds to wait for a private Ray to start, and then for the workers.

    Examples
    --------
    >>> import dapsgd as ds
    >>> ds.Ray(shards=2, workers=4)
    Ray(shards=2, workers=4)
    """

    def __init__(
        self,
        address: str | None = None,
        shards: int = 1,
        workers: int | None = None,
        cpus_per_worker: float = 1,
        *,
        blocks: int | None = None,
        checkpoint_dir: Any = None,
        checkpoint_every: float = 5.0,
        lease_seconds: float = 5.0,
        replay_bytes: int = 1 << 26,
        patience: float = 300.0,
        start_seconds: float = 120.0,
    ) -> None:
        if address is not None and (not isinstance(address, str) or "://" in address or not address):
            raise ValueError(f"Ray: address must be None, 'auto' or 'host:port'; got {address!r}")
        self.address = address
        self.shards = positive_integer("Ray: shards", shards)
        self.workers = None if workers is None else positive_integer("Ray: workers", workers)
        self.cpus_per_worker = non_negative("Ray: cpus_per_worker", cpus_per_worker)
        self.blocks = None if blocks is None else positive_integer("Ray: blocks", blocks)
        self.checkpoint_dir = None if checkpoint_dir is None else _path(checkpoint_dir)
        self.checkpoint_every = positive("Ray: checkpoint_every", checkpoint_every)
        self.lease_seconds = positive("Ray: lease_seconds", lease_seconds)
        self.replay_bytes = positive_integer("Ray: replay_bytes", replay_bytes)
        self.patience = positive("Ray: patience", patience)
        self.start_seconds = positive("Ray: start_seconds", start_seconds)

    @contextmanager
    def open(self, problem: Problem, workers: int | None) -> Iterator[Cluster]:
        """Start or join the cluster, and place the rows; everything has ended when the block has."""
        from . import cluster
        from .partitions import place_files

        if workers is not None and self.workers is not None and workers != self.workers:
            raise ValueError(f"workers must be given once; got {workers}, and {self.workers} in Ray(...)")
        wanted = self.workers if workers is None else positive_integer("workers", workers)
        if problem.partitions is None:
            problem.check_shards(self.shards)
        cores = wanted if wanted is not None else available_cores()
        store = 0 if problem.partitions is not None else problem.bytes
        with cluster.connect(self, cores * max(self.cpus_per_worker, 1.0), 2 * store) as ray:
            if wanted is None:
                wanted = max(1, int(ray.cluster_resources().get("CPU", 1.0) / max(self.cpus_per_worker, 1.0)))
            if problem.partitions is not None:
                made, alive = place_files(self, ray, problem, wanted, fixed=self.workers is not None or workers is not None)
            else:
                made, alive = cluster.place(self, ray, problem, min(wanted, problem.n) if workers is None else wanted)
            try:
                made.start()
                made.prepare()
                yield made
            finally:
                made.close()
                del alive

    def check(self, name: str, problem: Problem, record_schedule: bool, checkpoint: Any) -> None:
        """Raise if an algorithm cannot run here."""
        if checkpoint is not None:
            raise ValueError("checkpoint must be None with Ray, whose shards write their own: Ray(checkpoint_dir=...)")
        if name == "auto":
            return
        spec = ALGORITHMS[name]
        if spec.estimator is None or spec.serial:
            raise ValueError(
                f"algorithm {name!r} runs in the calling thread: runtime must be 'serial' or 'threads'; got {self!r}"
            )
        if record_schedule and (self.shards > 1 or spec.update is Aggregated):
            raise ValueError("record_schedule must be False with Ray, except with one shard and an algorithm of mini-batches")
        if problem.partitions is None:
            self.check_coupled(name, problem)

    def check_coupled(self, name: str, problem: Problem) -> None:
        """Raise if one machine must have the whole parameter, but has not."""
        coupled = ALGORITHMS[name].update is Coupled and not has_trait(type(problem._bound), "elementwise")
        if coupled and self.shards > 1:
            raise ValueError(
                f"Ray: shards must be 1 for algorithm {name!r} with {type(problem.regularizer).__name__}: there the master "
                f"runs the prox, which couples coordinates, so one machine must have them all; got {self.shards}. With "
                "'dap-sgd', 'dap-svrg' or 'dave-rpg' the workers run it"
            )

    def __repr__(self) -> str:
        options = inspect.signature(Ray).parameters.values()
        changed = [(o.name, getattr(self, o.name)) for o in options if getattr(self, o.name) != o.default]
        return f"Ray({', '.join(f'{name}={value!r}' for name, value in changed)})"


def _path(value: Any) -> str:
    try:
        return os.path.abspath(os.fspath(value))
    except TypeError:
        raise TypeError(f"Ray: checkpoint_dir must be the name of a folder; got {value!r}") from None
