r"""Coordinate descent on a quadratic model of a problem, one unit of coordinates after the other.

Around a point :math:`W_0` with gradient g the model is
:math:`\tfrac12\langle D, Q D\rangle + \langle g, D\rangle + h(W_0 + D)`, where h is a sum over units of rows of W: single
rows, or groups. A step on a unit is a proximal step with the unit's own smoothness, so columns may have any scale; where a
unit has several rows, more such steps follow on it alone, as what they cost does not depend on all others. Every few sweeps
the next points are extrapolated from the last ones.

References
----------
Bertrand, Massias: Anderson acceleration of coordinate descent, AISTATS 2021.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ._handles import Handle, UnitHandle, make_handle, unit_entry
from ._jit import kernel, prepared, run
from ._passes import for_each
from .rows import inner
from .runtimes._blas import calm_for, threads_for

__all__ = [
    "MEMORY",
    "Blocks",
    "ColumnModel",
    "GramModel",
    "Model",
    "Part",
    "Units",
    "blocks_of",
    "descend",
    "make_units",
    "unit_handle",
]

Array = np.ndarray[Any, Any]

_LARGEST_JUMP = 1500  # coordinates
_BEFORE_JUMP = 3  # sweeps, which choose the signs
_LATEST_JUMP = 30  # sweeps: then there is one, whatever the signs do
_STEADY = 0.02  # of the signs change in a sweep: the others are likely to stay, and a jump has few to turn
_TURNS = 200  # of signs in a jump; after so many, sweeps choose them better
_DEPENDENT = 1e-9  # a share of a column's square, to which it is a combination of others
_ROUNDING, _RIDGE = 1e-13, 1e-8  # shares of the diagonal: for any columns, and for those that depend on each other
_NULL = 1e-10  # a share of the largest eigenvalue of their products, at which columns cancel each other
MEMORY = 5  # sweeps from which the next points are extrapolated
_BETWEEN = 10  # sweeps over the units that are not zero, until one over all
_FULL = 10  # sweeps over all units at first, which choose those
_MOST_STEPS = 20  # on a unit of several rows, before the next one has its turn
_HIDDEN = 1e-100  # a root of a weight
_SETTLED = 0.1  # of its first step: then it may have


class Units(NamedTuple):
    """The parts into which a regulariser falls: unit g is rows ``rows[starts[g]:starts[g + 1]]`` of the parameter."""

    starts: Array
    rows: Array


class Part(NamedTuple):
    """Some units of a regulariser, side by side in a smaller parameter."""

    handle: Handle  # the regulariser's prox of one unit
    which: Array  # units of the regulariser
    starts: Array  # where each starts in the smaller parameter
    lasso: float = math.nan  # the strength if the regulariser is an L1 norm
    positive: bool = False  # must coefficients not be negative?

    @property
    def regularizer(self) -> UnitHandle:
        """The prox in the form that compiled code calls."""
        return UnitHandle(self.handle.code, self.handle.data, math.nan if self.positive else self.lasso)


class Blocks(NamedTuple):
    """The units' own parts of a model's matrix, one after the other."""

    entries: Array
    starts: Array  # where each starts; none has entries if they are not known
    bounds: Array  # of the largest eigenvalue of each


class Model(Protocol):
    """A quadratic model that can be descended on."""

    def jump(self, tol: float) -> bool:
        """Go to the minimum, from one choice of signs to the next, as far as that is known; tell whether it is.

        Coordinates stay at zero whose slope is beyond what keeps them there by no more than ``tol``.
        """

    def sweep(self, everywhere: bool) -> float:
        """Step on every unit once; return the longest step, measured as a gradient.

        If not ``everywhere``, units at zero may be left out where these cost as much as others.
        """

    @property
    def state(self) -> list[Array]:
        """What a sweep changes, W first: all of it affine functions of W and of each other."""

    def value(self, state: list[Array]) -> float:
        """Return the smooth part of the model at a state."""


def make_units(bound: Any, shape: tuple[int, ...]) -> Units | None:
    """Return the units of a bound regulariser, None if it ties all coordinates together."""
    if hasattr(type(bound), "units"):
        return Units(*bound.units(shape))
    if getattr(type(bound), "elementwise", False):
        return Units(np.arange(shape[0] + 1), np.arange(shape[0]))
    return None


def unit_handle(bound: Any) -> Handle:
    """Compile a bound regulariser's prox of a single unit, in double precision."""
    flat = np.zeros(1)
    return make_handle(unit_entry, bound, 0, flat, 1.0, flat)


