"""``converged`` is never true without a gap that bounds the true distance, on random small problems.

``python -m tests.test_certificates 1000`` looks at as many as one likes.
"""

import sys

import numpy as np
import pytest

import dapsgd as ds
from dapsgd.dual import has_gap
from dapsgd.losses import LOSSES
from dapsgd.regularizers import REGULARIZERS

from . import cases

ALGORITHMS = ["auto", "dap-svrg", "fista"]


def random_problem(seed):
    rng = np.random.default_rng(seed)
    loss, regularizer = str(rng.choice(list(LOSSES))), str(rng.choice(list(REGULARIZERS)))
    options = {
        "l2": float(rng.choice([0.0, 0.0, 0.01, 1.0])),
        "fit_intercept": bool(rng.random() < 0.4),
        "sparse": bool(rng.random() < 0.3),
        "n": int(rng.integers(5, 60)),
    }
    return cases.problem(loss, regularizer, seed=seed, **options), float(rng.choice([1e-3, 1e-6, 1e-8]))


def look(seed):
    """Solve a random problem; return how wrong the certificate is: at most zero but for rounding, and whether it arrived."""
    problem, tol = random_problem(seed)
    run = ds.solve(problem, ALGORITHMS[seed % 3], tol=tol, seed=seed, max_passes=2000)
    best = ds.solve(problem, "fista", tol=1e-12, max_iter=10_000)
    above = run.objective - min(best.objective, run.objective)
    if run.converged and has_gap(problem) and np.isfinite(run.gap):
        assert run.gap <= tol * abs(run.objective) or run.residual == 0.0
        return (above - run.gap) / max(1.0, abs(best.objective)), True
    return 0.0, run.converged


@pytest.mark.parametrize("seeds", [range(k, k + 10) for k in range(0, 100, 10)], ids=str)
def test_certificates_hold(seeds):
    for seed in seeds:
        wrong, _ = look(seed)
        assert wrong <= 1e-10, seed


if __name__ == "__main__":
    count = int(sys.argv[1])
    seen = [look(seed) for seed in range(count)]
    converged, worst = sum(arrived for _, arrived in seen), max(wrong for wrong, _ in seen)
    print(f"{count} problems, {converged} converged, a gap was too small by {worst:.2g} at worst")


@pytest.mark.parametrize("algorithm", ["auto", "gram", "fista"])
@pytest.mark.parametrize("penalty", [ds.L1, ds.FusedLasso])
@pytest.mark.parametrize("strength", [1e-300, 1e-16])
def test_a_penalty_below_rounding_is_none(penalty, strength, algorithm):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 12))
    y = X[:, 2:6].sum(axis=1) + 5.0 + 0.1 * rng.standard_normal(200)
    problem = ds.Problem(X, y, regularizer=penalty(strength), fit_intercept=True)
    result = ds.solve(problem, algorithm, tol=1e-4, max_passes=100)
    assert result.converged
    best = np.linalg.lstsq(np.column_stack([X, np.ones(200)]), y)[0]
    np.testing.assert_allclose(result.x, best[:-1], atol=1e-10)
    assert not ds.solve(problem, "fista", tol=1e-4, max_passes=12).converged  # where without a penalty it would do


def test_a_small_penalty_above_rounding_needs_its_gap():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    y = X[:, 0] + rng.standard_normal(60)
    start = np.linalg.lstsq(X, y)[0]
    monitored = ds.solve(ds.Problem(X, y, regularizer=ds.L1(1e-3)), "fista", x0=start, tol=1e-9, max_iter=1)
    assert not monitored.converged
    assert np.isfinite(monitored.gap)
    largest = ds.Problem(X, y, regularizer=ds.L1(1.0)).lam_max()  # with a strength near it, the penalty is small but no trifle
    near = ds.Problem(X, y, regularizer=ds.L1((1.0 - 1e-9) * largest))
    best = ds.solve(near, tol=1e-12)
    tiny = ds.solve(near, "fista", x0=-1e-14 * np.ones(5), tol=1e-12, max_iter=1)
    assert not tiny.converged or tiny.objective - best.objective <= 1e-12 * best.objective
