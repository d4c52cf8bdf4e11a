"""adelie: pathwise (block) coordinate descent; from the data, or for squares through the covariance."""

import os

import adelie as ad
import numpy as np

from . import only, tolerances

PACKAGE = "adelie"
VARIANTS = ("", "path", "cov")
BUDGETS = tolerances()
THREADS = os.cpu_count()


def refuses(spec, variant):
    """L1 and groups."""
    if variant == "cov":
        if spec.p > spec.n:
            return "more columns than rows"
        return only(spec, penalties=("l1", "group"), losses=("squared",), sparse=False)
    return only(spec, penalties=("l1", "group"))


def prepare(problem, variant):
    """The loss is sum w_i (eta_i^2/2 - y_i eta_i) or the logistic one with y in {0, 1}, w_i = 1/n."""
    spec = problem.spec
    X, y = problem.columns(np.float64), problem.y.astype(np.float64)  # in single precision its steps on groups do not converge
    size = spec.size if spec.penalty == "group" else 1
    lam = problem.lam / 2 if spec.loss == "squared" else problem.lam
    path = np.geomspace(lam / spec.lam, lam, 10) if variant == "path" else [lam]
    options = {
        "groups": np.arange(0, spec.p, size),
        "penalty": np.ones(spec.p // size),
        "lmda_path": np.asarray(path, X.dtype),
        "early_exit": False,
        "progress_bar": False,
    }

    def last(state):
        return state.betas[-1].toarray().ravel()

    if variant == "cov":

        def run(tol):
            gram = np.asfortranarray(X.T @ X / X.dtype.type(spec.n))
            matrix = ad.matrix.dense(gram, method="cov", n_threads=THREADS)
            return last(ad.gaussian_cov(matrix, X.T @ y / X.dtype.type(spec.n), tol=tol, **options))

        return run
    matrix = (ad.matrix.sparse if spec.nonzeros else ad.matrix.dense)(X, method="naive", n_threads=THREADS)
    glm = ad.glm.gaussian(y) if spec.loss == "squared" else ad.glm.binomial((y > 0).astype(X.dtype))
    options |= {"intercept": False, "adev_tol": 1.0, "n_threads": THREADS}
    return lambda tol: last(ad.grpnet(matrix, glm, tol=tol, irls_tol=tol, **options))
