"""Turn the outcomes of a simulation into records: one for each job, and samples of the queues.

1. Every outcome updates the open record of its job; the record is written as soon as the job is over.
2. Before time advances, `Metrics` integrates what the queues held and were entitled to since the last instant.
3. Memory is bounded by the jobs that are not over: reasons of one kind share one `Wait`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

from ...scheduler.framework.decisions import QueueNumbers
from ...scheduler.model import resources
from ...scheduler.reasons import Refusal, render_refusal, render_victim
from ...virtual import outcomes
from .metrics import Metrics
from .records import JobEviction, JobRecord, QueueSample, Sample, Wait

EXAMPLES = 5
LOAD = "load/"
"""Namespace of the workloads of a load, which records omit; jobs of a state are named by their keys."""


class _OpenRecord:
    """The open record of a job that is not over."""

    __slots__ = ("cards_of_pod", "held", "preempts", "reasons", "record", "since", "waits", "waits_since")

    def __init__(self, record: JobRecord, cards_of_pod: float) -> None:
        self.record, self.cards_of_pod = record, cards_of_pod
        self.held, self.since = 0.0, 0.0
        self.waits: dict[tuple[str, ...], Wait] = {}
        self.reasons: Refusal | None = None
        self.waits_since = 0.0
        self.preempts = False


class OutcomeRecorder:
    """Turn outcomes into records and samples, and pass these to `write`."""

    def __init__(
        self,
        write: Callable[[JobRecord | Sample], None],
        metrics: Metrics,
        resource: str,
        *,
        sample: float,
        capacity: float,
    ) -> None:
        self._write, self._metrics, self._resource = write, metrics, resource
        self._unit = resources.unit_of(resource)
        self._sample, self._capacity = sample, capacity
        self._open: dict[str, _OpenRecord] = {}
        self._numbers: dict[str, QueueNumbers] = {}
        self._waiting: dict[str, int] = {}
        self._bucket = -math.inf
        self._at = -math.inf
        self.over = 0
        """Jobs that are over."""
        self.cycles = 0
        self.stuck = 0
        """Jobs that wait at the end of the run."""
        self.examples: list[str] = []
        """Some of the jobs that wait, with their last reasons."""

    def process(self, outcome: outcomes.Outcome) -> None:
        if outcome.at > self._at:
            self._instant_is_over(outcome.at)
        match outcome:
            case outcomes.Cycle():
                self.cycles, self._numbers = outcome.number, outcome.decisions.queues
            case outcomes.Submitted():
                self._submitted(outcome)
            case outcomes.Refused():
                sys.stderr.write(f"left out {outcome.object}: {outcome.message}\n")
            case _:
                job = self._open.get(outcome.job)
                if job is not None:  # reasons may follow the end of a job
                    self._process(job, outcome)

    def _process(self, job: _OpenRecord, outcome: outcomes.Outcome) -> None:
        match outcome:
            case outcomes.Admitted():
                job.record.admitted = outcome.at if job.record.admitted is None else job.record.admitted
            case outcomes.Placed():
                self._hold(job, 1, outcome.at)
            case outcomes.Released():
                self._hold(job, -1, outcome.at)
            case outcomes.Started():
                self._started(job, outcome)
            case outcomes.Evicted():
                self._evicted(job, outcome)
            case outcomes.Disrupted():
                loss = JobEviction(outcome.at, 1, job.cards_of_pod, outcome.cause)
                self._record_loss(job, loss, lambda: f"node {outcome.node}: {outcome.cause}")
            case outcomes.Stopped():
                self._stopped(job, outcome)
            case outcomes.Waits():
                self._end_reason(job, outcome.at)
                job.reasons, job.waits_since = outcome.refusal, outcome.at
            case outcomes.Ended():
                self._ended(job, outcome)

    def close(self, at: float) -> None:
        """Write the records of all jobs that are not over at the end of the run."""
        if at > self._at:
            self._instant_is_over(at)
        self._emit_sample()
        for job in self._open.values():
            self._finish(job)
            if job.record.outcome == "waiting":
                self.stuck += 1
                if len(self.examples) < EXAMPLES:
                    why = job.record.waits[-1].text if job.record.waits else "no cycle has tried it"
                    self.examples.append(f"{job.record.job}: {why}")
        self._open.clear()

    # --------------------------------------------------------------------------------------------------------- jobs

    def _submitted(self, outcome: outcomes.Submitted) -> None:
        each = resources.parse(dict(outcome.requests)).get(self._resource, 0) / self._unit
        record = JobRecord(
            outcome.job.removeprefix(LOAD), outcome.queue, outcome.user, outcome.priority, outcome.pods,
            outcome.min_member, outcome.requests, each * outcome.pods,
            outcome.run_time if outcome.run_time < math.inf else None, outcome.at,
        )  # fmt: skip
        self._open[outcome.job] = _OpenRecord(record, each)
        self._waiting[outcome.queue] = self._waiting.get(outcome.queue, 0) + 1
        self._metrics.submitted(outcome.at, outcome.queue, each, outcome.pods)

    def _started(self, job: _OpenRecord, outcome: outcomes.Started) -> None:
        record = job.record
        record.started = outcome.at if record.started is None else record.started
        record.outcome, record.attempts = "running", outcome.attempt
        self._waiting[record.queue] -= 1

    def _stopped(self, job: _OpenRecord, outcome: outcomes.Stopped) -> None:
        record, lost = job.record, outcome.lost * job.record.cards
        record.outcome = "waiting"
        record.card_seconds_lost += lost
        self._waiting[record.queue] += 1
        if record.evictions:  # the last entry broke the gang, because an outcome follows its cause
            record.evictions[-1].lost += lost

    def _hold(self, job: _OpenRecord, pods: int, at: float) -> None:
        record, cards = job.record, pods * job.cards_of_pod
        if not cards:
            return
        if job.held and at > job.since:
            record.held.append((job.since, at, job.held))
            record.card_seconds_used += job.held * (at - job.since)
        job.held, job.since = job.held + cards, at
        self._metrics.hold(record.queue, cards)

    def _ended(self, job: _OpenRecord, outcome: outcomes.Ended) -> None:
        record = job.record
        if record.outcome == "waiting":
            self._waiting[record.queue] -= 1
        record.ended, record.outcome, record.attempts = outcome.at, outcome.outcome, outcome.attempts
        del self._open[outcome.job]
        self._finish(job)
        self.over += 1

    def _evicted(self, job: _OpenRecord, outcome: outcomes.Evicted) -> None:
        why = outcome.reason
        loss = JobEviction(outcome.at, 1, job.cards_of_pod, why.action, why.preemptor, why.preemptor_queue)
        self._record_loss(job, loss, lambda: render_victim(why))
        preemptor = self._open.get(why.preemptor)
        if preemptor is not None and not preemptor.preempts:
            preemptor.preempts = True
            self._metrics.preempts(preemptor.record.cards)

    def _record_loss(self, job: _OpenRecord, new: JobEviction, reason: Callable[[], str]) -> None:
        """Record lost pods; those of one moment and cause share an entry."""
        last = job.record.evictions[-1] if job.record.evictions else None
        if last is not None and (last.at, last.preemptor, last.action) == (new.at, new.preemptor, new.action):
            last.pods += 1
            last.cards += new.cards
            return
        new.reason = reason()
        job.record.evictions = [*job.record.evictions, new]

    def _end_reason(self, job: _OpenRecord, at: float) -> None:
        if job.reasons is None:
            return
        types = tuple(type(why).__name__ for why in job.reasons.items)
        wait = job.waits.setdefault(types, Wait(job.waits_since, 0.0, list(types), ""))
        wait.seconds += at - job.waits_since
        wait.text = render_refusal(job.reasons)

    def _finish(self, job: _OpenRecord) -> None:
        record = job.record
        self._end_reason(job, self._at)
        record.waits = sorted(job.waits.values(), key=lambda wait: wait.since)
        if job.held:  # the job is not over
            record.held.append((job.since, self._at, job.held))
            record.card_seconds_used += job.held * (self._at - job.since)
        self._metrics.add(record)
        self._write(record)

    # --------------------------------------------------------------------------------------------------------- time

    def _instant_is_over(self, now: float) -> None:
        """Account for the time from the last instant to `now`."""
        if self._at > -math.inf:
            self._metrics.integrate(self._entitlements(), now - self._at)
            bucket = now // self._sample
            if bucket > self._bucket:
                self._emit_sample()
                self._bucket = bucket
        self._at = now

    def _entitlements(self) -> dict[str, tuple[float, float]]:
        """Return for each queue the cards to which it is entitled now, and how many of these are guaranteed."""
        found = {}
        for name, numbers in self._numbers.items():
            requested = numbers.request.get(self._resource, 0)
            entitled = min(numbers.deserved.get(self._resource, 0), requested) / self._unit
            found[name] = entitled, min(numbers.guarantee.get(self._resource, 0), requested) / self._unit
        return found

    def _emit_sample(self) -> None:
        unit, name = self._unit, self._resource
        queues = {}
        for queue, numbers in self._numbers.items():
            limit = numbers.capability.get(name)
            queues[queue] = QueueSample(
                self._metrics.held.get(queue, 0.0),
                numbers.deserved.get(name, 0) / unit,
                numbers.guarantee.get(name, 0) / unit,
                None if limit is None else min(limit / unit, self._capacity),
                numbers.request.get(name, 0) / unit,
                self._waiting.get(queue, 0),
            )
        if queues:
            self._write(Sample(self._at, queues))
