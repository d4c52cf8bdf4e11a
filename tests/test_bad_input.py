"""Whatever is wrong is said before any work starts, with the argument's name, and the caller's arrays stay as they were."""

import re
import threading
from typing import NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import dapsgd as ds
from dapsgd.regularizers import ELSEWHERE

RNG = np.random.default_rng(0)
X = RNG.standard_normal((20, 6))
Y = RNG.standard_normal(20)
SIGNS = np.where(Y > 0, 1.0, -1.0)


def spoiled(array, value):
    copy = array.copy()
    copy.flat[3] = value
    return copy


PROBLEMS = {
    "nan in X": (lambda: ds.Problem(spoiled(X, np.nan), Y), ValueError, "X"),
    "inf in X": (lambda: ds.Problem(spoiled(X, np.inf), Y), ValueError, "X"),
    "nan in sparse X": (lambda: ds.Problem(csr_matrix(spoiled(X, np.nan)), Y), ValueError, "X"),
    "nan in y": (lambda: ds.Problem(X, spoiled(Y, np.nan)), ValueError, "y"),
    "-inf in y": (lambda: ds.Problem(X, spoiled(Y, -np.inf)), ValueError, "y"),
    "nan in weights": (lambda: ds.Problem(X, Y, sample_weight=spoiled(np.ones(20), np.nan)), ValueError, "sample_weight"),
    "negative weight": (lambda: ds.Problem(X, Y, sample_weight=-np.ones(20)), ValueError, "sample_weight"),
    "zero weights": (lambda: ds.Problem(X, Y, sample_weight=np.zeros(20)), ValueError, "sample_weight"),
    "short weights": (lambda: ds.Problem(X, Y, sample_weight=np.ones(19)), ValueError, "sample_weight"),
    "short y": (lambda: ds.Problem(X, Y[:-1]), ValueError, "y"),
    "3-D y": (lambda: ds.Problem(X, Y.reshape(20, 1, 1)), ValueError, "y"),
    "y without columns": (lambda: ds.Problem(X, np.empty((20, 0))), ValueError, "y"),
    "1-D X": (lambda: ds.Problem(Y, Y), ValueError, "X"),
    "3-D X": (lambda: ds.Problem(X[None], Y), ValueError, "X"),
    "no rows": (lambda: ds.Problem(np.empty((0, 6)), np.empty(0)), ValueError, "X"),
    "no columns": (lambda: ds.Problem(np.empty((20, 0)), Y), ValueError, "X"),
    "no rows, sparse": (lambda: ds.Problem(csr_matrix((0, 6)), np.empty(0)), ValueError, "X"),
    "ragged X": (lambda: ds.Problem([[1.0], [1.0, 2.0]], [0.0, 1.0]), ValueError, "X"),
    "object X": (lambda: ds.Problem(X.astype(object), Y), TypeError, "X"),
    "string X": (lambda: ds.Problem(X.astype(str), Y), TypeError, "X"),
    "complex X": (lambda: ds.Problem(X + 1j, Y), TypeError, "X"),
    "complex sparse X": (lambda: ds.Problem(csr_matrix(X + 1j), Y), TypeError, "X"),
    "None X": (lambda: ds.Problem(None, Y), TypeError, "X"),
    "masked X": (lambda: ds.Problem(np.ma.masked_less(X, 0.0), Y), TypeError, "X"),
    "string y": (lambda: ds.Problem(X, Y.astype(str)), TypeError, "y"),
    "labels 0 and 1": (lambda: ds.Problem(X, (SIGNS + 1) / 2, ds.Logistic()), ValueError, "-1 or .1"),
    "labels for hinge": (lambda: ds.Problem(X, Y, ds.SquaredHinge()), ValueError, "-1 or .1"),
    "negative counts": (lambda: ds.Problem(X, Y, ds.Poisson()), ValueError, "y must be >= 0"),
    "half a class": (lambda: ds.Problem(X, np.full(20, 0.5), ds.Multinomial()), ValueError, "class"),
    "one class": (lambda: ds.Problem(X, np.zeros(20), ds.Multinomial()), ValueError, "two classes"),
    "negative l2": (lambda: ds.Problem(X, Y, l2=-1.0), ValueError, "l2"),
    "nan l2": (lambda: ds.Problem(X, Y, l2=np.nan), ValueError, "l2"),
    "string l2": (lambda: ds.Problem(X, Y, l2="1"), TypeError, "l2"),
    "intercept": (lambda: ds.Problem(X, Y, fit_intercept="yes"), TypeError, "fit_intercept"),
    "loss by name": (lambda: ds.Problem(X, Y, "squared"), TypeError, "loss"),
    "misspelt regulariser": (lambda: ds.Problem(X, Y, regularizer="fused_laso"), ValueError, "did you mean 'fused_lasso'"),
    "misspelt loss": (lambda: ds.Problem(X, Y, "logistik"), ValueError, "did you mean 'logistic'"),
    "loss class": (lambda: ds.Problem(X, Y, ds.Squared), TypeError, "loss"),
    "regulariser by name": (lambda: ds.Problem(X, Y, regularizer="l1"), TypeError, "regularizer"),
    "regulariser as loss": (lambda: ds.Problem(X, Y, ds.L1(1.0)), TypeError, "derivative"),
    "negative strength": (lambda: ds.L1(-1.0), ValueError, "lam"),
    "nan strength": (lambda: ds.GroupLasso(np.nan, 2), ValueError, "lam"),
    "infinite strength": (lambda: ds.NuclearNorm(np.inf), ValueError, "lam"),
    "string strength": (lambda: ds.FusedLasso("1"), TypeError, "lam"),
    "boolean strength": (lambda: ds.L1(True), TypeError, "lam"),
    "ratio above 1": (lambda: ds.ElasticNet(1.0, 1.5), ValueError, "ratio"),
    "negative l1 part": (lambda: ds.FusedLasso(1.0, -0.1), ValueError, "l1"),
    "zero delta": (lambda: ds.Huber(0.0), ValueError, "delta"),
    "negative scale": (lambda: ds.Squared(-1.0), ValueError, "scale"),
    "empty box": (lambda: ds.Problem(X, Y, regularizer=ds.Box(1.0, 0.0)), ValueError, "low"),
    "nan box": (lambda: ds.Box(np.nan, 0.0), ValueError, "low"),
    "groups overlap": (
        lambda: ds.Problem(X, Y, regularizer=ds.GroupLasso(1.0, [[0, 1, 2], [2, 3, 4, 5]])),
        ValueError,
        "overlap",
    ),
    "groups miss": (lambda: ds.Problem(X, Y, regularizer=ds.GroupLasso(1.0, [[0, 1], [3, 4, 5]])), ValueError, "cover"),
    "groups repeat": (
        lambda: ds.Problem(X, Y, regularizer=ds.GroupLasso(1.0, [[0, 0, 1], [2, 3, 4, 5]])),
        ValueError,
        "overlap",
    ),
    "groups beyond p": (lambda: ds.Problem(X, Y, regularizer=ds.GroupLasso(1.0, [[0, 1, 2], [3, 4, 6]])), ValueError, "0 to 5"),
    "groups of 4 in 6": (lambda: ds.Problem(X, Y, regularizer=ds.GroupLasso(1.0, 4)), ValueError, "groups=4"),
    "groups of 0": (lambda: ds.Problem(X, Y, regularizer=ds.GroupLasso(1.0, 0)), ValueError, "groups=0"),
    "an empty group": (lambda: ds.Problem(X, Y, regularizer=ds.GroupLasso(1.0, [[], range(6)])), ValueError, "non-empty"),
    "float groups": (lambda: ds.Problem(X, Y, regularizer=ds.GroupLasso(1.0, 2.0)), TypeError, "groups"),
    "float indices": (lambda: ds.Problem(X, Y, regularizer=ds.GroupLasso(1.0, [[0.5], range(6)])), TypeError, "integer"),
    "too few labels": (lambda: ds.Problem(X, Y, regularizer=ds.SparseGroupLasso(1.0, [0, 0, 1])), ValueError, "label"),
    "too few weights": (lambda: ds.Problem(X, Y, regularizer=ds.GroupLasso(1.0, 2, weights=[1.0])), ValueError, "weights"),
    "negative group weight": (
        lambda: ds.Problem(X, Y, regularizer=ds.GroupLasso(1.0, 3, weights=[1, -1])),
        ValueError,
        "weights",
    ),
    "short slope": (lambda: ds.Problem(X, Y, regularizer=ds.Slope([2.0, 1.0])), ValueError, "lams"),
    "increasing slope": (lambda: ds.Problem(X, Y, regularizer=ds.Slope(np.arange(6.0))), ValueError, "decreasing"),
    "prox of nan": (lambda: ds.prox(ds.L1(1.0), [np.nan], 1.0), ValueError, "v"),
    "prox of a cube": (lambda: ds.prox(ds.L1(1.0), np.ones((2, 2, 2)), 1.0), ValueError, "v"),
    "negative prox step": (lambda: ds.prox(ds.L1(1.0), [1.0], -1.0), ValueError, "step"),
    "w of another shape": (lambda: ds.Problem(X, Y).objective(np.zeros(5)), ValueError, "w"),
    "nan in w": (lambda: ds.Problem(X, Y).gradient(np.full(6, np.nan)), ValueError, "w"),
}


