"""Regularisers of a user's own: what is found wrong with them, and how it is said."""

import math
from typing import NamedTuple

import numpy as np
import pytest

import dapsgd as ds
from dapsgd._disk_cache import cache_folder

from . import cases

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 6))
Y = X[:, 0]


class Right(NamedTuple):
    lam: float
    in_place = True

    def value(self, w):
        return self.lam * np.abs(w).sum()

    def prox(self, v, step, out):
        out[:] = np.sign(v) * np.maximum(np.abs(v) - step * self.lam, 0.0)


class Returns(NamedTuple):
    lam: float

    def value(self, w):
        return self.lam * np.abs(w).sum()

    def prox(self, v, step, out):
        return np.sign(v) * np.maximum(np.abs(v) - step * self.lam, 0.0)


class Rebinds(NamedTuple):
    lam: float

    def value(self, w):
        return self.lam * np.abs(w).sum()

    def prox(self, v, step, out):
        out = np.sign(v) * np.maximum(np.abs(v) - step * self.lam, 0.0)  # noqa: F841


class LeavesSome(NamedTuple):
    lam: float

    def value(self, w):
        return self.lam * np.abs(w).sum()

    def prox(self, v, step, out):
        for j in range(v.size):
            if abs(v[j]) > step * self.lam:
                out[j] = v[j] - np.sign(v[j]) * step * self.lam


class ChangesV(NamedTuple):
    lam: float

    def value(self, w):
        return self.lam * (w * w).sum()

    def prox(self, v, step, out):
        v /= 1.0 + 2.0 * step * self.lam
        out[:] = v


class FalsePromise(NamedTuple):
    lam: float
    in_place = True

    def value(self, w):
        return 0.0

    def prox(self, v, step, out):
        for j in range(v.size):
            out[j] = v[j] - v[j - 1]


class Bounded(NamedTuple):
    """Coefficients between bounds, where many of them may be alike."""

    top: float

    def value(self, w):
        return np.inf if np.abs(w).max() > self.top else 0.0

    def prox(self, v, step, out):
        out[:] = np.minimum(np.maximum(v, -self.top), self.top)


@pytest.mark.parametrize(
    ("term", "words"),
    [
        (Returns(0.1), r"Returns\.prox did not write all of out: .* out\[:\] = "),
        (Rebinds(0.1), r"Rebinds\.prox did not write all of out"),
        (LeavesSome(0.1), r"LeavesSome\.prox did not write all of out"),
        (ChangesV(0.1), r"ChangesV\.prox changed v"),
        (FalsePromise(0.1), "FalsePromise says in_place = True"),
    ],
)
def test_a_prox_that_does_not_do_what_it_must_is_named_on_first_use(term, words):
    problem = ds.Problem(X.astype(np.float32), Y, regularizer=term)
    for algorithm in ("auto", "fista", "dap-sgd"):
        with pytest.raises(ValueError, match=words):
            ds.solve(problem, algorithm)
    with pytest.raises(ValueError, match=words):
        ds.prox(term, X[0], 0.5)


class LogCosh(NamedTuple):
    """A prox by Newton's method that overflows far from zero, where no run ever comes."""

    lam: float

    def value(self, w):
        return self.lam * np.log(np.cosh(w)).sum()

    def prox(self, v, step, out):
        for j in range(v.size):
            u = 0.0
            for _ in range(30):
                e = np.exp(2.0 * u)
                tanh = (e - 1.0) / (e + 1.0)
                u -= (u - v[j] + step * self.lam * tanh) / (1.0 + step * self.lam * (1.0 - tanh * tanh))
            out[j] = u


def test_a_prox_is_not_tried_far_from_zero():
    wide = np.random.default_rng(1).standard_normal((50, 20))
    assert ds.solve(ds.Problem(wide, wide[:, 0], regularizer=LogCosh(0.1)), "fista").converged


class Backwards(NamedTuple):
    """A loss whose derivative has the wrong sign."""

    scale: float

    def value(self, pred, y):
        return self.scale * (pred - y) ** 2

    def derivative(self, pred, y):
        return -2.0 * self.scale * (pred - y)


class Forwards(Backwards):
    def derivative(self, pred, y):
        return 2.0 * self.scale * (pred - y)


