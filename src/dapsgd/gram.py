r"""Squared losses with few columns: the data is looked at once.

:math:`f(W) = \tfrac12\langle W, Q W\rangle - \langle B, W\rangle + c` with :math:`Q = X^T S X` and :math:`B = X^T S Y`, where S
holds the weights times the loss's curvature. Both are computed by BLAS in one pass; after that an iteration costs p^2
whatever the number of rows, and a path of strengths needs no further pass. An intercept is minimised over in closed form.

The matrix also gives the best dual point. A step :math:`V = \mathrm{prox}(W - \eta(QW - B))` leaves a subgradient G of h at V,
namely :math:`(W - V)/\eta - (QW - B)`, and of the objective at V: :math:`R = QV - B + G`. For all U the objective is at least
:math:`f(U) + h(V) + \langle G, U - V\rangle`, which is least where :math:`QU = B - G`: the optimum is at most
:math:`\tfrac12\langle R, Q^{-1}R\rangle` below the objective at V. That is of the order of what is left to gain, where slopes
that are scaled into the dual norm's ball give a multiple of it.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtri

from . import rows as _rows
from ._calls import run_prox
from ._memory import require_memory
from ._passes import for_each
from .centred import constant_columns
from .dual import dual_of_quadratic, ignores_constants
from .free import penalises_nothing
from .losses import is_quadratic
from .runtimes._blas import blas_threads, calm_for, single_threaded_blas
from .spaces import falls_apart
from .steps import longest_step

if TYPE_CHECKING:
    from .problem import Problem

__all__ = [
    "FEW_COLUMNS",
    "Bound",
    "Gram",
    "bound_at",
    "can_solve",
    "double_prox",
    "gap_by_step",
    "is_direct",
    "is_small",
    "left_to_gain",
    "make_gram",
    "objective_at",
    "solved",
    "tells_gaps",
    "trusted",
]

Array = np.ndarray[Any, Any]

_BLOCK, _BLOCK_SINGLE = 1024, 2048  # rows that BLAS adds up in the data's own precision; sums of blocks are added in double
_SMALL = 128  # columns: all eigenvalues are found as fast as one
_SOLVABLE = 512  # columns: equations with the matrix are solved in less than an iteration takes, and prepared in a few
_ROUGHLY = 0.05  # of an eigenvalue, that only says how fast a method may be, and how large a multiple of rounding is
_FAR = 1e-4  # of the squares that centring leaves: then it had better come first
_SPANS, _FEWEST_SPANS = 8, 4  # of rows, each with sums of its own: so many that no thread waits long for the other
_ROWS_PER_COLUMN = 5
_QUICK = 1 << 27  # multiplications: some ms, in which threads of BLAS would mostly wait for each other
_WORK = 1 << 33  # multiplications in a span: some tenths of a second, for which Ctrl-C has to wait
_ROUNDING, _ROUNDING_SINGLE = 1e3, 64.0  # units in the last place, which the sums of a block of rows may be off
_LITTLE = 0.6  # of what the tolerance asks for, may be rounding
FEW_COLUMNS = 2000  # up to which the Gram matrix is worth its price, some hundredths of p passes over the data


class Gram(NamedTuple):
    """A squared loss without its data; the intercept is minimised over."""

    Q: Array  # (p, p)
    B: Array  # (p, q)
    constant: float
    means: Array  # (p,): of the columns, zero without an intercept
    centre: Array  # (q,): of the targets
    norm: float  # of Q: a bound on its largest eigenvalue
    least: float  # its smallest eigenvalue, or what is known of it
    squares: float  # what the constant was as it was added up: before targets were centred, unless they were far from zero
    sizes: Array  # (p,): the roots of the diagonal of Q as it was added up
    shift: Array  # (p,): what an entry of Q lost when it was centred is a product of two of these
    precision: float  # a share of the sums of squares, which the sums of products may be off
    factor: Array | None  # (p, p): Cholesky's lower one of Q, of few columns that do not nearly depend on each other


class Bound(NamedTuple):
    """What is known of a point without the data."""

    objective: float
    gap: float
    rounding: float = 0.0  # what the gap may be off, if that is known; it is not in the gap yet


def can_solve(problem: Problem) -> bool:
    """Tell whether the loss is squared and the data dense."""
    return is_quadratic(problem.loss) and isinstance(problem._rows, _rows.DenseRows)


def tells_gaps(problem: Problem) -> bool:
    """Tell whether gaps are those that the matrix gives: of what is solved on it, and not by working sets."""
    return can_solve(problem) and problem.p <= min(_SOLVABLE, problem.n) and not falls_apart(problem)


def is_direct(problem: Problem) -> bool:
    """Tell whether nothing is penalised but by l2, so that the answer is that of a linear system."""
    return penalises_nothing(problem) and can_solve(problem)


class _Sums(NamedTuple):
    """Weighted sums over the rows."""

    Q: Array  # of products of columns
    B: Array  # of columns with targets
    of_columns: Array
    of_targets: Array
    squares: float  # of the targets
    blocks: int  # each in the data's own precision


def make_gram(problem: Problem) -> Gram:
    """Look at the data once, or again if its columns or targets are so far from zero that digits are lost; it must be dense."""
    p = problem.p
    require_memory(3 * 8 * p * p, f"the Gram matrix of {p} columns", "use another algorithm, such as 'fista'")
    with single_threaded_blas() if problem.n * p * p < _QUICK else nullcontext():
        return _make_gram(problem)


def _make_gram(problem: Problem) -> Gram:
    p = problem.p
    weights = problem._weights.astype(np.float64) * (problem.loss.curvature / problem.n)
    total = float(weights.sum())
    sums = _add_up(problem, weights)
    means, centre = np.zeros(p), np.zeros(problem._targets.shape[1])
    if problem.fit_intercept:
        problem._fact("lipschitz", lambda: _packed_norm(sums.Q, sums.of_columns, total, problem))
        if _are_far(sums, total):
            means, centre = sums.of_columns / total, sums.of_targets / total
            flat = constant_columns(_rows.matrix(problem._rows), means)
            means[flat] = _rows.matrix(problem._rows)[0, flat]  # to the last digit, so that nothing is left of them
            sums = _add_up(problem, weights, means, centre)
    Q, B, constant, sizes = sums.Q, sums.B, 0.5 * sums.squares, np.sqrt(np.diagonal(sums.Q))
    shift = np.zeros(p)
    if problem.fit_intercept:
        left, rest = sums.of_columns / total, sums.of_targets / total
        Q -= total * np.outer(left, left)
        B -= total * np.outer(left, rest)
        constant -= 0.5 * total * float(rest @ rest)
        means, centre, shift = means + left, centre + rest, math.sqrt(total) * left
    least, norm = (eigenvalue + 2.0 * problem.l2 for eigenvalue in _eigenvalues(Q))
    problem._fact("lipschitz", lambda: norm)
    Q[np.diag_indices(p)] += 2.0 * problem.l2
    factor, least = _factor(Q, norm, least, float(np.finfo(problem.dtype).eps))
    units = _ROUNDING if problem.dtype == np.float64 else _ROUNDING_SINGLE
    precision = units * float(np.finfo(problem.dtype).eps) / math.sqrt(sums.blocks)  # as blocks are off independently
    return Gram(Q, B, constant, means, centre, norm, least, 0.5 * sums.squares, sizes, shift, precision, factor)


def _add_up(problem: Problem, weights: Array, means: Array | None = None, centre: Array | None = None) -> _Sums:
    """Add products up over all rows; less these means, if they are given."""
    n, p = problem.n, problem.p
    even = bool((weights == weights[0]).all())
    # Blocks stay in the cache, and have many more rows than columns, so that adding their sums costs little.
    largest = max(_BLOCK, _ROWS_PER_COLUMN * p) if problem.dtype == np.float64 else _BLOCK_SINGLE
    # Threads with a span of rows each are faster than those of BLAS on one block after the other.
    count = min(_SPANS, n // max(_BLOCK, _ROWS_PER_COLUMN * p))
    if count < _FEWEST_SPANS or n * p * p > count * _WORK or blas_threads() == 1:
        count = 1
    spans = [slice(n * k // count, n * (k + 1) // count) for k in range(count)]
    threads = blas_threads() if count > 1 else 1
    with single_threaded_blas() if count > 1 else nullcontext():
        parts = for_each(
            spans, lambda span: _add_up_rows(problem, weights, span, largest, even, means, centre), threads, apart=True
        )
    factor = float(weights[0]) if even else 1.0
    *added, blocks = (sum(of_span[1:], start=of_span[0]) for of_span in zip(*parts, strict=True))
    Q, B, of_columns, of_targets, squares = (factor * of_all for of_all in added)
    return _Sums(Q, B, of_columns, of_targets, squares, blocks)


def _add_up_rows(
    problem: Problem, weights: Array, span: slice, largest: int, even: bool, means: Array | None, centre: Array | None
) -> _Sums:
    """Add products up over some rows, but for the weight of all if they are ``even``."""
    p, targets = problem.p, problem._targets
    Q, B, squares = np.zeros((p, p)), np.zeros((targets.shape[1], p)), 0.0
    of_columns, of_targets = np.zeros(p), np.zeros(targets.shape[1])
    X = _rows.matrix(problem._rows)
    blocks = _rows.blas_blocks(span.stop - span.start, p * p, largest)
    for rows in blocks:
        block = slice(span.start + rows.start, span.start + rows.stop)
        half = np.ones(block.stop - block.start, problem.dtype) if even else np.sqrt(weights[block]).astype(problem.dtype)
        part, of_part = X[block], targets[block]
        if means is not None and centre is not None:
            part, of_part = (part - means).astype(problem.dtype), (of_part - centre).astype(problem.dtype)
        if not even:
            part, of_part = part * half[:, None], of_part * half[:, None]
        Q += part.T @ part  # recognised as symmetric: half the work
        B += of_part.T @ part
        squares += _square(of_part)
        if problem.fit_intercept:
            of_columns += part.T @ half
            of_targets += half @ of_part.astype(np.float64, copy=False)
    return _Sums(Q, np.ascontiguousarray(B.T), of_columns, of_targets, squares, len(blocks))


def _are_far(sums: _Sums, total: float) -> bool:
    """Tell whether centring would leave little of the squares of a column or of the targets."""
    squares = np.diagonal(sums.Q)
    left = squares - sums.of_columns**2 / total
    of_targets = sums.squares - float(sums.of_targets @ sums.of_targets) / total
    return bool((left < _FAR * squares).any() or of_targets < _FAR * sums.squares)


def _square(Y: Array) -> float:
    """Return the sum of squares, in double precision but for that of each row."""
    if Y.dtype == np.float64 and Y.flags.c_contiguous:
        return float(np.vdot(Y, Y))
    return float(np.einsum("ij,ij->i", Y, Y).sum(dtype=np.float64))


def _packed_norm(Q: Array, sums: Array, total: float, problem: Problem) -> float:
    """Return the smoothness of f in a packed parameter, the intercept included; Q is still without l2."""
    whole = np.block([[Q, sums[:, None]], [sums[None, :], np.array([[total]])]])
    return _eigenvalues(whole)[1] + 2.0 * problem.l2


def _eigenvalues(Q: Array) -> tuple[float, float]:
    """Return bounds on the smallest and on the largest eigenvalue; of many columns the first is 0, the second Lanczos's."""
    with calm_for(Q.nbytes):
        if len(Q) <= _SMALL:
            every = np.maximum(np.linalg.eigvalsh(Q), 0.0)
            return float(every[0]), float(every[-1])
        return 0.0, _rows.largest_eigenvalue(lambda v: Q @ v, len(Q), float(np.trace(Q)))


