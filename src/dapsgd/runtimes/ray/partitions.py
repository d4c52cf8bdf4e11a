"""Rows in files, as the workers open them and as the driver sees them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ... import rows as _rows
from ...problem import Problem
from .cluster import Cluster

if TYPE_CHECKING:
    from .config import Ray

__all__ = ["Columns", "FileSource", "RemoteRows", "place_files"]

Array = np.ndarray[Any, Any]


class Columns(NamedTuple):
    """The columns that all files have to have."""

    width: int
    names: tuple[str, ...] | None
    zero_based: bool | None
    sparse: bool
    dtype: str


class FileSource:
    """A worker's files; made in the driver, read in the worker."""

    def __init__(self, files: list[str], target: Any, options: dict[str, Any], terms: dict[str, Any]) -> None:
        self._files, self._target, self._options, self._terms = files, target, options, terms
        self._data: list[tuple[str, Any, Array, Columns]] = []

    def look(self) -> list[tuple[str, Columns]]:
        """Read the files; return what columns each has."""
        from ... import io

        self._data = []
        for name in self._files:
            data = io.read(name, self._target, **self._options)
            if data.y is None:
                raise ValueError(f"Partitions: target must be given, the column of {name} with the targets")
            if data.y.dtype.kind not in "fiub":
                raise ValueError(
                    f"Partitions: the target in {name} must hold numbers; code labels as numbers, the same in all files"
                )
            sparse = hasattr(data.X, "tocsr")
            columns = Columns(data.X.shape[1], data.feature_names, data.zero_based, sparse, str(data.X.dtype))
            self._data.append((name, data.X, data.y, columns))
        return [(name, columns) for name, _, _, columns in self._data]

    def __call__(self, common: Columns) -> Problem:
        """Return the problem with the rows of all files, in the columns that all workers have."""
        if not self._data:
            self.look()
        parts = [_fitted(X, own, common) for _, X, _, own in self._data]
        y = np.concatenate([y for _, _, y, _ in self._data])
        self._data = []
        if common.sparse:
            from scipy.sparse import vstack

            return Problem(vstack(parts, format="csr"), y, **self._terms)
        return Problem(parts[0] if len(parts) == 1 else np.concatenate(parts), y, **self._terms)


def _fitted(X: Any, own: Columns, common: Columns) -> Any:
    if common.sparse:
        from scipy.sparse import csr_matrix

        return csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], common.width)).astype(common.dtype, copy=False)
    if own.names != common.names and own.names is not None and common.names is not None:
        X = X[:, [own.names.index(name) for name in common.names]]
    return X.astype(common.dtype, copy=False)


def common_columns(found: list[tuple[str, Columns]]) -> Columns:
    """Return the columns that fit all files, or say which two do not fit."""
    first_name, first = found[0]
    for name, columns in found[1:]:
        if columns.sparse != first.sparse:
            raise ValueError(f"Partitions: {first_name} and {name} must both be sparse, or both be dense")
        if columns.zero_based != first.zero_based:
            raise ValueError(f"Partitions: zero_based must be given, as {first_name} and {name} seem to differ in it")
        if first.names is not None and columns.names is not None and set(first.names) != set(columns.names):
            odd = sorted(set(first.names) ^ set(columns.names))[0]
            raise ValueError(f"Partitions: all files must have the same columns; {first_name} and {name} differ in {odd!r}")
        if not first.sparse and columns.width != first.width:
            raise ValueError(
                f"Partitions: all files must have the same columns; {first_name} has {first.width}, {name} has {columns.width}"
            )
    kinds = {columns.dtype for _, columns in found}
    dtype = kinds.pop() if len(kinds) == 1 else "float64"
    return first._replace(width=max(columns.width for _, columns in found), dtype=dtype)


class RemoteRows(_rows.FarRows):
    """The rows of all workers: whole passes over them are made where they are."""

    def __init__(self, cluster: Cluster, bounds: Array, p: int, dtype: Any, intercept: bool) -> None:
        self._cluster, self._bounds = cluster, bounds
        self.n, self.p, self.dtype, self.intercept = int(bounds[-1]), p, np.dtype(dtype), intercept

    def predict(self, x: Array) -> Array:
        """Return the predictions of every row."""
        return np.concatenate(self._cluster.call("predict", [(x,)] * self._cluster.workers))

    def transpose_times(self, d: Array) -> Array:
        """Return ``X.T @ d``."""
        pieces = [(d[a:b],) for a, b in zip(self._bounds[:-1], self._bounds[1:], strict=True)]
        total: Array = np.sum(self._cluster.call("transpose_times", pieces), axis=0)
        return total

    def squared_norms(self) -> Array:
        """Return the squared norm of every row."""
        return np.concatenate(self._cluster.call("squared_norms"))

    def snapshot_step(self, x0: Array, batch_size: int, max_delay: int) -> float:
        """Return a step for mini-batches of any worker's rows."""
        return float(min(self._cluster.call("snapshot_step", [(x0, batch_size, max_delay)] * self._cluster.workers)))

    def share_step(self, blocks: int, x0: Array) -> float:
        """Return a step for blocks of any worker's rows."""
        return float(min(self._cluster.call("share_step", [(blocks, x0)] * self._cluster.workers)))


class FileCluster(Cluster):
    """A cluster whose workers have their rows from files."""

    def __init__(self, config: Ray, ray: Any, sources: list[FileSource], posed: Problem) -> None:
        super().__init__(config, ray, [("load_files", source) for source in sources])
        self._posed = posed

    def prepare(self) -> None:
        """Have the files read, and make a problem of what the workers say about them."""
        seconds = self.config.start_seconds
        files = [load[1:] for load in self.loads]
        found = [pair for pairs in self.call("look", files, timeout=seconds, restarted=lambda _: None) for pair in pairs]
        self.loads = [(*load, common_columns(found)) for load in self.loads]
        facts = self.load()
        if len({fact["shape"] for fact in facts}) > 1:
            raise ValueError(
                f"Partitions: targets differ between files: parameters would be {[fact['shape'] for fact in facts]}"
            )
        self.bounds = np.cumsum([0, *(fact["n"] for fact in facts)])
        rows = RemoteRows(self, self.bounds, facts[0]["p"], facts[0]["dtype"], self._posed.fit_intercept)
        targets, weights = (np.concatenate([fact[name] for fact in facts]) for name in ("targets", "weights"))
        self.problem = self._posed.with_rows(rows, targets, weights, facts[0]["shape"])
        self.problem.check_shards(self.config.shards)


def place_files(config: Ray, ray: Any, problem: Problem, workers: int, fixed: bool) -> tuple[Cluster, list[Any]]:
    """Spread files over workers."""
    partitions = problem.partitions
    assert partitions is not None
    count = len(partitions.files)
    if workers > count:
        if fixed:
            raise ValueError(f"workers must be at most the number of files, {count}, as each opens its own; got {workers}")
        workers = count
    terms = {
        "loss": problem.loss,
        "regularizer": problem.regularizer,
        "l2": problem.l2,
        "fit_intercept": problem.fit_intercept,
    }
    here = os.getcwd()
    sources = [
        FileSource([os.path.join(here, name) for name in own], partitions.target, partitions.options, terms)
        for own in partitions.spread(workers)
    ]
    return FileCluster(config, ray, sources, problem), []
