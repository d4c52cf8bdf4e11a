r"""Working sets: the cost follows the size of the answer, not that of the parameter.

Regularisers that fall into units, single coordinates or groups, leave most of them at zero. So only the units that are not
zero, and those that most want to leave it, are worked on; all others wait. One round is

1. choose the units from the full gradient, one pass over the data;
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

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ._jit import run
from .columns import SparseColumns, no_columns
from .descent import ColumnModel, GramModel, Part, Units, descend, make_units, unit_handle
from .problem import loss_second_derivatives

if TYPE_CHECKING:
    from .problem import Problem

__all__ = ["can_solve", "compile_for", "is_quadratic", "minimise"]

Array = np.ndarray[Any, Any]

_FIRST = 128  # rows of the parameter in the first set
_LARGEST = 5000  # rows of the parameter: the model is a square matrix of this size
_DRIFT = 0.1  # relative change of the second derivatives up to which a model is kept
_NEWTON_STEPS = 10  # on a set, before all units are looked at again
_ENOUGH = 0.1  # a set is done when what its units want is this share of what all wanted
_SWEEPS = 1000


def is_quadratic(loss: Any) -> bool:
    """Tell whether a loss is a quadratic function of the predictions."""
    curvature = getattr(loss, "curvature", math.inf)
    return math.isfinite(curvature) and getattr(loss, "convexity", 0.0) == curvature


def can_solve(problem: Problem) -> bool:
    """Tell whether the regulariser falls into units and the loss has second derivatives, the same for all targets."""
    single = problem._targets.shape[1] == 1 or is_quadratic(problem.loss)
    falls = make_units(problem._bound, problem.shape) is not None
    return falls and single and hasattr(type(problem.loss), "second_derivative")


def minimise(
    problem: Problem, x0: Array, *, max_iter: int, observe: Callable[[int, Array, Array, Array], bool]
) -> tuple[Array, int, bool]:
    """Minimise from a packed ``x0``; return the last point, the number of rounds and whether more of them would not help.

    ``observe(round, x, predictions, gradient)`` is called after every round; True ends the run.
    """
    search = _Search(problem, x0)
    for iteration in range(1, max_iter + 1):
        moved = search.round()
        if observe(iteration, search.x, search.predictions, search.gradient):
            return search.x, iteration, True
        if not moved or search.is_large():
            return search.x, iteration, search.is_content()
    return search.x, max_iter, True


def compile_for(problem: Problem) -> None:
    """Compile what a run needs, before any clock starts: solve a problem of the same kind with a single row."""
    few = np.zeros((1, problem._targets.shape[1]))
    part = Part(unit_handle(problem._bound), np.zeros(1, np.int64), np.arange(2))
    columns = no_columns(problem)
    columns.add(np.zeros(1, np.int64))
    if isinstance(columns, SparseColumns):
        ColumnModel(part, columns.chosen, np.ones(problem.n), 1.0, few, few, few[:0]).sweep()
    else:
        GramModel(part, np.ones((1, 1)), few, few).sweep()
    row = problem._targets[:1], problem._targets[:1], problem._weights[:1]
    run(loss_second_derivatives, problem.loss, *row, np.empty(1))


class _Search:
    """The state between rounds."""

    def __init__(self, problem: Problem, x0: Array) -> None:
        self._problem = problem
        units = make_units(problem._bound, problem.shape)
        if units is None:
            raise TypeError(f"{type(problem.regularizer).__name__} does not fall into units")
        self._units: Units = units
        self._handle = unit_handle(problem._bound)
        self._quadratic = is_quadratic(problem.loss)
        self.x = x0.copy()
        self.predictions = problem.predict(x0) if x0.any() else np.zeros_like(problem._targets)
        self.gradient = problem.packed_gradient(x0, self.predictions)
        self._columns = no_columns(problem)
        self._set(np.empty(0, np.int64))
        self._first_wish = 0.0
        self._matrix: Array = np.empty((0, 0))  # of the model, for the first columns of the set
        self._weights = np.zeros(problem.n)  # the second derivatives that it was made with

    def _set(self, units: Array) -> None:
        """Let these units be the working set; the columns are not touched."""
        starts, rows = self._units
        pieces = [rows[starts[g] : starts[g + 1]] for g in units]
        self._chosen = units
        self._rows = np.concatenate(pieces) if pieces else np.empty(0, np.int64)
        self._starts = np.concatenate([[0], np.cumsum([len(piece) for piece in pieces], dtype=np.int64)]).astype(np.int64)

    def round(self) -> bool:
        """Choose units, work on them, look at all again; return whether anything moved."""
        wants = self._wants()
        wish = max(float(wants.max(initial=0.0)), self._intercept_wants())
        self._first_wish = max(self._first_wish, wish)
        goal = _ENOUGH * wish
        self._choose(wants)
        moved = False
        for _ in range(1 if self._quadratic else _NEWTON_STEPS):
            step = self._newton_step(goal)
            moved = moved or step
            if not step or max(float(self._wants()[self._chosen].max(initial=0.0)), self._intercept_wants()) <= goal:
                break
        self.gradient = self._problem.packed_gradient(self.x, self.predictions)
        return moved

    def is_large(self) -> bool:
        """Tell whether the model has become too large a matrix."""
        return len(self._matrix) > _LARGEST

    def is_content(self) -> bool:
        """Tell whether no unit wants to move, as far as rounding lets us see."""
        return max(float(self._wants().max(initial=0.0)), self._intercept_wants()) <= 1e-9 * self._first_wish

    def _wants(self) -> Array:
        """Return how far each unit would move in a proximal step of length 1: zero for those that are where they belong."""
        p = self._problem.p
        moved = self.x - self._problem.packed_prox(self.x - self.gradient, 1.0)
        squares = (moved[:p].reshape(p, -1).astype(np.float64) ** 2).sum(axis=1)
        return np.sqrt(np.add.reduceat(squares[self._units.rows], self._units.starts[:-1]))

    def _intercept_wants(self) -> float:
        return float(np.abs(self.gradient[self._problem.p :]).max(initial=0.0))

    def _active(self) -> Array:
        """Tell which units are not zero."""
        nonzero = np.any(self.x[: self._problem.p].reshape(self._problem.p, -1) != 0.0, axis=1)
        result: Array = np.logical_or.reduceat(nonzero[self._units.rows], self._units.starts[:-1])
        return result

    def _choose(self, wants: Array) -> None:
        """Add the units that want to move most to the set: those that are not zero, and about as many others."""
        sizes = np.diff(self._units.starts)
        active = self._active()
        eager = np.where(active, np.inf, wants)
        eager[self._chosen] = 0.0
        order = np.argsort(-eager, kind="stable")
        order = order[eager[order] > 0.0]
        room = max(_FIRST, int(sizes[active].sum()))
        if len(self._rows) + room < 0.5 * self._problem.p:
            order = order[: np.searchsorted(np.cumsum(sizes[order]), room, side="right") + 1]
        before = len(self._rows)
        self._set(np.concatenate([self._chosen, order]))
        self._columns.add(self._rows[before:])

    def _newton_step(self, goal: float) -> bool:
        """Minimise the model on the set and go there; return whether that is anywhere else."""
        weights = self._problem.second_derivatives(self.predictions)
        if not isinstance(self._columns, SparseColumns):
            self._update_matrix(weights)
        tol = goal * (0.01 if self._quadratic else 0.1)
        before, gradient = self._on_set(self.x), self._on_set(self.gradient)
        at_intercept = self.gradient[self._problem.p :].reshape(int(self._problem.fit_intercept), before.shape[1])
        at_intercept = at_intercept.astype(np.float64)
        part = Part(self._handle, self._chosen, self._starts)
        if isinstance(self._columns, SparseColumns):
            ridge = 2.0 * self._problem.l2
            sparse = ColumnModel(part, self._columns.chosen, weights, ridge, gradient, before, at_intercept)
            move = descend(sparse, self._penalty, tol, _SWEEPS) - before
            shift = sparse.state[2]
        else:
            matrix, total = self._matrix, max(float(self._weights.sum()), np.finfo(np.float64).tiny)
            if len(at_intercept):  # minimise over the intercept first: what is left does not see the columns' means
                border = self._columns.transpose_times(self._weights[:, None].astype(self._problem.dtype)).astype(np.float64)
                matrix = matrix - border @ border.T / total
                gradient = gradient - border @ at_intercept / total
            move = descend(GramModel(part, matrix, gradient, before), self._penalty, tol, _SWEEPS) - before
            shift = -(at_intercept + border.T @ move) / total if len(at_intercept) else at_intercept
        return bool(move.any() or shift.any()) and self._go(move, shift)

    def _on_set(self, x: Array) -> Array:
        """Return the part of a packed parameter that belongs to the set, in double precision."""
        return x[self._rows].reshape(len(self._rows), self._problem._targets.shape[1]).astype(np.float64)

    def _penalty(self, w: Array) -> float:
        """Return the regulariser at the current point with other values on the set."""
        x = self.x.copy()
        x[self._rows] = w.reshape(len(w), *x.shape[1:])
        return self._problem.penalty(x)

    def _update_matrix(self, weights: Array) -> None:
        """Add the new columns to the model's matrix; make it anew where the second derivatives have changed a lot."""
        drift = float(np.abs(weights - self._weights).sum())
        if drift > _DRIFT * float(weights.sum()):
            if not self._quadratic:
                self._drop_idle()
            self._weights = weights
            self._matrix = np.empty((0, 0))
        size, done = len(self._rows), len(self._matrix)
        if size == done:
            return
        new = self._columns.gram(self._weights, done)
        new[np.arange(size - done), np.arange(done, size)] += 2.0 * self._problem.l2
        matrix = np.empty((size, size))
        matrix[:done, :done], matrix[done:], matrix[:done, done:] = self._matrix, new, new[:, :done].T
        self._matrix = matrix

    def _drop_idle(self) -> None:
        """Leave the units out of the set that are zero and content to be."""
        stay: Array = np.logical_or(self._active(), self._wants() > 0.0)
        stay = stay[self._chosen]
        self._columns.keep(np.flatnonzero(np.repeat(stay, np.diff(self._starts))))
        self._set(self._chosen[stay])

    def _go(self, move: Array, shift: Array) -> bool:
        """Go as far in a direction as pays; return whether that is anywhere."""
        problem, rows, p = self._problem, self._rows, self._problem.p
        kind = problem.dtype.type
        along = self._columns.times(move).reshape(problem.n, -1)
        direction = np.zeros((len(self.x), move.shape[1]), problem.dtype)
        direction[rows] = move
        if problem.fit_intercept:
            along = along + shift.astype(along.dtype)
            direction[p:] = shift
        direction = direction.reshape(self.x.shape)
        length = 1.0 if self._quadratic else self._search_line(direction, along)
        if length == 0.0:
            return False
        self.x = self.x + kind(length) * direction
        self.predictions = self.predictions + kind(length) * along
        if not self._quadratic:
            slopes = problem.slopes(self.predictions)
            inside = self._columns.transpose_times(slopes) + 2.0 * problem.l2 * self._on_set(self.x)
            self.gradient[rows] = inside.reshape(self.x[rows].shape)
            self.gradient[p:] = slopes.sum(axis=0).reshape(self.gradient[p:].shape) if problem.fit_intercept else 0.0
        return True

    def _search_line(self, direction: Array, along: Array) -> float:
        """Halve the step until the objective falls by enough of what the model promises."""
        problem = self._problem
        kind = problem.dtype.type
        value, penalty = problem.smooth_value(self.x, self.predictions), problem.penalty(self.x)
        slope = float(np.vdot(self.gradient, direction)) + problem.penalty(self.x + direction) - penalty
        slack = 50.0 * float(np.finfo(problem.dtype).eps) * (abs(value) + abs(penalty))
        length = 1.0
        for _ in range(40):
            x = self.x + kind(length) * direction
            with np.errstate(over="ignore", invalid="ignore"):
                there = problem.smooth_value(x, self.predictions + kind(length) * along) + problem.penalty(x)
            if there <= value + penalty + 0.01 * length * min(slope, 0.0) + slack:
                return length
            length *= 0.5
        return 0.0
