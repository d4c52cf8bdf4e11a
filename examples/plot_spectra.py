"""
Spectra: bands of neighbouring wavelengths
==========================================

A quantity is to be predicted from spectra with 120 wavelengths. It depends on two bands. The lasso picks single wavelengths
out of the bands, others in every sample; the fused lasso finds the bands.
"""

import matplotlib.pyplot as plt
import numpy as np

from dapsgd import DAPRegressorCV

rng = np.random.default_rng(0)
n, p = 120, 120
smooth = np.exp(-0.5 * (np.arange(-6, 7) / 2.5) ** 2)
X = np.apply_along_axis(np.convolve, 1, rng.standard_normal((n, p)), smooth, mode="same")
X /= X.std(axis=0)
w = np.zeros(p)
w[30:48], w[80:92] = 1.0, -1.5
y = X @ w + 3.0 * rng.standard_normal(n)

# %%
# ``DAPRegressorCV`` chooses the strength by cross-validation: the largest within one standard error of the best. With
# ``l1_ratio`` the fused lasso also wants coefficients to be zero.

models = {
    "lasso": DAPRegressorCV("l1", alphas=15, eps=0.02, cv=4, rule="one_se"),
    "fused lasso": DAPRegressorCV("fused_lasso", alphas=15, eps=0.02, cv=4, rule="one_se", l1_ratio=0.1),
}
for name, model in models.items():
    model.fit(X, y)
    error = np.linalg.norm(model.coef_ - w) / np.linalg.norm(w)
    print(f"{name:12} alpha {model.alpha_:.3g}, R2 {model.score(X, y):.3f}, error of the coefficients {error:.2f}")

figure, (top, bottom) = plt.subplots(2, 1, figsize=(8.0, 5.4), sharex=True, layout="constrained")
top.plot(X[:20].T, color="#999999", linewidth=0.6)
top.set_ylabel("twenty spectra")
bottom.plot(w, color="#333333", linewidth=1.0, label="truth")
for (name, model), colour in zip(models.items(), ("#D55E00", "#0072B2"), strict=True):
    bottom.plot(model.coef_, color=colour, drawstyle="steps-mid", label=name)
bottom.set_xlabel("wavelength")
bottom.set_ylabel("coefficient")
bottom.legend(frameon=False)
for ax in (top, bottom):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
