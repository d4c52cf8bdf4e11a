"""The problem: what is minimised."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from . import rows as _rows
from ._calls import has_trait, run_prox, run_value
from ._checks import check_finite, finite_array, flag, non_negative, refuse_dataset
from ._first_use import try_loss
from ._handles import Handle
from ._jit import kernel, run
from ._passes import WORTH_A_THREAD, cut_rows, each_part, for_each, shared_passes, sum_over_rows
from ._points import recall
from ._summaries import about_problem, as_html, as_text
from ._team import available_cores
from ._terms import bind, check_loss, prox_handle, usable_regularizer
from .gradients import slopes_of_losses, sum_of_conjugates, sum_of_losses
from .losses import LOSSES, Multinomial, Squared, is_quadratic
from .partitions import Partitions
from .regularizers import Zero

if TYPE_CHECKING:
    from .gram import Gram

__all__ = ["Problem"]

Array = np.ndarray[Any, Any]

_BLOCK = 1 << 16  # rows of a parameter
_LOST = 1e-3  # of the spread of the targets, by rounding them
_LARGE = 1 << 22  # bytes of data
_SQUARES = 16  # that are added up in the time of an exponential


class Problem:
    r"""A regularised linear model to be fitted.

    Minimises over w

    .. math:: \frac1n \sum_i s_i\,\mathrm{loss}(x_i \cdot w, y_i) + l_2 \|w\|^2 + h(w).

    Parameters
    ----------
    X : array, memory map or SciPy sparse matrix, shape (n, p), or Partitions
        The data, float32 or float64; other numbers are converted to float64. A dense array in C or F order is not copied,
        but for workers that read rows one at a time, which need a copy of one in F order, as of CSC in CSR; a memory map
        never is. Other sparse formats are converted. Or files
        that workers on a cluster open, with their targets: :class:`dapsgd.Partitions`.
    y : array, shape (n,) or (n, q)
        The targets. With two dimensions the parameter w is p x q.
    loss : loss, default ``Squared()``
        A built-in or your own.
    regularizer : regulariser, default ``Zero()``
        The term h: a built-in or your own.
    l2 : float, default 0.0
        The strength of the squared norm inside f, as in the paper.
    sample_weight : array, shape (n,), optional
        The weights s; 1 by default.
    fit_intercept : bool, default False
        Add an unpenalised constant to the predictions.

    Examples
    --------
    >>> import dapsgd as ds
    >>> import numpy as np
    >>> problem = ds.Problem(np.eye(3), [3.0, 0.1, -2.0], regularizer=ds.L1(0.5))
    >>> round(problem.objective(np.zeros(3)), 6)
    4.336667
    >>> ds.solve(problem, tol=1e-10).x.round(6)
    array([ 2.25, 0. , -1.25])
    """

    def __init__(
        self,
        X: Any,
        y: Any = None,
        loss: Any = None,
        regularizer: Any = None,
        *,
        l2: float = 0.0,
        sample_weight: Any = None,
        fit_intercept: bool = False,
    ) -> None:
        self.loss = check_loss(Squared() if loss is None else loss)
        self.l2 = non_negative("l2", l2)
        self.fit_intercept = flag("fit_intercept", fit_intercept)
        self._facts: dict[str, Any] = {}  # about the data, shared by problems that differ in the regulariser only
        self.regularizer = Zero() if regularizer is None else regularizer
        self.partitions: Partitions | None = None  # files that are opened elsewhere
        if isinstance(X, Partitions):
            self._defer(X, y, sample_weight)
            return
        refuse_dataset(X)
        if y is None:
            raise TypeError("y must be given, one entry or row for each row of X")
        self._rows: Any = _rows.make_rows(X, self.fit_intercept)
        self.n, self.p = _rows.shape(self._rows)
        self.dtype = _rows.dtype(self._rows)
        self._targets, single = self._check_targets(y)
        self._weights = self._check_weights(sample_weight)
        self.shape: tuple[int, ...] = (self.p,) if single else (self.p, self._targets.shape[1])
        self._bound = bind(self.regularizer, self.shape)
        self._look_first()

    def _look_first(self) -> None:
        """Refuse numbers that are not finite; in large data by a pass that most runs begin with: for the gradient at zero.

        One number that is not finite makes an entry of it so. (BLAS may leave out a factor of zero, so there must be none.)
        """
        from .runtimes._blas import single_threaded_blas

        if not isinstance(self._rows, _rows.DenseRows):
            return
        X = self._rows.X
        plain = self._targets.shape[1] == 1 and not self.fit_intercept and type(self.loss) in LOSSES.values()
        if plain and X.nbytes > _LARGE:
            with np.errstate(all="ignore"), single_threaded_blas(), shared_passes(available_cores()):
                slopes, gradient = self.slopes(np.zeros_like(self._targets)), np.full(self.shape, np.nan, self.dtype)
                if slopes.all():
                    gradient = _rows.transpose_times(self._rows, slopes.reshape(self.n, *self.shape[1:]))
            if np.isfinite(gradient).all():
                self._facts["gradient at zero"] = np.ascontiguousarray(gradient, dtype=self.dtype)
                return
        check_finite("X", X)

    @property
    def gradient_at_zero(self) -> Array | None:
        """The gradient of f at zero, if it is known; it is not to be changed."""
        return self._facts.get("gradient at zero")

    def _defer(self, partitions: Partitions, y: Any, sample_weight: Any) -> None:
        """Wait for the rows, and for how many there are."""
        if y is not None or sample_weight is not None:
            raise ValueError("y and sample_weight must not be given with Partitions, whose files hold the targets")
        usable_regularizer(self.regularizer)
        self.partitions = partitions

    def __getattr__(self, name: str) -> Any:
        """Say why something is missing before the rows are there."""
        if not name.startswith("__") and self.__dict__.get("partitions") is not None:
            raise ValueError(
                f"the rows of this problem are in files, {self.partitions!r}, which the workers of a cluster open: hand it to "
                "dapsgd.solve(problem, runtime=dapsgd.Ray(...)), or read the files with dapsgd.io.read"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _check_targets(self, y: Any) -> tuple[Array, bool]:
        targets = finite_array("y", y, self.dtype)
        if targets.ndim not in (1, 2) or len(targets) != self.n:
            raise ValueError(f"y must have one entry or row for each of the {self.n} rows of X; got shape {targets.shape}")
        if targets.ndim == 2 and targets.shape[1] == 0:
            raise ValueError(f"y must have at least one column; got shape {targets.shape}")
        if hasattr(type(self.loss), "check_targets"):
            targets = self.loss.check_targets(targets)
        try_loss(self.loss, targets)
        _warn_of_rounding(y, targets)
        single = targets.ndim == 1
        return _copied(targets.reshape(self.n, -1), self.dtype), single

    def _check_weights(self, sample_weight: Any) -> Array:
        if sample_weight is None:
            return np.ones(self.n, self.dtype)
        weights = finite_array("sample_weight", sample_weight, self.dtype)
        if weights.shape != (self.n,):
            raise ValueError(f"sample_weight must have one entry for each of the {self.n} rows; got {weights.shape}")
        if (weights < 0.0).any():
            raise ValueError(f"sample_weight must be >= 0; got {weights.min():g}")
        if not weights.any():
            raise ValueError("sample_weight must not be zero everywhere")
        return np.array(weights, order="C")

    # What a user calls: w of shape (p,) or (p, q).

    def objective(self, w: Any, intercept: Any = 0.0) -> float:
        """Return the value of the objective at w."""
        return self.packed_objective(self.pack(w, intercept))

    def gradient(self, w: Any, intercept: Any = 0.0) -> Array:
        """Return the gradient in w of the smooth part, loss and l2, at w."""
        return self.packed_gradient(self.pack(w, intercept))[: self.p]

    def residual(self, w: Any, intercept: Any = 0.0) -> float:
        r"""Return the norm of the proximal-gradient mapping, :math:`\|w - \mathrm{prox}(w - \nabla f(w)/L)\|\,L`.

        It is zero at an optimum and nowhere else. Where L has no bound, it is taken with L = 1.
        """
        return self.packed_residual(self.pack(w, intercept))

    def duality_gap(self, w: Any, intercept: Any = 0.0) -> float:
        """Return a bound on how much the objective at w is above the optimum.

        Known for the built-in losses with any regulariser if ``l2`` is positive, and without for regularisers that are norms:
        L1, group lasso, sparse group lasso, nuclear norm, SLOPE, the fused lasso (of several targets if it has an L1 part), for
        the elastic net and for bounds on both sides. Infinite where the point gives no bound. For a squared loss and a
        regulariser that does not fall into parts, such as the nuclear norm, it takes the Gram matrix of up to 512 columns,
        which is made once: the bound is close then, unless columns nearly depend on each other.

        Raises
        ------
        ValueError
            If no dual is known for the problem.

        Examples
        --------
        >>> import dapsgd as ds
        >>> import numpy as np
        >>> problem = ds.Problem(np.eye(3), [3.0, 0.1, -2.0], regularizer=ds.L1(0.5))
        >>> problem.duality_gap(np.zeros(3)) > problem.objective(np.zeros(3)) - problem.objective([2.25, 0.0, -1.25])
        True
        >>> round(problem.duality_gap([2.25, 0.0, -1.25]), 9)
        0.0
        """
        from .dual import duality_gap, has_gap
        from .gram import tells_gaps

        if not has_gap(self):
            raise ValueError(
                f"no duality gap is known for {type(self.loss).__name__} with {type(self.regularizer).__name__} "
                f"and l2={self.l2:g}; with l2 > 0 there is one for every built-in loss"
            )
        if tells_gaps(self) and not self._overflows:
            _ = self._gram
        return duality_gap(self, self.pack(w, intercept))

    def lipschitz(self) -> float:
        """Return L, the smoothness of f: an upper bound, tight to about 1e-3; infinite if the loss has none."""
        return self._lipschitz

    def lam_max(self) -> float:
        """Return the smallest strength at which the regulariser alone decides the answer.

        The answer is then zero, or constant for the fused lasso, whatever the data. Infinite where no strength is enough.
        For ``Slope`` it is a factor on all strengths.
        """
        from .lam_max import lam_max

        return lam_max(self)

    def with_regularizer(self, regularizer: Any) -> Problem:
        """Return the same problem with another regulariser: the data is shared, and so is what is known about it.

        Examples
        --------
        >>> import dapsgd as ds
        >>> import numpy as np
        >>> problem = ds.Problem(np.eye(3), [3.0, 0.1, -2.0], regularizer=ds.L1(0.5))
        >>> ds.solve(problem.with_regularizer(ds.L1(1.0)), tol=1e-10).x.round(6)
        array([ 1.5, 0. , -0.5])
        """
        other = copy.copy(self)
        other.regularizer = regularizer
        other._bound = bind(regularizer, self.shape)
        return other

    @contextmanager
    def own_facts(self) -> Iterator[Problem]:
        """Give a copy that keeps what it finds about the data to itself, and shares it when it is done with: for one thread."""
        own = copy.copy(self)
        own._facts = dict(self._facts)
        yield own
        for name, fact in own._facts.items():
            self._facts.setdefault(name, fact)

    # What runtimes on several machines call.

    def part(self, block: slice) -> Problem:
        """Return the problem of some successive rows; a mean over all rows is the mean over parts, weighted by their rows."""
        other = copy.copy(self)
        other._rows = _rows.part(self._by_rows, block)
        other._targets, other._weights = self._targets[block], self._weights[block]
        other.n, other._facts = block.stop - block.start, {}
        return other

    def with_rows(self, rows: Any, targets: Array, weights: Array, shape: tuple[int, ...]) -> Problem:
        """Return the same problem with rows that have been checked."""
        other = copy.copy(self)
        other.partitions = None
        other._rows, other._targets, other._weights, other.shape = rows, targets, weights, shape
        other.n, other.p = _rows.shape(rows)
        other.dtype, other._facts = _rows.dtype(rows), {}
        other._bound = bind(self.regularizer, shape)
        return other

    def check_shards(self, shards: int) -> None:
        """Raise unless the parameter can be cut into so many slices."""
        if shards > self.packed_shape[0]:
            raise ValueError(f"Ray: shards must be at most the {self.packed_shape[0]} rows of the parameter; got {shards}")

    @property
    def bytes(self) -> int:
        """The size of the data in this process."""
        return int(_rows.entries(self._rows) * (self.dtype.itemsize + 4 * _rows.is_sparse(self._rows)))

    # What algorithms call: a packed parameter, with the intercept in an additional last row.

    def pack(self, w: Any, intercept: Any = 0.0, name: str = "w") -> Array:
        """Return a new packed parameter made of w and the intercept."""
        w = finite_array(name, w, self.dtype)
        if self.fit_intercept and w.shape == self.packed_shape:
            return np.array(w, order="C")
        if w.shape != self.shape:
            raise ValueError(f"{name} must have shape {self.shape}; got {w.shape}")
        if not self.fit_intercept:
            if np.any(np.asarray(intercept) != 0.0):
                raise ValueError(f"intercept must be 0 for a problem with fit_intercept=False; got {intercept!r}")
            return np.array(w, order="C")
        packed = np.empty(self.packed_shape, self.dtype)
        packed[: self.p] = w
        packed[self.p] = intercept
        return packed

    def intercept_of(self, x: Array) -> Any:
        """Return the intercept in a packed parameter; 0.0 without one."""
        if not self.fit_intercept:
            return 0.0
        return float(x[self.p]) if x.ndim == 1 else x[self.p].copy()

    @property
    def packed_shape(self) -> tuple[int, ...]:
        """The shape of a packed parameter."""
        return (self.p + self.fit_intercept, *self.shape[1:])

    def predict(self, x: Array) -> Array:
        """Return the predictions at a packed parameter, shape (n, q); they are not to be changed."""
        point = recall(self, x)
        if point is not None:
            return point.predictions
        result: Array = np.ascontiguousarray(_rows.predict(self._rows, x).reshape(self.n, -1))
        return result

    def packed_objective(self, x: Array) -> float:
        """Return the objective at a packed parameter."""
        return self.smooth_value(x, self.predict(x)) + self.penalty(x)

    def smooth_value(self, x: Array, predictions: Array | None) -> float:
        """Return f, loss and l2, given the predictions at x; None if they are all zero."""
        targets = self._targets
        nothing = np.zeros((0, targets.shape[1]), targets.dtype)

        def part(block: slice) -> float:
            nonlocal nothing
            weights = self._weights[block]
            if predictions is None and len(nothing) < weights.size:  # the first block is the largest
                nothing = np.zeros((weights.size, targets.shape[1]), targets.dtype)
            predicted = nothing[: weights.size] if predictions is None else predictions[block]
            return weights.size * float(run(mean_loss, self.loss, predicted, targets[block], weights))

        mean = sum_over_rows(self.n, self._numbers_a_row, part) / self.n
        return mean + (self.l2 * float(np.vdot(x[: self.p], x[: self.p])) if self.l2 else 0.0)

    def penalty(self, x: Array) -> float:
        """Return h at a packed parameter."""
        return run_value(self._bound, x[: self.p])

    def packed_gradient(self, x: Array, predictions: Array | None = None, slopes: Array | None = None) -> Array:
        """Return the gradient of f at a packed parameter; predictions and slopes save work if they are known."""
        if self.gradient_at_zero is not None and not x.any():
            return self.gradient_at_zero.copy()
        if slopes is None:
            slopes = self.slopes(self.predict(x) if predictions is None else predictions)
        gradient = _rows.transpose_times(self._rows, slopes.reshape(self.n, *self.shape[1:]))
        if self.l2:
            add_multiple(gradient[: self.p], 2.0 * self.l2, x[: self.p])
        return np.ascontiguousarray(gradient, dtype=self.dtype)

    @property
    def _numbers_a_row(self) -> int:
        """As how many numbers the losses of a row count that take an exponential each, or the like: squares cost little."""
        q = self._targets.shape[1]
        return -(-q // _SQUARES) if is_quadratic(self.loss) else q

    def slopes(self, predictions: Array) -> Array:
        """Return the derivative of the mean loss in every prediction."""
        return self.slopes_for(predictions, self._targets, self._weights)

    def slopes_for(self, predictions: Array, targets: Array, weights: Array) -> Array:
        """Return the same for targets and weights in another precision."""
        slopes = np.empty_like(predictions)

        def task(block: slice) -> None:
            run(loss_slopes, self.loss, predictions[block], targets[block], weights[block], self.n, slopes[block])

        each_part(self.n, self._numbers_a_row, task)
        return slopes

    def second_derivatives(self, predictions: Array) -> Array:
        """Return the second derivative of the mean loss in every row's first prediction."""
        out = np.empty(self.n)
        run(loss_second_derivatives, self.loss, predictions, self._targets, self._weights, out)
        return out

    def joint_second_derivatives(self, predictions: Array) -> Callable[[int, int], Array]:
        """Return a function of two targets: the second derivatives of the mean loss in every row's predictions of them."""
        if isinstance(self.loss, Multinomial):
            bent, weights = self.loss.second_derivatives(predictions.astype(np.float64)), self._weights / self.n
            return lambda j, k: weights * bent(j, k)
        of_all = self.second_derivatives(predictions)
        return lambda j, k: of_all

    def packed_prox(self, v: Array, step: float, spend: bool = False) -> Array:
        """Return the prox of a packed parameter: the intercept is left alone. ``spend`` v if it is not needed any more."""
        out = v if spend and has_trait(type(self._bound), "in_place") else v.copy()
        run_prox(self._prox, v[: self.p], float(step), out[: self.p])
        return out

    def packed_residual(self, x: Array, gradient: Array | None = None, spend: bool = False) -> float:
        """Return the norm of the proximal-gradient mapping at a packed parameter; ``spend`` the gradient if that may be."""
        scale = self._lipschitz if 0.0 < self._lipschitz < math.inf else 1.0
        spend = spend or gradient is None
        gradient = self.packed_gradient(x) if gradient is None else gradient
        # In place from here on: a parameter may be as large as memory allows.
        argument = np.divide(gradient, self.dtype.type(-scale), out=gradient if spend else None)
        del gradient
        argument += x
        moved = self.packed_prox(argument, 1.0 / scale, spend=True)
        del argument
        moved -= x
        return float(np.linalg.norm(moved.astype(np.float64, copy=False).ravel())) * scale

    @cached_property
    def _prox(self) -> Handle:
        """The regulariser's prox, compiled for this problem's parameter."""
        return prox_handle(self._bound, np.zeros(self.shape, self.dtype))

    @cached_property
    def _double_prox(self) -> Handle:
        """The regulariser's prox in double precision."""
        return prox_handle(self._bound, np.zeros(self.shape))

    def _fact(self, name: str, find: Callable[[], Any]) -> Any:
        """Return something about the data, found at most once."""
        if name not in self._facts:
            self._facts[name] = find()
        return self._facts[name]

    @property
    def _gram(self) -> Gram:
        """A squared loss without its data."""
        from .gram import make_gram

        return cast("Gram", self._fact("gram", lambda: make_gram(self)))

    @property
    def _lipschitz(self) -> float:
        return float(self._fact("lipschitz", self._find_lipschitz))

    def _find_lipschitz(self) -> float:
        curvature = getattr(self.loss, "curvature", math.inf)
        if not math.isfinite(curvature):
            return math.inf
        largest = _rows.spectral_norm_squared(self._rows, self._weights.astype(np.float64) / self.n)
        return float(curvature * largest + 2.0 * self.l2)

    @property
    def row_lipschitz(self) -> float:
        """The largest smoothness of a single row's loss, l2 included; infinite if the loss has none."""
        return float(getattr(self.loss, "curvature", math.inf) * self._largest_row + 2.0 * self.l2)

    @property
    def row_share(self) -> float:
        """How many times smoother the whole is than its roughest row, whatever the loss."""
        weights = self._weights.astype(np.float64) / self.n
        whole = self._fact("spectral norm", lambda: _rows.spectral_norm_squared(self._rows, weights))
        return self._largest_row / max(float(whole), np.finfo(np.float64).tiny)

    @property
    def _largest_row(self) -> float:
        """The largest weighted squared norm of a row."""
        return float(self._fact("largest row", lambda: (_rows.squared_norms(self._rows) * self._weights).max()))

    @property
    def _overflows(self) -> bool:
        """Whether sums of squares of the data are beyond the largest number, or not far below."""
        with np.errstate(over="ignore", invalid="ignore"):
            y = float((self._targets.astype(np.float64) ** 2).max(initial=0.0))
            largest = max(self._largest_row, y, float(self._weights.max())) * self.n * 1e12
        return not largest <= float(np.finfo(self.dtype).max)

    @property
    def _by_rows(self) -> Any:
        """The data in a form that gives rows fast."""
        return self._fact("by rows", lambda: _rows.by_rows(self._rows))

    @property
    def _by_columns(self) -> Any:
        """Sparse data in a form that gives columns fast."""
        return self._fact("by columns", lambda: _rows.matrix(self._rows).tocsc())

    @property
    def storage(self) -> str:
        """How the data is kept: ``"dense"``, ``"CSR"`` or ``"CSC"``."""
        return type(self._rows).__name__.removesuffix("Rows").upper() if _rows.is_sparse(self._rows) else "dense"

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is an address in this process."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_prox", "_double_prox", "_space")}

    def __repr__(self) -> str:
        if self.partitions is not None:
            return f"Problem({self.partitions!r}, {type(self.loss).__name__} + {type(self.regularizer).__name__})"
        targets = f", {self.shape[1]} targets" if len(self.shape) == 2 else ""
        intercept = ", intercept" if self.fit_intercept else ""
        regularizer = type(self.regularizer).__name__
        return (
            f"Problem({self.n} x {self.p} {self.storage} {self.dtype}{targets}, {type(self.loss).__name__} + {regularizer}, "
            f"l2={self.l2:g}{intercept})"
        )

    def __str__(self) -> str:
        return as_text("Problem", about_problem(self))

    def _repr_html_(self) -> str:
        return as_html("Problem", about_problem(self))


