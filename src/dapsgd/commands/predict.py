"""``dapsgd predict``: a model file and a file of data into predictions."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from .._files import check_place, replacing
from .._summaries import plain
from ..errors import FileFormatError
from ..io import read_blocks
from ..io._columns import pick_kept
from ..io._dataset import Array
from ..io._formats import check_path, format_of, layout
from ..io._source import TEXT_OPTIONS, MissingValueError, Options, UnusableError, WidthError, make_options
from ..models import load

__all__ = ["run"]

_OTHER_ENDINGS = frozenset(
    [".xlsx", ".xls", ".ods", ".parquet", ".pq", ".feather", ".arrow", ".npy", ".npz", ".json", ".html", ".gz", ".tsv", ".tab"]
)  # of formats that predictions are not written in


def run(
    model_path: Path,
    data: Path,
    out: Path,
    *,
    proba: bool,
    reading: dict[str, Any],
    zero_based: bool | None,
    keep: Sequence[str] = (),
) -> dict[str, Any]:
    """Write predictions for every row of a file, block by block, and return what is to be said of them.

    ``reading`` are the options of :func:`dapsgd.io.read` for tables in text that were given.
    """
    _check_out(out, data, model_path)
    model = load(model_path)
    if proba and not hasattr(model, "predict_proba"):
        what = f"loss {model.loss}" if hasattr(model, "classes_") else "regression"
        raise ValueError(f"--proba needs a model with the logistic or multinomial loss; {model_path} is for {what}")
    looking = make_options(features=_features(model), **reading)
    kept, names = _kept(data, looking, keep)
    titles = _all_titles(data, names, _titles(model, proba))
    options = _reading(model, model_path, data, looking, zero_based, kept) | {"keep": kept or None}
    unnamed = options.pop("unnamed", None)
    notice = {"notice": f"{unnamed} has no names of columns: they were taken in order"} if unnamed else {}
    if hasattr(model, "feature_names_in_"):
        del model.feature_names_in_  # columns have been found by name here; arrays have none, of which scikit-learn would warn
    replaced = {"replaced": True} if out.is_file() and str(out) != "-" else {}
    with _of_every_row(model_path, model.n_features_in_):
        try:
            return _predict(model, data, out, proba, titles, options) | notice | replaced
        except FileFormatError as error:
            if not options.get("target"):
                raise
            # Predictions need no target: if it is what could not be read, there is no score; otherwise this fails as well.
            about = _predict(model, data, out, proba, titles, _without_target(options))
            return about | notice | replaced | {"no_score": getattr(error, "fact", str(error))}


def _check_out(out: Path, *others: Path) -> None:
    """Say before any work if predictions cannot be written there, or if its ending says that they are something else."""
    if str(out) == "-":
        return
    if out.suffix.lower() in _OTHER_ENDINGS:
        raise ValueError(
            f"--out must not end in {out.suffix}: predictions are written as CSV; got {str(out)!r}, write {_as_csv(out)!r}"
        )
    if out.exists() and any(path.exists() and out.samefile(path) for path in others):
        raise ValueError(f"--out must be a file of its own; got {out}")
    check_place(out, "--out")


def _as_csv(out: Path) -> str:
    """Return a name with its ending replaced by that of CSV; of a compressed file with that which is below."""
    plain = out.with_suffix("") if out.suffix.lower() == ".gz" else out
    return str(plain.with_suffix(".csv"))


def _predict(model: Any, data: Path, out: Path, proba: bool, titles: list[str], options: dict[str, Any]) -> dict[str, Any]:
    """Read, predict and write, block by block."""
    predictions: list[Array] = []
    targets: list[Array] = []
    with _written(out) as file:
        writer = csv.writer(_Lines(file))
        writer.writerow(titles)
        for block in read_blocks(data, **options):
            predicted = model.predict(block.X)
            columns = [_texts(predicted)] + ([_texts(model.predict_proba(block.X))] if proba else [])
            kept = np.array(list(block.kept.values()), dtype=object).reshape(-1, len(predicted)).T
            writer.writerows(np.hstack([kept, *columns]).tolist())
            predictions.append(predicted)
            if block.y is not None:
                targets.append(block.y)
    if not predictions:
        raise ValueError(f"{data} has no rows")
    about: dict[str, Any] = {"rows": sum(map(len, predictions)), "out": str(out)}
    if targets:
        about |= _score(model, np.concatenate(targets), np.concatenate(predictions))
    return about


class _Lines:
    """A file whose lines end in a line feed alone; a writer that knows of no carriage return would not quote one."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, line: str) -> None:
        """Write a line that ends as CSV does by default."""
        self._file.write(line.removesuffix("\r\n") + "\n")


