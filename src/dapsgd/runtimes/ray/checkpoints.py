"""Checkpoints: files that a shard, or a whole run, goes on from. Written whole or not at all, the last two are kept."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..._files import replacing, write_text
from ...errors import CheckpointError

__all__ = ["Folder", "ShardFiles", "State", "fingerprint"]

Array = np.ndarray[Any, Any]
State = tuple[int, dict[str, Array], dict[str, Any]]  # version, arrays, numbers

_KEEP = 2
_NAME = re.compile(r"shard-(\d+)-([0-9a-f]+)-(\d+)\.npz")


class ShardFiles:
    """The checkpoints of one shard in one run.

    A run has a name of its own in its files: what is left of one that was killed may go on writing for a while.
    """

    def __init__(self, folder: str, shard: int, run: str) -> None:
        self._folder, self._shard, self._run = Path(folder), shard, run

    def save(self, state: State) -> None:
        """Write a checkpoint, and remove all but the last two."""
        version, arrays, numbers = state
        self._folder.mkdir(parents=True, exist_ok=True)
        text = np.frombuffer(json.dumps(numbers).encode(), np.uint8)
        with replacing(self._path(version)) as temporary, open(temporary, "wb") as file:
            _write(file, {"numbers": text, **arrays})
        for old in self.versions()[:-_KEEP]:
            self._path(old).unlink(missing_ok=True)

    def load(self) -> State | None:
        """Return the newest checkpoint that is whole, None if there is none."""
        for version in reversed(self.versions()):
            with contextlib.suppress(Exception):  # damaged: the one before it will do
                return self.read(version)
        return None

    def read(self, version: int) -> State:
        """Read one checkpoint; the archive's checksums are compared."""
        with np.load(self._path(version), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        return version, arrays, json.loads(bytes(arrays.pop("numbers")))

    def whole(self) -> list[int]:
        """Return the versions that can be read."""
        return [version for version in self.versions() if _is_whole(self, version)]

    def remove_after(self, version: int) -> None:
        """Remove what is newer than a version."""
        for newer in self.versions():
            if newer > version:
                self._path(newer).unlink(missing_ok=True)

    def versions(self) -> list[int]:
        """Return the versions of which there is a file."""
        found = (_NAME.fullmatch(path.name) for path in self._folder.glob(f"shard-{self._shard}-{self._run}-*.npz"))
        return sorted(int(match[3]) for match in found if match)

    def _path(self, version: int) -> Path:
        return self._folder / f"shard-{self._shard}-{self._run}-{version:012d}.npz"


class Folder:
    """The checkpoints of a whole run, as the driver sees them.

    Every shard writes a checkpoint after the same update, so that together they are the parameter at one version.

    Attributes
    ----------
    run : str
        The name of the run in its files.
    """

    def __init__(self, path: str, shards: int) -> None:
        self.path = Path(path)
        self.run = os.urandom(4).hex()
        self._shards = shards

    def prepare(self, facts: dict[str, Any]) -> int:
        """Make the folder ready for a run with such facts; return the version to go on from, 0 for a start."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._check(facts)
            version = self._adopt()
            write_text(self.path / "run.json", json.dumps(facts, indent=1))
        except OSError as error:
            raise OSError(
                f"Ray: checkpoint_dir {self.path} cannot be written ({error.strerror or error}); name a folder with room"
            ) from None
        return version

    def _check(self, facts: dict[str, Any]) -> None:
        """Refuse a folder of another problem."""
        about = self.path / "run.json"
        if about.exists():
            try:
                known = json.loads(about.read_text(encoding="utf-8"))
            except ValueError:
                known = None
            if known != facts:
                raise CheckpointError(
                    f"Ray: checkpoint_dir {self.path} holds checkpoints of another run, with other data, terms, algorithm or "
                    "number of shards or workers; name another folder, or empty this one to start anew"
                )

    def _adopt(self) -> int:
        """Copy the newest version that all shards of an earlier run have whole, and remove the others; return the version."""
        names = [_NAME.fullmatch(path.name) for path in self.path.glob("shard-*.npz")]
        found = [(self._common(run), run) for run in {match[2] for match in names if match}]
        version, before = max(found, default=(0, ""))
        if version:
            try:
                for shard in range(self._shards):
                    self._files(shard, self.run).save(self._files(shard, before).read(version))
            except FileNotFoundError:  # what is left of that run has just written another one
                return self._adopt()
        for path in self.path.glob("shard-*.npz"):
            if f"-{self.run}-" not in path.name:
                path.unlink(missing_ok=True)
        return version

    def _common(self, run: str) -> int:
        """Return the newest version that all shards of a run have whole, 0 if there is none."""
        return max(set.intersection(*(set(self._files(s, run).whole()) for s in range(self._shards))), default=0)

    def _files(self, shard: int, run: str) -> ShardFiles:
        return ShardFiles(str(self.path), shard, run)

    def remove(self) -> None:
        """Remove the checkpoints of a run that came to its end."""
        for path in [*self.path.glob("shard-*.npz"), self.path / "run.json"]:
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # not empty: what else is there is not ours
            self.path.rmdir()


def _write(file: IO[bytes], arrays: dict[str, Array]) -> None:
    """Write what ``numpy.savez`` does, but without its buffers, which are as large as a slice."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array_header_1_0(entry, np.lib.format.header_data_from_array_1_0(array))
                entry.write(np.ascontiguousarray(array).data.cast("B"))


def _is_whole(files: ShardFiles, version: int) -> bool:
    try:
        files.read(version)
    except Exception:
        return False
    return True


def fingerprint(*parts: Any) -> str:
    """Return a number, in digits, that tells one problem from another."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(np.ascontiguousarray(part).data if isinstance(part, np.ndarray) else repr(part).encode())
    return digest.hexdigest()[:32]
