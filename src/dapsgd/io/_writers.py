"""Arrays written piece by piece to NPY files, so that no more than a piece is in memory."""

from __future__ import annotations

import struct
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from ._dataset import Array

__all__ = ["GrowingArray", "rewrite"]

_PIECE = 1 << 16  # entries
_HEADER = 256  # bytes: room for any number of rows


class GrowingArray:
    """An NPY file that rows are added to; what is open is closed at the end of a ``with`` block."""

    def __init__(self, path: Path, dtype: Any, width: int | None = None) -> None:
        self.rows = 0
        self._dtype, self._width = np.dtype(dtype), width
        self._file = open(path, "wb")  # noqa: SIM115  # closed by __exit__
        self._file.write(b" " * _HEADER)

    def append(self, block: Array) -> None:
        """Add rows."""
        self._file.write(np.ascontiguousarray(block, dtype=self._dtype).data)
        self.rows += len(block)

    def __enter__(self) -> GrowingArray:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            shape = (self.rows,) if self._width is None else (self.rows, self._width)
            text = f"{{'descr': {self._dtype.str!r}, 'fortran_order': False, 'shape': {shape!r}, }}"
            length = _HEADER - 10
            self._file.seek(0)
            self._file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", length) + text.ljust(length - 1).encode() + b"\n")
        self._file.close()


def rewrite(path: Path, dtype: Any, shift: int = 0) -> None:
    """Add a number to every entry of a file of int64 that is one of these, and store them as another type."""
    new = path.with_name(f"{path.name}.new")
    with open(path, "rb") as old, GrowingArray(new, dtype) as out:
        old.seek(_HEADER)
        while (piece := np.fromfile(old, np.int64, _PIECE)).size:
            out.append(piece + shift)
    new.replace(path)
