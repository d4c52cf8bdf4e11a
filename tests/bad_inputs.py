"""A table of bad inputs, each with the error it gets: name -> (call, kind of error, words in its sentence).

Calls are made in a folder of their own, which holds :func:`files`. ``python -m tests.bad_inputs`` prints the table with the
sentences, as it is in ``docs/errors.md``.
"""

import gzip
import io
import json
import os
import re
import tempfile
import warnings
import zipfile

import numpy as np
from scipy.sparse import coo_array, csr_matrix

import dapsgd as ds
import dapsgd.io
import dapsgd.models

from .test_bad_input import PROBLEMS, SIGNS, SOLVES, X, Y

HUGE = 1 << 50


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def npy_claiming(shape, descr="<f8", data=b"\0" * 48):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


class Evil:
    """Would make a folder if it were unpickled."""

    def __reduce__(self):
        return os.mkdir, ("pickle was run",)


def bomb():
    """Return an archive of some kilobytes that claims to hold four gigabytes."""
    content, file = npy_claiming((10**6, 1), data=b"\0" * 8 * 10**6), io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", content)
    return file.getvalue().replace(len(content).to_bytes(4, "little"), (2**32 - 2).to_bytes(4, "little"))


def files():
    """Return name -> content of the files that calls read."""
    pickled = io.BytesIO()
    np.save(pickled, np.array([[Evil()]], dtype=object), allow_pickle=True)
    model = {"format": "dapsgd model", "version": 99}
    return {
        "empty.csv": b"",
        "header.csv": b"a,b\n",
        "ragged.csv": b"a,b\n1,2\n3\n",
        "text.csv": b"a,b\n1,2\n3,four\n",
        "missing.csv": b"a,b\n1,\n2,3\n",
        "hollow.csv": b"a,b\n1,\n2,NA\n",
        "infinite.csv": b"a,b\n1,inf\n",
        "quote.csv": b'a,b\n1,"2\n',
        "latin.csv": b"a,b\n1,\xe9\n",
        "title.csv": b"A title\na,b\n1,2\n",
        "nul.csv": b"a,b\n1,\x00\n",
        "unnamed.csv": b"a,,c\n1,2,3\n",
        "good.csv": b"a,b\n1,2\n3,4\n",
        "cut.csv.gz": gzip.compress(b"a,b\n" + b"1,2\n" * 500)[:-9],
        "plain.csv.gz": b"a,b\n1,2\n",
        "empty.svm": b"",
        "comments.svm": b"# nothing\n",
        "label.svm": b"yes 1:2\n",
        "order.svm": b"1 3:1 2:1\n",
        "colon.svm": b"1 3\n",
        "huge.svm": b"1 99999999999:1\n",
        "nan.svm": b"1 1:nan\n",
        "negative.svm": b"1 -1:2\n",
        "binary.svm": b"1 1:2\0\n",
        "zero.svm": b"1 0:2\n",
        "short.npy": b"\x93NUM",
        "text.npy": b"a,b\n1,2\n",
        "claims.npy": npy_claiming((10**9, 10**3)),
        "negative.npy": npy_claiming((-1, 6)),
        "complex.npy": npy_claiming((3, 1), "<c16"),
        "vector.npy": npy_claiming((6,)),
        "version.npy": b"\x93NUMPY\x09\x00" + b"\0" * 20,
        "code.npy": npy_claiming("__import__('os').mkdir('code was run')"),
        "pickle.npy": pickled.getvalue(),
        "nan.npy": npy_claiming((1, 6), data=np.full(6, np.nan).tobytes()),
        "none.npz": npz(a=np.ones(2)),
        "rows.npz": npz(X=np.ones((3, 2)), y=np.ones(2)),
        "cube.npz": npz(X=np.ones((2, 2, 2))),
        "csr.npz": npz(X_data=np.ones(2), X_indices=np.array([0, 9]), X_indptr=np.array([0, 2]), X_shape=np.array([1, 3])),
        "decrease.npz": npz(
            X_data=np.ones(2), X_indices=np.zeros(2, int), X_indptr=np.array([0, 5, 2]), X_shape=np.array([2, 3])
        ),
        "cut.npz": npz(X=np.ones((3, 2)))[:-5],
        "bomb.npz": bomb(),
        "characters.npz": npz(X=np.ones((2, 1)), y=np.array([2**31, 65], "<u4").view("<U1")),
        "no.parquet": b"PAR1 but no more",
        "no.arrow": b"ARROW1 but no more",
        "good.txt": b"a,b\n1,2\n",
        "version.npz": npz(about=np.frombuffer(json.dumps(model).encode(), np.uint8), coef=np.ones(2), intercept=np.ones(())),
        "zip.ckpt": npz(a=np.ones(2)),
        "text.ckpt": b"no checkpoint",
        "empty.ckpt": b"",
    }


