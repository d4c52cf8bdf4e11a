r"""Coordinates in which a regulariser falls into units, most of which are zero at the optimum.

For L1 and group penalties these are the parameter's own. A fused lasso ties all of these together, but in the jumps
:math:`d_j = w_{j+1} - w_j` and a constant it is an L1 norm of the jumps: the column of a jump is the sum of all columns after
it. What is not penalised, an intercept or that constant, are the *free* coordinates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ._handles import Handle
from .centred import constant_columns
from .columns import DenseColumns, SparseColumns, Wanted, add_up, no_columns, write_rows
from .descent import Units, make_units, unit_handle
from .losses import is_quadratic
from .regularizers import L1, FusedLasso, NonNegative
from .rows import DenseRows, column_means, matrix

if TYPE_CHECKING:
    from .problem import Problem

__all__ = ["Jumps", "Plain", "Space", "falls_apart", "find_space"]

Array = np.ndarray[Any, Any]

_NEAR = 2  # places from a peak
_EARLY = 2  # stages in which it is not clear yet where jumps are
_WINDOWS = 96  # in the first of them


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

    def sift(self, wants: Array, stage: int) -> Array:
        """Return what units want, zero for those that need not be looked at because a neighbour wants the same, but more.

        At the first stages, from 1, nothing is where it belongs yet.
        """


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
    """The parameter's own coordinates; the intercept is free, for dense data as the prediction of a mean row."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._means, self._flat = _means(problem)
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
        return no_columns(self._problem, self._means, roughly)

    def free_columns(self) -> Array:
        """Return a column of ones for an intercept."""
        return np.ones((self._problem.n, int(self._problem.fit_intercept)))

    def split(self, x: Array) -> tuple[Array, Array]:
        """Return w and the prediction of a mean row, shapes (p, q) and (f, q)."""
        p, q = self._problem.p, self._problem._targets.shape[1]
        flat = x.reshape(len(x), q).astype(np.float64)
        return flat[:p], flat[p:] + (self._means @ flat[:p] if len(flat) > p else 0.0)

    def join(self, z: Array, free: Array) -> Array:
        """Return the packed parameter."""
        packed = np.concatenate([z, free - self._means @ z]) if len(free) else z
        return packed.reshape(self._problem.packed_shape).astype(self._problem.dtype)

    def pull(self, gradient: Array) -> tuple[Array, Array]:
        """Return both parts of the gradient."""
        p, q = self._problem.p, self._problem._targets.shape[1]
        flat = gradient.reshape(len(gradient), q).astype(np.float64)
        slopes = flat[:p] - np.outer(self._means, flat[p:].sum(axis=0))
        if self.ridge == 0.0:
            slopes[self._flat] = 0.0  # but for rounding
        return slopes, flat[p:]

    def prox(self, z: Array) -> Array:
        """Return the prox with step 1."""
        free = np.zeros((int(self._problem.fit_intercept), z.shape[1]))
        return self.split(self._problem.packed_prox(self.join(z, free), 1.0))[0]

    def sift(self, wants: Array, stage: int) -> Array:
        """Return them all."""
        return wants


def _means(problem: Problem) -> tuple[Array, Array]:
    """Return the means of dense columns, which an intercept makes up for, zeros without one; and which are constant."""
    rows = problem._rows
    if not (problem.fit_intercept and isinstance(rows, DenseRows)):
        return np.zeros(problem.p), np.zeros(0, np.int64)

    def find() -> tuple[Array, Array]:
        means = column_means(rows, problem._weights).astype(np.float64)
        flat = constant_columns(rows.X, means)
        means[flat] = rows.X[0, flat]
        return means, flat

    found: tuple[Array, Array] = problem._fact("means", find)
    return found


class _Basis(NamedTuple):
    """What the columns of jumps are measured from, so that columns far from zero or of any size do no harm."""

    means: Array  # (p,): of the data's columns, zero without an intercept
    after: Array  # (p - 1,): of the jumps' columns
    scale: float  # of the free coordinate that is the first coefficient
    free: Array  # (n, f): the columns of the free coordinates


def _make_basis(problem: Problem) -> _Basis:
    means, _ = _means(problem)
    whole = _row_sums(matrix(problem._rows))
    problem._facts["row sums"] = whole[:, None]  # which a certificate asks for, too
    sums = whole - means.sum()
    scale = float(np.sqrt(np.average(sums**2, weights=problem._weights))) or 1.0
    free = [sums / scale, np.ones(problem.n)] if problem.fit_intercept else [sums / scale]
    return _Basis(means, np.cumsum(means[::-1])[::-1][1:], scale, np.column_stack(free))


