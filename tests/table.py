"""A small table, and targets of every kind that depend on it: numbers, several of them, classes, counts; and weights."""

import numpy as np

N, P, Q = 60, 8, 3
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, P)) * (RNG.random((N, P)) < 0.6) + 0.3
W = np.array([1.0, -2.0, 0.0, 0.0, 0.5, 0.0, 0.0, 1.5])
Y = X @ W + 0.7 + 0.5 * RNG.standard_normal(N)
YS = X @ RNG.standard_normal((P, Q)) + RNG.standard_normal((N, Q))
TWO = np.where(np.median(Y) < Y, "yes", "no")
THREE = np.digitize(Y, np.quantile(Y, [0.3, 0.7]))
COUNTS = RNG.poisson(np.exp(np.clip(0.3 * Y, -2.0, 2.0))).astype(float)
WEIGHTS = RNG.random(N) + 0.1
WEIGHTS[:5] = 0.0
