"""The duality gap is never smaller than the true distance to the optimum, and vanishes there."""

import math
import tracemalloc

import cvxpy as cp
import numpy as np
import pytest
from scipy.sparse import csr_matrix

import dapsgd as ds
from dapsgd import dual
from dapsgd.dual import duality_gap, has_gap
from dapsgd.fista import proximal_step
from dapsgd.losses import LOSSES
from dapsgd.regularizers import REGULARIZERS

from . import cases

NORMS = ["l1", "group_lasso", "sparse_group_lasso", "nuclear", "slope"]


def check_gap(problem, seed=0, tight=1e-7):
    best = ds.solve(problem, "fista", tol=1e-13, max_iter=30_000)
    size = max(1.0, abs(best.objective))
    rng = np.random.default_rng(seed)
    for scale in (0.0, 1e-6, 1e-3, 0.1, 1.0):
        direction = rng.standard_normal(problem.shape)
        w = best.x + scale * direction
        if np.isfinite(problem.penalty(problem.pack(w))):
            above = problem.objective(w, best.intercept) - best.objective
            assert problem.duality_gap(w, best.intercept) >= above - 1e-10 * size
    assert problem.duality_gap(best.x, best.intercept) <= tight * size


@pytest.mark.parametrize("regularizer", REGULARIZERS)
@pytest.mark.parametrize("loss", LOSSES)
def test_with_l2_every_pair_has_a_gap(loss, regularizer):
    check_gap(cases.problem(loss, regularizer, n=60, seed=2, l2=0.1))


@pytest.mark.parametrize("regularizer", NORMS)
@pytest.mark.parametrize("loss", LOSSES)
def test_without_l2_norms_have_a_gap(loss, regularizer):
    check_gap(cases.problem(loss, regularizer, n=60, seed=3, l2=0.0), tight=1e-5)


@pytest.mark.parametrize("loss", sorted(set(LOSSES) - {"multinomial"}))
def test_a_gap_that_need_not_be_exact_is_never_taken_for_a_small_one(loss):
    problem = cases.problem(loss, "fused_lasso", n=60, seed=3, l2=0.0).with_regularizer(ds.FusedLasso(0.05))
    rng, estimates = np.random.default_rng(0), 0
    for size in (0.0, 0.01, 0.1, 1.0):
        x = size * rng.standard_normal(problem.shape)
        known = x, problem.predict(x), problem.packed_gradient(x), problem.objective(x)
        whole = duality_gap(problem, *known, math.inf)
        for enough in (0.0, 0.2 * whole, 0.6 * whole, 0.9 * whole, 2.0 * whole):
            found = duality_gap(problem, *known, enough)
            if found <= enough:
                assert found == pytest.approx(whole, rel=1e-9)
            estimates += found != whole
    assert estimates > 0


@pytest.mark.parametrize("loss", LOSSES)
def test_a_conjugate_is_that_of_the_value(loss):
    loss, rng = cases.losses()[loss], np.random.default_rng(0)
    joint = getattr(loss, "joint", False)
    for _ in range(50):
        if joint:
            pred, y = rng.standard_normal(3), np.eye(3)[rng.integers(3)]
            slope, other = np.empty(3), rng.standard_normal(3)
            loss.gradient(pred, y, slope)
        else:
            pred, other = 2.0 * rng.standard_normal(2)
            y = 1.0 if isinstance(loss, ds.Poisson) else rng.choice([-1.0, 1.0])
            slope = loss.derivative(pred, y)
        conjugate = loss.conjugate(slope, y)
        assert loss.value(pred, y) + conjugate == pytest.approx(np.vdot(pred, slope), abs=1e-12)
        assert loss.value(other, y) + conjugate >= np.vdot(other, slope) - 1e-12


@pytest.mark.parametrize("loss", sorted(set(LOSSES) - {"multinomial"}))
@pytest.mark.parametrize("options", [{}, {"fit_intercept": True}])
def test_a_fused_lasso_has_a_gap_though_it_ignores_constants(loss, options):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((60, 12)) + 0.3
    y = cases.targets(loss, X @ np.repeat([0.5, -0.2, 0.1], 4), rng)
    check_gap(ds.Problem(X, y, cases.losses()[loss], ds.FusedLasso(0.05), **options), tight=1e-6)


