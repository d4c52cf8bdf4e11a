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
from typing import TYPE_CHECKING, Any

import numpy as np

from ._jit import run
from .descent import ColumnModel, GramModel, Part
from .joint_search import JointSearch
from .losses import Multinomial, has_second_derivatives, is_quadratic
from .problem import loss_second_derivatives
from .regularizers import Box, Zero
from .search import Search
from .spaces import falls_apart, find_space

if TYPE_CHECKING:
    from .problem import Problem

__all__ = ["can_solve", "compile_for", "kept_sets", "minimise"]

Array = np.ndarray[Any, Any]

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
    observe: Callable[..., bool],
    predictions: Array | None = None,
) -> tuple[Array, int, bool]:
    """Minimise from a packed ``x0``; return the last point, the number of rounds and whether more of them would not help.

    ``observe(round, x, predictions, gradient, smooth=f)`` is called after every round; True ends the run. The predictions at
    ``x0`` save a pass if they are known.
    """
    search = (JointSearch if isinstance(problem.loss, Multinomial) else Search)(problem, x0, predictions)
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


def _rounds(search: Search, max_iter: int, observe: Callable[..., bool]) -> tuple[Array, int, bool]:
    first = 1
    if search.is_zero():  # as good an answer as any, if it is one
        first = 2
        if observe(1, search.x, search.predictions, search.gradient) or max_iter == 1:
            return search.x, 1, True
    for iteration in range(first, max_iter + 1):
        moved = search.round()
        if observe(iteration, search.x, search.predictions, search.gradient, smooth=search.smooth):
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
    ColumnModel(part, columns, np.ones((problem.n, 0)), np.ones(problem.n), 1.0, few, few, few[:0]).sweep(True)
    model = GramModel(part, np.ones((1, 1)), few, few + 1.0)
    model.sweep(True)
    model.state[0][...] = 1.0
    model.jump(1.0)
    if not joint:
        row = problem._targets[:1], problem._targets[:1], problem._weights[:1]
        run(loss_second_derivatives, problem.loss, *row, np.empty(1))
    _compiled.add(kinds)
