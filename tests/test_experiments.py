"""The experiments: what they draw, how claims are judged, and how a run that was interrupted goes on."""

import csv
import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import dapsgd as ds
from dapsgd.cli import app
from dapsgd.experiments import PARTS, Claim, Settings, reproduce
from dapsgd.experiments import rates as rates_module
from dapsgd.experiments._tasks import Part, Store, Task, machine
from dapsgd.experiments.cases import CASES
from dapsgd.experiments.delays import breaking_point
from dapsgd.experiments.figure1 import FIGURE1, gains, seconds_to, spread
from dapsgd.experiments.figure2 import FIGURE2, measured_speedup, simulated_speedup
from dapsgd.experiments.report import claims_text
from dapsgd.experiments.simulate import delays_of, parse_workers, simulate

SETTINGS = Settings(quick=True, seeds=2, workers=2)


def alive(name, x):
    if name == "l1":
        return np.count_nonzero(x), x.size
    if name == "group-lasso":
        return np.count_nonzero(np.linalg.norm(x.reshape(-1, 50), axis=1)), x.size // 50
    if name == "fused-lasso":
        return np.count_nonzero(np.diff(x)), x.size - 1
    return np.linalg.matrix_rank(x), min(x.shape)


@pytest.mark.parametrize("name", CASES)
def test_the_optimum_of_each_case_has_structure(name):
    case = CASES[name](0)
    best = ds.solve(case.problem, "fista", tol=1e-10)
    some, all_of_them = alive(name, best.x)
    assert best.converged
    assert 0 < some < all_of_them / 2


@pytest.mark.parametrize("name", CASES)
def test_cases_have_the_papers_numbers(name):
    case = CASES[name](0)
    n, m, lam, length = {"nuclear-norm": (4000, 2000, 0.1, 20_000), "fused-lasso": (1000, 5000, 200.0, 10_000)}.get(
        name, (1000, 5000, 200.0, 200_000)
    )
    assert (case.problem.n, int(np.prod(case.problem.shape))) == (n, m)
    assert case.problem.l2 == case.problem.regularizer.lam == lam
    assert case.iterations == length
    assert case.step == (ds.InverseTime(2e4, 1.0) if name == "nuclear-norm" else ds.InverseTime(2e5, 200.0))


def test_time_to_a_distance_is_interpolated_in_the_logarithm():
    curve = {"seconds": [0.0, 1.0, 3.0], "distance": [100.0, 10.0, 0.1]}
    assert seconds_to(curve, 10.0) == pytest.approx(1.0)
    assert seconds_to(curve, 1.0) == pytest.approx(2.0)
    assert seconds_to(curve, 1000.0) == 0.0
    assert seconds_to(curve, 0.01) == float("inf")


def made_up_figure1(tap_seconds, shift):
    """Return numbers in which TAP takes so long for a unit of time of DAP, and differs by so much per iteration."""
    rng = np.random.default_rng(0)
    numbers = {}
    for name in CASES:
        for seed in range(SETTINGS.seeds):
            iteration = np.arange(11)
            noise = 0.05 * rng.standard_normal()
            curves = {
                algorithm: {
                    "seconds": (iteration * pace).tolist(),
                    "iteration": iteration.tolist(),
                    "distance": np.exp(
                        -iteration * (1.0 + noise) + (shift if algorithm == "tap-sgd" else 0.0) * (iteration > 0)
                    ),
                }
                for algorithm, pace in (("tap-sgd", tap_seconds), ("dap-sgd", 1.0))
            }
            numbers[f"figure1 {name} seed={seed}"] = {"title": name, "data": "made up", **curves}
    return numbers.__getitem__


def test_claims_of_figure_1_hold_where_they_should_and_only_there():
    fast = made_up_figure1(2.0, 0.0)
    assert gains(SETTINGS, fast, "l1") == pytest.approx([2.0, 2.0])
    assert spread(SETTINGS, fast, "l1")[0] == pytest.approx(0.0)
    assert all(claim.holds for claim in FIGURE1.claims(SETTINGS, fast))
    slow = {claim.name: claim.holds for claim in FIGURE1.claims(SETTINGS, made_up_figure1(0.2, 3.0))}
    assert not any(slow.values())
    assert len(slow) == 8


