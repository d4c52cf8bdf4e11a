"""Snapshots: where a variance-reduced run computes its full gradient, and how often."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import rows as _rows
from ._jit import compiled, kernel
from ._memory import require_memory
from ._passes import for_each, threads_of_a_pass
from .dual import constant, needs_row_sums
from .ends import Ends
from .gradients import loss_gradient
from .problem import Problem, loss_slopes
from .runtimes._blas import single_threaded_blas
from .runtimes._plan import Marks
from .steps import longest_step

if TYPE_CHECKING:
    from .checkpoints import Saved

__all__ = ["Refresher", "make_epochs", "snapshot_step"]

Array = np.ndarray[Any, Any]

_BLOCK_BYTES = 1 << 20  # rows that are looked at twice, for predictions and for the gradient, while they are in the cache
_BLOCKS, _BLOCKS_READ_ONCE = 256, 64  # at the most: each costs the interpreter, which only one thread can have, some 0.05 ms
_LARGE = 1 << 26  # bytes of data, from which it is worth compiling a loop over its rows
_TOGETHER = 32  # rows whose gradients are added up before they are added to a sum in double precision
_SAMPLES, _FEWEST_SAMPLES = 32, 8  # mini-batches whose smoothness is looked at,
_SAMPLE_ROWS = 1024  # as many as have about so many rows
_MARGIN = 1.1  # for those that are not
_SMALL = 64  # rows or columns, of which all eigenvalues are found as fast as one
_NORM_PASSES = 16  # over rows cost as much as their largest eigenvalue
_ROUGHLY = 0.02  # of an eigenvalue: it is only an estimate, and too large rather than too small
_SETBACKS = 40
_SHORTEST, _LONGEST = 0.0625, 2.0  # passes over the rows between two snapshots
_UPDATES = 256  # at least, between two snapshots, unless that is more than the longest


def make_epochs(n: int, batch_size: int) -> Marks:
    """Return when snapshots are taken: first after few updates, as many rows say much the same; in the end after two passes.

    Where the problem is easy a run is over by then, and nearly all of its passes were those of its few snapshots.

    References
    ----------
    Allen-Zhu, Yuan: Improved SVRG for non-strongly-convex or sum-of-non-convex objectives, ICML 2016.
    """
    longest = max(1, round(_LONGEST * n / batch_size))
    return Marks(min(max(_UPDATES, round(_SHORTEST * n / batch_size)), longest), longest)


def snapshot_step(problem: Problem, x0: Array, batch_size: int, max_delay: int) -> float:
    """Return a step for mini-batches of neighbouring rows that are read up to ``max_delay`` iterations ago.

    From the smoothness of a sample of mini-batches, and for each delay a part of that of the whole, estimated from the same
    rows. It may be too long for rows that were not seen: a run with it is watched, see :class:`Refresher`.
    """
    if isinstance(problem._rows, _rows.FarRows):
        return problem._rows.snapshot_step(x0, batch_size, max_delay)
    stream = np.random.default_rng(0)
    curvature = float(getattr(problem.loss, "curvature", math.inf))
    if not math.isfinite(curvature):
        curvature = float(problem.second_derivatives(problem.predict(x0)).max(initial=0.0)) * problem.n
        curvature /= max(float(problem._weights.max()), np.finfo(np.float64).tiny)
    count = min(_SAMPLES, max(_FEWEST_SAMPLES, _SAMPLE_ROWS // batch_size), -(-problem.n // batch_size))
    starts = np.sort(stream.choice(max(1, problem.n - batch_size + 1), size=count, replace=problem.n < count + batch_size))
    pieces = [_weighted(problem, slice(int(a), int(min(a + batch_size, problem.n)))) for a in starts]
    threads = threads_of_a_pass(sum(piece.nbytes for piece in pieces) * _NORM_PASSES)
    of_batch = max(for_each(pieces, lambda piece: _square_norm(piece) / piece.shape[0], threads))
    together = np.concatenate(pieces)
    of_whole = _square_norm(together) / together.shape[0]
    bound = curvature * (_MARGIN * of_batch + 0.5 * max_delay * of_whole) + 2.0 * problem.l2 * (1 + max_delay)
    return longest_step(bound, problem.dtype)


def _weighted(problem: Problem, block: slice) -> Any:
    """Return some rows times the roots of their weights, with a column for the intercept."""
    rows = _rows.matrix(_rows.part(problem._by_rows, block))
    dense = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
    if problem.fit_intercept:
        dense = np.column_stack([dense, np.ones(len(dense), dense.dtype)])
    result: Array = dense * np.sqrt(problem._weights[block])[:, None]
    return result


def _square_norm(rows: Array) -> float:
    """Return the largest eigenvalue of ``rows.T @ rows``, roughly if they are in single precision."""
    if min(rows.shape) <= _SMALL:
        small = rows @ rows.T if rows.shape[0] <= rows.shape[1] else rows.T @ rows
        return float(np.linalg.eigvalsh(small.astype(np.float64, copy=False))[-1])
    trace = float(np.vdot(rows, rows))

    def multiply(v: Array) -> Array:
        return (rows.T @ (rows @ v.astype(rows.dtype))).astype(np.float64)

    return _rows.largest_eigenvalue(multiply, rows.shape[1], trace, _ROUGHLY)


class Known(NamedTuple):
    """What a snapshot tells about the point where it was taken."""

    predictions: Array
    gradient: Array  # of f
    value: float  # of f; NaN if nobody asked for it


class Refresher:
    """Computes slopes and full gradient at a snapshot, by several threads, and writes them where the estimator reads them.

    Rows are cut into the same blocks whatever the number of threads, and added in the same order, so that the result does
    not depend on it. No worker may run meanwhile.

    Parameters
    ----------
    problem : Problem
    workers : int
    careful : bool
        Watch the objective: if it went up, or a worker met a number that is not finite, go back to the last snapshot
        and halve the step. For steps that were chosen automatically.
    """

    def __init__(self, problem: Problem, workers: int, careful: bool = False) -> None:
        self._problem = problem
        self._workers = workers
        self._careful = careful
        self._best = math.inf
        self.setbacks = 0  # how often the step was halved
        self.at_snapshot = np.zeros_like(problem._targets)
        self.mean = np.zeros(problem.packed_shape, problem.dtype)
        self._predictions = np.zeros_like(problem._targets)
        self._x: Array | None = None  # where the last snapshot was taken
        self._value = math.nan  # of f there, if it was asked for
        self._is_proximal = False  # is it the end of a proximal step?
        by_rows = problem._by_rows
        once = isinstance(by_rows, _rows.DenseRows) and by_rows.X.nbytes > _LARGE and len(problem.shape) == 1
        width = max(1, (problem.p + 1) * problem.dtype.itemsize)
        size = max(64, _BLOCK_BYTES // width, -(-problem.n // (_BLOCKS_READ_ONCE if once else _BLOCKS)))
        self._blocks = [slice(start, min(start + size, problem.n)) for start in range(0, problem.n, size)]
        require_memory(
            len(self._blocks) * 8 * self.mean.size,
            f"the gradients of {len(self._blocks)} blocks of rows",
            "use 'dap-sgd' or 'fista'",
        )
        block = self._blocks[0]
        arguments = problem._targets[block], problem._targets[block], problem._weights[block], 1, self.at_snapshot[block]
        self._slopes = compiled(loss_slopes, problem.loss, *arguments)
        self._look_at: Any = None  # reads long rows once, where BLAS reads a block of them twice
        if once:
            part, slopes = _rows.part(by_rows, block), self.at_snapshot[block]
            sums = self.mean, np.zeros(0)
            self._constant, self._of_constant = self.mean[:0], slopes[:0]
            if needs_row_sums(problem):
                self._constant, self._of_constant = constant(problem), np.zeros_like(self.at_snapshot)
            beside = self._constant, self._of_constant
            self._look_at = compiled(
                look_at_rows, part, problem.loss, *arguments[1:3], self.mean, slopes, slopes, *sums, *beside
            )

    def __call__(self, x: Array, failed: bool = False, mean: Array | None = None, step: float = 0.0) -> float:
        """Take a snapshot at a packed parameter, which may be put back; return a factor for all steps from now on.

        ``failed`` says that a worker met a number that is not finite. The parameter moves to where a
        ``step`` leads from the ``mean`` of recent ones, if that is given and better.
        """
        before, self._is_proximal = self._x, False
        if mean is not None and before is not None and not failed:
            with np.errstate(over="ignore", invalid="ignore"):
                better = self._ends.choose(x, mean, step, self.at_snapshot, self.mean)
            if better is not None:
                x[...], self._is_proximal = better, True
        self._take(x)
        if self._careful:
            with np.errstate(over="ignore", invalid="ignore"):
                self._value = self._problem.smooth_value(x, self._predictions)
                value = self._value + self._problem.penalty(x)
            rounding = 100.0 * float(np.finfo(self._problem.dtype).eps) * abs(self._best) if before is not None else 0.0
            if before is not None and (failed or not value <= self._best + rounding) and self.setbacks < _SETBACKS:
                x[...], self._is_proximal = before, False
                self._take(x)
                self.setbacks += 1
            else:
                self._best = value
        return float(0.5**self.setbacks)

    @cached_property
    def _ends(self) -> Ends:
        return Ends(self._problem)

    def _take(self, x: Array) -> None:
        problem, at_zero = self._problem, self._problem.gradient_at_zero
        if at_zero is not None and not x.any():  # no pass is needed
            self._predictions[...], self.mean[...] = 0.0, at_zero
            self.at_snapshot[...] = problem.slopes(self._predictions) * problem.dtype.type(problem.n)
        else:
            self.mean[...] = self.take_sum(x) / problem.n
        self._x, self._value = x.copy(), math.nan

    @property
    def predictions(self) -> Array:
        """Of every row, where the last snapshot was taken."""
        return self._predictions

    def take_sum(self, x: Array) -> Array:
        """Write the slopes of every row at x, and return the sum of the rows' gradients."""

        def task(block: slice) -> Array:
            with np.errstate(over="ignore", invalid="ignore"):  # of a run that diverges
                return self._gradient(block, x)

        parts = for_each(self._blocks, task, self._workers)
        if self._look_at is not None and self._of_constant.size > 0:  # once is enough
            self._problem._facts["row sums"], self._of_constant = self._of_constant, self._of_constant[:0]
        total = np.zeros(self.mean.shape, np.float64)
        for part in parts:
            total += part
        return total

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps: where the snapshot was taken, and it is taken there again."""
        taken = self._x is not None
        best = self._best if math.isfinite(self._best) else None
        return {
            "x": self.mean[:0].copy() if self._x is None else self._x.copy(),
            "taken": taken,
            "best": best,
            "setbacks": self.setbacks,
        }

    def restore(self, saved: Saved) -> None:
        """Go on from a checkpoint."""
        self.setbacks = saved.integer("setbacks", 0, _SETBACKS)
        self._best = math.inf if saved.item("best") is None else saved.number("best", -math.inf, math.inf)
        if saved.item("taken") is True:
            with single_threaded_blas():  # as during the run, to have the same bits
                self._take(saved.array("x", self.mean))

    def is_proximal(self, x: Array) -> bool:
        """Tell whether x, where the last snapshot was taken, is exactly sparse, grouped, fused or of low rank."""
        return self._is_proximal and self._x is not None and np.array_equal(x, self._x)

    def known(self, x: Array) -> Known | None:
        """Return what is known of x, if that is where the last snapshot was taken."""
        if self._x is None or not np.array_equal(x, self._x):
            return None
        gradient = self.mean.copy()
        gradient[: self._problem.p] += 2.0 * self._problem.l2 * x[: self._problem.p]
        return Known(self._predictions, gradient, self._value)

    def _gradient(self, block: slice, x: Array) -> Array:
        """Write the slopes of a block of rows, and return the sum of their gradients."""
        problem = self._problem
        rows = _rows.part(problem._by_rows, block)
        if self._look_at is not None:
            part, total = np.zeros_like(x), np.zeros(x.shape, np.float64)
            own = problem._targets[block], problem._weights[block]
            beside = self._constant, self._of_constant[block]
            self._look_at(rows, problem.loss, *own, x, self._predictions[block], self.at_snapshot[block], part, total, *beside)
            return total
        predictions = np.ascontiguousarray(_rows.predict(rows, x).reshape(block.stop - block.start, -1))
        self._predictions[block] = predictions
        slopes = self.at_snapshot[block]
        self._slopes(problem.loss, predictions, problem._targets[block], problem._weights[block], 1, slopes)
        return _rows.transpose_times(rows, slopes.reshape(len(slopes), *problem.shape[1:]))


@kernel
def look_at_rows(
    rows: Any,
    loss: Any,
    targets: Array,
    weights: Array,
    x: Array,
    predictions: Array,
    slopes: Array,
    part: Array,
    total: Array,
    other: Array,
    of_other: Array,
) -> None:
    """Write predictions and weighted slopes of some rows at x, and add the rows' gradients to ``total``, in one pass.

    ``part``, which is zero, is where a few of them are added up in the precision of the data. Predictions at another parameter
    are written as well, if there is room for them.
    """
    for i in range(weights.size):
        rows.dot(i, x, predictions[i])
        if of_other.size > 0:
            rows.dot(i, other, of_other[i])
        loss_gradient(loss, predictions[i], targets[i], slopes[i])
        for k in range(slopes.shape[1]):
            slopes[i, k] *= weights[i]
        rows.add(i, slopes[i], part)
        if (i + 1) % _TOGETHER == 0 or i + 1 == weights.size:
            for j in range(part.size):
                total[j] += part[j]
                part[j] = 0.0
