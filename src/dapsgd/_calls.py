"""Calls of a bound regulariser's methods: compiled, unless it says otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._handles import Handle, RegularizerHandle
from ._jit import run

__all__ = ["call_prox", "has_trait", "run_prox", "run_value"]

Array = np.ndarray[Any, Any]


def has_trait(kind: type, name: str) -> bool:
    """Tell whether a class of terms has a trait such as ``elementwise``: a property, or an attribute that is true."""
    return bool(getattr(kind, name, False))


def run_prox(handle: Handle, v: Array, step: float, out: Array) -> None:
    """Run a regulariser's compiled prox by its handle, or another one that it has for large parameters."""
    term = handle.alive[1]
    if has_trait(type(term), "large_prox") and term.large_prox(v, step, out):
        return
    run(call_prox, RegularizerHandle(handle.code, handle.data), v, step, out)


def call_prox(regularizer: RegularizerHandle, v: Array, step: float, out: Array) -> None:
    """Call a regulariser's prox by its handle."""
    regularizer.prox(v, step, out)


def run_value(bound: Any, w: Array) -> float:
    """Run a bound regulariser's value, compiled unless it says otherwise."""
    if has_trait(type(bound), "in_numpy"):
        return float(bound.value(w))
    value = run(type(bound).value, bound, w)
    if value is None or np.ndim(value) > 0:
        what = "nothing" if value is None else f"an array of shape {np.shape(value)}"
        raise TypeError(f"{type(bound).__name__}.value must return a number; it returned {what}")
    return float(value)
