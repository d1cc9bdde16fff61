"""Monitor: no Workload of Kueue is evicted that could have stayed.

Kueue admits and evicts a Workload as a whole and counts quota, not nodes. An eviction was needless if, once the
preemptor runs, the evicted Workload would still fit beside all running pods: within the total of the nodes, within the
quotas of its ClusterQueue and cohorts where these are known, within the capability of its queue and of the queue's
ancestors, and with the guarantees of the other queues kept free. If other
preemptors have evicted by then, they must run too, because the capacity of their victims is not free. The monitor does
not judge if another pod ended, or nodes, queues or quotas changed meanwhile.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ...api.kinds import Kind
from .. import amounts, quotas
from ..amounts import NONE
from ..ledger import Ledger, Monitor
from ..lives import Eviction, Job, Pod
from ..rules import Rules

_PREEMPTOR = re.compile(r"accommodate a workload \(UID: ([^,)]+)")


@dataclass(slots=True)
class _Preemption:
    """The evictions of one Workload's pods for one preemptor."""

    job: Job
    preemptor: Job
    eviction: Eviction
    admission: quotas.Admission | None
    """What the Workload used when it was evicted."""
    pods: list[Pod] = field(default_factory=list)
    is_served: bool = False
    is_disturbed: bool = False
    """Whether a pod ended meanwhile that was not evicted."""


class NeedlessWorkloadMonitor(Monitor):
    """Judges the evictions of Workloads when all preemptors run."""

    NAME = "needless-workload-eviction"

    def __init__(self, ledger: Ledger, rules: Rules) -> None:
        super().__init__(ledger, rules)
        self._open: dict[tuple[str, str], _Preemption] = {}

    def on_evicted(self, pod: Pod, eviction: Eviction) -> None:
        """Add an eviction to those of its Workload."""
        named = _PREEMPTOR.search(eviction.message)
        if named is None or Kind.WORKLOAD not in pod.job.groups:
            return
        found = self._open.get((pod.job.key, named[1]))
        if found is None:
            jobs = self.ledger.jobs.values()
            uids = ((job, job.groups[Kind.WORKLOAD]["metadata"]["uid"]) for job in jobs if Kind.WORKLOAD in job.groups)
            preemptor = next((job for job, uid in uids if uid == named[1]), None)
            if preemptor is None:
                return
            admission = quotas.admission_of(pod.job.groups[Kind.WORKLOAD])
            found = _Preemption(pod.job, preemptor, eviction, admission)
            self._open[pod.job.key, named[1]] = found
        found.pods.append(pod)

    def before(self, pod: Pod, what: str) -> None:
        """Note that a pod ends that was not evicted."""
        if what == "end" and pod.holds and pod.eviction is None:
            for found in self._open.values():
                found.is_disturbed = found.is_disturbed or pod.bound < found.eviction.number

    def on_bound(self, pod: Pod) -> None:
        """Judge all evictions as soon as every preemptor runs."""
        mine = [found for found in self._open.values() if found.preemptor is pod.job]
        for found in mine:
            sets = found.preemptor.groups.get(Kind.WORKLOAD, {"spec": {}})["spec"].get("podSets") or ()
            binds = sum(it.bound > found.eviction.number for it in found.preemptor.pods.values())
            found.is_served = binds >= sum(part["count"] for part in sets)
        if not mine or not all(found.is_served for found in self._open.values()):
            return
        for found in self._open.values():
            is_changed = self.ledger.changes.of_cluster > found.eviction.number
            if not found.is_disturbed and not is_changed and self._fits(found):
                text = f"Workload {found.job.key} was evicted although its quota was free beside everything that runs"
                self.find(text, found.pods[0], found.eviction)
        self._open.clear()

    def _fits(self, found: _Preemption) -> bool:
        ledger, unit = self.ledger, amounts.total(pod.requests for pod in found.pods)
        if ledger.quotas and not self._has_quota(found):
            return False
        own = amounts.total(pod.requests for pod in found.job.pods.values() if pod.keeps)
        freed, kin = {name for name, amount in unit.items() if amount > 0}, ledger.lineage(found.job.queue)
        for name in kin:
            held = amounts.total((amounts.minus(ledger.below(name), own), unit))
            if name in ledger.queues and amounts.above(held, ledger.queues[name].capability, freed):
                return False
        unmet = [
            {it: max(amount - ledger.below(name).get(it, NONE), NONE) for it, amount in spec.guarantee.items()}
            for name, spec in ledger.queues.items()
            if name not in kin
        ]
        beside = amounts.total(pod.requests for pod in ledger.pods.values() if pod.keeps and pod.job is not found.job)
        return not amounts.above(amounts.total([beside, unit, *unmet]), amounts.of_world(ledger.nodes.values()), freed)

    def _has_quota(self, found: _Preemption) -> bool:
        others = (
            job.groups[Kind.WORKLOAD]
            for job in self.ledger.jobs.values()
            if job is not found.job and Kind.WORKLOAD in job.groups
        )
        held = (quotas.admission_of(workload) for workload in others if quotas.counts(workload))
        admission = found.admission
        return admission is not None and quotas.is_free(admission, filter(None, held), self.ledger.quotas)
