"""What a run on a cluster counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["ClusterStatistics"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class ClusterStatistics:
    """What happened on a cluster; ``result.statistics`` of a run with ``dapsgd.Ray``.

    Attributes
    ----------
    pushed, applied, fenced : int
        Messages that workers sent. Each was applied, by every shard, or fenced: refused, because its worker had been taken
        for dead, or the run was over. So ``pushed == applied + fenced``.
    repeated : int
        Messages that came a second time, and were left alone.
    undone : int
        Updates before which the run went back to a checkpoint, because nobody had one of them any more. They are not among
        those above.
    shares : array
        The updates of each worker, as parts of all.
    updates_per_second, bytes_per_second : float
        Bytes are those of updates and parameters, in both directions, over all shards.
    worker_restarts, shard_restarts : int
    worker_moves : int
        Workers that went on elsewhere, because a machine had joined.
    checkpoints : int
        Of the whole parameter.
    """

    pushed: int
    applied: int
    fenced: int
    repeated: int
    undone: int
    shares: Array
    updates_per_second: float
    bytes_per_second: float
    worker_restarts: int
    shard_restarts: int
    checkpoints: int
    worker_moves: int

    @classmethod
    def collect(
        cls,
        states: list[dict[str, Any]],
        done: int,
        seconds: float,
        worker_restarts: int,
        worker_moves: int,
        shard_restarts: int,
        undone: int,
    ) -> ClusterStatistics:
        """Put together what the shards have counted; the first is the head. ``done`` updates were there at the start."""
        head = states[0]
        updates = np.array(head["updates"], dtype=np.float64)
        seconds = max(seconds, 1e-9)
        return cls(
            pushed=head["pushed"],
            applied=min(state["applied"] for state in states),
            fenced=head["refused"],
            repeated=sum(state["repeated"] for state in states),
            undone=undone,
            shares=updates / max(updates.sum(), 1.0),
            updates_per_second=(head["version"] - done) / seconds,
            bytes_per_second=sum(state["bytes"] for state in states) / seconds,
            worker_restarts=worker_restarts,
            shard_restarts=shard_restarts,
            checkpoints=min(state["checkpoints"] for state in states),
            worker_moves=worker_moves,
        )

    @property
    def brief(self) -> str:
        """What a progress line shows."""
        text = f"{self.updates_per_second:.3g} updates/s, {self.bytes_per_second / 1e6:.3g} MB/s"
        if len(self.shares) > 1:
            text += f", shares {self.shares.min():.0%}-{self.shares.max():.0%}"
        restarts = self.worker_restarts + self.shard_restarts
        text += f", {restarts} restarts" if restarts else ""
        return text + (f", {self.worker_moves} moves" if self.worker_moves else "")
