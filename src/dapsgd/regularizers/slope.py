"""SLOPE, the sorted L1 norm."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._checks import finite_array
from .._jit import kernel

Array = np.ndarray[Any, Any]


class Slope(NamedTuple):
    r"""SLOPE, the sorted L1 norm :math:`\sum_k \lambda_k |w|_{(k)}` with :math:`|w|_{(1)} \ge |w|_{(2)} \ge \dots`.

    The prox sorts, subtracts, makes monotone by pooling adjacent violators, and sorts back.

    Parameters
    ----------
    lams : array
        As many strengths as the parameter has entries, in decreasing order, none negative.

    References
    ----------
    Bogdan, van den Berg, Sabatti, Su, Candès: SLOPE, adaptive variable selection via convex optimization. Annals of
    Applied Statistics 9 (2015).

    Examples
    --------
    >>> import dapsgd as ds
    >>> ds.prox(ds.Slope([2.0, 1.0]), [-5.0, 4.5], step=1.0)
    array([-3.25, 3.25])
    """

    lams: Any

    def bind(self, shape: tuple[int, ...]) -> BoundSlope:
        """Check the strengths against the parameter's size."""
        lams = finite_array("Slope: lams", self.lams, np.float64)
        size = int(np.prod(shape, dtype=np.int64))
        if lams.shape != (size,):
            raise ValueError(f"Slope: lams must have one entry for each of the {size} coefficients; got {lams.shape}")
        if (lams < 0.0).any() or (np.diff(lams) > 0.0).any():
            raise ValueError("Slope: lams must be in decreasing order and none negative")
        return BoundSlope(np.array(lams))


class BoundSlope(NamedTuple):
    """SLOPE with its strengths checked."""

    lams: Array

    def value(self, w: Array) -> float:
        """Return the regulariser's value."""
        sizes = np.sort(np.abs(w.ravel()))
        total = 0.0
        for k in range(sizes.size):
            total += self.lams[k] * sizes[sizes.size - 1 - k]
        return total

    def prox(self, v: Array, step: float, out: Array) -> None:
        """Sort, subtract, pool, sort back."""
        sorted_l1_prox(v.ravel(), step, self.lams, out.ravel())

    @property
    def is_norm(self) -> bool:
        """It is a norm times a strength; ``lam_max`` is the dual norm."""
        return True

    def lam_max(self, gradient: Array) -> float:
        """Return the smallest factor on all strengths whose answer is zero; infinite for zero strengths."""
        sizes = np.sort(np.abs(gradient.ravel()))[::-1].cumsum(dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = sizes / self.lams.cumsum()
        return float(np.nan_to_num(ratios, nan=0.0, posinf=np.inf).max(initial=0.0))

    def prox_cost(self, shape: tuple[int, ...]) -> float:
        """Return how many rows' gradients a prox costs, which sorts: measured, for 200 to 5,000 coefficients."""
        return 100.0

    def subgradient_bound(self, shape: tuple[int, ...]) -> float:
        """Return the norm of the strengths."""
        return float(np.linalg.norm(self.lams))


@kernel
def sorted_l1_prox(v: Array, step: float, lams: Array, out: Array) -> None:
    """Write the prox of the sorted L1 norm of a flat ``v`` to ``out``."""
    size = v.size
    order = np.argsort(-np.abs(v))
    means = np.empty(size)  # of the blocks pooled so far: a decreasing sequence
    stops = np.empty(size, np.int64)  # one past each block's last place
    blocks = 0
    for k in range(size):
        total = abs(v[order[k]]) - step * lams[k]
        count = 1
        mean = total
        while blocks > 0 and means[blocks - 1] <= mean:
            blocks -= 1
            start = stops[blocks - 1] if blocks > 0 else 0
            total += means[blocks] * (stops[blocks] - start)
            count += stops[blocks] - start
            mean = total / count
        means[blocks] = mean
        stops[blocks] = k + 1
        blocks += 1
    start = 0
    for b in range(blocks):
        size_left = max(means[b], 0.0) if means[b] == means[b] else means[b]
        for k in range(start, stops[b]):
            j = order[k]
            out[j] = size_left if v[j] >= 0.0 else -size_left
        start = stops[b]
