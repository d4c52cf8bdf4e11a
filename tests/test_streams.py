"""Batches of rows, one after the other: where a stream begins, how it goes on, what it refuses."""

import numpy as np
import pytest
import scipy.sparse as sp

import dapsgd as ds
from dapsgd import DAPClassifier, DAPRegressor
from dapsgd.estimators import _stream
from tests.table import COUNTS, THREE, TWO, WEIGHTS, N, P, W, X, Y


@pytest.mark.parametrize("algorithm", ["auto", "dap-sgd"])
def test_batches_lead_to_the_answer(algorithm):
    rng = np.random.default_rng(1)
    model = DAPRegressor("l1", 0.05, algorithm=algorithm, workers=2 if algorithm == "dap-sgd" else None, random_state=0)
    blocks = []
    for _ in range(60):
        rows = rng.standard_normal((100, P)) + 0.3
        blocks.append((rows, rows @ W + 0.7 + 0.5 * rng.standard_normal(100)))
        model.partial_fit(*blocks[-1])
    assert model.t_ == 6000
    rows, targets = (np.concatenate(part) for part in zip(*blocks, strict=True))
    best = DAPRegressor("l1", 0.05, tol=1e-8).fit(rows, targets)
    problem = ds.Problem(rows, targets, ds.Squared(0.5), ds.L1(0.05), fit_intercept=True)
    assert problem.objective(model.coef_, model.intercept_) <= 1.03 * best.objective_
    np.testing.assert_allclose(model.coef_, best.coef_, atol=0.1)
    assert model.intercept_ == pytest.approx(best.intercept_, abs=0.1)


def test_batches_of_labels_and_counts():
    model = DAPClassifier("l1", 0.01, random_state=0)
    for _ in range(50):
        model.partial_fit(X, THREE, classes=[0, 1, 2])
    assert model.score(X, THREE) > 0.75
    model.partial_fit(X[:1], THREE[:1])  # a batch need not hold every class
    sparse = DAPClassifier(random_state=0).partial_fit(sp.csr_matrix(X), TWO, classes=["no", "yes"], sample_weight=WEIGHTS)
    assert sparse.coef_.shape == (1, P)
    counts = DAPRegressor("l1", 0.01, loss="poisson", random_state=0)
    for _ in range(50):
        counts.partial_fit(X, COUNTS)
    best = DAPRegressor("l1", 0.01, loss="poisson").fit(X, COUNTS)
    assert counts.objective_ < 0.5 * (best.objective_ + 1.0)  # at zero it is 1


def test_a_stream_goes_on_from_a_fit():
    model = DAPRegressor("l1", 0.05, random_state=0).fit(X, Y)
    kept = model.coef_
    model.partial_fit(X, Y)
    assert model.t_ == 2 * N
    np.testing.assert_allclose(model.coef_, kept, atol=0.3)


def test_batches_begin_at_the_best_constant():
    rng = np.random.default_rng(0)
    data = rng.standard_normal((150, 5))
    y = 26.0 + data[:, 0]
    model = DAPRegressor("l1", alpha=0.01, random_state=0)
    for _ in range(10):
        for start in range(0, 150, 50):
            model.partial_fit(data[start : start + 50], y[start : start + 50])
    assert model.score(data, y) > 0.8


@pytest.mark.parametrize(
    ("size", "shift", "kind"),
    [
        (1, 30.0, np.float64),
        (1, 1000.0, np.float32),
        *((50, shift, kind) for shift in (0.0, 30.0, 1000.0) for kind in (np.float64, np.float32)),
    ],
)
def test_batches_of_columns_far_from_zero(size, shift, kind):
    rng = np.random.default_rng(0)
    data = rng.standard_normal((1500, 5)).astype(kind)
    y = 26.0 + data @ np.array([1.0, -2.0, 0.0, 0.0, 0.5])
    data += kind(shift)
    model = DAPRegressor("l1", alpha=0.01, random_state=0)
    for start in range(0, len(data), size):
        model.partial_fit(data[start : start + size], y[start : start + size])
    assert model.score(data, y) > 0.9
    labels = np.digitize(y - 26.0, [-1.0, 1.0])
    classifier = DAPClassifier("l1", alpha=0.001, random_state=0)
    for start in range(0, len(data), 50):
        classifier.partial_fit(data[start : start + 50], labels[start : start + 50], classes=[0, 1, 2])
    assert classifier.score(data, labels) > 0.7


