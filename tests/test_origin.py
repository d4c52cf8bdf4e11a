"""Columns and targets far from zero: the estimators solve the same problem near zero, and say what is left to do."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import dapsgd as ds
from dapsgd import DAPClassifier, DAPRegressor, DAPRegressorCV
from dapsgd.centred import column_moments
from dapsgd.errors import OutOfMemoryError
from dapsgd.estimators import _origin
from dapsgd.estimators._origin import Origin, far_centre, near

N, P = 300, 12
RNG = np.random.default_rng(0)
NEAR = RNG.standard_normal((N, P))
FAR = NEAR + 100.0
Y = NEAR @ np.repeat([0.0, 2.0, -1.0], 4) + 0.3 * RNG.standard_normal(N)
WEIGHTS = RNG.uniform(0.0, 2.0, N)
SHIFTS = np.array([1e6, 0.0, -1e3])
PLAIN = {"dap-svrg": 2, "tap-svrg": 2, "dave-rpg": 2, "fista": None}


def problem_of(X, y=Y, **options):
    return ds.Problem(X, y, ds.Squared(0.5), ds.L1(0.05), fit_intercept=True, **options)


@pytest.mark.parametrize("algorithm", PLAIN)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_columns_far_from_zero_are_no_burden(algorithm, dtype):
    X = np.asarray(FAR, dtype, order="F" if algorithm == "tap-svrg" else "C")
    X.flags.writeable = False
    before = X.copy()
    workers = PLAIN[algorithm]
    model = DAPRegressor("l1", 0.05, algorithm=algorithm, workers=workers, random_state=0).fit(X, Y + 85.0, WEIGHTS)
    expected = DAPRegressor("l1", 0.05, tol=1e-9).fit(FAR, Y + 85.0, WEIGHTS)
    assert model.result_.converged
    assert np.array_equal(X, before)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=5e-3)
    np.testing.assert_allclose(model.predict(FAR), expected.predict(FAR), atol=2e-2)
    assert (model.coef_.dtype, model.result_.x.dtype) == (dtype, dtype)


@pytest.mark.parametrize("algorithm", ["p-sgd", "tap-sgd", "dap-sgd"])
def test_single_rows_learn_from_columns_far_from_zero(algorithm):
    workers = None if algorithm == "p-sgd" else 2
    model = DAPRegressor("l1", 0.05, algorithm=algorithm, workers=workers, tol=0.0, random_state=0).fit(FAR, Y)
    assert model.score(FAR, Y) > 0.97


def test_what_is_said_of_the_answer_is_of_the_data_as_given():
    model = DAPRegressor("l1", 0.05, algorithm="dap-svrg", workers=1, random_state=0).fit(FAR, Y + 1e4, WEIGHTS)
    problem = problem_of(FAR, Y + 1e4, sample_weight=WEIGHTS * (N / WEIGHTS.sum()))
    result = model.result_
    assert (result.intercept, model.intercept_) == (pytest.approx(model.intercept_, rel=0), result.intercept)
    assert problem.objective(result.x, result.intercept) == pytest.approx(model.objective_, rel=1e-9)
    assert problem.duality_gap(result.x, result.intercept) == pytest.approx(model.dual_gap_, abs=1e-4 * model.objective_)
    assert model.residual_ == result.residual < 1e-2


@pytest.mark.parametrize("penalty", ["nuclear", "box", "positive"])
def test_several_targets_and_bounds(penalty):
    y = np.column_stack([Y, Y, -Y]) + SHIFTS
    options = {"box": {"penalty": "box", "bounds": (-0.5, 1.0)}, "positive": {"positive": True}}.get(
        penalty, {"penalty": penalty}
    )
    near_zero = DAPRegressor(alpha=0.05, tol=1e-9, **options).fit(NEAR, y - SHIFTS)
    far = DAPRegressor(alpha=0.05, algorithm="dap-svrg", workers=1, random_state=0, tol=1e-6, **options).fit(FAR, y)
    np.testing.assert_allclose(far.coef_, near_zero.coef_, atol=2e-3)
    np.testing.assert_allclose(far.intercept_, near_zero.intercept_ + SHIFTS - 100.0 * far.coef_.sum(axis=1), atol=1e-2)


@pytest.mark.parametrize("classes", [2, 3])
def test_classes(classes):
    labels = np.digitize(Y, [0.0] if classes == 2 else [-2.0, 2.0])
    options = {"alpha": 0.05, "algorithm": "dap-svrg", "workers": 1, "random_state": 0}
    far, near_zero = DAPClassifier("l1", **options).fit(FAR, labels), DAPClassifier("l1", 0.05, tol=1e-8).fit(NEAR, labels)
    assert far.result_.converged
    np.testing.assert_allclose(far.predict_proba(FAR), near_zero.predict_proba(NEAR), atol=2e-2)


@pytest.mark.parametrize("algorithm", ["auto", "fista", "dap-svrg"])
@pytest.mark.parametrize("loss", ["squared", "huber"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_targets_far_from_zero_are_no_burden(algorithm, loss, dtype):
    options = {"alpha": 0.05, "loss": loss, "algorithm": algorithm, "random_state": 0}
    model = DAPRegressor("fused_lasso", workers=PLAIN.get(algorithm), **options).fit(NEAR.astype(dtype), Y + 1e8)
    expected = DAPRegressor("fused_lasso", 0.05, loss=loss, tol=1e-9).fit(NEAR, Y)
    assert model.result_.converged
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-3)
    assert model.intercept_ == pytest.approx(expected.intercept_ + 1e8, abs=1e-3)


def test_the_centre_of_targets():
    ones, outlier = np.ones(N), np.where(np.arange(N) == 5, 1e12, Y)
    assert far_centre(Y, ds.Squared(), None) is None
    assert far_centre(outlier, ds.Huber(), None) is None  # which an outlier does not move
    assert far_centre(outlier + 1e6, ds.Huber(), ones) == pytest.approx(1e6, abs=1.0)
    assert far_centre(Y + 1e6, ds.Squared(), WEIGHTS) == pytest.approx(1e6 + np.average(Y, weights=WEIGHTS))
    assert far_centre(Y + 1e6, ds.Poisson(), None) is None  # which does not only see differences
    assert far_centre(np.full(N, 1e308), ds.Squared(), None) is None
    np.testing.assert_allclose(far_centre(np.column_stack([Y, Y + 1e6]), ds.Squared(), None), Y.mean() + np.array([0.0, 1e6]))
    weights = np.where(np.arange(N) == 5, N, 1.0)
    assert far_centre(np.where(np.arange(N) == 5, 1e12, 0.0), ds.Huber(), weights) == 1e12


def test_the_same_targets_everywhere():
    model = DAPRegressor("l1", 0.05, loss="huber").fit(NEAR, np.full(N, 1e8))
    assert not model.coef_.any()
    assert model.intercept_ == 1e8


def test_an_intercept_goes_there_and_back():
    w, origin = RNG.standard_normal((P, 2)), Origin(FAR.mean(axis=0), np.array([5.0, -3.0]))
    inside = origin.inside(w, np.array([1.0, 2.0]))
    np.testing.assert_allclose(origin.outside(w, inside), [1.0, 2.0])
    np.testing.assert_allclose((FAR - FAR.mean(axis=0)) @ w + inside + [5.0, -3.0], FAR @ w + [1.0, 2.0])


def test_what_is_left_as_it_is(tmp_path, monkeypatch):
    np.save(tmp_path / "X.npy", FAR)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    huge = 1e308 * np.sign(NEAR)
    for X in (NEAR, NEAR + 0.1, mapped, sp.csr_matrix(FAR), huge):
        problem = problem_of(X)
        assert near(problem) == (problem, None)
    assert near(problem_of(FAR))[1] is not None
    assert near(problem_of(NEAR + np.eye(P)[0] * 20.0))[1] is not None  # one column is enough
    assert near(problem_of(NEAR + 0.5))[1] is not None  # and many that are not far, each by itself

    def none_left(size, what, advice):
        raise OutOfMemoryError

    monkeypatch.setattr(_origin, "require_memory", none_left)
    problem = problem_of(FAR)
    assert near(problem) == (problem, None)


def test_means_and_deviations():
    X, weights = RNG.standard_normal((9000, 40)) + 7.0, RNG.uniform(0.0, 2.0, 9000)  # in two blocks
    means, deviations = column_moments(X, weights)
    np.testing.assert_allclose(means, np.average(X, axis=0, weights=weights))
    np.testing.assert_allclose(deviations, np.sqrt(np.average((X - means) ** 2, axis=0, weights=weights)))
    weights[0], X[0] = 0.0, 1e12  # a row that does not count
    means = np.average(X[1:], axis=0, weights=weights[1:])
    np.testing.assert_allclose(
        column_moments(X, weights)[1], np.sqrt(np.average((X[1:] - means) ** 2, axis=0, weights=weights[1:]))
    )


@pytest.mark.parametrize("options", [{"batch_size": 8}, {"step": ds.Constant(0.01)}, {"runtime": ds.Simulated()}])
def test_auto_is_centred_where_it_must_look_at_few_rows(options):
    model = DAPRegressor("l1", 0.05, random_state=0, tol=0.0, max_passes=30, workers=1, **options).fit(FAR, Y)
    assert model.result_.algorithm == "dap-svrg"
    assert model.score(FAR, Y) > 0.97


def test_a_warm_start_is_moved_too():
    options = {"algorithm": "dap-svrg", "workers": 1, "random_state": 0, "warm_start": True}
    model = DAPRegressor("l1", 0.05, **options).fit(FAR, Y + 1e6)
    first = model.objective_
    again = model.fit(FAR, Y + 1e6)
    assert again.trace_.objective[0] == pytest.approx(first, rel=1e-6)
    assert again.result_.iterations == 0


def test_a_run_on_centred_columns_goes_on_from_a_file(tmp_path):
    def fitted(passes, **kept):
        model = DAPRegressor("l1", 0.05, algorithm="dap-svrg", workers=1, random_state=0, tol=0.0, max_passes=passes)
        model._kept = kept
        return model.fit(FAR, Y + 1e6)

    whole = fitted(30)
    part = fitted(12, checkpoint=tmp_path / "run")
    rest = fitted(30, checkpoint=tmp_path / "run", resume=True)
    assert part.n_iter_ < rest.n_iter_
    assert np.array_equal(rest.coef_, whole.coef_)
    assert rest.intercept_ == whole.intercept_


def test_a_search_on_data_far_from_zero():
    options = {"alphas": [0.5, 0.05], "cv": 3, "random_state": 0, "algorithm": "dap-svrg", "workers": 1, "tol": 1e-5}
    model, expected = (
        DAPRegressorCV("l1", **options).fit(FAR, Y + 1e6),
        DAPRegressorCV("l1", alphas=[0.5, 0.05], cv=3).fit(NEAR, Y),
    )
    np.testing.assert_allclose(model.mse_path_, expected.mse_path_, rtol=1e-2)
    np.testing.assert_allclose(model.path_.coefs, expected.path_.coefs, atol=5e-3)
    for k, result in enumerate(model.path_.results):
        assert result.intercept == model.path_.intercepts[k]
        np.testing.assert_allclose((FAR @ model.path_.coefs[:, k] + result.intercept).mean(), Y.mean() + 1e6, rtol=1e-9)


# What is left to do.


def test_a_large_constant_column_in_single_precision():
    X = np.insert(NEAR, 5, 1e9, axis=1).astype(np.float32)
    model = DAPRegressorCV("fused_lasso", alphas=[1.0, 0.05, 0.0], cv=3).fit(X, Y)
    assert model.result_.converged
    assert model.score(X, Y) > 0.9


@pytest.mark.parametrize("penalty", ["l1", "fused_lasso"])
@pytest.mark.parametrize("offset", [1e3, 1e4, 1e5])
def test_columns_in_single_precision_may_be_far_from_zero(offset, penalty):
    X = (NEAR + offset).astype(np.float32)
    model, expected = DAPRegressor(penalty, 0.05).fit(X, Y), DAPRegressor(penalty, 0.05, tol=1e-9).fit(X.astype(np.float64), Y)
    assert model.result_.converged
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-3)
    search = DAPRegressorCV(penalty, alphas=[0.5, 0.05], cv=3).fit(X, Y)
    assert all(result.converged for result in search.path_.results)


def test_single_precision_is_named_where_it_is_in_the_way(tmp_path):
    """In a file, of which no centred copy is made."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 12))
    y = X @ rng.standard_normal(12) + 5.0 + 0.1 * rng.standard_normal(200)
    far = np.memmap(tmp_path / "X", np.float32, "w+", shape=X.shape)
    far[:] = X + 1e5
    model = DAPRegressor("l1", 0.1)
    double = "hand X in as float64: the columns are too far from zero for float32, unless you centre them"
    assert remedy_of(model, far, y) == f"Raise tol, or {double}"
    with pytest.warns(ConvergenceWarning, match=f"Raise tol, or {double}"):
        DAPRegressorCV("l1", alphas=2, cv=2).fit(far, y)
    brief = DAPRegressor("l1", 0.1, max_passes=1, tol=1e-5)
    for fine in (X.astype(np.float32), X + 1e5):  # neither of which has lost any digits that are asked for
        assert remedy_of(brief, fine, y) == "Raise max_passes or tol"
    for better in (X + 1e5, np.asarray(far) - far.mean(axis=0, dtype=np.float64)):
        assert model.fit(better, y).result_.converged