def made_up_figure2(dap, tap, check):
    def curve(two, sixteen, split):
        return {
            "measured": [[100.0, 110.0], [100.0 * two, 110.0 * two]],
            "check": [105.0 * check, 105.0 * two * check],
            "workers": [1, 16],
            "simulated": [100.0, 100.0 * sixteen],
            "split": [100.0, 100.0 * split] if split else [],
            "costs": {"work": 1e-5, "apply": 1e-6, "handover": 0.0},
            "utilisation": [0.1] * 7,
        }

    numbers = {"title": "made up", "dap-sgd": curve(dap, 8 * dap, 16.0), "tap-sgd": curve(tap, tap, 0)}
    return lambda key: numbers


def test_claims_of_figure_2_hold_where_they_should_and_only_there():
    good = made_up_figure2(1.9, 1.1, 1.0)
    assert measured_speedup(good(""), "dap-sgd") == pytest.approx(1.9)
    assert simulated_speedup(good(""), "dap-sgd", 16) == pytest.approx(15.2)
    assert simulated_speedup(good(""), "dap-sgd", 16, "split") == pytest.approx(16.0)
    assert all(claim.holds for claim in FIGURE2.claims(SETTINGS, good))
    for bad in (made_up_figure2(1.2, 1.1, 1.0), made_up_figure2(1.9, 1.4, 1.0)):
        assert [claim.holds for claim in FIGURE2.claims(SETTINGS, bad)][:1] == [False]
    assert [claim.holds for claim in FIGURE2.claims(SETTINGS, made_up_figure2(1.9, 1.1, 1.2))][4:] == [False] * 8


def test_where_delays_break_a_run():
    numbers = {"tau": [0, 1, 2], "start": 1.0, "fixed": [0.1, 2.0, 5.0], "adaptive": [0.1, 0.2, 0.3]}
    assert breaking_point(numbers, "fixed") == 1
    assert breaking_point(numbers, "adaptive") is None


def test_the_rates_hold_for_a_short_delay(tmp_path, monkeypatch):
    monkeypatch.setattr(rates_module, "taus", lambda settings: (1,))
    claims = reproduce("rates", tmp_path, Settings(quick=True, seeds=3))
    assert [claim.name for claim in claims] == ["Theorem 1, tau = 1", "Theorem 2, tau = 1"]
    assert all(claim.holds for claim in claims)
    for name in ("rates.png", "rates.svg", "report.html", "claims.csv", "claims.json"):
        assert (tmp_path / name).stat().st_size > 0
    kept = json.loads((tmp_path / "raw" / "rates_theorem1_tau=1.json").read_text())
    assert kept["settings"]["seeds"] == 3
    assert kept["machine"]["numpy"] == np.__version__
    assert len(kept["numbers"]["squared"]) == 5
    with open(tmp_path / "claims.csv", newline="") as file:
        assert [row["holds"] for row in csv.DictReader(file)] == ["True", "True"]


def toy_part(log, fail_at=None):
    def task(k):
        def run():
            if k == fail_at:
                raise KeyboardInterrupt
            log.append(k)
            return {"value": np.float64(k), "list": np.arange(k)}

        return Task(f"toy {k}", run, 1.0)

    def draw(settings, get):
        from dapsgd.plots import pyplot

        figure = pyplot().figure()
        figure.add_subplot().plot([get("toy 0")["value"], get("toy 2")["value"]])
        return {"toy": (figure, "a <toy> & its caption")}

    def claims(settings, get):
        return [Claim("a <claim>", "x", f"{get('toy 1')['value']}", get("toy 2")["value"] == 2.0)]

    return Part("toy", "Toy", lambda settings: [task(k) for k in range(3)], claims, draw)


