"""Sum the resources that jobs, nodes and queues of a simulated load hold; each input and outcome updates the sums.

Inputs are the objects that the core received. Limits and requests are read from them, as their users wrote them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import msgspec

from ...monitors import amounts, protection
from ...monitors.amounts import NONE, Amounts, Object
from ...monitors.gangs import SWITCHES
from ...monitors.holdings import QueueSums, add
from ...monitors.object_state import holds
from ...monitors.queues import usage
from ...monitors.queues.unused import CLUSTER, UnusedGuarantees
from ...monitors.rules import ROOT, Rules
from ...scheduler.model import objects
from ...scheduler.model.task import job_key_of

Cause = tuple[str, str]
"""The job for which a pod is evicted, and the action."""
OTHER_WRITER: Cause = ("", "")
"""The cause of a deletion that the scheduler did not decide: the owner of a broken gang deletes its pods."""


@dataclass(slots=True)
class Loss:
    """The pods that a job lost to one preemptor."""

    pods: set[str]
    changes: int
    """`Monitors._changes` at the time of the loss."""
    passed_in: int | None = None
    """The cycle in which the preemptor lost the capacity to something other than this job; None if it did not."""
    passed_to: str = ""
    """The job to which the capacity passed, if the preemptor had lost none to that job before."""
    has_returned: bool = False
    """Whether this job got the capacity back by an eviction."""


@dataclass(slots=True)
class LedgerJob:
    """A job that has not ended."""

    name: str
    queue: str
    pods: int
    minimum: int
    given: dict[str, str]
    """Request of each pod that is not in `unequal`, as the user wrote it."""
    requests: Amounts
    """The same as amounts, without zeros."""
    loses_single_pods: bool = False
    """Whether its disruption mode permits the eviction of single pods."""
    containers: Any = None
    """The containers of pods that were already compared with `requests`; equal pods share them."""
    unequal: dict[str, Amounts] = field(default_factory=dict)
    """Requests of the pods of a state that request something else."""
    protected: dict[str, dict[str, str]] = field(default_factory=dict)
    """Pod → action → why a field of the pod protects it."""
    placed: dict[str, str] = field(default_factory=dict)
    """Pod → node, including victims that still terminate."""
    victims: dict[str, Cause] = field(default_factory=dict)
    lost: dict[str, Loss] = field(default_factory=dict)
    """Preemptor → the last pods that this job lost to it."""
    evicted: set[str] = field(default_factory=set)
    """Jobs that were evicted for this job and did not get the capacity back."""
    freed: Amounts = field(default_factory=dict)
    """The requests of pods evicted for this job, minus the requests of its pods placed since."""

    @property
    def active(self) -> int:
        """Number of placed pods that are not victims."""
        return len(self.placed) - len(self.victims)

    def of(self, pod: str) -> Amounts:
        """Return what a pod requests."""
        return self.unequal.get(pod, self.requests)

    def total(self, pods: Iterable[str]) -> Amounts:
        """Return what some of its pods request."""
        if self.unequal:
            return amounts.total(map(self.of, pods))
        return times(self.requests, sum(1 for _ in pods))


class Books:
    """The sums. A queue holds the requests of its pods except victims; a node those of all its pods."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self.jobs: dict[str, LedgerJob] = {}
        self.has: dict[str, Amounts] = {}
        """The allocatable amounts of each node."""
        self.on_node: dict[str, Amounts] = {}
        self._sums = QueueSums(is_tree=rules.is_tree)
        self.free: Amounts = {}
        """Amounts on all nodes that no queue holds."""
        self._specs: dict[str, objects.QueueSpec] = {}
        self.capability: dict[str, Amounts] = {}
        self.guarantee: dict[str, Amounts] = {}
        """The guarantees of the queues that have one."""
        self.closed_to_reclaim: set[str] = set()
        self._keeps_guarantees = rules.queue_plugin in usage.GUARANTEED
        self._foreign: dict[str, tuple[str, Amounts]] = {}
        """Pod of no job → its node, and what it holds there."""
        self._leaving: dict[tuple[str, str], None] = {}
        """Job and pod of the pods that were deleted in this cycle, not evicted."""
        self._lineages: dict[str, tuple[str, ...]] = {}
        """The part of each queue's line below the root."""
        self._limits: dict[str, Amounts] = {}
        self._unused: UnusedGuarantees | None = None

    # ------------------------------------------------------------------------------------------------------- objects

    def see_node(self, name: str, node: objects.Node | None) -> bool:
        """Process a version of a node, None if it is gone; return whether its allocatable amounts have changed."""
        before, after = self.has.pop(name, None), None
        if node is not None:
            after = self.has[name] = amounts.parse(node.status.allocatable or node.status.capacity)
        if before == after:
            return False
        for part, sign in ((before or {}, -1), (after or {}, 1)):
            _add(self.free, part, sign)
        self._limits.clear()
        return True

    def see_queue(self, name: str, queue: objects.Queue | None) -> bool:
        """Process a version of a queue, None if it is gone; return whether its spec has changed."""
        before, after = self._specs.pop(name, None), None
        for known in (self.capability, self.guarantee):
            known.pop(name, None)
        self.closed_to_reclaim.discard(name)
        if queue is not None:
            after = self._specs[name] = queue.spec
            self.capability[name] = usage.limits(after.capability, self._rules)
            guaranteed = amounts.parse(after.guarantee.resource if after.guarantee is not None else None)
            if name != ROOT and guaranteed:
                self.guarantee[name] = guaranteed
            if after.reclaimable is False:
                self.closed_to_reclaim.add(name)
        if before == after:
            return False
        self._sums.put(name, after.parent if after is not None else "")
        self._lineages.clear()
        self._limits.clear()
        self._unused = None
        return True

    def see_pod(self, pod: objects.Pod) -> None:
        """Process a version of a pod: the requests and the deletion of a job's pod, or what any other pod holds."""
        key, name = pod.metadata.key, job_key_of(pod)
        job = self.jobs.get(name)
        if job is None:
            self._see_foreign(key, as_shown(pod))
            return
        if pod.spec.containers is not job.containers and key not in job.placed:
            self._see_requests(job, key, pod)
        if pod.metadata.deletion_timestamp is not None and key not in job.victims:
            self._leaving[name, key] = None

    def _see_requests(self, job: LedgerJob, key: str, pod: objects.Pod) -> None:
        meta, spec = pod.metadata, pod.spec
        is_plain = len(spec.containers or ()) == 1 and not spec.init_containers and not spec.overhead
        own = spec.containers[0].resources if is_plain else None
        is_equal = own is not None and not own.limits and own.requests == job.given  # spares parsing most pods
        if not is_equal:
            parsed = amounts.of_pod(as_shown(pod))
            requests = {name: amount for name, amount in parsed.items() if amount > 0 and name != "pods"}
            is_equal = requests == job.requests
            if not is_equal:
                job.unequal[key] = requests
        fields = {
            "metadata": {"labels": meta.labels, "annotations": meta.annotations, "namespace": meta.namespace},
            "spec": {"priorityClassName": spec.priority_class_name},
        }
        why = {it: text for it in SWITCHES if (text := protection.protection_of(fields, it, self._rules))}
        if why:
            job.protected[key] = why
        elif is_equal:
            job.containers = spec.containers

    def _see_foreign(self, key: str, pod: Object) -> None:
        self.lose_pod(key)
        if holds(pod):
            node, held = pod["spec"]["nodeName"], amounts.of_pod(pod)
            self._foreign[key] = node, held
            add(self.on_node, node, held, 1)

    def lose_pod(self, key: str) -> None:
        """Process the end of a pod of no job; those of jobs are released before."""
        if (known := self._foreign.pop(key, None)) is not None:
            add(self.on_node, *known, -1)

    # ---------------------------------------------------------------------------------------------------------- queues

    def lineage(self, queue: str) -> tuple[str, ...]:
        """Return the queue and, where queues form a tree, its ancestors below the root."""
        found = self._lineages.get(queue)
        if found is None:
            found = self._lineages[queue] = tuple(name for name in self._sums.line(queue) if name != ROOT)
        return found

    def below(self, queue: str) -> Amounts:
        """Return what a queue holds with its descendants."""
        return self._sums.below.get(queue, {})

    @property
    def unused(self) -> UnusedGuarantees:
        """The unused guarantees of queues."""
        if self._unused is None:
            lines = {name: self.lineage(name) for name in self._specs if name != ROOT}
            parents = {name: line[1] if len(line) > 1 else CLUSTER for name, line in lines.items()}
            self._unused = UnusedGuarantees(parents, self.guarantee, self.below)
        return self._unused

    def limits(self, queue: str) -> Amounts:
        """Return the upper limits of a queue: its capability, and what the guarantees of other queues leave."""
        found = self._limits.get(queue)
        if found is None:
            remainder: Amounts = {}
            if self._keeps_guarantees:
                others = [usage.Guaranteed(it, self._specs[it].parent, own) for it, own in self.guarantee.items()]
                total = amounts.total(self.has.values())
                remainder = usage.left_by_guarantees(total, others, self.lineage(queue), is_tree=self._rules.is_tree)
            found = self._limits[queue] = usage.lowest(remainder, self.capability.get(queue, {}))
        return found

    def left_in(self, queue: str) -> Amounts:
        """Return what a queue's capability leaves to its descendants."""
        held = self.below(queue)
        return {name: most - held.get(name, NONE) for name, most in self.capability.get(queue, {}).items()}

    def leaves_guarantees(self, more: Amounts) -> bool:
        """Whether what queues are guaranteed and do not use would be free if evicted pods still held `more`."""
        return not self._keeps_guarantees or self.unused.would_be_free(self.free, more)

    def kept(self, queue: str) -> Amounts:
        """Return the capacity of evicted pods that the scheduler reserves for waiting jobs of a queue."""
        waiting = (job for job in self.jobs.values() if job.freed and queue in self.lineage(job.queue))
        return amounts.total(amounts.at_most(job.freed, times(job.requests, job.pods - job.active)) for job in waiting)

    # ------------------------------------------------------------------------------------------------------------ acts

    def place(self, job: LedgerJob, pod: str, node: str) -> None:
        requests = job.of(pod)
        job.placed[pod] = node
        job.freed = {name: max(amount - requests.get(name, NONE), NONE) for name, amount in job.freed.items()}
        add(self.on_node, node, requests, 1)
        self._hold(job.queue, requests, 1)

    def evict(self, job: LedgerJob, pod: str, cause: Cause) -> None:
        job.victims[pod] = cause
        self._hold(job.queue, job.of(pod), -1)
        if (preemptor := self.jobs.get(cause[0])) is not None:
            preemptor.freed = amounts.total((preemptor.freed, job.of(pod)))

    def release(self, job: LedgerJob, pod: str) -> None:
        add(self.on_node, job.placed.pop(pod), job.of(pod), -1)
        if job.victims.pop(pod, None) is None:
            self._hold(job.queue, job.of(pod), -1)

    def end_cycle(self) -> None:
        """Let the pods go that were deleted in the last cycle: their queues hold them no longer."""
        for name, pod in self._leaving:
            job = self.jobs.get(name)
            if job is not None and pod in job.placed and pod not in job.victims:
                self.evict(job, pod, OTHER_WRITER)
        self._leaving.clear()

    @contextmanager
    def without(self, pods: Iterable[tuple[str, str]]) -> Iterator[None]:
        """Count pods as gone meanwhile, given as (job, pod): a decision's binds may use what its victims free."""
        jobs = ((self.jobs.get(name), pod) for name, pod in pods)
        held = [(job.queue, job.of(pod)) for job, pod in jobs if job and pod in job.placed and pod not in job.victims]
        for queue, requests in held:
            self._hold(queue, requests, -1)
        try:
            yield
        finally:
            for queue, requests in held:
                self._hold(queue, requests, 1)

    def _hold(self, queue: str, requests: Amounts, sign: int) -> None:
        self._sums.hold(queue, requests, sign)
        _add(self.free, requests, -sign)


def _add(held: Amounts, more: Amounts, sign: int) -> None:
    for dimension, amount in more.items():
        held[dimension] = held.get(dimension, NONE) + sign * amount


def times(requests: Amounts, pods: int) -> Amounts:
    """Return the requests of this many equal pods."""
    return {dimension: amount * Decimal(pods) for dimension, amount in requests.items()}


def as_shown(item: msgspec.Struct) -> Object:
    """Return an object without its empty fields, as the API server shows it."""
    found: Object = _pruned(msgspec.to_builtins(item))
    return found


def _pruned(given: Any) -> Any:
    if isinstance(given, dict):
        found = ((name, _pruned(value)) for name, value in given.items() if value is not None)
        return {name: value for name, value in found if value not in ({}, [], "")} | (
            {"uid": ""} if given.get("uid") == "" else {}
        )
    return [_pruned(value) for value in given] if isinstance(given, (list, tuple)) else given
