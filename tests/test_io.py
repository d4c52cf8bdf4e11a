"""Files: every kind is read right, and whatever is wrong with one is a sentence that names it."""

import builtins
import csv
import gzip
import itertools
import json
import os
import re
import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csc_matrix, csr_matrix, save_npz
from sklearn.datasets import dump_svmlight_file

import dapsgd as ds
from dapsgd import io
from dapsgd._arguments import by_shell
from dapsgd.io import _csv, _numpy, _source, _svmlight

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 5)).round(3)
Y = RNG.standard_normal(40).round(3)
NAMES = ["a", "b", "c", "d", "e"]
SPARSE = csr_matrix(np.where(RNG.random((40, 7)) < 0.4, RNG.standard_normal((40, 7)).round(3), 0.0))


def write_csv(path, X=X, y=Y, names=(*NAMES, "y"), separator=",", opener=open):
    lines = [separator.join(names)] if names else []
    lines += [separator.join([*map(repr, map(float, row)), str(target)]) for row, target in zip(X, y, strict=True)]
    with opener(path, "wt", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return path


def write_arrow(path, columns):
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet

    table = pa.table(columns)
    if path.suffix == ".parquet":
        pa.parquet.write_table(table, path)
    else:
        pa.feather.write_feather(table, path, compression="uncompressed")
    return path


def columns():
    return {name: X[:, j] for j, name in enumerate(NAMES)} | {"y": Y}


def kinds(folder):
    """Return a file of every kind with the option that names its target."""
    write_csv(folder / "t.csv")
    write_csv(folder / "t.tsv", separator="\t")
    write_csv(folder / "semicolon.csv", separator=";")
    write_csv(folder / "t.csv.gz", opener=gzip.open)
    np.save(folder / "t.npy", np.column_stack([X, Y]))
    np.save(folder / "fortran.npy", np.asfortranarray(np.column_stack([X, Y])))
    np.savez(folder / "t.npz", X=X, y=Y)
    np.savez_compressed(folder / "zipped.npz", X=np.asfortranarray(X), y=Y)
    write_arrow(folder / "t.parquet", columns())
    write_arrow(folder / "t.feather", columns())
    targets = {".npy": -1, ".npz": None}
    return [(path, targets.get(path.suffix, "y")) for path in sorted(folder.iterdir())]


@pytest.fixture
def arrow_always(monkeypatch):
    monkeypatch.setattr(_csv, "_WORTH_ARROW", 0)
    monkeypatch.setattr(_csv, "_ARROW_BLOCK", 300)


@pytest.fixture
def small_blocks(monkeypatch):
    for module in (_csv, _numpy, _svmlight, io._arrow):
        monkeypatch.setattr(module, "BLOCK_BYTES", 300)


@pytest.mark.parametrize("blocks", ["whole", "small_blocks", "arrow_always"])
def test_every_kind_of_table_is_read_and_converted_alike(tmp_path, request, blocks):
    if blocks != "whole":
        request.getfixturevalue(blocks)
    for path, target in kinds(tmp_path):
        data = io.read(path, target)
        np.testing.assert_array_equal(data.X, X, err_msg=str(path))
        np.testing.assert_array_equal(data.y, Y, err_msg=str(path))
        assert data.X.flags.c_contiguous
        if path.suffix not in (".npy", ".npz"):
            assert data.feature_names == tuple(NAMES)
            assert data.target_names == ("y",)
        converted = io.convert(path, target=target)
        assert isinstance(converted.X, np.memmap)
        np.testing.assert_array_equal(converted.X, X)
        np.testing.assert_array_equal(converted.y, Y)
        assert converted.feature_names == data.feature_names
        assert converted.target_names == data.target_names


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("name", ["t.svm", "t.libsvm.gz"])
def test_svmlight(tmp_path, request, small, zero_based, name):
    if small:
        request.getfixturevalue("small_blocks")
    path = tmp_path / name
    dump_svmlight_file(SPARSE, Y, str(tmp_path / "plain"), zero_based=zero_based, comment="made here")
    text = (tmp_path / "plain").read_bytes()
    path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    for data in (io.read(path), io.convert(path), io.convert(path)):
        assert (data.X != SPARSE).nnz == 0
        np.testing.assert_allclose(data.y, Y)
        assert data.zero_based is zero_based
    assert isinstance(io.convert(path).X.data.base, (np.memmap, np.ndarray))
    wider = io.read(path, n_features=9, zero_based=zero_based)
    assert wider.X.shape == (40, 9)


def test_a_sparse_archive(tmp_path, small_blocks):
    np.savez(
        tmp_path / "parts.npz", X_data=SPARSE.data, X_indices=SPARSE.indices, X_indptr=SPARSE.indptr, X_shape=SPARSE.shape, y=Y
    )
    save_npz(tmp_path / "scipy.npz", SPARSE)
    for name in ("parts.npz", "scipy.npz"):
        for data in (io.read(tmp_path / name), io.convert(tmp_path / name)):
            assert (data.X != SPARSE).nnz == 0
            assert (data.y is None) == (name == "scipy.npz")
    save_npz(tmp_path / "csc.npz", csc_matrix(SPARSE))
    with pytest.raises(ds.FileFormatError, match="CSR"):
        io.read(tmp_path / "csc.npz")


def test_columns_are_chosen_by_name_and_by_position(tmp_path):
    path = write_csv(tmp_path / "t.csv")
    assert io.column_names(path) == [*NAMES, "y"]
    for target in ("y", 5, -1, "5", "-1"):
        np.testing.assert_array_equal(io.read(path, target).y, Y)
    several = io.read(path, ["y", "a"], drop=["b", 2])
    np.testing.assert_array_equal(several.y, np.column_stack([Y, X[:, 0]]))
    assert several.feature_names == ("d", "e")
    assert io.convert(path, target=["y", "a"]).y.shape == (40, 2)
    chosen = io.read(path, features=["c", "a"])
    np.testing.assert_array_equal(chosen.X, X[:, [2, 0]])
    assert chosen.y is None


def test_a_header_is_noticed(tmp_path):
    bare = write_csv(tmp_path / "bare.csv", names=())
    assert io.column_names(bare) is None
    data = io.read(bare, -1)
    np.testing.assert_array_equal(data.X, X)
    assert data.feature_names is None
    assert data.target_names == ("5",)
    digits = write_csv(tmp_path / "digits.csv", names=("900", "902", "904", "906", "908", "910"))
    with pytest.raises(ds.FileFormatError, match="line 1 may be names or a row, as its numbers are in order"):
        io.read(digits)
    assert io.read(digits, header=False).X.shape == (41, 6)
    assert io.read(digits, "910", header=True).feature_names == ("900", "902", "904", "906", "908")


@pytest.mark.parametrize("arrow", [False, True])
def test_a_target_may_be_text(tmp_path, request, arrow):
    if arrow:
        request.getfixturevalue("arrow_always")
    labels = np.where(Y > 0, "up, high", "down")
    path = tmp_path / "t.csv"
    write_csv(path, y=[f'"{label}"' for label in labels])
    write_arrow(tmp_path / "t.parquet", columns() | {"y": labels})
    np.savez(tmp_path / "t.npz", X=X, y=labels)
    for file in (path, tmp_path / "t.parquet", tmp_path / "t.npz"):
        for data in (io.read(file, "y"), io.convert(file, target="y"), io.convert(file, target="y")):
            assert data.y.tolist() == labels.tolist()
            np.testing.assert_array_equal(data.X, X)


def test_single_precision_is_kept_or_asked_for(tmp_path):
    np.save(tmp_path / "t.npy", X.astype(np.float32))
    assert io.read(tmp_path / "t.npy").X.dtype == np.float32
    assert io.read(tmp_path / "t.npy", dtype="float64").X.dtype == np.float64
    path = write_csv(tmp_path / "t.csv")
    assert io.read(path, dtype="float32").X.dtype == np.float32
    assert io.convert(path, target="y", dtype=np.float32).X.dtype == np.float32
    np.save(tmp_path / "int.npy", np.arange(6).reshape(3, 2))
    assert io.read(tmp_path / "int.npy").X.dtype == np.float64


def test_a_table_of_many_blocks_does_not_depend_on_pyarrow(tmp_path, monkeypatch):
    path = write_csv(tmp_path / "t.csv")
    plain = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return plain(name, *args, **kwargs)

    monkeypatch.setattr(_csv, "_WORTH_ARROW", 0)
    monkeypatch.setattr(builtins, "__import__", without)
    np.testing.assert_array_equal(io.read(path, "y").X, X)
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    with pytest.raises(ImportError, match=r"pip install 'dapsgd\[io\]'"):
        io.read(tmp_path / "t.parquet")


# Conversion.


def test_a_converted_file_is_opened_not_converted_again(tmp_path, monkeypatch):
    path = write_csv(tmp_path / "t.csv")
    io.convert(path, target="y")
    monkeypatch.setattr(io._folder, "_write", None)
    np.testing.assert_array_equal(io.convert(path, target="y").X, X)
    np.testing.assert_array_equal(io.open_folder(io.default_folder(path)).y, Y)


def test_a_changed_file_or_other_options_convert_again(tmp_path):
    path = write_csv(tmp_path / "t.csv")
    io.convert(path, target="y")
    write_csv(path, X=X + 1.0)
    os.utime(path, ns=(1, 1))
    np.testing.assert_allclose(io.convert(path, target="y").X, X + 1.0)
    assert io.convert(path, target="a").feature_names == ("b", "c", "d", "e", "y")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["t.csv", "t.csv.dapsgd"]


def test_an_interrupted_conversion_leaves_nothing_new(tmp_path, monkeypatch):
    path = write_csv(tmp_path / "t.csv")
    plain = io._folder.Labels.encode

    def interrupted(self, y):
        raise KeyboardInterrupt

    monkeypatch.setattr(io._folder.Labels, "encode", interrupted)
    with pytest.raises(KeyboardInterrupt):
        io.convert(path, target="y")
    assert list(tmp_path.iterdir()) == [path]
    monkeypatch.setattr(io._folder.Labels, "encode", plain)
    io.convert(path, target="y")
    monkeypatch.setattr(io._folder.Labels, "encode", interrupted)
    with pytest.raises(KeyboardInterrupt):
        io.convert(path, target="y", drop="a")
    assert io.open_folder(io.default_folder(path)).X.shape == (40, 5)  # the old one
    assert len(list(tmp_path.iterdir())) == 2


def test_a_damaged_folder_is_said_to_be_one_and_made_anew(tmp_path):
    dump_svmlight_file(SPARSE, Y, str(tmp_path / "t.svm"))
    for path in (write_csv(tmp_path / "t.csv"), tmp_path / "t.svm"):
        options = {"target": "y"} if path.suffix == ".csv" else {}
        io.convert(path, **options)
        folder = io.default_folder(path)
        for file in sorted(folder.iterdir()):
            whole = file.read_bytes()
            for damage in (whole[: len(whole) // 2], b"", b"\0" * len(whole), None):
                file.unlink()
                if damage is not None:
                    file.write_bytes(damage)
                with pytest.raises(ds.FileFormatError, match=r"t\.csv|t\.svm"):
                    io.open_folder(folder)
                assert io.convert(path, **options).X.shape[0] == 40
        meta = json.loads((folder / "meta.json").read_text())
        for changed in (
            meta | {"version": 99},
            meta | {"format": "x"},
            meta | {"rows": 41},
            meta | {"columns": 3},
            meta | {"target_names": 5},
            {},
            [],
        ):
            (folder / "meta.json").write_text(json.dumps(changed))
            with pytest.raises(ds.FileFormatError):
                io.open_folder(folder)


def test_a_folder_that_is_not_ours_is_left_alone(tmp_path):
    path = write_csv(tmp_path / "t.csv")
    precious = tmp_path / "folder"
    precious.mkdir()
    (precious / "thesis.tex").write_text("x")
    with pytest.raises(ValueError, match="folder must be new"):
        io.convert(path, precious, "y")
    assert (precious / "thesis.tex").exists()
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        io.convert(path, tmp_path / "no" / "such", "y")


def test_progress_is_shown(tmp_path, capsys, monkeypatch):
    path = write_csv(tmp_path / "t.csv")
    monkeypatch.setattr("dapsgd._progress._SOON", 0.0)
    io.convert(path, tmp_path / "silent", target="y")
    assert capsys.readouterr().err == ""
    io.convert(path, tmp_path / "log", target="y", progress=True)
    assert capsys.readouterr().err.startswith("converting t.csv: ")
    monkeypatch.setattr("dapsgd._progress._is_watched", lambda: True)
    io.convert(path, tmp_path / "bar", target="y", progress=True)
    assert "converting t.csv" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["csv", "npy", "npz", "svm"])
def test_conversion_holds_a_few_blocks_in_memory(tmp_path, monkeypatch, kind):
    big = RNG.standard_normal((20_000, 20))
    path = tmp_path / f"t.{kind}"
    if kind == "csv":
        np.savetxt(path, big, delimiter=",", fmt="%.3f")
    elif kind == "svm":
        dump_svmlight_file(big.round(2), np.zeros(len(big)), str(path))
    elif kind == "npy":
        np.save(path, big)
    else:
        np.savez(path, X=big)
    for module in (_csv, _numpy, _svmlight, _source):
        monkeypatch.setattr(module, "BLOCK_BYTES", 1 << 16)
    monkeypatch.setattr(_csv, "_WORTH_ARROW", 1 << 40)
    io.convert(path, tmp_path / "warm")
    tracemalloc.start()
    data = io.convert(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert data.X.shape == big.shape
    assert peak < (2 << 20)  # the data are 3.2 MB
    if kind != "svm":
        np.testing.assert_allclose(data.X, big, atol=1e-3)


# What is wrong is said.

BAD_TEXT = {
    "empty.csv": ("", {}, "is empty"),
    "header.csv": ("a,b,y\n", {}, "no rows"),
    "text.csv": ("a,b,y\n1,2,3\n4,five,6\n", {}, r"line 3, column 'b': 'five' is not a number"),
    "textcolumn.csv": ("a,b,y\nred,2,3\n", {}, r"line 2, column 'a': 'red'.*leave it out with drop$"),
    "missing.csv": ("a,b,y\n1,2,3\n\n4,,6\n", {}, r"line 4, column 'b': the value is missing"),
    "nan.csv": ("a,b,y\n1,2,3\n4,NaN,6\n", {}, r"line 3, column 'b': the value 'NaN' counts as missing; "),
    "class none.csv": (
        "a,b,y\n1,2,none\n4,5,x\n7,8,x\n",
        {},
        r"line 2, column 'y': the value 'none' counts as missing; .*if it is a class, give that another name$",
    ),
    "late none.csv": (
        "a,b,y\n1,2,x\n4,5, None\n",
        {},
        r"line 3, column 'y': the value 'None' counts as missing; .*if it is a class, give that another name$",
    ),
    "number none.csv": (
        "a,b,y\n1,2,3\n4,5,none\n",
        {},
        r"line 3, column 'y': the value 'none' counts as missing; fill it in, or .* with skip_missing=True$",
    ),
    "inf.csv": ("a,b,y\n1,2,3\n4,inf,6\n", {}, r"line 3, column 'b': 'inf' is not finite"),
    "short.csv": ("a,b,y\n1,2,3\n4,5\n", {}, r"line 3 has 2 fields; there should be 3"),
    "long.csv": ("a,b,y\n1,2,3\n4,5,6,7\n", {}, r"line 3 has 4 fields"),
    "case.csv": ("Id,a,y\ns,1,3\n", {"drop": ["id"]}, r"did you mean 'Id'"),
    "long first.csv": ("a,b,y\n1,2,3,4\n", {}, r"line 2 has 4 fields; the header has 3"),
    "quote.csv": ('a,b,y\n1,2,3\n4,"5,6\n', {}, "quote.csv"),
    "twice.csv": ("a,a,y\n1,2,3\n", {}, "two columns named 'a'"),
    "nameless.csv": (",a,y\n0,2,3\n", {}, "column 0 has no name.*with drop=0$"),
    "target.csv": ("a,b,y\n1,2,3\n4,5,x\n", {}, r"line 3, column 'y': 'x' is not a number"),
    "late number.csv": ("a,b,y\n1,2,x\n4,5,\n", {}, r"line 3, column 'y': the value is missing"),
    "no such.csv": ("a,b,yy\n1,2,3\n", {}, r"target 'y' is not a column.*did you mean 'yy'"),
    "position.csv": ("a,b,y\n1,2,3\n", {"target": 3}, "target 3 is not a column"),
    "bare.csv": ("1,2,3\n", {}, "target must be a position"),
    "only.csv": ("y\n1\n", {}, "seems to have one column only, 'y'; separate columns by commas"),
    "bars.csv": ("a|b|y\n1|2|3\n", {}, r"one column only, 'a\|b\|y'; separate columns by commas, semicolons or tabs, and"),
    "blanks.csv": ("1 2 3\n4 5 6\n", {"target": -1}, "one column only, '1 2 3'"),
    "bars by name.csv": ("a|b\n1|2\n", {"target": None, "features": ["a", "b"]}, "one column only"),
    "decimal comma.csv": ("a;b;y\n1,5;2;3\n", {}, "'1,5' has a decimal comma; write numbers with a point, or say decimal=','$"),
    "late comma.csv": ("a;b;y\n1.5;2;3\n1;2,5;3\n", {}, "line 3, column 'b': '2,5' has a decimal comma"),
    "thousands.csv": ('a,b,y\n1,"1,000.5",3\n', {}, "'1,000.5' has separators of thousands; write numbers without them$"),
    "late thousands.csv": ("a,b,y\n1,2,3\n1,2,4 000 000\n", {}, "line 3, column 'y': '4 000 000' has separators of thousands"),
    "underscores.csv": ("a,b,y\n1,1_000,3\n", {}, "line 2, column 'b': '1_000' has separators of thousands; write numbers"),
    "late underscores.csv": (
        "a;b;y\n1;2;3\n1;1_000_000,5;3\n",
        {"decimal": ","},
        "line 3, column 'b': '1_000_000,5' has separators of thousands",
    ),
    "an underscore.csv": ("a,b,y\n1,2,3\n1,2,1_0\n", {}, "line 3, column 'y': '1_0' is not a number"),
    "no position.csv": ("a,b,y\n1,2,3\n", {"target": "0_1"}, "target '0_1' is not a column of .*; its columns are 'a', 'b'"),
    "either comma.csv": (
        "a;b;y\n1,500;2;3\n",
        {},
        "'1,500' has a comma, of decimals or of thousands; write numbers with a point",
    ),
    "point.csv": ("a;b;y\n1,5;2.5;3\n", {"decimal": ","}, "'2.5' has a decimal point; .* or leave decimal=',' out"),
    "late point.csv": ("a;b;y\n1,5;2;3\n1;2.5;3\n", {"decimal": ","}, "line 3, column 'b': '2.5' has a decimal point"),
    "units.csv": ("a,b,y\nnm,mm,\n1,2,3\n", {}, "line 2 may be units or a second header, as the next holds numbers"),
    "unit.csv": ("a,y\nnm,%\n1,3\n", {}, "line 2 may be units or a second header"),
    "texts.csv": ("a,b,c,y\nred,low,1,2\ngreen,high,1,3\n", {}, "line 2 has text in columns 'a', 'b'"),
    "latin.csv": (
        "a,b,y\n1,2,\xff\n".encode("latin-1"),
        {},
        "line 2 is not UTF-8 text; save the file as UTF-8, .* encoding='cp1252'$",
    ),
    "utf16.csv": ("a,b,y\n1,2,3\n".encode("utf-16"), {}, "line 1 is not UTF-8 text; save .* such as encoding='utf-16'$"),
    "le.csv": ("a,b,y\n1,2,3\n".encode("utf-16-le"), {}, "line 1 is not UTF-8 text; save .* such as encoding='utf-16-le'$"),
    "be.csv": ("a,b,y\n1,2,3\n".encode("utf-16-be"), {}, "line 1 is not UTF-8 text; save .* such as encoding='utf-16-be'$"),
    "binary.csv": (bytes(range(256)), {}, "binary.csv: line . is not UTF-8 text; .* with encoding$"),
    "not ascii.csv": ("a,b,y\n1,2,\xff\n".encode(), {"encoding": "ascii"}, "line 2 is not ascii .* such as encoding='utf-8'$"),
    "hole.csv": (b"a,b,y\r\n1,2,3\r\n4,\x81,6\r\n", {"encoding": "cp1252"}, "line 3 is not cp1252 text; .* with encoding$"),
    "mac.csv": (b"a,b,y\r1,2,3\r4,\x81,6\r", {"encoding": "cp1252"}, "line 3 is not cp1252 text"),
    "surrogate.csv": (
        "a,b,y\n1,2,3\n".encode("utf-16-le") + b"\x00\xd8,\x00",
        {"encoding": "utf-16-le"},
        "line 3 is not utf-16-le text",
    ),
    "cut.csv": (
        "a,b,y\n1,2,3\n4,5,6".encode("utf-16")[:-1],
        {"encoding": "utf-16"},
        "line 3 is not utf-16 text; .* with encoding$",
    ),
    "wrong.csv": ("a,b,y\n1,2,3\n".encode("utf-16"), {"encoding": "latin-1"}, "line 1 is not latin-1 .* encoding='utf-16'$"),
    "marked.csv": ("a,b,y\n1,2,3\n".encode("utf-8-sig"), {"encoding": "cp1252"}, "line 1 is not cp1252 .*encoding='utf-8'$"),
    "comments.csv": (
        "# x\n# y\na,b,y\n1,2,3\n",
        {},
        "one column only, '# x'; .* leave out lines above the table with skip_lines$",
    ),
    "title.csv": (
        "My report\na,b,y\n1,2,3\n",
        {},
        "line 2 has 3 fields; the header has 1; .* the lines above it with skip_lines$",
    ),
    "wide title.csv": (
        "My report,,\na,b,y\n1,2,3\n",
        {},
        "target 'y' is not a column .*; if the header is further down, leave out the lines above it with skip_lines$",
    ),
    "wide comment.csv": ("# made by, x\n# on, z\na,b,y\n1,2,3\n", {}, "its columns are '# made by', ' *x'; if the header is"),
    "wide title, last.csv": (
        "My report,,\na,b,y\n1,2,3\n",
        {"target": -1},
        "column 1 has no name .* above it with skip_lines$",
    ),
    "full title.csv": (
        "\nMy,report,today\na,b,y\n1,2,3\n",
        {"target": -1},
        "line 3 may be units or a second header.*; delete it, or if it is the header, .* with skip_lines=2$",
    ),
    "title of features.csv": (
        "My report,,\na,b,y\n1,2,3\n",
        {"target": None, "features": ["a", "b"]},
        "lacks 2 of 2 columns: 'a', 'b'; if the header is further down, leave out the lines above it with skip_lines$",
    ),
    "no title.csv": ("a,b,z\n1,2,3\n", {}, "its columns are 'a', 'b', 'z'$"),
    "few lines.csv": ("a,b,y\n1,2,3\n", {"skip_lines": 3}, "few lines.csv has 2 lines; skip_lines=3 leaves nothing$"),
    "very few lines.csv": ("a,b,y\n", {"skip_lines": 10**30}, "has 1 line; skip_lines=1000"),
    "nothing below.csv": ("a,b,y\n1,2,3\n\n", {"skip_lines": 2}, "is empty below the lines left out with skip_lines$"),
    "nothing.csv.gz": (gzip.compress(b""), {"skip_lines": 1}, "has 0 lines"),
    "below.csv": ('# "x\n#\na,b,y\n1,2,3\n4,five,6\n', {"skip_lines": 2}, "line 5, column 'b': 'five' is not a number"),
    "missing below.csv": ("#\n#\na,b,y\n1,2,3\n4,,6\n", {"skip_lines": 2}, "line 5, column 'b': the value is missing"),
    "short below.csv": ("#\n#\na,b,y\n1,2,3\n4,5\n", {"skip_lines": 2}, "line 5 has 2 fields"),
    "short first below.csv": ("#\n#\na,b,y\n4,5\n", {"skip_lines": 2}, "line 4 has 2 fields; the header has 3"),
    "units below.csv": ("#\na,b,y\nnm,mm,\n1,2,3\n", {"skip_lines": 1}, "line 3 may be units"),
    "texts below.csv": ("#\n\na,b,c,y\nred,low,1,2\ngreen,high,1,3\n", {"skip_lines": 1}, "line 4 has text in columns"),
    "either below.csv": ("#\n\n900,910,920,930\n4,1,3,95\n", {"skip_lines": 1, "target": -1}, "line 3 may be names or a row"),
    "words below.csv": ("#\na,b\n3,4\n", {"header": False, "skip_lines": 1}, "line 2 holds nothing but text"),
    "latin below.csv": (b"#\na,b,y\n1,2,3\n1,2,\xff\n", {"skip_lines": 1}, "line 4 is not UTF-8 text"),
    "utf16 below.csv": (b"#\n" + "a,b,y\n1,2,3\n".encode("utf-16-le"), {"skip_lines": 1}, "line 2 is not UTF-8 text"),
    "bad.csv.gz": (gzip.compress(b"a,b,y\n1,2,3\n4,5,\xff\n"), {"encoding": "ascii"}, "line 3 is not ascii text"),
    "plain.csv.gz": ("a,b,y\n1,2,3\n", {}, "damaged"),
    "drop.csv": ("a,b,y\n1,2,3\n", {"drop": "z"}, "drop 'z' is not a column"),
    "both.csv": ("a,b,y\n1,2,3\n", {"drop": "y"}, "drop and target"),
    "features.csv": ("a,b,y\n1,2,3\n", {"features": ["a", "q", "r"]}, "lacks 2 of 3 columns: 'q', 'r'"),
    "capitals.csv": (
        "a,B,y\n1,2,3\n",
        {"features": ["a", "b"]},
        "'b'; it has 'B': rename that if it is 'b'",
    ),
    "row.csv": ("1,2\n3,4\n", {"target": None, "features": ["a", "b"], "header": True}, "nothing but numbers: is it a row?"),
    "no names.csv": (
        "1,2\n3,4\n",
        {"target": None, "features": ["a", "b"]},
        "has no column names; say header=True if its first line is names",
    ),
    "refused names.csv": (
        "1,2\n3,4\n",
        {"target": None, "features": ["1", "2"], "header": False},
        "has no column names; leave header=False out",
    ),
    "number.csv": ("10,7,20\n3,4,5\n", {"target": "20"}, "'20' stands in its first line: say header=True if that is names"),
    "spelt.csv": ("10.0,7.0\n3,4\n", {"target": None, "features": ["10", "7"]}, "lacks 2 of 2 columns.*it has '10.0': rename"),
    "some.csv": (
        "10,7,20\n3,4,5\n",
        {"target": None, "features": ["10", "20", "30"]},
        "line 1 may be names or a row, as it holds some of the names that are looked for; say header=True or header=False",
    ),
    "either.csv": ("s1,0.5,0.1,0.7,y\ns2,1,2,3,4\n", {}, "line 1 may be names or a row"),
    "labels.csv": (
        "1104,1100,1112,1108,1120,1116,1128,1124\n0.5,0.1,0.7,0.2,0.3,0.4,0.6,0.9\n",
        {"target": None},
        "line 1 may be names or a row, as its numbers are whole and all different",
    ),
    "words.csv": ("a,b\n3,4\n", {"header": False}, "as a header does; leave header=False out"),
    "zero.csv": ("a,b,y\n1,2,3\n", {"zero_based": True}, "zero_based means nothing"),
    "label.svm": ("x 1:2\n", {}, "line 1: the label must be a number; got 'x'"),
    "pair.svm": ("1 1:2\n1 3\n", {}, "line 2: '3' is not of the form"),
    "value.svm": ("1 1:2\n1 3:x\n", {}, "line 2: the value in '3:x' must be a number"),
    "order.svm": ("1 1:2\n1 3:1 2:1\n", {}, "line 2: the indices must increase"),
    "nan.svm": ("1 1:2\n1 3:nan\n", {}, "line 2: the value in '3:nan' must be finite"),
    "infinite label.svm": ("1 1:2\ninf 3:1\n", {}, "line 2: the label must be finite"),
    "negative.svm": ("1 -1:2\n", {}, "line 1: '-1:2' is not of the form"),
    "huge.svm": ("1 1:2\n1 1000000000000000:1\n", {}, "line 2: the index in '1000000000000000:1' is too large"),
    "huge2.svm": ("1 1:2\n1 100000000000000000000000000000:1\n", {}, "line 2: the index.*too large"),
    "huge3.svm": ("1 1:2\n1 2000000000:1\n", {}, "line 2: the index.*n_features"),
    "multi.svm": ("1,2 1:2\n", {}, "line 1: the label"),
    "nothing.svm": ("", {}, "no rows"),
    "comment.svm": ("# nothing\n", {}, "comment.svm"),
    "zeros.svm": ("1 \0:1\n", {}, "line 1"),
    "named.svm": ("1 1:2\n", {"target": "y"}, "target means nothing"),
    "narrow.svm": ("1 1:2 9:1\n", {"n_features": 3}, "9 columns; n_features is 3"),
    "based.svm": ("1 0:2\n", {"zero_based": False}, "index 0"),
    "text.npy": ("a,b\n", {}, "damaged, or is no NPY file"),
    "text.npz": ("a,b\n", {}, "damaged, or is no NPZ file"),
    "text.parquet": ("a,b\n", {}, "damaged, or is no Parquet file"),
    "text.feather": ("a,b\n", {}, "damaged, or is no Arrow file"),
    "t.xlsx": ("", {}, "must end in one of .csv"),
    "t.pickle": ("", {}, "must end in one of .csv"),
    "t.npy.gz": ("", {}, "must end in one of .csv"),
}


@pytest.mark.parametrize("arrow", [False, True])
@pytest.mark.parametrize("name", BAD_TEXT)
def test_a_bad_file_is_named(tmp_path, request, name, arrow):
    if arrow:
        request.getfixturevalue("arrow_always")
    content, options, message = BAD_TEXT[name]
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    given = {"target": "y"} if ".csv" in name else {}
    with pytest.raises((ValueError, ds.FileFormatError), match=message) as caught:
        io.read(path, **given | options)
    assert name in str(caught.value)
    if "features" not in options:
        with pytest.raises((ValueError, ds.FileFormatError), match=message):
            io.convert(path, **given | options)
        assert list(tmp_path.iterdir()) == [path]


def npy_with_header(path, shape, descr="<f8", body=b"\0" * 80):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + body)
    return path


def bad_arrays(folder):
    np.save(folder / "cube.npy", np.zeros((2, 2, 2)))
    np.save(folder / "vector.npy", np.zeros(3))
    np.save(folder / "text.npy", np.array([["a"]]))
    np.save(folder / "complex.npy", np.zeros((2, 2), complex))
    np.save(folder / "pickled.npy", np.array([[{}]], dtype=object), allow_pickle=True)
    np.save(folder / "records.npy", np.zeros(3, dtype=[("a", "f8")]))
    np.save(folder / "nan.npy", np.full((2, 2), np.nan))
    np.save(folder / "none.npy", np.zeros((0, 3)))
    npy_with_header(folder / "huge.npy", (10**12, 5))
    npy_with_header(folder / "negative.npy", (-2, -5))
    npy_with_header(folder / "overflow.npy", (2**62, 4))
    npy_with_header(folder / "short.npy", (3, 5))
    npy_with_header(folder / "object.npy", (2, 5), descr="|O")
    npy_with_header(folder / "old.npy", (4, 5), descr="<a4")  # of which NumPy would warn
    np.savez(folder / "no X.npz", y=Y)
    np.savez(folder / "short y.npz", X=X, y=Y[:-1])
    np.savez(folder / "cube y.npz", X=X, y=Y.reshape(40, 1, 1))
    np.savez(folder / "complex y.npz", X=X, y=Y + 1j)
    np.savez(folder / "nan y.npz", X=X, y=np.full(40, np.nan))
    np.savez(folder / "pickled.npz", X=np.array([[{}]], dtype=object), y=Y, allow_pickle=True)
    parts = {
        "X_data": SPARSE.data,
        "X_indices": SPARSE.indices,
        "X_indptr": SPARSE.indptr,
        "X_shape": np.array(SPARSE.shape),
        "y": Y,
    }
    np.savez(folder / "indices.npz", **parts | {"X_indices": SPARSE.indices + 100})
    np.savez(folder / "indptr.npz", **parts | {"X_indptr": SPARSE.indptr[::-1]})
    np.savez(folder / "data.npz", **parts | {"X_data": SPARSE.data[:-1]})
    np.savez(folder / "shape.npz", **parts | {"X_shape": np.array([40])})
    np.savez(folder / "decrease.npz", **parts | {"X_indptr": np.r_[0, 50, SPARSE.indptr[2:]]})
    write_arrow(folder / "null.parquet", columns() | {"a": [None, *X[1:, 0]]})
    write_arrow(folder / "nan.parquet", columns() | {"a": [*X[1:, 0], np.nan]})
    write_arrow(folder / "text.parquet", columns() | {"a": ["x"] * 40})
    write_arrow(folder / "dates.feather", columns() | {"a": np.arange(40).astype("datetime64[s]")})
    (folder / "folder.csv").mkdir()
    return sorted(folder.iterdir())


def test_bad_arrays_are_named_before_memory_is_asked_for(tmp_path):
    for path in bad_arrays(tmp_path):
        with pytest.raises(ds.FileFormatError) as caught:
            io.read(path, "y" if path.suffix in (".parquet", ".feather") else None)
        assert path.name in str(caught.value)
    for path in tmp_path.glob("*.p*q*"):
        with pytest.raises(ds.FileFormatError, match="column 'a'"):
            io.read(path, "y")


def test_names_are_not_read_with_options_of_another_kind_of_file(tmp_path):
    np.save(tmp_path / "x.npy", X)
    write_arrow(tmp_path / "x.parquet", columns())
    (tmp_path / "x.svm").write_text("1 1:2\n")
    for name, kind in (("x.npy", "an NPY file"), ("x.parquet", "a Parquet file"), ("x.svm", "an svmlight file")):
        with pytest.raises(ValueError, match=f"decimal means nothing for {kind}"):
            io.column_names(tmp_path / name, decimal=",")


def test_the_index_of_a_frame_is_no_column(tmp_path):
    path = tmp_path / "x.parquet"
    write_arrow(path, columns() | {"__index_level_0__": np.arange(len(X))})
    with pytest.raises(ds.FileFormatError, match=r"is the index of a pandas frame, .* drop='__index_level_0__', or write"):
        io.read(path, "y")
    assert io.read(path, "y", drop="__index_level_0__").X.shape == X.shape


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_pipes_and_folders_do_not_become_files(tmp_path):
    pipe = tmp_path / "pipe.npz"
    os.mkfifo(pipe)
    model = ds.DAPRegressor("l1", 0.1).fit(X, Y)
    with pytest.raises(FileExistsError, match=r"pipe.npz is a device or a pipe, and would become a file"):
        ds.models.save(model, pipe)
    assert pipe.is_fifo()
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(IsADirectoryError, match=r"folder.npz is a folder, not a file"):
        ds.models.save(model, tmp_path / "folder.npz")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["folder.npz", "pipe.npz"]


@pytest.mark.parametrize("rows", [3, 60_000])  # the second is for pyarrow, if it is there
def test_true_and_false_are_one_and_zero(tmp_path, rows):
    path = tmp_path / "flags.csv"
    lines = [f"{word},{k},{word.upper()},{k % 7}" for k, word in zip(range(rows), itertools.cycle(["True", "False", "false"]))]
    path.write_text("a,b,c,y\n" + "\n".join(lines) + "\n")
    data = io.read(path, "y")
    flags = np.resize([1.0, 0.0, 0.0], rows)
    np.testing.assert_array_equal(data.X, np.column_stack([flags, np.arange(rows), flags]))
    path.write_text(path.read_text() + "1,2,TRUE,3\n")
    with pytest.raises(
        ds.FileFormatError, match=f"line {rows + 2}, column 'a': '1' is not True or False, as the column begins"
    ):
        io.read(path, "y")
    path.write_text("a,y\nTrue,1\n,2\n")
    with pytest.raises(ds.FileFormatError, match="line 3, column 'a': the value is missing"):
        io.read(path, "y")
    assert io.read(path, "y", skip_missing=True).X.tolist() == [[1.0]]


CALLS = {
    "path": (lambda p: io.read(7), TypeError, "path"),
    "data as path": (lambda p: io.read(X), TypeError, r"path must be the name of a file; got array(?s:.{0,60})$"),
    "no file": (lambda p: io.read(p.with_name("none.csv")), FileNotFoundError, "none.csv"),
    "target type": (lambda p: io.read(p, 1.5), TypeError, "target"),
    "target bool": (lambda p: io.read(p, True), TypeError, "target"),
    "target twice": (lambda p: io.read(p, ["y", -1]), ValueError, "target must not name a column"),
    "keep type": (lambda p: io.read(p, keep=1.5), TypeError, "keep"),
    "keep no column": (lambda p: io.read(p, keep="aa"), ValueError, r"keep 'aa' is not a column .*did you mean 'a'"),
    "keep twice": (lambda p: io.read(p, keep=["a", 0]), ValueError, "keep must not name a column"),
    "drop type": (lambda p: io.read(p, drop=[None]), TypeError, "drop"),
    "header": (lambda p: io.read(p, header="yes"), TypeError, "header"),
    "decimal": (lambda p: io.read(p, decimal=";"), ValueError, "decimal must be a point or a comma; got ';'"),
    "encoding": (lambda p: io.read(p, encoding="cp1251x"), ValueError, r"encoding must be .*; got 'cp1251x' \(did you mean"),
    "encoding of Windows alone": (lambda p: io.read(p, encoding="ansii"), ValueError, "did you mean 'ascii'"),
    "encoding nearly right": (lambda p: io.read(p, encoding="utf-9"), ValueError, r"\(did you mean 'utf-8'\?\)"),
    "encoding type": (lambda p: io.read(p, encoding=7), TypeError, "encoding must be the name of an encoding .*; got 7$"),
    "encoding of bytes": (lambda p: io.read(p, encoding="hex"), ValueError, "got 'hex', which is not for files of text"),
    "encoding of names": (lambda p: io.read(p, encoding="idna"), ValueError, "got 'idna', which is not for files of text"),
    "encoding with a zero": (lambda p: io.column_names(p, encoding="a\0"), ValueError, "encoding must be"),
    "encoding for convert": (lambda p: io.convert(p, encoding="rot13"), ValueError, "encoding must be"),
    "skip_lines": (lambda p: io.read(p, skip_lines=-1), ValueError, "skip_lines must be"),
    "skip_lines type": (lambda p: io.convert(p, skip_lines=1.5), TypeError, "skip_lines must be"),
    "skip_lines bool": (lambda p: io.column_names(p, skip_lines=True), TypeError, "skip_lines must be"),
    "zero_based": (lambda p: io.read(p, zero_based=1), TypeError, "zero_based"),
    "n_features": (lambda p: io.read(p, n_features=0), ValueError, "n_features"),
    "n_features for CSV": (lambda p: io.read(p, n_features=3), ValueError, "n_features means nothing"),
    "dtype": (lambda p: io.read(p, dtype="int32"), ValueError, "dtype"),
    "features": (lambda p: io.read(p, features="a"), TypeError, "features"),
    "features twice": (lambda p: io.read(p, features=["a", "a"]), ValueError, "features"),
    "features and drop": (lambda p: io.read(p, features=["a"], drop="b"), ValueError, "drop and features"),
    "progress": (lambda p: io.convert(p, progress="yes"), TypeError, "progress"),
    "folder is a file": (lambda p: io.convert(p, p), ValueError, "folder"),
    "no folder": (lambda p: io.open_folder(p.with_name("none")), FileNotFoundError, "none"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_call_is_a_sentence(tmp_path, name):
    call, kind, message = CALLS[name]
    with pytest.raises(kind, match=message):
        call(write_csv(tmp_path / "t.csv"))


def test_damaged_files_never_fail_in_another_way(tmp_path, arrow_always):
    """Cut and flip bits of a file of every kind: it is read, or the error is ours."""
    rng = np.random.default_rng(1)
    dump_svmlight_file(SPARSE, Y, str(tmp_path / "t.svm"))
    save_npz(tmp_path / "sparse.npz", SPARSE)
    refused = 0
    for path, target in [*kinds(tmp_path)]:
        target = None if path.suffix == ".svm" or path.name == "sparse.npz" else target
        whole = path.read_bytes()
        for trial in range(25):
            content = bytearray(whole)
            if trial % 3 == 0:
                content = content[: rng.integers(len(whole))]
            else:
                for place in rng.integers(len(whole) if trial % 3 == 1 else min(200, len(whole)), size=1 + trial % 4):
                    content[place] ^= 1 << int(rng.integers(8))
            path.write_bytes(bytes(content))
            try:
                data = io.read(path, target)
                assert np.isfinite(data.X.data if hasattr(data.X, "tocsr") else data.X).all()
            except ValueError as error:  # a plain one if a name in the header was hit
                if path.name not in str(error) or not (isinstance(error, ds.FileFormatError) or "target" in str(error)):
                    raise
                refused += 1
    assert refused > 100


def test_a_class_that_is_missing_first_leaves_the_target_text(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n1,NA\n2,up\n3,down\n")
    data = io.read(path, "y", skip_missing=True)
    assert (data.y.tolist(), data.skipped) == (["up", "down"], 1)


@pytest.mark.parametrize("text", ["none", "NA", "?"])
def test_text_that_counts_as_missing_is_no_class_in_any_row(tmp_path, arrow_always, text):
    path = tmp_path / "t.csv"
    for labels, line in (([text, "up", "down"], 2), (["up", "down", text], 4)):
        path.write_text("a,y\n" + "".join(f"{k},{label}\n" for k, label in enumerate(labels)))
        with pytest.raises(
            ds.FileFormatError, match=rf"line {line}, column 'y': the value '{re.escape(text)}' counts as missing; "
        ):
            io.read(path, "y")


HOLES = ["sample,tissue,a,b,y", "s0,lung,1,2,3", "s1,skin,,2,3", "s2,skin,5,n/a,3", "s3,lung,7,8,9", "s4,skin,1,1,"]


def test_rows_with_a_missing_value_can_be_left_out(tmp_path):
    path = tmp_path / "holes.csv"
    path.write_text("\n".join(HOLES))
    options = {"target": "y", "drop": ["sample", "tissue"]}
    with pytest.raises(
        ds.FileFormatError, match=r"line 3, column 'a': the value is missing; .*with skip_missing=True, or .* drop$"
    ):
        io.read(path, **options)
    data = io.read(path, skip_missing=True, **options)
    np.testing.assert_array_equal(data.X, [[1, 2], [7, 8]])
    np.testing.assert_array_equal(data.y, [3, 9])
    assert data.skipped == 3
    for _ in range(2):  # converted, then opened again
        again = io.convert(path, skip_missing=True, **options)
        np.testing.assert_array_equal(again.X, data.X)
        assert again.skipped == 3
    assert [block.X.shape[0] for block in io.read_blocks(path, skip_missing=True, **options)] == [2]
    path.write_text("\n".join([*HOLES[:1], *HOLES[2:4]]))
    with pytest.raises(ds.FileFormatError, match="no rows without a missing value, of 2"):
        io.read(path, skip_missing=True, **options)
    path.write_text("a,b,c,y\n1,,,1\n2,,,2\n,,NA,3\n")
    with pytest.raises(ds.FileFormatError, match=r"of 3; there is nothing at all in 'b', 'c': .*with drop=\['b', 'c'\]$"):
        io.read(path, "y", skip_missing=True)
    with pytest.raises(ds.FileFormatError, match=r"of 3; there is nothing at all in 'b': .*with drop=\['b'\]$"):
        io.read(path, "y", drop="c", skip_missing=True)
    path.write_text("a,y\n1,\n2,\n")
    with pytest.raises(ds.FileFormatError, match="of 2; the target 'y' is empty"):
        io.read(path, "y", skip_missing=True)
    np.save(tmp_path / "m.npy", X)
    with pytest.raises(ValueError, match="skip_missing means nothing for"):
        io.read(tmp_path / "m.npy", skip_missing=True)


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_rows_with_a_missing_value_can_be_left_out_of_columns(tmp_path, ending):
    path = tmp_path / f"holes.{ending}"
    write_arrow(path, {"a": [1.0, None, 5.0, 7.0], "b": [2.0, 2.0, float("nan"), 8.0], "y": ["u", "v", "u", "v"]})
    data = io.read(path, target="y", skip_missing=True)
    np.testing.assert_array_equal(data.X, [[1, 2], [7, 8]])
    assert list(data.y) == ["u", "v"]
    assert data.skipped == 2
    write_arrow(path, {"a": [1.0, None, float("inf")], "y": [1.0, 2.0, 3.0]})
    with pytest.raises(ds.FileFormatError, match="column 'a', row 2: the value is not finite"):
        io.read(path, target="y", skip_missing=True)


def test_all_columns_of_text_are_named_at_once(tmp_path):
    path = tmp_path / "holes.csv"
    path.write_text("\n".join(HOLES))
    with pytest.raises(
        ds.FileFormatError, match=r"line 2 has text in columns 'sample', 'tissue'; .*drop=\['sample', 'tissue'\]"
    ):
        io.read(path, target="y")
    with pytest.raises(ValueError, match=r"drop 'sample,tissue' is not a column .*; write drop=\['sample', 'tissue'\]$"):
        io.read(path, target="y", drop="sample,tissue")


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet", "feather"])
def test_a_column_without_any_value_is_named_and_no_row_is_to_be_left_out(tmp_path, ending):
    path = tmp_path / f"t.{ending}"

    def message(**columns):
        if "csv" in ending:
            rows = zip(*columns.values(), strict=True)
            lines = [",".join(columns), *(",".join("" if v is None else str(v) for v in row) for row in rows)]
            text = "\n".join(lines).encode()
            path.write_bytes(gzip.compress(text) if ending.endswith("gz") else text)
        else:
            write_arrow(path, {k: [float("nan") if v == "nan" else v for v in values] for k, values in columns.items()})
        with pytest.raises(ds.FileFormatError) as caught:
            io.read(path, "y")
        return str(caught.value).removeprefix(f"{path}: ")

    nothing, some = [None, None, None], [None, 2.0, 3.0]
    assert message(a=some, b=nothing, y=[1.0] * 3) == "column 'b' is empty in every row; leave it out with drop='b'"
    assert message(a=some, b=[None, "nan", None], c=nothing, y=[1.0] * 3) == (
        "columns 'b', 'c' are empty in every row; leave them out with drop=['b', 'c']"
    )
    assert message(a=[1.0] * 3, y=nothing) == "column 'y' is empty in every row; choose another target"
    assert message(a=nothing, b=[1.0] * 3, y=nothing) == (
        "columns 'a', 'y' are empty in every row; choose another target, and leave the other out with drop='a'"
    )
    assert "the value is missing; fill it in, or leave out such rows" in message(a=some, y=[1.0] * 3)


@pytest.mark.parametrize(
    ("value", "targets", "advice"),
    [
        ("high", "y", "'high' is not a number; correct it, or if the column holds classes, write every one as a word"),
        ("high", ["y", "b"], "'high' is not a number; correct it, or choose another target"),
        ("", "y", "the value is missing; fill it in, or leave out such rows with skip_missing=True"),
        ("inf", "y", "'inf' is not finite; correct it"),
    ],
)
def test_nobody_is_told_to_leave_out_the_target(tmp_path, value, targets, advice):
    path = tmp_path / "t.csv"
    path.write_text(f"a,b,y\n1,2,3\n4,5,{value}\n7,8,9\n")
    with pytest.raises(ds.FileFormatError) as caught:
        io.read(path, targets)
    assert str(caught.value) == f"{path}: line 3, column 'y': {advice}"
    with by_shell(), pytest.raises(ds.FileFormatError) as caught:
        io.read(path, targets)
    told = advice.replace("skip_missing=True", "--skip-missing").replace("another target", "another --target")
    assert str(caught.value).endswith(told)


def test_a_word_for_each_class_is_read_as_a_class(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n1,low\n2,high\n3,low\n")
    assert list(io.read(path, "y").y) == ["low", "high", "low"]
    path.write_text("a,y\n1,\n2,high\n3,low\n")
    with pytest.raises(ds.FileFormatError, match=r"with skip_missing=True$"):
        io.read(path, "y")


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_nobody_is_told_to_leave_out_a_target_in_columns(tmp_path, ending):
    path = tmp_path / f"t.{ending}"
    write_arrow(path, {"a": [1.0, 2.0], "y": [1.0, None]})
    with pytest.raises(ds.FileFormatError, match=r"'y', row 1: .*leave out such rows with skip_missing=True$"):
        io.read(path, "y")
    write_arrow(path, {"a": [1.0, 2.0], "b": ["u", "v"], "y": ["u", "v"]})
    with pytest.raises(ds.FileFormatError, match=r"column 'y' holds string, not numbers; .*, or choose another target$"):
        io.read(path, ["y", "b"])


def test_many_columns_without_any_value_are_a_short_sentence(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text(",".join([f"c{j}" for j in range(50)] + ["y"]) + "\n" + ("," * 50 + "1\n") * 3)
    with pytest.raises(ds.FileFormatError, match=r"'c7' and 42 more are empty in every row; .*'c7'\] and so on$"):
        io.read(path, "y")


ODD = [" 007", "a,b", 'say "hi"', "two\nlines", "cr\rhere", "NA", "", "1e3 ", "naïve", "=1+1"]


@pytest.mark.parametrize("blocks", ["whole", "small_blocks", "arrow_always"])
def test_text_is_kept_as_it_is(tmp_path, request, blocks):
    if blocks != "whole":
        request.getfixturevalue(blocks)
    path = tmp_path / "t.csv"
    texts = (ODD * 4)[: len(X)]
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["id", *NAMES, "y"], *([t, *row, y] for t, row, y in zip(texts, X, Y, strict=True))])
    data = io.read(path, "y", drop="id", keep=["id", "b"])
    assert data.kept == {"id": texts, "b": [str(v) for v in X[:, 1]]}
    np.testing.assert_array_equal(data.X, X)
    parts = list(io.read_blocks(path, "y", drop="id", keep="id"))
    assert [text for part in parts for text in part.kept["id"]] == texts
    assert len(parts) > 1 or blocks != "small_blocks"


@pytest.mark.parametrize("ending", ["csv", "parquet", "feather"])
def test_kept_text_belongs_to_the_rows_that_are_not_left_out(tmp_path, ending):
    path = tmp_path / f"t.{ending}"
    if ending == "csv":
        path.write_text("\n".join(HOLES))
    else:
        rows = [line.split(",") for line in HOLES[1:]]
        table = {name: [row[k] for row in rows] for k, name in enumerate(("sample", "tissue"))}
        write_arrow(
            path,
            table
            | {n: [None if r[k] in ("", "n/a") else float(r[k]) for r in rows] for n, k in zip("aby", (2, 3, 4), strict=True)},
        )
    data = io.read(path, "y", drop=["sample", "tissue"], skip_missing=True, keep=["tissue", "sample"])
    assert data.kept == {"tissue": ["lung", "lung"], "sample": ["s0", "s3"]}
    assert data.X.tolist() == [[1, 2], [7, 8]]


def test_columns_of_every_kind_are_kept_as_text(tmp_path):
    import pyarrow as pa

    path = tmp_path / "t.parquet"
    odd = {
        "int": pa.array([7, None, 2**60]),
        "word": pa.array(["007", None, "b"]).dictionary_encode(),
        "day": pa.array([0, 1, 2], pa.date32()),
        "flag": pa.array([True, False, None]),
        "nan": pa.array([1.5, float("nan"), None]),
    }
    write_arrow(path, odd | {"a": [1.0, 2.0, 3.0]})
    kept = io.read(path, features=["a"], keep=list(odd)).kept
    assert kept["int"] == ["7", "", str(2**60)]
    assert kept["word"] == ["007", "", "b"]
    assert kept["day"] == ["1970-01-01", "1970-01-02", "1970-01-03"]
    assert kept["flag"] == ["true", "false", ""]
    assert kept["nan"] == ["1.5", "nan", ""]
    write_arrow(path, {"list": [[1], [2], [3]], "a": [1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match="keep must name columns of text, numbers or times; column 'list'"):
        io.read(path, features=["a"], keep="list")


def test_kept_columns_without_a_name_are_called_by_their_place(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(",a,y\n0,1,2\n1,3,4\n")
    assert io.read(path, "y", drop=0, keep=[0, "y"]).kept == {"column 0": ["0", "1"], "y": ["2", "4"]}
    path.write_text("s,1,2\nt,3,4\n")
    assert io.read(path, -1, header=False, drop=0, keep=-3).kept == {"column 0": ["s", "t"]}
    path.write_text(",column 0,y\n0,1,2\n")
    with pytest.raises(ValueError, match="keep must name columns with different names"):
        io.read(path, "y", drop=0, keep=[0, 1])


def test_a_folder_of_an_earlier_version_stays_current(tmp_path, monkeypatch):
    path = write_csv(tmp_path / "t.csv")
    io.convert(path, target="y")
    file = io.default_folder(path) / "meta.json"
    meta = json.loads(file.read_text())
    del meta["options"]["keep"]
    file.write_text(json.dumps(meta))
    monkeypatch.setattr(io._folder, "_write", None)
    np.testing.assert_array_equal(io.convert(path, target="y").X, X)


def test_messages_name_arguments_or_options_as_they_were_given(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("sample,tissue type,a,y\ns,lung,1,2\n")
    with pytest.raises(ds.FileFormatError, match=r"with drop=\['sample', 'tissue type'\]$"):
        io.read(path, "y")
    with by_shell(), pytest.raises(ds.FileFormatError, match=r"with --drop sample --drop 'tissue type'$"):
        io.read(path, "y")
    with pytest.raises(ValueError, match=r"^target 'z' is not"):
        io.read(path, "z")


def test_line_breaks_between_quotes_do_no_harm_in_a_large_file(tmp_path, arrow_always, monkeypatch):
    monkeypatch.setattr(_csv, "BLOCK_BYTES", 500)
    path = tmp_path / "t.csv"
    lines = [f'"{"two lines" if k < 50 else "two" + chr(10) + "lines"} {k}",{k},{-k}' for k in range(100)]
    path.write_text("\n".join(["note,a,y", *lines]))
    data = io.read(path, "y", drop="note")
    assert data.X[:, 0].tolist() == list(range(100))
    assert data.y.tolist() == [-k for k in range(100)]
    path.write_text("\n".join(["note,a,y", *lines, "last,x,1"]))
    with pytest.raises(ds.FileFormatError, match="line 152, column 'a': 'x' is not a number"):
        io.read(path, "y", drop="note")


def test_wavelengths_are_names_and_numbers_in_no_order_need_a_word(tmp_path):
    path = tmp_path / "spectra.csv"
    path.write_text("sample,900.5,902.5,904.5,y\na,1,2,3,4\nb,5,6,7,8\n")
    assert io.read(path, "y", drop="sample").feature_names == ("900.5", "902.5", "904.5")
    path.write_text("a,0.9,0.2,0.5,4\nb,5,6,7,8\n")
    with pytest.raises(ds.FileFormatError, match="say header=True or header=False"):
        io.read(path, -1, drop=0)
    assert len(io.read(path, -1, drop=0, header=False).y) == 2
    assert len(io.read(path, -1, drop=0, header=True).y) == 1


def test_numbers_that_are_looked_for_are_names(tmp_path):
    path = tmp_path / "spectra.csv"
    path.write_text("900,904,908\n3,4,5\n6,7,8\n")
    data = io.read(path, features=["908", "900"])
    assert data.X.tolist() == [[5, 3], [8, 6]]
    assert data.feature_names == ("908", "900")
    path.write_text("s1,0.9,0.2,0.5\ns2,1,2,3\n")
    assert io.read(path, features=["0.9", "0.5"]).X.tolist() == [[1, 3]]
    path.write_text("0,1,0,1\n3,4,5,7\n")  # names do not stand there twice
    with pytest.raises(ValueError, match="has no column names"):
        io.read(path, features=["0", "1"])


@pytest.mark.parametrize(
    ("lines", "asked"),
    [
        ("900,910,920,930\n0.4,0.1,0.3,95", True),
        ("931,920,912,900\n0.4,0.1,0.3,95", True),  # unlike the next line
        ("0,1,2,3,4\n0.4,1.1,0.3,2.5,1", True),  # evenly spaced
        ("1.1,2.5,3.2,4,5.9,6,7,8.5\n4,3,5,2,6,1,7,8", True),  # many
        (",900,910,920,930\n0,0.4,0.1,0.3,95", True),
        ("900,910,920\n0.4,0.1,0.3", False),  # too few
        ("1,2.5,3,4\n1,3.5,3,9", False),  # by chance
        ("10,20,30,40\n2,5,70,90", False),  # both lines rise
        ("900,910,920,930", False),  # nothing to compare with
    ],
)
def test_numbers_in_order_may_be_names(tmp_path, lines, asked):
    path = tmp_path / "t.csv"
    path.write_text(lines + "\n")
    if asked:
        with pytest.raises(ds.FileFormatError, match="line 1 may be names or a row, as its numbers are in order"):
            io.column_names(path)
        assert io.column_names(path, header=True)[-1] == lines.splitlines()[0].split(",")[-1]
        assert io.column_names(path, header=False) is None
    else:
        assert io.column_names(path) is None


@pytest.mark.parametrize("blocks", ["whole", "small_blocks", "arrow_always"])
@pytest.mark.parametrize("separator", [";", "\t", ","])
def test_decimal_commas(tmp_path, request, blocks, separator):
    if blocks != "whole":
        request.getfixturevalue(blocks)
    path = tmp_path / "t.csv"
    rows = [[f"{value}".replace(".", ",") for value in row] for row in np.column_stack([X, Y])]
    for names in ([], [*NAMES, "y"]):
        with open(path, "w", newline="") as file:
            csv.writer(file, delimiter=separator, quoting=csv.QUOTE_ALL if separator == "," else csv.QUOTE_MINIMAL).writerows(
                [*([names] if names else []), *rows]
            )
        data = io.read(path, -1, decimal=",")
        np.testing.assert_array_equal(data.X, X)
        np.testing.assert_array_equal(data.y, Y)
        assert data.feature_names == (tuple(NAMES) if names else None)
        np.testing.assert_array_equal(io.convert(path, target=-1, decimal=",").X, X)
        assert sum(len(block.X) for block in io.read_blocks(path, -1, decimal=",")) == len(X)


@pytest.mark.parametrize("option", [{"decimal": ","}, {"encoding": "cp1252"}, {"skip_lines": 1}])
def test_how_text_is_written_is_for_text(tmp_path, option):
    for path, target in kinds(tmp_path):
        if ".csv" not in path.name and path.suffix != ".tsv":
            with pytest.raises(ValueError, match=f"{next(iter(option))} means nothing for"):
                io.read(path, target, **option)


ENCODINGS = [
    "utf-8",
    "utf-8-sig",
    "latin-1",
    "cp1252",
    "utf-16",
    "utf-16-le",
    "utf-16-be",
    "utf-32",
    "mac-roman",
    "cp500",
    "utf-7",
]


@pytest.mark.parametrize("blocks", ["whole", "small_blocks", "arrow_always"])
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_text_in_other_encodings(tmp_path, request, blocks, ending, encoding):
    if blocks != "whole":
        request.getfixturevalue(blocks)
    names, labels = ["Größe", "naïve", "c", "d", "é"], np.where(Y > 0, "größer", "kleiner")
    text = write_csv(tmp_path / "t.csv", y=labels, names=[*names, "là"]).read_text(encoding="utf-8").encode(encoding)
    path = tmp_path / f"t.{ending}"
    for mark in [b"", "\ufeff".encode(encoding)] if encoding in ("utf-16-le", "utf-16-be") else [b""]:
        path.write_bytes(gzip.compress(mark + text) if ending == "csv.gz" else mark + text)
        assert io.column_names(path, encoding=encoding) == [*names, "là"]
        for data in (io.read(path, "là", encoding=encoding), io.convert(path, target="là", encoding=encoding)):
            np.testing.assert_array_equal(data.X, X)
            assert data.y.tolist() == labels.tolist()
            assert data.feature_names == tuple(names)
        parts = list(io.read_blocks(path, encoding=encoding, drop="là", keep="là"))
        assert [label for part in parts for label in part.kept["là"]] == labels.tolist()


ABOVE = 'An instrument; "of 3\r# made, on, a, day\r\n\n%\tunits: nm\n'  # four lines


@pytest.mark.parametrize("blocks", ["whole", "small_blocks", "arrow_always"])
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
@pytest.mark.parametrize("blank", ["", "\n"])
@pytest.mark.parametrize("separator", [",", ";"])
def test_lines_at_the_top_can_be_left_out(tmp_path, request, blocks, ending, blank, separator):
    if blocks != "whole":
        request.getfixturevalue(blocks)
    path = tmp_path / f"t.{ending}"
    for names in ([*NAMES, "y"], []):
        text = write_csv(tmp_path / "t.csv", names=names, separator=separator).read_text(encoding="utf-8")
        for encoding in ("utf-8", "utf-16"):
            given = {"skip_lines": 4, "encoding": encoding}
            encoded = (ABOVE + blank + text).encode(encoding)
            path.write_bytes(gzip.compress(encoded) if ending == "csv.gz" else encoded)
            assert io.column_names(path, **given) == (names or None)
            for data in (io.read(path, -1, **given), io.convert(path, target=-1, **given)):
                np.testing.assert_array_equal(data.X, X)
                np.testing.assert_array_equal(data.y, Y)
                assert data.feature_names == (tuple(NAMES) if names else None)
            assert sum(len(block.X) for block in io.read_blocks(path, -1, **given)) == len(X)


def test_a_table_in_binary_has_no_lines_to_leave_out(tmp_path):
    path = write_arrow(tmp_path / "t.parquet", {"# a": [1.0], "b": [2.0]})
    with pytest.raises(ValueError, match=r"its columns are '# a', 'b'$"):
        io.read(path, "y")


def test_lines_of_the_table_can_be_left_out_too(tmp_path):
    path = write_csv(tmp_path / "t.csv")
    np.testing.assert_array_equal(io.read(path, -1, skip_lines=3).X, X[2:])
    np.testing.assert_array_equal(io.convert(path, target=-1, skip_lines=3).X, X[2:])
    np.testing.assert_array_equal(io.convert(path, target=-1, skip_lines=0).X, X)


def test_pyarrow_leaves_out_lines_by_itself(tmp_path, arrow_always, monkeypatch):
    path = write_csv(tmp_path / "t.csv")
    path.write_text(ABOVE + path.read_text(), newline="")
    monkeypatch.setattr(_csv, "_with_python", None)
    np.testing.assert_array_equal(io.read(path, "y", skip_lines=4).X, X)


def test_pyarrow_is_not_asked_for_other_encodings(tmp_path, arrow_always, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_bytes(write_csv(path, names=["ä", *NAMES[1:], "y"]).read_text(encoding="utf-8").encode("utf-16"))
    monkeypatch.setattr(_csv, "_with_arrow", None)
    np.testing.assert_array_equal(io.read(path, "y", encoding="utf-16").X, X)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_pyarrow_gets_no_file_of_pythons_to_read_when_the_interpreter_is_gone(tmp_path, arrow_always, monkeypatch, name):
    pa, arrow = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.csv")
    opened, open_csv = [], arrow.open_csv
    monkeypatch.setattr(arrow, "open_csv", lambda file, *options: opened.append(file) or open_csv(file, *options))
    path = write_csv(tmp_path / "t.csv")
    if name.endswith(".gz"):
        (tmp_path / name).write_bytes(gzip.compress(path.read_bytes()))
    np.testing.assert_array_equal(io.read(tmp_path / name, "y").X, X)
    assert [isinstance(file, pa.NativeFile) and not isinstance(file, pa.PythonFile) for file in opened] == [True]


def test_another_encoding_converts_again(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("a,é\n1,2\n".encode())
    assert io.convert(path).feature_names == ("a", "é")
    assert io.convert(path, encoding="latin-1").feature_names == ("a", "Ã©")
    assert io.convert(path, encoding="UTF8").feature_names == ("a", "é")
