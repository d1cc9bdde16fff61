"""Random teams for the schedulers whose foretold changes are made: queues, jobs, and changes of the queues.

Each team requests about half as much again as its cluster has, so that a change of its queues decides who runs.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

Object = dict[str, Any]
GPU = "nvidia.com/gpu"
SPACE = "team"
CARDS_OF_NODE = 8
QUEUES = ("q0", "q1", "q2", "q3")
_ASK = (*QUEUES, *QUEUES, "q0", "q0")
"""Queues of jobs, about as often as their shares are large: then all of them are full."""
REQUESTED = 1.5
"""Cards that all jobs request ÷ cards of the cluster."""
MOST_PODS = 100
_PRIORITIES = {"low": 1, "middle": 5, "high": 9}


@dataclass(frozen=True, slots=True)
class Change:
    """One change: objects that replace those of the cluster, or a policy."""

    kind: str
    objects: Sequence[Object] = ()
    policy: str = ""

    @property
    def files(self) -> dict[str, str]:
        """The files of the pull request: name → text."""
        found = {f"{obj['metadata']['name']}.json": json.dumps(obj) for obj in self.objects}
        return found | ({"policy.yaml": self.policy} if self.policy else {})


@dataclass(slots=True)
class Job:
    """A job of the team, with the amounts that bound how many there are."""

    body: Object
    pods: int
    cards: int


class Team(Protocol):
    """The work and queues of one cluster."""

    scheduler: ClassVar[str]
    kinds: ClassVar[Sequence[str]]
    """Kinds of changes."""
    policy: str

    @property
    def nodes(self) -> int:
        """Number of nodes."""

    def setup(self) -> Iterator[Object]:
        """Yield the objects that are there before any job."""

    def job(self, rng: random.Random, name: str, most: str) -> Job:
        """Return a new job; the queue `most` gets more jobs than its share."""

    def change(self, rng: random.Random, kind: str) -> Change:
        """Return a change of this kind."""

    def undone(self) -> Change:
        """Return the change back to the team's own queues and policy."""


def node(number: int) -> Object:
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: str(CARDS_OF_NODE)}
    labels = {"schedspec.dev/world": "true", "kubernetes.io/hostname": f"n{number:02}"}
    meta = {"name": f"n{number:02}", "annotations": {"kwok.x-k8s.io/node": "fake"}, "labels": labels}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": meta,
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def named(api: str, kind: str, name: str, space: str = "", **parts: Any) -> Object:
    meta = {"name": name, "namespace": space} if space else {"name": name}
    return {"apiVersion": api, "kind": kind, "metadata": meta, **parts}


def _pod_template(cards: int) -> Object:
    container = {
        "name": "work",
        "image": "work",
        "resources": {"requests": {GPU: str(cards)}, "limits": {GPU: str(cards)}},
    }
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 2, "schedulerName": "schedspec"}
    return {
        "metadata": {"annotations": {"schedspec.dev/stop-after": "1s"}},
        "spec": {**spec, "containers": [container]},
    }


def _parts(rng: random.Random, total: int, over: float) -> dict[str, int]:
    """Return a share of each queue; the shares add up to about `over` of the total."""
    weights = [0.45, *(rng.uniform(0.12, 0.25) for _ in QUEUES[1:])]
    return {name: max(round(total * over * part / sum(weights)), 2) for name, part in zip(QUEUES, weights, strict=True)}


