"""The Huber loss."""

import math
from typing import NamedTuple

from .._checks import positive, validated


@validated(delta=positive)
class Huber(NamedTuple):
    r"""The Huber loss: :math:`r^2/2` for a residual :math:`|r| \le \delta`, :math:`\delta(|r| - \delta/2)` beyond.

    Parameters
    ----------
    delta : float, default 1.0
        Where the loss turns from a parabola into a line.

    Examples
    --------
    >>> import dapsgd as ds
    >>> ds.Huber(1.0).value(3.0, 0.0)
    2.5
    """

    delta: float = 1.0

    def value(self, pred: float, y: float) -> float:
        """Return the loss of one prediction."""
        size = abs(pred - y)
        if size <= self.delta:
            return 0.5 * size * size
        return self.delta * (size - 0.5 * self.delta)

    def derivative(self, pred: float, y: float) -> float:
        """Return the derivative in ``pred``."""
        residual = pred - y
        if residual > self.delta:
            return self.delta
        if residual < -self.delta:
            return -self.delta
        return residual

    def second_derivative(self, pred: float, y: float) -> float:
        """Return the second derivative in ``pred``."""
        return 1.0 if abs(pred - y) <= self.delta else 0.0

    @property
    def curvature(self) -> float:
        """The largest second derivative."""
        return 1.0

    @property
    def largest_slope(self) -> float:
        """The largest derivative."""
        return self.delta

    def conjugate(self, slope: float, y: float) -> float:
        """Return the conjugate in ``pred``."""
        if not abs(slope) <= self.delta * (1.0 + 1e-12):
            return math.inf
        return slope * (0.5 * slope + y)
