"""Some columns of the data, gathered so that whole-matrix products with them are fast; the counterpart of ``rows.py``."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import rows as _rows
from ._jit import kernel, prepared, run
from ._passes import cut_rows, for_each, threads_of_a_pass
from .runtimes._blas import over_rows, single_threaded_blas, threads_for

if TYPE_CHECKING:
    from .problem import Problem

__all__ = ["DenseColumns", "SparseColumns", "Wanted", "add_up", "drift", "no_columns", "write_rows"]

Array = np.ndarray[Any, Any]

_ROOM = 1 << 28  # bytes for columns, so that they need not be moved when there are more of them
_BLOCK = 4096  # rows that are scaled and multiplied at a time
_IN_CACHE = 512  # rows whose sums stay in the first cache while columns are added to them
_WORTH_HALVING = 256  # columns whose products with each other cost more than another call of BLAS
_DRIFT = 0.003  # relative change of weights, which a model need not follow: its steps are as good, but for a share like that
_SAFE = 1e15  # weights up to this, and down to its inverse, may be in single precision; smaller ones do not matter beside them
_ROUNDING = 100.0  # units in the last place, which an eigenvalue of products may be off
_LOG_RANGE = 25.0  # squares between 1e-25 and 1e25 are safe in single precision


def no_columns(problem: Problem, means: Array | None = None, roughly: bool = False) -> DenseColumns | SparseColumns:
    """Return an empty selection of a problem's columns, to be added to; ``roughly`` if seven digits will do.

    ``means``, if given, are taken off dense columns.
    """
    rows = problem._rows
    if not isinstance(rows, _rows.DenseRows):
        return SparseColumns(problem._by_columns)
    return RoughColumns(rows.X, means) if roughly and rows.X.dtype == np.float64 else DenseColumns(rows.X, means)


class _Products(NamedTuple):
    """What is known of the products of columns that belong together."""

    weights: Array
    starts: Array  # of units
    bounds: Array  # of each one's largest eigenvalue
    blocks: list[Array]


class DenseColumns:
    """Columns of a dense matrix less their means, each contiguous in memory."""

    is_rough, is_dense = False, True

    def __init__(self, X: Array, means: Array | None = None, kind: Any = None) -> None:
        self._X, self._means = X, np.zeros(X.shape[1]) if means is None else means
        self._memory = np.empty((0, len(X)), X.dtype if kind is None else kind)
        self._count = 0
        self._known = _Products(np.empty(0), np.zeros(1, np.int64), np.empty(0), [])

    @property
    def bytes(self) -> int:
        """How much memory the selection takes."""
        return self._memory[: self._count].nbytes

    def add(self, index: Array) -> None:
        """Append columns to the selection."""
        count = self._count + len(index)
        if count > len(self._memory):
            n, p = self._X.shape
            room = max(4 * count, _ROOM // (n * self._memory.itemsize))  # memory that is not written to costs nothing
            grown = np.empty((max(count, min(room, p)), n), self._memory.dtype)
            grown[: self._count] = self._memory[: self._count]
            self._memory = grown
        self._gather(index, self._memory[self._count : count])
        self._count = count

    def _gather(self, index: Array, out: Array) -> None:
        self._fill(gather, index, out)

    def _fill(self, function: Any, index: Array, out: Array) -> None:
        """Let a function write these columns, or what it makes of them, in their order in memory."""
        order = np.argsort(index, kind="stable")
        write_rows(function, self._X, Wanted(np.ascontiguousarray(index[order]), self._means[index[order]], order), out)

    def keep(self, places: Array) -> None:
        """Keep only some of the selection, by their places in it."""
        self._memory, self._count = self._memory[places], len(places)
        self._known = self._known._replace(weights=np.empty(0))

    def times(self, w: Array) -> Array:
        """Return the selection times w, shape (n, q)."""
        return _rows.product(self._memory[: self._count].T, w.astype(self._X.dtype))

    def transpose_times(self, d: Array) -> Array:
        """Return the transposed selection times d, shape (k, q)."""
        return _rows.product(self._memory[: self._count], d.astype(self._memory.dtype, copy=False))

    def weighted(self, weights: Array) -> Weighted:
        """Return the columns in the form that compiled code reads, as they are."""
        largest = float(weights.max(initial=0.0))
        safe = self.is_rough and 1.0 / _SAFE < largest < _SAFE
        outside = weights.astype(np.float32) if safe else weights
        blocks = partial(self._blocks, weights, outside.dtype)
        columns = self._memory[: self._count]
        costs = np.full(len(columns), columns.itemsize * columns.shape[1])
        return Weighted(DenseRows(columns, outside), np.ones_like(weights), outside, costs, blocks)

    def _blocks(self, weights: Array, kind: np.dtype[Any], starts: Array) -> tuple[Array, list[Array] | None]:
        columns = self._memory[: self._count]
        if (np.diff(starts) == 1).all():
            return self._squares(weights), None
        known, count = self._known, len(self._known.starts)
        if not (np.array_equal(known.weights, weights) and np.array_equal(known.starts, starts[:count])):
            known, count = _Products(weights, starts[:1], np.empty(0), []), 1
        equal, roots = bool((weights == weights[0]).all()), np.sqrt(weights).astype(kind)
        units = list(itertools.pairwise(starts[count - 1 :]))
        threads = threads_for(columns.nbytes)

        def multiply(some: slice) -> list[Array]:
            parts = (columns[a:b].astype(kind, copy=False) for a, b in units[some])
            return [part @ part.T if equal else (part * roots) @ (part * roots).T for part in parts]

        with single_threaded_blas() if threads > 1 else nullcontext():
            made = itertools.chain.from_iterable(for_each(cut_rows(len(units)), multiply, threads))
        blocks = [block.astype(np.float64) * (weights[0] if equal else 1.0) for block in made]
        more = 1.0 + _ROUNDING * float(np.finfo(kind).eps)
        bounds = np.concatenate([known.bounds, [more * np.linalg.eigvalsh(block)[-1] for block in blocks]])
        self._known = _Products(weights, starts, bounds, [*known.blocks, *blocks])
        return bounds, self._known.blocks

    def _squares(self, weights: Array, since: int = 0) -> Array:
        """Return the weighted squared norms of the columns ``since:``."""
        columns = self._memory[since : self._count]
        result = np.empty(len(columns))
        run = prepared(dense_squares, columns, weights, result, 0, 0)
        run(columns, weights, result, 0, 0)  # compiled by one thread only
        over_rows(len(columns), columns.nbytes, lambda start, stop: run(columns, weights, result, start, stop))
        return result

    def gram(self, weights: Array, since: int = 0, roughly: bool = False) -> Array:
        """Return rows ``since:`` of ``C.T @ diag(weights) @ C`` for the selection C; ``roughly`` if seven digits will do.

        Products are added up in double precision.
        """
        if roughly:
            with np.errstate(over="ignore", invalid="ignore"):
                result = self._gram(weights, since, np.dtype(np.float32))
            if (np.abs(np.log10(np.maximum(np.diagonal(result, since), 1e-300))) < _LOG_RANGE).all():
                return result
        return self._gram(weights, since, self._X.dtype)

    def _gram(self, weights: Array, since: int, kind: np.dtype[Any]) -> Array:
        columns = self._memory[: self._count]
        equal = bool((weights == weights[0]).all())  # squares, no weights: nothing to scale
        roots = np.sqrt(weights).astype(kind)
        shape = self._count - since, self._count

        def add_up(span: slice) -> Array:
            result = np.zeros(shape)
            for rows in _rows.blas_blocks(span.stop - span.start, result.size, _BLOCK):
                block = slice(span.start + rows.start, span.start + rows.stop)
                part = columns[:, block].astype(kind, copy=False)
                part = part if equal else part * roots[block]
                if since and self._count - since < _WORTH_HALVING:
                    result += part[since:] @ part.T
                else:
                    result[:, :since] += part[since:] @ part[:since].T
                    result[:, since:] += part[since:] @ part[since:].T  # recognised as symmetric: half the work
            return result

        n, threads = columns.shape[1], threads_of_a_pass(columns.nbytes)
        count = 2 * threads if threads > 1 and 16 * math.prod(shape) * threads <= columns.nbytes else 1
        parts = for_each([slice(n * k // count, n * (k + 1) // count) for k in range(count)], add_up, threads, apart=True)
        result: Array = sum(parts[1:], start=parts[0])
        return result * (float(weights[0]) if equal else 1.0)


class RoughColumns(DenseColumns):
    """Columns in single precision, half the memory to go through: for models that are corrected anyway.

    What they are multiplied with to predict is exact, as the data itself is used.
    """

    is_rough = True

    def __init__(self, X: Array, means: Array | None = None) -> None:
        super().__init__(X, means, np.float32)
        self._index = np.empty(0, np.int64)

    def add(self, index: Array) -> None:
        """Append columns to the selection."""
        super().add(index)
        self._index = np.concatenate([self._index, index])

    def keep(self, places: Array) -> None:
        """Keep only some of the selection, by their places in it."""
        super().keep(places)
        self._index = self._index[places]

    def times(self, w: Array) -> Array:
        """Return the selection times w, shape (n, q), in the data's precision."""
        whole = np.zeros((self._X.shape[1], w.shape[1]), self._X.dtype)
        whole[self._index] = w
        result: Array = _rows.product(self._X, whole) - self._means[self._index] @ w
        return result

    @classmethod
    def of(cls, columns: DenseColumns, index: Array) -> RoughColumns:
        """Return the same selection in single precision."""
        rough = cls(columns._X, columns._means)
        rough._memory, rough._count, rough._index = columns._memory[: columns._count].astype(np.float32), len(index), index
        return rough

    def are_safe(self, since: int) -> bool:
        """Tell whether the columns ``since:`` are of a size that single precision can hold."""
        squares = self._squares(np.ones(len(self._X)), since)
        empty = squares == 0.0
        fits = (squares > 10.0**-_LOG_RANGE) & (squares < 10.0**_LOG_RANGE)
        small = self._index[since:][empty]
        return bool((fits | empty).all()) and not (self._X[:, small] != self._means[small]).any()

    def exact(self) -> DenseColumns:
        """Return the same selection in the data's precision."""
        columns = DenseColumns(self._X, self._means)
        columns.add(self._index)
        return columns


