"""A case: a small cluster with its work as typed data. Simulations, states and features are made from it.

The one rule: a case holds only what sentences of features can express. Whatever is left out is noted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

Amounts = tuple[tuple[str, int], ...]
"""Dimension and amount, in the units of `model.resources`, ordered by dimension."""


def amounts(given: Iterable[tuple[str, int]]) -> Amounts:
    """Return amounts in their order."""
    return tuple(sorted(given))


def minus(amount: Amounts, taken: Amounts, times: int = 1) -> Amounts:
    """Subtract; no dimension falls below zero or disappears."""
    less = dict(taken)
    return tuple((name, max(it - less.get(name, 0) * times, 0)) for name, it in amount)


@dataclass(frozen=True, slots=True)
class Node:
    """A node that accepts pods."""

    name: str
    has: Amounts


@dataclass(frozen=True, slots=True)
class Queue:
    """An open queue."""

    name: str
    parent: str = ""
    weight: int = 1
    priority: int = 0
    capability: Amounts = ()
    deserved: Amounts = ()
    guarantee: Amounts = ()
    reclaimable: bool = True


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """A priority class."""

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

    @property
    def key(self) -> str:
        """The key of its PodGroup."""
        return f"{NAMESPACE}/{self.name}"


NAMESPACE = "case"


@dataclass(frozen=True, slots=True)
class Submit:
    """Work is submitted."""

    work: tuple[Work, ...]


@dataclass(frozen=True, slots=True)
class Join:
    """Nodes join the cluster."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Leave:
    """A node leaves with its pods."""

    node: str


@dataclass(frozen=True, slots=True)
class Change:
    """The values of a queue change."""

    queue: Queue


@dataclass(frozen=True, slots=True)
class Complete:
    """A job completes: all of its pods end and are not created again."""

    job: str


@dataclass(frozen=True, slots=True)
class Fail:
    """A pod of a job fails if it runs; it is not created again."""

    job: str
    index: int = 0

    @property
    def pod(self) -> str:
        """The pod's name, in the form of the Job controller."""
        return f"{self.job}-task-{self.index}"


@dataclass(frozen=True, slots=True)
class Use:
    """Another policy comes into force."""

    name: str
    """Its name among `templates/policies`."""
    text: str


Step = Submit | Join | Leave | Change | Complete | Fail | Use


@dataclass(frozen=True, slots=True)
class Case:
    """A cluster and the steps that happen in it. The cluster settles before each step."""

    policy: str
    """The text of the policy file."""
    nodes: tuple[Node, ...] = ()
    queues: tuple[Queue, ...] = ()
    classes: tuple[PriorityClass, ...] = ()
    work: tuple[Work, ...] = ()
    """The work that exists when the case begins."""
    steps: tuple[Step, ...] = ()
    subject: str = ""
    """The subject: the job that the incident is about."""

    @property
    def policies(self) -> tuple[str, ...]:
        """The texts of all policies, in the order in which they come into force."""
        return (self.policy, *(it.text for it in self.steps if isinstance(it, Use)))

    @property
    def jobs(self) -> tuple[Work, ...]:
        """All work, whenever it is submitted."""
        return self.work + tuple(it for step in self.steps if isinstance(step, Submit) for it in step.work)

    @property
    def all_nodes(self) -> tuple[Node, ...]:
        """All nodes, whenever they join."""
        return self.nodes + tuple(it for step in self.steps if isinstance(step, Join) for it in step.nodes)

    @property
    def size(self) -> int:
        """The number of objects: nodes, queues, classes and jobs."""
        return len(self.all_nodes) + len(self.queues) + len(self.classes) + len(self.jobs)


def ancestors(case: Case, queue: str) -> set[str]:
    """Return the queue and all queues above it."""
    parents = {it.name: it.parent for it in case.queues}
    found: set[str] = set()
    while queue and queue not in found:
        found.add(queue)
        queue = parents.get(queue, "")
    return found


def map_work(case: Case, work: dict[str, Work | None]) -> Case:
    """Replace work by name; None removes it. Empty steps are removed."""

    def mapped(items: tuple[Work, ...]) -> tuple[Work, ...]:
        found = (work.get(it.name, it) for it in items)
        return tuple(it for it in found if it is not None)

    gone = {name for name, it in work.items() if it is None}
    steps = (replace(it, work=mapped(it.work)) if isinstance(it, Submit) else it for it in case.steps)
    return replace(
        case,
        work=mapped(case.work),
        steps=tuple(
            it
            for it in steps
            if not (isinstance(it, Submit) and not it.work) and not (isinstance(it, Complete | Fail) and it.job in gone)
        ),
    )


def map_nodes(case: Case, nodes: dict[str, Node | None]) -> Case:
    """Replace nodes by name; None removes a node, and the pods that run on it."""

    def mapped(items: tuple[Node, ...]) -> tuple[Node, ...]:
        found = (nodes.get(it.name, it) for it in items)
        return tuple(it for it in found if it is not None)

    gone = {name for name, it in nodes.items() if it is None}
    steps = (replace(it, nodes=mapped(it.nodes)) if isinstance(it, Join) else it for it in case.steps)
    left: dict[str, Work | None] = {}
    for work in case.work if gone else ():
        if stays := gone.intersection(work.nodes):
            on = tuple(it for it in work.nodes if it not in stays)
            pods = work.pods - len(work.nodes) + len(on)
            left[work.name] = replace(work, nodes=on, pods=pods, minimum=min(work.minimum, pods)) if pods else None
    changed = replace(
        case,
        nodes=mapped(case.nodes),
        steps=tuple(
            it
            for it in steps
            if not (isinstance(it, Join) and not it.nodes) and not (isinstance(it, Leave) and it.node in gone)
        ),
    )
    return map_work(changed, left)


def map_queues(case: Case, queues: dict[str, Queue | None]) -> Case:
    """Replace queues by name; None removes a queue and its later changes. Work stays."""
    found = (queues.get(it.name, it) for it in case.queues)
    gone = {name for name, it in queues.items() if it is None}
    kept = tuple(it for it in case.steps if not (isinstance(it, Change) and it.queue.name in gone))
    return replace(case, queues=tuple(it for it in found if it is not None), steps=kept)
