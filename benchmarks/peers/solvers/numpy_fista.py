"""FISTA with restart in plain NumPy, through the Gram matrix where columns are few. Only the fused prox is dapsgd's."""

import numpy as np
import scipy.sparse as sp

from . import iterations

PACKAGE = "numpy"
VARIANTS = ("",)
BUDGETS = iterations()
GRAM_COLUMNS = 2_000


def refuses(spec, variant):
    """Everything is solved."""
    return ""


def make_prox(spec, lam):
    """Return prox(v, step)."""
    if spec.penalty == "l1":
        return lambda v, step: np.sign(v) * np.maximum(np.abs(v) - step * lam, 0.0)
    if spec.penalty == "fused":
        import dapsgd as ds

        return lambda v, step: ds.prox(ds.FusedLasso(lam), v, step)

    def group(v, step):
        blocks = v.reshape(-1, spec.size)
        norms = np.sqrt((blocks**2).sum(axis=1, keepdims=True))
        return (blocks * np.maximum(1.0 - step * lam / np.maximum(norms, 1e-300), 0.0)).reshape(v.shape)

    def nuclear(v, step):
        u, s, vt = np.linalg.svd(v, full_matrices=False)
        return (u * np.maximum(s - step * lam, 0.0)) @ vt

    return group if spec.penalty == "group" else nuclear


def make_gradient(spec, X, y):
    """Return the gradient of the mean loss, and a bound on its slope."""
    n, p = X.shape
    if spec.loss == "squared" and p <= min(n, GRAM_COLUMNS) and not sp.issparse(X):
        gram, target = 2.0 / n * (X.T @ X), 2.0 / n * (X.T @ y)
        return lambda w: gram @ w - target, np.linalg.eigvalsh(gram)[-1]
    v = np.random.default_rng(0).standard_normal(p).astype(X.dtype)
    for _ in range(20):
        v = X.T @ (X @ (v / np.linalg.norm(v)))
    largest = 1.05 * np.linalg.norm(v) / n
    if spec.loss == "squared":
        return lambda w: 2.0 / n * (X.T @ (X @ w - y)), 2.0 * largest
    return lambda w: X.T @ (-y / (n * (1.0 + np.exp(y * (X @ w))))), 0.25 * largest


def prepare(problem, variant):
    """Return the method; the Gram matrix and the bound are computed on the clock."""
    spec, X, y = problem.spec, problem.X, problem.y
    prox = make_prox(spec, problem.lam)

    def run(budget):
        slope, bound = make_gradient(spec, X, y)
        step = X.dtype.type(1.0 / bound)
        w = ahead = np.zeros(spec.shape, X.dtype)
        momentum = 1.0
        for _ in range(budget):
            new = prox(ahead - step * slope(ahead), step)
            if np.vdot(ahead - new, new - w) > 0.0:  # the momentum points uphill: restart
                momentum = 1.0
            following = 0.5 * (1.0 + (1.0 + 4.0 * momentum**2) ** 0.5)
            ahead = new + X.dtype.type((momentum - 1.0) / following) * (new - w)
            w, momentum = new, following
        return w

    return run
