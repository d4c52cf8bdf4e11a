"""
What each penalty does to coefficients
======================================

The same vector, noisy, through the prox of every penalty: what it sets to zero, what it ties together, what it only shrinks.
The prox is all that a penalty does in the algorithms, so the picture says what to expect of the fitted coefficients.
"""

import matplotlib.pyplot as plt
import numpy as np

import dapsgd as ds

rng = np.random.default_rng(3)
p = 60
truth = np.zeros(p)
truth[10:20], truth[30:33], truth[45:60] = 1.5, -2.0, 0.8
v = truth + 0.35 * rng.standard_normal(p)

penalties = {
    "Zero()": ds.Zero(),
    "L1(0.5)": ds.L1(0.5),
    "ElasticNet(1, 0.5)": ds.ElasticNet(1.0, 0.5),
    "GroupLasso(1.2, groups=5)": ds.GroupLasso(1.2, 5),
    "SparseGroupLasso(1.2, 5, 0.3)": ds.SparseGroupLasso(1.2, 5, 0.3),
    "FusedLasso(0.9)": ds.FusedLasso(0.9),
    "FusedLasso(0.9, l1=0.3)": ds.FusedLasso(0.9, l1=0.3),
    "Slope, from 1 down to 0.2": ds.Slope(np.linspace(1.0, 0.2, p)),
    "Box(-0.5, 1)": ds.Box(-0.5, 1.0),
    "NonNegative(0.5)": ds.NonNegative(0.5),
}
figure, axes = plt.subplots(5, 2, figsize=(9.0, 10.0), sharex=True, sharey=True, layout="constrained")
for ax, (name, penalty) in zip(axes.flat, penalties.items(), strict=True):
    w = ds.prox(penalty, v, step=1.0)
    ax.plot(v, ".", color="#bbbbbb", markersize=4)
    ax.vlines(np.arange(p), 0.0, w, color="#0072B2", linewidth=2.0)
    ax.axhline(0.0, color="#333333", linewidth=0.5)
    values = len(np.unique(w.round(9)))
    ax.set_title(f"{name}: {np.count_nonzero(w)} not zero, {values} values", fontsize=9, loc="left")
    ax.spines[["top", "right"]].set_visible(False)
figure.supxlabel("column; dots: before, bars: after", fontsize=9)
plt.show()

# %%
# The nuclear norm is for matrices, with a column a target: it takes the same amount off all singular values, and what would
# be negative is zero. Here a matrix of rank two, in noise.

M = np.outer(np.sin(np.arange(30) / 4.0), rng.standard_normal(20)) + np.outer(np.arange(30) > 14, rng.standard_normal(20))
noisy = M + 0.5 * rng.standard_normal(M.shape)
clean = ds.prox(ds.NuclearNorm(4.5), noisy, step=1.0)
figure, axes = plt.subplots(1, 3, figsize=(9.0, 3.2), layout="constrained")
for ax, (name, matrix) in zip(axes, (("truth", M), ("before", noisy), ("after NuclearNorm(4.5)", clean)), strict=True):
    ax.imshow(matrix, cmap="RdBu", vmin=-3.0, vmax=3.0, aspect="auto")
    ax.set_title(f"{name}: rank {np.linalg.matrix_rank(matrix)}", fontsize=9)
    ax.set_xlabel("target")
axes[0].set_ylabel("column")
plt.show()
