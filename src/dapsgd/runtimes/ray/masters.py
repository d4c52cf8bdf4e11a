"""The shards of a run, as its driver sees them: what they are told, and what becomes of those that die.

A shard that was restarted comes up as in its last checkpoint. What it lacks since then workers still have, and send again. If
nobody has one of these updates any more, because its worker died as well, all shards go back to the last version that each of
them has on disk: so every update is in all shards or in none.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from ...algorithms import ALGORITHMS
from ...errors import ClusterError
from ...gradients import MiniBatch
from ...steps import StepRule
from ...updates import Aggregated, Coupled
from .._plan import Plan
from .cluster import Cluster, cause_of
from .crew import Crew
from .link import actor_name
from .shard import Shard, ShardSetting
from .shared import Desk

__all__ = ["Masters"]

Array = np.ndarray[Any, Any]


class Masters:
    """The shards.

    Parameters
    ----------
    cluster : Cluster
    plan : Plan
    edges : array
        Shard s owns rows ``edges[s]:edges[s + 1]`` of the parameter.
    crew : Crew
        Who has what a shard that was restarted lacks.

    Attributes
    ----------
    states : list of dict
        How things stood when each was asked last.
    restarts : int
    undone : int
        Updates before which the run went back.
    """

    def __init__(self, cluster: Cluster, plan: Plan, edges: Array, crew: Crew) -> None:
        self._cluster, self._plan, self._edges, self._crew = cluster, plan, edges, crew
        self._config, self._ray, self._shards = cluster.config, cluster.ray, cluster.shards
        self._desk = Desk(plan.x0.shape, plan.x0.dtype)  # where shards put what is collected
        self._from_zero = not plan.x0.any()  # as shards do anyway
        self._target, self._rule = 0, plan.rule  # what the head was told last
        self._boots: list[str] = []
        self.states: list[dict[str, Any]] = []
        self.restarts = self.undone = 0
        self._epoch = 0  # begun anew whenever messages that may be under way must not arrive any more
        self._opened: list[tuple[int, int]] = []  # all epochs in which tickets were given, and the version at which each began
        self._stuck: dict[int, tuple[int, float]] = {}  # the version that a shard was last seen at, and since when

    def make(self, run: str) -> None:
        """Start all of them; ``run`` is the name of the run in its checkpoints."""
        plan, config, spec = self._plan, self._config, ALGORITHMS[self._plan.algorithm]
        parts = tuple(float(part) for part in np.diff(self._cluster.bounds) / plan.rows)
        bound = self._cluster.problem._bound if spec.update is Coupled else None
        kind = self._ray.remote(Shard)
        for index, (a, b) in enumerate(pairwise(self._edges)):
            setting = ShardSetting(
                index=index,
                shape=(int(b - a), *plan.x0.shape[1:]),
                dtype=plan.x0.dtype.str,
                workers=plan.workers,
                max_delay=plan.max_delay,
                rule=plan.rule,
                parts=parts,
                balanced=spec.estimator is MiniBatch,
                aggregated=spec.update is Aggregated,
                average=plan.average,
                regularizer=bound,
                penalised=int(max(0, min(self._cluster.problem.p, b) - a)),
                folder=self._cluster.folder(),
                run=run,
                checkpoint_every=config.checkpoint_every,
                lease_seconds=config.lease_seconds,
                log_rows=plan.record_schedule,
            )
            handle = kind.options(
                name=actor_name("shard", index),
                namespace=self._cluster.namespace,
                num_cpus=0,
                max_restarts=-1,
                max_task_retries=0,
                scheduling_strategy="SPREAD",
            ).remote(setting)
            self._cluster.shards.append(handle)
        states = [self._ask(handle, "state") for handle in self._shards]
        self._boots = [state["boot"] for state in states]
        for shard in range(config.shards):
            self._begin(shard)
        versions = {state["version"] for state in states}
        if len(versions) == 1:
            self._reopen(versions.pop())
        else:  # one of them could not read the checkpoint that all have
            self._go_back(0)
        self.look_at_all()

    @property
    def version(self) -> int:
        """The iteration that the head was seen at."""
        return int(self.states[0]["version"])

    def look(self) -> dict[str, Any]:
        """Ask the head how things stand."""
        self.states[0] = self._state_of(0)
        return self.states[0]

    def look_at_all(self) -> list[dict[str, Any]]:
        """Ask all of them how things stand."""
        self.states = [self._state_of(shard) for shard in range(len(self._shards))]
        return self.states

    def advance(self, target: int, drop: bool, rule: StepRule) -> None:
        """Let workers run until a stop; ``drop`` what they are at."""
        self._target, self._rule = target, rule
        self.ask_head("advance", target, drop, rule)

    def ask_head(self, method: str, *arguments: Any) -> Any:
        """Call the head until it answers."""
        return self._ask(self._shards[0], method, *arguments)

    def collect(self) -> tuple[Array, Array] | None:
        """Return the parameter and the mean of all iterates, if asked for, until they are collected again.

        None if a shard has died since it was looked at, and does not have what the others do.
        """
        desk, boots = self._desk, []
        for handle, (a, b) in zip(self._shards, pairwise(self._edges), strict=True):
            boot, own, mean = self._ask(handle, "collect", desk.place, int(a), int(b))
            boots.append(boot)
            if own is not None:
                desk.x[a:b] = own
            if mean is not None:
                desk.message[a:b] = mean
        if boots != self._boots:
            return None
        return desk.x, desk.message if self._plan.average else desk.message[:0]

    def put_back(self, x: Array) -> None:
        """Replace the parameter, also in checkpoints; nobody is at work."""
        while True:
            versions = {state["version"] for state in self.look_at_all()}
            if len(versions) == 1:
                version, boots = versions.pop(), list(self._boots)
                parts = zip(self._shards, pairwise(self._edges), strict=True)
                if all(self._ask(handle, "put_back", version, x[a:b]) for handle, (a, b) in parts):
                    self.look_at_all()
                    if boots == self._boots:
                        return
            time.sleep(0.1)  # one of them was restarted: once more, when it has what the others have

    def finish(self) -> None:
        """Let workers end."""
        self.ask_head("finish")
        self._crew.wait(self._config.lease_seconds)
        self.ask_head("close")
        state = self.ask_head("state")
        if state["boot"] == self._boots[0]:  # else it died just now, and has forgotten what it was
            self.states[0] = state

    def rest(self) -> None:
        """Wait until all have written what they are writing."""
        for handle in self._shards:
            self._ask(handle, "rest")

    def mend(self) -> None:
        """Look after shards that wait for updates which do not come, because their worker died on the way, or stands still."""
        if len(self._shards) == 1:
            return
        states = self.look_at_all()
        tickets, now = states[0]["tickets"], time.monotonic()
        for shard, state in enumerate(states):
            version, since = self._stuck.get(shard, (-1, now))
            if state["version"] != version or version >= tickets:
                self._stuck[shard] = (state["version"], now)
            elif now - since > self._config.lease_seconds:
                del self._stuck[shard]
                if not self._complete([shard], tickets, patient=False):
                    self._go_back(tickets)
                    return

    # Inside.

    def _state_of(self, shard: int) -> dict[str, Any]:
        state: dict[str, Any] = self._ask(self._shards[shard], "state")
        if state["error"]:
            raise OSError(
                f"Ray: checkpoint_dir {self._cluster.folder()} cannot be written by shard {shard} ({state['error']}); make "
                "room, or name another folder"
            )
        if state["boot"] != self._boots[shard]:
            self._boots[shard] = state["boot"]
            self.restarts += 1
            self._recover(shard)
            state = self._ask(self._shards[shard], "state")
        return state

    def _begin(self, shard: int) -> None:
        """Tell a shard that was restarted, or that went back, what it does not know."""
        start, stop = (int(edge) for edge in self._edges[shard : shard + 2])
        self._ask(self._shards[shard], "wake", self._epoch, None if self._from_zero else self._plan.x0[start:stop])

    def _recover(self, shard: int) -> None:
        """Give a shard that was restarted what it lost; if nobody has it any more, go back."""
        if shard == 0:  # who got a ticket that nobody else knows of must not come with it any more
            self._epoch += 1
            self.ask_head("shut")
            for other in range(1, len(self._shards)):
                self._begin(other)
        self._begin(shard)
        known = self._known()
        if not self._complete([shard] if shard else range(len(self._shards)), known):
            self._go_back(known)
        elif shard == 0:
            self._reopen(known)

    def _known(self) -> int:
        """Return one more than the largest ticket that anybody knows of."""
        tops = [self._ask(handle, "state")["top"] for handle in self._shards]
        return max([*tops, *self._crew.ask("known", self._opened)])

    def _complete(self, shards: Iterable[int], known: int, patient: bool = True) -> bool:
        """Have shards told again what they lack below a ticket; return False if nobody has some of it.

        If ``patient``, what a worker that is alive may just be sending need not have come.
        """
        grants = self.ask_head("grants")
        under_way = {push.ticket for push, alive in grants if alive and patient}
        for shard in shards:
            self._crew.ask("replay", shard, self._opened, self._epoch, known)
            for push, _ in grants:
                self._ask(self._shards[shard], "push", push, False)
            if set(self._ask(self._shards[shard], "missing", known)) - under_way:
                return False
        return True

    def _go_back(self, known: int) -> None:
        """Go back to the newest version that all shards have on disk: an update is missing that nobody has any more."""
        self._epoch += 1
        self.ask_head("shut")
        saved = [set(self._ask(handle, "saved")) for handle in self._shards]
        version = max(set.intersection(*saved), default=0)
        for shard, handle in enumerate(self._shards):
            self._ask(handle, "go_back", version)
            self._begin(shard)
        self._stuck.clear()
        self.undone += max(0, known - version)
        self._reopen(version)

    def _reopen(self, version: int) -> None:
        """Let workers join, and go on from a version that all shards are at. (A head that died again is recovered again.)."""
        self._opened.append((self._epoch, version))
        self.ask_head("reopen", version, self._opened)
        self.ask_head("advance", self._target, False, self._rule)

    def _ask(self, handle: Any, method: str, *arguments: Any) -> Any:
        """Call a shard until it answers."""
        since = time.monotonic()
        while True:
            try:
                return self._ray.get(getattr(handle, method).remote(*arguments))
            except self._ray.exceptions.RayActorError as error:
                if time.monotonic() - since > self._config.patience:
                    raise ClusterError(f"Ray: a shard did not come back in {self._config.patience:g} s: {error}") from None
                time.sleep(0.1)
            except self._ray.exceptions.RayTaskError as error:
                raise cause_of(error) from None
