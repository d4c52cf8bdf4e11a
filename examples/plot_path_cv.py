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
# The diabetes data that comes with scikit-learn: ten measurements, with their products and squares 64 columns. The square of
# ``sex``, which has two values, is left out: it would say what ``sex`` says, and either of them could have the coefficient.

data = load_diabetes()
products = PolynomialFeatures(2, include_bias=False)
X = StandardScaler().fit_transform(products.fit_transform(data.data))
X = X[:, products.get_feature_names_out(data.feature_names) != "sex^2"]
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
