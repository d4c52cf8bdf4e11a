"""What is wrong with targets, in words; where scikit-learn refuses them its own say less."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._checks import not_finite, refuse_masked

__all__ = ["explained", "find_fault"]

Array = np.ndarray[Any, Any]


@contextmanager
def explained(X: Any, y: Any, classes: bool) -> Iterator[None]:
    """Within this, an error is about y if something is wrong with y, and then says what; of X it is left as it is."""
    refuse_masked("y", y)
    try:
        yield
    except (ValueError, TypeError) as error:
        fault = None if str(error).startswith("X ") else find_fault(_rows(X), y, classes)
        if fault is None:
            raise
        raise fault from error


def find_fault(rows: int | None, y: Any, classes: bool) -> ValueError | TypeError | None:
    """Return the error that targets are wrong, for classes or for numbers; None if nothing is found."""
    if y is None:
        return None  # which scikit-learn says well
    if hasattr(y, "tocsr"):
        return TypeError("y must be an array, not a sparse matrix; use y.toarray()")
    try:
        values = np.asarray(y)
    except ValueError:
        return ValueError("y must have the same number of entries in every row; got rows of different lengths")
    return _shape_fault(rows, values, classes) or (_label_fault(values) if classes else _number_fault(values))


def _rows(X: Any) -> int | None:
    """Return the number of rows; None if X is not two-dimensional, which scikit-learn says well."""
    if hasattr(X, "shape"):
        return int(X.shape[0]) if len(X.shape) == 2 else None
    return len(X) if isinstance(X, (list, tuple)) and all(np.ndim(row) == 1 for row in X[:1]) else None


def _shape_fault(rows: int | None, y: Array, classes: bool) -> ValueError | TypeError | None:
    if y.ndim == 0:
        return TypeError(f"y must be an array with an entry for each row of X; got {y.item()!r}")
    if classes and (y.ndim > 2 or (y.ndim == 2 and y.shape[1] != 1)):
        return ValueError(f"y must be one-dimensional, with a label for each row of X; got shape {y.shape}")
    if y.ndim > 2:
        return ValueError(f"y must be one-dimensional, or two-dimensional for several targets; got shape {y.shape}")
    if rows is not None and len(y) != rows:
        return ValueError(f"y must have an entry for each of the {rows} rows of X; got {len(y)}, shape {y.shape}")
    return None


def _number_fault(y: Array) -> ValueError | TypeError | None:
    if y.dtype.kind == "c":
        return None  # scikit-learn's words are expected
    if y.dtype.kind in "biuf":
        return _finite_fault(y)
    for k, value in enumerate(y.ravel()):
        if _is_missing(value):
            return not_finite("y", *_place(k, y))
        try:
            float(value)
            text = isinstance(value, (str, bytes))
        except (ValueError, TypeError):
            text = True
        if text:
            shown = value.item() if isinstance(value, np.generic) else value
            return TypeError(
                f"y must hold numbers; got {_short(shown)} ({type(shown).__name__}) in {_named(_place(k, y))}: "
                "convert it to numbers, or use DAPClassifier for classes"
            )
    return None


def _label_fault(y: Array) -> ValueError | TypeError | None:
    if y.dtype.kind == "f":
        fault = _finite_fault(y)
        if fault is None and (y != np.floor(y)).any():
            place = int(np.argmax(y.ravel() != np.floor(y.ravel())))
            fault = ValueError(
                f"Unknown label type: continuous. y must hold classes; got {y.ravel()[place]:.6g} in entry {place}: "
                "use DAPRegressor for numbers, or make classes of them"
            )
        return fault
    if y.dtype.kind != "O":
        return None
    kinds: dict[str, int] = {}
    for k, value in enumerate(y.ravel()):
        if _is_missing(value):
            return ValueError(
                f"y must hold a label in every entry; got {value!r} in entry {k}: fill it in or leave out the row"
            )
        kinds.setdefault(_kind(value), k)
    if len(kinds) < 2:
        return None
    (one, first), (other, second) = list(kinds.items())[:2]
    return ValueError(
        f"Unknown label type: mixed. y must hold labels of one kind; got {one} in entry {first} and {other} in entry {second}"
    )


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return "text"
    return "a number" if isinstance(value, (int, float, np.number)) else type(value).__name__


def _finite_fault(y: Array) -> ValueError | None:
    wrong = ~np.isfinite(y)
    return not_finite("y", *_place(int(np.argmax(wrong)), y)) if wrong.any() else None


def _is_missing(value: Any) -> bool:
    """Tell whether an entry is None, NaN, or what pandas has for these, which cannot be compared."""
    return value is None or (not isinstance(value, str) and str(value) in ("nan", "NaT", "<NA>"))


def _place(k: int, y: Array) -> tuple[int, ...]:
    return tuple(int(j) for j in np.unravel_index(k, y.shape))


def _named(place: tuple[int, ...]) -> str:
    return f"entry {place[0]}" if len(place) == 1 else f"row {place[0]}, column {place[1]}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
