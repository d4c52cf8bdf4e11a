"""Paths of squared losses with few columns: the model on all of them is the problem itself, and is made once.

What a working set finds out in rounds, which columns matter, costs more than it saves where there are few. Here every strength
starts from the answer before and is one descent on the Gram matrix; then the data is looked at for the certificate.
"""

from __future__ import annotations

from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from . import rows as _rows
from . import working_set
from ._summaries import penalty_of
from .descent import GramModel, Part, blocks_of, descend
from .dual import duality_gap, has_gap
from .free import make_border
from .losses import is_quadratic
from .result import Result, Trace
from .spaces import find_space

if TYPE_CHECKING:
    from .problem import Problem

__all__ = ["PathModel", "path_model"]

Array = np.ndarray[Any, Any]

_COLUMNS = 500
_ENTRIES = 4_000_000  # of the data, of which a copy is made
_SWEEPS = 1000
_FIRST_TOL = 0.1  # of the tolerance, relative to the gradient at zero: how long a step of the descent may be at its end
_TIGHTER = 0.01
_TRIES = 3


def path_model(problem: Problem, tol: Any) -> PathModel | None:
    """Return the model of a problem on all its columns if it is small enough, and has a certificate; otherwise None."""
    small = problem.p <= _COLUMNS and problem.n * problem.p <= _ENTRIES and isinstance(problem._rows, _rows.DenseRows)
    exact = is_quadratic(problem.loss) and problem.dtype == np.float64
    if not (small and exact and working_set.can_solve(problem) and isinstance(tol, (int, float)) and tol > 0.0):
        return None
    return PathModel(problem, float(tol))


class PathModel:
    """A squared loss on all coordinates; it remembers the last answer."""

    def __init__(self, problem: Problem, tol: float) -> None:
        working_set.compile_for(problem)
        space = find_space(problem)
        self._tol, self._units = tol, space.units
        starts, rows = space.units
        self._part = np.arange(len(starts) - 1), np.asarray(starts, np.int64)
        self._order = np.asarray(rows)
        columns, free = space.columns(), space.free_columns()
        columns.add(self._order)
        nothing = np.zeros_like(problem._targets)
        weights = problem.second_derivatives(nothing)
        Q = columns.gram(weights)
        Q[np.diag_indices(len(Q))] += space.ridge
        self._border = make_border(columns, free, weights, problem.dtype)
        zero = np.zeros(problem.packed_shape, problem.dtype)
        slopes, self._at_free = space.pull(problem.packed_gradient(zero, nothing))
        self._Q, self._slopes = self._border.without(Q, slopes[self._order], self._at_free)
        self._blocks = blocks_of(self._Q, self._part[1])
        self._scale = float(np.abs(self._slopes).max(initial=0.0))
        self._W = np.zeros_like(self._slopes)

    def solve(self, problem: Problem) -> Result | None:
        """Return the answer at another strength; None if it is not found to the tolerance here."""
        if not has_gap(problem):
            return None
        began, sweeps = perf_counter(), 0
        space = find_space(problem)
        part = Part(space.handle, *self._part, space.lasso, space.positive)
        # Zero is as good an answer as any, if it is one; another need not be exactly sparse at this strength.
        result = None if self._W.any() else self._certified(problem, 0, began)
        tol = _FIRST_TOL * self._tol * self._scale
        for _ in range(_TRIES):
            if result is not None:
                break
            gradient = self._slopes + self._Q @ self._W
            model = GramModel(part, self._Q, gradient, self._W, self._blocks)
            self._W, more = descend(model, lambda W: problem.penalty(self._joined(problem, W)), tol, _SWEEPS)
            if more is None:
                break
            sweeps, tol = sweeps + more, _TIGHTER * tol
            result = self._certified(problem, sweeps, began)
        return result

    def _certified(self, problem: Problem, sweeps: int, began: float) -> Result | None:
        """Return the point reached as a result if its duality gap is below the tolerance."""
        x = self._joined(problem, self._W)
        predictions = problem.predict(x)
        objective = problem.smooth_value(x, predictions) + problem.penalty(x)
        gap = duality_gap(problem, x, predictions, problem.packed_gradient(x, predictions), objective)
        if not gap <= self._tol * abs(objective):
            return None
        return _result(problem, x, objective, gap, sweeps, perf_counter() - began)

    def _joined(self, problem: Problem, W: Array) -> Array:
        """Return the packed parameter, with the best values of what is free."""
        z = np.empty_like(W)
        z[self._order] = W
        x: Array = find_space(problem).join(z, self._border.best(self._at_free, W))
        return x


def _result(problem: Problem, x: Array, objective: float, gap: float, sweeps: int, seconds: float) -> Result:
    return Result(
        x=x[: problem.p].copy(),
        iterate=x[: problem.p].copy(),
        intercept=problem.intercept_of(x),
        objective=objective,
        _residual=partial(problem.packed_residual, x),
        gap=gap,
        converged=True,
        iterations=sweeps,
        passes=1.0,
        seconds=seconds,
        workers=1,
        delays=np.array([sweeps]),
        trace=Trace.from_points([(seconds, sweeps, 1.0, objective, np.nan, np.nan)]),
        schedule=None,
        message=f"working-set of all columns, as there are few: the duality gap is below the tolerance after {sweeps} sweeps",
        penalty=penalty_of(problem.regularizer),
        algorithm="working-set",
    )
