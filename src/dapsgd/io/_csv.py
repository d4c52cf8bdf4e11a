"""Tables in text: CSV, TSV, and the like."""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from .._arguments import argument
from ..errors import FileFormatError
from ._columns import Picked, pick
from ._dataset import Array
from ._source import (
    BLOCK_BYTES,
    Block,
    Column,
    Options,
    Skipped,
    Source,
    UnusableError,
    empty_columns,
    missing_value,
    open_bytes,
    reading,
)

__all__ = ["look", "open_source"]

_USED = frozenset({"target", "drop", "features", "header", "dtype", "skip_missing", "keep"})
_MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "-nan", "null", "none", "?", "."})
_ARROW_BLOCK = 1 << 20  # bytes: pyarrow reads some thirty of these ahead
_WORTH_ARROW = 1 << 20  # bytes: importing pyarrow takes as long as reading this


class _Layout(NamedTuple):
    """What the first lines tell."""

    delimiter: str
    names: list[str] | None
    width: int
    first: list[str]  # the first row of data
    skip: int  # lines before it
    longest: int  # bytes in a line, as far as seen


def look(path: Path, options: Options) -> tuple[int, list[str] | None]:
    """Return the number of columns and their names, None without a header."""
    layout = _look(path, options)
    return layout.width, layout.names


def open_source(path: Path, options: Options) -> Source:
    """Open a table for reading."""
    options.check(path, "a CSV file", _USED)
    layout = _look(path, options)
    picked = pick(path, layout.names, layout.width, options)
    _check_columns(path, layout, picked)
    text = len(picked.targets) == 1 and not _is_number(layout.first[picked.targets[0]])
    wanted = (*picked.features, *picked.targets)
    skipped = Skipped([str(j) if layout.names is None else layout.names[j] for j in wanted])

    def is_whole(row: list[str]) -> bool:
        missing = [_is_missing(row[j]) for j in wanted]
        if any(missing):
            skipped.count(np.array([missing]))
        return not any(missing)

    def blocks(report: Callable[[int], None]) -> Iterator[Block]:
        skipped.clear()
        if options.skip_missing:
            return _with_python(path, layout, picked, text, report, is_whole)
        # What is kept is copied as it is, line breaks between quotes included, on which pyarrow would stumble.
        if not picked.kept and path.stat().st_size >= _WORTH_ARROW and layout.skip <= 1 and _has_arrow():
            return _with_arrow(path, layout, picked, text, report)
        return _with_python(path, layout, picked, text, report)

    dtype = np.dtype(options.dtype or "float64")
    names = picked.feature_names, picked.target_names
    return Source(False, dtype, *names, blocks, skipped=skipped, kept_names=picked.kept_names)


def _look(path: Path, options: Options) -> _Layout:
    file, _ = open_bytes(path)
    with reading(path, "CSV", csv.Error), file:
        line = file.readline().decode("utf-8-sig")
        delimiter = max(",\t;", key=line.count)
        file.seek(0)
        rows = csv.reader(io.TextIOWrapper(file, "utf-8-sig", newline=""), delimiter=delimiter, strict=True)
        start, skip, found = 0, 0, []
        for row in rows:
            if row:
                found.append((row, start))
            start = rows.line_num
            if len(found) == 2:
                break
    if not found:
        raise FileFormatError(f"{path} is empty")
    top = found[0][0]
    header = options.header if options.header is not None else any(not _is_number(f) and not _is_missing(f) for f in top)
    if header and len(found) == 1:
        raise FileFormatError(f"{path} has a header but no rows")
    words = not any(_is_number(field) for field in top)
    if options.header is False and words and len(found) == 2 and any(_is_number(field) for field in found[1][0]):
        leave_out = f"leave {argument('header', False)} out"
        raise FileFormatError(f"{path}: line 1 holds nothing but text, as a header does; {leave_out}")
    if options.header is None and header and _looks_like_data(top):
        either = " or ".join(argument("header", flag) for flag in (True, False))
        raise FileFormatError(f"{path}: line 1 may be names or a row, as most of it are numbers in no order; say {either}")
    first, skip = found[1] if header else (top, 0)
    if header and len(first) != len(top):
        raise FileFormatError(f"{path}: line {skip + 1} has {len(first)} fields; the header has {len(top)}")
    names = [field.strip() for field in top] if header else None
    return _Layout(delimiter, names, len(top), first, skip, 8 * max(len(line), len(delimiter.join(first))))


