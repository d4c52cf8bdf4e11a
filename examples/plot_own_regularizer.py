"""
A regulariser of your own: a dose and its response
==================================================

The risk grows with the dose, but how is not known. So each of 40 steps of the dose gets a coefficient of its own, and the
only thing asked for is that they do not decrease. No built-in regulariser says that; thirty lines do.
"""

from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np

import dapsgd as ds


class Increasing(NamedTuple):
    """h(w) = 0 if no coefficient is smaller than the one before, infinity otherwise."""

    slack: float = 1e-9  # rounding that is forgiven; a term needs at least one field

    def value(self, w):
        """Return h(w)."""
        for j in range(1, w.size):
            if w[j] < w[j - 1] - self.slack:
                return np.inf
        return 0.0

    def prox(self, v, step, out):
        """Write the nearest sequence that does not decrease: pool neighbours that violate the order."""
        means = np.empty(v.size)
        counts = np.empty(v.size, np.int64)
        blocks = 0
        for j in range(v.size):
            mean, count = v[j], 1
            while blocks > 0 and means[blocks - 1] > mean:
                blocks -= 1
                total = counts[blocks] + count
                mean = (means[blocks] * counts[blocks] + mean * count) / total
                count = total
            means[blocks], counts[blocks] = mean, count
            blocks += 1
        j = 0
        for b in range(blocks):
            for _ in range(counts[b]):
                out[j] = means[b]
                j += 1


# %%
# The data: 4,000 patients, each with a dose and an outcome.

rng = np.random.default_rng(0)
n, steps = 4000, 40
dose = rng.integers(0, steps, n)
risk = -2.0 + 3.5 / (1.0 + np.exp(-(np.arange(steps) - 18) / 3.0))  # on the scale of the logistic function
ill = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-risk[dose])), 1.0, -1.0)
X = np.eye(steps)[dose]

# %%
# It is compiled when it is first used, and runs with every loss, every algorithm and every runtime.

free = ds.solve(ds.Problem(X, ill, ds.Logistic()), tol=1e-6)
problem = ds.Problem(X, ill, ds.Logistic(), Increasing())
exact = ds.solve(problem, "fista", tol=1e-6, max_iter=5000)
threads = ds.solve(problem, "dap-sgd", workers=2, max_passes=100, tol=0, seed=0)
for name, result in (("fista", exact), ("dap-sgd", threads)):
    print(f"{name:8} objective {result.objective:.5f}, increasing: {bool((np.diff(result.x) >= 0).all())}")

figure, ax = plt.subplots(figsize=(7.0, 3.8), layout="constrained")
ax.plot(risk, color="#333333", linewidth=1.0, label="truth")
ax.plot(free.x, ".", color="#999999", label="no regulariser")
ax.step(np.arange(steps), exact.x, where="mid", color="#0072B2", label="increasing")
ax.set_xlabel("dose")
ax.set_ylabel("coefficient")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
