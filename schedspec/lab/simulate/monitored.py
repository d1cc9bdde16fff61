"""Judge a run in virtual time by the monitors of scenarios, while it runs, from its inputs and outcomes.

1. Each input and outcome updates the sums of what nodes and queues hold (`books`), so that a judgement reads only the
   sums that it needs, and memory grows with the jobs that live.
2. A bind is judged at once. A gang is judged when the next cycle begins, because all acts of a cycle on the gang belong
   together. Whether an eviction was needed and in proportion (`victims`) is judged as soon as its effect is known.
3. Each finding names the virtual time, the cycle, and the scheduler's reason.

What breaks a rule is decided by the functions of `schedspec.monitors`, here and for the history of a scenario. Pods
that a state already has on nodes are no acts of the scheduler, so that nothing judges them.
Monitors of topology, of shared cards and of Kueue's Workloads are missing here, because no load has any of these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...monitors import amounts, gangs, nodes, protection
from ...monitors.amounts import Amounts
from ...monitors.evictions import repeated
from ...monitors.queues import capability, guarantee, usage
from ...monitors.queues.unused import CLUSTER
from ...monitors.rules import CARD_PLUGIN, Rules
from ...scheduler.inputs import ObjectGone, ObjectSeen
from ...virtual import outcomes
from . import records
from .books import Books, LedgerJob, Loss
from .victims import Victims, cause_of


class Monitors:
    """Judges one run under a policy."""

    def __init__(self, policy: str) -> None:
        self._rules = Rules(policy)
        self._books = Books(self._rules)
        self._victims = Victims(self._books, self._rules, self._find)
        self._changed: dict[str, tuple[str, str]] = {}
        """Job → the kind of the last act on its gang in this cycle, and the reason."""
        self._short: set[str] = set()
        """Resources of which too little was free for other queues' guarantees at the last bind."""
        self._cycle, self._at = 0, 0.0
        self._evicting: list[tuple[str, str]] = []
        """Jobs and pods that the decisions of the cycle evict."""
        self._changes = 0
        """Number of jobs submitted, jobs ended, pods that lost their nodes, and changed nodes and queues, so far."""
        self.found: list[records.Finding] = []
        """In order."""
        self._handlers: dict[type, Callable[[Any], None]] = {
            ObjectSeen: self._on_seen,
            ObjectGone: self._on_gone,
            outcomes.Submitted: self._on_submitted,
            outcomes.Cycle: self._on_cycle,
            outcomes.Stopped: self._on_stopped,
            outcomes.Placed: self._on_placed,
            outcomes.Evicted: self._on_evicted,
            outcomes.Released: self._on_released,
            outcomes.Disrupted: self._on_disrupted,
            outcomes.Ended: self._on_ended,
        }

    def observe(self, happened: object) -> None:
        """Process the next input of the core, or the next outcome of the simulation."""
        if (handle := self._handlers.get(type(happened))) is not None:
            handle(happened)

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

    # ------------------------------------------------------------------------------------------------------ inputs

    def _on_seen(self, given: ObjectSeen) -> None:
        item = given.object
        if given.kind == "Pod":
            self._books.see_pod(item)
        elif given.kind == "PodGroup" and (job := self._books.jobs.get(item.metadata.key)) is not None:
            job.loses_single_pods = gangs.loses_single_pods(item.metadata.annotations)
        elif given.kind == "Node" and self._books.see_node(item.metadata.name, item):
            self._on_world_changed(item.metadata.name)
        elif given.kind == "Queue" and self._books.see_queue(item.metadata.name, item):
            self._on_world_changed()

    def _on_gone(self, given: ObjectGone) -> None:
        if given.kind == "Pod":
            self._books.lose_pod(given.key)
        elif given.kind == "Node":
            self._on_world_changed(given.key)  # victims are judged by what the node had
            self._books.see_node(given.key, None)
        elif given.kind == "Queue" and self._books.see_queue(given.key, None):
            self._on_world_changed()

    def _on_world_changed(self, node: str = "") -> None:
        self._changes += 1
        self._victims.world_changed(node)

    # ---------------------------------------------------------------------------------------------------- outcomes

    def _on_submitted(self, outcome: outcomes.Submitted) -> None:
        requests = {name: amount for name, amount in amounts.parse(outcome.requests).items() if amount > 0}
        self._changes += 1
        self._books.jobs[outcome.job] = LedgerJob(
            outcome.job, outcome.queue, outcome.pods, outcome.min_member, outcome.requests, requests
        )

    def _on_cycle(self, outcome: outcomes.Cycle) -> None:
        self._judge_gangs()
        self._books.end_cycle()
        self._cycle, self._at = outcome.number, outcome.at
        self._evicting = [(eviction.job, eviction.task) for eviction in outcome.decisions.evictions]

    def _on_stopped(self, outcome: outcomes.Stopped) -> None:
        self._victims.job_over(outcome.job)

    def _on_placed(self, outcome: outcomes.Placed) -> None:
        books, job = self._books, self._books.jobs[outcome.job]
        was_freed = any(job.freed.values())
        books.place(job, outcome.pod, outcome.node)
        if not self._cycle:  # a pod of the state from which the run begins
            return
        requests, has = job.of(outcome.pod), books.has.get(outcome.node, {})
        if text := nodes.overfull(outcome.node, books.on_node.get(outcome.node, {}), has, requests):
            self._find(nodes.NAME, outcome.job, text)
        with books.without(self._evicting):
            self._judge_quotas(job, requests, was_freed=was_freed)
        self._victims.placed(job, outcome.pod, outcome.node)
        if gangs.is_kept_whole("bind", "", self._rules):
            self._changed[outcome.job] = ("bind", "")

    def _on_evicted(self, outcome: outcomes.Evicted) -> None:
        job, why = self._books.jobs[outcome.job], outcome.reason
        if outcome.pod in job.victims or outcome.pod not in job.placed:
            return
        self._books.evict(job, outcome.pod, cause_of(why))
        reason = f"{why.action} for {why.preemptor} of queue {why.preemptor_queue}"
        self._victims.evicted(job, outcome.pod, cause_of(why), (self._at, self._cycle), reason)
        if gangs.is_kept_whole("evict", why.action, self._rules) and not job.loses_single_pods:
            self._changed[outcome.job] = ("evict", reason)
        self._judge_repeated(job, outcome.pod, why.preemptor, reason)
        self._judge_protection(job, outcome.pod, why.action, why.preemptor_queue, reason)

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

    def _judge_quotas(self, job: LedgerJob, requests: Amounts, *, was_freed: bool) -> None:
        """Check the capabilities and guarantees of queues after a bind; for `was_freed` see `_judge_guarantees`."""
        books = self._books
        if self._rules.queue_plugin and not self._rules.are_cards_unlimited:
            is_card = self._rules.queue_plugin == CARD_PLUGIN
            requested = usage.without_cards(requests) if is_card else requests
            for name in books.lineage(job.queue):
                limit = books.capability.get(name)
                if limit and (text := capability.lifted(name, books.below(name), (limit,), requested)):
                    self._find(capability.NAME, job.name, text)
        if books.guarantee and self._rules.queue_plugin in usage.GUARANTEED:
            self._judge_guarantees(job, requests, was_freed=was_freed)

    def _judge_guarantees(self, job: LedgerJob, requests: Amounts, *, was_freed: bool) -> None:
        """Check that the guarantees of other queues are free; report a resource once until enough of it is free.

        `was_freed`: pods were evicted for the job, whose capacity was not free before.
        """
        books = self._books
        line = books.lineage(job.queue)
        pools = {CLUSTER: books.free} | {name: books.left_in(name) for name in line[1:]}
        found: dict[str, str] = {}
        for pool, left in pools.items():
            for dimension, text in guarantee.taken(pool, left, line, requests, books.unused).items():
                found[dimension] = found.get(dimension, "") or text
        for dimension, text in found.items():
            is_short = bool(text) and not was_freed
            if is_short and dimension not in self._short:
                self._find(guarantee.NAME, job.name, text)
            (self._short.add if is_short else self._short.discard)(dimension)

    def _judge_repeated(self, job: LedgerJob, pod: str, preemptor: str, reason: str) -> None:
        """Check that a pod is evicted again for the same job only with a new cause (`monitors.evictions.repeated`)."""
        before, preemptor_job = job.lost.get(preemptor), self._books.jobs.get(preemptor)
        self._pass_on(job, preemptor)
        if before is not None and pod not in before.pods:
            before.pods.add(pod)
            return
        if before is not None and not self._has_new_cause(before, preemptor_job):
            self._find(repeated.NAME, job.name, "evicted again for the same job", reason)
        job.lost[preemptor] = Loss({pod}, self._changes)
        if preemptor_job is not None:
            preemptor_job.evicted.add(job.name)

    def _has_new_cause(self, before: Loss, preemptor: LedgerJob | None) -> bool:
        third = self._books.jobs.get(before.passed_to)
        has_third = third is not None and (third.active > 0 or before.passed_in == self._cycle)
        claims_more = preemptor is not None and 0 < preemptor.active < preemptor.pods and not before.has_returned
        return repeated.is_new_cause(
            needs_more=before.passed_in is not None or claims_more,
            has_changed=before.changes < self._changes,
            third_keeps=before.passed_in is not None and has_third,
        )

    def _pass_on(self, job: LedgerJob, receiver: str) -> None:
        """Record for the victims of `job` that it loses capacity; `receiver` is the job that gets it, if any."""
        if receiver in job.evicted:
            job.evicted.discard(receiver)
            if (victim := self._books.jobs.get(receiver)) is not None and job.name in victim.lost:
                victim.lost[job.name].has_returned = True
        for name in job.evicted:
            victim = self._books.jobs.get(name)
            if victim is not None and job.name in victim.lost:
                loss = victim.lost[job.name]
                loss.passed_in, loss.passed_to = self._cycle, "" if receiver in job.lost else receiver

    def _judge_protection(self, job: LedgerJob, pod: str, action: str, receiving_queue: str, reason: str) -> None:
        books = self._books
        if why := job.protected.get(pod, {}).get(action):
            self._find(protection.NAME, job.name, f"evicted although {why}", reason)
        if action != "reclaim":
            return
        if job.queue in books.closed_to_reclaim:
            self._find(protection.NAME, job.name, f"evicted although {protection.closed(job.queue)}", reason)
        is_kept = books.guarantee and self._rules.queue_plugin in usage.GUARANTEED
        for name in books.lineage(job.queue) if is_kept else ():
            guarantees, held = (books.guarantee.get(name, {}),), books.below(name)
            if name in books.lineage(receiving_queue) or not guarantee.cut(name, guarantees, held, job.of(pod)):
                continue
            if text := guarantee.cut(name, guarantees, amounts.total((held, books.kept(name))), job.of(pod)):
                self._find(guarantee.NAME, job.name, text, reason)

    def _judge_gangs(self) -> None:
        """Judge the gangs that the last cycle changed."""
        for name, (kind, reason) in self._changed.items():
            job = self._books.jobs[name]
            if text := gangs.incomplete(kind, job.active, job.minimum):
                self._find(gangs.NAME, name, text, reason)
        self._changed.clear()
