"""What is not penalised: coordinates such as an intercept, over which a quadratic model is minimised in closed form, or all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .regularizers import FusedLasso, NonNegative, Zero

if TYPE_CHECKING:
    from .problem import Problem

__all__ = ["Border", "make_border", "penalises_nothing"]

Array = np.ndarray[Any, Any]


def penalises_nothing(problem: Problem) -> bool:
    """Tell whether the regulariser is zero everywhere: for want of a strength, or of a second column to fuse with the first."""
    bound = problem._bound
    if isinstance(bound, NonNegative):  # infinite below zero, whatever its strength
        return False
    alone = isinstance(bound, FusedLasso) and problem.p == 1
    weak = alone or getattr(bound, "lam", 1.0) == 0.0
    return isinstance(bound, Zero) or (weak and getattr(bound, "l1", 0.0) == 0.0)


class Border(NamedTuple):
    """What the matrix of a model has beside that of the penalised coordinates."""

    products: Array  # of their columns with the free ones
    inverse: Array  # of the free ones' products with each other

    def without(self, matrix: Array, slopes: Array, at_free: Array) -> tuple[Array, Array]:
        """Return the matrix and the slopes of what is left when the free coordinates are always at their best."""
        if not at_free.size:
            return matrix, slopes
        return matrix - self.products @ self.inverse @ self.products.T, slopes - self.products @ self.inverse @ at_free

    def best(self, at_free: Array, move: Array) -> Array:
        """Return the move of the free coordinates that is best with one of the others, given their slopes before it."""
        result: Array = -self.inverse @ (at_free + self.products.T @ move)
        return result


def make_border(columns: Any, free: Array, weights: Array, dtype: Any) -> Border:
    """Multiply columns with the free ones, weighted by rows, in the precision of the data."""
    weighted = weights[:, None] * free
    products = columns.transpose_times(weighted.astype(dtype)).astype(np.float64)
    return Border(products, np.linalg.pinv(free.T @ weighted, hermitian=True))
