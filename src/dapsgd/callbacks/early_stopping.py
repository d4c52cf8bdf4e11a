"""Stop when data that was left out is predicted no better."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._checks import non_negative, positive_integer
from .._monitor import Checkup
from ..problem import Problem

__all__ = ["EarlyStopping"]

Array = np.ndarray[Any, Any]


class EarlyStopping:
    """End a run when the mean loss on validation data has not become smaller for some recorded points.

    The point with the smallest loss is kept: ``best_x`` and ``best_intercept``. It is a raw iterate, so in general not exactly
    sparse or fused; :func:`dapsgd.prox` makes it so.

    Parameters
    ----------
    X, y : arrays
        The validation data, as for :class:`dapsgd.Problem`.
    loss : loss, optional
        What is averaged; by default the loss of the problem that is being solved.
    patience : int, default 5
        How many recorded points in a row may bring no improvement. How far apart they are is ``record_every`` of ``solve``.
    min_delta : float, default 0.0
        A loss must be smaller by more than this to count as an improvement.

    Attributes
    ----------
    scores : list of float
        The validation loss at every recorded point.
    best_score : float
    best_iteration : int
    best_x, best_intercept
        Where the validation loss was smallest.

    Examples
    --------
    >>> import dapsgd as ds
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> X = rng.standard_normal((60, 30))
    >>> y = X[:, 0] + rng.standard_normal(60)
    >>> stop = ds.callbacks.EarlyStopping(X[40:], y[40:], patience=2)
    >>> problem = ds.Problem(X[:40], y[:40])
    >>> run = ds.solve(problem, "p-sgd", max_passes=50, tol=0, seed=0, callbacks=[stop])
    >>> run.message
    'p-sgd on 1 worker: a callback asked to stop after ... iterations'
    >>> stop.best_iteration < run.iterations
    True
    """

    def __init__(self, X: Any, y: Any, loss: Any = None, *, patience: int = 5, min_delta: float = 0.0) -> None:
        self._X, self._y, self._loss = X, y, loss
        # Its objective is the mean loss; a loss that is not known yet waits for the run, what is wrong with the data does not.
        self._validation = Problem(X, y, loss, fit_intercept=True)
        self.patience = positive_integer("EarlyStopping: patience", patience)
        self.min_delta = non_negative("EarlyStopping: min_delta", min_delta)
        self._start()

    def _start(self) -> None:
        self.scores: list[float] = []
        self.best_score, self.best_iteration = math.inf, 0
        self.best_x: Array | None = None
        self.best_intercept: Any = 0.0
        self._waited = 0

    def __call__(self, now: Checkup) -> bool:
        """Evaluate a point; return True to end the run."""
        if now.iteration == 0:
            self._start()
        self._judge_by(now)
        if now.x.shape != self._validation.shape:
            raise ValueError(
                f"EarlyStopping: X and y must be as those of the problem, for coefficients of shape {now.x.shape}; "
                f"these are for {self._validation.shape}"
            )
        score = self._validation.objective(now.x, now.intercept)
        self.scores.append(score)
        self._waited += 1
        if score < self.best_score - self.min_delta:
            self.best_score, self.best_iteration = score, now.iteration
            self.best_x, self.best_intercept = now.x, now.intercept
            self._waited = 0
        return self._waited >= self.patience

    def _judge_by(self, now: Checkup) -> None:
        """Take the loss of the problem that is being solved, unless one was given."""
        if self._loss is not None or now.problem is None:
            return
        ours, theirs = self._validation.loss, now.problem.loss
        if type(ours) is type(theirs) and ours == theirs:  # tuples of different kinds may be equal
            return
        try:
            self._validation = Problem(self._X, self._y, theirs, fit_intercept=True)
        except (ValueError, TypeError) as error:  # of targets that are none for this loss
            raise type(error)(f"EarlyStopping: {error}") from None

    def __repr__(self) -> str:
        return f"EarlyStopping({self._validation.n} rows, patience={self.patience}, min_delta={self.min_delta:g})"
