"""Promise `permitted`: each eviction is one that the policy permits, and of equal victims the right one is evicted.

The promise judges only rules that the case's own amounts decide. It is silent where a plugin computes an amount (a
share by weight, a tree's inherited shares).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from ...monitors.rules import lineage
from ...scheduler.policy.model import PluginOption
from ...scheduler.policy.schema import EVICTING
from ..reduce.case import CARD_MEMORY, Case, CaseQueue, Work
from ..reduce.play import START_DELAY, Act, Happened, Story
from .timeline import Moment, RuleViolation, moments, steps_of

_EPSILON = 1e-6
_PROTECTING = {"reclaim": ("cdp", "pdb"), "preempt": ("cdp", "pdb", "drf")}
"""Plugins that may protect one of two victims that are equal in the case, by action."""


def forbidden_evictions(case: Case, story: Story) -> Iterator[RuleViolation]:
    """Yield the rules that evictions break."""
    jobs = {work.name: work for work in case.jobs}
    ranks = case.priorities
    steps = steps_of(case)
    for moment in moments(case, story):
        for act in moment.acts_of(Happened.EVICTED):
            reason = act.reason
            preemptor = jobs.get(reason.preemptor.rpartition("/")[2]) if reason is not None else None
            if preemptor is None or act.job not in jobs or act.pod not in moment.held:
                continue
            one = _Eviction(moment, act, jobs, (ranks, steps), preemptor)
            yield from (RuleViolation(rule, f"{act.pod} is evicted {text}", act.job) for rule, text in one.broken())


def unasked_backfills(case: Case, story: Story) -> Iterator[RuleViolation]:
    """Yield pods without requests that are placed although no action of the policy places such pods."""
    without_requests = {work.name for work in case.jobs if not any(amount for _, amount in work.requests)}
    for moment in moments(case, story) if without_requests else ():
        if "backfill" not in moment.policy.actions:
            placed = (act for act in moment.acts_of(Happened.PLACED) if act.job in without_requests)
            text = "is placed, which only the action backfill does"
            yield from (RuleViolation("backfill", f"{act.pod} {text}", act.job) for act in placed)


class _Eviction:
    """One eviction, and the cluster right before it."""

    def __init__(
        self,
        moment: Moment,
        act: Act,
        jobs: Mapping[str, Work],
        numbers: tuple[Mapping[str, int], Mapping[str, int]],
        preemptor: Work,
    ) -> None:
        assert act.reason is not None
        self._moment, self._act, self._jobs = moment, act, jobs
        self._ranks, self._steps = numbers
        self._reason, self._preemptor, self._victim = act.reason, preemptor, jobs[act.job]
        self._policy = moment.policy

    def broken(self) -> Iterator[tuple[str, str]]:
        action, mine, theirs = self._reason.action, self._preemptor.queue, self._victim.queue
        if action not in self._policy.actions:
            yield "action", f"by {action}, which is not an action of the policy"
        if action == "preempt" and mine != theirs:
            yield "queue", f"by preempt for a job of queue {mine}, although it is in queue {theirs}"
        if action == "reclaim" and mine == theirs:
            yield "queue", f"by reclaim for a job of its own queue {mine}"
        if action == "preempt" and self._rank_counts() and self._rank(self._victim) >= self._rank(self._preemptor):
            yield "priority", f"for {self._preemptor.name}, whose priority is not higher"
        if self._is_gangs_tier() and self._is_below_minimum():
            yield "gang", f"by tier {self._reason.tier + 1}, in which gang protects its minimum"
        if action == "reclaim" and self._is_starting(self._act.pod):
            yield "starting", "before it ran"
        if action == "reclaim" and (queue_rule := self._queue_rule()):
            yield queue_rule
        if action == "reclaim" and (plugin := self._policy.plugin("capacity-card")) is not None:
            yield from self._service_rules(plugin)
        is_by_card = CARD_MEMORY in dict(self._victim.requests)  # an equal pod may be on another card of the node
        if self._victim.pods == 1 and not is_by_card and not any(map(self._policy.plugin, _PROTECTING[action])):
            yield from self._better_victims()
            if action == "reclaim" and self._preemptor.pods == 1:
                yield from self._nearer_victims()

    def _rank(self, work: Work) -> int:
        return self._ranks.get(work.priority, 0)

    def _rank_counts(self) -> bool:
        """Whether the plugin priority protects victims unless their priority is lower than the preemptor's."""
        plugin = self._policy.plugin("priority")
        return plugin is not None and plugin.enabled("enablePreemptable") and self._victim is not self._preemptor

    def _is_gangs_tier(self) -> bool:
        """Whether gang has a vote in the tier that permitted the eviction."""
        tiers, number = self._policy.tiers, self._reason.tier
        tier = tiers[number] if number < len(tiers) else ()
        return any(option.name == "gang" and option.enabled(EVICTING[self._reason.action]) for option in tier)

    def _is_below_minimum(self) -> bool:
        """Whether the eviction leaves fewer pods of the job than its minimum, after the evictions decided before it.

        A pod that starts in the same cycle may replace an evicted pod.
        """
        moment, job = self._moment, self._victim
        held = sum(held.job is job and pod not in moment.leaving for pod, held in moment.held.items())
        held += sum(act.job == job.name for act in moment.acts_of(Happened.PLACED))
        evicted = [act for act in moment.acts_of(Happened.EVICTED) if act.job == job.name]
        return evicted.index(self._act) >= held - job.minimum

    def _is_starting(self, pod: str) -> bool:
        return self._moment.at - self._moment.held[pod].since < START_DELAY - _EPSILON

    def _queue_rule(self) -> tuple[str, str] | None:
        """Return the rule of flat queues with deserved amounts that the eviction breaks."""
        plugin, moment = self._policy.plugin("capacity"), self._moment
        if plugin is None or plugin.enabled("enableHierarchy"):
            return None
        reclaimer, lender = moment.queues.get(self._preemptor.queue), moment.queues.get(self._victim.queue)
        if reclaimer is None or lender is None:
            return None
        if plugin.enabled("enablePreemptive") and not self._is_entitled(reclaimer):
            return "deserved", f"for queue {reclaimer.name}, which would hold more than it deserves"
        if plugin.enabled("enableReclaimable") and not self._lends(lender):
            return "deserved", f"from queue {lender.name}, which holds no more than it deserves"
        return None

    def _service_rules(self, plugin: PluginOption) -> Iterator[tuple[str, str]]:
        """Yield the rules of quotas of cards that the eviction breaks: services reclaim from jobs of lower priority."""
        if plugin.enabled("enablePreemptive") and not self._preemptor.is_service:
            yield "service", f"for {self._preemptor.name}, which is no service"
        if not self._is_voter(plugin) or not plugin.enabled("enableReclaimable"):
            return
        if self._victim.is_service:
            yield "service", f"from {self._victim.name}, which is a service"
        if self._rank(self._victim) >= self._rank(self._preemptor):
            yield "priority", f"for {self._preemptor.name}, whose priority is not higher"

    def _is_voter(self, plugin: PluginOption) -> bool:
        """Whether a plugin is in the tier that permitted the eviction."""
        tiers, number = self._policy.tiers, self._reason.tier
        return number < len(tiers) and plugin in tiers[number]

    def _is_entitled(self, reclaimer: CaseQueue) -> bool:
        """Whether the reclaimer deserves one more pod in any dimension, in addition to the least that it may hold."""
        held, requests = self._moment.least_held(reclaimer.name), dict(self._preemptor.requests)
        deserved = dict(reclaimer.deserved)
        deserved |= {name: max(deserved.get(name, 0), amount) for name, amount in reclaimer.guarantee}
        return any(held.get(name, 0) + amount <= deserved.get(name, 0) for name, amount in requests.items())

    def _lends(self, lender: CaseQueue) -> bool:
        """Whether the most that the lender may hold exceeds the least that it may deserve, in any dimension."""
        moment, frees = self._moment, dict(self._victim.requests)
        deserved = dict(lender.deserved)
        if any(not deserved.get(name) for name in frees) or any(queue.guarantee for queue in moment.queues.values()):
            return True
        least = {name: min(amount, dict(lender.capability).get(name, amount)) for name, amount in deserved.items()}
        total, held = moment.total, moment.most_held(lender.name, self._jobs)
        return any(held.get(name, 0) > min(least[name], total.get(name, 0)) for name in frees)

    def _better_victims(self) -> Iterator[tuple[str, str]]:
        """Yield a breach for each equal pod on the same node that had to be evicted first."""
        moment, mine = self._moment, self._moment.held[self._act.pod]
        lost = {act.pod for act in moment.acts_of(Happened.EVICTED)} | moment.leaving
        for pod, held in moment.held.items():
            work = held.job
            is_equal = _shape(work) == _shape(self._victim) and held.node == mine.node and work is not self._preemptor
            if not is_equal or pod in lost or self._is_starting(pod) or self._is_starting(self._act.pod):
                continue
            if self._rank(work) < self._rank(self._victim):
                yield "order", f"although {pod} has a lower priority"
            elif (
                self._rank(work) == self._rank(self._victim) and self._steps[work.name] > self._steps[self._victim.name]
            ):
                yield "order", f"although {pod} is younger"

    def _nearer_victims(self) -> Iterator[tuple[str, str]]:
        """Yield a breach for each pod on the node, of no higher priority, whose queue lends and is nearer by."""
        moment, mine, plugin = self._moment, self._moment.held[self._act.pod], self._policy.plugin("capacity")
        if plugin is None or not plugin.enabled("enableHierarchy") or not self._is_own_share():
            return
        lost = {act.pod for act in moment.acts_of(Happened.EVICTED)} | moment.leaving
        near = self._common_ancestors(self._victim.queue)
        for pod, held in moment.held.items():
            work = held.job
            is_equal = work.requests == self._victim.requests and self._rank(work) <= self._rank(self._victim)
            is_free = pod not in lost and not self._is_starting(pod) and work.queue != self._preemptor.queue
            is_near = held.node == mine.node and self._common_ancestors(work.queue) > near
            if is_equal and is_free and is_near and self._can_lose_one(work, lost) and self._has_surplus(work):
                yield "near", f"from queue {self._victim.queue}, although {work.queue} is nearer and lends {pod}"

    def _can_lose_one(self, work: Work, lost: Collection[str]) -> bool:
        """Whether a job can lose a single pod: it has only one pod, or more pods than its minimum."""
        held = sum(other.job is work and pod not in lost for pod, other in self._moment.held.items())
        return work.pods == 1 or held > work.minimum

    def _is_own_share(self) -> bool:
        """Whether the preemptor's queue deserves what it holds with the preemptor, and no queue has a guarantee."""
        moment, reclaimer = self._moment, self._preemptor.queue
        if reclaimer not in moment.queues or any(queue.guarantee for queue in moment.queues.values()):
            return False
        held, deserved = moment.most_held(reclaimer, self._jobs), dict(moment.queues[reclaimer].deserved)
        return all(held.get(name, 0) <= deserved.get(name, 0) for name, _ in self._preemptor.requests)

    def _has_surplus(self, work: Work) -> bool:
        """Whether the job's queue still holds what it deserves after the job has lost one pod."""
        queue = self._moment.queues.get(work.queue)
        if queue is None or not queue.reclaimable or not work.preemptable or not queue.deserved:
            return False
        held, deserved = self._moment.least_held(queue.name), dict(queue.deserved)
        return all(held.get(name, 0) - amount >= deserved.get(name, 0) for name, amount in work.requests)

    def _common_ancestors(self, queue: str) -> int:
        """Return the number of common ancestors of a queue and the preemptor's queue, themselves included."""
        return len(self._ancestors(queue) & self._ancestors(self._preemptor.queue))

    def _ancestors(self, name: str) -> set[str]:
        queues = self._moment.queues
        return queues.keys() & lineage(name, lambda it: queues[it].parent if it in queues else "")


def _shape(work: Work) -> Work:
    return replace(work, name="", priority="", minimum=1)
