"""Checkpoints: a run that is killed goes on from a file instead of from the beginning.

A checkpoint is an NPZ archive, not compressed: ``about``, which is JSON in bytes (the version, what was run on which problem,
and numbers), and arrays. Nothing in it is pickled, and nothing in it is run. It is written under another name, flushed to the
disk and renamed, so that whatever happens there is a whole one, the last or the one before.

What a run consists of are parts, each with ``state()``, which returns copies, and ``restore(saved)``: the workers, the trace,
the snapshots. :class:`Keeper` asks them when something is due; they know nothing of files.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import threading
import time
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ._arguments import argument
from ._checks import positive
from ._files import check_place, replacing, sweep
from ._fingerprint import difference, other_data
from ._team import Team
from .errors import CheckpointError

__all__ = ["Checkpoint", "Keeper", "Saved", "read_checkpoint"]

Array = np.ndarray[Any, Any]

_FORMAT, _VERSION = "dapsgd checkpoint", 2
_SECONDS = 5.0  # from the end of one checkpoint to the next
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True)
class Checkpoint:
    """Where a run is kept, and how often; a plain path means every five seconds.

    Parameters
    ----------
    path : path
        The file; the folder must exist.
    every : float, default 5.0
        Seconds from one checkpoint to the next.

    Examples
    --------
    >>> import dapsgd as ds
    >>> ds.Checkpoint("run.ckpt", every=60.0)
    Checkpoint(path='run.ckpt', every=60.0)
    """

    path: Any
    every: float = _SECONDS

    def __post_init__(self) -> None:
        """Check both."""
        if isinstance(self.path, bytes) or not isinstance(self.path, (str, os.PathLike)):
            raise TypeError(f"checkpoint must be the name of a file, or dapsgd.Checkpoint(path, every); got {self.path!r}")
        positive("Checkpoint: every", self.every)


class Part(Protocol):
    """Something that a run consists of."""

    def state(self) -> dict[str, Any]:
        """Return all that must be known to go on: numbers, text, lists of these, and copies of arrays."""

    def restore(self, saved: Saved) -> None:
        """Be as you were."""


class Saved:
    """What a file says of one part, looked at with suspicion: compiled code will use it as an index."""

    def __init__(self, path: Path, content: dict[str, Any]) -> None:
        self._path, self._content = path, content

    def damaged(self, why: str) -> CheckpointError:
        """Return the error to raise for a state that cannot be."""
        return CheckpointError(f"{self._path} is damaged: {why}; delete it to start from the beginning")

    def item(self, name: str) -> Any:
        """Return whatever was kept under a name."""
        if name not in self._content:
            raise self.damaged(f"{name} is missing")
        return self._content[name]

    def array(self, name: str, like: Array) -> Array:
        """Return an array with the shape and the type of another, all of it finite."""
        array = self.item(name)
        if not isinstance(array, np.ndarray) or array.shape != like.shape or array.dtype != like.dtype:
            raise self.damaged(f"{name} has the wrong shape or type")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise self.damaged(f"{name} holds numbers that are not finite")
        return array

    def number(self, name: str, low: float, high: float) -> float:
        """Return a finite number between two."""
        value = self.item(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high or math.isinf(value):
            raise self.damaged(f"{name} is {value!r:.60}")
        return value

    def integer(self, name: str, low: int, high: int) -> int:
        """Return an integer between two."""
        if type(self.item(name)) is not int:
            raise self.damaged(f"{name} is no integer")
        return int(self.number(name, low, high))

    def text(self, name: str) -> str | None:
        """Return text, or None."""
        value = self.item(name)
        if value is not None and not isinstance(value, str):
            raise self.damaged(f"{name} is no text")
        return value

    def stream(self, name: str, worker: int, stream: np.random.Generator) -> None:
        """Put a random stream back to where it was."""
        states = self.item(name)
        try:
            stream.bit_generator.state = states[worker]
        except (TypeError, ValueError, KeyError, IndexError, OverflowError):
            raise self.damaged(f"the random stream of worker {worker} makes no sense") from None


class Keeper:
    """Keeps a run in a file. Without a path it does nothing.

    From the first checkpoint on SIGINT and SIGTERM, where the program has not said to ignore them, have to wait until all
    parts are in order and written; then they have the effect that they would have had. A second one does not wait.
    """

    def __init__(self, checkpoint: Any, resume: bool) -> None:
        if checkpoint is None:
            if resume:
                raise ValueError("resume=True needs a checkpoint to go on from: give checkpoint='run.ckpt'")
            self._path: Path | None = None
            return
        given = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
        self._path = Path(os.path.realpath(given.path))
        self._every = float(given.every)
        self._resume = resume
        if not self._path.parent.is_dir():
            raise ValueError(f"checkpoint: there is no folder {self._path.parent}; create it first")
        check_place(self._path, "checkpoint")
        self._about: dict[str, Any] = {}
        self._parts: dict[str, Part] = {}
        self._loaded: dict[str, Any] | None = None
        self._last = -math.inf
        self._always = False  # all parts are in order at every moment
        self._busy = False  # with a file, or with ending
        self._team: Team | None = None  # one thread, which writes
        self._failure: OSError | None = None  # of that thread
        self._caught: list[int] = []  # signals that wait
        self._handlers: dict[int, Any] = {}  # those of the program

    def __bool__(self) -> bool:
        return self._path is not None

    def open(self, facts: dict[str, Any]) -> None:
        """Say what is run on which problem; read the file if the run is to go on, and refuse one of another run.

        Facts are numbers and text, each under the name that a user knows it by.
        """
        if self._path is None:
            return
        from . import __version__

        sweep(self._path)
        self._about = {"format": _FORMAT, "version": _VERSION, "dapsgd": __version__, "facts": json.loads(json.dumps(facts))}
        if self._resume and self._path.exists():
            self._loaded = read_checkpoint(self._path, self._about)

    def join(self, name: str, part: Part, always: bool = False) -> bool:
        """Make something a part of what is kept; put it back to where it was if the run goes on, and tell whether it does.

        The last part says whether all of them are in order ``always``, or only when something is offered.
        """
        if self._path is None:
            return False
        self._parts[name], self._always = part, always
        if self._loaded is None:
            return False
        if name not in self._loaded:
            raise CheckpointError(f"{self._path} is damaged: {name} is missing; delete it to start from the beginning")
        part.restore(Saved(self._path, self._loaded.pop(name)))
        return True

    @property
    def is_due(self) -> bool:
        """Whether it is time for a checkpoint; cheap."""
        return self._path is not None and bool(self._caught or time.monotonic() - self._last >= self._every)

    def offer(self) -> None:
        """Write a checkpoint if it is time for one; all parts are in order, and may go on when this returns.

        The first is written at once, so that a file that cannot be written is an error before hours of work; later
        ones by another thread, and if one fails, that is a warning, and the one before stays.
        """
        if not self.is_due:
            return
        with self._at_work():
            if self._last == -math.inf:
                self._write(self._state())
                self._listen()
            elif self._caught:
                self._write_last()
            elif not self._is_writing():
                self._team = self._team or Team(1)
                self._team.assign(0, partial(self._try_to_write, self._state()))
            else:
                return
            self._last = time.monotonic()
        self._deliver()

    def finish(self) -> None:
        """Write the last checkpoint of a run that has come to its end."""
        if self._path is not None:
            with self._at_work():
                self._write_last()
            self._deliver()

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        """Let signals wait that come in the middle of this."""
        self._busy = True
        try:
            yield
        finally:
            self._busy = False

    def _state(self) -> dict[str, dict[str, Any]]:
        return {name: part.state() for name, part in self._parts.items()}

    def _is_writing(self) -> bool:
        if self._team is None:
            return False
        if self._team.is_busy:
            self._team.wait(0.0)
        if not self._team.is_busy:
            self._team.finish()  # raises what should never happen
            self._warn()
        return self._team.is_busy

    def _write_last(self) -> None:
        while self._is_writing():
            time.sleep(0.001)
        self._try_to_write(self._state())
        self._warn()

    def _warn(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            message = f"the checkpoint {self._path} could not be written ({failure}); the one before stays, the run goes on"
            warnings.warn(message, RuntimeWarning, stacklevel=2)

    def _try_to_write(self, state: dict[str, dict[str, Any]]) -> None:
        try:
            self._write(state)
        except OSError as failure:
            self._failure = failure

    def _write(self, state: dict[str, dict[str, Any]]) -> None:
        about, arrays = dict(self._about), dict[str, Any]()
        about["parts"] = {part: {} for part in state}
        for part, content in state.items():
            for name, value in content.items():
                if isinstance(value, np.ndarray):
                    arrays[f"{part}.{name}"] = value
                else:
                    about["parts"][part][name] = value
        with replacing(self._path) as temporary, open(temporary, "wb") as file:
            arrays["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
            np.savez(file, **arrays)

    # Signals.

    def __enter__(self) -> Keeper:
        """Keep a run."""
        return self

    def _listen(self) -> None:
        """Let signals wait; not before there is something to lose, since compiling takes longer than anybody should wait."""
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                before = signal.getsignal(number)
                if before is not None and before != signal.SIG_IGN:
                    self._handlers[number] = before
                    signal.signal(number, self._catch)

    def __exit__(self, *_: object) -> None:
        """Let signals through again, those that still wait included."""
        if self._path is None:
            return
        self._busy = True
        try:
            if self._team is not None:
                self._team.close()
        finally:
            for number, before in self._handlers.items():
                signal.signal(number, before)
            self._deliver()

    def _catch(self, number: int, frame: Any) -> None:
        if number in self._caught:
            self._pass_on(number, frame)
            return
        self._caught.append(number)
        if self._always and not self._busy:
            self.offer()

    def _deliver(self) -> None:
        while self._caught:
            self._pass_on(self._caught.pop(0), sys._getframe())

    def _pass_on(self, number: int, frame: Any) -> None:
        handler = self._handlers[number]
        if callable(handler):
            handler(number, frame)
        else:  # the default, which ends the process with the right exit code
            signal.signal(number, handler)
            signal.raise_signal(number)


def read_checkpoint(path: Path, expected: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Read a checkpoint of the run that ``expected`` describes; return the content of each part."""
    from .io._numpy import stored_array
    from .models import DAMAGED

    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if sum(entry.file_size for entry in entries) > path.stat().st_size or any(entry.compress_type for entry in entries):
                raise ValueError("its entries do not add up to it")
            about = json.loads(stored_array(path, archive, "about").tobytes().decode())
            _compare(path, about, expected)
            parts: dict[str, dict[str, Any]] = {str(part): dict(content) for part, content in about["parts"].items()}
            for entry in entries:
                part, dot, name = entry.filename.removesuffix(".npy").partition(".")
                if dot:
                    parts[part][name] = stored_array(path, archive, f"{part}.{name}").copy()
            return parts
    except CheckpointError:
        raise
    except (*DAMAGED, AttributeError, TypeError, RecursionError, MemoryError) as error:
        reason = " ".join(str(error).replace(str(path), "it").split())[:200] or type(error).__name__
        raise CheckpointError(
            f"{path} is damaged, or is no checkpoint: {reason}; delete it to start from the beginning"
        ) from None