def _copied(array: Array, dtype: Any) -> Array:
    """Return a copy in C order; of a large array by all cores, as the system takes its time to give pages."""
    if array.nbytes <= WORTH_A_THREAD:
        return np.array(array, dtype, order="C")
    result = np.empty(array.shape, dtype)

    def copy(block: slice) -> None:
        result[block] = array[block]

    for_each(cut_rows(len(array)), copy, available_cores())
    return result


def _warn_of_rounding(y: Any, targets: Array) -> None:
    """Warn if targets lose what they differ by when they take the precision of X."""
    given = np.asarray(y)
    if given.dtype.kind != "f" or given.dtype.itemsize <= targets.dtype.itemsize:
        return
    given = given.reshape(targets.shape)
    lost = np.abs(given - targets).max(axis=0, initial=0.0)
    if (lost > _LOST * given.std(axis=0)).any() and (given != given[:1]).any():
        warnings.warn(
            f"y loses digits as it takes the precision of X, {targets.dtype}; subtract a constant from y, or use float64 for X",
            stacklevel=4,
        )


def add_multiple(target: Array, factor: float, source: Array) -> None:
    """Add ``factor * source`` to ``target``, in blocks, as the product may be as large as memory allows."""
    for start in range(0, len(target), _BLOCK):
        target[start : start + _BLOCK] += factor * source[start : start + _BLOCK]


