"""Data frames: the names of their columns, and what is wrong with which."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._checks import all_finite, refuse_dataset, refuse_masked, rename_hint
from .._summaries import counted

__all__ = [
    "by_columns",
    "check_frame",
    "compare_names",
    "count_places",
    "listed",
    "names_of",
    "names_of_targets",
    "naming_text",
    "own_names",
    "picked",
    "refuse_text_columns",
    "refuse_unusable",
]

_ARROW_NUMBERS = ("int", "uint", "float", "halffloat", "double", "decimal", "bool")


@contextmanager
def naming_text(X: Any) -> Iterator[None]:
    """Say which columns of a data frame are not numbers, where scikit-learn says only that some value is not."""
    try:
        yield
    except (ValueError, TypeError) as error:
        text = [name for name, kind in _kinds(X) if not _is_number(kind)]
        if not text or "feature names" in str(error):  # which is about other columns than those it was fitted to
            raise
        raise not_numbers(text) from error


def _kinds(X: Any) -> list[tuple[str, Any]]:
    """Return the names of the columns of a pandas or polars frame, or an Arrow table, with what they hold; none of an array."""
    if hasattr(X, "column_names"):
        return list(zip(map(str, X.column_names), X.schema.types, strict=True))
    frame = hasattr(X, "columns") and hasattr(X, "dtypes")
    return list(zip(map(str, X.columns), X.dtypes, strict=True)) if frame else []


def _is_number(kind: Any) -> bool:
    """Tell whether a column holds numbers: pandas' kinds say so by a letter, polars' by a method, Arrow's by their names."""
    if hasattr(kind, "is_numeric"):
        return bool(kind.is_numeric() or str(kind) == "Boolean")
    return kind.kind in "biufc" if hasattr(kind, "kind") else str(kind).startswith(_ARROW_NUMBERS)


def _is_time(kind: Any) -> bool:
    """Tell whether a column holds dates, times or what is between them."""
    if hasattr(kind, "is_temporal"):
        return bool(kind.is_temporal())
    return kind.kind in "mM" if hasattr(kind, "kind") else str(kind).startswith(("date", "time", "duration"))


def refuse_times(X: Any) -> None:
    """Raise if there are dates or times: where there is nothing else NumPy takes them for counts of their units."""
    kinds = _kinds(X)
    if any(_is_time(kind) for _, kind in kinds):
        raise not_numbers([name for name, kind in kinds if not _is_number(kind)])
    if isinstance(X, np.ndarray) and X.dtype.kind in "mM":
        raise TypeError(f"X must hold real numbers; got dtype {X.dtype}: code dates and times as numbers, or drop them")


def not_numbers(columns: list[str]) -> ValueError:
    """Return what to say of columns that hold no numbers."""
    shown = ", ".join(map(repr, columns[:5])) + (", ..." if len(columns) > 5 else "")
    which, them = ("columns", "them") if len(columns) > 1 else ("column", "it")
    return ValueError(f"X must hold numbers only; code {which} {shown} as numbers, or drop {them}")


def refuse_text_columns(X: Any) -> None:
    """Raise if columns of a pandas or polars frame are text: digits, as of a sample's number, would be taken for numbers."""
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        return
    first = X.iloc[0] if hasattr(X, "iloc") and len(X) else None  # a column of objects may hold anything
    text = [
        str(name)
        for j, (name, kind) in enumerate(zip(X.columns, X.dtypes, strict=True))
        if str(kind) in ("str", "string", "String")
        or (str(kind) == "object" and first is not None and isinstance(first.iloc[j], str))
    ]
    if text:
        raise not_numbers(text)


def refuse_unusable(X: Any) -> None:
    """Raise if X is no table of numbers, or if two of its columns have one name."""
    refuse_dataset(X)
    refuse_masked("X", X)
    refuse_twice(X)
    refuse_flat(X)
    refuse_times(X)
    refuse_text(X)
    if getattr(getattr(X, "dtype", None), "kind", "") == "c":
        raise ValueError(f"X must hold real numbers. Complex data not supported; got dtype {X.dtype}")


