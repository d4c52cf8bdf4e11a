"""Hostile numbers: whatever the shape and the size of the data, an answer is finite and optimal, or an error says why not."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csr_matrix

import dapsgd as ds

PHASES = [Phase.explicit, Phase.generate]  # to shrink an example costs more than to look at it
SETTINGS = settings(max_examples=40, deadline=None, derandomize=True, phases=PHASES, suppress_health_check=list(HealthCheck))

ORDINARY = st.floats(-10.0, 10.0, allow_subnormal=False)
HOSTILE = st.one_of(
    ORDINARY,
    st.sampled_from([0.0, -0.0, 5e-324, -1e-310, 1e-300, 1e-150, 1e150, 1e300, -1e300, 1.7e308, 1.0, -1.0]),
    st.floats(allow_nan=False, allow_infinity=False),
)


@st.composite
def matrices(draw, elements):
    """Draw data with everything that data should not have: doubled, constant and zero columns, and rank one."""
    n, p = draw(st.integers(1, 8)), draw(st.integers(1, 6))
    X = draw(hnp.arrays(np.float64, (n, p), elements=elements))
    for _ in range(draw(st.integers(0, 2))):
        j, k = draw(st.integers(0, p - 1)), draw(st.integers(0, p - 1))
        what = draw(st.sampled_from(["double", "constant", "zero", "rank one"]))
        if what == "double":
            X[:, j] = X[:, k]
        elif what == "constant":
            X[:, j] = draw(elements)
        elif what == "zero":
            X[:, j] = 0.0
        else:
            with np.errstate(all="ignore"):
                X = np.clip(np.outer(X[:, j], X[0]), -1e308, 1e308)
    return X


def laid_out(X, layout):
    """Return the same numbers in another place."""
    if layout == "Fortran":
        return np.asfortranarray(X)
    if layout == "strided":
        big = np.zeros((2 * X.shape[0], 3 * X.shape[1]), X.dtype)
        big[::2, ::3] = X
        return big[::2, ::3]
    if layout == "reversed":
        return X[::-1].copy()[::-1]
    if layout == "sparse":
        return csr_matrix(X)
    if layout == "other end first":
        return X.astype(X.dtype.newbyteorder(">"))
    return X


LAYOUTS = st.sampled_from(["C", "Fortran", "strided", "reversed", "sparse", "other end first"])


def terms(p):
    """Return strategies for regularisers on p coefficients: strength to regulariser."""
    return st.sampled_from(
        [
            ds.L1,
            lambda lam: ds.GroupLasso(lam, 1),  # every coefficient a group
            lambda lam: ds.GroupLasso(lam, p),  # one group of all
            lambda lam: ds.FusedLasso(lam),
            lambda lam: ds.Slope(lam * np.linspace(2.0, 1.0, p)),
        ]
    )


def solves(problem, algorithm, **options):
    """Solve without a warning; return None if an error says why it cannot be."""
    try:
        return ds.solve(problem, algorithm, **options)
    except (ds.DivergenceError, ds.NumbersTooLargeError):
        return None


@SETTINGS
@given(st.data())
def test_ordinary_numbers_in_hostile_shapes_are_solved(data):
    X = data.draw(matrices(ORDINARY))
    y = data.draw(hnp.arrays(np.float64, len(X), elements=ORDINARY))
    make = data.draw(terms(X.shape[1]))
    lam = data.draw(st.sampled_from([0.0, 1e-3, 0.1, 10.0]))
    intercept = data.draw(st.booleans())
    problem = ds.Problem(laid_out(X, data.draw(LAYOUTS)), y, regularizer=make(lam), l2=0.01, fit_intercept=intercept)
    tol = 1e-5
    best = ds.solve(problem, "fista", tol=1e-7, max_iter=1000)
    found = ds.solve(problem, tol=tol)
    assert np.isfinite(found.x).all()
    zero = problem.objective(np.zeros(problem.shape))
    assert found.objective <= best.objective + 2 * tol * (abs(best.objective) + zero) + 1e-12


@SETTINGS
@given(st.data())
def test_hostile_numbers_give_a_finite_answer_or_an_error(data):
    X = data.draw(matrices(HOSTILE))
    y = data.draw(hnp.arrays(np.float64, len(X), elements=HOSTILE))
    make, lam = data.draw(terms(X.shape[1])), data.draw(st.sampled_from([0.0, 1e-3, 1.0, 1e300]))
    algorithm = data.draw(st.sampled_from(["auto", "fista", "gram", "p-sgd", "dap-sgd", "dap-svrg"]))
    try:
        layout = data.draw(LAYOUTS)
        problem = ds.Problem(laid_out(X, "C" if algorithm == "gram" else layout), y, regularizer=make(lam))
    except ValueError:
        return
    run = solves(problem, algorithm, **({"max_iter": 200} if algorithm != "auto" else {}))
    if run is not None:
        assert np.isfinite(run.x).all()
        assert not math.isnan(run.objective)
        if run.converged:
            assert math.isfinite(run.objective)


LARGE = ["l1", "elastic_net", "group_lasso", "one group", "groups of one", "sparse_group_lasso", "slope", "nuclear"]


def large(name, lam, p):
    return {
        "l1": lambda: ds.L1(lam),
        "elastic_net": lambda: ds.ElasticNet(lam, 0.7),
        "group_lasso": lambda: ds.GroupLasso(lam, np.arange(p) % 2),
        "one group": lambda: ds.GroupLasso(lam, p),
        "groups of one": lambda: ds.GroupLasso(lam, 1),
        "sparse_group_lasso": lambda: ds.SparseGroupLasso(lam, np.arange(p) % 2, 0.5),
        "slope": lambda: ds.Slope(np.full(p, lam)),
        "nuclear": lambda: ds.NuclearNorm(lam),
    }[name]()


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [*((name, "auto") for name in LARGE), ("l1", "fista"), ("group_lasso", "fista")],
)
def test_above_lam_max_the_answer_is_exactly_zero(name, algorithm):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        n, p = int(rng.integers(1, 30)), int(rng.integers(2, 8))
        X = rng.standard_normal((n, p)) * 10.0 ** rng.integers(-3, 4)
        y = rng.standard_normal((n, 2) if name == "nuclear" else n)
        intercept = bool(seed % 2)
        limit = ds.Problem(X, y, regularizer=large(name, 1.0, p), fit_intercept=intercept).lam_max()
        if not math.isfinite(limit) or limit == 0.0:
            continue
        problem = ds.Problem(X, y, regularizer=large(name, 1.001 * limit, p), fit_intercept=intercept)
        found = ds.solve(problem, algorithm, tol=1e-6)
        assert not found.x.any(), (seed, found)
        below = ds.Problem(X, y, regularizer=large(name, 0.5 * limit, p), fit_intercept=intercept)
        assert ds.solve(below, tol=1e-8).x.any()


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-30, 1e30, 1e140])
@pytest.mark.parametrize("algorithm", ["auto", "fista", "dap-svrg"])
def test_the_unit_of_the_target_does_not_matter(scale, algorithm):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 5))
    y = X[:, 0] + 0.1 * rng.standard_normal(30)
    plain = ds.solve(ds.Problem(X, y, regularizer=ds.L1(0.1)), algorithm, tol=1e-10, seed=0)
    scaled = solves(ds.Problem(X, scale * y, regularizer=ds.L1(0.1 * scale)), algorithm, tol=1e-10, seed=0)
    if scaled is not None and scaled.converged and scale > 1e-100:
        np.testing.assert_allclose(scaled.x, scale * plain.x, rtol=1e-3, atol=1e-4 * scale)
    if scaled is not None:
        assert np.isfinite(scaled.x).all()


@SETTINGS
@given(hnp.arrays(np.float64, hnp.array_shapes(min_dims=1, max_dims=1, max_side=12), elements=HOSTILE), st.data())
def test_a_prox_of_anything_is_finite(v, data):
    make = data.draw(terms(len(v)))
    step = data.draw(st.sampled_from([0.0, 1e-300, 1e-3, 1.0, 1e300]))
    lam = data.draw(st.sampled_from([0.0, 1e-300, 1.0, 1e300]))
    out = ds.prox(make(lam), v, step)
    assert np.isfinite(out).all()
    if step == 0.0 or lam == 0.0:
        np.testing.assert_array_equal(out, v)


def test_the_same_seed_and_one_worker_give_the_same_bits_and_several_the_same_optimum():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 12))
    problem = ds.Problem(X, X[:, 0] + rng.standard_normal(300), regularizer=ds.FusedLasso(0.05), l2=0.01)
    best = ds.solve(problem, "fista", tol=1e-13)
    for seed in range(50):
        run = ds.solve(problem, "dap-svrg", workers=3, tol=1e-8, seed=seed, max_passes=1000)
        assert run.converged
        assert run.objective - best.objective <= 1e-8 * best.objective
    first, second = (ds.solve(problem, "dap-svrg", workers=1, tol=1e-8, seed=7) for _ in range(2))
    assert np.array_equal(first.x, second.x)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("algorithm", ["auto", "fista", "gram", "dap-sgd", "dap-svrg", "dave-rpg", "working-set"])
def test_columns_of_zeros_have_coefficients_of_zero(algorithm, kind):
    for intercept in (False, True):
        problem = ds.Problem(np.zeros((50, 4), kind), np.arange(50.0), regularizer=ds.L1(0.1), fit_intercept=intercept)
        result = ds.solve(problem, algorithm, seed=0, max_passes=3)
        assert not result.x.any()
        assert np.isfinite(result.intercept)


@pytest.mark.parametrize("scale", [1e300, 1e160, 1e-170])
def test_a_gap_is_known_where_no_gram_matrix_can_be_made(scale):
    rng = np.random.default_rng(0)
    X, Y = scale * rng.standard_normal((30, 3)), rng.standard_normal((30, 2))
    problem = ds.Problem(X, Y, regularizer=ds.NuclearNorm(0.1))
    gap = problem.duality_gap(np.zeros((3, 2)))
    assert math.isfinite(gap)
    assert gap <= problem.objective(np.zeros((3, 2)))
