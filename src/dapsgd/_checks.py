"""Checks of what a user hands in: each returns the value in normal form or says what is wrong with it.

Every message names the argument, what was given and what is allowed.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from ._passes import WORTH_A_THREAD, for_each
from ._team import available_cores

__all__ = [
    "all_finite",
    "check_finite_sparse",
    "finite_array",
    "flag",
    "fraction",
    "known_name",
    "meant",
    "non_negative",
    "non_negative_integer",
    "not_finite",
    "number",
    "positive",
    "positive_integer",
    "refuse_dataset",
    "refuse_masked",
    "rename_hint",
    "suggesting",
    "validated",
]

Term = TypeVar("Term", bound=type)
Given = ParamSpec("Given")
Answer = TypeVar("Answer")

_STRENGTH = {"alpha", "lambda_", "lambd", "reg", "strength"}  # elsewhere
_ADDED_AT_ONCE = 1 << 20  # entries


def number(name: str, value: Any) -> float:
    """Return ``value`` as a float if it is a real number, infinite or not."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number; got {_show(value)}")
    if math.isnan(value):
        raise ValueError(f"{name} must be a number; got nan")
    return float(value)


def non_negative(name: str, value: Any) -> float:
    """Return ``value`` as a finite float >= 0."""
    result = number(name, value)
    if not 0.0 <= result < math.inf:
        raise ValueError(f"{name} must be finite and >= 0; got {value!r}")
    return result


def positive(name: str, value: Any) -> float:
    """Return ``value`` as a finite float > 0."""
    result = number(name, value)
    if not 0.0 < result < math.inf:
        raise ValueError(f"{name} must be finite and > 0; got {value!r}")
    return result


def fraction(name: str, value: Any) -> float:
    """Return ``value`` as a float in [0, 1]."""
    result = number(name, value)
    if not 0.0 <= result <= 1.0:
        raise ValueError(f"{name} must be between 0 and 1; got {value!r}")
    return result


def _integer(name: str, value: Any) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer; got {_show(value)}")
    return int(value)


def positive_integer(name: str, value: Any) -> int:
    """Return ``value`` as an int >= 1."""
    result = _integer(name, value)
    if result < 1:
        raise ValueError(f"{name} must be at least 1; got {value!r}")
    return result


def non_negative_integer(name: str, value: Any) -> int:
    """Return ``value`` as an int >= 0."""
    result = _integer(name, value)
    if result < 0:
        raise ValueError(f"{name} must be at least 0; got {value!r}")
    return result


def flag(name: str, value: Any) -> bool:
    """Return ``value`` if it is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False; got {_show(value)}")
    return bool(value)


def known_name(name: str, value: Any, allowed: Iterable[str], elsewhere: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return ``value`` if it is one of ``allowed``; otherwise suggest what is called so elsewhere, or the nearest."""
    choices = sorted(allowed)
    if not isinstance(value, str):
        raise TypeError(f"{name} must be one of {', '.join(map(repr, choices))}; got {_show(value)}")
    if value in choices:
        return value
    asked = value.lower()
    near = [choice for choice in choices if asked and choice.startswith(asked)] or [
        choice
        for spelling in (asked.replace("_", "-"), asked)
        for choice in difflib.get_close_matches(spelling, choices, n=1, cutoff=0.55)
    ]
    meant = elsewhere.get(value.lower().replace("-", "_"), repr(near[0]) if near else "")
    hint = f" (did you mean {meant}?)" if meant else ""
    raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}{hint}")


def meant(asked: str, names: Iterable[str], likeness: float = 0.6) -> str | None:
    """Return the name that somebody may have meant: spelt alike but for capitals, or nearly so; None if there is none.

    Examples
    --------
    >>> meant("Age", ["size", "age"]), meant("heigth", ["size", "height"]), meant("x", ["size"])
    ('age', 'height', None)
    """
    known = list(names)
    alike = [name for name in known if name.lower() == asked.lower()]
    near = alike or difflib.get_close_matches(asked, known, n=1, cutoff=likeness)
    return near[0] if near else None


