"""What holds for all tests."""

import logging


def pytest_configure() -> None:
    """Keep quiet about code that is being compiled: tests look at what else is said, with a cold cache and with a warm one."""
    logging.getLogger("dapsgd").setLevel(logging.ERROR)
