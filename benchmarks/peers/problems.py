"""The problems: their data, drawn from a seed, and their objective. NumPy and SciPy only: every child process imports this.

P(w) = (1/n) sum_i loss(x_i . w, y_i) + lam * penalty(w), loss (x.w - y)^2 or log(1 + exp(-y x.w)).
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.signal import lfilter

CHUNK = 10_000  # rows that are drawn, or evaluated in float64, at a time
IN_MEMORY = 500e6  # bytes; larger data is memory-mapped, so that all children share it


class Spec(NamedTuple):
    """What a problem is."""

    name: str
    penalty: str  # l1, group, fused, nuclear
    n: int
    p: int
    targets: int = 1
    loss: str = "squared"  # or logistic
    lam: float = 0.02  # as a share of the smallest lam that makes the answer trivial
    rho: float = 0.5  # correlation of neighbouring columns
    size: int = 10  # of a group
    noise: float = 0.1  # its spread as a share of the signal's, squared loss
    active: int = 10  # non-zero groups, pieces, rank; tenths of the non-zero coefficients
    nonzeros: int = 0  # in a row; 0: dense
    dtype: str = "float64"
    goals: tuple[float, ...] = (1e-3, 1e-6)
    hostile: bool = False  # columns scaled by 1e-3 to 1e3, some of them constant
    seed: int = 0

    @property
    def shape(self):
        """The shape of the coefficients."""
        return (self.p, self.targets) if self.targets > 1 else (self.p,)


EASY = [
    Spec("group", "group", 20_000, 1_000),
    Spec("group-wide", "group", 2_000, 5_000),
    Spec("fused", "fused", 20_000, 1_000),
    Spec("fused-wide", "fused", 2_000, 5_000),
    Spec("nuclear", "nuclear", 20_000, 100, targets=50, active=5),
    Spec("nuclear-small", "nuclear", 4_000, 50, targets=40, active=5),
    Spec("lasso", "l1", 20_000, 1_000),
    Spec("lasso-wide", "l1", 1_000, 5_000, active=5),
    Spec("logistic", "l1", 20_000, 1_000, loss="logistic"),
    Spec("logistic-sparse", "l1", 50_000, 20_000, loss="logistic", nonzeros=50),
]
HARD = [spec._replace(name=f"{spec.name}-hard", lam=0.002, rho=0.9, noise=0.5) for spec in EASY]
_LARGE = {"dtype": "float32", "goals": (1e-3, 1e-4)}
LARGE = [
    Spec("fused-large", "fused", 200_000, 1_000, loss="logistic", **_LARGE),
    Spec("group-large", "group", 200_000, 1_000, loss="logistic", **_LARGE),
    Spec("nuclear-large", "nuclear", 100_000, 500, targets=100, **_LARGE),
]
SETS = {"easy": EASY, "hard": HARD, "large": LARGE, "all": EASY + HARD + LARGE}


def smaller(spec):
    """Shrink a problem for a quick look: everything runs, nothing is worth timing."""
    return spec._replace(
        name=f"{spec.name}-quick",
        n=max(200, spec.n // 20),
        p=max(20, spec.p // 10),
        targets=max(1, spec.targets // 5),
        active=max(2, spec.active // 5),
        nonzeros=spec.nonzeros // 5,
    )


class Problem(NamedTuple):
    """A problem with its data."""

    spec: Spec
    X: Any  # C order, or CSR
    y: Any
    lam: float
    folder: Path | None = None

    def columns(self, dtype=None):
        """X for a package that works by columns: Fortran order, or CSC."""
        if sp.issparse(self.X):
            return self.X.tocsc().astype(dtype or self.X.dtype)
        if self.folder and dtype in (None, self.X.dtype) and (self.folder / "columns.npy").exists():
            return load(self.folder / "columns.npy")
        return np.asfortranarray(self.X, dtype)

    def objective(self, w):
        """Evaluate P in float64."""
        w = np.asarray(w, np.float64).reshape(self.spec.shape)
        return smooth(self.spec, self.X, self.y, w) + self.lam * penalty(self.spec, w)


def penalty(spec, w):
    """Evaluate the penalty without lam."""
    if spec.penalty == "l1":
        return np.abs(w).sum()
    if spec.penalty == "group":
        return np.sqrt((w.reshape(-1, spec.size) ** 2).sum(axis=1)).sum()
    if spec.penalty == "fused":
        return np.abs(np.diff(w)).sum()
    return np.linalg.svd(w, compute_uv=False).sum()


def chunks(X):
    """Cut the rows of X."""
    for start in range(0, X.shape[0], CHUNK):
        rows = slice(start, start + CHUNK)
        yield rows, X[rows].astype(np.float64, copy=False)


def smooth(spec, X, y, w):
    """Evaluate the mean loss."""
    total = 0.0
    for rows, block in chunks(X):
        margins = block @ w
        total += ((margins - y[rows]) ** 2 if spec.loss == "squared" else np.logaddexp(0.0, -y[rows] * margins)).sum()
    return total / X.shape[0]


def gradient(spec, X, y, w):
    """Evaluate the gradient of the mean loss."""
    total = np.zeros(w.shape)
    for rows, block in chunks(X):
        margins, target = block @ w, y[rows].astype(np.float64)
        slope = 2.0 * (margins - target) if spec.loss == "squared" else -target / (1.0 + np.exp(target * margins))
        total += block.T @ slope
    return total / X.shape[0]


def lam_max(spec, X, y):
    """Return the smallest lam at which the answer is zero, or constant for the fused lasso."""
    null = np.zeros(spec.shape)
    if spec.penalty == "fused":
        ones = np.ones(spec.p)
        sums = np.concatenate([block @ ones for _, block in chunks(X)])
        curvature = 2.0 if spec.loss == "squared" else 0.25
        for _ in range(1 if spec.loss == "squared" else 200):  # on one number; exact at once for squares
            null -= gradient(spec, X, y, null).sum() / (curvature * np.mean(sums**2))
        return np.abs(np.cumsum(gradient(spec, X, y, null))[:-1]).max()
    slope = gradient(spec, X, y, null)
    if spec.penalty == "l1":
        return np.abs(slope).max()
    if spec.penalty == "group":
        return np.sqrt((slope.reshape(-1, spec.size) ** 2).sum(axis=1)).max()
    return np.linalg.norm(slope, 2)


def draw_rows(spec, rng):
    """Draw X: neighbouring columns are correlated (AR(1)), or a few entries of each row are not zero."""
    if spec.nonzeros:
        indices = np.concatenate([rng.choice(spec.p, spec.nonzeros, replace=False) for _ in range(spec.n)])
        values = rng.standard_normal(indices.size).astype(spec.dtype)
        X = sp.csr_matrix((values, indices, np.arange(0, indices.size + 1, spec.nonzeros)), shape=(spec.n, spec.p))
        X.sort_indices()
        return X
    X = np.empty((spec.n, spec.p), spec.dtype)
    scale = np.sqrt(1.0 - spec.rho**2)
    for start in range(0, spec.n, CHUNK):
        noise = rng.standard_normal((min(CHUNK, spec.n - start), spec.p))
        noise[:, 0] /= scale
        X[start : start + CHUNK] = lfilter([scale], [1.0, -spec.rho], noise, axis=1)
    return X


def draw_truth(spec, rng):
    """Draw coefficients that have the penalty's structure."""
    if spec.penalty == "nuclear":
        return rng.standard_normal((spec.p, spec.active)) @ rng.standard_normal((spec.active, spec.targets)) / spec.p**0.5
    w = np.zeros(spec.p)
    if spec.penalty == "fused":
        cuts = np.sort(rng.choice(np.arange(1, spec.p), spec.active - 1, replace=False))
        return np.repeat(rng.standard_normal(spec.active), np.diff(np.r_[0, cuts, spec.p]))
    if spec.penalty == "group":
        chosen = rng.choice(spec.p // spec.size, spec.active, replace=False)
        w.reshape(-1, spec.size)[chosen] = rng.standard_normal((spec.active, spec.size))
    else:
        w[rng.choice(spec.p, 10 * spec.active, replace=False)] = rng.standard_normal(10 * spec.active)
    return w


def draw(spec):
    """Draw a problem."""
    rng = np.random.default_rng([spec.seed, spec.n, spec.p])
    X, w = draw_rows(spec, rng), draw_truth(spec, rng)
    signal = np.concatenate([block @ w for _, block in chunks(X)])
    if spec.loss == "squared":
        y = signal + spec.noise * signal.std() * rng.standard_normal(signal.shape)
    else:
        y = np.where(2.0 * signal / signal.std() + rng.logistic(size=signal.shape) > 0.0, 1.0, -1.0)
    if spec.hostile:
        X *= 10.0 ** rng.uniform(-3.0, 3.0, spec.p)
        X[:, rng.choice(spec.p, 5, replace=False)] = 1.0
    y = y.astype(spec.dtype)
    return Problem(spec, X, y, float(spec.lam * lam_max(spec, X, y)))


def save(problem, folder):
    """Write a problem for the children; large data also by columns, so that no child needs a copy of its own."""
    if sp.issparse(problem.X):
        sp.save_npz(folder / "rows.npz", problem.X, compressed=False)
    else:
        np.save(folder / "rows.npy", problem.X)
        if problem.X.nbytes > IN_MEMORY:
            np.save(folder / "columns.npy", np.asfortranarray(problem.X))
    np.save(folder / "y.npy", problem.y)
    (folder / "spec.json").write_text(json.dumps({"lam": problem.lam, "spec": problem.spec._asdict()}))


def load(path):
    """Read an array; map a large one, copy on write."""
    return np.asarray(np.load(path, mmap_mode="c")) if path.stat().st_size > IN_MEMORY else np.load(path)


def read(folder):
    """Read what ``save`` wrote."""
    about = json.loads((folder / "spec.json").read_text())
    X = sp.load_npz(folder / "rows.npz") if (folder / "rows.npz").exists() else load(folder / "rows.npy")
    return Problem(Spec(**about["spec"]), X, np.load(folder / "y.npy"), about["lam"], folder)
