"""Configuration of the site. ``make docs`` builds it; nothing that a page loads comes from the network."""

import re
import sys
from pathlib import Path
from typing import Any

import dapsgd

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

project = "dapsgd"
author = "The dapsgd developers"
copyright = author
version = release = dapsgd.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "measured",
    "public",
]
exclude_patterns = ["_build", "_generated", "_extensions", "gallery/*.md", "gallery/GALLERY_HEADER.rst"]
templates_path = ["_templates"]
suppress_warnings = ["config.cache"]  # the gallery's sorting function is not pickled

myst_enable_extensions = ["dollarmath", "colon_fence", "attrs_inline"]
myst_heading_anchors = 3

toc_object_entries_show_parents = "hide"
autosummary_generate = True
autosummary_filename_map = {  # names that differ in case only
    "dapsgd.path": "dapsgd.path-function",
    "dapsgd.theory.constants": "dapsgd.theory.constants-function",
}
autodoc_typehints = "none"  # the docstrings say it
numpydoc_show_class_members = False  # the template lists them
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = f"dapsgd {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system is
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "show_toc_level": 2,
}
html_sidebars = {"changelog": [], "contributing": [], "start": []}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"(^|/)(?!plot_)[^/]*\.py$",
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "within_subsection_order": "FileNameSortKey",
    "min_reported_time": 1e9,  # seconds depend on the machine
    "write_computation_times": False,
    "show_memory": False,
}


def _close_up(app: object, page: str, source: list[str]) -> None:
    """Drop the empty line that a doctest needs before the end of its block, and a reader does not."""
    source[0] = re.sub(r"\n[ \t]*\n(?=```[ \t]*\n)", "\n", source[0])


def _to_gallery(app: object, page: str, source: list[str]) -> None:
    """Let links to examples and to CONTRIBUTING.md, which work in plain files, lead to the pages that are made of them."""
    source[0] = re.sub(r"\]\(\.\./examples/(plot_\w+)\.py\)", r"](gallery/\1.rst)", source[0])
    source[0] = source[0].replace("](../examples)", "](gallery/index.rst)")
    source[0] = source[0].replace("](../CONTRIBUTING.md", "](contributing.md")


def setup(app: Any) -> None:
    """Tell Sphinx."""
    app.connect("source-read", _close_up)
    app.connect("source-read", _to_gallery)
