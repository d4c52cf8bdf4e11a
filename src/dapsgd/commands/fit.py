"""``dapsgd fit``: a file of data into a model file."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._arguments import argument, by_python
from .._checks import known_name
from .._files import check_place
from .._summaries import plain
from ..algorithms import ALGORITHMS
from ..io import Dataset
from ..io._columns import places_of
from ..io._formats import check_path, format_of
from ..io._numbers import is_number, misread
from ..io._numpy import check_has_target
from ..io._source import TEXT_OPTIONS, Options, listed, make_options
from ..losses import ELSEWHERE as LOSSES_ELSEWHERE
from ..regularizers import ELSEWHERE, REGULARIZERS
from ._data import load_data
from ._groups import group_weights, parse_groups, parse_weights
from ._standardize import standardize
from ._summary import describe

__all__ = ["run"]

_REGRESSION = ("squared", "huber", "poisson")
_CLASSIFICATION = ("logistic", "multinomial", "squared_hinge")
_ENOUGH_ROWS = 20  # to see that a column counts them
_ENOUGH_TARGETS = 1000  # to see that most of them are numbers
_MOST_CLASSES = 20  # that nobody wonders about
_FEW_VALUES = 10  # of whole numbers, which may stand for classes


def run(
    data: Path,
    out: Path,
    *,
    reading: dict[str, Any],
    options: dict[str, Any],
    task: str,
    loss: str | None,
    groups: str | None,
    weights: str | None,
    scaled: bool,
    pictures: Mapping[str, Path],
    checkpoint: Path | None,
    resume: bool,
    convert_it: bool | None,
    cache: Path | None,
    progress: bool,
) -> dict[str, Any]:
    """Fit a model, write it, and return what is to be said of it.

    ``reading`` are options of :func:`dapsgd.io.read`; ``options`` those of an estimator that were given. With ``cv`` among them
    the strength is chosen by cross-validation.
    """
    _check_out(out, data)
    _check_options(task, loss, options, scaled, pictures)
    weighted = parse_weights(weights, options["penalty"], groups)
    kept = _check_checkpoint(checkpoint, resume, out, data)
    if kept and "cv" in options:
        raise ValueError("--checkpoint keeps one run; with --cv, which makes many, leave it out")
    if "target" not in reading:
        _check_target(data, reading)
    start = time.perf_counter()
    dataset = load_data(data, reading, convert_it=convert_it, cache=cache, progress=progress)
    assert dataset.y is not None  # which was looked for
    read = time.perf_counter() - start
    if "cv" in options and len(dataset.y) < 2:
        raise ValueError(f"--cv needs at least 2 rows; {data} has {len(dataset.y)}")
    if options.get("cv", 0) > len(dataset.y):
        raise ValueError(f"--cv must be at most {len(dataset.y)}, the number of rows; got {options['cv']}")
    example = _example(data, dataset, reading)
    task, why = _task(task, loss, dataset.y, example)
    columns = dataset.X.shape[1]
    by_group = parse_groups(groups, columns, dataset.feature_names)
    options = options | {
        "groups": by_group,
        "weights": group_weights(weighted, by_group, columns, options["penalty"]),
        "verbose": progress,
    }
    model = _estimator(task, loss, options, dataset, example)
    model._kept = kept
    start = time.perf_counter()
    X, scaling = standardize(dataset.X, bool(model.fit_intercept)) if scaled else (dataset.X, None)
    with warnings.catch_warnings(), nullcontext() if progress else _silence():
        warnings.simplefilter("ignore")  # that it did not converge is said by the caller
        model.fit(X, dataset.y)
    seconds = time.perf_counter() - start
    about = describe(model, model.groups)
    if scaling is not None:
        scaling.restore(model)
    score = float(model.score(dataset.X, dataset.y)) if len(dataset.y) > 1 else None
    model._target_names = dataset.target_names
    model._first_column = int(dataset.zero_based is False)
    _draw(model, pictures, dataset.feature_names)
    model.verbose = False  # that it was fitted with a bar is nothing to keep
    _save(model, out, data, dataset, reading, task, scaled)
    return {
        "task": task,
        "reason": why,
        "loss": model.loss,
        "penalty": model.penalty,
        "alpha": getattr(model, "alpha_", getattr(model, "alpha", None)),
        **({"l1_ratio": getattr(model, "l1_ratio_", model.l1_ratio)} if model.l1_ratio is not None else {}),
        **_choice(model, options),
        "rows": int(dataset.X.shape[0]),
        "skipped": dataset.skipped,
        "columns": int(dataset.X.shape[1]),
        "target": list(dataset.target_names),
        **({"classes": model._about_classes()} if task == "classification" else {}),
        **_notice(dataset, model),
        **about,
        **({"scaled": True} if scaled else {}),
        "score": score,
        "score_name": "accuracy" if task == "classification" else model._score_name,
        "message": model.result_.message,
        **({} if about["converged"] or model.tol == 0.0 else {"remedy": model._remedy(model.result_)}),
        "seconds": {"read": round(read, 3), "fit": round(seconds, 3)},
        "out": str(out),
        **({"pictures": {name: str(path) for name, path in pictures.items()}} if pictures else {}),
    }


@contextmanager
def _silence() -> Iterator[None]:
    """Do not even say that it compiles."""
    logger = logging.getLogger("dapsgd")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def _draw(model: Any, pictures: Mapping[str, Path], names: Any) -> None:
    """Draw what was asked for: the coefficients, the scores of the folds, the path."""
    for name, path in pictures.items():
        if name == "plot-cv":
            model.plot_cv(path)
        else:
            (model.plot_path if name == "plot-path" else model.plot_coef)(path, names)


def _choice(model: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Return how the strength was chosen, if it was."""
    if "cv" not in options:
        return {"default": "alpha" not in options}
    smallest = bool(model.alpha_ == model.alphas_.min())
    edge = model._edge()
    about = {"folds": model.cv, "rule": model.rule, "smallest": smallest} | ({"edge": edge} if edge else {})
    scores = [dict(zip(("name", "mean", "standard_error"), score, strict=True)) for score in model._held_out()]
    return about | dict(zip(("held_out", "held_out_accuracy"), scores, strict=False))