def _kept(data: Path, looking: Options, keep: Sequence[str]) -> tuple[list[int], tuple[str, ...]]:
    """Return the positions and the names of the columns whose text is written beside the predictions."""
    if not keep:
        return [], ()
    if format_of(check_path(data)).name not in ("csv", "arrow"):
        raise ValueError(f"--keep needs a CSV, Parquet or Arrow file, whose columns may hold text; got {data}")
    table = layout(data, looking)
    return pick_kept(data, table.names, table.width, keep)


def _all_titles(data: Path, kept: tuple[str, ...], titles: list[str]) -> list[str]:
    """Return the first line of the predictions, if no two columns have the same name."""
    both = [name for name in kept if name in titles]
    if both:
        raise ValueError(f"--keep {both[0]!r}: a column of the predictions has the same name; rename that of {data}")
    return [*kept, *titles]


@contextmanager
def _of_every_row(model_path: Path, p: int) -> Iterator[None]:
    """Say of what a model cannot use what can be done here, where no row and no column is left out."""
    try:
        yield
    except MissingValueError as error:
        raise FileFormatError(
            f"{error.fact}, and every row gets a prediction; fill it in, or take the row out of the file"
        ) from None
    except UnusableError as error:
        raise FileFormatError(f"{error.fact}, and {model_path} has a coefficient for it; fill in numbers") from None
    except WidthError as error:
        raise ValueError(f"{error.path} has {error.found} columns; {model_path} has coefficients for {p}") from None


