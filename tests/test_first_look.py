"""The pass over the data that looks for numbers which are not finite, and gives the gradient at zero."""

import numpy as np
import pytest
from scipy.sparse import csc_matrix, csr_matrix

import dapsgd as ds
from dapsgd import _passes, dual
from dapsgd import problem as problem_module
from dapsgd import rows as data_rows
from dapsgd.columns import DenseColumns


@pytest.fixture(autouse=True)
def _looks_at_all_data(monkeypatch):
    monkeypatch.setattr(problem_module, "_LARGE", 0)
    monkeypatch.setattr(_passes, "WORTH_A_THREAD", 0)


def draw(dtype=np.float64, order="C"):
    rng = np.random.default_rng(0)
    X = np.asarray(rng.standard_normal((300, 40)), dtype, order)
    return X, np.sign(X @ rng.standard_normal(40) + 0.1)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", [ds.Squared(), ds.Logistic(), ds.SquaredHinge(), ds.Huber(0.5)])
def test_the_gradient_at_zero_is_known(loss, dtype, order):
    X, y = draw(dtype, order)
    problem = ds.Problem(X, y, loss, ds.L1(0.01), l2=0.1, sample_weight=np.linspace(0.5, 2.0, 300))
    assert problem.gradient_at_zero is not None
    plain = X.astype(np.float64).T @ problem.slopes(np.zeros((300, 1), dtype))[:, 0].astype(np.float64)
    np.testing.assert_allclose(problem.gradient_at_zero, plain, rtol=0, atol=100 * np.finfo(dtype).eps * np.abs(plain).max())
    given = problem.gradient(np.zeros(40))
    given[:] = 0.0  # a copy
    assert problem.gradient_at_zero.any()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("place", [(0, 0), (150, 17), (299, 39)])
def test_numbers_that_are_not_finite_are_found_wherever_they_are(bad, order, place):
    X, y = draw(order=order)
    X[place] = bad
    for targets in (y, np.where(np.arange(300) == place[0], 0.0, y)):  # a slope of zero hides nothing
        with pytest.raises(ValueError, match=f"X must not contain NaN or infinity, as in row {place[0]}, column {place[1]}"):
            ds.Problem(X, targets)


def test_large_numbers_are_no_infinity():
    X, y = draw()
    X[:, 3] = 1e308  # whose sum is one
    problem = ds.Problem(X, np.abs(y))
    assert problem.gradient_at_zero is None


def test_whatever_needs_more_than_zero_is_looked_at_plainly():
    X, y = draw()
    assert ds.Problem(X, y, fit_intercept=True).gradient_at_zero is None
    assert ds.Problem(X, np.column_stack([y, y])).gradient_at_zero is None
    known = ds.Problem(X, y, ds.Logistic(), ds.L1(0.01))
    assert known.with_regularizer(ds.L1(0.1)).gradient_at_zero is not None
    assert known.part(slice(0, 100)).gradient_at_zero is None


@pytest.mark.parametrize("algorithm", ["dap-svrg", "working-set", "fista"])
def test_runs_begin_with_it_and_end_where_they_would_without(monkeypatch, algorithm):
    X, y = draw()
    options = {"algorithm": algorithm, "workers": 1, "seed": 0, "tol": 1e-8}
    options = {key: value for key, value in options.items() if key != "workers" or algorithm == "dap-svrg"}
    problem = ds.Problem(X, y, ds.Logistic(), ds.L1(0.01), l2=0.01)
    passes = []
    plain = data_rows.transpose_times
    monkeypatch.setattr(data_rows, "transpose_times", lambda rows, d: passes.append(len(d)) or plain(rows, d))
    with_it = ds.solve(problem, **options)
    spent, passes[:] = sum(passes), []
    monkeypatch.setattr(problem_module, "_LARGE", 1 << 40)
    without = ds.solve(ds.Problem(X, y, ds.Logistic(), ds.L1(0.01), l2=0.01), **options)
    assert spent < sum(passes)
    np.testing.assert_allclose(with_it.x, without.x, atol=1e-4)


