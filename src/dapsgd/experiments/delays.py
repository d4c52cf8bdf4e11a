"""Beyond the paper: how large a delay may be, and what delay-adaptive steps do about it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import DivergenceError
from ..plots import COLOURS, pyplot
from ..runtimes import Exponential, Fixed, Simulated, Straggler
from ..solve import solve
from ..steps import Constant, DelayAdaptive
from ._tasks import Claim, Numbers, Part, Settings, Task
from .figure1 import seconds_to
from .rates import small_problem

__all__ = ["DELAYS"]

Get = Callable[[str], Numbers]

TAUS = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
ITERATIONS = 20_000
BROKEN = 1e3  # times the distance at the start
RULES = {"fixed": "fixed step", "adaptive": "delay-adaptive step"}


def _rule(kind: str, eta: float) -> Any:
    return Constant(eta) if kind == "fixed" else DelayAdaptive(Constant(eta))


def _sweep(settings: Settings) -> Numbers:
    """Run a fixed and a delay-adaptive step under longer and longer delays."""
    problem, best = small_problem()
    eta = 0.02 / problem.lipschitz()
    numbers: Numbers = {"tau": list(TAUS), "eta": eta, "start": float(np.linalg.norm(best))}
    for kind in RULES:
        finals = []
        for tau in TAUS:
            runs = []
            for seed in range(settings.seeds):
                try:
                    result = solve(
                        problem,
                        "dap-sgd",
                        runtime=Simulated(work=1e-6, apply=1e-7, delays=Fixed(tau)),
                        workers=8,
                        max_delay=tau,
                        step=_rule(kind, eta),
                        max_iter=ITERATIONS,
                        tol=0.0,
                        seed=seed,
                        x_star=best,
                        record_every=ITERATIONS // 20,
                    )
                    runs.append(float(result.trace.distance[-5:].mean()))
                except DivergenceError:
                    runs.append(BROKEN * numbers["start"])
            finals.append(min(float(np.median(runs)), BROKEN * numbers["start"]))
        numbers[kind] = finals
    return numbers


def _straggler(settings: Settings) -> Numbers:
    """Run eight workers, one of which is a hundred times slower: a fixed step must be short enough for its delays."""
    problem, best = small_problem()
    long, longest = 0.02 / problem.lipschitz(), 0
    numbers: Numbers = {}
    for kind in ("adaptive", "fixed"):  # the first tells which delays the second has to expect
        eta = long if kind == "adaptive" else min(long, 0.5 / (problem.lipschitz() * (1 + longest)))
        result = solve(
            problem,
            "dap-sgd",
            runtime=Simulated(work=Straggler(Exponential(20e-6), 100.0), apply=0.5e-6),
            workers=8,
            max_delay=5000,
            batch_size=256,  # little noise, so that the step decides
            step=_rule(kind, eta),
            max_iter=ITERATIONS,
            tol=0.0,
            seed=0,
            x_star=best,
            record_every=ITERATIONS // 1000,
        )
        longest = int(np.flatnonzero(result.delays)[-1])
        numbers[kind] = {"seconds": result.trace.seconds, "distance": result.trace.distance, "eta": eta}
        numbers["longest"] = longest
    return numbers


def tasks(settings: Settings) -> list[Task]:
    """Return the two tasks."""
    return [
        Task("delays sweep", functools.partial(_sweep, settings), 3.0),
        Task("delays straggler", functools.partial(_straggler, settings), 1.0),
    ]


def breaking_point(numbers: Numbers, kind: str) -> int | None:
    """Return the smallest delay at which a run ends further away than it began, None if there is none."""
    bad = [tau for tau, final in zip(numbers["tau"], numbers[kind], strict=True) if not final < numbers["start"]]
    return min(bad) if bad else None


def claims(settings: Settings, get: Get) -> list[Claim]:
    """Report where delays break a fixed step, and check that adaptive steps survive."""
    numbers, late = get("delays sweep"), get("delays straggler")
    fixed, adaptive = breaking_point(numbers, "fixed"), breaking_point(numbers, "adaptive")
    times = {kind: 1e3 * seconds_to(late[kind], 0.5 * numbers["start"]) for kind in RULES}
    return [
        Claim(
            "delays, a fixed step",
            "the delay must be bounded, and the step short for it",
            f"with a step of 0.02/L it breaks at a delay of {fixed}" if fixed else f"no delay up to {TAUS[-1]} breaks it",
            None,
        ),
        Claim(
            "delays, a delay-adaptive step",
            "(not in the paper)",
            f"it breaks at a delay of {adaptive}" if adaptive else f"it survives every delay up to {TAUS[-1]}",
            adaptive is None,
        ),
        Claim(
            "one straggler among 8 workers",
            "(not in the paper)",
            f"delays up to {late['longest']}; half way to the optimum after {times['fixed']:.3g} ms with a fixed step that is "
            f"safe for them, {times['adaptive']:.3g} ms with the delay-adaptive one (one seed; the short step ends closer)",
            times["adaptive"] < times["fixed"],
        ),
    ]


def draw(settings: Settings, get: Get) -> dict[str, tuple[Any, str]]:
    """Draw the final distance against the delay, and the straggler's runs against time."""
    numbers, late = get("delays sweep"), get("delays straggler")
    figure = pyplot().figure(figsize=(10.5, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    for kind, colour, line, marker in (("fixed", "tap", "--", "s"), ("adaptive", "dap", "-", "o")):
        style = {"color": COLOURS[colour], "linestyle": line, "label": RULES[kind]}
        left.plot(numbers["tau"], numbers[kind], marker=marker, markersize=5, **style)
        right.plot(np.asarray(late[kind]["seconds"]) * 1e3, late[kind]["distance"], **style)
    left.axhline(numbers["start"], color="#999999", linewidth=0.8)
    left.annotate(
        "where it starts", (numbers["tau"][0], numbers["start"]), xytext=(2, 4), textcoords="offset points", fontsize=8
    )
    left.set_xscale("symlog", base=2, linthresh=1)
    left.set_xlim(0, TAUS[-1] * 1.1)
    left.set_xlabel("delay of every update")
    left.set_ylabel(r"$\|x - x^\star\|$ after 20,000 iterations")
    right.set_xlabel("simulated milliseconds")
    right.set_ylabel(r"$\|x - x^\star\|$")
    for ax in (left, right):
        ax.set_yscale("log")
        ax.grid(True, color="#dddddd", linewidth=0.6)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False)
    caption = (
        "Delays. Left: how far DAP-SGD gets if every update is late by as much, with a fixed step of 0.02/L and with one that "
        "is cut so that the steps in flight stay within 1/L; a run that diverges is drawn at 1,000 times the start. Right: "
        f"eight workers, one of them a hundred times slower (delays up to {late['longest']}), simulated; the fixed "
        "step is half of 1/L divided by the longest delay."
    )
    return {"delays": (figure, caption)}


DELAYS = Part("delays", "Delays", tasks, claims, draw)
