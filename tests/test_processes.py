"""Processes, memory and BLAS: what surrounds a run is left as it was, and forked or spawned workers can use the library."""

import multiprocessing
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from joblib import Parallel, delayed
from threadpoolctl import threadpool_info, threadpool_limits

import dapsgd as ds
from dapsgd import _memory
from dapsgd._disk_cache import _NEVER_COMPILED
from dapsgd._monitor import RunMonitor
from dapsgd._passes import for_each
from dapsgd._team import go_to_core
from dapsgd.runtimes._blas import single_threaded_blas

from . import cases

ROOT = Path(__file__).parent.parent


def fit(seed):
    run = ds.solve(cases.problem("squared", "l1", n=100), "dap-sgd", workers=2, max_iter=500, tol=0, seed=seed)
    return run.iterations, threading.active_count()


def fit_problem(problem):
    return ds.solve(problem, "dap-svrg", workers=1, max_passes=20, tol=0, seed=0).x


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_processes_that_are_forked_or_spawned_can_solve(method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system cannot {method}")
    assert fit(0)[0] == 500  # the parent has compiled code, and has had threads
    with multiprocessing.get_context(method).Pool(2) as pool:
        found = pool.map_async(fit, range(4)).get(timeout=300)
    assert [iterations for iterations, _ in found] == [500] * 4


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_joblib_workers_can_solve(backend):
    problem = cases.problem("squared", "l1", n=100)
    expected = fit_problem(problem)
    for x in Parallel(n_jobs=2, backend=backend)(delayed(fit_problem)(problem) for _ in range(4)):
        assert np.array_equal(x, expected)


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_blas_is_single_threaded_while_the_answer_of_workers_is_looked_at(monkeypatch):
    seen, certify = [], RunMonitor.certify

    def look(*arguments, **options):
        seen.extend(blas_threads())
        return certify(*arguments, **options)

    monkeypatch.setattr(RunMonitor, "certify", look)
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        ds.solve(cases.problem("squared", "l1"), "dap-sgd", workers=2, max_iter=100, tol=0.0, seed=0)
        assert blas_threads() == before
    assert set(seen) == {1}


def test_blas_is_single_threaded_while_workers_run_and_as_before_afterwards():
    problem, seen = cases.problem("squared", "l1", n=100), []
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        ds.solve(problem, "dap-sgd", workers=2, max_iter=100, tol=0, callbacks=[lambda checkup: seen.append(blas_threads())])
        assert blas_threads() == before
        with single_threaded_blas(), single_threaded_blas():
            assert set(blas_threads()) == {1}
        assert blas_threads() == before
        with pytest.raises(ZeroDivisionError):
            ds.solve(problem, "dap-sgd", workers=2, max_iter=100, callbacks=[lambda checkup: 1 / 0])
        assert blas_threads() == before
    assert all(set(threads) == {1} for threads in seen)


# Memory.


def test_what_is_available_is_less_than_what_there_is(monkeypatch):
    there = _memory.available_memory()
    if there is None:
        pytest.skip("this system does not say how much memory there is")
    assert 1 << 20 < there < 1 << 50
    monkeypatch.setattr(_memory, "_limits", lambda: iter(()))
    assert _memory.available_memory() is None
    _memory.require_memory(1 << 60, "anything", "nothing")  # who does not know does not refuse


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda p: ds.solve(p, "dap-sgd", workers=5000, max_delay=1), "5000 workers would need"),
        (lambda p: ds.solve(p, "dap-sgd", max_iter=10**8, record_schedule=True), "record_schedule=False"),
        (lambda p: ds.solve(p, "dap-sgd", runtime=ds.Simulated(1.0, 1.0), max_delay=10**7, max_iter=10**8), "max_delay"),
    ],
)
def test_a_run_that_needs_too_much_memory_is_refused_before_any_is_taken(call, words, monkeypatch):
    monkeypatch.setattr(_memory, "available_memory", lambda: 10**8)
    rng = np.random.default_rng(0)
    problem = ds.Problem(rng.standard_normal((30, 200)), rng.standard_normal(30))
    with pytest.raises(ds.OutOfMemoryError, match=words) as caught:
        call(problem)
    assert isinstance(caught.value, MemoryError)


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on the address space")
def test_a_limit_on_the_address_space_counts():
    program = """
import resource
from dapsgd._memory import available_memory
resource.setrlimit(resource.RLIMIT_AS, (1 << 31, resource.RLIM_INFINITY))
assert available_memory() < 1 << 31
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_threads_of_a_pass_ignore_what_the_calling_one_ignores():
    def divide(_):
        return np.log(np.zeros(1))[0]

    with np.errstate(divide="ignore"):
        assert for_each(range(8), divide, 3) == [-np.inf] * 8


def test_a_thread_may_go_anywhere_once_it_was_on_its_core():
    if not hasattr(os, "sched_getaffinity"):
        pytest.skip("this system does not say where a thread may run")
    allowed = os.sched_getaffinity(0)
    for k in range(len(allowed) + 1):
        go_to_core(k)
        assert os.sched_getaffinity(0) == allowed


def test_a_process_says_once_that_it_compiles(tmp_path):
    def said(folder, penalties="L1", before=""):
        program = f"import dapsgd as ds\n{before}\nfor name in {penalties.split()}: ds.prox(getattr(ds, name)(1.0), [3.0], 1.0)"
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
        run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=300)
        assert (run.returncode, run.stdout) == (0, "")
        return run.stderr

    assert said(tmp_path, "L1 FusedLasso") == "dapsgd compiles for the first time, which takes some ten seconds once\n"
    assert said(tmp_path, "L1 FusedLasso") == ""
    assert said(tmp_path, "NonNegative") == "dapsgd compiles for a new kind of problem, which takes a few seconds once\n"
    no_folder = tmp_path / "file"
    no_folder.write_text("")
    assert "in every process, as there is no folder to keep it in" in said(no_folder)
    silent = "import logging; logging.getLogger('dapsgd').setLevel(logging.ERROR)"
    assert said(no_folder, before=silent) == ""


def test_a_fit_without_progress_does_not_say_that_it_compiles(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n1,2\n2,4\n3,6.5\n")
    call = "from dapsgd.cli import main; main()", "fit", "t.csv", "--target", "y", "--alpha", "0.1"

    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "new")}
    run = subprocess.run(
        [sys.executable, "-c", *call, "--no-progress"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    assert any((tmp_path / "new").iterdir())
    assert "compiles" not in run.stderr


# The programs of soak/ and fuzz/, briefly.


def run_program(*arguments, ok=True):
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert (done.returncode == 0) == ok, done.stderr
    return done.stdout + done.stderr


@pytest.mark.skipif(os.name != "posix", reason="uses POSIX scheduling")
def test_the_engine_under_scheduling_pressure_replays_exactly():
    said = run_program("soak/engine_runs.py", "--runs", "30", "--seed", "11")
    assert "30 runs without a violation" in said


@pytest.mark.skipif(os.name != "posix", reason="uses POSIX scheduling")
def test_locks_that_let_everybody_in_are_found_out():
    said = run_program("soak/engine_runs.py", "--runs", "40", "--broken", "--hang", "60", ok=False)
    assert "AssertionError" in said or "Timeout" in said


@pytest.mark.skipif(os.name != "posix", reason="kills processes")
def test_runs_that_are_killed_arrive_at_the_same_answer():
    said = run_program("soak/kill_resume.py", "--times", "2", "--seconds", "0.5")
    assert "2 runs, killed" in said


def test_what_is_said_to_hold_no_compiled_code_holds_none():
    package = Path(ds.__file__).parent
    compiled = re.compile(r"^@(kernel|extern|by_class)|^ +def (derivative\(self|estimate\(self|prox\(self, v)", re.MULTILINE)
    for name in _NEVER_COMPILED:
        named = package / name
        assert named.exists(), name
        for path in [named] if named.is_file() else named.rglob("*.py"):
            assert not compiled.search(path.read_text()), path


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="threads cannot be kept on a core")
def test_threads_of_a_pass_keep_apart_and_leave_the_cores_as_they_were():
    allowed, seen = os.sched_getaffinity(0), {}

    def look(block):
        seen.setdefault(threading.get_ident(), set()).add(frozenset(os.sched_getaffinity(0)))
        time.sleep(0.01)
        return 2 * block

    assert for_each(range(8), look, len(allowed), apart=True) == [2 * k for k in range(8)]
    if len(allowed) > 1:
        cores = [core for places in seen.values() for core in places]
        assert all(len(core) == 1 for core in cores)
        assert len(set(cores)) == len(cores) == len(seen) > 1
    assert os.sched_getaffinity(0) == allowed
    with pytest.raises(ZeroDivisionError):
        for_each(range(8), lambda block: 1 // (block - 3), len(allowed), apart=True)
    assert os.sched_getaffinity(0) == allowed
