"""Which columns of a table are features, and which are targets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .._arguments import argument
from .._checks import meant, rename_hint
from ..errors import FileFormatError
from ._numbers import is_number
from ._source import Column, Options, Table, listed

__all__ = ["Picked", "pick", "pick_kept", "places_of"]


_INDEX = re.compile(r"__index_level_\d+__")  # as pandas calls one without a name


class Picked(NamedTuple):
    """Positions and names of what is read."""

    features: list[int]
    targets: list[int]
    feature_names: tuple[str, ...] | None
    target_names: tuple[str, ...]
    kept: list[int]
    kept_names: tuple[str, ...]


def pick(path: Path, names: Sequence[str] | None, count: int, options: Options, first: Sequence[str] = ()) -> Picked:
    """Find the columns that are asked for in a table with so many columns; ``first`` is its first row, if it is text."""
    if names is not None:
        _check_names(path, names)
    targets = [_find(path, "target", column, names, count, first) for column in options.target]
    if len(set(targets)) != len(targets):
        raise ValueError(f"{argument('target')} must not name a column of {path} twice; got {listed(options.target)}")
    if options.features is not None:
        features = _by_name(path, options, names, first)
    else:
        drop = [_find(path, "drop", column, names, count, first) for column in options.drop]
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
                + _skip_hint(names, first, not any(map(is_number, first)))
            )
        if names is not None and options.features is None and _INDEX.fullmatch(names[j]):
            raise FileFormatError(
                f"{path}: column {names[j]!r} is the index of a pandas frame, not one of its columns; leave it out with "
                f"{argument('drop', names[j])}, or write the file with index=False"
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


def places_of(path: Path, option: str, columns: Sequence[Column], table: Table) -> list[int]:
    """Return the positions of the columns that an option names."""
    return [_find(path, option, column, table.names, table.width) for column in columns]


def _shown(names: Sequence[str] | None, j: int) -> str:
    return str(j) if names is None else names[j]


def _check_names(path: Path, names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen and name.strip():
            raise FileFormatError(f"{path} has two columns named {name!r}; rename one of them")
        seen.add(name)


def _find(path: Path, option: str, column: Column, names: Sequence[str] | None, count: int, first: Sequence[str] = ()) -> int:
    """Return the position of a column given by name or position; digits that are no name are a position."""
    if isinstance(column, str) and names is not None and column in names:
        return list(names).index(column)
    position, said = column, argument(option)
    below = str(column) in [field.strip() for field in first]
    named = names is None and below
    hint = f"; {column!r} stands in its first line: say {argument('header', True)} if that is names" if named else ""
    if isinstance(column, str):
        try:
            position = _position(column)
        except ValueError:
            if names is None:
                raise ValueError(f"{said} must be a position, as {path} has no column names; got {column!r}{hint}") from None
            several = [name.strip() for name in column.split(",")]
            if len(several) > 1 and all(name in names for name in several):
                raise ValueError(
                    f"{said} {column!r} is not a column of {path} but several; write {argument(option, several)}"
                ) from None
            near = meant(column, names)
            hint = "" if near is None else f" (did you mean {near!r}?)"
            above = _skip_hint(names, first, below)
            raise ValueError(
                f"{said} {column!r} is not a column of {path}{hint}; its columns are {listed(names)}{above}"
            ) from None
    if not -count <= int(position) < count:
        last = "; -1 is the last"
        raise ValueError(f"{said} {column} is not a column of {path}, which has columns 0 to {count - 1}{hint or last}")
    return int(position) % count


def _position(text: str) -> int:
    """Return a position in digits; 1_2 is a name, though Python would read it as 12."""
    if "_" in text:
        raise ValueError(f"{text!r} is no position")
    return int(text)


def _by_name(path: Path, options: Options, names: Sequence[str] | None, first: Sequence[str]) -> list[int]:
    wanted = options.features or ()
    if names is None:
        named, bare = argument("header", True), argument("header", False)
        advice = f"leave {bare} out" if options.header is False else f"say {named} if its first line is names"
        raise ValueError(f"features are given by name, but {path} has no column names; {advice}")
    positions = {name: j for j, name in enumerate(names)}
    missing = [name for name in wanted if name not in positions]
    if missing:
        hint = rename_hint(missing[0], [name for name in names if name not in wanted])
        if len(missing) == len(wanted) and _are_other_numbers(names, wanted):
            hint = "; its first line holds nothing but numbers: is it a row?"
        hint += _skip_hint(names, first, set(missing) <= {field.strip() for field in first})
        raise ValueError(f"{path} lacks {len(missing)} of {len(wanted)} columns: {listed(missing)}{hint}")
    return [positions[name] for name in wanted]


def _skip_hint(names: Sequence[str], first: Sequence[str], below: bool) -> str:
    """Say what to do about lines above the header: if it may be in the row below, or what was taken for it is a comment."""
    if not first or not (below or names[0].startswith(("#", "%"))):
        return ""
    return f"; if the header is further down, leave out the lines above it with {argument('skip_lines')}"


def _are_other_numbers(names: Sequence[str], wanted: Sequence[str]) -> bool:
    """Tell whether names are nothing but numbers, and none of those wanted, not even spelt otherwise."""
    if not all(is_number(name) for name in names):
        return False
    return not {float(name) for name in names} & {float(name) for name in wanted if is_number(name)}
