"""Newton steps for the fused lasso, among the parameters that have the pieces of one that is near the answer.

Accelerated gradients soon know which neighbours are equal, and with an L1 part which are zero, but take long for the values of
the pieces where columns are correlated. Among the parameters with the same pieces the objective is smooth and has few
coordinates: a few steps of Newton's method are all it takes. A step goes to its end, or to where two pieces become one or a
piece becomes zero; which pieces must be cut is for gradients to find out.
"""

from __future__ import annotations

import math
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .losses import Multinomial, has_second_derivatives
from .regularizers import FusedLasso
from .rows import FarRows, is_mapped, is_sparse, matrix

if TYPE_CHECKING:
    from .problem import Problem

__all__ = ["Pieces", "Point", "can_improve", "find_pieces", "improve"]

Array = np.ndarray[Any, Any]

_STEPS = 20  # at most, at a time
_ALWAYS = 200  # pieces that are never too many
_PASSES = 50.0  # over the data that a step may cost
_MOST = 1000  # pieces
_ENTRIES = 20_000_000  # of their columns
_RIDGE = 1e-6  # on a diagonal of ones: where the data says nothing it is rounding errors that would be made large
_ROUNDING = 1e-13  # of the objective, by which it may seem to go up
_SHORTER = (0.5, 0.1)  # steps to try if a whole one leads up


class Pieces(NamedTuple):
    """The pieces of a parameter: runs of equal coefficients, but for those that an L1 part keeps at zero."""

    labels: Array  # (p, q): the piece that a coefficient is in; -1 if it stays zero
    slopes: Array  # (k,): of the regulariser in the value of a piece


class Point(NamedTuple):
    """A packed parameter and what is known of it."""

    x: Array
    predictions: Array
    objective: float


class _Sums(NamedTuple):
    """What the columns of the data add up to over the pieces of one target."""

    labels: Array  # (p,): as in the pieces
    numbers: Array  # (k,): the label of each sum
    columns: Array  # (n, k)


def can_improve(problem: Problem) -> bool:
    """Tell whether there are Newton steps for a problem."""
    here = not isinstance(problem._rows, FarRows) and not is_mapped(problem._rows)
    bent = has_second_derivatives(problem.loss, problem._targets.shape[1])
    return here and bent and isinstance(problem._bound, FusedLasso)


def improve(problem: Problem, x: Array) -> tuple[Point, int] | None:
    """Return where Newton steps lead from a packed parameter, and how many there were; None if they lead nowhere."""
    predictions = problem.predict(x)
    point = Point(x, predictions, problem.smooth_value(x, predictions) + problem.penalty(x))
    sums: dict[int, _Sums] = {}
    for steps in range(1, _STEPS + 1):
        better = _step(problem, point, sums)
        gained = 0.0 if better is None else point.objective - better.objective
        if better is None or gained <= _ROUNDING * abs(point.objective):
            return (better or point, steps) if steps > 1 else None
        point = better
    return point, steps


def _step(problem: Problem, point: Point, sums: dict[int, _Sums]) -> Point | None:
    """Return the point after one step; None if there is none to take. ``sums`` are those of the step before, then of this."""
    p, q = problem.p, problem._targets.shape[1]
    w = point.x[:p].reshape(p, q).astype(np.float64)
    pieces = find_pieces(problem._bound, w)
    if len(pieces.slopes) + q > min(_MOST, max(_ALWAYS, math.sqrt(_PASSES * p * q))):
        return None
    found = _direction(problem, point, pieces, sums)
    return None if found is None else _search(problem, point, w, pieces, *found)


def find_pieces(bound: FusedLasso, w: Array) -> Pieces:
    """Return the pieces of w, a matrix whose columns are fused.

    Examples
    --------
    >>> import numpy as np
    >>> from dapsgd import FusedLasso
    >>> found = find_pieces(FusedLasso(1.0, l1=0.5), np.array([[0.0], [2.0], [2.0], [3.0]]))
    >>> found.labels.ravel(), found.slopes
    (array([-1,  0,  0,  1]), array([1. , 1.5]))
    """
    p, q = w.shape
    flat = w.T.ravel()  # one column after the other
    first = np.append(True, flat[1:] != flat[:-1])
    first[::p] = True
    starts = np.flatnonzero(first)
    values, sizes = flat[starts], np.diff(np.append(starts, p * q))
    up = np.sign(np.diff(values)) * (starts[1:] % p != 0)
    slopes = bound.l1 * np.sign(values) * sizes
    slopes[1:] += bound.lam * up
    slopes[:-1] -= bound.lam * up
    alive = (values != 0.0) | (bound.l1 == 0.0)
    numbers = np.where(alive, np.cumsum(alive) - 1, -1)
    return Pieces(np.repeat(numbers, sizes).reshape(q, p).T, slopes[alive])


