"""One search on working sets: which units are worked on, the quadratic model on their columns, and steps to its minimum."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ._passes import WORTH_A_THREAD
from ._points import Point, recall, remember
from .columns import DenseColumns, RoughColumns, SparseColumns, drift
from .descent import MEMORY, ColumnModel, GramModel, Part, descend
from .free import make_border
from .losses import is_quadratic
from .spaces import find_space

if TYPE_CHECKING:
    from .problem import Problem

__all__ = ["SWEEPS", "Search"]

Array = np.ndarray[Any, Any]

_FIRST = 128  # rows of the parameter in the first set
_FIRST_SPARSE = 1024  # whose columns cost little
_LATER = 0.5  # of that, in later sets, at least
_NEARLY_ALL = 0.7  # of the rows: to find the gradient in the others as well costs less than to find it again for all
_CROWDED = 0.75  # of the rows in a set that are not zero: then it is far too small
_PACKED = 0.95  # then it is smaller still
_SMALL = 256  # columns, whose Gram matrix is always cheap
_TANGLED = 5000  # columns that depend on each other, whose Gram matrix is worth its price
_WIDE = 0.5  # columns a row, from which a sweep over them is cheaper than their Gram matrix; for sparse ones it always is
_LARGEST = 5000  # rows of the parameter: the model is a square matrix of this size
_MANY_JUMPS, _MOST_JUMPS = 150, 600  # more than the first only while a round has at most
_FAST = 1.6  # times as many as the one before: there the end is near
_DRIFT = 0.1  # relative change of the second derivatives up to which a model is kept
_NEWTON_STEPS = 10  # on a set, before all units are looked at again
_WORTH_KEEPING = 0.7  # of a set's units: leaving out fewer than the others saves less than it costs
_ENOUGH = 0.3  # a set is done when what its units want is this share of what all wanted,
_ENOUGH_LATER = 0.1  # or this, if all units are in it, or
_LATE = 1e-3  # as soon as that is this share of what they wanted at first: then sets are as they will be
_COSTLY = 600  # columns, whose Gram matrix in single precision saves more than the rounds that correct it cost
_HELPS = 0.3  # of what units wanted before a round: a model in single precision that leaves more of it is not precise enough
_ROUGH = 1e-5  # what is added to the diagonal of a matrix in single precision, relatively: rounding must not bend it down
SWEEPS = 1000  # over a matrix
_SWEEPS_OF_JUMPS = 200  # the same where columns depend on each other: then more of them hardly help
_COLUMNS_A_SWEEP = 100  # with as many for each sweep that did, sweeps over columns cost less than their Gram matrix
_SWEEPS_OF_COLUMNS = 300  # after so many it is better to have the Gram matrix, whatever it costs,
_FEWEST_SWEEPS = 20  # and never after fewer
_GROUPED = 4.0  # rows a unit: of so many a step settles what columns that are side by side have in common
_STALLS = 2  # successive models whose minimum so many sweeps did not find


class Search:
    """The state between rounds: where the run is, the set, and the model on it."""

    def __init__(self, problem: Problem, x0: Array, predictions: Array | None) -> None:
        self._problem = problem
        self._space = find_space(problem)
        self._quadratic = is_quadratic(problem.loss)
        self._z, self._free = self._space.split(x0)
        if predictions is None:
            predictions = problem.predict(x0) if x0.any() else np.zeros_like(problem._targets)
        self.predictions = predictions
        self._of_rows: Array | None = None  # the slopes of the losses there, if they were computed
        self._objective: float | None = None
        self.smooth = math.nan  # f there, if it is known
        self._columns = self._space.columns(roughly=self._is_rough())
        self._free_columns = self._space.free_columns()
        self._set(np.empty(0, np.int64))
        self._first_wish = 0.0
        self._rounds = 0
        self._stalled = 0
        self._jumps = 0  # before the last round
        self._sweeps: int | None = None  # over columns, that the last step took
        self._swept = 0  # sweeps over columns in all
        self._grouped = len(self._z) >= _GROUPED * (len(self._space.units.starts) - 1)
        self._tangled = self._space.tangled
        self._matrix: Array = np.empty((0, 0))  # of the model, for the first columns of the set
        self._exact = self._quadratic and (problem.dtype != np.float64 or "kept set" in problem._facts)  # it must be
        self._wish = math.inf  # before the last round
        self._weights = np.zeros(problem.n)  # the second derivatives that it was made with
        self._before = self._weights  # those of the last step
        known = recall(problem, x0)
        if known is not None and known.gradient is not None:
            self._notice(known.gradient)
        else:
            self._fit_free()
            self._look()
        self._take_up()

    def _is_rough(self) -> bool:
        """Tell whether seven digits will do for the model."""
        return not self._quadratic

    def _fit_free(self) -> None:
        """Minimise over the free coordinates alone, without a pass over the data: where others want to go depends on them."""
        self._slopes = np.zeros_like(self._z)
        for _ in range(_NEWTON_STEPS if self._free.size else 0):
            self._free_slopes = self._free_columns.T @ self._problem.slopes(self.predictions).astype(np.float64)
            if not self._go(np.zeros((0, self._z.shape[1])), self._free_step()) or self._quadratic:
                break

    def _free_step(self) -> Array:
        """Return Newton's step in the free coordinates alone."""
        weights = self._problem.second_derivatives(self.predictions)
        products = self._free_columns.T @ (weights[:, None] * self._free_columns)
        step: Array = -np.linalg.pinv(products, hermitian=True) @ self._free_slopes
        return step

    def _take_up(self) -> None:
        """Begin with the set of an earlier run, if that was kept: the model of a squared loss depends on the data only."""
        kept = self._problem._facts.get("kept set")
        if self._quadratic and kept is not None and np.array_equal(kept[0].starts, self._space.units.starts):
            _, units, self._columns, self._matrix, self._weights = kept
            self._set(units)

    def put_away(self) -> None:
        """Keep the set, and what is known here, for a later run, if anybody wants it."""
        remember(self._problem, Point(self.x, self.predictions, self.gradient))
        if self._quadratic and "kept set" in self._problem._facts:
            kept = self._space.units, self._chosen, self._columns, self._matrix, self._weights
            self._problem._facts["kept set"] = kept

    @property
    def x(self) -> Array:
        """The packed parameter."""
        return self._space.join(self._z, self._free)

    def _look(self) -> None:
        """Find the gradient: one pass over the data."""
        self._notice(self._problem.packed_gradient(self.x, self.predictions, self._of_rows))

    def _notice(self, gradient: Array) -> None:
        self.gradient, self._looked = gradient, True
        self._slopes, self._free_slopes = self._space.pull(gradient)

    def _set(self, units: Array) -> None:
        """Let these units be the working set; the columns are not touched."""
        starts, rows = self._space.units
        sizes = starts[units + 1] - starts[units]
        self._chosen = units
        self._starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._rows = rows[np.repeat(starts[units] - self._starts[:-1], sizes) + np.arange(self._starts[-1])]

    def round(self) -> bool:
        """Choose units, work on them, look at all again; return whether anything moved."""
        wants = self._wants()
        self._rounds += 1
        self._jumps = self._count_jumps()
        wish = max(float(wants.max(initial=0.0)), self._free_wants())
        self._first_wish = max(self._first_wish, wish)
        self._watch_model(float(wants[self._chosen].max(initial=0.0)))
        self._wish = wish
        self._choose(wants)
        goal = wish * self._share(wish)
        moved = False
        for _ in range(1 if self._quadratic else _NEWTON_STEPS):
            step = self._newton_step(goal)
            moved = moved or step
            if not step or max(float(self._wants()[self._chosen].max(initial=0.0)), self._free_wants()) <= goal:
                break
        else:
            self._forget_model()
        if not self._looked:
            self._look()
        return moved

    def _share(self, wish: float) -> float:
        """Return the share of what all units want that those of the set may still want when it is done."""
        early = wish > _LATE * self._first_wish and not (self._quadratic and len(self._rows) == len(self._z))
        return _ENOUGH if early else _ENOUGH_LATER

    def _watch_model(self, left: float) -> None:
        """Have an exact matrix made if one in single precision left too much of what its units had wanted."""
        if self._quadratic and left > _HELPS * self._wish and not self._exact:
            self._exact, self._matrix = True, np.empty((0, 0))

    def is_zero(self) -> bool:
        """Tell whether no unit has left zero yet."""
        return not self._z.any()

    def is_large(self) -> bool:
        """Tell whether the model is too large a matrix, or there are so many jumps that finding them one by one is slow."""
        jumps = self._count_jumps()
        many = jumps > (_MANY_JUMPS if jumps > _FAST * self._jumps else _MOST_JUMPS)
        return many or len(self._matrix) > _LARGEST

    def _count_jumps(self) -> int:
        return int(np.count_nonzero(self._z)) if self._space.tangled else 0

    def is_stalled(self) -> bool:
        """Tell whether coordinate descent no longer gets anywhere: the columns depend too much on each other."""
        return self._stalled >= _STALLS

    def is_content(self) -> bool:
        """Tell whether no unit wants to move, as far as rounding lets us see."""
        return max(float(self._wants().max(initial=0.0)), self._free_wants()) <= 1e-9 * self._first_wish

    def _wants(self) -> Array:
        """Return how far each unit would move in a proximal step of length 1: zero for those that are where they belong."""
        moved = self._z - self._space.prox(self._z - self._slopes)
        return np.sqrt(self._of_units(np.add, (moved**2).sum(axis=1)))

    def _free_wants(self) -> float:
        return float(np.abs(self._free_slopes).max(initial=0.0))

    def _active(self) -> Array:
        """Tell which units are not zero."""
        return self._of_units(np.logical_or, np.any(self._z != 0.0, axis=1))

    def _of_units(self, function: np.ufunc, of_rows: Array) -> Array:
        """Reduce one number a row to one a unit."""
        starts, rows = self._space.units
        result: Array = function.reduceat(of_rows[rows], starts[:-1])
        return result

    def _choose(self, wants: Array) -> None:
        """Add the units that want to move most to the set: those that are not zero, and about as many others."""
        sizes = np.diff(self._space.units.starts)
        before = len(self._rows)
        active = self._active()
        stage = max(self._rounds, 2 if active.any() else 1)  # near another answer the first one is over
        eager = np.where(active, np.inf, self._space.sift(wants, stage))
        eager[self._chosen] = 0.0
        order = np.argsort(-eager, kind="stable")
        order = order[eager[order] > 0.0]
        used = int(sizes[active].sum())
        growth = 1 if used < _CROWDED * before else 3 if used < _PACKED * before else 12
        if self._space.tangled:  # where others are wanted as soon as there are some
            growth = 1 if before else 2
        first = _FIRST_SPARSE if isinstance(self._columns, SparseColumns) else _FIRST
        room = max(first if before == 0 else _LATER * first, growth * used)
        if len(self._rows) + room < 0.5 * len(self._z):
            order = order[: np.searchsorted(np.cumsum(sizes[order]), room, side="right") + 1]
        known = self._rows
        self._set(np.concatenate([self._chosen, np.sort(order)]))  # sorted: memory is read forwards
        if self._quadratic:
            self._choose_precision(known)
        self._columns.add(self._rows[before:])
        if isinstance(self._columns, RoughColumns) and not self._columns.are_safe(before):
            self._columns, self._exact = self._columns.exact(), True

    def _newton_step(self, goal: float) -> bool:
        """Minimise the model on the set and go there; return whether that is anywhere else."""
        weights = self._problem.second_derivatives(self.predictions)
        one_by_one = self._is_one_by_one()
        if not (self._quadratic or self._tangled) and len(self._rows) > _SMALL:
            one_by_one = one_by_one or not self._is_worth_a_matrix(weights)
        self._before = weights
        if not one_by_one:
            self._update_matrix(weights)
        tol = goal * (0.5 if one_by_one else 0.01 if self._quadratic else 0.1)  # where sweeps are cheap, more of them
        before, slopes, at_free = self._z[self._rows], self._slopes[self._rows], self._free_slopes
        part = Part(self._space.handle, self._chosen, self._starts, self._space.lasso, self._space.positive)
        if one_by_one:
            single = ColumnModel(part, self._columns, self._free_columns, weights, self._space.ridge, slopes, before, at_free)
            new, sweeps = descend(single, self._penalty, tol, self._most_sweeps())
            move = new - before
            shift, self._sweeps = single.state[2], sweeps
            along = single.along if sweeps is not None and sweeps <= MEMORY else None  # else rounding may have been added up
            self._swept += sweeps or 0
            if sweeps is None:
                self._weights = np.zeros_like(weights)  # to have a matrix made for those who are not content only
        else:
            border = make_border(self._columns, self._free_columns, self._weights, self._problem.dtype)
            matrix, slopes = border.without(self._matrix, slopes, at_free)
            model = GramModel(part, matrix, slopes, before)
            new, sweeps = descend(model, self._penalty, tol, _SWEEPS_OF_JUMPS if self._space.tangled else SWEEPS)
            move = new - before
            shift, along = border.best(at_free, move), None
        self._stalled = 0 if sweeps is not None else self._stalled + (not one_by_one or self._tangled)
        self._tangled = self._tangled or sweeps is None
        return bool(move.any() or shift.any()) and self._go(move, shift, along)

    def _is_one_by_one(self) -> bool:
        """Tell whether sweeps over the columns of the set cost less than all their products.

        A step on a group settles what its columns have in common, so that few sweeps do. A path uses the products again.
        """
        size, sparse = len(self._rows), isinstance(self._columns, SparseColumns)
        if self._quadratic and self._grouped and not (self._tangled or sparse or "kept set" in self._problem._facts):
            return size > _SMALL
        return size > max(_TANGLED if self._tangled else _SMALL, 0.0 if sparse else _WIDE * self._problem.n)

    def _choose_precision(self, known: Array) -> None:
        """Have many columns of a squared loss, ``known`` so far, in single precision for sweeps, which later rounds correct."""
        columns, one_by_one = self._columns, self._is_one_by_one()
        if isinstance(columns, RoughColumns):
            self._columns = columns if one_by_one and not self._exact else columns.exact()
        elif one_by_one and isinstance(columns, DenseColumns) and not (self._exact or self._tangled):
            if len(self._rows) * self._problem.n * self._problem.dtype.itemsize > WORTH_A_THREAD:
                rough = RoughColumns.of(columns, known)
                self._exact = not rough.are_safe(0)
                self._columns = columns if self._exact else rough

    def _is_worth_a_matrix(self, weights: Array) -> bool:
        """Tell whether the model should have a matrix: not if it would be made anew in the next step, or if few sweeps do."""
        changed = drift(self._weights, weights) > _DRIFT
        if changed and drift(self._before, weights) > _DRIFT:
            return False
        known = not changed and 2 * len(self._matrix) >= len(self._rows)
        return known or self._sweeps is None or len(self._rows) < _COLUMNS_A_SWEEP * self._sweeps

    def _most_sweeps(self) -> int:
        """Return after how many sweeps over the columns of the set it had better have a matrix.

        Where a sweep over that is cheaper, as soon as those over columns have cost as much as making it.
        """
        if not self._quadratic or isinstance(self._columns, SparseColumns) or len(self._rows) >= self._problem.n:
            return _SWEEPS_OF_COLUMNS
        at_once = max(_FEWEST_SWEEPS, len(self._rows) // _COLUMNS_A_SWEEP)
        return max(1, min(at_once, 2 * at_once - self._swept))

    def _penalty(self, w: Array) -> float:
        """Return the regulariser at the current point with other values on the set."""
        z = self._z.copy()
        z[self._rows] = w
        return self._problem.penalty(self._space.join(z, self._free))

    def _update_matrix(self, weights: Array) -> None:
        """Add the new columns to the model's matrix; make it anew where the second derivatives have changed a lot."""
        if drift(self._weights, weights) > _DRIFT:
            self._drop_idle()
            self._weights = weights
            self._matrix = np.empty((0, 0))
        size, done = len(self._rows), len(self._matrix)
        if size == done:
            return
        roughly = not self._exact and (not self._quadratic or size >= _COSTLY)
        new = self._columns.gram(self._weights, done, roughly=roughly)
        diagonal = np.arange(size - done), np.arange(done, size)
        new[diagonal] = new[diagonal] * (1.0 + _ROUGH if roughly else 1.0) + self._space.ridge
        matrix = np.empty((size, size))
        matrix[:done, :done], matrix[done:], matrix[:done, done:] = self._matrix, new, new[:, :done].T
        self._matrix = matrix

    def _forget_model(self) -> None:
        """Have the model made anew before the next step, however little the second derivatives change: it promised too much."""
        if not self._quadratic:
            self._weights = np.zeros_like(self._weights)

    def _drop_idle(self) -> None:
        """Leave the units out of the set that are zero and content to be."""
        stay: Array = np.logical_or(self._active(), self._wants() > 0.0)
        stay = stay[self._chosen]
        if stay.sum() >= _WORTH_KEEPING * len(stay):
            return
        self._columns.keep(np.flatnonzero(np.repeat(stay, np.diff(self._starts))))
        self._set(self._chosen[stay])

    def _go(self, move: Array, shift: Array, along: Array | None = None) -> bool:
        """Go as far in a direction as pays; return whether that is anywhere.

        ``along``, how much predictions change, saves time if it is known.
        """
        problem, rows = self._problem, self._rows
        if along is None:
            along = self._columns.times(move).reshape(problem.n, -1) + self._free_columns @ shift
        along = along.astype(problem.dtype)
        direction = np.zeros_like(self._z)
        direction[rows] = move
        length = 1.0 if self._quadratic else self._search_line(direction, shift, along)
        if length < 1.0:
            self._forget_model()
        if length == 0.0:
            return False
        self._z, self._free = self._z + length * direction, self._free + length * shift
        self.predictions = self.predictions + problem.dtype.type(length) * along
        self._looked = False
        if not self._quadratic:
            slopes = self._of_rows = problem.slopes(self.predictions)
        if (self._columns.is_rough and len(rows)) or (not self._quadratic and len(rows) > _NEARLY_ALL * len(self._z)):
            self._look()
        elif not self._quadratic:
            self._slopes[rows] = self._columns.transpose_times(slopes) + self._space.ridge * self._z[rows]
            self._free_slopes = self._free_columns.T @ slopes
        return True

    def _search_line(self, direction: Array, shift: Array, along: Array) -> float:
        """Halve the step until the objective falls by enough of what the model promises."""
        problem = self._problem

        def value(length: float) -> tuple[float, float]:
            x = self._space.join(self._z + length * direction, self._free + length * shift)
            with np.errstate(over="ignore", invalid="ignore"):
                smooth = problem.smooth_value(x, self.predictions + problem.dtype.type(length) * along)
            return smooth, smooth + problem.penalty(x)

        here = value(0.0)[1] if self._objective is None else self._objective
        full = self._space.join(self._z + direction, self._free + shift)
        slope = float(np.vdot(self._slopes, direction)) + float(np.vdot(self._free_slopes, shift))
        slope += problem.penalty(full) - problem.penalty(self.x)
        slack = 50.0 * float(np.finfo(problem.dtype).eps) * abs(here)
        length = 1.0
        for _ in range(40):
            smooth, there = value(length)
            if there <= here + 0.01 * length * min(slope, 0.0) + slack:
                self.smooth, self._objective = smooth, there
                return length
            length *= 0.5
        return 0.0
