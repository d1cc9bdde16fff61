"""Monitor: no pod is evicted that could have stayed.

1. An eviction was needless if the victim would fit on its node beside every pod that was bound there since, up to the
   end of a pod that was not evicted for the same cause, or only after a node or a queue changed. Pods of the preemptors
   that waited at the eviction count even if they are bound later: each job of one decision may get the capacity of
   another job's victim.
2. It was needed if the victim's queue would have been above a limit at one of these binds, or at a bind of a pod that
   waited for it if nothing else had been evicted since.
3. In a cluster, a scheduler decides before its writes are seen. An eviction is not judged if a pod of the node ended by
   itself within the second before it. kube-scheduler evicts a pod without a job for one other pod and names none: its
   eviction was needed if it would not have fit at one of these binds.
4. A gang that was evicted as a whole is one victim: its eviction was needed unless enough members could have stayed for
   the gang to run.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from ...api.kinds import Kind
from .. import amounts, shared_cards
from ..amounts import NONE, Amounts
from ..ledger import LATELY, SWITCHES, Ledger, Monitor
from ..limits import CLUSTER
from ..lives import Eviction, Job, Pod
from ..rules import Rules


@dataclass(slots=True, eq=False)
class _Unit:
    """The evictions of one job for one cause, and whether they left no member of its gang."""

    queue: str
    victims: list[_Victim] = field(default_factory=list)
    is_whole: bool = False
    minimum: int = 0
    """The gang's minimum at the eviction."""
    undecided: int = 0

    def pods(self, victim: _Victim) -> list[Pod]:
        """Return the pods that would have had to stay together with a victim."""
        return [it.pod for it in self.victims] if self.is_whole else [victim.pod]


@dataclass(slots=True, eq=False)
class _Victim:
    """An evicted pod that is not decided yet."""

    pod: Pod
    eviction: Eviction
    unit: _Unit
    would_hold: Amounts | None = None
    """What its node would hold with it and its unit after the last bind there; None before a bind."""
    has: Amounts = field(default_factory=dict)
    """What the node had at this bind."""
    waits_for: set[str] = field(default_factory=set)
    """The jobs that may get its capacity: those for which the moment evicted, or any that was bound since."""
    exceeds: bool = False
    """Whether a queue would have been above a limit with it at a bind since; it counts from the next bind there on."""
    is_needed: bool = False
    is_ended: bool = False
    """Whether only pods that waited for it may still show that it was needed."""
    is_decided: bool = False

    @property
    def could_stay(self) -> bool:
        """Whether it could have stayed, by the binds so far."""
        return self.would_hold is not None and not self.is_needed and _is_within(self.would_hold, self.has)


@dataclass(slots=True, eq=False)
class _Decision:
    """The victims of one cause, while its preemptor has pods that waited for them."""

    victims: list[_Victim] = field(default_factory=list)
    held: dict[str, Amounts] = field(default_factory=dict)
    """Queue of a victim, or an ancestor → what it held right after the evictions, and the preemptor's pods since."""
    left: Amounts = field(default_factory=dict)
    """What was free then beyond the unused guarantees of queues, without the preemptor's pods since."""


