"""Numbers for Prometheus, in Volcano's names where they mean the same.

The one rule: metrics are only ever written by the shell; the core does not know of them.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_MILLISECONDS = (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)


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
        self._victims = Counter(
            "volcano_pod_preemption_victims", "Pods evicted, by action", ["action"], registry=self.registry
        )
        self._unschedulable = Gauge(
            "volcano_unschedule_job_count", "Jobs that wait with a reason", registry=self.registry
        )
        self._queue = {
            what: Gauge(
                f"volcano_queue_{what}", f"What a queue has of a resource: {what}", ["queue_name", "resource"],
                registry=self.registry,
            )
            for what in ("allocated", "deserved", "capacity")
        }  # fmt: skip
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
        self._attempts.labels("scheduled").inc()

    def refused(self, kind: str) -> None:
        self._attempts.labels("error" if kind == "bind" else "eviction_error").inc()

    def evicted(self, action: str) -> None:
        self._victims.labels(action).inc()

    def queue(self, name: str, what: str, amounts: dict[str, float]) -> None:
        """``what``: allocated, deserved or capacity; amounts in the units of the API's base (cores, bytes, pieces)."""
        for resource, amount in amounts.items():
            self._queue[what].labels(name, resource).set(amount)

    def share(self, name: str, share: float) -> None:
        self._share.labels(name).set(share)

    def malformed(self, counts: dict[str, int]) -> None:
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