def _notice(dataset: Any, model: Any) -> dict[str, str]:
    """Say what somebody may not have meant."""
    if model.penalty == "nuclear" and model.coef_.ndim == 1:
        return {"notice": "penalty nuclear is for several targets; of one it is the length of the coefficients"}
    if dataset.y.dtype.kind != "U" and (dataset.y == dataset.y[:1]).all():
        return {"notice": "the target is the same in every row: there is nothing to learn from them"}
    why = model._why_zero()
    if why:
        return {"notice": f"all coefficients are zero: {why}"}
    return _counting_column(dataset)


def _counting_column(dataset: Any) -> dict[str, str]:
    """Say if a column goes up from row to row in whole numbers: it may only number the rows."""
    X, names = dataset.X, dataset.feature_names
    if hasattr(X, "tocsr") or len(X) < _ENOUGH_ROWS:
        return {}
    first = np.asarray(X[:_ENOUGH_ROWS], np.float64)
    steps = np.diff(first, axis=0)
    counts = (steps >= 1.0).all(axis=0) & (steps.mean(axis=0) < 2.0) & (first == np.floor(first)).all(axis=0)
    for j in np.flatnonzero(counts):
        if np.diff(np.asarray(X[:, j], np.float64)).min() >= 1.0:
            which = int(j) if names is None else names[j]
            drop = argument("drop", [str(which)])
            return {"notice": f"column {which!r} counts the rows, and is used as any other; leave it out with {drop}"}
    return {}


def _check_out(out: Path, data: Path) -> None:
    """Say before any work if the model cannot be written there."""
    if out.suffix.lower() != ".npz":
        raise ValueError(f"--out must end in .npz; got {str(out)!r}")
    if out.exists() and data.exists() and out.samefile(data):
        raise ValueError(f"--out must not be the file of data, {data}")
    check_place(out, "--out")


