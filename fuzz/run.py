"""Fuzz the readers of files, guided by coverage: ``python fuzz/run.py csv --runs 1000000``, or ``all``.

Needs atheris (``pip install 'dapsgd[fuzz]'``). A finding is written to ``fuzz/findings`` and ends the program with an error;
``python fuzz/run.py csv --file PATH`` shows it again.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
MEMORY = 1 << 30  # bytes beyond what the process has at its start; files are small


def fuzz(name: str, runs: int, seconds: int, seed: int) -> None:
    import atheris

    with atheris.instrument_imports(include=["dapsgd.io", "dapsgd.models", "dapsgd.checkpoints", "csv", "zipfile", "json"]):
        import targets

        target = targets.TARGETS[name]
        with tempfile.TemporaryDirectory() as corpus:
            for number, content in enumerate(target.seeds()):
                (Path(corpus) / f"seed{number}").write_bytes(content)
                assert targets.check(name, content), f"{name}: seed {number} is refused"
            findings = HERE / "findings"
            findings.mkdir(exist_ok=True)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
            limits = resource.getrlimit(resource.RLIMIT_DATA)
            resource.setrlimit(resource.RLIMIT_DATA, (before + 4 * MEMORY, limits[1]))
            options = [f"-runs={runs}", "-max_len=4096", "-timeout=20", f"-seed={seed}", f"-artifact_prefix={findings}/{name}-"]
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
    parser.add_argument("--file", type=Path, help="feed this file to the reader, and nothing else")
    options = parser.parse_args()
    if options.file is not None:
        import targets

        print("accepted" if targets.check(options.reader, options.file.read_bytes()) else "refused")
    elif options.reader == "all":
        import targets

        for name in targets.TARGETS:
            print(f"{name}:", flush=True)
            arguments = ["--runs", str(options.runs), "--seconds", str(options.seconds), "--seed", str(options.seed)]
            subprocess.run([sys.executable, __file__, name, *arguments], check=True)
    else:
        fuzz(options.reader, options.runs, options.seconds, options.seed)


if __name__ == "__main__":
    main()
