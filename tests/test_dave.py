"""DAve-RPG: the recursion against plain NumPy, its optimum, and everything it runs on."""

import threading
import time

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import dapsgd as ds
from dapsgd.losses import LOSSES
from dapsgd.regularizers import REGULARIZERS
from dapsgd.runtimes import _crew, _engine
from dapsgd.shares import cut, share_step

from . import cases


def small(regularizer="fused_lasso", n=120, **options):
    return cases.problem("squared", regularizer, n=n, seed=0, multi=regularizer == "nuclear", **{"l2": 0.1, **options})


def in_numpy(problem, schedule, eta):
    """Run the recursion with the delays of a schedule; return the mean of the workers' points."""
    X, y = problem._rows.X, problem._targets
    versions = [np.zeros(problem.shape)]
    points = {}
    for read, (share, first, last) in zip(schedule.read, schedule.rows, strict=True):
        z = ds.prox(problem.regularizer, versions[read], eta)
        rows = slice(first, last + 1)
        residuals = X[rows] @ z - y[rows].reshape(-1, *z.shape[1:])
        gradient = 2.0 * problem.loss.scale * X[rows].T @ residuals / len(residuals) + 2.0 * problem.l2 * z
        point = z - eta * gradient
        weight = len(residuals) / problem.n
        versions.append(versions[-1] + weight * (point - points.get(share, np.zeros(problem.shape))))
        points[share] = point
    return versions[-1]


