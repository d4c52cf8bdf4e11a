"""Searches on working sets for a loss that ties the predictions of a row together: the classes of a multinomial one."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any

import numpy as np

from ._calls import has_trait
from .descent import GramModel, Part, descend
from .free import Border
from .search import SWEEPS, Search

if TYPE_CHECKING:
    from .problem import Problem

__all__ = ["JointSearch"]

Array = np.ndarray[Any, Any]

_LARGEST_JOINT = 2000  # coordinates, if every class has its own
_RIDGE = 1e-8  # the same where it is only that some coordinates do not matter: what all classes have in common
_COMMON = 1e-9  # of the largest eigenvalue, below which it is that of adding the same to all classes: zero but for rounding
_EXACTLY = 1e-5  # of what the units of a joint model may still want where jumps are cheap; elsewhere 0.01 of it will do


class JointSearch(Search):
    """The same for a loss that ties the predictions of a row together: each target has coordinates of its own in the model.

    These are in the order of the rows of the parameter, so that the groups of a regulariser stay together.
    """

    def __init__(self, problem: Problem, x0: Array, predictions: Array | None) -> None:
        self._level = float(x0[-1].mean())
        super().__init__(problem, x0, predictions)

    def _newton_step(self, goal: float) -> bool:
        """Minimise the model on the set and go there; return whether that is anywhere else."""
        q = self._z.shape[1]
        if self.is_large():  # before there is such a matrix
            return False
        matrix, border = self._joint_model()
        before, at_free = self._z[self._rows].reshape(-1, 1), self._free_slopes.reshape(-1, 1)
        matrix, slopes = border.without(matrix, self._slopes[self._rows].reshape(-1, 1), at_free)
        alone = has_trait(type(self._problem._bound), "elementwise")
        starts = np.arange(len(before) + 1) if alone else q * self._starts
        which = np.arange(len(before)) if alone else self._chosen
        part = Part(self._space.handle, which, starts, self._space.lasso, self._space.positive)
        tol = goal * (0.01 if np.isnan(self._space.lasso) else _EXACTLY)
        new, sweeps = descend(GramModel(part, matrix, slopes, before), lambda w: self._penalty(w.reshape(-1, q)), tol, SWEEPS)
        move = new - before
        shift = border.best(at_free, move)
        self._stalled = 0 if sweeps is not None else self._stalled + 1
        return bool(move.any() or shift.any()) and self._go(move.reshape(-1, q), shift.reshape(-1, q))

    def _is_rough(self) -> bool:
        return False  # second derivatives of classes that are told apart well are small differences

    def _go(self, move: Array, shift: Array, along: Array | None = None) -> bool:
        """Go there; what all classes have in common does not matter, so their intercepts keep the mean they had at first."""
        moved = super()._go(move, shift, along)
        if moved and self._free.size:
            common = self.x[-1].mean() - self._level
            self._free -= common
            self.predictions -= self._problem.dtype.type(common)
        return moved

    def is_large(self) -> bool:
        """Tell whether the model would be too large a matrix."""
        return self._z.shape[1] * len(self._rows) > _LARGEST_JOINT

    def _free_step(self) -> Array:
        bent = self._problem.joint_second_derivatives(self.predictions)
        inverse = np.linalg.pinv(self._free_products(bent), _COMMON, hermitian=True)
        step: Array = -(inverse @ self._free_slopes.reshape(-1)).reshape(self._free_slopes.shape)
        return step

    def _free_products(self, bent: Callable[[int, int], Array]) -> Array:
        """Return the second derivatives in the intercepts, shape (q, q); of none without them."""
        classes = range(self._free.shape[1] if self._free.size else 0)
        return np.array([[float(bent(j, k).sum()) for k in classes] for j in classes]).reshape(len(classes), len(classes))

    def _joint_model(self) -> tuple[Array, Border]:
        """Return the second derivatives in the coordinates of the set, and what they have beside it."""
        count, q = len(self._rows), self._z.shape[1]
        bent = self._problem.joint_second_derivatives(self.predictions)
        matrix, products = np.empty((count, q, count, q)), np.zeros((count, q, q if self._free.size else 0))
        for j, k in combinations_with_replacement(range(q), 2):
            sign = 1.0 if j == k else -1.0  # that of the second derivatives: products are made of roots of weights
            weights = bent(j, k)
            block = sign * self._columns.gram(sign * weights)
            matrix[:, j, :, k] = matrix[:, k, :, j] = block
            if self._free.size:
                beside = self._columns.transpose_times(weights[:, None].astype(self._problem.dtype))[:, 0]
                products[:, j, k] = products[:, k, j] = beside
        matrix = matrix.reshape(count * q, count * q)
        matrix[np.diag_indices(len(matrix))] *= 1.0 + _RIDGE
        matrix[np.diag_indices(len(matrix))] += self._space.ridge
        inverse = np.linalg.pinv(self._free_products(bent), _COMMON, hermitian=True)
        return matrix, Border(products.reshape(count * q, products.shape[2]), inverse)
