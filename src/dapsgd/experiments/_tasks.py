"""What an experiment is made of: tasks whose numbers are kept on disk, claims about them, and pictures."""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._files import write_text
from .._team import available_cores
from ..errors import DapsgdError

__all__ = ["Claim", "Numbers", "Part", "Settings", "Store", "Task", "machine"]

Numbers = dict[str, Any]  # what a task leaves behind: numbers, strings and lists of these, by name


@dataclass(frozen=True)
class Settings:
    """What is asked for."""

    quick: bool = False
    seeds: int = 3
    workers: int = 0  # all cores, filled in by reproduce
    data: str = ""  # a file with X and y, to run on instead of the bundled real data


class Task(NamedTuple):
    """A piece of an experiment that is run in one go."""

    key: str  # its name, also that of its file
    run: Callable[[], Numbers]
    seconds: float  # about how long it takes: for the progress bar only


class Claim(NamedTuple):
    """A statement that can be checked."""

    name: str
    paper: str  # what the paper says
    measured: str  # what was measured here
    holds: bool | None  # None: reported as it is


class Part(NamedTuple):
    """One part of what can be reproduced."""

    name: str
    title: str
    tasks: Callable[[Settings], list[Task]]
    claims: Callable[[Settings, Callable[[str], Numbers]], list[Claim]]
    draw: Callable[[Settings, Callable[[str], Numbers]], dict[str, tuple[Any, str]]]  # name: figure and caption


class Store:
    """A folder with the numbers of every finished task, so that an interrupted run goes on where it was.

    A file counts only if it was made with the same settings, version and machine.
    """

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.folder = folder
        about = {"settings": asdict(settings), "machine": machine()}
        self.about = about
        self._mark = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]
        try:
            (folder / "raw").mkdir(parents=True, exist_ok=True)
            write_text(folder / "raw" / ".writable", "")
            (folder / "raw" / ".writable").unlink()
        except OSError as error:
            raise DapsgdError(f"cannot write to the folder {folder}: {error.strerror or error}") from None

    def get(self, key: str) -> Numbers | None:
        """Return the numbers of a finished task, None if there are none for these settings."""
        try:
            kept = json.loads(self._path(key).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(kept, dict) or kept.get("mark") != self._mark or not isinstance(kept.get("numbers"), dict):
            return None
        return kept["numbers"]

    def put(self, key: str, numbers: Numbers) -> None:
        """Keep the numbers of a task."""
        kept = {"mark": self._mark, "task": key, **self.about, "numbers": numbers}
        write_text(self._path(key), json.dumps(kept, default=_plain, indent=1) + "\n")

    def __getitem__(self, key: str) -> Numbers:
        numbers = self.get(key)
        if numbers is None:
            raise KeyError(key)
        return numbers

    def _path(self, key: str) -> Path:
        return self.folder / "raw" / f"{re.sub(r'[^A-Za-z0-9.=-]+', '_', key)}.json"


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"cannot keep a {type(value).__name__}")


def machine() -> dict[str, Any]:
    """Describe this machine and the versions of what matters."""
    import numba
    import scipy

    from .. import __version__

    return {
        "cores": available_cores(),
        "system": platform.system(),
        "processor": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "dapsgd": __version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
    }


def median(values: Sequence[float]) -> float:
    """Return the median as a float."""
    return float(np.median(np.asarray(values, dtype=np.float64)))
