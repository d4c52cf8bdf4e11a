"""The Poisson loss."""

import math
from typing import Any, NamedTuple

import numpy as np

from .._checks import positive, validated
from ._labels import entropy


@validated(scale=positive)
class Poisson(NamedTuple):
    r"""The Poisson loss with the log link, :math:`s\,(e^p - y p)`, for counts y >= 0.

    Its curvature has no bound, so that step-sizes are found by backtracking.

    Parameters
    ----------
    scale : float, default 1.0
        The factor s.

    Examples
    --------
    >>> import dapsgd as ds
    >>> ds.Poisson().value(0.0, 2.0)
    1.0
    """

    scale: float = 1.0

    def value(self, pred: float, y: float) -> float:
        """Return the loss of one prediction."""
        return self.scale * (math.exp(pred) - y * pred)

    def derivative(self, pred: float, y: float) -> float:
        """Return the derivative in ``pred``."""
        return self.scale * (math.exp(pred) - y)

    def second_derivative(self, pred: float, y: float) -> float:
        """Return the second derivative in ``pred``."""
        return self.scale * math.exp(pred)

    def conjugate(self, slope: float, y: float) -> float:
        """Return the conjugate in ``pred``."""
        rate = slope / self.scale + y
        if not rate >= -1e-12:
            return math.inf
        rate = max(rate, 0.0)
        return self.scale * (entropy(rate) - rate)

    def check_targets(self, y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Allow counts only."""
        if (y < 0.0).any():
            raise ValueError(f"y must be >= 0 for Poisson; got {y.min():g}")
        return y
