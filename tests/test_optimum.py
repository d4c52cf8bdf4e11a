"""FISTA finds the optimum that cvxpy finds, for every loss with every regulariser of the registries."""

import contextlib
import functools
import warnings

import cvxpy as cp
import numpy as np
import pytest

import dapsgd as ds

from . import cases


def index_arrays(groups, rows):
    """The groups as a list of index arrays, found the plain way."""
    if isinstance(groups, int):
        return [list(range(start, start + groups)) for start in range(0, rows, groups)]
    if np.ndim(groups[0]) == 0:
        return [[j for j in range(rows) if groups[j] == label] for label in sorted(set(groups))]
    return list(groups)


def group_norms(h, w):
    members = index_arrays(h.groups, w.shape[0])
    weights = np.ones(len(members)) if h.weights is None else h.weights
    norm = cp.norm2 if w.ndim == 1 else functools.partial(cp.norm, p="fro")
    return sum(c * norm(w[list(g)]) for g, c in zip(members, weights, strict=True))


def sorted_l1(h, w):
    steps = np.append(h.lams, 0.0)
    return sum((steps[k] - steps[k + 1]) * cp.sum_largest(cp.abs(w), k + 1) for k in range(len(h.lams)))


PENALTIES = {
    "zero": lambda h, w: cp.Constant(0.0),
    "l1": lambda h, w: h.lam * cp.sum(cp.abs(w)),
    "elastic_net": lambda h, w: h.lam * (h.ratio * cp.sum(cp.abs(w)) + 0.5 * (1.0 - h.ratio) * cp.sum_squares(w)),
    "group_lasso": lambda h, w: h.lam * group_norms(h, w),
    "sparse_group_lasso": lambda h, w: h.lam * (h.ratio * cp.sum(cp.abs(w)) + (1.0 - h.ratio) * group_norms(h, w)),
    "fused_lasso": lambda h, w: h.lam * cp.sum(cp.abs(w[1:] - w[:-1])) + h.l1 * cp.sum(cp.abs(w)),
    "nuclear": lambda h, w: h.lam * (cp.norm2(w) if w.ndim == 1 else cp.normNuc(w)),
    "slope": sorted_l1,
    "box": lambda h, w: cp.Constant(0.0),
    "non_negative": lambda h, w: h.lam * (h.ratio * cp.sum(w) + 0.5 * (1.0 - h.ratio) * cp.sum_squares(w)),
}

# Of predictions and targets, both n x q: an expression whose sum of entries is the loss of all rows, one row each.
LOSSES = {
    "squared": lambda f, p, y: f.scale * cp.square(p - y),
    "logistic": lambda f, p, y: f.scale * cp.logistic(-cp.multiply(y, p)),
    "multinomial": lambda f, p, y: (
        f.scale * (cp.log_sum_exp(p, axis=1, keepdims=True) - cp.sum(cp.multiply(y, p), axis=1, keepdims=True))
    ),
    "huber": lambda f, p, y: 0.5 * cp.huber(p - y, f.delta),
    "squared_hinge": lambda f, p, y: f.scale * cp.square(cp.pos(1.0 - cp.multiply(y, p))),
    "poisson": lambda f, p, y: f.scale * (cp.exp(p) - cp.multiply(y, p)),
}


def penalty_in_cvxpy(name, h, w):
    """A regulariser of the registry as an expression and constraints of cvxpy."""
    bounds = [w[...] >= h.low] if name == "box" and np.isfinite(h.low) else []
    bounds += [w[...] <= h.high] if name == "box" and np.isfinite(h.high) else []
    bounds += [w[...] >= 0.0] if name == "non_negative" else []
    return PENALTIES[name](h, w), bounds


def minimise_in_cvxpy(objective, constraints):
    """The least value; at the tightest tolerance that the solver can do, and how tight that was is asserted later."""
    problem = cp.Problem(cp.Minimize(objective), constraints)
    for tolerance in (1e-11, 1e-9, 1e-8):
        with warnings.catch_warnings(), contextlib.suppress(cp.SolverError):
            warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
            names = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
            problem.solve(solver=cp.CLARABEL, use_quad_obj=False, **dict.fromkeys(names, tolerance))
            return float(problem.value)
    raise AssertionError("cvxpy cannot solve it")


def optimum_in_cvxpy(problem, loss, regularizer):
    """The least objective and where it is, from nothing but the problem's data."""
    X, y, weights = problem._rows.X, problem._targets, problem._weights
    w = cp.Variable(problem.shape)
    column = w if w.ndim == 2 else cp.reshape(w, (problem.p, 1), order="C")
    predictions = X @ column
    b = cp.Variable((1, y.shape[1]))
    if problem.fit_intercept:
        predictions = predictions + np.ones((problem.n, 1)) @ b
    rows = LOSSES[loss](problem.loss, predictions, y)
    smooth = cp.sum(cp.multiply(np.outer(weights, np.ones(rows.shape[1])), rows)) / problem.n
    penalty, constraints = penalty_in_cvxpy(regularizer, problem.regularizer, w)
    value = minimise_in_cvxpy(smooth + problem.l2 * cp.sum_squares(w) + penalty, constraints)
    if not problem.fit_intercept:
        return value, w.value, 0.0
    return value, w.value, b.value[0] if w.ndim == 2 else b.value[0, 0]


