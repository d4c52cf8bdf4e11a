"""What losses for classes and for counts share."""

import math
from typing import Any

import numpy as np

from .._jit import kernel


def check_signs(loss: str, y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return ``y`` if every label is -1 or +1."""
    wrong = (y != 1.0) & (y != -1.0)
    if wrong.any():
        raise ValueError(f"y must be -1 or +1 for {loss}; got {y[wrong].flat[0]:g}. Labels 0 and 1 are turned by 2*y - 1")
    return y


@kernel
def entropy(share: float) -> float:
    """Return ``share * log(share)``, and 0 at 0."""
    return share * math.log(share) if share > 0.0 else 0.0
