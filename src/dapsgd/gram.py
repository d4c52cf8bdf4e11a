r"""Squared losses with few columns: the data is looked at once.

:math:`f(W) = \tfrac12\langle W, Q W\rangle - \langle B, W\rangle + c` with :math:`Q = X^T S X` and :math:`B = X^T S Y`, where S
holds the weights times the loss's curvature. Both are computed by BLAS in one pass; after that an iteration costs p^2
whatever the number of rows, and a path of strengths needs no further pass. An intercept is minimised over in closed form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import rows as _rows
from ._calls import run_prox
from ._memory import available_memory, require_memory
from ._passes import for_each, shared_passes
from .centred import constant_columns
from .dual import dual_of_quadratic, has_gap, ignores_constants
from .free import penalises_nothing
from .losses import is_quadratic
from .runtimes._blas import blas_threads, calm_for, single_threaded_blas
from .steps import longest_step

if TYPE_CHECKING:
    from .problem import Problem

__all__ = ["FEW_COLUMNS", "Bound", "Gram", "compile_for", "make_gram", "minimise"]

Array = np.ndarray[Any, Any]

_BLOCK, _BLOCK_SINGLE = 1024, 2048  # rows that BLAS adds up in the data's own precision; sums of blocks are added in double
_TIGHTER = 0.3
_CLOSER, _MUCH_CLOSER = 0.5, 0.05  # than when the gap was last looked at, which costs more than an iteration
_STEEP = 1e-3  # the least share of the largest eigenvalue in the smallest, from which on its momentum is the best
_SMALL = 128  # columns: all eigenvalues are found as fast as one
_FAR = 1e-4  # of the squares that centring leaves: then it had better come first
_SPANS, _FEWEST_SPANS = 8, 4  # of rows, each with sums of its own: so many that no thread waits long for the other
_ROWS_PER_COLUMN = 5
_QUICK = 1 << 27  # multiplications: some ms, in which threads of BLAS would mostly wait for each other
_WORK = 1 << 33  # multiplications in a span: some tenths of a second, for which Ctrl-C has to wait
_ROUNDING = 1e3  # units in the last place of what was added up, which an objective may be off
_ROUNDING_SINGLE = 64.0  # the same in single precision: what a block of rows may be off, before blocks are added up
_LITTLE = 0.6  # of what the tolerance asks for, may be rounding; together with the next it is less than all of it
_GOAL = 0.25  # of the tolerance: an iteration more costs little next to the matrix
_DEPENDENT = 1e-11  # a share of columns' squares, to which one is a combination of others
_AFTER_ALL = 10  # iterations from the answer of a linear system: what they do not mend is rounding
_COPIES = 3  # of the data in double precision, which are made to solve for it
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


class Bound(NamedTuple):
    """What is known of a point without the data."""

    objective: float
    gap: float


def can_solve(problem: Problem) -> bool:
    """Tell whether the loss is squared and the data dense."""
    return is_quadratic(problem.loss) and isinstance(problem._rows, _rows.DenseRows)


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
    if problem.fit_intercept:
        left, rest = sums.of_columns / total, sums.of_targets / total
        Q -= total * np.outer(left, left)
        B -= total * np.outer(left, rest)
        constant -= 0.5 * total * float(rest @ rest)
        means, centre = means + left, centre + rest
    least, norm = (eigenvalue + 2.0 * problem.l2 for eigenvalue in _eigenvalues(Q))
    problem._fact("lipschitz", lambda: norm)
    Q[np.diag_indices(p)] += 2.0 * problem.l2
    return Gram(Q, B, constant, means, centre, norm, least, 0.5 * sums.squares, sizes)


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
    return _Sums(*(factor * sum(of_span[1:], start=of_span[0]) for of_span in zip(*parts, strict=True)))


def _add_up_rows(
    problem: Problem, weights: Array, span: slice, largest: int, even: bool, means: Array | None, centre: Array | None
) -> _Sums:
    """Add products up over some rows, but for the weight of all if they are ``even``."""
    p, targets = problem.p, problem._targets
    Q, B, squares = np.zeros((p, p)), np.zeros((targets.shape[1], p)), 0.0
    of_columns, of_targets = np.zeros(p), np.zeros(targets.shape[1])
    X = _rows.matrix(problem._rows)
    for rows in _rows.blas_blocks(span.stop - span.start, p * p, largest):
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
    return _Sums(Q, np.ascontiguousarray(B.T), of_columns, of_targets, squares)


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


def minimise(
    problem: Problem,
    x0: Array,
    *,
    tol: float,
    max_iter: int,
    observe: Callable[[int, Array, Bound | None], bool],
    keep: Callable[[int, Callable[[], Array]], None],
) -> tuple[Array, int]:
    """Minimise from a packed ``x0`` by accelerated proximal gradients; return the last point and the number of iterations.

    ``observe(iteration, x, bound)`` is called when the point is accurate to ``tol`` as far as can be told without the data;
    True ends the run, otherwise it goes on to a fraction of that. The bound is None if the data must be asked for it.
    ``keep(iteration, point)`` is called after each, with a function that returns the point.
    """
    gram = problem._gram
    # From here on the data is asked for a certificate at the most, and matrices are often small.
    threads = blas_threads()
    with calm_for(gram.Q.nbytes), shared_passes(threads):
        step = longest_step(gram.norm, np.float64)
        W = x0[: problem.p].reshape(problem.p, -1).astype(np.float64)
        if is_direct(problem):
            W, max_iter = _solution(problem, gram), min(max_iter, _AFTER_ALL)
        Y, goal, momentum = W, _GOAL * tol, _Momentum(gram)
        certified, look_below = has_gap(problem), math.inf
        scale = 0.0 if certified else float(np.linalg.norm(_prox(problem, step * gram.B, step))) / step  # the residual at zero
        if certified and not W.any():
            at_zero = _bound(problem, gram, W, np.zeros_like(W))
            if _is_small(at_zero, tol):  # as good an answer as any
                x = _packed(problem, gram, W)
                if observe(1, x, _trusted(problem, gram, W, at_zero, tol)):
                    return x, 1
            W = Y = _nearer(problem, gram, at_zero)
        bound: Bound | None = None
        product = gram.Q @ W
        ahead = product  # Q @ Y
        for iteration in range(1, max_iter + 1):
            new = _prox(problem, Y - step * (ahead - gram.B), step)
            moved = float(np.linalg.norm(new - Y)) / step
            share = momentum.share(W, Y, new)
            still = bool((new == W).all() and (W == Y).all())
            after = gram.Q @ new
            Y, ahead = new + share * (new - W), after + share * (after - product)
            W, product = new, after
            keep(iteration, partial(_packed, problem, gram, W))
            if still or iteration == max_iter:
                arrived = True
            elif certified and moved <= look_below:
                bound = _bound(problem, gram, W, product)
                arrived = _is_small(bound, goal)
                share = goal * abs(bound.objective) / bound.gap if bound.gap > 0.0 else 1.0  # gaps fall as steps do, or faster
                look_below = moved * min(max(2.0 * share, _MUCH_CLOSER), _CLOSER)
            elif certified:
                arrived = False
            else:
                arrived = moved <= goal * scale
            if arrived:
                x = _packed(problem, gram, W)
                if observe(iteration, x, None if bound is None else _trusted(problem, gram, W, bound, tol)) or still:
                    return x, iteration
                goal *= _TIGHTER
            bound = None
        return _packed(problem, gram, W), max_iter


def compile_for(problem: Problem) -> None:
    """Compile what a run needs, before any clock starts: the regulariser in double precision, whatever that of the data is."""
    problem.penalty(_prox(problem, np.zeros((problem.p, problem._targets.shape[1])), 1.0).reshape(problem.shape))


def _nearer(problem: Problem, gram: Gram, at_zero: Bound) -> Array:
    """Return zero, or the minimum without a penalty if that is well determined and better: the penalty may be weak."""
    if gram.least > _STEEP * gram.norm:
        free = np.linalg.solve(gram.Q, gram.B)
        if _objective(problem, gram, free) < at_zero.objective:
            return free
    return np.zeros_like(gram.B)


class _Momentum:
    """How far to go on in the direction of the last step.

    If f is known to be well curved everywhere, by the share that is best for that; otherwise further each time, and anew
    from where it pointed uphill.

    References
    ----------
    Nesterov: Introductory lectures on convex optimization, 2004, section 2.2.
    O'Donoghue, Candes: Adaptive restart for accelerated gradient schemes, Found. Comput. Math. 2015.
    """

    def __init__(self, gram: Gram) -> None:
        root = math.sqrt(gram.least / gram.norm) if gram.least > _STEEP * gram.norm else 0.0
        self._share = (1.0 - root) / (1.0 + root) if root else None
        self._t = 1.0

    def share(self, before: Array, ahead: Array, new: Array) -> float:
        """Return the share of the last move to go on by, after the step from ``ahead`` to ``new``."""
        if self._share is not None:
            return self._share
        if float(np.vdot(ahead - new, new - before)) > 0.0:
            self._t = 1.0
            return 0.0
        faster = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * self._t * self._t))
        share, self._t = (self._t - 1.0) / faster, faster
        return share


def _solution(problem: Problem, gram: Gram) -> Array:
    """Return the minimum where nothing is penalised: if there are several, that of least norm with columns scaled alike."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve, lstsq
    from scipy.linalg.lapack import dpocon

    diagonal = np.sqrt(np.maximum(np.diagonal(gram.Q), np.finfo(np.float64).tiny))  # columns may have any scale
    scaled, B = gram.Q / np.outer(diagonal, diagonal), gram.B / diagonal[:, None]
    nothing = np.flatnonzero(np.diagonal(gram.Q) == 0.0)
    scaled[nothing, nothing] = 1.0  # their coefficients are zero, and the others' are found as if there were none of them
    result: Array | None = None
    with suppress(LinAlgError):
        factor = cho_factor(scaled)
        share, _ = dpocon(factor[0], float(np.abs(scaled).sum(axis=0).max()))  # of the largest eigenvalue in the smallest
        if float(share) > _DEPENDENT:
            result = cho_solve(factor, B)
    if result is None:
        # Of what columns have beyond others, products keep half of the digits: the data itself has all, if there is memory.
        left = available_memory()
        if left is None or _COPIES * 8 * (problem.n + problem.p) * problem.p < left:
            return _solution_of_data(problem, gram)
        result, *_ = lstsq(scaled, B, cond=_DEPENDENT, lapack_driver="gelsy")
    return result / diagonal[:, None]


