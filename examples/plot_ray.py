"""
Ray on one machine, and then on many
====================================

The same line runs on threads and, with ``runtime=ds.Ray(...)``, in processes of a Ray cluster. On one machine this is a
rehearsal: messages travel between processes, so it is slower than threads. What it shows is that nothing else changes.
"""

import importlib.util

import matplotlib.pyplot as plt
import numpy as np

import dapsgd as ds

rng = np.random.default_rng(0)
X = rng.standard_normal((2000, 60))
y = X @ np.repeat([0.0, 1.0, -0.5], 20) + 0.5 * rng.standard_normal(2000)
problem = ds.Problem(X, y, regularizer=ds.FusedLasso(0.5), l2=0.01)
best = ds.solve(problem, tol=1e-8)

# %%
# Ray is an extra, ``pip install 'dapsgd[ray]'``. Where it is missing this page shows the threads alone.

runtimes = {"threads": "threads"}
if importlib.util.find_spec("ray"):
    runtimes["Ray"] = ds.Ray(workers=2)
else:
    print("Ray is not installed: only the threads run. pip install 'dapsgd[ray]' to see both.")

figure, ax = plt.subplots(figsize=(7.0, 3.6), layout="constrained")
options = {"batch_size": 50, "max_passes": 20, "tol": 0, "seed": 0}
for (name, runtime), colour in zip(runtimes.items(), ("#0072B2", "#D55E00"), strict=False):
    workers = {"workers": 2} if name == "threads" else {}
    run = ds.solve(problem, "dap-sgd", runtime=runtime, **workers, **options)
    print(f"{name}: objective {run.objective / best.objective - 1.0:.1e} above the optimum after {run.passes:.0f} passes")
    ax.plot(run.trace.passes, run.trace.objective / best.objective - 1.0, color=colour, label=name)
ax.set_yscale("log")
ax.set_xlabel("passes over the data")
ax.set_ylabel("objective above the optimum, relative")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# On a cluster that runs already, give its address and say how many workers: ``ds.Ray("auto", workers=16)``.
# :doc:`More on clusters </cluster>`.