def _looks_like_data(fields: list[str]) -> bool:
    """Tell whether most of a line are numbers with a point that neither rise nor fall, as wavelengths do that name columns."""
    values = [float(field) for field in fields if field.strip() and _is_number(field) and not _is_missing(field)]
    steps = [after - before for before, after in itertools.pairwise(values)]
    sorted_ = all(step > 0.0 for step in steps) or all(step < 0.0 for step in steps)
    return len(values) >= max(3, len(fields) // 2) and not sorted_ and any(not value.is_integer() for value in values)


def _check_columns(path: Path, layout: _Layout, picked: Picked) -> None:
    """Name all columns that start with text at once, rather than one with each attempt."""
    text = [j for j in picked.features if not _is_number(layout.first[j])]
    columns = [_column(layout, j) for j in text]
    commas = [j for j in text if "," in layout.first[j] and _is_number(layout.first[j].replace(",", ".", 1))]
    if commas:
        where = f"{path}: line {layout.skip + 1}, column {_column(layout, commas[0])}"
        raise FileFormatError(f"{where}: {layout.first[commas[0]]!r} has a decimal comma; write numbers with a point")
    if len(columns) > 1:
        more = f" and {len(columns) - 8} more" if len(columns) > 8 else ""
        drop = argument("drop", [_name(layout, j) for j in text[:8]])
        raise UnusableError.of(
            f"{path}: line {layout.skip + 1} has text in columns {', '.join(columns[:8])}{more}",
            f"code them as numbers, or leave them out with {drop}{' and so on' * bool(more)}",
        )


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return _is_missing(field)
    return True


def _is_missing(field: str) -> bool:
    return field.strip().lower() in _MISSING


def _has_arrow() -> bool:
    try:
        import pyarrow.csv  # noqa: F401
    except ImportError:
        return False
    return True


def _with_python(
    path: Path,
    layout: _Layout,
    picked: Picked,
    text: bool,
    report: Callable[[int], None],
    is_wanted: Callable[[list[str]], bool] = bool,
) -> Iterator[Block]:
    """Read with the standard library: slower, and the one that knows the line of every error."""
    size = max(1, BLOCK_BYTES // (8 * layout.width))
    file, tell = open_bytes(path)
    with reading(path, "CSV", csv.Error), file:
        rows: list[list[str]] = []
        lines: list[int] = []
        for row, line in _rows(path, file, layout):
            if not is_wanted(row):
                continue
            rows.append(row)
            lines.append(line)
            if len(rows) == size:
                yield _parse(path, layout, picked, text, rows, lines)
                report(tell())
                rows, lines = [], []
        if rows:
            yield _parse(path, layout, picked, text, rows, lines)


def _rows(path: Path, file: BinaryIO, layout: _Layout) -> Iterator[tuple[list[str], int]]:
    """Give the rows of an open file, each with its line."""
    with io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
        reader = csv.reader(text, delimiter=layout.delimiter, strict=True)
        for row in reader:
            if not row or reader.line_num <= layout.skip:
                continue
            if len(row) != layout.width:
                raise FileFormatError(f"{path}: line {reader.line_num} has {len(row)} fields; there should be {layout.width}")
            yield row, reader.line_num


def _check_empty(path: Path, layout: _Layout, picked: Picked) -> None:
    """Look for columns without any value; they are named, as leaving out rows would leave nothing."""
    empty = [j for j in (*picked.features, *picked.targets) if _is_missing(layout.first[j])]
    file, _ = open_bytes(path)
    with reading(path, "CSV", csv.Error), file:
        for row, _ in _rows(path, file, layout):
            empty = [j for j in empty if _is_missing(row[j])]
            if not empty:
                return
    targets = [_name(layout, j) for j in empty if j in picked.targets]
    raise empty_columns(path, [_name(layout, j) for j in empty if j not in picked.targets], targets)


def _parse(path: Path, layout: _Layout, picked: Picked, text: bool, rows: list[list[str]], lines: Sequence[int]) -> Block:
    def numbers(columns: list[int]) -> Array:
        try:
            block = np.array([[float(row[j]) for j in columns] for row in rows])
            if np.isfinite(block).all():
                return block
        except ValueError:
            pass
        for row, line in zip(rows, lines, strict=True):
            for j in columns:
                if _is_missing(row[j]):
                    _check_empty(path, layout, picked)
                _check_number(path, layout, j, row[j], line)
        raise AssertionError("a value that is no number must have been found")

    X, kept = numbers(picked.features), [[row[j] for row in rows] for j in picked.kept]
    if text:
        labels = np.array([row[picked.targets[0]].strip() for row in rows], dtype=object)
        if not all(labels):
            line = lines[list(labels).index("")]
            raise missing_value(f"{path}: line {line}, column {_column(layout, picked.targets[0])}")
        return Block(X, labels, kept)
    return Block(X, _shaped(numbers(picked.targets)) if picked.targets else None, kept)


def _shaped(y: Array) -> Array:
    return y[:, 0] if y.shape[1] == 1 else y


def _column(layout: _Layout, j: int) -> str:
    return repr(_name(layout, j))


def _name(layout: _Layout, j: int) -> Column:
    return j if layout.names is None else layout.names[j]


def _check_number(path: Path, layout: _Layout, j: int, field: str, line: int) -> None:
    where = f"{path}: line {line}, column {_column(layout, j)}"
    if _is_missing(field):
        raise missing_value(where)
    try:
        value = float(field)
    except ValueError:
        raise UnusableError.of(
            f"{where}: {field[:40]!r} is not a number",
            f"correct it, or code the column as numbers, or leave it out with {argument('drop')}",
        ) from None
    if not math.isfinite(value):
        raise FileFormatError(
            f"{where}: {field[:40]!r} is not finite; correct it, or leave the column out with {argument('drop')}"
        )


def _with_arrow(path: Path, layout: _Layout, picked: Picked, text: bool, report: Callable[[int], None]) -> Iterator[Block]:
    """Read with pyarrow, many times faster; where it stumbles the other reader goes on, and says what is wrong, if anything."""
    import pyarrow as pa
    import pyarrow.csv as arrow

    columns = [str(j) for j in range(layout.width)]
    wanted = [columns[j] for j in [*picked.features, *picked.targets]]
    types = dict.fromkeys(wanted, pa.float64())
    if text:
        types[wanted[-1]] = pa.string()
    file, tell = open_bytes(path)
    done = 0
    try:
        with reading(path, "CSV", pa.ArrowInvalid, pa.ArrowKeyError), file:
            batches = arrow.open_csv(
                file,
                arrow.ReadOptions(column_names=columns, skip_rows=layout.skip, block_size=max(_ARROW_BLOCK, layout.longest)),
                arrow.ParseOptions(delimiter=layout.delimiter),
                arrow.ConvertOptions(column_types=types, include_columns=wanted),
            )
            with batches:
                for batch in batches:
                    if batch.num_rows:
                        yield _from_batch(batch, len(picked.features), text)
                        done += batch.num_rows
                        report(tell())
    except FileFormatError:
        for X, y, _ in _with_python(path, layout, picked, text, report):
            if len(X) > done:
                yield Block(X[done:], None if y is None else y[done:])
            done = max(done - len(X), 0)


def _from_batch(batch: Any, features: int, text: bool) -> Block:
    arrays = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
    X = np.column_stack(arrays[:features])
    y: Array | None
    if text:
        y = np.array([label.strip() for label in arrays[-1]], dtype=object)
        whole = bool(np.isfinite(X).all()) and all(y)
    else:
        y = _shaped(np.column_stack(arrays[features:])) if len(arrays) > features else None
        whole = bool(np.isfinite(X).all()) and (y is None or bool(np.isfinite(y).all()))
    if not whole:
        raise FileFormatError("a value is missing or not finite")
    return Block(X, y)
