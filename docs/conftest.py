"""The examples on the pages run in an empty folder, and without a screen."""

from pathlib import Path

import pytest

collect_ignore = ["conf.py", "check_site.py", "_extensions", "_build", "gallery", "api", "_generated"]


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that a page writes must not land in the repository."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
