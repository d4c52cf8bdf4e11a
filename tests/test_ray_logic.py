"""What shards and workers agree on, without Ray: tickets, leases, fencing, checkpoints, replay."""

import itertools
import json
import math
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dapsgd as ds
from dapsgd.runtimes.ray.checkpoints import Folder, ShardFiles
from dapsgd.runtimes.ray.kept import Kept
from dapsgd.runtimes.ray.order import ASLEEP, GRANTED, MISSING, OVER, REFUSED, UNKNOWN, WAIT, Order
from dapsgd.runtimes.ray.partitions import Columns, common_columns
from dapsgd.runtimes.ray.shard import Shard, ShardSetting
from dapsgd.runtimes.ray.shared import Desk, Neighbours
from dapsgd.runtimes.ray.slices import Push, Slice
from dapsgd.runtimes.ray.statistics import ClusterStatistics
from dapsgd.steps import StepRule
from dapsgd.updates import Pace

RULE = StepRule(0.5, 1.0, 0.0)
PACE = Pace(0.5, 0.5, math.inf)


def opened(workers, max_delay, until=10**9, parts=None, lease_seconds=5.0):
    order = Order(workers, max_delay, RULE, lease_seconds, parts)
    order.reopen(0)
    order.advance(until, drop=False)
    return order


class Life:
    """A worker that does what workers do, one call at a time."""

    def __init__(self, order, index):
        self.order, self.index = order, index
        self.incarnation, self.number, self.lease, self.sent = -1, 0, -1, False
        self.tickets = {}

    def go_on(self, now):
        """Make the next call; return whether anything came of it."""
        if self.incarnation < 0:
            welcome = self.order.join(self.index, now)
            self.incarnation = -1 if welcome is None else welcome.incarnation
            self.number, self.lease, self.sent = 0, -1, False
            return self.incarnation >= 0
        if self.lease < 0:
            answer = self.order.lease(self.index, self.incarnation, now)
            self.lease = answer.lease
            if answer.kind == REFUSED:
                self.incarnation = -1
            return answer.kind != WAIT
        if not self.sent:
            self.number, self.sent = self.number + 1, True
        answer = self.order.ask(self.index, self.incarnation, self.number, now)
        if answer.kind == GRANTED:
            key = (self.incarnation, self.number)
            assert self.tickets.setdefault(key, answer.ticket) == answer.ticket
            self.lease, self.sent = answer.lease, False
        elif answer.kind == REFUSED:
            self.incarnation = -1
        return answer.kind != WAIT


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    workers=st.integers(1, 4),
    max_delay=st.integers(0, 5),
    moves=st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["go", "go", "go", "again", "die", "wait"])), max_size=120),
)
def test_any_order_of_events(workers, max_delay, moves):
    order = opened(workers, max_delay, lease_seconds=3.0)
    lives, now = [Life(order, w) for w in range(workers)], 0.0
    for who, what in moves:
        life = lives[who % workers]
        if what == "go":
            life.go_on(now)
        elif what == "again" and (life.incarnation, life.number) in life.tickets and not life.sent:
            before = life.tickets[life.incarnation, life.number]
            assert order.ask(life.index, life.incarnation, life.number, now).ticket == before
        elif what == "die":
            life.incarnation, life.lease = -1, -1
        else:
            now += 1.0
            order.expire(now)
    tickets = sorted(t for life in lives for t in life.tickets.values())
    assert tickets == list(range(order.version))  # each once, none left out
    assert order.delays.sum() == order.version
    waiting = sum(member.asks is not None for member in order.members)
    assert order.pushed == order.version + order.refused + waiting


@pytest.mark.parametrize(("workers", "max_delay"), list(itertools.product([1, 2, 3], [0, 1, 2, 3])))
def test_somebody_can_always_go_on(workers, max_delay):
    """All orders in which workers may call, to some depth: never does everybody wait."""

    def explore(moves, depth):
        order = opened(workers, max_delay)
        lives = [Life(order, w) for w in range(workers)]
        for life in lives:
            life.go_on(0.0)
        for who in moves:
            lives[who].go_on(0.0)
        before = order.version
        for _ in range(3):
            for life in lives:
                life.go_on(0.0)
        assert order.version > before
        if depth:
            for who in range(workers):
                explore([*moves, who], depth - 1)

    explore([], 6 if workers < 3 else 5)


