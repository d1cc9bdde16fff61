"""The ledger: what lives in a cluster, and what its nodes, queues and jobs hold. Monitors, checks and reports read it.

1. Each version of a node, queue, PodGroup or pod, and each eviction, updates the sums. The history of a scenario is
   read by `reading`; a run in virtual time feeds the ledger while it runs (`schedspec.lab.simulate.monitored`).
2. From a pod's versions follow its acts: the pod is bound, is evicted, or ends. Each monitor is notified of each act.
3. Acts at one time, or of one cycle, are one moment: a decision may be written in any order. Monitors that need all of
   it judge at the end of the moment.

The one rule: the ledger keeps what lives, so memory does not grow with the length of a history or a run.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..api.kinds import Kind
from ..observe import view
from . import amounts
from .amounts import NONE, Amounts, Object
from .holdings import QueueSums, add
from .limits import CLUSTER, QueueSpec, UnusedGuarantees, left_by_guarantees, lowest
from .rules import ROOT, Rules

LATELY = 1.0
"""Seconds for which a former spec of a queue counts beside the present one: the scheduler may have seen only that."""
BURST = 2.0
"""Maximum seconds between two acts of one decision in a cluster, because writes take time."""
SWITCHES = {"reclaim": "enableReclaimable", "preempt": "enablePreemptable"}
_MODE = "schedspec.dev/disruption-mode"


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation of a rule. `time` is on the ledger's clock, `about` names the pod or the PodGroup."""

    monitor: str
    time: float
    about: str
    text: str
    is_bind: bool = False
    """Whether a bind broke the rule. The pod may be evicted in the same moment."""
    job: str = ""
    cycle: int = 0
    """The cycle of the act, in virtual time."""
    action: str = ""
    reason: str = ""
    """The scheduler's own reason for an eviction."""


@dataclass(slots=True, eq=False)
class Eviction:
    """An eviction of a pod, as the scheduler explains it."""

    cause: str
    """The action and the preemptor: the message without its details."""
    action: str
    """`reclaim` or `preempt`, if the scheduler reports it."""
    message: str
    preemptors: Sequence[str]
    """The jobs that the cause names."""
    at: float
    number: int
    """Number of the act in the ledger."""
    cycle: int


@dataclass(slots=True, eq=False)
class Job:
    """A PodGroup or a Workload of Kueue with its pods; `key` is empty for pods of neither."""

    key: str
    groups: dict[Kind, Object] = field(default_factory=dict)
    queue: str = ""
    minimum: int = 0
    pods: dict[str, Pod] = field(default_factory=dict)
    waiting: dict[str, Pod] = field(default_factory=dict)
    """Its pods that have no node yet, in the order of their creation."""
    active: int = 0
    """Number of its pods that occupy capacity and do not leave."""
    claimed: int = 0
    """Number of the last eviction for this job in the ledger; 0 if there was none."""
    freed: Amounts = field(default_factory=dict)
    """The requests of pods evicted for this job, minus those of its pods bound since."""
    taken: Amounts = field(default_factory=dict)
    """The requests of its pods bound since the first eviction without a named preemptor."""
    bound: int = 0
    """Number of its last bind in the ledger, and the same for its other acts; 0 if there was none."""
    evicted: int = 0
    ended: int = 0
    lost_to: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Job → numbers of the first and the last eviction of this job's pods for it."""
    last_evicted: dict[tuple[str, str], int] = field(default_factory=dict)
    """Pod and cause → number of the last eviction of a pod of this name for this cause."""

    @property
    def group(self) -> Object | None:
        """The PodGroup."""
        return self.groups.get(Kind.PODGROUP)

    @property
    def loses_single_pods(self) -> bool:
        """Whether its disruption mode permits the eviction of single pods."""
        return ((self.group or {"metadata": {}})["metadata"].get("annotations") or {}).get(_MODE) == "pod"

    def waits_since(self, number: int) -> bool:
        """Whether a pod waits that was created before an act."""
        first = next(iter(self.waiting.values()), None)
        return first is not None and first.created < number


