"""The paper's constants, steps and bounds are what its appendix says, and they hold for the problems they are made for."""

import math
from typing import NamedTuple

import numpy as np
import pytest

import dapsgd as ds
from dapsgd import rows, theory
from dapsgd.steps import step_at

from . import cases
from .test_reference import in_numpy

CONSTANTS = [
    theory.Constants(L=2.0, mu=1.0, C_f=1.0, C_h=1.0, max_delay=4),
    theory.Constants(L=1.0, mu=1.0, C_f=0.0, C_h=3.0, max_delay=1),
    theory.Constants(L=30.0, mu=0.2, C_f=5.0, C_h=0.1, max_delay=2),
    theory.Constants(L=0.7, mu=0.05, C_f=2.5, C_h=0.0, max_delay=16),
]


def first_step(step):
    return step_at(step.rule(math.inf), 0)


@pytest.mark.parametrize("known", CONSTANTS)
@pytest.mark.parametrize("above", [0.1, 3.0, 1e4])
def test_constants_are_those_of_the_appendix(known, above):
    L, mu, tau = known.L, known.mu, known.max_delay
    u = (2 * tau - 1) * mu + above
    twice, once = (mu + u) / (mu + u - 2 * mu * tau), (mu + u) / (mu + u - mu * tau)
    noise = (16 * tau + 8) * known.C_f + (43 * tau + 23) * known.C_h
    assert known.tau == tau
    assert known.C1(u) == pytest.approx((2 * L**2 * twice + 48 * tau * L**2 + 8 * tau * L**2 * twice) * once + 18 * L**2)
    assert known.C2(u) == pytest.approx(noise * (mu + u) ** 2 / (mu + u - 2 * mu * tau) ** 2)
    assert known.C3(u) == pytest.approx(u / (u - mu * tau))
    assert pytest.approx((2 + 56 * tau) * L**2) == known.C4
    assert pytest.approx(noise) == known.C5


@pytest.mark.parametrize("known", CONSTANTS)
def test_the_smallest_u_is_allowed_and_no_smaller_one_is(known):
    L, mu, tau = known.L, known.mu, known.tau

    def short_enough(u):
        return 1.0 / (mu + u) <= min(mu / (4.0 * known.C1(u) * tau), 1.0 / L) * (1.0 + 1e-9)

    u = known.smallest_u()
    assert u > (2 * tau - 1) * mu
    assert short_enough(u)
    assert 0.999 * u > (2 * tau - 1) * mu  # so it is the other condition that binds
    assert not short_enough(0.999 * u)


@pytest.mark.parametrize("known", CONSTANTS)
@pytest.mark.parametrize("T", [1, 100, 10**6])
def test_the_smallest_v_is_allowed_and_no_smaller_one_is(known, T):
    longest = min(known.mu / (4.0 * known.C4 * known.tau), 1.0 / known.L)
    v = known.smallest_v(T)
    assert 1.0 / (v * math.sqrt(T)) <= longest * (1.0 + 1e-12)
    assert 1.0 / (0.999 * v * math.sqrt(T)) > longest


@pytest.mark.parametrize("known", CONSTANTS)
def test_the_first_steps_are_as_short_as_the_theorems_want(known):
    one, two = known.theorem1(), known.theorem2(1000)
    assert first_step(one) == pytest.approx(1.0 / (known.mu + known.smallest_u()))
    assert first_step(one) <= min(known.mu / (4.0 * known.C1(one.u) * known.tau), 1.0 / known.L) * (1.0 + 1e-9)
    assert first_step(two) == pytest.approx(1.0 / (known.smallest_v(1000) * math.sqrt(1000)))
    assert first_step(two) <= min(known.mu / (4.0 * known.C4 * known.tau), 1.0 / known.L) * (1.0 + 1e-9)
    assert known.theorem2(1000, v=7.5) == ds.Theorem2(7.5, 1000)


def test_solve_takes_the_theorems_steps():
    problem = cases.problem("squared", "fused_lasso", l2=0.1)
    known = theory.constants(problem, max_delay=3)
    best = ds.solve(problem, "fista", tol=1e-10).x
    for step, average in ((known.theorem1(), False), (known.theorem2(2000), True)):
        run = ds.solve(
            problem,
            "dap-sgd",
            runtime=ds.Simulated(work=5.0, apply=1.0),
            workers=3,
            step=step,
            max_iter=2000,
            tol=0,
            seed=0,
            average=average,
            x_star=best,
        )
        assert run.trace.distance[-1] < run.trace.distance[0]


