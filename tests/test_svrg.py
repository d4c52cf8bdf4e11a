"""Variance-reduced algorithms: the recursion, its linear convergence, and everything they run on."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import dapsgd as ds
from dapsgd import _passes, snapshots
from dapsgd import rows as data_rows
from dapsgd.algorithms import ALGORITHMS
from dapsgd.choices import pick_batch_size
from dapsgd.losses import LOSSES
from dapsgd.regularizers import REGULARIZERS
from dapsgd.snapshots import Refresher, make_epochs
from dapsgd.steps import allowed_step, settling

from . import cases


def small(regularizer="fused_lasso", n=120, **options):
    return cases.problem("squared", regularizer, n=n, seed=0, multi=regularizer == "nuclear", **{"l2": 0.1, **options})


def in_numpy(problem, schedule, eta, epochs):
    """Run serial SVRG in plain NumPy: gradients of single rows through Problem.gradient of one-row problems."""
    x = np.zeros(problem.shape)
    X, y = problem._rows.X, problem._targets
    for t, rows in enumerate(schedule.rows):
        if epochs.has(t):
            snapshot, full = x.copy(), problem.gradient(x)

        def batch_gradient(w, rows=rows):
            residuals = X[rows] @ w - y[rows].reshape(len(rows), *w.shape[1:])
            return 2.0 * problem.loss.scale * X[rows].T @ residuals / len(rows) + 2.0 * problem.l2 * w

        gradient = batch_gradient(x) - batch_gradient(snapshot) + full
        x = ds.prox(problem.regularizer, x - eta * gradient, eta)
    return x


@pytest.mark.parametrize("algorithm", ["tap-svrg", "dap-svrg"])
@pytest.mark.parametrize("regularizer", ["l1", "group_lasso", "fused_lasso", "nuclear"])
def test_one_worker_runs_the_recursion(algorithm, regularizer):
    problem = small(regularizer)
    options = {"runtime": "serial", "step": ds.Constant(0.01), "batch_size": 7, "tol": 0.0}
    run = ds.solve(problem, algorithm, max_iter=150, seed=3, record_schedule=True, **options)
    expected = in_numpy(problem, run.schedule, 0.01, make_epochs(problem.n, 7))
    np.testing.assert_allclose(run.iterate, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("algorithm", ["tap-svrg", "dap-svrg"])
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_it_converges_linearly_to_machine_precision(algorithm, workers):
    problem = small("fused_lasso", n=400)
    best = ds.solve(problem, "fista", tol=1e-14).objective
    run = ds.solve(problem, algorithm, workers=workers, max_passes=400, tol=0.0, seed=0)
    assert run.objective - best <= 1e-12 * best
    gaps = np.maximum(run.trace.objective / best - 1.0, 1e-16)
    first = np.flatnonzero(gaps < 1e-11)[0]
    rates = gaps[1 : first + 1] / gaps[:first]
    assert np.exp(np.log(rates).mean()) < 0.7  # for each snapshot, three passes


@pytest.mark.parametrize("algorithm", ["tap-svrg", "dap-svrg"])
@pytest.mark.parametrize("regularizer", ["l1", "fused_lasso", "nuclear"])
def test_a_replay_gives_the_same_bits(algorithm, regularizer):
    problem = small(regularizer)
    options = {"step": ds.Constant(0.01), "batch_size": 4, "tol": 0.0}
    run = ds.solve(problem, algorithm, workers=4, max_iter=2000, seed=0, record_schedule=True, **options)
    again = ds.solve(problem, algorithm, runtime=ds.Replay(run.schedule), step=ds.Constant(0.01), tol=0.0)
    assert run.delays.sum() == 2000
    assert np.array_equal(run.iterate, again.iterate)


def test_a_simulation_of_one_worker_is_a_serial_run():
    problem = small()
    options = {"step": ds.Constant(0.01), "max_iter": 300, "tol": 0.0, "seed": 5}
    serial = ds.solve(problem, "dap-svrg", runtime="serial", **options)
    simulated = ds.solve(problem, "dap-svrg", runtime=ds.Simulated(1e-5, 1e-6), workers=1, **options)
    assert np.array_equal(serial.iterate, simulated.iterate)
    late = ds.solve(problem, "dap-svrg", runtime=ds.Simulated(1e-5, 1e-6), workers=8, **options)
    assert late.delays[5:].sum() > 200


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_reaches_the_optimum(loss):
    problem = cases.problem(loss, "l1", n=150, seed=1, l2=0.2)
    check_optimum(problem)


@pytest.mark.parametrize("regularizer", REGULARIZERS)
def test_every_regularizer_reaches_the_optimum(regularizer):
    check_optimum(small(regularizer))


def check_optimum(problem):
    best = ds.solve(problem, "fista", tol=1e-12)
    run = ds.solve(problem, "dap-svrg", workers=2, max_passes=1500, tol=1e-10, seed=0)
    assert run.converged
    assert run.objective <= best.objective + 1e-9 * max(1.0, abs(best.objective))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
def test_sparse_single_precision_weights_and_intercept(dtype, sparse):
    problem = cases.weighted(dtype, sparse)
    best = ds.solve(problem, "fista", tol=1e-6 if dtype == np.float32 else 1e-12)
    run = ds.solve(problem, "dap-svrg", workers=2, max_passes=900, tol=0.0, seed=0)
    assert run.x.dtype == dtype
    assert run.objective <= best.objective * (1 + (1e-5 if dtype == np.float32 else 1e-10))
    assert run.intercept == pytest.approx(best.intercept, rel=1e-3)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_snapshot_does_not_depend_on_the_number_of_threads(sparse, monkeypatch):
    monkeypatch.setattr("dapsgd.snapshots._BLOCK_BYTES", 1)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 5))
    problem = ds.Problem(csr_matrix(X) if sparse else X, rng.standard_normal((1000, 3)), l2=0.3, fit_intercept=True)
    x = rng.standard_normal(problem.packed_shape)
    alone, together = Refresher(problem, 1), Refresher(problem, 3)
    assert len(alone._blocks) > 10
    alone(x)
    together(x)
    assert np.array_equal(alone.mean, together.mean)
    assert np.array_equal(alone.at_snapshot, together.at_snapshot)
    expected = problem.packed_gradient(x)
    expected[:5] -= 0.6 * x[:5]
    np.testing.assert_allclose(alone.mean, expected, rtol=1e-12, atol=1e-12)


def test_passes_count_snapshots():
    problem = small(n=100)
    epoch = make_epochs(100, 10).first
    run = ds.solve(problem, "dap-svrg", workers=1, batch_size=10, step=ds.Constant(1e-3), max_iter=2 * epoch, tol=0.0, seed=0)
    assert run.passes == pytest.approx(2 * epoch * 10 / 100 + 2)
    assert run.trace.passes[-1] == run.passes
    assert ds.solve(problem, "dap-svrg", workers=1, max_passes=9, tol=0.0, seed=0).passes == pytest.approx(9.0, abs=0.5)


def test_too_long_a_step_is_noticed():
    with pytest.raises(ds.DivergenceError):
        ds.solve(small(), "dap-svrg", workers=2, step=ds.Constant(1e3), max_iter=2000, tol=0.0, seed=0)


def test_average_and_delay_adaptive_steps_work_with_snapshots():
    problem = small()
    best = ds.solve(problem, "fista", tol=1e-12).objective
    options = {"workers": 2, "max_passes": 300, "tol": 0.0, "seed": 0}
    adaptive = ds.solve(problem, "dap-svrg", step=ds.DelayAdaptive(ds.Constant(0.02)), **options)
    mean = ds.solve(problem, "dap-svrg", average=True, **options)
    assert adaptive.objective <= best * (1 + 1e-6)
    assert mean.objective <= best * (1 + 1e-3)


@pytest.mark.parametrize("regularizer", ["l1", "group_lasso", "fused_lasso"])
def test_constant_delays_do_not_slow_convergence_down(regularizer):
    problem = small(regularizer, n=600)
    options = {"runtime": ds.Simulated(work=1e-3, apply=1e-6), "batch_size": 8, "max_passes": 60, "tol": 1e-9, "seed": 0}
    alone, several = (ds.solve(problem, "dap-svrg", workers=workers, **options) for workers in (1, 5))
    assert several.delays.argmax() == 4
    assert alone.converged
    assert several.converged
    assert several.passes <= 1.5 * alone.passes
    assert "went up" not in several.message


@pytest.mark.parametrize(("delay", "max_delay"), [(0, 0), (0, 9), (1, 1), (1, 2), (2, 2), (3, 4), (8, 8), (8, 50), (50, 50)])
def test_what_the_prox_pins_comes_to_rest(delay, max_delay):
    rule = settling(1.0, max_delay)
    x, spent = [1.0] * (delay + 1), [0.0] * (delay + 1)
    for _ in range(2000):
        allowed = allowed_step(rule, spent[-1] - spent[-1 - delay])
        x.append(x[-1] - min(1.0, allowed) * x[-1 - delay])
        spent.append(spent[-1] + min(1.0, allowed))
    assert np.abs(x[-delay - 1 :]).max() < 1e-6


@pytest.mark.parametrize("workers", [1, 2])
def test_an_automatic_step_that_is_too_long_is_halved(workers):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 12))
    y = rng.poisson(np.exp(np.clip(2.0 * X[:, 0], -3.0, 4.0))).astype(float)
    problem = ds.Problem(X, y, ds.Poisson(), ds.L1(0.05))
    run = ds.solve(problem, "dap-svrg", workers=workers, seed=0, tol=1e-5, max_passes=3000)
    assert run.converged
    assert "each time the step was halved" in run.message
    assert run.objective <= ds.solve(problem, "fista", tol=1e-10).objective + 1e-4 * abs(run.objective)


@pytest.mark.parametrize(
    ("regularizer", "n", "rows"),
    [
        (ds.L1(0.1), 100_000, 32),
        (ds.FusedLasso(0.1), 100_000, 64),
        (ds.Slope([0.3, 0.2, 0.1]), 100_000, 256),
        (ds.Slope([0.3, 0.2, 0.1]), 6_400, 128),  # mini-batches are a small part of the rows
        (ds.Slope([0.3, 0.2, 0.1]), 100, 32),
        (ds.FusedLasso(0.1), 10, 10),
    ],
)
def test_mini_batches_are_as_large_as_the_prox_is_dear(regularizer, n, rows):
    problem = ds.Problem(np.ones((n, 3), np.float32), np.ones(n), regularizer=regularizer)
    assert pick_batch_size("auto", problem, ALGORITHMS["dap-svrg"], ds.Serial()) == rows


def test_mini_batches_grow_with_the_matrix_that_is_decomposed():
    sizes = []
    for q in (2, 20, 200):
        problem = ds.Problem(np.ones((20_000, 300), np.float32), np.ones((20_000, q)), regularizer=ds.NuclearNorm(0.1))
        sizes.append(pick_batch_size("auto", problem, ALGORITHMS["dap-svrg"], ds.Serial()))
    assert sizes == [32, 256, 256]


def test_snapshots_are_taken_often_at_first_where_there_are_many_rows():
    few, many = make_epochs(2_000, 32), make_epochs(1_000_000, 100)
    assert few.first == few.longest == 125
    assert (many.first, many.longest) == (625, 20_000)
    assert [many.at(k) for k in range(7)] == [0, 625, 1875, 4375, 9375, 19_375, 39_375]
    problem = small(n=20_000)
    epochs = make_epochs(problem.n, 32)
    assert epochs.first < epochs.longest
    run = ds.solve(problem, "dap-svrg", workers=1, batch_size=32, max_passes=8, tol=0.0, seed=0)
    expected = [epochs.at(k) for k in range(len(run.trace.iteration))]
    assert run.trace.iteration.tolist() == expected
    assert 5.0 < run.passes <= 8.0  # whole epochs
    schedule = ds.solve(problem, "dap-svrg", runtime="serial", max_iter=600, record_schedule=True, tol=0.0, seed=0).schedule
    step, length = ds.Constant(1e-3), schedule.rows.shape[1]
    again = ds.solve(problem, "dap-svrg", runtime=ds.Replay(schedule), step=step, tol=0.0)
    np.testing.assert_allclose(again.iterate, in_numpy(problem, schedule, 1e-3, make_epochs(problem.n, length)), atol=1e-10)


def test_passes_by_several_threads_are_those_of_one(monkeypatch):
    monkeypatch.setattr(_passes, "WORTH_A_THREAD", 0)
    monkeypatch.setattr(data_rows, "_SUMS", 0)
    rng = np.random.default_rng(0)
    data, x, slopes = rng.standard_normal((1001, 7)), rng.standard_normal((8, 3)), rng.standard_normal((1001, 3))
    for kind in (np.float64, np.float32):
        held = data_rows.DenseRows(data.astype(kind), True)
        with _passes.shared_passes(3):
            found = data_rows.predict(held, x.astype(kind)), data_rows.transpose_times(held, slopes.astype(kind))
        assert [part.dtype for part in found] == [kind, kind]
        accuracy = 1e4 * float(np.finfo(kind).eps)
        np.testing.assert_allclose(found[0], data @ x[:7] + x[7], rtol=accuracy, atol=accuracy)
        np.testing.assert_allclose(found[1], np.vstack([data.T @ slopes, slopes.sum(axis=0)]), rtol=accuracy, atol=accuracy)


@pytest.mark.parametrize("regularizer", ["group_lasso", "fused_lasso"])
def test_passes_are_those_of_snapshots_and_a_few_for_the_certificate(monkeypatch, regularizer):
    counts = {"predict": 0, "transpose_times": 0}
    problem = small(regularizer, n=5_000)
    problem = ds.Problem(problem._rows.X, problem._targets[:, 0], ds.Squared(0.5), problem.regularizer)
    for name in counts:
        plain = getattr(data_rows, name)

        def counted(part, at, plain=plain, name=name):
            counts[name] += data_rows.shape(part)[0] / problem.n
            return plain(part, at)

        monkeypatch.setattr(data_rows, name, counted)
    run = ds.solve(problem, "dap-svrg", workers=2, tol=1e-4, seed=0)
    assert run.converged
    snapshots = len(run.trace.iteration)
    # Of the certificate: the answer's predictions; for a fused lasso the sums of the rows and the fitted slopes of each look.
    # Of the choice where to take a snapshot: three looks at a sixteenth of the rows.
    assert counts["predict"] <= snapshots + 2.01 + 0.2 * snapshots
    assert counts["transpose_times"] <= snapshots + 2.01 + 0.1 * snapshots


def test_sums_of_rows_for_the_gap_come_with_the_first_pass(monkeypatch):
    monkeypatch.setattr(snapshots, "_LARGE", 0)
    given = small("fused_lasso", n=5_000)
    given = given._rows.X, given._targets[:, 0], ds.Squared(), ds.FusedLasso(0.1)
    problem = ds.Problem(*given)
    plain, of_ones = data_rows.predict, []
    monkeypatch.setattr(data_rows, "predict", lambda rows, x: of_ones.append((x == 1.0).all()) or plain(rows, x))
    run = ds.solve(problem, "dap-svrg", workers=2, tol=1e-4, seed=0)
    assert run.converged
    assert not any(of_ones)
    np.testing.assert_allclose(problem._facts["row sums"][:, 0], problem._rows.X.sum(axis=1), rtol=0, atol=1e-12)
    assert run.gap == pytest.approx(ds.Problem(*given).duality_gap(run.x), rel=1e-6)


@pytest.mark.parametrize("regularizer", ["l1", "group_lasso", "fused_lasso"])
def test_the_gap_of_the_answer_bounds_its_distance_to_the_optimum(regularizer):
    for seed in range(5):
        problem = small(regularizer, n=300 + seed)
        best = ds.solve(problem, "fista", tol=1e-13).objective
        for tol in (0.1, 1e-3, 1e-6):
            run = ds.solve(problem, "dap-svrg", workers=2, tol=tol, seed=seed)
            assert run.converged
            assert run.objective - best <= run.gap * (1 + 1e-9) + 1e-13
            assert run.gap <= tol * run.objective