@pytest.mark.parametrize("case", PROBLEMS)
def test_a_wrong_problem(case):
    make, kind, words = PROBLEMS[case]
    with pytest.raises(kind, match=words):
        make()


SOLVES = {
    "problem": ({"problem": X}, TypeError, "problem"),
    "unknown algorithm": ({"algorithm": "dap_sgd"}, ValueError, "did you mean 'dap-sgd'"),
    "unknown runtime": ({"runtime": "thread"}, ValueError, "did you mean 'threads'"),
    "algorithm object": ({"algorithm": 3}, TypeError, "algorithm"),
    "runtime object": ({"runtime": 3}, TypeError, "runtime"),
    "runtime class": ({"runtime": ds.Serial}, TypeError, "runtime"),
    "no workers": ({"workers": 0}, ValueError, "workers"),
    "half a worker": ({"workers": 1.5}, TypeError, "workers"),
    "two serial workers": ({"workers": 2, "runtime": "serial"}, ValueError, "workers"),
    "two workers for p-sgd": ({"workers": 2, "algorithm": "p-sgd"}, ValueError, "workers"),
    "negative delay": ({"max_delay": -1}, ValueError, "max_delay"),
    "step as a number": ({"step": 0.1}, TypeError, "step"),
    "batch of 0": ({"batch_size": 0}, ValueError, "batch_size"),
    "batch by name": ({"batch_size": "large"}, ValueError, "batch_size"),
    "negative max_iter": ({"max_iter": -1}, ValueError, "max_iter"),
    "float max_iter": ({"max_iter": 1e3}, TypeError, "max_iter"),
    "no passes": ({"max_passes": 0}, ValueError, "max_passes"),
    "negative tol": ({"tol": -1e-3}, ValueError, "tol"),
    "nan tol": ({"tol": np.nan}, ValueError, "tol"),
    "nan x0": ({"x0": np.full(6, np.nan)}, ValueError, "x0"),
    "short x0": ({"x0": np.zeros(5)}, ValueError, "x0"),
    "short x_star": ({"x_star": np.zeros(5)}, ValueError, "x_star"),
    "negative seed": ({"seed": -1}, ValueError, "seed"),
    "string seed": ({"seed": "a"}, TypeError, "seed"),
    "record_every 0": ({"record_every": 0}, ValueError, "record_every"),
    "callback": ({"callbacks": [3]}, TypeError, "callbacks"),
    "one callback": ({"callbacks": print}, TypeError, "callbacks"),
    "average": ({"average": 1}, TypeError, "average"),
    "progress": ({"progress": "yes"}, TypeError, "progress"),
    "step for fista": ({"algorithm": "fista", "step": ds.Constant(0.1)}, ValueError, "step"),
    "budget for Poisson": (
        {"problem": ds.Problem(X, np.ones(20), ds.Poisson()), "step": ds.DelayAdaptive()},
        ValueError,
        "budget",
    ),
    "nested adaptive step": ({"step": ds.DelayAdaptive(ds.DelayAdaptive())}, TypeError, "step"),
}


