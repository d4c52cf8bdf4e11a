"""lightning: FISTA with line search, and coordinate descent."""

import numpy as np
from lightning.classification import CDClassifier
from lightning.regression import CDRegressor, FistaRegressor

from . import iterations, only

PACKAGE = "sklearn-contrib-lightning"
VARIANTS = ("", "cd")
BUDGETS = iterations(20_000)
PENALTIES = {"l1": "l1", "fused": "tv1d", "nuclear": "trace"}


def refuses(spec, variant):
    """Groups are rows of several targets' coefficients; FISTA knows no logistic loss for two classes."""
    return only(spec, penalties=("l1",)) if variant else only(spec, penalties=tuple(PENALTIES), losses=("squared",))


def prepare(problem, variant):
    """C sum loss + alpha penalty; FISTA halves the square, coordinate descent does not."""
    spec, lam = problem.spec, problem.lam
    X, y = (problem.columns(np.float64) if variant else problem.X), problem.y
    options = {"C": 1.0 / spec.n, "penalty": PENALTIES[spec.penalty]}
    exact = {"alpha": lam, "tol": 1e-14, "shrinking": False, "random_state": 0}  # with shrinking it stops short
    if not variant:
        kind, options = FistaRegressor, options | {"alpha": lam / 2, "max_steps": 100}
    elif spec.loss == "squared":
        kind, options = CDRegressor, options | exact
    else:
        kind, options = CDClassifier, options | exact | {"loss": "log"}
        y = y.astype(int)
    return lambda budget: kind(max_iter=budget, **options).fit(X, y).coef_.T.reshape(spec.shape)