def read(name, **options):
    return lambda: dapsgd.io.read(name, **options)


FORMAT = ds.FileFormatError
FILES = {
    "no file": (read("nowhere.csv"), FileNotFoundError, "nowhere"),
    "a name that is a number": (read(3), TypeError, "path"),
    "an unknown ending": (read("good.txt"), ValueError, "txt"),
    "an empty CSV": (read("empty.csv"), FORMAT, "is empty"),
    "a header alone": (read("header.csv"), FORMAT, "no rows"),
    "a short line": (read("ragged.csv"), FORMAT, "line 3"),
    "a word among numbers": (read("text.csv"), FORMAT, "'four'"),
    "a word in the target": (read("text.csv", target="b"), FORMAT, "classes"),
    "a missing value": (read("missing.csv"), FORMAT, "missing"),
    "a missing target": (read("missing.csv", target="b"), FORMAT, "rows with skip_missing=True$"),
    "a column without any value": (read("hollow.csv"), FORMAT, "column 'b' is empty in every row"),
    "an infinite value": (read("infinite.csv"), FORMAT, "finite"),
    "a quote that does not end": (read("quote.csv"), FORMAT, "quote.csv"),
    "text in another encoding": (read("latin.csv"), FORMAT, "UTF-8"),
    "an encoding that is none": (read("good.csv", encoding="cp1253x"), ValueError, "encoding"),
    "more lines to leave out than there are": (read("good.csv", skip_lines=9), FORMAT, "has 3 lines"),
    "a title above the table": (read("title.csv", target="b"), FORMAT, "skip_lines"),
    "a NUL in a CSV": (read("nul.csv"), FORMAT, "nul.csv"),
    "a column without a name": (read("unnamed.csv"), FORMAT, "no name"),
    "a target that is not there": (read("good.csv", target="c"), ValueError, "target"),
    "a target beyond the last": (read("good.csv", target=5), ValueError, "target"),
    "a target that is a float": (read("good.csv", target=1.5), TypeError, "target"),
    "nothing left for X": (read("good.csv", target=["a", "b"]), FORMAT, "no column left"),
    "dropped and wanted": (read("good.csv", target="a", drop="a"), ValueError, "both"),
    "features that are a word": (read("good.csv", features="a"), TypeError, "features"),
    "an unknown dtype": (read("good.csv", dtype="float16"), ValueError, "dtype"),
    "an option for other files": (read("good.csv", zero_based=True), ValueError, "zero_based"),
    "a header that is a number": (read("good.csv", header=1), TypeError, "header"),
    "half a gzip file": (read("cut.csv.gz"), FORMAT, "damaged"),
    "no gzip file": (read("plain.csv.gz"), FORMAT, "damaged"),
    "an empty svmlight file": (read("empty.svm"), FORMAT, "no rows"),
    "comments only": (read("comments.svm"), FORMAT, "no rows"),
    "a label that is a word": (read("label.svm"), FORMAT, "label"),
    "indices that do not increase": (read("order.svm"), FORMAT, "increase"),
    "a field without a colon": (read("colon.svm"), FORMAT, "index:value"),
    "a huge index": (read("huge.svm"), FORMAT, "too large"),
    "a NaN in svmlight": (read("nan.svm"), FORMAT, "finite"),
    "a negative index": (read("negative.svm"), FORMAT, "index:value"),
    "bytes in svmlight": (read("binary.svm"), FORMAT, "no svmlight rows|no text|number"),
    "index 0 where 1 is first": (read("zero.svm", zero_based=False), FORMAT, "index 0"),
    "fewer features than indices": (read("huge.svm", n_features=5), (FORMAT, ValueError), "huge.svm"),
    "a target for svmlight": (read("zero.svm", target="y"), ValueError, "target"),
    "a short NPY file": (read("short.npy"), FORMAT, "NPY"),
    "text called NPY": (read("text.npy"), FORMAT, "NPY"),
    "a header that claims terabytes": (read("claims.npy"), FORMAT, "claims"),
    "a negative extent": (read("negative.npy"), FORMAT, "no sense"),
    "complex numbers in a file": (read("complex.npy"), FORMAT, "real numbers"),
    "a vector in a file": (read("vector.npy"), FORMAT, "matrix"),
    "an NPY file of the future": (read("version.npy"), FORMAT, "version 9"),
    "code in a header": (read("code.npy"), FORMAT, "no sense"),
    "a pickle in a file": (read("pickle.npy"), FORMAT, "pickled"),
    "NaN in a file": (read("nan.npy"), FORMAT, "NaN"),
    "an archive without X": (read("none.npz"), FORMAT, "must have an array X"),
    "an archive whose y is short": (read("rows.npz"), FORMAT, "3 entries"),
    "an archive with a cube": (read("cube.npz"), FORMAT, "matrix"),
    "a column that does not exist": (read("csr.npz"), FORMAT, "indices"),
    "rows that end before they start": (read("decrease.npz"), FORMAT, "decrease|belong together"),
    "half an archive": (read("cut.npz"), FORMAT, "damaged"),
    "an archive that would fill the memory": (read("bomb.npz"), FORMAT, "damaged"),
    "characters that do not exist": (read("characters.npz"), FORMAT, "characters"),
    "no Parquet file": (read("no.parquet"), FORMAT, "damaged"),
    "no Arrow file": (read("no.arrow"), FORMAT, "damaged"),
    "a model that is not there": (lambda: dapsgd.models.load("nowhere.npz"), FileNotFoundError, "nowhere"),
    "a model with another ending": (lambda: dapsgd.models.load("model.pkl"), ValueError, "npz"),
    "data for a model": (lambda: dapsgd.models.load("rows.npz"), FORMAT, "no model file"),
    "half a model": (lambda: dapsgd.models.load("cut.npz"), FORMAT, "damaged"),
    "a model of the future": (lambda: dapsgd.models.load("version.npz"), FORMAT, "version 99"),
    "a model that was not fitted": (lambda: dapsgd.models.save(ds.DAPRegressor(), "m.npz"), ValueError, "not fitted"),
    "a model of another package": (lambda: dapsgd.models.save(object(), "m.npz"), TypeError, "model"),
}


