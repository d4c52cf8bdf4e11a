"""Large parameters: how many copies of one there are at a time."""

import os
import subprocess
import sys
import tempfile
import tracemalloc
from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import dapsgd as ds
from dapsgd import _memory
from dapsgd._memory import set_aside
from dapsgd._monitor import RunMonitor
from dapsgd.runtimes._plan import Outcome
from dapsgd.solve import _finish

LARGE = 2_000_000


def large_problem(**options):
    X = csr_matrix(([1.0, 2.0, -1.0], ([0, 1, 1], [3, 5, LARGE - 1])), shape=(2, LARGE))
    return ds.Problem(X, [1.0, -2.0], **options)


def large_point():
    x = np.zeros(LARGE)
    x[:4], x[4:] = 0.5, 0.001
    return x


def monitor_of(problem, algorithm):
    monitor = RunMonitor(
        problem,
        x0=np.zeros(problem.shape),
        x_star=None,
        tol=1e-4,
        strict=False,
        passes=float,
        suggested_step=lambda: 1.0,
        max_iter=9,
        callbacks=(),
        progress=False,
    )
    if algorithm == "dave-rpg":
        monitor.answer = partial(problem.packed_prox, step=0.1)
    return monitor


def finish(monitor, algorithm, frugal):
    outcome = Outcome(large_point(), np.zeros(0), 9, 0.0, np.zeros(1, np.int64), None)
    return _finish(monitor._problem, outcome, monitor, algorithm, "", 1, False, 0.0, None, frugal)


@pytest.mark.parametrize("algorithm", ["dap-sgd", "dave-rpg"])
@pytest.mark.parametrize("regularizer", [ds.L1(0.1), ds.GroupLasso(0.1, 100)], ids=lambda h: type(h).__name__)
def test_a_large_iterate_is_not_in_memory_while_the_answer_is_certified(algorithm, regularizer):
    problem = large_problem(regularizer=regularizer)
    plain = finish(monitor_of(problem, algorithm), algorithm, frugal=False)  # also compiles
    monitor = monitor_of(problem, algorithm)
    _ = monitor.scale  # as it is known when a run ends
    tracemalloc.start()
    try:
        frugal = finish(monitor, algorithm, frugal=True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2.2 * 8 * LARGE
    assert (frugal.x == plain.x).all()
    assert (frugal.iterate == plain.iterate).all()
    assert (frugal.objective, frugal.residual, frugal.gap) == (plain.objective, plain.residual, plain.gap)


@pytest.mark.parametrize("shape", [(7,), (3, 2)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_set_aside_comes_back(shape, dtype, monkeypatch):
    monkeypatch.setattr(_memory, "_LARGE", 1)
    array = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    before, again = array.copy(), set_aside(array)
    array[...] = 0.0
    back = again()
    assert back.dtype == dtype
    assert back.flags.writeable
    assert (back == before).all()


def test_where_there_is_no_room_for_a_file_it_stays_in_memory(monkeypatch):
    def full():
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_memory, "_LARGE", 1)
    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    array = np.arange(3.0)
    again = set_aside(array)
    array[...] = 0.0
    assert (again() == [0.0, 1.0, 2.0]).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="limits the size of files of another process")
def test_a_disk_that_is_full_at_the_very_end_is_noticed():
    program = """
import resource, signal
import numpy as np
from dapsgd._memory import set_aside
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
array = np.arange(float((1 << 20) + 37))
resource.setrlimit(resource.RLIMIT_FSIZE, (array.nbytes - 100, array.nbytes - 100))
assert np.array_equal(set_aside(array)(), array)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
