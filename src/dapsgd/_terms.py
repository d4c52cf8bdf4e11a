"""Losses and regularisers as a user hands them in: checked, and bound to the parameter's shape."""

from __future__ import annotations

import inspect
import math
import warnings
from typing import Any

import numpy as np

from ._checks import finite_array, known_name, non_negative
from ._handles import Handle, RegularizerHandle, make_handle, prox_entry
from ._jit import is_foreign, method_names, run
from .losses import LOSSES
from .regularizers import ELSEWHERE, REGULARIZERS

__all__ = ["bind", "check_loss", "prox", "try_loss", "usable_regularizer"]

Array = np.ndarray[Any, Any]

_ENOUGH = 1000  # coefficients to try an element-wise prox on
_FEW = 20  # targets to try a loss on
_tried: set[Any] = set()  # classes of users' regularisers, with the shapes and types of the parameters they were tried on


def check_loss(loss: Any) -> Any:
    """Return ``loss`` if compiled code can use it as one."""
    methods = {"value": 2, "gradient": 3} if has_trait(type(loss), "joint") else {"value": 2, "derivative": 2}
    return _check_term("loss", loss, methods, LOSSES)


def try_loss(loss: Any, targets: Array) -> None:
    """Raise if a user's loss is not convex, or its derivative not that of the value, as far as points around targets show."""
    kind = type(loss)
    if not is_foreign(loss) or has_trait(kind, "joint"):
        return
    name, wrong, points, known = kind.__name__, [], 0, 0
    few = np.unique(targets.ravel()[:_FEW]).tolist()
    for y in few:
        for pred in (y + shift * (1.0 + abs(y)) for shift in (-1.7, -0.31, 0.23, 1.3)):
            try:
                slope, doubt = _slope(loss, pred, y)
                given = _number(loss, "derivative", pred, y)
            except (ArithmeticError, ValueError):  # not defined there, as a logarithm; compiled, it is NaN or infinite
                continue
            except LookupError as error:
                raise IndexError(f"{name}: {error}; compiled code would read on beyond the end") from None
            except NoReturnError:
                raise
            except Exception:  # the compiler says it with the line, or what it is about is for compiled code only
                return
            points += 1
            known += math.isfinite(slope)
            if math.isfinite(slope + given) and abs(slope - given) > 1e-3 * (abs(slope) + abs(given)) + doubt:
                wrong.append(
                    f"at pred={pred:.4g}, y={y:.4g} it is {given:.4g}, and value grows by {slope:.4g} per unit of pred"
                )
    if points and not known:
        raise ValueError(
            f"{name}.value must be finite around the targets; it is NaN or infinite, as at pred={pred:.4g}, y={y:.4g}"
        )
    if len(wrong) > 0.1 * points:  # at a kink they may differ
        raise ValueError(f"{name}.derivative is not that of {name}.value: {wrong[0]}")
    _try_curvature(loss, few)


def _try_curvature(loss: Any, targets: list[float]) -> None:
    """Raise if a derivative falls, or grows by more than the ``curvature`` that a user gave."""
    name, curvature = type(loss).__name__, getattr(loss, "curvature", math.inf)
    if callable(curvature):
        raise TypeError(f"{name}.curvature must be a number: make it a field, an attribute or a property")
    for y in targets:
        try:
            low, high = (y + shift * (1.0 + abs(y)) for shift in (-0.1, 0.1))
            below, above = _number(loss, "derivative", low, y), _number(loss, "derivative", high, y)
        except Exception:  # it is not defined there, or for compiled code only
            continue
        grows, doubt = (above - below) / (high - low), 1e-9 * (abs(above) + abs(below)) / (high - low)
        if grows < -doubt:
            raise ValueError(
                f"{name} must be convex: derivative falls by {-grows:.4g} per unit of pred at pred={y:.4g}, y={y:.4g}"
            )
        if grows > 1.001 * curvature + doubt:
            raise ValueError(
                f"{name}.curvature must be the largest second derivative of value; it is {curvature:.4g}, and "
                f"derivative grows by {grows:.4g} per unit of pred at pred={y:.4g}, y={y:.4g}"
            )


class NoReturnError(TypeError):
    """A method of a user's that forgot its return."""


def _number(term: Any, method: str, *arguments: Any) -> float:
    """Call a method of a user's in plain Python."""
    with np.errstate(all="ignore"):
        value = getattr(term, method)(*arguments)
    if value is None:
        raise NoReturnError(f"{type(term).__name__}.{method} must return a number; it returned nothing")
    return float(value)


def _slope(loss: Any, pred: float, y: float) -> tuple[float, float]:
    """Return a loss's slope by differences, and how wrong rounding can make it."""
    length = 1e-5 * max(1.0, abs(pred))
    above, below = _number(loss, "value", pred + length, y), _number(loss, "value", pred - length, y)
    doubt = 1e3 * np.finfo(np.float64).eps * (1.0 + abs(above) + abs(below)) / length
    return (above - below) / (2.0 * length), doubt


def usable_regularizer(regularizer: Any) -> Any:
    """Return ``regularizer`` if compiled code can use it as one, or bind it to a form that can."""
    if hasattr(type(regularizer), "bind"):
        return regularizer
    return _check_term("regularizer", regularizer, {"value": 1, "prox": 3}, REGULARIZERS)


