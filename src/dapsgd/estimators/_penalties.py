"""Penalties by name: from an estimator's parameters to a regulariser."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._arguments import for_shell
from .._checks import finite_array, flag, fraction, known_name, non_negative, number
from .._terms import usable_regularizer
from ..models import NOT_KEPT
from ..regularizers import ELSEWHERE, REGULARIZERS, Box, FusedLasso, NonNegative, Slope

__all__ = ["make_penalty", "slope_weights"]

Array = np.ndarray[Any, Any]

# Which penalty reads which of the parameters that not all of them have.
_READ_BY = {
    "l1_ratio": ("elastic_net", "sparse_group_lasso", "fused_lasso", "non_negative"),
    "groups": ("group_lasso", "sparse_group_lasso"),
    "weights": ("group_lasso", "sparse_group_lasso", "slope"),
    "bounds": ("box",),
}
_POSITIVE = ("l1", "elastic_net", "zero", "box", "non_negative")


def make_penalty(
    penalty: Any,
    alpha: Any,
    shape: tuple[int, ...],
    *,
    l1_ratio: Any = None,
    groups: Any = None,
    weights: Any = None,
    bounds: Any = None,
    positive: Any = False,
) -> Any:
    """Return the regulariser that an estimator's parameters describe, for coefficients of this shape.

    A regulariser object is returned as it is; ``alpha`` is then not used.
    """
    options = {"l1_ratio": l1_ratio, "groups": groups, "weights": weights, "bounds": bounds}
    given = {name: value for name, value in options.items() if value is not None}
    positive = flag("positive", positive)
    if not isinstance(penalty, str):
        if given or positive:
            names = ", ".join([*given, *["positive"] * positive])
            raise ValueError(f"{names} must be left out if penalty is an object; got penalty {penalty!r}")
        try:
            return usable_regularizer(penalty)
        except TypeError as error:
            names = ", ".join(map(repr, REGULARIZERS))
            raise TypeError(f"{str(error).replace('regularizer', 'penalty', 1)}; or a name: {names}") from None
    if penalty.endswith(NOT_KEPT):
        raise ValueError(
            f"penalty was an object of the class {penalty.removesuffix(NOT_KEPT)}, which the model file does not hold: set it "
            "before fit, as by model.set_params(penalty=...)"
        )
    known_name("penalty", penalty, REGULARIZERS, ELSEWHERE)
    for name in given:
        if penalty not in _READ_BY[name]:
            allowed = " or ".join(map(repr, _READ_BY[name]))
            raise ValueError(f"{name} must be left out unless penalty is {allowed}; got penalty {penalty!r}")
    if positive and penalty not in _POSITIVE:
        raise ValueError(
            f"positive must be False unless penalty is {' or '.join(map(repr, _POSITIVE))}; got penalty {penalty!r}"
        )
    alpha = non_negative("alpha", alpha)
    return _by_name(penalty, alpha, shape, given, positive)


def _by_name(penalty: str, alpha: float, shape: tuple[int, ...], given: dict[str, Any], positive: bool) -> Any:
    kind = REGULARIZERS[penalty]
    ratio = fraction("l1_ratio", given.get("l1_ratio", {"fused_lasso": 0.0, "non_negative": 1.0}.get(penalty, 0.5)))
    if penalty == "zero":
        return NonNegative(0.0) if positive else kind()
    if penalty == "box":
        low, high = _bounds(given.get("bounds"), positive)
        return Box(low, high)
    if penalty in ("l1", "elastic_net", "non_negative") and (positive or penalty == "non_negative"):
        return NonNegative(alpha, 1.0 if penalty == "l1" else ratio)
    if penalty == "elastic_net":
        return kind(alpha, ratio)
    if penalty == "fused_lasso":
        return FusedLasso(alpha * (1.0 - ratio), alpha * ratio)
    if penalty == "group_lasso":
        return kind(alpha, given.get("groups", 1), given.get("weights"))
    if penalty == "sparse_group_lasso":
        return kind(alpha, given.get("groups", 1), ratio, given.get("weights"))
    if penalty == "slope":
        size = math.prod(shape)
        if isinstance(given.get("weights"), str):
            raise ValueError(f"weights must be numbers for penalty 'slope'; got {given['weights']!r}, and 'root' is for groups")
        weights = slope_weights(size) if "weights" not in given else finite_array("weights", given["weights"], np.float64)
        count = str(weights.size) if weights.ndim == 1 else f"shape {weights.shape}"
        got = count if weights.shape != (size,) else ""
        got = got or ("a negative one" if (weights < 0.0).any() else "")
        got = got or ("numbers that increase" if (np.diff(weights) > 0.0).any() else "")
        if got:
            raise ValueError(
                f"weights must be {size} numbers, one a coefficient, in decreasing order and none negative for penalty "
                f"'slope'; got {got}"
            )
        return Slope(alpha * weights)
    return kind(alpha)


def _bounds(bounds: Any, positive: bool) -> tuple[float, float]:
    if bounds is None and not positive:
        written = "as --bounds LOW HIGH" if for_shell() else "a pair (low, high)"
        raise ValueError(f"bounds must be given for penalty 'box': {written}, either of which may be infinite")
    pair = (-math.inf, math.inf) if bounds is None else bounds
    if not isinstance(pair, (tuple, list, np.ndarray)) or len(pair) != 2:
        raise ValueError(f"bounds must be a pair (low, high); got {bounds!r}")
    low, high = number("bounds[0]", pair[0]), number("bounds[1]", pair[1])
    low = max(low, 0.0) if positive else low
    if not low <= high or low == math.inf or high == -math.inf:
        raise ValueError(f"bounds must be a pair (low, high) with low <= high and a number in between; got {bounds!r}")
    return low, high


def slope_weights(size: int, level: float = 0.1) -> Array:
    """Return the weights of Benjamini and Hochberg for SLOPE, scaled so that the first is 1.

    Examples
    --------
    >>> from dapsgd.estimators._penalties import slope_weights
    >>> slope_weights(4).round(3)
    array([1. , 0.874, 0.794, 0.734])
    """
    from scipy.special import ndtri

    quantiles = ndtri(1.0 - level * np.arange(1, size + 1) / (2.0 * size))
    result: Array = quantiles / quantiles[0]
    return result
