"""One small example of every registry entry: whatever is registered inherits the whole test suite."""

import math

import numpy as np

import dapsgd as ds

P, Q = 12, 3

LABELS = np.array([2, 0, 1, 1, 0, 2, 2, 1, 0, 0, 1, 2])  # groups that are not contiguous
UNEVEN = [[0, 5, 2], [1], [3, 4, 6, 7, 8, 9], [10, 11]]


def losses():
    """Name -> loss, for every loss of the registry."""
    made = {"huber": ds.Huber(0.7), "squared": ds.Squared(0.5)}
    return {name: made[name] if name in made else kind() for name, kind in ds.LOSSES.items()}


def regularizers(size=P, strength=0.05):
    """Name -> regulariser for a parameter with ``size`` entries in all, for every regulariser of the registry."""
    made = {
        "zero": ds.Zero(),
        "l1": ds.L1(strength),
        "elastic_net": ds.ElasticNet(strength, 0.6),
        "group_lasso": ds.GroupLasso(strength, UNEVEN, weights=[1.0, 0.5, 2.0, 1.5]),
        "sparse_group_lasso": ds.SparseGroupLasso(strength, LABELS, 0.3),
        "fused_lasso": ds.FusedLasso(strength, 0.5 * strength),
        "nuclear": ds.NuclearNorm(strength),
        "slope": ds.Slope(strength * np.linspace(2.0, 0.5, size)),
        "box": ds.Box(-0.2, math.inf),
        "non_negative": ds.NonNegative(strength, 0.7),
    }
    missing = set(ds.REGULARIZERS) - set(made)
    if missing:
        raise AssertionError(f"tests/cases.py has no example of {missing}")
    return made


def targets(name, predictions, rng):
    """Make targets for a loss out of predictions (n,) or (n, k)."""
    noisy = predictions + 0.3 * rng.standard_normal(predictions.shape)
    if name in ("logistic", "squared_hinge"):
        return np.where(noisy > 0.0, 1.0, -1.0)
    if name == "poisson":
        return rng.poisson(np.exp(np.clip(noisy, -3.0, 3.0))).astype(float)
    if name == "multinomial":
        return noisy.argmax(axis=1).astype(float)
    return noisy


def problem(loss="squared", regularizer="l1", *, n=40, seed=0, multi=False, sparse=False, dtype=np.float64, **options):
    """Make a small problem with p = 12 columns."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, P))
    if sparse:
        X *= rng.random((n, P)) < 0.4
    joint = loss == "multinomial"
    w = rng.standard_normal((P, Q)) if multi or joint else rng.standard_normal(P)
    y = targets(loss, X @ w * 0.7, rng)
    if joint:
        y[:Q] = np.arange(Q)  # every class occurs
    size = P * Q if multi or joint else P
    X = X.astype(dtype)
    if sparse:
        from scipy.sparse import csr_matrix

        X = csr_matrix(X)
    return ds.Problem(X, y.astype(dtype), losses()[loss], regularizers(size)[regularizer], **options)


def weighted(dtype, sparse):
    """Make a problem with weights, an intercept and an l2 term."""
    from scipy.sparse import csr_matrix

    rng = np.random.default_rng(0)
    X = (rng.standard_normal((200, 15)) * (rng.random((200, 15)) < 0.5)).astype(dtype)
    y = (X[:, 0] - 2.0 * X[:, 1] + 3.0 + 0.1 * rng.standard_normal(200)).astype(dtype)
    weights = rng.random(200).astype(dtype)
    made = csr_matrix(X) if sparse else X
    return ds.Problem(made, y, regularizer=ds.L1(0.05), l2=0.01, sample_weight=weights, fit_intercept=True)