def _factor(Q: Array, norm: float, least: float, precision: float) -> tuple[Array | None, float]:
    """Return the Cholesky factor, or None, and what is known of the smallest eigenvalue then."""
    if len(Q) > _SOLVABLE:
        return None, least
    with calm_for(Q.nbytes):
        factor, failed = dpotrf(Q, lower=1)
        if failed or not np.isfinite(np.diagonal(factor)).all():
            return None, least
        if len(Q) > _SMALL:
            trace = float((dtrtri(factor, lower=1)[0] ** 2).sum())  # of the inverse
            multiply = partial(solved, factor)
            least = 1.0 / _rows.largest_eigenvalue(multiply, len(Q), trace, tol=_ROUGHLY)
    return (factor if least > math.sqrt(precision) * norm else None), least


def solved(factor: Array, right: Array) -> Array:
    """Return the solution of linear equations whose matrix has this Cholesky factor."""
    return np.ascontiguousarray(dpotrs(factor, right, lower=1)[0])


def is_small(bound: Bound, tol: float) -> bool:
    """Tell whether a gap is below a relative tolerance."""
    return bound.gap <= tol * abs(bound.objective)


def trusted(problem: Problem, gram: Gram, W: Array, bound: Bound, tol: float) -> Bound | None:
    """Return a bound on what the data would say; None if rounding may have made what the tolerance asks for."""
    if ignores_constants(problem):  # whose gap needs the best constant
        return None
    if problem.dtype != np.float64 and problem.fit_intercept:  # which is rounded with the answer
        return None
    rounding, allowed = gram.precision * _added_up(gram, W), tol * abs(bound.objective)
    if gram.factor is None or not tells_gaps(problem):  # the gap is off as much as the objective is
        bound = bound._replace(rounding=rounding)
    if rounding > allowed or bound.rounding > _LITTLE * allowed:
        return None
    return Bound(bound.objective, bound.gap + bound.rounding)


