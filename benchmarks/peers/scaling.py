"""How cost grows: seconds of dapsgd to 1e-6 as rows, columns, groups, rank grow by 2, 4, 8, 16; exponents and a picture.

python benchmarks/peers/scaling.py [--quick]
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

import problems
from measure import Study
from run import RESULTS, machine, write

GOAL = (1e-6,)
FACTORS = (1, 2, 4, 8, 16)


def families(share):
    """For each thing that grows: the problems, smallest first."""

    def grow(label, base, **fields):
        sizes = [{name: rule(factor) for name, rule in fields.items()} for factor in FACTORS]
        return label, [base._replace(name=f"{label} x{f}", **size) for f, size in zip(FACTORS, sizes, strict=True)]

    n, p = int(4_000 * share), int(200 * share)
    group = problems.Spec("", "group", n, p, active=3, goals=GOAL)
    fused = group._replace(penalty="fused", active=5)
    logistic = fused._replace(loss="logistic")
    nuclear = group._replace(penalty="nuclear", p=p // 2, targets=p // 2, active=2)
    few = max(20, int(1_600 * share))
    return dict(
        [
            grow("rows, group lasso", group, n=lambda f: f * n),
            grow("rows, fused lasso", fused, n=lambda f: f * n),
            grow("rows, fused lasso, logistic", logistic, n=lambda f: f * n),
            grow("columns, group lasso", group, p=lambda f: f * p),
            grow("columns, fused lasso", fused, p=lambda f: f * p),
            grow("groups, the same columns", group._replace(p=few), size=lambda f: few // (5 * f), active=lambda f: f),
            grow("rank", nuclear, active=lambda f: f),
        ]
    )


def seconds(spec, options):
    """Measure one problem."""
    settings = {"limit": 120.0, "patience": 20.0, "optima": {}, "log": lambda line: print(f"{spec.name}: {line.strip()}")}
    row = Study(spec, ["dapsgd_"], {}, repeats=options.repeats, **settings).run()["solvers"]["dapsgd_"]
    return row["goals"].get(1e-6, {}).get("median")


def exponent(times):
    """Fit seconds = c factor^a."""
    known = [(factor, value) for factor, value in zip(FACTORS, times, strict=True) if value]
    return float(np.polyfit(*np.log(np.array(known)).T, 1)[0]) if len(known) > 1 else None


def draw_picture(report, path):
    """Draw all families on one log-log picture."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 6), layout="constrained")
    for label, family in report["families"].items():
        fitted = "" if family["exponent"] is None else f": exponent {family['exponent']:.2f}"
        axes.loglog(FACTORS, [value or np.nan for value in family["seconds"]], "o-", label=label + fitted)
    axes.set(xlabel="grown by", ylabel="seconds to 1e-6", xticks=FACTORS, xticklabels=FACTORS)
    figure.legend(fontsize=8, loc="outside lower center", ncols=2)
    figure.savefig(path, dpi=150)


def main():
    """Measure, fit, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a fifth of the size, one repeat")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RESULTS / "scaling.json")
    options = parser.parse_args()
    if options.quick:
        options.repeats = 1
    report = {"machine": machine(), "repeats": options.repeats, "factors": FACTORS, "families": {}}
    for label, specs in families(0.2 if options.quick else 1.0).items():
        times = [seconds(spec, options) for spec in specs]
        report["families"][label] = {"seconds": times, "exponent": exponent(times)}
        print(f"{label}: exponent {report['families'][label]['exponent']}", flush=True)
        write(options.out, json.dumps(report, indent=1) + "\n")
    draw_picture(report, options.out.with_suffix(".png"))


if __name__ == "__main__":
    sys.exit(main())
