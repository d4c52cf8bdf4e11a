"""The asynchronous engine computes exactly the paper's recursion: nothing lost, nothing doubled, no delay too long."""

import _thread
import copy
import os
import pickle
import signal
import threading
import time
from typing import NamedTuple

import numpy as np
import pytest

import dapsgd as ds
from dapsgd.runtimes import threads

from . import cases

PAPER = ["l1", "group_lasso", "fused_lasso", "nuclear"]


def paper_problem(regularizer, seed=0):
    return cases.problem("squared", regularizer, n=200, seed=seed, multi=regularizer == "nuclear", l2=0.05)


def check_run(run, again, iterations, max_delay):
    assert run.iterations == iterations == len(run.schedule)
    assert run.delays.sum() == iterations
    assert len(run.delays) == max_delay + 1
    assert run.schedule.delays.min() >= 0
    assert run.schedule.delays.max() <= max_delay
    assert (np.bincount(run.schedule.delays, minlength=max_delay + 1) == run.delays).all()
    assert np.linalg.norm(run.iterate - again.iterate) <= 1e-9 * np.linalg.norm(again.iterate)


@pytest.mark.parametrize("regularizer", PAPER)
@pytest.mark.parametrize("algorithm", ["tap-sgd", "dap-sgd"])
def test_replay_of_20000_iterations_with_4_workers(algorithm, regularizer):
    problem = paper_problem(regularizer)
    step = ds.InverseTime(200.0, 0.02)
    for seed in range(2):
        run = ds.solve(problem, algorithm, workers=4, step=step, max_iter=20_000, tol=0, seed=seed, record_schedule=True)
        again = ds.solve(problem, algorithm, runtime=ds.Replay(run.schedule), step=step, tol=0)
        check_run(run, again, 20_000, max_delay=4)
        assert set(run.schedule.worker) <= set(range(4))


