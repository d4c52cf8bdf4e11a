"""What is fuzzed: every reader of files, each with small files to start from.

A target takes the bytes of a file. The file may be refused with :class:`dapsgd.FileFormatError` or
:class:`dapsgd.CheckpointError`, and nothing else; what is accepted must be finite and fit together. Archives have
checksums, which a change of a byte breaks; so they are also fuzzed from within: the first byte chooses a member, the others
are its new content, and the checksums are right again.
"""

from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, save_npz

import dapsgd as ds
import dapsgd.io
import dapsgd.models
from dapsgd import checkpoints
from dapsgd._monitor import RunMonitor
from dapsgd.runtimes import _crew
from dapsgd.runtimes._plan import Plan

REFUSED = (ds.FileFormatError, ds.CheckpointError)


class Target(NamedTuple):
    seeds: Callable[[], list[bytes]]
    read: Callable[[bytes], None]


@cache
def folder() -> Path:
    """Return a folder for the file, in memory if the system has one there."""
    root = Path("/dev/shm")
    made = tempfile.TemporaryDirectory(dir=root if os.access(root, os.W_OK) else None, prefix="dapsgd-fuzz-")
    _kept.append(made)
    return Path(made.name)


_kept: list[Any] = []


def as_file(content: bytes, ending: str) -> Path:
    path = folder() / f"file{ending}"
    path.write_bytes(content)
    return path


def read_data(ending: str, **options: Any) -> Callable[[bytes], None]:
    """Return a target that reads data from a file with this ending."""

    def read(content: bytes) -> None:
        data = dapsgd.io.read(as_file(content, ending), **options)
        values = data.X.data if hasattr(data.X, "tocsr") else data.X
        assert np.isfinite(np.asarray(values)).all()
        assert data.y is None or len(data.y) == data.X.shape[0]
        if hasattr(data.X, "tocsr"):
            assert data.X.indices.size == 0 or 0 <= data.X.indices.min() <= data.X.indices.max() < data.X.shape[1]

    return read


def inside(read: Callable[[bytes], None], seed: Callable[[], bytes]) -> Target:
    """Return a target that changes one member of an archive."""

    @cache
    def members() -> dict[str, bytes]:
        with zipfile.ZipFile(io.BytesIO(seed())) as archive:
            return {name: archive.read(name) for name in sorted(archive.namelist())}

    def read_inside(content: bytes) -> None:
        changed, names = io.BytesIO(), list(members())
        chosen = names[content[0] % len(names)] if content else None
        with zipfile.ZipFile(changed, "w") as archive:
            for name, member in members().items():
                archive.writestr(name, content[1:] if name == chosen else member)
        read(changed.getvalue())

    return Target(lambda: [bytes([k]) + member for k, member in enumerate(members().values())], read_inside)


# Data.

CSV = [b"a,b,y\n1,2,3\n4,5e-3,-6\n", b"1;2\n3;4\n", b"a\tb\r\n1\t2\r\n"]
LABELS = [*CSV, b'"x","y"\n1,"yes"\n2,"no"\n']
SVMLIGHT = [b"1 1:0.5 3:2\n-1 2:1\n", b"# a comment\n+1 qid:1 0:1e-3 5:-2.5 # more\n\n-1\n"]


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def npy_seeds() -> list[bytes]:
    X = np.arange(6.0).reshape(3, 2)
    return [npy(X), npy(np.asfortranarray(X)), npy(X.astype(np.float32)), npy(X.astype(int)), npy(X.astype(">f8"))]


def sparse_npz() -> bytes:
    X = csr_matrix([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]])
    return npz(X_data=X.data, X_indices=X.indices, X_indptr=X.indptr, X_shape=np.array(X.shape), y=np.ones(2))


def dense_npz() -> bytes:
    return npz(X=np.arange(6.0).reshape(3, 2), y=np.array(["a", "b", "a"]))


def scipy_npz() -> bytes:
    file = io.BytesIO()
    save_npz(file, csr_matrix(np.eye(2)))
    return file.getvalue()


def parquet_seeds() -> list[bytes]:
    import pyarrow as pa
    import pyarrow.parquet

    table = pa.table({"a": [1.0, 2.0], "b": [3, 4], "y": ["u", "v"]})
    file = io.BytesIO()
    pyarrow.parquet.write_table(table.select(["a", "b"]), file)
    return [file.getvalue()]