def test_a_late_update_is_never_applied():
    """Two leases that come due at once: the rule that looks at the oldest alone would let both wait, or one be late."""
    order = opened(3, 2)
    lives = [Life(order, w) for w in range(3)]
    for life in lives:
        life.go_on(0.0), life.go_on(0.0)
    for _ in range(50):
        lives[0].go_on(0.0)
    assert order.version == 1  # the others hold version 0, and two of them must still fit in
    assert lives[1].go_on(0.0)
    assert lives[2].go_on(0.0)
    assert order.delays.tolist() == [1, 1, 1]


def test_leases_expire_and_their_updates_are_refused():
    order = opened(2, 1, lease_seconds=5.0)
    slow, fast = Life(order, 0), Life(order, 1)
    for life in (slow, fast):
        life.go_on(0.0), life.go_on(0.0)
    assert fast.go_on(1.0)
    assert not fast.go_on(2.0)  # it waits for the slow one
    assert not fast.go_on(4.9)
    assert fast.go_on(5.1)  # and finds that it is not there any more
    assert slow.go_on(6.0)
    assert slow.incarnation == -1
    assert order.refused == 1
    order.renew(1, fast.incarnation, 9.0)
    order.expire(13.0)
    assert order.members[1].lease >= 0


def test_an_older_incarnation_is_refused_but_learns_what_it_had_achieved():
    order = opened(1, 0)
    first = order.join(0, 0.0).incarnation
    order.lease(0, first, 0.0)
    given = order.ask(0, first, 1, 0.0)
    assert [(push.ticket, alive) for push, alive in order.grants(1.0)] == [(0, True)]
    assert [alive for _, alive in order.grants(99.0)] == [False]
    second = order.join(0, 0.0)
    assert (second.incarnation, second.orphan.ticket, second.orphan.message) == (first + 1, given.ticket, (first, 1))
    assert [alive for _, alive in order.grants(1.0)] == [False]
    assert order.ask(0, first, 1, 0.0) == given  # its acknowledgement was lost
    assert order.ask(0, first, 2, 0.0).kind == REFUSED
    assert order.version == 1


def test_what_a_dead_worker_still_asks_for_at_the_end_is_refused():
    order = opened(2, 2, until=1)
    lives = [order.join(worker, 0.0).incarnation for worker in range(2)]
    for worker in range(2):
        order.lease(worker, lives[worker], 0.0)
    assert order.ask(0, lives[0], 1, 0.0).kind == GRANTED
    assert order.ask(1, lives[1], 1, 0.0).kind == WAIT
    order.close()
    assert (order.pushed, order.version, order.refused) == (2, 1, 1)


def test_no_ticket_beyond_the_stop_and_none_when_it_is_over():
    order = opened(2, 2, until=3)
    lives = [Life(order, w) for w in range(2)]
    for _ in range(10):
        for life in lives:
            life.go_on(0.0)
    assert order.version == 3
    assert order.is_settled
    order.advance(5, drop=True)
    for _ in range(10):
        for life in lives:
            life.go_on(0.0)
    assert order.version == 5
    order.is_over = True
    assert order.lease(0, lives[0].incarnation, 0.0).kind == OVER
    assert order.ask(0, lives[0].incarnation, 99, 0.0).kind == OVER
    assert order.join(0, 0.0) is None


def test_workers_update_in_proportion_to_their_rows():
    order = opened(2, 10, parts=(0.25, 0.75))
    lives = [Life(order, w) for w in range(2)]
    for k in range(4000):
        lives[k % 10 == 0].go_on(0.0)  # the one with the fewer rows is nine times as fast
    updates = [member.updates for member in order.members]
    assert abs(updates[0] - 0.25 * sum(updates)) <= 33
    assert sum(updates) > 300


