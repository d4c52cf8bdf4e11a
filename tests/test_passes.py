"""Threads that make passes over the data: started once for a run, gone when it ends, whatever went wrong."""

import _thread
import threading
import time

import pytest

from dapsgd._passes import for_each, shared_passes, standing_threads


def names(blocks=40, threads=3):
    """Return which threads took part in a pass; a pause, so that nobody does it all."""

    def task(_):
        time.sleep(0.001)
        return threading.get_ident()

    return set(for_each(range(blocks), task, threads))


def wait_for(count):
    """Wait until so many threads are left: one that has said goodbye may be at its last instruction."""
    for _ in range(1000):
        if _thread._count() <= count:
            return True
        time.sleep(0.001)
    return False


def test_standing_threads_are_the_same_for_every_pass_and_gone_afterwards():
    before = _thread._count()
    with standing_threads(3):
        assert _thread._count() == before  # nobody is started before there is a pass
        first = names()
        assert _thread._count() == before + 2
        assert len(first) == 3
        assert names() == first
    assert wait_for(before)


def test_a_pass_that_fails_fails_alone():
    before = _thread._count()

    def fail(k):
        if k == 7:
            raise RuntimeError("seven")
        return k

    with standing_threads(2):
        for _ in range(3):
            with pytest.raises(RuntimeError, match="seven"):
                for_each(range(20), fail, 2)
            assert for_each(range(5), fail, 2) == [0, 1, 2, 3, 4]
    assert wait_for(before)


def test_a_pass_within_a_pass_is_made_by_its_thread_alone():
    with standing_threads(2), shared_passes(2):
        assert all(len(found) == 1 for found in for_each(range(4), lambda _: names(4, 1), 2))
        assert [sum(for_each([k, k], int, 2)) for k in range(3)] == [0, 2, 4]
