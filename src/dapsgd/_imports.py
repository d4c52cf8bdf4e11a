"""Importing large packages faster."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

__all__ = ["put_off", "without_collection"]

_lock = threading.Lock()  # guards the step from seeing a stand-in in ``sys.modules`` to taking it out


@contextmanager
def without_collection() -> Iterator[None]:
    """Keep Python from looking for garbage: an import makes many objects and next to none, a tenth of its time is saved."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _PutOff(ModuleType):
    """Stands for a module that is imported when anybody asks for something in it."""

    def __getattr__(self, name: str) -> Any:
        """Import the module, in whose place this is, and ask it instead."""
        if name in ("__spec__", "__file__"):  # which the interpreter asks of every module that is there already
            raise AttributeError(name)
        self.take_out()
        return getattr(import_module(self.__name__), name)

    def take_out(self) -> None:
        """Make way for the module, if this is still in its place."""
        with _lock:
            if sys.modules.get(self.__name__) is self:
                del sys.modules[self.__name__]


@contextmanager
def put_off(name: str) -> Iterator[None]:
    """Let others import a module of a package without it being loaded, until something in it is used.

    For a module that costs more than all else and that hardly anybody uses, of a package that finds its modules by itself when
    they are asked for, as SciPy does. Afterwards there is no trace of it.
    """
    if name in sys.modules:
        yield
        return
    stand_in = _PutOff(name)
    sys.modules[name] = stand_in
    try:
        yield
    finally:
        stand_in.take_out()