def suggesting(function: Callable[Given, Answer], beyond: Callable[..., Any] | None = None) -> Callable[Given, Answer]:
    """Decorate a function so that an option which it does not have is answered with one that it, or ``beyond``, has."""
    known = list(inspect.signature(function).parameters)
    if beyond is not None:
        known = list(dict.fromkeys([*known[:-1], *inspect.signature(beyond).parameters]))

    @functools.wraps(function)
    def call(*args: Given.args, **kwargs: Given.kwargs) -> Answer:
        unknown = next((name for name in kwargs if name not in known), None)
        if unknown is not None:
            near = meant(unknown, known)
            hint = f"; it has {', '.join(known)}" if near is None else f" (did you mean {near}?)"
            raise TypeError(f"{function.__name__} has no option {unknown!r}{hint}")
        return function(*args, **kwargs)

    return call


def rename_hint(missing: str, names: Iterable[str]) -> str:
    """Return what to do where a column is missing and another is spelt nearly alike; nothing if none is.

    Examples
    --------
    >>> rename_hint("Age", ["size", "age"]), rename_hint("x", ["size"])
    ("; it has 'age': rename that if it is 'Age'", '')
    """
    near = meant(missing, names)
    return "" if near is None else f"; it has {near!r}: rename that if it is {missing!r}"


def finite_array(name: str, value: Any, dtype: Any = None) -> np.ndarray[Any, Any]:
    """Return ``value`` as a real floating-point array without NaN or infinity; never a view to write to."""
    array = real_array(name, value, dtype)
    check_finite(name, array)
    return array


def real_array(name: str, value: Any, dtype: Any = None) -> np.ndarray[Any, Any]:
    """Return ``value`` as a real floating-point array, in which there may be NaN or infinity; never a view to write to."""
    refuse_masked(name, value)
    try:
        array = np.asarray(value)
    except ValueError as error:  # ragged nested lists
        raise ValueError(f"{name} must be a rectangular array of numbers ({error})") from None
    if array.dtype.kind in "biu":
        array = array.astype(np.float64)
    if array.dtype.kind != "f":
        is_labels = name == "y" and array.dtype.kind in "OU"
        remedy = (
            ": for labels that are text use dapsgd.DAPClassifier, or -1 and +1" if is_labels else _text_column(value, array)
        )
        raise TypeError(f"{name} must hold real numbers; got dtype {array.dtype}{remedy}")
    if dtype is None:
        dtype = array.dtype if array.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    return array.astype(dtype, copy=False)


def check_finite(name: str, array: np.ndarray[Any, Any]) -> None:
    """Raise ``ValueError`` if an entry is NaN or infinite."""
    if not all_finite(array):
        raise not_finite(name, *_first_not_finite(array))


