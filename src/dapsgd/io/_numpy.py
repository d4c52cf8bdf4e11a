"""NumPy's own files: NPY, one matrix; NPZ, an archive with X and y. Pickles in them are never read."""

from __future__ import annotations

import ast
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from .._arguments import argument
from .._checks import meant
from ..errors import FileFormatError
from ._columns import pick
from ._dataset import Array
from ._source import BLOCK_BYTES, Block, Options, Source, Table, WidthError, reading

__all__ = [
    "USED_OF_NPY",
    "USED_OF_NPZ",
    "Header",
    "check_has_target",
    "look_npy",
    "open_npy",
    "open_npz",
    "read_header",
    "stored_array",
]

USED_OF_NPY = frozenset({"target", "drop", "dtype"})
USED_OF_NPZ = frozenset({"target", "dtype", "n_features"})
_CSR = ("data", "indices", "indptr", "shape")  # the parts of a sparse matrix
_LONGEST_HEADER = 1 << 16
_MOST_DEFLATED = 1100  # zlib cannot make more bytes of one
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # other ways of packing take as much memory as the file tells them to
_ERRORS = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    NotImplementedError,
    RuntimeError,
    MemoryError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


class Header(NamedTuple):
    """What the header of an array says."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    offset: int  # where the numbers start

    def map(self, path: Path) -> Array:
        """Return the array of a file as a memory map."""
        return np.memmap(path, self.dtype, "r", self.offset, self.shape, "F" if self.fortran else "C")


def read_header(file: IO[bytes], size: int, what: str) -> Header:
    """Read the header of an array, and refuse one that does not fit the bytes that follow."""
    start = file.read(10)
    if start[:6] != b"\x93NUMPY" or len(start) < 10:
        raise FileFormatError(f"{what} is damaged, or is no NPY file: it does not start like one")
    if start[6] not in (1, 2, 3):
        raise FileFormatError(f"{what} has version {start[6]} of the NPY format; 1, 2 and 3 can be read")
    more = b"" if start[6] == 1 else file.read(2)
    length = int.from_bytes(start[8:] + more, "little")
    if length > min(_LONGEST_HEADER, size):
        raise FileFormatError(f"{what} is damaged: its header claims to be {length} bytes long")
    text = file.read(length)
    try:
        fields = ast.literal_eval(text.decode("utf-8" if start[6] == 3 else "latin-1").strip())
        shape, fortran, dtype = fields["shape"], bool(fields["fortran_order"]), _dtype(fields["descr"])
        fits = len(text) == length and isinstance(shape, tuple) and all(type(extent) is int and extent >= 0 for extent in shape)
    except (ValueError, SyntaxError, TypeError, KeyError, IndexError, MemoryError, RecursionError):
        fits = False
    if not fits:
        raise FileFormatError(f"{what} is damaged: its header makes no sense")
    if isinstance(fields["descr"], list):
        raise FileFormatError(f"{what} holds records of several fields; save a matrix of numbers")
    if dtype.hasobject:
        raise FileFormatError(f"{what} holds pickled objects, which are never read; save numbers")
    offset = 10 + len(more) + length
    claimed, there = math.prod(shape) * dtype.itemsize, size - offset
    if claimed != there:
        raise FileFormatError(f"{what} is damaged: its header claims {claimed} bytes, shape {shape}; there are {there}")
    return Header(shape, fortran, dtype, offset)


def _dtype(descr: Any) -> np.dtype[Any]:
    """Return the dtype of a header, of which NumPy writes no other forms: of old ones it would warn."""
    if isinstance(descr, list):  # of fields
        return np.dtype(np.void)
    if not re.fullmatch(r"[<>|=]?[biufcSUVOmM]\d*(\[\w+\])?", descr):
        raise ValueError
    return np.dtype(descr)


def _look(path: Path) -> Header:
    with reading(path, "NPY", *_ERRORS), open(path, "rb") as file:
        header = read_header(file, path.stat().st_size, str(path))
    _check_matrix(str(path), header)
    return header


def look_npy(path: Path, options: Options) -> Table:
    """Return the columns of a matrix; they have no names."""
    return Table(_look(path).shape[1], None)


def open_npy(path: Path, options: Options) -> Source:
    """Open a matrix for reading; targets are columns of it."""
    header = _look(path)
    matrix = header.map(path)
    picked = pick(path, None, header.shape[1], options)
    dtype = _float(header.dtype, options)

    def blocks(report: Callable[[int], None]) -> Iterator[Block]:
        rows = max(1, BLOCK_BYTES // (8 * header.shape[1]))
        for start in range(0, header.shape[0], rows):
            block = np.asarray(matrix[start : start + rows])
            X = block.astype(dtype, copy=False)
            if len(picked.features) < header.shape[1]:
                X = X[:, picked.features]
            y = block[:, picked.targets].astype(np.float64) if picked.targets else None
            _check_finite(str(path), X, y)
            yield Block(X, y[:, 0] if y is not None and y.shape[1] == 1 else y)
            report(start * header.shape[1] * header.dtype.itemsize)

    return Source(False, dtype, None, picked.target_names, blocks)


def _check_matrix(what: str, header: Header) -> None:
    if header.dtype.names is not None or header.dtype.kind not in "biuf":
        raise FileFormatError(f"{what} must hold real numbers; its dtype is {header.dtype}")
    if len(header.shape) != 2:
        raise FileFormatError(f"{what} must be a matrix, rows x columns; its shape is {header.shape}")
    if 0 in header.shape:
        raise FileFormatError(f"{what} must have at least one row and one column; its shape is {header.shape}")


def _float(dtype: np.dtype[Any], options: Options) -> np.dtype[Any]:
    return np.dtype(options.dtype or ("float32" if dtype.kind == "f" and dtype.itemsize == 4 else "float64"))


def _check_finite(what: str, *arrays: Array | None) -> None:
    for array in arrays:
        if array is not None and array.dtype.kind == "f" and not np.isfinite(array).all():
            raise FileFormatError(f"{what} must not contain NaN or infinity")


class _Stored:
    """An array in an archive, read piece by piece along its first axis."""

    def __init__(self, path: Path, archive: zipfile.ZipFile, name: str) -> None:
        info = archive.getinfo(f"{name}.npy")
        self.what = f"{path}: the array {name!r}"
        if info.file_size > _MOST_DEFLATED * min(info.compress_size, path.stat().st_size) + 1024:
            raise FileFormatError(f"{self.what} is damaged: it claims {info.file_size} bytes")
        if info.compress_type not in _PACKED:
            raise FileFormatError(f"{self.what} is packed in a way that NumPy does not use: write it with np.savez_compressed")
        self._file: Any = archive.open(info)
        self.header = read_header(self._file, info.file_size, self.what)
        if self.header.fortran and len(self.header.shape) == 2:  # its rows are not together: no way but to take it whole
            self._whole: Array | None = self._take(self.header.shape[::-1]).T
        else:
            self._whole = None
        self._row = 0

    def take(self, rows: int) -> Array:
        """Return the next rows."""
        rows = min(rows, self.header.shape[0] - self._row)
        self._row += rows
        if self._whole is not None:
            return self._whole[self._row - rows : self._row]
        return self._take((rows, *self.header.shape[1:]))

    def all(self) -> Array:
        """Return the whole array."""
        return self.take(self.header.shape[0]) if self.header.shape else self._take(())

    def _take(self, shape: tuple[int, ...]) -> Array:
        wanted = math.prod(shape) * self.header.dtype.itemsize
        content = self._file.read(wanted)
        if len(content) != wanted:
            raise FileFormatError(f"{self.what} is damaged: it ends early")
        array = np.frombuffer(content, self.header.dtype).reshape(shape)
        if array.dtype.kind == "U" and not _is_text(content, array.dtype):
            raise FileFormatError(f"{self.what} is damaged: it holds characters that do not exist")
        return array

    def finish(self) -> None:
        """Read to the end, where the checksum is compared, and close."""
        self._file.read(1)
        self._file.close()


def _is_text(content: bytes, dtype: np.dtype[Any]) -> bool:
    """Tell whether all characters exist; NumPy takes any number for one, and Python then fails."""
    points = np.frombuffer(content, np.dtype(np.uint32).newbyteorder(dtype.byteorder))
    return bool((points <= 0x10FFFF).all()) and not ((points >= 0xD800) & (points < 0xE000)).any()


def stored_array(path: Path, archive: zipfile.ZipFile, name: str) -> Array:
    """Return one array of an archive, with what its header claims and its checksum compared."""
    stored = _Stored(path, archive, name)
    array = stored.all()
    stored.finish()
    return array


def open_npz(path: Path, options: Options) -> Source:
    """Open an archive with X, dense or the parts of a CSR matrix, and the target."""
    entries = _entries(path)
    prefix = _prefix_of_csr(entries)
    if "X" not in entries and prefix is None:
        raise FileFormatError(
            f"{path} must have an array X, or X_data, X_indices, X_indptr and X_shape; it has {_shown(entries)}"
        )
    target = _target(path, options, entries)
    with reading(path, "NPZ", *_ERRORS), zipfile.ZipFile(path) as archive:
        n = _Stored(path, archive, target).header.shape if target else None
        if "X" in entries:
            header = _Stored(path, archive, "X").header
            _check_matrix(f"{path}: the array 'X'", header)
            shape, dtype = header.shape, _float(header.dtype, options)
        else:
            found = stored_array(path, archive, f"{prefix}shape")
            if found.shape != (2,) or found.dtype.kind not in "iu" or (found < 1).any():
                raise FileFormatError(f"{path}: the array '{prefix}shape' must hold two positive integers")
            shape = (int(found[0]), int(found[1]))
            dtype = _float(_Stored(path, archive, f"{prefix}data").header.dtype, options)
        if n is not None and (len(n) not in (1, 2) or n[0] != shape[0]):
            raise FileFormatError(
                f"{path}: the array {target!r} must have {shape[0]} entries or rows, as X has; its shape is {n}"
            )
        if options.n_features is not None and shape[1] != options.n_features:
            raise WidthError(path, shape[1], options.n_features)

    def blocks(report: Callable[[int], None]) -> Iterator[Block]:
        with reading(path, "NPZ", *_ERRORS), open(path, "rb") as file, zipfile.ZipFile(file) as archive:
            y = _Stored(path, archive, target) if target else None
            pieces = _dense(path, archive, dtype) if "X" in entries else _csr(path, archive, prefix or "", shape, dtype)
            for X in pieces:
                targets = None if y is None else _targets(path, y, X.shape[0])
                _check_finite(str(path), X if isinstance(X, np.ndarray) else X.data, targets)
                yield Block(X, targets)
                report(file.tell())
            if y is not None:
                y.finish()

    sparse = "X" not in entries
    return Source(sparse, dtype, None, (target,) if target else (), blocks, (lambda *_: (shape[1], True)) if sparse else None)


def check_has_target(path: Path) -> None:
    """Raise if an archive has no array y, with what to do."""
    entries = _entries(path)
    if "y" in entries:
        return
    prefix = None if "X" in entries else _prefix_of_csr(entries)
    if prefix is None and "X" not in entries:
        return  # which is said when it is read
    others = entries - {"X", *(f"{prefix}{part}" for part in (*_CSR, "format", "_is_array"))}
    if others:
        raise ValueError(f"{argument('target')} must be given: {path} has no array y; it has {_shown(others)} beside X")
    raise ValueError(f"{path} holds X only, and no target{_how_to_add(prefix)}")


def _entries(path: Path) -> set[str]:
    """Return the names of the arrays of an archive."""
    with reading(path, "NPZ", *_ERRORS), zipfile.ZipFile(path) as archive:
        return {name[:-4] for name in archive.namelist() if name.endswith(".npy")}


def _prefix_of_csr(entries: set[str]) -> str | None:
    """Return what the names of the parts of a sparse matrix begin with; None if there is none."""
    return next((prefix for prefix in ("X_", "") if {f"{prefix}{part}" for part in _CSR} <= entries), None)


def _how_to_add(prefix: str | None) -> str:
    """Say how to write an archive that has a target."""
    sparse = ", ".join(f"X_{part}=X.{part}" for part in _CSR)
    what = ", as what scipy.sparse.save_npz writes does" if prefix == "" else ""
    return f"{what}: write both to one file, np.savez('both.npz', {'X=X' if prefix is None else sparse}, y=y)"


def _shown(entries: set[str]) -> str:
    return ", ".join(sorted(entries)[:8]) or "nothing"


def _target(path: Path, options: Options, entries: set[str]) -> str | None:
    if not options.target:
        return "y" if "y" in entries else None
    if len(options.target) > 1 or not isinstance(options.target[0], str):
        raise ValueError(f"{argument('target')} must be the name of one array of {path}; got {options.target}")
    if options.target[0] not in entries:
        near = meant(options.target[0], entries)
        hint = "" if near is None else f" (did you mean {near!r}?)"
        lacks = f"; it holds X only{_how_to_add('')}" if _prefix_of_csr(entries) == "" and "y" not in entries else ""
        raise ValueError(
            f"{argument('target')} {options.target[0]!r} is not an array of {path}{hint}; it has {_shown(entries)}{lacks}"
        )
    return options.target[0]


def _targets(path: Path, y: _Stored, rows: int) -> Array:
    values = y.take(rows)
    if values.dtype.kind == "U":
        return values.astype(object)
    if values.dtype.kind not in "biuf":
        raise FileFormatError(f"{path}: the target must hold numbers or text; its dtype is {values.dtype}")
    return values.astype(np.float64)


def _dense(path: Path, archive: zipfile.ZipFile, dtype: np.dtype[Any]) -> Iterator[Array]:
    stored = _Stored(path, archive, "X")
    rows = max(1, BLOCK_BYTES // (8 * stored.header.shape[1]))
    for _ in range(0, stored.header.shape[0], rows):
        yield np.ascontiguousarray(stored.take(rows), dtype=dtype)
    stored.finish()


def _csr(path: Path, archive: zipfile.ZipFile, prefix: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Iterator[Any]:
    from scipy.sparse import csr_matrix

    if f"{prefix}format.npy" in archive.namelist():
        kind = stored_array(path, archive, f"{prefix}format").item()
        if kind not in ("csr", b"csr"):
            raise FileFormatError(f"{path} holds a sparse matrix in the format {kind!r}; save it as CSR")
    indptr = stored_array(path, archive, f"{prefix}indptr")
    data, indices = _Stored(path, archive, f"{prefix}data"), _Stored(path, archive, f"{prefix}indices")
    integers = indptr.dtype.kind in "iu" and indices.header.dtype.kind in "iu" and data.header.dtype.kind in "biuf"
    entries = int(indptr[-1]) if integers and indptr.shape == (shape[0] + 1,) else -1
    if entries < 0 or data.header.shape != (entries,) or indices.header.shape != (entries,) or indptr[0] != 0:
        raise FileFormatError(f"{path}: {prefix}data, {prefix}indices and {prefix}indptr do not belong together")
    if (np.diff(indptr.astype(np.int64)) < 0).any():
        raise FileFormatError(f"{path}: {prefix}indptr must not decrease")
    indptr = indptr.astype(np.int64)
    start = 0
    while start < shape[0]:
        stop = int(np.searchsorted(indptr, indptr[start] + BLOCK_BYTES // 12, side="right")) - 1
        stop = min(max(stop, start + 1), shape[0])
        count = int(indptr[stop] - indptr[start])
        values, places = data.take(count).astype(dtype), indices.take(count).astype(np.int64)
        if count and not (places.min() >= 0 and places.max() < shape[1]):
            raise FileFormatError(f"{path}: {prefix}indices must lie between 0 and {shape[1] - 1}")
        block = csr_matrix((values, places, indptr[start : stop + 1] - indptr[start]), shape=(stop - start, shape[1]))
        block.sum_duplicates()
        yield block
        start = stop
    data.finish()
    indices.finish()