def refuse_text(X: Any) -> None:
    """Raise if an array or a list of lists has text or dates in its first row: NumPy would take digits for numbers."""
    listed = isinstance(X, (list, tuple))
    if not (listed or (isinstance(X, np.ndarray) and X.dtype.kind in "USO" and X.ndim == 2)) or len(X) == 0:
        return
    row = X[0] if not listed or isinstance(X[0], (list, tuple, np.ndarray)) else ()
    text = next((value for value in row if isinstance(value, (str, bytes))), None)
    time = next((value for value in row if isinstance(value, (np.datetime64, np.timedelta64))), None)
    if time is not None:
        raise TypeError(f"X must hold real numbers; got {time!r}: code its column as numbers, or drop it")
    if text is not None:
        raise ValueError(f"X must hold numbers only; got the text {str(text)!r}: code its column as numbers, or drop it")


def refuse_flat(X: Any) -> None:
    """Raise if X is a single value, a row or a column: scikit-learn would print all of it."""
    if X is None or np.isscalar(X):
        raise ValueError(f"X must be a table of numbers, rows and columns; got {X!r:.80}")
    flat = len(getattr(X, "shape", ("rows", "columns"))) == 1  # of a list of lists nothing is known yet
    if isinstance(X, (list, tuple)):
        flat = len(X) > 0 and np.ndim(X[0]) == 0
    if not flat:
        return
    if hasattr(X, "to_frame"):
        column, row = "X.to_frame()", "X.to_frame().transpose()"
    elif hasattr(X, "reshape"):
        column, row = "X.reshape(-1, 1)", "X.reshape(1, -1)"
    else:
        column, row = "[[x] for x in X]", "[X]"
    raise ValueError(
        f"X must have two dimensions, rows and columns; got one, of {counted(len(X), 'value')}. Reshape your data: "
        f"{column} if they are one column, {row} if they are one row"
    )


def refuse_twice(X: Any) -> None:
    """Raise if two columns of a frame have one name."""
    names = names_of(X) or []
    twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if twice is not None:
        raise ValueError(f"X must have one column named {twice!r}; it has {names.count(twice)}")


def names_of(X: Any) -> list[str] | None:
    """Return the names of a frame's or an Arrow table's columns; None if it is neither."""
    if hasattr(X, "column_names"):
        return list(map(str, X.column_names))
    return list(map(str, X.columns)) if hasattr(X, "columns") and hasattr(X, "dtypes") else None


def own_names(X: Any) -> list[str] | None:
    """Return the names of a frame's columns, also if they are numbers, such as wavelengths; None if they are only places."""
    names = names_of(X)
    return None if names is None or names == list(map(str, range(len(names)))) else names


def by_columns(groups: Any, X: Any) -> Any:
    """Return the groups of columns; of a pandas series that has the names of a frame's columns in the order of these."""
    if not hasattr(groups, "iloc") or getattr(groups, "ndim", 1) != 1:
        return groups
    names, index = names_of(X), list(groups.index)
    if names is None:  # an array, perhaps of a step before in a pipeline
        if index and all(isinstance(name, str) for name in index):
            raise ValueError(
                f"groups has names as its index, {listed(index, 2)}, but X has none to match them with; give groups.to_list() "
                "if they are in the order of the columns, or keep the names: set_output(transform='pandas') of a pipeline does"
            )
        return groups
    if index == list(range(len(index))) and type(groups.index).__name__ == "RangeIndex":  # which nobody has named
        return groups
    places = {str(name): place for place, name in enumerate(index)}
    if len(places) < len(index):
        raise ValueError("groups must have one entry for each column where its index names them; it has one of them twice")
    for wrong, fault in (
        ([name for name in names if name not in places], "it has nothing for"),
        ([name for name in places if name not in set(names)], "X has no"),
    ):
        if wrong:
            raise ValueError(
                f"groups must have the names of the columns of X as its index, in any order; {fault} {listed(wrong)}. "
                "By position, give groups.to_list()"
            )
    labels = list(groups)
    return [labels[places[name]] for name in names]


