"""Runs on Ray, on one machine: the recursion, the optimum, files, faults, bad input. Longer ones are in ``soak/``."""

import contextlib
import importlib.util
import itertools
import os
import re
import resource
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import dapsgd as ds
from dapsgd import reference
from dapsgd.runtimes.ray.cluster import import_ray, on_loopback

from . import cases

pytestmark = [
    pytest.mark.xdist_group("ray"),
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),  # Ray's own
]
ROOT = Path(__file__).parents[1]
STEP = ds.InverseTime(200.0, 0.1)


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """One Ray for all tests of this file: starting it takes as long as most of them."""
    ray = pytest.importorskip("ray")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    with on_loopback(import_ray()):
        ray.init(
            address="local",
            num_cpus=4,
            include_dashboard=False,
            _node_ip_address="127.0.0.1",
            object_store_memory=200_000_000,
            log_to_driver=False,
            logging_level="error",
        )
    yield ray
    ray.shutdown()


@pytest.fixture(autouse=True)
def nothing_is_left(cluster):
    yield
    end = time.monotonic() + 20.0
    while cluster.util.list_named_actors(all_namespaces=True) and time.monotonic() < end:
        time.sleep(0.05)
    assert cluster.util.list_named_actors(all_namespaces=True) == []


def family(pid):
    """Return a process and all that it started."""
    children = [int(child) for file in Path(f"/proc/{pid}/task").glob("*/children") for child in file.read_text().split()]
    return [pid, *(other for child in children for other in family(child))]


def listening(pids):
    """Return the addresses on which processes of this machine listen, as hexadecimal numbers."""
    sockets = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for file in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    sockets.add(os.readlink(f"/proc/{pid}/fd/{file}"))
    found = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                found[fields[1]] = fields[1].partition(":")[0]
    return list(found.values())


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="reads Linux's tables of sockets")
def test_ray_listens_on_the_loopback_interface_only(cluster):
    addresses = listening(family(os.getpid()))
    assert len(addresses) >= 4  # this process, the raylet, its agent, and Ray's table of actors
    assert {address[-8:] for address in addresses} == {"0100007F"}
    assert "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER" not in os.environ


