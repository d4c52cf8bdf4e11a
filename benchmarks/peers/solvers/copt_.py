"""copt: accelerated proximal gradient with backtracking."""

import copt
import copt.penalty
import numpy as np

from . import iterations, only

PACKAGE = "copt"
VARIANTS = ("",)
BUDGETS = iterations(5_000)


def refuses(spec, variant):
    """Its losses take one target; ``squares`` stands in for several."""
    losses = ("squared",) if spec.penalty == "nuclear" else ("squared", "logistic")
    return only(spec, penalties=("l1", "group", "fused", "nuclear"), losses=losses)


def squares(X, Y, shape):
    """Return 1/(2n) |XW - Y|^2 and its gradient."""

    def value_and_gradient(w):
        residual = X @ w.reshape(shape) - Y
        return 0.5 * (residual**2).sum() / len(Y), (X.T @ residual / len(Y)).ravel()

    return value_and_gradient


def prepare(problem, variant):
    """SquareLoss is 1/(2n) |Xw - y|^2; LogLoss takes y in {0, 1}."""
    spec, X, y = problem.spec, problem.X, problem.y
    lam = problem.lam / 2 if spec.loss == "squared" else problem.lam
    penalty = {
        "l1": lambda: copt.penalty.L1Norm(lam),
        "group": lambda: copt.penalty.GroupL1(lam, np.arange(spec.p).reshape(-1, spec.size).tolist()),
        "fused": lambda: copt.penalty.FusedLasso(lam),
        "nuclear": lambda: copt.penalty.TraceNorm(lam, spec.shape),
    }[spec.penalty]()
    if spec.targets > 1:
        loss = squares(X, y, spec.shape)
    else:
        loss = (copt.loss.SquareLoss(X, y) if spec.loss == "squared" else copt.loss.LogLoss(X, (y > 0) * 1.0)).f_grad
    options = {"prox": penalty.prox, "jac": True, "accelerated": True, "tol": 0.0}
    start = np.zeros(spec.p * spec.targets)
    return lambda budget: copt.minimize_proximal_gradient(loss, start, max_iter=budget, **options).x.reshape(spec.shape)
