"""A spectrum with few active bands: the fused lasso, its strength chosen by cross-validation.

With a file name as argument, a picture of the coefficients and of the scores is saved there.
"""

import sys

import numpy as np

from dapsgd import DAPRegressorCV


def spectra(seed=0, n=150, p=80):
    """Draw smooth spectra, and a quantity that depends on two bands of neighbouring wavelengths."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p + 4))
    X = sum(X[:, k : p + k] for k in range(5)) / np.sqrt(5.0)  # neighbours are correlated
    w = np.zeros(p)
    w[20:35], w[55:65] = 1.0, -1.5
    return X, X @ w + 2.0 * rng.standard_normal(n), w


def main(picture=None):
    """Fit, and say which bands were found."""
    X, y, w = spectra()
    found = {}
    for penalty in ("l1", "fused_lasso"):
        model = DAPRegressorCV(penalty, alphas=10, eps=0.03, cv=3, rule="one_se").fit(X, y)
        error = np.linalg.norm(model.coef_ - w) / np.linalg.norm(w)
        pieces = 1 + np.count_nonzero(np.abs(np.diff(model.coef_)) > 1e-8)
        print(f"{penalty}: alpha {model.alpha_:.3g}, R2 {model.score(X, y):.3f}, {pieces} pieces, error {error:.2f}")
        found[penalty] = {"model": model, "error": error}
    if picture is not None:
        found["fused_lasso"]["model"].plot_path(picture)
    return found


if __name__ == "__main__":
    main(*sys.argv[1:2])