def _row_sums(X: Array) -> Array:
    """Add up every row, in double precision."""
    sums = np.empty((1, len(X)))
    write_rows(add_up, X, Wanted(np.array([-1]), np.zeros(1), np.zeros(1, np.int64)), sums)  # after the place before the first
    return sums[0]


class Jumps:
    """The jumps of a fused lasso; a multiple of the first coefficient, and what is predicted of a mean row, are free."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._X = matrix(problem._rows)
        self._basis: _Basis = problem._fact("basis of jumps", lambda: _make_basis(problem))
        count = problem.p - 1
        self.units = Units(np.arange(count + 1), np.arange(count))
        self.handle = unit_handle(L1(problem._bound.lam))
        self.ridge = 0.0
        self.lasso = problem._bound.lam
        self.positive = False
        self.tangled = True

    def columns(self, roughly: bool = False) -> DenseColumns:
        """Return an empty selection of the jumps' columns."""
        return _JumpColumns(self._X, self._basis.after)

    def free_columns(self) -> Array:
        """Return the sum of all columns, centred if there is an intercept and scaled, and ones for that."""
        return self._basis.free

    def split(self, x: Array) -> tuple[Array, Array]:
        """Return the jumps, and the first coefficient scaled, with the prediction of a mean row."""
        basis, flat = self._basis, x.ravel().astype(np.float64)
        w, intercept = flat[: self._problem.p], flat[self._problem.p :]
        return np.diff(w)[:, None], np.concatenate([basis.scale * w[:1], intercept + basis.means @ w])[:, None]

    def join(self, z: Array, free: Array) -> Array:
        """Return the packed parameter, exactly constant where no jump is."""
        basis, first = self._basis, free[:1, 0] / self._basis.scale
        w = np.concatenate([first, first + np.cumsum(z[:, 0])])
        packed = np.concatenate([w, free[1:, 0] - basis.means @ w])
        return packed.reshape(self._problem.packed_shape).astype(self._problem.dtype)

    def pull(self, gradient: Array) -> tuple[Array, Array]:
        """Return the sums of all entries after each jump, and the scaled sum of all with the intercept's, both centred."""
        basis, flat = self._basis, gradient.ravel().astype(np.float64)
        w, intercept = flat[: self._problem.p], flat[self._problem.p :]
        sums = np.cumsum((w - basis.means * intercept.sum())[::-1])[::-1]
        return sums[1:, None], np.concatenate([sums[:1] / basis.scale, intercept])[:, None]

    def prox(self, z: Array) -> Array:
        """Soft-threshold the jumps."""
        return np.sign(z) * np.maximum(np.abs(z) - self.lasso, 0.0)

    def sift(self, wants: Array, stage: int) -> Array:
        """Return the peaks: a jump's wish is a sum over all entries after it, so neighbours want nearly the same.

        At early stages peaks are not quite where they belong, so that their neighbours come next. The first one has a jump in
        each of many windows before all others: with one wherever it is wanted, if only roughly, the next peaks are where
        jumps should be, and not where the largest of them hides the others.
        """
        before, after = np.concatenate([[-1.0], wants[:-1]]), np.concatenate([wants[1:], [-1.0]])
        peaks = (wants >= before) & (wants > after) & (wants > 0.0)
        near = np.zeros_like(peaks)
        for distance in range(1, 1 + _NEAR if stage <= _EARLY else 1):
            near[distance:] |= peaks[:-distance]
            near[:-distance] |= peaks[distance:]
        result: Array = np.where(peaks, wants, np.where(near, np.finfo(np.float64).tiny * (1.0 + wants), 0.0))
        if stage == 1:
            result[_highest(np.where(peaks, wants, 0.0))] += float(wants.max(initial=1.0))
        return result


def _highest(peaks: Array) -> Array:
    """Return the place of the highest peak in each of many windows; its middle if there is none."""
    size = -(-len(peaks) // _WINDOWS)
    starts = np.arange(0, len(peaks), size)
    padded = np.zeros((len(starts), size))
    padded.ravel()[: len(peaks)] = peaks
    places: Array = starts + np.where(padded.any(axis=1), padded.argmax(axis=1), size // 2)
    return places[places < len(peaks)]


class _JumpColumns(DenseColumns):
    """Sums of all columns after a jump, less their means."""

    def _gather(self, index: Array, out: Array) -> None:
        self._fill(add_up, index, out)
