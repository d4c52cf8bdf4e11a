"""Columns in binary: Parquet, and Arrow's own files (Feather). They need pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._arguments import argument
from ..errors import FileFormatError
from ._columns import pick
from ._dataset import Array
from ._source import BLOCK_BYTES, Block, Options, Skipped, Source, Table, UnusableError, empty_columns, missing_value, reading

__all__ = ["USED", "look", "open_source"]

USED = frozenset({"target", "drop", "features", "dtype", "skip_missing", "keep"})


def pyarrow() -> Any:
    """Import pyarrow, or say how to get it."""
    try:
        import pyarrow
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError:
        raise ImportError("Parquet and Arrow files need pyarrow: pip install 'dapsgd[io]'") from None
    return pyarrow


def _errors() -> tuple[type[Exception], ...]:
    pa = pyarrow()
    return pa.ArrowException, OSError, MemoryError, ValueError, KeyError, IndexError


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in (".parquet", ".pq")


def _schema(path: Path) -> Any:
    pa = pyarrow()
    with open(path, "rb"), reading(path, _kind(path), *_errors()):  # opened first: a missing file is another matter
        if _is_parquet(path):
            schema = pa.parquet.read_schema(path)
        else:
            with pa.ipc.open_file(path) as file:
                schema = file.schema
        _ = schema.names  # decoded when they are first asked for
        return schema


def _kind(path: Path) -> str:
    return "Parquet" if _is_parquet(path) else "Arrow"


def look(path: Path, options: Options) -> Table:
    """Return the columns of a table."""
    names = list(_schema(path).names)
    return Table(len(names), names)


def open_source(path: Path, options: Options) -> Source:
    """Open a table for reading."""
    pa = pyarrow()
    schema = _schema(path)
    picked = pick(path, schema.names, len(schema.names), options)
    text = len(picked.targets) == 1 and _is_text(schema.field(picked.targets[0]).type)
    for j in [*picked.features, *([] if text else picked.targets)]:
        kind = schema.field(j).type
        t = pa.types
        if not (t.is_integer(kind) or t.is_floating(kind) or t.is_boolean(kind) or t.is_decimal(kind) or t.is_null(kind)):
            way = f"leave it out with {argument('drop', schema.names[j])}"
            if j in picked.targets:
                way = f"choose another {argument('target')}"
            raise UnusableError.of(
                f"{path}: column {schema.names[j]!r} holds {kind}, not numbers",
                f"code it as numbers, or {way}",
            )
    kept = [schema.names[j] for j in picked.kept]
    for name in kept:
        _check_text(path, name, schema.field(name).type)
    single = all(schema.field(j).type == pa.float32() for j in picked.features)
    dtype = np.dtype(options.dtype or ("float32" if single else "float64"))
    wanted = [schema.names[j] for j in [*picked.features, *picked.targets]]

    read, skipped = list(dict.fromkeys([*wanted, *kept])), Skipped(wanted)

    def blocks(report: Callable[[int], None]) -> Iterator[Block]:
        size, row = path.stat().st_size, 0
        skipped.clear()
        with reading(path, _kind(path), *_errors()):
            for batch, share in _batches(path, read):
                rows = row + np.arange(batch.num_rows)
                row += batch.num_rows
                missing = _missing(batch, wanted)
                if missing.any():
                    if not options.skip_missing:
                        raise _why_missing(path, wanted, picked.target_names, missing, rows)
                    whole = ~missing.any(axis=1)
                    skipped.count(missing[~whole])
                    batch, rows = batch.filter(pa.array(whole)), rows[whole]
                    if not batch.num_rows:
                        continue
                columns = [_column(path, name, batch.column(name), rows) for name in wanted]
                X = np.column_stack([c.astype(dtype, copy=False) for c in columns[: len(picked.features)]])
                yield Block(X, _targets(columns[len(picked.features) :]), [_texts(batch.column(name)) for name in kept])
                report(int(share * size))

    names = picked.feature_names, picked.target_names
    return Source(False, dtype, *names, blocks, skipped=skipped, kept_names=picked.kept_names)


def _is_text(kind: Any) -> bool:
    types = pyarrow().types
    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _batches(path: Path, wanted: list[str]) -> Iterator[tuple[Any, float]]:
    """Give batches of rows with some columns, and the share of the file that is behind."""
    pa = pyarrow()
    if _is_parquet(path):
        with pa.parquet.ParquetFile(path) as file:
            done = 0
            for batch in file.iter_batches(max(1, BLOCK_BYTES // (8 * len(wanted))), columns=wanted):
                batch.validate(full=True)
                done += batch.num_rows
                if batch.num_rows:
                    yield batch, done / max(file.metadata.num_rows, 1)
        return
    with pa.ipc.open_file(path) as file:
        for k in range(file.num_record_batches):
            batch = file.get_batch(k)
            batch.validate(full=True)  # a damaged file must not lead to reads outside memory
            if batch.num_rows:
                yield batch, (k + 1) / file.num_record_batches


def _missing(batch: Any, wanted: list[str]) -> Array:
    """Tell of every row and column whether the value is missing."""
    return np.column_stack([batch.column(name).is_null(nan_is_null=True).to_numpy(zero_copy_only=False) for name in wanted])


def _why_missing(path: Path, wanted: list[str], targets: Sequence[str], missing: Array, rows: Array) -> UnusableError:
    """Return the error that a value is missing, or that columns have none at all: to leave out rows would leave nothing."""
    first = int(np.argmax(missing.any(axis=1)))
    empty = [name for k, name in enumerate(wanted) if missing[:, k].all()]
    for batch, _ in _batches(path, empty) if empty else ():
        lacks = _missing(batch, empty)
        empty = [name for k, name in enumerate(empty) if lacks[:, k].all()]
        if not empty:
            break
    if empty:
        return empty_columns(path, [name for name in empty if name not in targets], [n for n in empty if n in targets])
    lacking = wanted[int(np.argmax(missing[first]))]
    return missing_value(f"{path}: column {lacking!r}, row {rows[first]}", lacking in targets)


def _check_text(path: Path, name: str, kind: Any) -> None:
    """Refuse to keep what cannot be written as text."""
    pa = pyarrow()
    try:
        pa.array([], kind).cast(pa.string())
    except pa.ArrowException:
        raise ValueError(
            f"{argument('keep')} must name columns of text, numbers or times; column {name!r} of {path} holds {kind}"
        ) from None


def _texts(column: Any) -> list[str]:
    return ["" if text is None else text for text in column.cast(pyarrow().string()).to_pylist()]


def _column(path: Path, name: str, column: Any, rows: Array) -> Array:
    pa = pyarrow()
    if _is_text(column.type):
        return np.array(column.to_pylist(), dtype=object)
    if column.type not in (pa.float32(), pa.float64()):
        column = column.cast(pa.float64(), safe=False)
    values: Array = column.to_numpy(zero_copy_only=False)
    if not np.isfinite(values).all():
        first = rows[np.argmin(np.isfinite(values))]
        raise FileFormatError(f"{path}: column {name!r}, row {first}: the value is not finite")
    return values


def _targets(columns: list[Array]) -> Array | None:
    if not columns:
        return None
    if len(columns) == 1:
        return columns[0] if columns[0].dtype == object else columns[0].astype(np.float64)
    return np.column_stack(columns).astype(np.float64)
