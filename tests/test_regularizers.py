"""Every regulariser of the registry: the prox against cvxpy and its optimality condition, odd input, precision, bounds."""

import functools
import itertools
import math
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dapsgd as ds
from dapsgd._calls import has_trait, run_prox, run_value
from dapsgd._jit import compiled
from dapsgd._terms import bind, prox_handle, usable_regularizer
from dapsgd.regularizers import fused_lasso

from . import cases
from .test_optimum import index_arrays, minimise_in_cvxpy, penalty_in_cvxpy

P, Q = cases.P, cases.Q

every_regularizer = pytest.mark.parametrize("name", ds.REGULARIZERS)
every_shape = pytest.mark.parametrize("shape", [(P,), (P, Q), (P, 1)], ids=str)
HAVE_STRENGTH = [name for name in ds.REGULARIZERS if name not in ("zero", "box")]
# Repeatable, and without a database: a failure anywhere is a failure everywhere.
examples = functools.partial(settings, deadline=None, derandomize=True, database=None)


def example(name, shape, strength=0.5):
    """The registry's example for a parameter of this shape; one with other rows than P has groups of one row."""
    h = cases.regularizers(math.prod(shape), strength)[name]
    return h._replace(groups=1, weights=None) if "groups" in h._fields and shape[0] != P else h


def bound_prox(bound, v, step):
    """The compiled prox, without the checks of ``ds.prox``, which let nothing odd pass."""
    kept, out = v.copy(), np.full_like(v, 7.0)
    run_prox(prox_handle(bound, out), v, step, out)
    assert np.array_equal(v, kept, equal_nan=True)
    return out


def plain_prox(bound, v, step):
    """The same lines of Python, interpreted."""
    out = np.full_like(v, 7.0)
    with np.errstate(all="ignore"):
        type(bound).prox(bound, v, step, out)
    return out


def naive_value(name, h, w):
    variable = cp.Variable(w.shape)
    variable.value = w
    if name == "box":
        return 0.0 if ((w >= h.low) & (w <= h.high)).all() else math.inf
    if name == "non_negative" and (w < 0.0).any():
        return math.inf
    return float(penalty_in_cvxpy(name, h, variable)[0].value)


