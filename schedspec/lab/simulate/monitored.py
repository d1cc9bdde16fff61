"""Feed the ledger of the monitors with a run in virtual time, or with a recording: the objects that the core received.

In a simulated load a decision takes no time (`burst` is 0). Pods that a state already has on nodes are no acts of the
scheduler. All else is as for the history of a scenario (`schedspec.monitors.reading`).
"""

from __future__ import annotations

from typing import Any

import msgspec

from ...api.kinds import Kind
from ...monitors import Ledger, Rules, Violation, judged
from ...monitors.amounts import Amounts, Object, of_pod
from ...scheduler.inputs import ObjectGone, ObjectSeen
from ...scheduler.model import objects
from ...scheduler.model.task import job_key_of
from ...scheduler.reasons import VictimReason
from ...virtual.outcomes import Cycle, Evicted

_KINDS = {"Pod": Kind.POD, "Node": Kind.NODE, "Queue": Kind.QUEUE, "PodGroup": Kind.PODGROUP}


class MonitoredRun:
    """Judges one run under a policy. Its memory grows with what lives."""

    def __init__(self, rules: Rules, *, burst: float = 0.0) -> None:
        self._ledger = judged(Ledger(rules, shown=as_shown, burst=burst))
        self._ledger.counts_binds = False  # until the first cycle

    def observe(self, at: float, happened: object) -> None:
        """Process the next input of the core, or the next outcome of the simulation."""
        match happened:
            case ObjectSeen() if happened.kind in _KINDS:
                self._ledger.advance(at)
                self._see(_KINDS[happened.kind], happened.object)
            case ObjectGone() if happened.kind in _KINDS:
                self._ledger.advance(at)
                self._lose(_KINDS[happened.kind], happened.key)
            case Evicted():
                self._ledger.advance(at)
                self.evict(happened.pod, happened.reason)
            case Cycle():
                self.begin_cycle(at, happened.number)

    def begin_cycle(self, at: float, number: int) -> None:
        """Process that the scheduler decides."""
        self._ledger.advance(at, number)
        self._ledger.counts_binds = True

    def evict(self, pod: str, why: VictimReason) -> None:
        cause = f"{why.action} for {why.preemptor}"
        self._ledger.evict(pod, cause, why.action, f"{cause} of queue {why.preemptor_queue}", (why.preemptor,))

    def close(self) -> list[Violation]:
        return self._ledger.close()

    def _see(self, kind: Kind, item: Any) -> None:
        ledger, key = self._ledger, item.metadata.key
        if kind == Kind.POD:
            self._see_pod(key, item)
        elif kind == Kind.PODGROUP:
            job = ledger.jobs.get(key)
            if job is None or job.group is None or job.group["source"] is not item.spec:  # else only its phase changed
                fields = msgspec.to_builtins(item.spec)
                meta = {"annotations": item.metadata.annotations}
                ledger.see_group(kind, key, {"metadata": meta, "spec": fields, "source": item.spec})
        elif kind == Kind.NODE:
            ledger.see_node(key, as_shown(item))
        else:
            ledger.see_queue(key, as_shown(item))

    def _see_pod(self, key: str, pod: objects.Pod) -> None:
        meta, spec, phase = pod.metadata, pod.spec, pod.status.phase
        self._ledger.see_pod(
            key,
            meta.uid,
            job_key_of(pod),
            self._requests(key, pod),
            pod,
            node=spec.node_name,
            over=phase if phase in ("Succeeded", "Failed") else "",
            is_leaving=meta.deletion_timestamp is not None,
        )

    def _requests(self, key: str, pod: objects.Pod) -> Amounts:
        """Return what a pod requests. Pods of one job that are equal share the amounts, which are parsed once."""
        ledger, spec = self._ledger, pod.spec
        known = ledger.pods.get(key)
        if known is None and (job := ledger.jobs.get(job_key_of(pod))) is not None:
            known = next(reversed(job.pods.values()), None)
        if known is not None:
            other = known.source.spec
            is_plain = not (spec.init_containers or spec.overhead or other.init_containers or other.overhead)
            if other is spec or (is_plain and other.containers == spec.containers):
                return known.requests
        return of_pod({"spec": {name: value for name, value in msgspec.to_builtins(spec).items() if value is not None}})

    def _lose(self, kind: Kind, key: str) -> None:
        ledger = self._ledger
        if kind == Kind.POD:
            ledger.lose_pod(key)
        elif kind == Kind.PODGROUP:
            ledger.see_group(kind, key, None)
        elif kind == Kind.NODE:
            ledger.see_node(key, None)
        else:
            ledger.see_queue(key, None)


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
