"""celer: working sets and dual extrapolation."""

from celer import GroupLasso, Lasso, LogisticRegression

from . import only, tolerances

PACKAGE = "celer"
VARIANTS = ("",)
BUDGETS = tolerances()


def refuses(spec, variant):
    """L1; groups with squares."""
    return only(spec, penalties=("l1", "group"), losses=("squared", "logistic") if spec.penalty == "l1" else ("squared",))


def prepare(problem, variant):
    """1/(2n) |y - Xw|^2 + alpha penalty; LogisticRegression: C sum log(...) + |w|."""
    spec, lam, X, y = problem.spec, problem.lam, problem.columns(), problem.y
    if spec.loss == "logistic":
        return lambda tol: LogisticRegression(C=1 / (spec.n * lam), tol=tol, max_iter=500).fit(X, y).coef_.ravel()
    options = {"alpha": lam / 2, "fit_intercept": False, "max_iter": 1_000}
    if spec.penalty == "l1":
        return lambda tol: Lasso(tol=tol, **options).fit(X, y).coef_
    return lambda tol: GroupLasso(groups=spec.size, tol=tol, **options).fit(X, y).coef_
