"""Every reader of files, fed with damaged files: a deterministic sample of what ``make fuzz`` does for long."""

import random
import sys
import tracemalloc
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
