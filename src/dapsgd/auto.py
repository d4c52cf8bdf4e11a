"""What ``algorithm="auto"`` chooses, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import gram, working_set
from .centred import CentredRows
from .descent import make_units
from .free import penalises_nothing
from .losses import Multinomial
from .rows import is_mapped, is_sparse
from .runtimes import Serial, Threads
from .steps import InverseTime, Theorem1, Theorem2

if TYPE_CHECKING:
    from .problem import Problem

__all__ = ["asks_for_workers", "choose"]

_MANY_ENTRIES = 5_000_000  # of the data, from which a pass costs more than starting workers
_FEW_SPARSE = 500  # columns
_ROWS_A_COLUMN = 2.0  # from which mini-batches tell as much as all rows


def asks_for_workers(batch_size: Any, runtime: Any) -> bool:
    """Tell whether a user asks for something that only stochastic algorithms have: a batch size, a runtime of their own."""
    return bool(batch_size != "auto") or not isinstance(runtime, (str, Serial, Threads))


def choose(problem: Problem, *, stochastic: bool, step: Any, average: bool, few_messages: bool = False) -> tuple[str, str]:
    """Return the algorithm for a problem, and the reason.

    Parameters
    ----------
    problem : Problem
    stochastic : bool
        The user asks for something that only stochastic algorithms have: a schedule, a batch size, a runtime of their own.
    step : step rule or None
    average : bool
        The user asks for the average of the iterates.
    few_messages : bool
        Workers are far away from each other.
    """
    if average or isinstance(step, (InverseTime, Theorem1, Theorem2)):
        return "dap-sgd", "a decreasing step or an average was asked for"
    if few_messages:
        return "dave-rpg", "it needs the fewest messages"
    if stochastic or step is not None:
        return "dap-svrg", "workers on mini-batches were asked for"
    few = gram.can_solve(problem) and problem.p <= min(gram.FEW_COLUMNS, problem.n)
    if few and gram.is_direct(problem):
        return "gram", "nothing is penalised, so that the answer solves a linear system"
    sparse, mapped = is_sparse(problem._rows), is_mapped(problem._rows)
    many = problem.n >= _ROWS_A_COLUMN * problem.p and problem.n * problem.p >= _MANY_ENTRIES and not sparse
    # Columns in memory may be too much; and so are the products of those of every two classes.
    joint = isinstance(problem.loss, Multinomial) and (many or (sparse and problem.p > _FEW_SPARSE))
    if working_set.can_solve(problem) and (sparse or not mapped) and not joint:
        if penalises_nothing(problem):
            return "working-set", "nothing is penalised, and the loss has second derivatives"
        parts = "parts" if make_units(problem._bound, problem.shape) is not None else "jumps"
        return "working-set", f"the regulariser falls into {parts}, of which many may stay zero"
    if few:
        return "gram", "the loss is squared and there are few columns"
    if many:
        if problem.fit_intercept and CentredRows(problem._rows, problem._weights).is_far:
            return "fista", "beside an intercept the columns are far from zero, or of quite another size than one"
        return "dap-svrg", "there are many rows"
    return "fista", "there are few rows" if problem.n < _ROWS_A_COLUMN * problem.p else "the data is small"
