"""Snapshots for variance reduction that are taken by the workers, each on its own rows."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ...snapshots import Refresher

if TYPE_CHECKING:
    from ...problem import Problem
    from .cluster import Cluster

__all__ = ["RemoteRefresher"]

Array = np.ndarray[Any, Any]


class RemoteRefresher(Refresher):
    """Takes snapshots by the workers, each on its own rows."""

    def __init__(self, problem: Problem, cluster: Cluster, careful: bool) -> None:
        super().__init__(problem, 1, careful)
        self._cluster = cluster
        self.restarted: Callable[[int], None] | None = None  # what brings a worker that died meanwhile to where the others are

    def take_sum(self, x: Array) -> Array:
        """Return the sum of all rows' gradients at x."""
        cluster = self._cluster
        total = np.zeros(self.mean.shape, np.float64)
        bounds = pairwise(cluster.bounds)
        taken = cluster.call("snapshot", [(x,)] * cluster.workers, restarted=self.restarted)
        for (a, b), (own, predictions) in zip(bounds, taken, strict=True):
            total += own
            self._predictions[a:b] = predictions
        return total

    @property
    def point(self) -> Array | None:
        """Where the last snapshot was taken."""
        return self._x
