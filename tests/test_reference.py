"""The compiled algorithms compute the same iterates as the paper's recursions in NumPy."""

import numpy as np
import pytest

import dapsgd as ds
from dapsgd import reference

from . import cases


def in_numpy(problem):
    """The gradient of f_i and the prox of h, for reference.py, without a line of compiled code for the loss."""
    X = problem._rows.X
    targets = problem._targets
    weights = problem._weights

    def grad(x, batch):
        total = np.zeros_like(x)
        for i in np.atleast_1d(batch):
            row = np.append(X[i], 1.0) if problem.fit_intercept else X[i]
            predictions = np.atleast_1d(row @ x)
            if getattr(problem.loss, "joint", False):
                slopes = np.zeros_like(predictions)
                problem.loss.gradient(predictions, targets[i], slopes)
            else:
                slopes = np.array([problem.loss.derivative(p, y) for p, y in zip(predictions, targets[i], strict=True)])
            total += weights[i] * (np.outer(row, slopes).reshape(x.shape))
        total /= np.size(batch)
        total[: problem.p] += 2.0 * problem.l2 * x[: problem.p]
        return total

    def prox(v, eta):
        out = v.copy()
        out[: problem.p] = ds.prox(problem.regularizer, v[: problem.p], eta)
        return out

    return grad, prox


@pytest.mark.parametrize("regularizer", ds.REGULARIZERS)
@pytest.mark.parametrize("loss", ds.LOSSES)
def test_one_worker_equals_the_reference(loss, regularizer):
    problem = cases.problem(loss, regularizer, l2=0.1)
    step = ds.InverseTime(30.0, 0.1)
    grad, prox = in_numpy(problem)
    x0 = np.zeros(problem.shape)
    for algorithm in ("p-sgd", "tap-sgd", "dap-sgd"):
        run = ds.solve(problem, algorithm, runtime="serial", step=step, max_iter=60, tol=0, seed=3, record_schedule=True)
        expected = reference.p_sgd(grad, prox, lambda t: 1.0 / (30.0 + 0.1 * t), x0, run.schedule.rows)
        scale = max(1.0, np.abs(expected).max())
        assert np.abs(run.iterate - expected).max() <= 1e-12 * scale, algorithm
        assert (run.schedule.delays == 0).all()
        assert np.abs(expected).max() > 0


@pytest.mark.parametrize("algorithm", ["tap-sgd", "dap-sgd"])
@pytest.mark.parametrize("options", [{}, {"fit_intercept": True}, {"sample_weight": True}, {"multi": True}])
def test_delayed_updates_equal_the_reference(algorithm, options):
    options = dict(options)
    if options.pop("sample_weight", False):
        options["sample_weight"] = np.linspace(0.0, 2.0, 40)
    problem = cases.problem("squared", "nuclear" if options.get("multi") else "fused_lasso", l2=0.05, **options)
    rng = np.random.default_rng(1)
    T, tau = 80, 5
    read = [max(0, t - int(rng.integers(0, tau + 1))) for t in range(T)]
    rows = rng.integers(0, problem.n, (T, 2))
    schedule = ds.Schedule(np.zeros(T, int), read, rows)
    grad, prox = in_numpy(problem)
    run = ds.solve(problem, algorithm, runtime=ds.Replay(schedule), step=ds.InverseTime(40.0, 0.2), tol=0, average=True)
    recursion = {"tap-sgd": reference.tap_sgd, "dap-sgd": reference.dap_sgd}[algorithm]
    x = recursion(grad, prox, lambda t: 1.0 / (40.0 + 0.2 * t), np.zeros(problem.packed_shape), rows, read)
    average = reference.running_average(x)[: problem.p]
    assert np.abs(run.iterate - average).max() <= 1e-12 * max(1.0, np.abs(average).max())
    assert (run.delays == np.bincount(np.arange(T) - read, minlength=len(run.delays))).all()
