"""A case: a small cluster with its work as typed data, which can be played and written as a feature.

The one rule: a case holds only what sentences of features can express.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from ...monitors.rules import lineage

Amounts = tuple[tuple[str, int], ...]
"""Dimension and amount, in the units of `model.resources`, ordered by dimension."""


def amounts(given: Iterable[tuple[str, int]]) -> Amounts:
    """Return the amounts ordered by dimension."""
    return tuple(sorted(given))


def minus(amount: Amounts, taken: Amounts) -> Amounts:
    """Return the amount minus `taken`. Every dimension is kept, and no value falls below zero."""
    less = dict(taken)
    return tuple((name, max(value - less.get(name, 0), 0)) for name, value in amount)


@dataclass(frozen=True, slots=True)
class CaseNode:
    """A node that accepts pods."""

    name: str
    has: Amounts
    card: str = ""
    rack: str = ""


@dataclass(frozen=True, slots=True)
class CaseQueue:
    """An open queue."""

    name: str
    parent: str = ""
    weight: int = 1
    priority: int = 0
    capability: Amounts = ()
    deserved: Amounts = ()
    guarantee: Amounts = ()
    reclaimable: bool = True
    cards: Amounts = ()
    """Its quota of cards by model, in the units of GPUs."""


@dataclass(frozen=True, slots=True)
class CasePriorityClass:
    name: str
    value: int


@dataclass(frozen=True, slots=True)
class Work:
    """A job of equal pods."""

    name: str
    queue: str = "default"
    priority: str = ""
    pods: int = 1
    minimum: int = 1
    requests: Amounts = ()
    preemptable: bool = True
    nodes: tuple[str, ...] = ()
    """The nodes of the pods that run when the case begins; the other pods wait."""
    created: int = 0
    """Creation time, in seconds after that of the oldest work."""
    stop_after: str = ""
    """How long its pods terminate, such as `500ms`. In virtual time all pods terminate equally long."""
    is_service: bool = False
    """Whether it is a service, whose minimum is one pod."""
    card: str = ""
    rack: str = ""
    """Whether one rack for all of its pods is `required` or `preferred`; empty if neither is."""

    @property
    def key(self) -> str:
        """The key of its PodGroup."""
        return f"{NAMESPACE}/{self.name}"


NAMESPACE = "case"
GPU = "nvidia.com/gpu"
CARDS, CARD_MEMORY = "volcano.sh/gpu-number", "volcano.sh/gpu-memory"
"""The cards that pods of a node share, and the sum of their memory."""
REQUIRED, PREFERRED = "required", "preferred"


@dataclass(frozen=True, slots=True)
class SubmitStep:
    work: tuple[Work, ...]


@dataclass(frozen=True, slots=True)
class JoinStep:
    nodes: tuple[CaseNode, ...]


@dataclass(frozen=True, slots=True)
class LeaveStep:
    """A node is removed together with its pods."""

    node: str


@dataclass(frozen=True, slots=True)
class ChangeStep:
    queue: CaseQueue


@dataclass(frozen=True, slots=True)
class CloseStep:
    """A queue is closed: its pods keep running, and no more pods are placed."""

    queue: str


@dataclass(frozen=True, slots=True)
class CompleteStep:
    """A job completes: all of its pods end and are not created again."""

    job: str


@dataclass(frozen=True, slots=True)
class FailStep:
    """A pod of a job fails if it runs; it is not created again."""

    job: str
    index: int = 0

    @property
    def pod(self) -> str:
        """The pod's name, in the form of the Job controller."""
        return f"{self.job}-task-{self.index}"


@dataclass(frozen=True, slots=True)
class UseStep:
    """Another policy comes into force."""

    name: str
    """Its name among `templates/policies`."""
    text: str


Step = SubmitStep | JoinStep | LeaveStep | ChangeStep | CloseStep | CompleteStep | FailStep | UseStep