def _check_target(data: Path, reading: dict[str, Any]) -> None:
    """Say before any work that a target must be named, and what there is to name."""
    kind = format_of(check_path(data))
    if kind.name == "npz":
        check_has_target(data)
    if kind.look is None:
        return
    table = kind.look(data, _looking(reading))
    there = f"are {listed(table.names)}" if table.names else f"are 0 to {table.width - 1}; -1 is the last"
    raise ValueError(f"--target must be given: {data} does not say by itself which column it is; its columns {there}")


def _looking(reading: dict[str, Any]) -> Options:
    """Return those of the options of reading that say what the text of a table is like."""
    return make_options(**{name: reading[name] for name in TEXT_OPTIONS if name in reading})


def _check_checkpoint(checkpoint: Path | None, resume: bool, out: Path, data: Path) -> dict[str, Any]:
    """Return the options of :func:`dapsgd.solve` that keep a run in a file."""
    if checkpoint is None:
        if resume:
            raise ValueError("--resume needs --checkpoint FILE, the file to go on from")
        return {}
    check_place(checkpoint, "--checkpoint")
    for other, name in ((data, "the file of data"), (out, "--out")):
        if checkpoint.resolve() == other.resolve():
            raise ValueError(f"--checkpoint must not be {name}, {other}")
    return {"checkpoint": checkpoint, "resume": resume}


def _check_options(task: str, loss: str | None, options: dict[str, Any], scaled: bool, pictures: Mapping[str, Path]) -> None:
    known_name("--task", task, ("auto", "regression", "classification"))
    known_name("--penalty", options["penalty"], REGULARIZERS, ELSEWHERE)
    if "algorithm" in options:
        known_name("--algorithm", options["algorithm"], ("auto", *ALGORITHMS))
    if loss is not None:
        known_name("--loss", loss, (*_REGRESSION, *_CLASSIFICATION), LOSSES_ELSEWHERE)
        wrong = {"regression": _CLASSIFICATION, "classification": _REGRESSION}.get(task, ())
        if loss in wrong:
            raise ValueError(f"--loss {loss} is not for --task {task}; leave one of them out")
    if "cv" in options and "alpha" in options:
        raise ValueError("--alpha and --cv must not be given together: --cv chooses the strength")
    if "rule" in options:
        from ..estimators._parameters import RULES, RULES_ELSEWHERE

        known_name("--rule", options["rule"], RULES, RULES_ELSEWHERE)
    for name in ("rule", "eps", "plot-cv", "plot-path"):
        if (name in options or name in pictures) and "cv" not in options:
            raise ValueError(f"--{name} needs --cv, which chooses the strength; leave it out, or give --cv FOLDS")
    if isinstance(options.get("l1_ratio"), list) and "cv" not in options:
        raise ValueError("--l1-ratio must be given once without --cv, which chooses among several")
    if "delta" in options and loss != "huber":
        raise ValueError(f"--delta must be left out unless --loss is huber; got {'no loss' if loss is None else loss}")
    if scaled and options.get("penalty") == "box":
        raise ValueError("--standardize must be left out for --penalty box: bounds are in the original units")


class _Example(NamedTuple):
    """A target that is text: the first one, and what to do if it may be meant as a number."""

    shown: str
    advice: str


def _example(data: Path, dataset: Dataset, reading: dict[str, Any]) -> _Example | None:
    """Return the first target if targets are text, with its line if that is known."""
    y: Any = dataset.y
    if y.dtype.kind != "U":
        return None
    text, decimal = str(y.flat[0]), reading.get("decimal", ".")
    look = format_of(data).look
    line = None if dataset.skipped or look is None else look(data, _looking(reading)).first_line
    shown, why = repr(text) + (f" in line {line}" if line else ""), misread(text, decimal)
    if why is not None:
        return _Example(f"{shown}, which {why[0]}", why[1])
    first = y.flat[:_ENOUGH_TARGETS]
    mostly = 2 * sum(is_number(str(one), decimal) for one in first) > len(first)
    return _Example(shown, "correct it if the column should hold numbers, as most of it does" if mostly else "")


