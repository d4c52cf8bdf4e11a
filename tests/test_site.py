"""The site: its checker finds what it should, and what is said in several places agrees."""

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

import dapsgd as ds

ROOT = Path(__file__).parent.parent


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def found(folder, **files):
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(exist_ok=True)
        path.with_suffix(".css" if name.endswith("css") else ".html").write_text(text)
    return list(load(ROOT / "docs" / "check_site.py").problems(folder))


def test_the_checker_lets_a_good_site_pass(tmp_path):
    (tmp_path / "dot.png").write_bytes(b"x")
    index = '<a href="other.html#here">o</a> <a href="https://elsewhere.org">e</a> <img src="dot.png" srcset="dot.png 2x">'
    other = '<p id="here"></p><a href="#here">h</a><img src="data:image/png;base64,AA">'
    assert found(tmp_path, index=index, other=other) == []


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        ('<a href="gone.html">x</a>', "leads nowhere"),
        ('<a href="index.html#gone">x</a>', "without that place"),
        ('<a href="#gone">x</a>', "without that place"),
        ('<img src="gone.png">', "is missing"),
        ('<img srcset="index.html 1x, gone.png 2x">', "gone.png is missing"),
        ('<img src="empty.png">', "is empty"),
        ('<script src="https://cdn.example.org/x.js"></script>', "from the network"),
        ('<link rel="stylesheet" href="//cdn.example.org/x.css">', "from the network"),
        ('<p style="background: url(http://example.org/a.png)">x</p>', "from the network"),
        ("<style>@import 'https://example.org/a.css';</style>", "from the network"),
    ],
)
def test_the_checker_complains(page, complaint, tmp_path):
    (tmp_path / "empty.png").write_bytes(b"")
    (problem,) = found(tmp_path, index=page)
    assert complaint in problem


def test_the_checker_reads_style_sheets(tmp_path):
    assert "from the network" in found(tmp_path, index="", css="a { src: url('https://fonts.example.org/f.woff') }")[0]


def test_the_checker_complains_about_nothing(tmp_path):
    assert "no page" in found(tmp_path)[0]


def test_every_public_name_has_a_place_on_the_page_of_the_api():
    page = load(ROOT / "docs" / "_extensions" / "public.py").page()
    listed = set(re.findall(r"^   dapsgd\.(\S+)$", page, re.MULTILINE))
    assert {name for name in ds.__all__ if callable(getattr(ds, name))} <= listed
    assert {f"callbacks.{name}" for name in ds.callbacks.__all__} <= listed


def test_what_was_measured_is_written_or_said_to_be_missing(tmp_path):
    measured = load(ROOT / "docs" / "_extensions" / "measured.py")
    assert "make bench-peers" in measured.peers(tmp_path / "peers.md")
    (tmp_path / "peers.md").write_text("# Title\n\ntext\n\n## Part\n")
    assert measured.peers(tmp_path / "peers.md") == "\ntext\n\n### Part\n"
    assert "make bench" in measured.throughput(tmp_path / "gone.json")
    kept = ROOT / "benchmarks" / "results" / "throughput.json"
    assert "dap-sgd, 2 workers" in measured.throughput(kept).splitlines()[0]


def test_the_tables_against_peers_are_those_of_the_figures():
    report = load(ROOT / "benchmarks" / "peers" / "report.py")
    kept = ROOT / "benchmarks" / "results" / "peers.json"
    large = kept.with_name("peers_large.json")
    for path in (kept, large):
        assert report.markdown(json.loads(path.read_text(encoding="utf-8"))) == path.with_suffix(".md").read_text(
            encoding="utf-8"
        )
    assert [report.accuracy_text(goal) for goal in (1e-3, 1e-12, 5e-4)] == ["10⁻³", "10⁻¹²", "0.0005"]


@pytest.mark.parametrize("page", [*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md")], ids=lambda page: page.name)
def test_links_lead_somewhere_also_where_no_site_was_built(page):
    for mark, address in re.findall(r"(!?)\[[^\]]*\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if not re.match(r"\w+:|#", address) and not (mark and address.startswith("gallery/")):  # which the examples draw
            assert (page.parent / address.partition("#")[0]).exists(), address


def test_every_page_is_in_a_table_of_contents():
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    listed = set()
    for path in (ROOT / "docs").glob("*.md"):
        for block in re.findall(r"^```\{toctree\}\n(.*?)^```", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
            listed |= {line for line in block.splitlines() if line and not line.startswith(":")}
    assert pages <= listed


def test_every_peer_has_one_file_for_benchopt():
    sys.path.insert(0, str(ROOT / "benchmarks" / "peers"))
    try:
        modules = importlib.import_module("solvers").MODULES
    finally:
        sys.path.pop(0)
        sys.modules.pop("solvers", None)
    named = {}
    for path in (ROOT / "benchmarks" / "solvers").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        (module,) = re.findall(r'^    module = "(\w+)"$', text, re.MULTILINE)
        named[module] = text
    assert set(named) == set(modules)
    for module, text in named.items():
        adapter = (ROOT / "benchmarks" / "peers" / "solvers" / f"{module}.py").read_text(encoding="utf-8")
        variants = re.findall(r'"([^"]*)"', re.search(r"^VARIANTS = (.*)$", adapter, re.MULTILINE)[1])
        assert re.findall(r'"([^"]*)"', re.search(r'"variant": \[(.*)\]', text)[1]) == variants
        by_tolerance = re.search(r"^BUDGETS = (\w+)", adapter, re.MULTILINE)[1] == "tolerances"
        assert f'sampling_strategy = "{"tolerance" if by_tolerance else "iteration"}"' in text
