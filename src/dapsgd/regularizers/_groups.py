"""Partitions of coordinates into groups, in the form that compiled code reads."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Number
from typing import Any, NamedTuple

import numpy as np

from .._jit import kernel

__all__ = ["ROOT", "Partition", "group_rows", "make_partition", "weight_of"]

Array = np.ndarray[Any, Any]

ROOT = "root"  # weights that are the roots of the sizes of groups


class Partition(NamedTuple):
    """Groups of elements of a flat parameter: group g is ``order[starts[g]:starts[g + 1]]``.

    ``order`` is empty where the groups are contiguous and in order; group g is then ``starts[g]:starts[g + 1]`` itself.
    ``weights`` is empty where all are 1. A large parameter has many groups: whoever works on it has room for little else.
    """

    starts: Array
    order: Array
    weights: Array


@kernel
def weight_of(weights: Array, group: int) -> float:
    """Return a group's weight, in double precision."""
    return weights[group] if weights.size > 0 else np.float64(1.0)


def make_partition(groups: Any, weights: Any, shape: tuple[int, ...]) -> Partition:
    """Check ``groups`` and ``weights`` against a parameter of this shape and return its partition.

    Parameters
    ----------
    groups : int, list of index arrays, or array of labels
        An int is the size of equal contiguous groups; an array holds one label a coordinate.
    weights : array, dict, series, "root" or None
        One weight a group, all 1 by default. With labels, in the order of the sorted labels; a dict or a series names them.
    shape : tuple
        (p,), or (p, q): groups are then groups of rows.
    """
    rows, width = shape[0], int(np.prod(shape[1:], dtype=np.int64))
    if isinstance(groups, (int, np.integer)) and not isinstance(groups, bool):
        size = _check_size(int(groups), rows)
        starts = np.arange(0, (rows + 1) * width, size * width, dtype=_index_type(rows * width))
        return Partition(starts, starts[:0].copy(), _check_weights(weights, groups, np.full(rows // size, size)))
    members = _members(groups, rows)
    order = np.concatenate(members) if members else np.empty(0, np.int64)
    _check_covers(order, rows)
    sizes = np.array([len(m) for m in members], np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)]) * width
    if (order == np.arange(rows)).all():
        order = order[:0]
    else:
        order = (order[:, None] * width + np.arange(width)).ravel()
    index_type = _index_type(rows * width)
    return Partition(starts.astype(index_type), order.astype(index_type), _check_weights(weights, groups, sizes))


def group_rows(starts: Array, order: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Return a partition of elements as one of rows of a parameter of this shape."""
    width = int(np.prod(shape[1:], dtype=np.int64))
    rows = order[::width].astype(np.int64) // width if order.size else np.arange(shape[0], dtype=np.int64)
    return starts.astype(np.int64) // width, rows


def _index_type(size: int) -> type[np.signedinteger[Any]]:
    """Return the shortest type that has room for every place in a parameter of so many elements, and for its end."""
    return np.int32 if size <= np.iinfo(np.int32).max else np.int64


def _check_size(size: int, rows: int) -> int:
    if size < 1 or rows % size:
        raise ValueError(
            f"groups={size} must be a positive size that divides the {rows} coordinates; "
            "for unequal groups give a list of index arrays or a label per coordinate"
        )
    return size


def _members(groups: Any, rows: int) -> list[Array]:
    if isinstance(groups, (str, bytes, bool, float, dict)) or groups is None:
        hint = ""
        if isinstance(groups, dict):
            hint = "; of a dict from names of columns to groups, [groups[name] for name in X.columns]"
        if isinstance(groups, str):
            hint = "; by the beginnings of names, [name.split('_')[0] for name in X.columns]"
        raise TypeError(f"groups must be an int, a list of index arrays or a label per coordinate; got {groups!r:.80}{hint}")
    if isinstance(groups, np.ndarray):
        if groups.ndim == 2:
            return [_indices(member, rows) for member in groups]
        return _by_label(groups, rows)
    members = list(groups)
    if all(np.ndim(member) == 0 for member in members):
        _check_labels(members)
        return _by_label(np.asarray(members), rows)
    return [_indices(member, rows) for member in members]


def _by_label(labels: Array, rows: int) -> list[Array]:
    if labels.ndim != 1 or labels.size != rows:
        raise ValueError(f"groups given as labels must have one label for each of the {rows} coordinates; got {labels.size}")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("groups given as labels must not contain NaN or infinity")
    if labels.dtype.kind == "O":
        _check_labels(labels.tolist())
    _, codes = np.unique(labels, return_inverse=True)
    order = np.argsort(codes, kind="stable").astype(np.int64)
    return np.split(order, np.cumsum(np.bincount(codes))[:-1]) if rows else []


def _check_labels(labels: list[Any]) -> None:
    """Raise if a label is missing, or if some are text and others are not: they could not be put in order."""
    missing = next((j for j, label in enumerate(labels) if _is_missing(label)), None)
    if missing is not None:
        raise ValueError(f"labels of groups must be there for each coordinate; that of coordinate {missing} is missing or NaN")
    number = next((label for label in labels if isinstance(label, Number)), None)
    other = next((label for label in labels if not isinstance(label, Number)), None)
    if number is not None and other is not None:
        raise TypeError(f"groups given as labels must be all text or all numbers; got {number!r} and {other!r}")


def _is_missing(label: Any) -> bool:
    """Tell whether a label is None, NaN, or what pandas writes for them."""
    return label is None or type(label).__name__ == "NAType" or bool(label != label)


def _indices(member: Any, rows: int) -> Array:
    index = np.asarray(member)
    if index.ndim != 1 or index.size == 0:
        raise ValueError(f"groups must hold non-empty one-dimensional index arrays; got {member!r}")
    if index.dtype.kind not in "iu":
        first = index.tolist()[0]
        raise TypeError(
            f"groups must hold integer indices, not {first!r}; for names of columns give a label per coordinate instead"
        )
    if index.min() < 0 or index.max() >= rows:
        raise ValueError(f"groups must hold indices from 0 to {rows - 1}; got {index.min()} to {index.max()}")
    return index.astype(np.int64)


def _check_covers(order: Array, rows: int) -> None:
    counts = np.bincount(order, minlength=rows)
    if (counts > 1).any():
        raise ValueError(f"groups must not overlap; coordinate {int(np.argmax(counts > 1))} is in more than one place")
    if (counts == 0).any():
        raise ValueError(f"groups must cover every coordinate; coordinate {int(np.argmax(counts == 0))} is in no group")


def _check_weights(weights: Any, groups: Any, sizes: Array) -> Array:
    """Return the weights of groups of these sizes; empty if all are 1."""
    if weights is None:
        return np.empty(0)
    if isinstance(weights, str):
        if weights != ROOT:
            raise ValueError(f"weights must be {ROOT!r}, for the root of the size of each group, or numbers; got {weights!r}")
        weights = np.sqrt(sizes)
    elif isinstance(weights, Mapping) or hasattr(weights, "iloc"):  # a dict, or a series of pandas
        weights = _by_name(weights, groups, len(sizes))
    result, count = np.asarray(weights), len(sizes)
    if result.dtype.kind not in "iuf":
        raise TypeError(f"weights must hold numbers; got dtype {result.dtype}")
    if result.shape != (count,):
        got = str(result.size) if result.ndim == 1 else f"shape {result.shape}"
        raise ValueError(f"weights must have one entry for each of the {count} groups; got {got}")
    result = result.astype(np.float64)
    if not (np.isfinite(result).all() and (result >= 0.0).all()):
        raise ValueError("weights must be finite and >= 0")
    return result if (result != 1.0).any() else np.empty(0)


def _by_name(weights: Any, groups: Any, count: int) -> list[Any]:
    """Return weights that a dict or a series gives by the names of groups, in the order of the groups."""
    kind = "a dict" if isinstance(weights, Mapping) else "the index of a series"
    pairs = list(weights.items())
    given = dict(pairs)
    names = _names(groups, count)
    missing = next((name for name in names if name not in given), None)
    if missing is None and len(pairs) == count:
        return [given[name] for name in names]
    known = set(names)
    other = next((name for name in given if name not in known), None)
    wrong = "one of them twice" if other is None else f"{other!r}, which is none"
    wrong = wrong if missing is None else f"nothing for {missing!r}"
    raise ValueError(
        f"weights must have one entry for each group where {kind} names them; it has {wrong}. The groups are "
        f"{_listed(names)}: a list of weights is in this order"
    )


def _names(groups: Any, count: int) -> list[Any]:
    """Return what groups are called: by their labels, which are sorted, or by their places."""
    if isinstance(groups, (int, np.integer)) or np.ndim(next(iter(groups), 0)) > 0:
        return list(range(count))
    return list(np.unique(np.asarray(list(groups))).tolist())


def _listed(names: list[Any], most: int = 8) -> str:
    return ", ".join(map(repr, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")