@pytest.mark.parametrize("case", SOLVES)
def test_a_wrong_call_of_solve(case):
    options, kind, words = SOLVES[case]
    options = {"problem": ds.Problem(X, Y), "algorithm": "dap-sgd", **options}
    threads = threading.active_count()
    with pytest.raises(kind, match=words):
        ds.solve(options.pop("problem"), options.pop("algorithm"), **options)
    assert threading.active_count() == threads


STEPS = [
    (lambda: ds.Constant(0.0), ValueError),
    (lambda: ds.Constant(np.inf), ValueError),
    (lambda: ds.InverseTime(0.0, 1.0), ValueError),
    (lambda: ds.InverseTime(1.0, -1.0), ValueError),
    (lambda: ds.Theorem1(0.0, 1.0), ValueError),
    (lambda: ds.Theorem2(1.0, 0), ValueError),
    (lambda: ds.DelayAdaptive(share=0.0), ValueError),
    (lambda: ds.Schedule([0], [0, 1], [0]), ValueError),
    (lambda: ds.Schedule([0.5], [0], [0]), TypeError),
    (lambda: ds.Replay("schedule"), TypeError),
]


@pytest.mark.parametrize(("make", "kind"), STEPS)
def test_a_wrong_step_or_schedule(make, kind):
    with pytest.raises(kind):
        make()