class SparseColumns:
    """Columns of a sparse matrix, which stay where they are."""

    is_rough, is_dense = False, False

    def __init__(self, matrix: Any) -> None:
        self._matrix = matrix  # compressed sparse columns
        self._index = np.empty(0, np.int64)
        self._scaled: Array | None = None  # room for entries times the roots of their rows' weights
        self._weights = np.empty(0)  # these
        self._squares = np.empty(0)  # of the columns that are there, in the order of the selection

    def weighted(self, weights: Array) -> Weighted:
        """Return the columns times the weights' roots in the form that compiled code reads; until it is called again.

        Weights that hardly differ from the last ones are taken to be those, and columns that are there need not be read.
        """
        if self._scaled is None:
            self._scaled = np.empty_like(self._matrix.data)
        if not self._weights.size or drift(self._weights, weights) > _DRIFT:
            self._weights, self._squares = weights, np.empty(0)
        roots, done = np.sqrt(self._weights), len(self._squares)
        squares = np.concatenate([self._squares, np.empty(len(self._index) - done)])
        self._fill(scale_columns, roots, Scaled(self._scaled, squares), done)
        self._squares = squares
        rows = self._rows._replace(data=self._scaled)
        costs = (rows.data.itemsize + rows.indices.itemsize) * np.diff(rows.indptr)[self._index]

        def blocks(starts: Array) -> tuple[Array, None]:
            return np.add.reduceat(squares, starts[:-1]), None

        return Weighted(rows, roots, np.ones_like(weights), costs, blocks)

    @property
    def _rows(self) -> SparseRows:
        return SparseRows(self._matrix.data, self._matrix.indices, self._matrix.indptr, self._index)

    def add(self, index: Array) -> None:
        """Append columns to the selection."""
        self._index = np.concatenate([self._index, index])

    def keep(self, places: Array) -> None:
        """Keep only some of the selection, by their places in it."""
        self._index, self._weights = self._index[places], np.empty(0)

    def times(self, w: Array) -> Array:
        """Return the selection times w, shape (n, q)."""
        result = np.zeros((w.shape[1], self._matrix.shape[0]), self._matrix.dtype)
        used = np.flatnonzero(w.any(axis=1))
        chosen = self._rows._replace(chosen=self._index[used])
        run(add_columns, chosen, np.ascontiguousarray(w[used], self._matrix.dtype), result)
        return result.T

    def transpose_times(self, d: Array) -> Array:
        """Return the transposed selection times d, shape (k, q)."""
        result = np.empty((len(self._index), d.shape[1]))
        self._fill(dot_columns, np.ascontiguousarray(d.T), result)
        return result

    def _fill(self, function: Any, other: Array, out: Any, done: int = 0) -> None:
        """Let a function of the columns and something else write to ``out``, some columns at a time; so many are ``done``."""
        rows, left = self._rows, len(self._index) - done
        run = prepared(function, rows, other, out, 0, 0)
        run(rows, other, out, 0, 0)  # compiled by one thread only
        size = (rows.data.nbytes + rows.indices.nbytes) * left // max(self._matrix.shape[1], 1)
        over_rows(left, size, lambda start, stop: run(rows, other, out, done + start, done + stop))

    def gram(self, weights: Array, since: int = 0, roughly: bool = False) -> Array:
        """Return rows ``since:`` of ``C.T @ diag(weights) @ C`` for the selection C; it is not sparse, and never rough."""
        chosen = self._matrix[:, self._index]
        scaled = chosen[:, since:].T.multiply(weights).tocsr()
        result: Array = (scaled @ chosen).toarray().astype(np.float64, copy=False)
        return result


