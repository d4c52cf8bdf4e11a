"""The logistic loss."""

import math
from typing import Any, NamedTuple

import numpy as np

from .._checks import positive, validated
from ._labels import check_signs, entropy


@validated(scale=positive)
class Logistic(NamedTuple):
    r"""The logistic loss, :math:`s\,\log(1 + e^{-y p})`, for labels y in {-1, +1}.

    Parameters
    ----------
    scale : float, default 1.0
        The factor s.

    Examples
    --------
    >>> import dapsgd as ds
    >>> round(ds.Logistic().value(0.0, 1.0), 6)
    0.693147
    """

    scale: float = 1.0

    def value(self, pred: float, y: float) -> float:
        """Return the loss of one prediction."""
        margin = y * pred
        return self.scale * (math.log1p(math.exp(-abs(margin))) + max(-margin, 0.0))

    def derivative(self, pred: float, y: float) -> float:
        """Return the derivative in ``pred``."""
        margin = y * pred
        shrunk = math.exp(-abs(margin))
        above = shrunk if margin > 0.0 else 1.0  # chosen, not branched to: signs are hard to predict
        return -self.scale * y * above / (1.0 + shrunk)

    def second_derivative(self, pred: float, y: float) -> float:
        """Return the second derivative in ``pred``."""
        shrunk = math.exp(-abs(pred))
        return self.scale * shrunk / ((1.0 + shrunk) * (1.0 + shrunk))

    @property
    def curvature(self) -> float:
        """The largest second derivative."""
        return 0.25 * self.scale

    @property
    def largest_slope(self) -> float:
        """The largest derivative."""
        return self.scale

    def conjugate(self, slope: float, y: float) -> float:
        """Return the conjugate in ``pred``."""
        share = -slope * y / self.scale
        if not -1e-12 <= share <= 1.0 + 1e-12:
            return math.inf
        share = min(max(share, 0.0), 1.0)
        return self.scale * (entropy(share) + entropy(1.0 - share))

    def check_targets(self, y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Allow -1 and +1 only."""
        return check_signs("Logistic", y)
