"""Fitted models in files.

A model file is an NPZ archive: ``coef``, ``intercept``, for a classifier ``classes``, after ``partial_fit`` the ``means`` of
the columns, and ``about``, which is JSON in bytes: the version of the format, which estimator it is and its parameters. Nothing
in it is pickled, and nothing in it is run.

>>> import tempfile
>>> from pathlib import Path
>>> import numpy as np
>>> import dapsgd as ds
>>> import dapsgd.models
>>> X = np.random.default_rng(0).standard_normal((50, 4))
>>> model = ds.DAPRegressor("l1", alpha=0.1).fit(X, X[:, 0])
>>> with tempfile.TemporaryDirectory() as folder:
...     dapsgd.models.save(model, Path(folder) / "model.npz")
...     loaded = dapsgd.models.load(Path(folder) / "model.npz")
>>> bool((loaded.predict(X) == model.predict(X)).all())
True
"""

from __future__ import annotations

import json
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ._checks import non_negative
from ._files import replacing
from .errors import FileFormatError
from .losses import LOSSES

__all__ = ["load", "save"]

NOT_KEPT = "(...), not kept in the file"  # follows the class of a penalty that was an object

Array = np.ndarray[Any, Any]

_FORMAT, _VERSION = "dapsgd model", 1
_COUNTS = ("n_iter_", "t_")  # kept if a model has them, as are
_NUMBERS = (*_COUNTS, "objective_", "residual_", "dual_gap_", "alpha_", "l1_ratio_")
_MOST_LINES, _LONGEST_TITLE, _LONGEST_LINE = 30, 40, 1000  # of a summary
DAMAGED = (
    OSError,
    EOFError,
    ValueError,
    KeyError,
    NotImplementedError,
    RuntimeError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


def _estimators() -> dict[str, type]:
    from . import estimators

    return {name: getattr(estimators, name) for name in estimators.__all__}


def save(model: Any, path: Any, metadata: Mapping[str, Any] | None = None, *, feature_names: Any = None) -> None:
    """Write a fitted estimator to a file, whole or not at all.

    Parameters
    ----------
    model : DAPRegressor, DAPClassifier, or one of their CV forms
        A fitted estimator. Of its parameters those are kept that are numbers, text or lists, and losses of this package;
        others are at their defaults in the model that is loaded, and of a penalty that is an object its class is named.
        Predictions do not depend on them. ``partial_fit`` of the model that is loaded goes on where this one was.
    path : path
        The file, which must end in .npz. One that exists is replaced.
    metadata : dict, optional
        Whatever else should be kept: what JSON can hold. It is ``metadata_`` of the loaded model.
    feature_names : list of str, optional
        The names of the columns of an array, by which ``dapsgd predict`` finds them in a file; ``"feature_names"`` of the
        metadata. Those of a data frame that the model was fitted to are kept anyway.
    """
    from sklearn.utils.validation import check_is_fitted

    path = _check_path(path)
    kinds = _estimators()
    kind = type(model).__name__
    if type(model) not in kinds.values():
        last = ": save its last step, model[-1], for columns that the others have prepared" * (kind == "Pipeline")
        raise TypeError(f"model must be one of {', '.join(kinds)}; got {kind}{last}")
    check_is_fitted(model)
    parameters = {name: _plain(value) for name, value in model.get_params(deep=False).items()}
    if parameters["penalty"] is _UNKNOWN:
        parameters["penalty"] = f"{type(model.penalty).__name__}{NOT_KEPT}"
    loss = model.loss
    if not isinstance(loss, (str, type(None), *LOSSES.values())):
        raise TypeError(
            f"model must have a loss of dapsgd's to be saved; got {type(loss).__name__}, whose code a file does not hold "
            "(pickle keeps such a model, for whoever has the class)"
        )
    kept = dict(metadata or {})
    if feature_names is not None:
        kept["feature_names"] = feature_names
    elif model._column_names is not None:
        kept.setdefault("feature_names", list(model._column_names))
    if model._target_names is not None:
        kept.setdefault("target_names", list(model._target_names))
    if kept.get("feature_names") is not None:
        kept["feature_names"] = _check_names(kept["feature_names"], model.n_features_in_)
    about: dict[str, Any] = {
        "format": _FORMAT,
        "version": _VERSION,
        "estimator": kind,
        "parameters": {name: value for name, value in parameters.items() if value is not _UNKNOWN},
        "numbers": {name: float(value) for name in _NUMBERS if (value := getattr(model, name, None)) is not None},
        "stream": [model._stream.roughest, model._stream.first],
        "weight": model._stream.weight,
        "feature_names": list(map(str, getattr(model, "feature_names_in_", []))) or None,
        "places": model._places,
        "summary": _summary(model._about(), kept),
        "metadata": kept,
    }
    try:
        text = json.dumps(about)
    except (TypeError, ValueError) as error:
        raise TypeError(f"metadata must be what JSON can hold: {error}") from None
    arrays = {"coef": model.coef_, "intercept": np.asarray(model.intercept_)}
    if hasattr(model, "classes_"):
        arrays["classes"] = _check_classes(model.classes_)
    if model._stream.means is not None:
        arrays["means"] = model._stream.means
    with replacing(path) as temporary:
        np.savez_compressed(temporary, about=np.frombuffer(text.encode(), np.uint8), **arrays)


def _summary(lines: Mapping[str, str], metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return what is said of a fit, with what the metadata adds, as it is kept in a file."""
    lines = dict(lines)
    targets = metadata.get("target_names")
    if isinstance(targets, (list, tuple)) and all(isinstance(name, str) for name in targets) and targets:
        lines["target"] = ", ".join(targets)
    return {_line(name, _LONGEST_TITLE): _line(text, _LONGEST_LINE) for name, text in list(lines.items())[:_MOST_LINES]}


def _line(text: str, most: int) -> str:
    """Return a text as one line that a terminal can show."""
    text = "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _read_summary(path: Path, lines: Any) -> dict[str, str] | None:
    """Return what a file says of a fit; None of a file that was written before files did."""
    if lines is None:
        return None
    if not isinstance(lines, dict) or not 0 < len(lines) <= _MOST_LINES:
        raise FileFormatError(f"{path} is damaged: its summary must be 1 to {_MOST_LINES} lines with a title each")
    for name, text in lines.items():
        short = isinstance(text, str) and len(name) <= _LONGEST_TITLE and len(text) <= _LONGEST_LINE
        if not short or not (name + text).isprintable():
            raise FileFormatError(f"{path} is damaged: its summary holds what is no line of text")
    return lines


def _check_names(given: Any, count: int) -> list[str]:
    """Return the names of so many columns."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"feature_names must be a list of text; got {given!r}")
    for name in given:
        if not isinstance(name, str):
            raise TypeError(f"feature_names must be a list of text, as by list(map(str, names)); it holds {name!r}")
    names = list(map(str, given))
    if len(names) != count or len(set(names)) != count:
        raise ValueError(f"feature_names must be {count} different names, one for each column; got {len(names)}")
    return names


def load(path: Any) -> Any:
    """Read a model file.

    Parameters
    ----------
    path : path
        A file written by :func:`save`.

    Returns
    -------
    DAPRegressor, DAPClassifier, or one of their CV forms
        Fitted, with the same predictions, and the same summary when it is printed. It has ``coef_``, ``intercept_``,
        ``classes_`` and the numbers of the fit, not its ``trace_``, its path or the scores of folds; ``metadata_`` is what was
        kept with it, and ``"feature_names"``, where the names of the columns are known. It takes a data frame as the model
        that was saved did: with the columns of the fit, in their order. ``X[model.metadata_["feature_names"]]`` has them.

    Raises
    ------
    FileFormatError
        If the file is damaged, is no model file, or is of a version that this dapsgd does not know.
    """
    path = _check_path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no model file {path}")
    arrays = _read(path)
    about = _read_about(path, arrays.pop("about"))
    kinds = _estimators()
    if about.get("estimator") not in kinds:
        raise FileFormatError(f"{path} holds a model of the unknown kind {about.get('estimator')!r}")
    kind = kinds[about["estimator"]]
    _check_arrays(path, arrays, classifier=hasattr(kind, "decision_function"))
    model = _rebuild(path, kind, about, arrays.get("means"))
    model.coef_ = arrays["coef"]
    model.intercept_ = arrays["intercept"] if arrays["intercept"].ndim else float(arrays["intercept"])
    model.n_features_in_ = model.coef_.shape[-1]
    _give_names(path, model, about)
    targets = model.metadata_.get("target_names")
    if isinstance(targets, list) and all(isinstance(name, str) for name in targets):
        model._target_names = targets
    model._first_column = int(model.metadata_.get("zero_based") is False)
    model._summary_in_file = _read_summary(path, about.get("summary"))
    if "classes" in arrays:
        model.classes_ = arrays["classes"]
    return model


def _give_names(path: Path, model: Any, about: dict[str, Any]) -> None:
    """Set the names of the columns: those of a frame that the model was fitted to, or those kept beside it."""
    try:
        fitted, beside = (
            names if names is None else _check_names(names, model.n_features_in_)
            for names in (about["feature_names"], model.metadata_.get("feature_names"))
        )
    except (KeyError, TypeError, ValueError) as error:
        raise FileFormatError(f"{path} is damaged: its names of columns make no sense ({error})") from None
    if fitted is not None:
        model.feature_names_in_ = np.array(fitted, dtype=object)
        model.metadata_.setdefault("feature_names", fitted)
    else:
        model._column_names = beside
        model._places = model.n_features_in_ if about.get("places") == model.n_features_in_ else 0


def _check_path(path: Any) -> Path:
    try:
        path = Path(os.fspath(path))
    except TypeError:
        raise TypeError(f"path must be the name of a file; got {path!r}") from None
    if path.suffix.lower() != ".npz":
        raise ValueError(f"a model file must end in .npz; got {str(path)!r}")
    return path


_UNKNOWN = object()


def _plain(value: Any) -> Any:
    """Return a parameter as JSON holds it, or ``_UNKNOWN``."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if type(value) in LOSSES.values():
        return {"loss": type(value).__name__, "fields": [_plain(field) for field in value]}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufU":
        return value.tolist()
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        items = [_plain(item) for item in value]
        return _UNKNOWN if _UNKNOWN in items else items
    return _UNKNOWN


def _check_classes(classes: Any) -> Array:
    classes = np.asarray(classes)
    if classes.dtype == object and all(isinstance(label, str) for label in classes):
        classes = classes.astype(str)
    if classes.dtype.kind not in "biufU":
        raise TypeError(f"model must have classes that are numbers or text to be saved; got dtype {classes.dtype}")
    return classes


def _read(path: Path) -> dict[str, Array]:
    from .io._numpy import stored_array

    try:
        with zipfile.ZipFile(path) as archive:
            there = {name[:-4] for name in archive.namelist() if name.endswith(".npy")}
            missing = {"about", "coef", "intercept"} - there
            if missing:
                raise FileFormatError(f"{path} is no model file, or is damaged: it lacks {', '.join(sorted(missing))}")
            wanted = sorted(there & {"about", "coef", "intercept", "classes", "means"})
            return {name: stored_array(path, archive, name).copy() for name in wanted}
    except FileFormatError:
        raise
    except DAMAGED as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise FileFormatError(f"{path} is damaged, or is no model file: {reason}") from None


def _read_about(path: Path, stored: Array) -> dict[str, Any]:
    try:
        about = json.loads(stored.tobytes().decode())
    except (ValueError, RecursionError):
        about = None
    if not isinstance(about, dict) or about.get("format") != _FORMAT:
        raise FileFormatError(f"{path} is no model file, or is damaged: it does not say what it is")
    if about.get("version") != _VERSION:
        raise FileFormatError(
            f"{path} has version {about.get('version')!r} of the model format; this dapsgd reads version {_VERSION}: "
            "upgrade dapsgd, or fit the model again"
        )
    return about


def _check_arrays(path: Path, arrays: dict[str, Array], classifier: bool) -> None:
    coef, intercept = arrays["coef"], arrays["intercept"]
    for name, array in (("coef", coef), ("intercept", intercept)):
        if array.dtype not in (np.float32, np.float64) or not np.isfinite(array).all():
            raise FileFormatError(f"{path} is damaged: {name} must hold finite numbers, float32 or float64")
    fits = coef.ndim in (1, 2) and coef.size > 0 and intercept.shape == coef.shape[:-1]
    if not fits:
        raise FileFormatError(
            f"{path} is damaged: coef and intercept do not belong together, with shapes {coef.shape} and {intercept.shape}"
        )
    means = arrays.get("means")
    if means is not None and (means.dtype != np.float64 or means.shape != coef.shape[-1:] or not np.isfinite(means).all()):
        raise FileFormatError(f"{path} is damaged: means must be a finite float64 for each column")
    if classifier != ("classes" in arrays):
        raise FileFormatError(f"{path} is damaged: classes are {'missing' if classifier else 'there without a classifier'}")
    if classifier:
        classes = arrays["classes"]
        right = coef.ndim == 2 and classes.ndim == 1 and classes.dtype.kind in "biufU" and len(classes) >= 2
        if not right or (len(coef) != len(classes) and (len(coef), len(classes)) != (1, 2)):
            raise FileFormatError(f"{path} is damaged: {classes.shape} classes for coefficients of shape {coef.shape}")
        if len(set(classes.tolist())) != len(classes) or (classes.dtype.kind == "f" and not np.isfinite(classes).all()):
            raise FileFormatError(f"{path} is damaged: its classes are not different numbers or texts")


def _rebuild(path: Path, kind: type, about: dict[str, Any], means: Array | None) -> Any:
    """Return an estimator with the parameters and numbers of a file."""
    from .estimators._stream import Stream

    try:
        parameters = {name: _revive(value) for name, value in dict(about["parameters"]).items()}
        model = kind(**parameters)
        if not isinstance(model.loss, (str, type(None), *LOSSES.values())):
            raise TypeError("loss")
        for name, value in dict(about["numbers"]).items():
            if name in _NUMBERS:
                setattr(model, name, int(float(value)) if name in _COUNTS else float(value))
        roughest, first = about.get("stream", (0.0, 0))  # which older files lack
        weight = about.get("weight", 0.0)
        for name, value in (("stream", roughest), ("weight", weight)):
            non_negative(name, value)
        if (means is None) != (weight == 0.0):
            raise ValueError("means and their weight do not belong together")
        model._stream = Stream(float(roughest), int(first), float(weight), means)
        if min(first, *(getattr(model, name, 0) for name in _COUNTS)) < 0:
            raise ValueError("counts below zero")
        model.metadata_ = dict(about["metadata"])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise FileFormatError(f"{path} is damaged: its description of the model makes no sense ({error})") from None
    return model


def _revive(value: Any) -> Any:
    if isinstance(value, dict):
        kinds = {kind.__name__: kind for kind in LOSSES.values()}
        return kinds[value["loss"]](*value["fields"])
    return value
