"""Judge a simulated load by the invariants of scenarios, on the stream of its outcomes while it runs.

1. Each outcome updates the sums of what nodes and queues hold, so that a judgement reads only the sums that it needs.
2. A bind is judged at once. A gang is judged when the next cycle begins, because all acts of a cycle on the gang belong
   together. Whether an eviction was needed and in proportion (`victims`) is judged as soon as its effect is known.
3. Each finding names the virtual time, the cycle, and the scheduler's reason.

The limits are read from the nodes and queues as their users wrote them, never from the scheduler's own numbers.
Monitors of topology, of shared cards and of Kueue's Workloads are missing here, because no load has any of these.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...monitors import amounts, nodes, protection
from ...monitors.amounts import NONE, Amounts
from ...monitors.evictions import repeated
from ...monitors.gangs import NAME as GANG
from ...monitors.gangs import SWITCHES
from ...monitors.queues import capability, guarantee, usage
from ...monitors.queues.unused import largest
from ...monitors.rules import Rules
from ...scheduler.model import objects
from ...virtual import outcomes
from . import records
from .books import Books, Job, Loss
from .victims import Victims, cause_of


class Monitors:
    """Judges one run."""

    def __init__(self, policy: str, nodes: Iterable[objects.Node], queues: Iterable[objects.Queue]) -> None:
        self._rules = Rules(policy)
        self._books = Books(nodes, queues, self._rules)
        self._victims = Victims(self._books, self._rules, self._find)
        self._changed: dict[str, tuple[str, str]] = {}
        """Job → the act on its gang in this cycle, and the reason."""
        self._short: set[str] = set()
        """Resources of which too little was free for other queues' guarantees at the last bind."""
        self._cycle, self._at = 0, 0.0
        self._changes = 0
        """Number of jobs submitted, jobs ended and pods that lost their nodes, so far."""
        self.found: list[records.Finding] = []
        """In order."""

    def observe(self, outcome: object) -> None:
        """Process the next outcome of the simulation."""
        match outcome:
            case outcomes.Submitted():
                self._on_submitted(outcome)
            case outcomes.Cycle():
                self._on_cycle(outcome)
            case outcomes.Stopped():
                self._on_stopped(outcome)
            case outcomes.Placed():
                self._on_placed(outcome)
            case outcomes.Evicted():
                self._on_evicted(outcome)
            case outcomes.Released():
                self._on_released(outcome)
            case outcomes.Disrupted():
                self._on_disrupted(outcome)
            case outcomes.Ended():
                self._on_ended(outcome)

    def close(self) -> list[records.Finding]:
        """Judge the gangs of the last cycle; return all findings."""
        self._judge_gangs()
        self._victims.close()
        return self.found

    def _find(
        self, monitor: str, about: str, text: str, reason: str = "", moment: tuple[float, int] | None = None
    ) -> None:
        at, cycle = moment or (self._at, self._cycle)
        self.found.append(records.Finding(monitor, at, cycle, about, text, reason))

    # ---------------------------------------------------------------------------------------------------- outcomes

    def _on_submitted(self, outcome: outcomes.Submitted) -> None:
        requests = {name: amount for name, amount in amounts.parse(outcome.requests).items() if amount > 0}
        self._changes += 1
        self._books.jobs[outcome.job] = Job(
            outcome.job, outcome.queue, outcome.pods, outcome.min_member, requests, outcome.preemptable
        )

    def _on_cycle(self, outcome: outcomes.Cycle) -> None:
        self._judge_gangs()
        self._cycle, self._at = outcome.number, outcome.at

    def _on_stopped(self, outcome: outcomes.Stopped) -> None:
        self._victims.job_over(outcome.job)

    def _on_placed(self, outcome: outcomes.Placed) -> None:
        job = self._books.jobs[outcome.job]
        was_freed = any(job.freed.values())
        self._books.place(job, outcome.pod, outcome.node)
        held = self._books.on_node[outcome.node]
        limits = {**dict.fromkeys(job.requests, NONE), **self._books.has.get(outcome.node, {})}
        if over := amounts.above(held, limits, job.requests):
            self._find(nodes.NAME, outcome.job, f"bound to {outcome.node}, which then holds {', '.join(over)}")
        if self._rules.queue_plugin:
            self._judge_capability(job)
        if self._books.guarantee and self._rules.queue_plugin in usage.GUARANTEED:
            self._judge_guarantees(job, was_freed=was_freed)
        self._victims.placed(job, outcome.node)
        self._changed[outcome.job] = ("bound in part", "")

    def _on_evicted(self, outcome: outcomes.Evicted) -> None:
        job, why = self._books.jobs[outcome.job], outcome.reason
        if outcome.pod in job.victims or outcome.pod not in job.placed:
            return
        self._books.evict(job, outcome.pod, cause_of(why))
        reason = f"{why.action} for {why.preemptor} of queue {why.preemptor_queue}"
        self._victims.evicted(job, outcome.pod, cause_of(why), (self._at, self._cycle), reason)
        if self._rules.is_enabled("gang", SWITCHES.get(why.action, "enableReclaimable")):
            self._changed[outcome.job] = ("left incomplete", reason)
        self._judge_repeated(job, outcome.pod, why.preemptor, reason)
        self._judge_protection(job, why.action, why.preemptor_queue, reason)

    def _on_released(self, outcome: outcomes.Released) -> None:
        job = self._books.jobs[outcome.job]
        node = job.placed.get(outcome.pod)
        if node is None:
            return
        self._victims.released(node, job.victims.get(outcome.pod))
        self._books.release(job, outcome.pod)
        if not job.placed:
            self._changed.pop(outcome.job, None)

    def _on_disrupted(self, outcome: outcomes.Disrupted) -> None:
        self._changes += 1
        self._pass_on(self._books.jobs[outcome.job], "")
        self._changed.pop(outcome.job, None)  # not an act of the scheduler

    def _on_ended(self, outcome: outcomes.Ended) -> None:
        self._changes += 1
        self._victims.job_over(outcome.job)
        self._books.jobs.pop(outcome.job, None)
        self._changed.pop(outcome.job, None)

    # ---------------------------------------------------------------------------------------------------- judgements

    def _judge_capability(self, job: Job) -> None:
        """Check that no queue exceeds its capability. Under capacity-card, cards have quotas of their own."""
        requested = dict(job.requests)
        if self._rules.queue_plugin == "capacity-card":
            requested = {name: amount for name, amount in requested.items() if name in ("cpu", "memory")}
        for name in self._books.lineage(job.queue):
            limit = self._books.capability.get(name)
            if limit and (over := amounts.above(self._books.below[name], limit, requested)):
                self._find(capability.NAME, job.name, f"lifts queue {name} to {', '.join(over)} of its capability")

    def _judge_guarantees(self, job: Job, *, was_freed: bool) -> None:
        """Check that the guarantees of other queues are free; report a resource once until enough of it is free.

        `was_freed`: pods were evicted for the job, whose capacity was not free before.
        """
        books = self._books
        for dimension in job.requests:
            others = books.unused.beside(books.lineage(job.queue), dimension)
            if not others:
                continue
            is_short = sum(others.values()) > max(books.free.get(dimension, NONE), NONE) and not was_freed
            if is_short and dimension not in self._short:
                text = f"uses {dimension} that is guaranteed to queue {largest(others)}"
                self._find(guarantee.NAME, job.name, text)
            (self._short.add if is_short else self._short.discard)(dimension)

    def _judge_repeated(self, job: Job, pod: str, preemptor: str, reason: str) -> None:
        """Check that a pod is evicted again for the same job only with a new cause (`monitors.evictions.repeated`)."""
        before = job.lost.get(preemptor)
        self._pass_on(job, preemptor)
        if before is not None and pod not in before.pods:
            before.pods.add(pod)
            return
        if before is not None and not self._has_new_cause(before):
            self._find(repeated.NAME, job.name, "evicted again for the same job", reason)
        job.lost[preemptor] = Loss({pod}, self._changes)
        if (preemptor_job := self._books.jobs.get(preemptor)) is not None:
            preemptor_job.evicted.add(job.name)

    def _has_new_cause(self, before: Loss) -> bool:
        third = self._books.jobs.get(before.passed_to)
        has_third = third is not None and (third.active > 0 or before.passed_in == self._cycle)
        return before.passed_in is not None and (before.changes < self._changes or has_third)

    def _pass_on(self, job: Job, receiver: str) -> None:
        """Record for the victims of `job` that it loses capacity; `receiver` is the job that gets it, if any."""
        job.evicted.discard(receiver)
        for name in job.evicted:
            victim = self._books.jobs.get(name)
            if victim is not None and job.name in victim.lost:
                loss = victim.lost[job.name]
                loss.passed_in, loss.passed_to = self._cycle, "" if receiver in job.lost else receiver

    def _judge_protection(self, job: Job, action: str, receiving_queue: str, reason: str) -> None:
        if not job.preemptable:
            text = f"evicted although it is marked {protection.PREEMPTABLE}: false"
            self._find(protection.NAME, job.name, text, reason)
        if action != "reclaim":
            return
        if job.queue in self._books.closed_to_reclaim:
            text = f"evicted although queue {job.queue} is not reclaimable"
            self._find(protection.NAME, job.name, text, reason)
        for name in self._books.lineage(job.queue):
            guaranteed, held = self._books.guarantee.get(name, {}), self._books.below[name]
            if name in self._books.lineage(receiving_queue) or not _cut(guaranteed, held, job.requests):
                continue
            if cut := _cut(guaranteed, amounts.total((held, self._books.kept(name))), job.requests):
                text = f"its eviction cuts queue {name} below its guarantee: {', '.join(cut)}"
                self._find(guarantee.NAME, job.name, text, reason)

    def _judge_gangs(self) -> None:
        """Judge the gangs that the last cycle changed."""
        if self._rules.has(GANG):
            for name, (done, reason) in self._changed.items():
                job = self._books.jobs[name]
                if 0 < job.active < job.minimum:
                    text = f"{done}: {job.active} of {job.minimum} pods hold capacity"
                    self._find(GANG, name, text, reason)
        self._changed.clear()


def _cut(guaranteed: Amounts, held: Amounts, gave: Amounts) -> list[str]:
    return [name for name, amount in guaranteed.items() if gave.get(name) and held.get(name, NONE) < amount]
