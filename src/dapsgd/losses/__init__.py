"""Losses: one a file; this is the registry.

A loss is a ``typing.NamedTuple`` with plain methods ``value(self, pred, y)`` and ``derivative(self, pred, y)`` of two
numbers, the prediction and the target. With several targets the loss of a row is the sum over its targets. A plain method
``second_derivative(self, pred, y)``, which is never negative, is optional: with it and a regulariser that falls into parts
``"auto"`` takes Newton steps on a working set. So is ``conjugate(self, slope, y)``, the largest ``slope * pred - value`` over
all predictions, infinite where there is none: with it there are duality gaps.

Optional, for what only Python calls:

- ``curvature``: a property, the largest second derivative in ``pred``; without it step-sizes are found by backtracking;
- ``check_targets(self, y)``: raises ``ValueError`` for targets the loss is not made for, and returns them as numbers;
- ``joint``: a property that says that the loss ties a row's predictions together. It then has ``value(self, pred, y)`` of
  two vectors, and ``gradient(self, pred, y, out)`` in place of ``derivative``; its conjugate is of two vectors, too.
"""

import math
from typing import Any

from .huber import Huber
from .logistic import Logistic
from .multinomial import Multinomial
from .poisson import Poisson
from .squared import Squared
from .squared_hinge import SquaredHinge

__all__ = ["ELSEWHERE", "LOSSES", "Huber", "Logistic", "Multinomial", "Poisson", "Squared", "SquaredHinge"]

LOSSES: dict[str, type] = {
    "squared": Squared,
    "logistic": Logistic,
    "multinomial": Multinomial,
    "huber": Huber,
    "squared_hinge": SquaredHinge,
    "poisson": Poisson,
}

# What other packages call them: what to write here instead.
ELSEWHERE = {
    "binary_crossentropy": "'logistic'",
    "categorical_crossentropy": "'multinomial'",
    "cross_entropy": "'multinomial'",
    "hinge": "'squared_hinge'",
    "l2": "'squared'",
    "least_squares": "'squared'",
    "log": "'logistic'",
    "log_loss": "'logistic'",
    "mse": "'squared'",
    "quadratic": "'squared'",
    "softmax": "'multinomial'",
    "squared_error": "'squared'",
    "squared_loss": "'squared'",
}

_FEW_CLASSES = 10  # whose second derivatives, of every two, are not too many


def is_quadratic(loss: Any) -> bool:
    """Tell whether a loss is a quadratic function of the predictions, with the same curvature everywhere."""
    curvature = getattr(loss, "curvature", math.inf)
    return math.isfinite(curvature) and getattr(loss, "convexity", 0.0) == curvature


def has_second_derivatives(loss: Any, targets: int) -> bool:
    """Tell whether second derivatives are known: the same for all of so many targets, or those of every two of few classes."""
    if isinstance(loss, Multinomial):
        return targets <= _FEW_CLASSES
    return hasattr(type(loss), "second_derivative") and (targets == 1 or is_quadratic(loss))