def _without_target(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options for reading the same features alone."""
    if "features" in options:
        return options | {"target": None}
    return options | {"target": None, "drop": [*(options.get("drop") or []), *options["target"]]}


@contextmanager
def _written(out: Path) -> Iterator[TextIO]:
    """Give a file to write to: standard output for ``-``, otherwise one that is whole or not there."""
    if str(out) == "-":
        kept = io.StringIO()
        yield kept
        sys.stdout.write(kept.getvalue())
        return
    with replacing(out) as temporary, open(temporary, "w", encoding="utf-8", newline="") as file:
        yield file


def _reading(
    model: Any, model_path: Path, data: Path, looking: Options, zero_based: bool | None, kept: list[int]
) -> dict[str, Any]:
    """Return the options for reading a file so that its columns are the model's."""
    about = model.metadata_
    kind = format_of(check_path(data)).name
    p = model.n_features_in_
    how = {name: value for name in TEXT_OPTIONS if (value := getattr(looking, name)) is not None}
    if how and kind != "csv":
        raise ValueError(f"{looking.written(next(iter(how)))} means nothing for {data}; leave it out")
    if kind != "svmlight" and zero_based is not None:
        raise ValueError(f"--zero-based and --one-based mean nothing for {data}; leave them out")
    if kind == "svmlight":
        known = about.get("zero_based")
        return {"n_features": p, "zero_based": bool(known) if zero_based is None else zero_based}
    if kind == "npz":
        return {"n_features": p}
    targets = [str(name) for name in about.get("target_names") or []]
    width, names, _ = layout(data, looking)
    if names is not None and looking.features is not None:
        there = targets if targets and set(targets) <= set(names) else None
        return {"features": list(looking.features), "target": there, **how}
    # Files that were written before places were kept have names, which may be digits.
    there, left_out = (about.get(f"{what}_places", known) for what, known in (("target", targets), ("drop", about.get("drop"))))
    columns = _in_order(width, p, list(there or ()), list(left_out or ()), kept)
    if columns is None:
        by_name = "" if names is None else ", and no names by which to find them"
        if names is None and looking.features is not None:
            by_name = "; write their names in its first line, or take out all other columns"
        left = f", {width - len(kept)} without what is kept" if kept else ""
        raise ValueError(f"{data} has {width} columns{left}; {model_path} has coefficients for {p}{by_name}")
    unnamed = "the model" if names is not None else str(data) if looking.features is not None else None
    return {**columns, "unnamed": unnamed, **how}


def _features(model: Any) -> list[str] | None:
    """Return the names of the columns that a model was fitted to, if it knows them."""
    names = model.metadata_.get("feature_names") or getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _in_order(width: int, p: int, targets: list[Any], drop: list[Any], kept: list[int]) -> dict[str, Any] | None:
    """Columns have no names on one side: take them in order, but for what is kept; None if their number does not fit.

    Targets, and what was left out in the fit, may be where they were then: as they are, or once what is kept is taken away.
    """
    everything, others = range(width), [j for j in range(width) if j not in kept]
    for columns in (everything, others):
        places = _places([*targets, *drop], len(columns)) if len(columns) == p + len(targets) + len(drop) else None
        if places is not None:
            features = [j for k, j in enumerate(columns) if k not in places]
            there = [columns[k] for k in places[: len(targets)]]
            if len(features) == p and not set(features) & set(kept):
                return {"target": there or None, "drop": [j for j in everything if j not in {*features, *there}] or None}
    return {"drop": kept or None} if len(others) == p else None


def _places(names: Sequence[Any], count: int) -> list[int] | None:
    """Return the positions in so many columns that digits stand for; None if something else is among them."""
    if not all(str(name).lstrip("-").isdecimal() for name in names):
        return None
    places = [int(name) for name in names]
    return [k % count for k in places] if all(-count <= k < count for k in places) else None


def _titles(model: Any, proba: bool) -> list[str]:
    names = [str(name) for name in model.metadata_.get("target_names") or []]
    several = not hasattr(model, "classes_") and model.coef_.ndim == 2
    titles = names if several and len(names) == len(model.coef_) else [f"prediction {k}" for k in range(len(model.coef_))]
    titles = titles if several else ["prediction"]
    return titles + ([f"probability {label}" for label in _texts(model.classes_)[:, 0]] if proba else [])


def _texts(values: Array) -> Array:
    """Return values as text, one row each: whole numbers without a point."""
    texts = list(map(plain, values.ravel().tolist()))
    return np.array(texts, dtype=object).reshape(len(values), -1)


def _score(model: Any, y: Array, predicted: Array) -> dict[str, Any]:
    if hasattr(model, "classes_"):
        if (y.dtype.kind == "U") != (model.classes_.dtype.kind == "U"):
            return {"score": float(np.mean(_texts(y)[:, 0] == _texts(predicted)[:, 0])), "score_name": "accuracy"}
        return {"score": float(np.mean(y == predicted)), "score_name": "accuracy"}
    if y.dtype.kind == "U":
        raise ValueError("the target column holds text; the model predicts numbers")
    if y.shape != predicted.shape:
        return {}
    name = model._score_name
    if len(y) < 2:
        return {"score": None, "score_name": name}
    if name == "D2":
        if y.min() < 0.0:
            return {"no_score": "the target has negative numbers, which are no counts"}
        from ..estimators.regressor import explained_deviance

        return {"score": explained_deviance(y, predicted), "score_name": name}
    from sklearn.metrics import r2_score

    return {"score": float(r2_score(y, predicted)), "score_name": name}
