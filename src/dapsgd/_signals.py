"""Signals that come while numba compiles."""

from __future__ import annotations

import _thread
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["no_signal_is_lost"]


def _interrupt_soon(number: signal.Signals) -> None:
    time.sleep(0.01)
    _thread.interrupt_main(number)


@contextmanager
def no_signal_is_lost() -> Iterator[None]:
    """Let Ctrl-C come again a moment later where it comes while LLVM calls back: exceptions cannot get out from there.

    ctypes prints and forgets them, and the program would go on as if nobody had asked it to end.
    """
    handlers = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    caught = {number: handler for number, handler in handlers.items() if callable(handler)}

    def handle(number: int, frame: Any) -> None:
        caller = frame
        while caller is not None:
            if caller.f_code.co_name.startswith("_raw_object_cache_"):
                _thread.start_new_thread(_interrupt_soon, (signal.Signals(number),))
                return
            caller = caller.f_back
        caught[signal.Signals(number)](number, frame)

    try:
        for number in caught:
            signal.signal(number, handle)
        yield
    finally:
        for number, handler in caught.items():
            signal.signal(number, handler)
