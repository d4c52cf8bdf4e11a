"""Rows less the mean of all: the same model in coordinates that do not depend on where the columns are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .rows import FarRows, Rows, column_means, dtype, predict, shape, squared_norms, transpose_times

__all__ = ["CentredRows", "are_far", "column_moments", "constant_columns", "less", "moved"]

Array = np.ndarray[Any, Any]

_FAR = 30.0  # squares that many times another are of another size
_BLOCK = 1 << 18  # numbers that are looked at at once
_NEARLY = 1e-4  # of a mean, that rounding may be in it
_FEW = 64  # rows that tell most columns from constant ones


class CentredRows(FarRows):
    """Rows less the mean of all, with an intercept of the size of the other columns.

    The same model in coordinates where gradients get on, however far from zero the columns are, and however large: the
    intercept is a multiple of the prediction of a mean row. ``outside`` and ``inside`` change it to that of the rows as they
    are, and back.
    """

    def __init__(self, rows: Rows | FarRows, weights: Array) -> None:
        self._rows = rows
        self.n, self.p = shape(rows)
        self.dtype, self.intercept = dtype(rows), True
        self._means = column_means(rows, weights)
        norm = float(np.average(squared_norms(rows), weights=weights)) - 1.0
        spread = norm - float(self._means.astype(np.float64) @ self._means)
        self._size = self.dtype.type(math.sqrt(max(spread, 0.0) / self.p) or 1.0)

    @property
    def is_far(self) -> bool:
        """Whether gradients get nowhere on the rows as they are: far from zero, or not of the size of one."""
        square = float(self._size) ** 2
        return float(self._means @ self._means) > _FAR * square or not 1.0 / _FAR < square < _FAR

    def outside(self, x: Array) -> Array:
        """Return a packed parameter with the intercept of the rows as they are."""
        scaled = x.copy()
        scaled[self.p] *= self._size
        return moved(scaled, -self._means)

    def inside(self, x: Array) -> Array:
        """Return a packed parameter as it is here."""
        result = moved(x, self._means)
        result[self.p] /= self._size
        return result

    def predict(self, x: Array) -> Array:
        """Return the predictions of every row for a packed parameter."""
        return predict(self._rows, self.outside(x))

    def transpose_times(self, d: Array) -> Array:
        """Return the gradient in a packed parameter of something whose gradient in the predictions is d."""
        result = transpose_times(self._rows, d)
        result[: self.p] -= self._means * result[self.p] if d.ndim == 1 else np.outer(self._means, result[self.p])
        result[self.p] *= self._size
        return result


def column_moments(X: Array, weights: Array) -> tuple[Array, Array]:
    """Return the weighted mean and the standard deviation of every column of a dense array.

    They are added up in one order, whatever BLAS there is: a run that goes on from a file needs the same to the last bit.
    """
    first, weights = X[np.argmax(weights > 0.0)].astype(np.float64), weights / weights.sum(dtype=np.float64)
    mean, square = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    size = max(1, _BLOCK // X.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(X), size):
            part = X[start : start + size] - first
            weighted = weights[start : start + size, None] * part
            mean += weighted.sum(axis=0)
            square += np.einsum("ij,ij->j", weighted, part)
        return first + mean, np.sqrt(np.maximum(square - mean**2, 0.0))


def constant_columns(X: Array, means: Array) -> Array:
    """Return the columns of a dense array that have one value throughout, given about what the means are.

    Beside an intercept they say nothing. Less a mean that is rounded they are not quite zero, and seem to say something.

    Examples
    --------
    >>> constant_columns(np.array([[1.0, 0.1, 0.0], [2.0, 0.1, 0.0], [0.0, 0.1, 0.0]]), np.array([1.0, 0.1, 0.0]))
    array([1, 2])
    """
    candidates = np.flatnonzero(np.abs(X[0] - means) <= _NEARLY * np.abs(means))
    candidates = candidates[(X[:_FEW, candidates] == X[0, candidates]).all(axis=0)]
    return candidates[[bool((X[:, j] == X[0, j]).all()) for j in candidates]]


def are_far(means: Array, deviations: Array, n: int) -> bool:
    """Tell whether columns of n rows are so far from zero that an intercept beside them makes steps short.

    What counts are their means next to their standard deviations, all together; chance alone makes p/n of the squares.

    Examples
    --------
    >>> are_far(np.full(50, 0.01), np.ones(50), 2000), are_far(np.full(50, 0.5), np.ones(50), 2000)
    (False, True)
    >>> are_far(np.array([0.0, 3.0]), np.zeros(2), 2000), are_far(np.array([np.inf]), np.ones(1), 2000)
    (True, False)
    """
    if not np.isfinite(means).all():
        return False
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratios = np.where(means == 0.0, 0.0, means / deviations)
        return bool((ratios**2).sum() > 1.0 + 2.0 * len(means) / n)


def less(X: Array, means: Array) -> Array:
    """Return a copy of a dense array less the means of its columns, in C order and of the same kind."""
    return np.subtract(X, means, out=np.empty(X.shape, X.dtype), casting="same_kind")


def moved(x: Array, means: Array) -> Array:
    """Return a packed parameter for rows less these means: its intercept is what it predicts for a mean row."""
    result = x.copy()
    result[len(means)] += means @ x[: len(means)]
    return result
