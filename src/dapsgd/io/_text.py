"""Text in files: its lines but for some at the top, and what is said of bytes that are no text."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .._arguments import argument
from .._summaries import counted
from ..errors import FileFormatError
from ._source import open_bytes, reading

__all__ = ["check_text", "open_lines", "reading_text"]

_MISREAD_MARK = codecs.BOM_UTF8.decode("cp1252")
_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_HEAD = 1 << 12  # bytes that are looked at to guess an encoding
_PIECE = 1 << 20  # bytes that are decoded at once to see whether it is that one


@contextmanager
def open_lines(path: Path, encoding: str | None, skip: int) -> Iterator[tuple[Iterator[str], Callable[[], int]]]:
    """Give the lines of a file but for the first few, and what tells how much of it has been read.

    Without an encoding they are UTF-8.
    """
    file, tell = open_bytes(path)
    with reading_text(path, encoding), file, io.TextIOWrapper(file, _codec(encoding), newline="") as text:
        first = next(text, "").removeprefix("\ufeff")  # a mark that utf-16-le and the like leave there
        lines = itertools.chain([first] if first else [], text)
        for k in range(skip):
            if next(lines, None) is None:
                raise FileFormatError(f"{path} has {counted(k, 'line')}; {argument('skip_lines', skip)} leaves nothing")
        yield lines, tell


def _codec(encoding: str | None) -> str:
    return encoding or "utf-8-sig"


@contextmanager
def reading_text(path: Path, encoding: str | None, *errors: type[Exception]) -> Iterator[None]:
    """Turn what goes wrong with a table in text into one sentence with the file's name."""
    with reading(path, "CSV", csv.Error, *errors):
        try:
            yield
        except UnicodeError:
            raise _not_text(path, encoding, _undecodable(path, _codec(encoding))) from None


def check_text(path: Path, encoding: str | None, first: str, line: int) -> None:
    """Refuse a file whose first line could be decoded and yet is no text in an encoding."""
    if "\0" in first or (encoding is not None and first.startswith(_MISREAD_MARK)):
        raise _not_text(path, encoding, line)


def _not_text(path: Path, encoding: str | None, line: int) -> FileFormatError:
    """Return the error that a line is no text in an encoding."""
    likely = _likely(path, encoding or "utf-8")
    which = f"with {argument('encoding')}" if likely is None else f"such as {argument('encoding', likely)}"
    it = "if it is a CSV file at all, save it" if likely is None else "save the file"
    return FileFormatError(
        f"{path}: line {line} is not {encoding or 'UTF-8'} text; {it} as UTF-8, or say what it is in, {which}"
    )


def _likely(path: Path, known: str) -> str | None:
    """Return a usual encoding in which a file may be, other than a known one in which it is not."""
    file, _ = open_bytes(path)
    with file:
        head = file.read(_HEAD)
    if head.startswith(_MARKS):
        names = ["utf-16"]
    else:
        names = ["utf-16-le", "utf-16-be"] if b"\0" in head else ["utf-8", "cp1252"]
    not_again = codecs.lookup(known).name
    return next((name for name in names if codecs.lookup(name).name != not_again and _may_be(path, name)), None)


def _may_be(path: Path, encoding: str) -> bool:
    """Tell whether a file is text in an encoding, and printable as far as its first bytes go."""
    decoder = codecs.getincrementaldecoder(encoding)()
    file, _ = open_bytes(path)
    try:
        with file:
            first = decoder.decode(file.read(_HEAD))
            while piece := file.read(_PIECE):
                decoder.decode(piece)
            decoder.decode(b"", final=True)
    except UnicodeError:
        return False
    return all(sign.isprintable() or sign.isspace() for sign in first.removeprefix("\ufeff"))


def _undecodable(path: Path, encoding: str) -> int:
    """Return the first line that is no text."""
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(encoding)(), translate=True)
    line = 1
    file, _ = open_bytes(path)
    with file:
        for piece in file:
            before = decoder.getstate()
            try:
                line += decoder.decode(piece).count("\n")
            except UnicodeError:
                decoder.setstate(before)
                return line + _line_ends(decoder, piece)
    return line


def _line_ends(decoder: io.IncrementalNewlineDecoder, piece: bytes) -> int:
    """Count the ends of lines in front of what is no text; a piece is no line where a sign has several bytes."""
    count = 0
    for byte in piece:
        try:
            count += decoder.decode(bytes([byte])).count("\n")
        except UnicodeError:
            break
    return count
