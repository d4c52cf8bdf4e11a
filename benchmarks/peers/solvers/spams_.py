"""SPAMS: FISTA with line search; for squares also through the Gram matrix."""

import numpy as np
import spams

from . import iterations

PACKAGE = "spams-bin"
VARIANTS = ("", "gram")
BUDGETS = iterations()
PENALTIES = {"l1": "l1", "group": "group-lasso-l2", "fused": "fused-lasso", "nuclear": "trace-norm"}


def refuses(spec, variant):
    """Almost everything is solved."""
    if spec.penalty == "nuclear" and spec.loss == "logistic":
        return "several targets go with squares"
    if variant == "gram" and (spec.loss != "squared" or spec.p > spec.n):
        return "the Gram matrix serves squares with few columns"
    return ""


def prepare(problem, variant):
    """Square is |Y - XW|^2 / 2, without 1/n; logistic is the mean. All in float64."""
    spec, X = problem.spec, problem.columns(np.float64)
    Y = np.asfortranarray(problem.y.reshape(spec.n, -1), np.float64)
    start = np.zeros((spec.p, spec.targets), X.dtype, order="F")
    squared = spec.loss == "squared"
    curvature = (X.multiply(X) if spec.nonzeros else X**2).sum() / spec.p  # the mean eigenvalue: a start for the line search
    options = {
        "loss": "square" if squared else "logistic",
        "regul": PENALTIES[spec.penalty],
        "lambda1": problem.lam * spec.n / 2 if squared else problem.lam,
        "L0": curvature if squared else curvature / (4 * spec.n),
        "compute_gram": variant == "gram",
        "tol": 0.0,
        "it0": 10_000_000,  # never stop to evaluate the objective
        "numThreads": -1,
    }
    if spec.penalty == "group":
        options["size_group"] = spec.size
    return lambda budget: spams.fistaFlat(Y, X, start, max_it=budget, **options).reshape(spec.shape)
