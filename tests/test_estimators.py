"""The scikit-learn classes: scikit-learn's own checks, the answers of other packages, frames, streams, wrong calls."""

import copy
import inspect
import itertools
import math
import os
import pickle
import subprocess
import sys
import textwrap

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import (
    ElasticNet,
    HuberRegressor,
    Lasso,
    LassoCV,
    LogisticRegression,
    MultiTaskLasso,
    PoissonRegressor,
)
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import dapsgd as ds
from dapsgd import DAPClassifier, DAPClassifierCV, DAPRegressor, DAPRegressorCV, plots
from dapsgd._arguments import by_shell
from tests.table import COUNTS, THREE, TWO, WEIGHTS, YS, N, P, Q, X, Y

EXTRAS = {"box": {"bounds": (-5.0, 5.0)}}
WITH_STRENGTH = [name for name in ds.REGULARIZERS if name not in ("zero", "box")]


def pieces(result):
    return [(entry["check_name"], entry["exception"]) for entry in result if entry["status"] in ("failed", "xfail")]


# scikit-learn's own checks. They ask for conventions, not for accuracy, so short runs will do; no failure is expected.

unconverged = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning",
    "ignore::sklearn.exceptions.SkipTestWarning",
    "ignore:penalty 'nuclear' ties several targets",
)


@unconverged
@pytest.mark.parametrize("penalty", ds.REGULARIZERS)
@pytest.mark.parametrize("kind", [DAPRegressor, DAPClassifier])
def test_check_estimator(kind, penalty):
    assert not pieces(check_estimator(kind(penalty, max_passes=100, **EXTRAS.get(penalty, {})), on_fail=None))


@unconverged
@pytest.mark.parametrize("model", [DAPRegressor(loss="huber"), DAPClassifier(loss="squared_hinge")], ids=str)
def test_check_estimator_with_other_losses(model):
    assert not pieces(check_estimator(model.set_params(max_passes=100), on_fail=None))


@unconverged
@pytest.mark.parametrize(("kind", "penalty"), [(DAPRegressorCV, "fused_lasso"), (DAPClassifierCV, "l1")])
def test_check_estimator_with_cross_validation(kind, penalty):
    assert not pieces(check_estimator(kind(penalty, alphas=2, eps=0.1, cv=2, max_passes=10), on_fail=None))


# The same answers as others.


def objective(w, b, alpha, *, ratio=1.0, weights=None, y=Y, data=X):
    """scikit-learn's elastic net, written out."""
    weights = np.ones(N) if weights is None else weights
    fit = (weights[:, None] * (np.asarray(data @ w + b) - y).reshape(N, -1) ** 2).sum() / (2.0 * weights.sum())
    return fit + alpha * (ratio * np.abs(w).sum() + 0.5 * (1.0 - ratio) * (w**2).sum())


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csc_array], ids=["dense", "CSR", "CSC"])
def test_lasso_and_elastic_net(form, intercept, weights):
    for penalty, ratio in (("l1", 1.0), ("elastic_net", 0.3)):
        options = {} if penalty == "l1" else {"l1_ratio": ratio}
        ours = DAPRegressor(penalty, 0.1, fit_intercept=intercept, tol=1e-8, **options).fit(form(X), Y, weights)
        theirs = ElasticNet(0.1, l1_ratio=ratio, fit_intercept=intercept, tol=1e-12).fit(X, Y, weights)
        values = [objective(m.coef_, m.intercept_, 0.1, ratio=ratio, weights=weights) for m in (ours, theirs)]
        assert values[0] == pytest.approx(values[1], rel=1e-6)
        assert ours.objective_ == pytest.approx(values[0], rel=1e-9)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
        np.testing.assert_allclose(ours.predict(form(X)), theirs.predict(X), atol=1e-3)
        assert ours.coef_.shape == theirs.coef_.shape


@pytest.mark.parametrize("penalty", ["l1", "elastic_net"])
def test_non_negative(penalty):
    ours = DAPRegressor(penalty, 0.05, positive=True, tol=1e-10).fit(X, Y)
    kind = Lasso(0.05, positive=True, tol=1e-12) if penalty == "l1" else ElasticNet(0.05, positive=True, tol=1e-12)
    np.testing.assert_allclose(ours.coef_, kind.fit(X, Y).coef_, atol=1e-5)
    assert (ours.coef_ >= 0.0).all()
    assert (DAPRegressor("zero", positive=True).fit(X, Y).coef_ >= 0.0).all()
    assert (DAPRegressor("box", positive=True, bounds=(-1.0, 1.0)).fit(X, Y).coef_ >= 0.0).all()


def test_multi_task_lasso():
    ours = DAPRegressor("group_lasso", 0.2, tol=1e-8).fit(X, YS)
    theirs = MultiTaskLasso(0.2, tol=1e-12).fit(X, YS)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)
    assert ours.predict(X).shape == (N, Q)


def log_loss_objective(model, y, alpha, ratio=1.0, weights=None):
    weights = np.ones(N) if weights is None else weights
    codes = np.searchsorted(model.classes_, y)
    loss = -(weights * model.predict_log_proba(X)[np.arange(N), codes]).sum() / weights.sum()
    return loss + alpha * (ratio * np.abs(model.coef_).sum() + 0.5 * (1.0 - ratio) * (model.coef_**2).sum())


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("labels", [TWO, THREE], ids=["two", "three"])
def test_logistic_regression(labels, intercept, weights):
    alpha = 0.02
    total = N if weights is None else weights.sum()
    ours = DAPClassifier("l1", alpha, fit_intercept=intercept, tol=1e-8).fit(X, labels, weights)
    theirs = LogisticRegression(
        l1_ratio=1.0, solver="saga", C=1.0 / (alpha * total), fit_intercept=intercept, tol=1e-10, max_iter=100_000
    ).fit(X, labels, weights)
    values = [log_loss_objective(model, labels, alpha, weights=weights) for model in (ours, theirs)]
    assert values[0] == pytest.approx(values[1], rel=1e-5)
    assert ours.coef_.shape == theirs.coef_.shape
    assert ours.intercept_.shape == theirs.intercept_.shape
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-3)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=2e-2)
    assert (ours.predict(X) == theirs.predict(X)).all()
    np.testing.assert_allclose(ours.predict_proba(X).sum(axis=1), 1.0)


def test_class_weights():
    alpha = 0.05
    for weight in ("balanced", {"yes": 3.0}):
        ours = DAPClassifier("elastic_net", alpha, l1_ratio=0.0, class_weight=weight, tol=1e-10).fit(X[10:], TWO[10:])
        codes = TWO[10:] == "yes"
        factors = (
            len(codes) / (2.0 * np.where(codes, codes.sum(), (~codes).sum())) if weight == "balanced" else 1.0 + 2.0 * codes
        )
        theirs = LogisticRegression(C=1.0 / (alpha * factors.sum()), class_weight=weight, tol=1e-12).fit(X[10:], TWO[10:])
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)


