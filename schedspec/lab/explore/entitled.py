"""Promise `entitled`: no job waits for which the policy may free capacity, as an exact search shows.

1. For a job that waits at the end, `_units` lists what an action may evict: single pods above a gang's minimum, or
   whole gangs. A case with more than six units is not judged.
2. Every set of these units is tried: it has to free enough on nodes, and each rule of the policy has to permit it.
3. A set that all rules permit breaks the promise. The job has to run then, whatever the shapes of its pods.

The rules are those of Volcano's queues with our rulings (docs/policies.md): a queue reclaims what it deserves in every
resource that it requests, from queues that hold more of one of them than they deserve. Where a rule depends on
something that the case does not show (a waiting time, the order of several jobs at admission), nothing is judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations

from ...scheduler.policy.model import Policy
from ...scheduler.policy.schema import EVICTING
from ..reduce.case import Case, Work, ancestors
from ..reduce.play import Story, policy_of
from .owed import OTHER_RULES, End
from .timeline import RuleViolation, Sums, add, slots, sum_of

_MOST = 6


def jobs_without_room(case: Case, story: Story) -> Iterator[RuleViolation]:
    """Yield the jobs that wait although backfill, or evictions that the policy permits, could let them run."""
    policy = policy_of(case.policies[-1])
    if any(policy.plugin(name) for name in OTHER_RULES):
        return
    end = End(case, story, policy)
    for work in end.judged:
        is_admitted = "enqueue" not in policy.actions or story.end.phases.get(work.name) == "Inqueue"
        if not any(amount for _, amount in work.requests):
            if "backfill" in policy.actions and end.idle:
                yield RuleViolation("backfill", f"{work.name} waits although it requests nothing", work.name)
        elif is_admitted or (len(end.waiting) == 1 and policy.plugin("overcommit") is None):
            yield from _Search(case, end, work).breaches()


def starves(policy: Policy, work: Work, held: int) -> bool:
    """Whether the first tier with such a rule says that a job of which `held` pods have a node may evict pods."""
    says = {"gang": held < work.minimum, "priority": held < work.pods}
    for tier in policy.tiers:
        if found := [says[one.name] for one in tier if one.name in says and one.enabled("enableJobStarving")]:
            return all(found)
    return False


@dataclass(frozen=True, slots=True)
class _Unit:
    """Pods that are evicted together, with the node of each."""

    work: Work
    nodes: tuple[str, ...]
    is_whole: bool
    most: int = 1
    """How many such units of the job may be evicted together: as many as it has pods above its minimum."""

    @property
    def frees(self) -> Sums:
        return {name: amount * len(self.nodes) for name, amount in self.work.requests}

    def __str__(self) -> str:
        return f"{self.work.name}" if self.is_whole else f"a pod of {self.work.name}"


def _keeps_minima(units: tuple[_Unit, ...]) -> bool:
    """Whether no gang loses more single pods than it has above its minimum."""
    lost = Counter(unit.work.name for unit in units)
    return all(lost[unit.work.name] <= unit.most for unit in units)


class _Search:
    """Searches the evictions that would let one job run."""

    def __init__(self, case: Case, end: End, work: Work) -> None:
        self._case, self._end, self._policy, self._work = case, end, end.policy, work
        self._ranks = case.priorities
        self._missing = end.missing(work)
        self._claim: Sums = {name: amount * self._missing for name, amount in work.requests if amount}
        self._shares = _Shares(case, end)

    def breaches(self) -> Iterator[RuleViolation]:
        """Yield a breach for each action that may let the job run."""
        if self._end.fits(self._work):
            return  # the promise `owed`
        for action in EVICTING:
            if action not in self._policy.actions or not starves(
                self._policy, self._work, self._end.placed(self._work)
            ):
                continue
            units = list(self._units(action))
            if 0 < len(units) <= _MOST and (found := self._sufficient(action, units)):
                names = ", ".join(map(str, found))
                yield RuleViolation(
                    action, f"{self._work.name} waits although {action} may evict {names}", self._work.name
                )

    def _sufficient(self, action: str, units: list[_Unit]) -> tuple[_Unit, ...]:
        """Return the smallest set of units that frees enough and that the policy permits; empty if there is none.

        Victims for the pods of a gang are chosen pod by pod. A gang is judged only if every set that frees enough is
        permitted, and every unit belongs to such a set, so that no choice for its first pod can keep its last pod from
        a node.
        """
        sets = (chosen for size in range(1, len(units) + 1) for chosen in combinations(units, size))
        sufficient = [chosen for chosen in sets if _keeps_minima(chosen) and self._suffices(chosen)]
        permitted = [one for one in sufficient if self._is_in_proportion(one) and self._permits(action, one)]
        is_any_choice_right = len(permitted) == len(sufficient) and {*units} == {*chain.from_iterable(sufficient)}
        is_judged = self._missing == 1 or is_any_choice_right
        return permitted[0] if permitted and is_judged else ()

    # ---------------------------------------------------------------------------------------------------- candidates

    def _units(self, action: str) -> Iterator[_Unit]:
        """Yield what an action may evict for the job: what the tiers permit, by the minimum of each gang."""
        whole, spare, is_minimum_kept = self._tiers(action)
        for name, nodes in self._end.nodes_of_jobs():
            work = self._end.job(name)
            above = len(nodes) - work.minimum * is_minimum_kept
            if name == self._work.name or not work.preemptable or not self._may_lose(action, work):
                continue
            if above >= len(nodes) - 1 and len(nodes) == 1:
                if whole:
                    yield _Unit(work, tuple(nodes), is_whole=True)
            elif above > 0 and spare:
                places = (node for node, pods in Counter(nodes).items() for _ in range(min(pods, above)))
                yield from (_Unit(work, (node,), is_whole=False, most=above) for node in places)
            elif above <= 0 and whole:
                yield _Unit(work, tuple(nodes), is_whole=True)

    def _may_lose(self, action: str, victim: Work) -> bool:
        queue = self._end.queues.get(victim.queue)
        if queue is None:
            return False
        if action == "preempt":
            is_lower = self._ranks.get(victim.priority, 0) < self._ranks.get(self._work.priority, 0)
            return victim.queue == self._work.queue and is_lower
        return victim.queue != self._work.queue and queue.reclaimable

    def _tiers(self, action: str) -> tuple[bool, bool, bool]:
        """Return whether the tiers permit whole gangs, and single pods above a minimum, and whether gang has a vote.

        The plugin that guards an action (the queue plugin, or priority) has to vote, or nobody is judged; another vote
        than those below may protect anybody. Without a vote of gang each pod is evicted on its own, also below its
        gang's minimum.
        """
        switch = EVICTING[action]
        guard = ("capacity", "proportion") if action == "reclaim" else ("priority",)
        plugins = [option for tier in self._policy.tiers for option in tier if option.enabled(switch)]
        if not any(one.name in guard for one in plugins) or (action == "preempt" and self._has_plugin("drf")):
            return False, False, False
        voters = [{one.name for one in tier if one.enabled(switch)} & {*guard, "gang", "conformance"}
                  for tier in self._policy.tiers]  # fmt: skip
        deciding = [names for names in voters if names]
        whole = any("gang" not in names for names in deciding)
        has_spare_pods = any(len(nodes) > work.minimum for work, nodes in self._running())
        if whole and "gang" in deciding[0] and has_spare_pods:
            whole = False  # the first tier permits pods above a minimum, and decides
        return whole, True, any("gang" in names for names in deciding)

    def _running(self) -> Iterator[tuple[Work, list[str]]]:
        yield from ((self._end.job(name), nodes) for name, nodes in self._end.nodes_of_jobs())

    def _has_plugin(self, name: str) -> bool:
        return self._policy.plugin(name) is not None

    # --------------------------------------------------------------------------------------------------------- rules

    def _suffices(self, units: tuple[_Unit, ...]) -> bool:
        """Whether the missing pods fit on what is idle and what the units free. Every unit is needed for that."""
        return self._fitting(units) >= self._missing and not any(
            self._fitting(tuple(other for other in units if other is not one)) >= self._missing for one in units
        )

    def _fitting(self, units: tuple[_Unit, ...]) -> int:
        idle = {node: dict(amounts) for node, amounts in self._end.idle.items()}
        for unit in units:
            for node in unit.nodes:
                add(idle[node], unit.work.requests)
        return sum(slots(amounts, self._work.requests) for amounts in idle.values())

    def _is_in_proportion(self, units: tuple[_Unit, ...]) -> bool:
        """Whether at most the requests of the placed pods are evicted, and for each of them one more unit.

        That has to hold in one of the requested resources, and in each of which a queue above the job holds too much.
        """
        kept, exceeded = set(), set[str]()
        for name, amount in self._claim.items():
            freed = [unit.frees.get(name, 0) for unit in units]
            if any(freed) and sum(freed) <= amount + self._missing * max(freed):
                kept.add(name)
        for queue in self._shares.above(self._work.queue):
            held, limit = self._shares.held(queue), self._shares.limit(queue)
            exceeded |= {name for name in self._claim if held.get(name, 0) > limit.get(name, 0)}
        return bool(kept) and exceeded <= kept

    def _permits(self, action: str, units: tuple[_Unit, ...]) -> bool:
        if not self._stays_within_limits(units) or not self._keeps_guarantees(units):
            return False
        if action == "preempt":
            return not self._is_claimed_by_others() or not self._lifts_above_share(units)
        return self._is_within_share() and self._can_go(units)

    def _is_claimed_by_others(self) -> bool:
        """Whether a job of another queue waits, and might reclaim what the job gets."""
        return "reclaim" in self._policy.actions and any(it.queue != self._work.queue for it in self._end.waiting)

    def _lifts_above_share(self, units: tuple[_Unit, ...]) -> bool:
        """Whether a queue above the job would hold more than it deserves of what the job takes beyond the units."""
        freed = sum_of(tuple(unit.frees.items()) for unit in units)
        taken = {name: amount - freed.get(name, 0) for name, amount in self._claim.items()}
        return any(
            amount > 0 and self._shares.held(queue).get(name, 0) + amount > self._shares.least_share(queue).get(name, 0)
            for queue in self._shares.above(self._work.queue)
            for name, amount in taken.items()
        )

    def _stays_within_limits(self, units: tuple[_Unit, ...]) -> bool:
        """Whether the queue of the job, and each queue above it, may hold the job after the units are gone."""
        for queue in self._shares.above(self._work.queue):
            held, limit = self._shares.held(queue), self._shares.limit(queue)
            freed = sum_of(tuple(unit.frees.items()) for unit in units if queue in self._shares.above(unit.work.queue))
            for name, amount in self._claim.items():
                if held.get(name, 0) - freed.get(name, 0) + amount > limit.get(name, 0):
                    return False
        return True

    def _keeps_guarantees(self, units: tuple[_Unit, ...]) -> bool:
        """Whether each queue keeps its guarantee, and what others are guaranteed and do not use stays free.

        In a tree, the guarantee of a queue also protects what the queues below it hold.
        """
        freed: dict[str, Sums] = {}
        for unit in units:
            for name in self._shares.above(unit.work.queue):
                add(freed.setdefault(name, {}), tuple(unit.frees.items()))
        total = sum_of(tuple(unit.frees.items()) for unit in units)
        unused: Sums = {}
        for queue in self._end.queues.values():
            held = self._shares.held(queue.name)
            for name, amount in queue.guarantee:
                left = held.get(name, 0) - freed.get(queue.name, {}).get(name, 0)
                if queue.name in freed and left < amount:
                    return False
                if queue.name not in self._shares.above(self._work.queue):
                    unused[name] = unused.get(name, 0) + max(amount - left, 0)
        idle = sum_of(tuple(amounts.items()) for amounts in self._end.idle.values())
        return all(
            amount <= total.get(name, 0) or idle.get(name, 0) + total.get(name, 0) - amount >= unused.get(name, 0)
            for name, amount in self._claim.items()
        )

    def _is_within_share(self) -> bool:
        """Whether the queue deserves the whole claim in every resource that the job requests."""
        share, held = self._shares.least_share(self._work.queue), self._shares.held(self._work.queue)
        return all(held.get(name, 0) + amount <= share.get(name, 0) for name, amount in self._claim.items())

    def _can_go(self, units: tuple[_Unit, ...]) -> bool:
        """Whether the units can be evicted in any order: the queue of each is above its share even if it goes last.

        The scheduler evicts in the order of its policy, in which the last unit may be at its queue's share.
        """
        return all(self._is_above_share(last, tuple(one for one in units if one is not last)) for last in units)

    def _is_above_share(self, unit: _Unit, gone: tuple[_Unit, ...]) -> bool:
        """Whether the queue of a unit holds more than it deserves of a resource that the unit frees for the job."""
        queue = unit.work.queue
        share, held = self._shares.most_share(queue), self._shares.held(queue)
        before = sum_of(tuple(other.frees.items()) for other in gone if other.work.queue == queue)
        return any(
            share.get(name, 0) < held.get(name, 0) - before.get(name, 0)
            for name, amount in unit.frees.items()
            if amount and name in self._claim and (name in share or not share)
        )


class _Shares:
    """What queues hold, may hold and deserve, by the amounts of the case."""

    def __init__(self, case: Case, end: End) -> None:
        self._case, self._end = case, end
        self._capacity = end.policy.plugin("capacity")
        self._is_tree = self._capacity is not None and self._capacity.enabled("enableHierarchy")
        self._proportion = end.policy.plugin("proportion")
        requested = {name: end.requested(name, counts_failed=True) for name in end.queues}
        active = {name: queue.weight for name, queue in end.queues.items() if any(requested[name].values())}
        self._parts = {
            name: {dimension: amount * weight // sum(active.values()) for dimension, amount in end.total.items()}
            for name, weight in active.items()
        }
        """What each queue with work deserves by weight if every one of them requests more."""

    def above(self, queue: str) -> set[str]:
        found = ancestors(self._case, queue) if self._is_tree else {queue}
        return found & self._end.queues.keys()

    def held(self, queue: str) -> Sums:
        """Return what the pods of a queue hold; in a tree, the pods of its descendants count too."""
        return self._end.held(queue, is_tree=self._is_tree)

    def limit(self, name: str) -> Sums:
        queue, total = self._end.queues[name], self._end.total
        if self._capacity is None and self._proportion is None:
            return dict(total)
        if self._proportion is not None:
            return self.least_share(name)
        kept = sum_of(other.guarantee for other in self._end.queues.values() if other is not queue)
        own = dict(queue.guarantee)
        limit = {what: max(amount - kept.get(what, 0), own.get(what, 0)) for what, amount in total.items()}
        return limit | {what: min(most, limit.get(what, 0)) for what, most in queue.capability}

    def least_share(self, name: str) -> Sums:
        queue = self._end.queues[name]
        if self._proportion is not None:
            part = self._parts.get(name, {})
            if any(other.guarantee for other in self._end.queues.values()):
                return {}
            return part | {what: min(most, part.get(what, 0)) for what, most in queue.capability}
        limit = self.limit(name)
        return {what: min(amount, limit.get(what, 0)) for what, amount in queue.deserved}

    def most_share(self, name: str) -> Sums:
        """Return the most that a queue may deserve; a dimension that does not count for it is missing."""
        queue, total = self._end.queues[name], self._end.total
        if self._proportion is None:
            return dict(Counter(dict(queue.deserved)) | Counter(dict(queue.guarantee)))
        left = dict(total)
        for other in self._end.queues.values():
            if other.name != name:
                requested = self._end.requested(other.name, counts_failed=False)
                for what in left:
                    left[what] -= min(requested.get(what, 0), self.least_share(other.name).get(what, 0))
        return left
