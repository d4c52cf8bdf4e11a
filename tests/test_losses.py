"""Every loss of the registry: derivative, curvature, convexity, precision, known values, targets."""

import math
from typing import NamedTuple

import numpy as np
import pytest
import scipy.special
import scipy.stats
from sklearn.metrics import log_loss

import dapsgd as ds
from dapsgd._jit import compiled
from dapsgd._terms import check_loss
from dapsgd.gradients import loss_gradient, sum_of_losses
from dapsgd.problem import loss_slopes, mean_loss

from . import cases

every_loss = pytest.mark.parametrize("name", ds.LOSSES)


def is_joint(loss):
    return getattr(type(loss), "joint", False)


def value(loss, predictions, targets):
    return sum_of_losses(loss, predictions[None], targets[None], np.ones(1))


def gradient(loss, predictions, targets):
    out = np.full(predictions.shape, np.nan)
    loss_gradient(loss, predictions, targets, out)
    return out


def samples(name, rng, rows=200, spread=3.0):
    """Predictions and checked targets, shape (rows, 3)."""
    loss = cases.losses()[name]
    predictions = spread * rng.standard_normal((rows, cases.Q))
    targets = cases.targets(name, rng.standard_normal((rows, cases.Q)), rng)
    if hasattr(type(loss), "check_targets"):
        if targets.ndim == 1:
            targets[: cases.Q] = np.arange(cases.Q)
        targets = loss.check_targets(targets)
    return loss, predictions, targets


@every_loss
def test_registered_losses_can_be_compiled(name):
    loss = cases.losses()[name]
    assert check_loss(loss) is loss
    assert type(loss) is ds.LOSSES[name]


@every_loss
def test_gradient_equals_finite_differences(name):
    loss, predictions, targets = samples(name, np.random.default_rng(0))
    h = 1e-5
    for p, y in zip(predictions, targets, strict=True):
        found = gradient(loss, p, y)
        for k in range(p.size):
            e = h * (np.arange(p.size) == k)
            difference = (value(loss, p + e, y) - value(loss, p - e, y)) / (2.0 * h)
            # A kink of the derivative within h costs up to curvature * h / 4.
            assert difference == pytest.approx(found[k], rel=1e-6, abs=1e-5)


@every_loss
def test_the_gradient_is_continuous_where_the_formula_changes(name):
    # Huber at delta, squared hinge at margin 1, logistic at margin 0.
    loss = cases.losses()[name]
    corners = (0.0, 1.0, -1.0, getattr(loss, "delta", 1.0), -getattr(loss, "delta", 1.0))
    y = np.array([1.0, 0.0, 0.0]) if is_joint(loss) else np.ones(cases.Q)
    for corner in corners:
        for shift in (0.0, 1.0):
            p = np.full(cases.Q, corner + shift)
            left, right = gradient(loss, p - 1e-9, y), gradient(loss, p + 1e-9, y)
            assert np.abs(left - right).max() <= 1e-7
            assert abs(value(loss, p - 1e-9, y) - value(loss, p + 1e-9, y)) <= 1e-7


@every_loss
def test_convex(name):
    loss, predictions, targets = samples(name, np.random.default_rng(1))
    others = predictions[::-1]
    for a, b, y in zip(predictions, others, targets, strict=True):
        slope_a, slope_b = gradient(loss, a, y), gradient(loss, b, y)
        bound = value(loss, a, y) + slope_a @ (b - a)
        assert value(loss, b, y) >= bound - 1e-12 * max(1.0, abs(bound))
        assert (slope_a - slope_b) @ (a - b) >= -1e-12
        middle = value(loss, 0.5 * (a + b), y)
        assert middle <= 0.5 * (value(loss, a, y) + value(loss, b, y)) + 1e-12 * max(1.0, abs(middle))


