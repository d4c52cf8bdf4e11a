"""Recorded points in text files, one line each, written as they come."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from .._checks import flag
from .._monitor import Checkup
from ..result import Trace

__all__ = ["CSVLog", "JSONLinesLog", "numbers_of"]


def numbers_of(now: Checkup) -> dict[str, float]:
    """Return the numbers of a point by name, in the order of :class:`dapsgd.Trace`."""
    return {name: getattr(now, name) for name in Trace.columns()}


class _Log:
    """A file that gets a line at every point. It is opened for each, so that it is whole whenever the run ends."""

    def __init__(self, path: Any, *, append: bool = False) -> None:
        self.path = Path(path)
        self.append = flag(f"{type(self).__name__}: append", append)
        if not self.path.absolute().parent.is_dir():  # now, and not in the middle of a run
            raise FileNotFoundError(f"{type(self).__name__}: path must be in a folder that exists; got {str(path)!r}")

    def __call__(self, now: Checkup) -> None:
        """Write a line."""
        fresh = now.iteration == 0 and not self.append
        head = self._head() if fresh or not self.path.exists() or self.path.stat().st_size == 0 else ""
        with self.path.open("w" if fresh else "a", encoding="utf-8", newline="\n") as file:
            file.write(head + self._line(numbers_of(now)) + "\n")

    def _head(self) -> str:
        return ""

    def _line(self, numbers: dict[str, float]) -> str:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r}, append={self.append})"


class CSVLog(_Log):
    """Write every recorded point to a CSV file, with the columns of :class:`dapsgd.Trace`; an unknown number is left empty.

    Parameters
    ----------
    path : path
    append : bool, default False
        Add to a file that is there, instead of replacing it when a run begins.

    Examples
    --------
    >>> import dapsgd as ds
    >>> import numpy as np, tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> log = ds.callbacks.CSVLog(pathlib.Path(folder.name) / "run.csv")
    >>> problem = ds.Problem(np.eye(4), np.arange(4.0), regularizer=ds.L1(0.1))
    >>> run = ds.solve(problem, "p-sgd", max_iter=20, record_every=10, tol=0, seed=0, callbacks=[log])
    >>> print(log.path.read_text())
    seconds,iteration,passes,objective,residual,distance
    0.0,0,0.0,3.5,...,
    ...,10,2.5,...,...,
    ...,20,5.0,...,...,
    <BLANKLINE>
    >>> folder.cleanup()
    """

    def _head(self) -> str:
        return ",".join(Trace.columns()) + "\n"

    def _line(self, numbers: dict[str, float]) -> str:
        return ",".join("" if math.isnan(value) else repr(_plain(value)) for value in numbers.values())


class JSONLinesLog(_Log):
    """Write every recorded point to a file as one JSON object a line; an unknown or infinite number is null.

    Parameters
    ----------
    path : path
    append : bool, default False
        Add to a file that is there, instead of replacing it when a run begins.

    Examples
    --------
    >>> import dapsgd as ds
    >>> import json, numpy as np, tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> log = ds.callbacks.JSONLinesLog(pathlib.Path(folder.name) / "run.jsonl")
    >>> problem = ds.Problem(np.eye(4), np.arange(4.0), regularizer=ds.L1(0.1))
    >>> run = ds.solve(problem, "p-sgd", max_iter=20, record_every=10, tol=0, seed=0, callbacks=[log])
    >>> [json.loads(line)["iteration"] for line in log.path.read_text().splitlines()]
    [0, 10, 20]
    >>> folder.cleanup()
    """

    def _line(self, numbers: dict[str, float]) -> str:
        return json.dumps({name: _plain(value) if math.isfinite(value) else None for name, value in numbers.items()})


def _plain(value: Any) -> Any:
    """Return a number of NumPy as one of Python."""
    return value.item() if hasattr(value, "item") else value
