"""Play a case in virtual time, with its parts as API objects, and record its events as data.

The one rule: nothing ends by itself. The cluster settles for `PAUSE` virtual seconds after each step.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ... import virtual
from ...scheduler.inputs import Input, ObjectSeen
from ...scheduler.model import names, objects, resources
from ...scheduler.model.cluster import Cluster
from ...scheduler.model.objects.topology import ExactMatch, MemberSelector
from ...scheduler.model.queue import DEFAULT_QUEUES
from ...scheduler.model.times import timestamp
from ...scheduler.policy.loader import load_policy
from ...scheduler.policy.model import Policy
from ...scheduler.reasons import Refusal, VictimReason
from ..simulate.present import opened
from . import case as cases

_PRODUCT = f"{cases.GPU}.product"
_RACK = "schedspec.dev/rack"
_OWNERS = {
    is_service: [objects.OwnerReference(version, kind, kind.lower(), kind.lower(), controller=True)]
    for is_service, version, kind in ((False, "batch.volcano.sh/v1alpha1", "Job"), (True, "apps/v1", "ReplicaSet"))
}


def quantities(given: cases.Amounts) -> dict[str, str]:
    return {name: str(quantity) for name, quantity in resources.quantities(dict(given)).items()}


def node_object(given: cases.CaseNode) -> objects.Node:
    """Return a node; its labels name the model of its cards and its rack."""
    labels = {_PRODUCT: given.card, _RACK: given.rack}
    return virtual.node(given.name, quantities(given.has), {name: value for name, value in labels.items() if value})


def hyper_nodes(nodes: Iterable[cases.CaseNode]) -> list[objects.HyperNode]:
    racks: dict[str, list[str]] = {}
    for given in nodes:
        if given.rack:
            racks.setdefault(given.rack, []).append(given.name)
    return [objects.HyperNode(objects.ObjectMeta(name=rack), _tier(members)) for rack, members in racks.items()]


def _tier(members: list[str]) -> objects.HyperNodeSpec:
    exact = (MemberSelector(ExactMatch(member)) for member in members)
    return objects.HyperNodeSpec(1, "rack", [objects.HyperNodeMember("Node", selector) for selector in exact])


def queue_object(given: cases.CaseQueue, *, is_open: bool = True) -> objects.Queue:
    spec = objects.QueueSpec(
        weight=given.weight,
        priority=given.priority,
        parent=given.parent,
        reclaimable=given.reclaimable,
        capability={**quantities(given.capability)} or None,
        deserved={**quantities(given.deserved)} or None,
        guarantee=objects.queueing.Guarantee({**quantities(given.guarantee)}) if given.guarantee else None,
    )
    quota = ", ".join(f'"{model}": {amount // resources.unit_of(cases.GPU)}' for model, amount in given.cards)
    marks = {names.CARD_QUOTA: f"{{{quota}}}"} if quota else None
    status = objects.QueueStatus("" if is_open else "Closing")
    return opened(objects.Queue(objects.ObjectMeta(name=given.name, annotations=marks), spec, status))


def pod_meta(work: cases.Work, index: int, namespace: str, created: str) -> objects.ObjectMeta:
    """Return the metadata of a pod of a job or of a service."""
    name = f"{work.name}-task-{index}"
    marks = {names.GROUP_NAME: work.name}
    marks |= {names.CARD_NAME: work.card} if work.card else {}
    marks |= {} if work.preemptable else {names.PREEMPTABLE: "false"}
    return objects.ObjectMeta(
        name=name,
        namespace=namespace,
        uid=name,
        creation_timestamp=created,
        annotations=marks,
        owner_references=_OWNERS[work.is_service],
    )


def topology_of(work: cases.Work) -> objects.NetworkTopology | None:
    """Return the topology of a job's PodGroup."""
    if not work.rack:
        return None
    hard = objects.NetworkTopology("hard", highest_tier_name="rack")
    return hard if work.rack == cases.REQUIRED else objects.NetworkTopology("soft")


START = 1_790_000_000.0
PAUSE = 30.0
MAX_CYCLES = 400
"""Maximum cycles of a step, plus one for each job; a case with more counts as never settling. Small cases need few."""
_DEFAULT_QUEUES = tuple(cases.CaseQueue(name, **spec) for name, spec in DEFAULT_QUEUES.items())
START_DELAY = 0.02
_SETTINGS = virtual.Settings(start_delay=START_DELAY, grace=0.02)


@dataclass(slots=True)
class PlayedEviction:
    job: str
    pod: str
    reason: VictimReason
    step: int
    at: float


class Happened(enum.Enum):
    ADMITTED = enum.auto()
    PLACED = enum.auto()
    EVICTED = enum.auto()
    RELEASED = enum.auto()


