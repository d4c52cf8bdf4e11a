"""Callbacks for ``solve(..., callbacks=[...])``: what happens at every recorded point of a run, off the clock.

A callback is any callable that takes a :class:`dapsgd.Checkup`; one that returns True ends the run. Those here start anew
when a run does, so that one object can serve run after run.

>>> import dapsgd as ds
>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((100, 20))
>>> y = X[:, 0] + rng.standard_normal(100)
>>> stop = ds.callbacks.EarlyStopping(X[80:], y[80:], patience=3)
>>> problem = ds.Problem(X[:80], y[:80], regularizer=ds.L1(1e-3))
>>> run = ds.solve(problem, "dap-sgd", workers=1, max_passes=100, tol=0, seed=0, callbacks=[stop])
>>> run.iterations < 8000, bool(stop.best_score < stop.scores[0])
(True, True)
"""

from .early_stopping import EarlyStopping
from .live_plot import LivePlot
from .logs import CSVLog, JSONLinesLog
from .trackers import MLflow, TensorBoard

__all__ = ["CSVLog", "EarlyStopping", "JSONLinesLog", "LivePlot", "MLflow", "TensorBoard"]
