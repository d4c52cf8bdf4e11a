"""What is said of a parameter that an estimator does not have, or does not take by position."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec

from .._checks import meant

__all__ = ["RULES", "RULES_ELSEWHERE", "naming_unknown"]

RULES = ("best", "one_se")
RULES_ELSEWHERE = {"1se": "'one_se'", "min": "'best'"}

Given = ParamSpec("Given")

_LIKENESS = 0.5  # at which "max_iter" may mean "max_passes"
_INVERSE = {"C", "Cs"}
_STRENGTH = {"lam", "lambda_", "lambd", "lmbda", "lamb", "reg", "regularization", "strength"}  # elsewhere
_ELSEWHERE = {
    "epochs": " (did you mean max_passes?)",
    "eta0": " (did you mean step?)",
    "learning_rate": " (did you mean step?)",
    "normalize": ": scale the columns before, as by make_pipeline(StandardScaler(), model)",
    "solver": " (did you mean algorithm?)",
    "standardize": ": scale the columns before, as by make_pipeline(StandardScaler(), model)",
}
_STRENGTHS = _STRENGTH | {"alpha", "n_alphas", "lams", "lambdas", "n_lams", "n_lambda", "n_lambdas"}


def naming_unknown(init: Callable[Given, None]) -> Callable[Given, None]:
    """Decorate an ``__init__`` so that parameters which it does not have, or not by position, are named, with what to write.

    Its signature, which scikit-learn reads, stays as it is.
    """
    parameters = list(inspect.signature(init).parameters.values())[1:]
    known = [one.name for one in parameters]
    placed = [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]

    @functools.wraps(init)
    def checked(*args: Given.args, **kwargs: Given.kwargs) -> None:
        unknown = next((name for name in kwargs if name not in known), None)
        if unknown is not None:
            raise TypeError(f"{type(args[0]).__name__} has no parameter {unknown!r}{_meant(unknown, known)}")
        if len(args) - 1 > len(placed):
            raise TypeError(
                f"{type(args[0]).__name__} takes {len(placed)} by position, {' and '.join(placed)}; got {len(args) - 1}. "
                f"By name only, as {known[len(placed)]}=...: {', '.join(known[len(placed) :])}"
            )
        init(*args, **kwargs)

    return checked


def _meant(unknown: str, known: list[str]) -> str:
    """Return what to write instead.

    Examples
    --------
    >>> _meant("tolerance", ["alpha", "tol"]), _meant("x", ["alpha", "tol"])
    (' (did you mean tol?)', '; it has alpha, tol')
    >>> _meant("lam", ["alpha", "tol"]), _meant("C", ["alpha", "tol"])
    (': the strength is alpha', ': the strength is alpha, its inverse: 1 / (C * n) for n rows')
    >>> _meant("solver", ["algorithm"])
    ' (did you mean algorithm?)'
    """
    inverse = ", its inverse: 1 / (C * n) for n rows" if unknown in _INVERSE else ""
    if unknown in _STRENGTHS | _INVERSE and "alphas" in known:
        tried = f": the strengths that it tries are alphas{inverse}"
        return f"{tried}, an array of them or how many; the class without CV takes one"
    if unknown in _STRENGTH | _INVERSE and "alpha" in known:
        return f": the strength is alpha{inverse}"
    if unknown in _ELSEWHERE:
        return _ELSEWHERE[unknown]
    near = meant(unknown, known, _LIKENESS)
    return f"; it has {', '.join(known)}" if near is None else f" (did you mean {near}?)"