def _task(task: str, loss: str | None, y: Any, example: _Example | None) -> tuple[str, str]:
    """Return what is to be done, and why."""
    text = example is not None
    if task == "regression" or loss in _REGRESSION:
        if example is not None:
            if example.advice:
                raise ValueError(f"--target holds text, such as {example.shown}; {example.advice}")
            needed = "--task classification" if task == "regression" else "a loss for classes, such as --loss logistic"
            raise ValueError(f"--target holds text, such as {example.shown}: it needs {needed}")
        return "regression", "--task" if task == "regression" else "by the loss"
    if task == "classification" or loss in _CLASSIFICATION or text:
        if y.ndim == 2:
            raise ValueError("--target must be one column for --task classification")
        if len(classes := np.unique(y)) < 2:
            raise ValueError(f"--target must hold at least two classes; all rows are {plain(classes[0])}")
    if task == "classification" or loss in _CLASSIFICATION:
        return "classification", "--task" if task == "classification" else "by the loss"
    if example is not None:
        return "classification", "the target is text" + f", such as {example.shown}: {example.advice}" * bool(example.advice)
    if y.ndim == 1 and len(y) > 2 and len(np.unique(y)) == 2:
        return "classification", "the target has two values"
    whole = y.ndim == 1 and len(np.unique(y)) <= _FEW_VALUES < len(y) and bool((y == np.floor(y)).all())
    return "regression", "the target is numbers" + "; --task classification if they stand for classes" * whole


def _estimator(task: str, loss: str | None, options: dict[str, Any], dataset: Dataset, example: _Example | None) -> Any:
    from ..estimators import DAPClassifier, DAPClassifierCV, DAPRegressor, DAPRegressorCV

    kinds = (DAPRegressorCV, DAPClassifierCV) if "cv" in options else (DAPRegressor, DAPClassifier)
    kind: Any = kinds[task == "classification"]
    given = options if loss is None else options | {"loss": loss}
    if task == "classification":
        _check_classes(dataset.y, dataset.target_names, loss, example)
    model: Any = kind(**given)
    if loss is None and task == "classification":
        model.loss = "logistic" if len(np.unique(np.asarray(dataset.y))) == 2 else "multinomial"
    return model


def _check_classes(y: Any, names: Sequence[str], loss: str | None, example: _Example | None) -> None:
    """Say if the target can hardly be classes."""
    values, rows = np.unique(y), len(y)
    text = example is not None
    if len(values) <= _MOST_CLASSES or not (len(values) > rows // 2 or (not text and (values % 1.0).any())):
        return
    name = f", column {names[0]!r}," if names else ""
    if example is not None:
        what, such, instead = "texts", f", such as {example.shown}", example.advice or "name another column"
    else:
        what, such, instead = "numbers", "", "use --task regression" if loss is None else "use --loss squared"
    raise ValueError(f"--target{name} holds {len(values)} different {what}, too many to be classes{such}; {instead}")


def _places(data: Path, reading: dict[str, Any]) -> dict[str, list[int]]:
    """Return where the targets and what was left out are in a table: another file may have no names to find them by."""
    look = format_of(data).look
    if look is None:
        return {}
    table, options = look(data, _looking(reading)), make_options(target=reading.get("target"), drop=reading.get("drop"))
    return {f"{name}_places": places_of(data, name, getattr(options, name), table) for name in ("target", "drop")}


def _save(model: Any, out: Path, data: Path, dataset: Dataset, reading: dict[str, Any], task: str, scaled: bool) -> None:
    from ..models import save

    metadata = {
        "task": task,
        "feature_names": dataset.feature_names,
        "target_names": dataset.target_names,
        "zero_based": dataset.zero_based,
        "drop": reading.get("drop"),
        **_places(data, reading),
        "scaled": scaled,
        "source": data.name,
        "rows": int(dataset.X.shape[0]),
    }
    with by_python():  # who will read the summary that is kept has no options
        save(model, out, metadata)
