"""What all estimators share: reading data, posing the problem, solving it, keeping the answer."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from .._arguments import argument, for_shell
from .._checks import check_finite_sparse, finite_array, flag, non_negative, refuse_masked, rename_hint
from .._summaries import (
    ON_SCALED,
    SCALED,
    about_accuracy,
    about_batch,
    about_groups,
    about_result,
    as_html,
    as_text,
    coefficients,
    counted,
    group_labels,
    penalty_of,
    picture,
    plain,
)
from ..auto import asks_for_workers
from ..free import penalises_nothing
from ..full import FULL
from ..lam_max import best_constant
from ..losses import Multinomial
from ..models import NOT_KEPT
from ..problem import Problem
from ..regularizers import Box, FusedLasso, GroupLasso, NonNegative, NuclearNorm, SparseGroupLasso, Zero
from ..result import Result
from ..solve import solve
from ._frames import (
    by_columns,
    check_frame,
    compare_names,
    count_places,
    names_of,
    naming_text,
    own_names,
    picked,
    refuse_text_columns,
    refuse_unusable,
)
from ._hindrances import Hindrances, find_hindrances
from ._origin import Origin, far_centre, loses_digits, near
from ._penalties import make_penalty
from ._stream import Stream, take_batch

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["LinearModel"]

Array = np.ndarray[Any, Any]
Model = TypeVar("Model", bound="LinearModel")

_READING: dict[str, Any] = {
    "accept_sparse": ["csr", "csc"],
    "dtype": [np.float64, np.float32],
    "ensure_all_finite": False,  # which is looked at block by block
}
_HERE = Origin()
_WITHOUT_STRENGTH = ("zero", "box", Zero.__name__, Box.__name__)
_SINGLE = 1e-6  # the least tolerance that makes sense in single precision


class LinearModel(BaseEstimator):
    """A linear model whose parameters describe a :class:`dapsgd.Problem` and how to solve it.

    A subclass says how targets are read (``_read_targets``) and how coefficients are laid out (``_store``).
    """

    penalty: Any
    loss: Any
    l1_ratio: Any
    groups: Any
    weights: Any
    bounds: Any
    positive: Any
    l2: Any
    fit_intercept: Any
    algorithm: Any
    runtime: Any
    workers: Any
    step: Any
    batch_size: Any
    tol: Any
    max_passes: Any
    random_state: Any
    verbose: Any

    coef_: Array
    intercept_: Any
    t_: int

    _column_names: Sequence[str] | None = None  # where scikit-learn knows none: numbers of a frame, or those given to a file
    _places: int = 0  # columns of a frame whose names are 0, 1, 2 and so on
    _summary_in_file: Mapping[str, str] | None = None  # what was said of the fit; ``dapsgd.models`` sets it
    _first_column: int = 0  # how the file of the data calls it, where columns have no names
    _target_names: Sequence[str] | None = None
    _groups: Any = None  # in the order of the columns, whatever order they were given in
    _rows_seen: int | None = None
    _batch: int | None = None  # rows of the last batch, if there were batches since the last fit
    _stream: Stream = Stream()
    _hindrances: Hindrances = Hindrances()  # of the last fit, if it did not reach the tolerance
    _same_targets: bool = False  # in the last fit, from which nothing could be learned
    _unpenalised: bool = False  # whether the penalty of the last fit was zero everywhere
    _scaled: bool = False  # whether columns were while it was fitted, as the command line can; coefficients no longer are
    _kept: Mapping[str, Any] = MappingProxyType({})  # checkpoint and resume of ``fit``; the command line's, no parameters

    # Reading data.

    def _read(self, X: Any, y: Any, *, reset: bool = True, **checks: Any) -> tuple[Any, Any]:
        """Return X and y as arrays; finiteness of X is left to the problem, which looks at it block by block."""
        refuse_unusable(X)
        if reset:
            self._column_names, self._places, self._summary_in_file = None, 0, None
            self._first_column, self._scaled = 0, False
            refuse_text_columns(X)
        self._groups = by_columns(self.groups, X)
        self._compare_names(X)
        with naming_text(X), self._naming_columns(X):
            read, y = validate_data(self, self._unnamed(X), y, **_READING, reset=reset, **checks)
        check_frame(X, read)
        if reset and not hasattr(self, "feature_names_in_"):
            self._column_names, self._places = own_names(X), count_places(X)
        # A memory map that needed no conversion stays one, so that it is never copied, whatever its order.
        return (X if isinstance(X, np.memmap) and X.dtype == read.dtype else read), y

    def _compare_names(self, X: Any) -> None:
        """Raise if a frame has other columns than that of the fit."""
        compare_names(X, self._column_names, getattr(self, "metadata_", {}).get("feature_names"), self._places)

    def _read_weights(self, X: Any, sample_weight: Any, first: bool = True) -> Array | None:
        """Return the sample weights, checked; None for none. They may be zero everywhere, but in the first batch."""
        if sample_weight is None:
            return None
        refuse_masked("sample_weight", sample_weight)
        given, rows = np.asarray(sample_weight), X.shape[0]
        if given.dtype.kind in "US" or any(isinstance(weight, str) for weight in given.flat if given.dtype.kind == "O"):
            raise TypeError(f"sample_weight must hold numbers; it holds text, such as {str(given.flat[0])!r}")
        if given.ndim > 0 and given.shape != (rows,):
            raise ValueError(f"sample_weight must have one entry for each of the {rows} rows; got {given.shape}")
        if not np.any(given):
            if first:
                raise ValueError("sample_weight must not be zero everywhere")
            return np.zeros(rows)
        weights: Array = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        return weights

    # Posing and solving.

    def _pose(self, X: Any, targets: Array, loss: Any, weights: Array | None) -> Problem:
        """Return the problem without its penalty; weights are as given."""
        if targets[:1].size == 1 and self._is_nuclear():
            warnings.warn(
                "penalty 'nuclear' ties several targets together; of one it is the length of the vector of coefficients",
                stacklevel=4,
            )
        return Problem(
            X,
            targets,
            loss,
            l2=non_negative("l2", self.l2),
            sample_weight=weights,
            fit_intercept=flag("fit_intercept", self.fit_intercept),
        )

    def _pose_near(self, X: Any, targets: Array, loss: Any, weights: Array | None) -> tuple[Problem, Origin]:
        """Return the same problem where its columns and targets are near zero, and where that is.

        Targets are moved before they take the precision of X. Columns are only for algorithms that do not do so themselves, and
        where single precision would not do.
        """
        centre = far_centre(targets, loss, weights) if flag("fit_intercept", self.fit_intercept) else None
        problem = self._pose(X, targets if centre is None else targets - centre, loss, weights)
        problem, means = near(problem) if self._is_plain() or loses_digits(problem, self.tol) else (problem, None)
        return problem, Origin(means, centre, isinstance(loss, Multinomial))

    def _is_plain(self) -> bool:
        """Tell whether the algorithm takes columns as they are: the reference, and those that look at a few rows at a time."""
        return self._is_stochastic() or (isinstance(self.algorithm, str) and self.algorithm == "fista")

    def _is_stochastic(self) -> bool:
        if not isinstance(self.algorithm, str):  # which will be refused
            return False
        if self.algorithm == "auto":
            return self.step is not None or asks_for_workers(self.batch_size, self.runtime)
        return self.algorithm not in FULL

    def _penalty(self, alpha: Any, shape: tuple[int, ...], l1_ratio: Any = None) -> Any:
        return make_penalty(
            self.penalty,
            alpha,
            shape,
            l1_ratio=self.l1_ratio if l1_ratio is None else l1_ratio,
            groups=self._groups,
            weights=self.weights,
            bounds=self.bounds,
            positive=self.positive,
        )

    def _options(self) -> dict[str, Any]:
        """Return the options for :func:`dapsgd.solve`."""
        return {
            "algorithm": self.algorithm,
            "runtime": self.runtime,
            "workers": self.workers,
            "step": self.step,
            "batch_size": self.batch_size,
            "tol": self.tol,
            "max_passes": self.max_passes,
            "seed": self._seed(),
            "progress": self._is_verbose(),
        }

    def _is_verbose(self) -> bool:
        """Tell whether to show progress; a number, as elsewhere in scikit-learn, says so if it is positive."""
        if isinstance(self.verbose, (np.bool_, numbers.Integral)):
            return int(self.verbose) > 0
        raise TypeError(f"verbose must be True or False, or an integer; got {self.verbose!r}")

    def _seed(self) -> int | None:
        if self.random_state is None:
            return None
        try:
            return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        except ValueError:
            raise ValueError(f"random_state must be None, an int or a RandomState; got {self.random_state!r}") from None

    def _start(self, problem: Problem, origin: Origin = _HERE) -> Array | None:
        """Return the coefficients kept so far as a packed starting point, if they fit the problem, whose zero is there."""
        if not hasattr(self, "coef_"):
            return None
        w = self.coef_[0] if len(problem.shape) == 1 and len(self.coef_) == 1 else self.coef_.T
        if w.shape != problem.shape:
            return None
        intercept = np.asarray(self.intercept_, np.float64).reshape(problem.shape[1:])
        return problem.pack(w, origin.inside(w, intercept) if problem.fit_intercept else 0.0)

    def _warn(self, result: Result, problem: Problem) -> None:
        """Warn if the tolerance was not reached."""
        if result.converged or self.tol == 0.0:
            return
        self._hindrances = find_hindrances(problem, self._is_plain() or result.algorithm not in FULL)
        if math.isfinite(result.gap):
            far = f"the duality gap is {result.gap / max(abs(result.objective), 1e-300):.1e} of the objective"
        else:
            far = f"the residual is {result.residual:.1e}"
        remedy = self._remedy(result)
        passes = counted(result.passes, "pass", "passes")
        warnings.warn(
            f"{type(self).__name__} did not reach tol={self.tol:g} in {passes} over the data: {far}. "
            f"{remedy[0].upper()}{remedy[1:]}",
            ConvergenceWarning,
            stacklevel=4,
        )

    def _remedy(self, result: Result) -> str:
        """Return what to do about a tolerance that was not reached: only what was not done."""
        if self._is_too_far():  # more passes would not help
            ways = [f"raise {argument('tol')}"]
        else:
            ways = [f"raise {argument('max_passes')} or {argument('tol')}"]
        if self.tol < _SINGLE and result.x.dtype == np.float32:
            ways.append(f"{_double()}: float32 is good for about {_SINGLE:g}")
        else:
            ways += self._ways_of_data()
        if self.algorithm != "auto":
            ways.append(f"use {argument('algorithm', 'auto')}")
        return alternatives(ways)

    def _ways_of_data(self) -> list[str]:
        """Return what to do about the data, where it is in the way."""
        columns, ways = self._hindrances.of_columns, []
        if self._is_too_far():
            ways.append(f"{_double()}: the columns are too far from zero for float32, unless you centre them")
        elif columns and not for_shell():
            ways.append(columns)
        elif columns and not self._scaled and self.penalty != "box":  # whose bounds are in the original units
            ways.append(f"try {argument('standardize', True)}")
        if self._hindrances.far_targets:
            way = "leave out --no-intercept" if for_shell() else f"set {argument('fit_intercept', True)}"
            ways.append(f"{way} (the target is far from zero)")
        return ways

    def _is_too_far(self) -> bool:
        """Tell whether columns in single precision are so far from zero that the last fit could not reach the tolerance."""
        return self._hindrances.rounding > max(self.tol, _SINGLE)

    def _why_zero(self) -> str:
        """Return why all coefficients are zero, and what to do; nothing if one is not, or if it is not the penalty's doing."""
        if self.coef_.any() or self._same_targets or self._penalty_name() in _WITHOUT_STRENGTH:
            return ""
        return self._too_strong()

    def _why_unpenalised(self) -> str:
        """Say that nothing is penalised, unless the penalty's name does; with why, if that is not its strength."""
        if not self._unpenalised or self._penalty_name() in _WITHOUT_STRENGTH:
            return ""
        alone = self._is_fused() and self.n_features_in_ == 1
        return " (nothing is penalised" + ", as one column has no neighbour to be fused with" * alone + ")"

    def _too_strong(self) -> str:
        """Say that the penalty is too strong, and how to get a weaker one."""
        search = "with --cv" if for_shell() else f"by {type(self).__name__}CV"
        way = f"lower {argument('alpha')}, or choose it {search}" if isinstance(self.penalty, str) else "lower its strength"
        return f"the penalty is too strong for any to be of use; {way}"

    def _keep(self, problem: Problem, result: Result) -> None:
        """Keep a result in the attributes that end with an underscore."""
        self._same_targets = bool((problem._targets == problem._targets[:1]).all())
        self._unpenalised = penalises_nothing(problem) and problem.l2 == 0.0
        self._store(result.x, result.intercept, problem)
        self._rows_seen, self._batch = problem.n, None
        self.n_iter_ = result.iterations
        self.objective_ = result.objective
        self.residual_ = result.residual
        self.dual_gap_ = result.gap
        self.trace_ = result.trace
        self.result_ = result

    def _store(self, w: Array, intercept: Any, problem: Problem) -> None:
        raise NotImplementedError

    def _solve(self, problem: Problem, origin: Origin, alpha: Any, warm_start: Any) -> None:
        """Solve a problem, whose zero is there, at one strength and keep the answer."""
        problem = problem.with_regularizer(self._penalty(alpha, problem.shape))
        start = self._start(problem, origin) if flag("warm_start", warm_start) else None
        if start is None and problem.fit_intercept and self._is_stochastic():
            start = best_constant(problem)  # where targets are far from zero, single rows would take long to get there
        result = origin.restored(solve(problem, x0=start, **self._options(), **self._kept))
        self._warn(result, problem)
        self._keep(problem, result)
        self.t_, self._stream = problem.n, Stream()

    # Streaming.

    def _take_batch(self, problem: Problem, alpha: Any) -> None:
        """Take one pass over a batch, from the coefficients that there are."""
        problem = problem.with_regularizer(self._penalty(alpha, problem.shape))
        start = self._start(problem)
        seen, stream = (0, Stream()) if start is None else (getattr(self, "t_", 0), self._stream)
        result, stream = take_batch(problem, start, seen, stream, self._options())
        self._keep(problem, result)
        self.t_, self._stream = seen + problem.n, stream
        self._rows_seen, self._batch = self.t_, problem.n

    # Predicting.

    def _predict_linear(self, X: Any) -> Array:
        """Return X times the coefficients plus the intercept."""
        check_is_fitted(self)
        refuse_unusable(X)
        self._compare_names(X)
        with naming_text(X), self._naming_columns(X):
            read = validate_data(self, self._unnamed(X), **_READING, reset=False)
        check_frame(X, read)
        if isinstance(read, np.ndarray):
            finite_array("X", read)
        else:
            check_finite_sparse("X", read)
        product = safe_sparse_dot(read, self.coef_.T, dense_output=True)
        # In double precision: an intercept far from zero has digits that single precision would round away.
        result: Array = np.add(product, self.intercept_, dtype=np.float64)
        return result

    @contextmanager
    def _naming_columns(self, X: Any) -> Iterator[None]:
        """Say how to get the columns of the fit out of a frame, where scikit-learn says only that it has others as well."""
        try:
            yield
        except ValueError as error:
            names, there = getattr(self, "feature_names_in_", None), names_of(X)
            if "feature names" not in str(error) or names is None or there is None:
                raise
            missing = [str(name) for name in names if name not in there]
            if missing:
                hint = rename_hint(missing[0], [name for name in there if name not in names])
                raise ValueError(str(error).rstrip() + hint) from None
            remedy = f"{picked(X, 'list(model.feature_names_in_)')} has the columns of the fit, in their order"
            raise ValueError(f"{str(error).rstrip()}\n{remedy}") from None

    def _unnamed(self, X: Any) -> Any:
        """Return the numbers of a frame whose names were compared: scikit-learn, which knows none, would warn of them."""
        return X if self._column_names is None or names_of(X) is None else check_array(X, **_READING)

    # Showing.

    def plot_coef(self, path: Any = None, names: Any = None) -> Figure:
        """Draw the coefficients in the order of the columns, as steps for a fused lasso, else as bars; a panel a target.

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
        from ..plots import plot_coef

        check_is_fitted(self)
        return plot_coef(
            self.coef_,
            path,
            names=self._names(names),
            first=self._first_column,
            titles=self._panels(),
            groups=self._group_labels(),
            steps=self._is_fused(),
            penalty=self._penalty_text(),
            label=self._coefficient_label(),
            target=self._target(),
        )

    def _is_nuclear(self) -> bool:
        return self._penalty_name() in ("nuclear", NuclearNorm.__name__)

    def _is_fused(self) -> bool:
        return self._penalty_name() in ("fused_lasso", FusedLasso.__name__)

    def _group_labels(self) -> Any:
        """Return the group of each column, by its name if it has one; None if there are no groups."""
        groups = self.penalty.groups if isinstance(self.penalty, (GroupLasso, SparseGroupLasso)) else self._known_groups()
        if groups is None:
            return None
        named = np.iterable(groups) and all(isinstance(name, str) for name in groups)
        return list(groups) if named else group_labels(groups, self.n_features_in_)

    def _known_groups(self) -> Any:
        """Return the groups of the last fit; of a model from a file those that it was made with."""
        return self.groups if self._groups is None else self._groups

    def _coefficient_label(self) -> str:
        classes: Any = getattr(self, "classes_", [])
        return f"coefficient, for {plain(classes[1])}" if len(classes) == 2 else "coefficient"

    def _names(self, names: Any) -> Any:
        """Return the names of the columns, as given or as known; None if there are none."""
        for known in (getattr(self, "feature_names_in_", None), self._column_names):
            names = known if names is None else names
        if names is not None and len(names) != self.n_features_in_:
            raise ValueError(f"names must be {self.n_features_in_}, one for each column; got {len(names)}")
        return names

    def _panels(self) -> list[str]:
        """Return what the rows of the coefficients are: classes or targets."""
        rows, classes = len(np.atleast_2d(self.coef_)), getattr(self, "classes_", None)
        if classes is not None and len(classes) == rows:
            return [f"class {plain(name)}" for name in classes]
        names = self._target_names
        return [f"target {k}" for k in range(rows)] if names is None or len(names) != rows else list(names)

    def _target(self) -> str:
        """Return the name of the one target; nothing if there are several, which are named each, or it has none."""
        if self._target_names is None or len(self._target_names) != 1:
            return ""
        name = self._target_names[0]
        return f"column {name}" if name.isdigit() else name  # of a file without names

    def _about_classes(self) -> str:
        """Return the classes, and of two which one coefficients above zero speak for."""
        classes = list(map(plain, self.classes_))
        shown = ", ".join(classes[:5]) + (f" and {len(classes) - 5} more" if len(classes) > 5 else "")
        return shown + (f"; coefficients above 0 speak for {classes[1]}" if len(classes) == 2 else "")

    def _penalty_name(self) -> str:
        return self.penalty.removesuffix(NOT_KEPT) if isinstance(self.penalty, str) else type(self.penalty).__name__

    def _penalty_text(self, digits: int = 4) -> str:
        """Return the penalty and its strength, where it has one."""
        if not isinstance(self.penalty, str) and not hasattr(self, "alpha_"):
            return penalty_of(self.penalty)
        given = None if str(self.penalty).endswith(NOT_KEPT) else getattr(self, "alpha", None)  # it was the object's
        alpha = getattr(self, "alpha_", given)
        known = isinstance(alpha, (int, float)) and self.penalty not in ("zero", "box")
        return self._penalty_with_ratio() + (f" of strength {alpha:.{digits}g}" if known else "")

    def _penalty_with_ratio(self, about: str = "") -> str:
        """Return the penalty and the share of the L1 norm, as chosen or as given, with something about it; none by default."""
        given = self.l1_ratio if isinstance(self.penalty, str) else getattr(self.penalty, "ratio", None)
        chosen = getattr(self, "l1_ratio_", None)
        ratio = given if chosen is None else chosen
        return self._penalty_name() + (f" (l1_ratio {ratio:.4g}{about})" if isinstance(ratio, numbers.Real) else "")

    def __str__(self) -> str:
        """Return the parameters, and once it is fitted a summary."""
        return as_text(repr(self), self._about()) if hasattr(self, "coef_") else repr(self)

    def _about(self) -> dict[str, str]:
        """Return what there is to say of the fit, by title; of a model from a file what was said when it was written."""
        if self._summary_in_file is not None and not hasattr(self, "result_"):
            return dict(self._summary_in_file)
        return self._about_fit()

    def _about_fit(self) -> dict[str, str]:
        """Return what is known of the fit, by title; of a model from an old file not much."""
        rows = "" if self._rows_seen is None else f"{counted(self._rows_seen, 'row')}{' seen' * (self._batch is not None)}, "
        lines = {"data": f"{rows}{counted(self.n_features_in_, 'column')}"}
        if self.coef_.ndim == 2 and not hasattr(self, "classes_"):
            lines["data"] += f", {counted(len(self.coef_), 'target')}"
        elif self._target():
            lines["data"] += f", target {self._target()}"
        lines["penalty"] = self._penalty_text(6) + self._why_unpenalised()
        if self._scaled:
            lines["scaled"] = SCALED
        if hasattr(self, "classes_"):
            lines["classes"] = self._about_classes()
        if self.penalty in ("group_lasso", "sparse_group_lasso"):
            lines["groups"] = about_groups(np.atleast_2d(self.coef_), self._known_groups())
        if self._is_nuclear():
            W = self.result_.x if hasattr(self, "result_") else self.coef_
            lines["rank"] = f"{np.linalg.matrix_rank(W):,}"
        if hasattr(self, "result_"):
            lines |= about_result(self.result_) if self._batch is None else about_batch(self.result_, self._batch)
            for name in ("objective", "coefficients", "rank") if self._scaled else ():
                if name in lines and (name != "coefficients" or "jump" in lines[name]):
                    lines[name] += ON_SCALED
        else:
            if hasattr(self, "objective_"):
                gap, residual = (getattr(self, name, math.nan) for name in ("dual_gap_", "residual_"))
                lines |= about_accuracy(self.objective_, gap, residual)
            lines["coefficients"] = coefficients(self.coef_.T, self._is_fused())
        why = self._why_zero()
        lines["coefficients"] += f": {why}" if why else ""
        return lines

    def _with_fit(self, diagram: str) -> str:
        """Add to scikit-learn's diagram what the fit was like."""
        if not hasattr(self, "coef_"):
            return diagram
        fit = as_html(
            "Fitted", self._about(), picture(self.trace_, self.objective_, self.dual_gap_) if hasattr(self, "trace_") else ""
        )
        inside, end, after = diagram.rpartition("</body>")
        return inside + fit + end + after if end else diagram + fit

    @property
    def _repr_html_(self) -> Any:
        diagram = super()._repr_html_  # which raises where scikit-learn is configured to show text
        return lambda: self._with_fit(diagram())

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = self._with_fit(bundle["text/html"])
        return bundle

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            kind = type(self).__name__
            if name in ("plot_cv", "plot_path"):
                raise AttributeError(f"{kind} has no {name}, because it tries one strength only; {kind}CV has", name=name)
            if name in ("predict_proba", "predict_log_proba") and hasattr(self, "classes_"):
                reason = f"because loss {self.loss!r} gives none; 'logistic' and 'multinomial' do"
                raise AttributeError(f"{kind} has no {name}, {reason}", name=name)
            if name == "partial_fit":
                plain = f"{kind.removesuffix('CV')}(alpha=...)"
                raise AttributeError(f"{kind} has no {name}, because it needs all rows for its folds; {plain} has", name=name)
            raise AttributeError(f"{kind!r} object has no attribute {name!r}", name=name, obj=self)

    def _bounded(self) -> bool:
        """Tell whether the coefficients are bounded, which may leave no good fit."""
        by_penalty = self.penalty in ("box", "non_negative") or isinstance(self.penalty, (Box, NonNegative))
        return by_penalty or self.positive is True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        plain = not isinstance(self.algorithm, str) or self.algorithm in ("auto", "fista")
        tags.non_deterministic = not plain and self.workers != 1
        return tags


def normalised(weights: Array | None) -> Array | None:
    """Return weights whose mean is 1, so that a strength means the same with and without weights."""
    if weights is None or not weights.any():
        return weights
    result: Array = weights * (len(weights) / weights.sum())
    return result


def _double() -> str:
    """Return how to have double precision."""
    return f"use {argument('dtype', 'float64')}" if for_shell() else "hand X in as float64"


def alternatives(ways: list[str]) -> str:
    """Return several things that can be done as one sentence.

    Examples
    --------
    >>> alternatives(["wait"]), alternatives(["wait", "ask", "go"])
    ('wait', 'wait, ask, or go')
    """
    *others, last = ways
    return f"{', '.join(others)}, or {last}" if others else last