@dataclass(slots=True, eq=False)
class Pod:
    """A pod. What has a monitor of it may outlive it: it then keeps its last state."""

    key: str
    uid: str
    job: Job
    created: int
    """Number of its first version in the ledger."""
    requests: Amounts
    source: Any = None
    """Its last version, for `Ledger.shown`."""
    node: str = ""
    over: str = ""
    """`Succeeded` or `Failed`, or empty."""
    is_leaving: bool = False
    is_nominated: bool = False
    bound: int = 0
    """Number of its bind in the ledger; 0 if it was not bound."""
    eviction: Eviction | None = None

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    @property
    def holds(self) -> bool:
        """Whether it occupies capacity on its node. A pod that is leaving still does."""
        return bool(self.node) and not self.over

    @property
    def keeps(self) -> bool:
        """Whether it occupies capacity on its node and is not leaving."""
        return bool(self.node) and not self.over and not self.is_leaving and self.eviction is None


class Monitor:
    """A rule, and its judge: it is notified of each act after the ledger contains it, and reports violations."""

    NAME = ""

    def __init__(self, ledger: Ledger, rules: Rules) -> None:
        self.ledger, self.rules = ledger, rules

    def on_bound(self, pod: Pod) -> None:
        """Process a bind."""

    def on_evicted(self, pod: Pod, eviction: Eviction) -> None:
        """Process an eviction."""

    def before(self, pod: Pod, what: str) -> None:
        """Process that a pod is about to be `added`, `bind`, `evict`, `leave` or `end`."""

    def on_over(self, job: Job) -> None:
        """Process the end of a job, or of one attempt: its PodGroup is deleted."""

    def on_moment(self) -> None:
        """Process the end of a moment."""

    def close(self) -> None:
        """Process the end of the history or the run."""

    def find(self, text: str, pod: Pod, eviction: Eviction | None = None) -> None:
        """Report a violation by the bind of a pod, or by its eviction."""
        if eviction is None:
            at, number, why = self.ledger.at, self.ledger.cycle, ("", "")
        else:
            at, number, why = eviction.at, eviction.cycle, (eviction.action, eviction.message)
        found = Violation(self.NAME, at, pod.name, text, eviction is None, pod.job.key, number, *why)
        self.ledger.found.append(found)


_HOOKS = ("on_bound", "on_evicted", "before", "on_over", "on_moment", "close")