def test_a_worker_that_fails_stops_the_others():
    order = opened(2, 2)
    life = Life(order, 0)
    life.go_on(0.0), life.go_on(0.0)
    order.fail(0, life.incarnation)
    assert order.bad == 0
    assert order.lease(0, life.incarnation, 0.0).kind == WAIT
    order.advance(10, drop=True)
    assert order.lease(0, life.incarnation, 0.0).kind == GRANTED


def test_a_restarted_head_gives_no_ticket_twice():
    order = opened(1, 1)
    life, saved = Life(order, 0), None
    for _ in range(12):
        life.go_on(0.0)
        if order.version == 7 and saved is None:
            saved = order.state(7)
    again = Order(1, 1, RULE, 5.0)
    again.restore(7, json.loads(json.dumps(saved)))
    assert again.ask(0, life.incarnation, life.number + 1, 0.0).kind == WAIT  # until it knows what others know
    for ticket in range(7, order.version):
        again.recount(Push(ticket, 0, PACE, None, read=ticket))
    assert again.reopen(order.version, [(0, 0), (1, order.version)])
    assert again.delays.tolist() == order.delays.tolist()
    assert again.members[0].updates == again.pushed == order.version
    np.testing.assert_array_equal(again._spent, order._spent)
    again.advance(100, drop=False)
    assert again.ask(0, life.incarnation, life.number + 1, 0.0).kind == REFUSED
    fresh = Life(again, 0)
    for _ in range(3):
        fresh.go_on(0.0)
    assert list(fresh.tickets.values()) == [order.version]


def test_steps_in_flight_stay_inside_the_budget():
    rule = ds.DelayAdaptive(ds.Constant(0.1), budget=0.25, share=1.0).rule(math.inf)
    order = Order(2, 3, rule, 5.0)
    order.reopen(0)
    order.advance(100, drop=False)
    lives = [Life(order, w) for w in range(2)]
    for life in lives:
        life.go_on(0.0), life.go_on(0.0)
    for _ in range(2):
        lives[0].go_on(0.0)
    late = order.ask(1, lives[1].incarnation, 1, 0.0)
    assert late.pace.allowed == pytest.approx(0.05)


# Slices.


@settings(max_examples=100, deadline=None, derandomize=True)
@given(count=st.integers(1, 8), data=st.data())
def test_a_slice_applies_each_ticket_once_in_any_order_of_arrival(count, data):
    arrivals = data.draw(st.lists(st.integers(0, count - 1), max_size=30))
    own = Slice(np.zeros(2), contributions=np.zeros((count, 2)))
    for ticket in arrivals:
        own.push(Push(ticket, ticket, PACE, np.full(2, 2.0**ticket)))
    came = set(arrivals)
    first = min(set(range(count + 1)) - came)  # what comes after it waits
    assert own.version == own.applied == first
    assert own.missing(count) == [ticket for ticket in range(count) if ticket not in came]
    assert own.top == max(came, default=-1) + 1
    np.testing.assert_array_equal(own.x, np.full(2, sum(2.0**t for t in range(first))))
    np.testing.assert_array_equal(own.contributions.sum(axis=0), own.x)
    assert own.repeated == len(arrivals) - len(came)
    own.go_back(0, 0)
    assert own.missing(count) == list(range(count))


def test_a_slice_scales_late_updates_and_keeps_the_mean():
    cuts = []
    own = Slice(np.zeros(1), mean=np.zeros(1), on_cut=lambda: cuts.append(own.version))
    own.push(Push(0, 0, Pace(0.5, 0.5, 0.25), np.array([4.0])))
    own.push(Push(2, 0, PACE, np.array([1.0])))  # it waits, and is not in the checkpoint of the one before
    own.push(Push(1, 0, PACE, np.array([4.0]), cut=True))
    assert own.x[0] == 7.0
    assert own.mean[0] == pytest.approx((0.0 + 2.0 + 6.0 + 7.0) / 4)
    assert cuts == [2]
    assert own.top == 3


