"""What the first lines of a table in text tell: how columns are separated, and whether they have names."""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from .._arguments import argument
from ..errors import FileFormatError
from ._numbers import is_missing, is_number, to_number
from ._source import Column, Options
from ._text import check_text, open_lines

__all__ = ["Layout", "look"]

_FEW = 4  # numbers that rise or fall by chance in less than one row of ten
_MANY = 8  # numbers that do so in no row


class Layout(NamedTuple):
    """What the first lines tell."""

    delimiter: str
    decimal: str
    encoding: str | None  # if it is not UTF-8
    skip_lines: int  # at the top, whatever they are
    names: list[str] | None
    width: int
    first: list[str]  # the first row of data
    second: list[str]  # the row after it, empty if there is none
    skip: int  # lines before the first row, those at the top included
    longest: int  # bytes in a line, as far as seen

    def name(self, j: int) -> Column:
        """Return what a column is called."""
        return j if self.names is None else self.names[j]

    def could_be_number(self, field: str) -> bool:
        """Tell whether a field belongs to a column of numbers."""
        return is_missing(field) or is_number(field, self.decimal)


def look(path: Path, options: Options) -> Layout:
    """Look at the first lines."""
    decimal, above = options.decimal or ".", options.skip_lines or 0
    with open_lines(path, options.encoding, above) as (lines, _):
        start = _first_filled(lines)
        line = start[-1] if start else ""
        check_text(path, options.encoding, line, above + len(start))
        delimiter = _delimiter(line, decimal)
        rows = csv.reader(itertools.chain(start, lines), delimiter=delimiter, strict=True)
        before, found = above, []
        for row in rows:
            if row:
                found.append((row, before))
            before = above + rows.line_num
            if len(found) == 3:
                break
    if not found:
        rest = f" below the lines left out with {argument('skip_lines')}" if above else ""
        raise FileFormatError(f"{path} is empty{rest}")
    top, skip = found[0]
    header = _has_header(path, [row for row, _ in found], skip + 1, options)
    if header and len(found) == 1:
        raise FileFormatError(f"{path} has a header but no rows")
    first, skip = found[1] if header else found[0]
    if header and len(first) != len(top):
        raise FileFormatError(
            f"{path}: line {skip + 1} has {len(first)} fields; the header has {len(top)}; if it is further down, leave out the "
            f"lines above it with {argument('skip_lines')}"
        )
    after = [row for row, _ in found[1 + header :]]
    names = [field.strip() for field in top] if header else None
    longest = 8 * max(len(line), len(delimiter.join(first)))
    second = after[0] if after else []
    return Layout(delimiter, decimal, options.encoding, above, names, len(top), first, second, skip, longest)


def _first_filled(lines: Iterator[str]) -> list[str]:
    """Take lines up to the first that is not blank."""
    taken = []
    for line in lines:
        taken.append(line)
        if line.strip():
            break
    return taken


def _delimiter(line: str, decimal: str) -> str:
    """Return what separates the columns: not the comma, if it may be within numbers and there is something else."""
    if decimal == "," and any(sign in line for sign in "\t;"):
        return max("\t;", key=line.count)
    return max(",\t;", key=line.count)


def _has_header(path: Path, rows: list[list[str]], line: int, options: Options) -> bool:
    """Tell whether the first row is names; ask if it may be either."""
    decimal, top = options.decimal or ".", rows[0]
    second = rows[1] if len(rows) > 1 else []
    if options.header is not None:
        words = not any(is_missing(field) or is_number(field, decimal) for field in top)
        if not options.header and words and any(is_missing(field) or is_number(field, decimal) for field in second):
            leave_out = f"leave {argument('header', False)} out"
            raise FileFormatError(f"{path}: line {line} holds nothing but text, as a header does; {leave_out}")
        return options.header
    found = _share_of_names(top, options.features or ())
    if found == 1.0:
        return True
    text = any(not is_missing(field) and not is_number(field, decimal) for field in top)
    values = _values(top, decimal)
    doubt = ""
    if text and _look_like_data(values, len(top)):
        doubt = "most of it are numbers in no order"
    elif not text and found >= 0.5:
        doubt = "it holds some of the names that are looked for"
    elif not text and len(values) >= len(top) - 1 and _look_like_names(values, _values(second, decimal)):
        doubt = "its numbers are in order, and those of the next line are not"
    elif not text and len(values) >= len(top) - 1 and _look_like_labels(values, _values(second, decimal)):
        doubt = "its numbers are whole and all different, and those of the next line are not"
    if doubt:
        either = " or ".join(argument("header", flag) for flag in (True, False))
        raise FileFormatError(f"{path}: line {line} may be names or a row, as {doubt}; say {either}")
    return text


def _values(fields: Sequence[str], decimal: str) -> list[float]:
    return [to_number(field, decimal) for field in fields if not is_missing(field) and is_number(field, decimal)]


def _share_of_names(fields: Sequence[str], wanted: Sequence[str]) -> float:
    """Return the share of the names wanted that stand in a line, 900 also as 900.0; none do if something stands there twice."""

    def key(name: str) -> str | float:
        return float(name) if is_number(name) and not is_missing(name) else name

    there = {key(field.strip()) for field in fields}
    if not wanted or len(there) != len(fields):
        return 0.0
    return sum(key(name) in there for name in wanted) / len(wanted)


def _order(values: Sequence[float]) -> int:
    """Return 1 if numbers rise, -1 if they fall, 0 if they do neither."""
    steps = [after - before for before, after in itertools.pairwise(values)]
    return all(step > 0.0 for step in steps) - all(step < 0.0 for step in steps)


def _look_like_data(values: list[float], count: int) -> bool:
    """Tell whether most of a line are numbers with a point that neither rise nor fall, as wavelengths do that name columns."""
    return len(values) >= max(3, count // 2) and not _order(values) and any(not value.is_integer() for value in values)


def _look_like_names(values: list[float], below: list[float]) -> bool:
    """Tell whether numbers rise or fall as wavelengths do that name columns, while those of the next line do not.

    Few numbers may do so by chance: they must be evenly spaced, or unlike all of the next line.
    """
    order = _order(values)
    if len(values) < _FEW or not below or not order or _order(below) == order:
        return False
    steps = [after - before for before, after in itertools.pairwise(values)]
    even = all(math.isclose(step, steps[0], rel_tol=1e-6) for step in steps)
    unlike = all(not min(values) <= value <= max(values) for value in below)
    return len(values) >= _MANY or even or unlike


def _look_like_labels(values: list[float], below: list[float]) -> bool:
    """Tell whether many numbers are whole and all different, as wavelengths in any order, while the next line's are not."""
    whole = all(value.is_integer() for value in values) and len(set(values)) == len(values)
    return len(values) >= _MANY and whole and sum(not value.is_integer() for value in below) > 0.5 * len(values)
