"""Compiled code kept on disk, so that it is compiled once and not in every process.

One file a specialisation, in a folder named after a hash of this package's sources: numba by itself does not notice an edit in
another file than the kernel's. A file's name is a hash of the signature, so processes that compile at the same time cannot mix
up each other's files, as they can in numba's numbered index.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import logging
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["cache_folder", "make_cache", "say_that_it_compiles"]

# Parts of the package that hold no compiled code: editing them leaves what is kept on disk valid.
_NEVER_COMPILED = {
    "callbacks",
    "commands",
    "estimators",
    "experiments",
    "io",
    "runtimes/ray",
    "_disk_cache.py",
    "_files.py",
    "_fingerprint.py",
    "_imports.py",
    "_kept.py",
    "_memory.py",
    "_monitor.py",
    "_passes.py",
    "_points.py",
    "_progress.py",
    "_signals.py",
    "_summaries.py",
    "_team.py",
    "_trials.py",
    "auto.py",
    "checkpoints.py",
    "choices.py",
    "cli.py",
    "demo.py",
    "dual.py",
    "factored.py",
    "free.py",
    "full.py",
    "gram.py",
    "joint_search.py",
    "lam_max.py",
    "models.py",
    "partitions.py",
    "path.py",
    "path_model.py",
    "plots.py",
    "quadratic.py",
    "result.py",
    "search.py",
    "shares.py",
    "solve.py",
    "spaces.py",
    "sprint.py",
    "theory.py",
    "working_set.py",
}


def make_cache(function: Callable[..., Any], folder: Path) -> Any:
    """Build a numba cache that stores one file a specialisation, named after a hash of its signature."""
    from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator

    class Locator(_CacheLocator):
        _py_file = inspect.getfile(function)

        def get_cache_path(self) -> str:
            return str(folder)

        def get_source_stamp(self) -> str:
            return folder.name

        def get_disambiguator(self) -> str:
            return ""

    class Impl(CompileResultCacheImpl):
        def __init__(self, py_func: Callable[..., Any]) -> None:
            self._lineno = py_func.__code__.co_firstlineno
            self._locator = Locator()
            self._filename_base = f"{py_func.__module__}.{py_func.__qualname__}"

    class KernelCache(FunctionCache):
        _impl_class = Impl

        def __init__(self, py_func: Callable[..., Any]) -> None:
            super().__init__(py_func)
            self._cache_file = _FilePerSpecialisation(folder, self._impl.filename_base)

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            found = None
            with contextlib.suppress(Exception):  # a damaged file: compile again
                found = super().load_overload(sig, target_context)
            if found is None:
                say_that_it_compiles()
            return found

    return KernelCache(function)


class _FilePerSpecialisation:
    """What numba calls an index file, without an index."""

    def __init__(self, folder: Path, stem: str) -> None:
        self._folder, self._stem = folder, stem

    def _path(self, key: Any) -> Path:
        return self._folder / f"{self._stem}-{hashlib.sha256(repr(key).encode()).hexdigest()[:24]}.nbc"

    def load(self, key: Any) -> Any:
        from numba.core.serialize import pickle

        try:
            return pickle.loads(self._path(key).read_bytes())
        except Exception:  # absent, damaged or written by another version of a dependency: compile again
            return None

    def save(self, key: Any, data: Any) -> None:
        from numba.core.serialize import dumps

        path = self._path(key)
        handle, temporary = tempfile.mkstemp(dir=self._folder, prefix=path.stem)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(dumps(data))
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary)

    def flush(self) -> None:
        for path in self._folder.glob(f"{self._stem}-*.nbc"):
            path.unlink(missing_ok=True)


@functools.cache  # once in a process
def say_that_it_compiles() -> None:
    """Say why nothing seems to happen for some seconds; on the standard error, unless logging is set up otherwise."""
    folder = cache_folder()
    if folder is None:
        wait = "in every process, as there is no folder to keep it in: set NUMBA_CACHE_DIR to one"
    elif any(folder.glob("*.nbc")):
        wait = "for a new kind of problem, which takes a few seconds once"
    else:
        wait = "for the first time, which takes some ten seconds once"
    logging.getLogger("dapsgd").warning("dapsgd compiles %s", wait)


@functools.cache
def cache_folder() -> Path | None:
    """Return the folder of compiled code for these very sources; None if no folder can be written."""
    import llvmlite
    import numba

    digest = hashlib.sha256()
    package = Path(__file__).parent
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).parts
        if not {parts[0], "/".join(parts[:2])} & _NEVER_COMPILED:
            digest.update(path.read_bytes())
    for part in (sys.version, numba.__version__, llvmlite.__version__):
        digest.update(part.encode())
    base = os.environ.get("NUMBA_CACHE_DIR") or os.path.join(_user_cache(), "dapsgd")
    folder = Path(base) / f"dapsgd-{digest.hexdigest()[:16]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return None


def _user_cache() -> str:
    if sys.platform == "win32":
        return os.environ.get("LOCALAPPDATA") or os.path.expanduser("~\\AppData\\Local")
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Caches")
    return os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
