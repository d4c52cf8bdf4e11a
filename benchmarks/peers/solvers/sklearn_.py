"""scikit-learn: coordinate descent for squares, LIBLINEAR and SAGA for the logistic loss."""

import numpy as np
from sklearn.linear_model import Lasso, LogisticRegression

from . import only, tolerances

PACKAGE = "scikit-learn"
VARIANTS = ("", "gram", "saga")
BUDGETS = tolerances()


def refuses(spec, variant):
    """L1 only."""
    losses = {"": ("squared", "logistic"), "gram": ("squared",), "saga": ("logistic",)}[variant]
    if variant == "gram" and spec.p > spec.n:
        return "more columns than rows"
    return only(spec, penalties=("l1",), losses=losses)


def prepare(problem, variant):
    """Lasso: 1/(2n) |y - Xw|^2 + alpha |w|. LogisticRegression: C sum log(...) + |w|."""
    lam, n = problem.lam, problem.spec.n
    if problem.spec.loss == "squared":
        X = problem.columns()
        options = {"alpha": lam / 2, "fit_intercept": False, "precompute": variant == "gram", "max_iter": 1_000_000}
        return lambda tol: Lasso(tol=tol, **options).fit(X, problem.y).coef_
    options = {"l1_ratio": 1.0, "C": 1 / (n * lam), "fit_intercept": False, "solver": variant or "liblinear"}
    options |= {"max_iter": 100_000, "random_state": 0}
    X = problem.X if variant == "saga" or problem.spec.nonzeros else np.ascontiguousarray(problem.X, np.float64)
    return lambda tol: LogisticRegression(tol=tol, **options).fit(X, problem.y).coef_.ravel()
