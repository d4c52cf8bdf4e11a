"""Gradient estimates: how grad f is found from a few rows.

An estimator is a NamedTuple with one method, ``estimate(x, batch, keep, scale, buffers, out)``, which writes
``keep * x + scale * g(x)`` to ``out``, g the estimate. (A worker of TAP-SGD wants g itself; one of DAP-SGD wants
``x - eta*g``. Asking for a combination saves a pass over the parameter.) It returns whether g is finite.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ._jit import by_class, kernel
from ._loops import fill

__all__ = ["MiniBatch", "Share", "Snapshot", "loss_gradient", "slopes_of_losses", "sum_of_losses"]

Array = np.ndarray[Any, Any]


class MiniBatch(NamedTuple):
    """The mean gradient of a few rows: an unbiased estimate, whose variance the step-size must tame.

    The paper's Equations (2), (3) and (8) with a mini-batch in place of the single sample; l2 is inside f.
    """

    rows: Any
    loss: Any
    targets: Array  # (n, q)
    weights: Array  # (n,)
    l2: float

    def estimate(self, x: Array, batch: Array, keep: float, scale: float, buffers: Any, out: Array) -> bool:
        """Write ``keep * x + scale * (mean over the batch of grad f_i(x))`` to ``out``."""
        slopes = buffers.slopes
        finite = True
        for b in range(batch.size):
            i = batch[b]
            self.rows.dot(i, x, buffers.predictions)
            loss_gradient(self.loss, buffers.predictions, self.targets[i], slopes)
            weight = x.dtype.type(scale * self.weights[i] / batch.size)
            for k in range(slopes.size):
                if not np.isfinite(slopes[k]):
                    finite = False
                slopes[k] *= weight
            if b == 0:
                self.rows.combine(i, keep + 2.0 * self.l2 * scale, keep, x, slopes, out)
            else:
                self.rows.add(i, slopes, out)
        return finite


class Snapshot(NamedTuple):
    r"""A variance-reduced estimate: exact in the mean, and ever more exact as x approaches the snapshot s.

    :math:`\nabla f_B(x) - \nabla f_B(s) + \nabla f(s)` for the rows B of a mini-batch. Of the rows' gradients at the snapshot
    only the slopes are kept, one number a row and target. The arrays are filled in place by :class:`Refresher`.

    References
    ----------
    Johnson, Zhang: Accelerating stochastic gradient descent using predictive variance reduction, NeurIPS 2013.
    Huo, Gu, Huang: Decoupled asynchronous proximal stochastic gradient descent with variance reduction, 2016.
    """

    rows: Any
    loss: Any
    targets: Array  # (n, q)
    weights: Array  # (n,)
    l2: float
    at_snapshot: Array  # (n, q): the weighted slopes of the rows' losses at the snapshot
    mean: Array  # like x: their gradient, averaged over all rows

    def estimate(self, x: Array, batch: Array, keep: float, scale: float, buffers: Any, out: Array) -> bool:
        """Write ``keep * x + scale * (variance-reduced estimate)`` to ``out``."""
        slopes = buffers.slopes
        finite = True
        share = scale / batch.size
        for b in range(batch.size):
            i = batch[b]
            self.rows.dot(i, x, buffers.predictions)
            loss_gradient(self.loss, buffers.predictions, self.targets[i], slopes)
            for k in range(slopes.size):
                if not np.isfinite(slopes[k]):
                    finite = False
                slopes[k] = x.dtype.type(share * (self.weights[i] * slopes[k] - self.at_snapshot[i, k]))
            if b == 0:
                self.rows.combine(i, keep + 2.0 * self.l2 * scale, keep, x, slopes, out)
            else:
                self.rows.add(i, slopes, out)
        add_multiple(x.dtype.type(scale), self.mean.ravel(), out.ravel())
        return finite


class Share(NamedTuple):
    """The mean gradient of one worker's share of the rows, which lie side by side.

    ``batch`` names the share: its number, its first row and its last. Sums are kept in double precision.
    """

    rows: Any
    loss: Any
    targets: Array  # (n, q)
    weights: Array  # (n,)
    l2: float
    penalised: int  # entries of x before the intercept, if there is one

    def estimate(self, x: Array, batch: Array, keep: float, scale: float, buffers: Any, out: Array) -> bool:
        """Write ``keep * x + scale * (mean over the share of grad f_i(x))`` to ``out``."""
        slopes = buffers.slopes
        total = out.view(np.float64) if out.itemsize == 8 else np.empty(x.shape, np.float64)  # a large array less
        fill(total, 0.0)
        finite = True
        for i in range(batch[1], batch[2] + 1):
            self.rows.dot(i, x, buffers.predictions)
            loss_gradient(self.loss, buffers.predictions, self.targets[i], slopes)
            for k in range(slopes.size):
                if not np.isfinite(slopes[k]):
                    finite = False
                slopes[k] *= self.weights[i]
            self.rows.add(i, slopes, total)
        share = scale / (batch[2] + 1 - batch[1])
        flat, sums, result = x.ravel(), total.ravel(), out.ravel()
        own, penalised = keep + 2.0 * self.l2 * scale, self.penalised * (x.size // x.shape[0])
        for j in range(flat.size):
            result[j] = (own if j < penalised else keep) * flat[j] + share * sums[j]
        return finite


@kernel
def add_multiple(factor: float, source: Array, target: Array) -> None:
    """Add ``factor * source`` to ``target``."""
    for j in range(target.size):
        target[j] += factor * source[j]


@by_class(arity=4)
def loss_gradient(loss: type) -> Callable[..., None]:
    """Write the gradient of a row's loss in its predictions to ``out``."""
    return _joint_gradient if getattr(loss, "joint", False) else _separate_derivatives