def remedy_of(model, X, y):
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, y)
    return str(caught[0].message).split(". ")[-1]


SIZES = np.where(np.arange(P) == 0, 100.0, 1.0)


def test_only_what_was_not_done_is_advised(tmp_path):
    plain = DAPRegressor("l1", 0.05, algorithm="dap-svrg", workers=1, random_state=0, max_passes=2)
    auto = "or use algorithm='auto'"
    for X in (NEAR, FAR):
        assert remedy_of(plain, X, Y) == f"Raise max_passes or tol, {auto}"
        assert remedy_of(plain, X * SIZES, Y) == f"Raise max_passes or tol, scale the columns of X to a like size, {auto}"
    np.save(tmp_path / "X.npy", FAR)
    np.save(tmp_path / "unlike.npy", FAR * SIZES)
    mapped, unlike = (np.load(tmp_path / name, mmap_mode="r") for name in ("X.npy", "unlike.npy"))
    assert remedy_of(plain, mapped, Y) == f"Raise max_passes or tol, centre the columns of X, {auto}"
    both = "centre the columns of X and scale them to a like size"
    assert remedy_of(plain, unlike, Y) == f"Raise max_passes or tol, {both}, {auto}"
    assert (
        remedy_of(plain, sp.csr_matrix(FAR * SIZES), Y)
        == f"Raise max_passes or tol, scale the columns of X to a like size, {auto}"
    )
    assert remedy_of(plain, sp.csr_matrix(FAR), Y) == f"Raise max_passes or tol, {auto}"
    itself = DAPRegressor("l1", 0.05, tol=1e-15, max_passes=1)
    assert remedy_of(itself, FAR, Y) == "Raise max_passes or tol"  # which centres by itself
    folds = DAPRegressorCV("l1", alphas=2, cv=2, algorithm="dap-svrg", workers=1, random_state=0, max_passes=1)
    assert remedy_of(folds, FAR, Y) == "Raise max_passes, tol or eps"
    assert remedy_of(folds, FAR * SIZES, Y) == "Raise max_passes, tol or eps, or scale the columns of X to a like size"


