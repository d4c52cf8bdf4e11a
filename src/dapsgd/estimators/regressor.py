"""Regression."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from .._calls import has_trait
from .._checks import known_name, positive
from .._summaries import counted
from ..losses import ELSEWHERE, Huber, Poisson, Squared
from ..problem import Problem
from ._base import LinearModel, normalised
from ._frames import names_of, names_of_targets
from ._parameters import naming_unknown
from ._targets import explained

__all__ = ["DAPRegressor", "RegressorBase", "explained_deviance"]

Array = np.ndarray[Any, Any]

_LEAST = 1e-200  # what an exponential that is zero is taken for: counts are divided by it
_LOSSES = ("squared", "huber", "poisson")
# Whatever a loss of classes is called elsewhere, another estimator has it.
_FOR_CLASSES = dict.fromkeys(("logistic", "multinomial", "squared_hinge"), "DAPClassifier") | {
    name: ours if ours.strip("'") in _LOSSES else "DAPClassifier" for name, ours in ELSEWHERE.items()
}


class RegressorBase(RegressorMixin, LinearModel):
    """What the regressors share: losses, targets, the layout of coefficients, predictions."""

    delta: Any

    def _make_loss(self) -> Any:
        if not isinstance(self.loss, str):
            if has_trait(type(self.loss), "joint"):
                raise ValueError(f"loss must be one for real targets; got {self.loss!r}: see DAPClassifier")
            return self.loss
        known_name("loss", self.loss, _LOSSES, _FOR_CLASSES)
        if self.loss == "huber":
            return Huber(positive("delta", self.delta))
        return Squared(0.5) if self.loss == "squared" else Poisson()

    def _read_regression(self, X: Any, y: Any, sample_weight: Any, reset: bool = True) -> tuple[Any, Array, Array | None]:
        if not reset:
            y = self._targets_by_name(y)
        given, targets = X, y
        with explained(given, targets, classes=False):
            X, y = self._read(X, y, reset=reset, y_numeric=True, multi_output=True)
            if hasattr(y, "tocsr") or y.dtype.kind not in "biuf":
                raise TypeError(f"y must hold numbers; got dtype {y.dtype}")
        self._target_names = names_of_targets(targets) or (None if reset else self._target_names)
        return X, y, self._read_weights(X, sample_weight, first=reset)

    def _targets_by_name(self, y: Any) -> Any:
        """Return the columns of a frame in the order of those before; raise if they have other names."""
        before, names = self._target_names, names_of(y)
        if before is None or names is None or list(before) == names:
            return y
        if sorted(before) != sorted(names):
            raise ValueError(f"y must have the targets of before, {', '.join(before)}; got {', '.join(names)}")
        places = [names.index(name) for name in before]
        return y.iloc[:, places] if hasattr(y, "iloc") else y.select(list(before))

    def _store(self, w: Array, intercept: Any, problem: Problem) -> None:
        self.coef_ = np.ascontiguousarray(w.T)
        several = len(problem.shape) == 2
        self.intercept_ = np.full(problem.shape[1], intercept, np.float64) if several else float(intercept)

    def predict(self, X: Any) -> Array:
        """Predict the targets; for the Poisson loss the expected counts.

        Parameters
        ----------
        X : array, data frame or SciPy sparse matrix, shape (n, p)

        Returns
        -------
        array, shape (n,) or (n, q)
        """
        linear = self._predict_linear(X)
        return np.exp(linear) if self._counts() else linear

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return how much better the predictions are than the mean of y: 1 is perfect, 0 no better.

        That is R2, the share of the variance that is explained; for the Poisson loss D2, the share of the deviance, as the
        score of scikit-learn's ``PoissonRegressor`` is. Of several targets it is the mean.

        Parameters
        ----------
        X : array, data frame or SciPy sparse matrix, shape (n, p)
        y : array, shape (n,) or (n, q)
        sample_weight : array, shape (n,), optional

        Returns
        -------
        float
        """
        if not self._counts():
            return float(super().score(X, y, sample_weight))
        return explained_deviance(y, self.predict(X), sample_weight)

    def _counts(self) -> bool:
        """Tell whether the loss is that of counts."""
        return bool(self.loss == "poisson") or isinstance(self.loss, Poisson)

    @property
    def _score_name(self) -> str:
        return "D2" if self._counts() else "R2"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.regressor_tags.poor_score = self._bounded()
        tags.target_tags.positive_only = self._counts()
        return tags


