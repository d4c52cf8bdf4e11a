"""Losses and regularisers as a user hands them in: checked, and bound to the parameter's shape."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from ._calls import has_trait, run_prox
from ._checks import finite_array, known_name, non_negative
from ._first_use import try_regularizer
from ._handles import Handle, make_handle, prox_entry
from ._jit import is_foreign, method_names
from .losses import ELSEWHERE as LOSSES_ELSEWHERE
from .losses import LOSSES
from .regularizers import ELSEWHERE, REGULARIZERS

__all__ = ["bind", "check_loss", "prox", "prox_handle", "usable_regularizer"]

Array = np.ndarray[Any, Any]

_tried: set[Any] = set()  # classes of users' regularisers, with the shapes and types of the parameters they were tried on


def check_loss(loss: Any) -> Any:
    """Return ``loss`` if compiled code can use it as one."""
    methods = {"value": 2, "gradient": 3} if has_trait(type(loss), "joint") else {"value": 2, "derivative": 2}
    return _check_term("loss", loss, methods, LOSSES)


def usable_regularizer(regularizer: Any) -> Any:
    """Return ``regularizer`` if compiled code can use it as one, or bind it to a form that can."""
    if hasattr(type(regularizer), "bind"):
        return regularizer
    return _check_term("regularizer", regularizer, {"value": 1, "prox": 3}, REGULARIZERS)


def bind(regularizer: Any, shape: tuple[int, ...]) -> Any:
    """Return the form of a regulariser that is compiled, for a parameter of this shape."""
    regularizer = usable_regularizer(regularizer)
    return regularizer.bind(shape) if hasattr(type(regularizer), "bind") else regularizer


def prox(regularizer: Any, v: Any, step: float) -> Array:
    """Return the proximal point of ``v``: the minimiser over u of ``||u - v||^2 / (2 step) + h(u)``.

    Parameters
    ----------
    regularizer : regulariser
        A built-in or your own.
    v : array, shape (p,) or (p, q)
        Left unchanged.
    step : float
        The step-size, >= 0.

    Returns
    -------
    array
        A new array like ``v``.

    Examples
    --------
    >>> import dapsgd as ds
    >>> ds.prox(ds.L1(1.0), [3.0, -0.5], step=2.0)
    array([1., 0.])
    """
    point = np.ascontiguousarray(finite_array("v", v))
    if point.ndim not in (1, 2):
        raise ValueError(f"v must have one or two dimensions; got shape {point.shape}")
    step = non_negative("step", step)
    bound = bind(regularizer, point.shape)
    out = np.empty_like(point)
    if point.size:
        run_prox(prox_handle(bound, out), point, step, out)  # v may be read-only
    return out


def prox_handle(bound: Any, x: Array) -> Handle:
    """Compile a bound regulariser's prox for a parameter like x, and try a user's; keep the handle while it is in use."""
    handle = make_handle(prox_entry, bound, x, 1.0, x)
    case = type(bound), x.shape, x.dtype
    if is_foreign(bound) and x.size and case not in _tried:
        try_regularizer(handle, x)
        _tried.add(case)
    return handle


def _check_term(argument: str, term: Any, methods: dict[str, int], registry: dict[str, type]) -> Any:
    kind = type(term)
    if kind in registry.values():
        return term
    example = f"dapsgd.{next(iter(registry.values())).__name__}()"
    if isinstance(term, str):
        known = registry[
            known_name(argument, term, registry, ELSEWHERE if registry is REGULARIZERS else LOSSES_ELSEWHERE)
        ].__name__
        raise TypeError(f"{argument} must be an object: dapsgd.{known}(...) in place of the name {term!r}")
    if isinstance(term, type):
        example = f"dapsgd.{term.__name__}(...)" if term in registry.values() else example
        raise TypeError(f"{argument} must be an object such as {example}, not the class {term.__name__} itself")
    if not (isinstance(term, tuple) and hasattr(kind, "_fields")):
        raise TypeError(
            f"{argument} must be an object such as {example}, or a typing.NamedTuple of your own; got {kind.__name__}"
        )
    if not kind._fields:
        raise TypeError(f"{argument}: {kind.__name__} must have at least one field to be compiled, even if it is unused")
    clash = set(kind._fields) & method_names()
    if clash:
        raise TypeError(f"{argument}: {kind.__name__} must not call a field {sorted(clash)[0]!r}; methods are called so")
    missing = [name for name in methods if not callable(getattr(kind, name, None))]
    if missing:
        raise TypeError(f"{argument}: {kind.__name__} has no method {missing[0]!r}")
    for name, arity in methods.items():
        if len(inspect.signature(getattr(kind, name)).parameters) != arity + 1:
            raise TypeError(f"{argument}: {kind.__name__}.{name} must take self and {arity} argument(s)")
    return term