@pytest.mark.parametrize("algorithm", ["auto", "fista", "dap-svrg"])
def test_the_advice_for_a_target_far_from_zero_helps(algorithm):
    model = DAPRegressor(
        "l1", 0.05, loss="huber", fit_intercept=False, algorithm=algorithm, workers=PLAIN.get(algorithm), random_state=0
    )
    way = "set fit_intercept=True (the target is far from zero)"
    assert way in remedy_of(model, NEAR, Y + 1e8)
    assert model.set_params(fit_intercept=True).fit(NEAR, Y + 1e8).result_.converged  # a warning would be an error
    model.set_params(fit_intercept=False, max_passes=1, tol=1e-12)
    assert way not in remedy_of(model, NEAR, Y)


@pytest.mark.parametrize("kind", [ds.DAPRegressor, ds.DAPRegressorCV])
def test_single_precision_keeps_the_digits_of_far_targets(kind):
    near, far = kind("l1").fit(NEAR.astype(np.float32), Y), kind("l1").fit(NEAR.astype(np.float32), Y + 1e8)
    single = NEAR.astype(np.float32)
    assert far.predict(single).dtype == np.float64
    np.testing.assert_allclose(far.predict(single) - 1e8, near.predict(single), atol=1e-4)
    assert far.score(single, Y + 1e8) == pytest.approx(near.score(single, Y), abs=1e-4)
    if kind is ds.DAPRegressorCV:
        assert far.alpha_ == pytest.approx(near.alpha_, rel=1e-4)
        np.testing.assert_allclose(far.scores_path_, near.scores_path_, rtol=1e-3, atol=1e-5)


