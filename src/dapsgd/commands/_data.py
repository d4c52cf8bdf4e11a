"""The data of a command: read, or converted once if large."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from ..io import Dataset, convert, default_folder, read
from ..io._source import make_options

__all__ = ["LARGE", "load_data"]

LARGE = 50_000_000  # bytes; a larger file is converted once


def load_data(path: Path, options: dict[str, Any], *, convert_it: bool | None, cache: Path | None, progress: bool) -> Dataset:
    """Read a file, or convert it and open what was converted."""
    if convert_it is False and cache is not None:
        raise ValueError("--cache and --no-convert must not be given together")
    make_options(**options)  # what is wrong with them is said before a folder is made
    large = path.is_file() and path.stat().st_size > LARGE
    if convert_it is None:
        convert_it = large or cache is not None
    if not convert_it:
        return read(path, **options)
    return convert(path, _folder(path, options, cache), progress=progress, **options)


def _folder(path: Path, options: dict[str, Any], cache: Path | None) -> Path:
    if cache is None:
        return default_folder(path)
    if cache.exists() and not cache.is_dir():
        raise ValueError(f"--cache must be a folder; {cache} is a file")
    cache.mkdir(parents=True, exist_ok=True)
    key = json.dumps([str(path.resolve()), options], sort_keys=True, default=str)
    return cache / f"{path.name}-{hashlib.sha256(key.encode()).hexdigest()[:12]}.dapsgd"