@pytest.fixture(scope="module")
def faults():
    spec = importlib.util.spec_from_file_location("ray_faults", ROOT / "soak" / "ray_faults.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def data(n=240, p=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.7)
    return X, X @ np.repeat(rng.standard_normal(3), p // 3) + 0.1 * rng.standard_normal(n)


def fused(**options):
    return ds.Problem(*data(), regularizer=ds.FusedLasso(0.1), l2=0.01, **options)


def check_counts(result):
    seen = result.statistics
    assert seen.pushed == seen.applied + seen.fenced
    assert result.iterations == seen.applied == result.delays.sum()


def test_one_worker_runs_the_papers_recursion():
    problem = fused()
    run = ds.solve(
        problem, "dap-sgd", runtime=ds.Ray(), workers=1, step=STEP, max_iter=120, tol=0, seed=0, record_schedule=True
    )
    X, y = data()

    def grad(x, i):
        return 2.0 * X[i].T @ (X[i] @ x - y[i]) / len(i) + 0.02 * x

    schedule = run.schedule
    expected = reference.dap_sgd(
        grad,
        lambda v, eta: ds.prox(problem.regularizer, v, eta),
        lambda t: 1.0 / (200.0 + 0.1 * t),
        np.zeros(12),
        schedule.rows,
        schedule.read,
    )[-1]
    np.testing.assert_allclose(run.iterate, expected, rtol=0, atol=1e-13)
    serial = ds.solve(problem, "dap-sgd", runtime="serial", step=STEP, max_iter=120, tol=0, seed=0)
    assert np.array_equal(run.iterate, serial.iterate)
    assert run.delays.tolist() == [120, 0]
    check_counts(run)


def test_two_workers_are_replayed_exactly():
    problem = fused()
    options = {"step": STEP, "max_iter": 300, "tol": 0, "record_every": 100}
    run = ds.solve(problem, "dap-sgd", runtime=ds.Ray(workers=2), batch_size=3, seed=1, record_schedule=True, **options)
    assert set(run.schedule.worker) == {0, 1}
    assert run.schedule.rows[run.schedule.worker == 0].max() < 120 <= run.schedule.rows[run.schedule.worker == 1].min()
    assert run.schedule.delays.max() <= 2
    again = ds.solve(problem, "dap-sgd", runtime=ds.Replay(run.schedule), **options)
    assert np.array_equal(run.iterate, again.iterate)
    assert run.statistics.shares.sum() == pytest.approx(1.0)
    assert "updates/s" in run.statistics.brief
    check_counts(run)


@pytest.mark.parametrize(
    ("regularizer", "sparse", "shards", "workers"),
    [("l1", True, 2, 3), ("fused_lasso", False, 3, 2)],  # all of them in soak/ray_optimum.py
)
def test_the_optimum_is_that_of_threads(regularizer, sparse, shards, workers):
    problem = cases.problem("squared", regularizer, n=150, seed=0, l2=0.1)
    if sparse:
        problem = ds.Problem(csr_matrix(problem._rows.X), problem._targets[:, 0], regularizer=problem.regularizer, l2=0.1)
    run = ds.solve(problem, runtime=ds.Ray(shards=shards, workers=workers), tol=1e-8, max_passes=2000, seed=0)
    threads = ds.solve(problem, "dave-rpg", workers=2, tol=1e-10, max_passes=4000, seed=0)
    assert run.message.startswith("dave-rpg (chosen because it needs the fewest messages)")
    assert run.converged
    assert run.objective == pytest.approx(threads.objective, rel=1e-6)
    assert len(run.delays) <= workers + 1
    check_counts(run)


def test_snapshots_are_taken_by_the_workers():
    problem = fused()
    best = ds.solve(problem, "fista", tol=1e-12).objective
    run = ds.solve(problem, "dap-svrg", runtime=ds.Ray(shards=2, workers=2), max_passes=100, tol=1e-6, seed=0)
    assert run.objective == pytest.approx(best, rel=1e-6)
    options = {"step": STEP, "batch_size": 32, "max_iter": 45, "tol": 0, "seed": 0}  # of automatic ones epochs end otherwise
    one = ds.solve(problem, "dap-svrg", runtime=ds.Ray(workers=1), **options)
    serial = ds.solve(problem, "dap-svrg", runtime="serial", **options)
    np.testing.assert_allclose(one.iterate, serial.iterate, rtol=1e-12)
    check_counts(run)


def test_the_master_runs_the_prox_of_tap():
    problem = fused()
    options = {"step": STEP, "max_iter": 100, "tol": 0, "seed": 0, "record_every": 50}
    one = ds.solve(problem, "tap-sgd", runtime=ds.Ray(), workers=1, **options)
    serial = ds.solve(problem, "tap-sgd", runtime="serial", **options)
    assert np.array_equal(one.iterate, serial.iterate)
    X, y = data()
    apart = ds.Problem(X, y, regularizer=ds.L1(0.1), fit_intercept=True)  # its prox may be cut
    run = ds.solve(apart, "tap-sgd", runtime=ds.Ray(shards=3), workers=1, average=True, **options)
    serial = ds.solve(apart, "tap-sgd", runtime="serial", average=True, **options)
    np.testing.assert_allclose(run.iterate, serial.iterate, rtol=0, atol=1e-14)
    assert run.intercept == pytest.approx(serial.intercept)


def test_terms_of_the_users_own_travel():
    class Ridge(NamedTuple):
        lam: float

        def value(self, w):
            return self.lam * np.sum(w * w)

        def prox(self, v, step, out):
            for j in range(v.size):
                out[j] = v[j] / (1.0 + 2.0 * step * self.lam)

    X, y = data()
    run = ds.solve(ds.Problem(X, y, regularizer=Ridge(0.3)), runtime=ds.Ray(workers=2), tol=1e-8, max_passes=500, seed=0)
    expected = np.linalg.solve(X.T @ X / len(y) + 0.3 * np.eye(12), X.T @ y / len(y))
    np.testing.assert_allclose(run.x, expected, rtol=1e-5)


def write_parquet(folder, X, y, cuts):
    import pyarrow
    import pyarrow.parquet

    for k, (a, b) in enumerate(itertools.pairwise(cuts)):
        columns = {f"c{j}": X[a:b, j] for j in range(X.shape[1])} | {"y": y[a:b]}
        names = list(columns) if k != 1 else list(columns)[::-1]  # the order of columns is not the same in all files
        pyarrow.parquet.write_table(pyarrow.table({name: columns[name] for name in names}), folder / f"train-{k}.parquet")
    return ds.Partitions(str(folder / "train-*.parquet"), target="y")


def write_npy(folder, X, y, cuts):
    for k, (a, b) in enumerate(itertools.pairwise(cuts)):
        np.save(folder / f"{k}.npy", np.column_stack([X[a:b], y[a:b]]))
    return ds.Partitions([folder / "0.npy", folder / "1.npy", folder / "2.npy"], target=-1)


def write_svmlight(folder, X, y, cuts):
    from sklearn.datasets import dump_svmlight_file

    for k, (a, b) in enumerate(itertools.pairwise(cuts)):
        dump_svmlight_file(X[a:b], y[a:b], str(folder / f"{k}.svm"), zero_based=False)
    return ds.Partitions(str(folder / "*.svm"), zero_based=False)


@pytest.mark.parametrize(("write", "algorithm"), [(write_parquet, "auto"), (write_npy, "dap-svrg"), (write_svmlight, "auto")])
def test_partitions_are_opened_by_the_workers(tmp_path, write, algorithm):
    X, y = data()
    partitions = write(tmp_path, X, y, [0, 20, 130, 240])
    terms = {"regularizer": ds.FusedLasso(0.1), "l2": 0.01, "fit_intercept": True}
    run = ds.solve(ds.Problem(partitions, **terms), algorithm, runtime=ds.Ray(workers=2), tol=1e-7, max_passes=400, seed=0)
    best = ds.solve(ds.Problem(X, y, **terms), tol=1e-10)
    assert run.converged
    assert run.objective == pytest.approx(best.objective, rel=1e-6)
    assert run.residual < 1e-2
    np.testing.assert_allclose(run.x, best.x, atol=1e-3)


def test_estimators_run_on_ray():
    X, y = data()
    model = ds.DAPRegressor(alpha=0.05, penalty="fused_lasso", runtime=ds.Ray(workers=2), tol=1e-6, random_state=0).fit(X, y)
    alone = ds.DAPRegressor(alpha=0.05, penalty="fused_lasso", tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=1e-3)
    assert model.result_.statistics.applied == model.n_iter_


# Faults; each ten times in soak/ray_faults.py.


@pytest.mark.parametrize(("fault", "k"), [("worker", 3), ("shard", 2), ("shard", 1), ("both", 3), ("stall", 3)])
def test_a_run_survives(faults, fault, k):
    result, wrong = faults.FAULTS[fault](k, short=True)
    assert wrong == []
    if fault != "stall":
        assert result.statistics.worker_restarts + result.statistics.shard_restarts == (2 if fault == "both" else 1)


@pytest.mark.parametrize(("algorithm", "shard"), [("dap-sgd", 1), ("dave-rpg", 0)])
def test_what_nobody_has_any_more_takes_the_run_back(faults, algorithm, shard):
    runtime = ds.Ray(workers=2, shards=2, replay_bytes=1, checkpoint_every=1000.0)  # there is only the start to go back to
    result, wrong = faults.run(lambda: faults.kill("shard", shard), algorithm, runtime, 400, 100)
    assert wrong == []
    assert result.statistics.undone >= 100


def test_a_worker_moves_to_cpus_that_come_free(cluster, faults):
    class Hog:
        def is_up(self):
            return True

    def watch(checkup):
        names = faults.names("worker")
        if seen == []:
            assert names == ["worker-0.0", "worker-1.1"]
            cluster.kill(hog)
        if names == ["worker-0.0", "worker-1.2"]:
            seen.append(checkup.iteration)
            return len(seen) > 20
        seen.append(-1)
        return False

    hog, seen = cluster.remote(Hog).options(num_cpus=3).remote(), []
    assert cluster.get(hog.is_up.remote())
    runtime, options = ds.Ray(workers=2), {"tol": 0.0, "seed": 0, "record_every": 20, "callbacks": [watch]}
    result = ds.solve(faults.fused_problem(300), "dap-svrg", runtime=runtime, max_iter=10**6, **options)
    check_counts(result)
    assert result.statistics.worker_moves == 1
    assert result.statistics.worker_restarts == 0
    best = ds.solve(faults.fused_problem(300), "gram", tol=1e-12).objective
    assert result.objective == pytest.approx(best, rel=1e-6)


def test_a_run_goes_on_from_its_checkpoint(tmp_path, faults):
    def stop(checkup):
        seen.append(checkup.iteration)
        if checkup.iteration >= 300 and os.path.isdir(folder) and len(os.listdir(folder)) >= 5:
            raise KeyboardInterrupt

    folder, seen = str(tmp_path / "run"), []
    runtime = ds.Ray(workers=2, shards=2, checkpoint_dir=folder, checkpoint_every=0.1)
    options = {"step": ds.Constant(faults.STEP), "tol": 0.0, "seed": 0, "record_every": 20, "callbacks": [stop]}
    with pytest.raises(KeyboardInterrupt):
        ds.solve(faults.sums_problem(), "dap-sgd", runtime=runtime, max_iter=10**6, **options)
    stopped, seen[:] = seen[-1], []
    with pytest.raises(ds.CheckpointError, match="another run"):
        ds.solve(fused(), "dap-sgd", runtime=runtime, max_iter=500, **options)
    options["callbacks"] = [lambda checkup: seen.append(checkup.iteration)]
    result = ds.solve(faults.sums_problem(), "dap-sgd", runtime=runtime, max_iter=stopped + 400, **options)
    assert seen[0] > 0  # shards may have gone on after the last point that was seen
    assert faults.check(result, counted=True) == []
    assert not os.path.exists(folder)  # it came to its end


# Bad input: a sentence, soon, and nothing left running.


def test_more_shards_than_coordinates():
    with pytest.raises(ValueError, match=re.escape("shards must be at most the 12 rows of the parameter; got 13")):
        ds.solve(fused(), runtime=ds.Ray(shards=13))


def test_tap_with_a_coupled_prox_on_two_shards():
    with pytest.raises(ValueError, match="shards must be 1 for algorithm 'tap-sgd' with FusedLasso"):
        ds.solve(fused(), "tap-sgd", runtime=ds.Ray(shards=2, workers=1))


def test_other_things_that_cannot_be():
    with pytest.raises(ValueError, match="runs in the calling thread"):
        ds.solve(fused(), "fista", runtime=ds.Ray())
    with pytest.raises(ValueError, match="record_schedule must be False"):
        ds.solve(fused(), "dap-sgd", runtime=ds.Ray(shards=2), record_schedule=True)
    with pytest.raises(ValueError, match="checkpoint must be None with Ray"):
        ds.solve(fused(), runtime=ds.Ray(), checkpoint="file")
    with pytest.raises(ValueError, match="workers must be given once"):
        ds.solve(fused(), runtime=ds.Ray(workers=2), workers=3)
    with pytest.raises(ds.DivergenceError):
        ds.solve(fused(), "dap-sgd", runtime=ds.Ray(workers=2), step=ds.Constant(1e6), max_iter=500, seed=0)


def test_missing_and_unlike_partitions(tmp_path):
    X, y = data()
    partitions = write_parquet(tmp_path, X, y, [0, 100, 240])
    missing = ds.Problem(ds.Partitions([*partitions.files, str(tmp_path / "gone.parquet")], target="y"))
    with pytest.raises(FileNotFoundError, match=r"gone\.parquet"):
        ds.solve(missing, runtime=ds.Ray(workers=2))
    write_parquet(tmp_path, X[:, :11], y, [0, 100])
    with pytest.raises(ValueError, match=r"must have the same columns; .*differ in 'c11'"):
        ds.solve(ds.Problem(partitions), runtime=ds.Ray(workers=2))
    with pytest.raises(ValueError, match="workers must be at most the number of files, 2"):
        ds.solve(ds.Problem(partitions), runtime=ds.Ray(workers=3))


def test_a_full_disk(tmp_path, faults):
    """The shard may not write a file as large as its checkpoint."""

    def fill(checkup):
        if checkup.iteration == 20:
            pid = import_ray().get(faults.actors("shard")[0].pid.remote())
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (64, resource.RLIM_INFINITY))

    runtime = ds.Ray(workers=1, checkpoint_dir=tmp_path / "run", checkpoint_every=0.05)
    with pytest.raises(OSError, match=r"checkpoint_dir .* cannot be written by shard 0 .*make room"):
        ds.solve(
            faults.sums_problem(),
            "dap-sgd",
            runtime=runtime,
            step=ds.Constant(faults.STEP),
            max_iter=10**6,
            tol=0.0,
            record_every=20,
            callbacks=[fill],
        )


ALONE = """
import sys
import numpy as np
import dapsgd as ds
assert "ray" not in sys.modules
problem = ds.Problem(np.eye(4), [3.0, 0.1, -2.0, 1.0], regularizer=ds.L1(0.1))
try:
    ds.solve(problem, runtime=ds.Ray(sys.argv[1]))
except ds.DapsgdError as error:
    print("said:", error)
import ray
assert not ray.is_initialized()
result = ds.solve(problem, runtime=ds.Ray(workers=1), tol=1e-8)
print("objective", result.objective - ds.solve(problem, tol=1e-10).objective < 1e-7)
assert not ray.is_initialized()
sys.modules["ray"] = None
try:
    ds.solve(problem, runtime=ds.Ray(workers=1))
except ImportError as error:
    print("said:", error)
"""


def test_a_private_ray_an_address_nobody_listens_at_and_no_ray_at_all(faults):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        before = set(faults.processes())
        done = subprocess.run([sys.executable, "-c", ALONE, address], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert address in said[0]
    assert "cannot be reached" in said[0]
    assert said[1] == "objective True"
    assert "pip install 'dapsgd[ray]'" in said[2]
    end = time.monotonic() + 20.0
    while set(faults.processes()) - before and time.monotonic() < end:
        time.sleep(0.1)
    assert set(faults.processes()) - before == set()