def test_a_row_without_weight_does_not_move_the_means_of_a_stream():
    data, weights = X.copy(), np.ones(N)
    data[3], weights[3] = 1e9, 0.0
    one = DAPRegressor("l1", 0.05, random_state=0).partial_fit(data, Y, sample_weight=weights)
    np.testing.assert_allclose(one._stream.means, np.delete(data, 3, axis=0).mean(axis=0))


def test_streams_that_are_not_centred():
    sparse, dense = DAPRegressor("l1", 0.05, random_state=0), DAPRegressor("l1", 0.05, random_state=0, fit_intercept=False)
    huge = DAPRegressor("l1", 0.05, random_state=0)
    assert sparse.partial_fit(sp.csr_matrix(X), Y)._stream.means is None
    assert dense.partial_fit(X, Y)._stream.means is None
    with pytest.raises(ds.NumbersTooLargeError):
        huge.partial_fit(np.full_like(X, 1e308), Y)
    assert not hasattr(huge, "coef_")


FIRST = {"one row": [0], "one class": range(50), "without the second": range(20)}


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("classes", [2, 3])
def test_a_first_batch_need_not_show_every_class(first, classes):
    rng = np.random.default_rng(0)
    data = rng.standard_normal((2000, 6))
    signal = data @ np.repeat([0.0, 2.0, -1.0], 2) + 0.3 * rng.standard_normal(2000)
    labels = np.digitize(signal, [0.0] if classes == 2 else [-2.0, 2.0])
    kept = labels == 0 if first == "one class" else labels != 1 if first == "without the second" else labels >= 0
    begin = np.flatnonzero(kept)[FIRST[first]]
    rest = np.setdiff1d(np.arange(2000), begin)
    size = 1 if first == "one row" else 50
    model = DAPClassifier("l1", alpha=0.01, random_state=0)
    for rows in [begin, *(rest[k : k + size] for k in range(0, len(rest), size))]:
        model.partial_fit(data[rows], labels[rows], classes=range(classes))
    best = DAPClassifier("l1", alpha=0.01).fit(data, labels).score(data, labels)
    assert model.score(data, labels) > best - 0.07


def test_a_first_batch_of_no_counts():
    rng = np.random.default_rng(0)
    data = rng.standard_normal((2000, 4))
    counts = rng.poisson(np.exp(1.0 + data @ [0.5, -0.5, 0.0, 0.0]))
    order = np.argsort(counts != 0, kind="stable")[:1].tolist()
    order += np.setdiff1d(np.arange(2000), order).tolist()
    model = DAPRegressor("l1", 0.001, loss="poisson", random_state=0)
    model.partial_fit(data[order[:1]], counts[order[:1]])
    for start in range(1, 2000, 20):
        rows = order[start : start + 20]
        model.partial_fit(data[rows], counts[rows])
    assert model.score(data, counts) > 0.8 * DAPRegressor("l1", 0.001, loss="poisson").fit(data, counts).score(data, counts)


def test_a_batch_with_other_targets_is_refused():
    model = DAPRegressor("l1", 0.05, random_state=0).partial_fit(X, Y)
    kept = model.coef_.copy()
    for targets in (np.c_[Y, Y], np.c_[Y, Y, Y]):
        with pytest.raises(ValueError, match=r"y must have 1 target, as when the model was fitted before; got [23]"):
            model.partial_fit(X, targets)
    np.testing.assert_array_equal(model.coef_, kept)
    assert model.partial_fit(X, Y[:, None]).t_ == 2 * N
    assert model.coef_.shape == (P,)
    column = DAPRegressor("l1", 0.05, random_state=0).partial_fit(X, Y[:, None]).partial_fit(X, Y)
    assert column.coef_.shape == (1, P)
    np.testing.assert_allclose(column.coef_[0], model.coef_)


