"""What of the data keeps a run from getting on, where its tolerance was not reached."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..centred import are_far, column_moments
from ..problem import Problem
from ..rows import DenseRows, matrix
from ._origin import far_centre

__all__ = ["Hindrances", "find_hindrances"]

Array = np.ndarray[Any, Any]

_UNLIKE = 10.0  # times as large as another


class Hindrances(NamedTuple):
    """What somebody could change about the data, because it was not changed here."""

    far: bool = False  # columns are far from zero, beside an intercept
    unlike: bool = False  # columns are of different sizes
    far_targets: bool = False  # and there is no intercept
    rounding: float = 0.0  # of columns in single precision, beside their spread: with an intercept it is large if they are far

    @property
    def of_columns(self) -> str:
        """What to do about the columns; nothing if there is nothing."""
        if self.far:
            return "centre the columns of X" + " and scale them to a like size" * self.unlike
        return "scale the columns of X to a like size" * self.unlike


def find_hindrances(problem: Problem, plain: bool) -> Hindrances:
    """Look at a problem as it was solved; by a ``plain`` algorithm, which does not centre the columns itself."""
    rows, intercept = problem._rows, problem.fit_intercept
    far, rounding = False, 0.0
    if isinstance(rows, DenseRows):
        means, sizes = column_moments(rows.X, problem._weights)
        if intercept and problem.dtype == np.float32:
            beyond = np.divide(np.abs(means), sizes, out=np.zeros(len(sizes)), where=sizes > 0.0)
            rounding = float(np.finfo(np.float32).eps) * float(beyond.max(initial=0.0))
        far = plain and intercept and are_far(means, sizes, problem.n)
        sizes = sizes if intercept else np.hypot(means, sizes)
    else:  # which would not be sparse if it were centred
        X = matrix(rows)
        sizes = np.sqrt(np.asarray(X.multiply(X).mean(axis=0)).ravel())
    sizes = sizes[sizes > 0.0]
    unlike = bool(sizes.max(initial=0.0) > _UNLIKE * sizes.min(initial=np.inf))
    far_targets = not intercept and far_centre(problem._targets, problem.loss, problem._weights) is not None
    return Hindrances(far, unlike, far_targets, rounding)