class NeedlessMonitor(Monitor):
    """Judges each eviction as soon as its effect is known."""

    NAME = "needless-eviction"

    def __init__(self, ledger: Ledger, rules: Rules) -> None:
        super().__init__(ledger, rules)
        self._units: dict[tuple[str, str], _Unit] = {}
        """Job and cause → the unit to which more evictions may belong."""
        self._decided: deque[tuple[tuple[str, str], _Unit]] = deque()
        """Units without an undecided victim, oldest first; more of their evictions may be written within a burst."""
        self._new: list[_Victim] = []
        self._decisions: dict[str, dict[str, _Decision]] = {}
        """Preemptor → cause → its decision."""
        self._on_node: dict[str, list[_Victim]] = {}
        """Node → the victims about which its binds still show something."""
        self._of_queue: dict[str, list[_Victim]] = {}
        """Queue → the undecided victims of the queue and its descendants, or all (`CLUSTER`)."""
        self._ended: dict[str, float] = {}
        """Node → the time at which a pod that was not evicted last ended there, the oldest first."""
        self._later: dict[str, list[_Victim]] = {}
        """Job → victims that could have stayed unless its waiting pods need their nodes."""

    def on_evicted(self, pod: Pod, eviction: Eviction) -> None:
        """Begin to watch a victim, unless it is of a gang of Kubernetes, whose own mode says what goes together."""
        if not pod.node or pod.job.groups.keys() & {Kind.GANG, Kind.GANG_ALPHA}:
            return
        if self.ledger.burst and self._ended.get(pod.node, -math.inf) >= eviction.at - LATELY:
            return
        job, key = pod.job, (pod.job.key or pod.uid, eviction.cause)
        self._forget_units(eviction.at - self.ledger.burst)
        unit = self._units.get(key)
        if unit is None or eviction.at - unit.victims[-1].eviction.at > self.ledger.burst:
            unit = self._units[key] = _Unit(job.queue, minimum=job.minimum)
        switch = SWITCHES.get(eviction.action, "enableReclaimable")
        unit.is_whole = job.group is not None and not job.active and self.rules.is_enabled("gang", switch)
        unit.undecided += 1
        victim = _Victim(pod, eviction, unit)
        unit.victims.append(victim)
        self._new.append(victim)
        fresh, held = _Decision(), {name: self.ledger.below(name) for name in self.ledger.lineage(job.queue)}
        causes = (self._decisions.setdefault(name, {}) for name in eviction.preemptors)
        for decision in {known.setdefault(eviction.cause, fresh) for known in causes}:
            decision.victims.append(victim)
            decision.held |= held
            decision.left = self.ledger.unused.left(self.ledger.free) if self.ledger.keeps_guarantees else {}
        self._on_node.setdefault(pod.node, []).append(victim)
        for name in (CLUSTER, *self.ledger.lineage(job.queue)):
            self._of_queue.setdefault(name, []).append(victim)

    def _forget_units(self, since: float) -> None:
        """Forget the decided units without an eviction since then."""
        while self._decided and self._decided[0][1].victims[-1].eviction.at < since:
            key, unit = self._decided.popleft()
            if not unit.undecided and self._units.get(key) is unit:
                del self._units[key]

    def on_moment(self) -> None:
        """Give the victims of a decision all of its preemptors."""
        preemptors = {name for victim in self._new for name in victim.eviction.preemptors}
        for victim in self._new:
            victim.waits_for = preemptors if victim.eviction.preemptors else set()
        self._new.clear()

    def on_bound(self, pod: Pod) -> None:
        """Judge the victims of the node, and those whose queue the bind concerns."""
        for name in (CLUSTER, *self.ledger.lineage(pod.job.queue)):
            if name in self._of_queue:
                self._judge_queue(name, is_claim=pod.created < pod.job.claimed)
        for decision in self._decisions.get(pod.job.key, {}).values():
            self._judge_decision(decision, pod)
        for victim in self._on_node.get(pod.node, ()):
            if not victim.is_needed:
                self._judge_node(victim)
        for victim in self._later.get(pod.job.key, ()):
            if pod.created < victim.eviction.number and victim.would_hold is not None:
                victim.is_needed = victim.is_needed or self._is_limited(victim)
                if pod.node == victim.pod.node:
                    victim.would_hold = amounts.total((victim.would_hold, pod.requests))
        self.on_over(pod.job)

    def before(self, pod: Pod, what: str) -> None:
        """Process the end of a pod: what is bound on its node later shows nothing about victims of other decisions."""
        if what != "end":
            return
        if pod.eviction is None:
            self._ended.pop(pod.node, None)
            self._ended[pod.node] = self.ledger.at
            while next(iter(self._ended.values())) < self.ledger.at - LATELY:
                del self._ended[next(iter(self._ended))]
        if pod.node in self._on_node:
            victims = self._on_node.pop(pod.node)
            mine = _decision_of(pod.eviction) if pod.eviction is not None else None
            if same := [victim for victim in victims if _decision_of(victim.eviction) == mine]:
                self._on_node[pod.node] = same
            for victim in victims:
                if _decision_of(victim.eviction) != mine:
                    self._end(victim)

    def on_over(self, job: Job) -> None:
        """Decide the victims for which a job has no waiting pod any more."""
        if not job.waits_since(job.claimed):
            self._decisions.pop(job.key, None)
        victims = self._later.pop(job.key, [])
        waiting = [victim for victim in victims if job.waits_since(victim.eviction.number)]
        if waiting:
            self._later[job.key] = waiting
        for victim in victims:
            if not job.waits_since(victim.eviction.number):
                victim.waits_for.discard(job.key)
                if not victim.waits_for:
                    self._decide(victim)

    def close(self) -> None:
        for victims in [*self._later.values(), *self._on_node.values()]:
            for victim in victims:
                self._decide(victim)

    def _judge_node(self, victim: _Victim) -> None:
        """Compute what the node would hold with the victim, and with the members of its unit that were there."""
        node, ledger, unit = victim.pod.node, self.ledger, victim.unit
        here = {pod.key: pod for pod in unit.pods(victim) if pod.node == node}  # a pod may have been evicted twice
        there = ledger.pods_on.get(node, {})
        gone = [pod for key, pod in here.items() if key not in there]
        victim.would_hold = amounts.total((ledger.on_node.get(node, {}), *(pod.requests for pod in gone)))
        victim.has = ledger.has.get(node, {})
        is_limited = victim.exceeds or self._is_limited(victim)
        is_full = not victim.pod.job.key and not _is_within(victim.would_hold, victim.has)
        victim.is_needed = is_limited or is_full or node not in ledger.nodes
        if self.rules.has(shared_cards.PLUGIN) and not victim.is_needed:
            pods = [ledger.shown(pod.source) for pod in (*there.values(), *gone)]
            victim.is_needed = shared_cards.exceeded(ledger.nodes[node], pods)

    def _judge_queue(self, name: str, *, is_claim: bool) -> None:
        """Note the victims that a queue, or the unused guarantees of queues (`CLUSTER`), could not have kept.

        `is_claim`: the bind is of a pod for which pods were evicted, so that its quota was not free before.
        """
        victims = self._of_queue[name] = [victim for victim in self._of_queue[name] if not victim.is_decided]
        if not victims:
            del self._of_queue[name]
        if name == CLUSTER and not self.ledger.keeps_guarantees:
            return
        left = self.ledger.unused.left(self.ledger.free) if name == CLUSTER else {}
        for victim in victims:
            if not victim.is_needed and (is_claim or not (victim.exceeds or victim.is_ended)):
                if name == CLUSTER:
                    exceeds = _is_beyond(self._more(victim), left)
                else:
                    exceeds = self._exceeds(victim, name, self.ledger.below(name))
                victim.exceeds = victim.exceeds or exceeds
                victim.is_needed = exceeds and is_claim

    def _judge_decision(self, decision: _Decision, pod: Pod) -> None:
        """Note the victims that a queue could not have kept beside a pod that waited for them, when it was decided."""
        if pod.created > decision.victims[0].eviction.number:
            return
        line, victims = self.ledger.lineage(pod.job.queue), [it for it in decision.victims if not it.is_needed]
        for name in decision.held.keys() & line:
            held = decision.held[name] = amounts.total((decision.held[name], pod.requests))
            for victim in victims:
                if name in self.ledger.lineage(victim.unit.queue):
                    victim.is_needed = victim.is_needed or self._exceeds(victim, name, held)
        if decision.left and not self._uses_its_guarantee(decision, line):
            decision.left = amounts.minus(decision.left, pod.requests)
        for victim in victims if decision.left else ():
            victim.is_needed = victim.is_needed or _is_beyond(self._more(victim), decision.left)

    def _uses_its_guarantee(self, decision: _Decision, line: Sequence[str]) -> bool:
        """Whether what a queue held at a decision, with the preemptor's pods since, is guaranteed to it or above it."""
        known = {name: decision.held.get(name, self.ledger.below(name)) for name in line if name in self.ledger.queues}
        return any(
            amount <= self.ledger.queues[name].guarantee.get(dimension, NONE)
            for name, held in known.items()
            for dimension, amount in held.items()
            if dimension in decision.left
        )

    def _is_limited(self, victim: _Victim) -> bool:
        """Whether the victim's queue, or the unused guarantees of queues, could not keep it now."""
        ledger = self.ledger
        if any(self._exceeds(victim, name, ledger.below(name)) for name in ledger.lineage(victim.unit.queue)):
            return True
        return ledger.keeps_guarantees and _is_beyond(self._more(victim), ledger.unused.left(ledger.free))

    def _exceeds(self, victim: _Victim, queue: str, others: Amounts) -> bool:
        """Whether a queue in which `others` is held would be above a limit with the victim's unit."""
        ledger, held = self.ledger, amounts.total((others, self._more(victim)))
        quota = ledger.queues[queue].cards if queue in ledger.queues else {}
        cards = sum((amount for name, amount in held.items() if "/" in name), NONE) if quota else NONE
        return not _is_within(held, ledger.limits(queue)) or any(cards > most for most in quota.values())

    def _more(self, victim: _Victim) -> Amounts:
        """Return what the unit would hold beside the present pods: its pods that have not been bound again."""
        pods = {pod.key: pod for pod in victim.unit.pods(victim)}
        known = ((pod, self.ledger.pods.get(key)) for key, pod in pods.items())
        return amounts.total(pod.requests for pod, now in known if now is None or not now.keeps)

    def _end(self, victim: _Victim) -> None:
        """Process that binds on the node show no more about a victim, unless they are of a pod that waited for it."""
        victim.is_ended, jobs = True, self.ledger.jobs
        number, waits_for = victim.eviction.number, victim.waits_for
        if victim.could_stay and not victim.eviction.preemptors:
            waits_for = {key for key, job in jobs.items() if key and job.bound > number}
        waits_for = {key for key in waits_for if key in jobs and jobs[key].waits_since(number)}
        if not victim.could_stay or not waits_for:
            self._decide(victim)
            return
        victim.waits_for = waits_for
        for key in sorted(waits_for):
            self._later.setdefault(key, []).append(victim)

    def _decide(self, victim: _Victim) -> None:
        if victim.is_decided:
            return
        unit, pod = victim.unit, victim.pod
        victim.is_decided = True
        unit.undecided -= 1
        key = pod.job.key or pod.uid, victim.eviction.cause
        if not unit.undecided:
            self._decided.append((key, unit))
        could_stay = [it for it in unit.victims if it.could_stay]
        is_enough = not unit.undecided and len(could_stay) >= min(unit.minimum, len(unit.victims))
        if (is_enough and could_stay) if unit.is_whole else victim.could_stay:
            pod = could_stay[-1].pod if unit.is_whole else pod
            text = f"evicted although {pod.node} had capacity for it and for all pods bound since"
            self.find(text, pod, victim.eviction)


def _decision_of(eviction: Eviction) -> tuple[str, int]:
    """Return what evictions share that one decision may have made: the cause, and the last change before them."""
    return eviction.cause, eviction.changed


def _is_within(held: Amounts, limits: Amounts) -> bool:
    return not amounts.above(held, limits, held)


def _is_beyond(more: Amounts, left: Amounts) -> bool:
    return any(more.get(name, NONE) > max(amount, NONE) for name, amount in left.items())