@pytest.mark.parametrize("shape", [(1001, 7), (7, 1001)])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_products_with_columns_by_several_threads_are_those_of_one(monkeypatch, shape, kind):
    monkeypatch.setattr(data_rows, "_SUMS", 0)
    rng = np.random.default_rng(0)
    X, accuracy = rng.standard_normal(shape), 1e4 * float(np.finfo(kind).eps)
    held = data_rows.DenseRows(np.asfortranarray(X, kind), False)
    for tail in ((), (3,)):
        v, d = rng.standard_normal((shape[1], *tail)), rng.standard_normal((shape[0], *tail))
        with _passes.shared_passes(3):
            found = data_rows.predict(held, v.astype(kind)), data_rows.transpose_times(held, d.astype(kind))
        assert [part.dtype for part in found] == [kind, kind]
        np.testing.assert_allclose(found[0], X @ v, rtol=accuracy, atol=accuracy)
        np.testing.assert_allclose(found[1], X.T @ d, rtol=accuracy, atol=accuracy)


@pytest.mark.parametrize("roughly", [False, True])
def test_products_of_a_selection_by_several_threads_are_those_of_one(roughly):
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((3000, 30)), rng.uniform(0.5, 1.0, 3000)
    columns = DenseColumns(X)
    columns.add(np.arange(4, 20))
    chosen = X[:, 4:20]
    w, d = rng.standard_normal((16, 2)), rng.standard_normal((3000, 2))
    for of in (weights, np.full(3000, 0.3)):
        with _passes.shared_passes(3):
            gram, later = columns.gram(of, 0, roughly), columns.gram(of, 5, roughly)
            along, back = columns.times(w), columns.transpose_times(d)
        accuracy = 1e-3 if roughly else 1e-9
        np.testing.assert_allclose(gram, chosen.T @ (of[:, None] * chosen), atol=accuracy)
        np.testing.assert_allclose(later, gram[5:], atol=accuracy)
    np.testing.assert_allclose(along, chosen @ w, atol=1e-9)
    np.testing.assert_allclose(back, chosen.T @ d, atol=1e-9)


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_products_with_sparse_data_by_threads_are_the_same(kind):
    drawn = np.random.default_rng(0).standard_normal((300, 250)) * (np.random.default_rng(3).random((300, 250)) < 0.2)
    drawn[:40], drawn[:, 7] = 0.0, 0.0
    X = csr_matrix(drawn) if kind == "csr" else csc_matrix(drawn)
    held = data_rows.make_rows(X, False)
    for q in ((), (2,)):
        w, d = np.random.default_rng(1).standard_normal((250, *q)), np.random.default_rng(2).standard_normal((300, *q))
        with _passes.shared_passes(3):
            by_threads = data_rows.predict(held, w), data_rows.transpose_times(held, d)
        np.testing.assert_array_equal(by_threads[0], X @ w)
        np.testing.assert_array_equal(by_threads[1], X.T @ d)


def test_constants_are_fitted_by_threads_as_well():
    rng = np.random.default_rng(0)
    n = 70_000  # more than are added up at once
    X = rng.standard_normal((n, 3))
    y = np.where(X[:, 0] + 0.3 + rng.standard_normal(n) > 0.0, 1.0, -1.0)
    for fit_intercept in (False, True):
        problem = ds.Problem(X, y, ds.Logistic(), ds.FusedLasso(0.01), fit_intercept=fit_intercept)
        predictions = problem.predict(problem.pack(np.array([1.0, 0.5, 0.2])))
        found = []
        for threads in (1, 2):
            with _passes.shared_passes(threads):
                found.append(dual._fit_constants(problem, predictions))
        np.testing.assert_array_equal(found[0].predictions, found[1].predictions)
        slopes = problem.slopes(found[0].predictions)[:, 0]
        assert np.abs(X.sum(axis=1) @ slopes) < 1e-12
        assert fit_intercept == (abs(slopes.sum()) < 1e-12)
