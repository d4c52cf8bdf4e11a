"""Checkpoints: files that a shard, or a whole run, goes on from. Written whole or not at all, the last two are kept."""

from __future__ import annotations

import contextlib
import hashlib
import json
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
_NAME = re.compile(r"shard-(\d+)-(\d+)\.npz")


class ShardFiles:
    """The checkpoints of one shard."""

    def __init__(self, folder: str, shard: int) -> None:
        self._folder, self._shard = Path(folder), shard

    def save(self, state: State) -> None:
        """Write a checkpoint, and remove all but the last two."""
        version, arrays, numbers = state
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"shard-{self._shard}-{version:012d}.npz"
        text = np.frombuffer(json.dumps(numbers).encode(), np.uint8)
        with replacing(path) as temporary, open(temporary, "wb") as file:
            _write(file, {"numbers": text, **arrays})
        for old in self.versions()[:-_KEEP]:
            (self._folder / f"shard-{self._shard}-{old:012d}.npz").unlink(missing_ok=True)

    def load(self) -> State | None:
        """Return the newest checkpoint that is whole, None if there is none."""
        for version in reversed(self.versions()):
            with contextlib.suppress(Exception):  # damaged: the one before it will do
                return self.read(version)
        return None

    def read(self, version: int) -> State:
        """Read one checkpoint; the archive's checksums are compared."""
        with np.load(self._folder / f"shard-{self._shard}-{version:012d}.npz", allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        return version, arrays, json.loads(bytes(arrays.pop("numbers")))

    def whole(self) -> list[int]:
        """Return the versions that can be read."""
        return [version for version in self.versions() if _is_whole(self, version)]

    def remove_after(self, version: int) -> None:
        """Remove what is newer than a version."""
        for newer in self.versions():
            if newer > version:
                (self._folder / f"shard-{self._shard}-{newer:012d}.npz").unlink(missing_ok=True)

    def versions(self) -> list[int]:
        """Return the versions of which there is a file."""
        found = (_NAME.fullmatch(path.name) for path in self._folder.glob(f"shard-{self._shard}-*.npz"))
        return sorted(int(match[2]) for match in found if match)


class Folder:
    """The checkpoints of a whole run, as the driver sees them.

    Every shard writes a checkpoint after the same update, so that together they are the parameter at one version.
    """

    def __init__(self, path: str, shards: int) -> None:
        self.path = Path(path)
        self._shards = shards

    def prepare(self, facts: dict[str, Any]) -> int:
        """Make the folder ready for a run with such facts; return the version to go on from, 0 for a start."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            version = self._find(facts)
            write_text(self.path / "run.json", json.dumps(facts, indent=1))
        except OSError as error:
            raise OSError(
                f"Ray: checkpoint_dir {self.path} cannot be written ({error.strerror or error}); name a folder with room"
            ) from None
        return version

    def _find(self, facts: dict[str, Any]) -> int:
        """Return the newest version that all shards have whole, and remove what is newer."""
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
        files = [ShardFiles(str(self.path), shard) for shard in range(self._shards)]
        version = max(set.intersection(*(set(own.whole()) for own in files)), default=0)
        for own in files:
            own.remove_after(version)
        return version

    def remove(self) -> None:
        """Remove the checkpoints of a run that came to its end."""
        for path in [*self.path.glob("shard-*-*.npz"), self.path / "run.json"]:
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
