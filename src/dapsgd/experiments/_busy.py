"""Whether the cores that are to be measured are free."""

from __future__ import annotations

import os
from collections.abc import Callable

from .._team import available_cores

__all__ = ["say_if_busy"]


def say_if_busy(say: Callable[[str], None], advice: str) -> None:
    """Say so if other programs use the cores, and what to do."""
    if hasattr(os, "getloadavg") and os.getloadavg()[0] > 0.5 * available_cores():
        say(f"other programs are running (load {os.getloadavg()[0]:.1f}): times may mislead; {advice}")
