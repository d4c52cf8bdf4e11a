"""The squared loss."""

from typing import Any, NamedTuple

import numpy as np

from .._checks import positive, validated


@validated(scale=positive)
class Squared(NamedTuple):
    r"""The squared error, :math:`s\,(p - y)^2`.

    Parameters
    ----------
    scale : float, default 1.0
        The factor s. The paper's loss has no 1/2, hence 1; scikit-learn's ``Lasso`` corresponds to 0.5.

    Examples
    --------
    >>> import dapsgd as ds
    >>> ds.Squared().value(3.0, 1.0)
    4.0
    """

    scale: float = 1.0

    def value(self, pred: float, y: float) -> float:
        """Return the loss of one prediction."""
        return self.scale * (pred - y) * (pred - y)

    def derivative(self, pred: float, y: float) -> float:
        """Return the derivative in ``pred``."""
        return 2.0 * self.scale * (pred - y)

    def second_derivative(self, pred: float, y: float) -> float:
        """Return the second derivative in ``pred``."""
        return 2.0 * self.scale

    @property
    def curvature(self) -> float:
        """The largest second derivative."""
        return 2.0 * self.scale

    @property
    def convexity(self) -> float:
        """The smallest second derivative."""
        return 2.0 * self.scale

    def conjugate(self, slopes: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the conjugate of each row's loss; called from Python."""
        return (slopes**2 / (4.0 * self.scale) + slopes * y).sum(axis=1)
