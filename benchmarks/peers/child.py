"""One solver in a process of its own: reads commands, one JSON a line, and answers each with one line.

    python child.py MODULE VARIANT

{"open": folder}    import the package, read the problem, prepare, solve once: answers what that took
{"budget": value}   solve from zero: answers seconds, and the objective, which is evaluated off the clock
"""

import json
import os
import sys
import time
import warnings
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

REST = 0.1  # seconds
_WARM = 2  # the place of the budget to warm up with


class Server:
    """Answers commands."""

    def __init__(self, module, variant):
        self.module, self.variant = module, variant

    def open(self, folder):
        """Prepare; warm up, twice, so that compilation shows as the difference.

        Not with the loosest budget: zero may be good enough for that, and nothing else compiled.
        """
        import problems

        problem = problems.read(Path(folder))
        began = time.perf_counter()
        solver = import_module(f"solvers.{self.module}")
        imported = time.perf_counter() - began
        if reason := solver.refuses(problem.spec, self.variant):
            return {"refused": reason}
        self.objective, self.run = problem.objective, solver.prepare(problem, self.variant)
        first, second = (self.solve(solver.BUDGETS[_WARM])["seconds"] for _ in range(2))
        about = {"package": solver.PACKAGE, "version": version(solver.PACKAGE), "python": sys.version.split()[0]}
        return about | {"import_seconds": imported, "compile_seconds": max(0.0, first - second), "budgets": solver.BUDGETS}

    def solve(self, budget):
        """Solve once, on a machine at rest: after a call of BLAS its threads stay awake for some hundredths of a second."""
        time.sleep(REST)
        began = time.perf_counter()
        w = self.run(budget)
        return {"seconds": time.perf_counter() - began, "objective": float(self.objective(w))}

    def answer(self, command):
        """Do what a command says; an error is an answer too."""
        try:
            return self.open(command["open"]) if "open" in command else self.solve(command["budget"])
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"[:300]}


def main():
    """Answer until the input ends. What a package prints goes to the standard error, not between the answers."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    server = Server(*sys.argv[1:3])
    for line in sys.stdin:
        answers.write(json.dumps(server.answer(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
