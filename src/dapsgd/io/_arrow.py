"""Columns in binary: Parquet, and Arrow's own files (Feather). They need pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FileFormatError
from ._columns import pick
from ._dataset import Array
from ._source import BLOCK_BYTES, Block, MissingValueError, Options, Skipped, Source, reading

__all__ = ["look", "open_source"]

_USED = frozenset({"target", "drop", "features", "dtype", "skip_missing"})


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


def look(path: Path, options: Options) -> tuple[int, list[str]]:
    """Return the number of columns and their names."""
    names = list(_schema(path).names)
    return len(names), names


def open_source(path: Path, options: Options) -> Source:
    """Open a table for reading."""
    options.check(path, f"a {_kind(path)} file", _USED)
    pa = pyarrow()
    schema = _schema(path)
    picked = pick(path, schema.names, len(schema.names), options)
    text = len(picked.targets) == 1 and _is_text(schema.field(picked.targets[0]).type)
    for j in [*picked.features, *([] if text else picked.targets)]:
        kind = schema.field(j).type
        t = pa.types
        if not (t.is_integer(kind) or t.is_floating(kind) or t.is_boolean(kind) or t.is_decimal(kind) or t.is_null(kind)):
            raise FileFormatError(
                f"{path}: column {schema.names[j]!r} holds {kind}, not numbers; code it as numbers, or leave it out with drop "
                "(--drop)"
            )
    single = all(schema.field(j).type == pa.float32() for j in picked.features)
    dtype = np.dtype(options.dtype or ("float32" if single else "float64"))
    wanted = [schema.names[j] for j in [*picked.features, *picked.targets]]

    skipped = Skipped(wanted)

    def blocks(report: Callable[[int], None]) -> Iterator[Block]:
        size, row = path.stat().st_size, 0
        skipped.clear()
        with reading(path, _kind(path), *_errors()):
            for batch, share in _batches(path, wanted):
                rows = row + np.arange(batch.num_rows)
                row += batch.num_rows
                if options.skip_missing:
                    missing = _missing(batch, wanted)
                    whole = ~missing.any(axis=1)
                    skipped.count(missing[~whole])
                    batch, rows = batch.filter(pa.array(whole)), rows[whole]
                    if not batch.num_rows:
                        continue
                columns = [_column(path, name, batch.column(name), rows) for name in wanted]
                X = np.column_stack([c.astype(dtype, copy=False) for c in columns[: len(picked.features)]])
                yield Block(X, _targets(columns[len(picked.features) :]))
                report(int(share * size))

    return Source(False, dtype, picked.feature_names, picked.target_names, blocks, skipped=skipped)


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


def _column(path: Path, name: str, column: Any, rows: Array) -> Array:
    pa = pyarrow()
    if column.null_count:
        first = rows[np.argmax(column.is_null().to_numpy(zero_copy_only=False))]
        raise MissingValueError(f"{path}: column {name!r}, row {first}")
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