@pytest.mark.parametrize("regularizer", ["l1", "group_lasso", "fused_lasso", "nuclear"])
@pytest.mark.parametrize("workers", [1, 3])
def test_it_runs_the_recursion(regularizer, workers):
    problem, step = small(regularizer), ds.Constant(0.05)
    run = ds.solve(problem, "dave-rpg", workers=workers, step=step, max_iter=300, tol=0.0, seed=0, record_schedule=True)
    expected = in_numpy(problem, run.schedule, 0.05)
    np.testing.assert_allclose(run.iterate, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    np.testing.assert_array_equal(run.x, ds.prox(problem.regularizer, run.iterate, 0.05))
    assert run.trace.objective[-1] == pytest.approx(problem.objective(run.x))
    again = ds.solve(problem, "dave-rpg", runtime=ds.Replay(run.schedule), step=step, tol=0.0)
    assert np.array_equal(run.iterate, again.iterate)


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_reaches_the_optimum(loss):
    check_optimum(cases.problem(loss, "l1", n=150, seed=1, l2=0.2))


@pytest.mark.parametrize("regularizer", REGULARIZERS)
def test_every_regularizer_reaches_the_optimum(regularizer):
    check_optimum(small(regularizer))


def check_optimum(problem):
    best = ds.solve(problem, "fista", tol=1e-12)
    run = ds.solve(problem, "dave-rpg", workers=3, max_passes=3000, tol=1e-10, seed=0)
    assert run.converged
    assert run.objective <= best.objective + 1e-9 * max(1.0, abs(best.objective))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
def test_sparse_single_precision_weights_and_intercept(dtype, sparse):
    problem = cases.weighted(dtype, sparse)
    best = ds.solve(problem, "fista", tol=1e-6 if dtype == np.float32 else 1e-12)
    run = ds.solve(problem, "dave-rpg", workers=2, max_passes=900, tol=0.0, seed=0)
    assert run.x.dtype == dtype
    assert run.objective <= best.objective * (1 + (1e-5 if dtype == np.float32 else 1e-10))
    assert run.intercept == pytest.approx(best.intercept, rel=1e-3)


def test_the_step_does_not_depend_on_delays():
    problem = small(n=160)
    best = ds.solve(problem, "fista", tol=1e-12).objective
    for costs in (ds.Fixed(1e-3), ds.Straggler(1e-3, factor=20.0), ds.HeavyTailed(1e-3, 1.5)):
        runtime = ds.Simulated(costs, 1e-6)
        run = ds.solve(problem, "dave-rpg", runtime=runtime, workers=8, max_delay=500, max_iter=20_000, tol=1e-9, seed=0)
        assert run.objective <= best * (1 + 1e-8)
        assert len(run.delays) == 501


def test_a_thread_that_is_halted_as_it_begins_is_waited_for(monkeypatch):
    real, halted = _crew.compiled, threading.Event()

    def compiled(function, *arguments):
        call = real(function, *arguments)
        if function is not _engine.run:
            return call

        def halting(parts, rule, shared, own):
            if own.worker == 1 and not halted.is_set():
                halted.set()
                time.sleep(0.3)  # alone, the other would be at the end long before
            return call(parts, rule, shared, own)

        return halting

    monkeypatch.setattr(_crew, "compiled", compiled)
    run = ds.solve(small(n=160), "dave-rpg", workers=2, max_iter=2000, tol=0.0, seed=0, record_schedule=True)
    assert halted.is_set()
    for worker in (0, 1):
        turns = np.flatnonzero(run.schedule.worker == worker)
        assert np.diff(turns, prepend=-1, append=2000).max() <= 8  # two shares, delays of two at the most, late threads


def test_measuring_leaves_the_workers_points_alone():
    problem = small()
    options = {"workers": 2, "step": ds.Constant(0.05), "max_iter": 40, "tol": 0.0, "seed": 0}
    given = ds.solve(problem, "dave-rpg", runtime=ds.Simulated(ds.Fixed(1e-3), ds.Fixed(1e-6)), **options)
    measured = ds.solve(problem, "dave-rpg", runtime=ds.Simulated(None, ds.Fixed(1e-9)), record_schedule=True, **options)
    expected = in_numpy(problem, measured.schedule, 0.05)
    np.testing.assert_allclose(measured.iterate, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    assert given.iterations == measured.iterations == 40


def test_all_workers_take_part_however_few_the_cores():
    run = ds.solve(
        small(n=160),
        "dave-rpg",
        workers=8,
        runtime=ds.Threads(active=2),
        max_iter=40_000,
        tol=0.0,
        seed=0,
        record_schedule=True,
    )
    assert np.bincount(run.schedule.worker[-10_000:], minlength=8).min() >= 100  # threads take a while to start


def test_sampled_smoothness_is_near_the_exact_one(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 5)) + rng.standard_normal((4000, 1))
    for made in (X, csr_matrix(X)):
        problem = ds.Problem(made, X[:, 0], l2=0.1)
        shares = cut(problem.n, 2)
        exact = share_step(problem, shares, np.zeros(5))
        with monkeypatch.context() as patched:
            patched.setattr("dapsgd.shares._ENTRIES", 4000)
            assert share_step(problem, shares, np.zeros(5)) == pytest.approx(exact / 1.1, rel=0.15)
    assert exact == pytest.approx(1.0 / problem.lipschitz(), rel=0.1)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"batch_size": 4}, "batch_size must be 'auto'"),
        ({"step": ds.InverseTime(10.0, 1.0)}, r"step must be dapsgd\.Constant"),
        ({"workers": 500}, "workers must be at most the number of rows"),
    ],
)
def test_what_makes_no_sense_is_refused(options, match):
    with pytest.raises(ValueError, match=match):
        ds.solve(small(), "dave-rpg", **options)


def test_a_schedule_of_rows_is_not_one_of_shares():
    problem = small()
    run = ds.solve(problem, "dap-sgd", workers=1, batch_size=3, max_iter=10, tol=0.0, seed=0, record_schedule=True)
    with pytest.raises(ValueError, match="rows must hold the worker's number"):
        ds.solve(problem, "dave-rpg", runtime=ds.Replay(run.schedule), step=ds.Constant(0.1))
    shares = ds.solve(problem, "dave-rpg", workers=2, max_iter=10, tol=0.0, record_schedule=True).schedule
    with pytest.raises(ValueError, match="step must be given"):
        ds.solve(problem, "dave-rpg", runtime=ds.Replay(shares))
