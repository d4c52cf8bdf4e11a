"""The elastic net with non-negative coefficients."""

import math
from typing import Any, NamedTuple

import numpy as np

from .._checks import fraction, non_negative, validated
from .._loops import copy


@validated(lam=non_negative, ratio=fraction)
class NonNegative(NamedTuple):
    r"""The elastic net, or with :math:`\rho = 1` the L1 norm, of coefficients that must not be negative.

    It is :math:`\lambda (\rho \sum_j w_j + \tfrac{1 - \rho}{2} \|w\|_2^2)` where all :math:`w_j \ge 0`, infinite
    elsewhere. The prox is the elastic net's, cut at zero.

    Parameters
    ----------
    lam : float
        The strength; with 0 only the sign is asked for.
    ratio : float, default 1.0
        The share of the L1 norm.

    Examples
    --------
    >>> import dapsgd as ds
    >>> ds.prox(ds.NonNegative(1.0), [3.0, 0.5, -2.0], step=1.0)
    array([2., 0., 0.])
    """

    lam: float
    ratio: float = 1.0

    @property
    def elementwise(self) -> bool:
        """Every coordinate is treated alike and on its own."""
        return True

    @property
    def in_place(self) -> bool:
        """The prox may overwrite its argument."""
        return True

    def value(self, w: np.ndarray[Any, Any]) -> float:
        """Return the regulariser's value; infinite if an entry is negative."""
        total = 0.0
        for entry in w.ravel():
            if entry < 0.0:
                return np.inf
            total += self.ratio * entry + 0.5 * (1.0 - self.ratio) * entry * entry
        return self.lam * total

    def prox(self, v: np.ndarray[Any, Any], step: float, out: np.ndarray[Any, Any]) -> None:
        """Subtract, cut at zero, shrink."""
        threshold = v.dtype.type(step * self.lam * self.ratio)
        shrink = v.dtype.type(1.0 / (1.0 + step * self.lam * (1.0 - self.ratio)))
        copy(v, out)
        result = out.ravel()  # one array only: see Box
        for j in range(result.size):
            entry = result[j]
            result[j] = v.dtype.type(0.0) if entry <= threshold else (entry - threshold) * shrink

    def lam_max(self, gradient: np.ndarray[Any, Any]) -> float:
        """Return the smallest strength whose answer is zero; infinite for a pure ridge."""
        steepest = float((-gradient).max(initial=0.0))
        if self.ratio == 0.0:
            return math.inf if steepest > 0.0 else 0.0
        return steepest / self.ratio

    def subgradient_bound(self, shape: tuple[int, ...]) -> float:
        """Return infinity: at zero every number below the strength is a subgradient."""
        return math.inf
