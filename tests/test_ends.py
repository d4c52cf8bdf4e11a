"""Where an epoch of a variance-reduced run ends: at its last point, or near the mean of its second half."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import dapsgd as ds
from dapsgd import ends as ends_module
from dapsgd.ends import Ends
from dapsgd.snapshots import Refresher

from . import cases


def draw(n=600, p=20, loss=None, **options):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    y = np.sign(X @ np.repeat([1.0, 0.0], p // 2) + rng.standard_normal(n))
    return ds.Problem(X, y, ds.Logistic() if loss is None else loss, **{"regularizer": ds.GroupLasso(0.02, 5), **options})


def snapshot_at(problem, x):
    refresh = Refresher(problem, 1)
    refresh(x.copy())
    return refresh.at_snapshot, refresh.mean


WEIGHTED = {"loss": ds.Squared(), "sample_weight": np.random.default_rng(3).uniform(0.0, 3.0, 600)}


@pytest.mark.parametrize("options", [{}, {"l2": 0.3}, {"fit_intercept": True}, WEIGHTED])
def test_a_sample_of_all_rows_tells_exactly_which_end_is_better(monkeypatch, options):
    monkeypatch.setattr(ends_module, "_SHARE", 1)
    rng = np.random.default_rng(1)
    problem = draw(**options)
    ends, start = Ends(problem), 0.1 * rng.standard_normal(problem.packed_shape)
    known, answers = snapshot_at(problem, start), []
    for sizes in ((0.01, 0.1), (0.1, 0.01), (0.1, 0.3), (0.3, 0.1), (0.1, 1.0)):
        last, mean = (start + size * rng.standard_normal(problem.packed_shape) for size in sizes)
        stepped = problem.packed_prox(mean - 0.1 * problem.packed_gradient(mean), 0.1)
        better = problem.packed_objective(stepped) < problem.packed_objective(last)
        found = ends.choose(last, mean, 0.1, *known)
        assert (found is not None) == better
        if found is not None:
            np.testing.assert_allclose(found, stepped, atol=1e-12)
        answers.append(better)
    assert len(set(answers)) == 2  # both cases were there


@pytest.mark.parametrize("sparse", [False, True])
def test_a_part_of_the_rows_tells_more_the_closer_the_points_are(sparse):
    problem = draw(n=20_000)
    if sparse:
        problem = ds.Problem(csr_matrix(problem._rows.X), problem._targets[:, 0], ds.Logistic(), ds.GroupLasso(0.02, 5))
    ends, best = Ends(problem), ds.solve(problem, "fista", tol=1e-12).x
    rng = np.random.default_rng(2)
    for size in (1e-1, 1e-3, 1e-5):
        start, off = (size * rng.standard_normal(20) for _ in range(2))
        found = ends.choose(best + off, best, 0.1, *snapshot_at(problem, best + start))
        assert found is not None
        assert ends.choose(best, best + off, 0.01, *snapshot_at(problem, best + start)) is None


def test_a_point_that_is_not_finite_is_never_chosen():
    problem = draw()
    x = np.full(20, 0.1)
    with np.errstate(invalid="ignore"):
        assert Ends(problem).choose(x, np.full(20, np.nan), 0.1, *snapshot_at(problem, x)) is None


def test_means_save_epochs_where_mini_batches_differ(monkeypatch):
    problem = draw(n=40_000, p=40)
    options = {"workers": 1, "tol": 1e-4, "seed": 0}
    run = ds.solve(problem, "dap-svrg", **options)
    monkeypatch.setattr(Ends, "choose", lambda *_: None)
    assert run.passes < 0.7 * ds.solve(problem, "dap-svrg", **options).passes


def test_the_answer_is_the_last_snapshot_where_that_is_exactly_sparse():
    run = ds.solve(draw(n=40_000, p=40), "dap-svrg", workers=1, tol=1e-3, seed=0)
    assert run.converged
    assert np.array_equal(run.x, run.iterate)
    assert 0 < np.count_nonzero(run.x) < 40


@pytest.mark.parametrize("algorithm", ["tap-svrg", "dap-svrg"])
@pytest.mark.parametrize("regularizer", ["group_lasso", "fused_lasso", "nuclear"])
def test_replay_takes_the_same_ends(algorithm, regularizer):
    problem = cases.problem("squared", regularizer, n=400, seed=0, multi=regularizer == "nuclear")
    options = {"max_delay": 3, "tol": 0.0}
    run = ds.solve(problem, algorithm, workers=3, record_schedule=True, max_passes=20, seed=1, **options)
    again = ds.solve(problem, algorithm, runtime=ds.Replay(run.schedule), **options)
    assert np.array_equal(run.iterate, again.iterate)
    assert np.array_equal(run.trace.objective, again.trace.objective)
