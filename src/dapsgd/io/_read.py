"""``read``: a file into memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .._checks import suggesting
from ._dataset import Dataset
from ._formats import open_source
from ._labels import Labels, decode
from ._source import Column, make_options, no_rows

__all__ = ["read", "read_blocks"]


@suggesting
def read(
    path: Any,
    target: Column | Sequence[Column] | None = None,
    *,
    drop: Column | Sequence[Column] | None = None,
    features: Sequence[str] | None = None,
    header: bool | None = None,
    zero_based: bool | None = None,
    n_features: int | None = None,
    dtype: Any = None,
    skip_missing: bool = False,
    keep: Column | Sequence[Column] | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    skip_lines: int = 0,
) -> Dataset:
    r"""Read a file of data into memory; its ending says of which kind it is.

    Parameters
    ----------
    path : path
        A file that ends in .csv, .tsv, .tab, .svm, .svmlight, .libsvm, .npy, .npz, .parquet, .pq, .arrow or .feather. Text may
        be compressed, and then ends in .gz as well. Parquet and Arrow need pyarrow; with it large CSV files are read faster.
    target : str, int or a list of these, optional
        The column with the target, by name or by position, -1 for the last. Several make y two-dimensional. Of an NPZ file it
        is the name of an array, ``y`` by default; svmlight has its target in the first field.
    drop : str, int or a list of these, optional
        Columns to leave out.
    features : list of str, optional
        The columns of X, in this order; by default all that are not left out.
    header : bool, optional
        Whether the first line of a CSV file is a header; by default it is if it holds anything that is not a number,
        or the names of all ``features``.
    zero_based : bool, optional
        Whether the first column of an svmlight file is 0 rather than 1; by default it is if the index 0 occurs.
    n_features : int, optional
        The number of columns of an svmlight file; by default the largest index.
    dtype : "float32" or "float64", optional
        Of X; by default float32 where the file holds that, otherwise float64.
    skip_missing : bool, default False
        Leave out the rows of a CSV, Parquet or Arrow file in which a value is missing; by default that is an error. How many
        they were is ``Dataset.skipped``.
    keep : str, int or a list of these, optional
        Columns of a CSV, Parquet or Arrow file whose text is kept as it is in ``Dataset.kept``, such as the name of a sample.
        That does not make them features, nor leave them out: see ``drop`` and ``features``.
    decimal : "." or ",", default "."
        The decimal sign of a CSV file.
    encoding : str, default "utf-8"
        The encoding of a CSV file, such as "cp1252" or "utf-16".
    skip_lines : int, default 0
        How many lines at the top of a CSV file to leave out, such as a title or comments.

    Returns
    -------
    Dataset

    Raises
    ------
    FileFormatError
        If the file is damaged, or holds what is not a finite number; the sentence says where.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import dapsgd.io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "small.svm"
    ...     _ = path.write_text("1 1:0.5 3:2\n-1 2:1\n")
    ...     dapsgd.io.read(path)
    Dataset(2 x 3 CSR float64, target label)
    """
    options = make_options(
        target, drop, features, header, zero_based, n_features, dtype, skip_missing, keep, decimal, encoding, skip_lines
    )
    source = open_source(path, options)
    labels = Labels(path, source.target_names)
    parts, targets = [], []
    kept: dict[str, list[str]] = {name: [] for name in source.kept_names}
    for X, y, texts in source.blocks(lambda _: None):
        parts.append(X)
        for name, text in zip(kept, texts, strict=True):
            kept[name].extend(text)
        if y is not None:
            targets.append(labels.encode(y))
    if not parts:
        raise no_rows(path, source)
    X, first_is_zero = _join(parts, source)
    y = decode(np.concatenate(targets), labels.names) if targets else None
    return Dataset(X, y, source.feature_names, source.target_names, first_is_zero, source.skipped.rows, kept)


def read_blocks(path: Any, target: Any = None, **options: Any) -> Iterator[Dataset]:
    """Read a file in blocks of rows, so that only one is in memory at a time; options are those of :func:`read`.

    Of svmlight files the number of columns must be given, and whether they start at 0 does: no block knows of the others.
    """
    source = open_source(path, make_options(target, **options))
    for X, y, texts in source.blocks(lambda _: None):
        joined, zero_based = _join([X], source)
        targets = y.astype(str) if y is not None and y.dtype == object else y
        kept = dict(zip(source.kept_names, texts, strict=True))
        yield Dataset(joined, targets, source.feature_names, source.target_names, zero_based, kept=kept)


def _join(parts: list[Any], source: Any) -> tuple[Any, bool | None]:
    if source.columns is None:
        return np.ascontiguousarray(parts[0] if len(parts) == 1 else np.concatenate(parts), dtype=source.dtype), None
    from scipy.sparse import csr_matrix

    indices = np.concatenate([part.indices for part in parts])
    smallest, largest = (int(indices.min()), int(indices.max())) if indices.size else (1, 0)
    count, zero_based = source.columns(smallest, largest)
    indices -= not zero_based
    lengths = np.concatenate([np.diff(part.indptr) for part in parts])
    indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    data = np.concatenate([part.data for part in parts]).astype(source.dtype, copy=False)
    return csr_matrix((data, indices, indptr), shape=(len(lengths), count)), zero_based
