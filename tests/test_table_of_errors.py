"""Each bad input of the table gets its error, and leaves no thread and no file behind."""

import os
import threading
from pathlib import Path

import pytest

from .bad_inputs import TABLE, write_files


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("bad")
    before = os.getcwd()
    os.chdir(path)
    write_files()
    yield path
    os.chdir(before)


def test_the_table_is_long_and_is_the_one_of_the_documentation():
    assert len(TABLE) >= 150
    page = Path(__file__).parent.parent / "docs" / "errors.md"
    rows = [line.split(" | ")[0].removeprefix("| ") for line in page.read_text().splitlines() if line.startswith("| ")]
    assert rows[2:] == list(TABLE), "run: python -m tests.bad_inputs > docs/errors.md"


@pytest.mark.parametrize("case", TABLE)
@pytest.mark.filterwarnings("default::SyntaxWarning")
def test_a_bad_input_gets_its_error_and_leaves_nothing_behind(case, folder):
    call, kind, words = TABLE[case]
    threads, files = threading.active_count(), {file.name: file.stat().st_size for file in folder.iterdir()}
    with pytest.raises(kind, match=words) as caught:
        call()
    assert len(str(caught.value)) < 600
    assert threading.active_count() == threads
    assert {file.name: file.stat().st_size for file in folder.iterdir()} == files
