"""The regularisation path: a problem solved along decreasing strengths, each from the answer before."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ._checks import finite_array, flag, positive_integer, suggesting
from ._halt import end_if_asked
from ._points import further, kept_points
from ._progress import counting
from ._summaries import counted
from .factored import factored
from .path_model import PathModel, path_model
from .problem import Problem
from .regularizers import FusedLasso, Slope, Zero
from .result import Result
from .runtimes._blas import calm_blas
from .solve import solve
from .working_set import kept_sets

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Path", "decreasing", "path", "path_of", "stack_intercepts", "with_strength"]

Array = np.ndarray[Any, Any]

_HARMLESS = {"tol", "workers", "seed", "max_iter", "max_passes"}  # options that mean the same whatever runs
_DEFAULTS: dict[str, tuple[Any, ...]] = {
    "algorithm": ("auto",),
    "runtime": ("threads", "serial"),
    "batch_size": ("auto",),
    "average": (False,),
    "record_schedule": (False,),
    "resume": (False,),
    "callbacks": ((), []),
}


@dataclass(frozen=True)
class Path:
    """The answers along decreasing strengths: what :func:`dapsgd.path` gives back.

    Attributes
    ----------
    lams : array, shape (k,)
        The strengths, in decreasing order.
    coefs : array, shape (p, k) or (p, q, k)
        The answers, the last axis along the strengths.
    intercepts : array, shape (k,) or (q, k)
        The intercepts; zero without.
    objectives, gaps : array, shape (k,)
        The objective of every answer, and its duality gap; NaN where no dual is known.
    results : list of Result
        All that :func:`dapsgd.solve` gave back.
    """

    lams: Array
    coefs: Array
    intercepts: Array
    objectives: Array
    gaps: Array
    results: list[Result]

    def plot(self, path: Any = None, names: Sequence[str] | None = None) -> Figure:
        """Draw every coefficient against the strength; the largest, or the bands of a fused lasso, are named.

        Parameters
        ----------
        path : path, optional
            Where to save the picture; its ending chooses the format, PNG if it has none.
        names : list of str, optional
            The names of the columns.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from .plots import plot_path

        fused = bool(self.results) and self.results[0].penalty.startswith(FusedLasso.__name__)
        return plot_path(self, path, names=names, steps=fused)

    def __len__(self) -> int:
        return len(self.lams)

    def __repr__(self) -> str:
        passes = counted(sum(result.passes for result in self.results), "pass", "passes")
        return f"Path({counted(len(self), 'strength')} from {self.lams[0]:.4g} to {self.lams[-1]:.4g}, {passes})"


