"""``Partitions``: data in several files, each opened by the worker that owns it."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from typing import Any

__all__ = ["Partitions"]


class Partitions:
    """Data in files that workers on a cluster open, so that it never passes through the calling process.

    Give it to :class:`dapsgd.Problem` in place of X and y, and solve that with ``runtime=dapsgd.Ray(...)``. Every row counts
    once, however the rows are spread over the files; large and small files are spread over the workers as evenly as may be.
    The calling process keeps a few vectors with an entry a row: targets, weights and predictions.

    Parameters
    ----------
    files : str, path or a list of these
        Names, or a pattern such as ``"train-*.parquet"``, which is looked up where the program runs. The workers must see the
        files under the same names. Parquet, Arrow, npy, npz, svmlight and CSV: what :func:`dapsgd.io.read` reads.
    target : str, int or a list of these, optional
        The column with the target; as all the following, see :func:`dapsgd.io.read`.
    drop, features, header, zero_based, n_features, dtype : optional

    Examples
    --------
    >>> import dapsgd as ds
    >>> ds.Partitions(["a.parquet", "b.parquet"], target="y")
    Partitions(2 files, 'a.parquet', ..., target='y')
    """

    def __init__(self, files: Any, target: Any = None, **options: Any) -> None:
        allowed = {"drop", "features", "header", "zero_based", "n_features", "dtype"}
        unknown = sorted(set(options) - allowed)
        if unknown:
            raise TypeError(f"Partitions: there is no option {unknown[0]!r}; there are {', '.join(sorted(allowed))}")
        self.files = _names(files)
        self.target = target
        self.options = options

    def spread(self, workers: int) -> list[list[str]]:
        """Return the files of each of so many workers: the largest first, each to whoever has the least so far."""
        bins: list[list[str]] = [[] for _ in range(workers)]
        loads = [0] * workers
        for name in sorted(self.files, key=_size, reverse=True):
            least = loads.index(min(loads))
            bins[least].append(name)
            loads[least] += max(_size(name), 1)
        return [sorted(own, key=self.files.index) for own in bins]

    def __repr__(self) -> str:
        count = f"{len(self.files)} file{'s' * (len(self.files) != 1)}"
        more = ", ..." if len(self.files) > 1 else ""
        target = "" if self.target is None else f", target={self.target!r}"
        return f"Partitions({count}, {self.files[0]!r}{more}{target})"


def _names(files: Any) -> list[str]:
    if isinstance(files, (str, os.PathLike)):
        name = os.fspath(files)
        if not glob.has_magic(name):
            return [name]
        found = sorted(glob.glob(name))
        if not found:
            raise FileNotFoundError(f"Partitions: no file matches {name!r}")
        return found
    if not isinstance(files, Sequence) or not all(isinstance(name, (str, os.PathLike)) for name in files):
        raise TypeError(f"Partitions: files must be a name, a pattern or a list of names; got {files!r}")
    names = [os.fspath(name) for name in files]
    if not names:
        raise ValueError("Partitions: files must not be empty")
    if len(set(names)) != len(names):
        raise ValueError("Partitions: files must not name a file twice, as every row counts once")
    return names


def _size(name: str) -> int:
    """Return a file's size, 0 where it is seen by the workers only."""
    try:
        return os.path.getsize(name)
    except OSError:
        return 0
