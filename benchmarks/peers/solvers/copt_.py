"""copt: accelerated proximal gradient with backtracking."""

import copt
import copt.penalty
import numpy as np

from . import iterations, only

PACKAGE = "copt"
VARIANTS = ("",)
BUDGETS = iterations(5_000)


def refuses(spec, variant):
    """Everything of one target; its losses take one target, so ours stands in for several."""
    return only(spec, penalties=("l1", "group", "fused", "nuclear"))


def squares(X, Y, shape):
    """Return the mean of squares over several targets and its gradient."""

    def value_and_gradient(w):
        residual = X @ w.reshape(shape) - Y
        return (residual**2).sum() / len(Y), (2.0 / len(Y) * (X.T @ residual)).ravel()

    return value_and_gradient


def prepare(problem, variant):
    """SquareLoss is the mean of squares without 1/2; LogLoss takes y in {0, 1}."""
    spec, X, y = problem.spec, problem.X, problem.y
    penalty = {
        "l1": lambda: copt.penalty.L1Norm(problem.lam),
        "group": lambda: copt.penalty.GroupL1(problem.lam, np.arange(spec.p).reshape(-1, spec.size).tolist()),
        "fused": lambda: copt.penalty.FusedLasso(problem.lam),
        "nuclear": lambda: copt.penalty.TraceNorm(problem.lam, spec.shape),
    }[spec.penalty]()
    if spec.targets > 1:
        loss = squares(X, y, spec.shape)
    else:
        loss = (copt.loss.SquareLoss(X, y) if spec.loss == "squared" else copt.loss.LogLoss(X, (y > 0) * 1.0)).f_grad
    options = {"prox": penalty.prox, "jac": True, "accelerated": True, "tol": 0.0}
    start = np.zeros(spec.p * spec.targets)
    return lambda budget: copt.minimize_proximal_gradient(loss, start, max_iter=budget, **options).x.reshape(spec.shape)