@partial(suggesting, beyond=solve)
def path(
    problem: Problem, n_lams: int = 50, *, eps: float = 1e-3, lams: Any = None, progress: bool = False, **options: Any
) -> Path:
    """Solve a problem along decreasing strengths of its regulariser, each from the answer before.

    The strength is the regulariser's ``lam``: its value in the problem given does not matter. For ``Slope`` it is a factor on
    all of ``lams``; for ``FusedLasso`` the L1 part stays as it is.

    Parameters
    ----------
    problem : Problem
        The data is neither copied nor checked again.
    n_lams : int, default 50
        How many strengths, from ``problem.lam_max()``, where the regulariser alone decides, in equal ratios. The estimators
        that choose by cross-validation try 100 unless told otherwise, as those of scikit-learn do.
    eps : float, default 1e-3
        The smallest strength is ``eps`` times the largest.
    lams : array, optional
        The strengths themselves; solved in decreasing order.
    progress : bool
        Show a bar that counts the strengths; where there is no terminal, print a line now and then.
    **options
        For :func:`dapsgd.solve`: ``algorithm``, ``tol``, ``workers`` and the others; ``x0`` is where the first one starts.

    Returns
    -------
    Path

    Examples
    --------
    >>> import dapsgd as ds
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 20))
    >>> y = X[:, :2] @ [3.0, -2.0] + 0.1 * rng.standard_normal(100)
    >>> path = ds.path(ds.Problem(X, y, ds.Squared(0.5), ds.L1(1.0)), n_lams=10)
    >>> path.coefs.shape
    (20, 10)
    >>> np.count_nonzero(path.coefs, axis=0)[:4]
    array([0, 2, 2, 2])
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be a dapsgd.Problem; got {type(problem).__name__}")
    with_strength(problem.regularizer, 1.0)  # say at once if there is none
    if lams is None:
        strengths = decreasing(problem.lam_max(), positive_integer("n_lams", n_lams), eps, type(problem._bound))
    else:
        strengths = checked_strengths("lams", lams)
    terms = [with_strength(problem.regularizer, lam) for lam in strengths]
    with counting(flag("progress", progress), len(strengths), "strength") as count:
        return path_of(problem, strengths, terms, each=count, **options)


def path_of(
    problem: Problem,
    lams: Array,
    regularizers: Iterable[Any],
    *,
    each: Callable[[], None] = lambda: None,
    x0: Any = None,
    **options: Any,
) -> Path:
    """Solve a problem with one regulariser after another, each from the answer before; ``each`` is called after every one."""
    results: list[Result] = []
    found: list[Array] = []
    free = x0 is None and _asks_for_nothing(options)
    factor = factored(problem, len(lams), options) if free else None
    where = problem if factor is None else factor.problem
    with calm_blas(problem), where.own_facts() as posed, kept_sets(posed), kept_points(posed):
        model: PathModel | None = None
        for k, regularizer in enumerate(regularizers):
            end_if_asked()
            there = posed.with_regularizer(regularizer)
            if k == 0 and free and options.get("max_iter") is None and options.get("max_passes") is None:
                model = path_model(there, options.get("tol", 1e-4))
            result = None if model is None else model.solve(there)
            if result is None:
                model = None
                result = solve(there, x0=_start(there, lams[: k + 1], found) if found else x0, **options)
            found = [*found[-1:], posed.pack(result.x, result.intercept)]
            results.append(result if factor is None else factor.restore(regularizer, result))
            each()
    return Path(
        lams=np.asarray(lams, dtype=np.float64),
        coefs=np.stack([result.x for result in results], axis=-1),
        intercepts=stack_intercepts(results, problem.shape),
        objectives=np.array([result.objective for result in results]),
        gaps=np.array([result.gap for result in results]),
        results=results,
    )


def _asks_for_nothing(options: dict[str, Any]) -> bool:
    """Tell whether the answers are all that is asked for, so that the way to them is ours to choose."""

    def is_default(name: str, value: Any) -> bool:
        return value is None or any(type(value) is type(usual) and value == usual for usual in _DEFAULTS.get(name, ()))

    return all(name in _HARMLESS or is_default(name, value) for name, value in options.items())


def _start(problem: Problem, lams: Array, found: list[Array]) -> Array:
    """Return where to start: the last answer, or further along the line from the one before it if that is better.

    The path of the lasso and of its relatives is piecewise linear in the strength, or nearly so.
    """
    last = found[-1]
    if len(found) < 2 or lams[-2] == lams[-3]:
        return last
    beyond = further(problem, found[-2], last, (lams[-1] - lams[-2]) / (lams[-2] - lams[-3]))
    return min(last, beyond, key=problem.packed_objective)


def stack_intercepts(results: Sequence[Result], shape: tuple[int, ...]) -> Array:
    """Return the intercepts of results whose parameters have this shape, the last axis along the results."""
    return np.stack([np.broadcast_to(result.intercept, shape[1:]) for result in results], axis=-1).astype(np.float64)


def with_strength(regularizer: Any, lam: float) -> Any:
    """Return a regulariser of the same kind at another strength.

    Examples
    --------
    >>> import dapsgd as ds
    >>> from dapsgd.path import with_strength
    >>> with_strength(ds.FusedLasso(1.0, l1=0.5), 2.0)
    FusedLasso(lam=2.0, l1=0.5)
    """
    if isinstance(regularizer, Slope):
        return Slope(lam * np.asarray(regularizer.lams, dtype=np.float64))
    if isinstance(regularizer, Zero) or "lam" not in getattr(type(regularizer), "_fields", ()):
        raise ValueError(f"regularizer must have a strength, a field lam, for a path; got {type(regularizer).__name__}")
    return regularizer._replace(lam=float(lam))


def decreasing(top: float, count: int, eps: Any, kind: type, name: str = "lams") -> Array:
    """Return so many strengths in equal ratios from ``top``, which is of a class of regularisers, to ``eps * top``."""
    from ._checks import number

    share = number("eps", eps)
    if not 0.0 < share < 1.0:
        raise ValueError(f"eps must be between 0 and 1; got {eps!r}")
    if not hasattr(kind, "lam_max"):
        raise ValueError(
            f"{name} must be given: {kind.__name__} has no method lam_max(self, gradient), which says where a path begins; "
            "give the strengths, or write the method (docs: Write your own regulariser)"
        )
    if not math.isfinite(top):
        raise ValueError(f"{name} must be given: for this regulariser no strength is so large that it alone decides the answer")
    if top == 0.0:  # the targets have nothing to be explained: any strength gives the same
        top = float(np.finfo(np.float64).resolution)
    result: Array = np.geomspace(top, share * top, count) if count > 1 else np.array([top])
    return result


def checked_strengths(name: str, values: Any) -> Array:
    """Return strengths given by a user in decreasing order."""
    strengths = finite_array(name, values, np.float64)
    if strengths.ndim != 1 or strengths.size == 0:
        raise ValueError(f"{name} must be a one-dimensional array of at least one strength; got shape {strengths.shape}")
    if (strengths < 0.0).any():
        raise ValueError(f"{name} must be >= 0; got {strengths.min():g}")
    return np.sort(strengths)[::-1].copy()
