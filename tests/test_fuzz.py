"""Every reader of files, fed with damaged files: a deterministic sample of what ``make fuzz`` does for long."""

import io
import random
import sys
import tracemalloc
import zipfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "fuzz"))
import mutate

import targets

FILES = 150  # a reader


@pytest.mark.parametrize("name", targets.TARGETS)
@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
def test_a_damaged_file_is_refused_in_words_or_read(name):
    seeds, rng = targets.TARGETS[name].seeds(), random.Random(name)
    for seed in seeds:
        assert targets.check(name, seed)
    accepted = 0
    for _ in range(FILES):
        content = mutate.mutate(rng.choice(seeds), rng)
        try:
            accepted += targets.check(name, content)
        except Exception as error:
            raise AssertionError(f"{name} fails on {content!r}") from error
    assert accepted < FILES


@pytest.mark.parametrize("name", ["npz", "model", "checkpoint"])
@pytest.mark.parametrize("way", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_an_archive_that_numpy_would_not_write_is_refused(name, way):
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(targets.TARGETS[name].seeds()[0])) as seed, zipfile.ZipFile(packed, "w", way) as archive:
        for entry in seed.namelist():
            archive.writestr(entry, seed.read(entry))
    content = packed.getvalue()
    assert not targets.check(name, content)
    if way == zipfile.ZIP_LZMA:  # a dictionary of 4 GB, and what is no setting at all
        for bad in (b"\x5d\xff\xff\xff\xff", b"\xff\xff\xff\xff\xff"):
            assert not targets.check(name, content.replace(b"\x5d\x00\x00\x80\x00", bad))


@pytest.mark.parametrize("name", ["csv", "npy", "npz", "model", "checkpoint"])
def test_the_memory_of_a_reader_is_bounded_by_the_file(name):
    rng, seeds = random.Random(0), targets.TARGETS[name].seeds()
    targets.check(name, seeds[0])
    tracemalloc.start()
    try:
        for _ in range(40):
            targets.check(name, mutate.mutate(rng.choice(seeds), rng))
        assert tracemalloc.get_traced_memory()[1] < 1 << 26  # a block of rows and what is around it
    finally:
        tracemalloc.stop()
