"""What reading a file gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["Array", "Dataset"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Dataset:
    """Rows of data with their targets and names.

    Attributes
    ----------
    X : array, memory map or CSR matrix, shape (n, p)
        The data, float32 or float64.
    y : array, shape (n,) or (n, q), or None
        The targets: numbers, or text if the target column holds text. None if no target was asked for.
    feature_names : tuple of str, or None
        The names of the columns of X, where the file has names.
    target_names : tuple of str
        The names of the targets; a position is a name in digits. Empty without a target.
    zero_based : bool or None
        Of svmlight: whether the first column is 0 rather than 1.
    skipped : int
        How many rows were left out because a value is missing; see ``skip_missing`` of :func:`read`.
    kept : dict of str to list of str
        The text of the columns that ``keep`` of :func:`read` names, by title; one for each row of X.
    """

    X: Any
    y: Array | None
    feature_names: tuple[str, ...] | None
    target_names: tuple[str, ...]
    zero_based: bool | None = None
    skipped: int = 0
    kept: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __repr__(self) -> str:
        kind = "CSR" if hasattr(self.X, "tocsr") else "dense"
        target = f", target {', '.join(self.target_names)}" if self.target_names else ""
        return f"Dataset({self.X.shape[0]} x {self.X.shape[1]} {kind} {self.X.dtype}{target})"
