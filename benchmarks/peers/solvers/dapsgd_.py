"""dapsgd: ``solve`` as it is called without a choice, the same given rows or one core, DAP-SVRG with one and two workers.

As all packages here, it gets the data in the order it likes best: by columns where ``auto`` keeps a set of them.
"""

import os

import dapsgd as ds

from . import tolerances

PACKAGE = "dapsgd"
VARIANTS = ("", "rows", "one", "dap-svrg-1", "dap-svrg-2")
BUDGETS = tolerances()
LARGE = 100_000_000  # entries
MANY = 100_000  # rows


def refuses(spec, variant):
    """Everything is solved; given rows again only where the first choice is columns, on one core only what is large."""
    if variant == "one" and spec.n < MANY:
        return "one core is for large data"
    return "gets rows anyway" if variant == "rows" and not by_columns(spec) else ""


def by_columns(spec):
    """Tell whether columns are what ``auto`` works on; large dense data, which is mapped, it reads by rows."""
    return spec.penalty in ("l1", "group") and (spec.nonzeros > 0 or spec.n * spec.p < LARGE)


def make(problem, X=None):
    """Make the library's problem, of data in another order if it is given."""
    X = problem.X if X is None else X
    spec, lam = problem.spec, problem.lam
    regularizer = {
        "l1": lambda: ds.L1(lam),
        "group": lambda: ds.GroupLasso(lam, spec.size),
        "fused": lambda: ds.FusedLasso(lam),
        "nuclear": lambda: ds.NuclearNorm(lam),
    }[spec.penalty]()
    loss = ds.Squared() if spec.loss == "squared" else ds.Logistic()
    return ds.Problem(X, problem.y, loss=loss, regularizer=regularizer)


def prepare(problem, variant):
    """Make a new Problem in every run: nothing computed for one run serves the next.

    A problem looks at its data by all cores that its process may use, so one worker gets a process with one.
    """
    if variant == "one" and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    X = problem.columns() if not variant and by_columns(problem.spec) else problem.X
    if variant in ("", "rows", "one"):
        return lambda tol: ds.solve(make(problem, X), workers=1 if variant == "one" else None, tol=tol, seed=0).x
    workers = int(variant[-1])
    return lambda tol: ds.solve(make(problem, X), "dap-svrg", workers=workers, tol=tol, max_passes=20_000, seed=0).x
