r"""Working sets: the cost follows the size of the answer, not that of the parameter.

Regularisers that fall into units, single coordinates or groups, leave most of them at zero. So only the units that are not
zero, and those that most want to leave it, are worked on; all others wait. One round is

1. choose the units from the full gradient, one pass over the data (the jumps, for a fused lasso);
2. on their columns minimise a quadratic model, :math:`C^T D\,C` with D the losses' second derivatives, by coordinate descent
   (for squared losses the model is the problem itself), and go there, by backtracking if need be, a few times.

The gradient that chooses the next units also gives the duality gap: no other pass is made. The intercept, which is not
penalised, is always there; the model is minimised over it in closed form.

References
----------
Johnson, Guestrin: Blitz: a principled meta-algorithm for scaling sparse optimization, ICML 2015.
Massias, Gramfort, Salmon: Celer: a fast solver for the lasso with dual extrapolation, ICML 2018.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any

import numpy as np

from ._calls import has_trait
from ._jit import run
from ._points import Point, recall, remember
from .columns import RoughColumns, SparseColumns
from .descent import ColumnModel, GramModel, Part, descend
from .free import Border, make_border
from .losses import Multinomial, has_second_derivatives, is_quadratic
from .problem import loss_second_derivatives
from .regularizers import Box, Zero
from .spaces import falls_apart, find_space

if TYPE_CHECKING:
    from .problem import Problem

__all__ = ["can_solve", "compile_for", "kept_sets", "minimise"]

Array = np.ndarray[Any, Any]

_FIRST = 128  # rows of the parameter in the first set
_FIRST_SPARSE = 1024  # whose columns cost little
_LATER = 0.5  # of that, in later sets, at least
_CROWDED = 0.75  # of the rows in a set that are not zero: then it is far too small
_PACKED = 0.95  # then it is smaller still
_SMALL = 256  # columns, whose Gram matrix is always cheap
_TANGLED = 5000  # columns that depend on each other, whose Gram matrix is worth its price
_WIDE = 0.5  # columns a row, from which a sweep over them is cheaper than their Gram matrix; for sparse ones it always is
_LARGEST = 5000  # rows of the parameter: the model is a square matrix of this size
_LARGEST_JOINT = 2000  # coordinates, if every class has its own
_MOST_JUMPS = 100
_DRIFT = 0.1  # relative change of the second derivatives up to which a model is kept
_NEWTON_STEPS = 10  # on a set, before all units are looked at again
_WORTH_KEEPING = 0.7  # of a set's units: leaving out fewer than the others saves less than it costs
_ENOUGH = 0.3  # a set is done when what its units want is this share of what all wanted,
_ENOUGH_LATER = 0.1  # or this,
_LATE = 1e-3  # as soon as that is this share of what they wanted at first: then sets are as they will be
_ROUGH = 1e-5  # what is added to the diagonal of a matrix in single precision, relatively: rounding must not bend it down
_RIDGE = 1e-8  # the same where it is only that some coordinates do not matter: what all classes have in common
_COMMON = 1e-9  # of the largest eigenvalue, below which it is that of adding the same to all classes: zero but for rounding
_EXACTLY = 1e-5  # of what the units of a joint model may still want where jumps are cheap; elsewhere 0.01 of it will do
_SWEEPS = 1000
_COLUMNS_A_SWEEP = 100  # with as many for each sweep that did, sweeps over columns cost less than their Gram matrix
_SWEEPS_OF_COLUMNS = 300  # after so many it is better to have the Gram matrix
_STALLS = 2  # successive models whose minimum so many sweeps did not find


_compiled: set[tuple[Any, ...]] = set()  # the kinds of runs that have been


def can_solve(problem: Problem) -> bool:
    """Tell whether the regulariser falls into units, and the loss has second derivatives that are known here."""
    bent = has_second_derivatives(problem.loss, problem._targets.shape[1])
    # Without a penalty the coefficients of classes that can be told apart grow for ever, and by Newton steps fast.
    loose = isinstance(problem._bound, (Box, Zero)) or getattr(problem._bound, "lam", 1.0) == 0.0
    held = problem.l2 > 0.0 or not (loose and isinstance(problem.loss, Multinomial))
    return bent and held and falls_apart(problem)


def minimise(
    problem: Problem,
    x0: Array,
    *,
    max_iter: int,
    observe: Callable[[int, Array, Array, Array], bool],
    predictions: Array | None = None,
) -> tuple[Array, int, bool]:
    """Minimise from a packed ``x0``; return the last point, the number of rounds and whether more of them would not help.

    ``observe(round, x, predictions, gradient)`` is called after every round; True ends the run. The predictions at ``x0`` save
    a pass if they are known.
    """
    search = (_JointSearch if isinstance(problem.loss, Multinomial) else _Search)(problem, x0, predictions)
    try:
        return _rounds(search, max_iter, observe)
    finally:
        search.put_away()


@contextmanager
def kept_sets(problem: Problem) -> Iterator[None]:
    """Let runs on problems that differ from this one in the regulariser's strength begin with the last one's working set."""
    problem._facts["kept set"] = None
    try:
        yield
    finally:
        del problem._facts["kept set"]


def _rounds(search: _Search, max_iter: int, observe: Callable[[int, Array, Array, Array], bool]) -> tuple[Array, int, bool]:
    first = 1
    if search.is_zero():  # as good an answer as any, if it is one
        first = 2
        if observe(1, search.x, search.predictions, search.gradient) or max_iter == 1:
            return search.x, 1, True
    for iteration in range(first, max_iter + 1):
        moved = search.round()
        if observe(iteration, search.x, search.predictions, search.gradient):
            return search.x, iteration, True
        if not moved or search.is_large() or search.is_stalled():
            return search.x, iteration, search.is_content()
    return search.x, max_iter, True


def compile_for(problem: Problem) -> None:
    """Compile what a run needs, before any clock starts; nothing if a run like it was there before."""
    space = find_space(problem)
    kinds = type(space), type(problem._bound), type(problem._rows), type(problem.loss), problem.dtype, len(problem.shape)
    if kinds in _compiled:
        return
    joint = isinstance(problem.loss, Multinomial)
    few = np.zeros((1, 1 if joint else problem._targets.shape[1]))
    columns = space.columns(roughly=not (joint or is_quadratic(problem.loss)))
    columns.add(np.zeros(1, np.int64))
    part = Part(space.handle, np.zeros(1, np.int64), np.arange(2), space.lasso, space.positive)
    ColumnModel(part, columns, np.ones((problem.n, 0)), np.ones(problem.n), 1.0, few, few, few[:0]).sweep()
    model = GramModel(part, np.ones((1, 1)), few, few + 1.0)
    model.sweep()
    model.state[0][...] = 1.0
    model.jump(1.0)
    if not joint:
        row = problem._targets[:1], problem._targets[:1], problem._weights[:1]
        run(loss_second_derivatives, problem.loss, *row, np.empty(1))
    _compiled.add(kinds)


def _drift(before: Array, now: Array) -> float:
    """Return the relative change of second derivatives."""
    return float(np.abs(now - before).sum()) / max(float(now.sum()), np.finfo(np.float64).tiny)


class _Search:
    """The state between rounds."""

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
        self._columns = self._space.columns(roughly=self._is_rough())
        self._free_columns = self._space.free_columns()
        self._set(np.empty(0, np.int64))
        self._first_wish = 0.0
        self._stalled = 0
        self._sweeps: int | None = None  # over columns, that the last step took
        self._tangled = self._space.tangled
        self._matrix: Array = np.empty((0, 0))  # of the model, for the first columns of the set
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
        wish = max(float(wants.max(initial=0.0)), self._free_wants())
        self._first_wish = max(self._first_wish, wish)
        goal = wish * (_ENOUGH if wish > _LATE * self._first_wish else _ENOUGH_LATER)
        self._choose(wants)
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

    def is_zero(self) -> bool:
        """Tell whether no unit has left zero yet."""
        return not self._z.any()

    def is_large(self) -> bool:
        """Tell whether the model is too large a matrix, or there are so many jumps that finding them one by one is slow."""
        many = self._space.tangled and int(np.count_nonzero(self._z)) > _MOST_JUMPS
        return many or len(self._matrix) > _LARGEST

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
        eager = np.where(active, np.inf, self._space.sift(wants))
        eager[self._chosen] = 0.0
        order = np.argsort(-eager, kind="stable")
        order = order[eager[order] > 0.0]
        used = int(sizes[active].sum())
        growth = 1 if used < _CROWDED * len(self._rows) else 3 if used < _PACKED * len(self._rows) else 12
        first = _FIRST_SPARSE if isinstance(self._columns, SparseColumns) else _FIRST
        room = max(first if before == 0 else _LATER * first, growth * used)
        if len(self._rows) + room < 0.5 * len(self._z):
            order = order[: np.searchsorted(np.cumsum(sizes[order]), room, side="right") + 1]
        self._set(np.concatenate([self._chosen, np.sort(order)]))  # sorted: memory is read forwards
        self._columns.add(self._rows[before:])
        if isinstance(self._columns, RoughColumns) and not self._columns.are_safe(before):
            self._columns = self._columns.exact()

    def _newton_step(self, goal: float) -> bool:
        """Minimise the model on the set and go there; return whether that is anywhere else."""
        weights = self._problem.second_derivatives(self.predictions)
        wide = 0.0 if isinstance(self._columns, SparseColumns) else _WIDE * self._problem.n
        one_by_one = len(self._rows) > max(_TANGLED if self._tangled else _SMALL, wide)
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
            new, sweeps = descend(single, self._penalty, tol, _SWEEPS_OF_COLUMNS)
            move = new - before
            shift, self._sweeps = single.state[2], sweeps
            if sweeps is None:
                self._weights = np.zeros_like(weights)  # to have a matrix made for those who are not content only
        else:
            border = make_border(self._columns, self._free_columns, self._weights, self._problem.dtype)
            matrix, slopes = border.without(self._matrix, slopes, at_free)
            model = GramModel(part, matrix, slopes, before)
            new, sweeps = descend(model, self._penalty, tol, _SWEEPS)
            move = new - before
            shift = border.best(at_free, move)
        self._stalled = 0 if sweeps is not None else self._stalled + 1
        self._tangled = self._tangled or sweeps is None
        return bool(move.any() or shift.any()) and self._go(move, shift)

    def _is_worth_a_matrix(self, weights: Array) -> bool:
        """Tell whether the model should have a matrix: not if it would be made anew in the next step, or if few sweeps do."""
        changed = _drift(self._weights, weights) > _DRIFT
        if changed and _drift(self._before, weights) > _DRIFT:
            return False
        known = not changed and 2 * len(self._matrix) >= len(self._rows)
        return known or self._sweeps is None or len(self._rows) < _COLUMNS_A_SWEEP * self._sweeps

    def _penalty(self, w: Array) -> float:
        """Return the regulariser at the current point with other values on the set."""
        z = self._z.copy()
        z[self._rows] = w
        return self._problem.penalty(self._space.join(z, self._free))

    def _update_matrix(self, weights: Array) -> None:
        """Add the new columns to the model's matrix; make it anew where the second derivatives have changed a lot."""
        if _drift(self._weights, weights) > _DRIFT:
            self._drop_idle()
            self._weights = weights
            self._matrix = np.empty((0, 0))
        size, done = len(self._rows), len(self._matrix)
        if size == done:
            return
        new = self._columns.gram(self._weights, done, roughly=not self._quadratic)
        diagonal = np.arange(size - done), np.arange(done, size)
        new[diagonal] = new[diagonal] * (1.0 if self._quadratic else 1.0 + _ROUGH) + self._space.ridge
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

    def _go(self, move: Array, shift: Array) -> bool:
        """Go as far in a direction as pays; return whether that is anywhere."""
        problem, rows = self._problem, self._rows
        along = self._columns.times(move).reshape(problem.n, -1)
        along = (along + self._free_columns @ shift).astype(problem.dtype)
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
        if self._columns.is_rough and len(rows):
            self._look()
        elif not self._quadratic:
            self._slopes[rows] = self._columns.transpose_times(slopes) + self._space.ridge * self._z[rows]
            self._free_slopes = self._free_columns.T @ slopes
        return True

    def _search_line(self, direction: Array, shift: Array, along: Array) -> float:
        """Halve the step until the objective falls by enough of what the model promises."""
        problem = self._problem

        def value(length: float) -> float:
            x = self._space.join(self._z + length * direction, self._free + length * shift)
            with np.errstate(over="ignore", invalid="ignore"):
                smooth = problem.smooth_value(x, self.predictions + problem.dtype.type(length) * along)
            return smooth + problem.penalty(x)

        here = value(0.0) if self._objective is None else self._objective
        full = self._space.join(self._z + direction, self._free + shift)
        slope = float(np.vdot(self._slopes, direction)) + float(np.vdot(self._free_slopes, shift))
        slope += problem.penalty(full) - problem.penalty(self.x)
        slack = 50.0 * float(np.finfo(problem.dtype).eps) * abs(here)
        length = 1.0
        for _ in range(40):
            there = value(length)
            if there <= here + 0.01 * length * min(slope, 0.0) + slack:
                self._objective = there
                return length
            length *= 0.5
        return 0.0