def _added_up(gram: Gram, W: Array) -> float:
    """Return the sum of what was added up for an objective: twice the squares of targets, of predictions, and of their terms.

    Sums of products are off by a share of it if their errors have no more to do with each other than the terms, and as well
    if they are as alike as columns may be.
    """
    of_predictions = float(np.vdot(W, gram.Q @ W)) + float(((gram.shift @ W) ** 2).sum())
    return gram.squares + of_predictions + float(((gram.sizes[:, None] * W) ** 2).sum())


def bound_at(problem: Problem, gram: Gram, W: Array, product: Array) -> Bound:
    """Return the objective and the duality gap, from Q and B alone; ``product`` is ``Q @ W``."""
    if gram.factor is not None and tells_gaps(problem):
        return _bound_by_step(problem, gram, W, product, gram.factor)
    ridge = problem.l2 * float(np.vdot(W, W))
    slopes = product - gram.B
    loss = 0.5 * float(np.vdot(W, slopes - gram.B)) + gram.constant - ridge
    gradient = slopes - 2.0 * problem.l2 * W
    primal = loss + ridge + problem.penalty(W.reshape(problem.shape))
    dual = dual_of_quadratic(problem, loss, float(np.vdot(gradient, W)), -gradient.reshape(problem.shape))
    return Bound(primal, max(primal - dual, 0.0))


