"""A regulariser of your own: group lasso with non-negative coefficients, for spectra that are mixtures."""

from typing import NamedTuple

import numpy as np

import dapsgd as ds


class NonNegativeGroups(NamedTuple):
    """h(w) = sum over groups g of weights[g] * ||w_g||, and infinity if a coefficient is negative.

    The groups are contiguous and equally large, one for each weight.
    """

    weights: np.ndarray

    def value(self, w):
        """Return h(w)."""
        flat = w.ravel()
        size = flat.size // self.weights.size
        total = 0.0
        for g in range(self.weights.size):
            squares = 0.0
            for j in range(g * size, (g + 1) * size):
                if flat[j] < 0.0:
                    return np.inf
                squares += flat[j] * flat[j]
            total += self.weights[g] * np.sqrt(squares)
        return total

    def prox(self, v, step, out):
        """Drop what is negative, then shrink each group."""
        flat, result = v.ravel(), out.ravel()
        size = flat.size // self.weights.size
        for g in range(self.weights.size):
            squares = 0.0
            for j in range(g * size, (g + 1) * size):
                squares += max(flat[j], 0.0) ** 2
            norm, threshold = np.sqrt(squares), step * self.weights[g]
            factor = 1.0 - threshold / norm if norm > threshold else 0.0
            for j in range(g * size, (g + 1) * size):
                result[j] = factor * max(flat[j], 0.0)


def mixture(seed=0, bands=300, materials=12, variants=5):
    """Draw a spectrum that is a mixture of 3 out of 12 materials, each known in 5 variants."""
    rng = np.random.default_rng(seed)
    library = rng.random((bands, materials * variants))
    amounts = np.zeros((materials, variants))
    amounts[[1, 4, 9]] = rng.random((3, variants))
    spectrum = library @ amounts.ravel() + 0.05 * rng.standard_normal(bands)
    return library - library.mean(axis=0), spectrum - spectrum.mean()


def main(max_passes=50):
    """Find the materials on three runtimes and compare with the optimum."""
    X, y = mixture()
    problem = ds.Problem(X, y, regularizer=NonNegativeGroups(np.full(12, 0.02)), l2=1e-3)
    best = ds.solve(problem, "fista", tol=1e-10)

    options = {"step": ds.InverseTime(40.0, 0.02), "tol": 0.0, "seed": 0}
    serial = ds.solve(problem, "dap-sgd", runtime="serial", max_passes=max_passes, **options)
    threads = ds.solve(problem, "dap-sgd", workers=2, max_passes=max_passes, record_schedule=True, **options)
    replay = ds.solve(problem, "dap-sgd", runtime=ds.Replay(threads.schedule), **options)

    found = {"fista": best, "serial": serial, "threads": threads, "replay": replay}
    for name, result in found.items():
        alive = np.flatnonzero(result.x.reshape(12, 5).any(axis=1))
        gap = result.objective / best.objective - 1.0
        print(f"{name:8} objective {result.objective:.5f}, {gap:8.1e} above the optimum, materials {alive}")
    print("replay equals the run:", np.array_equal(threads.iterate, replay.iterate))
    return found


if __name__ == "__main__":
    main()