def test_an_interrupted_run_goes_on_where_it_was(tmp_path, monkeypatch):
    log = []
    monkeypatch.setitem(PARTS, "toy", toy_part(log, fail_at=1))
    with pytest.raises(KeyboardInterrupt):
        reproduce("toy", tmp_path, SETTINGS)
    assert log == [0]
    assert not (tmp_path / "report.html").exists()
    monkeypatch.setitem(PARTS, "toy", toy_part(log))
    said = []
    claims = reproduce("toy", tmp_path, SETTINGS, say=said.append)
    assert log == [0, 1, 2]
    assert said[-1] == "1 of 3 tasks were done before"
    assert claims[0].holds
    reproduce("toy", tmp_path, SETTINGS)
    assert log == [0, 1, 2]
    reproduce("toy", tmp_path, Settings(quick=False, seeds=2, workers=2))  # other settings: nothing of it counts
    assert log == [0, 1, 2, 0, 1, 2]
    reproduce("toy", tmp_path, SETTINGS, again=True)
    assert log == [0, 1, 2, 0, 1, 2, 0, 1, 2]
    assert not list(tmp_path.rglob("*.part*"))


def test_the_report_shows_every_finished_part(tmp_path, monkeypatch):
    first, second = toy_part([]), toy_part([])._replace(name="other", title="Other")
    monkeypatch.setitem(PARTS, "toy", first)
    monkeypatch.setitem(PARTS, "other", second)
    reproduce("toy", tmp_path, SETTINGS)
    claims = reproduce("other", tmp_path, SETTINGS)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert len(claims) == 1
    assert "<h2>Toy</h2>" in page
    assert "<h2>Other</h2>" in page


def test_the_report_stands_alone_and_escapes_what_it_shows(tmp_path, monkeypatch):
    monkeypatch.setitem(PARTS, "toy", toy_part([]))
    reproduce("toy", tmp_path, SETTINGS)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "a &lt;claim&gt;" in page
    assert "a &lt;toy&gt; &amp; its caption" in page
    assert not re.search(r"(src|href)\s*=\s*['\"](?!data:)", page)
    assert "<script" not in page
    assert page.count("data:image/svg+xml;base64,") == 1


def test_a_damaged_file_is_made_anew(tmp_path):
    store = Store(tmp_path, SETTINGS)
    store.put("some task", {"value": 1})
    assert store["some task"] == {"value": 1}
    path = tmp_path / "raw" / "some_task.json"
    for text in ("", "{", "[]", json.dumps({"mark": "other", "numbers": {}})):
        path.write_text(text)
        assert store.get("some task") is None
    with pytest.raises(KeyError):
        store["some task"]


def test_what_the_machine_is():
    assert {"cores", "python", "dapsgd", "numpy", "numba"} <= set(machine())


def test_claims_as_text():
    text = claims_text([Claim("a", "", "1", True), Claim("b", "", "2", False), Claim("c", "", "3", None)])
    assert [line[1:14].strip() for line in text.splitlines()] == ["holds", "does not hold", "as it is"]


@pytest.mark.parametrize(
    ("text", "numbers"), [("1..8", [1, 2, 4, 8]), ("3..9", [3, 4, 8, 9]), ("5", [5]), ("4,1,4", [1, 4]), ("1..1", [1])]
)
def test_numbers_of_workers(text, numbers):
    assert parse_workers(text) == numbers


@pytest.mark.parametrize("text", ["", "0", "-1", "two", "1..x", "1...4", "0..8", "5000", "1,,2"])
def test_numbers_of_workers_that_make_no_sense(text):
    with pytest.raises(ValueError, match="workers"):
        parse_workers(text)


