"""The regularisation path: the strengths, the answers, what warm starts save."""

import math
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.linear_model import enet_path, lasso_path

import dapsgd as ds
from dapsgd import factored, path_model, rows
from dapsgd.path import with_strength

from . import cases

HAVE_STRENGTH = [name for name in ds.REGULARIZERS if name not in ("zero", "box")]


def regression(n=80, p=20, q=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    w = np.zeros(p if q is None else (p, q))
    w[:4] = rng.standard_normal(w[:4].shape) + 1.0
    return X, X @ w + 0.5 * rng.standard_normal((n, *w.shape[1:]))


@pytest.mark.parametrize("name", HAVE_STRENGTH)
def test_every_answer_is_that_of_a_fit_alone(name):
    problem = cases.problem("squared", name, l2=0.01, fit_intercept=True)
    path = ds.path(problem, 5, eps=0.05, tol=1e-9)
    assert path.lams[0] == pytest.approx(problem.lam_max())
    np.testing.assert_allclose(path.lams[1:] / path.lams[:-1], 0.05**0.25)
    assert path.coefs.shape == (*problem.shape, 5)
    assert len(path) == 5
    for k in (1, 4):
        alone = problem.with_regularizer(with_strength(problem.regularizer, path.lams[k]))
        result = ds.solve(alone, tol=1e-9)
        assert path.objectives[k] == pytest.approx(result.objective, rel=1e-7)
        assert alone.objective(path.coefs[..., k], path.intercepts[k]) == pytest.approx(path.objectives[k], rel=1e-12)
        np.testing.assert_allclose(path.coefs[..., k], result.x, atol=1e-4)


def test_it_is_scikit_learns_path():
    X, y = regression()
    lams, coefs, _ = lasso_path(X, y, alphas=10, eps=1e-2, tol=1e-10)
    path = ds.path(ds.Problem(X, y, ds.Squared(0.5), ds.L1(1.0)), 10, eps=1e-2, tol=1e-10)
    np.testing.assert_allclose(path.lams, lams)
    np.testing.assert_allclose(path.coefs, coefs, atol=1e-5)
    lams, coefs, _ = enet_path(X, y, l1_ratio=0.3, alphas=[0.5, 0.1, 0.02], tol=1e-10)
    path = ds.path(ds.Problem(X, y, ds.Squared(0.5), ds.ElasticNet(9.0, 0.3)), lams=[0.1, 0.5, 0.02], tol=1e-10)
    np.testing.assert_allclose(path.lams, lams)
    np.testing.assert_allclose(path.coefs, coefs, atol=1e-5)


def test_several_targets_and_no_intercept():
    X, y = regression(q=3)
    path = ds.path(ds.Problem(X, y, ds.Squared(0.5), ds.NuclearNorm(1.0)), 6)
    assert path.coefs.shape == (20, 3, 6)
    assert path.intercepts.shape == (3, 6)
    assert not path.intercepts.any()
    assert [np.linalg.matrix_rank(path.coefs[..., k]) for k in (0, 5)] == [0, 3]


@pytest.mark.parametrize("regularizer", [ds.L1(1.0), ds.GroupLasso(1.0, 5)], ids=lambda h: type(h).__name__)
def test_fifty_strengths_cost_at_most_a_third_of_fifty_fits(regularizer):
    X, y = regression(1000, 100)
    for j in range(1, 100):  # neighbours are correlated
        X[:, j] += 0.5 * X[:, j - 1]
    problem = ds.Problem(X, y, ds.Squared(0.5), regularizer, fit_intercept=True)
    path = ds.path(problem, 50, algorithm="fista")
    assert all(result.converged for result in path.results)
    cold = [ds.solve(problem.with_regularizer(with_strength(regularizer, lam)), "fista") for lam in path.lams]
    np.testing.assert_allclose(path.objectives, [result.objective for result in cold], rtol=1e-4)
    assert 3 * sum(result.iterations for result in path.results) <= sum(result.iterations for result in cold)


def test_nothing_is_copied_or_computed_again():
    X, y = regression()
    problem = ds.Problem(X, y, regularizer=ds.L1(1.0))
    L = problem.lipschitz()
    other = problem.with_regularizer(ds.FusedLasso(0.3))
    assert other._rows is problem._rows
    assert other._targets is problem._targets
    assert other._facts is problem._facts
    assert other.lipschitz() == L
    assert problem.regularizer == ds.L1(1.0)
    w = np.linspace(-1.0, 1.0, 20)
    fresh = ds.Problem(X, y, regularizer=ds.FusedLasso(0.3))
    assert other.objective(w) == fresh.objective(w)
    assert other.residual(w) == fresh.residual(w)


def test_the_strength_of_slope_is_a_factor():
    h = ds.Slope(np.linspace(2.0, 1.0, 5))
    np.testing.assert_allclose(with_strength(h, 3.0).lams, np.linspace(6.0, 3.0, 5))


X, Y = regression(20, 6)
PROBLEM = ds.Problem(X, Y, regularizer=ds.L1(1.0))
WRONG = {
    "problem": (lambda: ds.path((X, Y)), TypeError, "problem"),
    "no lams": (lambda: ds.path(PROBLEM, 0), ValueError, "n_lams"),
    "half a strength": (lambda: ds.path(PROBLEM, 2.5), TypeError, "n_lams"),
    "eps of 1": (lambda: ds.path(PROBLEM, eps=1.0), ValueError, "eps"),
    "eps of 0": (lambda: ds.path(PROBLEM, eps=0.0), ValueError, "eps"),
    "word for eps": (lambda: ds.path(PROBLEM, eps="small"), TypeError, "eps"),
    "negative lams": (lambda: ds.path(PROBLEM, lams=[1.0, -1.0]), ValueError, "lams"),
    "no strengths": (lambda: ds.path(PROBLEM, lams=[]), ValueError, "lams"),
    "nan": (lambda: ds.path(PROBLEM, lams=[math.nan]), ValueError, "lams"),
    "two dimensions": (lambda: ds.path(PROBLEM, lams=[[1.0]]), ValueError, "lams"),
    "words": (lambda: ds.path(PROBLEM, lams=["a"]), TypeError, "lams"),
    "zero": (lambda: ds.path(PROBLEM.with_regularizer(ds.Zero())), ValueError, "strength"),
    "box": (lambda: ds.path(PROBLEM.with_regularizer(ds.Box(0.0, 1.0))), ValueError, "strength"),
    "pure ridge": (lambda: ds.path(PROBLEM.with_regularizer(ds.ElasticNet(1.0, 0.0))), ValueError, "lams must be given"),
    "option": (lambda: ds.path(PROBLEM, algorithm="fsta"), ValueError, "algorithm"),
    "regulariser": (lambda: PROBLEM.with_regularizer("l1"), TypeError, "regularizer"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls_name_the_argument(name):
    call, error, message = WRONG[name]
    with pytest.raises(error, match=message):
        call()


def test_targets_without_a_signal():
    path = ds.path(ds.Problem(X, np.zeros(20), regularizer=ds.L1(1.0)), 3)
    assert (path.lams > 0.0).all()
    assert not path.coefs.any()


def test_pictures(tmp_path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    path = ds.path(PROBLEM, 4)
    figure = path.plot(tmp_path / "path.png")
    assert (tmp_path / "path.png").stat().st_size > 1000
    (ax,) = figure.axes
    assert figure.get_suptitle() == "Coefficients along the strength of L1"
    largest = int(np.argmax(np.abs(path.coefs[:, -1])))
    assert f"column {largest}" in {text.get_text() for text in ax.texts}
    assert len(ax.texts) <= 6
    figure = path.plot(names=[f"x{j}" for j in range(X.shape[1])])
    assert f"x{largest}" in {text.get_text() for text in figure.axes[0].texts}
    with pytest.raises(ValueError, match="names must be"):
        path.plot(names=["x"])
    plt.close("all")
    several = ds.path(ds.Problem(X, np.column_stack([Y] * 4), regularizer=ds.L1(1.0)), lams=[1.0, 0.0])
    figure = several.plot()
    assert len(figure.axes) == 4
    plt.close(figure)
    assert "4 strengths" in repr(path)


def test_a_path_needs_no_pass_to_start_from_the_answers_before(monkeypatch):
    X, y = regression(200, 40)
    problem = ds.Problem(X, y, ds.Squared(0.5), ds.L1(1.0), fit_intercept=True)
    lams = np.geomspace(problem.lam_max(), 0.01 * problem.lam_max(), 20)
    passes = []
    predict = rows.predict
    monkeypatch.setattr(rows, "predict", lambda *arguments: passes.append(1) or predict(*arguments))
    monkeypatch.setattr(path_model, "_COLUMNS", 0)
    path = ds.path(problem, lams=lams, tol=1e-9)
    assert not passes
    for lam, result in zip(path.lams, path.results, strict=True):
        alone = ds.solve(problem.with_regularizer(ds.L1(lam)), tol=1e-9)
        assert result.objective == pytest.approx(alone.objective, rel=1e-8)


def test_paths_of_one_problem_in_several_threads_do_not_disturb_each_other():
    X, y = regression(150, 60)
    problem = ds.Problem(X, y, ds.Squared(0.5), ds.L1(1.0), fit_intercept=True)
    expected = ds.path(problem, 15, tol=1e-9)
    with ThreadPoolExecutor(4) as pool:
        paths = list(pool.map(lambda eps: ds.path(problem, 15, eps=eps, tol=1e-9), [1e-3, 1e-2, 1e-3, 1e-2]))
    for path in paths[::2]:
        np.testing.assert_allclose(path.objectives, expected.objectives, rtol=1e-8)
    assert all(result.converged for path in paths for result in path.results)
    assert not {"points", "kept set"} & set(problem._facts)


@pytest.mark.parametrize("name", HAVE_STRENGTH)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_on_a_factor_of_the_data_the_answers_are_the_same(monkeypatch, name, fit_intercept):
    weights = np.random.default_rng(3).uniform(0.5, 2.0, 60)
    problem = cases.problem("squared", name, l2=0.01, fit_intercept=fit_intercept, n=60)
    problem = ds.Problem(
        problem._rows.X,
        problem._targets.reshape(60, *problem.shape[1:]),
        problem.loss,
        problem.regularizer,
        l2=0.01,
        fit_intercept=fit_intercept,
        sample_weight=weights,
    )
    plain = ds.path(problem, 4, eps=0.05, tol=1e-9)
    monkeypatch.setattr(factored, "_ENTRIES", 0)
    found = ds.path(problem, 4, eps=0.05, tol=1e-9)
    assert "on a factor of the data" in found.results[1].message
    assert "factor" not in plain.results[1].message
    for k, result in enumerate(found.results):
        there = problem.with_regularizer(with_strength(problem.regularizer, found.lams[k]))
        assert result.converged
        assert there.objective(result.x, result.intercept) == pytest.approx(result.objective, rel=1e-12)
        assert result.objective == pytest.approx(plain.objectives[k], rel=1e-8)
        assert result.gap >= result.objective - plain.objectives[k] - 1e-12
        assert result.trace.passes[-1] == pytest.approx(result.passes)
        assert result.residual == pytest.approx(there.residual(result.x, result.intercept), rel=1e-6, abs=1e-14)
    np.testing.assert_allclose(found.intercepts, plain.intercepts, atol=1e-4)


def test_no_factor_where_it_would_not_be_accurate_or_not_be_the_data(monkeypatch):
    monkeypatch.setattr(factored, "_ENTRIES", 0)
    X, y = regression()
    L1, half = ds.L1(1.0), ds.Squared(0.5)

    def message(problem, **options):
        return ds.path(problem, 4, **options).results[-1].message

    assert "factor" in message(ds.Problem(X, y, half, L1))
    assert "factor" not in message(ds.Problem(X, y, half, L1), tol=1e-15)
    assert "factor" not in message(ds.Problem(X, y, half, L1), algorithm="fista")
    assert "factor" not in message(ds.Problem(X, y, half, L1), batch_size=4)
    assert "factor" not in message(ds.Problem(X, X[:, 0], half, L1))  # nothing is left to be explained
    assert "factor" not in message(ds.Problem(np.repeat(X, 2, axis=1), y, half, L1))  # columns that depend on each other
    assert "factor" not in message(ds.Problem(X.astype(np.float32), y, half, L1))
    assert "factor" not in message(ds.Problem(X, np.sign(y), ds.Logistic(), L1))


WHOLE = [
    *(ds.L1(1.0), ds.ElasticNet(1.0, 0.7), ds.GroupLasso(1.0, 5), ds.SparseGroupLasso(1.0, 5), ds.FusedLasso(1.0)),
]


@pytest.mark.parametrize("regularizer", WHOLE, ids=lambda h: type(h).__name__)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_few_columns_are_all_in_one_model(regularizer, fit_intercept):
    X, y = regression(60, 20)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 60)
    problem = ds.Problem(X, y + 3.0, ds.Squared(0.5), regularizer, sample_weight=weights, fit_intercept=fit_intercept)
    path = ds.path(problem, 8, tol=1e-7)
    assert all("all columns" in result.message for result in path.results)
    for lam, result in zip(path.lams, path.results, strict=True):
        alone = problem.with_regularizer(with_strength(regularizer, lam))
        best = ds.solve(alone, "fista", tol=1e-10)
        assert result.converged
        assert best.objective - 1e-12 <= result.objective <= best.objective * (1.0 + 1e-7)
        assert result.gap == pytest.approx(alone.duality_gap(result.x, result.intercept), abs=1e-14)
        assert result.residual == pytest.approx(alone.residual(result.x, result.intercept))


def test_more_columns_than_rows_and_several_targets_in_one_model():
    X, y = regression(30, 50, q=2)
    problem = ds.Problem(X, y, regularizer=ds.GroupLasso(1.0, 5))
    path = ds.path(problem, 6)
    assert all("all columns" in result.message for result in path.results)
    for lam, objective in zip(path.lams, path.objectives, strict=True):
        best = ds.solve(problem.with_regularizer(ds.GroupLasso(lam, 5)), "fista", tol=1e-9).objective
        assert objective == pytest.approx(best, rel=1e-4)


def test_estimators_that_choose_a_strength_use_it():
    X, y = regression(60, 20)
    model = ds.DAPRegressorCV("group_lasso", groups=5, alphas=4, cv=2).fit(X, y)
    assert all("all columns" in result.message for result in model.path_.results)


def test_a_limit_or_a_wish_is_kept_to():
    X, y = regression(60, 20)
    problem = ds.Problem(X, y, regularizer=ds.GroupLasso(1.0, 5))
    for options in ({"max_passes": 3}, {"algorithm": "dap-svrg"}, {"tol": 0.0, "max_iter": 5}, {"x0": np.ones(20)}):
        assert not any("all columns" in result.message for result in ds.path(problem, 3, **options).results)


def test_where_the_model_does_not_get_there_the_path_goes_on(monkeypatch):
    X, y = regression(60, 20)
    problem = ds.Problem(X, y, regularizer=ds.GroupLasso(1.0, 5), fit_intercept=True)
    expected = ds.path(problem, 6, tol=1e-6)
    monkeypatch.setattr(path_model, "_SWEEPS", 4)
    path = ds.path(problem, 6, tol=1e-6)
    assert {"all columns" in result.message for result in path.results} == {True, False}
    np.testing.assert_allclose(path.objectives, expected.objectives, rtol=2e-6)


def test_blas_has_one_thread_where_the_data_is_small_and_all_of_them_afterwards(monkeypatch):
    from dapsgd.path import path_of
    from dapsgd.runtimes._blas import _controller, blas_threads

    problem, seen = cases.problem("squared", "l1"), []
    with _controller().limit(limits=2, user_api="blas"):
        before = blas_threads()
        options = {"each": lambda: seen.append(blas_threads())}
        path_of(problem, np.array([0.1, 0.05]), [ds.L1(0.1), ds.L1(0.05)], **options)
        assert seen == [1, 1]
        assert blas_threads() == before
        monkeypatch.setattr(sys.modules["dapsgd.runtimes._blas"], "_SMALL", 0)
        path_of(problem, np.array([0.1]), [ds.L1(0.1)], **options)
        assert seen[2:] == [before]
