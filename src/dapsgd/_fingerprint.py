"""Fingerprints: whether a problem is the one that a file speaks of."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from ._jit import is_own
from ._summaries import counted
from .rows import is_sparse

__all__ = ["difference", "fact_of", "other_data", "problem_facts"]

_BLOCK = 1 << 24  # bytes of an array that are looked at at once


def fact_of(value: Any) -> str:
    """Return a fingerprint of data, of a term, or of anything made of numbers, text, arrays and tuples of these.

    A term that is not of this package is known by its name, its fields and the code of its methods.
    """
    digest = hashlib.sha256()
    _feed(digest.update, value)
    return digest.hexdigest()[:16]


def _feed(update: Callable[[Any], None], value: Any) -> None:
    if isinstance(value, np.ndarray):
        update(f"array {value.dtype.str} {value.shape}".encode())
        rows = max(1, _BLOCK // max(1, value[:1].nbytes)) if value.ndim else 1
        for start in range(0, len(value) if value.ndim else 1, rows):
            block = value[start : start + rows] if value.ndim else value
            update(np.ascontiguousarray(block).reshape(-1).view(np.uint8).data)
    elif isinstance(value, (tuple, list)):
        kind = type(value)
        update(f"{kind.__module__}.{kind.__qualname__} {len(value)}".encode())
        if not is_own(kind):
            for name, method in sorted(vars(kind).items()):
                if not name.startswith("_") and hasattr(method, "__code__"):
                    _feed_code(update, method.__code__)
        for item in value:
            _feed(update, item)
    elif isinstance(value, np.generic):
        _feed(update, value.item())
    else:
        update(f"{type(value).__name__} {value!r}".encode())


def _feed_code(update: Callable[[Any], None], code: Any) -> None:
    update(code.co_code)
    update(repr((code.co_names, code.co_varnames)).encode())
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            _feed_code(update, constant)
        else:
            update(repr(constant).encode())


def problem_facts(problem: Any) -> dict[str, Any]:
    """Return the fingerprints of a problem, under the names that a user knows its parts by.

    What others depend on comes first: a loss may turn targets into others.
    """
    rows = problem._rows
    return {
        "size": [problem.n, problem.p],
        "fit_intercept": problem.fit_intercept,
        "loss": f"{_named(problem.loss)} {fact_of(problem.loss)}",
        "X": [
            f"{'sparse' if is_sparse(rows) else 'dense'} {problem.dtype}",
            problem._fact("fingerprint", lambda: fact_of(problem._by_rows if is_sparse(rows) else rows)),
        ],
        "y": [problem._targets.shape[1], fact_of(problem._targets)],
        "sample_weight": fact_of(problem._weights),
        "regularizer": f"{_named(problem.regularizer)} {fact_of(problem._bound)}",
        "l2": problem.l2,
    }


def _named(term: Any) -> str:
    """Return a term as text, with those of its fields that are numbers.

    Examples
    --------
    >>> import dapsgd as ds
    >>> _named(ds.L1(0.1)), _named(ds.GroupLasso(0.1, [[0, 2], [1]]))
    ('L1(lam=0.1)', 'GroupLasso(lam=0.1)')
    """
    fields = {name: getattr(term, name) for name in getattr(term, "_fields", ())}
    numbers = [f"{name}={value:.12g}" for name, value in fields.items() if isinstance(value, Real)]
    return f"{type(term).__name__}({', '.join(numbers)})"


def other_data(name: str, there: Any, here: Any) -> str | None:
    """Return in words how the data of a file differ from those of a problem; None if the fact is not about data.

    Examples
    --------
    >>> other_data("size", [100, 6], [200, 6])
    'X has 100 rows there and 200 here'
    >>> other_data("y", [1, "0a1b"], [1, "c2d3"])
    'y has other values than in the run that is kept'
    """
    if name == "size":
        k = int(there[0] == here[0])
        return f"X has {counted(there[k], ('row', 'column')[k])} there and {here[k]:,} here"
    if name == "X" and there[0] != here[0]:
        return f"X is {str(there[0])[:60]} there and {here[0]} here"
    if name == "y" and there[0] != here[0]:
        return f"y has {counted(there[0], 'column')} there and {here[0]:,} here"
    return f"{name} has other values than in the run that is kept" if name in ("X", "y", "sample_weight") else None


def difference(name: str, there: Any, here: Any) -> str:
    """Return how another fact of a file differs from that of a problem or a run, without fingerprints.

    Examples
    --------
    >>> difference("regularizer", "L1(lam=0.1) 0a1b", "L1(lam=0.2) c2d3")
    'L1(lam=0.1) there and L1(lam=0.2) here'
    >>> difference("x0", "0a1b", "c2d3")
    'another one'
    """
    if name == "x0":
        return "another one"
    texts = [str(there), str(here)]
    if name in ("loss", "regularizer", "runtime"):
        words = [text.rpartition(" ")[0] or text for text in texts]
        if words[0] == words[1]:
            what = "what it was made with differs" if name == "runtime" else "its arrays or its code differ"
            return f"{words[0][:60]} there and here, but not the same: {what}"
        texts = words
    return "{} there and {} here".format(*(text[:60] for text in texts))
