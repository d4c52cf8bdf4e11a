"""Snapshots: where a variance-reduced run computes its full gradient, and how often."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import rows as _rows
from ._jit import compiled
from .problem import Problem, loss_slopes
from .runtimes._team import Team

__all__ = ["Refresher", "epoch_length"]

Array = np.ndarray[Any, Any]

_BLOCK_BYTES = 1 << 20  # rows that are looked at twice, for predictions and for the gradient, while they are in the cache
_PASSES = 2.0  # over the rows between two snapshots


def epoch_length(n: int, batch_size: int) -> int:
    """Return the number of updates between two snapshots: about two passes over the rows."""
    return max(1, round(_PASSES * n / batch_size))


class Refresher:
    """Computes slopes and full gradient at a snapshot, by several threads, and writes them where the estimator reads them.

    Rows are cut into the same blocks whatever the number of threads, and added in the same order, so that the result does
    not depend on it. No worker may run meanwhile.
    """

    def __init__(self, problem: Problem, workers: int) -> None:
        self._problem = problem
        self._workers = workers
        self.at_snapshot = np.zeros_like(problem._targets)
        self.mean = np.zeros(problem.packed_shape, problem.dtype)
        width = max(1, (problem.p + 1) * problem.dtype.itemsize)
        size = max(64, _BLOCK_BYTES // width, -(-problem.n // 256))
        self._blocks = [slice(start, min(start + size, problem.n)) for start in range(0, problem.n, size)]
        block = self._blocks[0]
        arguments = problem._targets[block], problem._targets[block], problem._weights[block], self.at_snapshot[block]
        self._slopes = compiled(loss_slopes, problem.loss, *arguments)

    def __call__(self, x: Array) -> None:
        """Take a snapshot at a packed parameter."""
        parts: list[Any] = [None] * len(self._blocks)
        todo = iter(range(len(self._blocks)))  # next() on it is one step of the interpreter: no two threads get the same

        def help_out() -> None:
            for k in todo:
                parts[k] = self._gradient(self._blocks[k], x)

        helpers = min(self._workers, len(self._blocks)) - 1
        with Team(helpers) as team:
            for who in range(helpers):
                team.assign(who, help_out)
            help_out()
            team.finish()
        total = np.zeros(self.mean.shape, np.float64)
        for part in parts:
            total += part
        np.divide(total, self._problem.n, out=total)
        self.mean[...] = total

    def _gradient(self, block: slice, x: Array) -> Array:
        """Write the slopes of a block of rows, and return the sum of their gradients."""
        problem = self._problem
        rows = _rows.part(problem._rows, block)
        predictions = np.ascontiguousarray(_rows.predict(rows, x).reshape(block.stop - block.start, -1))
        slopes = self.at_snapshot[block]
        self._slopes(problem.loss, predictions, problem._targets[block], problem._weights[block], slopes)
        slopes *= problem.dtype.type(len(slopes))  # loss_slopes divides by the number of rows it sees
        return _rows.transpose_times(rows, slopes.reshape(len(slopes), *problem.shape[1:]))