@dataclass(slots=True)
class KueueTeam:
    """ClusterQueues of one cohort that borrow from each other, and Jobs of three priorities."""

    rng: random.Random
    scheduler: ClassVar[str] = "kueue"
    kinds: ClassVar[Sequence[str]] = (
        "quota moved to another queue", "reclaimWithinCohort Never → Any", "withinClusterQueue Never → LowerPriority",
        "quota moved to another queue", "nominalQuota lowered", "borrowWithinCohort allowed",
        "quota moved to another queue", "borrowingLimit removed", "borrowingLimit lowered",
    )  # fmt: skip
    policy: str = "{}"
    nodes: int = field(init=False)
    _queues: dict[str, Object] = field(init=False)

    def __post_init__(self) -> None:
        self.nodes = self.rng.randint(10, 14)
        shares = _parts(self.rng, self.nodes * CARDS_OF_NODE, 1.0)
        self._queues = {name: self._queue(name, share) for name, share in shares.items()}
        # A change has something to allow: two queues do not preempt, and one may not borrow.
        self._queues["q1"]["spec"]["preemption"] = {"reclaimWithinCohort": "Never", "withinClusterQueue": "Never"}
        self._queues["q2"]["spec"]["preemption"] = {"reclaimWithinCohort": "Never", "withinClusterQueue": "Never"}
        _quota(self._queues["q3"])["borrowingLimit"] = "0"

    def _queue(self, name: str, share: int) -> Object:
        preemption = {
            "reclaimWithinCohort": self.rng.choice(("Any", "Any", "LowerPriority")),
            "withinClusterQueue": self.rng.choice(("LowerPriority", "LowerOrNewerEqualPriority")),
        }
        flavors = [{"name": "gpu", "resources": [{"name": GPU, "nominalQuota": str(share)}]}]
        groups = [{"coveredResources": [GPU], "flavors": flavors}]
        spec = {"cohortName": "all", "namespaceSelector": {}, "preemption": preemption, "resourceGroups": groups}
        return named(_KUEUE, "ClusterQueue", name, spec=spec)

    def setup(self) -> Iterator[Object]:
        yield named(_KUEUE, "ResourceFlavor", "gpu", spec={})
        for name, value in _PRIORITIES.items():
            yield named(_KUEUE, "WorkloadPriorityClass", name, value=value)
        for name, queue in self._queues.items():
            yield queue
            yield named(_KUEUE, "LocalQueue", name, SPACE, spec={"clusterQueue": name})

    def job(self, rng: random.Random, name: str, most: str) -> Job:
        pods, cards = rng.randint(1, 6), rng.choice((1, 1, 2, 3))
        labels = {
            "kueue.x-k8s.io/queue-name": rng.choice((*_ASK, *(3 * [most]))),
            "kueue.x-k8s.io/priority-class": rng.choice(tuple(_PRIORITIES)),
        }
        spec = {"suspend": True, "parallelism": pods, "completions": pods, "backoffLimit": 100}
        body = named("batch/v1", "Job", name, SPACE, spec={**spec, "template": _pod_template(cards)})
        body["metadata"]["labels"] = labels
        return Job(body, pods, pods * cards)

    def change(self, rng: random.Random, kind: str) -> Change:
        queues = copy.deepcopy(self._queues)
        changed = {
            "nominalQuota lowered": self._lower,
            "quota moved to another queue": self._move,
            "borrowingLimit removed": lambda its, _: [_without_limit(its["q3"])],
            "borrowingLimit lowered": lambda its, rng: [_with_limit(its["q0"], rng.randint(0, 4))],
            "reclaimWithinCohort Never → Any": lambda its, _: [
                _preempting(its[name], reclaimWithinCohort="Any") for name in ("q1", "q2")
            ],
            "withinClusterQueue Never → LowerPriority": lambda its, _: [
                _preempting(its[name], withinClusterQueue="LowerPriority") for name in ("q1", "q2")
            ],
            "borrowWithinCohort allowed": lambda its, _: [
                _preempting(its["q0"], reclaimWithinCohort="Any", borrowWithinCohort={"policy": "LowerPriority"})
            ],
        }[kind](queues, rng)
        return Change(kind, changed)

    @staticmethod
    def _lower(queues: dict[str, Object], rng: random.Random) -> list[Object]:
        quota = _quota(queues["q0"])
        quota["nominalQuota"] = str(int(quota["nominalQuota"]) // rng.choice((2, 3)))
        return [queues["q0"]]

    @staticmethod
    def _move(queues: dict[str, Object], rng: random.Random) -> list[Object]:
        old, new = _quota(queues["q0"]), _quota(queues["q3"])
        moved = int(old["nominalQuota"]) // rng.choice((2, 3))
        old["nominalQuota"] = str(int(old["nominalQuota"]) - moved)
        new["nominalQuota"] = str(int(new["nominalQuota"]) + moved)
        return [queues["q0"], queues["q3"]]

    def undone(self) -> Change:
        return Change("undone", [*self._queues.values()])


_KUEUE = "kueue.x-k8s.io/v1beta2"


def _quota(queue: Object) -> Object:
    found: Object = queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]
    return found


