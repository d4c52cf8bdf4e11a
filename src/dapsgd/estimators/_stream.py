"""Fitting to batches of rows that come one after the other, without end."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .._memory import require_memory
from ..centred import less, moved
from ..fista import proximal_step
from ..lam_max import best_constant, best_unseen
from ..losses import is_quadratic
from ..problem import Problem
from ..result import Result, Schedule
from ..rows import DenseRows, column_means
from ..runtimes import Replay
from ..solve import solve
from ..steps import InverseTime
from ._origin import Origin

__all__ = ["STREAMING", "Stream", "take_batch"]

Array = np.ndarray[Any, Any]

_FIRST_ROWS = 50  # rows for which a stream does not yet know where it is, however small its batches

STREAMING = ("p-sgd", "tap-sgd", "dap-sgd")


class Stream(NamedTuple):
    """What is kept from one batch to the next, beside the coefficients and the number of rows."""

    roughest: float = 0.0  # the largest smoothness of a row's loss so far
    first: int = 0  # rows in the first batch, or those after which steps become shorter
    weight: float = 0.0  # of all rows whose mean was taken
    means: Array | None = None  # of the columns so far; None where they are not centred


def take_batch(
    problem: Problem, start: Array | None, seen: int, stream: Stream, options: dict[str, Any]
) -> tuple[Result, Stream]:
    r"""Take one pass of stochastic proximal steps over a batch, and one full step at its end, from a packed ``start``.

    P-SGD takes every row once, in random order; with workers rows are drawn, as everywhere, and some may be left out.

    With t rows seen before, the step is :math:`1 / (u \sqrt{1 + t/m})`: u is twice the roughest row's smoothness met so
    far, m the size of the first batch, or 50. Within a batch its inverse grows linearly.

    Where there is an intercept, and columns are dense, they are taken less the mean of all rows so far: else columns far from
    zero make every step short, and all coefficients move together.
    """
    stream = _with_means(stream, problem)
    if stream.means is not None:
        problem = _centred(problem, stream.means)
    x = _first_point(problem) if start is None else start.copy() if stream.means is None else moved(start, stream.means)
    if start is not None and problem.fit_intercept:
        _move_intercept(problem, x, problem.n / (seen + problem.n))
    roughest, first = max(stream.roughest, _roughness(problem, x)), stream.first or max(problem.n, _FIRST_ROWS)
    algorithm = options["algorithm"] if options["algorithm"] in STREAMING else "p-sgd"
    u = 2.0 * roughest * (1 if algorithm == "p-sgd" else 1 + (options["workers"] or 8))
    begin, end = (u * math.sqrt(1.0 + t / first) for t in (seen, seen + problem.n))
    # The answer of solve is one full proximal step from the last iterate: let it be as short as the others are by now.
    problem._facts["lipschitz"] = end
    seeds = np.random.SeedSequence(None if options["seed"] is None else [options["seed"], seen])  # else batches are alike
    options = options | {
        "algorithm": algorithm,
        "step": InverseTime(begin, (end - begin) / problem.n),
        "batch_size": 1,
        "tol": 0.0,
        "max_passes": 1.0,
        "record_every": problem.n,
        "seed": int(seeds.generate_state(1)[0]),
    }
    if algorithm == "p-sgd":
        options |= {"runtime": Replay(_every_row(problem.n, seeds)), "workers": None}
    result = solve(problem, x0=x, **options)
    return Origin(stream.means).restored(result), stream._replace(roughest=roughest, first=first)


def _every_row(n: int, seeds: np.random.SeedSequence) -> Schedule:
    """Return one pass over all rows, each once: the next batch has others, so that none may be left out."""
    return Schedule(np.zeros(n, np.int64), np.arange(n), np.random.default_rng(seeds).permutation(n), 0)


def _with_means(stream: Stream, problem: Problem) -> Stream:
    """Return what is known once a batch was seen; without means where columns are not centred."""
    if not problem.fit_intercept or not isinstance(problem._rows, DenseRows):
        return stream._replace(weight=0.0, means=None)
    weights = problem._weights.astype(np.float64)
    weight = stream.weight + float(weights.sum())
    with np.errstate(over="ignore", invalid="ignore"):
        means = column_means(problem._rows, weights).astype(np.float64)
        if stream.means is not None:
            means = stream.means + (means - stream.means) * (1.0 - stream.weight / weight)
    if not np.isfinite(means).all():  # numbers too large to be added
        return stream._replace(weight=0.0, means=None)
    return stream._replace(weight=weight, means=means)


def _centred(problem: Problem, means: Array) -> Problem:
    """Return the problem with rows less the means."""
    X = problem._rows.X
    require_memory(X.nbytes, "a copy of the batch less the means of its columns", "use smaller batches")
    return problem.with_rows(DenseRows(less(X, means), True), problem._targets, problem._weights, problem.shape)


def _first_point(problem: Problem) -> Array:
    """Return zeros and, because an intercept is a long way for short steps, a good constant.

    The best one of a few rows may be infinite: of labels that are all the same, or of counts that are all zero. So it is that
    of these rows and of one more, for which zero is best; but not if the loss is quadratic, which is never that sure.
    """
    if not problem.fit_intercept or is_quadratic(problem.loss):
        return best_unseen(problem, fused=False)
    return best_constant(problem, l2=0.5 * _curvature_at_zero(problem) / problem.n, tol=1e-6)


def _move_intercept(problem: Problem, x: Array, share: float) -> None:
    """Let the intercept follow all rows so far, of which a batch is this share: the mean of what coefficients leave to it.

    The steps that coefficients allow are far too short for it.
    """
    curvature = getattr(problem.loss, "curvature", math.inf) * float(problem._weights.mean())
    if math.isfinite(curvature) and curvature > 0.0:
        x[problem.p] -= share / curvature * problem.slopes(problem.predict(x)).sum(axis=0).reshape(x[problem.p].shape)


def _curvature_at_zero(problem: Problem) -> float:
    """Return the mean second derivative of the loss at predictions of zero; a bound of it where the loss has no such method."""
    if hasattr(type(problem.loss), "second_derivative"):
        return float(problem.second_derivatives(np.zeros_like(problem._targets)).sum())
    curvature = getattr(problem.loss, "curvature", math.inf)
    return float(curvature) if math.isfinite(curvature) else 1.0


def _roughness(problem: Problem, x: Array) -> float:
    """Return the largest smoothness of a row's loss, l2 included; around x where the loss has no bound on it."""
    roughness = problem.row_lipschitz
    if not math.isfinite(roughness):
        roughness = problem.row_share / proximal_step(problem, x, 1.0, search=True)[1]
    return max(roughness, float(np.finfo(np.float64).tiny))
