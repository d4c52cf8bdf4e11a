"""Which columns of a table are features, and which are targets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .._arguments import argument
from .._checks import meant
from ..errors import FileFormatError
from ._source import Column, Options, listed

__all__ = ["Picked", "pick", "pick_kept"]


class Picked(NamedTuple):
    """Positions and names of what is read."""

    features: list[int]
    targets: list[int]
    feature_names: tuple[str, ...] | None
    target_names: tuple[str, ...]
    kept: list[int]
    kept_names: tuple[str, ...]


def pick(path: Path, names: Sequence[str] | None, count: int, options: Options) -> Picked:
    """Find the columns that are asked for in a table with so many columns."""
    if names is not None:
        _check_names(path, names)
    targets = [_find(path, "target", column, names, count) for column in options.target]
    if len(set(targets)) != len(targets):
        raise ValueError(f"{argument('target')} must not name a column of {path} twice; got {listed(options.target)}")
    if options.features is not None:
        features = _by_name(path, options.features, names)
    else:
        drop = [_find(path, "drop", column, names, count) for column in options.drop]
        both = sorted(set(drop) & set(targets))
        if both:
            raise ValueError(
                f"{argument('drop')} and {argument('target')} must not name the same column of {path}; "
                f"got {_shown(names, both[0])} in both"
            )
        features = [j for j in range(count) if j not in {*targets, *drop}]
    for j in features:
        if names is not None and not names[j].strip():
            raise FileFormatError(
                f"{path}: column {j} has no name in the header; name it, or leave it out with {argument('drop', j)}"
            )
    if not features:
        raise FileFormatError(f"{path} has no column left for X: {count} column(s), of which {len(targets)} are targets")
    feature_names = None if names is None else tuple(names[j] for j in features)
    kept, kept_names = pick_kept(path, names, count, options.keep)
    return Picked(features, targets, feature_names, tuple(_shown(names, j) for j in targets), kept, kept_names)


def pick_kept(path: Path, names: Sequence[str] | None, count: int, keep: Sequence[Column]) -> tuple[list[int], tuple[str, ...]]:
    """Find the columns whose text is kept; return their positions, and what they are to be called."""
    kept = [_find(path, "keep", column, names, count) for column in keep]
    if len(set(kept)) != len(kept):
        raise ValueError(f"{argument('keep')} must not name a column of {path} twice; got {listed(keep)}")
    titles = tuple(f"column {j}" if names is None or not names[j].strip() else names[j] for j in kept)
    if len(set(titles)) != len(titles):
        raise ValueError(
            f"{argument('keep')} must name columns with different names; rename some of {listed(titles)} in {path}"
        )
    return kept, titles


def _shown(names: Sequence[str] | None, j: int) -> str:
    return str(j) if names is None else names[j]


def _check_names(path: Path, names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen and name.strip():
            raise FileFormatError(f"{path} has two columns named {name!r}; rename one of them")
        seen.add(name)


def _find(path: Path, option: str, column: Column, names: Sequence[str] | None, count: int) -> int:
    """Return the position of a column given by name or position; digits that are no name are a position."""
    if isinstance(column, str) and names is not None and column in names:
        return list(names).index(column)
    position, said = column, argument(option)
    if isinstance(column, str):
        try:
            position = int(column)
        except ValueError:
            if names is None:
                raise ValueError(f"{said} must be a position, as {path} has no column names; got {column!r}") from None
            several = [name.strip() for name in column.split(",")]
            if len(several) > 1 and all(name in names for name in several):
                raise ValueError(
                    f"{said} {column!r} is not a column of {path} but several; write {argument(option, several)}"
                ) from None
            near = meant(column, names)
            hint = "" if near is None else f" (did you mean {near!r}?)"
            raise ValueError(f"{said} {column!r} is not a column of {path}{hint}; its columns are {listed(names)}") from None
    if not -count <= int(position) < count:
        raise ValueError(f"{said} {column} is not a column of {path}, which has columns 0 to {count - 1}; -1 is the last")
    return int(position) % count


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _by_name(path: Path, wanted: Sequence[str], names: Sequence[str] | None) -> list[int]:
    if names is None:
        raise ValueError(f"features are given by name, but {path} has no column names")
    positions = {name: j for j, name in enumerate(names)}
    missing = [name for name in wanted if name not in positions]
    if missing:
        near = meant(missing[0], [name for name in names if name not in wanted])
        hint = "" if near is None else f"; it has {near!r}: rename that if it is {missing[0]!r}"
        if len(missing) == len(wanted) and all(_is_number(name) for name in names):
            hint = "; its first line holds nothing but numbers: is it a row?"
        raise ValueError(f"{path} lacks {len(missing)} of {len(wanted)} columns: {listed(missing)}{hint}")
    return [positions[name] for name in wanted]