def iterate_appendix(C, noise, mu, tau, eta, start):
    """a_(t+1) = (1 - mu eta_t) a_t + C sum_(p=0)^(2 tau) eta_(t-p)^2 a_(t-p) + noise eta_t^2, for all the steps given."""
    a = np.empty(len(eta) + 1)
    a[0] = start
    for t in range(len(eta)):
        past = slice(max(t - 2 * tau, 0), t + 1)
        a[t + 1] = (1.0 - mu * eta[t]) * a[t] + C * (eta[past] ** 2 * a[past]).sum() + noise * eta[t] ** 2
    return a


@pytest.mark.parametrize("known", CONSTANTS)
@pytest.mark.parametrize("distance", [0.0, 0.3, 20.0])
@pytest.mark.parametrize("factor", [1.0, 5.0])
def test_the_first_bound_dominates_the_recursion(known, distance, factor):
    u = factor * known.smallest_u()
    t = np.arange(4000)
    eta = 1.0 / (known.mu * (t + 1.0) + u)
    a = iterate_appendix(known.C1(u), known.C2(u), known.mu, known.tau, eta, distance**2)
    bound = known.bound1(t + 1, distance, u)
    assert bound.shape == t.shape
    assert (bound >= a[1:] * (1.0 - 1e-12)).all()
    if factor == 1.0:
        np.testing.assert_array_equal(bound, known.bound1(t + 1, distance))


@pytest.mark.parametrize("known", CONSTANTS)
@pytest.mark.parametrize("distance", [0.0, 0.3, 20.0])
@pytest.mark.parametrize("factor", [1.0, 5.0])
def test_the_second_bound_dominates_the_mean_of_the_recursion(known, distance, factor):
    for T in (1, 10, 300, 3000):
        v = factor * known.smallest_v(T)
        eta = np.full(T, 1.0 / (v * math.sqrt(T)))
        a = iterate_appendix(known.C4, known.C5, known.mu, known.tau, eta, distance**2)
        assert known.bound2(T, distance, v) >= a.mean() * (1.0 - 1e-12)


def test_bounds_fall_as_the_theorems_say():
    known = CONSTANTS[0]
    T = np.array([1e8, 1e9, 1e10])
    first = known.bound1(T, 1.0)
    assert (np.diff(first) < 0).all()
    slope = known.C2(known.smallest_u()) / known.mu**2  # of bound1 times T against log T
    assert np.diff(first * T)[1] == pytest.approx(slope * math.log(10.0), rel=0.01)
    second = known.bound2(T, 1.0, v=100.0)
    assert second[1] / second[2] == pytest.approx(math.sqrt(10.0), rel=0.1)


def test_no_delay_counts_as_one():
    none, one = (theory.Constants(L=3.0, mu=0.5, C_f=2.0, C_h=1.0, max_delay=delay) for delay in (0, 1))
    assert none.tau == one.tau == 1
    assert none.max_delay == 0
    assert (none.C1(9.0), none.C2(9.0), none.C3(9.0), none.C4, none.C5) == (
        one.C1(9.0),
        one.C2(9.0),
        one.C3(9.0),
        one.C4,
        one.C5,
    )
    assert none.theorem1() == one.theorem1()
    assert none.theorem2(50) == one.theorem2(50)
    assert none.bound1(70, 2.0) == one.bound1(70, 2.0)
    assert none.bound2(70, 2.0, 1e4) == one.bound2(70, 2.0, 1e4)


@pytest.mark.parametrize("share", [-0.9, 0.0, 0.3, 0.5, 0.8, 1.0, 1.5])
def test_a_u_that_the_first_theorem_forbids_has_no_bound(share):
    known = CONSTANTS[0]
    with pytest.raises(ValueError, match="u must"):
        known.bound1(100, 1.0, u=share * (2 * known.tau - 1) * known.mu)


