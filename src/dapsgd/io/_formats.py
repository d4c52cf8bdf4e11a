"""Which ending stands for which kind of file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import FileFormatError
from . import _arrow, _csv, _numpy, _svmlight
from ._source import Options, Source, Table, make_options

__all__ = ["ENDINGS", "Format", "check_path", "column_names", "format_of", "layout", "open_source"]


class Format(NamedTuple):
    """A kind of file."""

    name: str
    called: str
    used: frozenset[str]  # the options that mean something for it
    open: Callable[[Path, Options], Source]
    look: Callable[[Path, Options], Table] | None = None
    gzip: bool = False  # may be compressed


_CSV = Format("csv", "a CSV file", _csv.USED, _csv.open_source, _csv.look, gzip=True)
_SVMLIGHT = Format("svmlight", "an svmlight file", _svmlight.USED, _svmlight.open_source, gzip=True)
_PARQUET = Format("arrow", "a Parquet file", _arrow.USED, _arrow.open_source, _arrow.look)
_ARROW = _PARQUET._replace(called="an Arrow file")

ENDINGS: dict[str, Format] = {
    ".csv": _CSV,
    ".tsv": _CSV,
    ".tab": _CSV,
    ".svm": _SVMLIGHT,
    ".svmlight": _SVMLIGHT,
    ".libsvm": _SVMLIGHT,
    ".npy": Format("npy", "an NPY file", _numpy.USED_OF_NPY, _numpy.open_npy, _numpy.look_npy),
    ".npz": Format("npz", "an NPZ file", _numpy.USED_OF_NPZ, _numpy.open_npz),
    ".parquet": _PARQUET,
    ".pq": _PARQUET,
    ".arrow": _ARROW,
    ".feather": _ARROW,
}


def check_path(path: Any) -> Path:
    """Return the path of a file that exists."""
    try:
        path = Path(os.fspath(path))
    except TypeError:
        raise TypeError(f"path must be the name of a file; got {path!r:.60}") from None
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if not path.is_file():
        raise FileFormatError(f"{path} is not a file")
    return path


def format_of(path: Path) -> Format:
    """Return the kind of a file, by its ending."""
    zipped = path.suffix.lower() == ".gz"
    ending = Path(path.stem).suffix.lower() if zipped else path.suffix.lower()
    found = ENDINGS.get(ending)
    if found is None or (zipped and not found.gzip):
        raise ValueError(
            f"{path} must end in one of {', '.join(ENDINGS)}, CSV and svmlight also in .gz after it; a table under another "
            "name can be renamed, one of a spreadsheet exported as CSV"
        )
    return found


def open_source(path: Any, options: Options) -> Source:
    """Open a file of any kind."""
    path = check_path(path)
    found = format_of(path)
    options.check(path, found.called, found.used)
    return found.open(path, options)


def column_names(
    path: Any, *, header: bool | None = None, decimal: str = ".", encoding: str = "utf-8", skip_lines: int = 0
) -> list[str] | None:
    """Return the names of the columns of a file, None if it has none; its rows are not read.

    Parameters
    ----------
    path : path
        The file.
    header : bool, optional
        Whether the first line of a CSV file is a header; by default it is if it holds anything that is not a number.
    decimal : "." or ",", default "."
        The decimal sign of a CSV file.
    encoding : str, default "utf-8"
        The encoding of a CSV file.
    skip_lines : int, default 0
        How many lines at the top of a CSV file to leave out.
    """
    options = make_options(header=header, decimal=decimal, encoding=encoding, skip_lines=skip_lines)
    path = check_path(path)
    found = format_of(path)
    options.check(path, found.called, found.used)
    return None if found.look is None else found.look(path, options).names


def layout(path: Path, options: Options) -> Table:
    """Return the columns of a table."""
    look = format_of(path).look
    if look is None:
        raise ValueError(f"{path} is no table")
    return look(path, options)
