"""Prometheus metrics of a process that only runs controllers.

This module counts nothing: a scrape reads the counters of the process's parts, in the server's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ..controllers import Context
from ..kube import EventRecorder, Http


class ControllerMetrics(Collector):
    """The metrics of one process.

    `context` returns None until this replica runs the controllers. `silent` returns the delay of the event loop's next
    heartbeat in seconds.
    """

    def __init__(
        self, http: Http, events: EventRecorder, context: Callable[[], Context | None], silent: Callable[[], float]
    ) -> None:
        self._http, self._events, self._context, self._silent = http, events, context, silent
        self._registry = CollectorRegistry(auto_describe=True)
        self._registry.register(self)

    def render(self, names: Collection[str] = ()) -> bytes:
        """Return the text of a scrape; with `names` (of samples), only the metrics with these samples."""
        return generate_latest(self._registry.restricted_registry(names) if names else self._registry)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of one scrape."""
        context = self._context()
        waiting = GaugeMetricFamily(
            "schedspec_controller_waiting_objects", "Objects that wait for reconciliation", labels=["name"]
        )
        failures = CounterMetricFamily(
            "schedspec_controller_failures", "Failed reconciliations; each is retried", labels=["name"]
        )
        for name, queue in sorted(context.queues.items()) if context is not None else ():
            waiting.add_metric([name], len(queue))
            failures.add_metric([name], queue.failures)
        yield waiting
        yield failures
        for name, help_, value in (
            ("schedspec_leader", "1 if this replica runs the controllers", float(context is not None)),
            ("schedspec_progress_age_seconds", "Delay of the event loop's next heartbeat", self._silent()),
            (
                "schedspec_throttled_requests",
                "Requests that the API server answered with 429",
                float(self._http.throttled),
            ),
            ("schedspec_dropped_events", "Events that were dropped", float(self._events.dropped)),
        ):
            yield GaugeMetricFamily(name, help_, value)