def points(shape, seed=0, count=3, spread=1.0):
    """Signals that a regulariser treats differently: noise, steps with noise, ties, small and large entries."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield spread * rng.standard_normal(shape)
        steps = np.repeat(rng.standard_normal((4, *shape[1:])), -(-shape[0] // 4), axis=0)[: shape[0]]
        yield spread * (steps + 0.05 * rng.standard_normal(shape))
        yield spread * rng.integers(-2, 3, shape).astype(float)
        yield spread * rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 2, shape)


# The prox is the minimiser.


@every_regularizer
@every_shape
def test_value_equals_the_formula(name, shape):
    h = example(name, shape)
    bound = bind(h, shape)
    for w in points(shape, seed=1):
        for point in (w, np.abs(w)):
            kept = point.copy()
            expected = naive_value(name, h, point)
            assert run_value(bound, point) == pytest.approx(expected, rel=1e-12)
            assert type(bound).value(bound, point) == pytest.approx(expected, rel=1e-12)
            assert (point == kept).all()


@every_regularizer
@pytest.mark.parametrize("shape", [(P,), (P, Q)], ids=str)
@pytest.mark.parametrize("step", [0.3, 2.0])
def test_prox_equals_cvxpys(name, shape, step):
    h = example(name, shape)
    for v in points(shape, seed=2, count=1):
        u = cp.Variable(shape)
        penalty, constraints = penalty_in_cvxpy(name, h, u)
        value = minimise_in_cvxpy(cp.sum_squares(u - v) / (2.0 * step) + penalty, constraints)
        p = ds.prox(h, v, step)
        ours = ((p - v) ** 2).sum() / (2.0 * step) + naive_value(name, h, p)
        # The value is 1/step-strongly convex: a gap g in it means a distance of at most sqrt(2 g step).
        assert ours == pytest.approx(value, rel=1e-8, abs=1e-8)
        np.testing.assert_allclose(p, u.value, atol=2e-4)


@every_regularizer
@every_shape
@pytest.mark.parametrize("step", [0.01, 1.0, 30.0])
def test_prox_meets_the_optimality_condition(name, shape, step):
    h = example(name, shape)
    bound = bind(h, shape)
    rng = np.random.default_rng(3)
    for v in points(shape, seed=3, count=2):
        p = ds.prox(h, v, step)
        at_p = run_value(bound, p)
        slope = (v - p) / step
        scale = np.abs(v).max() ** 2 / step + abs(at_p) + 1e-3
        others = [np.zeros(shape), v, 2.0 * p, 0.5 * p, -p, p + 1.0, p - 1.0, np.sort(p, axis=0)]
        others += [p + size * rng.standard_normal(shape) for size in (1e-6, 1e-3, 1e-1, 1.0, 10.0) for _ in range(4)]
        others += [p + size * np.eye(1, p.size, k).reshape(shape) for size in (-0.01, 0.01) for k in range(p.size)]
        assert np.isfinite(at_p)
        for u in others:
            # (v - p) / step is a subgradient of h at p: its plane lies below h.
            assert run_value(bound, u) >= at_p + (slope * (u - p)).sum() - 1e-11 * scale
            better = run_value(bound, u) + ((u - v) ** 2).sum() / (2.0 * step)
            assert better >= at_p + ((p - v) ** 2).sum() / (2.0 * step) - 1e-11 * scale


@every_regularizer
@pytest.mark.parametrize("shape", [(P,), (P, Q)], ids=str)
@examples(max_examples=60)
@given(data=st.data())
def test_prox_is_firmly_non_expansive(name, shape, data):
    size = math.prod(shape)
    entries = st.floats(-100.0, 100.0) | st.integers(-3, 3).map(float)
    draw = st.lists(entries, min_size=size, max_size=size).map(lambda v: np.reshape(v, shape))
    u, v = data.draw(draw), data.draw(draw)
    step = data.draw(st.sampled_from([1e-3, 0.3, 1.0, 7.0, 1e3]))
    bound = bind(example(name, shape), shape)
    pu, pv = bound_prox(bound, u, step), bound_prox(bound, v, step)
    scale = np.abs(u).max() + np.abs(v).max()
    assert ((pu - pv) ** 2).sum() <= ((pu - pv) * (u - v)).sum() + 1e-11 * scale**2


@every_regularizer
@every_shape
def test_compiled_equals_plain_python(name, shape):
    bound = bind(example(name, shape), shape)
    for v in points(shape, seed=4):
        for step in (0.0, 0.1, 1.0, 50.0):
            expected = plain_prox(bound, v, step)
            accuracy = 1e-13 * np.abs(v).max()
            np.testing.assert_allclose(bound_prox(bound, v, step), expected, rtol=0, atol=accuracy)
            assert ((bound_prox(bound, v, step) == 0.0) == (expected == 0.0)).all()


@every_regularizer
@pytest.mark.parametrize("shape", [(P,), (P, Q)], ids=str)
def test_single_precision(name, shape):
    h = example(name, shape)
    bound = bind(h, shape)
    for v in points(shape, seed=5):
        narrow = v.astype(np.float32)
        scale = max(1.0, float(np.abs(v).max()))
        for step in (0.1, 1.0, 20.0):
            found = ds.prox(h, narrow, step)
            assert found.dtype == np.float32
            np.testing.assert_allclose(found, ds.prox(h, narrow.astype(np.float64), step), rtol=0, atol=1e-5 * scale)
            assert math.isfinite(run_value(bound, found))  # a projection is inside, as the value sees it
        assert run_value(bound, narrow) == pytest.approx(run_value(bound, narrow.astype(np.float64)), rel=1e-5)


# Odd input.


@every_regularizer
@pytest.mark.parametrize("shape", [(1,), (1, 1), (1, Q), (2,), (2, Q)], ids=str)
def test_few_entries(name, shape):
    h = example(name, shape)
    bound = bind(h, shape)
    for v in points(shape, seed=6):
        p = ds.prox(h, v, 0.5)
        assert p.shape == shape
        np.testing.assert_allclose(p, plain_prox(bound, v, 0.5), rtol=0, atol=1e-13 * np.abs(v).max())
        at_p = run_value(bound, p)
        assert at_p == pytest.approx(naive_value(name, h, p), rel=1e-12, abs=1e-15)
        rng = np.random.default_rng(7)
        for u in [np.zeros(shape), v, *(p + 0.1 * rng.standard_normal((20, *shape)))]:
            assert run_value(bound, u) >= at_p + ((v - p) / 0.5 * (u - p)).sum() - 1e-11 * (1.0 + np.abs(v).max() ** 2)


def is_homogeneous(bound, shape):
    w = np.linspace(-0.01, 0.012, math.prod(shape)).reshape(shape)
    return all(
        math.isclose(run_value(bound, 2.0**k * v), 2.0**k * run_value(bound, v)) for k in range(12) for v in (w, np.abs(w))
    )


@every_regularizer
@pytest.mark.parametrize("shape", [(P,), (P, Q)], ids=str)
@pytest.mark.parametrize(
    ("dtype", "exponent"),
    [(np.float64, k) for k in (990, 500, 60, -60, -500, -990)] + [(np.float32, k) for k in (100, 60, -60, -100)],
)
def test_huge_and_tiny_input(name, shape, dtype, exponent):
    h = example(name, shape)
    bound = bind(h, shape)
    for v in points(shape, seed=8, count=1):
        scaled = np.ldexp(v, exponent).astype(dtype)
        p = bound_prox(bound, scaled, 0.5)
        assert np.isfinite(p).all()
        assert np.abs(p).max() <= np.abs(scaled).max() * (1.0 + 1e-5) or name == "box"
        assert not math.isnan(run_value(bound, scaled))
        if is_homogeneous(bound, shape):  # then prox(a*v, a*step) = a*prox(v, step), and a power of two rounds nothing
            accuracy = 1e-13 if dtype == np.float64 else 1e-5
            p = np.ldexp(bound_prox(bound, scaled, math.ldexp(0.5, exponent)).astype(np.float64), -exponent)
            np.testing.assert_allclose(p, ds.prox(h, v, 0.5), rtol=0, atol=accuracy * np.abs(v).max())
            expected = math.ldexp(run_value(bound, v), exponent)
            assert run_value(bound, scaled) == pytest.approx(expected, rel=1e-13 if dtype == np.float64 else 1e-5, abs=0)


@every_regularizer
@pytest.mark.parametrize("shape", [(P,), (P, Q)], ids=str)
@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-300, 1e-150, 1e150, 1e300, 1.7e308])
def test_extreme_entries_among_others(name, shape, size):
    bound = bind(example(name, shape), shape)
    rng = np.random.default_rng(9)
    for number in (1, 3, math.prod(shape)):
        v = rng.standard_normal(shape)
        v.flat[rng.permutation(v.size)[:number]] = size * rng.choice([-1.0, 1.0], number)
        for step in (0.0, 1e-300, 1.0, 1e300):
            p = bound_prox(bound, v, step)
            plain = plain_prox(bound, v, step)
            assert np.array_equal(np.isnan(p), np.isnan(plain))
            if size < 1e308:  # of twice the largest number nothing can be asked
                assert np.isfinite(p).all()
                np.testing.assert_allclose(p, plain, rtol=0, atol=1e-12 * np.abs(v).max())
            run_value(bound, v)


@every_regularizer
@pytest.mark.parametrize("shape", [(P,), (P, Q), (1,), (1, 1)], ids=str)
@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_nan_and_infinity_come_back(name, shape, odd, dtype):
    bound = bind(example(name, shape), shape)
    size = math.prod(shape)
    rng = np.random.default_rng(10)
    for base in (rng.standard_normal(shape), np.zeros(shape), 100.0 * rng.standard_normal(shape)):
        for places in [[k] for k in range(size)] + [[0, size - 1], list(range(size))]:
            v = base.astype(dtype)
            v.flat[places] = odd
            for step in (0.0, 0.1, 10.0):
                p = bound_prox(bound, v, step)
                plain_prox(bound, v, step)
                if math.isnan(odd):
                    assert np.isnan(p).any()
                    if has_trait(type(bound), "elementwise"):
                        assert (np.isnan(p) == np.isnan(v)).all()
            if math.isnan(odd) and name != "zero":
                assert not run_value(bound, v) < math.inf


@every_regularizer
def test_arguments_are_checked(name):
    h = example(name, (P,))
    assert usable_regularizer(h) is h
    v = np.ones(P)
    for wrong, error in ((np.nan, ValueError), (-1.0, ValueError), (np.inf, ValueError), ("1", TypeError)):
        with pytest.raises(error, match="step"):
            ds.prox(h, v, wrong)
    for wrong in (v * np.nan, v * np.inf):
        with pytest.raises(ValueError, match="v must not contain NaN or infinity"):
            ds.prox(h, wrong, 1.0)
    with pytest.raises(ValueError, match="dimensions"):
        ds.prox(h, np.ones((P, 2, 2)), 1.0)
    with pytest.raises(TypeError, match="class"):
        ds.prox(type(h), v, 1.0)


NUMBERS = [(name, field) for name in HAVE_STRENGTH for field in example(name, (P,))._fields if field in ("lam", "l1", "ratio")]


@pytest.mark.parametrize(("name", "field"), NUMBERS)
@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf, "1", None, True, 1j])
def test_parameters_are_checked(name, field, wrong):
    h = example(name, (P,))
    error = ValueError if isinstance(wrong, float) else TypeError
    with pytest.raises(error, match=f"{type(h).__name__}: {field} must be"):
        type(h)(**{**h._asdict(), field: wrong})


@every_regularizer
@pytest.mark.parametrize("shape", [(P,), (P, Q)], ids=str)
def test_memory_of_the_caller_is_left_alone(name, shape):
    h = example(name, shape)
    v = np.random.default_rng(11).standard_normal(shape)
    kept = v.copy()
    p = ds.prox(h, v, 0.5)
    assert (v == kept).all()
    assert not np.shares_memory(p, v)
    v.flags.writeable = False
    forms = [v, np.asfortranarray(v), np.repeat(v, 2, axis=0)[::2], v[::-1].copy()[::-1], v.tolist()]
    for form in forms:
        assert (ds.prox(h, form, 0.5) == p).all()
        assert ds.prox(h, form, 0.5).flags.c_contiguous
    assert (ds.prox(h, np.round(3.0 * v).astype(int), 0.5) == ds.prox(h, np.round(3.0 * v), 0.5)).all()


# Exact structure.


@pytest.mark.parametrize("name", [*(name for name in HAVE_STRENGTH if name != "non_negative"), "zero"])
@every_shape
def test_no_strength_is_the_identity(name, shape):
    h = example(name, shape, strength=0.0)
    for v in points(shape, seed=12):
        p = ds.prox(h, v, 3.0)
        np.testing.assert_allclose(p, v, rtol=0, atol=1e-14 * np.abs(v).max())
        if name != "nuclear" or len(shape) == 1:  # a product of singular vectors is rounded
            assert (p == v).all()
        assert run_value(bind(h, shape), v) == 0.0


@every_regularizer
@every_shape
def test_no_step_is_the_identity(name, shape):
    h = example(name, shape)
    for v in points(shape, seed=13):
        expected = np.maximum(v, {"box": -0.2, "non_negative": 0.0}.get(name, -np.inf))
        np.testing.assert_allclose(ds.prox(h, v, 0.0), expected, rtol=0, atol=1e-14 * np.abs(v).max())


@pytest.mark.parametrize("name", HAVE_STRENGTH)
@every_shape
def test_zero_stays_zero(name, shape):
    assert (ds.prox(example(name, shape), np.zeros(shape), 1.0) == 0.0).all()


@pytest.mark.parametrize("kind", [ds.L1, lambda t: ds.ElasticNet(t / 0.4, 0.4), lambda t: ds.Slope(np.full(P, t))])
def test_l1_zeros_are_exact(kind):
    for v in points((P,), seed=14):
        for t in (0.1, 1.0, float(np.abs(v).max()), float(np.median(np.abs(v)))):
            p = ds.prox(kind(t), v, 1.0)
            assert ((p == 0.0) == (np.abs(v) <= t * (1.0 + 1e-15))).all()
            assert (np.sign(p) * np.sign(v) >= 0.0).all()


def test_l1_is_the_soft_threshold():
    v = np.array([3.0, -0.5, -2.0, 1.0, -1.0, 0.0])
    assert (ds.prox(ds.L1(0.5), v, 2.0) == np.array([2.0, 0.0, -1.0, 0.0, 0.0, 0.0])).all()


@pytest.mark.parametrize("ratio", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("shape", [(P,), (P, Q)], ids=str)
def test_groups_are_zero_as_a_whole(ratio, shape):
    weights = [1.0, 0.5, 2.0, 1.5]
    h = ds.SparseGroupLasso(1.0, cases.UNEVEN, ratio, weights)
    zeros = 0
    for v in points(shape, seed=15):
        p = ds.prox(h, v, 1.0)
        soft = np.sign(v) * np.maximum(np.abs(v) - ratio, 0.0)
        for g, weight in zip(cases.UNEVEN, weights, strict=True):
            size, threshold = np.linalg.norm(soft[g]), (1.0 - ratio) * weight
            if size <= threshold:
                assert (p[g] == 0.0).all()
                zeros += 1
            else:
                assert ((p[g] == 0.0) == (soft[g] == 0.0)).all()
                np.testing.assert_allclose(p[g], soft[g] * (1.0 - threshold / size), rtol=1e-12, atol=1e-15)
        if ratio == 0.0:
            assert (p == ds.prox(ds.GroupLasso(1.0, cases.UNEVEN, weights), v, 1.0)).all()
        if ratio == 1.0:
            assert (p == ds.prox(ds.L1(1.0), v, 1.0)).all()
    assert zeros >= 2


def test_a_group_without_weight_is_left_alone():
    v = np.array([1.0, 2.0, 3.0, 4.0, 0.0, 0.0])
    h = ds.GroupLasso(100.0, 2, weights=[0.0, 1.0, 0.0])
    assert (ds.prox(h, v, 1.0) == [1.0, 2.0, 0.0, 0.0, 0.0, 0.0]).all()


@pytest.mark.parametrize("regularizer", [ds.GroupLasso, ds.SparseGroupLasso])
def test_weights_of_one_are_those_that_nobody_gave(regularizer):
    with_weights, without = regularizer(0.7, cases.UNEVEN, weights=np.ones(4)), regularizer(0.7, cases.UNEVEN)
    v = np.random.default_rng(0).normal(size=P)
    bound, bare = with_weights.bind((P,)), without.bind((P,))
    assert bound.weights.size == bare.weights.size == 0
    assert (ds.prox(with_weights, v, 0.3) == ds.prox(without, v, 0.3)).all()
    almost = with_weights._replace(weights=[1.0, 1.0, 1.0, np.nextafter(1.0, 2.0)]).bind((P,))
    assert almost.weights.size == 4
    assert almost.value(v) == pytest.approx(bare.value(v), rel=1e-14)
    assert isinstance(bare.value(v.astype(np.float32)), float)  # added up in double precision
    assert almost.lam_max(v) == pytest.approx(bare.lam_max(v), rel=1e-14)
    assert almost.subgradient_bound((P,)) == pytest.approx(bare.subgradient_bound((P,)), rel=1e-14)


@pytest.mark.parametrize(("rows", "dtype"), [(2**30, np.int32), (2**33, np.int64)])
def test_places_in_a_large_parameter_have_room_for_them(rows, dtype):
    bound = ds.GroupLasso(1.0, groups=2**28).bind((rows,))
    assert bound.starts.dtype == bound.order.dtype == dtype
    assert bound.starts[-1] == rows


def test_steps_are_exact():
    rng = np.random.default_rng(16)
    for jumps in ([3.0], [0.0, 5.0, 2.0], [1.0, -1.0, 1.0, -1.0, 8.0]):
        truth = np.repeat(jumps, 20)
        p = ds.prox(ds.FusedLasso(1.0), truth + 0.01 * rng.standard_normal(truth.size), 2.0)
        assert len(np.unique(p)) == len(jumps)
        assert (np.flatnonzero(np.diff(p)) == 20 * np.arange(1, len(jumps)) - 1).all()
    two = np.stack([np.repeat([3.0, 0.0], 10), np.repeat([0.0, 0.0], 10)], axis=1)
    p = ds.prox(ds.FusedLasso(1.0, 0.2), two + 0.01 * rng.standard_normal(two.shape), 1.0)
    assert [len(np.unique(column)) for column in p.T] == [2, 1]
    assert (p[10:, 0] == 0.0).sum() in (0, 10)
    assert (p[:, 1] == 0.0).all()


@pytest.mark.parametrize("threshold", [1.0, 1e8, 1e16, 1e150, 1e300])
def test_a_large_strength_gives_the_mean_of_each_column(threshold):
    v = np.random.default_rng(17).standard_normal((200, 2)) * 0.01 + [5.0, -3.0]
    p = ds.prox(ds.FusedLasso(threshold), v, 10.0)
    assert (p == p[0]).all()
    np.testing.assert_allclose(p[0], v.mean(axis=0), rtol=1e-14)
    assert (ds.prox(ds.FusedLasso(threshold), np.full(50, 0.1), 10.0) == 0.1).all()


@pytest.mark.parametrize("shape", [(12, 3), (3, 12), (6, 6)], ids=str)
@pytest.mark.parametrize("share", [1e-6, 1e-3, 0.1])  # the large ones by way of the Gram matrix
@pytest.mark.parametrize("third", [0.5, 3.0])
def test_rank(shape, share, third):
    rng = np.random.default_rng(18)
    left, _ = np.linalg.qr(rng.standard_normal((shape[0], 3)))
    right, _ = np.linalg.qr(rng.standard_normal((shape[1], 3)))
    sizes = np.array([1.0, 0.5, third * share])
    v = left * sizes @ right.T
    p = ds.prox(ds.NuclearNorm(share), v, 1.0)
    expected = left * np.maximum(sizes - share, 0.0) @ right.T
    np.testing.assert_allclose(p, expected, rtol=0, atol=1e-13)
    assert np.linalg.matrix_rank(p) == (2 if third < 1.0 else 3)
    assert (ds.prox(ds.NuclearNorm(1.0 + 1e-12), v, 1.0) == 0.0).all()


def test_slope_ties_sizes():
    p = ds.prox(ds.Slope([2.0, 1.0, 0.5]), [-5.0, 4.5, 0.2], 1.0)
    assert p[0] == -p[1] == -3.25
    assert p[2] == 0.0


@pytest.mark.parametrize(("low", "high"), [(-0.2, 0.3), (0.0, math.inf), (-math.inf, 0.1), (0.5, 0.5)])
def test_box_is_a_projection(low, high):
    h = ds.Box(low, high)
    for v in points((P,), seed=19):
        p = ds.prox(h, v, 0.7)
        assert (p == np.clip(v, low, high)).all()
        assert (ds.prox(h, p, 5.0) == p).all()


@pytest.mark.parametrize(("low", "high"), [(1.0, 0.0), (math.inf, math.inf), (-math.inf, -math.inf)])
def test_an_empty_box_is_refused(low, high):
    with pytest.raises(ValueError, match="low must be at most high"):
        ds.prox(ds.Box(low, high), np.ones(3), 1.0)


@pytest.mark.parametrize("name", [name for name, kind in ds.REGULARIZERS.items() if has_trait(kind, "elementwise")])
def test_an_elementwise_prox_of_a_slice_is_the_slice_of_the_prox(name):
    h = example(name, (P,))
    for v in points((P,), seed=20):
        whole = ds.prox(h, v, 0.4)
        for cut in (slice(0, 1), slice(3, 9), slice(11, 12)):
            assert (ds.prox(h, v[cut], 0.4) == whole[cut]).all()


@pytest.mark.parametrize("shape", [(P,), (P, Q)], ids=str)
@pytest.mark.parametrize("name", ds.REGULARIZERS)
def test_a_prox_in_place_is_the_prox(name, shape):
    problem = ds.Problem(np.eye(P), np.zeros(shape), regularizer=example(name, shape))
    for v in points(shape, seed=22):
        expected, given = problem.packed_prox(v, 0.4), v.copy()
        answer = problem.packed_prox(given, 0.4, spend=True)
        np.testing.assert_array_equal(answer, expected)
        if has_trait(type(problem._bound), "in_place"):
            assert answer is given
        else:
            np.testing.assert_array_equal(given, v)


# Groups.


@pytest.mark.parametrize("kind", [ds.GroupLasso, ds.SparseGroupLasso])
@pytest.mark.parametrize("shape", [(P,), (P, Q)], ids=str)
def test_all_ways_to_give_groups_are_equal(kind, shape):
    v = np.random.default_rng(21).standard_normal(shape)
    rows = np.arange(P)
    forms = [
        3,
        np.int64(3),
        [[0, 1, 2], [3, 4, 5], (6, 7, 8), range(9, 12)],
        [rows[:3], rows[3:6], rows[6:9], rows[9:]],
        rows.reshape(4, 3),
        rows // 3,
        (rows // 3).tolist(),
        np.array(list("aaabbbcccddd")),
        (rows // 3 + 0.5),
    ]
    first = ds.prox(kind(0.5, forms[0]), v, 1.0)
    assert (first != 0.0).any()
    for form in forms[1:]:
        assert (ds.prox(kind(0.5, form), v, 1.0) == first).all()
        assert run_value(bind(kind(0.5, form), shape), v) == run_value(bind(kind(0.5, 3), shape), v)


@pytest.mark.parametrize("shape", [(P,), (P, Q)], ids=str)
@examples(max_examples=40)
@given(labels=st.lists(st.integers(-3, 5), min_size=P, max_size=P), seed=st.integers(0, 1000))
def test_any_partition(shape, labels, seed):
    rng = np.random.default_rng(seed)
    v = rng.standard_normal(shape)
    members = index_arrays(labels, P)
    weights = rng.uniform(0.0, 2.0, len(members))
    p = ds.prox(ds.GroupLasso(1.0, labels, weights), v, 0.7)
    expected = np.empty(shape)
    for g, c in zip(members, weights, strict=True):
        size = np.linalg.norm(v[g])
        expected[g] = v[g] * max(0.0, 1.0 - 0.7 * c / size)
    np.testing.assert_allclose(p, expected, rtol=1e-12, atol=1e-14)
    mixed = rng.permutation(len(members))  # the order of groups and of their members says nothing
    shuffled = [rng.permutation(members[g]) for g in mixed]
    again = ds.prox(ds.GroupLasso(1.0, shuffled, weights[mixed]), v, 0.7)
    np.testing.assert_allclose(again, p, rtol=1e-13, atol=1e-15)
    value = run_value(bind(ds.GroupLasso(1.0, labels, weights), shape), v)
    assert value == pytest.approx(sum(c * np.linalg.norm(v[g]) for g, c in zip(members, weights, strict=True)), rel=1e-12)


@pytest.mark.parametrize("kind", [ds.GroupLasso, ds.SparseGroupLasso])
@pytest.mark.parametrize(
    ("groups", "error", "message"),
    [
        (0, ValueError, "positive size"),
        (-2, ValueError, "positive size"),
        (4, ValueError, "divides the 6"),
        (True, TypeError, "groups must be"),
        (2.0, TypeError, "groups must be"),
        (None, TypeError, "groups must be"),
        ("abcabc", TypeError, "groups must be"),
        ([], ValueError, "one label for each"),
        ([0, 1, 0], ValueError, "one label for each"),
        (np.array(3), ValueError, "one label for each"),
        ([0.0, 1.0, math.nan, 0.0, 0.0, 0.0], ValueError, "NaN"),
        ([[0, 1, 2], [3, 4]], ValueError, "coordinate 5 is in no group"),
        ([[0, 1, 2], [2, 3, 4, 5]], ValueError, "coordinate 2 is in more"),
        ([[0, 1, 2], [3, 4, 6]], ValueError, "from 0 to 5"),
        ([[0, 1, 2], [3, 4, -1]], ValueError, "from 0 to 5"),
        ([[0, 1, 2], [], [3, 4, 5]], ValueError, "non-empty"),
        ([[0, 1, 2], [3.0, 4.0, 5.0]], TypeError, "integer indices"),
        ([[0, 1, 2], 3, [4, 5]], ValueError, "one-dimensional"),
    ],
)
def test_wrong_groups_are_refused(kind, groups, error, message):
    with pytest.raises(error, match=message):
        ds.prox(kind(1.0, groups), np.ones(6), 1.0)


@pytest.mark.parametrize(
    ("weights", "error"),
    [([1.0], ValueError), ([1.0, -1.0], ValueError), ([1.0, math.nan], ValueError), (["a", "b"], TypeError)],
)
def test_wrong_weights_are_refused(weights, error):
    with pytest.raises(error, match="weights"):
        ds.prox(ds.GroupLasso(1.0, 3, weights), np.ones(6), 1.0)


@pytest.mark.parametrize("lams", [[1.0, 2.0], [1.0, -1.0], [1.0], 1.0, [1.0, math.nan], [[1.0, 0.5]]])
def test_wrong_strengths_are_refused(lams):
    with pytest.raises(ValueError, match="Slope: lams must"):
        ds.prox(ds.Slope(lams), np.ones(2), 1.0)


# Bounds.


@every_regularizer
@every_shape
def test_subgradient_bound(name, shape):
    h = example(name, shape)
    bound = bind(h, shape)
    limit = bound.subgradient_bound(shape)
    rng = np.random.default_rng(22)
    signs = np.ones(shape)
    signs[::2] = -1.0
    largest = 0.0
    for v in [*points(shape, seed=22), 1e4 * rng.standard_normal(shape), 1e4 * signs]:
        for step in (0.1, 1.0):
            slope = np.linalg.norm((v - ds.prox(h, v, step)) / step)
            largest = max(largest, slope)
            assert slope <= limit * (1.0 + 1e-9) + 1e-11 * np.abs(v).max()
    if math.isinf(limit):
        assert largest > 1e3
    elif name == "fused_lasso":  # the two ends have one neighbour only
        assert largest >= 0.99 * limit * math.sqrt((4 * P - 6) / (4 * P - 4))
    else:
        assert largest >= 0.99 * limit


def test_subgradient_bounds_of_the_paper():
    # Erratum 3: the tight ones.
    assert bind(ds.L1(2.0), (9,)).subgradient_bound((9,)) == pytest.approx(2.0 * 3.0)
    assert bind(ds.GroupLasso(2.0, 3), (12,)).subgradient_bound((12,)) == pytest.approx(2.0 * 2.0)
    assert bind(ds.FusedLasso(2.0), (10,)).subgradient_bound((10,)) == pytest.approx(2.0 * 2.0 * 3.0)
    assert bind(ds.NuclearNorm(2.0), (9, 4)).subgradient_bound((9, 4)) == pytest.approx(2.0 * 2.0)


def stronger(problem, factor):
    """The same problem with its regulariser at a multiple of lam_max."""
    h, top = problem.regularizer, problem.lam_max() * factor
    h = h._replace(lam=top) if "lam" in h._fields else h._replace(lams=np.asarray(h.lams) * top)
    y = problem._targets if len(problem.shape) == 2 else problem._targets[:, 0]
    options = {"l2": problem.l2, "fit_intercept": problem.fit_intercept, "sample_weight": problem._weights}
    return ds.Problem(problem._rows.X, y, problem.loss, h, **options)


@pytest.mark.parametrize("name", HAVE_STRENGTH)
@pytest.mark.parametrize("loss", ["squared", "logistic", "multinomial", "poisson"])
@pytest.mark.parametrize("options", [{}, {"fit_intercept": True}, {"l2": 0.1}], ids=str)
def test_lam_max_is_where_the_answer_begins(name, loss, options):
    problem = cases.problem(loss, name, **options)
    x0 = np.random.default_rng(0).standard_normal(problem.shape)
    beyond = ds.solve(stronger(problem, 1.0 + 1e-9), "fista", tol=1e-13, x0=x0, max_iter=3000).x
    below = ds.solve(stronger(problem, 0.99), "fista", tol=1e-10, x0=x0).x
    if name == "fused_lasso":
        assert (beyond == beyond[0]).all()
        assert (below != below[0]).any()
    else:
        assert (beyond == 0.0).all()
        assert (below != 0.0).any()


@pytest.mark.parametrize("l1", [0.0, 0.02, 0.1, 0.3, 1.0])
@pytest.mark.parametrize("offset", [0.0, 0.1, 3.0])
@pytest.mark.parametrize("shape", [(P,), (P, Q)], ids=str)
def test_lam_max_of_the_fused_lasso_is_the_least(l1, offset, shape):
    # With X the unit matrix the answer is one prox; with an L1 part the constant may be zero or not.
    rng = np.random.default_rng(23)
    y = 0.5 * rng.standard_normal(shape) + offset
    problem = ds.Problem(np.eye(P), y, ds.Squared(0.5 * P), ds.FusedLasso(1.0, l1))
    top = problem.lam_max()
    beyond = ds.prox(ds.FusedLasso(top * (1.0 + 1e-9), l1), y, 1.0)
    below = ds.prox(ds.FusedLasso(top * 0.99, l1), y, 1.0)
    assert np.ptp(beyond, axis=0).max() <= 1e-9
    if top > 0.0:
        assert np.ptp(below, axis=0).max() > 1e-4


def test_lam_max_does_not_depend_on_the_unit_of_the_targets():
    X = np.random.default_rng(24).standard_normal((40, P))
    y = X @ np.repeat([1.0, 3.0], P // 2)
    first = ds.Problem(X, y, regularizer=ds.FusedLasso(1.0), fit_intercept=True).lam_max()
    for unit in (1e-12, 1e12):
        scaled = ds.Problem(X, unit * y, regularizer=ds.FusedLasso(1.0), fit_intercept=True).lam_max()
        assert scaled == pytest.approx(unit * first, rel=1e-9)


def test_lam_max_is_infinite_where_no_strength_is_enough():
    X, y = np.eye(3), np.ones(3)
    for h in (None, ds.Box(0.0, 1.0), ds.ElasticNet(1.0, 0.0), ds.GroupLasso(1.0, 1, [1.0, 0.0, 1.0])):
        assert ds.Problem(X, y, regularizer=h).lam_max() == math.inf
    assert ds.Problem(X, y, regularizer=ds.SparseGroupLasso(1.0, 1, 0.0, [1.0, 0.0, 1.0])).lam_max() == math.inf
    assert ds.Problem(X, y, regularizer=ds.Slope([0.0, 0.0, 0.0])).lam_max() == math.inf


def test_lam_max_of_nothing_is_zero():
    X, y = np.eye(4), np.zeros(4)
    for h in (ds.L1(1.0), ds.GroupLasso(1.0, 2), ds.SparseGroupLasso(1.0, 2), ds.NuclearNorm(1.0), ds.FusedLasso(1.0)):
        assert ds.Problem(X, y, regularizer=h).lam_max() == 0.0


# One-dimensional total variation: the three functions behind the fused lasso.


def dynamic_programming(v, t):
    """The minimiser of ||u - v||^2 / 2 + t * sum |u_j - u_(j+1)|, as in Johnson (2013) but plain; exact for fractions.

    The derivative of the best value of entries 0..j, as a function of u_j, is piecewise linear and increasing; it is kept as
    knots (place, value), with slope 1 beyond them. Total variation clips it to [-t, t] on the way to the next entry.
    """

    def crossing(knots, level):
        if knots[0][1] >= level:
            return knots[0][0] - (knots[0][1] - level)
        for (x0, g0), (x1, g1) in itertools.pairwise(knots):
            if g0 < level <= g1:
                return x0 + (x1 - x0) * (level - g0) / (g1 - g0)
        return knots[-1][0] + (level - knots[-1][1])

    knots, clips = [(v[0], v[0] - v[0])], []
    for entry in v[1:]:
        low, high = crossing(knots, -t), crossing(knots, t)
        clips.append((low, high))
        clipped = [(low, -t), *((x, g) for x, g in knots if -t < g < t), (high, t)]
        knots = [(x, g + x - entry) for x, g in clipped]
    u = [crossing(knots, 0)]
    for low, high in reversed(clips):
        u.append(min(max(u[-1], low), high))
    return u[::-1]


def between_heights(v, t, enter, leave):
    """The same, for a string that starts and ends at these heights: they only add to the first and the last entry."""
    v = list(v)
    v[0] -= enter
    v[-1] += leave
    return dynamic_programming(v, t)


def signals(count, rng):
    """Pairs of a signal and a threshold, of every kind that has ever broken such code."""
    for k in range(count):
        n = int(rng.integers(1, 14))
        noise = rng.standard_normal(n)
        v = [
            noise,
            rng.integers(-2, 3, n).astype(float),
            np.arange(n) * rng.choice([1.0, -0.5, 1e-3]),
            np.full(n, noise[0]),
            np.where(np.arange(n) % 2, 1.0, -1.0) * rng.choice([1.0, 3.0]),
            np.cumsum(noise),
            np.repeat(noise, 2)[:n],
            np.sort(noise) * 10.0,
            noise * 10.0 ** rng.integers(-6, 4, n),
            np.round(noise, 1) + 100.0,
        ][k % 10]
        yield v, float(rng.choice([0.0, 1e-9, 0.01, 0.1, 0.25, 0.5, 1.0, 2.0, 10.0, 1e4, rng.random()]))


def run_denoise(function, v, *numbers):
    out = np.full_like(v, 7.0)
    result = compiled(function, v, *numbers, out)(v, *numbers, out)
    return out if result is None else (out, result)


def is_a_taut_string(v, t, u, enter=0.0, leave=0.0):
    """Whether u meets the optimality conditions, which are sufficient."""
    accuracy = 1e-12 * len(v) * (np.abs(v).max() + t)
    heights = enter + np.cumsum(u - v)
    inside = np.abs(heights[:-1]).max(initial=0.0) <= t + accuracy and abs(heights[-1] - leave) <= accuracy
    jumps = np.diff(u)
    real = np.abs(jumps) > accuracy
    return bool(inside and (np.abs(heights[:-1] - t * np.sign(jumps))[real] <= accuracy).all())


def test_denoise_equals_dynamic_programming():
    for v, t in signals(3000, np.random.default_rng(25)):
        u = run_denoise(fused_lasso.denoise, v, t)
        number = Fraction if t > np.ptp(v) else float  # a large threshold would drown v in the oracle's rounding errors
        expected = np.array(dynamic_programming([number(entry) for entry in v], number(t)), float)
        accuracy = 1e-12 * (np.abs(v).max() + min(t, np.ptp(v) * len(v)))
        np.testing.assert_allclose(u, expected, rtol=0, atol=accuracy, err_msg=f"{v!r} {t}")
        assert is_a_taut_string(v, t, u)


def test_denoise_equals_exact_arithmetic():
    rng = np.random.default_rng(26)
    for _ in range(1500):
        n = int(rng.integers(2, 16))
        v, t = rng.integers(-4, 5, n), int(rng.integers(0, 9))
        exact = dynamic_programming([Fraction(int(entry)) for entry in v], Fraction(t, 4))
        u = run_denoise(fused_lasso.denoise, v.astype(float), t / 4)
        np.testing.assert_allclose(u, np.array(exact, float), rtol=0, atol=1e-13)
        # What is fused is fused to the last bit.
        fused = np.array([a == b for a, b in itertools.pairwise(exact)])
        assert (np.abs(np.diff(u))[fused] <= 1e-14 * 5).all()


@pytest.mark.parametrize("function", ["denoise_piece", "scan", "taut_string"])
def test_pieces_between_heights(function):
    for v, t in signals(400, np.random.default_rng(27)):
        for enter in (-t, 0.0, t):
            for leave in (-t, 0.0, t):
                u = run_denoise(getattr(fused_lasso, function), v, t, enter, leave)
                done = len(v)
                if function == "scan":
                    u, (done, height) = u
                    assert 0 <= done <= len(v)
                    assert done < len(v) or height == leave
                expected = between_heights(v.tolist(), t, enter, leave)
                accuracy = 1e-12 * len(v) * (np.abs(v).max() + t)
                np.testing.assert_allclose(u[:done], expected[:done], rtol=0, atol=accuracy, err_msg=f"{v!r} {t}")


@pytest.mark.parametrize("t", [0.01, 0.3, 2.0, 30.0])
@pytest.mark.parametrize("seed", range(5))
def test_long_signals_meet_the_optimality_conditions(t, seed):
    rng = np.random.default_rng(seed)
    n = 5000
    noise = rng.standard_normal(n)
    kinds = [noise, noise.cumsum(), np.linspace(0.0, 10.0, n), np.linspace(0.0, 1.0, n) ** 2 * 50.0, np.sin(np.arange(n) / 99)]
    kinds += [rng.integers(0, 2, n).astype(float), np.abs(np.linspace(-5.0, 5.0, n)), 100.0 * noise * (rng.random(n) < 0.01)]
    for v in kinds:
        u = run_denoise(fused_lasso.denoise, v, t)
        assert is_a_taut_string(v, t, u)
        narrow = run_denoise(fused_lasso.denoise, v.astype(np.float32), t)
        assert narrow.dtype == np.float32
        np.testing.assert_allclose(narrow, u, rtol=0, atol=3e-7 * np.abs(v).max())
        straight = run_denoise(fused_lasso.taut_string, v, t, 0.0, 0.0)
        np.testing.assert_allclose(straight, u, rtol=0, atol=1e-9 * np.abs(v).max())


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf, 1.7e308])
def test_odd_entries_return(odd):
    rng = np.random.default_rng(28)
    for n in (1, 2, 3, 7, 300):
        for t in (0.0, 0.1, 5.0, 1e300, math.inf):
            for places in (0, n - 1, n // 2, slice(None), slice(None, None, 2)):
                v = rng.standard_normal(n)
                v[places] = odd
                for function in (fused_lasso.denoise, fused_lasso.denoise_piece, fused_lasso.taut_string):
                    heights = () if function is fused_lasso.denoise else (t, -t)
                    u = run_denoise(function, v, t, *heights)
                    assert math.isfinite(odd) or not np.isfinite(u).all()
                done, _ = run_denoise(fused_lasso.scan, v, t, -t, t)[1]
                assert 0 <= done <= n


class Counted(np.ndarray):
    """An array that counts reads and writes of entries and refuses indices outside, negative ones too."""

    reads = 0

    def check(self, key):
        Counted.reads += 1
        if isinstance(key, slice):
            start = 0 if key.start is None else key.start
            stop = self.size if key.stop is None else key.stop
            if not 0 <= start <= stop <= self.size:
                raise IndexError(f"{key} of {self.size}")
        elif not 0 <= key < self.size:
            raise IndexError(f"{key} of {self.size}")

    def __getitem__(self, key):
        self.check(key)
        return super().__getitem__(key)

    def __setitem__(self, key, value):
        self.check(key)
        super().__setitem__(key, value)


class CountedNumpy:
    """What fused_lasso.py needs of NumPy in these functions, with counted arrays."""

    int64 = np.int64

    @staticmethod
    def empty(size, dtype=float):
        return np.full(size, -1, dtype).view(Counted)


@pytest.fixture
def counted(monkeypatch):
    run_denoise(fused_lasso.denoise, np.zeros(3), 1.0)  # compiled while NumPy is itself
    run_denoise(fused_lasso.denoise_piece, np.zeros(3), 1.0, 0.0, 0.0)
    monkeypatch.setattr(fused_lasso, "np", CountedNumpy)
    monkeypatch.setattr(Counted, "reads", 0)

    def run(function, v, *numbers):
        out = np.full(len(v), 7.0).view(Counted)
        with np.errstate(all="ignore"):
            result = function(v.view(Counted), *numbers, out)
        out = np.asarray(out)
        return out if result is None else (out, result)

    return run


def test_no_index_is_ever_outside(counted):
    rng = np.random.default_rng(29)
    for k, (v, t) in enumerate(signals(300, rng)):
        if k % 3 == 0:
            v[rng.integers(0, len(v))] = rng.choice([math.nan, math.inf, -math.inf, 1e300, 0.0])
        u = counted(fused_lasso.denoise, v, t)
        np.testing.assert_array_equal(u, run_denoise(fused_lasso.denoise, v, t))
        for function in (fused_lasso.denoise_piece, fused_lasso.scan, fused_lasso.taut_string):
            for enter in (-t, t):
                counted(function, v, t, enter, 0.0)


RAMPS = {
    # A ramp's middle is its own answer, one entry a segment, but the scan looks far ahead before it knows.
    "ramp": (np.arange(5000.0), 1e5),
    "steep ramp": (np.arange(5000.0), 3.0),
    "falling ramp": (-np.arange(5000.0), 1e5),
    "bowl": (np.linspace(-1.0, 1.0, 5000) ** 2 * 1e4, 1e4),
    "growing ramp": (np.arange(5000.0) ** 2, 1e7),
    "saw": (np.arange(5000.0) % 500, 1e4),
    "alternating": (np.where(np.arange(5000) % 2, 1.0, -1.0), 0.4),
    "alternating ramp": (np.where(np.arange(5000) % 2, 1.0, -1.0) + np.arange(5000.0), 1e5),
    "noise": (np.random.default_rng(30).standard_normal(5000), 50.0),
    "walk": (np.random.default_rng(31).standard_normal(5000).cumsum(), 1e4),
    "constant": (np.ones(5000), 1.0),
}


@pytest.mark.parametrize("name", RAMPS)
def test_linear_time_whatever_comes(name, counted):
    v, t = RAMPS[name]
    u = counted(fused_lasso.denoise, v, t)
    assert Counted.reads <= 80 * v.size
    assert is_a_taut_string(v, t, u)
    np.testing.assert_array_equal(u, run_denoise(fused_lasso.denoise, v, t))


def test_the_scan_gives_up_on_a_ramp_and_the_string_takes_over(counted):
    v, t = RAMPS["ramp"]
    out, (done, height) = counted(fused_lasso.scan, v, t, 0.0, 0.0)
    assert Counted.reads <= 20 * v.size
    assert done < v.size
    assert abs(height) in (0.0, t)
    Counted.reads = 0
    rest = counted(fused_lasso.taut_string, v[done:], t, height, 0.0)
    assert Counted.reads <= 60 * v.size
    whole = np.concatenate([out[:done], rest])
    assert is_a_taut_string(v, t, whole)
    np.testing.assert_array_equal(whole, run_denoise(fused_lasso.denoise_piece, v, t, 0.0, 0.0))


def test_nan_in_a_gradient_is_nan_in_the_largest_strength():
    gradient = np.linspace(-1.0, 1.0, 9)
    gradient[4] = np.nan
    bound = ds.FusedLasso(1.0).bind(gradient.shape) if hasattr(ds.FusedLasso, "bind") else ds.FusedLasso(1.0)
    assert np.isnan(bound.lam_max(gradient))