def test_kept_updates_are_bounded_and_forgotten_once_durable():
    kept = Kept(room=10 * 8)
    for ticket in range(6):
        kept.add(Push(ticket, 0, PACE, np.zeros(2)))
    assert [push.ticket for push in kept.since(3)] == [3, 4, 5]
    assert kept.is_full
    kept.settle(5)
    assert len(kept) == 1
    assert not kept.is_full
    for ticket, epoch in ((6, 0), (7, 0), (7, 2)):
        kept.add(Push(ticket, 0, PACE, np.zeros(2), epoch=epoch))
    kept.drop([(0, 0), (1, 7), (2, 7)])  # the second 7 is another one
    assert [(push.ticket, push.epoch) for push in kept.since(0)] == [(5, 0), (6, 0), (7, 2)]
    kept.drop([(0, 0), (1, 7), (2, 7), (3, 6)])
    assert [push.ticket for push in kept.since(0)] == [5]


# Shared memory.


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="there is no memory without a name here")
def test_a_desk_is_found_by_its_place_and_no_other():
    desk, shard = Desk((6,), "float64"), Neighbours()
    desk.x[:] = np.arange(6)
    place = desk.place
    assert shard.attach(0, place, 2, 5)
    desk.message[:] = 10.0 + np.arange(6)
    assert shard.message(place.key).tolist() == [12.0, 13.0, 14.0]
    assert shard.deliver(place.key, np.array([7.0, 8.0, 9.0]))
    assert desk.x.tolist() == [0.0, 1.0, 7.0, 8.0, 9.0, 5.0]
    other = Desk((6,), "float64")
    assert shard.attach(1, other.place, 2, 5)
    assert shard.message(place.key) is not None
    assert shard.attach(0, Desk((6,), "float64").place, 2, 5)  # the next process of this worker
    assert shard.message(place.key) is None
    assert not shard.deliver(place.key, np.zeros(3))
    assert desk.x[2] == 7.0
    for wrong in ({"key": place.key + 1}, {"machine": "another"}, {"pid": 2**22 + 1}, {"file": 9999}):
        assert not shard.attach(2, place._replace(**wrong), 2, 5)


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="there is no memory without a name here")
def test_the_key_of_a_desk_stands_for_an_update(tmp_path):
    shard = Shard(setting(tmp_path, aggregated=False, average=False, checkpoint_every=1e9))
    opened_shard(shard)
    incarnation = shard.join(0).incarnation
    desk = Desk((3,), "float64")
    key = desk.place.key
    assert shard.lease(0, incarnation, key).x is not None  # it does not know the desk yet: the slice is in the answer
    assert shard.exchange(0, incarnation, 1, key, None, False, 0).answer.kind == UNKNOWN
    assert shard.stage(0, 0, incarnation, 1, key).answer.kind == UNKNOWN
    assert shard.state()["tickets"] == shard.state()["pushed"] == 0
    assert shard.attach(0, desk.place, 0, 3)
    desk.message[:] = 1.0, 2.0, 4.0
    for _ in range(2):  # the answer to the first was lost
        reply = shard.exchange(0, incarnation, 1, key, None, False, 0)
        assert (reply.answer.kind, reply.is_here, reply.x) == (GRANTED, True, None)
        assert desk.x.tolist() == [1.0, 2.0, 4.0]
    told = Push(2, 0, PACE, None, message=(incarnation, 3))
    assert shard.push(told, True, key).answer.kind == MISSING
    assert shard.stage(0, 0, incarnation, 3, key).answer is None
    assert not shard.push(told, True, key).is_here  # ahead of its turn
    desk.message[:] = 100.0  # what waits is not touched by the next message
    assert shard.push(Push(1, 0, PACE, np.ones(3)), True).x.tolist() == [3.0, 5.0, 9.0]
    assert shard.read(3, 0, key).is_here
    assert desk.x.tolist() == [3.0, 5.0, 9.0]


