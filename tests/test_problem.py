"""The problem's numbers against naive NumPy, however the data is stored."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

import dapsgd as ds
from dapsgd import rows as rows_module
from dapsgd._jit import compiled, run
from dapsgd.columns import Wanted, add_up, no_columns

from . import cases

N, P, Q = 17, cases.P, cases.Q


def data(rng, *, n=N, p=P, density=0.5):
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < density)
    X[3] = 0.0  # an empty row
    X[:, 2] = 0.0  # and an empty column
    return X


def with_duplicates(X):
    """A CSR matrix that is not canonical: every entry in two halves, columns in reverse order."""
    parts = [(np.flatnonzero(row)[::-1], row) for row in X]
    indices = np.concatenate([np.repeat(columns, 2) for columns, _ in parts])
    values = np.concatenate([np.repeat(row[columns] / 2.0, 2) for columns, row in parts])
    starts = np.concatenate([[0], np.cumsum([2 * len(columns) for columns, _ in parts])])
    return sp.csr_matrix((values.astype(X.dtype), indices, starts), shape=X.shape)


def as_map(X, folder, order):
    X = np.asarray(X, order=order)
    path = folder / f"X{order}.npy"
    np.save(path, X)
    found = np.load(path, mmap_mode="r")
    assert isinstance(found, np.memmap)
    assert found.flags["F_CONTIGUOUS"] == (order == "F")
    return found


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


FORMS = {
    "C": lambda X, folder: np.ascontiguousarray(X),
    "F": lambda X, folder: np.asfortranarray(X),
    "strided": lambda X, folder: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda X, folder: X[::-1].copy()[::-1],
    "read-only": lambda X, folder: read_only(X),
    "memory map": lambda X, folder: as_map(X, folder, "C"),
    "memory map in F order": lambda X, folder: as_map(X, folder, "F"),
    "CSR": lambda X, folder: sp.csr_matrix(X),
    "CSR array": lambda X, folder: sp.csr_array(X),
    "CSC": lambda X, folder: sp.csc_matrix(X),
    "COO": lambda X, folder: sp.coo_matrix(X),
    "LIL": lambda X, folder: sp.lil_matrix(X),
    "CSR with duplicates": lambda X, folder: with_duplicates(X),
    "COO with duplicates": lambda X, folder: with_duplicates(X).tocoo(),
}


class Naive:
    """The objective as it is written down, a row at a time, in double precision and in Python."""

    def __init__(self, X, problem):
        self.X, self.problem = np.asarray(X, np.float64), problem
        self.y = problem._targets.astype(np.float64)
        self.weights = problem._weights.astype(np.float64)

    def predictions(self, w, b):
        return np.stack([np.atleast_1d(row @ w + b) for row in self.X])

    def objective(self, w, b=0.0):
        problem, total = self.problem, 0.0
        for s, pred, y in zip(self.weights, self.predictions(w, b), self.y, strict=True):
            if getattr(problem.loss, "joint", False):
                total += s * problem.loss.value(pred, y)
            else:
                total += s * sum(problem.loss.value(a, c) for a, c in zip(pred, y, strict=True))
        bound = problem._bound
        return total / problem.n + problem.l2 * (w**2).sum() + type(bound).value(bound, np.ascontiguousarray(w))

    def gradient(self, w, b=0.0):
        """In w and in the intercept."""
        problem = self.problem
        in_w, in_b = np.zeros((problem.p, self.y.shape[1])), np.zeros(self.y.shape[1])
        for s, row, pred, y in zip(self.weights, self.X, self.predictions(w, b), self.y, strict=True):
            slopes = np.empty(len(y))
            if getattr(problem.loss, "joint", False):
                problem.loss.gradient(pred, y, slopes)
            else:
                slopes[:] = [problem.loss.derivative(a, c) for a, c in zip(pred, y, strict=True)]
            in_w += s * np.outer(row, slopes) / problem.n
            in_b += s * slopes / problem.n
        return in_w.reshape(w.shape) + 2.0 * problem.l2 * w, in_b if w.ndim == 2 else in_b[0]

    def largest_eigenvalue(self):
        X = np.hstack([self.X, np.ones((len(self.X), 1))]) if self.problem.fit_intercept else self.X
        return np.linalg.eigvalsh(X.T @ (self.weights[:, None] * X))[-1] / self.problem.n

    def residual(self, w, b=0.0):
        scale = self.problem.lipschitz()
        scale = scale if 0.0 < scale < math.inf else 1.0
        in_w, in_b = self.gradient(w, b)
        moved = ds.prox(self.problem.regularizer, w - in_w / scale, 1.0 / scale)
        square = ((w - moved) ** 2).sum() * scale**2
        return math.sqrt(square + ((in_b**2).sum() if self.problem.fit_intercept else 0.0))


def compare(X, problem, rng, accuracy):
    naive = Naive(X, problem)
    w = 0.5 * rng.standard_normal(problem.shape)
    w = w.astype(problem.dtype).astype(np.float64)
    b = 0.0
    if problem.fit_intercept:
        b = rng.standard_normal(problem.shape[1:]).astype(problem.dtype).astype(np.float64)
        b = float(b) if problem.shape[1:] == () else b
    kept = w.copy()
    expected = naive.objective(w, b)
    assert problem.objective(w, b) == pytest.approx(expected, rel=accuracy)
    in_w, in_b = naive.gradient(w, b)
    found = problem.gradient(w, b)
    assert found.dtype == problem.dtype
    assert found.shape == problem.shape
    scale = max(np.abs(in_w).max(), 1.0)
    np.testing.assert_allclose(found, in_w, rtol=0, atol=accuracy * scale)
    packed = problem.packed_gradient(problem.pack(w, b))
    assert packed.shape == problem.packed_shape
    if problem.fit_intercept:
        np.testing.assert_allclose(packed[P], in_b, rtol=0, atol=accuracy * scale)
    assert problem.residual(w, b) == pytest.approx(naive.residual(w, b), rel=20.0 * accuracy)
    assert (w == kept).all()
    assert not np.shares_memory(found, w)
    np.testing.assert_allclose(problem.predict(problem.pack(w, b)), naive.predictions(w, b), atol=accuracy * 10.0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("targets", [0, 1, Q])
def test_every_way_to_store_the_data(form, dtype, intercept, targets, tmp_path):
    rng = np.random.default_rng(0)
    X = data(rng).astype(dtype)
    y = rng.standard_normal((N, targets) if targets else N)
    given = FORMS[form](X, tmp_path)
    weights = rng.uniform(0.0, 3.0, N)
    problem = ds.Problem(given, y, ds.Huber(), ds.L1(0.1), l2=0.3, sample_weight=weights, fit_intercept=intercept)
    assert problem.dtype == dtype
    assert (problem.n, problem.p) == (N, P)
    assert problem.shape == ((P, targets) if targets else (P,))
    compare(X, problem, rng, 1e-12 if dtype == np.float64 else 1e-5)
    check_lipschitz(X, problem)


@pytest.mark.parametrize("loss", ds.LOSSES)
@pytest.mark.parametrize("regularizer", ds.REGULARIZERS)
def test_every_loss_and_regularizer(loss, regularizer):
    weights = np.linspace(0.0, 2.0, 40)
    problem = cases.problem(loss, regularizer, l2=0.1, sample_weight=weights, fit_intercept=True)
    compare(problem._rows.X, problem, np.random.default_rng(1), 1e-12)


@pytest.mark.parametrize("loss", ds.LOSSES)
@pytest.mark.parametrize("options", [{}, {"multi": True}, {"sparse": True}, {"dtype": np.float32}], ids=str)
def test_the_gradient_is_that_of_the_objective(loss, options):
    if options.get("multi") and loss == "multinomial":
        pytest.skip("has several predictions anyway")
    problem = cases.problem(loss, "zero", l2=0.1, **options)
    rng = np.random.default_rng(2)
    w, direction = 0.3 * rng.standard_normal((2, *problem.shape))
    h = 1e-5 if problem.dtype == np.float64 else 1e-2
    slope = (problem.objective(w + h * direction) - problem.objective(w - h * direction)) / (2.0 * h)
    assert slope == pytest.approx((problem.gradient(w) * direction).sum(), rel=1e-6 if h < 1e-3 else 1e-3)


def check_lipschitz(X, problem):
    naive = Naive(X, problem)
    exact = problem.loss.curvature * naive.largest_eigenvalue() + 2.0 * problem.l2
    rounding = 1e-12 if problem.dtype == np.float64 else 1e-5
    assert exact * (1.0 - rounding) <= problem.lipschitz() <= exact * 1.01 + 1e-300


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1), (5, 2), (40, 3), (3, 40), (40, 40), (200, 30), (30, 200)], ids=str)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sparse", [False, True])
def test_lipschitz_is_a_tight_upper_bound(shape, intercept, dtype, sparse):
    rng = np.random.default_rng(3)
    kinds = [
        rng.standard_normal(shape),
        rng.random(shape) + 10.0,  # one direction outweighs all others
        np.outer(rng.standard_normal(shape[0]), rng.standard_normal(shape[1])),  # rank one
        np.eye(*shape),  # ties
        np.eye(*shape) * np.linspace(1.0, 1.001, shape[1]),  # near ties
        rng.standard_normal(shape) * 10.0 ** np.linspace(-6.0, 2.0, shape[1]),
        np.zeros(shape),
    ]
    for X in kinds:
        X = X.astype(dtype)
        weights = rng.uniform(0.0, 2.0, shape[0])
        for loss in (ds.Squared(), ds.Logistic()):
            y = np.ones(shape[0])
            given = sp.csr_matrix(X) if sparse else X
            problem = ds.Problem(given, y, loss, l2=0.1, sample_weight=weights, fit_intercept=intercept)
            check_lipschitz(X, problem)


def test_lipschitz_is_infinite_where_the_loss_has_no_curvature():
    assert ds.Problem(np.eye(3), np.ones(3), ds.Poisson()).lipschitz() == math.inf


@pytest.mark.parametrize("loss", [name for name in ds.LOSSES if hasattr(ds.LOSSES[name], "curvature")])
def test_gradients_differ_by_at_most_lipschitz(loss):
    problem = cases.problem(loss, "zero", l2=0.05)
    rng = np.random.default_rng(4)
    for size in (1e-3, 0.1, 1.0):
        for _ in range(5):
            a, move = rng.standard_normal((2, *problem.shape))
            change = np.linalg.norm(problem.gradient(a + size * move) - problem.gradient(a))
            assert change <= problem.lipschitz() * size * np.linalg.norm(move) * (1.0 + 1e-9)


@pytest.mark.parametrize("sparse", [False, True])
def test_row_lipschitz(sparse):
    rng = np.random.default_rng(5)
    X, weights = data(rng), rng.uniform(0.0, 2.0, N)
    given = sp.csr_matrix(X) if sparse else X
    for intercept in (False, True):
        problem = ds.Problem(given, np.ones(N), l2=0.1, sample_weight=weights, fit_intercept=intercept)
        largest = (((X**2).sum(axis=1) + intercept) * weights).max()
        assert problem.row_lipschitz == pytest.approx(2.0 * largest + 0.2, rel=1e-12)
        assert problem.row_share == pytest.approx(largest / Naive(X, problem).largest_eigenvalue(), rel=0.01)


@pytest.mark.parametrize(
    ("dtype", "sparse"),
    [(dtype, False) for dtype in (int, np.int8, np.uint16, bool, np.float16, np.longdouble, ">f8", ">f4")]
    + [(dtype, True) for dtype in (int, np.int8, bool, np.longdouble)],  # SciPy knows no others
)
def test_other_numbers_become_double(dtype, sparse):
    rng = np.random.default_rng(6)
    X = (rng.random((N, P)) < 0.4).astype(dtype)
    given = sp.csr_matrix(X) if sparse else X
    kept = X.copy()
    problem = ds.Problem(given, rng.integers(0, 5, N), fit_intercept=True)
    assert problem.dtype == np.float64
    compare(X.astype(np.float64), problem, rng, 1e-12)
    assert (kept == X).all()


def test_lists_and_integers_are_targets_and_weights():
    a = ds.Problem([[1, 2], [3, 4]], [1, 2], sample_weight=[1, 2])
    b = ds.Problem(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 2.0]), sample_weight=np.array([1.0, 2.0]))
    assert a.objective([1, 2]) == b.objective(np.array([1.0, 2.0]))


def test_data_in_c_order_is_not_copied_and_targets_are():
    rng = np.random.default_rng(7)
    X, y, weights = rng.standard_normal((N, P)), rng.standard_normal(N), rng.random(N)
    problem = ds.Problem(X, y, sample_weight=weights)
    assert np.shares_memory(problem._rows.X, X)
    before = problem.objective(np.ones(P))
    y[:] = 0.0
    weights[:] = 1.0
    assert problem.objective(np.ones(P)) == before


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_data_in_f_order_is_copied_only_for_workers_that_read_rows(kind):
    rng, single = np.random.default_rng(7), kind is np.float32
    X = np.asfortranarray(rng.standard_normal((400, 30)).astype(kind))
    y = X[:, :3].sum(axis=1)
    for regularizer in (ds.L1(0.05), ds.GroupLasso(0.05, 5), ds.FusedLasso(0.05), ds.NuclearNorm(0.05), ds.Zero()):
        targets = np.stack([y, -y], axis=1) if isinstance(regularizer, ds.NuclearNorm) else y
        problem, rows = (ds.Problem(data, targets, regularizer=regularizer) for data in (X, np.ascontiguousarray(X)))
        for algorithm in ("auto", "fista"):
            options = {"tol": 1e-5 if single else 1e-10}
            found = ds.solve(problem, algorithm, **options)
            assert found.converged
            np.testing.assert_allclose(found.x, ds.solve(rows, algorithm, **options).x, atol=1e-3 if single else 1e-6)
        assert np.shares_memory(problem._rows.X, X)
        assert "by rows" not in problem._facts
        options = {"max_iter": 200, "seed": 0, "workers": 1}
        for algorithm in ("dap-sgd", "dap-svrg"):
            found, expected = (ds.solve(posed, algorithm, **options).x for posed in (problem, rows))
            np.testing.assert_allclose(found, expected, rtol=1e-3 if single else 1e-9, atol=1e-6)  # the step may be rounded
        assert problem._by_rows.X.flags.c_contiguous


@pytest.mark.parametrize("loss", [ds.Squared(), ds.Logistic()])
def test_sets_of_columns_are_the_same_in_either_order(loss):
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((1500, 40)), np.sign(rng.standard_normal(1500))
    index = np.array([30, 2, 17])
    for roughly in (False, True):
        chosen = []
        for data in (X, np.asfortranarray(X)):
            columns = no_columns(ds.Problem(data, y, loss=loss), np.arange(40.0), roughly)
            columns.add(index)
            chosen.append(columns.transpose_times(np.ones((1500, 1))))
        np.testing.assert_array_equal(*chosen)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_sums_of_columns_are_the_same_in_either_order(kind):
    X = np.random.default_rng(3).integers(-9, 9, (1500, 40)).astype(kind)
    index = np.array([2, 17, 30])
    for data in (X, np.asfortranarray(X), np.asfortranarray(X)[100:1400]):
        out = np.empty((3, len(data)), kind)
        run(add_up, data, Wanted(index, np.array([1.0, 2.0, 3.0]), np.array([0, 1, 2])), out, 0, len(data))
        np.testing.assert_array_equal(out, [data[:, place + 1 :].sum(axis=1) - k for k, place in enumerate(index, 1)])


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_sums_of_columns_do_not_depend_on_which_rows_are_added_up_together(kind):
    X = np.random.default_rng(4).standard_normal((11, 90)).astype(kind)
    wanted = Wanted(np.array([-1, 5, 60]), np.zeros(3), np.arange(3))
    whole = np.empty((3, 11), kind)
    run(add_up, X, wanted, whole, 0, 11)
    for cut in range(12):
        parts = np.full((3, 11), np.nan, kind)
        run(add_up, X, wanted, parts, 0, cut)
        run(add_up, X, wanted, parts, cut, 11)
        np.testing.assert_array_equal(parts, whole)
    np.testing.assert_allclose(
        whole, [X[:, after:].sum(axis=1) for after in (0, 6, 61)], atol=1e-5 if kind is np.float32 else 1e-13
    )


def test_a_memory_map_is_not_copied(tmp_path):
    X = as_map(np.random.default_rng(8).standard_normal((N, P)), tmp_path, "F")
    assert np.shares_memory(ds.Problem(X, np.ones(N))._rows.X, X)


@pytest.mark.parametrize("form", [form for form in FORMS if form[:3] in ("CSR", "CSC", "COO", "LIL")])
def test_sparse_rows_hold_every_entry_once_and_in_order(form):
    X = data(np.random.default_rng(13))
    rows = ds.Problem(FORMS[form](X, None), np.ones(N))._by_rows
    for i in range(N):
        columns = rows.indices[rows.indptr[i] : rows.indptr[i + 1]]
        assert (columns == np.flatnonzero(X[i])).all()
        assert (rows.data[rows.indptr[i] : rows.indptr[i + 1]] == X[i, columns]).all()


@pytest.mark.parametrize("form", FORMS)
def test_the_callers_data_stays_as_it_was(form, tmp_path):
    rng = np.random.default_rng(9)
    X = data(rng)
    given = FORMS[form](X, tmp_path)
    entries = given.nnz if sp.issparse(given) else given.size
    raw = given.data.copy() if isinstance(given, sp.csr_matrix | sp.csc_matrix | sp.coo_matrix) else None
    y, w = rng.standard_normal(N), rng.standard_normal(P)
    kept = y.copy(), w.copy()
    problem = ds.Problem(given, y, regularizer=ds.L1(0.1))
    problem.objective(w), problem.gradient(w), problem.residual(w), problem.lipschitz(), problem.lam_max()
    ds.solve(problem, "fista", x0=w, max_iter=5)
    ds.solve(problem, "dap-sgd", runtime="serial", x0=w, max_iter=5)
    assert (y == kept[0]).all()
    assert (w == kept[1]).all()
    assert (given.nnz if sp.issparse(given) else given.size) == entries
    assert raw is None or (given.data == raw).all()
    np.testing.assert_allclose(given.toarray() if sp.issparse(given) else given, X, atol=1e-15)


def test_results_are_new_arrays():
    problem = cases.problem("squared", "zero")
    w = np.ones(P)
    for made in (problem.pack(w), problem.gradient(w), problem.packed_prox(problem.pack(w), 1.0)):
        made[:] = 9.0
        assert (w == 1.0).all()


def test_pack():
    problem = cases.problem("squared", "l1", fit_intercept=True)
    assert problem.packed_shape == (P + 1,)
    assert (problem.pack(np.arange(P), 7.0) == [*range(P), 7.0]).all()
    assert (problem.pack(np.arange(P + 1)) == np.arange(P + 1)).all()
    problem = cases.problem("squared", "l1", fit_intercept=True, multi=True)
    packed = problem.pack(np.asfortranarray(np.ones((P, Q))), [1.0, 2.0, 3.0])
    assert (packed[P] == [1.0, 2.0, 3.0]).all()
    assert packed.flags.c_contiguous
    prox = problem.packed_prox(packed, 1e6)
    assert (prox[:P] == 0.0).all()
    assert (prox[P] == packed[P]).all()  # the intercept is not penalised


@pytest.mark.parametrize("wrong", [np.ones(P + 1), np.ones((P, 1)), np.ones(P - 1), 1.0])
def test_a_parameter_of_another_shape_is_refused(wrong):
    problem = cases.problem()
    for function in (problem.objective, problem.gradient, problem.residual):
        with pytest.raises(ValueError, match="w must have shape"):
            function(wrong)


def test_a_parameter_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="w must not contain NaN or infinity"):
        cases.problem().objective(np.full(P, np.nan))


@pytest.mark.parametrize("regularizer", ds.REGULARIZERS)
def test_the_residual_is_zero_at_the_optimum_only(regularizer):
    problem = cases.problem("squared", regularizer, l2=0.1)
    x = ds.solve(problem, "fista", tol=1e-13).x
    assert problem.residual(x) <= 1e-11
    assert problem.residual(x + 0.1) >= 1e-3


def test_a_weight_is_a_repeated_row():
    rng = np.random.default_rng(10)
    X, y, times = rng.standard_normal((6, 4)), rng.standard_normal(6), np.array([1, 0, 2, 3, 1, 1])
    weighted = ds.Problem(X, y, sample_weight=times)
    repeated = ds.Problem(np.repeat(X, times, axis=0), np.repeat(y, times))
    w = rng.standard_normal(4)
    assert weighted.objective(w) * 6 == pytest.approx(repeated.objective(w) * 8, rel=1e-13)
    np.testing.assert_allclose(weighted.gradient(w) * 6, repeated.gradient(w) * 8, rtol=1e-12)


def test_an_intercept_is_an_unpenalised_column_of_ones():
    rng = np.random.default_rng(11)
    X, y = rng.standard_normal((9, 4)), rng.standard_normal(9)
    inside = ds.Problem(X, y, regularizer=ds.L1(0.3), fit_intercept=True)
    column = ds.Problem(np.hstack([X, np.ones((9, 1))]), y)
    w, b = rng.standard_normal(4), 0.7
    assert inside.objective(w, b) == pytest.approx(column.objective([*w, b]) + 0.3 * np.abs(w).sum(), rel=1e-13)
    np.testing.assert_allclose(inside.packed_gradient(inside.pack(w, b)), column.gradient([*w, b]), rtol=1e-12)
    assert inside.lipschitz() == pytest.approx(column.lipschitz(), rel=1e-3)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "Problem(40 x 12 dense float64, Squared + L1, l2=0)"),
        ({"l2": 0.25, "fit_intercept": True}, "Problem(40 x 12 dense float64, Squared + L1, l2=0.25, intercept)"),
        ({"sparse": True, "dtype": np.float32}, "Problem(40 x 12 CSR float32, Squared + L1, l2=0)"),
        ({"multi": True}, "Problem(40 x 12 dense float64, 3 targets, Squared + L1, l2=0)"),
    ],
)
def test_repr(options, expected):
    assert repr(cases.problem(**options)) == expected


# The rows, as compiled code sees them.


@pytest.mark.parametrize("form", ["C", "memory map in F order", "CSR"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("targets", [(), (Q,)], ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_one_at_a_time(form, intercept, targets, dtype, tmp_path):
    rng = np.random.default_rng(12)
    X = data(rng).astype(dtype)
    rows = rows_module.make_rows(FORMS[form](X, tmp_path), intercept)
    full = np.hstack([X, np.ones((N, 1))]) if intercept else X
    full = full.astype(np.float64)
    x = rng.standard_normal((full.shape[1], *targets)).astype(dtype)
    scale = rng.standard_normal(targets or 1).astype(dtype)
    kept = x.copy(), scale.copy()
    kind = type(rows)
    accuracy = 1e-13 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(rows_module.squared_norms(rows), (full**2).sum(axis=1), rtol=accuracy)

    def run(method, *arguments):
        return compiled(method, rows, *arguments)(rows, *arguments)

    for call in (run, lambda method, *arguments: method(rows, *arguments)):
        for i in range(N):
            out = np.full(targets or 1, 7.0, dtype)
            call(kind.dot, i, x, out)
            np.testing.assert_allclose(out, np.atleast_1d(full[i] @ x), rtol=0, atol=20.0 * accuracy)
            outer = np.outer(full[i], scale).reshape(x.shape)
            out = np.full(x.shape, 7.0, dtype)
            call(kind.combine, i, 0.5, 0.25, x, scale, out)
            keep = np.full(full.shape[1], 0.5)
            keep[P:] = 0.25
            np.testing.assert_allclose(out, (keep * x.T).T + outer, rtol=0, atol=20.0 * accuracy)
            out = x.copy()
            call(kind.add, i, scale, out)
            np.testing.assert_allclose(out, x + outer, rtol=0, atol=20.0 * accuracy)
    assert (x == kept[0]).all()
    assert (scale == kept[1]).all()


def test_an_intercept_is_refused_where_there_is_none():
    problem = ds.Problem(np.eye(3), np.ones(3))
    with pytest.raises(ValueError, match="intercept must be 0"):
        problem.objective(np.zeros(3), 1.0)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_smoothness_is_the_same_from_the_side_of_the_rows(monkeypatch, sparse, intercept):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((7, 30))
    weights = rng.random(7)
    made = rows_module.make_rows(sp.csr_matrix(X) if sparse else X, intercept)
    full = np.column_stack([X, np.ones(7)]) if intercept else X
    exact = np.linalg.norm(np.sqrt(weights)[:, None] * full, 2) ** 2
    lengths, largest = [], rows_module.largest_eigenvalue

    def noted(times, size, trace):
        lengths.append(size)
        return largest(times, size, trace)

    monkeypatch.setattr(rows_module, "largest_eigenvalue", noted)
    for limit in (1 << 20, 10):
        monkeypatch.setattr(rows_module, "_LONG", limit)
        assert exact * (1 - 1e-12) <= rows_module.spectral_norm_squared(made, weights) <= exact * (1 + 2e-3)
    assert lengths == [30 + intercept, 7]
