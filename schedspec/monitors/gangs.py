"""Monitor: a gang is bound as a whole and never left in part, where the policy enables the gang plugin.

A gang of Kubernetes (`scheduling.k8s.io`) is judged by its own `minCount` and disruption mode, whatever the policy is.

A gang is judged after a burst of its binds or evictions, not after each one, because writes take time. What another
writer changes after the burst does not count.
"""

from __future__ import annotations

from dataclasses import dataclass

from .ledger import SWITCHES, Ledger, Monitor
from .lives import Eviction, Job, Pod, Violation
from .rules import Rules


@dataclass(slots=True)
class _Burst:
    """Binds or evictions (`kind`) of one gang that follow each other at once."""

    job: Job
    kind: str
    at: float
    """The time of the last of them."""
    pod: Pod
    eviction: Eviction | None
    minimum: int | None
    """The minimum of the gang at the last act, which another writer may raise later; None before there is a group."""
    is_over: bool = False
    """Whether another writer or an act of the other kind has changed the gang since."""
    text: str = ""
    """What was wrong when the burst was over."""


class GangMonitor(Monitor):
    """Judges a gang when a burst of acts on it is over."""

    NAME = "gang"

    def __init__(self, ledger: Ledger, rules: Rules) -> None:
        super().__init__(ledger, rules)
        self._bursts: dict[str, _Burst] = {}
        """By job, the oldest first."""
        self._is_on = rules.has("gang")

    def before(self, pod: Pod, what: str) -> None:
        """End the burst with the state before a change of its gang that is no further act of it."""
        burst = self._bursts.get(pod.job.key)
        if burst is None:
            return
        own = (burst.kind, "added") if burst.kind == "bind" else (burst.kind,)
        is_own = what in own or (what == "leave" and pod.eviction is not None)
        if not is_own and not burst.is_over:
            burst.is_over, burst.text = True, self._incomplete(burst)
        if what in ("bind", "evict") and what != burst.kind:
            self._judge(burst)

    def on_bound(self, pod: Pod) -> None:
        self._act(pod, "bind", None)

    def on_evicted(self, pod: Pod, eviction: Eviction) -> None:
        self._act(pod, "evict", eviction)

    def _act(self, pod: Pod, kind: str, eviction: Eviction | None) -> None:
        if pod.job.key and (self._is_on or (pod.job.group is None and pod.job.gang is not None)):
            self._bursts.pop(pod.job.key, None)
            minimum = pod.job.minimum if pod.job.gang is not None else None
            self._bursts[pod.job.key] = _Burst(pod.job, kind, self.ledger.at, pod, eviction, minimum)

    def on_moment(self) -> None:
        """Judge the bursts that are over because of the time."""
        while self._bursts:
            burst = next(iter(self._bursts.values()))
            if self.ledger.next - burst.at <= self.ledger.burst:
                return
            self._judge(burst)

    def close(self) -> None:
        """Judge all bursts, except those of binds that may still go on."""
        for burst in [*self._bursts.values()]:
            if burst.kind == "evict" or self.ledger.at - burst.at >= self.ledger.burst / 10:
                self._judge(burst)

    def _judge(self, burst: _Burst) -> None:
        del self._bursts[burst.job.key]
        if text := burst.text if burst.is_over else self._incomplete(burst):
            why = burst.eviction
            of_act = (why.cycle, why.action, why.message) if why is not None else (self.ledger.cycle,)
            key = burst.job.key
            self.ledger.found.append(Violation(self.NAME, burst.at, key, text, False, key, *of_act))

    def _incomplete(self, burst: _Burst) -> str:
        """Return how a burst left its gang with too few pods; empty if the gang has enough or none."""
        job, action = burst.job, burst.eviction.action if burst.eviction is not None else ""
        switch = "enableJobReady" if burst.kind == "bind" else SWITCHES.get(action, "enableReclaimable")
        is_on = job.group is None or self.rules.is_enabled("gang", switch)
        if not is_on or (burst.kind == "evict" and job.loses_single_pods):
            return ""
        held = [pod for pod in job.pods.values() if pod.node and not pod.is_leaving and pod.eviction is None]
        if job.group is None:  # kube-scheduler nominates pods whose binding takes longer
            held += [pod for pod in job.waiting.values() if pod.is_nominated]
        if job.gang is None or any(pod.over == "Failed" for pod in held):  # not by an act of the scheduler
            return ""
        done = "bound in part" if burst.kind == "bind" else "left incomplete"
        minimum = job.minimum if burst.minimum is None else min(job.minimum, burst.minimum)
        return f"{done}: {len(held)} of {minimum} pods hold capacity" if 0 < len(held) < minimum else ""
