"""Promise `made`: no job waits that would run if the policy's actions evicted one pod.

A case is judged only if its amounts prove that every rule of the policy permits this eviction. The waiting job and the
victim have one pod each, and the job is admitted or is the only one that waits. Jobs without requests need no victim.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..incident.case import Case, Queue, Work
from ..incident.play import Story, policy_of
from ..policy.schema import EVICTING
from .owed import End, needs_one_place
from .timeline import Breach, closed_at

_OTHER_RULES = ("sla", "resourcequota", "nodegroup", "cdp", "pdb", "drf", "overcommit", "capacity-card")


def jobs_without_room(case: Case, story: Story) -> Iterator[Breach]:
    """Yield the jobs that wait although backfill, or one eviction by an action of the policy, could let them run."""
    policy = policy_of(case.policies[-1])
    end = End(case, story, policy)
    if any(policy.plugin(name) is not None for name in _OTHER_RULES) or policy.plugin("gang") is None:
        return
    closed, failed = closed_at(case, len(case.steps)), case.failed
    waiting = [
        work
        for work in end.waiting
        if work.name not in failed
        and work.queue not in closed
        and not end.is_parent(work.queue)
        and not needs_one_place(work)
    ]
    without_requests = [work.name for work in waiting if not any(amount for _, amount in work.requests)]
    if "backfill" in policy.actions and end.idle:
        yield from (Breach("backfill", f"{name} waits although it requests nothing", name) for name in without_requests)
    judge = _Judge(case, end)
    for work in waiting:
        is_admitted = story.end.phases.get(work.name) == "Inqueue" or "enqueue" not in policy.actions
        if work.pods > 1 or work.name in without_requests or not (is_admitted or len(end.waiting) == 1):
            continue
        for action in EVICTING:
            if judge.could(work, action):
                yield Breach(action, f"{work.name} waits although it could {action} the capacity of one pod", work.name)


class _Judge:
    """Judges whether one eviction would let a job run."""

    def __init__(self, case: Case, end: End) -> None:
        self._end, self._policy = end, end.policy
        self._ranks = case.priorities

    def could(self, work: Work, action: str) -> bool:
        """Whether the action may evict one pod whose capacity suffices for the job."""
        may = self._may_reclaim if action == "reclaim" else self._may_preempt
        if action not in self._policy.actions or self._end.fits(work) or not self._has_tier(action):
            return False
        return any(may(work, victim) for victim in self._victims(work))

    def _victims(self, work: Work) -> Iterator[Work]:
        """Yield the running jobs of one pod whose eviction alone frees enough."""
        for node, job in self._end.on_nodes:
            frees, idle = dict(job.requests), self._end.idle[node]
            has_same = {name for name, amount in frees.items() if amount} == {name for name, n in work.requests if n}
            is_enough = all(idle.get(name, 0) + frees.get(name, 0) >= amount for name, amount in work.requests)
            if job.pods == 1 and job.preemptable and has_same and is_enough:
                yield job

    def _has_tier(self, action: str) -> bool:
        """Whether jobs can starve and a tier may permit the eviction of a whole gang, which every job of one pod is."""
        switch = EVICTING[action]
        voters = ("capacity", "proportion") if action == "reclaim" else ("priority",)
        starving = [self._policy.plugin(name) for name in ("gang", "priority")]
        if not any(plugin is not None and plugin.enabled("enableJobStarving") for plugin in starving):
            return False
        return any(
            any(option.name in voters and option.enabled(switch) for option in tier)
            and not any(option.name == "gang" and option.enabled(switch) for option in tier)
            for tier in self._policy.tiers
        )

    def _may_preempt(self, work: Work, victim: Work) -> bool:
        requests, frees = dict(work.requests), dict(victim.requests)
        is_lower = self._ranks.get(victim.priority, 0) < self._ranks.get(work.priority, 0)
        # A queue's share by weight may fall below what it holds once other queues request something.
        active = {job.queue for _, job in self._end.on_nodes} | {job.queue for job in self._end.waiting}
        is_alone = self._policy.plugin("proportion") is None or active == {work.queue}
        queue = self._end.queues[work.queue]
        return (
            is_lower
            and is_alone
            and victim.queue == work.queue
            and "enqueue" not in self._policy.actions
            and all(frees.get(name, 0) >= amount for name, amount in requests.items())
            and not queue.capability
            and not any(one.guarantee for one in self._end.queues.values())
        )

    def _may_reclaim(self, work: Work, victim: Work) -> bool:
        queues, end = self._end.queues, self._end
        reclaimer, lender = queues[work.queue], queues.get(victim.queue)
        has_guarantees = any(queue.guarantee for queue in queues.values())
        if lender is None or lender is reclaimer or not lender.reclaimable or has_guarantees:
            return False
        plugin = self._policy.plugin("capacity") or self._policy.plugin("proportion")
        if plugin is None or not plugin.enabled("enablePreemptive") or plugin.enabled("enableHierarchy"):
            return False
        if plugin.name == "proportion":
            is_above = self._is_above_share(work, lender)
        else:
            is_above = self._is_above_deserved(victim, lender)
        return is_above and end.has_share(reclaimer, dict(work.requests), is_tree=False)

    def _is_above_deserved(self, victim: Work, lender: Queue) -> bool:
        """Whether the lender still holds what it deserves without the victim."""
        held, deserved = self._end.held(lender.name, is_tree=False), dict(lender.deserved)
        return all(held.get(name, 0) - amount >= deserved.get(name, 0) for name, amount in victim.requests)

    def _is_above_share(self, work: Work, lender: Queue) -> bool:
        """Whether the lender exceeds its share: only it and the job's queue run pods, and too little is idle."""
        idle = self._end.idle
        is_short = all(sum(one.get(name, 0) for one in idle.values()) < amount for name, amount in work.requests)
        is_alone = all(job.queue in (lender.name, work.queue) for _, job in self._end.on_nodes)
        return is_short and is_alone and not any(one.capability for one in self._end.queues.values())
