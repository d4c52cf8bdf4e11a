r"""Coordinates in which a regulariser falls into units, most of which are zero at the optimum.

For L1 and group penalties these are the parameter's own. A fused lasso ties all of these together, but in the jumps
:math:`d_j = w_{j+1} - w_j` and a constant it is an L1 norm of the jumps: the column of a jump is the sum of all columns after
it. What is not penalised, an intercept or that constant, are the *free* coordinates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ._handles import Handle
from .columns import DenseColumns, SparseColumns, add_up, no_columns
from .descent import Units, make_units, unit_handle
from .losses import is_quadratic
from .regularizers import L1, FusedLasso, NonNegative
from .rows import DenseRows, matrix

if TYPE_CHECKING:
    from .problem import Problem

__all__ = ["Jumps", "Plain", "Space", "falls_apart", "find_space"]

Array = np.ndarray[Any, Any]


class Space(Protocol):
    """What a working set needs to know about coordinates."""

    units: Units
    handle: Handle
    ridge: float  # twice the strength of the squared norm
    lasso: float  # the strength if the regulariser is an L1 norm in these coordinates, otherwise NaN
    positive: bool  # must they not be negative?
    tangled: bool  # do columns depend on each other so much that sweeps over them get nowhere?

    def columns(self, roughly: bool = False) -> DenseColumns | SparseColumns:
        """Return an empty selection of columns; ``roughly`` if seven digits will do."""

    def free_columns(self) -> Array:
        """Return the columns of the free coordinates, shape (n, f)."""

    def split(self, x: Array) -> tuple[Array, Array]:
        """Return the coordinates of a packed parameter, and the free ones."""

    def join(self, z: Array, free: Array) -> Array:
        """Return the packed parameter with these coordinates."""

    def pull(self, gradient: Array) -> tuple[Array, Array]:
        """Return the gradient in the coordinates, and in the free ones, given that in a packed parameter."""

    def prox(self, z: Array) -> Array:
        """Return the regulariser's prox in these coordinates, with step 1."""

    def sift(self, wants: Array) -> Array:
        """Return what units want, zero for those that need not be looked at because a neighbour wants the same, but more."""


def falls_apart(problem: Problem) -> bool:
    """Tell whether there are coordinates in which a problem's regulariser falls into units."""
    return make_units(problem._bound, problem.shape) is not None or _has_jumps(problem)


def find_space(problem: Problem) -> Space:
    """Return coordinates in which a problem's regulariser falls into units; the same ones when asked again."""
    kept: dict[str, Any] = problem.__dict__
    if "_space" not in kept:
        kept["_space"] = Jumps(problem) if _has_jumps(problem) else Plain(problem)
    space: Space = kept["_space"]
    return space


def _has_jumps(problem: Problem) -> bool:
    bound, fits = problem._bound, problem._targets.shape[1] == 1 and problem.p > 1 and isinstance(problem._rows, DenseRows)
    fused = isinstance(bound, FusedLasso) and bound.l1 == 0.0 and problem.l2 == 0.0
    return fits and fused and is_quadratic(problem.loss)  # others need more steps here than their passes save


class Plain:
    """The parameter's own coordinates; the intercept is free."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        units = make_units(problem._bound, problem.shape)
        if units is None:
            raise TypeError(f"{type(problem.regularizer).__name__} does not fall into units")
        self.units: Units = units
        self.handle = unit_handle(problem._bound)
        self.ridge = 2.0 * problem.l2
        bound = problem._bound
        self.positive = isinstance(bound, NonNegative)
        is_norm = isinstance(bound, L1) or (isinstance(bound, NonNegative) and bound.ratio == 1.0)
        self.lasso = bound.lam if is_norm else np.nan
        self.tangled = False

    def columns(self, roughly: bool = False) -> DenseColumns | SparseColumns:
        """Return an empty selection of columns."""
        return no_columns(self._problem, roughly)

    def free_columns(self) -> Array:
        """Return a column of ones for an intercept."""
        return np.ones((self._problem.n, int(self._problem.fit_intercept)))

    def split(self, x: Array) -> tuple[Array, Array]:
        """Return w and the intercept, shapes (p, q) and (f, q)."""
        p, q = self._problem.p, self._problem._targets.shape[1]
        flat = x.reshape(len(x), q).astype(np.float64)
        return flat[:p], flat[p:]

    def join(self, z: Array, free: Array) -> Array:
        """Return the packed parameter."""
        return np.concatenate([z, free]).reshape(self._problem.packed_shape).astype(self._problem.dtype)

    def pull(self, gradient: Array) -> tuple[Array, Array]:
        """Return both parts of the gradient."""
        return self.split(gradient)

    def prox(self, z: Array) -> Array:
        """Return the prox with step 1."""
        free = np.zeros((int(self._problem.fit_intercept), z.shape[1]))
        return self.split(self._problem.packed_prox(self.join(z, free), 1.0))[0]

    def sift(self, wants: Array) -> Array:
        """Return them all."""
        return wants


class Jumps:
    """The jumps of a fused lasso; the first coefficient and the intercept are free."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._X = matrix(problem._rows)
        count = problem.p - 1
        self.units = Units(np.arange(count + 1), np.arange(count))
        self.handle = unit_handle(L1(problem._bound.lam))
        self.ridge = 0.0
        self.lasso = problem._bound.lam
        self.positive = False
        self.tangled = True

    def columns(self, roughly: bool = False) -> DenseColumns:
        """Return an empty selection of the jumps' columns."""
        return _JumpColumns(self._X)

    def free_columns(self) -> Array:
        """Return the sum of all columns, and ones for an intercept."""
        sums = self._X.sum(axis=1, dtype=np.float64)
        return np.column_stack([sums, np.ones(self._problem.n)] if self._problem.fit_intercept else [sums])

    def split(self, x: Array) -> tuple[Array, Array]:
        """Return the jumps, and the first coefficient with the intercept."""
        p = self._problem.p
        w = x.ravel().astype(np.float64)
        return np.diff(w[:p])[:, None], np.concatenate([w[:1], w[p:]])[:, None]

    def join(self, z: Array, free: Array) -> Array:
        """Return the packed parameter, exactly constant where no jump is."""
        w = np.concatenate([free[:1, 0], free[0, 0] + np.cumsum(z[:, 0]), free[1:, 0]])
        return w.reshape(self._problem.packed_shape).astype(self._problem.dtype)

    def pull(self, gradient: Array) -> tuple[Array, Array]:
        """Return the sums of all entries after each jump, and the sum of all with the intercept's."""
        p, flat = self._problem.p, gradient.ravel().astype(np.float64)
        sums = np.cumsum(flat[:p][::-1])[::-1]
        return sums[1:, None], np.concatenate([sums[:1], flat[p:]])[:, None]

    def prox(self, z: Array) -> Array:
        """Soft-threshold the jumps."""
        return np.sign(z) * np.maximum(np.abs(z) - self.lasso, 0.0)

    def sift(self, wants: Array) -> Array:
        """Return the peaks: a jump's wish is a sum over all entries after it, so neighbours want nearly the same."""
        before, after = np.concatenate([[-1.0], wants[:-1]]), np.concatenate([wants[1:], [-1.0]])
        return np.where((wants >= before) & (wants > after), wants, 0.0)


class _JumpColumns(DenseColumns):
    """Sums of all columns after a jump."""

    def _gather(self, index: Array, out: Array) -> None:
        order = np.argsort(index)
        memory = np.empty_like(out)
        self._fill(add_up, np.ascontiguousarray(index[order]), memory)
        out[order] = memory