def test_what_is_staged_waits_for_its_ticket_and_outlives_its_worker(tmp_path):
    shard = Shard(setting(tmp_path, index=1, aggregated=False, average=False))
    message, told = (2, 1), Push(0, 0, PACE, None, message=(2, 1))
    for call in (lambda: shard.stage(0, 0, *message, np.ones(3)), lambda: shard.push(told, False), lambda: shard.read(0, 0)):
        assert call().answer.kind == ASLEEP  # until the driver has said which epoch it is
    shard.wake(0)
    assert shard.push(told, False).answer.kind == MISSING
    desk = Desk((3,), "float64")
    if desk.place is not None:
        shard.attach(0, desk.place, 0, 3)
        desk.message[:] = 1.0
    shard.stage(0, 0, *message, desk.place.key if desk.place is not None else np.ones(3))
    other = Desk((3,), "float64")
    if other.place is not None:
        shard.attach(0, other.place, 0, 3)  # the next process of the worker
    assert shard.push(told._replace(message=(2, 2)), False).answer.kind == MISSING
    assert shard.push(told, True).x.tolist() == [1.0, 1.0, 1.0]
    assert shard.push(told, True).x.tolist() == [1.0, 1.0, 1.0]
    assert shard.state()["repeated"] == 1
    shard.wake(1)
    for call in (lambda: shard.stage(0, 0, *message, np.ones(3)), lambda: shard.push(told, False), lambda: shard.read(0, 0)):
        assert call().answer.kind == REFUSED  # of an epoch that is over


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="there is no memory without a name here")
def test_what_is_collected_lies_on_the_desk(tmp_path):
    shard = begun(tmp_path)
    _, x, mean = shard.collect()
    assert x.tolist() == mean.tolist() == [0.0, 1.0, 2.0]
    desk = Desk((5,), "float64")
    assert shard.collect(desk.place, 1, 4)[1:] == (None, None)
    assert desk.x.tolist() == desk.message.tolist() == [0.0, 0.0, 1.0, 2.0, 0.0]
    assert shard.collect(desk.place._replace(machine="another"), 1, 4)[1] is not None
    assert shard.attach(-1, desk.place, 1, 4)
    assert not shard.contribution(0, 1, 0, desk.place.key).is_here  # not before its last update is in it
    assert shard.contribution(0, 0, 0, desk.place.key)[3:] == (None, True)
    assert desk.x.tolist() == [0.0, 0.0, 0.5, 1.0, 0.0]


# Checkpoints.


def setting(folder, **changed):
    options = {
        "index": 0,
        "shape": (3,),
        "dtype": "float64",
        "workers": 2,
        "max_delay": 2,
        "rule": RULE,
        "parts": (0.5, 0.5),
        "balanced": False,
        "aggregated": True,
        "average": True,
        "regularizer": None,
        "penalised": 3,
        "folder": str(folder),
        "run": "a1",
        "checkpoint_every": 1e-9,
        "lease_seconds": 5.0,
        "log_rows": False,
    }
    return ShardSetting(**options | changed)


def begun(folder, **changed):
    shard = Shard(setting(folder, **changed))
    shard.wake(0, np.arange(3.0))
    return shard


def opened_shard(shard):
    shard.wake(0)
    assert shard.reopen(0, [(0, 0)])
    shard.advance(100, False, RULE)
    return shard


def pushed_to(shard, count, number=0):
    """Be a worker with so many updates; return what it kept."""
    incarnation, durable = shard.join(0).incarnation, 0
    assert shard.lease(0, incarnation).answer.kind == GRANTED
    kept = Kept(1 << 20)
    for k in range(count):
        delta, message = np.full(3, 1.0 + number + k), (incarnation, k + 1)
        reply = shard.exchange(0, *message, delta, None, False, durable)
        kept.add(Push(reply.answer.ticket, 0, reply.answer.pace, delta, read=reply.answer.read))
        again = shard.exchange(0, *message, delta, None, False, durable)  # its answer was lost
        durable = again.durable
        assert again.answer == reply.answer
        if shard._writer is not None:
            shard._writer.join()
    return kept


