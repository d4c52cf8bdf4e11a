"""The group lasso."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .._checks import non_negative, validated
from .._jit import kernel
from ._elementwise import norm, sum_squares
from ._groups import group_rows, make_partition, weight_of

Array = np.ndarray[Any, Any]

_BLOCK = 1 << 8  # groups


@validated(lam=non_negative)
class GroupLasso(NamedTuple):
    r"""The group lasso, :math:`\lambda \sum_g c_g \|w_g\|_2`: whole groups are zero or not.

    The prox shrinks each group by :math:`(1 - \eta\lambda c_g / \|v_g\|)_+` (the paper prints it without
    :math:`\eta`).

    Parameters
    ----------
    lam : float
        The strength.
    groups : int, list of index arrays, or a label per coordinate
        A partition of the coordinates: an int is the size of equal contiguous groups. On a p x q parameter, groups of
        rows. Groups need be neither contiguous nor of equal size.
    weights : array, dict, series or "root", optional
        The weights c, one a group; 1 by default. In the order of the sorted labels if groups are labels, else in that of the
        groups. A dict from labels to weights, or a pandas series with the labels as its index, is matched by name. ``"root"``
        is the root of the number of coordinates in each group, so that large groups do not win by their size.

    Examples
    --------
    >>> import dapsgd as ds
    >>> ds.prox(ds.GroupLasso(5.0, groups=[[0, 2], [1]]), [6.0, 1.0, 8.0], step=1.0)
    array([3., 0., 4.])
    >>> ds.prox(ds.GroupLasso(5.0, groups=["b", "a", "b"], weights={"a": 0.1, "b": 1.0}), [6.0, 1.0, 8.0], step=1.0)
    array([3. , 0.5, 4. ])
    """

    lam: float
    groups: Any
    weights: Any = None

    def bind(self, shape: tuple[int, ...]) -> BoundGroupLasso:
        """Check the groups against the parameter's shape."""
        return BoundGroupLasso(self.lam, *make_partition(self.groups, self.weights, shape))


class BoundGroupLasso(NamedTuple):
    """A group lasso that knows its partition."""

    lam: float
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
        return self.lam * total

    def prox(self, v: Array, step: float, out: Array) -> None:
        """Shrink each group."""
        shrink_groups(v.ravel(), step * self.lam, self.starts, self.order, self.weights, out.ravel())

    def prox_unit(self, unit: int, v: Array, step: float, out: Array) -> None:
        """Run the prox of one group, given and returned flat."""
        factor = shrinkage(norm(v, 0, v.size), step * self.lam * weight_of(self.weights, unit))
        for j in range(v.size):
            out[j] = factor * v[j]

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
        """Return the smallest strength whose answer is zero; infinite if a group has no weight."""
        flat = gradient.ravel()[self.order] if self.order.size else gradient.ravel()
        largest = 0.0
        for first in range(0, self.starts.size - 1, _BLOCK):  # squares of all of them at once would be another copy
            starts = self.starts[first : first + _BLOCK + 1]
            squares = flat[starts[0] : starts[-1]].astype(np.float64) ** 2
            norms = np.sqrt(np.add.reduceat(squares, starts[:-1] - starts[0]))
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios = norms / self.weights[first : first + _BLOCK] if self.weights.size else norms
            largest = max(largest, float(np.nan_to_num(ratios, nan=0.0, posinf=np.inf).max()))
        return largest

    def subgradient_bound(self, shape: tuple[int, ...]) -> float:
        r"""Return :math:`\lambda \|c\|_2`, which is :math:`\lambda\sqrt g` for unit weights."""
        return self.lam * math.sqrt(float((self.weights**2).sum()) if self.weights.size else self.starts.size - 1.0)


@kernel
def shrink_groups(v: Array, threshold: float, starts: Array, order: Array, weights: Array, out: Array) -> None:
    """Shrink each group of the flat ``v`` by its weight times ``threshold``."""
    entries = v
    if order.size > 0:
        entries = np.empty_like(v)
        for j in range(v.size):
            entries[j] = v[order[j]]
    count = starts.size - 1
    factors = np.empty(min(count, _BLOCK))
    for first in range(0, count, _BLOCK):
        groups = range(first, min(first + _BLOCK, count))
        find_factors(entries, threshold, starts, weights, groups, factors)
        for g in groups:
            factor = v.dtype.type(factors[g - first])
            if order.size == 0 and out is v:  # said apart, as in soft_threshold
                for j in range(np.uint64(starts[g]), np.uint64(starts[g + 1])):  # unsigned: see sum_squares
                    out[j] *= factor
            elif order.size == 0:
                for j in range(np.uint64(starts[g]), np.uint64(starts[g + 1])):
                    out[j] = factor * entries[j]
            else:
                for j in range(starts[g], starts[g + 1]):
                    out[order[j]] = factor * entries[j]


@kernel
def find_factors(v: Array, threshold: float, starts: Array, weights: Array, groups: range, factors: Array) -> None:
    """Write by what to shrink some groups.

    The sums of squares come first: a root and a division take long, and those of one group need not wait for another's.
    """
    first = groups.start
    for g in groups:
        factors[g - first] = sum_squares(v, starts[g], starts[g + 1])
    for k in range(len(groups)):
        factors[k] = np.sqrt(factors[k])
    for k in range(len(groups)):
        if not 1e-15 < factors[k] < 1e15:
            factors[k] = norm(v, starts[first + k], starts[first + k + 1])
    for k in range(len(groups)):
        factors[k] = shrinkage(factors[k], threshold * weight_of(weights, first + k))


@kernel
def shrinkage(size: float, threshold: float) -> float:
    """Return ``(1 - threshold / size)_+``, and 0 for a zero group; NaN stays NaN."""
    factor = 1.0 - threshold / (1.0 if size <= threshold else size)  # before it is needed, so that there is no branch
    return 0.0 if size <= threshold else factor