def test_a_v_that_the_second_theorem_forbids_has_no_bound():
    known = CONSTANTS[0]
    with pytest.raises(ValueError, match="v must"):
        known.bound2(100, 1.0, v=0.1 * known.smallest_v(100))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"fit_intercept": True},
        {"sample_weight": np.linspace(0.0, 2.0, 40)},
        {"fit_intercept": True, "sample_weight": np.linspace(0.5, 3.0, 40), "l2": 0.3},
        {"sparse": True},
        {"sparse": True, "fit_intercept": True, "l2": 0.02},
        {"multi": True, "l2": 0.1},
        {"dtype": np.float32, "l2": 0.1},
    ],
)
def test_strong_convexity_of_squares_is_the_smallest_eigenvalue(options):
    problem = cases.problem("squared", "l1", **options)
    X = problem._rows.X if not options.get("sparse") else rows.matrix(problem._rows).toarray()
    X = X.astype(np.float64)
    penalised = np.ones(X.shape[1])
    if options.get("fit_intercept"):
        X = np.column_stack([X, np.ones(len(X))])
        penalised = np.append(penalised, 0.0)
    weights = options.get("sample_weight", np.ones(len(X)))
    hessian = 2.0 * problem.loss.scale * (X.T @ np.diag(weights) @ X) / len(X) + 2.0 * problem.l2 * np.diag(penalised)
    smallest = np.linalg.eigvalsh(hessian)[0]
    assert smallest > 1e-3
    assert theory.strong_convexity(problem) == pytest.approx(smallest, rel=1e-6)
    assert theory.strong_convexity(problem) <= smallest * (1.0 + 1e-12)
    assert theory.strong_convexity(problem) <= problem.lipschitz()


def test_strong_convexity_of_logistic_regression_is_that_of_l2():
    assert theory.strong_convexity(cases.problem("logistic", "l1", l2=0.3)) == 0.6
    assert theory.strong_convexity(cases.problem("logistic", "l1")) == 0.0
    assert theory.strong_convexity(cases.problem("logistic", "l1", l2=0.3, fit_intercept=True)) == 0.0
    assert theory.strong_convexity(cases.problem("squared", "l1", n=5, l2=0.3)) == 0.6


def test_linearly_dependent_columns_have_no_strong_convexity():
    for seed in range(10):
        X = np.random.default_rng(seed).standard_normal((30, 6))
        X[:, 5] = X[:, 0] + X[:, 1]
        problem = ds.Problem(X, X[:, 0], regularizer=ds.L1(0.1))
        assert theory.strong_convexity(problem) == 0.0
        with pytest.raises(ValueError, match="mu"):
            theory.constants(problem, max_delay=2)


def brute_force_variance(problem, x):
    grad, _ = in_numpy(problem)
    rows = np.stack([grad(x, i).ravel() for i in range(problem.n)]).astype(np.float64)
    return float(((rows - rows.mean(axis=0)) ** 2).sum(axis=1).mean())


@pytest.mark.parametrize("loss", ds.LOSSES)
@pytest.mark.parametrize("options", [{}, {"fit_intercept": True, "l2": 0.2}, {"sample_weight": np.linspace(0.0, 2.0, 40)}])
def test_variance_of_the_gradients_equals_a_loop_over_rows(loss, options):
    problem = cases.problem(loss, "l1", **options)
    x = 0.3 * np.random.default_rng(1).standard_normal(problem.packed_shape)
    assert theory.gradient_variance(problem, x) == pytest.approx(brute_force_variance(problem, x), rel=1e-10)


@pytest.mark.parametrize("loss", ["squared", "huber", "logistic"])
@pytest.mark.parametrize("options", [{}, {"fit_intercept": True, "l2": 0.2}])
def test_variance_of_the_gradients_with_several_targets(loss, options):
    problem = cases.problem(loss, "l1", multi=True, **options)
    x = 0.3 * np.random.default_rng(1).standard_normal(problem.packed_shape)
    assert theory.gradient_variance(problem, x) == pytest.approx(brute_force_variance(problem, x), rel=1e-10)