@pytest.mark.parametrize("max_delay", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_the_bound_on_the_delay_holds(workers, max_delay):
    problem = paper_problem("fused_lasso")
    options = {"step": ds.DelayAdaptive(ds.Constant(0.01), budget=0.02), "tol": 0, "average": True}
    run = ds.solve(
        problem,
        "dap-sgd",
        runtime=ds.Threads(active=workers),  # all at once, however few the cores
        workers=workers,
        max_delay=max_delay,
        batch_size=3,
        max_iter=1500,
        seed=workers,
        record_schedule=True,
        **options,
    )
    again = ds.solve(problem, "dap-sgd", runtime=ds.Replay(run.schedule), **options)
    check_run(run, again, 1500, max_delay)


@pytest.mark.parametrize("active", [1, 2])
def test_workers_without_a_core_get_their_turn(active):
    run = ds.solve(
        paper_problem("l1"),
        "dap-sgd",
        runtime=ds.Threads(active),
        workers=5,
        step=ds.Constant(1e-3),
        max_iter=20_000,
        tol=0,
        seed=0,
        record_schedule=True,
    )
    assert set(run.schedule.worker) == set(range(5))
    if active == 1:
        assert run.delays[0] == 20_000
    assert repr(ds.Threads(active)) == f"Threads(active={active})"


def test_a_thread_is_one_worker_after_another():
    seen = []
    before = _thread._count()
    ds.solve(
        paper_problem("l1"),
        "dap-sgd",
        runtime=ds.Threads(active=2),
        workers=50,
        step=ds.Constant(1e-3),
        max_iter=1000,
        record_every=100,
        tol=0,
        seed=0,
        callbacks=[lambda checkup: seen.append(_thread._count())],
    )
    assert max(seen) == before + 2


@pytest.mark.parametrize("options", [{"runtime": ds.Threads(active=1)}, {"max_delay": 0}])
def test_no_worker_starves_where_slices_end_with_turns(options):
    problem = cases.problem("squared", "l1", n=256, l2=0.05)  # an epoch is a turn: 512 updates
    run = ds.solve(problem, "dap-svrg", workers=2, batch_size=1, max_iter=4096, tol=0, seed=0, record_schedule=True, **options)
    assert np.bincount(run.schedule.worker).tolist() == [2048, 2048]


def test_every_share_gets_its_turn_however_short_the_slices(monkeypatch):
    from dapsgd.runtimes import _crew

    monkeypatch.setattr(_crew, "_RECORDS", 1)
    problem = cases.problem("squared", "l1", n=60, l2=0.05)
    run = ds.solve(
        problem, "dave-rpg", runtime=ds.Threads(active=1), workers=3, max_iter=400, record_every=2, tol=0, record_schedule=True
    )
    assert np.bincount(run.schedule.worker).tolist() == [134, 133, 133]


def test_every_share_gets_its_turn_though_a_thread_comes_late(monkeypatch):
    from dapsgd.runtimes._crew import Crew

    punctual, advance = threading.Lock(), Crew.advance

    def advance_late(crew, core=None):
        if not punctual.acquire(blocking=False):
            while crew.iteration < crew.plan.max_iter:
                time.sleep(0.001)
        advance(crew, core)

    monkeypatch.setattr(Crew, "advance", advance_late)
    problem = cases.problem("squared", "l1", n=60, l2=0.05)
    run = ds.solve(
        problem,
        "dave-rpg",
        runtime=ds.Threads(active=3),
        workers=3,
        max_iter=300,
        record_every=300,
        tol=0,
        record_schedule=True,
    )
    assert np.bincount(run.schedule.worker).tolist() == [100, 100, 100]


def test_a_clock_that_stands_still_does_not_go_on_when_it_is_stopped_again():
    from dapsgd.runtimes._plan import Clock

    clock = Clock()
    with clock:
        clock.__exit__()
        stopped = clock.seconds
        while time.perf_counter_ns() == time.perf_counter_ns():
            pass
    assert clock.seconds == stopped


def test_compiled_code_reads_the_clock_of_python():
    from dapsgd._jit import run
    from dapsgd.runtimes._stamps import stamp

    for write in (stamp, lambda place: run(stamp, place)):
        place = np.zeros(1, np.int64)
        run(stamp, place)  # compiled by now
        before = time.perf_counter_ns()
        write(place)
        assert before <= place[0] <= time.perf_counter_ns()


def test_records_have_the_times_at_which_they_were_taken():
    run = ds.solve(paper_problem("l1"), "dap-sgd", workers=3, step=ds.Constant(1e-3), max_iter=5000, record_every=500, tol=0)
    seconds = run.trace.seconds
    assert seconds[0] == 0.0
    assert (np.diff(seconds) >= 0.0).all()
    assert 0.0 < seconds[1] < seconds[-1] <= run.seconds


@pytest.mark.parametrize("active", [0, -1, 1.5, "two"])
def test_a_number_of_active_workers_that_makes_no_sense(active):
    with pytest.raises((ValueError, TypeError), match="active"):
        ds.Threads(active=active)


def test_element_wise_master_is_parallel_over_stripes(monkeypatch):
    from dapsgd.runtimes import _crew

    monkeypatch.setattr(_crew, "_STRIPE", 2)  # five locks for twelve coordinates, or two if the master only adds
    for algorithm in ("tap-sgd", "dap-sgd"):
        for options in ({}, {"fit_intercept": True}):
            problem = cases.problem("logistic", "l1", n=100, l2=0.05, **options)
            step = ds.Constant(0.02)
            run = ds.solve(
                problem,
                algorithm,
                runtime=ds.Threads(active=5),
                workers=5,
                step=step,
                max_iter=5000,
                tol=0,
                seed=1,
                record_schedule=True,
            )
            again = ds.solve(problem, algorithm, runtime=ds.Replay(run.schedule), step=step, tol=0)
            check_run(run, again, 5000, 5)
            assert run.intercept == pytest.approx(again.intercept, rel=1e-9)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_and_single_precision_runs_replay(sparse, dtype):
    problem = cases.problem("huber", "sparse_group_lasso", n=100, l2=0.05, sparse=sparse, dtype=dtype)
    step = ds.Constant(0.02)
    run = ds.solve(problem, "dap-sgd", workers=3, step=step, max_iter=3000, tol=0, seed=1, record_schedule=True)
    again = ds.solve(problem, "dap-sgd", runtime=ds.Replay(run.schedule), step=step, tol=0)
    assert run.iterate.dtype == run.x.dtype == dtype
    assert np.array_equal(run.iterate, again.iterate)


@pytest.mark.parametrize("runtime", ["serial", "threads"])
def test_same_seed_and_one_worker_give_the_same_bits(runtime):
    problem = paper_problem("fused_lasso")
    options = {"runtime": runtime, "workers": 1, "step": ds.Constant(0.01), "max_iter": 6000, "tol": 0, "seed": 7}
    first = ds.solve(problem, "dap-sgd", record_every=17, **options)
    second = ds.solve(problem, "dap-sgd", record_every=1000, **options)
    other = ds.solve(problem, "dap-sgd", **{**options, "seed": 8})
    assert np.array_equal(first.iterate, second.iterate)
    assert not np.array_equal(first.iterate, other.iterate)


def test_threads_approach_the_optimum():
    problem = paper_problem("group_lasso")
    best = ds.solve(problem, "fista", tol=1e-12)
    for algorithm in ("tap-sgd", "dap-sgd"):
        run = ds.solve(problem, algorithm, workers=4, max_passes=300, tol=0, seed=0, x_star=best.x)
        assert run.objective - best.objective <= 1e-3 * best.objective
        assert run.trace.distance[-1] < 0.1 * run.trace.distance[0]
        assert len(run.trace) == 101
        assert (np.diff(run.trace.seconds) >= 0).all()
        assert run.trace.iteration[-1] == run.iterations


def no_more_threads_than(before):
    for _ in range(1000):  # one may be at its very last instruction
        if _thread._count() <= before:
            return True
        time.sleep(0.001)
    return False


def test_no_thread_outlives_the_call():
    before = _thread._count()
    problem = paper_problem("l1")
    ds.solve(problem, "dap-sgd", workers=6, max_iter=500, seed=0, tol=0)
    assert no_more_threads_than(before)
    with pytest.raises(ds.DivergenceError):
        ds.solve(problem, "dap-sgd", workers=6, step=ds.Constant(1e3), max_iter=100_000, seed=0)
    assert no_more_threads_than(before)

    def fail(checkup):
        raise RuntimeError("from a callback")

    with pytest.raises(RuntimeError, match="from a callback"):
        ds.solve(problem, "dap-sgd", workers=6, max_iter=500, seed=0, callbacks=[fail])
    assert no_more_threads_than(before)


@pytest.mark.skipif(os.name != "posix", reason="sends itself a POSIX signal")
@pytest.mark.parametrize("runtime", ["serial", "threads"])
def test_ctrl_c_ends_a_long_run(runtime):
    problem = paper_problem("fused_lasso")
    before = threading.active_count()
    seen = []

    def interrupt(checkup):
        seen.append(checkup.iteration)
        if len(seen) == 3:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        ds.solve(problem, "dap-sgd", runtime=runtime, max_iter=10**9, record_every=1000, tol=0, callbacks=[interrupt])
    assert threading.active_count() == before
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        ds.solve(problem, "dap-sgd", runtime=runtime, max_iter=10**9, record_every=10**9, tol=0)
    timer.join()
    assert threading.active_count() == before


def test_callbacks_see_every_recorded_point_and_can_stop():
    problem = paper_problem("l1")
    seen = []

    def stop_at_500(checkup):
        seen.append(checkup)
        return checkup.iteration >= 500

    run = ds.solve(problem, "dap-sgd", workers=2, max_iter=10**7, record_every=100, tol=0, seed=0, callbacks=[stop_at_500])
    assert [c.iteration for c in seen[:6]] == [0, 100, 200, 300, 400, 500]
    assert run.iterations < 10**7
    assert "callback" in run.message
    assert seen[3].objective == pytest.approx(problem.objective(seen[3].x))
    assert seen[3].residual == pytest.approx(problem.residual(seen[3].x))


def test_a_run_stops_when_the_residual_is_small():
    problem = paper_problem("l1")
    run = ds.solve(problem, "dap-sgd", workers=2, tol=0.05, max_passes=2000, seed=0)
    assert run.converged
    assert run.passes < 2000
    assert run.residual <= 0.05 * problem.residual(np.zeros(problem.shape))


@pytest.mark.parametrize("runtime", ["serial", "threads"])
def test_divergence_is_noticed_and_explained(runtime):
    problem = paper_problem("fused_lasso")
    with pytest.raises(ds.DivergenceError, match=r"iteration \d+.*Constant") as caught:
        ds.solve(problem, "dap-sgd", runtime=runtime, step=ds.Constant(10.0), max_iter=10**6, tol=0, seed=0)
    assert caught.value.iteration < 10**5
    safe = ds.solve(problem, "dap-sgd", step=ds.Constant(caught.value.suggested_step), max_iter=5000, tol=0, seed=0)
    assert np.isfinite(safe.objective)


def test_a_worker_that_fails_in_python_holds_up_nobody(monkeypatch):
    from dapsgd.runtimes._crew import Crew

    draw, calls = Crew._draw, []

    def fail_later(self, worker):
        calls.append(worker)
        if len(calls) > 5:
            raise MemoryError("no more")
        draw(self, worker)

    monkeypatch.setattr(Crew, "_draw", fail_later)
    before = threading.active_count()
    with pytest.raises(MemoryError, match="no more"):
        ds.solve(paper_problem("l1"), "dap-sgd", workers=4, max_delay=4, max_iter=10**7, tol=0, seed=0)
    assert threading.active_count() == before


def test_replay_finds_the_same_automatic_step():
    problem = paper_problem("l1")
    run = ds.solve(problem, "dap-sgd", workers=2, max_delay=9, max_iter=500, tol=0, seed=0, record_schedule=True)
    again = ds.solve(problem, "dap-sgd", runtime=ds.Replay(run.schedule), tol=0)
    assert np.array_equal(run.iterate, again.iterate)


def test_records_never_outgrow_their_room(monkeypatch):
    from dapsgd.runtimes import _crew

    monkeypatch.setattr(_crew, "_RECORDS", 2)
    problem = paper_problem("l1")
    step = ds.Constant(0.01)
    for every in (1, 2, 3):
        run = ds.solve(
            problem, "dap-sgd", workers=6, step=step, max_iter=300, record_every=every, tol=0, seed=0, record_schedule=True
        )
        assert run.trace.iteration.tolist() == list(range(0, 301, every))
        again = ds.solve(problem, "dap-sgd", runtime=ds.Replay(run.schedule), step=step, record_every=every, tol=0)
        np.testing.assert_allclose(run.trace.objective, again.trace.objective, rtol=1e-12)


class Raises(NamedTuple):
    """A regulariser that fails in the middle of a run."""

    after: np.ndarray

    def value(self, w):
        return 0.0

    def prox(self, v, step, out):
        self.after[0] -= 1
        if self.after[0] < 0:
            raise ValueError("on purpose")
        for j in range(v.size):
            out[j] = v[j]


@pytest.mark.parametrize("algorithm", ["p-sgd", "tap-sgd", "dap-sgd"])
def test_an_exception_in_a_prox_is_raised_and_holds_no_lock(algorithm):
    problem = cases.problem("squared", "zero", n=100)
    problem = ds.Problem(problem._rows.X, problem._targets[:, 0], regularizer=Raises(np.array([500])))
    before = threading.active_count()
    with pytest.raises(ValueError, match="on purpose"):
        ds.solve(problem, algorithm, step=ds.Constant(1e-3), max_iter=100_000, tol=0, seed=0)
    assert threading.active_count() == before


@pytest.mark.parametrize("runtime", ["serial", "threads"])
def test_one_worker_stops_at_the_same_iteration_every_time(runtime):
    problem = paper_problem("l1")
    options = {"runtime": runtime, "workers": 1, "tol": 0.05, "max_passes": 2000, "record_every": 50, "seed": 5}
    first, second = (ds.solve(problem, "dap-sgd", **options) for _ in range(2))
    assert first.converged
    assert first.iterations == second.iterations == first.trace.iteration[-1]
    assert np.array_equal(first.iterate, second.iterate)


def test_a_seed_sequence_is_not_used_up():
    problem, seed = paper_problem("l1"), np.random.SeedSequence(3)
    runs = [ds.solve(problem, "p-sgd", max_iter=100, tol=0, seed=seed).iterate for _ in range(2)]
    assert np.array_equal(*runs)


def test_a_callback_may_stop_before_the_first_iteration():
    for algorithm in ("fista", "p-sgd", "dap-sgd"):
        run = ds.solve(paper_problem("l1"), algorithm, tol=0, callbacks=[lambda checkup: True])
        assert run.iterations == 0


def test_solves_in_several_threads_leave_blas_as_it_was():
    from threadpoolctl import threadpool_info

    problem = paper_problem("l1")
    before = [library["num_threads"] for library in threadpool_info()]

    def work(seed):
        for _ in range(5):
            ds.solve(problem, "dap-sgd", workers=2, max_iter=300, tol=0, seed=seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [library["num_threads"] for library in threadpool_info()] == before


def test_a_problem_can_be_pickled_after_use():
    problem = paper_problem("fused_lasso")
    w = np.linspace(0.0, 1.0, problem.p)
    expected = problem.residual(w)
    for copied in (pickle.loads(pickle.dumps(problem)), copy.deepcopy(problem)):
        assert "_prox" not in vars(copied)
        assert copied.residual(w) == expected


@pytest.mark.parametrize("callbacks", [(), (lambda seen: None,)])
def test_workers_are_not_stopped_for_what_nobody_waits_for(monkeypatch, callbacks):
    slices = []
    run_slice = threads.Threads._slice
    monkeypatch.setattr(threads.Threads, "_slice", lambda *given, **named: slices.append(run_slice(*given, **named)))
    monkeypatch.setattr(threads, "_POLL_SECONDS", 1e-3)
    monkeypatch.setattr(threads, "_PATIENT_SECONDS", 1e9)
    run = ds.solve(
        cases.problem(), "dap-sgd", workers=2, max_iter=100_000, record_every=1000, tol=0.0, seed=0, callbacks=callbacks
    )
    assert list(run.trace.iteration) == list(range(0, 100_001, 1000))
    assert (len(slices) == 1) == (not callbacks)
