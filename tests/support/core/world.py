"""Simulate an API server and kubelets around the core: store objects, update the state, carry out decisions."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import msgspec

from schedspec.scheduler.backlog.backlog import Backlog
from schedspec.scheduler.backlog.entries import Memory
from schedspec.scheduler.core import Core
from schedspec.scheduler.decide import decide
from schedspec.scheduler.framework.decisions import Decisions
from schedspec.scheduler.framework.plugin import OpenedPlugins
from schedspec.scheduler.framework.session import Session
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.model.state_kinds import STATE_KINDS
from schedspec.scheduler.plugins import PLUGINS
from schedspec.scheduler.policy.model import Policy
from schedspec.scheduler.reasons import Refusal
from tests.support.core.invariants import check_cycle, snapshot
from tests.support.core.notation import EPOCH, NAMESPACE, Notation, Object, merged


def key_of(item: Object) -> str:
    meta = item["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else meta["name"]


def without_bookkeeping(decisions: Decisions, passed_over: Iterable[str] = ()) -> Decisions:
    """Return the decisions without the memory, the counters, and the reasons of skipped jobs."""
    refusals = {key: Refusal() if key in passed_over else refusal for key, refusal in decisions.refusals.items()}
    refusals = dict(sorted(refusals.items()))
    return msgspec.structs.replace(decisions, refusals=refusals, wake_at=None, steps=0, cut=[], memory=Memory())


class World:
    """The objects of the API, and a cluster state that follows them event by event."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.now = EPOCH + 1000.0
        self.objects: dict[tuple[str, str], Object] = {}
        self.core = Core(Cluster())
        self.notation = Notation()
        self._incarnation = 0
        self.terminating: dict[str, tuple[str, int]] = {}
        """Pod → its uid, and the number of cycles until it is deleted."""

    @property
    def cluster(self) -> Cluster:
        return self.core.cluster

    # --------------------------------------------------------------------------------------------------------- objects

    def put(self, kind: str, item: Object) -> None:
        """Create or replace an object; the cluster sees it at once."""
        self.objects[kind, key_of(item)] = item
        found = STATE_KINDS[kind]
        found.set(self.cluster, msgspec.convert(item, found.struct))

    def remove(self, kind: str, key: str) -> None:
        """Delete an object; the cluster sees it at once."""
        if self.objects.pop((kind, key), None) is not None:
            STATE_KINDS[kind].delete(self.cluster, key)

    def load(self, table: dict[str, Any]) -> None:
        """Create the objects that a table lists."""
        for kind, item in self.notation.objects(table):
            self.put(kind, item)

    def fresh(self, order: Iterable[tuple[str, str]] | None = None) -> Cluster:
        """Return a new state that is built from the same objects, in any order."""
        cluster = Cluster()
        for kind, key in self.objects if order is None else order:
            found = STATE_KINDS[kind]
            found.set(cluster, msgspec.convert(self.objects[kind, key], found.struct))
        return cluster

    def restart(self) -> None:
        """Restart the scheduler: its state is built from the API's objects only."""
        self.core = Core(self.fresh())

    def pods_of(self, job: str) -> list[str]:
        return sorted(
            key for kind, key in self.objects if kind == "Pod" and key.rsplit("/")[-1].rsplit("-", 1)[0] == job
        )

    # --------------------------------------------------------------------------------------------------------- cycles

    def cycle(self) -> Decisions:
        """Decide on the current state, and check the invariants of every cycle."""
        before, last = snapshot(self.cluster), self.core.last
        decisions = self.core.decide(self.policy, self.now)
        assert snapshot(self.cluster) == before, "deciding changed the state"
        self._check_what_changed(decisions, last.decisions.refusals if last is not None else {})
        rebuilt = self.fresh(sorted(self.objects, reverse=True))
        rebuilt.refused_binds |= self.cluster.refused_binds  # no object shows them
        known, new = self.core.backlog, Backlog.of(rebuilt)
        new.policy, new.lapses = known.policy, dict(known.lapses)
        again = decide(rebuilt, self.policy, self.now, backlog=new)
        passed_over = self._passed_over(decisions)
        assert without_bookkeeping(decisions, passed_over) == without_bookkeeping(again, passed_over), (
            "the state that was updated by events yields other decisions than a state that is built from all objects"
        )
        self.cluster.refused_binds.clear()
        self.core.backlog.apply(decisions.memory, decisions.pipelined)
        check_cycle(self.cluster, self.policy, decisions)
        return decisions

    def _check_what_changed(self, decisions: Decisions, before: dict[str, Refusal]) -> None:
        """Check the data by which a cycle avoids examining all waiting jobs."""
        backlog, undecided = self.core.backlog, self.cluster.sums().undecided
        assert backlog.unlisted & undecided == undecided - backlog.entries.keys()
        assert self.core.last is not None
        others = decisions.refusals.keys() - self.core.last.considered
        assert all(decisions.refusals[key] is before.get(key) for key in others), (
            "the reason of a job changed although the cycle did not consider the job"
        )

    def _passed_over(self, decisions: Decisions) -> set[str]:
        """Return the jobs whose reasons may be older than this cycle."""
        tried = {*decisions.memory.waiting, *decisions.memory.forgotten}
        return {key for key in self.core.backlog.entries if key not in tried}

    def scores(self, pod: str) -> dict[str, float]:
        """Return the score of each node for a pending pod now, by all plugins of the policy."""
        session = Session(self.fresh(), OpenedPlugins(self.policy, PLUGINS), self.now)
        found = session.placement.scores(session.cluster.tasks[f"{NAMESPACE}/{pod}"])
        return {node.name: float(score) for node, score in zip(session.nodes.rows, found, strict=True)}

    def carry_out(self, decisions: Decisions, victims: str = "leave") -> None:
        """Carry out decisions as the API server, kubelets and controllers do.

        `victims` is one of `leave` (they are deleted at once), `stay` (they terminate and never end), `return` (their
        controller recreates them at once), `return after N` (they terminate for N cycles, then they are recreated).
        """
        then, _, cycles = victims.partition(" after ")
        for pod, (uid, left) in list(self.terminating.items()):
            current = self.objects.get(("Pod", pod))
            if current is None or current["metadata"]["uid"] != uid:
                del self.terminating[pod]
            elif left > 1:
                self.terminating[pod] = (uid, left - 1)
            else:
                del self.terminating[pod]
                self.end(pod, again=True)
        for bind in decisions.binds:
            bound: dict[str, Any] = {"spec": {"nodeName": bind.node}, "status": {"phase": "Running"}}
            if bind.annotations:
                bound["metadata"] = {"annotations": bind.annotations}
            self.change("Pod", bind.task, bound)
        for evict in decisions.evictions:
            if then == "stay" or int(cycles or 0):
                self.change("Pod", evict.task, {"metadata": {"deletionTimestamp": "2026-09-21T00:00:00Z"}})
                if int(cycles or 0):
                    self.terminating[evict.task] = (evict.uid, int(cycles))
            else:
                self.end(evict.task, again=then == "return")
        for nominate in decisions.nominations:
            self.change("Pod", nominate.task, {"status": {"nominatedNodeName": nominate.node}})
        for job, phase in decisions.phases.items():
            self.change("PodGroup", job, {"status": {"phase": phase}})

    def end(self, pod: str, *, again: bool) -> None:
        """Remove a pod; with `again`, its controller creates another one of the same name."""
        old = self.objects["Pod", pod]
        self.remove("Pod", pod)
        if again:
            self._incarnation += 1
            new = copy.deepcopy(old)
            new["metadata"]["uid"] += f"-{self._incarnation}"
            new["metadata"].pop("deletionTimestamp", None)
            new["spec"].pop("nodeName", None)
            new["status"] = {"phase": "Pending"}
            self.put("Pod", new)

    def change(self, kind: str, key: str, over: Object) -> None:
        """Overlay an object with fields."""
        self.put(kind, merged(copy.deepcopy(self.objects[kind, key]), over))
