"""Groups of columns as the command line gives them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["parse_groups"]

_PREFIX = "prefix:"


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
        raise ValueError(f"--groups: {path} must have a line for each of the {p} columns; it has {len(lines)}")
    if names is None or any("," not in line for line in lines):
        return lines
    labels = {name.strip(): label.strip() for name, _, label in (line.rpartition(",") for line in lines)}
    missing = [name for name in names if name not in labels]
    if missing:
        raise ValueError(f"--groups: {path} has no line for the column {missing[0]!r}")
    return [labels[name] for name in names]
