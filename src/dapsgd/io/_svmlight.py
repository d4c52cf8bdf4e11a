"""Sparse rows in text: ``label index:value index:value``, the format of svmlight and libsvm."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .._arguments import argument
from ..errors import FileFormatError
from ._source import BLOCK_BYTES, Block, Options, Source, WidthError, open_bytes, reading

__all__ = ["USED", "open_source"]

USED = frozenset({"zero_based", "n_features", "dtype"})
_PLAUSIBLE = 1 << 24  # columns; a larger index than this and than the file's bytes is taken for a mistake
_LARGEST = 2**31 - 2


def open_source(path: Path, options: Options) -> Source:
    """Open a file of sparse rows for reading."""
    if options.target:
        raise ValueError(
            f"{argument('target')} means nothing for an svmlight file, whose first field is the target; leave it out for {path}"
        )
    most = _LARGEST if options.n_features else max(_PLAUSIBLE, path.stat().st_size)
    dtype = np.dtype(options.dtype or "float64")

    def blocks(report: Callable[[int], None]) -> Iterator[Block]:
        file, tell = open_bytes(path)
        with reading(path, "svmlight"), file:
            line = 1
            while text := file.read(BLOCK_BYTES):
                text += file.readline()
                block = _parse(path, text, line, most, dtype)
                if block.X.shape[0]:  # not comments only
                    yield block
                report(tell())
                line += text.count(b"\n")

    def columns(smallest: int, largest: int) -> tuple[int, bool]:
        zero_based = smallest == 0 if options.zero_based is None else options.zero_based
        if smallest == 0 and not zero_based:
            raise FileFormatError(f"{path} has the index 0; with {argument('zero_based', False)} indices must start at 1")
        count = max(largest + zero_based, 1)
        if options.n_features is not None and count > options.n_features:
            raise WidthError(path, count, options.n_features)
        return options.n_features or count, zero_based

    return Source(True, dtype, None, ("label",), blocks, columns)


def _parse(path: Path, text: bytes, line: int, most: int, dtype: np.dtype[Any]) -> Block:
    from sklearn.datasets import load_svmlight_file

    try:
        if b"\0" in text:
            raise ValueError("it holds bytes that are no text")
        X, y = load_svmlight_file(io.BytesIO(text), zero_based=True, dtype=dtype)
    except (ValueError, OverflowError, IndexError, TypeError) as error:
        _explain(path, text, line, most)
        raise FileFormatError(f"{path}: the rows from line {line} on are no svmlight rows: {error}") from None
    y = np.asarray(y, dtype=np.float64)
    if X.indices.max(initial=0) > most or not (np.isfinite(X.data).all() and np.isfinite(y).all()):
        _explain(path, text, line, most)
    return Block(X, y)


def _explain(path: Path, text: bytes, line: int, most: int) -> None:
    """Find the first row that is not as it should be, and say why."""
    for number, row in enumerate(text.split(b"\n"), start=line):
        fields = row.split(b"#", 1)[0].split()
        if not fields:
            continue
        where = f"{path}: line {number}"
        _number(f"{where}: the label", fields[0])
        before = -1
        for field in fields[1:]:
            shown = field[:40].decode("utf-8", "replace")
            if field.startswith(b"qid:"):
                continue
            index, colon, value = field.partition(b":")
            if not colon or not index.isdigit():
                raise FileFormatError(f"{where}: {shown!r} is not of the form index:value")
            if int(index[:30]) > most:
                raise FileFormatError(
                    f"{where}: the index in {shown!r} is too large; give {argument('n_features')} if it is meant"
                )
            if int(index) <= before:
                raise FileFormatError(f"{where}: the indices must increase; {shown!r} comes after {before}")
            before = int(index)
            _number(f"{where}: the value in {shown!r}", value)


def _number(what: str, field: bytes) -> None:
    shown = field[:40].decode("utf-8", "replace")
    try:
        value = float(field)
    except ValueError:
        raise FileFormatError(f"{what} must be a number; got {shown!r}") from None
    if not math.isfinite(value):
        raise FileFormatError(f"{what} must be finite; got {shown!r}")
