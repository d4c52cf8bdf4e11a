"""The paper's four objectives, with its n, m, T, step-sizes and strengths, and data drawn so that x* has structure.

The paper does not say how its data is drawn. With columns of unit scale and a strength of 200 the optimum of L1 is zero and
shows nothing. Here some columns carry the signal, and most of those are of a larger scale, so that x* is partly zero, partly
fused or of low rank, and far above what is left of the noise at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..problem import Problem
from ..regularizers import L1, FusedLasso, GroupLasso, NuclearNorm
from ..steps import InverseTime

__all__ = ["CASES", "Case", "fused_lasso", "group_lasso", "l1", "nuclear_norm"]

Array = np.ndarray[Any, Any]


class Case(NamedTuple):
    """One objective of the paper, with its step-size and its number of iterations."""

    title: str
    problem: Problem
    step: InverseTime
    iterations: int
    data: str  # how it was drawn


def l1(seed: int = 0, n: int = 1000, m: int = 5000) -> Case:
    """Make the paper's L1 experiment: n = 1,000, m = 5,000, lam = 200, T = 200,000."""
    rng = np.random.default_rng(seed)
    X, signal = rng.standard_normal((n, m)), np.zeros(m)
    alive = rng.choice(m, 50, replace=False)
    X[:, alive] *= 10.0
    signal[alive] = rng.choice([-1.0, 1.0], 50) * np.linspace(0.2, 10.0, 50)
    problem = Problem(X, X @ signal + rng.standard_normal(n), regularizer=L1(200.0), l2=200.0)
    drawn = (
        "normal rows; 50 columns of standard deviation 10 carry coefficients of 0.2 to 10 in size, all others are of unit scale"
    )
    return Case(f"L1, m = {m:,}", problem, InverseTime(2e5, 200.0), 200_000, drawn)


def group_lasso(seed: int = 0, n: int = 1000, m: int = 5000) -> Case:
    """Make the paper's group-lasso experiment: n = 1,000, m = 5,000, lam = 200, T = 200,000, groups of 50."""
    rng = np.random.default_rng(seed)
    X, signal = rng.standard_normal((n, m)), np.zeros(m)
    for k, group in enumerate(rng.choice(m // 50, 6, replace=False)):
        inside = slice(50 * group, 50 * group + 50)
        X[:, inside] *= 8.0
        signal[inside] = (0.2 + k) * rng.standard_normal(50) / 7.0
    problem = Problem(X, X @ signal + rng.standard_normal(n), regularizer=GroupLasso(200.0, 50), l2=200.0)
    drawn = "normal rows; 6 groups of 50 columns of standard deviation 8 carry coefficients of norm 0.2 to 5.2, others none"
    return Case(f"group lasso, m = {m:,}", problem, InverseTime(2e5, 200.0), 200_000, drawn)


def fused_lasso(seed: int = 0, n: int = 1000, m: int = 5000) -> Case:
    """Make the paper's fused-lasso experiment: n = 1,000, m = 5,000, lam = 200, T = 10,000."""
    rng = np.random.default_rng(seed)
    X, signal = rng.standard_normal((n, m)), np.zeros(m)
    for start in range(m // 20, m, m // 5):
        X[:, start : start + 4] *= 40.0
        signal[start : start + 4] = 5.0
    problem = Problem(X, X @ signal + rng.standard_normal(n), regularizer=FusedLasso(200.0), l2=200.0)
    drawn = "normal rows; five steps of 4 columns of standard deviation 40 carry coefficients of 5, others none"
    return Case(f"fused lasso, m = {m:,}", problem, InverseTime(2e5, 200.0), 10_000, drawn)


def nuclear_norm(seed: int = 0, n: int = 4000, m: int = 50) -> Case:
    """Make the paper's nuclear-norm experiment: n = 4,000, 50 x 40 parameters, lam = 0.1, T = 20,000."""
    rng = np.random.default_rng(seed)
    X = 3.0 * rng.standard_normal((n, m))
    matrix = rng.standard_normal((m, 5)) @ rng.standard_normal((5, 40)) / np.sqrt(5.0)
    problem = Problem(X, X @ matrix + 0.05 * rng.standard_normal((n, 40)), regularizer=NuclearNorm(0.1), l2=0.1)
    drawn = "normal rows of standard deviation 3; targets from a matrix of rank 5, with noise that a strength of 0.1 removes"
    return Case(f"nuclear norm, {m} x 40", problem, InverseTime(2e4, 1.0), 20_000, drawn)


CASES: dict[str, Callable[..., Case]] = {
    "l1": l1,
    "group-lasso": group_lasso,
    "fused-lasso": fused_lasso,
    "nuclear-norm": nuclear_norm,
}
