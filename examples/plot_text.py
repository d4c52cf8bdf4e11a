"""
Text: many sparse rows, two classes
===================================

Twelve thousand documents, twenty thousand words, some forty words in each: a sparse matrix that would not be handled as a
dense one. An L1 norm chooses the words that tell the classes apart.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

from dapsgd import DAPClassifier

rng = np.random.default_rng(0)
documents, words = 12_000, 20_000
counts = rng.poisson(40, documents) + 1
common = 1.0 / np.arange(3, words + 3) ** 0.9  # few words are frequent, most are rare
columns = rng.choice(words, counts.sum(), p=common / common.sum())
indptr = np.r_[0, np.cumsum(counts)]
X = sp.csr_matrix((np.ones(counts.sum()), columns, indptr), shape=(documents, words))
X.sum_duplicates()
X.data = 1.0 + np.log(X.data)
telling = rng.choice(600, 120, replace=False)
w = np.zeros(words)
w[telling] = rng.choice([-2.5, 2.5], 120)
signal = X @ w
y = np.where(signal - np.median(signal) + rng.logistic(size=documents) > 0.0, "politics", "sports")
train, test = slice(None, documents // 2), slice(documents // 2, None)
print(f"{X.nnz:,} of {documents * words:,} entries are not zero")

# %%
# The weaker the penalty, the more words. From some point on they no longer help on new documents.

alphas = np.geomspace(1e-2, 2e-4, 7)
model = DAPClassifier("l1", warm_start=True, tol=1e-3)
used, seen, new = [], [], []
for alpha in alphas:
    model.set_params(alpha=alpha).fit(X[train], y[train])
    used.append(np.count_nonzero(model.coef_))
    seen.append(model.score(X[train], y[train]))
    new.append(model.score(X[test], y[test]))
    print(f"alpha {alpha:.1e}: {used[-1]:5} words, accuracy {seen[-1]:.3f} on these, {new[-1]:.3f} on new documents")

figure, ax = plt.subplots(figsize=(6.0, 3.6), layout="constrained")
ax.plot(used, seen, "o-", color="#D55E00", label="documents fitted to")
ax.plot(used, new, "o-", color="#0072B2", label="new documents")
ax.set_xscale("symlog", linthresh=10)
ax.set_xlabel("words in the model")
ax.set_ylabel("accuracy")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