def test_a_shard_that_is_restarted_gets_back_what_it_lost(tmp_path):
    shard = opened_shard(begun(tmp_path))
    kept = pushed_to(shard, 5)
    before = shard.collect()
    newest = ShardFiles(str(tmp_path), 0, "a1").versions()
    assert len(newest) == 2
    (tmp_path / f"shard-0-a1-{newest[-1]:012d}.npz").write_bytes(b"damaged")
    again = begun(tmp_path)
    assert again.state()["version"] == newest[0] < 5
    assert again.join(0) is None  # it does not know yet what others know
    assert again.missing(5) == list(range(newest[0], 5))
    for push in kept.since(again.version()):
        again.push(push, False)
        again.push(push, False)
    assert again.missing(5) == []
    assert again.reopen(5, [(0, 0)])
    np.testing.assert_array_equal(again.collect()[1], before[1])
    np.testing.assert_allclose(again.collect()[2], before[2])
    np.testing.assert_array_equal(before[1], np.arange(3.0) + 15.0)
    np.testing.assert_array_equal(again.contribution(0, 5, 0).x, 0.5 * np.arange(3.0) + 15.0)
    state = again.state()
    assert (state["pushed"], state["applied"], state["refused"]) == (5, 5, 0)
    assert state["delays"].sum() == 5


def test_a_shard_goes_back_to_what_it_saved(tmp_path):
    shard = opened_shard(begun(tmp_path, log_rows=True))
    kept = pushed_to(shard, 5)
    incarnation = shard.state()["updates"] and shard._order.members[0].incarnation
    newest = shard.saved()[-1]
    shard.shut()
    assert shard.join(0) is None
    shard.go_back(newest)
    assert shard.push(next(kept.since(0)), False).answer.kind == ASLEEP
    shard.wake(1)
    assert shard.push(next(kept.since(0)), False).answer.kind == REFUSED
    assert not shard.reopen(newest, [(0, 0)])
    assert shard.reopen(newest, [(0, 0), (1, newest)])
    shard.advance(100, False, RULE)
    assert shard.exchange(0, incarnation, 6, np.ones(3), None, False, 0).answer.kind == REFUSED
    state = shard.state()
    assert (state["version"], state["applied"], state["pushed"] - state["refused"]) == (newest, newest, newest)
    assert state["refused"] == 1
    welcome = shard.join(0)
    assert (welcome.epoch, welcome.opened[-1], welcome.orphan) == (1, (1, newest), None)
    assert welcome.incarnation > 1 << 20
    expected = np.arange(3.0) + sum(1.0 + k for k in range(newest))
    np.testing.assert_array_equal(shard.collect()[1], expected)
    shard.go_back(0)
    shard.wake(2, np.arange(3.0))
    assert shard.reopen(0, [(0, 0), (1, newest), (2, 0)])
    np.testing.assert_array_equal(shard.collect()[1], np.arange(3.0))
    np.testing.assert_array_equal(shard.contribution(1, 0, 2).x, 0.5 * np.arange(3.0))
    assert shard.saved() == []
    assert shard.state()["delays"].sum() == shard.state()["applied"] == 0
    assert shard.state()["pushed"] == shard.state()["refused"] == 1


def test_a_shard_reports_that_it_cannot_write(tmp_path):
    folder = tmp_path / "file"
    folder.write_text("not a folder")
    shard = opened_shard(begun(folder))
    pushed_to(shard, 2)
    assert "Error" in shard.state()["error"]


def test_a_folder_goes_on_from_what_all_shards_have(tmp_path):
    facts = {"rows": 3}
    folder = Folder(str(tmp_path / "run"), 2)
    assert folder.prepare(facts) == 0
    for shard, versions in ((0, (4, 9)), (1, (4, 7))):
        for version in versions:
            ShardFiles(str(tmp_path / "run"), shard, folder.run).save((version, {"x": np.ones(2)}, {}))
    again = Folder(str(tmp_path / "run"), 2)
    assert again.prepare(facts) == 4
    ShardFiles(str(tmp_path / "run"), 0, folder.run).save((9, {"x": np.ones(2)}, {}))  # it was not quite dead
    assert ShardFiles(str(tmp_path / "run"), 0, again.run).versions() == [4]
    ShardFiles(str(tmp_path / "run"), 0, again.run).save((12, {"x": np.ones(2)}, {}))
    assert Folder(str(tmp_path / "run"), 2).prepare(facts) == 4  # those of two runs are not put together
    with pytest.raises(ds.CheckpointError, match="another run"):
        folder.prepare({"rows": 4})
    folder.remove()
    assert not (tmp_path / "run").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="cannot be written"):
        Folder(str(tmp_path / "file" / "run"), 1).prepare(facts)


