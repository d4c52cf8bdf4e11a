"""How messages call arguments: as they are written in Python, or as options where the command line is what was called."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

__all__ = ["argument", "by_python", "by_shell", "for_shell"]

_by_shell = ContextVar("by_shell", default=False)
_NO_VALUE = object()
_OPPOSITES = {"zero_based": "--one-based", "header": "--no-header", "resume": "no --resume"}  # of flags that are false


def by_shell() -> AbstractContextManager[None]:
    """Within this, messages are for people who called a command."""
    return _called(True)


def by_python() -> AbstractContextManager[None]:
    """Within this, messages are for people who called a function."""
    return _called(False)


def for_shell() -> bool:
    """Tell whether messages are for people who called a command."""
    return _by_shell.get()


@contextmanager
def _called(by_shell: bool) -> Iterator[None]:
    before = _by_shell.set(by_shell)
    try:
        yield
    finally:
        _by_shell.reset(before)


def argument(name: str, value: Any = _NO_VALUE) -> str:
    """Return how an argument, or an argument with a value, is written by whoever made the call.

    Examples
    --------
    >>> argument("drop"), argument("skip_missing", True), argument("drop", ["a", "b c"])
    ('drop', 'skip_missing=True', "drop=['a', 'b c']")
    >>> with by_shell():
    ...     argument("drop"), argument("skip_missing", True), argument("drop", ["a", "b c"])
    ('--drop', '--skip-missing', "--drop a --drop 'b c'")
    """
    if not for_shell():
        return name if value is _NO_VALUE else f"{name}={value!r}"
    option = f"--{name.replace('_', '-')}"
    if value is _NO_VALUE or value is True:
        return option
    if value is False:
        return _OPPOSITES[name]
    values = value if isinstance(value, (list, tuple)) else [value]
    return " ".join(f"{option} {shlex.quote(str(one))}" for one in values)
