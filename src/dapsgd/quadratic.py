"""Squared losses without their data: minimised on the Gram matrix."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from scipy.linalg.lapack import dpotrf

from . import rows as _rows
from ._jit import is_foreign
from ._memory import available_memory
from ._passes import shared_passes
from .dual import has_gap
from .gram import (
    Bound,
    Gram,
    bound_at,
    double_prox,
    is_direct,
    is_small,
    left_to_gain,
    objective_at,
    solved,
    tells_gaps,
    trusted,
)
from .runtimes._blas import blas_threads, calm_for
from .steps import longest_step

if TYPE_CHECKING:
    from .problem import Problem

__all__ = ["compile_for", "minimise"]

Array = np.ndarray[Any, Any]

_TIGHTER = 0.3
_GOAL = 0.25  # of the tolerance: an iteration more costs little next to the matrix, and rounding is allowed the rest
_GOAL_BY_STEP = 0.05  # where gaps are hardly larger than what is left to gain: people are used to answers that are better
_NEAR = 10.0  # times what a bound may be: that which the norm alone of a subgradient gives is several times larger
_CLOSER, _MUCH_CLOSER = 0.5, 0.05  # than when the gap was last looked at, which costs more than an iteration
_STEEP = 1e-3  # the least share of the largest eigenvalue in the smallest, from which on its momentum is the best
_STEEP_ENOUGH = 1e-6  # from which on reflections converge fast enough
_TRIES = 0.25  # times the root of the condition: a small part of the iterations that reflections take
_RHO, _ALPHA = 0.8, 0.85  # of those that are best in the worst case: what took the fewest iterations, see `_Reflected`
_DEPENDENT = 1e-11  # a share of columns' squares, to which one is a combination of others
_AFTER_ALL = 10  # iterations from the answer of a linear system: what they do not mend is rounding
_COPIES = 3  # of the data in double precision, which are made to solve for it


def minimise(
    problem: Problem,
    x0: Array,
    *,
    tol: float,
    max_iter: int,
    observe: Callable[[int, Array, Bound | None], bool],
    keep: Callable[[int, Callable[[], Array]], None],
) -> tuple[Array, int]:
    """Minimise from a packed ``x0``; return the last point and the number of iterations.

    ``observe(iteration, x, bound)`` is called when the point is accurate to ``tol`` as far as can be told without the data;
    True ends the run, otherwise it goes on to a fraction of that. The bound is None if the data must be asked for it.
    ``keep(iteration, point)`` is called after each, with a function that returns the point.
    """
    gram = problem._gram
    # From here on the data is asked for a certificate at the most, and matrices are often small.
    threads = blas_threads()
    with calm_for(gram.Q.nbytes), shared_passes(threads):
        W = x0[: problem.p].reshape(problem.p, -1).astype(np.float64)
        if is_direct(problem):
            W, max_iter = _solution(problem, gram), min(max_iter, _AFTER_ALL)
        by_step = gram.factor is not None and tells_gaps(problem)
        certified, watch, goal = has_gap(problem), _Watch(gram, by_step), (_GOAL_BY_STEP if by_step else _GOAL) * tol
        scale = 0.0 if certified else _residual_at_zero(problem, gram)
        if certified and not W.any():
            nothing = gram.constant + problem.penalty(x0)
            free = _without_penalty(problem, gram, nothing)
            if free is None or nothing - free.objective <= tol * nothing:  # zero may be as good an answer as any
                at_zero = bound_at(problem, gram, W, np.zeros_like(W))
                if is_small(at_zero, tol):
                    x = _packed(problem, gram, W)
                    if observe(1, x, trusted(problem, gram, W, at_zero, tol)):
                        return x, 1
            if free is not None:
                W, watch.objective = free
        turn = _when_to_reflect(problem, gram)
        method: _Method = (_Accelerated if turn > 0 else _Reflected)(problem, gram, W)
        for iteration in range(1, max_iter + 1):
            if iteration == turn + 1 > 1:
                method = _Reflected(problem, gram, W)
            method.advance()
            W = method.W
            keep(iteration, partial(_packed, problem, gram, W))
            bound: Bound | None = None
            if method.is_still or iteration == max_iter:
                arrived = True
            elif not certified:
                arrived = method.size <= goal * scale
            elif watch.is_due(goal, method.size, method.subgradient):
                bound = bound_at(problem, gram, W, method.product)
                arrived = is_small(bound, goal)
                watch.saw(bound, goal, method.size)
            else:
                arrived = False
            if arrived:
                x = _packed(problem, gram, W)
                found = None if bound is None else trusted(problem, gram, W, bound, tol)
                if observe(iteration, x, found) or method.is_still:
                    return x, iteration
                goal *= _TIGHTER
        return _packed(problem, gram, W), max_iter


class _Method(Protocol):
    """How an iteration is made."""

    W: Array  # the last point: exactly sparse, grouped, fused or of low rank
    size: float  # of a subgradient of f and h together at W, roughly
    is_still: bool  # the last iteration changed nothing any more

    def advance(self) -> None:
        """Make an iteration."""

    def subgradient(self) -> Array:
        """Return a subgradient of f and h together at W."""

    @property
    def product(self) -> Array:
        """Q @ W."""


class _Accelerated:
    """Proximal gradients with momentum.

    If f is known to be well curved everywhere, the share of the last move to go on by is the one that is best for that;
    otherwise it is larger each time, and it begins anew from where the last move pointed uphill.

    References
    ----------
    Nesterov: Introductory lectures on convex optimization, 2004, section 2.2.
    O'Donoghue, Candes: Adaptive restart for accelerated gradient schemes, Found. Comput. Math. 2015.
    """

    def __init__(self, problem: Problem, gram: Gram, W: Array) -> None:
        self._problem, self._gram = problem, gram
        self._step = longest_step(gram.norm, np.float64)
        self.W = self._Y = W
        self.product = self._ahead = gram.Q @ W  # the second is Q @ Y
        root = math.sqrt(gram.least / gram.norm) if gram.least > _STEEP * gram.norm else 0.0
        self._share = (1.0 - root) / (1.0 + root) if root else None
        self._t = 1.0

    def advance(self) -> None:
        """Make an iteration."""
        before, step = self.W, self._step
        new = double_prox(self._problem, self._Y - step * (self._ahead - self._gram.B), step)
        after = self._gram.Q @ new
        self._rest = new - self._Y, after - self._ahead
        self.size = float(np.linalg.norm(self._rest[0])) / step
        self.is_still = bool((new == before).all() and (before == self._Y).all())
        share = self._next_share(before, new)
        self._Y, self._ahead = new + share * (new - before), after + share * (after - self.product)
        self.W, self.product = new, after

    def subgradient(self) -> Array:
        """Return a subgradient of f and h together at W."""
        moved, changed = self._rest
        result: Array = changed - moved / self._step
        return result

    def _next_share(self, before: Array, new: Array) -> float:
        if self._share is not None:
            return self._share
        if float(np.vdot(self._Y - new, new - before)) > 0.0:
            self._t = 1.0
            return 0.0
        faster = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * self._t * self._t))
        share, self._t = (self._t - 1.0) / faster, faster
        return share


class _Reflected:
    r"""Reflections in the proximal points of f and of h in turn, as f has one in closed form.

    .. math:: X = \mathrm{prox}_{f/\rho}(Z), \quad W = \mathrm{prox}_{h/\rho}(2X - Z), \quad Z \leftarrow Z + 2\alpha(W - X).

    With the eigenvalues of Q between :math:`\mu` and L, :math:`\rho = \sqrt{\mu L}` and :math:`\alpha = 1`, distances fall by
    :math:`(\sqrt{L/\mu} - 1)/(\sqrt{L/\mu} + 1)` in each iteration: about twice as fast as with the best momentum, at the same
    price. A little less of both was faster in most of 48 problems with L up to 4,000 times :math:`\mu`.

    References
    ----------
    Giselsson, Boyd: Linear convergence and metric selection for Douglas-Rachford splitting and ADMM, IEEE Trans. Automat.
    Contr. 2017.
    """

    def __init__(self, problem: Problem, gram: Gram, W: Array) -> None:
        self._problem, self._gram = problem, gram
        self._rho = _RHO * math.sqrt(gram.least * gram.norm)
        self._factor, _ = dpotrf(gram.Q + self._rho * np.eye(problem.p), lower=1, overwrite_a=1)
        self._Z = W + (gram.Q @ W - gram.B) / self._rho  # whose proximal point is W
        self._far = math.inf

    def advance(self) -> None:
        """Make an iteration."""
        X = solved(self._factor, self._gram.B + self._rho * self._Z)
        self.W = double_prox(self._problem, 2.0 * X - self._Z, 1.0 / self._rho)
        self._between = self.W - X
        self._Z = self._Z + 2.0 * _ALPHA * self._between
        far = float(np.linalg.norm(self._between))
        self.is_still = not far < self._far  # but for rounding it is less each time
        self.size, self._far = self._rho * far, far

    def subgradient(self) -> Array:
        """Return a subgradient of f and h together at W."""
        result: Array = self._gram.Q @ self._between - self._rho * self._between
        return result

    @property
    def product(self) -> Array:
        """Q @ W."""
        result: Array = self._gram.Q @ self.W
        return result


def _when_to_reflect(problem: Problem, gram: Gram) -> float:
    """Return after how many iterations reflections are in order: they converge, if h is convex as far as is known.

    The worse f is conditioned the more of them it takes, but momentum may still get there in a few: where the penalty leaves
    little more than the best conditioned directions.
    """
    if (
        gram.factor is None
        or gram.least <= _STEEP_ENOUGH * gram.norm
        or not has_gap(problem)
        or is_foreign(problem.regularizer)
    ):
        return math.inf
    return math.floor(_TRIES * math.sqrt(gram.norm / gram.least))


def _residual_at_zero(problem: Problem, gram: Gram) -> float:
    step = longest_step(gram.norm, np.float64)
    return float(np.linalg.norm(double_prox(problem, step * gram.B, step))) / step


class _Watch:
    """Tells when a bound may be small enough: to find one costs more than an iteration."""

    def __init__(self, gram: Gram, by_step: bool) -> None:
        self._gram, self._factor = gram, gram.factor if by_step else None
        self.objective, self._below = math.nan, math.inf  # the first of a point on the way

    def is_due(self, goal: float, moved: float, subgradient: Callable[[], Array]) -> bool:
        """Tell whether to ask for a bound where a subgradient of f and h together is about so long, and may be asked for."""
        enough = goal * abs(self.objective)
        if self._factor is None or math.isnan(enough):
            return moved <= self._below
        if moved * moved > 2.0 * _NEAR * self._gram.least * enough:
            return False
        return left_to_gain(self._factor, subgradient()) <= enough

    def saw(self, bound: Bound, goal: float, moved: float) -> None:
        """Remember what was seen: gaps fall as steps do, or faster."""
        share = goal * abs(bound.objective) / bound.gap if bound.gap > 0.0 else 1.0
        self.objective, self._below = bound.objective, moved * min(max(2.0 * share, _MUCH_CLOSER), _CLOSER)


def compile_for(problem: Problem) -> None:
    """Compile what a run needs, before any clock starts: the regulariser in double precision, whatever that of the data is."""
    problem.penalty(double_prox(problem, np.zeros((problem.p, problem._targets.shape[1])), 1.0).reshape(problem.shape))


class _Free(NamedTuple):
    """The minimum without a penalty."""

    W: Array
    objective: float  # the penalty included


def _without_penalty(problem: Problem, gram: Gram, at_zero: float) -> _Free | None:
    """Return the minimum without a penalty if that is well determined and better than zero: the penalty may be weak."""
    if gram.factor is None or gram.least <= _STEEP * gram.norm:
        return None
    W = solved(gram.factor, gram.B)
    objective = objective_at(problem, gram, W)
    return _Free(W, objective) if objective < at_zero else None


def _packed(problem: Problem, gram: Gram, W: Array) -> Array:
    x = np.zeros(problem.packed_shape, problem.dtype)
    x[: problem.p] = W.reshape(problem.shape)
    if problem.fit_intercept:
        x[problem.p] = (gram.centre - gram.means @ W).reshape(x[problem.p].shape)
    return x


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
