"""Recorded points in TensorBoard and MLflow: thin, and only if these are installed."""

from __future__ import annotations

import math
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from .._monitor import Checkup
from .logs import numbers_of

__all__ = ["MLflow", "TensorBoard"]


def _need(module: str, package: str, user: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise ImportError(f"{user} needs the package {package}: pip install {package}") from None


def _metrics(now: Checkup, prefix: str) -> dict[str, float]:
    """Return the numbers of a point that are finite, by their prefixed names."""
    numbers = numbers_of(now)
    del numbers["iteration"]  # it is the step
    return {prefix + name: float(value) for name, value in numbers.items() if math.isfinite(value)}


class TensorBoard:
    """Write every recorded point to a folder that TensorBoard reads; ``pip install tensorboard``.

    Parameters
    ----------
    folder : path
        Made if need be. Every run adds a file of its own.
    prefix : str, default "dapsgd/"
        Put before the names of the curves.

    Raises
    ------
    ImportError
        If the package tensorboard is not installed.
    """

    def __init__(self, folder: Any, prefix: str = "dapsgd/") -> None:
        self._events = _need("tensorboard.compat.proto.event_pb2", "tensorboard", "TensorBoard").Event
        self._summary = import_module("tensorboard.compat.proto.summary_pb2").Summary
        self._open = import_module("tensorboard.summary.writer.event_file_writer").EventFileWriter
        self.folder, self.prefix = Path(folder), prefix
        self._writer: Any = None

    def __call__(self, now: Checkup) -> None:
        """Write a point."""
        if now.iteration == 0 or self._writer is None:
            self.close()
            self._writer = self._open(str(self.folder))
        values = [self._summary.Value(tag=tag, simple_value=value) for tag, value in _metrics(now, self.prefix).items()]
        event = self._events(wall_time=time.time(), step=now.iteration, summary=self._summary(value=values))
        self._writer.add_event(event)
        self._writer.flush()

    def close(self) -> None:
        """Close the file; every point is in it before."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def __repr__(self) -> str:
        return f"TensorBoard({str(self.folder)!r}, prefix={self.prefix!r})"


class MLflow:
    """Log every recorded point as metrics of MLflow's active run; ``pip install mlflow``.

    Where no run is active MLflow starts one. Parameters, models and the end of the run are left to you.

    Parameters
    ----------
    prefix : str, default ""
        Put before the names of the metrics.

    Raises
    ------
    ImportError
        If the package mlflow is not installed.
    """

    def __init__(self, prefix: str = "") -> None:
        self._mlflow = _need("mlflow", "mlflow", "MLflow")
        self.prefix = prefix

    def __call__(self, now: Checkup) -> None:
        """Log a point."""
        self._mlflow.log_metrics(_metrics(now, self.prefix), step=now.iteration)

    def __repr__(self) -> str:
        return f"MLflow(prefix={self.prefix!r})"