@pytest.mark.parametrize("ratio", [0.0, 0.4, 0.9])
def test_an_elastic_net_has_a_gap_of_its_own(ratio):
    for loss in LOSSES:
        small = cases.problem(loss, "l1", n=60, seed=3)
        check_gap(ds.Problem(small._rows.X, np.squeeze(small._targets), small.loss, ds.ElasticNet(0.05, ratio)))


@pytest.mark.parametrize("multi", [False, True])
def test_with_weights_intercept_and_sparse_rows(multi):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 10)) * (rng.random((80, 10)) < 0.5)
    y = X[:, :3] + 2.0 if multi else X[:, 0] + 2.0
    options = {"l2": 0.05, "sample_weight": rng.random(80) * (rng.random(80) < 0.9), "fit_intercept": True}
    check_gap(ds.Problem(csr_matrix(X), y, regularizer=ds.L1(0.02), **options))


def test_random_small_problems():
    rng = np.random.default_rng(1)
    for seed in range(100):
        loss = str(rng.choice(list(LOSSES)))
        regularizer = str(rng.choice(NORMS))
        problem = cases.problem(loss, regularizer, n=25, seed=seed, l2=float(rng.choice([0.0, 0.01, 1.0])))
        best = ds.solve(problem, "fista", tol=1e-10, max_iter=5000).objective
        w = rng.standard_normal(problem.shape) * rng.choice([1e-3, 0.1, 1.0])
        assert problem.duality_gap(w) >= problem.objective(w) - best - 1e-9 * max(1.0, abs(best))


@pytest.mark.parametrize("regularizer", sorted(set(REGULARIZERS) - set(NORMS) - {"elastic_net", "fused_lasso"}))
def test_where_no_dual_is_known_it_says_so(regularizer):
    problem = cases.problem("squared", regularizer, l2=0.0)
    assert not has_gap(problem)
    with pytest.raises(ValueError, match="no duality gap is known"):
        problem.duality_gap(np.zeros(problem.shape))


def test_a_wrong_shape_is_refused():
    with pytest.raises(ValueError, match="w must have shape"):
        cases.problem("squared", "l1").duality_gap(np.zeros(3))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_run_stops_by_itself_with_an_intercept_and_in_single_precision(loss, dtype):
    problem = cases.problem(loss, "l1", n=60, seed=4, l2=0.01, dtype=dtype, fit_intercept=True)
    run = ds.solve(problem, "fista", tol=1e-5, max_iter=5000)
    assert run.converged
    assert run.iterations < 5000


@pytest.mark.parametrize("regularizer", [ds.L1(0.0), ds.GroupLasso(0.1, [[0, 1], list(range(2, 12))], weights=[0.0, 1.0])])
def test_a_part_without_penalty_leaves_it_to_the_residual(regularizer):
    made = cases.problem("squared", "l1", n=60, seed=4)
    problem = ds.Problem(made._rows.X, made._targets[:, 0], regularizer=regularizer)
    run = ds.solve(problem, "dap-svrg", workers=2, tol=1e-6, max_passes=3000, seed=0)
    assert run.converged
    assert not np.isfinite(run.gap)
    assert "the residual is below the tolerance" in run.message


