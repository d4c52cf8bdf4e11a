"""The nuclear norm of large matrices: only what lies above the threshold is computed, and nothing is missed."""

import numpy as np
import pytest

import dapsgd as ds
from dapsgd.problem import run_value
from dapsgd.regularizers.nuclear_norm import leading


def by_svd(v, threshold):
    left, values, right = np.linalg.svd(v.astype(np.float64), full_matrices=False)
    return (left * np.maximum(values - threshold, 0.0)) @ right


def low_rank(rows, columns, rank, noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    signal = rng.standard_normal((rows, rank)) @ rng.standard_normal((rank, columns))
    return signal + noise * rng.standard_normal((rows, columns))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(300, 160), (160, 300), (140, 140)])
@pytest.mark.parametrize("share", [0.0, 1e-5, 0.01, 0.3, 0.9, 1.1])
def test_the_prox_of_a_large_matrix_is_that_of_its_singular_values(dtype, shape, share):
    v = low_rank(*shape, rank=5).astype(dtype)
    threshold = share * np.linalg.norm(v.astype(np.float64), 2)
    found = ds.prox(ds.NuclearNorm(1.0), v, threshold)
    accuracy = 1e-13 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(found, by_svd(v, threshold), rtol=0, atol=accuracy * np.linalg.norm(v, 2))


def test_few_singular_values_are_found_alone():
    v = low_rank(300, 160, rank=5)
    values = np.linalg.svd(v, compute_uv=False)
    limit = float(values[4] * values[5])
    squares, vectors = leading(v.T @ v, limit)
    assert vectors.shape == (160, 5)
    np.testing.assert_allclose(np.sqrt(squares[::-1]), values[:5], rtol=1e-12)
    squares, _ = leading(v.T @ v, 1.1 * float(values[0] ** 2))
    assert squares.size == 0


@pytest.mark.parametrize(
    "values",
    [
        [5.0] * 4 + [3.0] * 2 + [1.0] * 154,  # Lanczos's method sees one of equal values
        list(np.linspace(5.0, 1.9, 160)),  # too many are above the threshold
        [5.0, *np.linspace(2.0 + 1e-9, 2.0 - 1e-9, 159)],  # it lies in a crowd
    ],
)
def test_a_matrix_that_is_not_easy_is_decomposed_in_full(values):
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.standard_normal((rows, 160)))[0] for rows in (300, 160))
    v = (left * np.array(values)) @ right.T
    assert leading(v.T @ v, 4.0) is None
    np.testing.assert_allclose(ds.prox(ds.NuclearNorm(1.0), v, 2.0), by_svd(v, 2.0), rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", [(40, 30), (30, 200), (3, 3)])
@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_the_value_is_the_sum_of_singular_values(shape, rank, scale):
    w = scale * low_rank(*shape, rank=rank, noise=0.0)
    expected = np.linalg.svd(w, compute_uv=False).sum()
    assert run_value(ds.NuclearNorm(2.0), w) == pytest.approx(2.0 * expected, rel=1e-12)
    single = low_rank(*shape, rank=rank).astype(np.float32)
    expected = np.linalg.svd(single.astype(np.float64), compute_uv=False).sum()
    assert run_value(ds.NuclearNorm(2.0), single) == pytest.approx(2.0 * expected, rel=1e-12)


def test_a_problem_with_a_large_parameter():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 150))
    Y = X @ low_rank(150, 200, rank=3, noise=0.0) + 5.0 * rng.standard_normal((300, 200))
    problem = ds.Problem(X, Y)
    problem = problem.with_regularizer(ds.NuclearNorm(0.2 * problem.with_regularizer(ds.NuclearNorm(1.0)).lam_max()))
    result = ds.solve(problem, tol=1e-6)
    assert result.converged
    assert np.linalg.matrix_rank(result.x) == 3
