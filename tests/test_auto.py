"""What ``auto`` chooses gives the same answer as the reference, with a certificate."""

import numpy as np
import pytest
from scipy.sparse import csc_matrix, csr_matrix, random_array

import dapsgd as ds
from dapsgd import auto, columns, descent, gram, quadratic, rows, search, spaces
from dapsgd.losses import LOSSES

from . import cases

FALLING_APART = ["l1", "elastic_net", "group_lasso", "sparse_group_lasso", "box"]
TIED = ["fused_lasso", "nuclear", "slope", "zero"]


def check(problem, algorithm="auto", accuracy=1e-9, tol=1e-10):
    best = ds.solve(problem, "fista", tol=1e-11, max_iter=3000)
    run = ds.solve(problem, algorithm, tol=tol)
    scale = max(abs(best.objective), 1e-6)
    assert run.objective <= best.objective + accuracy * scale
    assert run.converged
    assert run.objective == pytest.approx(problem.objective(run.x, run.intercept), rel=1e-12)
    return run


@pytest.mark.parametrize("regularizer", FALLING_APART)
@pytest.mark.parametrize("loss", sorted(set(LOSSES) - {"multinomial"}))
@pytest.mark.parametrize("sparse", [False, True])
def test_working_sets_reach_the_optimum(loss, regularizer, sparse):
    for intercept in (False, True):
        options = {"l2": 0.01 * intercept, "sample_weight": np.linspace(0.0, 2.0, 60), "fit_intercept": intercept}
        check(cases.problem(loss, regularizer, n=60, seed=3, sparse=sparse, **options), "working-set")


@pytest.mark.parametrize("regularizer", FALLING_APART)
@pytest.mark.parametrize("sparse", [False, True])
def test_working_sets_with_several_targets(regularizer, sparse):
    for intercept in (False, True):
        check(cases.problem("squared", regularizer, multi=True, sparse=sparse, fit_intercept=intercept), "working-set")


@pytest.mark.parametrize("regularizer", FALLING_APART + TIED)
@pytest.mark.parametrize("multi", [False, True])
def test_gram_matrices_reach_the_optimum(regularizer, multi):
    for intercept in (False, True):
        weights = np.linspace(0.0, 2.0, 60) if intercept else None
        options = {"l2": 0.01 * intercept, "sample_weight": weights, "fit_intercept": intercept}
        check(cases.problem("squared", regularizer, n=60, multi=multi, **options), "gram")


def test_a_fused_lasso_is_solved_in_its_jumps():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((80, 200)) + 0.2
    y = X @ np.repeat([0.0, 0.1, -0.05, 0.0], 50) + 0.3 * rng.standard_normal(80)
    for intercept in (False, True):
        problem = ds.Problem(X, y, regularizer=ds.FusedLasso(0.4), fit_intercept=intercept)
        run = check(problem, "working-set", tol=1e-9)
        assert 1 < len(np.unique(run.x)) < 40


def test_what_an_algorithm_cannot_solve_is_refused():
    with pytest.raises(ValueError, match="'working-set' is for problems where the regulariser falls into parts"):
        ds.solve(cases.problem("squared", "nuclear"), "working-set")
    with pytest.raises(ValueError, match="'gram' is for problems where the loss is squared and the data is dense"):
        ds.solve(cases.problem("squared", "l1", sparse=True), "gram")


def test_a_set_grows_as_long_as_units_outside_want_to_move():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 900))
    y = X[:, :60] @ rng.standard_normal(60) + 0.1 * rng.standard_normal(200)
    run = check(ds.Problem(X, y, regularizer=ds.L1(0.02)), tol=1e-9)
    assert run.iterations > 2
    assert "working-set" in run.message


def test_only_the_columns_of_the_set_are_looked_at(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 2000))
    y = 5.0 * X[:, 7] - 3.0 * X[:, 1500] + 0.1 * rng.standard_normal(300)
    gathered = []
    plain = columns.DenseColumns.add
    monkeypatch.setattr(columns.DenseColumns, "add", lambda self, index: (gathered.extend(index), plain(self, index)))
    run = check(ds.Problem(X, y, regularizer=ds.L1(0.5)))
    assert np.flatnonzero(run.x).tolist() == [7, 1500]
    assert len(gathered) < 400


def test_too_large_a_set_is_left_to_full_gradients(monkeypatch):
    monkeypatch.setattr(search, "_LARGEST", 5)
    rng = np.random.default_rng(1)
    X = rng.standard_normal((100, 30))
    run = check(ds.Problem(X, X @ rng.standard_normal(30), regularizer=ds.L1(0.01)), tol=1e-8)
    assert run.iterations > 10
    assert ds.solve(ds.Problem(X, X[:, 0], regularizer=ds.L1(1e-4)), tol=1e-14, max_iter=5).iterations <= 5


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_columns_of_very_different_scale(scale):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((200, 40)) * np.logspace(-3, 3, 40)
    X[:, 5] = 0.0
    X[:, 6] = 3.0
    y = X @ (rng.standard_normal(40) / np.logspace(-3, 3, 40)) + rng.standard_normal(200)
    for fit_intercept in (False, True):
        problem = ds.Problem(X, y, regularizer=ds.L1(0.01 * scale), fit_intercept=fit_intercept)
        run = ds.solve(problem, tol=1e-8)
        assert run.converged
        assert run.gap <= 1e-8 * run.objective


def spy_on_gram(monkeypatch):
    """Have Gram matrices of every size in single precision; return a list of whether those that are made are."""
    made, plain = [], columns.DenseColumns.gram

    def gram(self, weights, since=0, roughly=False):
        made.append(roughly)
        return plain(self, weights, since, roughly)

    monkeypatch.setattr(search, "_COSTLY", 1)
    monkeypatch.setattr(columns.DenseColumns, "gram", gram)
    return made


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("regularizer", [ds.L1(0.01), ds.GroupLasso(0.01, 4), ds.FusedLasso(0.01), ds.ElasticNet(0.01, 0.5)])
def test_what_a_matrix_in_single_precision_gets_wrong_is_corrected(regularizer, intercept, monkeypatch):
    made = spy_on_gram(monkeypatch)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 20)) @ (np.eye(20) + 0.5 * rng.standard_normal((20, 20)))
    y = X[:, :5].sum(axis=1) + rng.standard_normal(80)
    check(ds.Problem(X, y, ds.Squared(), regularizer, fit_intercept=intercept), "working-set", 1e-9, tol=1e-10)
    assert made[0]