@dataclass(frozen=True, slots=True)
class Case:
    """A cluster and the steps that happen in it. The cluster settles before each step."""

    policy: str
    nodes: tuple[CaseNode, ...] = ()
    queues: tuple[CaseQueue, ...] = ()
    classes: tuple[CasePriorityClass, ...] = ()
    work: tuple[Work, ...] = ()
    steps: tuple[Step, ...] = ()
    subject: str = ""
    """The job that the incident is about."""
    preemptor: str = ""
    """The job for which the subject loses a pod; empty: any."""

    @property
    def policies(self) -> tuple[str, ...]:
        """The texts of all policies, in the order in which they come into force."""
        return (self.policy, *(step.text for step in self.steps if isinstance(step, UseStep)))

    @property
    def jobs(self) -> tuple[Work, ...]:
        """All work, whenever it is submitted."""
        return self.work + tuple(job for step in self.steps if isinstance(step, SubmitStep) for job in step.work)

    @property
    def all_nodes(self) -> tuple[CaseNode, ...]:
        """All nodes, whenever they join."""
        return self.nodes + tuple(node for step in self.steps if isinstance(step, JoinStep) for node in step.nodes)

    @property
    def priorities(self) -> dict[str, int]:
        return {priority_class.name: priority_class.value for priority_class in self.classes}

    @property
    def completed(self) -> set[str]:
        return {step.job for step in self.steps if isinstance(step, CompleteStep)}

    @property
    def failed(self) -> set[str]:
        return {step.job for step in self.steps if isinstance(step, FailStep)}

    @property
    def size(self) -> int:
        """The number of objects: nodes, queues, classes and jobs."""
        return len(self.all_nodes) + len(self.queues) + len(self.classes) + len(self.jobs)


def missing_models(case: Case) -> set[str]:
    """Return the models of cards that work or queues name and no node has. Features do not name such models."""
    named = {job.card for job in case.jobs} | {model for queue in _all_queues(case) for model, _ in queue.cards}
    return named - {"", *(node.card for node in case.all_nodes)}


def _all_queues(case: Case) -> Iterable[CaseQueue]:
    return (*case.queues, *(step.queue for step in case.steps if isinstance(step, ChangeStep)))


def ancestors(case: Case, queue: str) -> set[str]:
    """Return the queue and all queues above it."""
    parents = {child.name: child.parent for child in case.queues}
    return set(lineage(queue, lambda name: parents.get(name, "")))


_Part = TypeVar("_Part", Work, CaseNode, CaseQueue)


def _mapped(items: tuple[_Part, ...], by_name: Mapping[str, _Part | None]) -> tuple[_Part, ...]:
    found = (by_name.get(item.name, item) for item in items)
    return tuple(item for item in found if item is not None)


def map_work(case: Case, work: dict[str, Work | None]) -> Case:
    """Replace work by name; None removes it. Empty steps are removed."""
    removed = {name for name, replacement in work.items() if replacement is None}
    steps = (
        replace(step, work=_mapped(step.work, work)) if isinstance(step, SubmitStep) else step for step in case.steps
    )
    return replace(
        case,
        work=_mapped(case.work, work),
        steps=tuple(
            step
            for step in steps
            if not (isinstance(step, SubmitStep) and not step.work)
            and not (isinstance(step, CompleteStep | FailStep) and step.job in removed)
        ),
    )


def map_nodes(case: Case, nodes: dict[str, CaseNode | None]) -> Case:
    """Replace nodes by name; None removes a node, and the pods that run on it."""
    removed = {name for name, replacement in nodes.items() if replacement is None}
    steps = (
        replace(step, nodes=_mapped(step.nodes, nodes)) if isinstance(step, JoinStep) else step for step in case.steps
    )
    shrunk: dict[str, Work | None] = {}
    for work in case.work if removed else ():
        if lost := removed.intersection(work.nodes):
            kept = tuple(node for node in work.nodes if node not in lost)
            pods = work.pods - len(work.nodes) + len(kept)
            shrunk[work.name] = replace(work, nodes=kept, pods=pods, minimum=min(work.minimum, pods)) if pods else None
    changed = replace(
        case,
        nodes=_mapped(case.nodes, nodes),
        steps=tuple(
            step
            for step in steps
            if not (isinstance(step, JoinStep) and not step.nodes)
            and not (isinstance(step, LeaveStep) and step.node in removed)
        ),
    )
    return map_work(changed, shrunk)


def map_queues(case: Case, queues: dict[str, CaseQueue | None]) -> Case:
    """Replace queues by name; None removes a queue and its later changes, but not its work."""
    removed = {name for name, replacement in queues.items() if replacement is None}
    kept = tuple(
        step
        for step in case.steps
        if not (isinstance(step, ChangeStep) and step.queue.name in removed)
        and not (isinstance(step, CloseStep) and step.queue in removed)
    )
    return replace(case, queues=_mapped(case.queues, queues), steps=kept)
