"""The elastic net."""

import math
from typing import Any, NamedTuple

import numpy as np

from .._checks import fraction, non_negative, validated
from ._elementwise import largest_size, soft_threshold, sum_abs

_BLOCK = 1 << 16  # rows


@validated(lam=non_negative, ratio=fraction)
class ElasticNet(NamedTuple):
    r"""The elastic net, :math:`\lambda (\rho \|w\|_1 + \tfrac{1 - \rho}{2} \|w\|_2^2)`.

    Parameters
    ----------
    lam : float
        The strength.
    ratio : float, default 0.5
        The share of the L1 norm, as scikit-learn's ``l1_ratio``.

    Examples
    --------
    >>> import dapsgd as ds
    >>> ds.prox(ds.ElasticNet(1.0, 0.5), [3.0, -0.5], step=1.0)
    array([1.66666667, 0. ])
    """

    lam: float
    ratio: float = 0.5

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
        squares = 0.0
        for entry in w.ravel():
            squares += entry * entry
        return self.lam * (self.ratio * sum_abs(w) + 0.5 * (1.0 - self.ratio) * squares)

    def prox(self, v: np.ndarray[Any, Any], step: float, out: np.ndarray[Any, Any]) -> None:
        """Soft-threshold, then shrink."""
        soft_threshold(v, step * self.lam * self.ratio, out)
        shrink = v.dtype.type(1.0 / (1.0 + step * self.lam * (1.0 - self.ratio)))
        result = out.ravel()
        for j in range(result.size):
            result[j] *= shrink

    def lam_max(self, gradient: np.ndarray[Any, Any]) -> float:
        """Return the smallest strength whose answer is zero; infinite for a pure ridge."""
        top = largest_size(gradient)
        return top / self.ratio if self.ratio > 0.0 else math.inf

    def conjugate(self, v: np.ndarray[Any, Any]) -> float:
        """Return the conjugate; infinite outside a box if there is no ridge part."""
        squares, outside = 0.0, False
        for start in range(0, len(v), _BLOCK):  # all at once would be several copies
            beyond = np.maximum(np.abs(v[start : start + _BLOCK]) - self.lam * self.ratio, 0.0)
            squares, outside = squares + float((beyond**2).sum()), outside or bool(beyond.any())
        ridge = self.lam * (1.0 - self.ratio)
        if ridge > 0.0:
            return squares / (2.0 * ridge)
        return math.inf if outside else 0.0

    def subgradient_bound(self, shape: tuple[int, ...]) -> float:
        """Return infinity: the ridge part's gradient grows with w."""
        return math.inf if self.lam * (1.0 - self.ratio) > 0.0 else self.lam * math.sqrt(math.prod(shape))
