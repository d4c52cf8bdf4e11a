"""dapsgd: ``solve`` as it is called without a choice, and DAP-SVRG with one and two workers."""

import dapsgd as ds

from . import tolerances

PACKAGE = "dapsgd"
VARIANTS = ("", "dap-svrg-1", "dap-svrg-2")
BUDGETS = tolerances()


def refuses(spec, variant):
    """Everything is solved."""
    return ""


def make(problem):
    """Make the library's problem."""
    spec, lam = problem.spec, problem.lam
    regularizer = {
        "l1": lambda: ds.L1(lam),
        "group": lambda: ds.GroupLasso(lam, spec.size),
        "fused": lambda: ds.FusedLasso(lam),
        "nuclear": lambda: ds.NuclearNorm(lam),
    }[spec.penalty]()
    loss = ds.Squared() if spec.loss == "squared" else ds.Logistic()
    return ds.Problem(problem.X, problem.y, loss=loss, regularizer=regularizer)


def prepare(problem, variant):
    """Make a new Problem in every run: nothing computed for one run serves the next."""
    if not variant:
        return lambda tol: ds.solve(make(problem), tol=tol, seed=0).x
    workers = int(variant[-1])
    return lambda tol: ds.solve(make(problem), "dap-svrg", workers=workers, tol=tol, max_passes=20_000, seed=0).x
