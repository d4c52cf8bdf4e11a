"""The rows of the data: the only place that knows dense from sparse.

Compiled code sees a data matrix through three methods on row i, where ``x`` is a packed parameter of shape (p,) or (p, q),
with one more entry (or row) at the end if there is an intercept:

- ``dot(i, x, out)``: the q predictions of row i;
- ``combine(i, keep, keep_intercept, x, scale, out)``: ``out = keep * x + outer(row, scale)``;
- ``add(i, scale, out)``: ``out += outer(row, scale)``.

Whole passes over the data, which BLAS and SciPy do best, are the functions below.
"""

from __future__ import annotations

import itertools
import math
import mmap
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ._checks import check_finite_sparse, real_array
from ._jit import kernel
from ._loops import fill
from ._memory import require_memory
from ._passes import cut_rows, for_each, threads_of_a_pass
from .errors import NumbersTooLargeError

__all__ = [
    "CscRows",
    "CsrRows",
    "DenseRows",
    "FarRows",
    "by_rows",
    "column_means",
    "is_sparse",
    "make_rows",
    "predict",
    "product",
    "spectral_norm_squared",
    "squared_norms",
    "transpose_times",
]

Array = np.ndarray[Any, Any]

_LONG = 1 << 20  # entries of a vector of which there should not be twenty, as Lanczos keeps
_SUMS = 128  # as many bytes as this many sums over blocks has data, for which they are no burden
_PARTS = 2  # of a sparse matrix for each thread
_ROUGH, _FEW_VECTORS = 0.01, 8  # a tolerance for eigenvalues, from which on it takes fewer vectors than Lanczos usually keeps
_BLAS_WORK = 1 << 33  # multiplications in one call: some tenths of a second


class DenseRows(NamedTuple):
    """Rows of a dense matrix; :func:`by_rows` gives one whose rows are contiguous, unless it lies in a file."""

    X: Array
    intercept: bool

    def dot(self, i: int, x: Array, out: Array) -> None:
        """Write the predictions of row i to ``out``."""
        if x.ndim == 1:
            out[0] = inner(self.X[i], x)
            if self.intercept:
                out[0] += x[self.X.shape[1]]
        else:
            weighted_sum(self.X[i], x, out)
            if self.intercept:
                for k in range(out.size):
                    out[k] += x[self.X.shape[1], k]

    def combine(self, i: int, keep: float, keep_intercept: float, x: Array, scale: Array, out: Array) -> None:
        """Write ``keep * x + outer(row i, scale)`` to ``out``; the intercept has a factor of its own."""
        p = self.X.shape[1]
        row = self.X[i]
        if x.ndim == 1:
            a, b = x.dtype.type(keep), x.dtype.type(scale[0])
            for j in range(p):
                out[j] = a * x[j] + b * row[j]
            if self.intercept:
                out[p] = x.dtype.type(keep_intercept) * x[p] + b
        else:
            a = x.dtype.type(keep)
            for j in range(p):
                for k in range(x.shape[1]):
                    out[j, k] = a * x[j, k] + row[j] * scale[k]
            if self.intercept:
                for k in range(x.shape[1]):
                    out[p, k] = x.dtype.type(keep_intercept) * x[p, k] + scale[k]

    def add(self, i: int, scale: Array, out: Array) -> None:
        """Add ``outer(row i, scale)`` to ``out``."""
        p = self.X.shape[1]
        row = self.X[i]
        if out.ndim == 1:
            b = out.dtype.type(scale[0])
            for j in range(p):
                out[j] += b * row[j]
            if self.intercept:
                out[p] += b
        else:
            for j in range(p):
                for k in range(out.shape[1]):
                    out[j, k] += row[j] * scale[k]
            if self.intercept:
                for k in range(out.shape[1]):
                    out[p, k] += scale[k]