@pytest.mark.parametrize(
    ("regularizer", "l2"),  # with l2 also where the prox can be run part by part
    [
        (ds.L1(0.1), 0.0),
        (ds.GroupLasso(0.1, 100), 0.0),
        (ds.ElasticNet(0.1), 0.0),
        (ds.L1(0.1), 0.1),
        (ds.ElasticNet(0.1), 0.1),
    ],
)
def test_a_large_parameter_is_certified_with_one_more_copy_of_it(regularizer, l2, monkeypatch):
    monkeypatch.setattr(dual, "_BLOCK", 1 << 16)
    p = 2_000_000
    X = csr_matrix(([1.0, 2.0, -1.0], ([0, 1, 1], [3, 5, p - 1])), shape=(2, p))
    problem = ds.Problem(X, [1.0, -2.0], regularizer=regularizer, l2=l2)
    x = np.zeros(p)
    x[:4] = 0.5
    looks = (
        lambda: duality_gap(problem, x, gradient=problem.packed_gradient(x)),
        lambda: problem.packed_residual(x),
        lambda: proximal_step(problem, x, 0.1, search=False),
    )
    for look in looks:  # compile
        look()
    for look in looks:
        tracemalloc.start()
        try:
            look()
            assert tracemalloc.get_traced_memory()[1] < 1.3 * x.nbytes
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("regularizer", [ds.L1(0.1), ds.Box(-0.2, 0.3), ds.Zero()], ids=lambda h: type(h).__name__)
@pytest.mark.parametrize("targets", [1, 3])
def test_with_l2_the_gap_of_a_large_parameter_is_found_part_by_part(regularizer, targets, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 50)), rng.standard_normal((30, targets))
    problem = ds.Problem(X, y if targets > 1 else y[:, 0], regularizer=regularizer, l2=0.3, fit_intercept=True)
    x = 0.1 * rng.standard_normal(problem.shape)
    whole = problem.duality_gap(x)
    monkeypatch.setattr(dual, "_BLOCK", 7 * targets)
    largest = []
    prox = ds.Problem.packed_prox
    monkeypatch.setattr(ds.Problem, "packed_prox", lambda self, v, *a, **k: largest.append(v.size) or prox(self, v, *a, **k))
    assert problem.duality_gap(x) == pytest.approx(whole, rel=1e-12)
    assert max(largest) == 7 * targets


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_bounds_on_both_sides_have_a_gap(loss, fit_intercept):
    problem = cases.problem(loss, "l1", n=40, seed=3, l2=0.0, fit_intercept=fit_intercept).with_regularizer(ds.Box(-0.1, 0.2))
    best = ds.solve(problem, "fista", tol=1e-11, max_iter=20_000)
    assert has_gap(problem)
    assert 0.0 <= best.gap <= 1e-8 * max(1.0, abs(best.objective))
    inside = np.random.default_rng(0).uniform(-0.1, 0.2, problem.shape)
    assert problem.duality_gap(inside) >= problem.objective(inside) - best.objective - 1e-9


def test_a_bound_on_one_side_leaves_it_to_the_residual():
    assert not has_gap(cases.problem("squared", "l1", l2=0.0).with_regularizer(ds.Box(0.0, np.inf)))


@pytest.mark.parametrize("l1", [0.3, 1e-3])
@pytest.mark.parametrize("lam", [0.0, 0.5])
def test_the_ball_of_a_fused_lasso_with_an_l1_part(lam, l1):
    rng = np.random.default_rng(0)
    penalty = ds.FusedLasso(lam, l1=l1)
    for _ in range(20):
        v = rng.standard_normal((8, 2)) * rng.choice([0.01, 0.3, 2.0])
        scale = penalty.ball_scale(v)
        a, b, factor = cp.Variable((7, 2)), cp.Variable((8, 2)), cp.Variable()
        differences = np.diff(np.eye(8), axis=0)
        inside = [cp.abs(a) <= 1.0, cp.abs(b) <= 1.0, factor <= 1.0, factor * v == lam * differences.T @ a + l1 * b]
        best = cp.Problem(cp.Maximize(factor), inside).solve(solver=cp.CLARABEL)
        assert scale == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_fused_lasso_with_an_l1_part_has_a_gap(intercept, targets):
    rng = np.random.default_rng(1)
    X = 0.5 + 0.1 * rng.standard_normal((40, 12)).cumsum(axis=1)
    Y = 85.0 + X @ rng.standard_normal((12, targets)) + 0.1 * rng.standard_normal((40, targets))
    problem = ds.Problem(
        X, Y if targets > 1 else Y[:, 0], ds.Squared(0.5), ds.FusedLasso(0.01, l1=0.01), fit_intercept=intercept
    )
    exact = ds.solve(problem, "fista", tol=1e-9, max_iter=100_000)
    for tol in (1e-2, 1e-4, 1e-6):
        result = ds.solve(problem, tol=tol)
        assert result.converged
        assert result.objective - exact.objective <= result.gap + 1e-12 <= 1.001 * tol * result.objective + 1e-12