class Ledger:
    """The state of a cluster and its sums.

    Args:
        rules: The policy in force.
        shown: Returns a pod's version as the API server shows it.
        burst: Maximum seconds between acts of one decision; 0 in virtual time, where a decision takes no time.
    """

    def __init__(self, rules: Rules, *, shown: Callable[[Any], Object] = lambda it: it, burst: float = BURST) -> None:
        self.rules, self.shown, self.burst = rules, shown, burst
        self.at, self.cycle = 0.0, 0
        self.next = 0.0
        """At the end of a moment, the time of the next one."""
        self.counts_binds = True
        """Whether pods that are new on their nodes were bound by the scheduler."""
        self.number = 0
        """Number of versions and acts so far."""
        self.found: list[Violation] = []
        self.jobs: dict[str, Job] = {}
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, Object] = {}
        self.has: dict[str, Amounts] = {}
        """The allocatable amounts of each node."""
        self.on_node: dict[str, Amounts] = {}
        """What the pods on each node hold, with those that are leaving."""
        self.pods_on: dict[str, dict[str, Pod]] = {}
        self.free: Amounts = {}
        """Amounts on all nodes that no queue holds."""
        self.queues: dict[str, QueueSpec] = {}
        self.keeps_guarantees = False
        """Whether the policy keeps the guarantees of queues, and a queue has one."""
        self.sums = QueueSums(is_tree=rules.is_tree)
        self.unnamed: Amounts = {}
        """The requests of all pods evicted without a named preemptor."""
        self.changed = 0
        """Number of the last change of a node or a queue."""
        self.evicted_at: list[Pod] = []
        """The victims of this moment."""
        self._before: dict[str, list[tuple[float, QueueSpec]]] = {}
        """Queue → its former specs, each with the time at which it was replaced."""
        self._lineages: dict[str, tuple[str, ...]] = {}
        self._limits: dict[str, Amounts] = {}
        self._unused: UnusedGuarantees | None = None
        self._empty: dict[str, Job] = {}
        """Jobs without objects: they are forgotten at the end of the moment unless their objects return."""
        self._group_changes: dict[str, int] = {}
        """Number of the last creation or deletion of a PodGroup, for the last few of them."""
        self._ends: list[tuple[int, int]] = []
        """Pods that ended by themselves: the number of the last eviction of their job, and of their end.

        Both grow: an end that a later one of a job evicted earlier makes superfluous is not kept.
        """
        self._hooks: dict[str, list[Callable[..., None]]] = {name: [] for name in _HOOKS}

    def attach(self, monitor: Monitor) -> None:
        """Notify a monitor from now on."""
        for name in _HOOKS:
            if getattr(type(monitor), name) is not getattr(Monitor, name):
                self._hooks[name].append(getattr(monitor, name))

    def _notify(self, hook: str, *given: object) -> None:
        for process in self._hooks[hook]:
            process(*given)

    def advance(self, at: float, cycle: int = 0) -> None:
        """Continue at a time, or with a cycle of the scheduler; what happens then is another moment."""
        if cycle or at != self.at:
            self.next = at if self.burst or not cycle else math.inf
            self._end_moment()
            self.at, self.cycle = at, cycle or self.cycle

    def _end_moment(self) -> None:
        for process in self._hooks["on_moment"]:
            process()
        self.evicted_at.clear()
        for key in [*self._empty]:
            job = self._empty.pop(key)
            if not job.pods and not job.groups:
                self.jobs.pop(key, None)
        if self._before:
            self._before = {
                name: recent
                for name, specs in self._before.items()
                if (recent := [(at, spec) for at, spec in specs if at >= self.at - LATELY])
            }
            self._unused = None

    def close(self) -> list[Violation]:
        """Judge what is still open; return all violations, in order of time."""
        self.next = self.at
        self._end_moment()
        self._notify("close")
        self.found.sort(key=lambda found: found.time)
        return self.found

    # ------------------------------------------------------------------------------------------------------- objects

    def see_node(self, name: str, node: Object | None) -> None:
        """Process a version of a node; None if the node is gone."""
        known, before = self.nodes.pop(name, None), self.has.pop(name, None)
        after = None
        if node is not None:
            status = node.get("status") or {}
            self.nodes[name] = node
            after = self.has[name] = amounts.parse(status.get("allocatable") or status.get("capacity"))
        if before != after:
            for part, sign in ((before or {}, -1), (after or {}, 1)):
                _add(self.free, part, sign)
            self._limits.clear()
        if before != after or (known or {}).get("spec") != (node or {}).get("spec"):
            self._change()

    def see_queue(self, name: str, queue: Object | None) -> None:
        """Process a version of a queue; None if it is gone."""
        before = self.queues.pop(name, None)
        after = None
        if queue is not None:
            after = self.queues[name] = QueueSpec.of(queue, self.rules)
        if before == after:
            return
        if before is not None:
            self._before.setdefault(name, []).append((self.at, before))
        self._lineages.clear()
        self._limits.clear()
        self._unused = None
        self.keeps_guarantees = self.rules.keeps_guarantees and any(it.guarantee for it in self.queues.values())
        self._change()
        self.sums.put(name, after.parent if after is not None else "")

    def _change(self) -> None:
        self.number += 1
        self.changed = self.number

    def see_group(self, kind: Kind, key: str, group: Object | None) -> None:
        """Process a version of a PodGroup or a Workload; None if it is gone."""
        job = self.job(key)
        was_there = kind in job.groups
        if group is not None:
            job.groups[kind] = group
        elif not was_there:
            return
        else:
            del job.groups[kind]
        queue = next((view.queue_named_by(job.groups[it]) for it in view.QUEUED if it in job.groups), "")
        if queue != job.queue:
            kept = [pod for pod in job.pods.values() if pod.keeps]
            for pod in kept:
                self._hold(job.queue, pod.requests, -1)
            job.queue = queue
            for pod in kept:
                self._hold(queue, pod.requests, 1)
        spec = (job.group or {}).get("spec") or {}
        job.minimum = int(spec.get("minMember") or 0)
        if kind in view.QUEUED and was_there != (group is not None):
            self.number += 1
            self._group_changes.pop(key, None)
            self._group_changes[key] = self.number
            if len(self._group_changes) > 8:
                del self._group_changes[next(iter(self._group_changes))]
        if group is None:
            self._forget_if_empty(job)
            self._notify("on_over", job)

    def job(self, key: str) -> Job:
        """Return the job of a key."""
        found = self.jobs.get(key)
        if found is None:
            found = self.jobs[key] = Job(key)
        return found

    def _forget_if_empty(self, job: Job) -> None:
        if not job.pods and not job.groups and job.key:
            self._empty[job.key] = job

    # ---------------------------------------------------------------------------------------------------------- pods

    def see_pod(
        self,
        key: str,
        uid: str,
        group: str,
        requests: Amounts,
        source: Any,
        *,
        node: str = "",
        over: str = "",
        is_leaving: bool = False,
        is_nominated: bool = False,
    ) -> None:
        """Process a version of a pod. A pod with another uid, job or node is another pod."""
        pod = self.pods.get(key)
        if pod is not None and (pod.uid != uid or pod.job.key != group or (pod.node and pod.node != node)):
            self.lose_pod(key)
            pod = None
        if pod is None:
            self.number += 1
            job = self.job(group)
            pod = Pod(key, uid, job, self.number, requests)
            self._notify("before", pod, "added")
            self.pods[key] = job.pods[key] = pod
            if not node and not over:
                job.waiting[key] = pod
        pod.source = source
        pod.is_nominated = pod.is_nominated or is_nominated
        if pod.requests is not requests and pod.requests != requests:
            self._count(pod, -1)
            pod.requests = requests
            self._count(pod, 1)
        if over and not pod.over:
            self._end(pod, over)
        if is_leaving and not pod.is_leaving:
            self._notify("before", pod, "leave")
            self._count(pod, -1)
            pod.is_leaving = True
            self._count(pod, 1)
        if node and not pod.node:
            self._bind(pod, node)

    def _bind(self, pod: Pod, node: str) -> None:
        job = pod.job
        if not pod.over:
            self._notify("before", pod, "bind")
        self.number += 1
        pod.node, pod.bound = node, self.number
        job.waiting.pop(pod.key, None)
        if pod.over:
            return
        self.pods_on.setdefault(node, {})[pod.key] = pod
        self._count(pod, 1)
        if not self.counts_binds:
            return
        job.bound = self.number
        if self.unnamed:
            job.taken = amounts.total((job.taken, pod.requests))
        self._notify("on_bound", pod)
        if job.freed:
            left = {name: amount - pod.requests.get(name, NONE) for name, amount in job.freed.items()}
            job.freed = {name: amount for name, amount in left.items() if amount > 0}

    def evict(self, key: str, cause: str, action: str, message: str, preemptors: Sequence[str]) -> None:
        """Process an eviction, unless the pod is a victim already."""
        pod = self.pods.get(key)
        if pod is None or pod.eviction is not None:
            return
        self._notify("before", pod, "evict")
        self.number += 1
        job, number = pod.job, self.number
        eviction = Eviction(cause, action, message, preemptors, self.at, number, self.cycle)
        self._count(pod, -1)
        pod.eviction = eviction
        self._count(pod, 1)
        job.evicted = number
        self.evicted_at.append(pod)
        for name in preemptors:
            job.lost_to[name] = job.lost_to.get(name, (number, number))[0], number
            if (preemptor := self.jobs.get(name)) is not None:
                preemptor.claimed = number
                preemptor.freed = amounts.total((preemptor.freed, pod.requests))
        if not preemptors:
            self.unnamed = amounts.total((self.unnamed, pod.requests))
        self._notify("on_evicted", pod, eviction)

    def lose_pod(self, key: str) -> None:
        """Process that a pod is gone."""
        pod = self.pods.get(key)
        if pod is None:
            return
        if not pod.over:
            self._end(pod, "gone")
        del self.pods[key]
        del pod.job.pods[key]
        pod.job.waiting.pop(key, None)
        self._forget_if_empty(pod.job)

    def _end(self, pod: Pod, over: str) -> None:
        self._notify("before", pod, "end")
        job = pod.job
        self._count(pod, -1)
        pod.over = over
        job.waiting.pop(pod.key, None)
        if not pod.node:
            return
        here = self.pods_on[pod.node]
        here.pop(pod.key, None)
        if not here:
            del self.pods_on[pod.node]
        if pod.eviction is None:
            self.number += 1
            job.ended = self.number
            while self._ends and self._ends[-1][0] >= job.evicted:
                self._ends.pop()
            self._ends.append((job.evicted, self.number))

    def _count(self, pod: Pod, sign: int) -> None:
        """Add what a pod holds to the sums, or remove it from them."""
        if not pod.holds:
            return
        if pod.keeps:
            pod.job.active += sign
            self._hold(pod.job.queue, pod.requests, sign)
        if sign == -1 or pod.key in self.pods_on.get(pod.node, {}):
            add(self.on_node, pod.node, pod.requests, sign)

    def _hold(self, queue: str, requests: Amounts, sign: int) -> None:
        if queue:
            self.sums.hold(queue, requests, sign)
            _add(self.free, requests, -sign)

    # -------------------------------------------------------------------------------------------------------- queries

    def has_changed(self, since: int, own: set[str]) -> bool:
        """Whether something changed from outside after an act: a change that no eviction explains.

        A node or a queue changed, a job other than `own` was created or deleted, or a pod ended by itself. Pods of a
        job that was evicted since may end as a consequence.
        """
        if self.changed > since or any(at > since for key, at in self._group_changes.items() if key not in own):
            return True
        index = bisect.bisect_right(self._ends, since, key=lambda end: end[0]) - 1
        return index >= 0 and self._ends[index][1] > since

    def lineage(self, queue: str) -> tuple[str, ...]:
        """Return the queue and, where queues form a tree, its ancestors below the root."""
        found = self._lineages.get(queue)
        if found is None:
            line = self.sums.line(queue) if self.rules.is_tree else (queue,)
            found = self._lineages[queue] = tuple(name for name in line if name not in ("", ROOT))
        return found

    def below(self, queue: str) -> Amounts:
        """Return what a queue holds with its descendants, where queues form a tree."""
        return self.sums.below.get(queue, {})

    def lately(self, queue: str) -> list[QueueSpec]:
        """Return the specs that the scheduler may have seen: those valid now and shortly before."""
        now = [self.queues[queue]] if queue in self.queues else []
        return now + [spec for at, spec in self._before.get(queue, ()) if at >= self.at - LATELY]

    @property
    def unused(self) -> UnusedGuarantees:
        """The unused guarantees of queues; of recent specs of a queue, the smaller amounts count."""
        if self._unused is None:
            lines = {name: self.lineage(name) for name in self.queues if name != ROOT}
            parents = {name: line[1] if len(line) > 1 else CLUSTER for name, line in lines.items()}
            guarantees = {}
            for name in parents:
                recent = [spec.guarantee for spec in self.lately(name)]
                common = set.intersection(*map(set, recent))
                if common:
                    guarantees[name] = {dimension: min(spec[dimension] for spec in recent) for dimension in common}
            self._unused = UnusedGuarantees(parents, guarantees, self.below)
        return self._unused

    def limits(self, queue: str) -> Amounts:
        """Return the upper limits of a queue: its capability, and what the guarantees of other queues leave."""
        found = self._limits.get(queue)
        if found is None:
            spec, remainder = self.queues.get(queue), Amounts()
            if self.rules.keeps_guarantees:
                total = amounts.total(self.has.values())
                remainder = left_by_guarantees(total, self.queues, self.lineage(queue), is_tree=self.rules.is_tree)
            found = self._limits[queue] = lowest(remainder, spec.capability if spec is not None else {})
        return found

    def reserved(self, queue: str) -> Amounts:
        """Return the capacity of evicted pods that the scheduler reserves for waiting jobs of a queue."""
        return amounts.total(
            amounts.at_most(job.freed, amounts.total(pod.requests for pod in job.waiting.values()))
            for job in self.jobs.values()
            if job.freed and job.waiting and queue in self.lineage(job.queue)
        )


def _add(held: Amounts, more: Amounts, sign: int) -> None:
    for dimension, amount in more.items():
        held[dimension] = held.get(dimension, NONE) + sign * amount