def test_a_batch_without_weight_changes_nothing():
    model = DAPRegressor("l1", 0.05, random_state=0)
    with pytest.raises(ValueError, match="sample_weight must not be zero everywhere"):
        model.partial_fit(X, Y, sample_weight=np.zeros(N))
    kept = model.partial_fit(X, Y).coef_.copy()
    np.testing.assert_array_equal(model.partial_fit(X, Y, sample_weight=np.zeros(N)).coef_, kept)
    assert model.t_ == N
    classifier = DAPClassifier(random_state=0, class_weight={"no": 0.0, "yes": 1.0}).partial_fit(X, TWO, classes=["no", "yes"])
    kept = classifier.coef_.copy()
    one = X[TWO == "no"]
    np.testing.assert_array_equal(classifier.partial_fit(one, np.full(len(one), "no")).coef_, kept)


def test_a_batch_uses_every_row_once_and_batches_are_not_alike():
    rng = np.random.default_rng(0)
    data, found = rng.standard_normal((40, 3)), []
    y = data @ [1.0, -1.0, 0.0]
    for moved in range(-1, 40):
        targets = y.copy()
        if moved >= 0:
            targets[moved] += 1.0
        found.append(DAPRegressor("l1", 0.001, random_state=0).partial_fit(data, targets).coef_)
    assert all((coef != found[0]).any() for coef in found[1:])
    orders = [_stream._every_row(40, np.random.SeedSequence([0, seen])).rows[:, 0] for seen in (0, 40)]
    assert (orders[0] != orders[1]).any()
    assert all(sorted(order) == list(range(40)) for order in orders)


@pytest.mark.parametrize("size", [1, 10, 250])
def test_an_intercept_keeps_up_with_rough_columns(size):
    rng = np.random.default_rng(0)
    data = rng.standard_normal((250, 120)).cumsum(axis=1) / 5.0
    y = data @ np.repeat([0.0, 1.0, 0.0, -1.0, 0.0], [30, 20, 30, 15, 25]) + rng.standard_normal(250)
    model = DAPRegressor("fused_lasso", alpha=0.3, random_state=0)
    for _ in range(2):
        for start in range(0, 250, size):
            model.partial_fit(data[start : start + size], y[start : start + size])
    assert model.score(data, y) > 0.85


def test_batches_compare_columns_and_find_targets_by_their_names(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=range(900, 900 + P))
    both = pd.DataFrame({"a": Y, "b": -2.0 * Y})
    right = DAPRegressor("l1", 0.05, random_state=0).partial_fit(frame, both).partial_fit(frame, both)
    model = DAPRegressor("l1", 0.05, random_state=0).partial_fit(frame, both)
    ds.models.save(model, tmp_path / "m.npz")
    for one in (model, ds.models.load(tmp_path / "m.npz")):
        one.partial_fit(frame, both[["b", "a"]])
        np.testing.assert_array_equal(one.coef_, right.coef_)
        assert one._panels() == ["a", "b"]
        with pytest.raises(ValueError, match="their order is another one"):
            one.partial_fit(frame.iloc[:, ::-1], both)
        with pytest.raises(ValueError, match="X lacks 5 of the"):
            one.partial_fit(frame.rename(columns=lambda name: name + 5), both)
        with pytest.raises(ValueError, match="y must have the targets of before, a, b; got c, b"):
            one.partial_fit(frame, both.rename(columns={"a": "c"}))


@pytest.mark.parametrize("weight", [1e-3, 100.0])
def test_the_intercept_of_a_stream_does_not_depend_on_the_size_of_weights(weight):
    rng = np.random.default_rng(0)
    data = rng.standard_normal((400, 5))
    y = 26.0 + data @ [1.0, -2.0, 0.0, 0.0, 0.5] + 3.0 * (np.arange(400) > 200)
    model, plain = (DAPRegressor("l1", alpha=a, random_state=0) for a in (0.01 * weight, 0.01))
    for start in range(0, 400, 20):
        rows = slice(start, start + 20)
        model.partial_fit(data[rows], y[rows], sample_weight=np.full(20, weight))
        plain.partial_fit(data[rows], y[rows])
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=0.1, atol=0.02)
    assert model.intercept_ == pytest.approx(plain.intercept_, rel=0.01)
