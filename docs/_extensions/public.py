"""Writes the page of the API from the public names, so that no name can be forgotten."""

import inspect
import sys
from importlib import import_module
from pathlib import Path

import dapsgd

DOCS = Path(__file__).parent.parent

# Title, and the modules whose public names belong there. The first that fits takes a name.
SECTIONS = [
    ("Problem, solve, result", ("problem", "solve", "path", "_terms", "result", "checkpoints")),
    ("Losses", ("losses",)),
    ("Regularisers", ("regularizers", "_trials")),
    ("Steps", ("steps",)),
    ("Runtimes", ("runtimes",)),
    ("Estimators", ("estimators",)),
    ("Callbacks", ("_monitor", "callbacks")),
    ("Files", ("io", "models")),
    ("Theory", ("theory",)),
    ("Errors", ("errors",)),
    ("Other", ("",)),
]
HEAD = """API
===

Everything here is in ``dapsgd``, by convention ``import dapsgd as ds``. What is not on this page, or begins with an underscore,
may change at any time. ``ds.LOSSES``, ``ds.REGULARIZERS`` and ``ds.ALGORITHMS`` are the registries: tables from names to what
they stand for.
"""


def public_names():
    """Return the full names of all that is public, by the module it comes from."""
    found = {}
    for name in dapsgd.__all__:
        thing = getattr(dapsgd, name)
        if inspect.ismodule(thing):
            for inner in thing.__all__:
                if callable(getattr(thing, inner)):
                    found[f"dapsgd.{name}.{inner}"] = thing.__name__
        elif callable(thing):
            found[f"dapsgd.{name}"] = thing.__module__
    return found


def page():
    """Return the page."""
    left = public_names()
    parts = [HEAD]
    for title, modules in SECTIONS:
        prefixes = tuple(f"dapsgd.{module}." if module else "" for module in modules)
        names = [name for name, module in left.items() if (module + ".").startswith(prefixes)]
        if not names:
            continue
        parts.append(f"{title}\n{'-' * len(title)}\n\n.. autosummary::\n   :toctree: api\n\n   " + "\n   ".join(names) + "\n")
        left = {name: module for name, module in left.items() if name not in names}
    return "\n".join(parts)


def own_methods(name):
    """Return the public methods of a class that this package wrote, not those of scikit-learn or of tuples."""
    module, _, kind = name.rpartition(".")
    kind = getattr(sys.modules[module] if module in sys.modules else import_module(module), kind)
    found = []
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("dapsgd."):
            found += [method for method, thing in vars(base).items() if is_method(thing) and not method.startswith("_")]
    return [method for method in dict.fromkeys(found) if method not in ("count", "index")]


def is_method(thing):
    """Tell whether an entry of a class is a method of its own, and not one that scikit-learn put there."""
    if isinstance(thing, (staticmethod, classmethod)):
        thing = thing.__func__
    thing = getattr(thing, "fn", thing)  # of a method that only some models have, such as predict_proba
    return inspect.isfunction(thing) and thing.__module__.startswith("dapsgd.") and bool(thing.__doc__)


def write(app, config):
    """Write the page if it changed."""
    path, text = DOCS / "api.rst", page()
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def setup(app):
    """Make it known to Sphinx."""
    app.config.autosummary_context = {"own_methods": own_methods}
    app.connect("config-inited", write, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