def _joint_gradient(loss: Any, predictions: Array, targets: Array, out: Array) -> None:
    loss.gradient(predictions, targets, out)


def _separate_derivatives(loss: Any, predictions: Array, targets: Array, out: Array) -> None:
    for k in range(out.size):
        out[k] = loss.derivative(predictions[k], targets[k])


@by_class(arity=4)
def sum_of_losses(loss: type) -> Callable[..., float]:
    """Return the weighted sum of the rows' losses."""
    return _sum_of_joint_values if getattr(loss, "joint", False) else _sum_of_values


def _sum_of_joint_values(loss: Any, predictions: Array, targets: Array, weights: Array) -> float:
    total = 0.0
    for i in range(weights.size):
        total += weights[i] * loss.value(predictions[i], targets[i])
    return total


def _sum_of_values(loss: Any, predictions: Array, targets: Array, weights: Array) -> float:
    total = 0.0
    if predictions.shape[1] == 1:  # a view of a row costs more than its only entry
        for i in range(weights.size):
            total += weights[i] * loss.value(predictions[i, 0], targets[i, 0])
    else:
        for i in range(weights.size):
            total += weights[i] * _sum_of_row(loss, predictions[i], targets[i])
    return total


@kernel(fastmath={"reassoc", "contract"})
def _sum_of_row(loss: Any, predictions: Array, targets: Array) -> float:
    """Return the sum of a row's losses, added in any order."""
    total = 0.0
    for k in range(predictions.size):
        total += loss.value(predictions[k], targets[k])
    return total


@by_class(arity=6)
def sum_of_conjugates(loss: type) -> Callable[..., float]:
    """Return the conjugate of the mean loss of so many rows, of which these are some, at ``scale`` times its slopes."""
    return _sum_of_joint_conjugates if getattr(loss, "joint", False) else _sum_of_conjugates


def _sum_of_joint_conjugates(loss: Any, slopes: Array, targets: Array, weights: Array, rows: int, scale: float) -> float:
    total = 0.0
    raw = np.zeros(slopes.shape[1])
    for i in range(weights.size):
        share = weights[i] / rows
        if share > 0.0:
            for k in range(raw.size):
                raw[k] = scale * slopes[i, k] / share
            total += share * loss.conjugate(raw, targets[i])
    return total


def _sum_of_conjugates(loss: Any, slopes: Array, targets: Array, weights: Array, rows: int, scale: float) -> float:
    total = 0.0
    for i in range(weights.size):
        share = weights[i] / rows
        if share > 0.0:
            for k in range(slopes.shape[1]):
                total += share * loss.conjugate(scale * slopes[i, k] / share, targets[i, k])
    return total


@by_class(arity=5)
def slopes_of_losses(loss: type) -> Callable[..., None]:
    """Write the gradients of the rows' losses in their predictions to ``out``."""
    return _joint_gradients if getattr(loss, "joint", False) else _derivatives


def _joint_gradients(loss: Any, predictions: Array, targets: Array, weights: Array, out: Array) -> None:
    for i in range(weights.size):
        loss.gradient(predictions[i], targets[i], out[i])


def _derivatives(loss: Any, predictions: Array, targets: Array, weights: Array, out: Array) -> None:
    for i in range(weights.size):  # a view of a row costs more than its only entry
        for k in range(predictions.shape[1]):
            out[i, k] = loss.derivative(predictions[i, k], targets[i, k])