def test_a_fused_lasso_has_a_gap_beside_an_extreme_row():
    rng = np.random.default_rng(0)
    X = np.vstack([np.arange(900.0, 960.0, 10.0), rng.standard_normal((60, 6))])
    y = np.append(1000.0, X[1:] @ [1.0, 1.0, 2.0, 2.0, 2.0, 0.0] + 0.1 * rng.standard_normal(60))
    result = ds.solve(ds.Problem(X, y, ds.Squared(0.5), ds.FusedLasso(0.01), fit_intercept=True), tol=1e-8)
    assert result.converged
    assert 0.0 <= result.gap <= 1e-8 * result.objective


@pytest.mark.parametrize("offset", [0.0, 3e3, 1e4, 1e6])
def test_a_fused_lasso_has_a_gap_wherever_targets_and_columns_are(offset):
    rng = np.random.default_rng(0)
    X = np.cumsum(rng.standard_normal((80, 30)), axis=1)
    y = X[:, 5:15].sum(axis=1) + rng.standard_normal(80) + offset
    weights = np.where(np.arange(80) % 7 == 0, 0.0, rng.uniform(0.5, 2.0, 80))
    problem = ds.Problem(X, y, ds.Squared(0.5), ds.FusedLasso(0.1), fit_intercept=True, sample_weight=weights)
    moved = ds.Problem(X + offset, y, ds.Squared(0.5), ds.FusedLasso(0.1), fit_intercept=True, sample_weight=weights)
    best, same = ds.solve(problem, tol=1e-7), ds.solve(moved, tol=1e-6)
    assert best.converged
    assert same.converged
    assert math.isfinite(best.gap)
    assert math.isfinite(same.gap)
    assert same.objective == pytest.approx(best.objective, rel=1e-6)
    far = ds.solve(problem, "fista", tol=1e-2)
    assert far.converged
    assert far.objective - best.objective <= far.gap <= 1e-2 * far.objective


@pytest.mark.parametrize("scale", [1e-13, 1e13])
def test_a_fused_lasso_bounds_the_optimum_whatever_the_units(scale):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8))
    y = X @ np.repeat([1.0, 3.0], 4) + 5.0 + rng.standard_normal(60)
    unit = ds.solve(ds.Problem(X, y, ds.Squared(0.5), ds.FusedLasso(0.05), fit_intercept=True), tol=1e-10)
    problem = ds.Problem(scale * X, y, ds.Squared(0.5), ds.FusedLasso(0.05 * scale), fit_intercept=True)
    for w, intercept in ((np.zeros(8), 0.0), (unit.x / scale, 4.0), (0.5 * unit.x / scale, unit.intercept)):
        gap = problem.duality_gap(w, intercept)
        assert gap >= problem.objective(w, intercept) - unit.objective - 1e-9


@pytest.mark.parametrize("offset", [1e3, 1e5])
def test_targets_far_from_zero_in_single_precision(offset):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 6)).astype(np.float32)
    Y = (X @ rng.standard_normal((6, 4)) + 3.0 * rng.standard_normal((5000, 4)) + offset).astype(np.float32)
    result = ds.solve(ds.Problem(X, Y, ds.Squared(), ds.L1(0.1), fit_intercept=True), "fista", tol=1e-3, max_iter=300)
    assert result.converged
    single = ds.Problem(X, Y[:, 0], ds.Squared(), ds.L1(0.1), fit_intercept=True)
    found = ds.solve(single, "gram", tol=1e-4, max_iter=300)
    exact = ds.Problem(X.astype(float), Y[:, 0].astype(float), ds.Squared(), ds.L1(0.1), fit_intercept=True)
    excess = exact.objective(found.x, found.intercept) - ds.solve(exact, tol=1e-9).objective
    assert not found.converged or excess <= 2e-4 * found.objective
