"""Data converted once into a folder of arrays, which is then opened in no time, memory-mapped."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from .._checks import flag
from .._files import replacing_folder
from .._progress import bar
from ..errors import FileFormatError
from ._dataset import Array, Dataset
from ._formats import check_path, open_source
from ._labels import Labels, decode
from ._numpy import read_header
from ._source import Column, Options, Source, make_options, no_rows, reading
from ._writers import GrowingArray, rewrite

__all__ = ["convert", "default_folder", "open_folder"]

_FORMAT, _VERSION = "dapsgd data", 1
_ARRAYS = ("X.npy", "y.npy", "data.npy", "indices.npy", "indptr.npy")


def default_folder(path: Any) -> Path:
    """Return where ``convert`` puts a file by default: next to it."""
    path = Path(path)
    return path.with_name(f"{path.name}.dapsgd")


def convert(
    path: Any,
    folder: Any = None,
    target: Column | Sequence[Column] | None = None,
    *,
    drop: Column | Sequence[Column] | None = None,
    header: bool | None = None,
    zero_based: bool | None = None,
    n_features: int | None = None,
    dtype: Any = None,
    skip_missing: bool = False,
    decimal: str = ".",
    encoding: str = "utf-8",
    skip_lines: int = 0,
    progress: bool = False,
) -> Dataset:
    r"""Convert a file of data into a folder of arrays once, and open that.

    A second call with the same options only opens the folder. If the file has changed since, by its size and the time of its
    last change, it is converted again. The file is read in blocks, and is never in memory as a whole.

    Parameters
    ----------
    path : path
        The file, as in :func:`read`.
    folder : path, optional
        Where to put the arrays; by default next to the file, under its name with ``.dapsgd`` added.
    target, drop, header, zero_based, n_features, dtype, skip_missing, decimal, encoding, skip_lines
        As in :func:`read`.
    progress : bool, default False
        Show a progress bar; where there is no terminal, print a line now and then.

    Returns
    -------
    Dataset
        With X memory-mapped.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import dapsgd.io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "small.csv"
    ...     _ = path.write_text("height,width,price\n1,2,10\n3,4,20\n")
    ...     first = dapsgd.io.convert(path, target="price")
    ...     again = dapsgd.io.open_folder(Path(folder) / "small.csv.dapsgd")
    ...     bool((first.X == again.X).all()), type(again.X).__name__
    (True, 'memmap')
    """
    options = make_options(
        target, drop, None, header, zero_based, n_features, dtype, skip_missing, None, decimal, encoding, skip_lines
    )
    path, progress = check_path(path), flag("progress", progress)
    folder = default_folder(path) if folder is None else Path(folder)
    if folder.exists():
        if not folder.is_dir() or any(file.name not in (*_ARRAYS, "meta.json") for file in folder.iterdir()):
            raise ValueError(f"folder must be new, or one that convert has made; {folder} is something else")
        if _is_current(folder, path, options):
            return open_folder(folder)
    elif not folder.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {folder.parent}, where {folder.name} should go")
    made_from = _stamp(path)
    source = open_source(path, options)
    try:
        with replacing_folder(folder) as temporary:
            meta = _write(path, source, temporary, progress)
            if _stamp(path) != made_from:
                raise FileFormatError(f"{path} was changed while it was converted; try again")
            meta |= {"format": _FORMAT, "version": _VERSION, "source": made_from, "options": asdict(options)}
            (temporary / "meta.json").write_text(json.dumps(meta, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise OSError(f"cannot write the folder {folder}: {error.strerror or error}") from None
    return open_folder(folder)


def _stamp(path: Path) -> dict[str, Any]:
    about = path.stat()
    return {"path": str(path.resolve()), "size": about.st_size, "mtime_ns": about.st_mtime_ns}


def _is_current(folder: Path, path: Path, options: Options) -> bool:
    """Tell whether a folder was made from this file, as it is now, with these options, and is whole."""
    try:
        meta = _read_meta(folder)
        if meta.get("source") != _stamp(path) or _given(meta.get("options")) != _given(json.loads(json.dumps(asdict(options)))):
            return False
        open_folder(folder)
    except FileFormatError:
        return False
    return True


def _given(options: Any) -> Any:
    """Return the options that were given, so that a folder stays current when there are new ones."""
    return {name: value for name, value in options.items() if value not in (None, [])} if isinstance(options, dict) else None


def _write(path: Path, source: Source, folder: Path, progress: bool) -> dict[str, Any]:
    """Write the arrays of a source to a folder, and return what is to be known of them."""
    labels = Labels(path, source.target_names)
    smallest, largest, entries, columns = 1 << 62, 0, 0, 0
    size = path.stat().st_size
    with ExitStack() as stack:
        out: dict[str, GrowingArray] = {}
        options = {"unit": "B", "unit_scale": True, "desc": f"converting {path.name}", "disable": not progress}
        shown = stack.enter_context(bar(total=size, **options))
        for X, y, _ in source.blocks(lambda read: shown.update(min(read, size) - shown.n)):
            if not out:
                columns = X.shape[1]
                out = _arrays(folder, source, columns, y)
                for array in out.values():
                    stack.enter_context(array)
                if source.sparse:
                    out["indptr"].append(np.zeros(1, np.int64))
            if source.sparse:
                if X.nnz:
                    smallest, largest = min(smallest, int(X.indices.min())), max(largest, int(X.indices.max()))
                out["data"].append(X.data)
                out["indices"].append(X.indices)
                out["indptr"].append(X.indptr[1:].astype(np.int64) + entries)
                entries += len(X.data)
            else:
                out["X"].append(X)
            if y is not None:
                out["y"].append(labels.encode(y))
        shown.update(size - shown.n)
    if not out:
        raise no_rows(path, source)
    zero_based = None
    if source.columns is not None:
        columns, zero_based = source.columns(smallest, largest)
        kind = np.int32 if max(entries, columns) < 2**31 else np.int64  # SciPy copies what is not of one type
        rewrite(folder / "indices.npy", kind, shift=-(not zero_based))
        rewrite(folder / "indptr.npy", kind)
    return {
        "sparse": source.sparse,
        "rows": out["indptr"].rows - 1 if source.sparse else out["X"].rows,
        "columns": columns,
        "feature_names": source.feature_names,
        "target_names": source.target_names,
        "labels": labels.names,
        "zero_based": zero_based,
        "skipped": source.skipped.rows,
    }


def _arrays(folder: Path, source: Source, columns: int, y: Array | None) -> dict[str, GrowingArray]:
    parts: dict[str, tuple[Any, int | None]] = (
        {"data": (source.dtype, None), "indices": (np.int64, None), "indptr": (np.int64, None)}
        if source.sparse
        else {"X": (source.dtype, columns)}
    )
    if y is not None:
        parts["y"] = (np.float64, None if y.ndim == 1 else y.shape[1])
    return {name: GrowingArray(folder / f"{name}.npy", *part) for name, part in parts.items()}


def _read_meta(folder: Path) -> dict[str, Any]:
    try:
        meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileFormatError(f"{folder} is no folder made by dapsgd.io.convert, or is damaged: it has no meta.json") from None
    except (OSError, ValueError) as error:
        raise FileFormatError(f"{folder} is damaged: meta.json cannot be read ({error}); delete the folder") from None
    if not isinstance(meta, dict) or meta.get("format") != _FORMAT:
        raise FileFormatError(f"{folder} is no folder made by dapsgd.io.convert; its meta.json says something else")
    if meta.get("version") != _VERSION:
        raise FileFormatError(f"{folder} has version {meta.get('version')!r}; this dapsgd reads version {_VERSION}")
    return meta


def open_folder(folder: Any) -> Dataset:
    """Open a folder that ``convert`` has made; X stays on disk and is mapped into memory.

    Parameters
    ----------
    folder : path
        The folder.

    Returns
    -------
    Dataset

    Raises
    ------
    FileFormatError
        If the folder is damaged, or is of another version.
    """
    folder = Path(os.fspath(folder))
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}")
    meta = _read_meta(folder)
    try:
        n, p, sparse = int(meta["rows"]), int(meta["columns"]), bool(meta["sparse"])
        skipped = int(meta.get("skipped", 0))
        names, labels = meta["feature_names"], meta["labels"]
        targets, zero_based = tuple(map(str, meta["target_names"])), meta["zero_based"]
        names = None if names is None else tuple(map(str, names))
        labels = None if labels is None else [str(label) for label in labels]
    except (KeyError, TypeError, ValueError) as error:
        raise FileFormatError(f"{folder} is damaged: meta.json lacks or garbles {error}; delete the folder") from None
    if names is not None and len(names) != p:
        raise FileFormatError(f"{folder} is damaged: meta.json has {len(names)} names for {p} columns; delete the folder")
    X = _map_sparse(folder, n, p) if sparse else _map(folder, "X", (n, p), "f")
    y = None
    if targets:
        several = (len(targets),) if len(targets) > 1 else ()
        y = np.array(_map(folder, "y", (n, *several), "f", loose=True))
        if labels is not None and not ((y >= 0.0) & (y < len(labels)) & (y == np.floor(y))).all():
            raise FileFormatError(f"{folder} is damaged: y.npy holds what is no label; delete the folder")
        y = decode(y, labels)
    return Dataset(X, y, names, targets, zero_based, skipped)


def _map(folder: Path, name: str, shape: tuple[int, ...], kind: str, loose: bool = False) -> Array:
    path = folder / f"{name}.npy"
    if not path.is_file():
        raise FileFormatError(f"{folder} is damaged: it has no {path.name}; delete the folder")
    with reading(path, "NPY", ValueError, SyntaxError, TypeError), open(path, "rb") as file:
        header = read_header(file, path.stat().st_size, str(path))
    fits = header.shape[: len(shape)] == shape if loose else header.shape == shape
    if not fits or header.fortran or header.dtype.kind != kind or header.dtype.itemsize not in (4, 8):
        raise FileFormatError(f"{path} is damaged: it holds {header.dtype} of shape {header.shape}; it should be {shape}")
    if 0 in shape:
        return np.zeros(shape, header.dtype)
    return header.map(path)


def _map_sparse(folder: Path, n: int, p: int) -> Any:
    from scipy.sparse import csr_matrix

    indptr = _map(folder, "indptr", (n + 1,), "i")
    entries = int(indptr[-1])
    data, indices = _map(folder, "data", (entries,), "f"), _map(folder, "indices", (entries,), "i")
    steps = np.diff(indptr)
    if indptr[0] != 0 or (steps < 0).any() or (entries and not (indices.min() >= 0 and indices.max() < p)):
        raise FileFormatError(f"{folder} is damaged: the parts of its sparse matrix do not belong together; delete the folder")
    return csr_matrix((data, indices, indptr), shape=(n, p), copy=False)
