"""
Groups of genes: which pathways tell patients apart?
====================================================

Genes work together in pathways. A pathway should be in the model or out of it as a whole; and within a pathway a few genes
may be enough. Here are 40 pathways of different sizes, three of which matter, and 300 patients of two kinds.
"""

import matplotlib.pyplot as plt
import numpy as np

import dapsgd as ds

rng = np.random.default_rng(1)
patients, pathways = 300, 40
sizes = rng.integers(5, 20, pathways)
pathway = np.repeat(np.arange(pathways), sizes)  # a label for each gene
genes = len(pathway)

shared = rng.standard_normal((patients, pathways))  # genes of a pathway go up and down together
X = 0.7 * shared[:, pathway] + 0.7 * rng.standard_normal((patients, genes))
w = np.zeros(genes)
for k in (3, 17, 30):
    members = np.flatnonzero(pathway == k)
    w[members[: len(members) // 2]] = rng.choice([-0.8, 0.8])
ill = X @ w + rng.logistic(size=patients) > 0.0

# %%
# ``groups`` is a label for each column here; a list of index arrays, or a number for equal groups, would do as well. Large
# pathways have more ways to fit noise, so each is weighted by the root of its size.

options = {"groups": pathway, "weights": np.sqrt(sizes), "class_weight": "balanced"}
models = {
    "l1": ds.DAPClassifier("l1", alpha=0.03),
    "group_lasso": ds.DAPClassifier("group_lasso", alpha=0.02, **options),
    "sparse_group_lasso": ds.DAPClassifier("sparse_group_lasso", alpha=0.025, l1_ratio=0.4, **options),
}
for name, model in models.items():
    model.fit(X, ill)
    alive = np.unique(pathway[model.coef_.ravel() != 0.0])
    print(f"{name:20} {np.count_nonzero(model.coef_):3} genes in {len(alive):2} pathways, accuracy {model.score(X, ill):.2f}")

# %%
# A column a pathway: grey is the truth. The L1 norm scatters; the groups are found whole; the sparse groups in part.

figure, axes = plt.subplots(3, 1, figsize=(8.0, 6.0), sharex=True, layout="constrained")
edges = np.r_[0, np.cumsum(sizes)]
for ax, (name, model) in zip(axes, models.items(), strict=True):
    for k in (3, 17, 30):
        ax.axvspan(edges[k], edges[k + 1], color="#dddddd")
    ax.vlines(np.arange(genes), 0.0, model.coef_.ravel(), color="#0072B2", linewidth=1.2)
    ax.axhline(0.0, color="#333333", linewidth=0.5)
    ax.set_title(name, loc="left", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
axes[1].set_ylabel("coefficient")
axes[-1].set_xlabel("gene, ordered by pathway")
plt.show()