def _without_limit(queue: Object) -> Object:
    _quota(queue).pop("borrowingLimit", None)
    return queue


def _with_limit(queue: Object, limit: int) -> Object:
    _quota(queue)["borrowingLimit"] = str(limit)
    return queue


def _preempting(queue: Object, **settings: Any) -> Object:
    queue["spec"]["preemption"] |= settings
    return queue


_TIERS = """actions: "enqueue, allocate, backfill, reclaim"
tiers:
- plugins: [{name: priority}, {name: conformance}]
- plugins: [{name: predicates}, {name: capacity}, {name: gang}, {name: nodeorder}]
"""
_GANG_FIRST = """actions: "enqueue, allocate, backfill, reclaim"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: capacity}, {name: nodeorder}]
"""
_VOLCANO = "scheduling.volcano.sh/v1beta1"


@dataclass(slots=True)
class VolcanoTeam:
    """Queues that deserve about 1.2 times the cluster, and VolcanoJobs with minimums up to all of their pods."""

    rng: random.Random
    scheduler: ClassVar[str] = "volcano"
    kinds: ClassVar[Sequence[str]] = ("deserved lowered", "gang above capacity", "capability lowered")
    policy: str = _TIERS
    nodes: int = field(init=False)
    _shares: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.nodes = self.rng.randint(10, 14)
        self._shares = _parts(self.rng, self.nodes * CARDS_OF_NODE, 1.2)

    def setup(self) -> Iterator[Object]:
        yield from (self._queue(name) for name in QUEUES)

    def _queue(self, name: str, *, deserved: int | None = None, capability: int | None = None) -> Object:
        total = str(capability or self.nodes * CARDS_OF_NODE)
        share = str(self._shares[name] if deserved is None else deserved)
        amounts = {"deserved": {GPU: share}, "capability": {GPU: total}}
        return named(_VOLCANO, "Queue", name, spec={"reclaimable": True, "weight": 1, **amounts})

    def job(self, rng: random.Random, name: str, most: str) -> Job:
        pods, cards = rng.randint(1, 6), rng.choice((1, 1, 2, 3))
        minimum = rng.choice((1, rng.randint(1, pods), pods))
        tasks = [{"name": "t", "replicas": pods, "template": _pod_template(cards)}]
        spec = {"schedulerName": "schedspec", "queue": rng.choice((*_ASK, *(3 * [most]))), "minAvailable": minimum}
        body = named("batch.volcano.sh/v1alpha1", "Job", name, SPACE, spec={**spec, "tasks": tasks})
        return Job(body, pods, pods * cards)

    def change(self, rng: random.Random, kind: str) -> Change:
        share = self._shares["q0"]
        if kind == "deserved lowered":
            return Change(kind, [self._queue("q0", deserved=share // rng.choice((2, 3)))])
        if kind == "capability lowered":  # a queue may not deserve more than its capability
            return Change(kind, [self._queue("q0", deserved=share // 3, capability=share // 3)])
        return Change(kind, policy=_GANG_FIRST)

    def undone(self) -> Change:
        return Change("undone", [*self.setup()], self.policy)


TEAMS = {team.scheduler: team for team in (KueueTeam, VolcanoTeam)}
