r"""Where an epoch of a variance-reduced run ends: at its last point, or near the mean of the points of its second half.

Steps are of constant length, so that the last point is off by chance, by as much as mini-batches differ; in the mean that
cancels. Where columns are correlated points are still on their way, and the last one is the best. Both happen, so both are
compared, on a sample S of rows, with what is known of the snapshot s:

.. math:: F(a) - F(b) \approx \frac1m \sum_{i \in S} \bigl[f_i(a) - f_i(b) - \langle \nabla f_i(s), a - b\rangle\bigr]
   + \langle \nabla f(s), a - b\rangle + h(a) - h(b).

What the sample gets wrong is of second order, as in the gradients of the run: the closer the points, the less it is. A mean is
not exactly sparse, grouped or fused. So it takes one more step, with the sample as its mini-batch, to a point that is.

References
----------
Xiao, Zhang: A proximal stochastic gradient method with progressive variance reduction, SIAM J. Optim. 2014, whose snapshots are
means of epochs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import rows as _rows
from ._jit import run
from .problem import loss_slopes, mean_loss

if TYPE_CHECKING:
    from .problem import Problem

__all__ = ["Ends"]

Array = np.ndarray[Any, Any]

_ROWS, _FEWEST = 1024, 64  # of the sample: as many as cost little next to a pass,
_SHARE = 16  # and one of so many
_ENTRIES = 1 << 22
_TOGETHER = 16  # rows next to each other, which are read faster


class Ends:
    """Finds the better one of two points from which a run may go on after an epoch."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        count = min(max(min(_ENTRIES // problem.p, problem.n // _SHARE, _ROWS), _FEWEST), problem.n)
        size = _TOGETHER if count < problem.n else count
        stream = np.random.default_rng(0)
        places = np.sort(stream.choice(-(-problem.n // size), max(1, count // size), replace=False)) * size
        pieces = [slice(int(start), int(min(start + size, problem.n))) for start in places]
        self._rows = _rows.stack([_rows.part(problem._by_rows, piece) for piece in pieces])
        self._index = np.concatenate([np.arange(piece.start, piece.stop) for piece in pieces])
        self._targets, self._weights = problem._targets[self._index], problem._weights[self._index]

    def choose(self, last: Array, mean: Array, step: float, slopes: Array, gradient: Array) -> Array | None:
        """Return where a step from the mean leads, if that seems to be better than the last point.

        ``slopes`` are those of all rows at the snapshot, times their weights; ``gradient`` is the mean of the rows' gradients.
        """
        slopes = slopes[self._index]
        of_last, of_mean = self._predict(last), self._predict(mean)
        stepped = self._step(mean, of_mean, slopes, gradient, step)
        of_stepped = self._predict(stepped)
        gain = self._loss(of_last) - self._loss(of_stepped)
        gain -= float(np.vdot(slopes.astype(np.float64), of_last - of_stepped)) / len(slopes)
        move = (last - stepped).astype(np.float64)
        gain += float(np.vdot(gradient.astype(np.float64), move))
        problem = self._problem
        gain += problem.l2 * float(np.vdot(move[: problem.p], (last + stepped)[: problem.p]))
        gain += problem.penalty(last) - problem.penalty(stepped)
        return stepped if gain > 0.0 else None

    def _step(self, x: Array, predictions: Array, slopes: Array, gradient: Array, step: float) -> Array:
        """Return where a variance-reduced step leads, with the whole sample as its mini-batch."""
        problem, new = self._problem, np.empty_like(predictions)
        run(loss_slopes, problem.loss, predictions, self._targets, self._weights, len(new), new)
        new -= slopes / problem.dtype.type(len(slopes))
        estimate = _rows.transpose_times(self._rows, new.reshape(len(new), *problem.shape[1:])) + gradient
        estimate[: problem.p] += 2.0 * problem.l2 * x[: problem.p]
        return problem.packed_prox((x - problem.dtype.type(step) * estimate).astype(problem.dtype), step)

    def _loss(self, predictions: Array) -> float:
        return float(run(mean_loss, self._problem.loss, predictions, self._targets, self._weights))

    def _predict(self, x: Array) -> Array:
        return np.ascontiguousarray(_rows.predict(self._rows, x).reshape(len(self._index), -1))