def check(problem, loss, regularizer):
    result = ds.solve(problem, "fista", tol=1e-12)
    assert result.converged
    expected, w, intercept = optimum_in_cvxpy(problem, loss, regularizer)
    accuracy = 1e-7 * max(1.0, abs(expected))
    assert abs(result.objective - expected) <= accuracy
    # The objective is the one cvxpy has been given, and its answer, made feasible, is no better than ours.
    if regularizer == "box":
        w = np.clip(w, problem.regularizer.low, problem.regularizer.high)
    if regularizer == "non_negative":
        w = np.maximum(w, 0.0)
    theirs = problem.objective(w, intercept)
    assert abs(theirs - expected) <= accuracy
    assert result.objective <= theirs + 1e-12 * max(1.0, abs(theirs))
    assert problem.residual(result.x, result.intercept) <= 1e-10
    return result


every_regularizer = pytest.mark.parametrize("regularizer", ds.REGULARIZERS)
every_loss = pytest.mark.parametrize("loss", ds.LOSSES)


@every_regularizer
@every_loss
def test_the_optimum_is_cvxpys(loss, regularizer):
    problem = cases.problem(loss, regularizer, l2=0.05)
    result = check(problem, loss, regularizer)
    assert np.abs(result.x).max() > 1e-3


@every_regularizer
def test_several_targets(regularizer):
    check(cases.problem("squared", regularizer, multi=True, l2=0.01), "squared", regularizer)


@pytest.mark.parametrize("loss", ["logistic", "huber", "squared_hinge", "poisson"])
def test_several_targets_of_low_rank(loss):
    check(cases.problem(loss, "nuclear", multi=True, l2=0.05), loss, "nuclear")


@every_regularizer
def test_without_l2(regularizer):
    check(cases.problem("squared", regularizer, seed=1), "squared", regularizer)


@pytest.mark.parametrize(
    ("loss", "regularizer"),
    [
        ("squared", "fused_lasso"),
        ("squared", "box"),
        ("logistic", "l1"),
        ("multinomial", "nuclear"),
        ("huber", "slope"),
        ("squared_hinge", "sparse_group_lasso"),
        ("poisson", "group_lasso"),
    ],
)
def test_weights_and_intercept(loss, regularizer):
    weights = np.random.default_rng(0).uniform(0.0, 2.0, 40)
    weights[::7] = 0.0
    problem = cases.problem(loss, regularizer, l2=0.02, sample_weight=weights, fit_intercept=True, seed=2)
    result = check(problem, loss, regularizer)
    assert np.abs(result.intercept).max() > 1e-6


@every_loss
def test_sparse_rows_have_the_optimum_of_dense_rows(loss):
    sparse = cases.problem(loss, "l1", sparse=True, l2=0.05, fit_intercept=True)
    data = sparse._rows
    from scipy.sparse import csr_matrix

    X = csr_matrix((data.data, data.indices, data.indptr), shape=(sparse.n, sparse.p)).toarray()
    y = sparse._targets if len(sparse.shape) == 2 else sparse._targets[:, 0]
    dense = ds.Problem(X, y, sparse.loss, sparse.regularizer, l2=0.05, fit_intercept=True)
    ours, theirs = (ds.solve(problem, "fista", tol=1e-12) for problem in (sparse, dense))
    np.testing.assert_allclose(ours.x, theirs.x, atol=1e-9)
    np.testing.assert_allclose(ours.intercept, theirs.intercept, atol=1e-9)
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-12)


@every_regularizer
def test_the_answer_does_not_depend_on_the_start(regularizer):
    problem = cases.problem("squared", regularizer, l2=0.05)
    x0 = np.random.default_rng(0).standard_normal(problem.shape)
    kept = x0.copy()
    cold, warm = ds.solve(problem, "fista", tol=1e-12), ds.solve(problem, "fista", tol=1e-12, x0=x0)
    np.testing.assert_allclose(cold.x, warm.x, atol=1e-10)
    assert (x0 == kept).all()
    assert not np.shares_memory(warm.x, x0)


@every_regularizer
def test_in_single_precision(regularizer):
    double = ds.solve(cases.problem("squared", regularizer, l2=0.05), "fista", tol=1e-12)
    single = ds.solve(cases.problem("squared", regularizer, l2=0.05, dtype=np.float32), "fista", tol=1e-6)
    assert single.x.dtype == np.float32
    assert single.objective == pytest.approx(double.objective, rel=1e-5)
    np.testing.assert_allclose(single.x, double.x, atol=1e-4)


def test_backtracking_reaches_the_accuracy_of_the_numbers():
    # Near the optimum f changes by less than its rounding error: a line search that trusts f goes astray there.
    for dtype, tol in ((np.float64, 1e-13), (np.float32, 1e-5)):
        result = ds.solve(cases.problem("poisson", "group_lasso", l2=0.05, dtype=dtype), "fista", tol=tol, max_iter=2000)
        assert result.converged
