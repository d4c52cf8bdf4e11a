"""A loss of your own: quantile regression, smoothed so that the loss has a derivative everywhere."""

from typing import NamedTuple

import numpy as np

import dapsgd as ds


class SmoothQuantile(NamedTuple):
    """The pinball loss of a quantile, rounded off where the residual is smaller than ``width``."""

    level: float
    width: float = 0.4

    def value(self, pred, y):
        """Return the loss of one prediction."""
        residual = y - pred
        tilt = (self.level - 0.5) * residual
        if abs(residual) >= self.width:
            return 0.5 * abs(residual) + tilt
        return 0.25 * (residual * residual / self.width + self.width) + tilt

    def derivative(self, pred, y):
        """Return the derivative in ``pred``."""
        slope = (y - pred) / self.width
        return 0.5 - self.level - 0.5 * min(max(slope, -1.0), 1.0)

    @property
    def curvature(self):
        """The largest second derivative in ``pred``."""
        return 0.5 / self.width


def measurements(seed=0, n=1000, p=40):
    """Draw targets that depend on the last ten of 40 neighbouring features, with noise that has heavy tails."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    y = X @ np.repeat([0.0, 1.0], [p - 10, 10]) + rng.standard_t(3, n)
    return X, y


def main(max_passes=50):
    """Fit the 10 %, 50 % and 90 % quantiles and count the targets below."""
    X, y = measurements()
    found = {}
    for level in (0.1, 0.5, 0.9):
        problem = ds.Problem(X, y, SmoothQuantile(level), ds.FusedLasso(0.01), fit_intercept=True)
        best = ds.solve(problem, "fista", tol=1e-8)
        result = ds.solve(problem, "dap-sgd", workers=2, max_passes=max_passes, tol=0.0, seed=0)
        below = np.mean(y <= X @ result.x + result.intercept)
        gap = result.objective / best.objective - 1.0
        print(f"quantile {level}: {below:.1%} of the targets lie below, objective {gap:.1e} above the optimum")
        found[level] = {"best": best, "result": result, "below": below}
    return found


if __name__ == "__main__":
    main()
