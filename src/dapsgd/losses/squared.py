"""The squared loss."""

from typing import NamedTuple

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

    def conjugate(self, slope: float, y: float) -> float:
        """Return the conjugate in ``pred``."""
        return slope * (slope / (4.0 * self.scale) + y)
