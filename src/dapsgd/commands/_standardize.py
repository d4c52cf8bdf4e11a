"""Columns of like size while fitting, and coefficients in the original units afterwards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..io._dataset import Array

__all__ = ["Scaling", "standardize"]


class Scaling:
    """The means and standard deviations of columns; sparse columns keep their zeros, so their means are not taken out."""

    def __init__(self, mean: Array, scale: Array) -> None:
        self.mean, self.scale = mean, scale

    def restore(self, model: Any) -> None:
        """Turn coefficients and intercepts for scaled columns, also along a path, into those for the columns as they are.

        What was counted while it was fitted, such as the objective and the jumps, stays that of the scaled columns.
        """
        model._scaled = True
        model.coef_ = np.ascontiguousarray(model.coef_ / self.scale.astype(model.coef_.dtype))
        shift = model.coef_ @ self.mean.astype(model.coef_.dtype)
        model.intercept_ = float(model.intercept_ - shift) if model.coef_.ndim == 1 else model.intercept_ - shift
        if hasattr(model, "path_"):
            found = model.path_
            mean, scale = (part.astype(found.coefs.dtype) for part in (self.mean, self.scale))
            coefs = found.coefs / scale.reshape(-1, *[1] * (found.coefs.ndim - 1))
            model.path_ = replace(found, coefs=coefs, intercepts=found.intercepts - np.tensordot(mean, coefs, 1))


def standardize(X: Any, center: bool) -> tuple[Any, Scaling]:
    """Return a scaled copy of X, and what is needed to take the scaling back.

    Examples
    --------
    >>> import numpy as np
    >>> scaled, scaling = standardize(np.array([[0.0, 10.0], [2.0, 30.0]]), center=True)
    >>> scaled
    array([[-1., -1.],
           [ 1.,  1.]])
    """
    if hasattr(X, "tocsr"):
        square = np.asarray(X.multiply(X).mean(axis=0)).ravel()
        mean: Array = np.asarray(X.mean(axis=0)).ravel()
        scale = _safe(np.sqrt(np.maximum(square - mean**2, 0.0)))
        scaled = X.copy()
        scaled.data = scaled.data / scale[scaled.indices].astype(X.dtype)
        return scaled, Scaling(np.zeros_like(mean), scale)
    mean = np.asarray(np.mean(X, axis=0, dtype=np.float64))
    scale = _safe(np.std(X, axis=0, dtype=np.float64))
    mean = mean if center else np.zeros_like(mean)
    return ((X - mean) / scale).astype(X.dtype), Scaling(mean, scale)


def _safe(scale: Array) -> Array:
    """Return the standard deviations, 1 for a column that does not vary."""
    return np.where(scale > 1e-12 * max(float(scale.max(initial=0.0)), 1e-300), scale, 1.0)
