"""Classification."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, log_expit, log_softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from .._calls import has_trait
from .._checks import known_name
from ..losses import ELSEWHERE, Logistic, Multinomial, SquaredHinge
from ..problem import Problem
from ._base import LinearModel, normalised
from ._frames import names_of_targets
from ._parameters import naming_unknown
from ._targets import explained

__all__ = ["ClassifierBase", "DAPClassifier"]

Array = np.ndarray[Any, Any]

_LOSSES = ("auto", "logistic", "multinomial", "squared_hinge")
# Whatever a loss of numbers is called elsewhere, another estimator has it.
_FOR_NUMBERS = dict.fromkeys(("squared", "huber", "poisson"), "DAPRegressor") | {
    name: ours if ours.strip("'") in _LOSSES else "DAPRegressor" for name, ours in ELSEWHERE.items()
}


def _has_probabilities(model: ClassifierBase) -> bool:
    """Tell whether a classifier's loss is one that probabilities belong to."""
    return model.loss in ("auto", "logistic", "multinomial", None) or isinstance(model.loss, (Logistic, Multinomial))


class ClassifierBase(ClassifierMixin, LinearModel):
    """What the classifiers share: losses, labels, the layout of coefficients, predictions."""

    class_weight: Any
    classes_: Array

    def _make_loss(self, count: int) -> Any:
        """Return the loss for so many classes."""
        loss = self.loss
        if loss is None or isinstance(loss, str):
            name = "auto" if loss is None else known_name("loss", loss, _LOSSES, _FOR_NUMBERS)
            if name == "squared_hinge":
                return SquaredHinge()
            return Logistic() if name == "logistic" or count == 2 else Multinomial()
        return Logistic(loss.scale) if isinstance(loss, Multinomial) and count == 2 else loss

    def _read_labels(self, X: Any, y: Any, reset: bool = True) -> tuple[Any, Array]:
        given, labels = X, y
        with explained(given, labels, classes=True):
            X, y = self._read(X, y, reset=reset)
            check_classification_targets(y)
            np.unique(y)  # which compares them
        self._target_names = names_of_targets(labels) or (None if reset else self._target_names)
        return X, y

    def _encode(self, y: Array) -> tuple[Array, Any]:
        """Return the targets for the loss, and the loss: signs, one column a class if more than two, or indicators."""
        codes = np.searchsorted(self.classes_, y)
        count = len(self.classes_)
        loss = self._make_loss(count)
        if has_trait(type(loss), "joint"):
            return np.eye(count)[codes], loss
        return (2.0 * np.eye(count)[codes] - 1.0 if count > 2 else 2.0 * codes - 1.0), loss

    def _class_weights(self, y: Array, weights: Array | None) -> Array | None:
        """Return the sample weights times the weights of the classes."""
        if self.class_weight is None:
            return weights
        codes = np.searchsorted(self.classes_, y)
        weights = np.ones(len(y)) if weights is None else weights
        if isinstance(self.class_weight, str):
            known_name("class_weight", self.class_weight, ["balanced"])
            totals = np.bincount(codes, weights, len(self.classes_))
            with np.errstate(divide="ignore"):
                factors = np.where(totals > 0.0, weights.sum() / (len(totals) * totals), 0.0)
        elif isinstance(self.class_weight, dict):
            unknown = set(self.class_weight) - set(self.classes_.tolist())
            if unknown:
                raise ValueError(
                    f"class_weight must name classes of y, {self.classes_.tolist()}; got {sorted(unknown, key=str)}"
                )
            factors = np.array([self.class_weight.get(label, 1.0) for label in self.classes_.tolist()], dtype=np.float64)
            if not (np.isfinite(factors).all() and (factors >= 0.0).all()):
                raise ValueError(f"class_weight must hold finite numbers >= 0; got {self.class_weight!r}")
        else:
            raise TypeError(f"class_weight must be None, 'balanced' or a dict; got {self.class_weight!r}")
        result: Array = weights * factors[codes]
        return result

    def _store(self, w: Array, intercept: Any, problem: Problem) -> None:
        self.coef_ = np.ascontiguousarray(np.atleast_2d(w.T))
        self.intercept_ = np.full(len(self.coef_), intercept, problem.dtype)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = self._bounded()
        return tags

    def decision_function(self, X: Any) -> Array:
        """Return the linear predictions: one a row for two classes, positive for the second; otherwise one a class.

        Parameters
        ----------
        X : array, data frame or SciPy sparse matrix, shape (n, p)

        Returns
        -------
        array, shape (n,) or (n, k)
        """
        linear = self._predict_linear(X)
        if linear.shape[1] == 1:
            return linear[:, 0]
        return linear[:, 1] - linear[:, 0] if len(self.classes_) == 2 else linear

    def predict(self, X: Any) -> Array:
        """Predict the class of every row.

        Parameters
        ----------
        X : array, data frame or SciPy sparse matrix, shape (n, p)

        Returns
        -------
        array, shape (n,)
        """
        scores = self.decision_function(X)
        codes = (scores > 0.0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        result: Array = self.classes_[codes]
        return result

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Return the probability of every class; for the logistic and multinomial losses.

        With the logistic loss and more than two classes, those of one against the rest, scaled to add up to 1.

        Parameters
        ----------
        X : array, data frame or SciPy sparse matrix, shape (n, p)

        Returns
        -------
        array, shape (n, k)
        """
        scores = self.decision_function(X)
        if scores.ndim == 2 and isinstance(self._make_loss(len(self.classes_)), Logistic):
            shares: Array = expit(scores)
            total = shares.sum(axis=1, keepdims=True)
            return np.where(total > 0.0, shares / np.where(total > 0.0, total, 1.0), 1.0 / shares.shape[1])
        return np.exp(self._log_probabilities(scores))

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of ``predict_proba``.

        Parameters
        ----------
        X : array, data frame or SciPy sparse matrix, shape (n, p)

        Returns
        -------
        array, shape (n, k)
        """
        scores = self.decision_function(X)
        if scores.ndim == 2 and isinstance(self._make_loss(len(self.classes_)), Logistic):
            with np.errstate(divide="ignore"):
                return np.log(self.predict_proba(X))
        return self._log_probabilities(scores)

    def _log_probabilities(self, scores: Array) -> Array:
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        result: Array = log_softmax(scores, axis=1)
        return result


class DAPClassifier(ClassifierBase):
    r"""Linear classification with a regulariser.

    Minimises over w and b

    .. math:: \frac{1}{\sum_i s_i} \sum_i s_i\,\mathrm{loss}(x_i \cdot w + b, y_i) + l_2 \|w\|^2 + \alpha\,h(w).

    ``LogisticRegression(penalty="l1", C=C)`` of scikit-learn is ``alpha = 1 / (C * sum of the weights)``.

    Parameters
    ----------
    penalty : str or regulariser, default "l1"
        As in :class:`DAPRegressor`.
    alpha : float, default 0.01
        The strength of the penalty.
    loss : str or loss, default "auto"
        ``"logistic"``, ``"multinomial"``, ``"squared_hinge"``, or an object. ``"auto"`` is logistic for two classes,
        multinomial for more. The multinomial loss for two classes is the logistic one. With the logistic loss or the squared
        hinge and more than two classes, each class is told from the rest, by a column of coefficients of its own; a penalty
        that ties coefficients together ties the columns too.
    l1_ratio, groups, weights, bounds, positive, l2, fit_intercept
        As in :class:`DAPRegressor`.
    class_weight : dict, "balanced" or None
        Factors on the weights of the rows, by class; ``"balanced"`` makes all classes weigh the same.
    algorithm, runtime, workers, step, batch_size, tol, max_passes
        As in :func:`dapsgd.solve`.
    warm_start, random_state, verbose
        As in :class:`DAPRegressor`.

    Attributes
    ----------
    classes_ : array
        The labels, sorted.
    coef_ : array, shape (1, p) for two classes, otherwise (k, p)
    intercept_ : array, shape (1,) or (k,)
    n_iter_, objective_, residual_, dual_gap_, trace_, result_, t_, n_features_in_, feature_names_in_
        As in :class:`DAPRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from dapsgd import DAPClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 20))
    >>> y = np.where(X[:, :3].sum(axis=1) > 0.0, "up", "down")
    >>> model = DAPClassifier("l1", alpha=0.05).fit(X, y)
    >>> np.flatnonzero(model.coef_)
    array([0, 1, 2])
    >>> model.predict(X[:3])
    array(['up', 'up', 'up'], dtype='<U4')
    """

    @naming_unknown
    def __init__(
        self,
        penalty: Any = "l1",
        alpha: float = 0.01,
        *,
        loss: Any = "auto",
        l1_ratio: float | None = None,
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
        warm_start: bool = False,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.penalty = penalty
        self.alpha = alpha
        self.loss = loss
        self.l1_ratio = l1_ratio
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
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DAPClassifier:
        """Fit the model.

        Parameters
        ----------
        X : array, memory map, data frame or SciPy sparse matrix, shape (n, p)
            As in :meth:`DAPRegressor.fit`.
        y : array, shape (n,)
            The labels, of any type.
        sample_weight : array, shape (n,), optional
            Only their proportions matter.

        Returns
        -------
        DAPClassifier
            The estimator itself.
        """
        X, y = self._read_labels(X, y)
        self.classes_ = check_classes(np.unique(y))
        targets, loss = self._encode(y)
        weights = normalised(self._class_weights(y, self._read_weights(X, sample_weight)))
        self._solve(*self._pose_near(X, targets, loss, weights), self.alpha, self.warm_start)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> DAPClassifier:
        """Update the model with a batch of rows, in one pass of stochastic proximal steps.

        See :meth:`DAPRegressor.partial_fit`.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit``, but weights are taken as they are; a batch of zero weights changes nothing.
        classes : array, optional
            All labels that there will be; needed in the first call.

        Returns
        -------
        DAPClassifier
            The estimator itself.
        """
        first = not hasattr(self, "coef_")
        X, y = self._read_labels(X, y, reset=first)
        if first and classes is None:
            raise ValueError("classes must be given in the first call of partial_fit: all labels that there will be")
        if first:
            self.classes_ = check_classes(np.unique(np.asarray(classes)))
        elif classes is not None and not np.array_equal(np.unique(np.asarray(classes)), self.classes_):
            raise ValueError(f"classes must be those of the first call, {self.classes_.tolist()}; got {classes!r}")
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise ValueError(f"y must hold labels among classes, {self.classes_.tolist()}; got {unknown.tolist()}")
        if self.class_weight == "balanced":
            raise ValueError("class_weight must be a dict or None for partial_fit: a batch does not show what is balanced")
        targets, loss = self._encode(y)
        weights = self._class_weights(y, self._read_weights(X, sample_weight, first=first))
        if first or weights is None or weights.any():
            self._take_batch(self._pose(X, targets, loss, weights), self.alpha)
        return self


def check_classes(classes: Array) -> Array:
    """Return the classes if there are at least two."""
    if len(classes) < 2:
        raise ValueError(f"y must hold at least two classes; got {len(classes)} class: {classes.tolist()}")
    return classes
