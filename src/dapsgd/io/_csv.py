"""Tables in text: CSV, TSV, and the like."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .._arguments import argument
from ..errors import FileFormatError
from ._columns import Picked, pick
from ._dataset import Array
from ._first_lines import Layout
from ._first_lines import look as look_at
from ._numbers import TRUTH, is_missing, is_number, misread, to_number
from ._source import (
    BLOCK_BYTES,
    TEXT_OPTIONS,
    Block,
    Options,
    Skipped,
    Source,
    Table,
    UnusableError,
    empty_columns,
    missing_value,
)
from ._text import open_lines, reading_text

__all__ = ["USED", "look", "open_source"]

USED = frozenset({"target", "drop", "features", "dtype", "skip_missing", "keep", *TEXT_OPTIONS})
_ARROW_BLOCK = 1 << 20  # bytes: pyarrow reads some thirty of these ahead
_WORTH_ARROW = 1 << 20  # bytes: importing pyarrow takes as long as reading this


def look(path: Path, options: Options) -> Table:
    """Return the columns of a table, and where its rows start."""
    layout = look_at(path, options)
    return Table(layout.width, layout.names, layout.skip + 1)


def open_source(path: Path, options: Options) -> Source:
    """Open a table for reading."""
    layout = look_at(path, options)
    _check_width(path, layout, options)
    picked = pick(path, layout.names, layout.width, options, layout.first)
    _check_columns(path, layout, picked)
    text = len(picked.targets) == 1 and not layout.could_be_number(_first_value(path, layout, picked.targets[0]))
    wanted = (*picked.features, *picked.targets)
    skipped = Skipped([str(layout.name(j)) for j in wanted])

    def is_whole(row: list[str]) -> bool:
        missing = [is_missing(row[j]) for j in wanted]
        if any(missing):
            skipped.count(np.array([missing]))
        return not any(missing)

    def blocks(report: Callable[[int], None]) -> Iterator[Block]:
        skipped.clear()
        if options.skip_missing:
            return _with_python(path, layout, picked, text, report, is_whole)
        # What is kept is copied as it is, line breaks between quotes included, on which pyarrow would stumble.
        plain = not picked.kept and layout.encoding is None and layout.skip <= layout.skip_lines + 1
        if plain and path.stat().st_size >= _WORTH_ARROW and _has_arrow():
            return _with_arrow(path, layout, picked, text, report)
        return _with_python(path, layout, picked, text, report)

    dtype = np.dtype(options.dtype or "float64")
    names = picked.feature_names, picked.target_names
    return Source(False, dtype, *names, blocks, skipped=skipped, kept_names=picked.kept_names)


def _check_width(path: Path, layout: Layout, options: Options) -> None:
    """Say of a table of one column that it may be separated otherwise, if there should be more."""
    unknown = options.features is not None and not set(options.features) <= set(layout.names or ())
    if layout.width == 1 and (options.target or unknown):
        seen = layout.first[0] if layout.names is None else layout.names[0]
        raise FileFormatError(
            f"{path} seems to have one column only, {seen[:40]!r}; separate columns by commas, semicolons or tabs, and leave "
            f"out lines above the table with {argument('skip_lines')}"
        )


def _check_columns(path: Path, layout: Layout, picked: Picked) -> None:
    """Name all columns that start with text at once, rather than one with each attempt."""
    text = [j for j in picked.features if not layout.could_be_number(layout.first[j]) and not _is_truth(layout.first[j])]
    for j in text:
        _check_separators(path, layout, j, layout.first[j], layout.skip + 1)
    if layout.names is not None and text and _are_units(layout, picked.features, text):
        raise FileFormatError(
            f"{path}: line {layout.skip + 1} may be units or a second header, as the next holds numbers where it has text; "
            f"delete it, or if it is the header, leave out the lines above it with {argument('skip_lines', layout.skip)}"
        )
    columns = [_column(layout, j) for j in text]
    if len(columns) > 1:
        more = f" and {len(columns) - 8} more" if len(columns) > 8 else ""
        drop = argument("drop", [layout.name(j) for j in text[:8]])
        raise UnusableError.of(
            f"{path}: line {layout.skip + 1} has text in columns {', '.join(columns[:8])}{more}",
            f"code them as numbers, or leave them out with {drop}{' and so on' * bool(more)}",
        )


def _are_units(layout: Layout, features: list[int], text: list[int]) -> bool:
    """Tell whether the first row has text in nearly all features, and the second has numbers there."""
    if len(layout.second) != layout.width:
        return False
    filled = [j for j in features if not is_missing(layout.first[j])]
    turned = [j for j in text if is_number(layout.second[j], layout.decimal)]
    return 5 * len(turned) >= 4 * len(filled)


def _check_separators(path: Path, layout: Layout, j: int, field: str, line: int) -> None:
    """Refuse a number with a decimal comma, or with separators of thousands."""
    why = misread(field, layout.decimal)
    if why is not None:
        raise FileFormatError(f"{path}: line {line}, column {_column(layout, j)}: {field[:40]!r} {why[0]}; {why[1]}")


def _has_arrow() -> bool:
    try:
        import pyarrow.csv  # noqa: F401
    except ImportError:
        return False
    return True


def _with_python(
    path: Path,
    layout: Layout,
    picked: Picked,
    text: bool,
    report: Callable[[int], None],
    is_wanted: Callable[[list[str]], bool] = bool,
) -> Iterator[Block]:
    """Read with the standard library: slower, and the one that knows the line of every error."""
    size = max(1, BLOCK_BYTES // (8 * layout.width))
    with open_lines(path, layout.encoding, layout.skip_lines) as (found, tell):
        rows: list[list[str]] = []
        lines: list[int] = []
        for row, line in _rows(path, found, layout):
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


def _rows(path: Path, lines: Iterator[str], layout: Layout) -> Iterator[tuple[list[str], int]]:
    """Give the rows among the lines of a file, each with its line."""
    reader = csv.reader(lines, delimiter=layout.delimiter, strict=True)
    for row in reader:
        line = layout.skip_lines + reader.line_num
        if not row or line <= layout.skip:
            continue
        if len(row) != layout.width:
            raise FileFormatError(f"{path}: line {line} has {len(row)} fields; there should be {layout.width}")
        yield row, line


def _first_value(path: Path, layout: Layout, j: int) -> str:
    """Return the first field of a column that is not missing, the very first if all are."""
    if not is_missing(layout.first[j]):
        return layout.first[j]
    with open_lines(path, layout.encoding, layout.skip_lines) as (lines, _):
        return next((row[j] for row, _ in _rows(path, lines, layout) if not is_missing(row[j])), layout.first[j])


def _check_empty(path: Path, layout: Layout, picked: Picked) -> None:
    """Look for columns without any value; they are named, as leaving out rows would leave nothing."""
    empty = [j for j in (*picked.features, *picked.targets) if is_missing(layout.first[j])]
    with open_lines(path, layout.encoding, layout.skip_lines) as (lines, _):
        for row, _ in _rows(path, lines, layout):
            empty = [j for j in empty if is_missing(row[j])]
            if not empty:
                return
    targets = [layout.name(j) for j in empty if j in picked.targets]
    raise empty_columns(path, [layout.name(j) for j in empty if j not in picked.targets], targets)


def _is_truth(field: str) -> bool:
    """Tell whether a field is True or False; a column of features that begins so holds nothing else."""
    return field.strip().lower() in TRUTH


def _truth(field: str) -> float:
    return TRUTH[field.strip().lower()]


def _parse(path: Path, layout: Layout, picked: Picked, text: bool, rows: list[list[str]], lines: Sequence[int]) -> Block:
    number = partial(to_number, decimal=layout.decimal)
    truths = {j for j in picked.features if _is_truth(layout.first[j])}

    def numbers(columns: list[int]) -> Array:
        readers = [(j, _truth if j in truths else number) for j in columns]
        try:
            block = np.array([[read(row[j]) for j, read in readers] for row in rows])
            if np.isfinite(block).all():
                return block
        except (ValueError, KeyError):
            pass
        for row, line in zip(rows, lines, strict=True):
            for j in columns:
                if is_missing(row[j]):
                    _check_empty(path, layout, picked)
                _check_number(path, layout, picked, j, row[j], line)
        raise AssertionError("a value that is no number must have been found")

    X, kept = numbers(picked.features), [[row[j] for row in rows] for j in picked.kept]
    if text:
        labels = np.array([row[picked.targets[0]].strip() for row in rows], dtype=object)
        if _has_missing(labels):
            k = next(k for k, label in enumerate(labels) if is_missing(label))
            where = f"{path}: line {lines[k]}, column {_column(layout, picked.targets[0])}"
            raise missing_value(where, of_target=True, text=labels[k], classes=True)
        return Block(X, labels, kept)
    return Block(X, _shaped(numbers(picked.targets)) if picked.targets else None, kept)


def _has_missing(labels: Array) -> bool:
    return any(map(is_missing, set(labels)))


def _shaped(y: Array) -> Array:
    return y[:, 0] if y.shape[1] == 1 else y


def _column(layout: Layout, j: int) -> str:
    return repr(layout.name(j))


def _check_number(path: Path, layout: Layout, picked: Picked, j: int, field: str, line: int) -> None:
    """Refuse what is no number, with advice that suits a feature or a target."""
    where = f"{path}: line {line}, column {_column(layout, j)}"
    if is_missing(field):
        raise missing_value(where, j in picked.targets, field)
    if j in picked.features and _is_truth(layout.first[j]):
        if not _is_truth(field):
            raise FileFormatError(f"{where}: {field[:40]!r} is not True or False, as the column begins; correct it")
        return
    try:
        value = to_number(field, layout.decimal)
    except ValueError:
        _check_separators(path, layout, j, field, line)
        raise UnusableError.of(f"{where}: {field[:40]!r} is not a number", _instead_of_text(picked, j)) from None
    if not math.isfinite(value):
        otherwise = "" if j in picked.targets else f", or leave the column out with {argument('drop')}"
        raise FileFormatError(f"{where}: {field[:40]!r} is not finite; correct it{otherwise}")


def _instead_of_text(picked: Picked, j: int) -> str:
    """Return what to do about text in a column that should hold numbers."""
    if j not in picked.targets:
        return f"correct it, or code the column as numbers, or leave it out with {argument('drop')}"
    if len(picked.targets) > 1:
        return f"correct it, or choose another {argument('target')}"
    return "correct it, or if the column holds classes, write every one as a word"


def _with_arrow(path: Path, layout: Layout, picked: Picked, text: bool, report: Callable[[int], None]) -> Iterator[Block]:
    """Read with pyarrow, many times faster; where it stumbles the other reader goes on, and says what is wrong, if anything."""
    import pyarrow as pa
    import pyarrow.csv as arrow

    columns = [str(j) for j in range(layout.width)]
    wanted = [columns[j] for j in [*picked.features, *picked.targets]]
    types = dict.fromkeys(wanted, pa.float64())
    for j in picked.features:
        if _is_truth(layout.first[j]):
            types[columns[j]] = pa.bool_()
    if text:
        types[wanted[-1]] = pa.string()
    done = 0
    try:
        # Files of its own: its threads read ahead, and would call a file of Python's when the interpreter is gone.
        with reading_text(path, None, OSError, pa.ArrowInvalid, pa.ArrowKeyError), pa.OSFile(str(path)) as raw:
            batches = arrow.open_csv(
                pa.CompressedInputStream(raw, "gzip") if path.suffix.lower() == ".gz" else raw,
                arrow.ReadOptions(column_names=columns, skip_rows=layout.skip, block_size=max(_ARROW_BLOCK, layout.longest)),
                arrow.ParseOptions(delimiter=layout.delimiter),
                arrow.ConvertOptions(
                    column_types=types,
                    include_columns=wanted,
                    decimal_point=layout.decimal,
                    true_values=["True", "TRUE", "true"],
                    false_values=["False", "FALSE", "false"],
                ),
            )
            with batches:
                for batch in batches:
                    if batch.num_rows:
                        yield _from_batch(batch, len(picked.features), text)
                        done += batch.num_rows
                        report(raw.tell())
    except FileFormatError:
        for X, y, _ in _with_python(path, layout, picked, text, report):
            if len(X) > done:
                yield Block(X[done:], None if y is None else y[done:])
            done = max(done - len(X), 0)


def _from_batch(batch: Any, features: int, text: bool) -> Block:
    arrays = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
    X = np.column_stack(arrays[:features]).astype(np.float64, copy=False)
    y: Array | None
    if text:
        y = np.array([label.strip() for label in arrays[-1]], dtype=object)
        whole = bool(np.isfinite(X).all()) and not _has_missing(y)
    else:
        y = _shaped(np.column_stack(arrays[features:])) if len(arrays) > features else None
        whole = bool(np.isfinite(X).all()) and (y is None or bool(np.isfinite(y).all()))
    if not whole:
        raise FileFormatError("a value is missing or not finite")
    return Block(X, y)