def test_several_far_targets_in_single_precision():
    targets = np.column_stack([Y + 1e8, 2.0 * Y - 1e7])
    model = ds.DAPRegressor("nuclear", alpha=1e-3).fit(NEAR.astype(np.float32), targets)
    assert model.score(NEAR.astype(np.float32), targets) > 0.9


def test_a_problem_says_that_its_targets_lose_digits():
    with pytest.warns(UserWarning, match="y loses digits as it takes the precision of X, float32; subtract a constant"):
        ds.Problem(NEAR.astype(np.float32), Y + 1e8)
    ds.Problem(NEAR.astype(np.float32), Y + 1e2)
    ds.Problem(NEAR.astype(np.float32), np.full(len(Y), 0.1))
    ds.Problem(NEAR, Y + 1e8)


def test_a_fold_without_weight_is_refused():
    weights = np.ones(len(Y))
    weights[:10] = 0.0
    folds = [(np.arange(10), np.arange(10, len(Y)))]
    with pytest.raises(
        ValueError, match="sample_weight must not be zero in all rows of a fold that are fitted, as in fold 1 of 1"
    ):
        ds.DAPRegressorCV("l1", cv=folds, alphas=3).fit(NEAR, Y, sample_weight=weights)


@pytest.mark.parametrize("algorithm", [["fista"], {}, np.array(["fista", "auto"])])
def test_an_algorithm_that_is_no_name_is_named(algorithm):
    with pytest.raises(TypeError, match="algorithm must be one of"):
        ds.DAPRegressor(algorithm=algorithm).fit(NEAR, Y)


