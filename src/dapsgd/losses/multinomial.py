"""The multinomial logistic loss."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .._checks import positive, validated
from ._labels import entropy


@validated(scale=positive)
class Multinomial(NamedTuple):
    r"""The multinomial logistic loss, :math:`s\,(\log \sum_k e^{p_k} - p_y)`.

    The parameter is a p x K matrix, one column a class. Targets are class numbers 0 to K-1, or an n x K matrix whose rows
    are class probabilities.

    Parameters
    ----------
    scale : float, default 1.0
        The factor s.

    Examples
    --------
    >>> import dapsgd as ds
    >>> import numpy as np
    >>> float(round(ds.Multinomial().value(np.zeros(2), np.array([1.0, 0.0])), 6))
    0.693147
    """

    scale: float = 1.0

    @property
    def joint(self) -> bool:
        """The loss ties the predictions of a row together."""
        return True

    def value(self, pred: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> float:
        """Return the loss of one row of predictions."""
        top = pred[0]
        for k in range(1, pred.size):
            top = max(top, pred[k])
        total = 0.0
        inner = 0.0
        for k in range(pred.size):
            total += math.exp(pred[k] - top)
            inner += y[k] * (pred[k] - top)
        return self.scale * (math.log(total) - inner)

    def gradient(self, pred: np.ndarray[Any, Any], y: np.ndarray[Any, Any], out: np.ndarray[Any, Any]) -> None:
        """Write the gradient in ``pred`` to ``out``."""
        top = pred[0]
        for k in range(1, pred.size):
            top = max(top, pred[k])
        total = 0.0
        for k in range(pred.size):
            out[k] = math.exp(pred[k] - top)
            total += out[k]
        for k in range(pred.size):
            out[k] = self.scale * (out[k] / total - y[k])

    @property
    def curvature(self) -> float:
        """The largest eigenvalue of the second derivative."""
        return 0.5 * self.scale

    @property
    def largest_slope(self) -> float:
        """The largest norm of the gradient."""
        return math.sqrt(2.0) * self.scale

    def second_derivatives(self, predictions: np.ndarray[Any, Any]) -> Callable[[int, int], np.ndarray[Any, Any]]:
        """Return a function of two classes: each row's second derivatives in their predictions; called from Python."""
        shares = np.exp(predictions - predictions.max(axis=1, keepdims=True)).T
        shares /= shares.sum(axis=0)
        return lambda j, k: self.scale * shares[j] * (float(j == k) - shares[k])

    def conjugate(self, slopes: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> float:
        """Return the conjugate in ``pred``."""
        total = 0.0
        result = 0.0
        for k in range(slopes.size):
            share = slopes[k] / self.scale + y[k]
            if not share >= -1e-12:
                return math.inf
            total += share
            result += entropy(max(share, 0.0))
        if not abs(total - 1.0) <= 1e-6:
            return math.inf
        return self.scale * result

    def check_targets(self, y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Turn class numbers into indicator rows; allow rows of probabilities."""
        if y.ndim == 1:
            with np.errstate(invalid="ignore"):  # of numbers too large for an integer
                labels = y.astype(np.int64)
            if (labels != y).any() or (labels < 0).any():
                raise ValueError("y must hold class numbers 0, 1, ..., K-1 for Multinomial")
            classes = int(labels.max()) + 1
            if classes < 2:
                raise ValueError("y must hold at least two classes for Multinomial; got only class 0")
            if classes > max(1000, 10 * labels.size):
                raise ValueError(f"y must hold class numbers 0, 1, ..., K-1 for Multinomial; got {classes - 1}")
            return np.eye(classes, dtype=y.dtype)[labels]
        if y.shape[1] < 2 or (y < 0.0).any() or not np.allclose(y.sum(axis=1), 1.0, atol=1e-5):
            raise ValueError("y must be class numbers, or rows of at least two probabilities that add up to 1")
        return y
