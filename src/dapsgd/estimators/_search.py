"""How a strength is chosen: the grid, the folds, the scores, the rule."""

from __future__ import annotations

import copy
import numbers
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from .._arguments import argument
from .._checks import known_name, positive_integer
from .._halt import Halt
from .._progress import counting
from .._summaries import about_scores, counted, work
from .._terms import bind
from ..losses import Squared
from ..path import Path, checked_strengths, decreasing, path_of, with_strength
from ..problem import Problem
from ..regularizers import L1, Box, FusedLasso, Zero
from ..runtimes._blas import calm_blas
from ._base import LinearModel, alternatives, normalised
from ._hindrances import find_hindrances
from ._parameters import RULES, RULES_ELSEWHERE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CrossValidated", "Data", "errors_of"]

Array = np.ndarray[Any, Any]
Score = Callable[[LinearModel, Problem, "Data", Array], tuple[float, float]]  # and the accuracy, NaN where it is not known


class Data(NamedTuple):
    """What is cut into folds: the rows, the targets for the loss and as given, the weights for the fit and as given."""

    X: Any
    targets: Array
    y: Array
    weights: Array | None
    sample_weight: Array | None

    def rows(self, index: Array) -> Data:
        """Return some of the rows."""
        X = self.X[index] if isinstance(self.X, np.ndarray) else _safe_indexing(self.X, index)
        return Data(X, *(None if part is None else part[index] for part in self[1:]))  # type: ignore[arg-type]


