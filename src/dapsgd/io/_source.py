"""What a reader is given and gives: options, and a source of blocks of rows."""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from encodings.aliases import aliases
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Self, cast

import numpy as np

from .._arguments import argument
from .._checks import flag, known_name, meant, non_negative_integer, positive_integer
from ..errors import FileFormatError
from ._dataset import Array

__all__ = [
    "BLOCK_BYTES",
    "TEXT_OPTIONS",
    "Block",
    "Column",
    "EmptyColumnError",
    "MissingValueError",
    "Options",
    "Skipped",
    "Source",
    "Table",
    "UnusableError",
    "WidthError",
    "empty_columns",
    "listed",
    "make_options",
    "missing_value",
    "no_rows",
    "open_bytes",
    "reading",
]

Column = str | int  # by name or by position, from the end if negative
BLOCK_BYTES = 1 << 23  # of a block of rows, about: what conversion needs of memory is a few of these

_NOT_OF_FILES = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined"})  # among encodings of text
TEXT_OPTIONS = ("header", "decimal", "encoding", "skip_lines")  # of tables in text


@dataclass(frozen=True)
class Options:
    """How to read a file; what a reader has no use for is refused."""

    target: tuple[Column, ...] = ()
    drop: tuple[Column, ...] = ()
    features: tuple[str, ...] | None = None
    header: bool | None = None
    zero_based: bool | None = None
    n_features: int | None = None
    dtype: str | None = None
    skip_missing: bool | None = None
    keep: tuple[Column, ...] = ()
    decimal: str | None = None  # if it is not the point
    encoding: str | None = None  # if it is not UTF-8
    skip_lines: int | None = None  # if there are any

    def check(self, path: Path, kind: str, used: frozenset[str]) -> None:
        """Refuse an option that this kind of file has no use for."""
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in used and value not in (None, ()):
                raise ValueError(f"{self.written(field.name)} means nothing for {kind}, which {path} is; leave it out")

    def written(self, name: str) -> str:
        """Return how an option was written by whoever gave it."""
        return argument(name, False) if getattr(self, name) is False else argument(name)


def make_options(
    target: Any = None,
    drop: Any = None,
    features: Any = None,
    header: Any = None,
    zero_based: Any = None,
    n_features: Any = None,
    dtype: Any = None,
    skip_missing: Any = False,
    keep: Any = None,
    decimal: Any = ".",
    encoding: Any = "utf-8",
    skip_lines: Any = 0,
) -> Options:
    """Check what a user hands in."""
    for name, value in (("header", header), ("zero_based", zero_based)):
        if value is not None and not isinstance(value, bool):
            raise TypeError(f"{name} must be True, False or None; got {value!r}")
    if features is not None:
        if isinstance(features, str) or not all(isinstance(name, str) for name in features):
            raise TypeError(f"features must be a list of names; got {features!r}")
        features = tuple(features)
        if len(set(features)) != len(features) or not features:
            raise ValueError("features must be different names, at least one")
        if drop is not None and drop != ():
            raise ValueError("drop and features must not be given together: what is not among features is left out")
    return Options(
        target=_columns("target", target),
        drop=_columns("drop", drop),
        features=features,
        header=header,
        zero_based=zero_based,
        n_features=None if n_features is None else positive_integer(argument("n_features"), n_features),
        dtype=None if dtype is None else _dtype(dtype),
        skip_missing=flag("skip_missing", skip_missing) or None,
        keep=_columns("keep", keep),
        decimal=_decimal_sign(decimal),
        encoding=_text_encoding(encoding),
        skip_lines=non_negative_integer(argument("skip_lines"), skip_lines) or None,
    )


def _decimal_sign(value: Any) -> str | None:
    """Check the decimal sign that a user hands in; None is the point."""
    if value not in (".", ","):
        raise ValueError(f"{argument('decimal')} must be a point or a comma; got {value!r}")
    return None if value == "." else str(value)


def _text_encoding(value: Any) -> str | None:
    """Check the encoding that a user hands in; None is UTF-8."""
    allowed = f"{argument('encoding')} must be the name of an encoding of text, such as cp1252 or utf-16; got {value!r:.40}"
    if not isinstance(value, str):
        raise TypeError(allowed)
    try:
        found = codecs.lookup(value)
    except (LookupError, ValueError):
        known = [name for pair in aliases.items() if "mbcs" not in pair for name in pair]  # which only Windows has
        near = meant(value, [*(name.replace("_", "-") for name in known), *known])
        raise ValueError(allowed + ("" if near is None else f" (did you mean {near!r}?)")) from None
    if not found._is_text_encoding or found.name in _NOT_OF_FILES:
        raise ValueError(f"{allowed}, which is not for files of text")
    return None if found.name in ("utf-8", "utf-8-sig") else value.strip()


def _dtype(value: Any) -> str:
    name = value if isinstance(value, str) else getattr(value, "__name__", str(value))
    return known_name(argument("dtype"), name, ("float32", "float64"))


def _columns(name: str, value: Any) -> tuple[Column, ...]:
    if value is None:
        return ()
    items = list(value) if isinstance(value, (list, tuple)) else [value]
    for item in items:
        if isinstance(item, bool) or not isinstance(item, (str, int, np.integer)):
            raise TypeError(f"{argument(name)} must be the name or the position of a column, or a list of these; got {item!r}")
    return tuple(item if isinstance(item, str) else int(item) for item in items)


class Block(NamedTuple):
    """Some successive rows."""

    X: Any  # array or CSR matrix
    y: Array | None  # numbers, or text as objects
    kept: Sequence[Sequence[str]] = ()  # columns of text that are kept as they are


class Table(NamedTuple):
    """The columns of a table."""

    width: int
    names: list[str] | None
    first_line: int | None = None  # of the rows, if they are text


