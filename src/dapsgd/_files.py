"""Files that are whole or not there: written under a temporary name in the same folder, then renamed."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

__all__ = ["check_place", "replacing", "replacing_folder", "sweep", "write_text"]


@contextmanager
def replacing(path: Any, ending: str = "") -> Iterator[Path]:
    """Give the name of a file to write, which takes the place of ``path`` if the block ends without an error.

    The name ends as ``path`` does, or in ``ending`` if that has none. Whatever goes wrong, Ctrl-C included, the temporary
    file is removed and ``path`` stays as it was.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "note.txt") as temporary:
    ...         _ = temporary.write_text("whole")
    ...     [(file.name, file.read_text()) for file in Path(folder).iterdir()]
    [('note.txt', 'whole')]
    """
    path = Path(os.path.realpath(path))  # through a link, to the file it stands for
    _check_replaceable(path)
    temporary = path.with_name(f"{path.stem}.{os.getpid()}.part{path.suffix or ending}")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {path.parent} does not exist")
    try:
        yield temporary
        _sync(temporary)
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        if error.filename not in (str(temporary), temporary):
            raise
        raise type(error)(error.errno, error.strerror, str(path)) from None  # the name that somebody knows
    finally:
        temporary.unlink(missing_ok=True)


def check_place(path: Path, argument: str) -> None:
    """Raise before any work if no file can be written there; ``argument`` is what the name was given as.

    Examples
    --------
    >>> check_place(Path("no/such/folder/model.npz"), "--out")
    Traceback (most recent call last):
        ...
    FileNotFoundError: --out: the folder no/such/folder does not exist
    """
    if not path.parent.is_dir():
        home = "; ~ stands for itself here: use pathlib.Path.home()" if str(path).startswith("~") else ""
        raise FileNotFoundError(f"{argument}: the folder {path.parent} does not exist{home}")
    if path.is_dir():
        raise ValueError(f"{argument} must be a file; {path} is a folder")
    _check_replaceable(path)
    folder = Path(os.path.realpath(path)).parent  # through a link, to where it will be written
    try:
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise type(error)(f"{argument}: nothing can be written to the folder {folder}: {error.strerror}") from None


def _check_replaceable(path: Path) -> None:
    """Raise if something stands there that is no file: a folder, or a device or a pipe, which must not become one."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a file")
    if path.exists() and not path.is_file():
        raise FileExistsError(f"{path} is a device or a pipe, and would become a file; give the name of a file")


def sweep(path: Any) -> None:
    """Remove the temporary files of :func:`replacing` that processes left which were killed.

    One that another process is writing at this moment goes, too; it will notice, and nothing but its file is lost.
    """
    path = Path(os.path.realpath(path))
    ours = re.compile(re.escape(path.stem) + r"\.\d+\.part" + re.escape(path.suffix))
    for file in path.parent.iterdir():
        if ours.fullmatch(file.name):
            file.unlink(missing_ok=True)


def write_text(path: Any, text: str) -> None:
    """Write a text file, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def replacing_folder(path: Any) -> Iterator[Path]:
    """Give an empty folder to fill, which takes the place of the folder ``path`` if the block ends without an error."""
    path = Path(os.path.realpath(path))
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    old = path.with_name(f"{path.name}.{os.getpid()}.old")
    try:
        for left in (temporary, old):  # by a process of the same number that was killed
            shutil.rmtree(left, ignore_errors=True)
        temporary.mkdir()
        yield temporary
        for file in temporary.iterdir():
            _sync(file)
        if path.exists():
            os.replace(path, old)  # a folder that is not empty cannot be replaced in one go
        os.replace(temporary, path)
    finally:
        if old.exists() and not path.exists():
            os.replace(old, path)
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _sync(path: Path) -> None:
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    """Have the new name on the disk, too, where the system can do that."""
    if os.name == "posix":
        folder = os.open(path, os.O_RDONLY)
        try:
            with suppress(OSError):
                os.fsync(folder)
        finally:
            os.close(folder)
