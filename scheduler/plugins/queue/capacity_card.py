"""capacity-card: limit queues by quotas of card models; online services reclaim cards from offline work.

Semantics: Volcano's open pull request for capacity-card, and the fork with reclaim.

A card quota is a limit and the base of a queue's share, never a deserved share. The service type decides who reclaims:
an online service reclaims from offline work of strictly lower priority that holds a requested card. No other work
reclaims or is reclaimed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from ...framework.session import Session
from ...model import resources
from ...model.job import Job
from ...model.names import CARD_QUOTA, CARD_REQUEST
from ...model.nodes import Mask, NodeInfo, Vector
from ...model.queue import Queue
from ...model.resources import CPU, MEMORY, UNLIMITED, Resource
from ...model.task import HOLDING, Task
from ...policy.hooks import Exclusion, Feasible, NodeRule, Predicate, Score
from ...policy.model import PluginOption
from ...policy.schema import BOOL, FLOAT, MAPPING, Argument
from ...reasons import (
    NotLower,
    OfNoUse,
    Protected,
    ProtectedBy,
    Protection,
    QueueBroken,
    QueueLimit,
    UnschedulableReason,
    WrongCard,
    WrongService,
)
from .attributes import QueueAttributes
from .card_nodes import CardNodes
from .cards import EITHER, CardError, counts, discover
from .plugin import QueuePlugin, over_limit
from .service_type import OFFLINE, ONLINE, map_of, rank, service_type


class CapacityCard(QueuePlugin, Feasible, Predicate, NodeRule, Score):
    """Queue quotas counted in cards."""

    name = "capacity-card"
    in_requests = False
    reclaims_by_priority = True
    limit_name = admission_name = "quota"
    queue_fields = QueuePlugin.queue_fields | {"card quota"}
    arguments: ClassVar = {
        "cardUnlimitedCpuMemory": Argument(
            BOOL, default=False, means="cpu and memory of pods with cards are not counted"
        ),
        "podOwnerReferenceToServiceType": Argument(
            MAPPING,
            values=(ONLINE, OFFLINE),
            means="owner's kind → service type; `Deployment` means its ReplicaSets too",
        ),
        "allowServiceTypeByPodOwnerReferences": Argument(
            BOOL, default=False, means="short for `{Job: training, ReplicaSet: inference}`"
        ),
        "overCommitFactor": Argument(FLOAT, 0, exclusive=True, default=1.0, means="multiplies the quota at admission"),
        "nodeOrderWeight": Argument(
            FLOAT, 0, exclusive=True, default=1.0, means="weight of the preferred model in ranking nodes"
        ),
    }

    def __init__(self, option: PluginOption) -> None:
        super().__init__(option)
        self._unlimited: bool = self.argument("cardUnlimitedCpuMemory")
        self._weight: float = self.argument("nodeOrderWeight")
        self.admission_factor: float = self.argument("overCommitFactor")
        self._kinds = map_of(option.arguments)

    def open(self, session: Session) -> None:
        self._wrong: dict[bytes, str] = {}
        self._accepted_by_shape: dict[bytes, Mapping[str, int]] = {}
        self._cards = discover(session.nodes.rows)
        super().open(session)
        self._card_nodes = CardNodes(self._cards, session.nodes.rows, self._accepted, self._problem, self._left)

    # ---------------------------------------------------------------------------------------------------------- nodes

    def feasible(self, task: Task) -> Mask:
        return self._card_nodes.feasible(task)

    def predicate(self, task: Task, future: bool) -> Mask | None:  # noqa: ARG002
        return self._card_nodes.predicate(task)

    def node_rule(self, task: Task, node: NodeInfo) -> Exclusion | None:
        return self._card_nodes.node_rule(task, node)

    def score(self, task: Task, feasible: Mask) -> Vector | None:  # noqa: ARG002
        return self._card_nodes.score(task, self._weight)

    def arrange(self) -> None:
        self._bad_quota: dict[str, str] = {}
        for attributes in self.queue_attributes:
            queue = attributes.queue
            try:
                quota = counts(queue.annotations, CARD_QUOTA)
            except CardError as error:
                quota = {}
                self._bad_quota[queue.name] = str(error)
            own = {name: amount for name, amount in queue.capability.items() if name in (CPU, MEMORY) and amount > 0}
            attributes.limit = {CPU: UNLIMITED, MEMORY: UNLIMITED, **own, **quota}
            attributes.deserved = {
                name: amount for name, amount in attributes.deserved.items() if name in (CPU, MEMORY)
            }
            attributes.guarantee = {
                name: amount for name, amount in attributes.guarantee.items() if name in (CPU, MEMORY)
            }
            attributes.basis = {**attributes.deserved, **quota}

    # -------------------------------------------------------------------------------------------------------- counting

    def measure(self, task: Task) -> Resource:
        """Return the task's cards by model, its cpu and its memory.

        A placed task counts for the card model of its node, even if other models that it names have left the cluster.
        An unplaced task that accepts several models counts as `A|B`.
        """
        cpu_and_memory = {name: task.request[name] for name in (CPU, MEMORY) if name in task.request}
        cards = self._cards.held(task) if task.node else {}
        if not cards and (accepted := self._accepted(task)):
            cards = {EITHER.join(accepted): next(iter(accepted.values()))}
        return {**({} if cards and self._unlimited else cpu_and_memory), **cards}

    def varies(self, task: Task) -> bool:
        """Whether the task's amounts depend on its node."""
        return len(self._accepted(task)) > 1 or task.shape in self._wrong

    def minimum(self, job: Job) -> Mapping[str, int] | None:
        """Return the cards that the job needs to start, and the cpu and memory of its `minResources`.

        The cards are those of its first `minMember` pods; if these request none, those in its annotation.
        """
        cards = self._cards_of(job)
        if job.min_resources is None:
            return cards or None
        if cards and self._unlimited:
            return cards
        return {**{name: job.min_resources[name] for name in (CPU, MEMORY) if name in job.min_resources}, **cards}

    def _cards_of(self, job: Job) -> Resource:
        tasks = sorted(job.tasks.values(), key=lambda task: (not task.status & HOLDING, task.index, task.key))
        wanted: Resource = {}
        for task in tasks[: job.min_available]:
            resources.add_to(
                wanted, {n: v for n, v in self.queue_attributes.amount(task).items() if n not in (CPU, MEMORY)}
            )
        if wanted or job.group is None:
            return wanted
        try:
            return counts(job.group.metadata.annotations or {}, CARD_REQUEST)
        except CardError:
            return {}

    def _accepted(self, task: Task) -> Mapping[str, int]:
        """Return the accepted cards with their counts, the preferred first; empty without a valid request for cards."""
        known = self._accepted_by_shape.get(task.shape)
        if known is None:
            try:
                known = self._cards.accepted(task)
            except CardError as error:
                known = {}
                self._wrong[task.shape] = str(error)
            self._accepted_by_shape[task.shape] = known
        return known

    def _problem(self, task: Task) -> str:
        """Return what is invalid in the task's request for cards; empty if the request is valid."""
        self._accepted(task)
        return self._wrong.get(task.shape, "")

    # --------------------------------------------------------------------------------------------------------- limits

    def limits(self, attributes: QueueAttributes, task: Task) -> Iterator[QueueLimit]:
        """Yield the quotas that the task would exceed; of several accepted models, one with free quota suffices."""
        amount = self.queue_attributes.amount(task)
        either = next((name for name in amount if EITHER in name), None)
        if either is None:
            yield from over_limit(attributes, amount, attributes.limit, "quota")
            return
        rest = {name: value for name, value in amount.items() if name != either}
        yield from over_limit(attributes, rest, attributes.limit, "quota")
        count = amount[either]
        short = [limit for card in either.split(EITHER) for limit in self._over(attributes, card, count)]
        if len(short) == len(either.split(EITHER)):
            yield from short

    def _over(self, attributes: QueueAttributes, card: str, count: int) -> list[QueueLimit]:
        return list(over_limit(attributes, {card: count}, attributes.limit, "quota"))

    def _left(self, task: Task) -> list[str]:
        """Return the accepted cards of the task for which its queue has quota left."""
        attributes = self.queue_attributes.of_task(task)
        cards = self._accepted(task).items()
        return [card for card, count in cards if attributes is None or not self._over(attributes, card, count)]

    def allocatable(self, queue: Queue, task: Task) -> bool:
        attributes = self.queue_attributes.by_name[queue.name]
        if self.closed(attributes) is not None or self._problem(task):
            return False
        if next(self.limits(attributes, task), None) is not None:
            return False
        return next(self.guarantees.short(attributes, task, self.queue_attributes.amount(task)), None) is None

    def reasons(self, job: Job, task: Task | None) -> Iterator[UnschedulableReason]:
        if job.queue in self._bad_quota:
            yield QueueBroken(job.queue, self._bad_quota[job.queue])
        if task is not None and (problem := self._problem(task)):
            yield WrongCard(task.key, problem)
        yield from super().reasons(job, task)

    # -------------------------------------------------------------------------------------------------------- reclaim

    def _type(self, task: Task) -> str:
        return service_type(task, self.session.jobs.get(task.job), self._kinds)

    def preemptive(self, queue: Queue, task: Task) -> UnschedulableReason | None:
        """Return why the task may not reclaim; None for an online service within its queue's free quota."""
        attributes = self.queue_attributes.by_name[queue.name]
        if (closed := self.closed(attributes)) is not None:
            return closed
        if (kind := self._type(task)) != ONLINE:
            return WrongService(task.key, kind)
        return next(self.limits(attributes, task), None)

    def denial(
        self,
        preemptor: Task,
        taker: QueueAttributes,  # noqa: ARG002
        unit: Sequence[Task],
        giver: QueueAttributes,  # noqa: ARG002
    ) -> Protection | None:
        """Return None if all members are offline work of lower priority and the unit holds a requested card."""
        jobs = self.session.jobs
        mine = rank(preemptor, jobs.get(preemptor.job))
        for task in unit:
            if (kind := self._type(task)) != OFFLINE:
                return Protected(ProtectedBy.SERVICE_TYPE, kind)
            if (theirs := rank(task, jobs.get(task.job))) >= mine:
                return NotLower(theirs, mine)
        accepted, amount = self._accepted(preemptor), self.amount(unit)
        held = amount.keys()
        if accepted:
            return None if held & accepted.keys() else Protected(ProtectedBy.CARDS)
        return None if held <= {CPU, MEMORY} and resources.overlap(amount, preemptor.init_request) else OfNoUse()