class _JointSearch(_Search):
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
        new, sweeps = descend(GramModel(part, matrix, slopes, before), lambda w: self._penalty(w.reshape(-1, q)), tol, _SWEEPS)
        move = new - before
        shift = border.best(at_free, move)
        self._stalled = 0 if sweeps is not None else self._stalled + 1
        return bool(move.any() or shift.any()) and self._go(move.reshape(-1, q), shift.reshape(-1, q))

    def _is_rough(self) -> bool:
        return False  # second derivatives of classes that are told apart well are small differences

    def _go(self, move: Array, shift: Array) -> bool:
        """Go there; what all classes have in common does not matter, so their intercepts keep the mean they had at first."""
        moved = super()._go(move, shift)
        if moved and self._free.size:
            common = self.x[-1].mean() - self._level
            self._free -= common
            self.predictions -= self._problem.dtype.type(common)
        return moved

    def is_large(self) -> bool:
        """Tell whether the model would be too large a matrix."""
        return self._z.shape[1] * len(self._rows) > _LARGEST_JOINT

    def _free_step(self) -> Array:
        inverse = np.linalg.pinv(self._free_products(self._second_derivatives()), _COMMON, hermitian=True)
        step: Array = -(inverse @ self._free_slopes.reshape(-1)).reshape(self._free_slopes.shape)
        return step

    def _second_derivatives(self) -> Callable[[int, int], Array]:
        """Return a function of two classes: the second derivatives of the mean loss in every row's predictions of them."""
        problem = self._problem
        bent, weights = problem.loss.second_derivatives(self.predictions.astype(np.float64)), problem._weights / problem.n
        return lambda j, k: weights * bent(j, k)

    def _free_products(self, bent: Callable[[int, int], Array]) -> Array:
        """Return the second derivatives in the intercepts, shape (q, q); of none without them."""
        classes = range(self._free.shape[1] if self._free.size else 0)
        return np.array([[float(bent(j, k).sum()) for k in classes] for j in classes]).reshape(len(classes), len(classes))

    def _joint_model(self) -> tuple[Array, Border]:
        """Return the second derivatives in the coordinates of the set, and what they have beside it."""
        count, q = len(self._rows), self._z.shape[1]
        bent = self._second_derivatives()
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