def test_where_the_master_saturates():
    scaling = simulate("dap-sgd", ds.Simulated(work=20e-6, apply=1e-6), parse_workers("1..64"))
    assert scaling.saturation == 20  # 20 of 21 are 95%
    assert scaling.speedups[-1] == pytest.approx(21.0, rel=1e-2)
    assert simulate("tap-sgd", ds.Simulated(work=1e-6, apply=20e-6), [4]).saturation == 1
    assert simulate("dap-sgd", ds.Simulated(work=20e-6, apply=1e-6), [4]).saturation is None
    mean, late = delays_of(scaling.timings[-1])
    assert late == 63
    assert mean == pytest.approx(63.0, rel=0.01)


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_simulate_on_the_command_line(tmp_path):
    out = tmp_path / "picture.png"
    costs = ("--work", "2e-5", "--prox", "1.5e-5", "--apply", "1e-6")
    result = invoke("simulate", *costs, "--workers", "1..16", "--out", out)
    assert result.exit_code == 0, result.output
    assert "TAP-SGD (work 5.00 us, apply 16.00 us): the master saturates at 2 workers" in result.output
    assert "DAP-SGD (work 20.00 us, apply 1.00 us): the master is not saturated by 16 workers" in result.output
    assert out.stat().st_size > 0
    varied = invoke("simulate", *costs, "--workers", "8", "--model", "straggler", "--masters", "2", "--out", out)
    assert "10 times that for one straggler" in varied.output
    assert "2 masters" in varied.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--work", "-1", "--prox", "0", "--apply", "0"), "--work must be finite and >= 0; got -1"),
        (("--work", "1", "--prox", "2", "--apply", "0"), "--prox must be at most --work"),
        (("--work", "1"), "must be given together"),
        (("--work", "0", "--prox", "0", "--apply", "0"), "must not both be 0"),
        (("--out", "x.foo"), "--out must end in one of"),
        (("--workers", "8..1"), "workers must be like 1..64"),
        (("--case", "lasso"), "did you mean 'l1'"),
        (("--workers", "many"), "workers must be like 1..64"),
        (("--work", "1", "--prox", "1", "--apply", "1", "--model", "expo"), "did you mean 'exponential'"),
        (("--out", "no/such/folder/x.png"), "does not exist"),
    ],
)
def test_wrong_simulations_are_explained(arguments, said):
    result = invoke("simulate", *arguments)
    assert result.exit_code == 2
    assert said in result.output
    assert "Traceback" not in result.output


def test_reproduce_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.setitem(PARTS, "toy", toy_part([]))
    result = invoke("reproduce", "toy", "--quick", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "holds" in result.output
    assert "report.html" in result.output
    failing = toy_part([])._replace(claims=lambda settings, get: [Claim("never", "x", "y", False)])
    monkeypatch.setitem(PARTS, "toy", failing)
    assert invoke("reproduce", "toy", "--quick", "--out", tmp_path).exit_code == 1


def test_wrong_reproductions_leave_earlier_results_alone(tmp_path, monkeypatch):
    monkeypatch.setitem(PARTS, "toy", toy_part([]))
    reproduce("toy", tmp_path, SETTINGS)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    unknown = invoke("reproduce", "figure3", "--out", tmp_path)
    assert unknown.exit_code == 2
    assert "what must be one of" in unknown.output
    in_the_way = tmp_path / "file"
    in_the_way.write_text("x")
    unwritable = invoke("reproduce", "toy", "--out", in_the_way)
    assert unwritable.exit_code == 2
    assert "cannot write to the folder" in unwritable.output
    missing = invoke("reproduce", "real", "--data", tmp_path / "none.npz", "--out", tmp_path)
    assert missing.exit_code == 2
    assert "there is no file" in missing.output
    assert {path: path.read_bytes() for path in before} == before


def test_real_data_from_a_file(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 12))
    np.savez(tmp_path / "mine.npz", X=X, y=X[:, 0] + 0.1 * rng.standard_normal(60))
    claims = reproduce("real", tmp_path / "out", Settings(quick=True, workers=2, data=str(tmp_path / "mine.npz")))
    assert "mine: 60 x 12, fused lasso" in claims[0].name
    (tmp_path / "bad.npz").write_bytes(b"no")
    with pytest.raises(ds.DapsgdError, match="cannot read X and y"):
        reproduce("real", tmp_path / "out", Settings(quick=True, workers=2, data=str(tmp_path / "bad.npz")))
