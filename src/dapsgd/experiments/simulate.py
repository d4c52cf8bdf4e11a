"""``dapsgd simulate``: what would more workers do? Throughput, speedup, delays and the master's load, TAP-SGD and DAP-SGD."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..plots import COLOURS, pyplot
from ..runtimes import Simulated, Straggler, Timing
from .cases import Case

__all__ = ["Scaling", "measure", "parse_workers", "picture", "simulate", "table"]

SATURATED = 0.95  # the share of its time that a master works when more workers do not help any more


class Scaling(NamedTuple):
    """One algorithm with more and more workers."""

    algorithm: str
    simulation: Simulated
    timings: list[Timing]
    saturation: int | None  # the smallest number of workers that keeps the master busy, None if none of them does

    @property
    def speedups(self) -> list[float]:
        """Updates per second, relative to those of one worker."""
        return [timing.updates_per_second / self.timings[0].updates_per_second for timing in self.timings]


def parse_workers(text: str) -> list[int]:
    """Read ``"1..64"`` (powers of two, and the ends), ``"3"`` or ``"1,2,12"``."""
    try:
        if ".." in text:
            first, last = (int(part) for part in text.split("..", 1))
            if first > last:
                raise ValueError
            doubled = [2**k for k in range(64) if first < 2**k < last]
            numbers = sorted({first, *doubled, last})
        else:
            numbers = sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise ValueError(f"workers must be like 1..64 (which is 1, 2, 4, ... 64), 8 or 1,2,12; got {text!r}") from None
    if numbers[0] < 1 or numbers[-1] > 4096:
        raise ValueError(f"workers must be between 1 and 4096; got {text!r}")
    return numbers


def measure(case: Case, algorithm: str, workers: int) -> Simulated:
    """Measure the costs of a case on this machine."""
    return Simulated.measured(case.problem, algorithm, workers=workers, step=case.step, max_iter=min(case.iterations, 20_000))


def simulate(
    algorithm: str,
    simulation: Simulated,
    workers: Sequence[int],
    *,
    max_delay: int | None = None,
    updates: int = 20_000,
    seed: int = 0,
) -> Scaling:
    """Simulate one worker, which is the measure of speedups, and so many."""
    straggler = isinstance(simulation.work, Straggler)
    alone = Simulated(simulation.work.base, simulation.apply) if straggler else simulation  # the measure is no straggler
    options = {"updates": updates, "seed": seed}
    timings = [alone.timing(1, **options)]
    timings += [simulation.timing(count, max_delay=max_delay, **options) for count in sorted({*workers} - {1})]
    busy = [timing.workers for timing in timings if timing.utilisation >= SATURATED]
    if not busy:
        return Scaling(algorithm, simulation, timings, None)
    low, high = max((timing.workers for timing in timings if timing.workers < busy[0]), default=0), busy[0]
    while high - low > 1:
        middle = (low + high) // 2
        saturated = simulation.timing(middle, max_delay=max_delay, **options).utilisation >= SATURATED
        low, high = (low, middle) if saturated else (middle, high)
    return Scaling(algorithm, simulation, timings, high)


def table(scalings: Sequence[Scaling]) -> str:
    """Return the numbers as text, and say where the master saturates."""
    lines = [
        f"{'algorithm':<10} {'workers':>7} {'updates/s':>12} {'speedup':>8} {'mean delay':>11} {'95% delay':>10} {'master':>7}"
    ]
    for scaling in scalings:
        for timing, speedup in zip(scaling.timings, scaling.speedups, strict=True):
            mean, late = delays_of(timing)
            lines.append(
                f"{scaling.algorithm:<10} {timing.workers:>7} {timing.updates_per_second:>12,.0f} {speedup:>8.2f} "
                f"{mean:>11.1f} {late:>10} {timing.utilisation:>7.0%}"
            )
    for scaling in scalings:
        model, most = scaling.simulation, scaling.timings[-1].workers
        costs = f"work {cost(model.work)}, apply {cost(model.apply)}"
        if model.handover:
            costs += f", handover {1e6 * model.handover:.2f} us"
        if (model.masters or 1) > 1:
            costs += f", the parameter split among {model.masters} masters"
        where = scaling.saturation
        verdict = f"the master is not saturated by {most} worker{'s' * (most != 1)}"
        if where:
            verdict = f"the master saturates at {where} worker{'s' * (where != 1)} (it works for {SATURATED:.0%} of the time)"
        lines.append(f"{scaling.algorithm.upper()} ({costs}): {verdict}")
    return "\n".join(lines)


def cost(model: Any) -> str:
    """Show a cost model."""
    if hasattr(model, "value"):
        return f"{1e6 * model.value:.2f} us"
    if isinstance(model, Straggler):
        return f"{cost(model.base)}, {model.factor:g} times that for one straggler"
    return f"{1e6 * model.mean:.2f} us on average, {type(model).__name__}" if hasattr(model, "mean") else repr(model)


def delays_of(timing: Timing) -> tuple[float, int]:
    """Return the mean delay and the one that 95% of the updates do not exceed."""
    share = np.cumsum(timing.delays) / timing.delays.sum()
    mean = float((np.arange(len(timing.delays)) * timing.delays).sum() / timing.delays.sum())
    return mean, int(np.searchsorted(share, 0.95))


def picture(scalings: Sequence[Scaling], title: str) -> Any:
    """Draw throughput, speedup, delays and the master's load."""
    figure = pyplot().figure(figsize=(10.0, 7.0), layout="constrained")
    (speed, gain), (late, load) = figure.subplots(2, 2)
    for scaling in scalings:
        short = scaling.algorithm.partition("-")[0]
        line, marker = ("--", "s") if short == "tap" else ("-", "o")
        style = {
            "color": COLOURS[short],
            "linestyle": line,
            "marker": marker,
            "markersize": 5,
            "label": scaling.algorithm.upper(),
        }
        counts = [timing.workers for timing in scaling.timings]
        speed.plot(counts, [timing.updates_per_second for timing in scaling.timings], **style)
        gain.plot(counts, scaling.speedups, **style)
        load.plot(counts, [timing.utilisation for timing in scaling.timings], **style)
        last = scaling.timings[-1]
        seen = np.flatnonzero(last.delays)
        delays = np.arange(seen[0], seen[-1] + 1)
        style.update(marker=None, label=f"{scaling.algorithm.upper()}, {last.workers} workers")
        style["marker"] = marker
        late.plot(delays, last.delays[delays] / last.delays.sum(), **style)
    top = max(timing.workers for scaling in scalings for timing in scaling.timings)
    gain.plot([1, top], [1, top], color="#999999", linewidth=0.8, label="ideal")
    ticks = [2**k for k in range(20) if 2**k <= top]
    for ax, label in ((speed, "updates per second"), (gain, "speedup"), (load, "share of time the master is busy")):
        ax.set_xscale("log", base=2)
        ax.set_xticks(ticks, [str(tick) for tick in ticks])
        ax.set_xlabel("workers (simulated)")
        ax.set_ylabel(label)
    speed.set_yscale("log")
    gain.set_yscale("log", base=2)
    gain.set_yticks(ticks, [str(tick) for tick in ticks])
    load.set_ylim(0.0, 1.05)
    late.set_xlabel("delay, in updates")
    late.set_ylabel("share of updates")
    late.xaxis.get_major_locator().set_params(integer=True)
    for ax in (speed, gain, late, load):
        ax.grid(True, color="#dddddd", linewidth=0.6)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, fontsize=9)
    figure.suptitle(f"Simulated: {title}", fontsize=12)
    return figure