def has_trait(kind: type, name: str) -> bool:
    """Tell whether a class of terms has a trait such as ``elementwise``: a property, or an attribute that is true."""
    return bool(getattr(kind, name, False))


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


def run_prox(handle: Handle, v: Array, step: float, out: Array) -> None:
    """Run a regulariser's compiled prox by its handle, or another one that it has for large parameters."""
    term = handle.alive[1]
    if has_trait(type(term), "large_prox") and term.large_prox(v, step, out):
        return
    run(call_prox, RegularizerHandle(handle.code, handle.data), v, step, out)


def prox_handle(bound: Any, x: Array) -> Handle:
    """Compile a bound regulariser's prox for a parameter like x, and try a user's; keep the handle while it is in use."""
    handle = make_handle(prox_entry, bound, x, 1.0, x)
    case = type(bound), x.shape, x.dtype
    if is_foreign(bound) and x.size and case not in _tried:
        if x.size <= _ENOUGH:
            _try_bounds(bound, x)
        _try_prox(handle, x[:_ENOUGH] if has_trait(type(bound), "elementwise") else x)
        if x.size <= _ENOUGH:
            _try_value(handle, x)
        _tried.add(case)
    return handle


def _try_prox(handle: Handle, x: Array) -> None:
    """Raise unless a prox writes all of a parameter like x, leaves its argument alone, and keeps the promise ``in_place``."""
    kind = type(handle.alive[1])

    def numbers() -> Array:  # anew rather than a copy: x may be large
        drawn = np.random.default_rng(0).standard_normal(x.size)
        drawn[::3] *= 1e-3  # below a threshold, which is another branch
        return drawn.reshape(x.shape).astype(x.dtype)

    v, out = numbers(), np.full(x.shape, np.nan, x.dtype)
    run_prox(handle, v, 1.0, out)
    if np.isnan(out).any():  # it may have written that
        again = np.zeros_like(v)
        run_prox(handle, numbers(), 1.0, again)
        if (np.isnan(out) & ~np.isnan(again)).any():
            raise ValueError(
                f"{kind.__name__}.prox did not write all of out: every entry must be assigned, as by out[:] = ...; "
                "out = ... gives the name to another array, and what prox returns is not used"
            )
    if not np.isfinite(out).all():
        raise ValueError(f"{kind.__name__}.prox wrote NaN or infinity to out, given finite numbers")
    if not np.array_equal(v, numbers()):
        raise ValueError(f"{kind.__name__}.prox changed v: it must write to out and to nothing else")
    if has_trait(kind, "in_place"):
        run_prox(handle, v, 1.0, v)
        if not np.allclose(v, out, rtol=1e-4, atol=1e-6, equal_nan=True):
            raise ValueError(
                f"{kind.__name__} says in_place = True, but prox(v, step, v) is not prox(v, step, out): it reads entries of v "
                "that it has written already; leave out in_place, or copy what is read later"
            )


def _try_bounds(term: Any, x: Array) -> None:
    """Raise if a user's methods leave the bounds of an array, which compiled code does not notice: they run in Python once."""
    v, name = np.linspace(-1.0, 1.0, x.size).reshape(x.shape).astype(x.dtype), type(term).__name__
    for method, arguments in (("value", (v,)), ("prox", (v, 1.0, np.zeros_like(v)))):
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                getattr(term, method)(*arguments)
        except IndexError as error:
            raise IndexError(f"{name}.{method}: {error}; compiled code would read on beyond the end") from None
        except ValueError as error:
            if "broadcast" in str(error):
                raise ValueError(f"{name}.{method}: {error}") from None
        except Exception:  # the compiler says it with the line, or what it is about is for compiled code only
            continue


def _try_value(handle: Handle, x: Array) -> None:
    """Raise unless a prox is that of the value, as far as a few points near it show."""
    term = handle.alive[1]
    v: Array = np.random.default_rng(0).standard_normal(x.size).reshape(x.shape).astype(x.dtype)
    slack = 1e-6 if x.dtype == np.float64 else 1e-3
    for step in (0.1, 1.0):
        p = np.empty_like(v)
        run_prox(handle, v, step, p)

        def objective(u: Array, step: float = step) -> float:
            return float(((u - v) ** 2).sum()) / (2.0 * step) + run_value(term, u)

        best = objective(p)
        others = [objective(u) for u in (v, 0.95 * p, 1.05 * p, p + 0.05 * (v - p), p - 0.05 * (v - p))]
        smallest = min((value for value in others if not math.isnan(value)), default=math.inf)
        if smallest < best - slack * (1.0 + abs(best)):  # not if that is NaN
            raise not_the_minimiser(type(term).__name__, step, best, smallest)


def not_the_minimiser(name: str, step: float, best: float, smallest: float) -> ValueError:
    """Return the error that a prox is not that of the value."""
    return ValueError(
        f"{name}.prox is not the minimiser for step {step:g}: ||u - v||^2 / (2 step) + value(u) is {best:.6g} at "
        f"what it returned and {smallest:.6g} nearby. Is step left out, or a factor of 2 in value or prox?"
    )


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


def _check_term(argument: str, term: Any, methods: dict[str, int], registry: dict[str, type]) -> Any:
    kind = type(term)
    if kind in registry.values():
        return term
    example = f"dapsgd.{next(iter(registry.values())).__name__}()"
    if isinstance(term, str):
        known = registry[known_name(argument, term, registry, ELSEWHERE if registry is REGULARIZERS else {})].__name__
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
