"""capacity-card: quota counted in cards by model, and online services that reclaim the cards of offline work.

The one rule: a card quota is a ceiling and the base of a queue's share, never what it deserves. Who takes from whom
follows from what the work is: an online service takes from offline work of strictly lower priority that holds a card
it asks for; nobody else takes, and nothing else is taken. (Semantics: Volcano's open pull request for capacity-card,
and the fork with reclaim.)
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
    """See the module."""

    name = "capacity-card"
    in_requests = False
    limit_name = admission_name = "quota"
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
        self._wrong: dict[bytes, str] = {}
        self._asked: dict[bytes, Mapping[str, int]] = {}
        self._bad_quota: dict[str, str] = {}

    def open(self, session: Session) -> None:
        self._cards = discover(session.nodes.rows)
        super().open(session)
        self._card_nodes = CardNodes(self._cards, session.nodes.rows, self._ask, self._problem, self._left)

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
        for attributes in self.queue_attributes:
            queue = attributes.queue
            try:
                quota = counts(queue.annotations, CARD_QUOTA)
            except CardError as error:
                quota = {}
                self._bad_quota[queue.name] = str(error)
            set_ = {name: amount for name, amount in queue.capability.items() if name in (CPU, MEMORY) and amount > 0}
            attributes.limit = {CPU: UNLIMITED, MEMORY: UNLIMITED, **set_, **quota}
            attributes.deserved = {
                name: amount for name, amount in attributes.deserved.items() if name in (CPU, MEMORY)
            }
            attributes.guarantee = {
                name: amount for name, amount in attributes.guarantee.items() if name in (CPU, MEMORY)
            }
            attributes.basis = {**attributes.deserved, **quota}

    # ------------------------------------------------------------------------------------------------- what is counted

    def measure(self, task: Task) -> Mapping[str, int]:
        """Cards by model, cpu and memory.

        A task that has a node counts by that, whatever other models it named have left the cluster. One that would take
        several models counts as ``A|B`` until then.
        """
        plain = {name: task.request[name] for name in (CPU, MEMORY) if name in task.request}
        cards = self._cards.held(task) if task.node else {}
        if not cards and (asked := self._ask(task)):
            cards = {EITHER.join(asked): next(iter(asked.values()))}
        return {**({} if cards and self._unlimited else plain), **cards}

    def varies(self, task: Task) -> bool:
        """Whether what the task counts as depends on its node."""
        return len(self._ask(task)) > 1 or task.shape in self._wrong

    def minimum(self, job: Job) -> Mapping[str, int] | None:
        """The cards of as many of its pods as it needs, or those it announces while it has none; cpu and memory of its
        ``minResources``."""
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

    def _ask(self, task: Task) -> Mapping[str, int]:
        """The cards that the task would take, the preferred first, with how many; none where it asks for them
        wrongly.
        """
        known = self._asked.get(task.shape)
        if known is None:
            try:
                known = self._cards.asked(task)
            except CardError as error:
                known = {}
                self._wrong[task.shape] = str(error)
            self._asked[task.shape] = known
        return known

    def _problem(self, task: Task) -> str:
        """What is wrong with the cards that the task asks for."""
        self._ask(task)
        return self._wrong.get(task.shape, "")

    # --------------------------------------------------------------------------------------------------------- limits

    def limits(self, attributes: QueueAttributes, task: Task) -> Iterator[QueueLimit]:
        """The quotas that the task would lift its queue above; of several models one with quota left is enough."""
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
        """The cards that the task would take and its queue has quota left of."""
        attributes = self.queue_attributes.of_task(task)
        cards = self._ask(task).items()
        return [card for card, count in cards if attributes is None or not self._over(attributes, card, count)]

    def allocatable(self, queue: Queue, task: Task) -> bool:
        attributes = self.queue_attributes.by_name[queue.name]
        if self.closed(attributes) is not None or self._problem(task):
            return False
        return next(self.limits(attributes, task), None) is None

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
        """Only online services reclaim, and only what their quota has left."""
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
        amount: Resource,
    ) -> Protection | None:
        """Every member must be offline work of strictly lower priority, and the unit hold a card that is asked for."""
        jobs = self.session.jobs
        mine = rank(preemptor, jobs.get(preemptor.job))
        for task in unit:
            if (kind := self._type(task)) != OFFLINE:
                return Protected("service-type", kind)
            if (theirs := rank(task, jobs.get(task.job))) >= mine:
                return NotLower(theirs, mine)
        asked, held = self._ask(preemptor), amount.keys()
        if asked:
            return None if held & asked.keys() else Protected("cards")
        return None if held <= {CPU, MEMORY} and resources.common(amount, preemptor.init_request) else OfNoUse()