@pytest.mark.parametrize("scale", [1e-200, 1e-9, 1.0, 1e9])
def test_a_derivative_that_is_not_that_of_the_value_is_named(scale):
    ds.Problem(X, Y, Forwards(scale))
    if scale >= 1e-9:
        with pytest.raises(ValueError, match=r"Backwards.derivative is not that of Backwards.value: at pred="):
            ds.Problem(X, Y, Backwards(scale))


class BackwardsLog(NamedTuple):
    """A loss that is not defined everywhere, whose derivative is wrong where it is."""

    scale: float

    def value(self, pred, y):
        return self.scale * (pred - y * math.log(pred))

    def derivative(self, pred, y):
        return -self.scale * (1.0 - y / pred)


class RightLog(BackwardsLog):
    def derivative(self, pred, y):
        return self.scale * (1.0 - y / pred)


def test_a_derivative_is_tried_where_the_loss_is_defined():
    counts = np.arange(1.0, 1.0 + len(Y))
    ds.Problem(X, counts, RightLog(1.0))
    with pytest.raises(ValueError, match=r"BackwardsLog.derivative is not that of BackwardsLog.value"):
        ds.Problem(X, counts, BackwardsLog(1.0))


class OutOfRange(Right):
    """A regulariser whose value raises."""

    def value(self, w):
        if w.size > 0:
            raise KeyError("depth")
        return 0.0


def test_an_error_in_compiled_code_comes_with_the_name_of_the_class():
    with pytest.raises(KeyError) as caught:
        ds.Problem(X, Y, regularizer=OutOfRange(0.1)).objective(np.zeros(X.shape[1]))
    assert caught.value.__notes__ == ["raised by the compiled code of OutOfRange"]


class Flat(Forwards):
    """A loss whose curvature is too small."""

    curvature = 0.01


def test_a_curvature_that_is_too_small_is_named():
    with pytest.raises(ValueError, match=r"Flat.curvature must be the largest second derivative .* it is 0.01.* grows by 2 "):
        ds.Problem(X, Y, Flat(1.0))


class Undefined(Right):
    """A regulariser whose prox is not a number."""

    def prox(self, v, step, out):
        out[:] = np.nan


class Nothing(Right):
    """A regulariser whose value is forgotten."""

    def value(self, w):
        np.abs(w).sum()


def test_a_prox_that_is_not_a_number_is_named():
    with pytest.raises(ValueError, match=r"Undefined.prox wrote NaN or infinity"):
        ds.solve(ds.Problem(X, Y, regularizer=Undefined(0.1)))


def test_a_value_that_is_nothing_is_named():
    with pytest.raises(TypeError, match=r"Nothing.value must return a number"):
        ds.solve(ds.Problem(X, Y, regularizer=Nothing(0.1)))


def test_a_prox_without_its_step_is_noticed_by_solve():
    with pytest.raises(ValueError, match=r"NoStep.prox is not the minimiser for step 0.1"):
        ds.solve(ds.Problem(X, Y, regularizer=NoStep(0.1)))


class Short(NamedTuple):
    """A regulariser whose weights are too few."""

    weights: np.ndarray

    def value(self, w):
        total = 0.0
        for j in range(w.size):
            total += self.weights[j] * abs(w[j])
        return total

    def prox(self, v, step, out):
        for j in range(v.size):
            out[j] = np.sign(v[j]) * max(abs(v[j]) - step * self.weights[j], 0.0)


class ShortAtOnce(Short):
    def value(self, w):
        return (self.weights * np.abs(w)).sum()


class Array(Right):
    def value(self, w):
        return self.lam * np.abs(w)


@pytest.mark.parametrize(
    ("term", "error", "words"),
    [
        (Short(np.ones(5)), IndexError, r"Short.value: index 5 is out of bounds .*beyond the end"),
        (ShortAtOnce(np.ones(5)), ValueError, r"ShortAtOnce.value: operands could not be broadcast"),
        (Array(0.1), TypeError, r"Array.value must return a number; it returned an array of shape \(6,\)"),
    ],
)
def test_terms_that_do_not_fit_are_named(term, error, words):
    with pytest.raises(error, match=words):
        ds.solve(ds.Problem(X, Y, regularizer=term))
    with pytest.raises(error, match=words):
        ds.check_regularizer(term, 6)


