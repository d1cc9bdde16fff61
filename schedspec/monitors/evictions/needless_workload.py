"""Monitor: no Workload of Kueue is evicted that could have stayed.

Kueue admits and evicts a Workload as a whole and counts quota, not nodes. An eviction was needless if, once the
preemptor runs, the evicted Workload would still fit beside all running pods: within the total of the nodes, within the
quotas of its ClusterQueue and cohorts where these are known, within the capability of its queue and of the queue's
ancestors, and with the guarantees of the other queues kept free. The monitor does not judge if meanwhile nodes, queues
or quotas changed, or if quota of the same cohort became free otherwise: a pod ended, a Workload was deleted, or
another preemptor evicted, which may need all of it.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field

from ...api.kinds import Kind
from .. import amounts, quotas
from ..amounts import NONE
from ..ledger import Ledger, Monitor
from ..lives import Eviction, Job, Pod
from ..rules import Rules

_DECIDED = 5.0
"""Seconds before the first victim's end in which Kueue may have decided: its Job is suspended first."""
_PREEMPTOR = re.compile(r"accommodate a workload \(UID: ([^,)]+)")


@dataclass(slots=True)
class _WorkloadEviction:
    """The evictions of one Workload's pods for one preemptor."""

    job: Job
    preemptor: Job
    eviction: Eviction
    admission: quotas.Admission | None
    """The quota that the Workload used when it was evicted."""
    pool: str
    """The pool of this quota."""
    pods: list[Pod] = field(default_factory=list)
    is_disturbed: bool = False
    """Whether quota became free since the decision, or just before it, that was not this preemptor's to take."""

    def is_disturbed_by(self, pool: str, preemptor: Job | None) -> bool:
        """Whether quota that becomes free in a pool, but for the victims of a preemptor, concerns this eviction."""
        return self.preemptor is not preemptor and (not pool or not self.pool or pool == self.pool)


class NeedlessWorkloadMonitor(Monitor):
    """Judges the evictions of Workloads when their preemptor runs."""

    NAME = "needless-workload-eviction"

    def __init__(self, ledger: Ledger, rules: Rules) -> None:
        super().__init__(ledger, rules)
        self._open: dict[tuple[str, str], _WorkloadEviction] = {}
        self._pools: dict[str, str] = {}
        """Workload with bound pods → the pool of quota that it uses."""
        self._freed: deque[tuple[float, str, Job | None]] = deque()
        """The last times at which quota became free: its pool, and the preemptor whose victims had it."""

    def on_evicted(self, pod: Pod, eviction: Eviction) -> None:
        """Add an eviction to those of its Workload; what it frees was not free before for other preemptors."""
        named = _PREEMPTOR.search(eviction.message)
        found = self._open.get((pod.job.key, named[1])) if named is not None else None
        if found is None:
            preemptor = self._workload(named[1]) if named is not None else None
            pool = self._pools.get(pod.job.key, "")
            self._disturb(pod.job, preemptor)
            if preemptor is None or named is None or Kind.WORKLOAD not in pod.job.groups:
                return
            admission = quotas.admission_of(pod.job.groups[Kind.WORKLOAD])
            found = self._open[pod.job.key, named[1]] = _WorkloadEviction(pod.job, preemptor, eviction, admission, pool)
            found.is_disturbed = any(found.is_disturbed_by(of, by) for _, of, by in self._freed)
        found.pods.append(pod)

    def _workload(self, uid: str) -> Job | None:
        jobs = (job for job in self.ledger.jobs.values() if Kind.WORKLOAD in job.groups)
        return next((job for job in jobs if job.groups[Kind.WORKLOAD]["metadata"]["uid"] == uid), None)

    def before(self, pod: Pod, what: str) -> None:
        """Note that a pod ends that was not evicted."""
        if what == "end" and pod.holds and pod.eviction is None:
            self._disturb(pod.job, None, pod.bound)
        if what == "end" and len(pod.job.pods) == 1 and not pod.job.groups:
            self._pools.pop(pod.job.key, None)

    def on_over(self, job: Job) -> None:
        """Note that a Workload is gone: its quota is free, whether its pods ran or not."""
        if not job.groups:
            self._disturb(job, None)
            self._open = {key: found for key, found in self._open.items() if found.preemptor is not job}
            if not job.pods:
                self._pools.pop(job.key, None)

    def _disturb(self, job: Job, preemptor: Job | None, bound: int = 0) -> None:
        """Note that quota of a job becomes free, but for the victims of this preemptor."""
        at, pool = self.ledger.at, self._pools.get(job.key, "")
        if self._pools or self.ledger.quotas:  # else Kueue is not there
            self._freed.append((at, pool, preemptor))
        while self._freed and self._freed[0][0] < at - _DECIDED:
            self._freed.popleft()
        for found in self._open.values():
            if bound < found.eviction.number and found.is_disturbed_by(pool, preemptor):
                found.is_disturbed = True

    def on_bound(self, pod: Pod) -> None:
        """Judge the evictions for a preemptor as soon as it runs."""
        job = pod.job
        if Kind.WORKLOAD in job.groups:
            self._pools[job.key] = quotas.pool_of(quotas.admission_of(job.groups[Kind.WORKLOAD]), self.ledger.quotas)
        mine = {key: found for key, found in self._open.items() if found.preemptor is job}
        for key, found in mine.items():
            sets = job.groups.get(Kind.WORKLOAD, {"spec": {}})["spec"].get("podSets") or ()
            binds = sum(it.bound > found.eviction.number for it in job.pods.values())
            if binds < sum(part["count"] for part in sets):
                continue
            del self._open[key]
            is_changed = self.ledger.changes.of_cluster > found.eviction.number
            if not found.is_disturbed and not is_changed and self._fits(found):
                text = f"Workload {found.job.key} was evicted although its quota was free beside everything that runs"
                self.find(text, found.pods[0], found.eviction)

    def _fits(self, found: _WorkloadEviction) -> bool:
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

    def _has_quota(self, found: _WorkloadEviction) -> bool:
        others = (
            job.groups[Kind.WORKLOAD]
            for job in self.ledger.jobs.values()
            if job is not found.job and Kind.WORKLOAD in job.groups
        )
        held = (quotas.admission_of(workload) for workload in others if quotas.counts(workload))
        admission = found.admission
        return admission is not None and quotas.is_free(admission, filter(None, held), self.ledger.quotas)
