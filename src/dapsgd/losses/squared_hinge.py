"""The squared hinge loss."""

import math
from typing import Any, NamedTuple

import numpy as np

from .._checks import positive, validated
from ._labels import check_signs


@validated(scale=positive)
class SquaredHinge(NamedTuple):
    r"""The squared hinge loss, :math:`s\,\max(0, 1 - y p)^2`, for labels y in {-1, +1}.

    Parameters
    ----------
    scale : float, default 1.0
        The factor s.

    Examples
    --------
    >>> import dapsgd as ds
    >>> ds.SquaredHinge().value(-1.0, 1.0)
    4.0
    """

    scale: float = 1.0

    def value(self, pred: float, y: float) -> float:
        """Return the loss of one prediction."""
        slack = 1.0 - y * pred
        if slack <= 0.0:
            return 0.0
        return self.scale * slack * slack

    def derivative(self, pred: float, y: float) -> float:
        """Return the derivative in ``pred``."""
        slack = 1.0 - y * pred
        if slack <= 0.0:
            return 0.0
        return -2.0 * self.scale * y * slack

    def second_derivative(self, pred: float, y: float) -> float:
        """Return the second derivative in ``pred``."""
        return 2.0 * self.scale if y * pred < 1.0 else 0.0

    @property
    def curvature(self) -> float:
        """The largest second derivative."""
        return 2.0 * self.scale

    def conjugate(self, slope: float, y: float) -> float:
        """Return the conjugate in ``pred``."""
        size = -slope * y
        if not size >= 0.0:
            return math.inf
        return size * (size / (4.0 * self.scale) - 1.0)

    def check_targets(self, y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Allow -1 and +1 only."""
        return check_signs("SquaredHinge", y)
