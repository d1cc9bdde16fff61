"""Monitor: the evictions for one workload are in proportion to its requests.

The bound is a sum: each pod of the workload that got a node adds its request and the largest eviction unit (one pod, or
a gang that was evicted as a whole). Only evictions that name the workload are judged. It is enough if one dimension is
within the bound: victims that free cards may hold many cpus. Evictions before and after a change of a node or a queue
are judged separately.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..amounts import NONE, Amounts, above, total
from ..ledger import SWITCHES, Ledger, Monitor
from ..lives import Eviction, Job, Pod
from ..rules import Rules


@dataclass(slots=True)
class _Unit:
    """What was evicted of one job for one cause."""

    evicted: Amounts = field(default_factory=dict)
    largest: Amounts = field(default_factory=dict)
    """The largest pod, by dimension."""
    is_broken: bool = False
    """Whether fewer pods than its minimum were left, so that all of it is one eviction unit."""


@dataclass(slots=True)
class _EvictionSums:
    last: tuple[Pod, Eviction]
    units: dict[str, _Unit] = field(default_factory=dict)
    """By job."""
    waited: dict[str, Pod] = field(default_factory=dict)
    """The preemptor's pods that waited at an eviction, by uid."""
    newest: int = 0
    """Number of the last of them in the ledger."""


class DisproportionateMonitor(Monitor):
    """Sums what was evicted for a job until the job is over."""

    NAME = "disproportionate-eviction"

    def __init__(self, ledger: Ledger, rules: Rules) -> None:
        super().__init__(ledger, rules)
        self._sums: dict[str, dict[tuple[str, int], _EvictionSums]] = {}
        """Preemptor → cause and the number of the last change of a node or a queue → sum."""

    def on_evicted(self, pod: Pod, eviction: Eviction) -> None:
        """Add an eviction to the sums of its preemptors."""
        jobs, key = self.ledger.jobs, (eviction.cause, eviction.changed)
        preemptors = [jobs[name] for name in eviction.preemptors if name in jobs]
        for job in preemptors[:1]:
            found = self._sums.setdefault(job.key, {}).setdefault(key, _EvictionSums((pod, eviction)))
            found.last = pod, eviction
            waiting = [it for preemptor in preemptors for it in preemptor.waiting.values() if it.created > found.newest]
            found.waited |= {it.uid: it for it in waiting}
            found.newest = max((it.created for it in waiting), default=found.newest)
            unit = found.units.setdefault(pod.job.key or pod.uid, _Unit())
            unit.evicted = total((unit.evicted, pod.requests))
            unit.largest = _largest((unit.largest, pod.requests))
            switch = SWITCHES.get(eviction.action, "enableReclaimable")
            is_gang = pod.job.group is not None and self.rules.is_enabled("gang", switch)
            unit.is_broken = is_gang and pod.job.active < pod.job.minimum

    def on_over(self, job: Job) -> None:
        """Judge the evictions for a job that is over."""
        for found in self._sums.pop(job.key, {}).values():
            self._judge(found)

    def close(self) -> None:
        for key in [*self._sums]:
            for found in self._sums.pop(key).values():
                self._judge(found)

    def _judge(self, found: _EvictionSums) -> None:
        waited = [*found.waited.values()]
        pods = [pod for pod in waited if pod.bound or pod.is_nominated] or waited
        if not pods:
            return
        units = found.units.values()
        evicted, requested = total(unit.evicted for unit in units), total(pod.requests for pod in pods)
        largest = _largest(unit.evicted if unit.is_broken else unit.largest for unit in units)
        bound = total([requested, *([largest] * len(pods))])
        shared = [name for name, amount in evicted.items() if name != "pods" and amount and requested.get(name)]
        broken = above(evicted, bound, shared)
        if shared and len(broken) == len(shared):
            pod, eviction = found.last
            self.find(f"{eviction.cause}: more evicted than is proportionate ({', '.join(broken)})", pod, eviction)


def _largest(parts: Iterable[Amounts]) -> Amounts:
    found: Amounts = {}
    for part in parts:
        found |= {name: max(amount, found.get(name, NONE)) for name, amount in part.items()}
    return found