def explained_deviance(y: Any, predicted: Array, weights: Any = None) -> float:
    """Return the share of the Poisson deviance of counts that predictions explain; the mean over targets."""
    from sklearn.metrics import d2_tweedie_score  # which other losses need not wait for

    counts = np.asarray(y, np.float64).reshape(predicted.shape)
    if counts.min() < 0.0:
        raise ValueError(f"y must not be negative for the Poisson loss; got {counts.min():g}")
    positive = np.maximum(predicted, _LEAST)
    columns = zip(counts.reshape(len(counts), -1).T, positive.reshape(len(counts), -1).T, strict=True)
    scores = [d2_tweedie_score(*pair, sample_weight=weights, power=1) if pair[0].any() else 0.0 for pair in columns]
    return float(np.mean(scores))


class DAPRegressor(RegressorBase):
    r"""Linear regression with a regulariser.

    Minimises over w and b

    .. math:: \frac{1}{\sum_i s_i} \sum_i s_i\,\mathrm{loss}(x_i \cdot w + b, y_i) + l_2 \|w\|^2 + \alpha\,h(w),

    where the squared loss is halved, so that ``alpha`` means what it means in ``sklearn.linear_model.Lasso``.

    Parameters
    ----------
    penalty : str or regulariser, default "l1"
        A name from ``dapsgd.REGULARIZERS``, or an object such as ``dapsgd.FusedLasso(0.1, l1=0.05)``, which is used as it
        is: ``alpha`` then does nothing.
    alpha : float, default 1.0
        The strength of the penalty.
    loss : str or loss, default "squared"
        ``"squared"``, ``"huber"``, ``"poisson"``, or an object.
    l1_ratio : float, optional
        The share of the L1 norm. For ``"elastic_net"`` as in scikit-learn, :math:`\alpha(\rho\|w\|_1 +
        \frac{1-\rho}2\|w\|^2)`, and for ``"sparse_group_lasso"``, 0.5 by default; for ``"fused_lasso"``,
        :math:`\alpha(\rho\|w\|_1 + (1-\rho)\sum|w_j-w_{j+1}|)`, 0 by default.
    groups : int, list of index arrays, or a label per feature, optional
        For ``"group_lasso"`` and ``"sparse_group_lasso"``; an int is the size of equal contiguous groups. By default every
        feature is a group: with several targets, that is scikit-learn's ``MultiTaskLasso``. A pandas series whose index is
        the names of a frame's columns is matched by name.
    weights : array, dict, series or "root", optional
        One weight a group, 1 by default: in the order of the sorted labels if ``groups`` are labels, else in that of the
        groups. A dict from labels to weights, or a pandas series with the labels as its index, is matched by name.
        ``"root"`` is the root of the size of each group. For ``"slope"``, as many as coefficients, in decreasing order, by
        default the quantiles of Benjamini and Hochberg at level 0.1, scaled so that the first is 1.
    bounds : pair of float, optional
        The least and the largest coefficient for ``"box"``.
    delta : float, default 1.0
        Where the Huber loss turns from a parabola into a line. Ignored unless ``loss`` is ``"huber"``.
    positive : bool, default False
        Allow no negative coefficient. For ``"l1"``, ``"elastic_net"``, ``"zero"`` and ``"box"``.
    l2 : float, default 0.0
        The strength of an additional :math:`\|w\|^2`, for any penalty. It is not halved.
    fit_intercept : bool, default True
        Fit a constant, which is not penalised.
    algorithm, runtime, workers, step, batch_size, tol, max_passes
        As in :func:`dapsgd.solve`.
    warm_start : bool, default False
        Start ``fit`` from the coefficients of the last one.
    random_state : int, RandomState or None
        Seeds the random choice of rows. ``"auto"`` and ``"fista"`` make none.
    verbose : bool, default False
        Show a progress bar; where there is no terminal, print a line now and then.

    Attributes
    ----------
    coef_ : array, shape (p,) or (q, p)
    intercept_ : float, or array of shape (q,)
    n_iter_ : int
        Iterations of the algorithm.
    objective_, residual_, dual_gap_ : float
        At the answer: the objective; the norm of the proximal-gradient mapping, on centred columns if these were solved on;
        a bound on how far the objective is above the optimum, NaN where none is known.
    trace_ : Trace
        What was recorded on the way.
    result_ : Result
        All that :func:`dapsgd.solve` gave back.
    t_ : int
        Rows seen, for ``partial_fit``.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from dapsgd import DAPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 30))
    >>> y = X @ np.repeat([0.0, 2.0, 0.5], 10) + 0.1 * rng.standard_normal(200)
    >>> model = DAPRegressor("fused_lasso", alpha=0.05).fit(X, y)
    >>> np.flatnonzero(np.diff(model.coef_))
    array([ 9, 19])
    >>> round(model.score(X, y), 2)
    1.0
    """

    @naming_unknown
    def __init__(
        self,
        penalty: Any = "l1",
        alpha: float = 1.0,
        *,
        loss: Any = "squared",
        l1_ratio: float | None = None,
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
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DAPRegressor:
        """Fit the model.

        Parameters
        ----------
        X : array, memory map, data frame or SciPy sparse matrix, shape (n, p)
            A memory map of float32 or float64 is read from disk, pass by pass, and never copied. Another dense array is, less
            the means of its columns, if they are far from zero beside an intercept and ``algorithm`` minds.
        y : array, shape (n,) or (n, q)
        sample_weight : array, shape (n,), optional
            Only their proportions matter.

        Returns
        -------
        DAPRegressor
            The estimator itself.
        """
        X, targets, weights = self._read_regression(X, y, sample_weight)
        self._solve(*self._pose_near(X, targets, self._make_loss(), normalised(weights)), self.alpha, self.warm_start)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> DAPRegressor:
        r"""Update the model with a batch of rows, in one pass of stochastic proximal steps.

        Batches may be of any size and come without end: the step decreases with the number t of rows seen so far, as
        :math:`1/\sqrt{1 + t/m}` with m the size of the first batch, at least 50. After a ``fit`` it goes on from there. The
        algorithm is P-SGD, or TAP-SGD or DAP-SGD if ``algorithm`` says so. With an intercept dense columns are taken less their
        means over all rows so far, so that they may be far from zero; they should be of a like size.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit``, but weights are taken as they are, because a batch does not know the others': twice as large ones
            let the loss count for twice as much beside the penalty. A batch of zero weights changes nothing.

        Returns
        -------
        DAPRegressor
            The estimator itself.
        """
        first = not hasattr(self, "coef_")
        X, targets, weights = self._read_regression(X, y, sample_weight, reset=first)
        targets = targets if first else self._as_before(targets)
        if first or weights is None or weights.any():
            self._take_batch(self._pose(X, targets, self._make_loss(), weights), self.alpha)
        return self

    def _as_before(self, targets: Array) -> Array:
        """Return targets in the shape of those before; raise if there are more or fewer."""
        count, before = (math.prod(shape) for shape in (targets.shape[1:], self.coef_.shape[:-1]))
        if count != before:
            raise ValueError(f"y must have {counted(before, 'target')}, as when the model was fitted before; got {count}")
        return targets.reshape(len(targets), *self.coef_.shape[:-1])
