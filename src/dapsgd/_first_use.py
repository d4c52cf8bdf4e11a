"""Trials of a user's loss or regulariser when it is first used: what goes wrong in compiled code goes wrong in silence."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from ._calls import has_trait, run_prox, run_value
from ._handles import Handle
from ._jit import is_foreign

__all__ = ["compare", "try_loss", "try_regularizer"]

Array = np.ndarray[Any, Any]

_ENOUGH = 1000  # coefficients to try an element-wise prox on
_FEW = 20  # targets to try a loss on


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
            except _NoReturnError as error:
                raise TypeError(str(error)) from None
            except IndexError:
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
    if hasattr(kind, "conjugate"):
        _try_conjugate(loss, few)


def _try_conjugate(loss: Any, targets: list[float]) -> None:
    """Raise if a conjugate is not that of the value: both add up to the product of a prediction and the slope there."""
    name = type(loss).__name__
    for y in targets:
        for pred in (y + shift * (1.0 + abs(y)) for shift in (-1.7, -0.31, 0.23, 1.3)):
            try:
                value, slope = _number(loss, "value", pred, y), _number(loss, "derivative", pred, y)
                given = _number(loss, "conjugate", slope, y)
            except _NoReturnError as error:
                raise TypeError(str(error)) from None
            except Exception:  # it is not defined there, or for compiled code only
                continue
            wanted = pred * slope - value
            if math.isfinite(wanted) and not abs(given - wanted) <= 1e-6 * (1.0 + abs(pred * slope) + abs(value)):
                raise ValueError(
                    f"{name}.conjugate is not that of {name}.value: at the slope {slope:.4g}, that of pred={pred:.4g} and "
                    f"y={y:.4g}, it is {given:.4g} and must be pred * slope - value = {wanted:.4g}"
                )


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


class _NoReturnError(Exception):
    """A method of a user's that forgot its return."""


def _number(term: Any, method: str, *arguments: Any) -> float:
    """Call a method of a user's in plain Python."""
    name = f"{type(term).__name__}.{method}"
    try:
        with np.errstate(all="ignore"):
            value = getattr(term, method)(*arguments)
    except IndexError as error:
        raise IndexError(f"{name}: {error}; compiled code would read on beyond the end") from None
    if value is None:
        raise _NoReturnError(f"{name} must return a number; it returned nothing")
    return float(value)


def _slope(loss: Any, pred: float, y: float) -> tuple[float, float]:
    """Return a loss's slope by differences, and how wrong rounding can make it."""
    length = 1e-5 * max(1.0, abs(pred))
    above, below = _number(loss, "value", pred + length, y), _number(loss, "value", pred - length, y)
    doubt = 1e3 * np.finfo(np.float64).eps * (1.0 + abs(above) + abs(below)) / length
    return (above - below) / (2.0 * length), doubt


def try_regularizer(handle: Handle, x: Array) -> None:
    """Raise if a user's regulariser is not what it has to be, as far as a parameter like x shows."""
    bound = handle.alive[1]
    if x.size <= _ENOUGH:
        _try_bounds(bound, x)
    _try_prox(handle, x[:_ENOUGH] if has_trait(type(bound), "elementwise") else x)
    if x.size <= _ENOUGH:
        _try_value(handle, x)


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
    v: Array = np.random.default_rng(0).standard_normal(x.size).reshape(x.shape).astype(x.dtype)
    for step in (0.1, 1.0):
        p = np.empty_like(v)
        run_prox(handle, v, step, p)
        others = (v, 0.95 * p, 1.05 * p, p + 0.05 * (v - p), p - 0.05 * (v - p))
        compare(handle.alive[1], v, step, p, others, 1e-6 if x.dtype == np.float64 else 1e-3)


def compare(bound: Any, v: Array, step: float, p: Array, others: Iterable[Array], slack: float) -> float:
    """Return what a proximal point minimises, or raise if it is smaller at one of the others."""

    def objective(u: Array) -> float:
        return float(((u - v) ** 2).sum()) / (2.0 * step) + run_value(bound, u)

    best = objective(p)
    smallest = min((value for value in map(objective, others) if not math.isnan(value)), default=math.inf)
    if smallest < best - slack * (1.0 + abs(best)):  # not if that is NaN
        raise ValueError(
            f"{type(bound).__name__}.prox is not the minimiser for step {step:g}: ||u - v||^2 / (2 step) + value(u) is "
            f"{best:.6g} at what it returned and {smallest:.6g} nearby. Is step left out, or a factor of 2 in value or prox?"
        )
    return best