class Skipped:
    """Rows that were left out because a value is missing: how many, and how often it was which column's."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self._names = names
        self.clear()

    def clear(self) -> None:
        """Start again."""
        self.rows = 0
        self._missing = np.zeros(len(self._names), np.int64)

    def count(self, missing: Array) -> None:
        """Count rows that are left out, given what is missing of each: a row a line, a column a column."""
        self.rows += len(missing)
        self._missing += missing.sum(axis=0)

    def empty_columns(self) -> list[str]:
        """Return the names of the columns that every row left out lacks."""
        return [name for name, missing in zip(self._names, self._missing, strict=True) if missing == self.rows]


class Source(NamedTuple):
    """An opened file: what is known before its rows are read, and its rows."""

    sparse: bool
    dtype: np.dtype[Any]
    feature_names: tuple[str, ...] | None
    target_names: tuple[str, ...]
    # Called with a function that wants to know how many bytes of the file have been read.
    blocks: Callable[[Callable[[int], None]], Iterator[Block]]
    # Of sparse rows: the number of columns and whether the first is 0, given the smallest and the largest index.
    columns: Callable[[int, int], tuple[int, bool]] | None = None
    # The rows with a missing value that have been left out so far.
    skipped: Skipped = Skipped()
    # The titles of the columns of text that are kept.
    kept_names: tuple[str, ...] = ()


class UnusableError(FileFormatError):
    """A value or a column that no model can use; ``fact`` says which and why, the sentence also what to do in a fit."""

    fact = ""

    @classmethod
    def of(cls, fact: str, advice: str) -> Self:
        """Return the error with its sentence."""
        error = cls(f"{fact}; {advice}")
        error.fact = fact
        return error


class MissingValueError(UnusableError):
    """A value is missing."""


class EmptyColumnError(UnusableError):
    """A column has no value in any row."""


def missing_value(where: str, of_target: bool, text: str = "", classes: bool = False) -> MissingValueError:
    """Return the error that a value is missing, or that a text counts as that; the target is no column to leave out."""
    rows, column = argument("skip_missing", True), argument("drop")
    otherwise = "" if of_target else f", or the column with {column}"
    what = f"value {text.strip()[:40]!r} counts as missing" if text.strip() else "value is missing"
    renamed = "; if it is a class, give that another name" if classes and text.strip() else ""
    return MissingValueError.of(f"{where}: the {what}", f"fill it in, or leave out such rows with {rows}{otherwise}{renamed}")


def empty_columns(path: Path, features: Sequence[Column], targets: Sequence[Column]) -> EmptyColumnError:
    """Return the error that columns have no value in any row; to leave out rows would leave nothing."""
    empty = [*features, *targets]
    which = f"column {empty[0]!r} is" if len(empty) == 1 else f"columns {listed(empty)} are"
    advice = [f"choose another {argument('target')}"] if targets else []
    if features:
        one = len(features) == 1
        them = ("the other" if one else "the others") if targets else ("it" if one else "them")
        drop = argument("drop", features[0] if one else list(features[:8]))
        advice.append(f"leave {them} out with {drop}{' and so on' * (len(features) > 8)}")
    return EmptyColumnError.of(f"{path}: {which} empty in every row", ", and ".join(advice))


def listed(items: Sequence[Column], most: int = 8) -> str:
    """Return the first few of many columns as text."""
    shown = ", ".join(map(repr, items[:most]))
    return f"{shown} and {len(items) - most} more" if len(items) > most else shown


class WidthError(ValueError):
    """A file with another number of columns, ``found``, than it should have."""

    def __init__(self, path: Path, found: int, wanted: int) -> None:
        self.path, self.found = path, found
        super().__init__(f"{path} has {found} columns; {argument('n_features')} is {wanted}")


def no_rows(path: Any, source: Source) -> FileFormatError:
    """Return the error that there is nothing left of a file."""
    skipped = source.skipped
    if not skipped.rows:
        return FileFormatError(f"{path} has no rows")
    empty = [name for name in skipped.empty_columns() if name not in source.target_names]
    drop = argument("drop", empty[:8])
    advice = f"; there is nothing at all in {listed(empty)}: leave out such columns with {drop}" if empty else ""
    targets = [repr(name) for name in skipped.empty_columns() if name in source.target_names]
    advice += f"; the target {', '.join(targets)} is empty" if targets else ""
    return FileFormatError(f"{path} has no rows without a missing value, of {skipped.rows:,}{advice}")


class _Unzipped(gzip.GzipFile):
    """A decompressed file that closes the file it reads from."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        super().__init__(fileobj=raw, mode="rb")

    def close(self) -> None:
        super().close()
        self._raw.close()


def open_bytes(path: Path) -> tuple[BinaryIO, Callable[[], int]]:
    """Open a file, decompressed if its name ends in .gz; return also what tells how much of it has been read."""
    raw = open(path, "rb")  # noqa: SIM115  # the caller closes what is returned, and that closes this
    if path.suffix.lower() != ".gz":
        return raw, raw.tell
    return cast(BinaryIO, _Unzipped(raw)), raw.tell


_DAMAGED: tuple[type[Exception], ...] = (EOFError, gzip.BadGzipFile, zlib.error, UnicodeError)


@contextmanager
def reading(path: Path, kind: str, *errors: type[Exception]) -> Iterator[None]:
    """Turn what a library says of a file that it makes no sense of into one sentence with the file's name."""
    try:
        yield
    except (FileFormatError, FileNotFoundError, PermissionError):
        raise
    except (*_DAMAGED, *errors) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise FileFormatError(f"{path} is damaged, or is no {kind} file: {reason[:200]}") from None
