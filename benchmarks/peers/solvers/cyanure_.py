"""Cyanure: QNing and Catalyst around variance reduction."""

from cyanure.estimators import Classifier, Regression

from . import only, tolerances

PACKAGE = "cyanure"
VARIANTS = ("",)
BUDGETS = tolerances()


def refuses(spec, variant):
    """L1 only: groups are rows of several targets' coefficients."""
    if spec.penalty == "fused":
        return "1.2.2 does not minimise its fused lasso objective"
    return only(spec, penalties=("l1",))


def prepare(problem, variant):
    """The mean of (y - x.w)^2 / 2, or the mean logistic loss."""
    squared = problem.spec.loss == "squared"
    kind = Regression if squared else Classifier
    options = {"penalty": "l1", "lambda_1": problem.lam / 2 if squared else problem.lam, "fit_intercept": False}
    options |= {"verbose": False, "max_iter": 100_000, "random_state": 0} | ({} if squared else {"loss": "logistic"})
    return lambda tol: kind(tol=tol, **options).fit(problem.X, problem.y).coef_.ravel()