def test_where_single_precision_does_not_do_a_matrix_is_exact(monkeypatch):
    made = spy_on_gram(monkeypatch)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 6))
    X = np.hstack([X, X + 1e-3 * rng.standard_normal(X.shape)])
    y = X @ rng.standard_normal(12) + 1e3 * (X[:, 6:] - X[:, :6]) @ rng.standard_normal(6) + rng.standard_normal(80)
    run = ds.solve(ds.Problem(X, y, regularizer=ds.L1(1e-4)), "working-set", tol=1e-8)
    assert run.converged
    assert made == [True, False]


def test_columns_one_by_one(monkeypatch):
    monkeypatch.setattr(search, "_SMALL", 4)
    rng = np.random.default_rng(8)
    wide = rng.standard_normal((15, 40))
    y = wide[:, :5].sum(axis=1) + 0.1 * rng.standard_normal(15)
    for X in (wide, csr_matrix(wide * (rng.random((15, 40)) < 0.5))):
        for regularizer in (ds.L1(0.05), ds.GroupLasso(0.05, 4), ds.ElasticNet(0.05, 0.5)):
            for loss, target in ((ds.Squared(), y), (ds.Logistic(), np.sign(y))):
                for intercept in (False, True):
                    check(ds.Problem(X, target, loss, regularizer, fit_intercept=intercept), "working-set", 1e-8, tol=1e-8)


def test_nothing_to_do():
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((50, 10)), rng.standard_normal(50)
    problem = ds.Problem(X, y, regularizer=ds.L1(1.0))
    above = ds.Problem(X, y, regularizer=ds.L1(1.01 * problem.lam_max()))
    run = ds.solve(above)
    assert run.converged
    assert not run.x.any()


def test_warm_starts_are_used():
    problem = cases.problem("logistic", "l1", n=80)
    cold = ds.solve(problem, tol=1e-8)
    warm = ds.solve(problem, tol=1e-8, x0=cold.x)
    assert warm.iterations == 1
    assert warm.objective == pytest.approx(cold.objective, rel=1e-8)


def test_single_precision():
    problem = cases.problem("logistic", "l1", n=200, dtype=np.float32)
    double = cases.problem("logistic", "l1", n=200)
    run = ds.solve(problem, tol=1e-4)
    assert run.converged
    assert run.x.dtype == np.float32
    assert run.objective == pytest.approx(ds.solve(double, "fista", tol=1e-12).objective, rel=2e-4)


def test_what_auto_chooses():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 8)), rng.standard_normal(60)
    wide = rng.standard_normal((5, 80))

    def chosen(X, y, **options):
        return auto.choose(ds.Problem(X, y, **options), stochastic=False, step=None, average=False)[0]

    assert chosen(X, y, regularizer=ds.L1(0.1)) == "working-set"
    assert chosen(X, y, regularizer=ds.FusedLasso(0.1)) == "working-set"
    assert chosen(X, y, regularizer=ds.FusedLasso(0.1, 0.1)) == "gram"
    assert chosen(X, np.sign(y), loss=ds.Logistic(), regularizer=ds.FusedLasso(0.1, 0.1)) == "fista"
    assert chosen(wide, y[:5], regularizer=ds.FusedLasso(0.1, 0.1)) == "fista"
    many = np.ones((60_000, 90), np.float32)
    assert chosen(many, np.ones(60_000), loss=ds.Logistic(), regularizer=ds.FusedLasso(0.1, 0.1)) == "dap-svrg"


def test_auto_listens_to_what_is_asked_for():
    problem = cases.problem("squared", "l1")
    assert ds.solve(problem, step=ds.InverseTime(100.0, 0.1), max_iter=50, tol=0).message.startswith("dap-sgd")
    assert ds.solve(problem, average=True, max_iter=50, tol=0).message.startswith("dap-sgd")
    assert ds.solve(problem, record_schedule=True, max_iter=50, tol=0, seed=0).schedule is not None
    assert ds.solve(problem, batch_size=4, max_iter=50, tol=0).message.startswith("dap-svrg")
    assert ds.solve(problem, workers=2).converged


def test_the_reason_is_in_the_message():
    run = ds.solve(cases.problem("squared", "fused_lasso"))
    assert "gram (chosen because the loss is squared and there are few columns)" in run.message  # it has an L1 part


def test_a_residual_is_computed_when_asked_for():
    problem = cases.problem("squared", "l1")
    run = ds.solve(problem, tol=1e-10)
    assert run.residual == pytest.approx(problem.residual(run.x), abs=1e-12)
    assert np.isnan(run.trace.residual).all()
    assert np.isfinite(ds.solve(problem, tol=1e-10, record_every=1).trace.residual).all()


def test_extrapolation_never_makes_a_sweep_worse():
    rng = np.random.default_rng(5)
    A = rng.standard_normal((30, 12)) @ np.diag(np.logspace(0, -2, 12))
    Q, g = A.T @ A, rng.standard_normal((12, 1))
    bound = cases.problem("squared", "l1")._bound
    part = descent.Part(descent.unit_handle(bound), np.arange(12), np.arange(13))
    model = descent.GramModel(part, Q, g, np.zeros((12, 1)))

    def penalty(w):
        return bound.lam * float(np.abs(w).sum())

    values = []
    for sweeps in (1, 5, 6, 12, 50):
        fresh = descent.GramModel(part, Q, g, np.zeros((12, 1)))
        w, _ = descent.descend(fresh, penalty, 0.0, sweeps)
        values.append(0.5 * float((w.T @ Q @ w).item()) + float((g.T @ w).item()) + penalty(w))
        assert fresh.value(fresh.state) == pytest.approx(values[-1] - penalty(w))
    assert values == sorted(values, reverse=True)
    assert model.sweep(True) > 0.0


