"""Kill the processes of a cluster at any call that they make, in thousands of schedules, without a cluster.

    python soak/ray_schedules.py [--runs 1000] [--first 0] [--show SEED]

Shards, workers' lines to them and the driver are the real ones; Ray, the clock and the disk are made up. Every process is a
thread, of which one runs at a time. It stops at every call, and a scheduler whose choices follow from a seed says who goes on,
who is killed, who stands still for longer than its lease, which replies and messages are lost, and how long a checkpoint takes.
Every update adds a number of its own to all coordinates. So it shows if one is applied twice, not everywhere, in another order
by another shard, or with a worker that remembers something else than it has put in. Exits with 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import copy
import random
import sys
import threading
import traceback
from functools import partial
from types import SimpleNamespace
from typing import NamedTuple
from unittest import mock

import numpy as np

import dapsgd.runtimes.ray.drive as drive_module
import dapsgd.runtimes.ray.link as link_module
import dapsgd.runtimes.ray.masters as masters_module
import dapsgd.runtimes.ray.shard as shard_module
from dapsgd.runtimes._plan import Marks
from dapsgd.runtimes.ray.shard import Shard
from dapsgd.runtimes.ray.slices import Slice
from dapsgd.runtimes.ray.worker import Worker
from dapsgd.steps import StepRule

RULE = StepRule(0.5, 1.0, 0.0)
LEASE = 1.0  # seconds, of the clock that is made up, as all others
TICK = 0.0007  # between two choices of the scheduler
STEPS = 60_000  # a run that takes more of them stands still
FAULTS = ("head", "shard", "shards", "worker", "both", "stall")


class Setup(NamedTuple):
    """What is run, and what happens to it."""

    shards: int
    workers: int
    max_delay: int
    algorithm: str
    x0: float
    checkpoint_every: float
    replay_bytes: int
    faults: int
    rate: float  # of faults, at every step
    kinds: tuple[str, ...] = FAULTS
    length: int = 45

    @classmethod
    def draw(cls, chance):
        shards = chance.choice([1, 2, 2, 3])
        return cls(
            shards=shards,
            workers=chance.choice([1, 2, 3]),
            max_delay=chance.choice([0, 1, 2, 4]),
            algorithm=chance.choice(["dap-sgd", "dave-rpg"]),
            x0=chance.choice([0.0, 7.0]),
            checkpoint_every=chance.choice([0.05, 0.2, 1.0, 50.0]),
            replay_bytes=chance.choice([1 << 20, 1 << 20, 16 * 8 * 2 * shards, 16]),
            faults=chance.choice([1, 2, 3, 5, 8]),
            rate=chance.choice([0.002, 0.005]),
        )


class Killed(BaseException):
    """Ends a thread of a process that was killed."""


class ActorDiedError(Exception):
    """What Ray says of an actor that died."""


class TaskFailedError(Exception):
    """What Ray says of a call that raised."""


class Process:
    def __init__(self, name):
        self.name, self.is_dead, self.stands_until = name, False, 0.0

    def __deepcopy__(self, memo):
        return self


class Strand:
    """A thread of a process; it runs when the scheduler says so, until it pauses."""

    def __init__(self, world, process, act):
        self._world, self._act, self.process = world, act, process
        self.is_done, self.at, self.waits_for = False, 0.0, None
        self.go = threading.Semaphore(0)
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        self.go.acquire()
        try:
            if not self.process.is_dead:
                self._act()
        except Killed:
            pass
        except BaseException:
            self._world.wrong.append(f"{self.process.name} ended with {traceback.format_exc(limit=-3)}")
        self.is_done = True
        self._world.back.release()

    @property
    def is_ready(self):
        if self.process.is_dead:  # it has to end
            return True
        now = self._world.now
        return now >= max(self.process.stands_until, self.at) and (self.waits_for is None or self.waits_for())


class Reply:
    def __init__(self):
        self.kind, self.value, self.is_taken = "", None, False

    def fail(self, error):
        self.kind, self.value = "error", error


class Handle:
    """What a process has of an actor."""

    def __init__(self, actor):
        self._actor = actor

    def __getattr__(self, name):
        return SimpleNamespace(remote=lambda *arguments: self._actor.submit(name, arguments))


class World:
    """All processes, the clock, the disk, and what went wrong."""

    def __init__(self, seed, setup):
        self.setup, self.chance, self.now, self.steps = setup, random.Random(seed), 0.0, 0
        self.strands, self.shards, self.workers, self.processes = [], [], [], []
        self.disk, self.histories, self.writers = collections.defaultdict(dict), {}, []
        self.memories = {}  # what the worker of an update had put in, with it, by the update's number
        self.wrong, self.story, self.outcome = [], collections.deque(maxlen=4000), None
        self.faults, self.recovers, self.common = setup.faults, False, 0
        self.back, self.current = threading.Semaphore(0), None

    def tell(self, what):
        self.story.append(f"{self.now:8.3f} {what}")

    # What a thread calls.

    def pause(self, waits_for=None):
        strand = self.current
        strand.waits_for = waits_for
        self.back.release()
        strand.go.acquire()
        if strand.process.is_dead:
            raise Killed

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.current.at = self.now + seconds
        self.pause()

    # The scheduler.

    def start(self, process, act):
        self.strands.append(Strand(self, process, act))

    def run(self):
        while self.outcome is None and not self.wrong:
            self.steps += 1
            self.now += TICK
            if self.steps > STEPS:
                self.wrong.append("it stands still")
                break
            for actor in [*self.shards, *self.workers]:
                actor.tick()
            for due in [writer for writer in self.writers if writer.at <= self.now]:
                due.join()
            self._harm()
            actors = [actor for actor in self.shards if actor.is_ready]
            strands = [strand for strand in self.strands if strand.is_ready]
            if not actors and not strands:
                self.now += 0.01
                continue
            chosen = self.chance.choice(actors + strands)
            if isinstance(chosen, Strand):
                self._resume(chosen)
            else:
                chosen.answer()
        for process in self.processes:
            process.is_dead = True
        for strand in list(self.strands):
            self._resume(strand)

    def _resume(self, strand):
        self.current = strand
        strand.go.release()
        self.back.acquire()
        self.current = None
        if strand.is_done:
            self.strands.remove(strand)

    def _harm(self):
        rate = self.setup.rate * (6 if self.recovers else 1)
        if self.faults <= 0 or self.now < 0.05 or self.chance.random() > rate:
            return
        self.faults -= 1
        kind = self.chance.choice(self.setup.kinds)
        worker = self.chance.choice(self.workers) if self.workers else None
        doomed = {"head": self.shards[:1], "shards": self.shards}.get(kind, [self.chance.choice(self.shards)])
        if kind in ("worker", "both") and worker is not None:
            worker.kill()
        if kind in ("head", "shard", "shards", "both"):
            for shard in doomed:
                shard.kill()
        if kind == "stall" and worker is not None:
            worker.stall()

    def look_at_disk(self):
        """See that all shards still have a checkpoint in common, once they had one."""
        common = set.intersection(*(set(self.disk[k]) for k in range(len(self.shards)))) if self.shards else set()
        if not common and self.common and not self.recovers:
            self.wrong.append(f"no common checkpoint any more: {[sorted(own) for own in self.disk.values()]}")
        self.common = max(common, default=0)


class Files:
    """The checkpoints of a shard, on a disk that is made up."""

    def __init__(self, world, folder, shard, run):
        self._world, self._own = world, world.disk[shard]

    def save(self, state):
        self._own[state[0]] = copy.deepcopy(state)
        for old in sorted(self._own)[:-2]:
            del self._own[old]
        self._world.look_at_disk()

    def load(self):
        return self.read(max(self._own)) if self._own else None

    def read(self, version):
        return copy.deepcopy(self._own[version])

    def whole(self):
        return sorted(self._own)

    def remove_after(self, version):
        for newer in [own for own in self._own if own > version]:
            del self._own[newer]


class Writer:
    """The thread that writes a checkpoint: it takes a while, and dies with its shard."""

    def __init__(self, world, target, args, daemon):
        self._world, self._write, self._arguments, self._is_done = world, target, args, False

    def start(self):
        world = self._world
        self.shard, self.at = world.executing, world.now + world.chance.choice([0.0, 0.01, 0.05, 0.3, 1.5])
        world.writers.append(self)

    def join(self):
        if not self._is_done:
            self._is_done = True
            self._world.writers.remove(self)
            self._write(*self._arguments)


class WatchedShard(Shard):
    """A shard that remembers which updates it has applied, also in its checkpoints."""

    world = None

    def __init__(self, setting):
        self.history = []
        super().__init__(setting)
        self._slice.watch = self._watch

    def _watch(self, push):
        number = float(push.delta.flat[0])
        world, k = self.world, self._setting.index
        self.history.append(number)
        world.tell(f"shard {k} applied {number:.0f} of worker {push.worker} as {self._slice.version - 1}")
        if (push.delta != number).any():
            world.wrong.append(f"shard {k} applied a torn message: {push.delta}")
        if self._slice.contributions is not None:
            has = self._slice.contributions[push.worker]
            remembers = world.memories[number][2 * k : 2 * k + 2]
            if not np.allclose(has, remembers, rtol=1e-12):
                world.wrong.append(f"worker {push.worker} remembers {remembers}, but has put {has} into shard {k}")

    def _save(self):
        self.world.histories[self._setting.index, self._slice.version] = list(self.history)
        super()._save()

    def _restore(self, saved):
        super()._restore(saved)
        self.history = list(self.world.histories[self._setting.index, saved[0]]) if saved[0] else []
        if self._setting.index == 0 and self._order.delays.sum() != saved[0]:
            self.world.wrong.append(f"a checkpoint at {saved[0]} has counted {self._order.delays.sum()}")


class ShardActor:
    """A shard, its restarts, and the calls that wait for it."""

    def __init__(self, world, setting):
        self._world, self._setting, self._up_at = world, setting, 0.0
        self._calls = collections.defaultdict(collections.deque)  # by the process that makes them, whose order is kept
        self._recent = []  # replies that may still be lost
        self.shard = self._make()

    def _make(self):
        self._world.executing = self
        return WatchedShard(self._setting)

    def submit(self, name, arguments):
        reply, world = Reply(), self._world
        if self.shard is None and world.chance.random() < 0.3:
            reply.fail(ActorDiedError())
        else:
            self._calls[world.current.process].append((name, copy.deepcopy(arguments), reply))
        world.pause()
        return reply

    @property
    def is_ready(self):
        return self.shard is not None and any(self._calls.values())

    def tick(self):
        if self.shard is None and self._world.now >= self._up_at:
            self.shard = self._make()
            self._world.tell(f"shard {self._setting.index} is up at {self.shard.version()}")

    def answer(self):
        process = self._world.chance.choice([process for process, calls in self._calls.items() if calls])
        name, arguments, reply = self._calls[process].popleft()
        self._world.executing = self
        try:
            reply.value, reply.kind = copy.deepcopy(getattr(self.shard, name)(*arguments)), "value"
        except Exception:
            reply.fail(TaskFailedError())
            self._world.wrong.append(f"shard {self._setting.index}.{name} raised {traceback.format_exc(limit=-3)}")
        if name not in ("state", "renew", "must_wait", "version"):
            self._world.tell(f"{process.name} shard {self._setting.index}.{name}{arguments} -> {reply.value}"[:220])
        self._recent = [*[old for old in self._recent if not old.is_taken][-20:], reply]

    def renew(self, process, worker, incarnation):
        if self.shard is not None:
            self._calls[process].append(("renew", (worker, incarnation), Reply()))

    def drop(self, process):
        """Lose some of what a process that was killed has sent last."""
        calls, chance = self._calls[process], self._world.chance
        if calls and chance.random() < 0.7:
            for _ in range(chance.randrange(len(calls) + 1)):
                calls.pop()

    def kill(self):
        if self.shard is None:
            return
        world = self._world
        world.tell(f"shard {self._setting.index} is killed")
        self.shard, self._up_at = None, world.now + world.chance.choice([0.0, 0.05, 0.3, 1.0, 3.0])
        world.writers = [writer for writer in world.writers if writer.shard is not self]
        for calls in self._calls.values():
            for _, _, reply in calls:
                reply.fail(ActorDiedError())
            calls.clear()
        for reply in self._recent:
            if not reply.is_taken and world.chance.random() < 0.6:
                reply.fail(ActorDiedError())
        self._recent = []


class WorkerActor:
    """A worker, its restarts, and what the driver asks of it."""

    def __init__(self, world, index):
        self._world, self._index, self._lives, self._up_at, self._renewed = world, index, 0, 0.0, 0.0
        self.has_ended, self.asked = False, []
        self._start()

    def _start(self):
        self._lives += 1
        self.process, self._worker = Process(f"worker {self._index}.{self._lives}"), None
        self._world.processes.append(self.process)
        self._world.start(self.process, self._run)

    def _run(self):
        world, setup = self._world, self._world.setup
        shape, worker = 2 * setup.shards, Worker(self._index)
        memory = np.zeros((1, shape))

        def make(rows, eta, x, message):
            if world.chance.random() < 0.3:
                world.sleep(world.chance.choice([0.001, 0.01, 0.05]))
            number = float(1000 * (len(world.memories) + 1) + self._index)
            message[...] = number
            memory[0] += number * setup.workers  # what it has put in, divided by its weight
            world.memories[number] = memory[0] / setup.workers
            world.pause()
            return True

        worker._task = SimpleNamespace(log_rows=False, lease_seconds=LEASE, rows=setup.workers, first_row=0)
        worker._problem, worker._rule, worker._make = SimpleNamespace(n=1), RULE, make
        worker._blocks = np.zeros((int(setup.algorithm == "dave-rpg"), 3), np.int64)
        worker._parts = SimpleNamespace(update=SimpleNamespace(memory=memory))
        worker._stream, worker._batches = lambda incarnation: None, lambda stream: iter(lambda: np.zeros(1), None)
        bounds = 2 * np.arange(setup.shards + 1)
        worker._link = link_module.Link(self._index, "run", bounds, setup.replay_bytes, 1e9, (shape,), "float64")
        self._worker = worker
        worker._run(worker._link)
        self.has_ended = True

    def tick(self):
        world = self._world
        if self.process.is_dead:
            if world.now >= self._up_at:
                self._start()
            return
        if world.now < self.process.stands_until:
            return
        if self._worker is not None and world.now >= self._renewed + LEASE / 4 and not self.has_ended:
            self._renewed = world.now
            world.shards[0].renew(self.process, self._index, self._worker._link.incarnation)
        for name, arguments, reply in self.asked:
            world.start(self.process, partial(self._answer, self._worker, name, arguments, reply))
        self.asked = []

    def _answer(self, worker, name, arguments, reply):
        reply.value = 0 if worker is None else getattr(worker, name)(*arguments)
        reply.kind = "value"

    def kill(self):
        if self.process.is_dead:
            return
        world = self._world
        world.tell(f"{self.process.name} is killed")
        self.process.is_dead, self._up_at = True, world.now + world.chance.choice([0.0, 0.1, 1.0, 4.0])
        for _, _, reply in self.asked:
            reply.fail(ActorDiedError())
        self.asked = []
        for shard in world.shards:
            shard.drop(self.process)

    def stall(self):
        seconds = self._world.chance.choice([0.3, 1.5, 3.0, 8.0]) * LEASE
        self._world.tell(f"{self.process.name} stands still for {seconds:g} s")
        self.process.stands_until = self._world.now + seconds


class Crew:
    """What the driver sees of the workers."""

    restarts = moves = 0

    def __init__(self, world, *_):
        self._world = world

    def prepare(self):
        pass

    def launch(self):
        self._world.workers += [WorkerActor(self._world, k) for k in range(self._world.setup.workers)]

    def tend(self):
        self._world.pause()

    def ask(self, method, *arguments):
        world, replies = self._world, []
        for worker in world.workers:
            replies.append(Reply())
            if worker.process.is_dead and world.chance.random() < 0.5:
                replies[-1].fail(ActorDiedError())
            else:
                worker.asked.append((method, copy.deepcopy(arguments), replies[-1]))
        end = world.now + LEASE
        world.pause(lambda: world.now >= end or all(reply.kind for reply in replies))
        return [reply.value for reply in replies if reply.kind == "value"]

    def wait(self, seconds):
        end = self._world.now + seconds
        self._world.pause(lambda: self._world.now >= end or all(worker.has_ended for worker in self._world.workers))


class Ray:
    """As much of Ray as is needed."""

    exceptions = SimpleNamespace(
        RayActorError=ActorDiedError, RayTaskError=TaskFailedError, RayError=(ActorDiedError, TaskFailedError)
    )

    def __init__(self, world):
        self._world = world

    def get_actor(self, name, namespace):
        return Handle(self._world.shards[int(name.partition("-")[2])])

    def get(self, reply):
        self._world.pause(lambda: bool(reply.kind))
        reply.is_taken = True
        if reply.kind == "error":
            raise reply.value
        return reply.value

    def remote(self, kind):
        def make(setting):
            self._world.shards.append(ShardActor(self._world, setting))
            return Handle(self._world.shards[-1])

        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=make))


def drive(world):
    """Be the driver."""
    setup = world.setup
    config = SimpleNamespace(
        shards=setup.shards,
        lease_seconds=LEASE,
        patience=1e9,
        checkpoint_dir=None,
        checkpoint_every=setup.checkpoint_every,
        check_coupled=lambda *_: None,
    )
    bounds = np.arange(setup.workers + 1)
    cluster = SimpleNamespace(
        config=config,
        ray=Ray(world),
        shards=[],
        bounds=bounds,
        namespace="run",
        folder=lambda: "folder",
        problem=SimpleNamespace(p=0),
    )
    plan = SimpleNamespace(
        algorithm=setup.algorithm,
        x0=np.full(2 * setup.shards, setup.x0),
        rule=RULE,
        workers=setup.workers,
        max_delay=setup.max_delay,
        max_iter=setup.length,
        rows=setup.workers,
        records=Marks(15, 15),
        record_schedule=False,
        average=False,
        refresh=None,
        next_stop=lambda done: setup.length,
        is_due=lambda done: False,
    )
    monitor = SimpleNamespace(start=lambda: False, observe=lambda *_, **__: False, progress=lambda *_: None)
    run = drive_module.Drive(cluster, plan, monitor)
    for name in ("_recover", "_go_back"):
        setattr(run._masters, name, _watched(world, getattr(run._masters, name)))
    world.outcome = run.run()


def _watched(world, mend):
    def watched(*arguments):
        world.recovers = True
        world.tell(f"driver: {mend.__name__}{arguments}")
        try:
            return mend(*arguments)
        finally:
            world.recovers, world.common = False, 0

    return watched


@contextlib.contextmanager
def _patched(world):
    """Put what is made up in the place of what is real."""
    apply = Slice._apply

    def watched(self, push):
        apply(self, push._replace(cut=False))
        self.watch(push)
        if push.cut:
            self._on_cut()

    with contextlib.ExitStack() as stack:
        for module in (shard_module, link_module, masters_module, drive_module):
            stack.enter_context(mock.patch.object(module, "time", world))
        threads = SimpleNamespace(Thread=partial(Writer, world))
        stack.enter_context(mock.patch.object(shard_module, "threading", threads))
        stack.enter_context(mock.patch.object(shard_module, "ShardFiles", partial(Files, world)))
        stack.enter_context(mock.patch.object(drive_module, "Crew", partial(Crew, world)))
        stack.enter_context(mock.patch.object(Slice, "_apply", watched))
        stack.enter_context(mock.patch.object(WatchedShard, "world", world))
        stack.enter_context(mock.patch.dict(sys.modules, ray=Ray(world)))
        yield


def simulate(seed, setup=None):
    """Run one schedule; return the world, in which ``wrong`` says what is wrong."""
    world = World(seed, Setup.draw(random.Random(7919 * seed + 1)) if setup is None else setup)
    driver = Process("driver")
    world.processes.append(driver)
    with _patched(world):
        world.start(driver, lambda: drive(world))
        world.run()
    if world.outcome is not None and not world.wrong:
        world.wrong += _check(world)
    return world


def _check(world):
    """Return what is wrong with a run that came to its end."""
    outcome, length, wrong = world.outcome, world.setup.length, []
    seen = outcome.statistics
    if seen.pushed != seen.applied + seen.fenced:
        wrong.append(f"pushed {seen.pushed} != applied {seen.applied} + fenced {seen.fenced}")
    if not length == outcome.iterations == seen.applied == outcome.delays.sum():
        wrong.append(f"{outcome.iterations} iterations, {seen.applied} applied, {outcome.delays.sum()} delays")
    if (outcome.x != outcome.x[0]).any():
        wrong.append(f"shards differ: {outcome.x}")
    histories = [actor.shard.history for actor in world.shards if actor.shard is not None]
    whole = [history for history in histories if len(history) == length]  # not of one that was killed since
    for history in whole:
        if history != whole[0]:
            wrong.append(f"shards applied {history} and {whole[0]}")
        if len(set(history)) < length:
            wrong.append(f"an update was applied twice: {history}")
        if outcome.x[0] != world.setup.x0 + sum(history):
            wrong.append(f"x is {outcome.x[0]}, but the updates add up to {world.setup.x0 + sum(history)}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--show", type=int, help="tell the story of one seed")
    given = parser.parse_args()
    bad = 0
    for seed in range(given.first, given.first + given.runs) if given.show is None else [given.show]:
        world = simulate(seed)
        bad += bool(world.wrong)
        if given.show is not None:
            print(*world.story, sep="\n")
        if world.wrong:
            print(f"seed {seed}: {world.setup}: {world.wrong[0]}", flush=True)
    print(f"{given.runs if given.show is None else 1} schedules, {bad} went wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
