"""
A regularisation path, and where to stop on it
==============================================

How strong should the penalty be? ``DAPRegressorCV`` solves along a path of strengths on every fold, and chooses the strength
with the smallest error on the rows left out, or the largest one within one standard error of it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from dapsgd import DAPRegressorCV

# %%
# The diabetes data that comes with scikit-learn: ten measurements, with all their products and squares 65 columns.

data = load_diabetes()
X = StandardScaler().fit_transform(PolynomialFeatures(2, include_bias=False).fit_transform(data.data))
y = data.target

best = DAPRegressorCV("l1", alphas=40, eps=3e-3, cv=5).fit(X, y)
careful = DAPRegressorCV("l1", alphas=40, eps=3e-3, cv=5, rule="one_se").fit(X, y)
for name, model in (("best", best), ("one_se", careful)):
    print(f"{name:7} alpha {model.alpha_:6.3g}: {np.count_nonzero(model.coef_):2} of {X.shape[1]} columns")

# %%
# Every fold, their mean, and one standard error about it:

careful.plot_cv()
plt.show()

# %%
# Every coefficient against the strength, from none on the left to all on the right:

careful.plot_path()
plt.show()