def correlated_columns(n, p, seed=5):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, p)) + rng.standard_normal((n, 1)), rng


def column_model(X, part, slopes):
    n, p = X.shape
    made = columns.no_columns(ds.Problem(X, np.ones(n)))
    made.add(np.arange(p))
    nothing = np.zeros((0, slopes.shape[1]))
    return descent.ColumnModel(part, made, np.ones((n, 0)), np.full(n, 1.0 / n), 0.1, slopes, np.zeros_like(slopes), nothing)


@pytest.mark.parametrize("targets", [1, 3])
def test_a_sweep_settles_each_group_before_the_next(targets):
    n, p = 150, 180
    X, rng = correlated_columns(n, p)
    regularizer, slopes = ds.GroupLasso(0.05, groups=6), rng.standard_normal((p, targets))
    bound = regularizer.bind((p, targets))
    part = descent.Part(descent.unit_handle(bound), np.arange(p // 6), np.arange(0, p + 1, 6))
    Q = X.T @ X / n + 0.1 * np.eye(p)

    def value(W):
        return 0.5 * np.vdot(W, Q @ W) + np.vdot(slopes, W) + bound.value(W)

    once, longest = np.zeros_like(slopes), 0.0
    for start, curvature in zip(part.starts[:-1], descent.blocks_of(Q, part.starts).bounds, strict=True):
        here = slice(start, start + 6)
        point = once - (slopes + Q @ once) / curvature
        once[here] = ds.prox(regularizer, point, step=1.0 / curvature)[here]
        longest = longest or curvature * float(np.abs(once).max())
    whole, single = descent.GramModel(part, Q, slopes, np.zeros_like(slopes)), column_model(X, part, slopes)
    steps = whole.sweep(True), single.sweep(True)
    assert steps[0] == pytest.approx(steps[1], rel=1e-10)
    assert steps[0] >= longest * (1.0 - 1e-12)
    np.testing.assert_allclose(whole.state[0], single.state[0], atol=1e-12)
    np.testing.assert_allclose(whole.state[1], slopes + Q @ whole.state[0], atol=1e-10)
    assert value(whole.state[0]) < value(once) < 0.0


@pytest.mark.parametrize("same", [False, True], ids=["apart", "the same columns twice"])
@pytest.mark.parametrize("size", [1, 5])
def test_a_sweep_by_two_threads_leads_down(size, same, monkeypatch):
    n, p, lam = 400, 40, 0.02
    rng = np.random.default_rng(0)
    X, slopes = rng.standard_normal((n, p)), rng.standard_normal((p, 1))
    if same:
        X[:, p // 2 :], slopes[p // 2 :] = X[:, : p // 2], slopes[: p // 2]
    bound = ds.GroupLasso(lam, groups=size).bind((p, 1))
    part = descent.Part(descent.unit_handle(bound), np.arange(p // size), np.arange(0, p + 1, size))
    monkeypatch.setattr(descent, "threads_for", lambda size: 2)
    both = column_model(X, part, slopes)
    monkeypatch.setattr(descent, "threads_for", lambda size: 1)
    halves = []
    for half in (np.arange(p // 2), np.arange(p // 2, p)):
        alone = part._replace(which=part.which[: p // 2 // size], starts=part.starts[: p // 2 // size + 1])
        model = column_model(X[:, half], alone, slopes[half])
        model.sweep(True)
        halves.append(model.state[0])
    monkeypatch.setattr(descent, "threads_for", lambda size: 2)
    both.sweep(True)
    W, along, _ = both.state
    # Columns that are there twice would be used twice as much as is good.
    np.testing.assert_allclose(W, np.concatenate(halves) * (0.5 if same else 1.0), atol=1e-12)
    assert both._threads == (1 if same else 2)
    np.testing.assert_allclose(along, (X @ W).T, atol=1e-12)
    value = both.value(both.state) + bound.value(W)
    assert value < 0.0
    both.sweep(True)
    assert both.value(both.state) + bound.value(both.state[0]) < value


def test_sweeps_that_leave_out_zeros_are_checked_by_one_over_all():
    X, rng = correlated_columns(40, 300)
    slopes, lam = rng.standard_normal((300, 1)), 1.5
    part = descent.Part(descent.unit_handle(ds.L1(lam)), np.arange(300), np.arange(301), lam)
    model = column_model(X, part, slopes)
    kinds, sweep = [], model.sweep
    model.sweep = lambda everywhere: (kinds.append(everywhere), sweep(everywhere))[1]
    W, sweeps = descent.descend(model, lambda w: lam * float(np.abs(w).sum()), 1e-8, 2000)
    assert sweeps == len(kinds)
    assert kinds[-1]
    assert kinds.count(False) > kinds.count(True)
    gradient = slopes + X.T @ (X @ W) / 40 + 0.1 * W
    wrong = np.where(W == 0.0, np.maximum(np.abs(gradient) - lam, 0.0), np.abs(gradient + lam * np.sign(W)))
    assert wrong.max() < 1e-6
    zeros = np.flatnonzero(W == 0.0)
    model.sweep(False)
    assert not model.state[0][zeros].any()


def test_gathered_columns_are_those_of_the_matrix():
    rng = np.random.default_rng(6)
    dense = rng.standard_normal((37, 20))
    sparse = csr_matrix(random_array((37, 20), density=0.3, rng=rng))
    weights, d = rng.random(37), rng.standard_normal((37, 2))
    for X in (dense, sparse):
        chosen = columns.no_columns(ds.Problem(X, np.ones(37)))
        chosen.add(np.array([3, 11]))
        chosen.add(np.array([0, 19, 4]))
        full = np.asarray(X.todense() if X is sparse else X)[:, [3, 11, 0, 19, 4]]
        np.testing.assert_allclose(chosen.times(np.eye(5)), full)
        np.testing.assert_allclose(chosen.transpose_times(d), full.T @ d)
        np.testing.assert_allclose(chosen.gram(weights), full.T @ (weights[:, None] * full), atol=1e-12)
        np.testing.assert_allclose(chosen.gram(weights, 2), (full.T @ (weights[:, None] * full))[2:], atol=1e-12)
        chosen.keep(np.array([1, 3]))
        np.testing.assert_allclose(chosen.times(np.eye(2)), full[:, [1, 3]])


@pytest.mark.parametrize("scale", [1.0, 1e30])
@pytest.mark.parametrize("rho", [0.5, 0.99])
def test_groups_are_swept_over_until_a_matrix_is_better(rho, scale, monkeypatch):
    rng = np.random.default_rng(0)
    n, p = 3000, 1000
    X = (rho * rng.standard_normal((n, 1)) + np.sqrt(1 - rho**2) * rng.standard_normal((n, p))) * scale
    y = X[:, ::2] @ rng.standard_normal(p // 2) / scale + rng.standard_normal(n)
    problem = ds.Problem(X, y, regularizer=ds.GroupLasso(2e-3 * scale, groups=10))
    kinds, models = set(), set()
    choose, descend = search.Search._choose_precision, search.descend
    monkeypatch.setattr(
        search.Search, "_choose_precision", lambda self, known: (choose(self, known), kinds.add(type(self._columns).__name__))
    )
    monkeypatch.setattr(search, "descend", lambda model, *others: (models.add(type(model)), descend(model, *others))[1])
    result = ds.solve(problem, tol=1e-6)
    assert result.converged
    assert descent.ColumnModel in models
    # Where columns hardly differ sweeps get nowhere; and squares of numbers that are too large are no squares.
    assert ("RoughColumns" in kinds) == (scale == 1.0)
    reference = ds.solve(problem, "gram", tol=1e-8)
    assert result.objective == pytest.approx(reference.objective, rel=2e-6)


def test_the_first_set_of_jumps_has_one_in_every_window():
    rng = np.random.default_rng(0)
    n, p = 300, 2000
    X = rng.standard_normal((n, p))
    jumps = np.arange(60, p, 240)
    truth = np.zeros(p)
    truth[jumps] = rng.choice([-1.0, 1.0], len(jumps))
    problem = ds.Problem(X, X @ truth.cumsum() + 0.1 * rng.standard_normal(n), regularizer=ds.FusedLasso(2.0))
    space = spaces.find_space(problem)
    wants = np.abs(np.convolve(rng.standard_normal(p - 1), np.ones(9), "same"))
    first, second, third = (space.sift(wants, k) for k in (1, 2, 3))
    chosen = np.sort(np.argsort(-first)[:96])
    assert np.diff(chosen).max() <= 2 * 21  # windows of so many
    assert (np.diff(chosen) > 0).all()
    assert set(np.flatnonzero(third)) < set(np.flatnonzero(second)) <= set(np.flatnonzero(first))
    assert first.max() < 3.0 * wants.max()
    result = ds.solve(problem, tol=1e-6)
    assert result.converged
    assert result.iterations <= 8


def test_windows_are_fewer_than_places():
    assert spaces._highest(np.array([0.0, 3.0, 0.0])).tolist() == [0, 1, 2]
    assert spaces._highest(np.zeros(1)).tolist() == [0]
    few = spaces._highest(np.where(np.arange(1000) == 777, 1.0, 0.0))
    assert 777 in few
    assert len(few) == 91  # of 11 places each


@pytest.mark.parametrize("shape", [(60, 300), (400, 300)])
def test_a_fused_lasso_with_many_jumps_is_left_to_others(shape):
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape)
    y = X @ np.cumsum(rng.standard_normal(300)) + rng.standard_normal(len(X))
    problem = ds.Problem(X, y, regularizer=ds.FusedLasso(1.0), fit_intercept=True)
    problem = problem.with_regularizer(ds.FusedLasso(1e-4 * problem.lam_max()))
    result = ds.solve(problem, tol=1e-6)
    assert result.converged
    assert result.message.startswith("working-set")
    assert result.objective <= ds.solve(problem, "fista", tol=1e-8, max_iter=50_000).objective * (1.0 + 2e-6)


def test_thinning_out_changes_no_prediction_and_does_not_lengthen_the_norm():
    rng = np.random.default_rng(0)
    C = rng.standard_normal((6, 20))
    C[:, 10] = C[:, 3]
    before = rng.standard_normal(20) * (rng.random(20) < 0.8)
    W = before.copy()
    descent.thin_out(C.T @ C, W)
    used = np.flatnonzero(W)
    assert len(used) == np.linalg.matrix_rank(C[:, used]) == 6
    np.testing.assert_allclose(C @ W, C @ before, atol=1e-9)
    assert np.abs(W).sum() <= np.abs(before).sum() * (1.0 + 1e-12)
    assert (W * before >= 0.0).all()
    again = W.copy()
    descent.thin_out(C.T @ C, again)  # independent: nothing to do
    np.testing.assert_array_equal(again, W)


@pytest.mark.parametrize("seed", range(6))
def test_columns_that_depend_on_each_other_get_a_gram_matrix(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((50, 400)) + 3.0 * rng.standard_normal((50, 1))
    y = X[:, :40].sum(axis=1) + rng.standard_normal(50)
    problem = ds.Problem(X, y, regularizer=ds.L1(1.0))
    problem = problem.with_regularizer(ds.L1(1e-3 * problem.lam_max()))
    result = ds.solve(problem, tol=1e-8)
    assert result.converged
    assert result.iterations < 100


@pytest.mark.parametrize("copies", [1, 2])
def test_a_jump_turns_signs_until_the_minimum_is_there(copies):
    rng = np.random.default_rng(0)
    C = np.tile(rng.standard_normal((30, 8)), copies)  # copied columns: the matrix is singular
    y, lam = rng.standard_normal(30), 4.0
    Q = C.T @ C
    W = np.where(rng.random((len(Q), 1)) < 0.5, 1.0, -1.0)
    part = descent.Part(descent.unit_handle(ds.L1(lam)), np.arange(len(Q)), np.arange(len(Q) + 1), lam)
    model = descent.GramModel(part, Q, Q @ W - (C.T @ y)[:, None], W)

    def objective(w):
        return 0.5 * float(np.sum((C @ w - y[:, None]) ** 2)) + lam * float(np.abs(w).sum())

    assert model.jump(1e-9)
    best = ds.solve(ds.Problem(C, y, ds.Squared(15.0), ds.L1(lam)), "fista", tol=1e-12).objective
    if copies == 1:
        assert objective(model.state[0]) == pytest.approx(best, rel=1e-12)
    after = descent.descend(model, lambda w: lam * float(np.abs(w).sum()), 1e-12, 1000)[0]
    assert objective(after) == pytest.approx(best, rel=1e-12)


def test_a_jump_finds_the_coordinates_that_are_not_there_yet():
    rng = np.random.default_rng(1)
    C = rng.standard_normal((60, 40)) + rng.standard_normal((60, 1))
    C[:, 7] = C[:, 3] + C[:, 5]  # a combination of others must not be added to them
    y, lam, W = C[:, :20] @ rng.standard_normal(20), 0.3, np.zeros((40, 1))
    W[30] = 1.0
    Q = C.T @ C
    part = descent.Part(descent.unit_handle(ds.L1(lam)), np.arange(40), np.arange(41), lam)
    model = descent.GramModel(part, Q, Q @ W - (C.T @ y)[:, None], W)
    assert model.jump(1e-9)
    w = model.state[0]
    slopes = Q @ w - (C.T @ y)[:, None]
    assert np.abs(slopes).max() <= lam * (1.0 + 1e-6)
    np.testing.assert_allclose(slopes[w != 0.0], -lam * np.sign(w[w != 0.0]), atol=1e-8)


def test_products_that_are_cut_into_blocks_are_the_same(monkeypatch):
    """BLAS is not interrupted within a call, so that calls must be short."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 30))
    weights, problem = rng.uniform(0.5, 2.0, 1000), ds.Problem(X, X[:, 0], regularizer=ds.L1(0.1), fit_intercept=True)
    selected = columns.DenseColumns(X)
    selected.add(np.arange(0, 30, 2))
    monkeypatch.setattr(rows, "_BLAS_WORK", 1)
    assert len(rows.blas_blocks(1000, 30)) == 4
    C = X[:, ::2]
    assert np.allclose(selected.gram(weights), C.T @ (weights[:, None] * C), rtol=1e-12)
    assert np.allclose(selected.gram(weights, 4), (C.T @ (weights[:, None] * C))[4:], rtol=1e-12)
    Z = X - X.mean(axis=0)
    assert np.allclose(gram.make_gram(problem).Q, 2.0 * Z.T @ Z / 1000, rtol=1e-12, atol=1e-14)


def test_a_rough_gram_matrix_is_right_to_seven_digits_and_given_up_where_numbers_are_extreme():
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((9000, 12)), rng.uniform(0.1, 1.0, 9000)
    exact = X.T @ (weights[:, None] * X)
    for scale in (1.0, 1e-150, 1e100):
        chosen = columns.DenseColumns(scale * X)
        chosen.add(np.arange(12))
        found = chosen.gram(weights, roughly=True) / scale**2
        np.testing.assert_allclose(found, exact, atol=1e-6 * exact.max())
        assert np.allclose(found, exact, rtol=1e-12) == (scale != 1.0)


@pytest.mark.parametrize("regularizer", [ds.Zero(), ds.L1(0.0), ds.GroupLasso(0.0, 4), ds.FusedLasso(0.0)])
@pytest.mark.parametrize("l2", [0.0, 0.01])
def test_where_nothing_is_penalised_a_linear_system_is_solved(regularizer, l2):
    rng = np.random.default_rng(0)
    X = np.cumsum(rng.standard_normal((80, 12)), axis=1) * np.logspace(-3, 3, 12)  # correlated, and of all sizes
    y, weights = rng.standard_normal(80), rng.uniform(0.5, 2.0, 80)
    problem = ds.Problem(X, y, regularizer=regularizer, l2=l2, sample_weight=weights, fit_intercept=True)
    run = ds.solve(problem)
    ones = np.column_stack([X, np.ones(80)])
    ridge = np.diag(np.r_[np.full(12, 80.0 * l2), 0.0])
    best = np.linalg.solve(ones.T @ (weights[:, None] * ones) + ridge, ones.T @ (weights * y))
    assert run.converged
    assert "linear system" in run.message
    np.testing.assert_allclose(run.x, best[:12], rtol=1e-6)
    assert run.objective == pytest.approx(problem.objective(best[:12], best[12]), rel=1e-12)


def test_of_columns_that_depend_on_each_other_the_shortest_answer_is_taken():
    rng = np.random.default_rng(0)
    X = np.tile(rng.standard_normal((50, 4)), 2)
    y = X @ np.arange(8.0) + rng.standard_normal(50)
    run = ds.solve(ds.Problem(X, y, regularizer=ds.Zero()))
    np.testing.assert_allclose(run.x, np.linalg.lstsq(X, y, rcond=None)[0], rtol=1e-6)


@pytest.mark.parametrize("lam", [0.0, 0.05])
def test_non_negative_coefficients_are_found_exactly(lam):
    rng = np.random.default_rng(0)
    X = np.cumsum(rng.standard_normal((150, 60)), axis=1)  # neighbours are correlated, so that sweeps are slow
    y = X @ np.maximum(rng.standard_normal(60), 0.0) + rng.standard_normal(150)
    run = ds.solve(ds.Problem(X, y, ds.Squared(0.5), ds.NonNegative(lam)), tol=1e-8)
    slopes = X.T @ (X @ run.x - y) / 150 + lam
    assert run.converged
    assert (run.x >= 0.0).all()
    assert slopes.min() >= -1e-6
    assert np.abs(slopes[run.x > 0.0]).max() <= 1e-6
    assert run.iterations < 20


def test_without_a_gap_the_chosen_algorithm_goes_on_to_a_smaller_residual():
    """A residual that is small beside that at zero may be far from the optimum where columns are correlated."""
    rng = np.random.default_rng(0)
    X = np.cumsum(rng.standard_normal((200, 40)), axis=1)
    y = X @ np.repeat([0.0, 1.0, -0.5, 0.0], 10) + rng.standard_normal(200)
    problem = ds.Problem(X, np.stack([y, -y], axis=1), regularizer=ds.FusedLasso(0.01))
    best = ds.solve(problem, "fista", tol=1e-11, max_iter=100_000).objective
    run, named = ds.solve(problem), ds.solve(problem, "gram")
    assert run.converged
    assert named.converged
    assert run.objective - best <= 1e-6 * best
    assert run.residual < 0.1 * named.residual


def test_columns_in_single_precision_are_for_models_only():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 300))
    y = np.where(X[:, :30] @ rng.standard_normal(30) + rng.standard_normal(400) > 0.0, 1.0, -1.0)
    problem = ds.Problem(X, y, ds.Logistic(), ds.L1(0.003), fit_intercept=True)
    run = ds.solve(problem, "working-set", tol=1e-11)
    assert run.converged
    assert run.objective == pytest.approx(problem.objective(run.x, run.intercept), rel=1e-13)
    assert run.gap == pytest.approx(problem.duality_gap(run.x, run.intercept), abs=1e-13)
    rough = columns.no_columns(problem, roughly=True)
    rough.add(np.array([3, 7, 11]))
    rough.keep(np.array([0, 2]))
    w = rng.standard_normal((2, 1))
    np.testing.assert_allclose(rough.times(w), X[:, [3, 11]] @ w, rtol=1e-14)
    np.testing.assert_allclose(rough.transpose_times(y[:, None]), X[:, [3, 11]].T @ y[:, None], rtol=1e-4)
    assert type(columns.no_columns(ds.Problem(X.astype(np.float32), y, ds.Logistic()), roughly=True)) is columns.DenseColumns


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_columns_that_single_precision_cannot_hold_are_left_as_they_are(size):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 5)) * np.array([1.0, 1.0, size, 1.0, 0.0])
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    rough = columns.no_columns(ds.Problem(X, y, ds.Logistic()), roughly=True)
    rough.add(np.array([0, 4]))
    assert rough.are_safe(0)
    rough.add(np.array([2]))
    assert not rough.are_safe(2)
    np.testing.assert_array_equal(rough.exact().transpose_times(y[:, None]), X[:, [0, 4, 2]].T @ y[:, None])
    if size < 1.0:
        assert ds.solve(ds.Problem(X, y, ds.Logistic(), ds.L1(1e-3 * size)), tol=1e-4).objective < np.log(2.0)


@pytest.mark.parametrize("since", [0, 7, 290])
@pytest.mark.parametrize("even", [True, False])
def test_gram_matrices_of_some_new_columns(since, even):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 300))
    weights = np.ones(50) if even else rng.random(50) * (rng.random(50) > 0.3)
    chosen = columns.DenseColumns(X)
    chosen.add(np.arange(300))
    whole = X.T @ (weights[:, None] * X)
    np.testing.assert_allclose(chosen.gram(weights, since), whole[since:], rtol=1e-10, atol=1e-10)


def test_products_of_groups_are_those_of_the_columns_that_are_there():
    X, rng = correlated_columns(30, 24)
    even, other = np.full(30, 1.0 / 30), rng.random(30)
    made = columns.DenseColumns(X)

    def check(index, weights):
        starts = np.arange(0, len(index) + 1, 4)
        bounds, blocks = made.weighted(weights).blocks(starts)
        whole = X[:, index].T @ (weights[:, None] * X[:, index])
        assert len(blocks) == len(bounds) == len(starts) - 1
        for start, bound, block in zip(starts, bounds, blocks, strict=False):
            exact = whole[start : start + 4, start : start + 4]
            np.testing.assert_allclose(block, exact, atol=1e-12)
            assert bound == pytest.approx(np.linalg.eigvalsh(exact)[-1])

    made.add(np.arange(8, 16))
    check(np.arange(8, 16), even)
    made.add(np.arange(8))
    check(np.r_[8:16, :8], even)
    check(np.r_[8:16, :8], other)
    made.add(np.arange(16, 24))
    made.keep(np.r_[0:4, 12:20])
    check(np.r_[8:12, 4:8, 16:20], other)


@pytest.mark.parametrize("kind", ["dense", "rough", "sparse", "sparse float32"])
def test_models_of_columns_weigh_rows(kind):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6)) * (rng.random((40, 6)) < 0.6)
    weights = rng.random(40) * (rng.random(40) > 0.3) / 40  # some are zero
    made = {
        "dense": lambda: columns.DenseColumns(X),
        "rough": lambda: columns.RoughColumns(X),
        "sparse": lambda: columns.SparseColumns(csc_matrix(X)),
        "sparse float32": lambda: columns.SparseColumns(csc_matrix(X.astype(np.float32))),
    }[kind]()
    made.add(np.arange(6))
    slopes, free, lam = rng.standard_normal((6, 1)) * 0.1, np.ones((40, 1)), 0.01
    part = descent.Part(descent.unit_handle(ds.L1(lam)), np.arange(6), np.arange(7), lam)
    at_free = np.full((1, 1), 0.05)
    model = descent.ColumnModel(part, made, free, weights, 0.1, slopes, np.zeros((6, 1)), at_free)
    W, sweeps = descent.descend(model, lambda w: lam * float(np.abs(w).sum()), 1e-9 if kind == "dense" else 1e-7, 500)
    assert sweeps is not None
    C = np.column_stack([X, free])
    move = np.concatenate([W, model.state[2]])
    gradient = np.concatenate([slopes, at_free]) + C.T @ (weights[:, None] * (C @ move)) + 0.1 * np.concatenate([W, [[0.0]]])
    wrong = np.where(W == 0.0, np.maximum(np.abs(gradient[:6]) - lam, 0.0), np.abs(gradient[:6] + lam * np.sign(W)))
    assert max(wrong.max(), abs(gradient[6, 0])) < 1e-5
    smooth = float(np.vdot(slopes, W)) + float(np.vdot(at_free, model.state[2]))
    smooth += 0.5 * float(weights @ (C @ move)[:, 0] ** 2) + 0.05 * float(np.vdot(W, W))
    assert model.value(model.state) == pytest.approx(smooth, rel=1e-5)


def test_sparse_columns_keep_weights_that_hardly_changed():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6)) * (rng.random((40, 6)) < 0.6)
    weights = rng.random(40)
    made = columns.SparseColumns(csc_matrix(X))

    def squares(given, expected):
        weighted = made.weighted(given)
        np.testing.assert_array_equal(weighted.inside, np.sqrt(expected))
        count = len(made._index)
        bounds, _ = weighted.blocks(np.arange(count + 1))
        np.testing.assert_allclose(bounds, expected @ X[:, made._index] ** 2, rtol=1e-14)

    made.add(np.array([4, 1]))
    squares(weights, weights)
    made.add(np.array([0, 5]))
    squares(weights * 1.001, weights)
    squares(weights * 1.1, weights * 1.1)
    made.keep(np.array([1, 2]))
    squares(weights * 1.1001, weights * 1.1001)


def test_the_prox_of_an_l1_norm_is_the_same_without_a_call():
    handle = descent.unit_handle(ds.L1(0.3))
    part = descent.Part(handle, np.arange(1), np.array([0, 5]))
    Q, gradient = np.diag(np.arange(1.0, 6.0)), np.array([[3.0], [-2.0], [0.1], [-0.29], [0.0]])
    called, inside = (descent.GramModel(one, Q, gradient, np.zeros((5, 1))) for one in (part, part._replace(lasso=0.3)))
    called.sweep(True)
    inside.sweep(True)
    np.testing.assert_array_equal(called.state[0], inside.state[0])


@pytest.mark.parametrize("limit", [{"max_passes": 100}, {"max_iter": 100}, {"max_iter": 3}])
def test_a_limit_holds_also_where_accelerated_gradients_go_on(limit):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 1)) + 1e-7 * rng.standard_normal((60, 40))
    y = np.where(X[:, 0] + 0.1 * rng.standard_normal(60) > 0.0, 1.0, -1.0)
    problem = ds.Problem(X, y, ds.Logistic(), ds.GroupLasso(1e-9, groups=8))
    assert ds.solve(problem, tol=1e-13, **limit).iterations <= limit.get("max_iter", 100)


def test_a_gram_matrix_of_single_precision_has_its_prox_compiled_before_the_clock_starts(monkeypatch):
    problem = ds.Problem(np.eye(4, dtype=np.float32), np.ones(4, np.float32), regularizer=ds.L1(0.01))
    minimise, known = quadratic.minimise, []

    def spy(*args, **kwargs):
        known.append("_double_prox" in problem.__dict__)
        return minimise(*args, **kwargs)

    monkeypatch.setattr(quadratic, "minimise", spy)
    ds.solve(problem, "gram")
    assert known == [True]


@pytest.mark.parametrize("noise", [1.0, 1e-3, 1e-6, 1e-8])
def test_a_gap_from_the_gram_matrix_is_right_where_its_objective_has_no_digits(noise):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 12))
    Y = X @ rng.standard_normal((12, 3)) + noise * rng.standard_normal((300, 3))
    strength = 1e-3 * noise**2
    problem = ds.Problem(X, Y, regularizer=ds.NuclearNorm(strength))
    result = ds.solve(problem, tol=1e-4)
    assert (result.algorithm, result.converged) == ("gram", True)
    assert result.objective == pytest.approx(problem.objective(result.x), rel=1e-5)
    assert result.gap == pytest.approx(problem.duality_gap(result.x), rel=0.01, abs=1e-9 * result.objective)
    # The penalty is so weak that no singular value is near zero: there it is smooth, and its curvature next to nothing.
    W = result.x.astype(np.longdouble)
    for _ in range(10):
        u, _, v = np.linalg.svd(W.astype(float), full_matrices=False)
        gradient = 2.0 / 300 * X.T.astype(np.longdouble) @ (X @ W - Y) + strength * (u @ v)
        W = W - np.linalg.solve(2.0 / 300 * X.T @ X, gradient.astype(float))

    def at(w):
        return ((Y - X.astype(np.longdouble) @ w) ** 2).mean(axis=0).sum() + strength * np.linalg.norm(w.astype(float), "nuc")

    above = float(at(result.x) - at(W))
    assert -1e-9 * result.objective < above <= result.gap + 1e-9 * result.objective


def test_a_gap_with_a_well_conditioned_gram_matrix_is_close_to_what_is_left_to_gain():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 30))
    Y = X[:, :4] @ rng.standard_normal((4, 8)) + rng.standard_normal((400, 8))
    problem = ds.Problem(X, Y, regularizer=ds.NuclearNorm(0.3), fit_intercept=True)
    best = ds.solve(problem, tol=1e-13)
    for size in (1e-1, 1e-3, 1e-5):
        near = ds.prox(ds.NuclearNorm(0.3), best.x + size * rng.standard_normal(best.x.shape), 0.1)
        intercept = best.intercept + size * rng.standard_normal(8)
        above = problem.objective(near, intercept) - best.objective
        assert above <= problem.duality_gap(near, intercept) <= 3.0 * above
    dependent = ds.Problem(np.hstack([X, X]), Y, regularizer=ds.NuclearNorm(0.3))
    assert dependent._gram.factor is None
    assert dependent.duality_gap(np.zeros((60, 8))) > 0.0


@pytest.mark.parametrize("correlation", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("regularizer", TIED[:3])
def test_reflections_and_momentum_have_the_same_answer(correlation, regularizer, monkeypatch):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((300, 20)) * np.sqrt(1.0 - correlation) + rng.standard_normal((300, 1)) * np.sqrt(correlation)
    Y = X[:, :3] @ rng.standard_normal((3, 4)) + rng.standard_normal((300, 4))
    penalty = {
        "fused_lasso": ds.FusedLasso(0.2, l1=0.1),
        "nuclear": ds.NuclearNorm(0.2),
        "slope": ds.Slope(np.linspace(0.3, 0.1, 20)),
    }
    problem = ds.Problem(X, Y if regularizer == "nuclear" else Y[:, 0], regularizer=penalty[regularizer])
    reflected = ds.solve(problem, "gram", tol=1e-12)
    assert ds.solve(problem, "gram", tol=0.0).iterations < 500  # it ends where rounding begins
    monkeypatch.setattr(quadratic, "_when_to_reflect", lambda problem, gram: np.inf)
    accelerated = ds.solve(problem, "gram", tol=1e-12)
    assert reflected.converged
    assert accelerated.converged
    assert reflected.iterations <= accelerated.iterations
    assert reflected.objective == pytest.approx(accelerated.objective, rel=1e-11)


HARD_FOR_A_GRAM_MATRIX = {
    "a far target": (0.0, 1e6, ds.L1(0.1), 0.0),
    "a very far target": (0.0, 1e8, ds.L1(0.1), 0.0),
    "far columns": (1e4, 0.0, ds.L1(0.1), 0.0),
    "very far columns": (1e6, 0.0, ds.L1(0.1), 0.0),
    "a ridge": (1e6, 0.0, ds.Zero(), 0.1),
    "a constant that nobody sees": (0.5, 0.0, ds.FusedLasso(0.3), 0.0),
}


@pytest.mark.parametrize("name", HARD_FOR_A_GRAM_MATRIX)
def test_a_gap_from_the_gram_matrix_is_never_too_small(name):
    far, up, penalty, l2 = HARD_FOR_A_GRAM_MATRIX[name]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 20)) * np.repeat([10.0, 1.0], 10)
    y = X @ np.repeat([0.3, 5.0], 10) + rng.standard_normal(500) + up
    problem = ds.Problem(X + far, y, ds.Squared(), penalty, l2=l2, fit_intercept=True)
    result = ds.solve(problem, "gram", tol=1e-6, max_iter=3000)
    at = problem.objective(result.x, result.intercept)
    known = problem.duality_gap(result.x, result.intercept)
    assert result.objective == pytest.approx(at, rel=1e-5)
    assert not (result.converged and known > 1.1e-6 * abs(at))


def test_a_gap_from_the_gram_matrix_of_columns_that_cancel():
    rng = np.random.default_rng(0)
    column = rng.standard_normal((300, 1))
    X = column + 1e-6 * rng.standard_normal((300, 6))
    y = column[:, 0] + 0.1 * rng.standard_normal(300)
    problem = ds.Problem(X, y, ds.Squared(), ds.L1(1e-12))
    result = ds.solve(problem, "gram", tol=1e-4, x0=np.linalg.lstsq(X, y, rcond=None)[0], max_iter=100)
    assert result.objective == pytest.approx(problem.objective(result.x), rel=1e-5)


def test_without_a_penalty_nobody_says_that_coefficients_may_stay_zero():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5))
    problem = ds.Problem(X, np.sign(X[:, 0] + rng.standard_normal(200)), ds.Logistic())
    assert "nothing is penalised" in ds.solve(problem).message


def test_columns_that_nearly_depend_on_each_other_are_solved_for_from_the_data(monkeypatch):
    t = np.linspace(0.0, 10.0, 200)
    y = np.sin(t) + 0.1 * np.random.default_rng(0).standard_normal(200)
    best = float(((y - np.polynomial.Polynomial.fit(t, y, 12)(t)) ** 2).mean())
    powers = np.vander(t, 13)[:, :-1]
    problem = ds.Problem(powers, y, ds.Squared(1.0), fit_intercept=True)
    result = ds.solve(problem)
    assert result.converged
    np.testing.assert_allclose(result.objective, best, rtol=1e-6)
    weights = np.random.default_rng(1).random(200) + 0.5
    fitted = np.polynomial.Polynomial.fit(t, y, 12, w=np.sqrt(weights))(t)
    weighted = ds.Problem(powers, y, ds.Squared(1.0), sample_weight=weights, fit_intercept=True)
    np.testing.assert_allclose(ds.solve(weighted).objective, float((weights * (y - fitted) ** 2).mean()), rtol=1e-6)
    monkeypatch.setattr(quadratic, "_solution_of_data", None)
    monkeypatch.setattr(quadratic, "available_memory", lambda: 0)  # then from their products, as well as that goes
    np.testing.assert_allclose(ds.solve(problem).objective, best, rtol=0.3)


@pytest.mark.parametrize("l2", [0.0, 1e-13])
def test_columns_that_are_the_same_share_what_they_have(l2):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    y = X.sum(axis=1) + 3.0 + 0.1 * rng.standard_normal(200)
    twice = np.column_stack([X, X[:, 0], np.full(200, 0.1)])
    result = ds.solve(ds.Problem(twice, y, l2=l2, fit_intercept=True))
    alone = ds.solve(ds.Problem(X, y, fit_intercept=True))
    assert result.converged
    np.testing.assert_allclose(result.x, [0.5 * alone.x[0], *alone.x[1:], 0.5 * alone.x[0], 0.0], rtol=1e-5, atol=1e-9)