def resume(name, **options):
    return lambda: ds.solve(
        ds.Problem(X, Y), **{"algorithm": "dap-sgd", "max_iter": 50, "checkpoint": name, "resume": True} | options
    )


BROKEN = ds.CheckpointError
CHECKPOINTS = {
    "an archive that is no checkpoint": (resume("zip.ckpt"), BROKEN, "no checkpoint"),
    "text that is no checkpoint": (resume("text.ckpt"), BROKEN, "no checkpoint"),
    "an empty checkpoint": (resume("empty.ckpt"), BROKEN, "no checkpoint"),
    "a model for a checkpoint": (resume("version.npz", algorithm="fista"), BROKEN, "no checkpoint"),
    "a checkpoint in no folder": (resume("nowhere/run.ckpt"), ValueError, "no folder"),
    "a checkpoint that is a folder": (resume("."), ValueError, "folder"),
    "a checkpoint that is a number": (resume(3), TypeError, "checkpoint"),
    "resume without a checkpoint": (resume(None), ValueError, "resume"),
    "resume that is a word": (resume("run.ckpt", resume="yes"), TypeError, "resume"),
    "a checkpoint of another runtime": (resume("run.ckpt", runtime=type("Own", (), {"run": 0})()), ValueError, "runtime"),
    "never a checkpoint": (lambda: ds.Checkpoint("run.ckpt", every=0), ValueError, "every"),
    "a checkpoint nowhere": (lambda: ds.Checkpoint(None), TypeError, "checkpoint"),
}

