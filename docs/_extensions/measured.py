"""Writes what was measured, for the page on performance: from ``benchmarks/results``, or a sentence where a file is missing."""

import json
from pathlib import Path

DOCS = Path(__file__).parent.parent
RESULTS = DOCS.parent / "benchmarks" / "results"
LABELS = {"l1": "L1", "group": "group lasso", "fused": "fused lasso", "nuclear": "nuclear norm"}
ABSENT = "This copy of the documentation was built without these figures: `{command}` writes `benchmarks/results/{file}`."


def peers(path):
    """Return the tables that ``make bench-peers`` writes, without their title and one level down."""
    if not path.exists():
        return ABSENT.format(command="make bench-peers", file=path.name)
    return path.read_text(encoding="utf-8").partition("\n")[2].replace("\n## ", "\n### ")


def throughput(path):
    """Return a table of updates per second."""
    if not path.exists():
        return ABSENT.format(command="make bench", file=path.name)
    report = json.loads(path.read_text(encoding="utf-8"))
    rows = {}
    for cell in report["cells"]:
        name = f"{LABELS.get(cell['kind'], cell['kind'])}, {cell['m']:,} parameters"
        rows.setdefault(name, {})[cell["algorithm"], cell["workers"]] = cell["updates_per_second"]
    columns = list(dict.fromkeys(key for row in rows.values() for key in row))
    lines = ["| | " + " | ".join(f"{name}, {k} worker{'s' * (k != 1)}" for name, k in columns) + " |"]
    lines.append("| --- |" + " --: |" * len(columns))
    for name, row in rows.items():
        lines.append(f"| {name} | " + " | ".join(f"{row[key]:,.0f}" if key in row else "" for key in columns) + " |")
    machine = ", ".join(f"{key} {value}" for key, value in report["machine"].items())
    return "\n".join([*lines, "", f"Updates per second, median of {report['repeats']}. {machine}."])


def write(app):
    """Write the files that the page includes, if they changed."""
    folder = DOCS / "_generated"
    folder.mkdir(exist_ok=True)
    for name, text in (
        ("peers.md", peers(RESULTS / "peers.md")),
        ("peers_large.md", peers(RESULTS / "peers_large.md")),
        ("throughput.md", throughput(RESULTS / "throughput.json")),
    ):
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text + "\n":
            path.write_text(text + "\n", encoding="utf-8")


def setup(app):
    """Make it known to Sphinx."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