def arrow_seeds() -> list[bytes]:
    import pyarrow as pa

    table, file = pa.table({"a": [1.0, 2.0], "b": [3, 4]}), io.BytesIO()
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return [file.getvalue()]


# Models.


@cache
def model_file(kind: str) -> bytes:
    X = np.random.default_rng(0).standard_normal((20, 3))
    if kind == "regressor":
        model = ds.DAPRegressor("l1", alpha=0.1).fit(X, X[:, 0])
    else:
        model = ds.DAPClassifier("l1", alpha=0.1).fit(X, np.where(X[:, 0] > 0, "up", "down"))
    path = folder() / f"{kind}.npz"
    dapsgd.models.save(model, path, metadata={"note": "a seed"})
    return path.read_bytes()


def read_model(content: bytes) -> None:
    model = dapsgd.models.load(as_file(content, ".npz"))
    rows = np.zeros((2, model.n_features_in_))
    assert len(model.predict(rows)) == 2


# Checkpoints.


class Probe:
    """A runtime that runs nothing: it takes the plan."""

    plan: Plan
    monitor: RunMonitor

    def run(self, plan: Plan, monitor: RunMonitor) -> Any:
        self.plan, self.monitor = plan, monitor
        raise StopIteration


class CheckpointReader:
    """A run that is put back to what a file says, and goes on for some updates."""

    def __init__(self) -> None:
        options = {"workers": 1, "step": ds.Constant(1e-3), "max_iter": 200, "tol": 0, "seed": 0, "record_schedule": True}
        X = np.random.default_rng(0).standard_normal((30, 6))
        problem = ds.Problem(X, X[:, 0], regularizer=ds.L1(0.1))
        self.path = folder() / "run.ckpt"
        ds.solve(problem, "dap-sgd", checkpoint=self.path, **{**options, "max_iter": 150})
        self.seed = self.path.read_bytes()
        self.keeper = checkpoints.Keeper(self.path, True)
        with np.load(self.path) as archive:
            self.keeper.open(json.loads(archive["about"].tobytes())["facts"])
        probe = Probe()
        with suppress(StopIteration):
            ds.solve(problem, "dap-sgd", runtime=probe, **options)
        stack = ExitStack()
        self.crew, self.monitor = stack.enter_context(_crew.make_crew(probe.plan, 1)), probe.monitor
        _kept.append(stack)

    def read(self, content: bytes) -> None:
        self.path.write_bytes(content)
        parts = checkpoints.read_checkpoint(self.path, self.keeper._about)
        for name, part in (("trace", self.monitor), ("run", self.crew)):
            if name not in parts:
                raise ds.CheckpointError(f"{name} is missing")
            part.restore(checkpoints.Saved(self.path, parts[name]))
        done = self.crew.iteration
        self.crew.prepare(min(done + 20, 200))
        self.crew.advance(0)
        assert self.crew.iteration == min(done + 20, 200) or self.crew.records_wait
        self.crew._ledger.counters[6] = 0  # no record waits any more


@cache
def checkpoint_reader() -> CheckpointReader:
    return CheckpointReader()


TARGETS: dict[str, Target] = {
    "csv": Target(lambda: CSV, read_data(".csv")),
    "csv-target": Target(lambda: LABELS, read_data(".csv", target=-1)),
    "svmlight": Target(lambda: SVMLIGHT, read_data(".svm")),
    "npy": Target(npy_seeds, read_data(".npy")),
    "npz": Target(lambda: [dense_npz(), sparse_npz(), scipy_npz()], read_data(".npz")),
    "npz-inside": inside(read_data(".npz"), dense_npz),
    "csr-inside": inside(read_data(".npz"), sparse_npz),
    "parquet": Target(parquet_seeds, read_data(".parquet")),
    "arrow": Target(arrow_seeds, read_data(".arrow")),
    "model": Target(lambda: [model_file("regressor"), model_file("classifier")], read_model),
    "model-inside": inside(read_model, lambda: model_file("regressor")),
    "classifier-inside": inside(read_model, lambda: model_file("classifier")),
    "checkpoint": Target(lambda: [checkpoint_reader().seed], lambda content: checkpoint_reader().read(content)),
    "checkpoint-inside": inside(lambda content: checkpoint_reader().read(content), lambda: checkpoint_reader().seed),
}


def check(name: str, content: bytes) -> bool:
    """Feed a file to a reader; return whether it was accepted. Any error but a refusal comes through."""
    try:
        TARGETS[name].read(content)
    except REFUSED:
        return False
    return True