def test_huber_at_the_fitted_scale():
    alpha = 0.1
    theirs = HuberRegressor(epsilon=1.35, alpha=alpha, tol=1e-10, max_iter=10_000).fit(X, Y)
    # At a fixed scale s their objective is, up to constants, (2/s) sum huber(r; 1.35 s) + alpha ||w||^2.
    scale = theirs.scale_
    ours = DAPRegressor("zero", loss="huber", delta=1.35 * scale, l2=alpha * scale / (2.0 * N), tol=1e-12).fit(X, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_poisson(weights):
    ours = DAPRegressor("zero", loss="poisson", l2=0.05, tol=1e-10).fit(X, COUNTS, weights)
    theirs = PoissonRegressor(alpha=0.1, tol=1e-10, max_iter=10_000).fit(X, COUNTS, weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-3)


def in_cvxpy(w, b, penalty, y):
    errors = cp.sum_squares(X @ w + (b if y.ndim == 1 else np.ones((N, 1)) @ b) - y) / (2.0 * N)
    problem = cp.Problem(cp.Minimize(errors + penalty))
    problem.solve(solver=cp.CLARABEL)
    return problem.value


def test_fused_lasso_and_nuclear_norm():
    w, b = cp.Variable(P), cp.Variable()
    least = in_cvxpy(w, b, 0.2 * (0.75 * cp.norm1(cp.diff(w)) + 0.25 * cp.norm1(w)), Y)
    assert DAPRegressor("fused_lasso", 0.2, l1_ratio=0.25, tol=1e-8).fit(X, Y).objective_ == pytest.approx(least, rel=1e-5)
    W, b = cp.Variable((P, Q)), cp.Variable((1, Q))
    least = in_cvxpy(W, b, 0.2 * cp.normNuc(W), YS)
    assert DAPRegressor("nuclear", 0.2, tol=1e-8).fit(X, YS).objective_ == pytest.approx(least, rel=1e-5)


@pytest.mark.parametrize("penalty", ["l1", "elastic_net", "group_lasso"])
def test_single_precision(penalty):
    double = DAPRegressor(penalty, 0.1, tol=1e-8).fit(X, Y)
    single = DAPRegressor(penalty, 0.1, tol=1e-5).fit(X.astype(np.float32), Y)
    assert single.coef_.dtype == np.float32
    assert single.objective_ == pytest.approx(double.objective_, rel=1e-3)


def test_one_against_the_rest():
    ours = DAPClassifier("l1", 0.02, loss="squared_hinge", tol=1e-9).fit(X, THREE)
    assert ours.coef_.shape == (3, P)
    for k in range(3):
        single = DAPClassifier("l1", 0.02, loss="squared_hinge", tol=1e-9).fit(X, k == THREE)
        np.testing.assert_allclose(ours.coef_[k], single.coef_[0], atol=1e-4)
    assert not hasattr(ours, "predict_proba")
    logistic = DAPClassifier("l1", 0.02, loss="logistic").fit(X, THREE)
    np.testing.assert_allclose(logistic.predict_proba(X).sum(axis=1), 1.0)
    np.testing.assert_allclose(np.exp(logistic.predict_log_proba(X)), logistic.predict_proba(X))


def test_objects_are_used_as_they_are():
    by_name = DAPRegressor("l1", 0.1, tol=1e-8).fit(X, Y)
    by_object = DAPRegressor(ds.L1(0.1), 77.0, loss=ds.Squared(0.5), tol=1e-8).fit(X, Y)
    np.testing.assert_array_equal(by_name.coef_, by_object.coef_)
    assert clone(by_object).get_params()["penalty"] == ds.L1(0.1)
    two = DAPClassifier(ds.L1(0.1), loss=ds.Multinomial()).fit(X, TWO)
    assert two.coef_.shape == (1, P)
    groups = DAPRegressor("group_lasso", 0.3, groups=4, weights=[1.0, 2.0], tol=1e-8).fit(X, Y)
    expected = DAPRegressor(ds.GroupLasso(0.3, 4, [1.0, 2.0]), tol=1e-8).fit(X, Y)
    np.testing.assert_array_equal(groups.coef_, expected.coef_)
    weights = np.linspace(2.0, 1.0, P)
    slope = DAPRegressor("slope", 0.1, weights=weights, tol=1e-8).fit(X, Y)
    np.testing.assert_array_equal(slope.coef_, DAPRegressor(ds.Slope(0.1 * weights), tol=1e-8).fit(X, Y).coef_)


# As scikit-learn's users expect.


def test_importing_the_package_does_not_import_scikit_learn():
    code = (
        "import sys, dapsgd; assert 'sklearn' not in sys.modules; assert 'DAPRegressor' in dir(dapsgd); dapsgd.DAPRegressor()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="DAPTransformer"):
        ds.DAPTransformer


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library):
    frames = pytest.importorskip(library)
    names = [f"gene {j}" for j in range(P)]
    frame = frames.DataFrame(dict(zip(names, X.T, strict=True)))
    model = DAPRegressor("l1", 0.1).fit(frame, frames.Series(Y))
    assert model.feature_names_in_.tolist() == names
    np.testing.assert_allclose(model.predict(frame), DAPRegressor("l1", 0.1).fit(X, Y).predict(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[names[::-1]])
    labels = DAPClassifier().fit(frame, frames.Series(TWO.tolist()))
    assert set(labels.predict(frame)) == {"yes", "no"}
    scaled = make_pipeline(StandardScaler(), DAPRegressor()).set_output(transform=library).fit(frame, Y)
    assert scaled[-1].feature_names_in_.tolist() == names


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_text_in_a_frame_are_named(library):
    frames = pytest.importorskip(library)
    numbers = {"a": X[:, 0], "even": X[:, 1] > 0.0, "whole": np.arange(len(X))}
    frame = frames.DataFrame({"id": [f"sample {i}" for i in range(len(X))], **numbers, "tissue": ["skin"] * len(X)})
    with pytest.raises(ValueError, match="code columns 'id', 'tissue' as numbers, or drop them"):
        DAPRegressor().fit(frame, Y)
    model = DAPRegressor().fit(frame[list(numbers)], Y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_a_frame_that_are_not_finite_are_named(library):
    frames = pytest.importorskip(library)
    holes = X[:, 0].copy()
    holes[3:5] = np.nan
    frame = frames.DataFrame({"whole": X[:, 1], "holes": holes, "empty": np.full(len(X), np.nan)})
    said = "X must not contain NaN or infinity, as it does in 'holes' in 2 rows, 'empty' in all rows; fill in"
    with pytest.raises(ValueError, match=said):
        DAPRegressor().fit(frame, Y)
    model = DAPRegressor().fit(frames.DataFrame(dict.fromkeys(("whole", "holes", "empty"), X[:, 0])), Y)
    with pytest.raises(ValueError, match=said):
        model.predict(frame)


def test_the_first_number_that_is_not_finite_is_found():
    holes = X.copy()
    holes[4, 2] = np.inf
    for matrix in (holes, sp.csr_matrix(holes)):
        with pytest.raises(ValueError, match="X must not contain NaN or infinity, as in row 4, column 2; fill in"):
            DAPRegressor().fit(matrix, Y)
        with pytest.raises(ValueError, match="X must not contain NaN or infinity, as in row 4, column 2; fill in"):
            DAPRegressor().fit(X, Y).predict(matrix)


def test_in_pipelines_and_searches():
    model = make_pipeline(StandardScaler(), DAPRegressor())
    search = GridSearchCV(model, {"dapregressor__penalty": ["l1", "fused_lasso"], "dapregressor__alpha": [0.1, 1.0]}, cv=3)
    search.fit(X, Y)
    assert search.best_params_["dapregressor__alpha"] == 0.1
    assert cross_val_score(DAPClassifier(), X, TWO, cv=3).mean() > 0.6
    assert "DAPRegressor" in model._repr_html_()


@pytest.mark.parametrize("model", [DAPRegressor(ds.GroupLasso(0.1, 4)), DAPRegressorCV(alphas=3, cv=3)], ids=["plain", "cv"])
def test_pickles(model):
    model.fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.result_.objective == model.objective_
    assert not hasattr(clone(model), "coef_")


def test_weights_are_routed():
    with config_context(enable_metadata_routing=True):
        model = DAPRegressor(alpha=0.1).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        search = GridSearchCV(model, {"alpha": [0.1]}, cv=3).fit(X, Y, sample_weight=WEIGHTS)
    np.testing.assert_allclose(search.best_estimator_.coef_, DAPRegressor(alpha=0.1).fit(X, Y, WEIGHTS).coef_)


def test_attributes():
    model = DAPRegressor(alpha=0.1).fit(X, Y)
    assert model.n_features_in_ == P
    assert model.n_iter_ == model.result_.iterations > 0
    assert 0.0 <= model.dual_gap_ <= 1e-4 * model.objective_
    assert model.residual_ >= 0.0
    assert len(model.trace_) > 1
    with pytest.raises(NotFittedError):
        DAPRegressor().predict(X)


def test_warm_start():
    model = DAPRegressor(alpha=0.01, warm_start=True, tol=1e-8, algorithm="fista").fit(X, Y)
    first = model.n_iter_
    assert model.fit(X, Y).n_iter_ < first / 2
    assert model.fit(X[:, :4], Y).coef_.shape == (4,)  # another shape starts afresh
    labels = DAPClassifier(warm_start=True, tol=1e-6).fit(X, THREE)
    first = labels.n_iter_
    assert labels.fit(X, THREE).n_iter_ < first / 2
    assert labels.fit(X, TWO).coef_.shape == (1, P)


@pytest.mark.parametrize(
    "options",
    [{"max_passes": 2, "tol": 1e-10, "algorithm": "fista"}, {"algorithm": "dap-sgd", "max_passes": 1, "penalty": "zero"}],
)
def test_a_missed_tolerance_is_said(options):
    with pytest.warns(ConvergenceWarning, match=r"did not reach tol=.* pass(es)? over .*Raise max_passes"):
        DAPRegressor(alpha=0.01, **options).fit(X, Y)


def test_scorers_do_not_warn_of_names_that_an_array_lacks():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=[f"w{j}" for j in range(P)])
    model = DAPRegressorCV("fused_lasso", alphas=3, cv=3, scoring="r2").fit(frame, Y)  # warnings are errors here
    DAPClassifierCV("l1", alphas=3, cv=3, scoring="accuracy").fit(frame, TWO).predict(frame)
    assert model.feature_names_in_.tolist() == list(frame.columns)


def test_stochastic_algorithms():
    options = {"algorithm": "dap-sgd", "workers": 1, "max_passes": 30, "tol": 0.0, "random_state": 3}
    first, second = (DAPRegressor(alpha=0.05, **options).fit(X, Y) for _ in range(2))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    assert first.score(X, Y) > 0.8
    both = DAPRegressor("fused_lasso", 0.05, algorithm="dap-svrg", workers=2, max_passes=100, tol=0.0).fit(X, Y)
    assert both.objective_ == pytest.approx(DAPRegressor("fused_lasso", 0.05, tol=1e-8).fit(X, Y).objective_, rel=1e-3)


# Streams and data on disk.


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_memory_map_is_not_copied(order, tmp_path, monkeypatch):
    np.save(tmp_path / "X.npy", np.asarray(X, order=order))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    kept = []
    pose = DAPRegressor._pose
    monkeypatch.setattr(DAPRegressor, "_pose", lambda *args: kept.append(pose(*args)) or kept[-1])
    model = DAPRegressor(alpha=0.1).fit(mapped, Y)
    assert np.shares_memory(kept[0]._rows.X, mapped)
    np.testing.assert_allclose(model.coef_, DAPRegressor(alpha=0.1).fit(X, Y).coef_, atol=1e-3)  # by another algorithm


ON_DISK = """
    import resource, sys
    import numpy as np
    from dapsgd import DAPRegressor

    def used(field):
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith(field + ":"))

    rng = np.random.default_rng(0)
    small = rng.standard_normal((200, 1000))
    fitted = DAPRegressor("l1", 0.1, tol=1e-3).fit(small, small[:, 0])  # everything is compiled and loaded
    fitted.partial_fit(small, small[:, 0])
    limit = used("VmData") + 64 * 2**20
    rows = 3 * limit // (1000 * 8)
    X = np.lib.format.open_memmap(sys.argv[1], "w+", np.float64, (rows, 1000))
    block = rng.standard_normal((1000, 1000))
    for start in range(0, rows, 1000):
        X[start : start + 1000] = block[: rows - start] + 1e-3 * start / rows
    y = X[:, 0] - X[:, 1]
    X.flush()
    del X
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    try:
        np.ones(limit // 8)
    except MemoryError:
        pass
    else:
        sys.exit("the limit does not bind")
    X = np.load(sys.argv[1], mmap_mode="r")
    assert X.nbytes >= 2.99 * limit
    model = DAPRegressor("l1", 0.1, tol=1e-3).fit(X, y)
    assert np.flatnonzero(model.coef_).tolist() == [0, 1]
    assert used("RssAnon") < limit, (used("RssAnon"), limit)
    print(X.nbytes, limit)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is one of Linux")
def test_data_of_three_times_the_memory_limit(tmp_path):
    code = textwrap.dedent(ON_DISK)
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}  # so that the limit is a low one
    command = [sys.executable, "-c", code, str(tmp_path / "X.npy")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    (tmp_path / "X.npy").unlink(missing_ok=True)  # a gigabyte
    assert done.returncode == 0, done.stderr


# Cross-validation.


def test_lasso_cv():
    alphas = np.geomspace(1.0, 0.01, 8)
    ours = DAPRegressorCV(alphas=alphas, cv=4, tol=1e-9).fit(X, Y, WEIGHTS)
    theirs = LassoCV(alphas=alphas, cv=4, tol=1e-10).fit(X, Y, WEIGHTS)
    np.testing.assert_allclose(ours.mse_path_, theirs.mse_path_, rtol=1e-4)
    assert ours.alpha_ == theirs.alpha_
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    grid = DAPRegressorCV(alphas=20, cv=4).fit(X, Y)
    np.testing.assert_allclose(grid.alphas_, LassoCV(alphas=20, cv=4).fit(X, Y).alphas_)
    threads = DAPRegressorCV(alphas=20, cv=4, n_jobs=2).fit(X, Y)
    np.testing.assert_array_equal(threads.scores_path_, grid.scores_path_)
    rule = DAPRegressorCV(alphas=20, cv=4, rule="one_se").fit(X, Y)
    assert rule.alpha_ > grid.alpha_
    mean, best = grid.scores_path_.mean(axis=1), grid.scores_path_.mean(axis=1).argmax()
    error = grid.scores_path_[best].std(ddof=1) / 2.0
    assert rule.alpha_ == grid.alphas_[mean >= mean[best] - error].max()


@pytest.mark.filterwarnings("ignore:penalty 'nuclear' ties several targets")
@pytest.mark.parametrize("penalty", WITH_STRENGTH)
def test_every_penalty_has_a_grid(penalty):
    model = DAPRegressorCV(penalty, alphas=4, cv=3, eps=0.01).fit(X, Y)
    assert model.score(X, Y) > 0.5
    first = model.path_.coefs[:, 0]
    assert np.ptp(first) <= 1e-9 if penalty == "fused_lasso" else not first.any()
    alone = DAPRegressor(penalty, model.alpha_).fit(X, Y)
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=0.02)


def test_ratios_are_chosen():
    model = DAPRegressorCV("elastic_net", l1_ratio=[0.1, 1.0], alphas=5, cv=3).fit(X, Y)
    assert model.l1_ratio_ in (0.1, 1.0)
    assert model.alphas_.shape == (2, 5)
    assert model.scores_path_.shape == (2, 5, 3)
    fused = DAPRegressorCV("fused_lasso", l1_ratio=[0.0, 0.5, 1.0], alphas=4, cv=3).fit(X, Y)
    assert fused.alphas_.shape == (3, 4)
    by_object = DAPRegressorCV(ds.FusedLasso(1.0, l1=0.01), alphas=4, cv=3).fit(X, Y)
    assert by_object.score(X, Y) > 0.7


def test_classifiers():
    for labels in (TWO, THREE):
        model = DAPClassifierCV(alphas=5, eps=0.05, cv=3).fit(X, labels, WEIGHTS)
        assert model.score(X, labels) > 0.6
        assert model.predict_proba(X).shape == (N, len(set(labels)))
    by_name = DAPClassifierCV(alphas=5, eps=0.05, cv=3, scoring="accuracy", loss="squared_hinge").fit(X, TWO)
    assert ((by_name.scores_path_ >= 0.0) & (by_name.scores_path_ <= 1.0)).all()
    several = DAPRegressorCV("group_lasso", alphas=4, cv=3).fit(X, YS)
    assert several.coef_.shape == (Q, P)


def test_pictures(tmp_path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    model = DAPRegressorCV("elastic_net", l1_ratio=[0.5, 1.0], alphas=5, cv=3).fit(X, Y)
    for draw in (model.plot_cv, model.plot_path):
        plt.close(draw(tmp_path / "picture.png"))
        assert (tmp_path / "picture.png").stat().st_size > 1000
    share = f"l1_ratio {model.l1_ratio_:g}"
    assert model.plot_coef().get_suptitle() == f"Coefficients: elastic_net ({share}) of strength {model.alpha_:.4g}"
    varied = f"strength of elastic_net ({share}, chosen of 2)"
    assert model.plot_cv().get_suptitle().replace("\n", " ") == f"Cross-validation of the {varied}, on 3 folds"
    assert model.plot_path().get_suptitle() == f"Coefficients along the {varied}"
    assert f"elastic_net ({share}) of strength {model.alpha_:.6g}, both chosen by cross-validation" in str(model)
    assert "both" not in str(DAPRegressorCV("elastic_net", l1_ratio=0.5, alphas=5, cv=3).fit(X, Y))
    plt.close("all")


@pytest.mark.parametrize(("rule", "scoring"), [("best", None), ("one_se", None), ("one_se", "r2")])
def test_the_picture_of_the_folds_marks_the_best_and_the_chosen_strength(rule, scoring):
    from matplotlib import pyplot as plt

    model = DAPRegressorCV("l1", alphas=20, cv=3, rule=rule, scoring=scoring).fit(X, Y)
    figure = model.plot_cv()
    (ax,) = figure.axes
    assert figure.get_suptitle() == "Cross-validation of the strength of l1, on 3 folds"
    labels = {label: line for line, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    chosen = f"chosen: {model.alpha_:.4g}" + ", within one standard error" * (rule == "one_se")
    assert labels[chosen].get_xdata()[0] == model.alpha_
    best = model.alphas_[int(np.argmax(model.scores_path_.mean(axis=1)))]
    marked = labels[f"{'highest' if scoring else 'lowest'} mean, at {best:.4g}"]
    assert marked.get_xdata() == [best]
    assert (best == model.alpha_) == (rule == "best")
    plt.close("all")


def test_what_lines_are_is_said_below_all_panels():
    from matplotlib import pyplot as plt

    figure = DAPRegressorCV("l1", alphas=5, cv=3).fit(X, np.column_stack([Y, -Y])).plot_path()
    (legend,) = figure.legends
    assert [text.get_text().partition(":")[0] for text in legend.get_texts()] == ["other columns", "chosen"]
    plt.close("all")


def test_one_strength_has_no_path_to_draw():
    for model in (DAPRegressor(), DAPClassifier()):
        with pytest.raises(AttributeError, match=f"it tries one strength only; {type(model).__name__}CV has"):
            model.plot_cv()
        assert not hasattr(model, "plot_path")
    with pytest.raises(AttributeError, match="'DAPRegressorCV' object has no attribute 'plot_all'"):
        _ = DAPRegressorCV().plot_all


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_all_fits_of_a_cross_validation_are_counted_by_one_bar(n_jobs, capsys, monkeypatch):
    monkeypatch.setattr("dapsgd._progress._is_watched", lambda: True)
    DAPRegressorCV("elastic_net", l1_ratio=[0.5, 1.0], alphas=7, cv=3, verbose=True, n_jobs=n_jobs).fit(X, Y)
    said = capsys.readouterr().err
    assert "49/49" in said  # two ratios on three folds, and one on all rows
    assert "fit/s" in said
    DAPRegressorCV("l1", alphas=7, cv=3).fit(X, Y)
    assert capsys.readouterr().err == ""


def test_how_to_get_the_columns_of_the_fit_out_of_a_frame_is_said():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=[f"w{j}" for j in range(P)])
    model = DAPRegressor("l1", alpha=0.1).fit(frame, Y)
    wide = frame.assign(other=1.0)
    with pytest.raises(ValueError, match=r"unseen at fit time:\n- other\nX\[list\(model.feature_names_in_\)\] has"):
        model.predict(wide)
    np.testing.assert_array_equal(model.predict(wide[list(model.feature_names_in_)]), model.predict(frame))
    with pytest.raises(ValueError, match=r"- w0$"):  # that remedy would not help
        model.predict(frame.drop(columns="w0"))


def test_fused_coefficients_are_named_together_where_they_are_equal():
    from matplotlib import pyplot as plt

    names = [f"w{j}" for j in range(P)]
    model = DAPRegressorCV("fused_lasso", alphas=10, cv=3, rule="one_se").fit(X, Y)
    texts = [text.get_text() for text in model.plot_path(names=names).axes[0].texts]
    largest = model.coef_[np.argmax(np.abs(model.coef_))]
    ends = model.path_.coefs[:, -1]
    block = np.flatnonzero(model.coef_ == largest)
    top = block[np.argmax(np.abs(ends[block]))]
    same = block[np.abs(ends[block] - ends[top]) <= 0.02 * np.abs(ends).max()]
    assert names[same[0]] + (f" and {len(same) - 1} more" if len(same) > 1 else "") in texts
    with pytest.raises(ValueError, match="names must be"):
        model.plot_path(names=names[1:])
    plt.close("all")


def test_fused_coefficients_that_part_again_have_colours_and_names_of_their_own():
    from matplotlib import pyplot as plt

    coefs = np.array([[0.0, 2.0, 3.0], [0.0, 2.0, 3.0], [0.0, 2.0, 1.0], [0.0, -1.0, -1.5]])
    found = ds.Path(np.array([4.0, 2.0, 1.0]), coefs, np.zeros(3), np.zeros(3), np.zeros(3), [])
    (axes,) = plots.plot_path(found, chosen=2.0, names=list("abcd")).axes
    assert {text.get_text(): text.xy[1] for text in axes.texts} == {"a and 1 more": 3.0, "c": 1.0, "d": -1.5}
    colour_of = {text.xy[1]: text.get_color() for text in axes.texts}
    assert len(set(colour_of.values())) == 3
    lines = [line for line in axes.lines if len(line.get_ydata()) == 3]
    assert [line.get_color() for line in lines] == [colour_of[line.get_ydata()[-1]] for line in lines]
    assert [line.get_ydata()[-1] for line in lines[-2:]] == [3.0, 3.0]  # drawn last: the line of the block has its colour
    plt.close("all")


def test_lines_that_end_together_have_one_name_and_those_that_end_at_zero_none():
    from matplotlib import pyplot as plt

    coefs = np.array([[0.0, 2.0, 3.0], [0.0, 2.0, 2.99], [0.0, 1.0, 0.01], [0.0, -1.0, -1.5]])
    found = ds.Path(np.array([4.0, 2.0, 1.0]), coefs, np.zeros(3), np.zeros(3), np.zeros(3), [])
    (axes,) = plots.plot_path(found, chosen=2.0, names=list("abcd")).axes
    assert {text.get_text() for text in axes.texts} == {"a and 1 more", "d"}
    plt.close("all")


# Wrong calls.


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: DAPRegressorCV(alpha=0.1), "DAPRegressorCV has no parameter 'alpha': the strengths that it tries are alphas"),
        (lambda: DAPClassifierCV("l1", n_alphas=7), "DAPClassifierCV has no parameter 'n_alphas': the strengths .* alphas"),
        (lambda: DAPRegressor(lam=0.1), r"DAPRegressor has no parameter 'lam': the strength is alpha$"),
        (lambda: DAPClassifier("l1", C=1.0), r"'C': the strength is alpha, its inverse: 1 / \(C \* n\) for n rows$"),
        (lambda: DAPClassifierCV("l1", Cs=9), r"'Cs': the strengths that it tries are alphas, .* 1 / \(C \* n\)"),
        (lambda: DAPRegressor(alphas=5), r"DAPRegressor has no parameter 'alphas' \(did you mean alpha\?\)"),
        (lambda: DAPClassifier(class_weigth="balanced"), r"'class_weigth' \(did you mean class_weight\?\)"),
        (lambda: DAPRegressor(max_iter=5), r"'max_iter' \(did you mean max_passes\?\)"),
        (lambda: DAPRegressor(zzz=5), "'zzz'; it has penalty, alpha, "),
        (
            lambda: DAPRegressorCV("l1", 1),
            r"CV takes 1 by position, penalty; got 2\. By name only, as alphas=\.\.\.: alphas,",
        ),
        (
            lambda: DAPRegressor("l1", 1, "huber"),
            r"takes 2 by position, penalty and alpha; got 3\. By name only, as loss=",
        ),
        (lambda: Heir(tolerance=1.0), r"Heir has no parameter 'tolerance' \(did you mean tol\?\)"),
        (lambda: Daughter(1.0, alhpa=1.0), r"Daughter has no parameter 'alhpa' \(did you mean alpha\?\)"),
    ],
)
def test_a_parameter_that_there_is_not_is_named_with_what_may_be_meant(make, said):
    with pytest.raises(TypeError, match=said):
        make()


class Heir(DAPRegressor):
    """A class without an ``__init__`` of its own."""


class Daughter(DAPRegressor):
    """A class that has more parameters, and hands on others."""

    def __init__(self, more=2.0, **others):
        super().__init__(**others)
        self.more = more


class Son(DAPRegressor):
    """A class that has one parameter more and names the others that it has."""

    def __init__(self, penalty="l1", *, alpha=1.0, more=2.0, tol=1e-4):
        super().__init__(penalty, alpha=alpha, tol=tol)
        self.more = more


@pytest.mark.parametrize("kind", [DAPRegressor, DAPClassifier, DAPRegressorCV, DAPClassifierCV, Heir, Son])
def test_estimators_are_copied_in_every_way(kind):
    model = kind("fused_lasso", tol=1e-3)
    for copied in (clone(model), copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert type(copied) is kind
        assert copied.get_params() == model.get_params()
        assert copied.penalty == "fused_lasso"
        assert copied.tol == 1e-3
    assert list(inspect.signature(kind).parameters) == list(inspect.signature(kind.__init__).parameters)[1:]
    assert set(model.get_params()) == set(inspect.signature(kind).parameters)


def test_a_class_with_more_parameters_fits():
    assert (Son(alpha=0.1).more, Daughter(3.0, alpha=0.1).more) == (2.0, 3.0)
    expected = DAPRegressor(alpha=0.1).fit(X, Y).coef_
    np.testing.assert_array_equal(clone(Son(alpha=0.1)).set_params(more=5.0).fit(X, Y).coef_, expected)
    np.testing.assert_array_equal(Daughter(alpha=0.1).fit(X, Y).coef_, expected)


FIT = {
    "penalty": ("l2", ValueError),
    "penalty by number": (3, TypeError),
    "penalty class": (ds.L1, TypeError),
    "alpha": (-1.0, ValueError),
    "alpha nan": (math.nan, ValueError),
    "alpha word": ("1", TypeError),
    "loss": ("hinge", ValueError),
    "loss by number": (1, TypeError),
    "loss object": (ds.Multinomial(), ValueError),
    "l1_ratio": (0.5, ValueError),
    "groups": (2, ValueError),
    "weights": ([1.0], ValueError),
    "bounds": ((0.0, 1.0), ValueError),
    "positive": ("yes", TypeError),
    "l2": (-1.0, ValueError),
    "l2 word": ("1", TypeError),
    "fit_intercept": (None, TypeError),
    "algorithm": ("fsta", ValueError),
    "runtime": ("thread", ValueError),
    "workers": (0, ValueError),
    "step": (0.1, (TypeError, ValueError)),
    "tol": (-1.0, ValueError),
    "max_passes": (0.0, ValueError),
    "warm_start": ("yes", TypeError),
    "random_state": ("seed", ValueError),
    "verbose": ("yes", TypeError),
}


@pytest.mark.parametrize("name", FIT)
def test_wrong_parameters(name):
    parameter = name.split()[0]
    value, error = FIT[name]
    with pytest.raises(error, match=parameter):
        DAPRegressor(**{parameter: value}).fit(X, Y)


CALLS = {
    "ratio": (lambda: DAPRegressor("elastic_net", l1_ratio=2.0).fit(X, Y), ValueError, "l1_ratio"),
    "groups": (lambda: DAPRegressor("group_lasso", groups=3).fit(X, Y), ValueError, "groups"),
    "group weights": (lambda: DAPRegressor("group_lasso", groups=4, weights=[1.0]).fit(X, Y), ValueError, "weights"),
    "slope weights": (lambda: DAPRegressor("slope", weights=[1.0, 2.0]).fit(X, Y), ValueError, "weights"),
    "no bounds": (lambda: DAPRegressor("box").fit(X, Y), ValueError, "bounds"),
    "bounds": (lambda: DAPRegressor("box", bounds=(1.0, 0.0)).fit(X, Y), ValueError, "bounds"),
    "one bound": (lambda: DAPRegressor("box", bounds=1.0).fit(X, Y), ValueError, "bounds"),
    "positive": (lambda: DAPRegressor("fused_lasso", positive=True).fit(X, Y), ValueError, "positive"),
    "object": (lambda: DAPRegressor(ds.L1(1.0), groups=2).fit(X, Y), ValueError, "groups"),
    "delta": (lambda: DAPRegressor(loss="huber", delta=0.0).fit(X, Y), ValueError, "delta"),
    "counts": (lambda: DAPRegressor(loss="poisson").fit(X, Y), ValueError, "y must be >= 0"),
    "batch": (lambda: DAPRegressor(algorithm="dap-sgd", batch_size="big").fit(X, Y), ValueError, "batch_size"),
    "nan in X": (lambda: DAPRegressor().fit(np.full_like(X, np.nan), Y), ValueError, "X"),
    "nan to predict": (lambda: DAPRegressor().fit(X, Y).predict(np.full_like(X, np.nan)), ValueError, "X must not contain NaN"),
    "nan in y": (lambda: DAPRegressor().fit(X, np.full_like(Y, np.nan)), ValueError, "y"),
    "weights": (lambda: DAPRegressor().fit(X, Y, -np.ones(N)), ValueError, "sample_weight"),
    "zero weights": (lambda: DAPRegressor().fit(X, Y, np.zeros(N)), ValueError, "sample_weight"),
    "short weights": (
        lambda: DAPRegressor().fit(X, Y, [1.0]),
        ValueError,
        f"sample_weight must have one entry for each of the {N} rows",
    ),
    "one class": (lambda: DAPClassifier().fit(X, np.ones(N)), ValueError, "two classes"),
    "class weight": (lambda: DAPClassifier(class_weight="even").fit(X, TWO), ValueError, "class_weight"),
    "unknown class": (lambda: DAPClassifier(class_weight={"maybe": 1.0}).fit(X, TWO), ValueError, "class_weight"),
    "class weight list": (lambda: DAPClassifier(class_weight=[1.0, 2.0]).fit(X, TWO), TypeError, "class_weight"),
    "negative class weight": (lambda: DAPClassifier(class_weight={"yes": -1.0}).fit(X, TWO), ValueError, "class_weight"),
    "loss of classes": (lambda: DAPClassifier(loss="squared").fit(X, TWO), ValueError, "loss"),
    "no classes": (lambda: DAPClassifier().partial_fit(X, TWO), ValueError, "classes"),
    "other classes": (
        lambda: DAPClassifier().partial_fit(X, TWO, ["no", "yes"]).partial_fit(X, TWO, ["yes", "so"]),
        ValueError,
        "classes",
    ),
    "unknown label": (lambda: DAPClassifier().partial_fit(X, TWO, ["no", "so"]), ValueError, "y must hold labels"),
    "balanced batches": (
        lambda: DAPClassifier(class_weight="balanced").partial_fit(X, TWO, ["no", "yes"]),
        ValueError,
        "class_weight",
    ),
    "alphas": (lambda: DAPRegressorCV(alphas=0).fit(X, Y), ValueError, "alphas"),
    "negative alphas": (lambda: DAPRegressorCV(alphas=[-1.0]).fit(X, Y), ValueError, "alphas"),
    "eps": (lambda: DAPRegressorCV(eps=2.0).fit(X, Y), ValueError, "eps"),
    "rule": (lambda: DAPRegressorCV(rule="two_se").fit(X, Y), ValueError, "rule"),
    "scoring": (lambda: DAPRegressorCV(scoring="best").fit(X, Y), ValueError, "scoring"),
    "no ratio": (lambda: DAPRegressorCV("elastic_net", l1_ratio=[]).fit(X, Y), ValueError, "l1_ratio"),
    "no strength": (lambda: DAPRegressorCV("zero").fit(X, Y), ValueError, "penalty"),
    "pure ridge": (lambda: DAPRegressorCV("elastic_net", l1_ratio=0.0).fit(X, Y), ValueError, "alphas must be given"),
}


HOLE = np.where(np.arange(N) == 4, np.nan, Y)
BAD_NUMBERS = {
    "nan": (HOLE, ValueError, "y must not contain NaN or infinity, as in entry 4"),
    "inf": (np.where(np.arange(N) == 7, np.inf, Y), ValueError, "y must not contain NaN or infinity, as in entry 7"),
    "nan in one of several": (np.column_stack([Y, HOLE]), ValueError, "as in row 4, column 1"),
    "None": ([None, *Y[1:]], ValueError, "y must not contain NaN or infinity, as in entry 0"),
    "words": (
        TWO,
        TypeError,
        f"y must hold numbers; got '{TWO[0]}' (str) in entry 0: convert it to numbers, or use DAPClassifier",
    ),
    "a word": (np.array([*Y[1:], "x"], dtype=object), TypeError, f"got 'x' (str) in entry {N - 1}"),
    "days": (np.arange(N).astype("datetime64[D]"), TypeError, "y must hold numbers; got datetime.date"),
    "short": (Y[1:], ValueError, f"y must have an entry for each of the {N} rows of X; got {N - 1}"),
    "a row": (Y[None], ValueError, "shape (1, "),
    "cube": (np.zeros((N, 2, 2)), ValueError, "y must be one-dimensional, or two-dimensional for several targets; got shape"),
    "number": (3.0, TypeError, "y must be an array with an entry for each row of X; got 3.0"),
    "sparse": (sp.csr_matrix(Y[:, None]), TypeError, "y must be an array, not a sparse matrix"),
    "ragged": ([[1.0], [1.0, 2.0]] * (N // 2), ValueError, "rows of different lengths"),
}
BAD_LABELS = {
    "nan": (HOLE, ValueError, "y must not contain NaN or infinity, as in entry 4"),
    "numbers": (Y, ValueError, "y must hold classes; got "),
    "None": ([None, *TWO[1:]], ValueError, "y must hold a label in every entry; got None in entry 0"),
    "nan among words": (np.array([*TWO[1:], np.nan], dtype=object), ValueError, f"got nan in entry {N - 1}"),
    "mixed": (
        np.array([*TWO[1:], 1.5], dtype=object),
        ValueError,
        "y must hold labels of one kind; got text in entry 0 and a number in",
    ),
    "one class": (np.array(["a"] * N), ValueError, "y must hold at least two classes; got 1 class: ['a']"),
    "short": (TWO[1:], ValueError, f"y must have an entry for each of the {N} rows of X; got {N - 1}"),
    "two columns": (
        np.column_stack([TWO, TWO]),
        ValueError,
        "y must be one-dimensional, with a label for each row of X; got shape",
    ),
    "sparse": (sp.csr_matrix(np.ones((N, 1))), TypeError, "y must be an array, not a sparse matrix"),
    "word": ("yes", TypeError, "got 'yes'"),
}


@pytest.mark.parametrize(
    ("kind", "name"),
    [(k, n) for k in (DAPRegressor, DAPRegressorCV) for n in BAD_NUMBERS] + [(DAPClassifier, n) for n in BAD_LABELS],
)
def test_what_is_wrong_with_targets_is_said(kind, name):
    y, error, words = (BAD_LABELS if kind is DAPClassifier else BAD_NUMBERS)[name]
    with pytest.raises(error) as caught:
        kind().fit(X, y)
    assert words in str(caught.value)


def test_missing_values_of_pandas_among_targets_are_found():
    pandas = pytest.importorskip("pandas")
    for y in (pandas.Series([pandas.NA, *Y[1:]], dtype="Float64"), pandas.Series([pandas.NA, *Y[1:]], dtype=object)):
        with pytest.raises(ValueError, match="y must not contain NaN or infinity, as in entry 0"):
            DAPRegressor().fit(X, y)
    with pytest.raises(ValueError, match="y must hold a label in every entry; got <NA> in entry 0"):
        DAPClassifier().fit(X, pandas.Series([pandas.NA, *TWO[1:]], dtype="string"))


def test_an_error_about_the_rows_is_not_taken_for_one_about_the_targets():
    with pytest.raises(ValueError, match="X must have two dimensions"):
        DAPRegressor().fit(Y, Y)
    with pytest.raises(ValueError, match="X must not contain NaN"):
        DAPRegressor().fit(np.full_like(X, np.nan), Y)


@pytest.mark.parametrize("name", CALLS)
def test_wrong_calls(name):
    call, error, message = CALLS[name]
    with pytest.raises(error, match=message):
        call()


def test_text_of_digits_is_no_number():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"sample": [f"{k:04d}" for k in range(30)], "a": np.arange(30.0)})
    with pytest.raises(ValueError, match="code column 'sample' as numbers, or drop it"):
        DAPRegressor().fit(frame, np.arange(30.0))
    frame["sample"] = frame["sample"].astype(object)
    with pytest.raises(ValueError, match="code column 'sample' as numbers, or drop it"):
        DAPRegressor().fit(frame, np.arange(30.0))
    frame["sample"] = pandas.Series(range(30), dtype=object)  # numbers, though of no known kind
    assert DAPRegressor(alpha=0.01).fit(frame, np.arange(30.0)).n_features_in_ == 2


def test_a_summary_says_what_coefficients_speak_for():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8))
    labels = np.where(X[:, 0] + X[:, 1] > 0.0, "lo", "hi")
    model = DAPClassifier("group_lasso", alpha=0.02, groups=[[0, 1, 2], [3, 4], [5, 6, 7]]).fit(X, labels)
    assert "hi, lo; coefficients above 0 speak for lo" in str(model)
    assert " of 3 are not zero" in str(model)
    pytest.importorskip("matplotlib")
    assert model.plot_coef().axes[0].get_ylabel() == "coefficient, for lo"
    three = DAPClassifier("l1", alpha=0.02).fit(X, np.arange(60) % 3)
    assert three.plot_coef().axes[0].get_title() == "class 0"


def test_a_summary_says_why_all_coefficients_are_zero():
    said = "the penalty is too strong for any to be of use; lower "
    model = DAPRegressor("l1", 1e9).fit(X, Y)
    assert f"0 of {X.shape[1]} are not zero: {said}alpha, or choose it by DAPRegressorCV\n" in str(model)
    with by_shell():
        assert model._why_zero() == f"{said}--alpha, or choose it with --cv"
    assert f": {said}its strength\n" in str(DAPRegressor(ds.L1(1e9)).fit(X, Y))
    assert "or choose it by DAPClassifierCV\n" in str(DAPClassifier("group_lasso", 1e9).fit(X, TWO))
    assert "strong" not in str(DAPRegressor("l1", 1e-3).fit(X, Y))


def test_where_it_is_not_the_penalty_that_makes_coefficients_zero_none_is_blamed():
    assert "are not zero\n" in str(DAPRegressor("l1", 1e9).fit(X, np.ones(len(X))))
    assert "are not zero\n" in str(DAPRegressor("box", bounds=(0.0, 0.0)).fit(X, Y))
    noise = np.random.default_rng(1).standard_normal((2, 60))
    model = DAPRegressorCV("l1", alphas=[1e9, 1e8], cv=3).fit(noise[:1].T, noise[1])
    assert "0 of 1 are not zero: on the rows held out no weaker penalty that was tried scores better\n" in str(model)
    model.rule = "one_se"
    assert "by less than a standard error; rule='best' takes the best\n" in str(model)


def test_scores_that_are_best_at_the_end_are_noticed():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 10))
    y = X @ rng.standard_normal(10) + 0.1 * rng.standard_normal(80)
    model = DAPRegressorCV("l1", alphas=5, eps=0.3).fit(X, y)
    assert "chosen by cross-validation; the strength is the smallest tried: try a smaller eps\n" in str(model)
    careful = DAPRegressorCV("l1", alphas=[1.0, 0.101, 0.1], rule="one_se").fit(X, y)
    assert "; the mean over the folds is best at the smallest strength tried\n" in str(careful)
    assert "try a smaller" not in str(careful)
    assert "smallest" not in str(DAPRegressorCV("l1", alphas=20, eps=1e-6).fit(X, y))


@pytest.mark.parametrize("cv", [1, N + 1])
def test_too_few_or_too_many_folds(cv):
    with pytest.raises(ValueError, match=f"cv must be from 2 to the number of rows; got {cv} folds"):
        DAPRegressorCV("l1", alphas=3, cv=cv).fit(X, Y)


@pytest.mark.parametrize("named", [False, True])
def test_the_lines_of_a_group_have_one_colour_and_one_name(named):
    labels = np.repeat(["left", "right", "other"], [2, 2, P - 4]) if named else np.repeat([0, 1, 2], [2, 2, P - 4])
    y = X[:, :2] @ [2.0, 1.0] - X[:, 2] + 0.5 * X[:, 3]
    model = DAPRegressorCV("group_lasso", groups=labels.tolist(), alphas=5, cv=3).fit(X, y)
    (axes,) = model.plot_path().axes
    names = [text.get_text() for text in axes.texts]
    assert {"left", "right"} <= set(names) if named else {"group 0", "group 1"} <= set(names)
    colours = [line.get_color() for line in axes.lines if len(line.get_xdata()) == 5]
    assert sorted(map(colours.count, set(colours)))[:2] == [2, 2]
    plots.pyplot().close("all")


def test_text_in_arrays_is_refused():
    model = DAPRegressor("l1", 0.05)
    for data in (X.astype(str), X.astype(str).astype(object), X.astype(str).tolist(), X.astype("S")):
        for use in (model.fit, model.partial_fit, lambda data, y: DAPRegressor("l1", 0.05).fit(X, Y).predict(data)):
            with pytest.raises(ValueError, match="X must hold numbers only; got the text"):
                use(data, Y)
    assert model.fit(X.astype(object), Y).score(X, Y) == model.fit(X.tolist(), Y).score(X, Y)
    with pytest.raises(TypeError, match="sample_weight must hold numbers; it holds text, such as 'a'"):
        model.fit(X, Y, sample_weight=["a"] * N)


@pytest.mark.parametrize("one", [lambda row: row, lambda row: row.tolist()])
def test_a_row_that_is_no_matrix(one):
    for use in (DAPRegressor().fit, DAPRegressor().partial_fit):
        with pytest.raises(ValueError, match=r"X must have two dimensions.* (X.reshape\(1, -1\)|\[X\]) if they are one row"):
            use(one(X[0]), Y[:1])


def test_bands_of_a_fused_path_have_one_name():
    rng = np.random.default_rng(0)
    data = rng.standard_normal((200, 60))
    w = np.zeros(60)
    w[10:30], w[40:50] = 1.0, -0.7
    model = DAPRegressorCV("fused_lasso", alphas=8, cv=3, rule="one_se").fit(data, data @ w + rng.standard_normal(200))
    (axes,) = model.plot_path().axes
    assert [text.get_text() for text in axes.texts] == ["column 40 to column 49", "column 10 to column 29"]
    plots.pyplot().close("all")


def test_names_of_bands_point_at_where_most_of_a_band_ends():
    chosen = np.repeat([1.0, -1.0, 0.5], [5, 4, 3])
    ends = np.array([2.0, 1.0, 1.0, 1.0, 1.2, -0.3, -0.6, -0.61, -0.6, 1.0, 1.0, 0.2])
    found = ds.Path(np.array([2.0, 1.0]), np.column_stack([chosen, ends]), np.zeros(2), np.zeros(2), np.zeros(2), [])
    (axes,) = plots.plot_path(found, chosen=2.0, steps=True).axes
    pointed = {text.get_text(): text.xy[1] for text in axes.texts}
    assert pointed == {"column 0 to column 4": 1.0, "column 5 to column 8": -0.6, "column 9 to column 11": 0.2}
    plots.pyplot().close("all")


@pytest.mark.parametrize("penalty", ["nuclear", ds.NuclearNorm(0.1)])
def test_a_nuclear_norm_of_one_target_warns(penalty):
    with pytest.warns(UserWarning, match="ties several targets together"):
        DAPRegressor(penalty, 0.1).fit(X, Y)
    with pytest.warns(UserWarning, match="ties several targets together"):
        DAPClassifier(penalty, 0.1).fit(X, TWO)
    DAPRegressor(penalty, 0.1).fit(X, YS)
    DAPClassifier(penalty, 0.1).fit(X, THREE)


def test_cross_validated_models_say_why_they_take_no_batches():
    with pytest.raises(AttributeError, match=r"DAPClassifierCV has no partial_fit, .* DAPClassifier\(alpha=...\) has"):
        DAPClassifierCV().partial_fit(X, TWO)
    assert not hasattr(DAPRegressorCV(), "partial_fit")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = DAPClassifier().nothing


def test_a_column_that_is_spelt_nearly_so_is_named(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=[f"Gene {j}" for j in range(P)])
    model = DAPRegressor("l1", 0.1).fit(frame, Y)
    ds.models.save(model, tmp_path / "m.npz")
    loaded = ds.models.load(tmp_path / "m.npz")
    with pytest.raises(ValueError, match="it has 'gene 0': rename that if it is 'Gene 0'"):
        loaded.predict(frame.rename(columns=str.lower))
    by_number = DAPRegressor("l1", 0.1).fit(pd.DataFrame(X, columns=np.arange(P) + 400.5), Y)
    with pytest.raises(ValueError, match=r"lacks 1 of the 8 columns that the model was fitted to: '400\.5'"):
        by_number.predict(pd.DataFrame(X, columns=[1.0, *(np.arange(1, P) + 400.5)]))


def test_two_columns_of_one_name_are_refused(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(P)])
    doubled = frame.rename(columns={"x1": "x0"})
    model = DAPRegressor("l1", 0.1).fit(frame, Y)
    for use in (lambda: model.predict(doubled), lambda: DAPRegressor("l1", 0.1).fit(doubled, Y)):
        with pytest.raises(ValueError, match="X must have one column named 'x0'; it has 2"):
            use()
    with pytest.raises(ValueError, match="it has 'X0': rename that if it is 'x0'"):
        model.predict(frame.rename(columns={"x0": "X0"}))


def test_what_a_search_chose_is_told():
    model = DAPRegressorCV("elastic_net", alphas=3, l1_ratio=[0.2, 0.8], cv=3).fit(X, Y)
    assert f"(l1_ratio {model.l1_ratio_:.4g}) of strength {model.alpha_:g}, both chosen by cross-validation" in str(model)
    with pytest.raises(TypeError, match="how many strengths to try, or a list"):
        DAPRegressorCV("l1", alphas=0.1).fit(X, Y)


def drawn_path(coefs, **options):
    lams = np.geomspace(1.0, 0.01, coefs.shape[-1])
    none = np.zeros(len(lams))
    return plots.plot_path(ds.Path(lams, coefs, none, none, none, []), **options)


def test_a_column_has_one_colour_in_all_panels_and_no_two_have_the_same():
    ends = np.zeros((20, 4))
    for panel in range(4):  # each has two columns of the panel before
        ends[4 * panel : 4 * panel + 6, panel] = [3.0, 4.0, 5.0, 6.0, 2.0, 1.0]
    figure = drawn_path(np.stack([0.0 * ends, ends], axis=-1))
    named = [(text.get_text(), text.get_color()) for ax in figure.axes for text in ax.texts]
    assert len(named) == 24
    assert len(set(named)) == len(dict(named)) == len(set(dict(named).values())) == 18
    assert all(max(colour) - min(colour) > 0.1 for _, colour in named)  # grey is for other columns
    plots.pyplot().close("all")


def test_a_column_that_is_named_with_others_keeps_its_colour():
    ends = np.array([[2.0, 2.0], [2.0, 1.0], [0.0, 3.0]])
    first, second = drawn_path(np.stack([0.0 * ends, ends], axis=-1), names=list("abc")).axes
    (together,) = first.texts
    assert together.get_text() == "a and 1 more"
    assert [text.get_text() for text in second.texts if text.get_color() == together.get_color()] == ["a"]
    plots.pyplot().close("all")


def test_panels_of_a_path_have_one_scale_and_names_are_beside_the_ends():
    ends = np.array([[10.0, 0.0], [0.0, 0.1]])
    first, second = drawn_path(np.stack([0.0 * ends, ends], axis=-1)).axes
    assert first.get_ylim() == second.get_ylim()
    assert [bool(ax.get_ylabel()) for ax in (first, second)] == [True, False]
    for ax in (first, second):
        (text,) = ax.texts
        low, high = ax.get_ylim()
        assert text.xyann[1] == pytest.approx((text.xy[1] - low) / (high - low))
    plots.pyplot().close("all")


def test_of_a_band_that_parts_the_branch_with_the_name_stands_out():
    chosen, ends = np.repeat([1.0, 0.0], [5, 2]), np.array([2.0, 1.0, 1.0, 1.0, 1.2, 0.0, 0.0])
    (axes,) = drawn_path(np.column_stack([chosen, ends]), chosen=1.0, steps=True).axes
    (text,) = axes.texts
    bold = [line for line in axes.lines if line.get_color() == text.get_color()]
    pale = [line for line in axes.lines if line.get_ydata()[0] == 1.0 and line not in bold]
    assert [line.get_ydata()[-1] for line in bold] == [text.xy[1]] * 3
    assert sorted(line.get_ydata()[-1] for line in pale) == [1.2, 2.0]
    assert max(line.get_linewidth() for line in pale) < min(line.get_linewidth() for line in bold)
    assert all(min(line.get_color()) > min(text.get_color()) for line in pale)
    plots.pyplot().close("all")


@pytest.mark.parametrize("low", [0.00101, 0.0021, 0.0051, 0.0071])
@pytest.mark.parametrize("times", [1.5, 2.0, 3.9, 9.0, 13.0, 50.0])
def test_numbers_of_strengths_do_not_touch_in_narrow_panels(low, times):
    lams, coefs = np.geomspace(low * times, low, 3), np.ones((1, 3, 3))
    figure = plots.plot_path(ds.Path(lams, coefs, np.zeros(3), np.zeros(3), np.zeros(3), []), names=["a name of 24 characters"])
    figure.canvas.draw()
    axis = figure.axes[0].xaxis
    left, right = figure.axes[0].bbox.intervalx
    boxes = [label.get_window_extent() for label in axis.get_ticklabels(which="both") if label.get_text()]
    seen = sorted((box.x0, box.x1) for box in boxes if left <= (box.x0 + box.x1) / 2.0 <= right)
    assert len(seen) >= 2
    assert all(end < start for (_, end), (start, _) in itertools.pairwise(seen))
    plots.pyplot().close("all")


def test_a_search_with_nothing_to_learn_warns():
    with pytest.warns(UserWarning, match="y is the same in every row"):
        model = DAPRegressorCV("l1", alphas=3, cv=2).fit(X, np.full(N, 2.0))
    assert model.predict(X) == pytest.approx(np.full(N, 2.0))


def test_the_summary_of_a_search_tells_what_is_of_all_strengths_and_what_of_one():
    lines = str(DAPRegressorCV("l1", alphas=3, cv=2).fit(X, Y)).splitlines()
    assert any(line.strip().startswith("work") and line.endswith("for 3 strengths, after the folds") for line in lines)
    assert any(line.split()[:3] == ["message", "at", "the"] for line in lines)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("algorithm", ["p-sgd", "tap-sgd", "dap-sgd", "dap-svrg", "dave-rpg"])
def test_targets_far_from_zero_are_reached_by_single_rows(algorithm):
    rng = np.random.default_rng(0)
    data = StandardScaler().fit_transform(np.cumsum(rng.standard_normal((120, 60)), axis=1))
    targets = 85.0 + data[:, 20:30].sum(axis=1) + 0.3 * rng.standard_normal(120)
    model = DAPRegressor("fused_lasso", 0.1, algorithm=algorithm, workers=1, random_state=0).fit(data, targets)
    assert model.score(data, targets) > 0.9
    assert model.intercept_ == pytest.approx(targets.mean(), abs=1.0)


def test_a_score_that_does_not_fit_is_named():
    with pytest.raises(ValueError, match="scoring='accuracy' cannot judge DAPRegressorCV"):
        DAPRegressorCV("l1", scoring="accuracy", alphas=3, cv=3).fit(X, Y)


def test_names_of_series_and_of_numbered_columns():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=range(900, 900 + 5 * X.shape[1], 5))
    model = DAPRegressor("l1", 0.05).fit(frame, pd.Series(Y, name="octane"))
    assert "octane" in str(model)
    with pytest.raises(ValueError, match=r"their order is another one\nX\[sorted\(X.columns\)\] has them in their order"):
        model.predict(frame[frame.columns[::-1]])
    with pytest.raises(TypeError, match="X must hold real numbers; got dtype object: column 'id' is text; code it as numbers"):
        ds.Problem(frame.assign(id="a"), Y)


def test_wrong_options_are_answered_with_right_ones(tmp_path):
    problem = ds.Problem(X, Y)
    with pytest.raises(TypeError, match=r"solve has no option 'max_iters' \(did you mean max_iter\?\)"):
        ds.solve(problem, max_iters=3)
    with pytest.raises(TypeError, match="read has no option 'sep'; it has path, target, drop"):
        ds.io.read(tmp_path / "t.csv", sep=";")
    with pytest.raises(
        TypeError, match=r"^penalty must be an object such as .*, not the class FusedLasso itself; or a name: 'zero'"
    ):
        DAPRegressor(ds.FusedLasso).fit(X, Y)
    with pytest.raises(TypeError, match="n_jobs must be None or an integer, such as -1 for all cores; got 'x'"):
        DAPRegressorCV(n_jobs="x").fit(X, Y)
    hinge = DAPClassifier(loss="squared_hinge").fit(X, Y > 0.0)
    with pytest.raises(AttributeError, match="DAPClassifier has no predict_proba, because loss 'squared_hinge' gives none"):
        hinge.predict_proba(X)


@pytest.mark.parametrize(
    ("given", "column", "row"),
    [
        (Y, r"X.reshape\(-1, 1\)", r"X.reshape\(1, -1\)"),
        (Y.tolist(), r"\[\[x\] for x in X\]", r"\[X\]"),
        ("pandas", r"X.to_frame\(\)", r"X.to_frame\(\).transpose\(\)"),
        ("polars", r"X.to_frame\(\)", r"X.to_frame\(\).transpose\(\)"),
    ],
)
def test_a_single_column_is_not_printed_but_reshaped(given, column, row):
    values = pytest.importorskip(given).Series(Y) if isinstance(given, str) else given
    message = f"got one, of {len(Y)} values. Reshape your data: {column} if they are one column, {row} if they are one row$"
    model = DAPRegressor("l1", 0.1).fit(X, Y)
    for call in (lambda: DAPRegressor().fit(values, Y), lambda: model.predict(values)):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize("given", [None, 3.0, "abc", np.float64(3.0)])
def test_a_single_value_is_no_table(given):
    with pytest.raises(ValueError, match="X must be a table of numbers, rows and columns; got"):
        DAPRegressor().fit(given, Y)


@pytest.mark.parametrize("none", [None, np.nan, "pandas"])
def test_a_column_without_a_group_is_refused(none):
    none = pytest.importorskip("pandas").NA if isinstance(none, str) else none
    labels = ["a"] * (P - 1) + [none]
    for groups in (labels, np.array(labels, dtype=object)):
        with pytest.raises(ValueError, match=f"for each coordinate; that of coordinate {P - 1} is missing or NaN"):
            DAPRegressor("group_lasso", 0.1, groups=groups).fit(X, Y)


def test_groups_that_are_named_in_many_ways():
    with pytest.raises(TypeError, match="groups given as labels must be all text or all numbers; got 1 and 'a'"):
        DAPRegressor("group_lasso", 0.1, groups=["a"] * (P - 1) + [1]).fit(X, Y)
    with pytest.raises(TypeError, match="groups must hold integer indices, not 'c0'; for names of columns give a label"):
        DAPRegressor("group_lasso", 0.1, groups=[["c0", "c1"], ["c2"]]).fit(X, Y)
    with pytest.raises(TypeError, match=r"of a dict .*, \[groups\[name\] for name in X.columns\]"):
        DAPRegressor("group_lasso", 0.1, groups={"c0": "a"}).fit(X, Y)


def test_options_of_a_path_and_of_a_search():
    problem = ds.Problem(X, Y, regularizer=ds.L1(1.0))
    with pytest.raises(TypeError, match=r"path has no option 'n_lambdas' \(did you mean n_lams\?\)"):
        ds.path(problem, n_lambdas=5)
    with pytest.raises(TypeError, match=r"path has no option 'colour'; it has problem, n_lams, eps, lams, progress, algorithm"):
        ds.path(problem, colour=5)
    assert ds.path(problem, 3, max_iter=5).coefs.shape[-1] == 3
    with pytest.raises(ValueError, match=r"rule must be one of 'best', 'one_se'; got '1se' \(did you mean 'one_se'\?\)"):
        DAPRegressorCV(rule="1se").fit(X, Y)
    with pytest.raises(ValueError, match="n_jobs must be None or an integer other than 0, such as -1 for all cores; got 0"):
        DAPRegressorCV(n_jobs=0).fit(X, Y)


def test_complex_numbers_are_refused_without_printing_them():
    with pytest.raises(ValueError, match=r"^X must hold real numbers. Complex data not supported; got dtype complex128$"):
        DAPRegressor().fit(X * 1j, Y)


def test_names_that_are_places_are_compared(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X)
    model = DAPRegressor("l1", 0.1).fit(frame, Y)
    ds.models.save(model, tmp_path / "model.npz")
    for one in (model, ds.models.load(tmp_path / "model.npz")):
        np.testing.assert_allclose(one.predict(frame), one.predict(X))
        with pytest.raises(ValueError, match=r"their order is another one\nX\[sorted\(X.columns\)\] has them in their order"):
            one.predict(frame[list(range(P))[::-1]])
        with pytest.raises(ValueError, match=r"X lacks 1 of the .* columns that the model was fitted to: '0'"):
            one.predict(frame.set_axis(range(1, P + 1), axis=1))
        assert one._column_names is None  # so that pictures, and the columns of files, go by their places as before
    turned = DAPRegressor("l1", 0.1).fit(frame[list(range(P))[::-1]], Y)
    with pytest.raises(ValueError, match="their order is another one"):
        turned.predict(frame)
    with pytest.raises(ValueError, match="their order is another one"):
        model.partial_fit(frame[list(range(P))[::-1]], Y)


@pytest.mark.parametrize("kind", [DAPRegressor, DAPClassifier, DAPRegressorCV, DAPClassifierCV])
def test_masked_entries_are_refused(kind):
    y = Y if "Regressor" in kind.__name__ else TWO
    hidden = np.zeros(N, bool)
    hidden[3] = True
    masked = np.ma.masked_array(np.where(hidden[:, None], np.nan, X), mask=np.repeat(hidden[:, None], P, axis=1))
    with pytest.raises(TypeError, match="X must not be a masked array; fill or drop the masked entries first"):
        kind().fit(masked, y)
    with pytest.raises(TypeError, match="y must not be a masked array"):
        kind().fit(X, np.ma.masked_array(y, mask=hidden))
    with pytest.raises(TypeError, match="sample_weight must not be a masked array"):
        kind().fit(X, y, sample_weight=np.ma.masked_array(np.ones(N), mask=hidden))
    with pytest.raises(TypeError, match="X must not be a masked array"):
        kind().fit(X, y).predict(masked)


def test_an_array_that_hides_nothing_is_taken():
    assert np.array_equal(DAPRegressor("l1", 0.1).fit(np.ma.masked_array(X), Y).coef_, DAPRegressor("l1", 0.1).fit(X, Y).coef_)
    assert ds.Problem(np.ma.masked_array(X), Y).n == N


def test_a_dataset_is_answered_with_its_parts():
    data = ds.io.Dataset(X, Y, None, ("y",))
    for call in (lambda: DAPRegressor().fit(data, Y), lambda: ds.Problem(data, Y)):
        with pytest.raises(TypeError, match=r"X must be a table .*got a Dataset, which holds one: use data.X and data.y"):
            call()


def test_folds_that_need_groups_of_rows():
    rows = np.arange(N) // 6
    with pytest.raises(ValueError, match=r"cv=list\(GroupKFold\(.*\).split\(X, y, rows\)\) with a label for each row in rows"):
        DAPRegressorCV(alphas=3, cv=GroupKFold(5)).fit(X, Y)
    assert DAPRegressorCV(alphas=3, cv=list(GroupKFold(5).split(X, Y, rows))).fit(X, Y).scores_path_.shape == (3, 5)


@pytest.mark.parametrize("y", [Y, Y[:, None]], ids=["flat", "one column"])
def test_a_nuclear_norm_of_one_target_is_said(y):
    with pytest.warns(UserWarning, match="penalty 'nuclear' ties several targets together; of one it is the length"):
        DAPRegressor("nuclear", 0.1).fit(X, y)


def test_the_score_of_counts_is_that_of_scikit_learn():
    theirs = PoissonRegressor(alpha=0.1, tol=1e-10, max_iter=1000).fit(X, COUNTS)
    for loss in ("poisson", ds.Poisson()):
        ours = DAPRegressor("zero", loss=loss, l2=0.05, tol=1e-10).fit(X, COUNTS)
        assert ours.score(X, COUNTS) == pytest.approx(theirs.score(X, COUNTS), abs=1e-5)
        assert ours.score(X, COUNTS, WEIGHTS) == pytest.approx(theirs.score(X, COUNTS, WEIGHTS), abs=1e-5)
    two = DAPRegressor("zero", loss="poisson", l2=0.05).fit(X, np.column_stack([COUNTS, COUNTS + 1]))
    alone = DAPRegressor("zero", loss="poisson", l2=0.05).fit(X, COUNTS + 1)
    score = two.score(X, np.column_stack([COUNTS, COUNTS + 1]))
    assert score == pytest.approx((ours.score(X, COUNTS) + alone.score(X, COUNTS + 1)) / 2.0, abs=1e-3)
    with pytest.raises(ValueError, match="y must not be negative for the Poisson loss; got -1"):
        ours.score(X, COUNTS - COUNTS.min() - 1)
    assert ours.score(X, np.zeros(N)) == 0.0
    far = copy.copy(ours)
    far.intercept_ = -1e4  # all predictions are zero
    assert far.score(X, COUNTS) < -1.0


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (lambda: DAPRegressor(loss="mse").fit(X, Y), r"\(did you mean 'squared'\?\)"),
        (lambda: DAPRegressor(loss="squared_error").fit(X, Y), r"\(did you mean 'squared'\?\)"),
        (lambda: DAPRegressor(loss="log_loss").fit(X, Y), r"\(did you mean DAPClassifier\?\)"),
        (lambda: DAPClassifier(loss="log_loss").fit(X, TWO), r"\(did you mean 'logistic'\?\)"),
        (lambda: DAPClassifier(loss="mse").fit(X, TWO), r"\(did you mean DAPRegressor\?\)"),
        (lambda: DAPClassifier(loss="squared").fit(X, TWO), r"\(did you mean DAPRegressor\?\)"),
        (lambda: ds.Problem(X, Y, "log_loss"), r"\(did you mean 'logistic'\?\)"),
        (lambda: DAPRegressor(solver="saga"), r"no parameter 'solver' \(did you mean algorithm\?\)"),
        (lambda: DAPRegressor(normalize=True), r"no parameter 'normalize': scale the columns before, as by make_pipeline"),
        (lambda: ds.L1(), r"L1: lam, the strength, must be given, as in L1\(lam=\.\.\.\)"),
        (lambda: ds.GroupLasso(groups=2), r"lam, the strength, must be given, as in GroupLasso\(lam=\.\.\.\)"),
        (lambda: ds.GroupLasso(0.1), r"GroupLasso: groups must be given, as in GroupLasso\(groups=\.\.\.\)"),
        (lambda: ds.L1(alpha=0.1), r"L1 has no 'alpha': use lam"),
        (lambda: ds.FusedLasso(0.1, L1=0.1), r"FusedLasso has no 'L1': use l1"),
        (lambda: ds.Huber(colour=0.1), r"Huber has no 'colour'; it has delta"),
        (lambda: ds.L1(0.1, 0.2), r"takes 2 positional arguments but 3 were given"),
    ],
)
def test_names_of_other_packages_are_answered_with_ours(model, words):
    with pytest.raises((ValueError, TypeError), match=words):
        model()


def test_only_public_names_are_offered():
    assert [name for name in dir(ds) if not name.startswith("__")] == sorted(ds.__all__)
    assert "__version__" in dir(ds)


def times(kind):
    """Return a function that makes a table of two columns, of numbers or of times, and what is said of times."""
    days = np.arange(N).astype("M8[D]").astype("M8[ns]")
    since = days - days[0]
    if kind == "array":
        return lambda numbers: np.ones((N, 2)) if numbers else np.column_stack([days, days]), TypeError, "got dtype datetime64"
    if kind == "differences":
        return lambda numbers: np.ones((N, 2)) if numbers else np.column_stack([since, since]), TypeError, "got dtype timedelta"
    if kind in ("lists", "objects"):
        rows = [[day, day] for day in days]
        make = list if kind == "lists" else lambda rows: np.array(rows, dtype=object)
        return lambda numbers: [[1.0, 1.0]] * N if numbers else make(rows), TypeError, "X must hold real numbers; got "
    frames = pytest.importorskip(kind)
    table = frames.table if kind == "pyarrow" else frames.DataFrame
    said = "X must hold numbers only; code columns 'k', 'd' as numbers, or drop them"
    return lambda numbers: table({"k": np.ones(N), "d": np.ones(N)} if numbers else {"k": days, "d": days}), ValueError, said


@pytest.mark.parametrize("kind", ["array", "differences", "lists", "objects", "pandas", "polars", "pyarrow"])
def test_nothing_but_times_is_refused(kind):
    make, error, said = times(kind)
    for model, y in ((DAPRegressor("l1", alpha=0.1), Y), (DAPClassifier("l1", alpha=0.1), Y > 0.0)):
        with pytest.raises(error, match=said):
            model.fit(make(numbers=False), y)
        model.fit(make(numbers=True), y)
        with pytest.raises(error, match=said):
            model.predict(make(numbers=False))


def test_times_beside_numbers_are_named_alone():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"x": X[:, 0], "k": pd.date_range("2020", periods=N, tz="UTC")})
    with pytest.raises(ValueError, match="X must hold numbers only; code column 'k' as numbers, or drop it"):
        DAPRegressor().fit(frame, Y)


@pytest.mark.parametrize(("kind", "y"), [(DAPRegressorCV, Y), (DAPClassifierCV, Y > 0.0)])
def test_weights_that_are_zero_in_a_fold_are_said_to_be_so(kind, y):
    weights = np.ones(N)
    weights[N // 2 :] = 0.0
    way = r"leave out rows that weigh nothing, or shuffle the folds, as by cv=.*KFold\(2, shuffle=True\), or have fewer folds$"
    for folds, part, fold in (([0, 1], "held out", 1), ([1, 0], "fitted", 1)):
        halves = np.array_split(np.arange(N), 2)
        cv = [(halves[folds[0]], halves[folds[1]]), (halves[folds[1]], halves[folds[0]])]
        said = rf"sample_weight must not be zero in all rows of a fold that are {part}, as in fold {fold} of 2; {way}"
        with pytest.raises(ValueError, match=said):
            kind(alphas=2, cv=cv).fit(X, y, weights)
    assert kind(alphas=2, eps=0.1, cv=KFold(2, shuffle=True, random_state=0)).fit(X, y, weights).alpha_ > 0.0


def test_weights_of_classes_that_are_zero_in_a_fold_are_said_to_be_so():
    y = np.repeat(["a", "b"], [N // 2, N - N // 2])
    with pytest.raises(ValueError, match="class_weight must not be zero in all rows of a fold that are fitted, as in fold 1"):
        DAPClassifierCV(alphas=2, cv=KFold(2), class_weight={"b": 0.0}).fit(X, y)


def test_folds_of_one_class_are_a_warning():
    y = np.repeat(["a", "b"], [N // 2, N - N // 2])
    way = r"choice of a strength means little; use cv=StratifiedKFold\(2\), or folds that are shuffled"
    with pytest.warns(UserWarning, match=f"fitted in folds 1, 2 of 2 are of one class only, so that the {way}") as said:
        DAPClassifierCV(alphas=2, eps=0.1, cv=[(np.arange(N // 2, N), np.arange(N // 2)), (y == "a", y == "b")]).fit(X, y)
    assert said[0].filename == __file__
    lonely = np.array(["a"] + ["b"] * (N - 1))
    with pytest.warns(UserWarning, match="fold 1 of 3 are of one class only, .*; a class of a single row is not both"):
        DAPClassifierCV(alphas=2, eps=0.1, cv=KFold(3)).fit(X, lonely)


@pytest.mark.filterwarnings("error")
def test_folds_of_all_classes_are_no_warning():
    y = np.repeat(["a", "b"], [N // 2, N - N // 2])
    for cv in (None, StratifiedKFold(2), KFold(2, shuffle=True, random_state=0)):
        DAPClassifierCV(alphas=2, eps=0.1, cv=cv).fit(X, y)
    weights = np.where(np.arange(N) % 2 == 0, 1.0, 0.0)  # of one class throughout, of which no folds are the cause
    DAPClassifierCV(alphas=2, eps=0.1, cv=2).fit(X, np.where(weights > 0.0, "a", "b"), weights)
