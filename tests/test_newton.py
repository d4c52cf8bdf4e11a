"""Newton steps beside accelerated gradients: on working sets of multinomial losses, and on the pieces of a fused lasso."""

import numpy as np
import pytest
import scipy.sparse as sp

import dapsgd as ds
from dapsgd import descent, joint_search, pieces

N, P, K = 80, 12, 3
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, P)).cumsum(axis=1) / 2.0
TRUTH = RNG.standard_normal((P, K)) * (RNG.random((P, 1)) < 0.4)
CLASSES = np.argmax(X @ TRUTH + RNG.standard_normal((N, K)), axis=1)
NUMBERS = X @ np.repeat([1.0, 0.0, -0.5], 4) + 0.3 * RNG.standard_normal(N)
WEIGHTS = RNG.random(N) + 0.2
WEIGHTS[:4] = 0.0

UNITS = {
    "l1": ds.L1(0.02),
    "weak l1": ds.L1(1e-4),
    "elastic net": ds.ElasticNet(0.02, 0.5),
    "groups": ds.GroupLasso(0.02, groups=3),
    "scattered groups": ds.GroupLasso(0.02, groups=[0, 1, 2] * 4),
    "sparse groups": ds.SparseGroupLasso(0.02, groups=4),
    "not negative": ds.NonNegative(0.01),
    "bounded": ds.Box(-0.3, 0.3),
}


def reference(problem):
    return ds.solve(problem, "fista", tol=1e-9, max_iter=100_000).objective


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "CSR"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", UNITS)
def test_classes_on_a_working_set(name, intercept, form):
    problem = ds.Problem(
        form(X), CLASSES, ds.Multinomial(), UNITS[name], l2=1e-4, fit_intercept=intercept, sample_weight=WEIGHTS
    )
    result = ds.solve(problem, tol=1e-8)
    assert result.converged
    assert result.algorithm == "working-set"
    assert result.iterations < 40
    assert result.objective == pytest.approx(reference(problem), rel=1e-7)


def test_classes_without_a_penalty():
    problem = ds.Problem(X, CLASSES, ds.Multinomial(), l2=0.01, fit_intercept=True)
    result = ds.solve(problem, tol=1e-8)
    assert result.converged
    assert result.objective == pytest.approx(reference(problem), rel=1e-8)


def test_classes_of_more_columns_than_fit_the_first_set():
    rng = np.random.default_rng(1)
    data = rng.standard_normal((60, 900))
    labels = np.argmax(data[:, :3] + 0.3 * rng.standard_normal((60, 3)), axis=1)
    problem = ds.Problem(data, labels, ds.Multinomial(), ds.L1(0.03), fit_intercept=True)
    result = ds.solve(problem, tol=1e-7)
    assert (result.converged, result.algorithm) == (True, "working-set")
    assert result.objective == pytest.approx(reference(problem), rel=1e-6)


def test_classes_in_single_precision_and_far_from_zero():
    for data in (X.astype(np.float32), X + 1000.0, 1e4 * X):
        problem = ds.Problem(
            data, CLASSES, ds.Multinomial(), ds.L1(0.02 * np.abs(data - data.mean()).mean()), fit_intercept=True
        )
        result = ds.solve(problem, tol=1e-5)
        assert result.converged
        assert result.algorithm == "working-set"


def test_too_many_classes_or_rows_are_for_others(monkeypatch):
    many = ds.Problem(RNG.standard_normal((60, 5)), np.arange(60) % 30, ds.Multinomial(), ds.L1(0.01))
    assert ds.solve(many, max_iter=2, tol=0.0).algorithm == "fista"
    wide = ds.Problem(RNG.standard_normal((400, 399)), np.arange(400) % 10, ds.Multinomial(), ds.L1(1e-3))
    sizes, make = [], joint_search.JointSearch._joint_model

    def counted(search):
        matrix, border = make(search)
        sizes.append(len(matrix))
        return matrix, border

    monkeypatch.setattr(joint_search.JointSearch, "_joint_model", counted)
    found = ds.solve(wide, max_iter=20, tol=1e-3)  # a matrix of all would have 3,990 rows
    assert max(sizes, default=0) <= 2000
    assert found.iterations <= 20
    rows = ds.Problem(np.zeros((60_000, 100), np.float32), np.arange(60_000) % 3, ds.Multinomial(), ds.L1(0.01))
    assert ds.solve(rows, max_iter=1, tol=0.0).algorithm == "dap-svrg"


