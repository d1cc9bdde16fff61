"""The ledger: what lives in a cluster, and what its nodes, queues and jobs hold. Monitors, checks and reports read it.

1. Each version of a node, queue, PodGroup or pod, and each eviction, updates the sums. The history of a scenario is
   read by `reading`; a run in virtual time feeds the ledger while it runs (`schedspec.lab.simulate.monitored`).
2. From a pod's versions follow its acts: the pod is bound, is evicted, or ends. Each monitor is notified of each act.
3. Acts at one time, or of one cycle, are one moment: a decision may be written in any order. Monitors that need all of
   it judge at the end of the moment.

The one rule: the ledger keeps what lives, so memory does not grow with the length of a history or a run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..api.kinds import Kind
from ..observe import view
from . import amounts
from .amounts import NONE, Amounts, Object
from .limits import CLUSTER, QueueSpec, UnusedGuarantees, largest_guarantee, least_guarantee, left_by_guarantees, lowest
from .lives import Changes, Eviction, Job, Pod, QueueSums, Violation, add, change
from .rules import ROOT, Rules

LATELY = 1.0
"""Seconds for which a former spec of a queue counts beside the present one: the scheduler may have seen only that."""
BURST = 2.0
"""Maximum seconds between two acts of one decision in a cluster, because writes take time."""
SWITCHES = {"reclaim": "enableReclaimable", "preempt": "enablePreemptable"}


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
        act = eviction or Eviction("", "", "", (), self.ledger.at, pod.bound, self.ledger.cycle)
        why = (act.cycle, act.action, act.message)
        found = Violation(self.NAME, act.at, pod.name, text, eviction is None, pod.job.key, *why, pod.key)
        self.ledger.found.append(found)


_HOOKS = ("on_bound", "on_evicted", "before", "on_over", "on_moment", "close")


class Ledger:
    """The state of a cluster and its sums.

    Args:
        shown: Returns a pod's version as the API server shows it.
        burst: Maximum seconds between acts of one decision; 0 for a simulated load, in which a decision takes no time.
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
        self.quotas: dict[tuple[Kind, str], Object] = {}  # the ClusterQueues and Cohorts of Kueue
        self.keeps_guarantees = False
        """Whether the policy keeps the guarantees of queues, and a queue has one."""
        self.sums = QueueSums(is_tree=rules.is_tree)
        self.changes = Changes()
        self.victims: list[Pod] = []
        self._before: dict[str, list[tuple[float, QueueSpec]]] = {}
        """Queue → its former specs, each with the time at which it was replaced."""
        self._lineages: dict[str, tuple[str, ...]] = {}
        self._limits: dict[str, Amounts] = {}
        self._unused: UnusedGuarantees | None = None
        self._empty: dict[str, Job] = {}
        """Jobs without objects: they are forgotten at the end of the moment unless their objects return."""
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
        self.victims.clear()
        for key in [*self._empty]:
            job = self._empty.pop(key)
            if not job.pods and not job.groups:
                self.jobs.pop(key, None)
        if self._before:
            self._unused = None
            for name, specs in [*self._before.items()]:
                specs[:] = [(at, spec) for at, spec in specs if at >= self.at - LATELY]
                if not specs:
                    del self._before[name]

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
                change(self.free, part, sign)
            self._limits.clear()
        if before != after or (known or {}).get("spec") != (node or {}).get("spec"):
            self.changes.of_cluster = self.number = self.number + 1

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
        self.keeps_guarantees = bool(self.rules.queue_plugin) and any(it.guarantee for it in self.queues.values())
        self.changes.of_cluster = self.number = self.number + 1
        self.sums.put(name, after.parent if after is not None else "")

    def see_quota(self, kind: Kind, name: str, quota: Object | None) -> None:
        """Process a version of a ClusterQueue or a Cohort; None if it is gone."""
        before = self.quotas.pop((kind, name), None)
        if quota is not None:
            self.quotas[kind, name] = quota
        if (before or {}).get("spec") != (quota or {}).get("spec"):
            self.changes.of_cluster = self.number = self.number + 1

    def see_group(self, kind: Kind, key: str, group: Object | None) -> None:
        """Process a version of a PodGroup or a Workload; None if it is gone."""
        job = self.job(key)
        was_there = job.groups.pop(kind, None) is not None
        if group is not None:
            job.groups[kind] = group
        queue = next((view.queue_named_by(job.groups[it]) for it in view.QUEUED if it in job.groups), "")
        if queue != job.queue:
            for pod in (pod for pod in job.pods.values() if pod.keeps):
                self._hold(job.queue, pod.requests, -1)
                self._hold(queue, pod.requests, 1)
            job.queue = queue
        job.minimum = view.minimum_of(job.gang or {})
        if kind in view.QUEUED and was_there != (group is not None):
            self.number += 1
            self.changes.of_job(key, self.number)
        if group is None:
            self._forget_if_empty(job)
            self._notify("on_over", job)

    def job(self, key: str) -> Job:
        return self.jobs.get(key) or self.jobs.setdefault(key, Job(key))

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
            self._resize(pod, requests)
        if over and not pod.over:
            self._end(pod, over)
        if is_leaving and not pod.is_leaving:
            self._notify("before", pod, "leave")
            self._keep(pod, -1)
            pod.is_leaving = True
        if node and not pod.node:
            self._bind(pod, node)

    def _resize(self, pod: Pod, requests: Amounts) -> None:
        self._keep(pod, -1)
        if pod.holds:
            add(self.on_node, pod.node, pod.requests, -1)
            add(self.on_node, pod.node, requests, 1)
        pod.requests = requests
        self._keep(pod, 1)

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
        add(self.on_node, node, pod.requests, 1)
        self._keep(pod, 1)
        if not self.counts_binds:
            return
        job.bound = self.number
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
        eviction = Eviction(cause, action, message, preemptors, self.at, number, self.cycle, self.changes.of_cluster)
        self._keep(pod, -1)
        pod.eviction = eviction
        job.evicted = number
        self.victims.append(pod)
        for name in preemptors:
            job.lost_to[name] = job.lost_to.get(name, (number, number))[0], number
            if (preemptor := self.jobs.get(name)) is not None:
                preemptor.claimed = number
                preemptor.freed = amounts.total((preemptor.freed, pod.requests))
        self._notify("on_evicted", pod, eviction)

    def lose_pod(self, key: str) -> None:
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
        self._keep(pod, -1)
        pod.over = over
        job.waiting.pop(pod.key, None)
        if not pod.node:
            return
        add(self.on_node, pod.node, pod.requests, -1)
        here = self.pods_on[pod.node]
        here.pop(pod.key, None)
        if not here:
            del self.pods_on[pod.node]
        if pod.eviction is None:
            self.number += 1
            job.ended = self.number
            self.changes.of_pod(job.evicted, self.number)

    def _keep(self, pod: Pod, sign: int) -> None:
        """Add what a pod holds to the sums of its job and queue, or remove it, unless the pod leaves."""
        if pod.keeps:
            pod.job.active += sign
            self._hold(pod.job.queue, pod.requests, sign)

    def _hold(self, queue: str, requests: Amounts, sign: int) -> None:
        if queue:
            self.sums.hold(queue, requests, sign)
            change(self.free, requests, -sign)

    # -------------------------------------------------------------------------------------------------------- queries

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
        """The unused guarantees of queues; of recent specs, the smaller amounts count, for the own queue the larger.

        If pods with cards count no cpu and memory, nothing counts as used: the ledger does not know which these are.
        """
        if self._unused is None:
            lines = {name: self.lineage(name) for name in self.queues if name != ROOT}
            parents = {name: line[1] if len(line) > 1 else CLUSTER for name, line in lines.items()}
            guarantees = {name: least_guarantee(self.lately(name)) for name in parents}
            own = {name: largest_guarantee(self.lately(name)) for name in parents}
            held = (lambda _: {}) if self.rules.are_cards_unlimited else self.below
            self._unused = UnusedGuarantees(parents, guarantees, held, own)
        return self._unused

    def limits(self, queue: str) -> Amounts:
        """Return the upper limits of a queue: its capability, and what the guarantees of other queues leave."""
        found = self._limits.get(queue)
        if found is None:
            spec, remainder = self.queues.get(queue), Amounts()
            if self.rules.counts_guarantees:
                total = amounts.total(self.has.values())
                remainder = left_by_guarantees(total, self.queues, self.lineage(queue), is_tree=self.rules.is_tree)
            found = self._limits[queue] = lowest(remainder, spec.capability if spec is not None else {})
        return found
