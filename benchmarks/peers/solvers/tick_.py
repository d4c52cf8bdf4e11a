"""tick: SVRG with one thread and with all, and accelerated gradients."""

import os

import numpy as np
from tick.linear_model import ModelLinReg, ModelLogReg
from tick.prox import ProxGroupL1, ProxL1, ProxTV
from tick.solver import AGD, SVRG

from . import iterations, only

PACKAGE = "tick"
VARIANTS = ("", "svrg-1", "svrg-all")
BUDGETS = iterations(5_000)


def refuses(spec, variant):
    """One target; asynchronous steps for separable penalties."""
    if variant == "svrg-all" and spec.penalty != "l1":
        return "SVRG with threads crashes with a prox that ties coordinates together"
    return only(spec, penalties=("l1", "group", "fused"))


def prepare(problem, variant):
    """ModelLinReg is 1/(2n) |y - Xw|^2; ProxGroupL1 multiplies by the root of the group's size."""
    spec = problem.spec
    lam = problem.lam / 2 if spec.loss == "squared" else problem.lam
    starts = np.arange(0, spec.p, spec.size)
    prox = {
        "l1": lambda: ProxL1(lam),
        "group": lambda: ProxGroupL1(lam / spec.size**0.5, starts, np.full(len(starts), spec.size)),
        "fused": lambda: ProxTV(lam),
    }[spec.penalty]()
    kind = ModelLinReg if spec.loss == "squared" else ModelLogReg

    def run(budget):
        model = kind(fit_intercept=False).fit(problem.X, problem.y)
        options = {"tol": 0.0, "max_iter": budget, "verbose": False, "record_every": budget}
        if variant:
            threads = 1 if variant == "svrg-1" else os.cpu_count()
            solver = SVRG(step=1.0 / model.get_lip_max(), seed=1, n_threads=threads, **options)
        else:
            solver = AGD(step=1.0 / model.get_lip_best(), linesearch=False, **options)
        return solver.set_model(model).set_prox(prox).solve(np.zeros(spec.p, problem.X.dtype))

    return run
