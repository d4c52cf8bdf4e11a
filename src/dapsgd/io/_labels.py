"""Targets in text, kept as numbers until all have been seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FileFormatError
from ._dataset import Array

__all__ = ["Labels", "decode"]

_MOST = 1 << 16  # different labels


class Labels:
    """Turns blocks of text into numbers, in the order in which labels appear; blocks of numbers are left alone."""

    def __init__(self, path: Any, targets: tuple[str, ...]) -> None:
        self._path, self._name = Path(path), ", ".join(targets)
        self._codes: dict[str, int] = {}

    def encode(self, y: Array) -> Array:
        """Return a block of targets as numbers."""
        if y.dtype != object:
            return y
        codes = self._codes
        coded = np.array([codes.setdefault(str(label), len(codes)) for label in y.ravel()], dtype=np.float64)
        if len(codes) > _MOST:
            raise FileFormatError(f"{self._path}: the target {self._name} holds text with more than {_MOST} different values")
        return coded.reshape(y.shape)

    @property
    def names(self) -> list[str] | None:
        """The labels, None if the targets are numbers."""
        return list(self._codes) or None


def decode(y: Array, names: list[str] | None) -> Array:
    """Return targets as they were in the file."""
    return y if names is None else np.array(names)[np.asarray(y).astype(np.int64)]
