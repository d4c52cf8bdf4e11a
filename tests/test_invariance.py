"""With an intercept, an answer does not depend on where columns are, nor on how large they are."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import dapsgd as ds
from dapsgd.centred import CentredRows

RNG = np.random.default_rng(0)
N, P = 150, 80
X = 0.8 + 0.1 * RNG.standard_normal((N, P)).cumsum(axis=1)
TRUTH = np.zeros(P)
TRUTH[20:35], TRUTH[50:60] = 1.0, -0.7
Y = 26.0 + X @ TRUTH + 0.4 * RNG.standard_normal(N)
SIGNS = np.where(np.median(Y) < Y, 1.0, -1.0)

TERMS = {
    "fused": (ds.Squared(), Y, lambda size: ds.FusedLasso(0.1 * size)),
    "fused and l1": (ds.Squared(), Y, lambda size: ds.FusedLasso(0.1 * size, 0.05 * size)),
    "l1": (ds.Squared(), Y, lambda size: ds.L1(0.1 * size)),
    "groups": (ds.Squared(), Y, lambda size: ds.GroupLasso(0.1 * size, 5)),
    "logistic fused": (ds.Logistic(), SIGNS, lambda size: ds.FusedLasso(0.02 * size)),
    "logistic l1": (ds.Logistic(), SIGNS, lambda size: ds.L1(0.02 * size)),
    "logistic groups": (ds.Logistic(), SIGNS, lambda size: ds.GroupLasso(0.02 * size, 5)),
    "huber l1": (ds.Huber(), Y, lambda size: ds.L1(0.05 * size)),
    "huber fused": (ds.Huber(), Y, lambda size: ds.FusedLasso(0.05 * size)),
    "hinge fused": (ds.SquaredHinge(), SIGNS, lambda size: ds.FusedLasso(0.02 * size)),
}
MOVES = {"far": (1.0, 1000.0), "farther": (1.0, 1e5), "counts": (1e4, 3e4), "large": (1e6, 0.0), "small": (1e-6, 0.0)}


@pytest.mark.parametrize("name", TERMS)
def test_the_answer_does_not_depend_on_the_place_and_the_size_of_columns(name):
    loss, y, penalty = TERMS[name]
    expected = ds.solve(ds.Problem(X, y, loss, penalty(1.0), fit_intercept=True), tol=1e-5)
    assert expected.converged
    for size, shift in MOVES.values():
        found = ds.solve(ds.Problem(size * X + shift, y, loss, penalty(size), fit_intercept=True), tol=1e-5)
        assert found.converged, (size, shift)
        assert found.objective == pytest.approx(expected.objective, rel=1e-4)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("move", MOVES)
def test_an_estimator_does_not_mind_either(move, order):
    size, shift = MOVES[move]
    moved = np.asarray(size * X + shift, order=order)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain, other = ds.DAPRegressor("fused_lasso", 0.1).fit(X, Y), ds.DAPRegressor("fused_lasso", 0.1 * size).fit(moved, Y)
    np.testing.assert_allclose(other.predict(moved), plain.predict(X), atol=2e-2)
    found, expected = (ds.DAPRegressorCV("fused_lasso", alphas=5, cv=3).fit(data, Y) for data in (moved, X))
    assert found.alpha_ == pytest.approx(size * expected.alpha_, rel=1e-3)


def test_weights_and_a_start_are_kept():
    weights = RNG.random(N)
    problems = [
        ds.Problem(data, Y, regularizer=ds.FusedLasso(0.1), sample_weight=weights, fit_intercept=True)
        for data in (X, X + 500.0)
    ]
    near, far = (ds.solve(problem, tol=1e-8) for problem in problems)
    np.testing.assert_allclose(far.x, near.x, atol=1e-5)
    again = ds.solve(problems[1], x0=problems[1].pack(far.x, far.intercept), tol=1e-8)
    assert again.converged
    assert again.iterations <= 2


@pytest.mark.parametrize("kind", [np.asarray, np.asfortranarray, sp.csr_matrix, sp.csc_matrix])
@pytest.mark.parametrize("targets", [1, 3])
def test_centred_rows_are_the_same_model(kind, targets):
    weights = RNG.random(N)
    y = Y if targets == 1 else np.stack([Y, -Y, 2.0 * Y], axis=1)
    problem = ds.Problem(kind(X + 7.0), y, sample_weight=weights, fit_intercept=True)
    rows = CentredRows(problem._rows, problem._weights)
    centred = problem.with_rows(rows, problem._targets, problem._weights, problem.shape)
    x = RNG.standard_normal(problem.packed_shape)
    np.testing.assert_allclose(rows.outside(rows.inside(x)), x, atol=1e-10)
    np.testing.assert_allclose(centred.predict(rows.inside(x)), problem.predict(x), atol=1e-8)
    here, there = centred.packed_gradient(rows.inside(x)), problem.packed_gradient(x)
    direction = RNG.standard_normal(problem.packed_shape)
    moved = rows.inside(x + direction) - rows.inside(x)
    assert np.vdot(here, moved) == pytest.approx(np.vdot(there, direction), rel=1e-8)


@pytest.mark.parametrize(("size", "shift", "chosen"), [(1.0, 0.0, "dap-svrg"), (1.0, 10.0, "fista"), (1e4, 0.0, "fista")])
def test_many_rows_that_are_far_from_centred_go_through_full_gradients(size, shift, chosen):
    rng = np.random.default_rng(1)
    data = rng.standard_normal((100_000, 50))
    signs = np.sign(data[:, 10:20].sum(axis=1) + rng.standard_normal(len(data)) + 1.0)
    found = ds.solve(
        ds.Problem(size * data + shift, signs, ds.Logistic(), ds.FusedLasso(0.01 * size), fit_intercept=True), tol=1e-4, seed=0
    )
    assert found.converged
    assert found.message.startswith(chosen)