def refuse_masked(name: str, value: Any) -> None:
    """Raise ``TypeError`` if entries of an array are masked: what is under the mask would be taken for data."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise TypeError(f"{name} must not be a masked array; fill or drop the masked entries first")


def refuse_dataset(value: Any) -> None:
    """Raise ``TypeError`` if X is what was read from a file, X and y together."""
    if hasattr(value, "X") and hasattr(value, "y") and not hasattr(value, "shape"):  # which a frame with such columns has
        raise TypeError(f"X must be a table of numbers; got a {type(value).__name__}, which holds one: use data.X and data.y")


def _text_column(frame: Any, array: np.ndarray[Any, Any]) -> str:
    """Name the first column of a data frame that holds text."""
    names = list(getattr(frame, "columns", ()))
    if array.ndim != 2 or len(names) != array.shape[1]:
        return ""
    text = next((name for k, name in enumerate(names) if any(isinstance(entry, str) for entry in array[:, k])), None)
    return "" if text is None else f": column {text!r} is text; code it as numbers, or drop it"


def not_finite(name: str, *where: int) -> ValueError:
    """Return the error that a number is NaN or infinite; its place is an entry, or a row and a column."""
    what = {1: ("entry",), 2: ("row", "column")}.get(len(where), ())
    place = ", ".join(f"{kind} {k}" for kind, k in zip(what, where, strict=False))
    return ValueError(
        f"{name} must not contain NaN or infinity{', as in ' * bool(place)}{place}; fill in or leave out such entries"
    )


def check_finite_sparse(name: str, matrix: Any) -> None:
    """Raise ``ValueError`` if an entry of a CSR or CSC matrix is NaN or infinite."""
    if not all_finite(matrix.data):
        matrix = matrix.tocsr()
        entry = int(np.argmin(np.isfinite(matrix.data)))
        row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
        raise not_finite(name, row, int(matrix.indices[entry]))


def _first_not_finite(array: np.ndarray[Any, Any]) -> tuple[int, ...]:
    """Return where the first entry is that is not finite, in blocks so that a memory map is not loaded whole."""
    rows = max(1, (1 << 22) // max(1, array[:1].size)) if array.ndim else 1
    for start in range(0, len(array) if array.ndim else 0, rows):
        finite = np.isfinite(array[start : start + rows])
        if not finite.all():
            first, *rest = np.unravel_index(int(np.argmin(finite)), finite.shape)
            return start + int(first), *map(int, rest)
    return ()


def all_finite(array: np.ndarray[Any, Any]) -> bool:
    """Tell whether every entry is finite, in blocks so that a memory map is not loaded whole."""
    if array.ndim == 0:
        return bool(np.isfinite(array))
    # Sums of finite numbers may overflow, so they can only prove finiteness, not disprove it. BLAS would leave threads awake.
    lines = array if abs(array.strides[0]) >= abs(array.strides[-1]) else array.T  # each of which lies together
    size = max(1, _ADDED_AT_ONCE // max(1, lines[:1].size))

    bad: list[int] = []  # once there is one nobody looks at more

    def look(start: int) -> None:
        block = lines[start : start + size]
        with np.errstate(over="ignore", invalid="ignore"):
            if not bad and not np.isfinite(block.sum()) and not np.isfinite(block).all():
                bad.append(start)

    for_each(range(0, len(lines), size), look, available_cores() if array.nbytes > WORTH_A_THREAD else 1)
    return not bad


def validated(**checks: Callable[[str, Any], Any]) -> Callable[[Term], Term]:
    """Decorate a NamedTuple class so that constructing it checks and normalises the named fields."""

    def decorate(kind: Term) -> Term:
        plain_new: Any = kind.__new__

        @functools.wraps(plain_new)  # so that help shows the fields
        def checked_new(cls: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                made = plain_new(cls, *args, **kwargs)
            except TypeError as error:
                raise _misfit(kind, len(args), kwargs) or error from None
            fields = {
                field: checks[field](f"{kind.__name__}: {field}", value) if field in checks else value
                for field, value in made._asdict().items()
            }
            return plain_new(cls, **fields)

        setattr(kind, "__new__", checked_new)  # noqa: B010  # a plain assignment is an error to mypy
        return kind

    return decorate


def _misfit(kind: Any, count: int, named: Mapping[str, Any]) -> TypeError | None:
    """Return what is wrong with so many arguments, and those by name, for a NamedTuple class; None if they fit."""
    fields, name = list(kind._fields), kind.__name__
    unknown = next((one for one in named if one not in fields), None)
    if unknown is not None:
        near = "lam" if unknown in _STRENGTH and "lam" in fields else meant(unknown, fields)
        return TypeError(f"{name} has no {unknown!r}" + (f"; it has {', '.join(fields)}" if near is None else f": use {near}"))
    missing = [one for one in fields[count:] if one not in named and one not in kind._field_defaults]
    if not missing:
        return None
    example = ", ".join(f"{one}=..." for one in missing)
    lam = ", the strength," if missing[0] == "lam" else ""
    return TypeError(f"{name}: {missing[0]}{lam} must be given, as in {name}({example})")


def _show(value: Any) -> str:
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"