MEMORY = {
    "a schedule beyond all memory": (
        lambda: ds.solve(ds.Problem(X, Y), "dap-sgd", max_iter=HUGE, record_schedule=True),
        ds.OutOfMemoryError,
        "GiB of memory",
    ),
    "more versions than memory": (
        lambda: ds.solve(ds.Problem(X, Y), "dap-sgd", runtime=ds.Simulated(1.0, 1.0), max_delay=HUGE, max_iter=HUGE),
        ds.OutOfMemoryError,
        "smaller max_delay",
    ),
    "more columns than a Gram matrix has room for": (
        lambda: ds.solve(ds.Problem(np.ones((2, 1 << 18)), np.ones(2)), "gram"),
        ds.OutOfMemoryError,
        "Gram matrix",
    ),
    "a copy beyond all memory": (
        lambda: ds.Problem(np.broadcast_to(np.zeros(1, np.int8), (1 << 25, 1 << 20)), Y),
        ds.OutOfMemoryError,
        "a copy of X",
    ),
}

OTHERS = {
    "a simulation of negative time": (lambda: ds.Simulated(work=-1.0), ValueError, "work"),
    "a simulation without masters": (lambda: ds.Simulated(masters=0), ValueError, "masters"),
    "a simulation with words": (lambda: ds.Simulated(work="fast"), TypeError, "work"),
    "a tail without a mean": (lambda: ds.HeavyTailed(1.0, tail=1.0), ValueError, "tail"),
    "a straggler that is not there": (
        lambda: ds.solve(ds.Problem(X, Y), "dap-sgd", runtime=ds.Simulated(ds.Straggler(1.0, worker=5), 1.0), workers=2),
        ValueError,
        "worker",
    ),
    "an empty record": (lambda: ds.Recorded([]), ValueError, "log"),
    "NaN in a record": (lambda: ds.Recorded([np.nan]), ValueError, "log"),
    "no active worker": (lambda: ds.Threads(active=0), ValueError, "active"),
    "a batch for dave-rpg": (lambda: ds.solve(ds.Problem(X, Y), "dave-rpg", batch_size=3), ValueError, "batch_size"),
    "a decreasing step for dave-rpg": (
        lambda: ds.solve(ds.Problem(X, Y), "dave-rpg", step=ds.InverseTime(1.0, 1.0)),
        ValueError,
        "step",
    ),
    "gram for sparse data": (lambda: ds.solve(ds.Problem(csr_matrix(X), Y), "gram"), ValueError, "gram"),
    "a working set for the nuclear norm": (
        lambda: ds.solve(ds.Problem(X, np.c_[Y, Y], regularizer=ds.NuclearNorm(1.0)), "working-set"),
        ValueError,
        "working-set",
    ),
    "fista in simulated time": (lambda: ds.solve(ds.Problem(X, Y), "fista", runtime=ds.Simulated()), ValueError, "runtime"),
    "a path of nothing": (lambda: ds.path(ds.Problem(X, Y, regularizer=ds.L1(1.0)), n_lams=0), ValueError, "n_lams"),
    "a path without a strength": (lambda: ds.path(ds.Problem(X, Y)), (TypeError, ValueError), "regularizer|strength|Zero"),
    "an estimator that was not fitted": (lambda: ds.DAPRegressor().predict(X), ValueError, "not fitted"),
    "a strength for cross-validation": (lambda: ds.DAPRegressorCV(alpha=1.0), TypeError, "alphas"),
    "a parameter by a wrong name": (lambda: ds.DAPRegressor(max_iter=9), TypeError, "max_passes"),
    "a penalty by a wrong name": (lambda: ds.DAPRegressor("l7").fit(X, Y), ValueError, "penalty"),
    "masked entries for an estimator": (lambda: ds.DAPRegressor().fit(np.ma.masked_less(X, 0.0), Y), TypeError, "X"),
    "masked targets for an estimator": (lambda: ds.DAPRegressor().fit(X, np.ma.masked_less(Y, 0.0)), TypeError, "y"),
    "a dataset for X": (lambda: ds.Problem(ds.io.Dataset(X, Y, None, ("y",)), Y), TypeError, "data.X"),
    "weights for other groups": (
        lambda: ds.Problem(X, Y, regularizer=ds.GroupLasso(1.0, list("aabbcc"), {"a": 1.0, "b": 2.0})),
        ValueError,
        "'c'",
    ),
    "a regulariser without its strength": (lambda: ds.L1(), TypeError, "lam"),
    "one class": (lambda: ds.DAPClassifier().fit(X, np.ones(20)), ValueError, "class"),
    "labels for the hinge": (lambda: ds.Problem(X, Y, ds.SquaredHinge()), ValueError, "-1"),
    "negative counts": (lambda: ds.Problem(X, -SIGNS, ds.Poisson()), ValueError, "y"),
    "half a class": (lambda: ds.Problem(X, np.full(20, 0.5), ds.Multinomial()), ValueError, "y"),
    "a one-dimensional sparse array": (lambda: ds.Problem(coo_array(np.ones(3)), Y), (ValueError, TypeError), "X"),
    "an X of words": (lambda: ds.Problem([["a"]], [1.0]), TypeError, "X"),
    "an X of dates": (lambda: ds.Problem(np.zeros((20, 2), "M8[s]"), Y), TypeError, "X"),
    "dates for an estimator": (lambda: ds.DAPRegressor().fit(np.zeros((20, 2), "M8[s]"), Y), TypeError, "X"),
    "weights of words": (lambda: ds.Problem(X, Y, sample_weight=["a"] * 20), TypeError, "sample_weight"),
    "no gap": (lambda: ds.Problem(X, Y, regularizer=ds.Zero()).duality_gap(np.zeros(6)), ValueError, "duality gap"),
    "an intercept that is not fitted": (lambda: ds.Problem(X, Y).objective(np.zeros(6), 1.0), ValueError, "intercept"),
    "a step that blows up": (
        lambda: ds.solve(ds.Problem(X, Y), "dap-sgd", step=ds.Constant(1e6), max_iter=10_000),
        ds.DivergenceError,
        "too long",
    ),
}

