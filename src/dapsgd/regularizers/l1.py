"""The L1 norm."""

import math
from typing import Any, NamedTuple

import numpy as np

from .._checks import non_negative, validated
from ._elementwise import largest_size, soft_threshold, sum_abs


@validated(lam=non_negative)
class L1(NamedTuple):
    r"""The L1 norm, :math:`\lambda \sum_j |w_j|`: a sparse answer.

    The prox is the soft threshold at :math:`\eta\lambda`.

    Parameters
    ----------
    lam : float
        The strength.

    Examples
    --------
    >>> import dapsgd as ds
    >>> ds.prox(ds.L1(1.0), [3.0, -0.5, -2.0], step=1.0)
    array([ 2., 0., -1.])
    """

    lam: float

    @property
    def elementwise(self) -> bool:
        """Every coordinate is treated alike and on its own."""
        return True

    @property
    def in_place(self) -> bool:
        """The prox may overwrite its argument."""
        return True

    def value(self, w: np.ndarray[Any, Any]) -> float:
        """Return the regulariser's value."""
        return self.lam * sum_abs(w)

    def prox(self, v: np.ndarray[Any, Any], step: float, out: np.ndarray[Any, Any]) -> None:
        """Soft-threshold."""
        soft_threshold(v, step * self.lam, out)

    @property
    def is_norm(self) -> bool:
        """It is a norm times a strength; ``lam_max`` is the dual norm."""
        return True

    def lam_max(self, gradient: np.ndarray[Any, Any]) -> float:
        """Return the smallest strength whose answer is zero."""
        return largest_size(gradient)

    def subgradient_bound(self, shape: tuple[int, ...]) -> float:
        r"""Return :math:`\lambda\sqrt m`."""
        return self.lam * math.sqrt(math.prod(shape))
