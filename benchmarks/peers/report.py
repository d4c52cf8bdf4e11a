"""Tables in Markdown; ``python benchmarks/peers/report.py benchmarks/results/peers.json`` writes them again to ``peers.md``."""

import json
import sys
from pathlib import Path

OURS = "dapsgd_"


def label(solver):
    """A solver's name for a reader."""
    module, _, variant = solver.partition(":")
    return f"{module.removesuffix('_').replace('_', ' ')}" + (f" ({variant})" if variant else "")


def median_of(problem, solver, goal):
    """Seconds, or None."""
    goals = problem["solvers"].get(solver, {}).get("goals", {})
    return next((found.get("median") for key, found in goals.items() if float(key) == goal), None)  # keys in a file are text


def best_peer(problem, goal):
    """The fastest solver that is not ours, and its seconds."""
    times = {name: median_of(problem, name, goal) for name in problem["solvers"] if not name.startswith(OURS)}
    times = {name: seconds for name, seconds in times.items() if seconds}
    return min(times.items(), key=lambda item: item[1]) if times else (None, None)


def seconds_text(value):
    """Three digits."""
    return f"{value:#.3g}".rstrip(".") if value else "–"


def accuracy_text(goal):
    """A power of ten as such, so that no line is broken at its minus sign; anything else as a number."""
    exponent = f"{goal:.0e}".partition("e")[2]
    power = "10" + str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return power if goal == float(f"1e{exponent}") else f"{goal:g}"


def size_text(spec):
    """Rows, columns, targets."""
    targets = f" x {spec['targets']}" if spec["targets"] > 1 else ""
    return f"n={spec['n']:,} p={spec['p']:,}{targets}"


def comparison(report):
    """The best peer against ours, at each accuracy."""
    lines = [
        "| problem | size | to | best peer | seconds | dapsgd | ratio | with 1 worker | dap-svrg, 1 worker | 2 workers |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for problem in report["problems"]:
        for goal in problem["spec"]["goals"]:
            peer, seconds = best_peer(problem, goal)
            ours = median_of(problem, OURS, goal)
            cells = [
                problem["spec"]["name"],
                size_text(problem["spec"]),
                accuracy_text(goal),
                label(peer) if peer else "–",
                seconds_text(seconds),
                seconds_text(ours),
                f"{ours / seconds:.2f}" if ours and seconds else "–",
                *(seconds_text(median_of(problem, f"{OURS}:{name}", goal)) for name in ("one", "dap-svrg-1", "dap-svrg-2")),
            ]
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def matrix(report):
    """Every solver on every problem, to the last accuracy."""
    names = list(dict.fromkeys(name for problem in report["problems"] for name in problem["solvers"]))
    problems = report["problems"]
    lines = ["| | " + " | ".join(problem["spec"]["name"] for problem in problems) + " |"]
    lines.append("| --- |" + " --- |" * len(problems))
    for name in names:
        cells = [seconds_text(median_of(problem, name, problem["spec"]["goals"][-1])) for problem in problems]
        lines.append(f"| {label(name)} | " + " | ".join(cells) + " |")
    return lines


def left_out(report):
    """Who is missing where, and why."""
    reasons = {}
    for problem in report["problems"]:
        for name, row in problem["solvers"].items():
            if "left_out" in row:
                reasons.setdefault(label(name), {}).setdefault(row["left_out"], []).append(problem["spec"]["name"])
    lines = {name: "; ".join(f"{why} ({', '.join(where)})" for why, where in found.items()) for name, found in reasons.items()}
    return [f"- {name}: {line}" for name, line in lines.items()]


def compile_times(report):
    """What the first call costs beyond the second, at most, with the import."""
    worst = {}
    for problem in report["problems"]:
        for name, row in problem["solvers"].items():
            if "compile_seconds" in row:
                old = worst.get(label(name), (0.0, 0.0))
                worst[label(name)] = max(old[0], row["import_seconds"]), max(old[1], row["compile_seconds"])
    return [f"- {name}: import {first:.1f} s, first call {second:.1f} s longer" for name, (first, second) in worst.items()]


def markdown(report):
    """The whole page."""
    machine = ", ".join(f"{key} {value}" for key, value in report["machine"].items())
    versions = ", ".join(f"{name} {number}" for name, number in sorted(report["versions"].items()))
    cut = f" Solvers are cut at {report['patience']:g} times the best." if "patience" in report else ""
    parts = [
        [
            "# Against peers",
            "",
            f"Seconds to relative suboptimality, median of {report['repeats']}; ratio: ours / best peer's.{cut}",
        ],
        [machine, "", versions],
        comparison(report),
        ["## All solvers, to the last accuracy"],
        matrix(report),
        ["## Left out"],
        left_out(report),
        ["## Outside the clock"],
        compile_times(report),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


if __name__ == "__main__":
    source = Path(sys.argv[1])
    source.with_suffix(".md").write_text(markdown(json.loads(source.read_text())))