SOLVE_CALLS = {
    f"solve: {name}": (
        lambda options=options: ds.solve(**{"problem": ds.Problem(X, Y), "algorithm": "dap-sgd", **options}),
        kind,
        words,
    )
    for name, (options, kind, words) in SOLVES.items()
}

TABLE = {**PROBLEMS, **SOLVE_CALLS, **FILES, **CHECKPOINTS, **MEMORY, **OTHERS}


def write_files():
    for name, content in files().items():
        with open(name, "wb") as file:
            file.write(content)


def main():
    """Print the table."""
    print("# Bad inputs, and what is said of each\n")
    print("Whatever is wrong with a file is a `FileFormatError`; some of these have names of their own below. A table made by")
    print("`python -m tests.bad_inputs`; the tests check the errors. Estimators leave some of these")
    print("checks to scikit-learn, whose words they are then.\n")
    print("| input | error | what it says |\n| --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_files()
        for name, (call, _, _) in TABLE.items():
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    call()
            except Exception as error:
                said = " ".join(str(error).split())
                for shown in (os.path.realpath(folder), folder):
                    said = said.replace(f"{shown}/", "").replace(shown, "this folder")
                said = re.sub(r"<\S+ object at 0x[0-9a-f]+>", "<object>", said).replace("|", "\\|")
                said = re.sub(r"[\d,.]+ GiB are", "... GiB are", said)
                print(f"| {name} | `{type(error).__name__}` | {said} |")
        os.chdir("/")


if __name__ == "__main__":
    main()
