"""Shares: the rows that belong to each worker for good, and the step that suits them all."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from . import rows as _rows
from .fista import proximal_step
from .problem import Problem
from .steps import longest_step

__all__ = ["cut", "share_step"]

Array = np.ndarray[Any, Any]

_ENTRIES = 1 << 22  # of a share, up to which all of its rows are looked at for its smoothness
_PIECES = 16  # of neighbouring rows otherwise
_MARGIN = 1.1  # for those that are not
_MOST = 8  # blocks that are looked at


def cut(n: int, workers: int) -> Array:
    """Return the bounds of so many shares of the rows, as equal as can be."""
    if workers > n:
        raise ValueError(f"workers must be at most the number of rows, {n}, as each gets a share of them; got {workers}")
    bounds: Array = np.linspace(0, n, workers + 1).astype(np.int64)
    return bounds


def share_step(problem: Problem, shares: Array, x0: Array, blocks: int = 1) -> float:
    """Return ``1 / L``, L the largest smoothness of any share's part of f, or an estimate of it where that costs too much.

    With several ``blocks`` to a share, each of them is a share of its own.
    """
    if isinstance(problem._rows, _rows.FarRows):
        return problem._rows.share_step(blocks, x0)
    curvature = float(getattr(problem.loss, "curvature", math.inf))
    if not math.isfinite(curvature):
        return 0.5 * proximal_step(problem, x0, 1.0, search=True)[1]
    pieces = [(a + u, a + v) for a, b in pairwise(shares) for u, v in pairwise(cut(int(b - a), min(blocks, int(b - a))))]
    some = (
        pieces
        if blocks == 1 or len(pieces) <= _MOST
        else [pieces[k] for k in np.linspace(0, len(pieces) - 1, _MOST).astype(int)]
    )
    largest = max(_smoothness(problem, int(a), int(b)) for a, b in some) * (1.0 if some is pieces else _MARGIN)
    return longest_step(curvature * largest + 2.0 * problem.l2, problem.dtype)


def _smoothness(problem: Problem, start: int, stop: int) -> float:
    """Return the largest eigenvalue of the mean of ``w_i x_i x_i^T`` over some rows."""
    count = stop - start
    entries = _rows.entries(_rows.part(problem._by_rows, slice(start, stop)))
    if entries <= _ENTRIES:
        return _eigenvalue(problem, [slice(start, stop)])
    width = max(1, int(count * _ENTRIES / entries / _PIECES))
    return _MARGIN * _eigenvalue(problem, [slice(a, a + width) for a in np.linspace(start, stop - width, _PIECES).astype(int)])


def _eigenvalue(problem: Problem, pieces: list[slice]) -> float:
    rows = _rows.stack([_rows.part(problem._by_rows, piece) for piece in pieces])
    weights = np.concatenate([problem._weights[piece] for piece in pieces])
    return _rows.spectral_norm_squared(rows, weights) / len(weights)
