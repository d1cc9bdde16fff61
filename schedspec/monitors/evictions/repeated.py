"""Monitor: no pod is evicted twice for the same cause.

A violation is a re-created pod that starts again and is evicted again for the same preemptor without a new cause. A
new cause has two parts. First, the preemptor has lost the capacity, but not to the victim, or needs more for another of
its pods. Second, something changed from outside in between (a node, a queue, another job, a pod that ended by itself),
or a third job evicted the preemptor for the first time and kept the capacity. Only the first time counts, because jobs
that evict each other in turn would otherwise excuse each other. If the victim's own job took the capacity, the cause
is new only if a node or a queue changed since. If the scheduler names no preemptor, any change from outside may be the
cause.
"""

from __future__ import annotations

from ..ledger import Ledger, Monitor
from ..lives import Eviction, Job, Pod
from ..rules import Rules


class RepeatedMonitor(Monitor):
    """Compares each eviction with the last one of a pod of the same name for the same cause.

    The cause is the scheduler's message without its details. Pods with one name count as one pod and its successors.
    """

    NAME = "repeated-eviction"

    def __init__(self, ledger: Ledger, rules: Rules) -> None:
        super().__init__(ledger, rules)
        self._again: list[tuple[Pod, Eviction, int]] = []
        """The repeated evictions of this moment, with the number of the one before."""

    def on_evicted(self, pod: Pod, eviction: Eviction) -> None:
        known, key = pod.job.last_evicted, (pod.key, eviction.cause)
        if key in known and eviction.message:
            self._again.append((pod, eviction, known[key]))
        known[key] = eviction.number

    def on_moment(self) -> None:
        """Judge the repeated evictions with all acts of their moment."""
        for pod, eviction, first in self._again:
            if not self._has_new_cause(pod.job, eviction, first):
                self.find(f"evicted again for the same cause: {eviction.message}", pod, eviction)
        self._again.clear()

    def _has_new_cause(self, victim: Job, eviction: Eviction, first: int) -> bool:
        jobs = self.ledger.jobs
        if not eviction.preemptors:
            return self.ledger.changes.since(first, {victim.key})
        served = [jobs[name] for name in eviction.preemptors if name in jobs and jobs[name].bound > first]
        if not served:
            return False
        if (lost := max(job.lost_to.get(victim.key, (0, 0))[1] for job in served)) > first:
            return self.ledger.changes.of_cluster > lost
        losses = {name: (job, since) for job in served for name, since in job.lost_to.items() if since[1] > first}
        if not losses and not any(max(job.ended, job.evicted) > first or job.waiting for job in served):
            return False
        if self.ledger.changes.since(first, {victim.key, *(job.key for job in served)}):
            return True
        return any(since[0] > first and self._keeps(name, since[1]) for name, (_, since) in losses.items())

    def _keeps(self, third: str, since: int) -> bool:
        """Whether a job that evicted the preemptor is bound, or may still be in this decision, and was not evicted."""
        job = self.ledger.jobs.get(third)
        is_new = any(it.eviction is not None and it.eviction.number == since for it in self.ledger.victims)
        return job is not None and job.evicted < since and (job.bound > since or is_new)
