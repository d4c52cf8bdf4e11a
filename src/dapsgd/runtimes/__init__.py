"""Runtimes: who executes a plan, in what order. All of them call the same ``work`` and ``apply``."""

from .replay import Replay
from .serial import Serial
from .threads import Threads

__all__ = ["RUNTIMES", "Replay", "Serial", "Threads"]

# The runtimes that a name suffices to ask for.
RUNTIMES: dict[str, type[Serial] | type[Threads]] = {"serial": Serial, "threads": Threads}
