"""skglm: working sets with Anderson acceleration; prox-Newton for the logistic loss; coordinate descent on the Gram matrix."""

import numpy as np
from skglm.datafits import Logistic, LogisticGroup, Quadratic, QuadraticGroup
from skglm.penalties import L1, WeightedGroupL2
from skglm.solvers import AndersonCD, GramCD, GroupBCD, GroupProxNewton, ProxNewton
from skglm.utils.data import grp_converter
from skglm.utils.jit_compilation import compiled_clone

from . import only, tolerances

PACKAGE = "skglm"
VARIANTS = ("", "gram")
BUDGETS = tolerances()


def refuses(spec, variant):
    """L1 and groups; the Gram matrix for the lasso with few columns."""
    if variant == "gram":
        return only(spec, penalties=("l1",), losses=("squared",)) or ("more columns than rows" if spec.p > spec.n else "")
    return only(spec, penalties=("l1", "group"))


def prepare(problem, variant):
    """Quadratic is 1/(2n) |y - Xw|^2, Logistic is the mean."""
    spec = problem.spec
    X, y = problem.columns(np.float64), problem.y.astype(np.float64)  # in single precision its LogisticGroup does not compile
    squared = spec.loss == "squared"
    lam = problem.lam / 2 if squared else problem.lam
    if spec.penalty == "group":
        indices, starts = grp_converter(spec.size, spec.p)
        datafit = QuadraticGroup(starts, indices) if squared else LogisticGroup(starts, indices)
        penalty = WeightedGroupL2(lam, np.ones(len(starts) - 1), starts, indices)
        method = GroupBCD if squared else GroupProxNewton
        options = {"max_iter": 1_000}
    else:
        datafit, penalty = Quadratic() if squared else Logistic(), L1(lam)
        method = GramCD if variant else AndersonCD if squared else ProxNewton
        options = {"max_iter": 100_000 if variant else 1_000}
    penalty = compiled_clone(penalty)
    datafit = None if variant else compiled_clone(datafit)  # GramCD has squares built in
    return lambda tol: method(tol=tol, fit_intercept=False, **options).solve(X, y, datafit, penalty)[0]