def drift(before: Array, now: Array) -> float:
    """Return the relative change of weights."""
    return float(np.abs(now - before).sum()) / max(float(now.sum()), np.finfo(np.float64).tiny)


class Weighted(NamedTuple):
    """Columns C, some of whose rows' weights may already be in them: the others are what a product has to be weighted by."""

    rows: DenseRows | SparseRows
    inside: Array  # what C was multiplied with
    outside: Array  # the weights divided by the square of that, as precise as sums of columns need to be
    costs: Array  # bytes to read of each column
    # Of ``C.T @ diag(outside) @ C``, for units that start at places of C: bounds on the largest eigenvalue of each, and its
    # part of the matrix, None if these are not known or numbers; until columns are weighted again.
    blocks: Callable[[Array], tuple[Array, list[Array] | None]]


class Scaled(NamedTuple):
    """Where scaled columns are written to, and their squared norms."""

    entries: Array
    squares: Array


class DenseRows(NamedTuple):
    """Gathered dense columns in compiled code."""

    C: Array  # (k, n)
    weights: Array

    def weighted_dot(self, r: int, along: Array) -> float:
        """Return the inner product of column r, the weights and ``along``."""
        return triple_product(self.C[r], self.weights, along)

    def add_multiple(self, r: int, factor: float, along: Array) -> None:
        """Add ``factor`` times column r to ``along``."""
        row, multiple = self.C[r], along.dtype.type(factor)
        for i in range(row.size):
            along[i] += multiple * row[i]