def descend(model: Model, penalty: Callable[[Array], float], tol: float, max_sweeps: int) -> tuple[Array, int | None]:
    """Descend until no step is longer than ``tol``; return W and the sweeps it took, None if it did not get there.

    ``penalty(W)`` is the regulariser.
    """
    seen: list[list[Array]] = []
    since = 0  # the last jump
    passed = 0  # sweeps since the last one over all units
    for sweeps in range(1, max_sweeps + 1):
        everywhere = sweeps <= _FULL or passed == _BETWEEN
        longest = model.sweep(everywhere)
        if everywhere and not longest > tol:
            return model.state[0], sweeps
        passed = 0 if everywhere else passed + 1 if longest > tol else _BETWEEN
        seen.append([part.copy() for part in model.state])
        since += 1
        if since >= _BEFORE_JUMP and (_are_steady(seen) or since >= _LATEST_JUMP) and model.jump(tol):
            seen, since = [], 0
        elif len(seen) > MEMORY:
            new = _extrapolate(seen)
            if new is not None and model.value(new) + penalty(new[0]) < model.value(model.state) + penalty(model.state[0]):
                for part, better in zip(model.state, new, strict=True):
                    part[...] = better
            seen = []
    return model.state[0], None


def _are_steady(seen: list[list[Array]]) -> bool:
    """Tell whether the last sweep changed few signs."""
    if len(seen) < 2:
        return False
    now, before = np.sign(seen[-1][0]), np.sign(seen[-2][0])
    return int((now != before).sum()) <= _STEADY * max(int(np.count_nonzero(now)), 1)


