"""Runtimes: who executes a plan, in what order. All of them call the same ``work`` and ``apply``."""

from .costs import Exponential, Fixed, HeavyTailed, Recorded, Straggler
from .ray import ClusterStatistics, Ray
from .replay import Replay
from .serial import Serial
from .simulated import Simulated, Timing
from .threads import Threads

__all__ = [
    "RUNTIMES",
    "ClusterStatistics",
    "Exponential",
    "Fixed",
    "HeavyTailed",
    "Ray",
    "Recorded",
    "Replay",
    "Serial",
    "Simulated",
    "Straggler",
    "Threads",
    "Timing",
]

# The runtimes that a name suffices to ask for.
RUNTIMES: dict[str, type[Serial] | type[Threads]] = {"serial": Serial, "threads": Threads}