@every_loss
def test_curvature_is_the_least_upper_bound(name):
    loss, predictions, targets = samples(name, np.random.default_rng(2), rows=300)
    if not hasattr(loss, "curvature"):
        assert ds.Problem(np.eye(3), np.ones(3), loss).lipschitz() == math.inf
        return
    largest = 0.0
    predictions[0] = [0.0, 0.0, -40.0]  # two of three classes, where the multinomial loss bends most
    for p, y in zip(predictions, targets, strict=True):
        for size in (1e-4, 1e-2, 1.0, 10.0):
            for direction in ([1.0, 0.0, 0.0], [1.0, -1.0, 0.0], [0.3, 0.2, -0.5], [1.0, 1.0, 1.0]):
                move = size * np.array(direction) / np.linalg.norm(direction)
                bend = np.linalg.norm(gradient(loss, p + move, y) - gradient(loss, p, y)) / size
                assert bend <= loss.curvature * (1.0 + 1e-9)
                largest = max(largest, bend)
    assert largest >= 0.99 * loss.curvature


@every_loss
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_compiled_equals_plain_python(name, dtype):
    loss, predictions, targets = samples(name, np.random.default_rng(3), rows=50)
    weights = np.linspace(0.0, 2.0, 50)
    expected = mean_loss(loss, predictions, targets, weights)
    expected_slopes = np.full(predictions.shape, np.nan)
    loss_slopes(loss, predictions, targets, weights, 50, expected_slopes)

    arrays = tuple(np.ascontiguousarray(array, dtype=dtype) for array in (predictions, targets, weights))
    kept = [array.copy() for array in arrays]
    slopes = np.full(predictions.shape, np.nan, dtype)
    found = compiled(mean_loss, loss, *arrays)(loss, *arrays)
    compiled(loss_slopes, loss, *arrays, 50, slopes)(loss, *arrays, 50, slopes)

    accuracy = 1e-13 if dtype == np.float64 else 1e-5
    assert found == pytest.approx(expected, rel=accuracy)
    scale = np.abs(expected_slopes).max()
    assert scale > 0.0
    np.testing.assert_allclose(slopes, expected_slopes, rtol=accuracy, atol=accuracy * scale)
    assert all((a == b).all() for a, b in zip(arrays, kept, strict=True))


@every_loss
def test_plain_values_are_the_mean_over_rows(name):
    loss, predictions, targets = samples(name, np.random.default_rng(4), rows=20)
    weights = np.linspace(1.0, 2.0, 20)
    naive = sum(w * value(loss, p, y) for w, p, y in zip(weights, predictions, targets, strict=True)) / 20
    assert mean_loss(loss, predictions, targets, weights) == pytest.approx(naive, rel=1e-14)
    slopes = np.empty_like(predictions)
    loss_slopes(loss, predictions, targets, weights, 20, slopes)
    naive = np.stack([w * gradient(loss, p, y) / 20 for w, p, y in zip(weights, predictions, targets, strict=True)])
    np.testing.assert_allclose(slopes, naive, rtol=1e-13, atol=0)