def _extrapolate(seen: list[list[Array]]) -> list[Array] | None:
    """Return the affine combination of successive states whose steps cancel most."""
    steps = np.diff(np.stack([state[0].ravel() for state in seen]), axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        products = steps @ steps.T
        products[np.diag_indices(len(products))] += 1e-12 * np.trace(products)
    if not np.isfinite(products).all():
        return None
    try:
        shares = np.linalg.solve(products, np.ones(len(products)))
    except np.linalg.LinAlgError:
        return None
    total = shares.sum()
    if not np.isfinite(total) or total == 0.0:
        return None
    return [np.tensordot(shares / total, np.stack(parts[1:]), axes=1) for parts in zip(*seen, strict=True)]


class GramModel:
    """A model whose matrix Q is at hand: a sweep costs the square of the number of rows, whatever that of the data."""

    def __init__(
        self,
        part: Part,
        Q: Array,
        gradient: Array,
        W: Array,
        blocks: Blocks | None = None,  # of the units, if they are known
    ) -> None:
        self._Q = Q
        self._lasso, self._positive = part.lasso, part.positive
        self._start, self._first = W.copy(), gradient.copy()
        self.state = [W.copy(), gradient.copy()]
        blocks = blocks_of(Q, part.starts) if blocks is None else blocks
        self._arguments = part.regularizer, part.which, part.starts, blocks, Q
        self._alive, self._memory = part.handle, _memory(part, W)
        self._run = prepared(sweep_gram, *self._arguments)

    def sweep(self, everywhere: bool) -> float:
        """Step on every unit once: those that stay at zero cost nothing."""
        del everywhere
        W, gradient = self.state
        return float(self._run(*self._arguments, gradient, W, self._memory))

    def jump(self, tol: float) -> bool:
        """Go to the minimum with the signs as they are; drop coordinates whose sign would change, add others that want to move.

        Known for an L1 norm, which is linear while no sign changes. Where columns depend on each other the minimum may be
        anywhere: a jump that does not lead down is taken back, and is the last.
        """
        if not math.isfinite(self._lasso) or self.state[0].shape[1] > 1:
            return False
        before = [part.copy() for part in self.state]
        known = self._jump(tol)
        W, gradient = self.state
        gradient[...] = self._first + self._Q @ (W - self._start)  # not by adding up, should the steps have been long
        rounding = 1e-12 * (abs(self.value(before)) + self._lasso * float(np.abs(before[0]).sum()))
        if self._with_norm(self.state) > self._with_norm(before) + rounding:
            for part, old in zip(self.state, before, strict=True):
                part[...] = old
            self._lasso, known = math.nan, False
        return known

    def _with_norm(self, state: list[Array]) -> float:
        return self.value(state) + self._lasso * float(np.abs(state[0]).sum())

    def _jump(self, tol: float) -> bool:
        W, gradient = self.state[0][:, 0], self.state[1][:, 0]
        chosen = np.flatnonzero(W)
        if not 0 < len(chosen) <= _LARGEST_JUMP:
            return False
        found = _inverse(self._Q[np.ix_(chosen, chosen)], _ROUNDING)
        if found is None:
            thin_out(self._Q, W)
            gradient[...] = (self._first + self._Q @ (self.state[0] - self._start))[:, 0]
            chosen = np.flatnonzero(W)
            found = _inverse(self._Q[np.ix_(chosen, chosen)], _RIDGE)
        if found is None:
            return False
        most = min(len(chosen) + _TURNS, len(W))
        inverse, active = np.zeros((most, most)), np.zeros(most, np.int64)
        inverse[: len(chosen), : len(chosen)], active[: len(chosen)] = found, chosen
        run(turn_signs, self._Q, inverse, active, len(chosen), self._lasso, self._positive, tol, _TURNS, W, gradient)
        return bool(np.isfinite(W).all())

    def value(self, state: list[Array]) -> float:
        """Return the smooth part of the model at a state."""
        return 0.5 * float(np.vdot(state[0] - self._start, state[1] + self._first))


def _inverse(matrix: Array, most: float) -> Array | None:
    """Return the inverse of a matrix that is positive definite, or of one nearby, with up to so much on the diagonal."""
    from scipy.linalg.lapack import dpotrf, dpotri

    diagonal = np.diagonal(matrix).copy()
    for ridge in (_ROUNDING, most):
        matrix[np.diag_indices(len(matrix))] = diagonal * (1.0 + ridge)
        # SciPy's BLAS is another than NumPy's, whose threads may still be awake: the two would wait for each other.
        with calm_for(matrix.nbytes):
            factor, failed = dpotrf(matrix.T, lower=1)  # by columns, so that it need not be turned round
            if failed:
                continue
            inverse, failed = dpotri(factor, lower=1, overwrite_c=1)
        largest = float((np.diagonal(inverse) * diagonal).max(initial=0.0))
        if not failed and largest < 2.0 / _RIDGE and np.isfinite(largest):
            return np.tril(inverse) + np.tril(inverse, -1).T
    return None


def thin_out(Q: Array, W: Array) -> None:
    """Make the columns that W uses independent, by going along combinations of them that cancel each other.

    That changes no prediction. The L1 norm is linear on the way until a coordinate becomes zero, so of the two ways one does
    not make it grow. ``W`` is changed in place; ``Q`` has the products of all columns.
    """
    used = np.flatnonzero(W)
    sizes, directions = np.linalg.eigh(Q[np.ix_(used, used)])
    null = directions[:, sizes <= _NULL * sizes[-1]]
    while null.shape[1] and len(used):
        way = null[:, 0] if np.sign(W[used]) @ null[:, 0] <= 0.0 else -null[:, 0]
        shrinks = way * W[used] < -_NULL * np.abs(way).max() * np.abs(W[used])
        if not shrinks.any():
            return
        steps = np.where(shrinks, -W[used] / np.where(shrinks, way, 1.0), np.inf)
        first = int(np.argmin(steps))
        W[used] += steps[first] * way
        W[used[first]] = 0.0
        null = null[:, 1:] - np.outer(way, null[first, 1:] / way[first])  # those that leave the coordinate at zero
        used, null = np.delete(used, first), np.delete(null, first, axis=0)


class ColumnModel:
    r"""A model with :math:`Q = C^T \mathrm{diag}(weights)\,C + ridge`: a sweep costs the entries of C.

    For sparse columns, and for more columns than rows.

    Parameters
    ----------
    part : Part
    columns : selection of columns
    free : array, shape (n, f)
        Columns of coordinates that are not penalised.
    weights, ridge : array, float
    slopes, W, at_free : array
        The gradient, the point, and the gradient in the free coordinates.
    """

    def __init__(
        self, part: Part, columns: Any, free: Array, weights: Array, ridge: float, slopes: Array, W: Array, at_free: Array
    ) -> None:
        weighted = columns.weighted(weights)
        self._dense = columns.is_dense
        self._free, self._weights, self._ridge = weighted.inside[:, None] * free, weighted.outside.astype(np.float64), ridge
        self._start, self._slopes, self._at_free, self._inside = W.copy(), slopes, at_free, weighted.inside
        products = free.T @ ((weighted.inside**2 * weighted.outside)[:, None] * free)
        self._inverse = np.linalg.pinv(products, hermitian=True)
        self.state = [W.copy(), np.zeros((W.shape[1], len(weights)), weighted.outside.dtype), np.zeros_like(at_free)]
        bounds, own = weighted.blocks(part.starts)
        blocks = make_blocks(bounds, own, part.starts, ridge)
        self._arguments = (part.regularizer, part.which, part.starts, blocks, weighted.rows, ridge, self._start, slopes)
        self._costs = np.add.reduceat(weighted.costs, part.starts[:-1])  # of a step on each unit: bytes to read
        self._threads = threads_for(int(self._costs.sum()))  # at the most
        self._alive, self._memory = part.handle, [_memory(part, W) for _ in range(self._threads)]
        self._run = prepared(sweep_columns, *self._arguments)

    @property
    def along(self) -> Array | None:
        """How much predictions change with W, (n, q), for sparse columns; None where the weights in these hide it."""
        along = self.state[1]
        seen = along.dtype == np.float64 and not self._dense and bool((self._inside > _HIDDEN).all())
        return (along / self._inside).T if seen else None

    def jump(self, tol: float) -> bool:
        """Refuse: there is no matrix to solve with."""
        return False

    def sweep(self, everywhere: bool) -> float:
        """Step on units once, and on what is free."""
        _, along, shift = self.state
        longest = self._sweep_units(everywhere)
        if shift.size:
            left = self._at_free + self._free.T @ (self._weights * along).T
            move = -self._inverse @ left
            along += (self._free @ move).T
            shift += move
            longest = max(longest, float(np.abs(left).max()))
        return longest

    def _sweep_units(self, everywhere: bool) -> float:
        """Step on units once, in several threads where there is much to read: each on its own, as if all others stood still.

        What they gain together is what each does, less the products of their changes. If that may be nothing they go a share
        of the way, which leads down as the model is convex, and fewer threads make the next sweep.
        """
        W, along, _ = self.state
        spans = self._spans(everywhere)
        if len(spans) == 1:
            return float(self._run(*self._arguments, everywhere, along, W, self._memory[0], *spans[0])[0])
        before, start = W.copy(), along.copy()
        ways = [along, *(along.copy() for _ in spans[1:])]

        def step(k: int) -> tuple[float, float]:
            longest, gain = self._run(*self._arguments, everywhere, ways[k], W, self._memory[k], *spans[k])
            return longest, gain

        longest, gains = zip(*for_each(range(len(spans)), step, len(spans)), strict=True)
        along -= start
        lost = 0.0
        for way in ways[1:]:
            way -= start
            lost += float(np.vdot(self._weights * along, way.astype(np.float64)))
            along += way
        if not lost <= sum(gains):
            share = 1.0 / len(spans)
            W[...] = before + share * (W - before)
            along *= along.dtype.type(share)
            self._threads = len(spans) // 2
        along += start
        return max(longest)

    def _spans(self, everywhere: bool) -> list[tuple[int, int]]:
        """Return successive units for each thread, with about as much to read."""
        count = len(self._costs)
        if self._threads > 1:
            starts = self._arguments[2]
            moving = everywhere | np.logical_or.reduceat(self.state[0].any(axis=1), starts[:-1])
            costs = np.cumsum(self._costs * moving)
            threads = min(self._threads, threads_for(int(costs[-1])))
            cuts = np.searchsorted(costs, costs[-1] * np.arange(1, threads) / threads, side="right")
            return list(itertools.pairwise([0, *(int(cut) for cut in cuts), count]))
        return [(0, count)]

    def value(self, state: list[Array]) -> float:
        """Return the smooth part of the model at a state."""
        W, along, shift = state
        move = W - self._start
        linear = float(np.vdot(self._slopes, move)) + float(np.vdot(self._at_free, shift))
        bent = float(np.vdot(self._weights * along, along.astype(np.float64))) + self._ridge * float(np.vdot(move, move))
        return linear + 0.5 * bent


def _memory(part: Part, W: Array) -> Array:
    """Allocate room for what a step on a unit needs."""
    return np.zeros((6, int(np.diff(part.starts).max(initial=1)) * W.shape[1]))


def blocks_of(Q: Array, starts: Array) -> Blocks:
    """Return the units' blocks of a matrix."""
    if (np.diff(starts) == 1).all():
        return make_blocks(np.diagonal(Q), None, starts)
    blocks = [Q[a:b, a:b] for a, b in itertools.pairwise(starts)]
    return make_blocks(np.array([np.linalg.eigvalsh(block)[-1] for block in blocks]), blocks, starts)


def make_blocks(bounds: Array, blocks: Sequence[Array] | None, starts: Array, ridge: float = 0.0) -> Blocks:
    """Put the units' blocks one after the other, with ``ridge`` on the diagonal of each; None if they are not known, or single.

    Bounds that are zero become as small as can be.
    """
    floor = np.finfo(np.float64).eps * max(float(bounds.max(initial=0.0)) + ridge, np.finfo(np.float64).tiny)
    bounds = np.maximum(bounds + ridge, floor)
    if blocks is None:
        return Blocks(np.zeros(0), np.zeros(len(starts), np.int64), bounds)
    entries = [(block + ridge * np.eye(len(block))).ravel() for block in blocks]
    return Blocks(np.concatenate(entries), np.concatenate([[0], np.cumsum(np.diff(starts) ** 2)]).astype(np.int64), bounds)


@kernel
def turn_signs(
    Q: Array,
    inverse: Array,
    active: Array,
    count: int,
    lam: float,
    positive: bool,
    tol: float,
    most: int,
    W: Array,
    gradient: Array,
) -> None:
    """Minimise ``<W, Q W> / 2 + ... + lam |W|`` over W, from one choice of signs to the next, at most so many times.

    The first ``count`` entries of ``active`` are the coordinates that are not zero, and ``inverse`` begins with the inverse of
    their part of Q. With their signs as they are the minimum is one product away. Where a sign would change on the way there,
    stop, leave the coordinate at zero and go on without it; at the minimum, go on with the coordinate that most wants to
    leave zero. Either changes the inverse by a matrix of rank one. ``gradient`` is that of the first part, and kept up to date.
    With ``positive`` no coordinate leaves zero downwards.
    """
    signs, banned = np.sign(W), np.zeros(W.size, np.bool_)
    slopes, move = np.empty(inverse.shape[0]), np.empty(inverse.shape[0])
    for _ in range(most):
        for a in range(count):
            slopes[a] = gradient[active[a]] + lam * signs[active[a]]
        length, first = 1.0, -1
        for a in range(count):
            j = active[a]
            move[a] = -inner(inverse[a, :count], slopes[:count])
            if move[a] * signs[j] < 0.0 and -W[j] / move[a] < length:
                length, first = -W[j] / move[a], a
        for a in range(count):
            W[active[a]] += length * move[a]
            add_scaled(length * move[a], Q[active[a]], gradient)
        if first >= 0:
            W[active[first]], signs[active[first]] = 0.0, 0.0
            if not leave(inverse, active, count, first):
                return
            count -= 1
        else:
            eager = most_eager(W, gradient, banned, lam + tol, positive)
            if eager < 0 or count == inverse.shape[0]:
                return
            if join(Q, inverse, active, count, eager, slopes, move):
                signs[eager] = -np.sign(gradient[eager])
                count += 1
            else:
                banned[eager] = True  # a combination of the others


@kernel
def most_eager(W: Array, gradient: Array, banned: Array, least: float, positive: bool) -> int:
    """Return the coordinate at zero with the longest slope above ``least``; -1 if there is none."""
    eager = -1
    for j in range(W.size):
        slope = -gradient[j] if positive else abs(gradient[j])
        if W[j] == 0.0 and not banned[j] and slope > least:
            eager, least = j, slope
    return eager


@kernel
def leave(inverse: Array, active: Array, count: int, a: int) -> bool:
    """Take coordinate ``active[a]`` out of the inverse, the last one in its place; return whether that can be done."""
    pivot = inverse[a, a]
    if not pivot > 0.0:
        return False
    column = inverse[a, :count].copy()
    for b in range(count):
        add_scaled(-column[b] / pivot, column, inverse[b, :count])
    last = count - 1
    active[a] = active[last]
    for b in range(count):
        inverse[a, b] = inverse[last, b]
    for b in range(count):
        inverse[b, a] = inverse[b, last]
    return True


@kernel
def join(Q: Array, inverse: Array, active: Array, count: int, j: int, products: Array, solved: Array) -> bool:
    """Add coordinate j to the inverse; return False if its column is, up to rounding, a combination of the others'.

    ``products`` and ``solved`` are room.
    """
    for a in range(count):
        products[a] = Q[j, active[a]]
    for a in range(count):
        solved[a] = inner(inverse[a, :count], products[:count])
    rest = Q[j, j] - inner(products[:count], solved[:count])
    if not rest > _DEPENDENT * Q[j, j]:
        return False
    for a in range(count):
        add_scaled(solved[a] / rest, solved[:count], inverse[a, :count])
        inverse[a, count] = inverse[count, a] = -solved[a] / rest
    inverse[count, count] = 1.0 / rest
    active[count] = j
    return True


@kernel
def add_scaled(factor: float, row: Array, out: Array) -> None:
    """Add a multiple of one vector to another."""
    for j in range(row.size):
        out[j] += factor * row[j]


@kernel
def sweep_gram(
    regularizer: Any, which: Array, starts: Array, blocks: Blocks, Q: Array, gradient: Array, W: Array, memory: Array
) -> float:
    """Step on every unit of W, (k, q), keeping the gradient up to date; return the longest first step."""
    longest, known = 0.0, blocks.entries.size > 0
    for u in range(which.size):
        start, stop, bound = starts[u], starts[u + 1], blocks.bounds[u]
        size = (stop - start) * W.shape[1]
        old, slope = W[start:stop].ravel(), gradient[start:stop].ravel()
        point, new = memory[0, :size], memory[1, :size]
        for e in range(size):
            point[e] = old[e] - slope[e] / bound
        regularizer.prox_unit(which[u], point, 1.0 / bound, new)
        if known:
            longest = max(longest, bound * settle(regularizer, which[u], blocks, u, Q.shape[0], old, slope, memory))
        for r in range(start, stop):
            for c in range(W.shape[1]):
                move = new[(r - start) * W.shape[1] + c] - W[r, c]
                if move != 0.0:
                    W[r, c] += move
                    longest = longest if known else max(longest, abs(move) * bound)
                    add_to_column(Q[r], move, c, gradient)
    return longest


@kernel
def settle(regularizer: Any, unit: int, blocks: Blocks, u: int, cost: int, old: Array, slope: Array, memory: Array) -> float:
    """Go on minimising over a unit, roughly, after a first step on it; return how long that was.

    It is ``unit`` of the regulariser, and u of the model. The second row of ``memory`` is where the first step went, then where
    all went; the last row is not touched. To move a row of the unit costs ``cost`` afterwards, and all steps cost no more.
    """
    new, point, before = memory[1, : old.size], memory[0, : old.size], memory[2, : old.size]
    ahead, move = memory[3, : old.size], memory[4, : old.size]
    first = 0.0
    for e in range(old.size):
        first, ahead[e] = max(first, abs(new[e] - old[e])), new[e]
    if first == 0.0:
        return first
    bound, block = blocks.bounds[u], blocks.entries[blocks.starts[u] : blocks.starts[u + 1]]
    rows = round(math.sqrt(block.size))
    momentum, targets = 1.0, old.size // rows
    for _ in range(min(_MOST_STEPS, cost // rows)):
        for e in range(old.size):
            before[e], move[e] = new[e], ahead[e] - old[e]
        for r in range(rows):
            for c in range(targets):
                total = slope[r * targets + c]
                for k in range(rows):
                    total += block[r * rows + k] * move[k * targets + c]
                point[r * targets + c] = ahead[r * targets + c] - total / bound
        regularizer.prox_unit(unit, point, 1.0 / bound, new)
        longest, uphill = 0.0, 0.0
        for e in range(old.size):
            longest = max(longest, abs(new[e] - ahead[e]))
            uphill += (ahead[e] - new[e]) * (new[e] - before[e])
        if longest <= _SETTLED * first:
            break
        faster = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum))
        share = 0.0 if uphill > 0.0 else (momentum - 1.0) / faster
        momentum = 1.0 if uphill > 0.0 else faster
        for e in range(old.size):
            ahead[e] = new[e] + share * (new[e] - before[e])
    return first


@kernel
def add_to_column(row: Array, factor: float, c: int, out: Array) -> None:
    """Add ``factor * row`` to a column of ``out``; most often there is only one."""
    if out.shape[1] == 1:
        add_scaled(factor, row, out.ravel())
    else:
        for j in range(row.size):
            out[j, c] += factor * row[j]


@kernel
def sweep_columns(
    regularizer: Any,
    which: Array,
    starts: Array,
    blocks: Blocks,
    columns: Any,
    ridge: float,
    first: Array,
    slopes: Array,
    everywhere: bool,
    along: Array,
    W: Array,
    memory: Array,
    begin: int,
    end: int,
) -> tuple[float, float]:
    """Step on units ``begin:end`` of W, (k, q), or on those of them that are not zero.

    Return the longest first step, and what the first steps gain at least. ``columns`` holds columns as rows, which have
    ``weighted_dot`` and ``add_multiple``. ``along``, (q, n), is the columns times the change of W since it was ``first``.
    """
    longest, gain, known, flat = 0.0, 0.0, blocks.entries.size > 0, W.ravel()
    for u in range(begin, end):
        start, stop, bound = starts[u], starts[u + 1], blocks.bounds[u]
        size = (stop - start) * W.shape[1]
        old = flat[start * W.shape[1] : stop * W.shape[1]]
        if not (everywhere or old.any()):
            continue
        point, new, slope = memory[0, :size], memory[1, :size], memory[5, :size]
        for r in range(start, stop):
            for c in range(W.shape[1]):
                e = (r - start) * W.shape[1] + c
                slope[e] = slopes[r, c] + ridge * (W[r, c] - first[r, c]) + columns.weighted_dot(r, along[c])
                point[e] = W[r, c] - slope[e] / bound
        regularizer.prox_unit(which[u], point, 1.0 / bound, new)
        if known:
            step = settle(regularizer, which[u], blocks, u, along.shape[1], old, slope, memory)
            longest, gain = max(longest, bound * step), gain + 0.5 * bound * step * step
        for r in range(start, stop):
            for c in range(W.shape[1]):
                move = new[(r - start) * W.shape[1] + c] - W[r, c]
                if move != 0.0:
                    W[r, c] += move
                    if not known:
                        longest, gain = max(longest, abs(move) * bound), gain + 0.5 * bound * move * move
                    columns.add_multiple(r, move, along[c])
    return longest, gain