class Forgetful(Forwards):
    def derivative(self, pred, y):
        self.scale * (pred - y)


class NotANumber(Forwards):
    def value(self, pred, y):
        return math.nan


class Concave(NamedTuple):
    scale: float

    def value(self, pred, y):
        return -self.scale * (pred - y) ** 2

    def derivative(self, pred, y):
        return -2.0 * self.scale * (pred - y)


class Method(Forwards):
    def curvature(self):
        return 2.0


class Dual(Forwards):
    def conjugate(self, slope, y):
        return slope * (slope / (4.0 * self.scale) + y)


class Other(Forwards):
    def conjugate(self, slope, y):
        return slope * slope


class Silent(Forwards):
    def conjugate(self, slope, y):
        pass


def test_a_loss_with_a_conjugate_has_a_duality_gap():
    run = ds.solve(ds.Problem(X, Y, Dual(1.0), ds.L1(0.1)), tol=1e-8)
    same = ds.solve(ds.Problem(X, Y, ds.Squared(), ds.L1(0.1)), tol=1e-8)
    assert run.converged
    assert 0.0 <= run.gap <= 1e-8 * run.objective
    assert run.objective == pytest.approx(same.objective, rel=1e-7)


@pytest.mark.parametrize(
    ("loss", "error", "words"),
    [
        (Other(1.0), ValueError, r"Other.conjugate is not that of Other.value: at the slope .* must be pred \* slope - value"),
        (Silent(1.0), TypeError, r"Silent.conjugate must return a number; it returned nothing"),
        (Forgetful(1.0), TypeError, r"Forgetful.derivative must return a number; it returned nothing"),
        (NotANumber(1.0), ValueError, r"NotANumber.value must be finite around the targets"),
        (Concave(1.0), ValueError, r"Concave must be convex: derivative falls by 2 per unit of pred"),
        (Method(1.0), TypeError, r"Method.curvature must be a number: make it a field, an attribute or a property"),
    ],
)
def test_losses_that_make_no_sense_are_named(loss, error, words):
    with pytest.raises(error, match=words):
        ds.Problem(X, Y, loss)


def test_a_prox_is_tried_once_for_a_shape(monkeypatch):
    from dapsgd import _terms

    tried = []
    monkeypatch.setattr(_terms, "_tried", set())
    monkeypatch.setattr(_terms, "try_regularizer", lambda handle, x: tried.append(x.shape))
    for lam in (0.1, 0.2):
        ds.prox(LogCosh(lam), np.ones(7), 0.5)
    ds.prox(LogCosh(0.1), np.ones(8), 0.5)
    assert tried == [(7,), (8,)]


def test_a_right_one_is_as_good_as_the_built_in():
    own = ds.solve(ds.Problem(X, Y, regularizer=Right(0.1)), tol=1e-10)
    np.testing.assert_allclose(own.x, ds.solve(ds.Problem(X, Y, regularizer=ds.L1(0.1)), tol=1e-10).x, atol=1e-6)


class NoStep(NamedTuple):
    lam: float

    def value(self, w):
        return self.lam * np.abs(w).sum()

    def prox(self, v, step, out):
        out[:] = np.sign(v) * np.maximum(np.abs(v) - self.lam, 0.0)


class TwiceTheValue(NamedTuple):
    lam: float

    def value(self, w):
        return 2.0 * self.lam * np.abs(w).sum()

    def prox(self, v, step, out):
        out[:] = np.sign(v) * np.maximum(np.abs(v) - step * self.lam, 0.0)


class Count(NamedTuple):
    """Not convex: how many are not zero."""

    lam: float

    def value(self, w):
        return self.lam * np.count_nonzero(w)

    def prox(self, v, step, out):
        for j in range(v.size):
            out[j] = v[j] if v[j] * v[j] > 2.0 * step * self.lam else 0.0


class Outside(NamedTuple):
    """A constraint that prox does not keep to."""

    low: float

    def value(self, w):
        return np.inf if w.min() < self.low else 0.0

    def prox(self, v, step, out):
        out[:] = v


