"""Groups of columns, and weights, as the command line gives them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from .._summaries import group_labels
from ..regularizers._groups import ROOT

__all__ = ["ROOT", "group_weights", "parse_groups", "parse_weights"]

_PREFIX = "prefix:"
_BY_GROUP = ("group_lasso", "sparse_group_lasso")


def parse_groups(text: str | None, p: int, names: tuple[str, ...] | None) -> Any:
    """Return groups as estimators take them: a size, or a label per column.

    ``text`` is an integer, ``prefix:_``, which puts columns together whose names are the same up to the first underscore (any
    text may stand there), or a file with a line per column: its label, or its name and its label with a comma in between.

    Examples
    --------
    >>> parse_groups("5", 20, None)
    5
    >>> parse_groups("prefix:_", 3, ("red_1", "red_2", "blue_1"))
    ['red', 'red', 'blue']
    """
    if text is None:
        return None
    if text.lstrip("+-").isdigit():
        if int(text) < 1 or p % int(text):
            raise ValueError(
                f"--groups {text} must be a size that divides the {p} columns; for groups of different sizes give "
                "prefix:TEXT or a file with a label for each column"
            )
        return int(text)
    if text.startswith(_PREFIX):
        mark = text[len(_PREFIX) :]
        if not mark:
            raise ValueError("--groups prefix: must be followed by what ends a prefix, such as prefix:_")
        if names is None:
            raise ValueError(f"--groups {text} needs columns with names, and the data have none")
        if not any(mark in name for name in names):
            raise ValueError(f"--groups {text} finds no {mark!r} in any name of a column, such as {names[0]!r}")
        return [name.split(mark)[0] for name in names]
    path = Path(text)
    if not path.is_file():
        raise ValueError(f"--groups must be an integer, prefix:TEXT or a file; there is no file {text!r}")
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    except UnicodeDecodeError:
        raise ValueError(f"--groups: {path} must be a text file") from None
    if len(lines) != p:
        title = f": if its first line, {lines[0][:40]!r}, is a title, delete it" if len(lines) == p + 1 else ""
        raise ValueError(f"--groups: {path} must have a line for each of the {p} columns; it has {len(lines)}{title}")
    if names is None or any("," not in line for line in lines):
        return lines
    labels = {name.strip(): label.strip() for name, _, label in (line.rpartition(",") for line in lines)}
    missing = [name for name in names if name not in labels]
    if missing:
        raise ValueError(f"--groups: {path} has no line for the column {missing[0]!r}")
    return [labels[name] for name in names]


def parse_weights(text: str | None, penalty: str, groups: str | None) -> list[float] | str | None:
    """Return weights as numbers, or ``ROOT`` for the roots of the sizes of groups; say what is wrong before data are read.

    Examples
    --------
    >>> parse_weights("1,0.5", "slope", None), parse_weights("root", "group_lasso", "prefix:_")
    ([1.0, 0.5], 'root')
    """
    if text is None:
        return None
    if penalty not in (*_BY_GROUP, "slope"):
        raise ValueError(f"--weights must be left out unless --penalty is {', '.join(_BY_GROUP)} or slope; got {penalty}")
    if text.strip() == ROOT:
        if penalty == "slope":
            raise ValueError("--weights root is for groups; for --penalty slope give a number for each coefficient")
        if groups is None:
            raise ValueError("--weights root needs --groups: without, each column is a group of its own, all of one size")
        return ROOT
    return _parse_numbers(text, penalty)


def _parse_numbers(text: str, penalty: str) -> list[float]:
    """Return weights that are numbers."""
    root = "root, or " if penalty in _BY_GROUP else ""
    try:
        weights = [float(one) for one in text.split(",")]
    except ValueError:
        raise ValueError(f"--weights must be {root}numbers separated by commas, such as 1,0.5; got {text[:40]!r}") from None
    wrong = [one for one in weights if not (math.isfinite(one) and one >= 0.0)]
    if wrong:
        raise ValueError(f"--weights must be finite and >= 0; got {wrong[0]:g}")
    if penalty == "slope" and weights != sorted(weights, reverse=True):
        raise ValueError("--weights must be in decreasing order for --penalty slope; got numbers that increase")
    return weights


def group_weights(weights: list[float] | str | None, groups: Any, p: int, penalty: str) -> list[float] | None:
    """Return weights as estimators take them, given groups as they do; of slope they count the numbers themselves.

    Examples
    --------
    >>> group_weights("root", ["b", "a", "b", "b", "b"], 5, "group_lasso")
    [1.0, 2.0]
    """
    if weights is None or penalty == "slope":
        return None if weights is None else list(map(float, weights))
    sizes = np.bincount(group_labels(groups, p))
    if isinstance(weights, str):
        return [float(root) for root in np.sqrt(sizes)]
    if len(weights) != len(sizes):
        order = "" if groups is None or isinstance(groups, int) else f": {_listed(sorted(set(groups)))}"
        raise ValueError(f"--weights must be {len(sizes)} numbers, one for each group{order}; got {len(weights)}")
    return weights


def _listed(names: list[str], most: int = 8) -> str:
    """Return the first few of many names as text."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