def _bound_by_step(problem: Problem, gram: Gram, W: Array, product: Array, factor: Array) -> Bound:
    """Return the same by a step from W and the equation at the top, allowing for rounding in Q and B."""
    step, slopes = longest_step(gram.norm, np.float64), product - gram.B
    ahead = double_prox(problem, W - step * slopes, step)
    move = W - ahead
    back = gram.Q @ move
    penalty = problem.penalty(W.reshape(problem.shape))
    fall = float(np.vdot(move, slopes - 0.5 * back)) + penalty - problem.penalty(ahead.reshape(problem.shape))
    # A gradient may be off by as much as sums of products of a column with predictions and targets.
    error = gram.precision * float(np.linalg.norm(gram.sizes)) * math.sqrt(2.0 * _added_up(gram, W))
    left = left_to_gain(factor, move / step - back)
    rest = error / math.sqrt(gram.least)
    rounding = rest * (math.sqrt(2.0 * left) + 0.5 * rest) + error * float(np.linalg.norm(move))
    objective = 0.5 * float(np.vdot(W, slopes - gram.B)) + gram.constant + penalty
    return Bound(objective, max(fall + left, 0.0), rounding)


def gap_by_step(problem: Problem, x: Array) -> float:
    """Return how much the objective at a packed parameter can be above the optimum, if the matrix tells; otherwise infinity."""
    gram = problem._gram
    if gram.factor is None:
        return math.inf
    W = x[: problem.p].reshape(problem.p, -1).astype(np.float64)
    bound = bound_at(problem, gram, W, gram.Q @ W)
    gap = bound.gap + bound.rounding
    if not problem.fit_intercept:
        return gap
    total = float(problem._weights.sum(dtype=np.float64)) * problem.loss.curvature / problem.n
    off = x[problem.p].astype(np.float64) - (gram.centre - gram.means @ W)
    return gap + 0.5 * total * float(np.vdot(off, off))


def left_to_gain(factor: Array, subgradient: Array) -> float:
    """Return how much of the objective can be left to gain where it has this subgradient."""
    return 0.5 * max(float(np.vdot(subgradient, solved(factor, subgradient))), 0.0)


def objective_at(problem: Problem, gram: Gram, W: Array) -> float:
    """Return the objective, from Q and B alone."""
    smooth = 0.5 * float(np.vdot(W, gram.Q @ W - 2.0 * gram.B)) + gram.constant
    return smooth + problem.penalty(W.reshape(problem.shape))


def double_prox(problem: Problem, V: Array, step: float) -> Array:
    """Return the prox in double precision, whatever that of the data is."""
    out = np.empty_like(V)
    run_prox(problem._double_prox, V.reshape(problem.shape), step, out.reshape(problem.shape))
    return out