@pytest.mark.parametrize(
    ("term", "words"),
    [
        (NoStep(0.3), "NoStep.prox is not the minimiser for step 0.1"),
        (TwiceTheValue(0.3), "TwiceTheValue.prox is not the minimiser"),
        (Count(0.3), "Count.prox moves points apart"),
        (Outside(0.0), "Outside.value must be finite .* it is inf"),
        (Returns(0.3), "Returns.prox did not write"),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_what_check_regularizer_finds(term, words, seed):
    with pytest.raises(ValueError, match=words):
        ds.check_regularizer(term, 12, seed=seed)


@pytest.mark.parametrize("name", ds.REGULARIZERS)
def test_check_regularizer_finds_nothing_wrong_with_the_built_ins(name):
    for strength in (0.05, 1.0):
        for seed in range(3):
            ds.check_regularizer(cases.regularizers(cases.P * cases.Q, strength)[name], (cases.P, cases.Q), seed=seed)


def test_check_regularizer_wants_a_shape_and_a_term():
    ds.check_regularizer(Right(0.3), 12)
    with pytest.raises(ValueError, match="shape must be p or"):
        ds.check_regularizer(Right(0.3), (2, 2, 2))
    with pytest.raises(TypeError, match="shape must be an integer"):
        ds.check_regularizer(Right(0.3), 2.5)
    with pytest.raises(TypeError, match="must be an object"):
        ds.check_regularizer("l1", 3)


def test_without_lam_max_strengths_must_be_given_and_the_method_is_named():
    problem = ds.Problem(X, Y, regularizer=Right(0.1))
    with pytest.raises(ValueError, match="lams must be given: Right has no method lam_max"):
        ds.path(problem)
    with pytest.raises(ValueError, match="alphas must be given: Right has no method lam_max"):
        ds.DAPRegressorCV(Right(0.1)).fit(X, Y)
    assert len(ds.path(problem, lams=[0.1, 0.01])) == 2
    assert ds.DAPRegressorCV(Right(0.1), alphas=[0.1, 0.01]).fit(X, Y).alpha_ in (0.1, 0.01)
    with pytest.raises(ValueError, match="lams must be given: for this regulariser no strength"):
        ds.path(ds.Problem(X, Y, regularizer=ds.ElasticNet(1.0, 0.0)))


def test_jumps_are_those_of_a_fused_lasso_only():
    same = X.sum(axis=1)
    assert "jump" not in str(ds.solve(ds.Problem(X, same, regularizer=Bounded(0.5))))
    model = ds.DAPRegressor(Bounded(0.5)).fit(X, same)
    assert "6 of 6 are not zero" in str(model)
    assert "jump" not in str(model)
    assert "jump" in str(ds.DAPRegressor(ds.FusedLasso(0.5)).fit(X, same))


def test_a_model_of_ones_own_class_in_a_file(tmp_path):
    model = ds.DAPRegressor(Right(0.1)).fit(X, Y)
    ds.models.save(model, tmp_path / "own.npz")
    loaded = ds.models.load(tmp_path / "own.npz")
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert "penalty='Right(...), not kept in the file'" in repr(loaded)
    with pytest.raises(ValueError, match="penalty was an object of the class Right, which the model file does not hold: set"):
        loaded.fit(X, Y)
    assert np.array_equal(loaded.set_params(penalty=Right(0.1)).fit(X, Y).coef_, model.coef_)


_NAMED_AS_OURS = """
from typing import NamedTuple
class Ridge(NamedTuple):
    lam: float
    def value(self, w):
        return FACTOR * self.lam * (w * w).sum()
    def prox(self, v, step, out):
        out[:] = v / (1.0 + 2.0 * FACTOR * self.lam * step)
"""


def test_a_class_that_only_says_it_is_of_the_package_is_not_kept_on_disk():
    """As in the package's own examples: ``__name__`` is that of a module of ours, and every process makes the class anew."""
    found = []
    for factor in ("1.0", "3.0"):
        scope = {"__name__": "dapsgd._trials"}
        exec(_NAMED_AS_OURS.replace("FACTOR", factor), scope)
        found.append(ds.prox(scope["Ridge"](0.5), [2.0], 1.0)[0])
    assert found == [1.0, 0.5]
    assert not any(b"Ridge" in path.read_bytes() for path in cache_folder().glob("dapsgd._handles.prox_entry-*.nbc"))