@pytest.mark.parametrize(
    "schedule",
    [
        ds.Schedule([0], [1], [0]),
        ds.Schedule([0], [-1], [0]),
        ds.Schedule([0], [0], [20]),
        ds.Schedule([], [], np.empty((0, 1), int)),
    ],
)
def test_an_impossible_schedule(schedule):
    with pytest.raises(ValueError, match="Schedule"):
        ds.solve(ds.Problem(X, Y), "dap-sgd", runtime=ds.Replay(schedule), step=ds.Constant(0.01))


def test_the_callers_arrays_stay_as_they_were():
    arrays = {"X": X.copy(), "y": SIGNS.copy(), "weights": np.linspace(1, 2, 20), "x0": np.ones(6), "x_star": np.zeros(6)}
    before = {name: array.copy() for name, array in arrays.items()}
    for array in arrays.values():
        array.flags.writeable = False
    problem = ds.Problem(arrays["X"], arrays["y"], ds.Logistic(), ds.L1(0.1), sample_weight=arrays["weights"])
    for algorithm in ("fista", "p-sgd", "tap-sgd", "dap-sgd"):
        run = ds.solve(problem, algorithm, x0=arrays["x0"], x_star=arrays["x_star"], max_iter=50, tol=0)
        assert not np.shares_memory(run.x, arrays["x0"])
        assert not np.shares_memory(run.iterate, arrays["x0"])
    with pytest.raises(ds.DivergenceError):
        ds.solve(ds.Problem(arrays["X"], arrays["y"]), "dap-sgd", x0=arrays["x0"], step=ds.Constant(1e9), max_iter=10_000)
    for name, array in arrays.items():
        assert np.array_equal(array, before[name]), name


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("lasso", "'l1'"),
        ("Lasso", "'l1'"),
        ("ridge", "'zero', with l2"),
        ("tv", "'fused_lasso'"),
        ("total-variation", "'fused_lasso'"),
        ("trace", "'nuclear'"),
        ("ElasticNet", "'elastic_net'"),
        ("enet", "'elastic_net'"),
        ("glasso", "'group_lasso'"),
        ("sgl", "'sparse_group_lasso'"),
        ("fused", "'fused_lasso'"),
    ],
)
def test_a_penalty_by_the_name_that_it_has_elsewhere(name, meant):
    for use in (lambda: ds.DAPRegressor(name).fit(X, Y), lambda: ds.Problem(X, Y, regularizer=name)):
        with pytest.raises(ValueError, match=re.escape(f"(did you mean {meant}?)")):
            use()


def test_every_hint_at_a_penalty_is_one():
    for name, meant in ELSEWHERE.items():
        assert name not in ds.REGULARIZERS
        assert meant.split("'")[1] in ds.REGULARIZERS


class NoField(NamedTuple):
    def value(self, w):
        return 0.0

    def prox(self, v, step, out):
        out[:] = v


class NoProx(NamedTuple):
    lam: float

    def value(self, w):
        return 0.0


class WrongArguments(NamedTuple):
    lam: float

    def value(self, w):
        return 0.0

    def prox(self, v):
        return v


class FieldNamedLikeAMethod(NamedTuple):
    prox: float

    def value(self, w):
        return 0.0


class DoesNotCompile(NamedTuple):
    lam: float

    def value(self, w):
        return 0.0

    def prox(self, v, step, out):
        out[:] = sorted_by_magic(v)  # noqa: F821


class AddsText(NamedTuple):
    lam: float

    def value(self, w):
        return 0.0

    def prox(self, v, step, out):
        out[0] = v[0] + "a"


class WithAList(NamedTuple):
    lams: list

    def value(self, w):
        return 0.0

    def prox(self, v, step, out):
        out[0] = self.lams[0]


@pytest.mark.parametrize(
    ("term", "words"),
    [
        (WithAList([1.0]), "field 'lams' must be"),
        (WithAList("abc"), "field 'lams' must be"),
        (WithAList({1: 2}), "field 'lams' must be"),
        (NoField(), "field"),
        (NoProx(1.0), "prox"),
        (WrongArguments(1.0), "3 argument"),
        (FieldNamedLikeAMethod(1.0), "field 'prox'"),
        (DoesNotCompile(1.0), "DoesNotCompile could not be compiled: NameError: name 'sorted_by_magic' is not defined"),
        (AddsText(1.0), r"AddsText could not be compiled: there is no compiled add\(float64, .*test_bad_input.py"),
        (object(), "NamedTuple"),
    ],
)
def test_a_wrong_regulariser_of_ones_own(term, words):
    with pytest.raises(TypeError, match=words):
        ds.solve(ds.Problem(X, Y, regularizer=term))
