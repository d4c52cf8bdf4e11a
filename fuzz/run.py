"""Fuzz the readers of files, guided by coverage: ``python fuzz/run.py csv --runs 1000000``, or ``all``.

Needs atheris (``pip install 'dapsgd[fuzz]'``). A finding is written to ``fuzz/findings`` and ends the program with an error;
``python fuzz/run.py csv --file PATH`` shows it again.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import warnings
from functools import lru_cache
from pathlib import Path
from types import FunctionType
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
LONGEST = 4096  # bytes of a file
MEMORY = 1 << 29  # bytes beyond what the process has at its start; files are small


def instrument(atheris: Any, archives: bool) -> None:
    """Have every function that reads a file report which of its branches it takes; compiled code is left alone.

    Those of zipfile only if ``archives``: an archive that is changed from within is always one.
    """
    import zipfile

    from dapsgd import checkpoints, io, models
    from dapsgd.runtimes._crew import Crew

    inside = [module for name, module in sys.modules.items() if name.startswith(f"{io.__name__}.")]
    for module in (*inside, models, checkpoints, *([zipfile] if archives else [])):
        for thing in list(vars(module).values()):
            if getattr(thing, "__module__", None) != module.__name__:
                continue
            for function in vars(thing).values() if isinstance(thing, type) else (thing,):
                if isinstance(function, FunctionType):
                    atheris.instrument_func(function)
    atheris.instrument_func(Crew.restore)


def hurry() -> None:
    """Take out what costs time and is the same for every file: arguments of ours, headers seen before, old objects."""
    import ast
    import gc

    import sklearn

    gc.freeze()
    sklearn.set_config(skip_parameter_validation=True)
    ast.literal_eval = lru_cache(4096)(ast.literal_eval)


def fuzz(name: str, runs: int, seconds: int, seed: int) -> None:
    import atheris

    import targets

    warnings.simplefilter("error")  # a file that is refused must not first be complained about in NumPy's words
    target, findings = targets.TARGETS[name], HERE / "findings"
    findings.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as corpus:
        for number, content in enumerate(target.seeds()):
            (Path(corpus) / f"seed{number}").write_bytes(content)
            assert targets.check(name, content), f"{name}: seed {number} is refused"
            assert len(content) <= LONGEST, f"{name}: seed {number} would be cut off"
        instrument(atheris, archives=not name.endswith("-inside"))
        hurry()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        options = [
            f"-runs={runs}",
            f"-max_len={LONGEST}",
            "-timeout=20",
            f"-seed={seed}",
            f"-artifact_prefix={findings}/{name}-",
        ]
        options += ["-print_final_stats=1", f"-rss_limit_mb={(before + MEMORY) >> 20}"]
        options += [f"-max_total_time={seconds}"] if seconds else []
        atheris.Setup([sys.argv[0], *options, corpus], lambda content: targets.check(name, content) and None)
        atheris.Fuzz()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reader", help="the name of a reader, or all")
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=int, default=0, help="of each reader at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--here", action="store_true", help="in this process")
    parser.add_argument("--file", type=Path, help="feed this file to the reader, and nothing else")
    options = parser.parse_args()
    import targets

    if options.file is not None:
        print("accepted" if targets.check(options.reader, options.file.read_bytes()) else "refused")
        return
    if options.here:
        fuzz(options.reader, options.runs, options.seconds, options.seed)
        return
    arguments = ["--here", "--runs", str(options.runs), "--seconds", str(options.seconds), "--seed", str(options.seed)]
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    for name in targets.TARGETS if options.reader == "all" else [options.reader]:
        print(f"{name}:", flush=True)
        # The fuzzer ends its process at once, whatever is left behind; so somebody else has to clear up.
        with tempfile.TemporaryDirectory(dir=memory, prefix="dapsgd-fuzz-") as folder:
            ended = subprocess.run([sys.executable, __file__, name, *arguments], env=os.environ | {"TMPDIR": folder})
        if ended.returncode != 0:
            sys.exit(ended.returncode)


if __name__ == "__main__":
    main()