def _compare(path: Path, about: Any, expected: dict[str, Any]) -> None:
    if not isinstance(about, dict) or about.get("format") != _FORMAT:
        raise CheckpointError(f"{path} is no checkpoint: it does not say what it is")
    for key, what in (("version", "checkpoint format"), ("dapsgd", "dapsgd")):
        if about.get(key) != expected[key]:
            raise CheckpointError(
                f"{path} was written by version {str(about.get(key))[:40]} of {what}; this is version {expected[key]}: "
                "go on with that, or delete the file to start from the beginning"
            )
    facts, wanted = about["facts"], expected["facts"]
    name = next((name for name in wanted if name not in facts or facts[name] != wanted[name]), None)
    if name is None:
        return
    what = f"of another run: {name} is {difference(name, facts.get(name), wanted[name])}"
    data = other_data(name, facts.get(name), wanted[name])
    if name == "step":  # numbers that say nothing to anybody
        what = f"of another run: step is another one, as it is with another {argument('max_passes')} if it is automatic"
    elif data is not None:
        what = f"of another run, on other data: {data}"
        if name == "X" and facts.get("algorithm") != wanted["algorithm"]:  # for which X may have been centred
            what += f"; algorithm is {difference('algorithm', facts.get('algorithm'), wanted['algorithm'])}"
    raise CheckpointError(
        f"{path} is {what}; ask for the same, or give another file, or {argument('resume', False)} to start from the beginning"
    )
