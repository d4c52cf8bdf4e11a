"""Seconds to the answer, ours and the peers', side by side.

python benchmarks/peers/run.py                             the easy and the hard set, median of 5
python benchmarks/peers/run.py --set large                 many rows
python benchmarks/peers/run.py --problems fused --solvers dapsgd_ spams_
python benchmarks/peers/run.py --quick                     small problems: does everything run?
python benchmarks/peers/run.py --python adelie_=PATH       the interpreter that has a peer
"""

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np

import problems
import solvers
from measure import Study
from report import markdown

RESULTS = Path(__file__).parents[1] / "results"
LIST = "import importlib, sys; print(*importlib.import_module('solvers.' + sys.argv[1]).VARIANTS, sep='\\n')"


def variants(module, python):
    """Ask an interpreter for a solver's variants; None if it does not have the package."""
    run = subprocess.run([python, "-c", LIST, module], capture_output=True, text=True, cwd=Path(__file__).parent)
    return run.stdout.split("\n")[:-1] if run.returncode == 0 else None


def chosen_solvers(names, pythons):
    """List ``module:variant`` of all that can be imported; ours and NumPy first, so that the slow are cut early."""
    found = []
    for module in solvers.MODULES:
        wanted = [name for name in names if name.partition(":")[0] == module] if names else [module]
        if not wanted:
            continue
        if (all_variants := variants(module, pythons.get(module, sys.executable))) is None:
            print(f"{module}: not installed, left out", flush=True)
            continue
        every = [f"{module}:{variant}" if variant else module for variant in all_variants]
        found += [name for name in every if not names or {name, module, f"{name}:"} & set(wanted)]
    return found


def machine():
    """Describe the machine."""
    models = [line.split(":")[1].strip() for line in cpu_lines() if line.startswith("model name")]
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "processor": models[0] if models else platform.processor(),
        "system": platform.system(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def cpu_lines():
    """Read what Linux says of the processor."""
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def parse():
    """Read the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=problems.SETS, nargs="+", default=["easy", "hard"])
    parser.add_argument("--problems", nargs="+", help="names, of any set")
    parser.add_argument("--solvers", nargs="+", help="files, or FILE:VARIANT; FILE: is its first")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="small problems, one repeat")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds that one run may take")
    parser.add_argument("--patience", type=float, default=20.0, help="cut a solver at so many times the best")
    parser.add_argument("--python", nargs="+", default=[], metavar="PEER=PATH", help="interpreters of peers")
    parser.add_argument("--update", action="store_true", help="keep what is known of other problems in --out")
    parser.add_argument("--out", type=Path, default=RESULTS / "peers.json")
    options = parser.parse_args()
    every = {spec.name: spec for spec in problems.SETS["all"]}
    if unknown := set(options.problems or ()) - set(every):
        parser.error(f"unknown problems {sorted(unknown)}; known are {', '.join(every)}")
    if unknown := {name.partition(":")[0] for name in options.solvers or ()} - set(solvers.MODULES):
        parser.error(f"unknown solvers {sorted(unknown)}; known are {', '.join(solvers.MODULES)}")
    options.specs = [every[name] for name in options.problems or ()] or [
        spec for name in options.set for spec in problems.SETS[name]
    ]
    pairs = (pair.split("=", 1) for pair in options.python)
    options.python = {peer: str(Path(path).absolute()) for peer, path in pairs}
    if options.quick:
        options.specs, options.repeats = [problems.smaller(spec) for spec in options.specs], 1
    return options


def write(path, text):
    """Replace a file at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(text)
    os.replace(part, path)


def main():
    """Measure problem by problem; what is known so far is on disk."""
    options = parse()
    if importlib.util.find_spec("dapsgd") is None:
        sys.exit("dapsgd is not installed for this interpreter; it computes the optima")
    names = chosen_solvers(options.solvers, options.python)
    store = RESULTS / "optima.json"
    optima = json.loads(store.read_text()) if store.exists() and not options.quick else {}
    report = {"machine": machine(), "repeats": options.repeats, "patience": options.patience, "versions": {}, "problems": []}
    known = json.loads(options.out.read_text()) if options.update and options.out.exists() else report
    if any(known[key] != report[key] for key in ("machine", "repeats")):
        sys.exit(f"{options.out} was measured in another way, or on another machine: leave --update out")
    report, places = known, {about["spec"]["name"]: place for place, about in enumerate(known["problems"])}
    for spec in options.specs:
        print(f"{spec.name}: n={spec.n:,} p={spec.p:,}", flush=True)
        settings = {"repeats": options.repeats, "limit": options.limit, "patience": options.patience}
        study = Study(spec, names, options.python, optima=optima, log=lambda line: print(line, flush=True), **settings)
        result = study.run()
        if result["reference_above_lowest"] > 1e-9:
            print(f"  FISTA's optimum was {result['reference_above_lowest']:.1e} above the lowest seen", flush=True)
        place = places.setdefault(spec.name, len(report["problems"]))
        report["problems"][place : place + 1] = [result]
        report["versions"] |= {row["package"]: row["version"] for row in result["solvers"].values() if "package" in row}
        write(options.out, json.dumps(report, indent=1) + "\n")
        write(options.out.with_suffix(".md"), markdown(report))
        if not options.quick:
            write(store, json.dumps(optima, indent=1) + "\n")
    print("\n" + markdown(report))


if __name__ == "__main__":
    main()
