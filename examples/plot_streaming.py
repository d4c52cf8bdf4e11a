"""
Streaming: a model that learns batch by batch
=============================================

Rows come in without end, and are gone afterwards. ``partial_fit`` takes a pass of stochastic proximal steps over each batch,
with steps that become shorter as more rows have been seen.
"""

import matplotlib.pyplot as plt
import numpy as np

from dapsgd import DAPRegressor

rng = np.random.default_rng(0)
p, batch = 60, 200
w = np.repeat([0.0, 1.0, -0.5], 20)


def next_batch(rows=batch):
    """Draw rows as they come in."""
    X = rng.standard_normal((rows, p))
    return X, X @ w + rng.standard_normal(rows)


# %%
# Each batch is predicted before it is learnt from, which is an honest test.

model = DAPRegressor("fused_lasso", alpha=0.02, random_state=0)
errors, distances, pictures = [], [], {}
for k in range(60):
    X, y = next_batch()
    errors.append(np.mean((y - (model.predict(X) if k else 0.0)) ** 2))
    model.partial_fit(X, y)
    distances.append(np.linalg.norm(model.coef_ - w))
    if k in (0, 9, 59):
        pictures[f"after {model.t_:,} rows"] = model.coef_.copy()
print(f"{model.t_:,} rows seen; error on a new batch {errors[-1]:.2f}, of which 1 is noise")

figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 3.6), layout="constrained")
left.plot(batch * np.arange(1, 61), errors, color="#0072B2", label="error on the next batch")
left.axhline(1.0, color="#333333", linestyle="--", linewidth=1.0, label="noise")
left.set_yscale("log")
left.set_xlabel("rows seen")
left.legend(frameon=False)
right.plot(w, color="#333333", linewidth=1.0, label="truth")
for (name, coef), colour in zip(pictures.items(), ("#cccccc", "#D55E00", "#0072B2"), strict=True):
    right.plot(coef, color=colour, label=name)
right.set_xlabel("column")
right.set_ylabel("coefficient")
right.legend(frameon=False)
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