def test_intercepts_of_classes_add_up_to_zero_wherever_columns_are():
    labels = np.digitize(Y, np.quantile(Y, [0.3, 0.6]))
    shifted = NEAR + 50.0
    auto, plain = (
        ds.DAPClassifier("l1", 0.01, loss="multinomial", algorithm=name, tol=1e-8).fit(shifted, labels)
        for name in ("auto", "fista")
    )
    assert abs(plain.intercept_.sum()) < 1e-6
    np.testing.assert_allclose(plain.decision_function(shifted), auto.decision_function(shifted), atol=1e-2)


@pytest.mark.parametrize("place", [0, 12])
@pytest.mark.parametrize("value", [1.0, 0.1, 1234.567, 1e9])
@pytest.mark.parametrize("penalty", ["zero", "l1", "fused_lasso", "group_lasso"])
def test_a_constant_column_says_nothing_beside_an_intercept(penalty, value, place):
    """Rounding must not make something of it that other columns are then blamed for."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 12))
    y = X @ np.repeat([0.0, 1.0, -1.0, 0.0], 3) + 5.0 + rng.standard_normal(200)
    plain = ds.DAPRegressor("zero").fit(X, y)
    options = {"groups": 1} if penalty == "group_lasso" else {}
    model = ds.DAPRegressor(penalty, 0.0, **options).fit(np.insert(X, place, value, axis=1), y)
    assert model.coef_[place] == 0.0
    np.testing.assert_allclose(np.delete(model.coef_, place), plain.coef_, rtol=1e-6)
    assert model.intercept_ == pytest.approx(plain.intercept_, rel=1e-6)


def test_a_constant_column_goes_back_to_zero_where_l2_asks_it_to():
    X = np.insert(NEAR, 5, 3.0, axis=1)
    problem = ds.Problem(X, Y, regularizer=ds.L1(0.0), l2=0.1, fit_intercept=True)
    run = ds.solve(problem, "working-set", x0=np.ones(P + 1), tol=1e-8)
    assert run.converged
    assert run.x[5] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("loss", ["poisson", "huber", "logistic"])
def test_so_it_does_with_other_losses(loss):
    rng = np.random.default_rng(0)
    X = np.insert(rng.standard_normal((200, 4)), 2, 1234.567, axis=1)
    margins = X[:, 0] + rng.standard_normal(200)
    if loss == "logistic":
        model = ds.DAPClassifier("zero").fit(X, margins > 0.0)
    else:
        model = ds.DAPRegressor("zero", loss=loss).fit(X, np.exp(margins))
    assert np.ravel(model.coef_)[2] == 0.0
    assert np.abs(model.intercept_).max() < 10.0