@pytest.mark.parametrize("name", ["logistic", "multinomial"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [1e3, 1e30])
def test_extreme_predictions_neither_overflow_nor_vanish(name, dtype, size):
    loss = cases.losses()[name]
    predictions = np.array([[size, -size], [-size, size], [size, size], [-size, -size], [0.0, 0.0]], dtype)
    right = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    if name == "logistic":
        right = np.array([[1.0, -1.0], [-1.0, 1.0], [1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
    for targets in (right, -right if name == "logistic" else right[:, ::-1]):
        arrays = predictions, np.ascontiguousarray(targets, dtype=dtype), np.ones(5, dtype)
        slopes, plain = np.empty_like(predictions), np.empty(predictions.shape)
        found = compiled(mean_loss, loss, *arrays)(loss, *arrays)
        compiled(loss_slopes, loss, *arrays, 5, slopes)(loss, *arrays, 5, slopes)
        wide = tuple(array.astype(np.float64) for array in arrays)
        loss_slopes(loss, *wide, 5, plain)
        assert np.isfinite(found)
        assert found == pytest.approx(mean_loss(loss, *wide), rel=1e-6)
        np.testing.assert_allclose(slopes, plain, rtol=1e-6, atol=1e-8)
        assert np.abs(plain).max() <= 1.0 / 5.0
        if targets is right:
            assert found <= 0.5  # nothing, but for the rows without a winner
        else:
            assert found >= size / 5.0  # linear on the wrong side
            assert np.abs(plain[:2]).min() == 1.0 / 5.0


@pytest.mark.parametrize("scale", [1.0, 0.37])
def test_logistic_is_the_log_loss(scale):
    rng = np.random.default_rng(5)
    p, y = 4.0 * rng.standard_normal(200), rng.choice([-1.0, 1.0], 200)
    loss = ds.Logistic(scale)
    found = np.array([loss.value(a, b) for a, b in zip(p, y, strict=True)])
    np.testing.assert_allclose(found, scale * np.log1p(np.exp(-y * p)), rtol=1e-12)
    assert found.mean() == pytest.approx(scale * log_loss(y, scipy.special.expit(p)), rel=1e-10)
    slopes = np.array([loss.derivative(a, b) for a, b in zip(p, y, strict=True)])
    np.testing.assert_allclose(slopes, -scale * y * scipy.special.expit(-y * p), rtol=1e-12)
    for a in (-800.0, -40.0, 40.0, 700.0):  # where log1p(exp(x)) itself loses digits or overflows
        assert loss.value(a, 1.0) == pytest.approx(scale * float(np.logaddexp(0.0, -a)), rel=1e-12, abs=0.0)


@pytest.mark.parametrize("delta", [0.1, 1.0, 3.5])
def test_huber_is_scipys(delta):
    rng = np.random.default_rng(6)
    p, y = 3.0 * rng.standard_normal(200), rng.standard_normal(200)
    p[:2] = y[:2] + np.array([delta, -delta])  # where the formula changes
    loss = ds.Huber(delta)
    found = [loss.value(a, b) for a, b in zip(p, y, strict=True)]
    np.testing.assert_allclose(found, scipy.special.huber(delta, p - y), rtol=1e-13, atol=1e-16)
    slopes = [loss.derivative(a, b) for a, b in zip(p, y, strict=True)]
    np.testing.assert_allclose(slopes, np.clip(p - y, -delta, delta), rtol=1e-13)


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_multinomial_is_the_log_sum_exp(classes, scale):
    rng = np.random.default_rng(7)
    p, labels = 5.0 * rng.standard_normal((100, classes)), rng.integers(0, classes, 100)
    loss, rows = ds.Multinomial(scale), np.eye(classes)[labels]
    found = np.array([loss.value(a, b) for a, b in zip(p, rows, strict=True)])
    expected = scale * (scipy.special.logsumexp(p, axis=1) - p[np.arange(100), labels])
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    probabilities = scipy.special.softmax(p, axis=1)
    assert found.mean() == pytest.approx(scale * log_loss(labels, probabilities, labels=range(classes)), rel=1e-8)
    slopes = np.stack([gradient(loss, a, b) for a, b in zip(p, rows, strict=True)])
    np.testing.assert_allclose(slopes, scale * (probabilities - rows), rtol=1e-12, atol=1e-15)


def test_multinomial_takes_probabilities():
    p, y = np.array([1.0, -2.0, 0.5]), np.array([0.2, 0.5, 0.3])
    assert ds.Multinomial().value(p, y) == pytest.approx(scipy.special.logsumexp(p) - y @ p, rel=1e-14)


def test_poisson_is_the_likelihood():
    rng = np.random.default_rng(8)
    p, y = rng.standard_normal(100), rng.poisson(2.0, 100).astype(float)
    loss = ds.Poisson(1.5)
    found = np.array([loss.value(a, b) for a, b in zip(p, y, strict=True)])
    expected = -scipy.stats.poisson.logpmf(y, np.exp(p)) - scipy.special.gammaln(y + 1.0)
    np.testing.assert_allclose(found, 1.5 * expected, rtol=1e-11, atol=1e-12)


def test_squared_and_squared_hinge_are_their_formulas():
    rng = np.random.default_rng(9)
    for p, y in zip(2.0 * rng.standard_normal(100), rng.choice([-1.0, 1.0], 100), strict=True):
        assert ds.Squared(0.5).value(p, y) == pytest.approx(0.5 * (p - y) ** 2, rel=1e-14)
        assert ds.SquaredHinge(3.0).value(p, y) == pytest.approx(3.0 * max(0.0, 1.0 - y * p) ** 2, rel=1e-14)
        assert ds.SquaredHinge(3.0).derivative(p, y) == pytest.approx(-6.0 * y * max(0.0, 1.0 - y * p), rel=1e-14)


@every_loss
def test_scale_is_a_factor(name):
    kind = ds.LOSSES[name]
    if "scale" not in kind._fields:
        pytest.skip("has no scale")
    _, predictions, targets = samples(name, np.random.default_rng(10), rows=5)
    for p, y in zip(predictions, targets, strict=True):
        assert value(kind(scale=2.5), p, y) == pytest.approx(2.5 * value(kind(scale=1.0), p, y), rel=1e-13)
        np.testing.assert_allclose(gradient(kind(scale=2.5), p, y), 2.5 * gradient(kind(scale=1.0), p, y), rtol=1e-13)
    if hasattr(kind, "curvature"):
        assert kind(scale=2.5).curvature == pytest.approx(2.5 * kind(scale=1.0).curvature, rel=1e-14)


@every_loss
@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (0.0, ValueError),
        (-1.0, ValueError),
        (math.inf, ValueError),
        (math.nan, ValueError),
        ("1", TypeError),
        (True, TypeError),
        (None, TypeError),
        (1j, TypeError),
    ],
)
def test_parameters_are_checked(name, wrong, error):
    kind = ds.LOSSES[name]
    for field in kind._fields:
        with pytest.raises(error, match=f"{kind.__name__}: {field}"):
            kind(**{field: wrong})


@pytest.mark.parametrize("name", ["logistic", "squared_hinge"])
@pytest.mark.parametrize("targets", [[0.0, 1.0, 1.0], [2.0, 1.0, -1.0], [[1.0, 0.5], [1.0, 1.0], [1.0, -1.0]]])
def test_labels_other_than_signs_are_refused(name, targets):
    loss = ds.LOSSES[name]()
    with pytest.raises(ValueError, match=r"y must be -1 or \+1"):
        loss.check_targets(np.array(targets))
    with pytest.raises(ValueError, match=type(loss).__name__):
        ds.Problem(np.eye(3), targets, loss)


def test_negative_counts_are_refused():
    with pytest.raises(ValueError, match="y must be >= 0 for Poisson; got -1"):
        ds.Problem(np.eye(3), [2.0, -1.0, 0.0], ds.Poisson())


@pytest.mark.parametrize(
    "targets",
    [
        [0.0, 1.5, 1.0],
        [0.0, -1.0, 1.0],
        [0.0, 0.0, 0.0],
        [0.0, 1.0, 5000.0],
        [0.0, 1.0, 1e300],
        [[1.0], [1.0], [1.0]],
        [[0.5, 0.6], [1.0, 0.0], [0.0, 1.0]],
        [[-0.5, 1.5], [1.0, 0.0], [0.0, 1.0]],
    ],
)
def test_wrong_classes_are_refused(targets):
    with pytest.raises(ValueError, match="y must"):
        ds.Problem(np.eye(3), targets, ds.Multinomial())


def test_class_numbers_become_indicator_rows():
    y = np.array([2.0, 0.0, 1.0, 2.0])
    rows = ds.Multinomial().check_targets(y)
    assert (rows == np.eye(3)[[2, 0, 1, 2]]).all()
    problem = ds.Problem(np.eye(4), y.astype(int), ds.Multinomial())
    assert problem.shape == (4, 3)
    given = ds.Problem(np.eye(4), rows, ds.Multinomial())
    w = np.random.default_rng(0).standard_normal((4, 3))
    assert problem.objective(w) == given.objective(w)


@every_loss
def test_valid_targets_are_returned_unchanged(name):
    loss, _, targets = samples(name, np.random.default_rng(11), rows=10)
    if not hasattr(type(loss), "check_targets"):
        pytest.skip("takes any targets")
    kept = targets.copy()
    assert (loss.check_targets(targets) == kept).all()
    assert (targets == kept).all()


class KeyedLoss(NamedTuple):
    scale: float

    def value(self, pred, y):
        return {0.0: 1.0}[y] * self.scale * (pred - y) ** 2

    def derivative(self, pred, y):
        return 2.0 * {0.0: 1.0}[y] * self.scale * (pred - y)


def test_a_missing_key_is_not_called_the_end_of_an_array():
    with pytest.raises(Exception) as told:  # it cannot be compiled either
        ds.solve(ds.Problem(np.eye(3), np.ones(3), KeyedLoss(1.0)), tol=1e-3)
    assert "beyond the end" not in str(told.value)
