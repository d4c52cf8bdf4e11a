"""
Delays and stragglers, simulated
================================

What would 32 workers do, and what if one of them is ten times slower? ``Simulated`` runs the same compiled updates in
simulated time, on one core, and gives the same bits for the same seed.
"""

import matplotlib.pyplot as plt
import numpy as np

import dapsgd as ds

rng = np.random.default_rng(0)
X = rng.standard_normal((400, 100))
y = X @ np.repeat([1.0, -1.0, 0.5, 0.0], 25)
problem = ds.Problem(X, y, regularizer=ds.FusedLasso(0.5), l2=0.1)
x_star = ds.solve(problem, "fista", tol=1e-10).x

# %%
# More workers: an update takes 41 microseconds in all. In DAP-SGD the master needs 1 of them, in TAP-SGD 16. Updates per second
# grow until the master is busy all the time. The bound on the delay is loose here, so that nobody waits for others.

workers = [1, 2, 4, 8, 16, 32, 64]
speeds = {
    "dap-sgd: the workers run the prox": ds.Simulated(work=ds.Exponential(40e-6), apply=1e-6),
    "tap-sgd: the master runs it": ds.Simulated(work=ds.Exponential(25e-6), apply=16e-6),
}
figure, by_workers = plt.subplots(figsize=(6.0, 3.8), layout="constrained")
for (name, runtime), colour in zip(speeds.items(), ("#0072B2", "#D55E00"), strict=True):
    rates = [runtime.timing(k, max_delay=20 * k).updates_per_second for k in workers]
    by_workers.plot(workers, np.array(rates) / rates[0], "o-", color=colour, label=name)
by_workers.set_xscale("log", base=2)
by_workers.set_yscale("log", base=2)
by_workers.set_xticks(workers, workers)
by_workers.set_yticks(workers, workers)
by_workers.set_xlabel("workers")
by_workers.set_ylabel("speedup, in updates per second")
by_workers.legend(frameon=False)
by_workers.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Eight workers, one of them slow. With a tight bound on the delay all wait for it; with a loose one the others go on, and
# the slow one's updates arrive late. A tight bound costs even equals something: the time for an update varies, and all wait for
# whoever is slowest just now. So with a loose bound eight with a straggler are ahead of eight equals with a tight one.

options = {"workers": 8, "step": ds.Constant(2e-4), "max_iter": 6000, "record_every": 200, "tol": 0, "seed": 0}
alike = ds.Simulated(work=ds.Exponential(40e-6), apply=1e-6)
slow = ds.Simulated(work=ds.Straggler(ds.Exponential(40e-6), factor=10), apply=1e-6)
cases = {
    "all alike, max_delay=8": (alike, 8),
    "a straggler, max_delay=8": (slow, 8),
    "a straggler, max_delay=100": (slow, 100),
}
figure, by_time = plt.subplots(figsize=(6.0, 3.8), layout="constrained")
for (name, (runtime, bound)), colour in zip(cases.items(), ("#333333", "#D55E00", "#0072B2"), strict=True):
    run = ds.solve(problem, "dap-sgd", runtime=runtime, max_delay=bound, x_star=x_star, **options)
    run.trace.plot(y="distance", ax=by_time, color=colour, label=name)
    longest = np.flatnonzero(run.delays).max()
    print(f"{name:28} {run.seconds * 1e3:6.1f} ms simulated, delays up to {longest}")
by_time.set_xlabel("simulated seconds")
by_time.legend(frameon=False)
plt.show()