class CsrRows(NamedTuple):
    """Rows of a compressed sparse row matrix."""

    data: Array
    indices: Array
    indptr: Array
    columns: int
    intercept: bool

    def dot(self, i: int, x: Array, out: Array) -> None:
        """Write the predictions of row i to ``out``."""
        if x.ndim == 1:
            total = x.dtype.type(0.0)
            for e in range(self.indptr[i], self.indptr[i + 1]):
                total += self.data[e] * x[self.indices[e]]
            out[0] = total
            if self.intercept:
                out[0] += x[self.columns]
        else:
            fill(out, 0.0)
            for e in range(self.indptr[i], self.indptr[i + 1]):
                for k in range(x.shape[1]):
                    out[k] += self.data[e] * x[self.indices[e], k]
            if self.intercept:
                for k in range(out.size):
                    out[k] += x[self.columns, k]

    def combine(self, i: int, keep: float, keep_intercept: float, x: Array, scale: Array, out: Array) -> None:
        """Write ``keep * x + outer(row i, scale)`` to ``out``; the intercept has a factor of its own."""
        a = x.dtype.type(keep)
        flat, result = x.ravel(), out.ravel()
        for j in range(flat.size):
            result[j] = a * flat[j]
        for j in range(flat.size - self.intercept * (flat.size // x.shape[0]), flat.size):
            result[j] = x.dtype.type(keep_intercept) * flat[j]
        self.add(i, scale, out)

    def add(self, i: int, scale: Array, out: Array) -> None:
        """Add ``outer(row i, scale)`` to ``out``."""
        if out.ndim == 1:
            b = out.dtype.type(scale[0])
            for e in range(self.indptr[i], self.indptr[i + 1]):
                out[self.indices[e]] += b * self.data[e]
            if self.intercept:
                out[self.columns] += b
        else:
            for e in range(self.indptr[i], self.indptr[i + 1]):
                for k in range(out.shape[1]):
                    out[self.indices[e], k] += self.data[e] * scale[k]
            if self.intercept:
                for k in range(out.shape[1]):
                    out[self.columns, k] += scale[k]


class CscRows(NamedTuple):
    """A compressed sparse column matrix, for products with all of its rows; :func:`by_rows` gives its rows."""

    data: Array
    indices: Array
    indptr: Array
    rows: int
    intercept: bool


class FarRows:
    """Rows that are not in this process: whole passes over them are made elsewhere."""

    n: int
    p: int
    dtype: np.dtype[Any]
    intercept: bool

    def predict(self, x: Array) -> Array:
        """Return the predictions of every row for a packed parameter."""
        raise NotImplementedError

    def transpose_times(self, d: Array) -> Array:
        """Return ``X.T @ d``, with the sum of d as the intercept's entry."""
        raise NotImplementedError

    def squared_norms(self) -> Array:
        """Return the squared Euclidean norm of every row, the intercept's 1 included."""
        raise NotImplementedError

    def snapshot_step(self, x0: Array, batch_size: int, max_delay: int) -> float:
        """Return a step for mini-batches of neighbouring rows."""
        raise NotImplementedError

    def share_step(self, blocks: int, x0: Array) -> float:
        """Return a step for so many blocks of each worker's rows."""
        raise NotImplementedError


Rows: TypeAlias = DenseRows | CsrRows | CscRows


def column_means(rows: Rows | FarRows, weights: Array) -> Array:
    """Return the weighted mean of every column."""
    return transpose_times(rows, weights / weights.sum())[: shape(rows)[1]]


@kernel(fastmath={"reassoc", "contract"})
def inner(row: Array, x: Array) -> float:
    """Return the inner product of a row with the first entries of x, added in any order."""
    total = x.dtype.type(0.0)
    for j in range(row.size):
        total += row[j] * x[j]
    return total


@kernel
def weighted_sum(row: Array, x: Array, out: Array) -> None:
    """Write the sum of x's rows weighted by ``row`` to ``out``."""
    fill(out, 0.0)
    for j in range(row.size):
        for k in range(x.shape[1]):
            out[k] += row[j] * x[j, k]


def make_rows(X: Any, fit_intercept: bool) -> DenseRows | CsrRows | CscRows:
    """Check a data matrix and return its rows; a dense array in memory is copied only if its order is neither C nor F.

    Whether all numbers of a dense one are finite is left to be asked.
    """
    if hasattr(X, "tocsr"):  # every SciPy sparse format has it; importing scipy.sparse only to ask costs 0.2 s
        return _sparse_rows(X, fit_intercept)
    if isinstance(X, np.ndarray):
        _check_memory(X)
    array = real_array("X", X)
    _check_shape(array.shape)
    if not isinstance(X, np.memmap) and not array.flags.f_contiguous:
        array = np.ascontiguousarray(array)
    return DenseRows(np.asarray(array), fit_intercept)


def by_rows(rows: Rows | FarRows) -> DenseRows | CsrRows | FarRows:
    """Return the rows for code that looks at one at a time; dense ones in a file stay in their order."""
    if isinstance(rows, CscRows):
        found = matrix(rows).tocsr()
        return CsrRows(found.data, found.indices, found.indptr, found.shape[1], rows.intercept)
    if not isinstance(rows, DenseRows) or rows.X.flags.c_contiguous or is_mapped(rows):
        return rows
    require_memory(rows.X.nbytes, "a copy of X in C order", "use algorithm 'auto' or 'fista', or a memory map")
    return DenseRows(np.ascontiguousarray(rows.X), rows.intercept)


def _check_memory(X: Array) -> None:
    """Refuse data whose copy would need more memory than there is."""
    stays = X.flags.forc or isinstance(X, np.memmap)
    if X.dtype not in (np.float32, np.float64) or not stays:
        size = X.size * (4 if X.dtype == np.float32 else 8)
        wanted = "float32 or float64 in C or F order"
        require_memory(size, f"a copy of X, which is {X.dtype} and not {wanted},", "convert it in a file")


def _sparse_rows(X: Any, fit_intercept: bool) -> CsrRows | CscRows:
    if X.ndim != 2:
        raise ValueError(f"X must be two-dimensional; got {X.ndim} dimension(s)")
    _check_shape(X.shape)
    if X.dtype.kind not in "biuf":
        raise TypeError(f"X must hold real numbers; got dtype {X.dtype}")
    matrix = X if X.format == "csc" else X.tocsr()
    if not matrix.has_canonical_format:  # duplicates, or columns out of order
        matrix = matrix.copy()
        matrix.sum_duplicates()
    check_finite_sparse("X", matrix)
    kind = matrix.dtype if matrix.dtype in (np.float32, np.float64) else np.float64
    entries = matrix.data.astype(kind, copy=False), matrix.indices, matrix.indptr
    if matrix.format == "csc":
        return CscRows(*entries, matrix.shape[0], fit_intercept)
    return CsrRows(*entries, matrix.shape[1], fit_intercept)


def _check_shape(shape: tuple[int, ...]) -> None:
    if len(shape) != 2:
        raise ValueError(f"X must be two-dimensional, rows x columns; got shape {shape}")
    if shape[0] == 0 or shape[1] == 0:
        raise ValueError(f"X must have at least one row and one column; got shape {shape}")


def matrix(rows: Rows) -> Any:
    """Return the data matrix as NumPy or SciPy knows it, without a copy."""
    if isinstance(rows, DenseRows):
        return rows.X
    from scipy.sparse import csc_matrix, csr_matrix

    kind = csc_matrix if isinstance(rows, CscRows) else csr_matrix
    return kind((rows.data, rows.indices, rows.indptr), shape=shape(rows), copy=False)


def is_sparse(rows: Rows | FarRows) -> bool:
    """Tell whether only the entries that are not zero are stored."""
    return isinstance(rows, (CsrRows, CscRows))


def is_mapped(rows: Rows) -> bool:
    """Tell whether the data lies in a file."""
    array: Any = rows.X if isinstance(rows, DenseRows) else rows.data
    while array is not None and not isinstance(array, (np.memmap, mmap.mmap)):
        array = getattr(array, "base", None)
    return array is not None


def blas_blocks(n: int, work: int, largest: int | None = None) -> list[slice]:
    """Cut n rows, each of which costs so many multiplications, into blocks for BLAS: nothing interrupts it within one."""
    size = min(max(256, _BLAS_WORK // max(work, 1)), largest or max(n, 1))
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def part(rows: DenseRows | CsrRows, block: slice) -> DenseRows | CsrRows:
    """Return some successive rows, without a copy of the data."""
    if isinstance(rows, DenseRows):
        return DenseRows(rows.X[block], rows.intercept)
    indptr = rows.indptr[block.start : block.stop + 1]
    inside = slice(indptr[0], indptr[-1])
    return CsrRows(rows.data[inside], rows.indices[inside], indptr - indptr[0], rows.columns, rows.intercept)


def stack(parts: list[DenseRows | CsrRows]) -> DenseRows | CsrRows:
    """Return the rows of several parts one after the other; a single part as it is, without a copy."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    if isinstance(first, DenseRows):
        return DenseRows(np.concatenate([matrix(part) for part in parts]), first.intercept)
    from scipy.sparse import vstack

    whole = vstack([matrix(part) for part in parts], format="csr")
    return CsrRows(whole.data, whole.indices, whole.indptr, first.columns, first.intercept)


def entries(rows: Rows | FarRows) -> int:
    """Return how many numbers are stored in this process."""
    if isinstance(rows, FarRows):
        return 0
    return rows.X.size if isinstance(rows, DenseRows) else rows.data.size


def shape(rows: Rows | FarRows) -> tuple[int, int]:
    """Return the number of rows and of columns, the intercept not counted."""
    if isinstance(rows, FarRows):
        return rows.n, rows.p
    if isinstance(rows, DenseRows):
        return rows.X.shape[0], rows.X.shape[1]
    lines = len(rows.indptr) - 1
    return (rows.rows, lines) if isinstance(rows, CscRows) else (lines, rows.columns)


def dtype(rows: Rows | FarRows) -> np.dtype[Any]:
    """Return the type of the numbers."""
    if isinstance(rows, FarRows):
        return rows.dtype
    return rows.X.dtype if isinstance(rows, DenseRows) else rows.data.dtype


def predict(rows: Rows | FarRows, x: Array) -> Array:
    """Return the predictions of every row for a packed parameter."""
    if isinstance(rows, FarRows):
        return rows.predict(x)
    p = shape(rows)[1]
    result: Array = _times(rows, x[:p])
    if rows.intercept:
        result = result + x[p]
    return result


def transpose_times(rows: Rows | FarRows, d: Array) -> Array:
    """Return ``X.T @ d``, with the sum of d as the intercept's entry."""
    if isinstance(rows, FarRows):
        return rows.transpose_times(d)
    result: Array = _transpose_times(rows, d)
    if rows.intercept:
        result = np.concatenate([result, d.sum(axis=0, keepdims=True)])
    return result


def _times(rows: Rows, v: Array) -> Any:
    """Return ``X @ v``."""
    if isinstance(rows, DenseRows):
        return product(rows.X, v)
    return _gathered(matrix(rows), v) if isinstance(rows, CsrRows) else matrix(rows) @ v


def _transpose_times(rows: Rows, d: Array) -> Any:
    """Return ``X.T @ d``."""
    if isinstance(rows, DenseRows):
        return product(rows.X.T, d)
    return _gathered(matrix(rows).T, d) if isinstance(rows, CscRows) else matrix(rows).T @ d


def _gathered(A: Any, v: Array) -> Any:
    """Return ``A @ v`` for compressed rows, by the threads of a pass: each entry is the sum of one row."""
    threads = threads_of_a_pass(A.data.nbytes + A.indices.nbytes)
    if threads == 1:
        return A @ v
    cuts = np.searchsorted(A.indptr, A.indptr[-1] * np.arange(1, _PARTS * threads) / (_PARTS * threads))
    bounds = [0, *(int(cut) for cut in cuts), A.shape[0]]
    out = np.empty((A.shape[0], *v.shape[1:]), np.result_type(A.data, v))

    def task(block: slice) -> None:
        inside = slice(A.indptr[block.start], A.indptr[block.stop])
        indptr = A.indptr[block.start : block.stop + 1] - inside.start
        rows = type(A)((A.data[inside], A.indices[inside], indptr), shape=(len(indptr) - 1, A.shape[1]), copy=False)
        out[block] = rows @ v

    for_each([slice(a, b) for a, b in itertools.pairwise(bounds)], task, threads)
    return out


def product(A: Array, v: Array) -> Array:
    """Return ``A @ v``, by the threads of a pass, sums of blocks added in double precision.

    By ``np.dot``: where a result is small ``np.matmul`` keeps the interpreter's lock, and only one thread works.
    """
    if not A.flags.forc:  # of which dot would make a copy
        return A @ v
    threads = threads_of_a_pass(A.nbytes)
    if threads > 1 and A.flags.c_contiguous:
        out = np.empty((len(A), *v.shape[1:]), np.result_type(A, v))  # at once: the system takes its time to give pages
        for_each(cut_rows(len(A)), lambda block: np.dot(A[block], v, out=out[block]), threads)
        return out
    size = 8 * len(A) * math.prod(v.shape[1:])  # bytes of a sum
    if threads == 1 or _SUMS * size > A.nbytes:
        return np.dot(A, v)
    parts = for_each(cut_rows(len(v)), lambda block: np.dot(A[:, block], v[block]).astype(np.float64, copy=False), threads)
    return sum(parts[1:], start=parts[0]).astype(np.result_type(A, v))


def squared_norms(rows: Rows | FarRows) -> Array:
    """Return the squared Euclidean norm of every row, the intercept's 1 included."""
    if isinstance(rows, FarRows):
        return rows.squared_norms()
    if isinstance(rows, DenseRows):
        norms = np.empty(rows.X.shape[0])
        block = max(1, (1 << 20) // rows.X.shape[1])
        for start in range(0, norms.size, block):
            part = rows.X[start : start + block]
            norms[start : start + block] = np.einsum("ij,ij->i", part, part, dtype=np.float64)
    else:
        norms = np.asarray(matrix(rows).multiply(matrix(rows)).sum(axis=1), dtype=np.float64).ravel()
    return norms + 1.0 if rows.intercept else norms


def spectral_norm_squared(rows: Rows | FarRows, weights: Array) -> float:
    """Return an upper bound, tight to about 1e-3, on the largest eigenvalue of ``X.T @ diag(weights) @ X``."""
    n, p = shape(rows)
    size = p + rows.intercept
    with np.errstate(over="ignore"):
        total = float(squared_norms(rows) @ weights)  # the trace
    if not math.isfinite(total):
        raise NumbersTooLargeError
    if total == 0.0 or size == 1 or n == 1:
        return total

    def multiply(v: Array) -> Array:
        v = np.asarray(v, dtype=dtype(rows)).reshape(size)
        return transpose_times(rows, weights * predict(rows, v)).astype(np.float64)

    def multiply_rows(v: Array) -> Array:
        d = np.asarray(root * v.reshape(n), dtype=dtype(rows))
        return root * predict(rows, transpose_times(rows, d).astype(dtype(rows), copy=False)).astype(np.float64)

    if n < size and size > _LONG:  # the other product has the same eigenvalues, and shorter vectors
        root = np.sqrt(weights)
        return largest_eigenvalue(multiply_rows, n, total)
    return largest_eigenvalue(multiply, size, total)


def largest_eigenvalue(multiply: Callable[[Array], Array], size: int, trace: float, tol: float = 1e-4) -> float:
    """Return an upper bound, by default tight to about 1e-3, on the largest eigenvalue of a positive semidefinite matrix.

    Lanczos's estimate plus the norm of its residual, which bounds the distance to an eigenvalue. Where squares of its numbers
    would overflow or vanish, the trace has to do.
    """
    if not 1e-140 < trace < 1e140:
        return trace
    if size <= 2:
        return float(np.linalg.eigvalsh(np.stack([multiply(unit) for unit in np.eye(size)]))[-1])
    from scipy.sparse.linalg import LinearOperator, eigsh

    operator = LinearOperator((size, size), matvec=multiply, dtype=np.float64)
    start = multiply(np.random.default_rng(0).standard_normal(size))
    if not start.any():
        return trace
    few = min(_FEW_VECTORS, size) if tol >= _ROUGH else None
    _, vectors = eigsh(operator, k=1, which="LA", tol=tol, v0=start, maxiter=1000, ncv=few)
    vector = vectors[:, 0] / np.linalg.norm(vectors[:, 0])
    image = multiply(vector)
    estimate = float(vector @ image)
    error = float(np.linalg.norm(image - estimate * vector))
    return min(trace, (estimate + error) * (1.0 + 1e-12)) if math.isfinite(estimate) else trace
