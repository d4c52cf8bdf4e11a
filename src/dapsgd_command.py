"""The command ``dapsgd``, outside of the package: Ctrl-C is taken care of before that is imported, which takes a moment."""

from __future__ import annotations

import os
import signal
import threading

__all__ = ["main"]


def _leave(number: int, frame: object) -> None:
    """End here and now: there is nothing to tidy up yet, and an exception may be lost in code that is being imported."""
    try:
        os.write(2, b"interrupted\n")
    finally:
        os._exit(130)


def main() -> None:
    """Run the command line; Ctrl-C ends it with status 130 and without a traceback, from the first moment on."""
    heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # a job in the background may ignore it
    heard = heard and threading.current_thread() is threading.main_thread()  # no other may set it
    if heard:
        signal.signal(signal.SIGINT, _leave)
    try:
        from dapsgd.cli import main as run
    finally:
        if heard:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


if __name__ == "__main__":
    main()