def _direction(problem: Problem, point: Point, pieces: Pieces, sums: dict[int, _Sums]) -> tuple[Array, Array] | None:
    """Return the step of Newton's method: in the values of the pieces, and in the intercepts, shape (f, q)."""
    p, q, k = problem.p, problem._targets.shape[1], len(pieces.slopes)
    free = q if problem.fit_intercept else 0
    gradient = problem.packed_gradient(point.x, point.predictions).reshape(-1, q).astype(np.float64)
    inside = pieces.labels >= 0
    sizes = np.bincount(pieces.labels[inside], minlength=k)
    slopes = np.bincount(pieces.labels[inside], gradient[:p][inside], k) + pieces.slopes
    weights, means = problem._weights.astype(np.float64), np.zeros((q, k))
    parts = []
    for j in range(q):
        labels = pieces.labels[:, j]
        part = _merged(sums[j], labels) if j in sums else None
        part = part or _columns(problem, labels)
        if part is None:
            return None
        sums[j], (_, index, columns) = part, part
        if free:  # which is to be what is predicted of a mean row: then other coordinates hardly depend on it
            means[j, index] = weights @ columns / weights.sum()
            slopes[index] -= means[j, index] * gradient[p, j]
            columns = np.column_stack([columns - means[j, index], np.ones(problem.n)])
            index = np.append(index, k + j)
        parts.append((index, columns))
    H = np.zeros((k + free, k + free))
    H[np.arange(k), np.arange(k)] = 2.0 * problem.l2 * sizes
    bent = problem.joint_second_derivatives(point.predictions)
    together = isinstance(problem.loss, Multinomial)
    for j, other in combinations_with_replacement(range(q), 2) if together else ((j, j) for j in range(q)):
        (left, columns), (right, others) = parts[j], parts[other]
        block = columns.T @ (bent(j, other)[:, None] * others)
        H[np.ix_(left, right)] += block
        if j != other:
            H[np.ix_(right, left)] += block.T
    step = _solve(H, np.concatenate([slopes, gradient[p:].ravel()]))
    if step is None:
        return None
    intercepts = step[k:] - means @ step[:k] if free else step[k:]
    return step[:k], intercepts.reshape(-1, q)


def _columns(problem: Problem, labels: Array) -> _Sums | None:
    """Return the sums of columns over the pieces of one target; None if these are too many."""
    there = np.flatnonzero(labels >= 0)
    if problem.n * len(there) > _ENTRIES:
        return None
    X, of = matrix(problem._rows), labels[there]
    chosen = X if len(there) == problem.p else X[:, there]
    columns = (chosen.toarray() if is_sparse(problem._rows) else chosen).astype(np.float64, copy=False)
    starts = np.flatnonzero(np.diff(of, prepend=-1))
    return _Sums(labels, of[starts], np.add.reduceat(columns, starts, axis=1) if len(starts) else columns)


def _merged(before: _Sums, labels: Array) -> _Sums | None:
    """Return the sums of columns over pieces that pieces were put together to, or that are left; None if one was cut."""
    there = labels >= 0
    places = np.full(int(before.numbers.max(initial=-1)) + 1, -1)  # of the columns, by label
    places[before.numbers] = np.arange(len(before.numbers))
    if (before.labels[there] < 0).any():
        return None
    place = places[before.labels[there]]
    now = np.full(len(before.numbers), -1)
    now[place] = labels[there]
    whole = np.bincount(place, minlength=len(now)) == np.bincount(places[before.labels[before.labels >= 0]], minlength=len(now))
    left = np.flatnonzero(now >= 0)
    if (now[place] != labels[there]).any() or not whole[left].all() or not len(left):
        return None
    starts = np.flatnonzero(np.diff(now[left], prepend=-1))
    return _Sums(labels, now[left][starts], np.add.reduceat(before.columns[:, left], starts, axis=1))


def _solve(H: Array, slopes: Array) -> Array | None:
    """Return the step that H makes of slopes; None if it is not to be had."""
    diagonal = np.diagonal(H)
    if not (np.isfinite(H).all() and (diagonal >= 0.0).all()):
        return None
    scale = 1.0 / np.sqrt(np.maximum(diagonal, np.finfo(np.float64).tiny))
    scaled = H * np.outer(scale, scale)
    scaled[np.diag_indices(len(H))] += _RIDGE
    try:
        step: Array = -scale * np.linalg.solve(scaled, scale * slopes)
    except np.linalg.LinAlgError:
        return None
    return step if np.isfinite(step).all() else None


def _search(problem: Problem, point: Point, w: Array, pieces: Pieces, step: Array, intercepts: Array) -> Point | None:
    """Return the best of a few points along a step; None if all are worse."""
    inside = pieces.labels >= 0
    move = np.zeros_like(w)
    move[inside] = step[pieces.labels[inside]]

    def at(share: float, new: Array) -> Point:
        moved = point.x[len(w) :].reshape(-1, w.shape[1]) + share * intercepts
        x = np.concatenate([new, moved]).reshape(point.x.shape).astype(problem.dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            predictions = problem.predict(x)
            objective = problem.smooth_value(x, predictions) + problem.penalty(x)
        return Point(x, predictions, objective if math.isfinite(objective) else math.inf)

    ceiling = point.objective + _ROUNDING * abs(point.objective)
    tried = [at(1.0, w + move)]
    length, cut = _until_pieces_meet(problem._bound, w, move)
    if length < 1.0:
        tried.append(at(length, cut))
    elif tried[0].objective > ceiling:
        tried += [at(share, w + share * move) for share in _SHORTER]
    best = min(tried, key=lambda one: one.objective)
    return best if best.objective <= ceiling else None


def _until_pieces_meet(bound: FusedLasso, w: Array, move: Array) -> tuple[float, Array]:
    """Return how much of a move may be made until pieces become equal, or zero if they have an L1 part; and w there."""
    jumps, moves = np.diff(w, axis=0), np.diff(move, axis=0)
    meet = np.divide(-jumps, moves, out=np.full_like(jumps, np.inf), where=jumps * moves < 0.0)
    zero = np.divide(-w, move, out=np.full_like(w, np.inf), where=(w * move < 0.0) & (bound.l1 > 0.0))
    length = float(min(meet.min(initial=np.inf), zero.min(initial=np.inf)))
    if not length < 1.0:
        return math.inf, w
    cut = w + length * move
    cut[zero == length] = 0.0
    for j, target in np.argwhere(meet == length):
        after = w[j + 1 :, target] != w[j + 1, target]
        end = int(np.argmax(after)) if after.any() else len(after)
        cut[j + 1 : j + 1 + end, target] = cut[j, target]
    return length, cut
