"""Bounds."""

import math
from typing import Any, NamedTuple

import numpy as np

from .._checks import number, validated
from .._loops import copy


@validated(low=number, high=number)
class Box(NamedTuple):
    r"""Bounds on every coordinate: h is 0 where :math:`l \le w_j \le u` for all j, infinite elsewhere.

    The prox is the projection. ``Box(0.0, math.inf)`` asks for a non-negative answer.

    Parameters
    ----------
    low, high : float
        The bounds; either may be infinite.

    Examples
    --------
    >>> import dapsgd as ds
    >>> ds.prox(ds.Box(0.0, 1.0), [-3.0, 0.5, 2.0], step=1.0)
    array([0. , 0.5, 1. ])
    """

    low: float
    high: float

    @property
    def elementwise(self) -> bool:
        """Every coordinate is treated alike and on its own."""
        return True

    @property
    def in_place(self) -> bool:
        """The prox may overwrite its argument."""
        return True

    def bind(self, shape: tuple[int, ...]) -> "Box":
        """Check that the box is not empty."""
        if not self.low <= self.high or self.low == math.inf or self.high == -math.inf:
            raise ValueError(f"Box: low must be at most high, and the box must hold a number; got {self}")
        return self

    def value(self, w: np.ndarray[Any, Any]) -> float:
        """Return 0 inside, infinity outside."""
        low, high = w.dtype.type(self.low), w.dtype.type(self.high)  # as the projection rounds them
        for entry in w.ravel():
            if not low <= entry <= high:
                return np.inf
        return 0.0

    def prox(self, v: np.ndarray[Any, Any], step: float, out: np.ndarray[Any, Any]) -> None:
        """Project."""
        low, high = v.dtype.type(self.low), v.dtype.type(self.high)
        copy(v, out)
        result = out.ravel()  # one array only: the compiler gives up on vector instructions where two may overlap
        for j in range(result.size):
            entry = result[j]
            if entry < low:
                entry = low
            if entry > high:
                entry = high
            result[j] = entry

    def conjugate(self, v: np.ndarray[Any, Any]) -> float:
        """Return the conjugate, the largest inner product with a point of the box; infinite if a bound is."""
        with np.errstate(invalid="ignore"):  # zero times infinity, which adds nothing
            return float(np.nansum(np.maximum(v * self.low, v * self.high)))

    def subgradient_bound(self, shape: tuple[int, ...]) -> float:
        """Return infinity: at the boundary every outward direction is a subgradient."""
        return math.inf