class SparseRows(NamedTuple):
    """Chosen sparse columns in compiled code."""

    data: Array  # times the weights' roots where there are weights: a sweep then reads nothing else
    indices: Array
    indptr: Array
    chosen: Array  # column r of the selection is this one of the matrix

    def weighted_dot(self, r: int, along: Array) -> float:
        """Return the inner product of column r and ``along``."""
        start, stop = self.indptr[self.chosen[r]], self.indptr[self.chosen[r] + 1]
        return sparse_product(self.data[start:stop], self.indices[start:stop], along)

    def add_multiple(self, r: int, factor: float, along: Array) -> None:
        """Add ``factor`` times column r to ``along``."""
        start, stop = self.indptr[self.chosen[r]], self.indptr[self.chosen[r] + 1]
        add_sparse(self.data[start:stop], self.indices[start:stop], factor, along)


@kernel(fastmath={"reassoc", "contract"})
def triple_product(a: Array, b: Array, c: Array) -> float:
    """Return the sum of the products of three vectors' entries, added in any order, as precisely as the last one is."""
    total = c.dtype.type(0.0)
    for i in range(a.size):
        total += a[i] * b[i] * c[i]
    return total


@kernel(fastmath={"reassoc", "contract"})
def dense_square(row: Array, weights: Array) -> float:
    """Return the weighted squared norm of a vector, added in any order."""
    total = 0.0
    for i in range(row.size):
        total += weights[i] * row[i] * row[i]
    return total


@kernel
def dense_squares(columns: Array, weights: Array, out: Array, first: int, last: int) -> None:
    """Write the weighted squared norms of rows ``first:last`` to ``out``."""
    for r in range(first, last):
        out[r] = dense_square(columns[r], weights)


@kernel(fastmath={"reassoc", "contract"})
def sparse_product(data: Array, indices: Array, d: Array) -> float:
    """Return the inner product of a sparse vector and another, added in any order."""
    total = 0.0
    for e in range(data.size):
        total += data[e] * d[np.uint32(indices[e])]  # never counted from the end
    return total


@kernel(fastmath={"reassoc", "contract"})
def scale_sparse(data: Array, indices: Array, factors: Array, out: Array) -> float:
    """Write the entries of a sparse vector times their rows' factors to ``out``; return the sum of their squares."""
    total = 0.0
    for e in range(data.size):
        entry = data[e] * factors[np.uint32(indices[e])]
        out[e] = entry
        total += entry * entry
    return total


@kernel
def add_sparse(data: Array, indices: Array, factor: float, out: Array) -> None:
    """Add a multiple of a sparse vector."""
    for e in range(data.size):
        out[np.uint32(indices[e])] += data[e] * factor


