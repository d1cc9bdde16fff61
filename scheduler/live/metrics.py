"""Prometheus metrics of the scheduling process, with Volcano's names where the meaning is the same.

Only the shell writes metrics; the core has no access to them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.registry import Collector

from ..framework.decisions import Decisions, Evict
from ..reasons import Refusal, TooCostly
from .memory import heap_in_use
from .stopwatch import Lap

_MILLISECONDS = (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)
_STEPS = (0.02, 0.1, 0.5, 2, 10, 50, 200, 1000, 5000)
"""Most steps of a cycle take less than a millisecond. Few buckets, because each plugin has its own set."""
_WAITING = tuple(5 * 2.0**step for step in range(15))
"""From 5 ms to 82 s, as in Volcano."""
_JOBS = tuple(32 * 2.0**step for step in range(20))
"""From 32 ms, as in Volcano, to 4.7 h, because a job may wait for its queue."""
_RATIOS = (0.25, 0.5, 1, 1.5, 2, 3, 4, 8, 16)
_OPENS = "OnSessionOpen"
"""Volcano's label value for a plugin's start in a cycle. Our plugins do nothing at the end of a cycle."""


def is_too_costly(refusal: Refusal) -> bool:
    """Return True if a job waits because deciding about it exceeds the budget of a single job."""
    return any(isinstance(why, TooCostly) for why in refusal.items)


class Metrics:
    """One set of metrics with its own registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._make_for_cycles()
        self._make_for_waits()
        self._make_for_evictions()
        self._attempts = self._counter(
            "volcano_schedule_attempts",
            "Pods by result: scheduled, or error if the API server refused the write",
            "result",
        )
        self._scheduled = self._attempts.labels("scheduled")
        self._unschedulable = self._gauge("volcano_unschedule_job_count", "Jobs that wait with a reason")
        self._too_costly = self._gauge(
            "schedspec_too_costly_jobs", "Jobs that wait because deciding about them takes longer than a single job may"
        )
        self._malformed = self._gauge(
            "schedspec_malformed_objects", "Objects that cannot be read and are ignored", "kind"
        )
        self._policy = self._counter("schedspec_policy_loads", "Policy files read, by outcome", "result")
        self._failed = self._counter("schedspec_failed_cycles", "Cycles that a defect ended before they had decided")
        self._throttled = self._gauge("schedspec_throttled_requests", "Requests that the API server answered with 429")
        self._dropped = self._gauge("schedspec_dropped_events", "Events that were dropped")
        self._progress = self._gauge(
            "schedspec_progress_age_seconds", "Seconds for which a cycle or an answer has been overdue; 0 if none is"
        )
        self._gauge(
            "schedspec_memory_blocks", "Blocks of memory in use in Python's allocator: objects, and parts of them"
        ).set_function(sys.getallocatedblocks)
        self._gauge(
            "schedspec_memory_heap_bytes",
            "Bytes in use in the C library's heap: buffers, and objects of over 512 bytes",
        ).set_function(heap_in_use)
        self._leader = self._gauge("schedspec_leader", "1 if this replica schedules")

    def _make_for_cycles(self) -> None:
        self._cycle = self._histogram(
            "volcano_e2e_scheduling_latency_milliseconds",
            "Time of one cycle, from the state to the decisions",
            _MILLISECONDS,
        )
        self._action = self._histogram(
            "volcano_action_scheduling_latency_milliseconds", "Time of one action in one cycle", _STEPS, "action"
        )
        self._cut = self._counter(
            "schedspec_cycle_cut",
            "Cycles whose budget was used up before an action had tried all jobs",
            "action",
        )
        self._plugin = self._histogram(
            "volcano_plugin_scheduling_latency_milliseconds",
            "Time that one plugin needed to prepare for one cycle",
            _STEPS,
            "plugin",
            "OnSession",
        )

    def _make_for_waits(self) -> None:
        self._latency = self._histogram(
            "volcano_task_scheduling_latency_milliseconds",
            "Time of a pod from its creation (which the API reports in whole seconds) to its bind",
            _WAITING,
        )
        self._start = self._histogram(
            "volcano_e2e_job_scheduling_latency_milliseconds",
            "Time of a job from the creation of its PodGroup to the last bind that it needed to start",
            _JOBS,
        )

    def _make_for_evictions(self) -> None:
        self._evicted = self._counter("schedspec_evicted_pods", "Pods evicted, by action", "action")
        self._transactions = self._counter(
            "volcano_eviction_transactions", "Times that a cycle evicted pods for a job, by action", "action"
        )
        self._ratio = self._histogram(
            "schedspec_evicted_to_requested_ratio",
            "Resources evicted for a job in one cycle, divided by what its tasks request, in the largest dimension",
            _RATIOS,
        )
        self._victims = self._gauge("volcano_pod_preemption_victims", "Victims of the last cycle with a preemption")
        # a gauge, because the library would add _total to a counter's name
        self._preemptions = self._gauge(
            "volcano_total_preemption_attempts", "Times that preempt chose victims for a job; only grows"
        )

    def _counter(self, name: str, help_: str, *labels: str) -> Counter:
        return Counter(name, help_, labels, registry=self.registry)

    def _gauge(self, name: str, help_: str, *labels: str) -> Gauge:
        return Gauge(name, help_, labels, registry=self.registry)

    def _histogram(self, name: str, help_: str, buckets: Sequence[float], *labels: str) -> Histogram:
        return Histogram(name, help_, labels, buckets=buckets, registry=self.registry)

    # ------------------------------------------------------------------------------------------------------- a cycle

    def cycle(self, seconds: float, decisions: Decisions, laps: Iterable[Lap]) -> None:
        """Record a cycle: its duration, its decisions and the durations of its steps."""
        self._cycle.observe(seconds * 1000)
        self._unschedulable.set(len(decisions.refusals))
        for lap in laps:
            step = self._action.labels(lap.name) if lap.kind == "action" else self._plugin.labels(lap.name, _OPENS)
            step.observe(lap.seconds * 1000)
        for action in decisions.cut:
            self._cut.labels(action).inc()
        if decisions.evictions:
            self._count_evictions(decisions.evictions)
        for ratio in decisions.evicted_to_requested.values():
            self._ratio.observe(ratio)

    def _count_evictions(self, evictions: Iterable[Evict]) -> None:
        reasons = [eviction.reason for eviction in evictions]
        for action, _ in {(reason.action, reason.preemptor) for reason in reasons}:
            self._transactions.labels(action).inc()
        preempting = [reason.preemptor for reason in reasons if reason.action == "preempt"]
        if preempting:
            self._victims.set(len(preempting))
            self._preemptions.inc(len(set(preempting)))

    # -------------------------------------------------------------------------------------------- outcomes of writes

    def bound(self) -> None:
        self._scheduled.inc()

    def waited(self, seconds: float) -> None:
        """Record the seconds from a pod's creation to its bind."""
        self._latency.observe(max(seconds, 0.0) * 1000)

    def started(self, seconds: float) -> None:
        """Record the seconds from a job's creation to the last bind that it needed to start."""
        self._start.observe(seconds * 1000)

    def refused(self, kind: str) -> None:
        self._attempts.labels("error" if kind == "bind" else "eviction_error").inc()

    def evicted(self, action: str) -> None:
        self._evicted.labels(action).inc()

    # ------------------------------------------------------------------------------------------------- current state

    def show(self, *series: Collector) -> None:
        """Register collectors of further series."""
        for collector in series:
            self.registry.register(collector)

    def too_costly(self, jobs: int) -> None:
        """Record how many jobs wait because deciding about them exceeds the budget of a single job."""
        self._too_costly.set(jobs)

    def malformed(self, counts: Mapping[str, int]) -> None:
        self._malformed.clear()
        for kind, count in counts.items():
            self._malformed.labels(kind).set(count)

    def policy(self, result: str) -> None:
        """Count a policy file; `result` is `loaded` or `refused`."""
        self._policy.labels(result).inc()

    def failed(self) -> None:
        """Count a cycle that failed before it had decided."""
        self._failed.inc()

    def requests(self, throttled: int, dropped_events: int) -> None:
        self._throttled.set(throttled)
        self._dropped.set(dropped_events)

    def leads(self, leads: bool) -> None:
        self._leader.set(leads)

    def progress(self, age: Callable[[], float]) -> None:
        """Let each scrape call `age` in the server's thread. A value set by the event loop would freeze with it."""
        self._progress.set_function(age)

    def render(self, names: Collection[str] = ()) -> bytes:
        """Return the text of a scrape; with `names` (of samples), only the metrics with these samples."""
        return generate_latest(self.registry.restricted_registry(names) if names else self.registry)
