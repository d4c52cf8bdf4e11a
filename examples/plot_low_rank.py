"""
Low rank: forty targets that have three causes
==============================================

Forty targets are predicted at once, from 60 columns. All depend on the same three hidden combinations of the columns, so the
matrix of coefficients has rank three. The nuclear norm wants few large singular values; regressions on their own, one a
target, cannot.
"""

import matplotlib.pyplot as plt
import numpy as np

import dapsgd as ds

rng = np.random.default_rng(0)
n, p, q, rank = 150, 60, 40, 3
W = rng.standard_normal((p, rank)) @ rng.standard_normal((rank, q)) / np.sqrt(p)
X = rng.standard_normal((2 * n, p))
Y = X @ W + 1.5 * rng.standard_normal((2 * n, q))
train, test = slice(None, n), slice(n, None)

# %%
# A two-dimensional y makes the parameter a matrix. ``ds.path`` solves along decreasing strengths, each from the answer before.

problem = ds.Problem(X[train], Y[train], ds.Squared(0.5), ds.NuclearNorm(1.0))
path = ds.path(problem, n_lams=15, eps=0.02)
errors = [np.mean((X[test] @ path.coefs[:, :, k] - Y[test]) ** 2) for k in range(len(path))]
ranks = [np.linalg.matrix_rank(path.coefs[:, :, k]) for k in range(len(path))]
best = int(np.argmin(errors))
simple = int(np.argmax(np.array(errors) < 1.05 * errors[best]))  # the strongest that is within 5 % of the best
alone = np.linalg.lstsq(X[train], Y[train], rcond=None)[0]
print(f"best strength  test error {errors[best]:.3f}, rank {ranks[best]}")
print(f"simpler        test error {errors[simple]:.3f}, rank {ranks[simple]}")
print(f"least squares  test error {np.mean((X[test] @ alone - Y[test]) ** 2):.3f}, rank {np.linalg.matrix_rank(alone)}")

figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.6), layout="constrained")
left.plot(path.lams, errors, "o-", color="#0072B2", markersize=4, label="nuclear norm")
left.axhline(np.mean((X[test] @ alone - Y[test]) ** 2), color="#D55E00", linestyle="--", label="least squares")
left.set_xscale("log")
left.invert_xaxis()
left.set_xlabel("strength")
left.set_ylabel("mean square error on new rows")
left.legend(frameon=False)
for name, matrix, colour in (
    ("truth", W, "#333333"),
    ("nuclear norm, best", path.coefs[:, :, best], "#0072B2"),
    ("nuclear norm, simpler", path.coefs[:, :, simple], "#009E73"),
    ("least squares", alone, "#D55E00"),
):
    right.plot(np.linalg.svd(matrix, compute_uv=False), ".-", color=colour, label=name)
right.set_xlabel("number")
right.set_ylabel("singular value")
right.legend(frameon=False)
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
