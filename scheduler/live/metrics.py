"""Numbers for Prometheus, in Volcano's names where they mean the same.

The one rule: metrics are only ever written by the shell; the core does not know of them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from scheduler.model.resources import CPU, MEMORY

_MILLISECONDS = (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)
_WAITING = tuple(5 * 2.0**step for step in range(15))
"""From 5 ms to 82 s, as Volcano has them."""


class _Amounts:
    """One kind of a queue's numbers, in Volcano's three metrics: CPU, memory, and all other resources."""

    def __init__(self, what: str, registry: CollectorRegistry) -> None:
        def gauge(name: str, help_: str, *labels: str) -> Gauge:
            return Gauge(f"volcano_queue_{what}_{name}", help_, ["queue_name", *labels], registry=registry)

        self._cpu = gauge("milli_cpu", f"CPU of a queue: {what}, in thousandths of a core")
        self._memory = gauge("memory_bytes", f"Memory of a queue: {what}, in bytes")
        self._others = gauge("scalar_resources", f"Other resources of a queue: {what}, in thousandths", "resource")
        self._known: dict[str, set[str]] = {}

    def set(self, name: str, amounts: Mapping[str, float]) -> None:
        """What the queue has now; a resource that is no longer named is nothing."""
        known = self._known.setdefault(name, set())
        known.update(amounts)
        self._cpu.labels(name).set(amounts.get(CPU, 0.0))
        self._memory.labels(name).set(amounts.get(MEMORY, 0.0))
        for resource in known - {CPU, MEMORY}:
            self._others.labels(name, resource).set(amounts.get(resource, 0.0))

    def forget(self, name: str) -> None:
        """Show nothing of the queue any more."""
        self._cpu.remove(name)
        self._memory.remove(name)
        for resource in self._known.pop(name) - {CPU, MEMORY}:
            self._others.remove(name, resource)


class Metrics:
    """One set of metrics, with a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._cycle = Histogram(
            "volcano_e2e_scheduling_latency_milliseconds",
            "Time of one cycle, from the state to the decisions",
            buckets=_MILLISECONDS,
            registry=self.registry,
        )
        self._attempts = Counter(
            "volcano_schedule_attempts",
            "Pods by what became of them: scheduled, or error where the API server refused",
            ["result"],
            registry=self.registry,
        )
        self._scheduled = self._attempts.labels("scheduled")
        self._latency = Histogram(
            "volcano_task_scheduling_latency_milliseconds",
            "Time of a pod from its creation (which the API tells in whole seconds) to its bind",
            buckets=_WAITING,
            registry=self.registry,
        )
        self._victims = Counter(
            "volcano_pod_preemption_victims", "Pods evicted, by action", ["action"], registry=self.registry
        )
        self._unschedulable = Gauge(
            "volcano_unschedule_job_counts", "Jobs that wait with a reason", registry=self.registry
        )
        self._queue = {what: _Amounts(what, self.registry) for what in ("allocated", "deserved", "capacity")}
        self._share = Gauge("volcano_queue_share", "Share of a queue", ["queue_name"], registry=self.registry)
        self._malformed = Gauge(
            "schedspec_malformed_objects", "Objects that cannot be read and are left out", ["kind"],
            registry=self.registry,
        )  # fmt: skip
        self._policy = Counter(
            "schedspec_policy_loads", "Policy files read, by outcome", ["result"], registry=self.registry
        )
        self._throttled = Gauge(
            "schedspec_throttled_requests", "Requests that the API server answered with 429", registry=self.registry
        )
        self._dropped = Gauge("schedspec_dropped_events", "Events given up", registry=self.registry)
        self._leader = Gauge("schedspec_leader", "1 where this replica schedules", registry=self.registry)

    def cycle(self, seconds: float, waiting: int) -> None:
        self._cycle.observe(seconds * 1000)
        self._unschedulable.set(waiting)

    def bound(self) -> None:
        self._scheduled.inc()

    def waited(self, seconds: float) -> None:
        """How long after its creation a pod got its node."""
        self._latency.observe(max(seconds, 0.0) * 1000)

    def refused(self, kind: str) -> None:
        self._attempts.labels("error" if kind == "bind" else "eviction_error").inc()

    def evicted(self, action: str) -> None:
        self._victims.labels(action).inc()

    def queue(self, name: str, what: str, amounts: Mapping[str, float]) -> None:
        """``what``: allocated, deserved or capacity; amounts in the units of :mod:`scheduler.model.resources`."""
        self._queue[what].set(name, amounts)

    def queue_gone(self, name: str) -> None:
        """The queue is gone, and so are its numbers."""
        for amounts in self._queue.values():
            amounts.forget(name)
        with contextlib.suppress(KeyError):
            self._share.remove(name)

    def share(self, name: str, share: float) -> None:
        self._share.labels(name).set(share)

    def malformed(self, counts: Mapping[str, int]) -> None:
        self._malformed.clear()
        for kind, count in counts.items():
            self._malformed.labels(kind).set(count)

    def policy(self, result: str) -> None:
        """``loaded`` or ``refused``."""
        self._policy.labels(result).inc()

    def requests(self, throttled: int, dropped_events: int) -> None:
        self._throttled.set(throttled)
        self._dropped.set(dropped_events)

    def leads(self, leads: bool) -> None:
        self._leader.set(leads)

    def render(self) -> bytes:
        """The text that a scrape gets."""
        return generate_latest(self.registry)
