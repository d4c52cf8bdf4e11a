"""
TAP-SGD against DAP-SGD, live
=============================

Two asynchronous algorithms, on the cores of this machine. In TAP-SGD workers send gradients and the master runs the prox; in
DAP-SGD the workers run it and the master only adds. Per update they are alike; per second they are not, where the prox costs
something. The objective, the step and the strength are those of the paper's experiment with the fused lasso.
"""

import matplotlib.pyplot as plt
import numpy as np

import dapsgd as ds

rng = np.random.default_rng(0)
n, p = 1000, 5000
X, w = rng.standard_normal((n, p)), np.zeros(p)
for start in range(250, p, 1000):  # five steps of four columns matter
    X[:, start : start + 4] *= 40.0
    w[start : start + 4] = 5.0
problem = ds.Problem(X, X @ w + rng.standard_normal(n), regularizer=ds.FusedLasso(200.0), l2=200.0)
x_star = ds.solve(problem, "fista", tol=1e-9).x

# %%
# ``LivePlot`` draws while the run goes on: in a notebook, in a window, or, with a ``path``, to a file. On this page only
# the last drawing is left.

live = ds.callbacks.LivePlot("distance", "iteration")
options = {"workers": 2, "step": ds.InverseTime(2e5, 200.0), "max_iter": 4000, "record_every": 100, "tol": 0, "seed": 0}
runs = {}
for name in ("tap-sgd", "dap-sgd"):
    runs[name] = ds.solve(problem, name, x_star=x_star, callbacks=[live], **options)
    print(f"{name}: {runs[name].iterations / runs[name].seconds:,.0f} updates per second")
live.draw()

# %%
# The same runs against both clocks. The seconds are those of the machine that built this page; they say little if it was busy.

figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.6), sharey=True, layout="constrained")
for ax, clock in zip(axes, ("seconds", "iteration"), strict=True):
    for name, colour in (("tap-sgd", "#D55E00"), ("dap-sgd", "#0072B2")):
        runs[name].trace.plot(y="distance", x=clock, ax=ax, color=colour, label=name)
axes[1].set_ylabel("")
axes[1].legend(frameon=False)
plt.show()

# %%
# A result prints its summary, and in a notebook it comes with a picture.

runs["dap-sgd"]
