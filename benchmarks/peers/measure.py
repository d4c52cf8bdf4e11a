"""Time to accuracy: the shortest full run from zero that reaches it, over a ladder of budgets; repeats are interleaved."""

import contextlib
import json
import select
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from statistics import median

import problems

HERE = Path(__file__).parent
STRIDE = 4  # rungs of the ladder that the search climbs at a time
OPENING = 300.0  # seconds in which a package may import, prepare and compile


class GoneError(Exception):
    """A solver failed, crashed, or took too long."""


class Child:
    """A solver in a process of its own."""

    def __init__(self, solver, python=sys.executable):
        module, _, variant = solver.partition(":")
        command = [python, str(HERE / "child.py"), module, variant]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=HERE
        )

    def ask(self, limit, **command):
        """Send a command; wait for the answer, so many seconds at most."""
        try:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise GoneError("the process had ended") from None
        if not select.select([self.process.stdout], [], [], limit)[0]:
            raise GoneError(f"cut after {limit:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            raise GoneError(f"crashed, exit code {self.process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise GoneError(answer["error"])
        return answer

    def close(self):
        """End the process."""
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()


class Study:
    """All solvers on one problem."""

    def __init__(self, spec, solvers, pythons, *, repeats, limit, patience, optima, log):
        self.spec, self.solvers, self.pythons = spec, solvers, pythons
        self.repeats, self.limit, self.patience = repeats, limit, patience
        self.optima, self.log = optima, log
        self.best = dict.fromkeys(spec.goals, limit)  # seconds of the fastest solver so far
        self.rows = {}

    def run(self):
        """Measure; returns what is known of the problem and of each solver."""
        with tempfile.TemporaryDirectory() as folder:
            problem = problems.draw(self.spec)
            problems.save(problem, Path(folder))
            self.reference = reference(problem, self.optima)
            self.lowest = self.reference
            lam = problem.lam
            del problem
            children = {}
            for solver in self.solvers:
                child = self.start(solver)
                self.rows[solver] = {"goals": {}}
                try:
                    self.climb(solver, child, folder)
                    children[solver] = child
                except GoneError as reason:
                    self.rows[solver]["left_out"] = str(reason)
                    child.close()
                    if self.rows[solver]["goals"]:  # it reached the first accuracy: time that in a new process
                        children[solver] = self.start(solver)
                        children[solver].ask(OPENING, open=folder)
                self.log(describe(solver, self.rows[solver]))
            for child in self.interleave(children):
                child.close()
        lowered = (self.reference - self.lowest) / abs(self.lowest)
        about = {"spec": self.spec._asdict(), "lam": lam, "optimum": self.lowest, "reference_above_lowest": lowered}
        return about | {"solvers": self.rows}

    def start(self, solver):
        """Start a solver with its interpreter."""
        return Child(solver, self.pythons.get(solver.partition(":")[0], sys.executable))

    def solve(self, child, budget, limit):
        """Run once; returns seconds and relative suboptimality."""
        answer = child.ask(limit, budget=budget)
        self.lowest = min(self.lowest, answer["objective"])
        return answer["seconds"], (answer["objective"] - self.lowest) / abs(self.lowest)

    def climb(self, solver, child, folder):
        """Find the loosest budget that reaches each goal: by strides up the ladder, then by halves back."""
        row = self.rows[solver]
        opened = child.ask(OPENING, open=folder)
        if "refused" in opened:
            raise GoneError(opened["refused"])
        budgets = opened.pop("budgets")
        row.update(opened)
        rung = 0
        for goal in self.spec.goals:
            limit = min(self.limit, max(5.0, self.patience * self.best[goal]))
            low, high, known = rung - 1, rung, {}
            closest = float("inf")
            began = time.perf_counter()
            while True:
                known[high] = self.solve(child, budgets[high], limit)
                closest = min(closest, known[high][1])
                if known[high][1] <= goal:
                    break
                if high == len(budgets) - 1:
                    raise GoneError(f"stayed {closest:.1e} above the optimum")
                if known[high][0] > limit or time.perf_counter() - began > 5 * limit:
                    raise GoneError(f"cut after {known[high][0]:.1f} s at {closest:.1e} above the optimum")
                low, high = high, min(high + STRIDE, len(budgets) - 1)
            while high - low > 1:
                middle = (low + high) // 2
                known[middle] = self.solve(child, budgets[middle], limit)
                low, high = (low, middle) if known[middle][1] <= goal else (middle, high)
            rung = high
            self.best[goal] = min(self.best[goal], known[rung][0])
            row["goals"][goal] = {"budgets": budgets[rung:], "seconds": [], "search_seconds": known[rung][0]}

    def interleave(self, children):
        """Repeat in turns. A run that misses its goal does not count, and moves the solver one budget on.

        Each turn begins with a run that is not timed: the data is not in the caches after the others' turns.
        """
        for _ in range(self.repeats):
            for solver, child in children.items():
                for warm, (goal, cell) in enumerate(self.rows[solver]["goals"].items()):
                    try:
                        if not warm:
                            self.solve(child, cell["budgets"][0], self.limit)
                        self.repeat(child, goal, cell)
                    except GoneError as reason:
                        self.rows[solver].setdefault("left_out", str(reason))
                        child.close()  # a late answer must not be taken for the next one
        for solver in children:
            for cell in self.rows[solver]["goals"].values():
                cell["budget"] = cell.pop("budgets")[0]
                cell["median"] = median(cell["seconds"]) if cell["seconds"] else None
        return children.values()

    def repeat(self, child, goal, cell):
        """Time one run that reaches the goal."""
        while True:
            seconds, above = self.solve(child, cell["budgets"][0], self.limit)
            if above <= goal:
                cell["seconds"].append(seconds)
                return
            cell["missed"] = cell.get("missed", 0) + 1
            if len(cell["budgets"]) == 1:
                raise GoneError(f"missed {goal:g} in a repeat")
            del cell["budgets"][0]


def reference(problem, optima):
    """Return the lowest objective known: FISTA to a relative gap of about 1e-12, kept between runs."""
    import dapsgd as ds

    key = json.dumps(problem.spec._replace(goals=(), name="")._asdict())
    if key not in optima:
        make = import_module("solvers.dapsgd_").make
        tol = 1e-12 if problem.X.dtype == "float64" else 1e-8  # in float64 all the same: float32 may never get there
        exact = problem._replace(X=problem.X.astype("float64", copy=False), y=problem.y.astype("float64", copy=False))
        optima[key] = float(problem.objective(ds.solve(make(exact), "fista", tol=tol, max_iter=50_000).x))
    return optima[key]


def describe(solver, row):
    """Tell one solver's search in a line."""
    reached = ", ".join(f"{goal:g} in {cell['search_seconds']:.3g} s" for goal, cell in row["goals"].items())
    return f"  {solver:<20} {reached}  {row.get('left_out', '')}"