@kernel
def mean_loss(loss: Any, predictions: Array, targets: Array, weights: Array) -> float:
    """Return the weighted mean of the rows' losses, added in double precision."""
    return sum_of_losses(loss, predictions, targets, weights) / weights.size


@kernel
def loss_slopes(loss: Any, predictions: Array, targets: Array, weights: Array, rows: int, out: Array) -> None:
    """Write the derivative of the mean loss of so many rows, of which these are some, in every prediction to ``out``."""
    slopes_of_losses(loss, predictions, targets, weights, out)
    for i in range(weights.size):
        share = weights[i] / rows
        for k in range(out.shape[1]):
            out[i, k] *= share


@kernel
def conjugate_of_losses(loss: Any, slopes: Array, targets: Array, weights: Array, rows: int, scale: float) -> float:
    """Return the conjugate of the mean loss of so many rows, of which these are some, at ``scale`` times its slopes."""
    return sum_of_conjugates(loss, slopes, targets, weights, rows, scale)


@kernel
def loss_second_derivatives(loss: Any, predictions: Array, targets: Array, weights: Array, out: Array) -> None:
    """Write the second derivative of the mean loss in every row's first prediction to ``out``."""
    for i in range(weights.size):
        out[i] = loss.second_derivative(predictions[i, 0], targets[i, 0]) * weights[i] / weights.size


@kernel
def add_up_fit(
    loss: Any, predictions: Array, targets: Array, weights: Array, rows: int, columns: Array, away: Array, out: Array
) -> None:
    """Add up, for the mean loss of so many rows, of which these are some, at ``predictions - columns @ away``.

    The first row of ``out`` is minus the gradient in ``away``, the second the sum of its terms' sizes, all others the Hessian.
    """
    for i in range(weights.size):
        at = float(predictions[i, 0])
        for a in range(away.size):
            at -= columns[i, a] * away[a]
        share = weights[i] / rows
        slope, bend = share * loss.derivative(at, targets[i, 0]), share * loss.second_derivative(at, targets[i, 0])
        for a in range(away.size):
            out[0, a] += columns[i, a] * slope
            out[1, a] += abs(columns[i, a] * slope)
            for b in range(away.size):
                out[2 + a, b] += columns[i, a] * columns[i, b] * bend