def _solution_of_data(problem: Problem, gram: Gram) -> Array:
    """Return the same by an orthogonal factor of the data, centred and weighted; l2 is further rows."""
    from scipy.linalg import lstsq

    n, p = problem.n, problem.p
    roots = np.sqrt(problem._weights.astype(np.float64) * (problem.loss.curvature / n))[:, None]
    ridge = p if problem.l2 > 0.0 else 0
    A, Y = np.zeros((n + ridge, p), order="F"), np.zeros((n + ridge, gram.B.shape[1]))
    A[:n], Y[:n] = _rows.matrix(problem._rows), problem._targets
    A[:n] -= gram.means
    Y[:n] -= gram.centre
    A[:n] *= roots
    Y[:n] *= roots
    if ridge:
        A[n:][np.diag_indices(p)] = math.sqrt(2.0 * problem.l2)
    sizes = np.linalg.norm(A, axis=0)
    precision = max(n, p) * float(np.finfo(problem.dtype).eps)
    sizes[sizes <= precision * np.abs(gram.means) * float(np.linalg.norm(roots))] = np.inf  # constant, but for rounding
    A /= np.maximum(sizes, np.finfo(np.float64).tiny)
    result, *_ = lstsq(A, Y, cond=precision, overwrite_a=True, overwrite_b=True, lapack_driver="gelsy", check_finite=False)
    return result / np.maximum(sizes, np.finfo(np.float64).tiny)[:, None]