def test_variance_of_the_gradients_of_sparse_rows():
    from scipy.sparse import csr_matrix

    dense = cases.problem("huber", "l1", fit_intercept=True)
    X = np.where(np.abs(dense._rows.X) > 0.8, dense._rows.X, 0.0)
    problems = [ds.Problem(data, dense._targets[:, 0], ds.Huber(0.7), fit_intercept=True) for data in (X, csr_matrix(X))]
    x = np.random.default_rng(1).standard_normal(dense.packed_shape)
    variances = [theory.gradient_variance(problem, x) for problem in problems]
    assert variances[0] == pytest.approx(variances[1], rel=1e-12)
    assert variances[0] == pytest.approx(brute_force_variance(problems[0], x), rel=1e-10)


@pytest.mark.parametrize("loss", ["squared", "logistic", "huber", "squared_hinge", "multinomial"])
@pytest.mark.parametrize("radius", [0.0, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("multi", [False, True])
def test_the_bound_on_the_variance_holds_in_the_ball(loss, radius, multi):
    problem = cases.problem(loss, "l1", multi=multi, l2=0.1, fit_intercept=True, sample_weight=np.linspace(0.2, 2.0, 40))
    rng = np.random.default_rng(2)
    center = 0.2 * rng.standard_normal(problem.packed_shape)
    bound = theory.variance_bound(problem, center, radius)
    for _ in range(50):
        way = rng.standard_normal(center.shape)
        x = center + radius * rng.random() ** 0.1 * way / np.linalg.norm(way)
        assert theory.gradient_variance(problem, x) <= bound * (1.0 + 1e-12)


def test_constants_of_a_problem_belong_together():
    problem = cases.problem("squared", "l1", l2=0.1)
    best = ds.solve(problem, "fista", tol=1e-12).x
    known = theory.constants(problem, max_delay=5)
    assert problem.lipschitz() == known.L
    assert known.mu == theory.strong_convexity(problem)
    assert known.C_f == pytest.approx(theory.variance_bound(problem, best, np.linalg.norm(best)), rel=1e-5)
    assert known.C_h == pytest.approx(0.05**2 * cases.P)
    assert known.max_delay == 5
    given = theory.constants(problem, max_delay=5, x_star=best, radius=0.5, batch_size=4)
    assert given.C_f == pytest.approx(theory.variance_bound(problem, best, 0.5) / 4)
    from_best = theory.constants(problem, max_delay=5, x0=best, x_star=best)
    assert from_best.C_f == pytest.approx(theory.gradient_variance(problem, best))


SUBGRADIENTS = {
    "l1": (ds.L1(0.3), False),
    "l1 of a matrix": (ds.L1(0.3), True),
    "groups": (ds.GroupLasso(0.3, cases.UNEVEN), False),
    "weighted groups": (ds.GroupLasso(0.3, cases.LABELS, weights=[1.0, 0.2, 3.0]), False),
    "groups of rows": (ds.GroupLasso(0.3, cases.UNEVEN), True),
    "fused": (ds.FusedLasso(0.3), False),
    "fused columns": (ds.FusedLasso(0.3), True),
    "fused and sparse": (ds.FusedLasso(0.3, 0.2), False),
    "nuclear": (ds.NuclearNorm(0.3), True),
    "nuclear of a vector": (ds.NuclearNorm(0.3), False),
}


@pytest.mark.parametrize("name", SUBGRADIENTS)
def test_no_subgradient_is_longer_than_the_bound(name):
    regularizer, multi = SUBGRADIENTS[name]
    rng = np.random.default_rng(3)
    X, shape = rng.standard_normal((40, cases.P)), (cases.P, cases.Q) if multi else (cases.P,)
    problem = ds.Problem(X, X @ rng.standard_normal(shape), regularizer=regularizer, l2=0.1)
    C_h = theory.constants(problem, max_delay=1, x_star=np.zeros(shape), radius=1.0).C_h
    alternating = np.resize([10.0, -10.0], shape)
    points = [alternating, np.ascontiguousarray(np.resize([10.0, -10.0], shape[::-1]).T)]
    points += [scale * rng.standard_normal(shape) for scale in (1e-3, 0.1, 1.0, 10.0) for _ in range(20)]
    longest = 0.0
    for v in points:
        for step in (0.01, 1.0, 20.0):
            subgradient = (v - ds.prox(regularizer, v, step)) / step
            longest = max(longest, float((subgradient**2).sum()))
    assert longest <= C_h * (1.0 + 1e-9)
    assert longest >= 0.5 * C_h  # tight
    assert theory.printed_subgradient_bound(problem) ** 2 >= C_h


def test_the_printed_bounds_are_the_papers():
    rng = np.random.default_rng(3)
    X, m, q = rng.standard_normal((40, cases.P)), cases.P, cases.Q

    def printed(regularizer, y):
        return theory.printed_subgradient_bound(ds.Problem(X, y, regularizer=regularizer))

    y, Y = X[:, 0], X[:, :q]
    assert printed(ds.L1(2.0), y) == 2.0 * m
    assert printed(ds.GroupLasso(2.0, cases.UNEVEN), y) == 2.0 * len(cases.UNEVEN)
    assert printed(ds.FusedLasso(2.0), y) == pytest.approx(2.0 * math.sqrt(2.0) * m * (m - 1))
    assert printed(ds.NuclearNorm(2.0), Y) == 2.0 * (q * q + q)
    assert printed(ds.Slope(np.ones(m)), y) == math.inf


class Unbounded(NamedTuple):
    """A regulariser that does not say how long its subgradients are."""

    lam: float

    def value(self, w):
        return 0.0

    def prox(self, v, step, out):
        for j in range(v.size):
            out[j] = v[j]


RNG = np.random.default_rng(0)
X = RNG.standard_normal((20, 6))
Y = RNG.standard_normal(20)
GOOD = ds.Problem(X, Y, regularizer=ds.L1(0.1), l2=0.1)

BAD = {
    "not strongly convex": (lambda: theory.constants(ds.Problem(X[:4], Y[:4], regularizer=ds.L1(0.1)), max_delay=2), "mu"),
    "negative radius": (lambda: theory.constants(GOOD, max_delay=2, radius=-1.0), "radius"),
    "nan radius": (lambda: theory.constants(GOOD, max_delay=2, radius=np.nan), "radius"),
    "no batch": (lambda: theory.constants(GOOD, max_delay=2, batch_size=0), "batch_size"),
    "half a batch": (lambda: theory.constants(GOOD, max_delay=2, batch_size=0.5), "batch_size"),
    "shape of x_star": (lambda: theory.constants(GOOD, max_delay=2, x_star=np.zeros(5)), "x_star"),
    "nan in x_star": (lambda: theory.constants(GOOD, max_delay=2, x_star=np.full(6, np.nan)), "x_star"),
    "shape of x0": (lambda: theory.constants(GOOD, max_delay=2, x0=np.zeros(5)), "x0"),
    "negative delay": (lambda: theory.constants(GOOD, max_delay=-1), "max_delay"),
    "half a delay": (lambda: theory.constants(GOOD, max_delay=1.5), "max_delay"),
    "no bound on subgradients": (
        lambda: theory.constants(ds.Problem(X, Y, regularizer=Unbounded(1.0), l2=0.1), max_delay=2),
        "Unbounded.*subgradient_bound",
    ),
    "infinite subgradients": (
        lambda: theory.constants(ds.Problem(X, Y, regularizer=ds.Box(-1.0, 1.0), l2=0.1), max_delay=2),
        "bounded subgradient",
    ),
    "not smooth": (lambda: theory.constants(ds.Problem(X, np.ones(20), ds.Poisson(), ds.L1(0.1), l2=0.1), max_delay=2), "L "),
    "mu above L": (lambda: theory.Constants(L=1.0, mu=2.0, C_f=1.0, C_h=1.0, max_delay=1), "mu"),
    "no mu": (lambda: theory.Constants(L=1.0, mu=0.0, C_f=1.0, C_h=1.0, max_delay=1), "mu"),
    "negative C_f": (lambda: theory.Constants(L=1.0, mu=1.0, C_f=-1.0, C_h=1.0, max_delay=1), "C_f"),
    "no iterations": (lambda: CONSTANTS[0].bound1(0, 1.0), "T "),
    "no T": (lambda: CONSTANTS[0].bound1([], 1.0), "T "),
    "no iterations for v": (lambda: CONSTANTS[0].smallest_v(0), "T "),
    "negative distance": (lambda: CONSTANTS[0].bound1(10, -1.0), "distance"),
    "negative v": (lambda: CONSTANTS[0].bound2(10, 1.0, v=-1.0), "v "),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_named(name):
    call, match = BAD[name]
    with pytest.raises((ValueError, TypeError), match=match):
        call()