def test_second_derivatives_of_classes_are_those_of_the_gradient():
    loss, at = ds.Multinomial(2.0), RNG.standard_normal((4, K))

    def gradient(predictions):
        out = np.empty_like(predictions)
        for row, into in zip(predictions, out, strict=True):
            loss.gradient(row, np.eye(K)[0], into)
        return out

    bent = loss.second_derivatives(at)
    for k in range(K):
        step = 1e-6 * np.eye(K)[k]
        found = np.stack([bent(j, k) for j in range(K)], axis=1)
        np.testing.assert_allclose(found, (gradient(at + step) - gradient(at - step)) / 2e-6, atol=1e-8)


FUSED = {
    "squares, zeros": (ds.Squared(), NUMBERS, ds.FusedLasso(0.3, l1=0.1)),
    "squares, l2": (ds.Squared(), NUMBERS, ds.FusedLasso(0.3, l1=0.1)),
    "two targets": (ds.Squared(), np.stack([NUMBERS, -NUMBERS[::-1]], axis=1), ds.FusedLasso(0.3, l1=0.1)),
    "labels": (ds.Logistic(), np.where(NUMBERS > 0.0, 1.0, -1.0), ds.FusedLasso(0.01)),
    "labels, zeros": (ds.Logistic(), np.where(NUMBERS > 0.0, 1.0, -1.0), ds.FusedLasso(0.01, l1=0.005)),
    "counts": (ds.Poisson(), np.round(np.exp(np.clip(NUMBERS, -2.0, 2.0))), ds.FusedLasso(0.05, l1=0.01)),
    "huber": (ds.Huber(0.5), NUMBERS, ds.FusedLasso(0.02, l1=0.01)),
    "hinge": (ds.SquaredHinge(), np.where(NUMBERS > 0.0, 1.0, -1.0), ds.FusedLasso(0.02, l1=0.01)),
    "classes": (ds.Multinomial(), CLASSES, ds.FusedLasso(0.01, l1=0.002)),
}


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "CSR"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", FUSED)
def test_pieces_of_a_fused_lasso(name, intercept, form):
    loss, y, penalty = FUSED[name]
    problem = ds.Problem(form(X), y, loss, penalty, l2=0.01 * ("l2" in name), fit_intercept=intercept, sample_weight=WEIGHTS)
    result = ds.solve(problem, tol=1e-8)
    assert result.converged
    assert result.objective == pytest.approx(reference(problem), rel=1e-7)


@pytest.mark.parametrize("l1", [0.0, 0.3])
def test_slopes_of_pieces_are_those_of_the_regulariser(l1):
    bound = ds.FusedLasso(0.7, l1=l1)
    w = np.array([[0.0, 1.0, 1.0, -2.0, 0.0, 0.0, 3.0], [2.0, 2.0, 0.0, 0.0, 1.0, 1.0, 1.0]]).T
    found = pieces.find_pieces(bound, w)
    for piece, slope in enumerate(found.slopes):
        step = 1e-6 * (found.labels == piece)
        assert slope == pytest.approx((bound.value(w + step) - bound.value(w - step)) / 2e-6, abs=1e-7)
    assert ((found.labels < 0) == ((w == 0.0) & (l1 > 0.0))).all()


@pytest.mark.parametrize("name", FUSED)
def test_newton_steps_never_lead_up_and_never_cut_a_piece(name):
    loss, y, penalty = FUSED[name]
    problem = ds.Problem(X, y, loss, penalty, fit_intercept=True)
    x, rng = np.zeros(problem.packed_shape), np.random.default_rng(2)
    for _ in range(20):
        x = problem.packed_prox(x + 0.3 * rng.standard_normal(x.shape), 1.0)
        found = pieces.improve(problem, x)
        if found is None:
            continue
        point, steps = found
        assert 1 <= steps <= 20
        assert point.objective <= problem.packed_objective(x) * (1.0 + 1e-11)
        assert point.objective == pytest.approx(problem.packed_objective(point.x), rel=1e-12)
        kept = np.diff(x[:P], axis=0) == 0.0
        assert (np.diff(point.x[:P], axis=0)[kept] == 0.0).all()
        x = point.x


def test_pieces_that_meet_become_one():
    w = np.array([[0.0], [1.0], [1.0], [2.0], [2.0], [5.0]])
    length, there = pieces._until_pieces_meet(ds.FusedLasso(1.0), w, np.array([[0.0], [4.0], [4.0], [0.0], [0.0], [0.0]]))
    assert length == 0.25
    np.testing.assert_array_equal(there.ravel(), [0.0, 2.0, 2.0, 2.0, 2.0, 5.0])
    length, there = pieces._until_pieces_meet(ds.FusedLasso(1.0, l1=1.0), w, -4.0 * (w == 1.0))
    assert length == 0.25
    np.testing.assert_array_equal(there.ravel(), [0.0, 0.0, 0.0, 2.0, 2.0, 5.0])


