"""What is fuzzed: every reader of files, each with small files to start from.

A target takes the bytes of a file. The file may be refused with :class:`dapsgd.FileFormatError` or
:class:`dapsgd.CheckpointError`, and nothing else; what is accepted must be finite and fit together. Archives have
checksums, which a change of a byte breaks; so they are also fuzzed from within: the first byte chooses a member, the others
are its new content, and the checksums are right again.

A million files a reader take long, so that what is around the reader is kept small: one file that stays open, archives put
together by hand, and seeds of a few hundred bytes.
"""

from __future__ import annotations

import io
import json
import os
import struct
import tempfile
import zipfile
import zlib
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
from dapsgd.runtimes import _engine as engine
from dapsgd.runtimes._plan import Plan

REFUSED = (ds.FileFormatError, ds.CheckpointError)


class Target(NamedTuple):
    seeds: Callable[[], list[bytes]]
    read: Callable[[bytes], None]


@cache
def folder() -> Path:
    """Return a folder for the file."""
    made = tempfile.TemporaryDirectory(prefix="dapsgd-fuzz-")
    _kept.append(made)
    return Path(made.name)


_kept: list[Any] = []


@cache
def opened(ending: str) -> tuple[Path, int]:
    path = folder() / f"file{ending}"
    return path, os.open(path, os.O_RDWR | os.O_CREAT)


def as_file(content: bytes, ending: str) -> Path:
    path, descriptor = opened(ending)
    os.pwrite(descriptor, content, 0)
    os.ftruncate(descriptor, len(content))
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
        names = list(members())
        changed = {names[content[0] % len(names)]: content[1:]} if content else {}
        read(archive_of(members() | changed))

    return Target(lambda: [bytes([k]) + member for k, member in enumerate(members().values())], read_inside)


def archive_of(members: dict[str, bytes]) -> bytes:
    """Return a ZIP archive, not compressed: what zipfile writes, many times sooner."""
    content, directory, where = [], [], 0
    for name, member in members.items():
        path, size = name.encode(), len(member)
        common = struct.pack("<HHHHHLLLHH", 20, 0, 0, 0, 33, zlib.crc32(member), size, size, len(path), 0)
        content += [b"PK\3\4", common, path, member]
        directory += [b"PK\1\2\x14\0", common, struct.pack("<HHHLL", 0, 0, 0, 0, where), path]
        where += 30 + len(path) + size
    last = b"".join(directory)
    end = struct.pack("<HHHHLLH", 0, 0, len(members), len(members), len(last), where, 0)
    return b"".join([*content, last, b"PK\5\6", end])


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
        model = ds.DAPRegressor("l1", alpha=0.1, random_state=0).partial_fit(X, X[:, 0])
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

    last = 24

    def __init__(self) -> None:
        options = {"workers": 1, "step": ds.Constant(1e-3), "tol": 0, "seed": 0, "record_schedule": True, "record_every": 8}
        X = np.random.default_rng(0).standard_normal((10, 3))
        problem = ds.Problem(X, X[:, 0], regularizer=ds.L1(0.1))
        path = folder() / "seed.ckpt"
        ds.solve(problem, "dap-sgd", checkpoint=path, max_iter=16, **options)
        self.seed = path.read_bytes()
        self.keeper = checkpoints.Keeper(path, True)
        with np.load(path) as archive:
            self.keeper.open(json.loads(archive["about"].tobytes())["facts"])
        probe = Probe()
        with suppress(StopIteration):
            ds.solve(problem, "dap-sgd", runtime=probe, max_iter=self.last, **options)
        stack = ExitStack()
        self.crew, self.monitor = stack.enter_context(_crew.make_crew(probe.plan, 1)), probe.monitor
        _kept.append(stack)

    def read(self, content: bytes) -> None:
        path = as_file(content, ".ckpt")
        parts = checkpoints.read_checkpoint(path, self.keeper._about)
        for name, part in (("trace", self.monitor), ("run", self.crew)):
            if name not in parts:
                raise ds.CheckpointError(f"{name} is missing")
            part.restore(checkpoints.Saved(path, parts[name]))
        goal = min(self.crew.iteration + 4, self.last)
        self.crew.prepare(goal)
        self.crew.advance()
        assert self.crew.iteration == goal or self.crew.records_wait
        self.crew._ledger.counters[engine.RECORDS] = 0  # no record waits any more


@cache
def checkpoint_reader() -> CheckpointReader:
    return CheckpointReader()


TARGETS: dict[str, Target] = {
    "csv": Target(lambda: CSV, read_data(".csv")),
    "csv-target": Target(lambda: LABELS, read_data(".csv", target=-1)),
    "csv-utf16": Target(lambda: [text.decode().encode("utf-16") for text in CSV], read_data(".csv", encoding="utf-16")),
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
