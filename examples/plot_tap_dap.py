"""
TAP-SGD against DAP-SGD, live
=============================

Two asynchronous algorithms, on the cores of this machine. In TAP-SGD workers send gradients and the master runs the prox; in
DAP-SGD the workers run it and the master only adds. Per update they are alike. Per second they are not, where the prox is
costly: that of the nuclear norm decomposes a matrix, which takes many times as long as the gradient of a row.
"""

import matplotlib.pyplot as plt
import numpy as np

import dapsgd as ds

rng = np.random.default_rng(0)
n, p, q, rank = 2000, 60, 40, 3
X = rng.standard_normal((n, p))
Y = X @ rng.standard_normal((p, rank)) @ rng.standard_normal((rank, q)) + rng.standard_normal((n, q))
problem = ds.Problem(X, Y, regularizer=ds.NuclearNorm(2.0), l2=0.1)
x_star = ds.solve(problem, "fista", tol=1e-9).x

# %%
# ``LivePlot`` draws while the run goes on: in a notebook, in a window, or, with a ``path``, to a file. On this page only
# the last drawing is left. Against iterations the two runs lie on each other.

live = ds.callbacks.LivePlot("distance", "iteration")
options = {"step": ds.InverseTime(2000.0, 0.1), "max_iter": 4000, "record_every": 100, "tol": 0, "seed": 0, "x_star": x_star}
colours = {"tap-sgd": "#D55E00", "dap-sgd": "#0072B2"}
runs = {name: ds.solve(problem, name, workers=2, callbacks=[live], **options) for name in colours}
live.draw()

# %%
# Against seconds DAP-SGD is ahead: its two workers decompose two matrices at once, while in TAP-SGD one waits for the other. On
# the left is the faster of three runs of each, taken in turn; the seconds are those of the machine that built this page.

for name in [*colours] * 2:
    runs[name] = min(runs[name], ds.solve(problem, name, workers=2, **options), key=lambda run: run.seconds)
for name, run in runs.items():
    print(f"{name}: {run.iterations / run.seconds:,.0f} updates per second")

# %%
# On the right nothing depends on the machine: the same updates in simulated time, with eight workers, where a gradient takes
# 20 microseconds, the prox 300 and an addition 2. TAP-SGD's master runs one prox after the other, so that more workers do not
# help it; in DAP-SGD eight run side by side.

figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.6), sharey=True, layout="constrained")
simulated = {
    "tap-sgd": ds.Simulated(work=ds.Exponential(20e-6), apply=302e-6),
    "dap-sgd": ds.Simulated(work=ds.Exponential(320e-6), apply=2e-6),
}
far = {name: ds.solve(problem, name, runtime=runtime, workers=8, **options) for name, runtime in simulated.items()}
for ax, found, title in zip(axes, (runs, far), ("2 threads", "8 workers, simulated"), strict=True):
    for name, colour in colours.items():
        found[name].trace.plot(y="distance", ax=ax, color=colour, label=name)
    ax.set_title(title, fontsize=10)
axes[1].set_xlabel("simulated seconds")
axes[1].set_ylabel("")
axes[1].legend(frameon=False)
plt.show()

# %%
# A result prints its summary, and in a notebook it comes with a picture.

runs["dap-sgd"]
