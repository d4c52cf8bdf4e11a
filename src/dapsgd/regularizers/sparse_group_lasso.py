"""The sparse group lasso."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .._checks import fraction, non_negative, validated
from ._elementwise import norm, soft_threshold, sum_abs
from ._groups import group_rows, make_partition, weight_of
from .group_lasso import shrink_groups, shrinkage

Array = np.ndarray[Any, Any]


@validated(lam=non_negative, ratio=fraction)
class SparseGroupLasso(NamedTuple):
    r"""The sparse group lasso, :math:`\lambda (\rho \|w\|_1 + (1 - \rho) \sum_g c_g \|w_g\|_2)`.

    Groups are zero or not, and within a group that is not, coordinates are zero or not. The prox is the soft threshold
    followed by the group shrinkage.

    Parameters
    ----------
    lam : float
        The strength.
    groups : int, list of index arrays, or a label per coordinate
        As in :class:`GroupLasso`.
    ratio : float, default 0.5
        The share of the L1 norm.
    weights : array, dict, series or "root", optional
        The weights c, one a group; 1 by default. As in :class:`GroupLasso`: in the order of the sorted labels if groups are
        labels, or matched by name.

    Examples
    --------
    >>> import dapsgd as ds
    >>> ds.prox(ds.SparseGroupLasso(2.0, 2, ratio=0.5), [4.0, 5.0, 0.5, 2.0], step=1.0)
    array([2.4, 3.2, 0. , 0. ])
    """

    lam: float
    groups: Any
    ratio: float = 0.5
    weights: Any = None

    def bind(self, shape: tuple[int, ...]) -> BoundSparseGroupLasso:
        """Check the groups against the parameter's shape."""
        return BoundSparseGroupLasso(self.lam, self.ratio, *make_partition(self.groups, self.weights, shape))


class BoundSparseGroupLasso(NamedTuple):
    """A sparse group lasso that knows its partition."""

    lam: float
    ratio: float
    starts: Array
    order: Array
    weights: Array

    def value(self, w: Array) -> float:
        """Return the regulariser's value."""
        flat = w.ravel()
        if self.order.size:
            flat = flat[self.order]
        total = 0.0
        for g in range(self.starts.size - 1):
            total += weight_of(self.weights, g) * norm(flat, self.starts[g], self.starts[g + 1])
        return self.lam * (self.ratio * sum_abs(w) + (1.0 - self.ratio) * total)

    def prox(self, v: Array, step: float, out: Array) -> None:
        """Soft-threshold, then shrink each group."""
        thresholded = np.empty_like(v)
        soft_threshold(v, step * self.lam * self.ratio, thresholded)
        threshold = step * self.lam * (1.0 - self.ratio)
        shrink_groups(thresholded.ravel(), threshold, self.starts, self.order, self.weights, out.ravel())

    def prox_unit(self, unit: int, v: Array, step: float, out: Array) -> None:
        """Run the prox of one group, given and returned flat."""
        soft_threshold(v, step * self.lam * self.ratio, out)
        factor = shrinkage(norm(out, 0, out.size), step * self.lam * (1.0 - self.ratio) * weight_of(self.weights, unit))
        for j in range(v.size):
            out[j] *= factor

    def units(self, shape: tuple[int, ...]) -> tuple[Array, Array]:
        """Return the groups as starts and rows."""
        return group_rows(self.starts, self.order, shape)

    @property
    def in_place(self) -> bool:
        """The prox may overwrite its argument."""
        return True

    @property
    def is_norm(self) -> bool:
        """It is a norm times a strength; ``lam_max`` is the dual norm."""
        return True

    def lam_max(self, gradient: Array) -> float:
        """Return the smallest strength whose answer is zero, group by group by bisection."""
        flat = np.abs(gradient.ravel()[self.order] if self.order.size else gradient.ravel()).astype(np.float64)
        pieces = np.split(flat, self.starts[1:-1])
        return max((self._group_lam_max(piece, weight_of(self.weights, g)) for g, piece in enumerate(pieces)), default=0.0)

    def _group_lam_max(self, group: Array, weight: float) -> float:
        """Solve ``||soft(g, lam*ratio)|| = lam*(1 - ratio)*weight`` for lam."""
        share = (1.0 - self.ratio) * weight

        def excess(lam: float) -> float:
            return float(np.linalg.norm(np.maximum(group - lam * self.ratio, 0.0))) - lam * share

        if not group.any():
            return 0.0
        if self.ratio == 0.0 and share == 0.0:
            return math.inf
        high = 1.0
        while excess(high) > 0.0:
            high *= 2.0
        low = 0.0
        while high - low > 1e-15 * high:
            middle = 0.5 * (low + high)
            if middle in (low, high):
                break
            low, high = (middle, high) if excess(middle) > 0.0 else (low, middle)
        return high

    def subgradient_bound(self, shape: tuple[int, ...]) -> float:
        r"""Return :math:`\lambda\,(\sum_g (\rho\sqrt{|g|} + (1-\rho) c_g)^2)^{1/2}`."""
        sizes = np.diff(self.starts)
        weights = self.weights if self.weights.size else np.ones(sizes.size)
        return self.lam * float(np.linalg.norm(self.ratio * np.sqrt(sizes) + (1.0 - self.ratio) * weights))
