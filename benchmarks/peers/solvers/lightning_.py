"""lightning: FISTA with line search, and coordinate descent."""

import numpy as np
from lightning.classification import CDClassifier, FistaClassifier
from lightning.regression import CDRegressor, FistaRegressor

from . import iterations, only

PACKAGE = "sklearn-contrib-lightning"
VARIANTS = ("", "cd")
BUDGETS = iterations(20_000)
PENALTIES = {"l1": "l1", "fused": "tv1d", "nuclear": "trace"}


def refuses(spec, variant):
    """Groups are rows of several targets' coefficients; coordinate descent is for L1."""
    return only(spec, penalties=("l1",) if variant else tuple(PENALTIES))


def prepare(problem, variant):
    """C sum loss + alpha penalty; the squared loss is halved."""
    spec, X, y = problem.spec, problem.X, problem.y
    squared = spec.loss == "squared"
    options = {"C": 1.0 / spec.n, "alpha": problem.lam / 2 if squared else problem.lam}
    if variant:
        X = problem.columns(np.float64)
        kind, options = (CDRegressor, options) if squared else (CDClassifier, options | {"loss": "log"})
        options |= {"penalty": "l1", "tol": 0.0, "random_state": 0}
    else:
        kind, options = (FistaRegressor, options) if squared else (FistaClassifier, options | {"loss": "log"})
        options |= {"penalty": PENALTIES[spec.penalty], "max_steps": 100}
    y = np.asarray(y, np.float64) if squared else y.astype(int)

    def run(budget):
        coefficients = kind(max_iter=budget, **options).fit(X, y).coef_
        return coefficients.T.reshape(spec.shape)

    return run