# What users hand in.


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"shards": 0}, "shards must be at least 1"),
        ({"workers": 1.5}, "workers must be an integer"),
        ({"address": "ray://host:1"}, "address must be"),
        ({"address": ""}, "address must be"),
        ({"checkpoint_every": 0}, "checkpoint_every must be"),
        ({"checkpoint_dir": 3}, "checkpoint_dir must be"),
        ({"blocks": 0}, "blocks must be"),
    ],
)
def test_bad_settings(options, said):
    with pytest.raises((ValueError, TypeError), match=said):
        ds.Ray(**options)


def test_settings_are_shown():
    assert repr(ds.Ray()) == "Ray()"
    assert repr(ds.Ray("auto", checkpoint_every=2)) == "Ray(address='auto', checkpoint_every=2.0)"


def test_columns_that_do_not_fit_together():
    dense = Columns(3, ("a", "b", "c"), None, False, "float64")
    sparse = Columns(3, None, False, True, "float64")
    assert common_columns([("1", dense), ("2", dense._replace(names=("b", "a", "c"), dtype="float32"))]).dtype == "float64"
    assert common_columns([("1", sparse), ("2", sparse._replace(width=7))]).width == 7
    for other, said in [
        (dense._replace(names=("a", "b", "d")), "differ in 'c'"),
        (dense._replace(names=None, width=4), "2 has 4"),
        (sparse, "both be sparse"),
    ]:
        with pytest.raises(ValueError, match=said):
            common_columns([("1", dense), ("2", other)])
    with pytest.raises(ValueError, match="zero_based"):
        common_columns([("1", sparse), ("2", sparse._replace(zero_based=True))])


def test_partitions_are_named_and_spread(tmp_path):
    for name, size in (("a", 10), ("b", 1000), ("c", 20), ("d", 990)):
        (tmp_path / f"{name}.npy").write_bytes(bytes(size))
    partitions = ds.Partitions(str(tmp_path / "*.npy"), target=-1)
    spread = partitions.spread(2)
    assert sorted(itertools.chain(*spread)) == partitions.files
    assert all(len(own) == 2 for own in spread)
    for bad, said in [([], "empty"), (["a", "a"], "twice"), (3, "must be a name"), (str(tmp_path / "z*"), "no file")]:
        with pytest.raises((ValueError, TypeError, FileNotFoundError), match=said):
            ds.Partitions(bad)
    with pytest.raises(TypeError, match="no option 'targets'"):
        ds.Partitions("a", targets="y")
    problem = ds.Problem(partitions, regularizer=ds.L1(0.1))
    assert "4 files" in repr(problem)
    with pytest.raises(ValueError, match=r"runtime=dapsgd\.Ray"):
        ds.solve(problem)
    with pytest.raises(ValueError, match="must not be given with Partitions"):
        ds.Problem(partitions, [1.0])
    with pytest.raises(TypeError, match="y must be given"):
        ds.Problem(np.ones((2, 2)))


def test_statistics_are_put_together():
    state = {"pushed": 7, "refused": 1, "applied": 5, "repeated": 2, "updates": [2, 4], "version": 6}
    state |= {"bytes": 100, "checkpoints": 3}
    seen = ClusterStatistics.collect([state, state | {"applied": 6}], 0, 2.0, 1, 2, 0, 3)
    assert (seen.pushed, seen.applied, seen.fenced, seen.undone) == (7, 5, 1, 3)
    assert seen.updates_per_second == 3.0
    assert "shares 33%-67%, 1 restarts, 2 moves" in seen.brief


def test_rows_that_are_elsewhere_have_no_bytes_here():
    from dapsgd.runtimes._blas import calm_blas
    from dapsgd.runtimes.ray.partitions import RemoteRows

    problem = ds.Problem(np.ones((100, 4)), np.ones(100))
    rows = RemoteRows(None, np.array([0, 50, 100]), 4, "float64", False)
    far = problem.with_rows(rows, problem._targets, problem._weights, problem.shape)
    assert far.bytes == 0
    with calm_blas(far):
        pass