def test_fewer_gradients_where_columns_are_correlated():
    rng = np.random.default_rng(0)
    data = rng.standard_normal((100, 300)).cumsum(axis=1) / 5.0
    y = data @ np.repeat([0.0, 1.0, 0.0, -2.0, 0.0], [50, 50, 100, 20, 80]) + rng.standard_normal(100)
    problem = ds.Problem(data, y, ds.Squared(0.5), ds.FusedLasso(0.5, l1=0.05), fit_intercept=True)
    result = ds.solve(problem, tol=1e-6)
    assert result.converged
    assert result.iterations < 2000


@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_classes_with_an_intercept_have_a_finite_gap_also_where_it_is_not_the_best(scale):
    problem = ds.Problem(3.0 * X, CLASSES, ds.Multinomial(scale), ds.L1(0.02), fit_intercept=True, sample_weight=WEIGHTS)
    best = ds.solve(problem, tol=1e-10)
    assert np.isfinite(best.gap)
    rng = np.random.default_rng(3)
    for size in (1e-6, 1e-3, 1e-1):
        x = best.x + size * rng.standard_normal(best.x.shape)
        intercept = best.intercept + size * rng.standard_normal(K)
        gap = problem.duality_gap(x, intercept)
        above = problem.objective(x, intercept) - best.objective
        assert above - 1e-10 <= gap < np.inf


def test_newton_steps_that_gain_nothing_are_none():
    loss, y, penalty = FUSED["labels, zeros"]
    problem = ds.Problem(X, y, loss, penalty, fit_intercept=True)
    best = ds.solve(problem, tol=1e-12)
    assert pieces.improve(problem, problem.pack(best.x, best.intercept)) is None


def test_the_inverse_for_jumps_is_one_or_there_is_none():
    A = np.random.default_rng(3).standard_normal((60, 20))
    Q = A.T @ A
    found = descent._inverse(Q.copy(), 1e-8)
    assert np.abs(found @ Q - np.eye(20)).max() < 1e-9
    assert np.array_equal(found, found.T)
    for bad in (np.ones((3, 3)), -np.eye(3), np.full((3, 3), np.nan), np.diag([1.0, 0.0])):
        assert descent._inverse(bad, 1e-12) is None


def test_the_inverse_of_a_small_matrix_wakes_no_threads_of_another_blas(monkeypatch):
    seen, calm = [], descent.calm_for
    monkeypatch.setattr(descent, "calm_for", lambda size: seen.append(size) or calm(size))
    descent._inverse(np.eye(5), 1e-12)
    assert seen == [200]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([0, 0, 1, 2, 2, 3], [0, 0, 0, 1, 1, 2]),  # the first two became one
        ([0, 0, 1, 2, 2, 3], [0, 0, -1, 1, 1, 2]),  # one became zero
        ([-1, 0, 1, 2, 2, -1], [-1, 0, 0, 0, 0, -1]),
        ([3, 3, 4, 4, -1, 5], [3, 3, 3, 3, -1, 4]),  # labels of a second target
        ([0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]),
    ],
)
def test_sums_over_pieces_are_made_of_those_before(before, after):
    X = np.random.default_rng(4).standard_normal((7, 6))
    problem = ds.Problem(X, X[:, 0], regularizer=ds.FusedLasso(0.1))
    known, wanted = (pieces._columns(problem, np.array(labels)) for labels in (before, after))
    found = pieces._merged(known, np.array(after))
    assert np.array_equal(found.numbers, wanted.numbers)
    assert np.allclose(found.columns, wanted.columns, rtol=1e-13)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([0, 0, 0, 1, 1, 2], [0, 0, 1, 2, 2, 3]),  # one was cut
        ([0, 0, -1, 1, 1, 2], [0, 0, 0, 1, 1, 2]),  # zeros came to life
        ([0, 0, 0, 1, 1, 2], [0, -1, 0, 1, 1, 2]),  # a part of one became zero
        ([0, 0, 1, 1, 1, 2], [-1, -1, -1, -1, -1, -1]),
    ],
)
def test_sums_over_pieces_are_made_anew_where_those_before_will_not_do(before, after):
    X = np.random.default_rng(4).standard_normal((7, 6))
    problem = ds.Problem(X, X[:, 0], regularizer=ds.FusedLasso(0.1))
    assert pieces._merged(pieces._columns(problem, np.array(before)), np.array(after)) is None
