"""Tables in text: CSV, TSV, and the like."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import FileFormatError
from ._columns import Picked, pick
from ._dataset import Array
from ._source import BLOCK_BYTES, Block, MissingValueError, Options, Skipped, Source, open_bytes, reading

__all__ = ["look", "open_source"]

_USED = frozenset({"target", "drop", "features", "header", "dtype", "skip_missing"})
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
        if path.stat().st_size >= _WORTH_ARROW and layout.skip <= 1 and _has_arrow():
            return _with_arrow(path, layout, picked, text, report)
        return _with_python(path, layout, picked, text, report)

    dtype = np.dtype(options.dtype or "float64")
    return Source(False, dtype, picked.feature_names, picked.target_names, blocks, skipped=skipped)


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
    first, skip = found[1] if header else (top, 0)
    if header and len(first) != len(top):
        raise FileFormatError(f"{path}: line {skip + 1} has {len(first)} fields; the header has {len(top)}")
    names = [field.strip() for field in top] if header else None
    return _Layout(delimiter, names, len(top), first, skip, 8 * max(len(line), len(delimiter.join(first))))


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
        raise FileFormatError(
            f"{path}: line {layout.skip + 1} has text in columns {', '.join(columns[:8])}{more}; code them as numbers, or "
            f"leave them out with drop=[{', '.join(columns[:8])}{', ...' * bool(more)}] (--drop {columns[0]} --drop ...)"
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
        reader = csv.reader(io.TextIOWrapper(file, "utf-8-sig", newline=""), delimiter=layout.delimiter, strict=True)
        rows: list[list[str]] = []
        lines: list[int] = []
        for row in reader:
            if not row or reader.line_num <= layout.skip:
                continue
            if len(row) != layout.width:
                raise FileFormatError(f"{path}: line {reader.line_num} has {len(row)} fields; there should be {layout.width}")
            if not is_wanted(row):
                continue
            rows.append(row)
            lines.append(reader.line_num)
            if len(rows) == size:
                yield _parse(path, layout, picked, text, rows, lines)
                report(tell())
                rows, lines = [], []
        if rows:
            yield _parse(path, layout, picked, text, rows, lines)


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
                _check_number(path, layout, j, row[j], line)
        raise AssertionError("a value that is no number must have been found")

    X = numbers(picked.features)
    if text:
        labels = np.array([row[picked.targets[0]].strip() for row in rows], dtype=object)
        if not all(labels):
            line = lines[list(labels).index("")]
            raise FileFormatError(f"{path}: line {line} has no value in column {_column(layout, picked.targets[0])}")
        return Block(X, labels)
    return Block(X, _shaped(numbers(picked.targets)) if picked.targets else None)


def _shaped(y: Array) -> Array:
    return y[:, 0] if y.shape[1] == 1 else y


def _column(layout: _Layout, j: int) -> str:
    return str(j) if layout.names is None else repr(layout.names[j])


def _check_number(path: Path, layout: _Layout, j: int, field: str, line: int) -> None:
    where = f"{path}: line {line}, column {_column(layout, j)}"
    if _is_missing(field):
        raise MissingValueError(where)
    try:
        value = float(field)
    except ValueError:
        raise FileFormatError(
            f"{where}: {field[:40]!r} is not a number; code the column as numbers, or leave it out with drop (--drop)"
        ) from None
    if not math.isfinite(value):
        raise FileFormatError(f"{where}: {field[:40]!r} is not finite")


def _with_arrow(path: Path, layout: _Layout, picked: Picked, text: bool, report: Callable[[int], None]) -> Iterator[Block]:
    """Read with pyarrow, many times faster; if it stumbles, let the other reader say where."""
    import pyarrow as pa
    import pyarrow.csv as arrow

    columns = [str(j) for j in range(layout.width)]
    wanted = [columns[j] for j in [*picked.features, *picked.targets]]
    types = dict.fromkeys(wanted, pa.float64())
    if text:
        types[wanted[-1]] = pa.string()
    file, tell = open_bytes(path)
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
                        report(tell())
    except FileFormatError:
        for _ in _with_python(path, layout, picked, text, lambda _: None):
            pass
        raise


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
