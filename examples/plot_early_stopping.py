"""
Callbacks: stop early, and keep a log
=====================================

Without a penalty, a model with as many columns as rows learns the noise in the end. Stopping in time is a regulariser of
its own: ``EarlyStopping`` looks at rows that were left out, and ends the run when they are predicted no better.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import dapsgd as ds

rng = np.random.default_rng(0)
n, p = 150, 150
X = rng.standard_normal((2 * n, p))
y = X[:, :15].sum(axis=1) + 4.0 * rng.standard_normal(2 * n)
problem = ds.Problem(X[:n], y[:n])

# %%
# A callback is any function of a ``Checkup``; one that returns True ends the run. Those in ``ds.callbacks`` go together: here
# a log of the whole run is written beside.

folder = tempfile.TemporaryDirectory()
log = ds.callbacks.CSVLog(Path(folder.name) / "run.csv")
watch = ds.callbacks.EarlyStopping(X[n:], y[n:], patience=10_000)  # never stops: to see what would have happened
stop = ds.callbacks.EarlyStopping(X[n:], y[n:], patience=8)
options = {"max_passes": 60, "record_every": n // 2, "tol": 0, "seed": 0}
whole = ds.solve(problem, "p-sgd", callbacks=[watch, log], **options)
early = ds.solve(problem, "p-sgd", callbacks=[stop], **options)
print(early.message)
print(f"the best point was at iteration {stop.best_iteration}, with a mean square error of {stop.best_score:.1f} on new rows")
print(log.path.read_text()[:160], "...")
folder.cleanup()

figure, ax = plt.subplots(figsize=(7.0, 3.6), layout="constrained")
ax.plot(whole.trace.passes, whole.trace.objective, color="#D55E00", label="rows fitted to")
ax.plot(whole.trace.passes, watch.scores, color="#0072B2", label="rows left out")
ax.axvline(early.passes, color="#333333", linestyle="--", linewidth=1.0, label="stopped here")
ax.set_xlabel("passes over the data")
ax.set_ylabel("mean square error")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
