"""The gallery: every example runs without a warning, draws what it says, and finds what it says it finds."""

import runpy
from pathlib import Path

import matplotlib
import numpy as np
import pytest

FILES = {path.stem: path for path in sorted((Path(__file__).parent.parent / "examples").glob("plot_*.py"))}


def check_copy_number(seen):
    assert np.abs(seen["jumps"] - (np.cumsum(seen["lengths"])[:-1] - 1)).max() <= 2
    errors = [np.mean((seen[name] - seen["truth"]) ** 2) for name in ("refitted", "segments", "measured")]
    assert errors == sorted(errors)


def check_early_stopping(seen):
    assert seen["early"].iterations < seen["whole"].iterations
    assert seen["stop"].best_score == min(seen["watch"].scores) < 0.95 * seen["watch"].scores[0]
    assert seen["watch"].scores[-1] > seen["watch"].scores[0]


def check_gene_groups(seen):
    alive = {name: set(seen["pathway"][model.coef_.ravel() != 0.0]) for name, model in seen["models"].items()}
    assert all({3, 17, 30} <= found for found in alive.values())
    assert len(alive["group_lasso"]) <= 6 < len(alive["l1"])


def check_low_rank(seen):
    alone = np.mean((seen["X"][seen["test"]] @ seen["alone"] - seen["Y"][seen["test"]]) ** 2)
    assert seen["errors"][seen["best"]] < 0.8 * alone
    assert seen["ranks"][seen["simple"]] < seen["ranks"][seen["best"]] < 40


def check_own_regularizer(seen):
    assert seen["exact"].converged
    assert (np.diff(seen["exact"].x) >= 0.0).all()
    assert not (np.diff(seen["free"].x) >= 0.0).all()
    assert seen["exact"].objective <= seen["threads"].objective <= 1.01 * seen["exact"].objective


def check_path_cv(seen):
    assert seen["careful"].alpha_ > seen["best"].alpha_
    assert np.count_nonzero(seen["careful"].coef_) < np.count_nonzero(seen["best"].coef_)


def check_penalties(seen):
    assert np.linalg.matrix_rank(seen["clean"]) == 2


def check_ray(seen):
    assert seen["run"].objective < 1.001 * seen["best"].objective


def check_sparse_regression(seen):
    for model in seen["models"].values():
        assert (model.coef_[seen["w"] != 0.0] != 0.0).all()
        assert np.count_nonzero(model.coef_) < 30


def check_spectra(seen):
    errors = {name: np.linalg.norm(model.coef_ - seen["w"]) for name, model in seen["models"].items()}
    assert errors["fused lasso"] < 0.3 * errors["lasso"]


def check_stragglers(seen):
    lines = {line.get_label(): line.get_xdata()[-1] for line in seen["right"].lines}
    assert lines["a straggler, max_delay=8"] > 2.0 * lines["a straggler, max_delay=100"]
    dap, tap = (line.get_ydata() for line in seen["left"].lines)
    assert dap[-1] > 5.0 * tap[-1]


def check_streaming(seen):
    assert seen["model"].t_ == 12_000
    assert seen["distances"][-1] < 0.2 * seen["distances"][0]


def check_tap_dap(seen):
    for run in (*seen["runs"].values(), *seen["far"].values()):
        assert run.trace.distance[-1] < 0.1 * run.trace.distance[0]
    assert seen["far"]["dap-sgd"].seconds < 0.4 * seen["far"]["tap-sgd"].seconds  # simulated


def check_text(seen):
    assert np.all(np.diff(seen["used"]) > 0)
    assert max(seen["new"]) > 0.85


CHECKS = {name.removeprefix("check_"): check for name, check in globals().items() if name.startswith("check_")}


def test_every_example_is_checked():
    assert set(FILES) == {f"plot_{name}" for name in CHECKS}
    assert len(FILES) >= 12


@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
@pytest.mark.parametrize("name", CHECKS)
def test_example(name):
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.close("all")
    seen = runpy.run_path(str(FILES[f"plot_{name}"]))
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert figures
    for figure in figures:
        figure.canvas.draw()
        assert any(ax.has_data() for ax in figure.axes)
    CHECKS[name](seen)
    plt.close("all")