def _is_small(bound: Bound, tol: float) -> bool:
    return bound.gap <= tol * abs(bound.objective)


def _trusted(problem: Problem, gram: Gram, W: Array, bound: Bound, tol: float) -> Bound | None:
    """Return a bound on what the data would say; None if rounding may have made what the tolerance asks for.

    Rounding is that of the largest numbers that were added: squares of the targets and of predictions that nothing cancels,
    as they were before anything was centred.
    """
    if ignores_constants(problem):  # whose gap needs the best constant
        return None
    if problem.dtype != np.float64 and problem.fit_intercept:  # which is rounded with the answer
        return None
    largest = gram.squares + float(((gram.sizes @ np.abs(W)) ** 2).sum())
    units = _ROUNDING if problem.dtype == np.float64 else _ROUNDING_SINGLE
    rounding = units * float(np.finfo(problem.dtype).eps) * largest
    return Bound(bound.objective, bound.gap + rounding) if rounding <= _LITTLE * tol * abs(bound.objective) else None


def _bound(problem: Problem, gram: Gram, W: Array, product: Array) -> Bound:
    """Return the objective and the duality gap, from Q and B alone; ``product`` is ``Q @ W``."""
    ridge = problem.l2 * float(np.vdot(W, W))
    slopes = product - gram.B
    loss = 0.5 * float(np.vdot(W, slopes - gram.B)) + gram.constant - ridge
    gradient = slopes - 2.0 * problem.l2 * W
    primal = loss + ridge + problem.penalty(W.reshape(problem.shape))
    dual = dual_of_quadratic(problem, loss, float(np.vdot(gradient, W)), -gradient.reshape(problem.shape))
    return Bound(primal, max(primal - dual, 0.0))


def _objective(problem: Problem, gram: Gram, W: Array) -> float:
    """Return the objective, from Q and B alone."""
    smooth = 0.5 * float(np.vdot(W, gram.Q @ W - 2.0 * gram.B)) + gram.constant
    return smooth + problem.penalty(W.reshape(problem.shape))


def _prox(problem: Problem, V: Array, step: float) -> Array:
    out = np.empty_like(V)
    run_prox(problem._double_prox, V.reshape(problem.shape), step, out.reshape(problem.shape))
    return out


def _packed(problem: Problem, gram: Gram, W: Array) -> Array:
    x = np.zeros(problem.packed_shape, problem.dtype)
    x[: problem.p] = W.reshape(problem.shape)
    if problem.fit_intercept:
        x[problem.p] = (gram.centre - gram.means @ W).reshape(x[problem.p].shape)
    return x