@dataclass(frozen=True, slots=True)
class Act:
    """An event of a job or of one of its pods."""

    what: Happened
    at: float
    step: int
    job: str
    pod: str = ""
    node: str = ""
    reason: VictimReason | None = None


@dataclass(slots=True)
class SettledState:
    placed: dict[str, dict[str, str]]
    waits: dict[str, Refusal]
    phases: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Story:
    """The events of a play. Jobs and pods are named without namespace."""

    evictions: list[PlayedEviction] = field(default_factory=list)
    settled: list[SettledState] = field(default_factory=list)
    """The settled cluster before any step, and after each step."""
    problem: str = ""
    starts: list[tuple[float, str]] = field(default_factory=list)
    """The time at which each job first had its minimum of running pods."""
    acts: list[Act] = field(default_factory=list)
    """Every admission, and every pod that was placed, evicted and released, in order."""

    @property
    def end(self) -> SettledState:
        """The settled cluster after the last step."""
        return self.settled[-1] if self.settled else SettledState({}, {})


NOT_PLAYED = Story()
"""The story of a case that has not been played in virtual time."""
Listener = Callable[[float, Any], None]
"""Called with the time, and with an input of the core or an outcome."""


def play(
    case: cases.Case,
    *,
    stop: Callable[[PlayedEviction], bool] = lambda _: False,
    listener: Listener | None = None,
    gap: float = 0.0,
) -> Story:
    """Play a case.

    `stop`: whether the play ends at this eviction. `listener`: receives every input of the core and every outcome, in
    order. `gap`: seconds between the jobs of one step: writes take time in a live cluster. Raises PolicyError.
    """
    return _CaseRun(case, stop, listener, gap).run()