def count_places(X: Any) -> int:
    """Return how many columns a frame has if their names are their places, as numbers; 0 otherwise."""
    names = names_of(X)
    return len(names) if names and own_names(X) is None and not _has_text_names(X) else 0


def names_of_targets(y: Any) -> list[str] | None:
    """Return the names of targets: of a frame's columns, or of a series."""
    name = getattr(y, "name", None)
    return [name] if isinstance(name, str) and name and getattr(y, "ndim", 1) == 1 else names_of(y)


def compare_names(X: Any, names: Sequence[str] | None, in_file: Any = None, places: int = 0) -> None:
    """Raise if a frame has other columns than those of the fit, or another order; scikit-learn knows only names that are text.

    Parameters
    ----------
    X : array, frame or table
        What is to be predicted.
    names : sequence of str, optional
        The columns of the fit, where scikit-learn does not know them.
    in_file : list of str, optional
        The columns of which the file of the model says that it was fitted to them.
    places : int, optional
        How many columns the frame of the fit had, if their names were their places; with names of which some are among these.
    """
    there = own_names(X)
    if names is None and places and there is not None and not _has_text_names(X):
        numbers = list(map(str, range(places)))
        names = None if set(numbers).isdisjoint(there) else numbers  # others, such as wavelengths, are names for these places
    if names is not None and there is None and sorted(names_of(X) or []) == sorted(names):
        there = names_of(X)  # the names of the fit are places, too, in another order
    if names is None or there is None or list(names) == there:
        return
    missing, others = [name for name in names if name not in there], [name for name in there if name not in names]
    if missing:
        hint = rename_hint(missing[0], others)
        raise ValueError(
            f"X lacks {len(missing)} of the {len(names)} columns that the model was fitted to: {listed(missing)}{hint}"
        )
    wrong = f"it also has {listed(others)}" if others else "their order is another one"
    remedy = f"they are {listed(list(names))}"
    if in_file == list(names) and _has_text_names(X):
        remedy = picked(X, "model.metadata_['feature_names']") + " has them"
    elif not others and _in_order(X) == list(names):
        remedy = "X[sorted(X.columns)] has them in their order"
    raise ValueError(f"X must have the columns of the fit, in their order, and no others; {wrong}\n{remedy}")


def _in_order(X: Any) -> list[str] | None:
    """Return the names of a frame's columns as they are when it is sorted by them; None if they cannot be."""
    try:
        return list(map(str, sorted(X.columns)))
    except (AttributeError, TypeError):
        return None


def _has_text_names(X: Any) -> bool:
    """Tell whether the names of a frame's columns are text."""
    return all(isinstance(name, str) for name in getattr(X, "column_names", None) or X.columns)


def picked(X: Any, names: str) -> str:
    """Return how to write that some columns are picked from a frame or an Arrow table."""
    return f"X.select({names})" if hasattr(X, "column_names") else f"X[{names}]"


def listed(names: list[str], most: int = 5) -> str:
    """Return the first names of a list, and how many more there are.

    Examples
    --------
    >>> listed(["a", "b"]), listed(["a", "b", "c"], most=1)
    ("'a', 'b'", "'a' and 2 more")
    """
    return ", ".join(map(repr, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")


def check_frame(X: Any, read: Any) -> None:
    """Say which columns of a data frame have numbers that are NaN or infinite, and how many."""
    names = names_of(X)
    if names is None or not isinstance(read, np.ndarray) or all_finite(read):
        return
    counts = (~np.isfinite(read)).sum(axis=0).tolist()
    bad = [
        f"{name!r} in {'all rows' if k == len(read) else counted(k, 'row')}" for name, k in zip(names, counts, strict=True) if k
    ]
    shown = ", ".join(bad[:5]) + (f" and {len(bad) - 5} more" if len(bad) > 5 else "")
    raise ValueError(f"X must not contain NaN or infinity, as it does in {shown}; fill in or leave out such entries")
