"""capacity-card: quota counted in cards by model, and online services that reclaim the cards of offline work.

The one rule: a card quota is a ceiling and the base of a queue's share, never what it deserves. Who takes from whom
follows from what the work is: an online service takes from offline work of strictly lower priority that holds a card
it asks for; nobody else takes, and nothing else is taken. (Semantics: Volcano's open pull request for capacity-card,
and the fork with reclaim.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from scheduler.model import resources
from scheduler.model.job import Job
from scheduler.model.nodes import Mask, NodeInfo, Vector
from scheduler.model.queue import Queue
from scheduler.model.resources import CPU, MEMORY, Resource
from scheduler.model.task import HOLDING, Task
from scheduler.plugins.cards import EITHER, QUOTA, REQUEST, CardError, counts, discover
from scheduler.plugins.queue_accounts import Account
from scheduler.plugins.queue_plugin import QueuePlugin, over_limit
from scheduler.plugins.service_type import OFFLINE, ONLINE, map_of, rank, service_type
from scheduler.policy import PluginOption
from scheduler.reasons import (
    Denial,
    NotLower,
    OfNoUse,
    Protected,
    QueueBroken,
    QueueLimit,
    Why,
    WrongCard,
    WrongService,
)
from scheduler.session import Register, Session


class CapacityCard(QueuePlugin):
    """See the module."""

    name = "capacity-card"
    in_requests = False
    limit_name = admission_name = "quota"

    def __init__(self, option: PluginOption) -> None:
        super().__init__(option)
        self._unlimited = bool(option.arguments.get("cardUnlimitedCpuMemory", False))
        self._weight = float(option.arguments.get("nodeOrderWeight", 1.0))
        self.admission_factor = float(option.arguments.get("overCommitFactor", 1.0))
        self._kinds = map_of(option.arguments)
        self._wrong: dict[bytes, str] = {}
        self._named: dict[bytes, tuple[str, ...]] = {}
        self._rows: dict[tuple[str, ...], NDArray[np.str_]] = {}
        self._bad_quota: dict[str, str] = {}

    def open(self, session: Session, register: Register) -> None:
        self._cards = discover(session.nodes.rows)
        super().open(session, register)
        register("feasible", self.feasible)
        register("predicate", self.predicate)
        register("node_rule", self.node_rule)
        register("score", self.score)

    def arrange(self) -> None:
        for account in self.accounts:
            queue = account.queue
            try:
                quota = counts(queue.annotations, QUOTA)
            except CardError as error:
                quota = {}
                self._bad_quota[queue.name] = str(error)
            set_ = {name: amount for name, amount in queue.capability.items() if name in (CPU, MEMORY) and amount > 0}
            account.limit = {CPU: math.inf, MEMORY: math.inf, **set_, **quota}
            account.deserved = {name: amount for name, amount in account.deserved.items() if name in (CPU, MEMORY)}
            account.guarantee = {name: amount for name, amount in account.guarantee.items() if name in (CPU, MEMORY)}
            account.basis = {**account.deserved, **quota}

    # ------------------------------------------------------------------------------------------------- what is counted

    def measure(self, task: Task) -> Mapping[str, float]:
        """Cards by model, cpu and memory.

        A task that would take several models counts as ``A|B`` until it has a node.
        """
        plain = {name: task.request[name] for name in (CPU, MEMORY) if name in task.request}
        try:
            names = self._cards.names_of(task)
            if not names:
                return plain
            held = self._cards.on(task.node, names) if task.node else None
            count = self._cards.count(task, held or names[0])
        except CardError as error:
            self._wrong[task.shape] = str(error)
            return plain
        return {**({} if self._unlimited else plain), held or EITHER.join(names): count}

    def varies(self, task: Task) -> bool:
        """Whether what the task counts as depends on its node."""
        return len(self._names(task)) > 1

    def minimum(self, job: Job) -> Mapping[str, float] | None:
        """The cards of as many of its pods as it needs, or those it announces while it has none; cpu and memory of its
        ``minResources``."""
        cards = self._cards_of(job)
        if job.min_resources is None:
            return cards or None
        if cards and self._unlimited:
            return cards
        return {**{name: job.min_resources[name] for name in (CPU, MEMORY) if name in job.min_resources}, **cards}

    def _cards_of(self, job: Job) -> Resource:
        tasks = list(job.tasks.values())
        if len(tasks) > job.min_available:
            tasks.sort(key=lambda task: (not task.status & HOLDING, task.index, task.key))
        wanted: Resource = {}
        for task in tasks[: job.min_available]:
            resources.add_to(wanted, {n: v for n, v in self.accounts.amount(task).items() if n not in (CPU, MEMORY)})
        if wanted or job.group is None:
            return wanted
        try:
            return counts(job.group.metadata.annotations or {}, REQUEST)
        except CardError:
            return {}

    def _names(self, task: Task) -> tuple[str, ...]:
        """The cards that the task would take, the preferred first; none where it names them wrongly."""
        known = self._named.get(task.shape)
        if known is None:
            try:
                known = self._cards.names_of(task)
            except CardError:
                known = ()
            self._named[task.shape] = known
        return known

    def _by_row(self, names: tuple[str, ...]) -> NDArray[np.str_]:
        """Node by node the first of some cards that it has, or nothing."""
        if names not in self._rows:
            found = [self._cards.on(node.name, names) or "" for node in self.session.nodes.rows]
            self._rows[names] = np.array(found, dtype=np.str_)
        return self._rows[names]

    # --------------------------------------------------------------------------------------------------------- limits

    def limits(self, account: Account, task: Task) -> Iterator[QueueLimit]:
        """The quotas that the task would lift its queue above; of several models one with quota left is enough."""
        amount = self.accounts.amount(task)
        either = next((name for name in amount if EITHER in name), None)
        if either is None:
            yield from over_limit(account, amount, account.limit, "quota")
            return
        rest = {name: value for name, value in amount.items() if name != either}
        yield from over_limit(account, rest, account.limit, "quota")
        short = [limit for card in either.split(EITHER) for limit in self._over(account, card, amount[either])]
        if len(short) == len(either.split(EITHER)):
            yield from short

    def _over(self, account: Account, card: str, count: float) -> list[QueueLimit]:
        return list(over_limit(account, {card: count}, account.limit, "quota"))

    def allocatable(self, queue: Queue, task: Task) -> bool:
        account = self.accounts.by_name[queue.name]
        return self.closed(account) is None and task.shape not in self._wrong and not any(self.limits(account, task))

    def why(self, job: Job, task: Task | None) -> Iterator[Why]:
        if job.queue in self._bad_quota:
            yield QueueBroken(job.queue, self._bad_quota[job.queue])
        if task is not None and self.accounts.amount(task) is not None and task.shape in self._wrong:
            yield WrongCard(task.key, self._wrong[task.shape])
        yield from super().why(job, task)

    # ---------------------------------------------------------------------------------------------------------- nodes

    def feasible(self, task: Task) -> Mask:
        """Nodes that have one of the cards that the task names."""
        names = self._names(task)
        if not names:
            return np.ones(len(self.session.nodes.rows), dtype=np.bool_)
        return np.not_equal(self._by_row(names), "")

    def predicate(self, task: Task, future: bool) -> Mask | None:  # noqa: ARG002
        """For a task that would take several models: nodes whose model the queue has quota left of."""
        names = self._names(task)
        account = self.accounts.of_task(task)
        if len(names) < 2 or account is None:
            return None
        count = self._cards.count(task, names[0])
        left = [card for card in names if not self._over(account, card, count)]
        return np.isin(self._by_row(names), left)

    def node_rule(self, task: Task, node: NodeInfo) -> tuple[str, str] | None:
        """Why the two masks leave a node out."""
        names = self._names(task)
        if not names:
            return None
        card = self._cards.on(node.name, names)
        if card is None:
            return "card", " or ".join(names)
        account = self.accounts.of_task(task)
        if len(names) > 1 and account is not None and self._over(account, card, self._cards.count(task, card)):
            return "card-quota", card
        return None

    def score(self, task: Task, feasible: Mask) -> Vector | None:  # noqa: ARG002
        """For a task that would take several models: the nodes of the preferred one, each later one half as good."""
        names = self._names(task)
        if len(names) < 2:
            return None
        cards, scores = self._by_row(names), np.zeros(len(self.session.nodes.rows))
        for index, card in enumerate(names):
            scores[cards == card] = 100.0 * 0.5**index * self._weight
        return scores

    # -------------------------------------------------------------------------------------------------------- reclaim

    def _type(self, task: Task) -> str:
        return service_type(task, self.session.jobs.get(task.job), self._kinds)

    def not_entitled(self, queue: Queue, task: Task) -> Why | None:
        """Only online services claim, and only what their quota has left."""
        account = self.accounts.by_name[queue.name]
        if (closed := self.closed(account)) is not None:
            return closed
        if (kind := self._type(task)) != ONLINE:
            return WrongService(task.key, kind)
        return next(self.limits(account, task), None)

    def denial(
        self,
        claimant: Task,
        taker: Account,  # noqa: ARG002
        unit: Sequence[Task],
        giver: Account,  # noqa: ARG002
        amount: Resource,
    ) -> Denial | None:
        """Every member must be offline work of strictly lower priority, and the unit hold a card that is asked for."""
        jobs = self.session.jobs
        mine = rank(claimant, jobs.get(claimant.job))
        for task in unit:
            if (kind := self._type(task)) != OFFLINE:
                return Protected("service-type", kind)
            if (theirs := rank(task, jobs.get(task.job))) >= mine:
                return NotLower(theirs, mine)
        names = set(self._names(claimant))
        held = {name for name, count in amount.items() if count > 0}
        if names:
            return None if names & held else Protected("cards")
        return None if held <= {CPU, MEMORY} and resources.common(amount, claimant.init_request) else OfNoUse()