class _CaseRun:
    def __init__(
        self, case: cases.Case, stop: Callable[[PlayedEviction], bool], listener: Listener | None, gap: float
    ) -> None:
        self._case, self._stop, self._listener, self._gap = case, stop, listener, gap
        self._story = Story()
        self._placed: dict[str, dict[str, str]] = {}
        self._waits: dict[str, Refusal] = {}
        self._phases: dict[str, str] = {}
        self._queues = {queue.name: queue for queue in (*_DEFAULT_QUEUES, *case.queues)}
        self._closed: set[str] = set()
        self._nodes = case.nodes
        """All nodes so far; a rack may name a node that was removed."""
        self._cycles = 0
        self._stopped = False
        self._values = case.priorities
        self._simulation = virtual.Simulation(
            policy_of(case.policy),
            emit=self._on_outcome,
            settings=_SETTINGS,
            start=START,
            cluster=Cluster(),
            on_input=self._on_input,
        )

    def run(self) -> Story:
        case, simulation = self._case, self._simulation
        for priority_class in case.classes:
            simulation.put(
                "PriorityClass",
                objects.PriorityClass(objects.ObjectMeta(name=priority_class.name), priority_class.value),
            )
        for queue in self._queues.values():
            simulation.put("Queue", queue_object(queue))
        for given in case.nodes:
            simulation.put("Node", node_object(given))
        for rack in hyper_nodes(case.nodes):
            simulation.put("HyperNode", rack)
        for work in sorted(case.work, key=lambda job: (job.created, job.name)):
            simulation.carry_out(self._adopted(work, START - 1e6 + work.created))
        for number in range(len(case.steps) + 1):
            self._settle(number)
            if self._stopped or self._story.problem:
                break
        return self._story

    def _settle(self, number: int) -> None:
        """Carry out a step (0: none), and run until the next one is due."""
        begins = START + PAUSE * number
        items = [] if not number else self._inputs(self._case.steps[number - 1], begins)
        load = [virtual.Arrival(begins + self._gap * index, item) for index, item in enumerate(items)]
        self._cycles = 0
        try:
            for _ in self._simulation.instants(load, begins + PAUSE - 1):
                if self._stopped:
                    return
                if self._cycles > MAX_CYCLES + len(self._case.jobs):
                    self._story.problem = f"{self._cycles} cycles after step {number}, and each causes another"
                    break
        except virtual.SimulationError as error:
            self._story.problem = str(error)
        placed = {job: dict(pods) for job, pods in self._placed.items() if pods}
        self._story.settled.append(SettledState(placed, dict(self._waits), dict(self._phases)))

    def _inputs(self, step: cases.Step, now: float) -> list[Any]:  # noqa: PLR0911 - one return a kind of step
        match step:
            case cases.SubmitStep():
                return [self._adopted(job, now) for job in step.work]
            case cases.JoinStep():
                self._nodes += step.nodes
                joined = [ObjectSeen("Node", node_object(joining)) for joining in step.nodes]
                return [*joined, *(ObjectSeen("HyperNode", rack) for rack in hyper_nodes(self._nodes))]
            case cases.LeaveStep():
                return [virtual.RemoveNode(step.node)]
            case cases.ChangeStep():
                self._queues[step.queue.name] = step.queue
                return [self._queue_seen(step.queue.name)]
            case cases.CloseStep():
                self._closed.add(step.queue)
                return [self._queue_seen(step.queue)]
            case cases.CompleteStep():
                return [virtual.EndWork(f"{cases.NAMESPACE}/{step.job}")]
            case cases.FailStep():
                return [virtual.FailPod(f"{cases.NAMESPACE}/{step.job}", f"{cases.NAMESPACE}/{step.pod}")]
            case cases.UseStep():
                return [virtual.UsePolicy(policy_of(step.text))]

    def _adopted(self, work: cases.Work, created: float) -> virtual.Adopted:
        moment, requests = timestamp(created), quantities(work.requests)
        meta = objects.ObjectMeta(name=work.name, namespace=cases.NAMESPACE, uid=work.name, creation_timestamp=moment)
        least = {name: amount * work.minimum for name, amount in work.requests}
        spec = objects.PodGroupSpec(
            min_member=work.minimum,
            queue=work.queue,
            priority_class_name=work.priority,
            min_resources={**resources.quantities(least)},
            network_topology=topology_of(work),
        )
        phase = "Running" if len(work.nodes) >= work.minimum else "Pending"
        group = objects.PodGroup(meta, spec, objects.PodGroupStatus(phase))
        pods = []
        value, resources_of_pod = self._values.get(work.priority, 0), objects.pods.Resources(requests={**requests})
        container = objects.Container(name="w", resources=resources_of_pod)
        for index in range(work.pods):
            on = work.nodes[index] if index < len(work.nodes) else ""
            spec_of_pod = objects.PodSpec([container], priority=value, priority_class_name=work.priority, node_name=on)
            status = objects.PodStatus("Running", start_time=moment) if on else objects.PodStatus()
            pods.append(objects.Pod(pod_meta(work, index, cases.NAMESPACE, moment), spec_of_pod, status))
        return virtual.Adopted(group, tuple(pods), math.inf, requests=requests, on_eviction=virtual.OnEviction.REPLACE)

    def _queue_seen(self, name: str) -> ObjectSeen:
        """Return the input that shows a queue as it is now."""
        given = self._queues.get(name, cases.CaseQueue(name))
        return ObjectSeen("Queue", queue_object(given, is_open=name not in self._closed))

    def _on_input(self, given: Input) -> None:
        if isinstance(given, ObjectSeen) and isinstance(given.object, objects.PodGroup):
            self._phases[given.object.metadata.name] = given.object.status.phase
        if self._listener is not None:
            self._listener(self._simulation.now, given)

    def _on_outcome(self, outcome: Any) -> None:
        if self._listener is not None:
            self._listener(outcome.at, outcome)
        match outcome:
            case virtual.outcomes.Placed():
                self._placed.setdefault(_name(outcome.job), {})[_name(outcome.pod)] = outcome.node
                self._note(Happened.PLACED, outcome, outcome.pod, outcome.node)
            case virtual.outcomes.Released():
                self._placed.get(_name(outcome.job), {}).pop(_name(outcome.pod), None)
                self._note(Happened.RELEASED, outcome, outcome.pod, outcome.node)
            case virtual.outcomes.Admitted():
                self._note(Happened.ADMITTED, outcome)
            case virtual.outcomes.Started():
                self._story.starts.append((outcome.at, _name(outcome.job)))
            case virtual.outcomes.Waits():
                self._waits.pop(_name(outcome.job), None)
                if outcome.refusal is not None:
                    self._waits[_name(outcome.job)] = outcome.refusal
            case virtual.outcomes.Evicted():
                found = PlayedEviction(
                    _name(outcome.job), _name(outcome.pod), outcome.reason, len(self._story.settled), outcome.at
                )
                self._story.evictions.append(found)
                self._note(Happened.EVICTED, outcome, outcome.pod, reason=outcome.reason)
                self._stopped = self._stopped or self._stop(found)
            case virtual.outcomes.Cycle():
                self._cycles += 1

    def _note(
        self, what: Happened, outcome: Any, pod: str = "", node: str = "", reason: VictimReason | None = None
    ) -> None:
        step = len(self._story.settled)
        self._story.acts.append(Act(what, outcome.at, step, _name(outcome.job), _name(pod), node, reason))


def _name(key: str) -> str:
    return key.rpartition("/")[2]


@lru_cache(4096)
def policy_of(text: str) -> Policy:
    """Return the policy of a text. Cases of one run share their policies. Raises PolicyError."""
    return load_policy(text, "policy")