class CrossValidated(LinearModel):
    """What the two cross-validated estimators share: the grid of strengths, the folds, the choice."""

    alphas: Any
    eps: Any
    cv: Any
    scoring: Any
    rule: Any
    n_jobs: Any

    alpha_: float
    alphas_: Array
    scores_path_: Array
    path_: Path
    score_name_: str
    _accuracies: Array  # of the folds, at the chosen strength

    def _search(self, data: Data, loss: Any, classifier: bool) -> None:
        """Score every strength on every fold, choose one, and keep the answer on all rows."""
        known_name("rule", self.rule, RULES, RULES_ELSEWHERE)
        if self.n_jobs is not None:
            if isinstance(self.n_jobs, bool) or not isinstance(self.n_jobs, numbers.Integral):
                raise TypeError(f"n_jobs must be None or an integer, such as -1 for all cores; got {self.n_jobs!r}")
            if self.n_jobs == 0:
                raise ValueError("n_jobs must be None or an integer other than 0, such as -1 for all cores; got 0")
        if (data.y == data.y[:1]).all():
            warnings.warn("y is the same in every row: there is nothing to learn, and any strength is as good", stacklevel=3)
        problem, origin = self._pose_near(data.X, data.targets, loss, normalised(data.weights))
        ratios, multiple = self._ratios()
        grids = np.stack([self._grid(problem, ratio) for ratio in ratios])
        splits = self._splits(data, classifier)
        _check_weights(data, splits, classifier)
        if classifier:
            _warn_of_one_class(data, splits)
        score = self._scorer(loss, classifier)
        options = self._options()
        del options["progress"]  # of each fit: here it is that of all together
        tasks = [(ratio, grid, train, test) for ratio, grid in zip(ratios, grids, strict=True) for train, test in splits]
        with calm_blas(problem), counting(self._is_verbose(), grids[0].size * (len(tasks) + 1), "fit") as count:
            options["each"] = count
            with Halt() as halt:
                found = Parallel(n_jobs=self.n_jobs, prefer="threads")(
                    delayed(halt.run)(self._score_fold, data, loss, *task, score, options) for task in tasks
                )
            pairs = np.stack([values for values, _ in found]).reshape(len(ratios), len(splits), -1, 2).transpose(3, 0, 2, 1)
            scores, accuracies = pairs
            r, k = choose(scores, self.rule)
            terms = [self._at(alpha, problem.shape, ratios[r]) for alpha in grids[r]]
            self.path_ = origin.restored_path(path_of(problem, grids[r], terms, **options))
        for result in self.path_.results if origin.columns is not None else ():
            _ = result.residual  # which would otherwise keep the copy of X that it will be computed on
        missed = sum(count for _, count in found)
        if missed and self.tol != 0.0:
            self._hindrances = find_hindrances(problem, self._is_plain())
            warnings.warn(
                f"{type(self).__name__}: {missed} of {len(tasks) * grids.shape[1]} fits in the folds did not reach "
                f"tol={self.tol:g}. {alternatives(['Raise max_passes, tol or eps', *self._ways_of_data()])}",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.alpha_ = float(grids[r, k])
        self.l1_ratio_ = ratios[r]
        self.alphas_ = grids if multiple else grids[0]
        self.scores_path_ = scores if multiple else scores[0]
        self._chosen, self._accuracies = r, accuracies[r, k]
        self._warn(self.path_.results[k], problem)
        self._keep(problem.with_regularizer(terms[k]), self.path_.results[k])

    def _splits(self, data: Data, classifier: bool) -> list[tuple[Array, Array]]:
        """Return the rows to fit and the rows to hold out, of every fold."""
        from sklearn.model_selection import check_cv  # a tenth of a second, which other estimators need not wait for

        try:
            return list(check_cv(self.cv, data.y, classifier=classifier).split(data.X, data.y))
        except ValueError as error:
            if self.cv is not None and not isinstance(self.cv, numbers.Integral):
                if "groups" not in str(error):
                    raise
                raise ValueError(
                    f"cv must not need groups of rows, as {type(self.cv).__name__} does: give its folds as a list, "
                    f"cv=list({self.cv!r}.split(X, y, rows)) with a label for each row in rows; groups are of columns"
                ) from None
            most = "rows of the largest class" if classifier else "rows"
            folds = 5 if self.cv is None else self.cv
            raise ValueError(f"cv must be from 2 to the number of {most}; got {folds} folds ({error})") from None

    def _about_fit(self) -> dict[str, str]:
        lines = super()._about_fit()
        if hasattr(self, "alpha_"):
            both = "both " if np.ndim(self.l1_ratio) == 1 and hasattr(self, "l1_ratio_") else ""
            edge = self._edge()
            lines["penalty"] += f", {both}chosen by cross-validation" + (f"; {edge}" if edge else "")
        if hasattr(self, "path_"):
            lines["held out"] = about_scores(self._held_out())
            count = len(self.path_.results)
            lines["work"] = f"{work(self.path_.results)}, for {counted(count, 'strength')}, after the folds"
            lines["message"] = f"at the chosen strength {lines['message']}"
        return lines

    def _too_strong(self) -> str:
        """Say that weaker penalties were tried."""
        if self.rule == "best":
            return "on the rows held out no weaker penalty that was tried scores better"
        best = argument("rule", "best")
        return f"on the rows held out weaker penalties score better by less than a standard error; {best} takes the best"

    def _varied(self) -> str:
        """Return the penalty whose strength was varied; of several ``l1_ratio`` scores and path are those of the chosen one."""
        return self._penalty_with_ratio(f", chosen of {len(self.alphas_)}" if self.alphas_.ndim == 2 else "")

    def _ratios(self) -> tuple[list[Any], bool]:
        if self.l1_ratio is None or isinstance(self.l1_ratio, (numbers.Number, str)):
            return [self.l1_ratio], False
        ratios = list(self.l1_ratio)
        if not ratios:
            raise ValueError("l1_ratio must be a number or a list of at least one; got an empty list")
        return ratios, True

    def _at(self, alpha: float, shape: tuple[int, ...], ratio: Any) -> Any:
        """Return the regulariser at one strength."""
        return self._penalty(alpha, shape, ratio) if isinstance(self.penalty, str) else with_strength(self.penalty, alpha)

    def _grid(self, problem: Problem, ratio: Any) -> Array:
        """Return the strengths to try, in decreasing order."""
        unit = self._at(1.0, problem.shape, ratio) if isinstance(self.penalty, str) else self._penalty(1.0, problem.shape)
        if isinstance(unit, (Zero, Box)):
            raise ValueError(f"penalty must have a strength to choose; got {self.penalty!r}: fit it without cross-validation")
        if self.alphas is None or isinstance(self.alphas, numbers.Number):
            if isinstance(self.alphas, numbers.Real) and not isinstance(self.alphas, numbers.Integral):
                raise TypeError(f"alphas must be how many strengths to try, or a list of them; got {self.alphas!r}")
            count = positive_integer("alphas", 100 if self.alphas is None else self.alphas)
            return decreasing(alpha_max(problem, unit), count, self.eps, type(bind(unit, problem.shape)), "alphas")
        return checked_strengths("alphas", self.alphas)

    def _score_fold(
        self, data: Data, loss: Any, ratio: Any, grid: Array, train: Array, test: Array, score: Score, options: dict[str, Any]
    ) -> tuple[list[tuple[float, float]], int]:
        """Return score and accuracy of every strength on the rows held out, and how many fits did not reach the tolerance."""
        kept, left = data.rows(train), data.rows(test)
        problem, origin = self._pose_near(kept.X, kept.targets, loss, normalised(kept.weights))
        terms = [self._at(alpha, problem.shape, ratio) for alpha in grid]
        found = origin.restored_path(path_of(problem, grid, terms, **options))
        centre = 0.0 if origin.targets is None else origin.targets  # beyond which single precision has few digits
        judge = Problem(
            left.X, left.targets - centre, loss, sample_weight=normalised(left.weights), fit_intercept=problem.fit_intercept
        )
        model = copy.copy(self)
        model.__dict__.pop("feature_names_in_", None)  # the rows that a scorer has are an array
        scores = []
        for result in found.results:
            model._store(result.x, result.intercept, problem)
            scores.append(score(model, judge, left, judge.pack(result.x, result.intercept - centre)))
        return scores, sum(not result.converged for result in found.results)

    def _scorer(self, loss: Any, classifier: bool) -> Score:
        """Return what scores a model, larger is better: by default, minus the mean loss of the rows held out."""
        if self.scoring is None:
            squared = type(loss) is Squared
            self.score_name_ = "minus the mean squared error" if squared else "minus the mean loss"

            def minus_loss(model: LinearModel, judge: Problem, data: Data, x: Array) -> tuple[float, float]:
                predictions = judge.predict(x)
                mean = judge.smooth_value(x, predictions)
                score = -mean / (loss.scale * len(judge._targets[0])) if squared else -mean
                return score, accuracy(predictions, data) if classifier else np.nan

            return minus_loss
        from sklearn.metrics import get_scorer

        try:
            scorer = get_scorer(self.scoring)
        except (ValueError, TypeError):
            raise ValueError(
                f"scoring must be None, a name that scikit-learn knows or a scorer; got {self.scoring!r}"
            ) from None
        self.score_name_ = self.scoring if isinstance(self.scoring, str) else "score"

        def by_scorer(model: LinearModel, judge: Problem, data: Data, x: Array) -> tuple[float, float]:
            options = {} if data.sample_weight is None else {"sample_weight": data.sample_weight}
            try:
                return float(scorer(model, data.X, data.y, **options)), np.nan
            except (ValueError, TypeError) as error:
                raise ValueError(f"scoring={self.scoring!r} cannot judge {type(self).__name__}: {error}") from error

        return by_scorer

    def best_curve(self) -> tuple[Array, Array]:
        """Return the strengths tried, and their scores on every fold, for the chosen ``l1_ratio``."""
        check_is_fitted(self)
        if self.alphas_.ndim == 1:
            return self.alphas_, self.scores_path_
        return self.alphas_[self._chosen], self.scores_path_[self._chosen]

    def _edge(self) -> str:
        """Return what is to be said if the scores were best, or the strength was chosen, at the end of what was tried."""
        if not hasattr(self, "scores_path_"):
            return ""
        alphas, scores = self.best_curve()
        advice = f": try a smaller {argument('eps')}" if isinstance(self.alphas, numbers.Integral) else ""
        if len(alphas) < 2:
            return ""
        if self.alpha_ == alphas.min():
            return f"the strength is the smallest tried{advice}"
        best = alphas[int(np.argmax(scores.mean(axis=1)))]
        return f"the mean over the folds is best at the smallest strength tried{advice}" if best == alphas.min() else ""

    def _held_out(self) -> list[tuple[str, float, float | None]]:
        """Return the score of the chosen strength on rows held out, and the accuracy where it is known.

        Each is a name, the mean over the folds and the standard error.
        """
        alphas, scores = self.best_curve()
        name, scores = errors_of(self.score_name_, scores[int(np.argmin(np.abs(alphas - self.alpha_)))])
        known = [(name, scores)] + ([] if np.isnan(self._accuracies).any() else [("accuracy", self._accuracies)])
        several, root = len(scores) > 1, np.sqrt(len(scores))
        return [(what, float(of.mean()), float(of.std(ddof=1) / root) if several else None) for what, of in known]

    def _check_path(self) -> None:
        check_is_fitted(self)
        if not hasattr(self, "path_"):
            raise ValueError("a model from a file has no path and no scores to draw: draw them before it is saved")

    def plot_cv(self, path: Any = None) -> Figure:
        """Draw the scores of the folds against the strength.

        Parameters
        ----------
        path : path, optional
            Where to save the picture; its ending chooses the format, PNG if it has none.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from ..plots import plot_cv

        self._check_path()
        return plot_cv(self, path)

    def plot_path(self, path: Any = None, names: Any = None) -> Figure:
        """Draw the coefficients, fitted to all rows, against the strength; the largest at the chosen one are named.

        So are groups that are largest there, and the bands that a fused lasso has there; columns of a band that end elsewhere
        than its name points at are pale. A column has one colour in all panels.

        Parameters
        ----------
        path : path, optional
            Where to save the picture; its ending chooses the format, PNG if it has none.
        names : list of str, optional
            The names of the columns; by default those of the data frame that the model was fitted to.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from ..plots import plot_path

        self._check_path()
        titles = self._panels()
        panels = titles if self.path_.coefs.ndim == 3 and len(titles) == self.path_.coefs.shape[1] else None
        return plot_path(
            self.path_,
            path,
            self.alpha_,
            names=self._names(names),
            first=self._first_column,
            titles=panels,
            groups=self._group_labels(),
            steps=self._is_fused(),
            penalty=self._varied(),
            label=self._coefficient_label(),
            target=self._target(),
        )


def _check_weights(data: Data, splits: list[tuple[Array, Array]], classifier: bool) -> None:
    """Raise if all rows of a fold that are fitted, or held out, weigh nothing."""
    if data.weights is None:
        return
    shuffled = f"{'StratifiedKFold' if classifier else 'KFold'}({max(len(splits), 2)}, shuffle=True)"
    for k, split in enumerate(splits):
        for rows, part in zip(split, ("that are fitted", "that are held out"), strict=True):
            if not data.weights[rows].any():
                of_rows = data.sample_weight is not None and not data.sample_weight[rows].any()
                which = "sample_weight" if of_rows else "class_weight"
                raise ValueError(
                    f"{which} must not be zero in all rows of a fold {part}, as in fold {k + 1} of {len(splits)}; leave out "
                    f"rows that weigh nothing, or shuffle the folds, as by cv={shuffled}, or have fewer folds"
                )


def _warn_of_one_class(data: Data, splits: list[tuple[Array, Array]]) -> None:
    """Warn if there are folds that are fitted to one class only, which any strength does equally well."""
    classes = np.unique(data.y, return_inverse=True)[1]
    heavy = np.ones(len(classes), bool) if data.weights is None else data.weights > 0.0
    bad = [k + 1 for k, (train, _) in enumerate(splits) if len(np.unique(classes[train][heavy[train]])) == 1]
    if not bad or len(np.unique(classes[heavy])) == 1:  # of which the folds are not the cause
        return
    which = ", ".join(map(str, bad[:5])) + (f" and {len(bad) - 5} more" if len(bad) > 5 else "")
    count = max(len(splits), 2)
    way = f"use cv=StratifiedKFold({count}), or folds that are shuffled, as by cv=KFold({count}, shuffle=True)"
    if np.bincount(classes).min() == 1:
        way = "a class of a single row is not both fitted and held out: have more rows of it, or leave it out"
    warnings.warn(
        f"the rows that are fitted in fold{'s' * (len(bad) > 1)} {which} of {len(splits)} are of one class only, so that the "
        f"choice of a strength means little; {way}",
        stacklevel=4,
    )


def errors_of(name: str, scores: Array) -> tuple[str, Array]:
    """Return scores that are minus an error as that error, and its name; others as they are."""
    error = next((name.removeprefix(minus) for minus in ("minus the ", "neg_") if name.startswith(minus)), None)
    return (name, scores) if error is None else (error.replace("_", " "), -scores)


def accuracy(predictions: Array, data: Data) -> float:
    """Return the share of rows whose class is predicted: the sign of one number a row, the largest of several."""
    targets = data.targets.reshape(predictions.shape)
    one = predictions.shape[1] == 1
    right = (predictions[:, 0] > 0.0) == (targets[:, 0] > 0.0) if one else predictions.argmax(axis=1) == targets.argmax(axis=1)
    return float(np.average(right, weights=data.sample_weight))


def choose(scores: Array, rule: str) -> tuple[int, int]:
    """Return which ratio and which strength to take, given scores of shape (ratios, strengths, folds).

    The best mean, or the largest strength whose mean is within one standard error of it. Of equals the first, hence the
    largest strength.
    """
    mean = scores.mean(axis=2)
    r, k = np.unravel_index(np.argmax(mean), mean.shape)
    if rule == "one_se" and scores.shape[2] > 1:
        error = scores[r, k].std(ddof=1) / np.sqrt(scores.shape[2])
        k = np.argmax(mean[r] >= mean[r, k] - error)
    return int(r), int(k)


def alpha_max(problem: Problem, unit: Any) -> float:
    """Return a strength at which the penalty alone decides, given the penalty at strength 1; the least one if that is known."""
    if not isinstance(unit, FusedLasso) or unit.l1 == 0.0:
        top = problem.with_regularizer(unit).lam_max()
        return top / unit.lam if isinstance(unit, FusedLasso) and unit.lam != 1.0 else top
    zero = problem.with_regularizer(L1(1.0)).lam_max() / unit.l1  # from here on all coefficients are zero
    if unit.lam == 0.0:
        return zero
    flat = problem.with_regularizer(FusedLasso(1.0)).lam_max() / unit.lam  # without the L1 part they would be constant
    constant = problem.with_regularizer(FusedLasso(1.0, flat * unit.l1)).lam_max() <= flat * unit.lam
    return min(zero, flat) if constant else zero
