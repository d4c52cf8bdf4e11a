"""Signals that come where an exception cannot get out."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["no_signal_is_lost"]


def _interrupt_soon(number: signal.Signals) -> None:
    time.sleep(0.01)
    _thread.interrupt_main(number)


@contextmanager
def no_signal_is_lost() -> Iterator[None]:
    """Let Ctrl-C come again a moment later where it comes in code from which exceptions cannot get out.

    ctypes prints and forgets what is raised while LLVM calls back, the interpreter what a destructor raises, and extension
    modules forget it, or make an ImportError of it, while they are imported. The program would go on as if nobody had asked
    it to end.
    """
    handlers = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    caught = {number: handler for number, handler in handlers.items() if callable(handler)}
    block = sys._getframe(2)  # who says "with", behind contextlib: what was being imported then is none of our business
    hook = sys.unraisablehook

    def handle(number: int, frame: FrameType | None) -> None:
        caller = frame
        while caller is not None and caller is not block:
            code = caller.f_code
            if code.co_name.startswith("_raw_object_cache_") or code.co_filename.startswith("<frozen importlib"):
                _thread.start_new_thread(_interrupt_soon, (signal.Signals(number),))
                return
            caller = caller.f_back
        caught[signal.Signals(number)](number, frame)

    def ask_again(unraisable: Any) -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            _thread.start_new_thread(_interrupt_soon, (signal.SIGINT,))
        else:
            hook(unraisable)

    try:
        for number in caught:
            signal.signal(number, handle)
        if caught:
            sys.unraisablehook = ask_again
        yield
    finally:
        if caught:
            sys.unraisablehook = hook
        for number, handler in caught.items():
            signal.signal(number, handler)
