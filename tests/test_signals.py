"""Ctrl-C ends a run, also where an exception cannot get out."""

import ctypes
import signal
import sys
import time

import pytest

from dapsgd._signals import no_signal_is_lost


def test_ctrl_c_while_llvm_calls_back_is_not_lost():
    """Where ctypes would print the exception and go on."""
    reached = []

    def _raw_object_cache_notify():
        reached.append("in")
        signal.raise_signal(signal.SIGINT)
        reached.append("out")

    before, callback = signal.getsignal(signal.SIGINT), ctypes.CFUNCTYPE(None)(_raw_object_cache_notify)

    def compile_something():
        callback()
        time.sleep(1)
        reached.append("lost")

    with pytest.raises(KeyboardInterrupt), no_signal_is_lost():
        compile_something()
    assert reached == ["in", "out"]
    assert signal.getsignal(signal.SIGINT) is before


IMPORTED = """
import signal
try:
    signal.raise_signal(signal.SIGINT)
except BaseException:
    raise ImportError
done = True
"""


def test_ctrl_c_while_a_module_is_imported_is_not_lost(tmp_path, monkeypatch):
    """Where an extension may make something else of it."""
    (tmp_path / "slow_to_import.py").write_text(IMPORTED)
    monkeypatch.syspath_prepend(tmp_path)

    def import_something():
        import slow_to_import

        assert slow_to_import.done
        time.sleep(1)
        raise AssertionError("lost")

    with pytest.raises(KeyboardInterrupt), no_signal_is_lost():
        import_something()
    del sys.modules["slow_to_import"]


def test_what_was_being_imported_before_does_not_keep_ctrl_c_waiting(tmp_path, monkeypatch):
    """A program may be imported, and then its signals come while it is."""
    program = "import signal\nfrom dapsgd._signals import no_signal_is_lost\nwith no_signal_is_lost():\n"
    (tmp_path / "imported_program.py").write_text(
        program + "    signal.raise_signal(signal.SIGINT)\n    raise AssertionError\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        import imported_program  # noqa: F401


def test_ctrl_c_in_a_destructor_is_not_lost():
    """Where the interpreter would print the exception and go on."""

    class Destroyed:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    def destroy_something():
        Destroyed()
        time.sleep(1)
        raise AssertionError("lost")

    before = sys.unraisablehook
    with pytest.raises(KeyboardInterrupt), no_signal_is_lost():
        destroy_something()
    assert sys.unraisablehook is before