@kernel
def add_columns(columns: Any, w: Array, out: Array) -> None:
    """Add the columns times w, (k, q), to ``out``, (q, n)."""
    for r in range(w.shape[0]):
        for c in range(w.shape[1]):
            if w[r, c] != 0.0:
                columns.add_multiple(r, w[r, c], out[c])


@kernel
def dot_columns(columns: Any, d: Array, out: Array, first: int, last: int) -> None:
    """Write the inner products of columns ``first:last`` with d, (q, n), to ``out``, (k, q)."""
    for r in range(first, last):
        for c in range(out.shape[1]):
            out[r, c] = columns.weighted_dot(r, d[c])


@kernel
def scale_columns(columns: Any, factors: Array, out: Scaled, first: int, last: int) -> None:
    """Write the entries of columns ``first:last``, times their rows' factors, to their places, and their squares."""
    for r in range(first, last):
        start, stop = columns.indptr[columns.chosen[r]], columns.indptr[columns.chosen[r] + 1]
        out.squares[r] = scale_sparse(columns.data[start:stop], columns.indices[start:stop], factors, out.entries[start:stop])


class Wanted(NamedTuple):
    """Columns, or the sums of all columns after each of some increasing places, less a number each."""

    places: Array
    less: Array
    to: Array  # rows of what is written to


def write_rows(function: Any, X: Array, wanted: Wanted, out: Array) -> None:
    """Let a function of the data and of what is wanted write to ``out``, some rows of the data at a time."""
    run = prepared(function, X, wanted, out, 0, 0)
    run(X, wanted, out, 0, 0)  # compiled by one thread only
    over_rows(len(X), X.nbytes, lambda start, stop: run(X, wanted, out, start, stop))


@kernel
def gather(X: Array, wanted: Wanted, out: Array, first: int, last: int) -> None:
    """Write columns of rows ``first:last`` of X to the rows of ``out``, along the order of X in memory."""
    index, less, to = wanted.places, wanted.less, wanted.to
    if X.strides[0] < X.strides[1]:
        for c in range(index.size):
            for i in range(first, last):
                out[to[c], i] = X[i, index[c]] - less[c]
    else:
        for i in range(first, last):
            for c in range(index.size):
                out[to[c], i] = X[i, index[c]] - less[c]


@kernel
def add_up(X: Array, wanted: Wanted, out: Array, first: int, last: int) -> None:
    """Write the sums of all columns after each place, of rows ``first:last``, to the rows of ``out``, in its precision."""
    if X.strides[0] < X.strides[1]:
        for start in range(first, last, _IN_CACHE):
            add_up_columns(X, wanted, out, start, min(start + _IN_CACHE, last))
        return
    index, end = wanted.places, last - 1
    for i in range(first, last, 4):
        j, k, m = min(i + 1, end), min(i + 2, end), min(i + 3, end)  # the last one again where fewer are left
        of_i, of_j, of_k, of_m, stop = 0.0, 0.0, 0.0, 0.0, X.shape[1]
        for c in range(index.size - 1, -1, -1):
            start, zero = index[c] + 1, out.dtype.type(0.0)
            more_i, more_j, more_k, more_m = sums_between(X[i], X[j], X[k], X[m], start, stop, zero)
            of_i, of_j, of_k, of_m = of_i + more_i, of_j + more_j, of_k + more_k, of_m + more_m
            sums, less = out[wanted.to[c]], wanted.less[c]
            sums[i], sums[j], sums[k], sums[m] = of_i - less, of_j - less, of_k - less, of_m - less
            stop = start


@kernel
def add_up_columns(X: Array, wanted: Wanted, out: Array, first: int, last: int) -> None:
    """Do so for a few rows, column by column."""
    index, totals, stop = wanted.places, np.zeros(last - first), X.shape[1]
    for c in range(index.size - 1, -1, -1):
        for j in range(index[c] + 1, stop):
            for i in range(totals.size):
                totals[i] += X[first + i, j]
        for i in range(totals.size):
            out[wanted.to[c], first + i] = totals[i] - wanted.less[c]
        stop = index[c] + 1


@kernel(fastmath={"reassoc", "contract"})
def sums_between(
    a: Array, b: Array, c: Array, d: Array, start: int, stop: int, zero: float
) -> tuple[float, float, float, float]:
    """Return the sums of some entries of four rows, which do not wait for each other, added in any order to a zero."""
    of_a, of_b, of_c, of_d = zero, zero, zero, zero
    for j in range(np.uint64(start), np.uint64(stop)):
        of_a += a[j]
        of_b += b[j]
        of_c += c[j]
        of_d += d[j]
    return of_a, of_b, of_c, of_d
