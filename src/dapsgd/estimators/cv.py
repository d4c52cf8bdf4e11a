"""The estimators whose strength is chosen by cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._parameters import naming_unknown
from ._search import CrossValidated, Data
from .classifier import ClassifierBase, check_classes
from .regressor import RegressorBase

__all__ = ["DAPClassifierCV", "DAPRegressorCV"]


class DAPRegressorCV(CrossValidated, RegressorBase):
    """Linear regression with a regulariser whose strength is chosen by cross-validation.

    On every fold the whole path of strengths is solved, each from the answer before; then once more on all rows.

    Parameters
    ----------
    penalty : str or regulariser, default "l1"
        As in :class:`DAPRegressor`; of an object the strength is varied, its value does not matter.
    alphas : int, array or None, default 100
        The strengths, or how many: then in equal ratios from the one at which the penalty alone decides. None is 100, as in
        scikit-learn's ``LassoCV``; :func:`dapsgd.path` by itself has 50.
    eps : float, default 1e-3
        The smallest strength is ``eps`` times the largest.
    l1_ratio : float, list of float, or None
        As in :class:`DAPRegressor`; of a list the best one is chosen.
    cv : int, splitter, list of splits, or None
        As in scikit-learn; None is five folds. A fold's rows are copied to memory.
    scoring : str, scorer or None
        What chooses. None is the mean loss of the rows held out, which for the squared loss is the mean squared error.
    rule : {"best", "one_se"}
        Take the strength with the best mean score, or the largest one whose mean is within one standard error of it.
    n_jobs : int, optional
        How many folds are worked on at once, in threads. With ``algorithm`` one of the asynchronous ones, whose workers
        are threads too, leave it at None, which is one.
    loss, groups, weights, bounds, delta, positive, l2, fit_intercept, random_state, verbose
        As in :class:`DAPRegressor`.
    algorithm, runtime, workers, step, batch_size, tol, max_passes
        As in :func:`dapsgd.solve`.

    Attributes
    ----------
    alpha_ : float
        The chosen strength.
    l1_ratio_ : float or None
        The chosen share of the L1 norm.
    alphas_ : array, shape (k,), or (ratios, k) if ``l1_ratio`` is a list
        The strengths, in decreasing order.
    scores_path_ : array, shape (k, folds) or (ratios, k, folds)
        The scores; larger is better.
    mse_path_ : array
        The mean squared errors, if these are the scores.
    path_ : Path
        The answers on all rows, along all strengths.
    coef_, intercept_, and the others
        As in :class:`DAPRegressor`, at the chosen strength.

    Examples
    --------
    >>> import numpy as np
    >>> from dapsgd import DAPRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 20))
    >>> y = X[:, 0] - X[:, 1] + 0.5 * rng.standard_normal(100)
    >>> model = DAPRegressorCV("l1", alphas=20, rule="one_se").fit(X, y)
    >>> np.flatnonzero(model.coef_)
    array([0, 1, 2])
    """

    @naming_unknown
    def __init__(
        self,
        penalty: Any = "l1",
        *,
        alphas: Any = 100,
        eps: float = 1e-3,
        l1_ratio: Any = None,
        cv: Any = None,
        scoring: Any = None,
        rule: str = "best",
        n_jobs: int | None = None,
        loss: Any = "squared",
        groups: Any = None,
        weights: Any = None,
        bounds: Any = None,
        delta: float = 1.0,
        positive: bool = False,
        l2: float = 0.0,
        fit_intercept: bool = True,
        algorithm: str = "auto",
        runtime: Any = "threads",
        workers: int | None = None,
        step: Any = None,
        batch_size: int | str = "auto",
        tol: float = 1e-4,
        max_passes: float | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.penalty = penalty
        self.alphas = alphas
        self.eps = eps
        self.l1_ratio = l1_ratio
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.n_jobs = n_jobs
        self.loss = loss
        self.groups = groups
        self.weights = weights
        self.bounds = bounds
        self.delta = delta
        self.positive = positive
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.algorithm = algorithm
        self.runtime = runtime
        self.workers = workers
        self.step = step
        self.batch_size = batch_size
        self.tol = tol
        self.max_passes = max_passes
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DAPRegressorCV:
        """Choose the strength and fit the model.

        Parameters
        ----------
        X : array, data frame or SciPy sparse matrix, shape (n, p)
        y : array, shape (n,) or (n, q)
        sample_weight : array, shape (n,), optional
            Used in the fits and in the scores.

        Returns
        -------
        DAPRegressorCV
            The estimator itself.
        """
        X, y, weights = self._read_regression(X, y, sample_weight)
        self._search(Data(X, y, y, weights, weights), self._make_loss(), classifier=False)
        if self.score_name_ in ("minus the mean squared error", "neg_mean_squared_error"):
            self.mse_path_ = -self.scores_path_
        return self


class DAPClassifierCV(CrossValidated, ClassifierBase):
    """Linear classification with a regulariser whose strength is chosen by cross-validation.

    On every fold the whole path of strengths is solved, each from the answer before; then once more on all rows.

    Parameters
    ----------
    penalty, alphas, eps, l1_ratio, rule, n_jobs
        As in :class:`DAPRegressorCV`: 100 strengths unless ``alphas`` says otherwise.
    cv : int, splitter, list of splits, or None
        As in scikit-learn; None is five stratified folds.
    scoring : str, scorer or None
        What chooses. None is the mean loss of the rows held out, which for the logistic loss is the log loss.
    loss, groups, weights, bounds, positive, l2, fit_intercept, class_weight, random_state, verbose
        As in :class:`DAPClassifier`.
    algorithm, runtime, workers, step, batch_size, tol, max_passes
        As in :func:`dapsgd.solve`.

    Attributes
    ----------
    alpha_, l1_ratio_, alphas_, scores_path_, path_
        As in :class:`DAPRegressorCV`.
    classes_, coef_, intercept_, and the others
        As in :class:`DAPClassifier`, at the chosen strength.

    Examples
    --------
    >>> import numpy as np
    >>> from dapsgd import DAPClassifierCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 20))
    >>> y = X[:, 0] - X[:, 1] + rng.standard_normal(200) > 0.0
    >>> model = DAPClassifierCV("l1", alphas=20, rule="one_se").fit(X, y)
    >>> np.flatnonzero(model.coef_)
    array([0, 1])
    """

    @naming_unknown
    def __init__(
        self,
        penalty: Any = "l1",
        *,
        alphas: Any = 100,
        eps: float = 1e-3,
        l1_ratio: Any = None,
        cv: Any = None,
        scoring: Any = None,
        rule: str = "best",
        n_jobs: int | None = None,
        loss: Any = "auto",
        groups: Any = None,
        weights: Any = None,
        bounds: Any = None,
        positive: bool = False,
        l2: float = 0.0,
        fit_intercept: bool = True,
        class_weight: Any = None,
        algorithm: str = "auto",
        runtime: Any = "threads",
        workers: int | None = None,
        step: Any = None,
        batch_size: int | str = "auto",
        tol: float = 1e-4,
        max_passes: float | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.penalty = penalty
        self.alphas = alphas
        self.eps = eps
        self.l1_ratio = l1_ratio
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.n_jobs = n_jobs
        self.loss = loss
        self.groups = groups
        self.weights = weights
        self.bounds = bounds
        self.positive = positive
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.algorithm = algorithm
        self.runtime = runtime
        self.workers = workers
        self.step = step
        self.batch_size = batch_size
        self.tol = tol
        self.max_passes = max_passes
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DAPClassifierCV:
        """Choose the strength and fit the model.

        Parameters
        ----------
        X : array, data frame or SciPy sparse matrix, shape (n, p)
        y : array, shape (n,)
        sample_weight : array, shape (n,), optional
            Used in the fits and in the scores.

        Returns
        -------
        DAPClassifierCV
            The estimator itself.
        """
        X, y = self._read_labels(X, y)
        self.classes_ = check_classes(np.unique(y))
        targets, loss = self._encode(y)
        plain = self._read_weights(X, sample_weight)
        self._search(Data(X, targets, y, self._class_weights(y, plain), plain), loss, classifier=True)
        return self
