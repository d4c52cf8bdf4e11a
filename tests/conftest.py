"""What holds for all tests."""

import logging
import signal


def pytest_configure() -> None:
    """Start every run alike, with a cold cache or a warm one, from a terminal or in the background of a script.

    Tests look at what is said, so there is no word about code that is being compiled. Some press Ctrl-C, which a shell has its
    background jobs ignore, and what they start as well.
    """
    logging.getLogger("dapsgd").setLevel(logging.ERROR)
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
