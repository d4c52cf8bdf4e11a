"""The engine's protocol over all interleavings of a few workers; and each invariant is seen to fail where it is broken."""

import pytest

from dapsgd.runtimes import _engine as engine

from .protocol import Rules, Violation, explore

ONE_BY_ONE = Rules(2, 1, tuple(range(1, 9)), threads=2, turn=1, stripes=1)  # every slice is one update
TWO = [Rules(2, tau, (2, 4), threads=min(2, tau + 1), pauses=1, failures=1) for tau in (0, 1, 2)]
THREE = [
    Rules(3, 0, (2, 4, 6, 8), threads=1, turn=2, stripes=1, pauses=2, failures=1),
    Rules(3, 1, (3,), threads=2, turn=1, stripes=1, pauses=1),
    Rules(3, 2, (3,), threads=3, stripes=2, records_full=9, pauses=1),
    Rules(3, 1, (2, 4), threads=2, turn=1, stripes=2, pauses=1),
    Rules(3, 2, (3,), threads=3, stripes=2, pauses=1, failures=1),
]


@pytest.mark.parametrize(
    "rules", [*TWO, *THREE, ONE_BY_ONE], ids=lambda r: f"{r.workers} workers, delay {r.max_delay}, threads {r.threads}"
)
def test_every_interleaving_keeps_the_invariants(rules, record_property):
    states = explore(rules)
    print(f"{states} states")
    record_property("states", states)
    assert states > 100


def oldest_only(ledger, version):
    """The rule that looks at the oldest other lease only: v + 1 - min(p) <= tau."""
    others = ledger.leases[: ledger.counters[engine.LEASES]].tolist()
    others.remove(version)
    return not others or ledger.counters[engine.ITERATION] + 1 - min(others) <= ledger.max_delay


def wakes_nobody_who_waits_to_apply(ledger):
    for worker in range(ledger.waiting.size):
        if ledger.waiting[worker] != engine.NOTHING:
            return
    engine.open_gates(ledger)


def wakes_nobody_at_the_end(ledger):
    if ledger.counters[engine.ITERATION] < ledger.counters[engine.LAST]:
        engine.open_gates(ledger)


def never(ledger, state):
    return False


def stops_when_its_turn_is_over(ledger, state):
    return engine.goes_on(ledger, state) and not engine.is_turn_over(ledger, state)


THREE_AT_ONCE = Rules(3, 2, (4,), threads=3, stripes=1, records_full=9)
BROKEN = {
    "the rule looks at the oldest lease only": (THREE_AT_ONCE._replace(may_apply=oldest_only), "deadlock"),
    "any update may be applied": (Rules(2, 1, (4,), threads=2, may_apply=lambda ledger, version: True), "a delay is longer"),
    "a wake-up is missing": (Rules(2, 1, (4,), threads=2, open_gates=wakes_nobody_who_waits_to_apply), "deadlock"),
    "the end of the run wakes nobody": (Rules(2, 1, (4,), threads=2, open_gates=wakes_nobody_at_the_end), "deadlock"),
    "a lease is given back twice": (Rules(2, 1, (3,), threads=2, drops=2), "a lease is given back that nobody holds"),
    "there are no locks": (Rules(2, 2, (3,), threads=2, stripes=1, locks=False), "lost or applied twice|not of the version"),
    "stripes are not coupled": (Rules(2, 2, (3,), threads=2, coupling=False), "different versions|not of the version"),
    "nobody's turn is ever over": (
        Rules(3, 2, (4,), threads=1, turn=1, records_full=9, is_turn_over=never),
        "turn is longer",
    ),
    "nobody makes way for a worker whose thread is late": (
        Rules(2, 2, (4,), threads=2, turn=1, records_full=9, is_turn_over=never),
        "a turn is longer",
    ),
    "whoever came for nothing goes to the end of the line": (
        Rules(2, 0, (2, 4, 6, 8), threads=1, stripes=1, oldest_first=False),
        "has waited longer|does not get its turn",
    ),
    "a thread that is late takes whoever has just worked": (
        ONE_BY_ONE._replace(oldest_first=False),
        "has waited longer",
    ),
    "a lease is kept when a turn is over": (
        Rules(3, 2, (4,), threads=1, turn=1, keeps_lease=True),
        "without a thread holds a lease",
    ),
    "a worker leaves the line before it has a lease": (
        Rules(2, 2, (4,), threads=2, lease_first=False),
        "nobody waits for a worker",
    ),
    "a lease is given back before its worker is in the line": (
        Rules(3, 2, (4,), threads=2, turn=1, records_full=9, goes_on=stops_when_its_turn_is_over),
        "nobody waits for a worker",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_protocol_is_found_out(case):
    rules, words = BROKEN[case]
    with pytest.raises(Violation, match=words):
        explore(rules)
