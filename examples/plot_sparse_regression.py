"""
Sparse regression: which of 200 columns matter?
===============================================

Ten of 200 columns matter, and there are 150 rows: fewer than columns. Three penalties that set coefficients to zero: the L1
norm; the elastic net, which also shrinks all of them; SLOPE, which is the stricter the larger a coefficient is.
"""

import matplotlib.pyplot as plt
import numpy as np

import dapsgd as ds

rng = np.random.default_rng(0)
n, p, active = 150, 200, 10
X = rng.standard_normal((n, p))
w = np.zeros(p)
w[rng.choice(p, active, replace=False)] = rng.choice([-1.0, 1.0], active) * rng.uniform(1.0, 2.0, active)
y = X @ w + rng.standard_normal(n)

# %%
# One estimator, several penalties. ``alpha`` means what it means in scikit-learn's ``Lasso``.

models = {
    "l1": ds.DAPRegressor("l1", alpha=0.3),
    "elastic_net": ds.DAPRegressor("elastic_net", alpha=0.4, l1_ratio=0.7),
    "slope": ds.DAPRegressor("slope", alpha=0.4),
}
for name, model in models.items():
    model.fit(X, y)
    found = model.coef_ != 0.0
    false = np.count_nonzero(found & (w == 0.0))
    print(f"{name:12} {np.count_nonzero(found):2} columns found, {false:2} of them wrongly; R2 {model.score(X, y):.3f}")

# %%
# The true coefficients are the circles. All three shrink what they find.

figure, axes = plt.subplots(3, 1, figsize=(8.0, 6.0), sharex=True, sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    ax.vlines(np.arange(p), 0.0, model.coef_, color="#0072B2", linewidth=1.5)
    ax.plot(np.flatnonzero(w), w[w != 0.0], "o", markerfacecolor="none", color="#D55E00", label="truth")
    ax.set_title(name, loc="left", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].legend(frameon=False, loc="upper right")
axes[1].set_ylabel("coefficient")
axes[-1].set_xlabel("column")
plt.show()
