"""Collect the plugins' votes on candidates: which units may be evicted under the policy, and which tier permits it.

A unit is permitted by the first tier in which all plugins permit it; if a tier vetoes, the next tier decides, as in
Volcano. The unit hooks (`reclaim_unit`, `preempt_unit`) apply in every tier. The vote of a plugin that limits what a
job can lose (`reclaim_spare`, `preempt_spare`) follows from `scheduler.preemption.units`: it permits tasks within the
limits and vetoes whole gangs in its tier.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from ..model.job import Job
from ..model.nodes import NodeInfo
from ..model.task import HOLDING, Task
from ..policy.hooks import Vote
from ..policy.tiers import Registered
from ..reasons import GangMinimum, PartOfProtectedGang, Protected, ProtectedCount, Protection, Rule, Vetoed
from .order import Level, Order
from .request import PreemptionRequest
from .units import Unit, may_be_evicted_whole, single, whole_gang

Voter = Registered[Task, Sequence[Task], tuple[list[Task], Vote]]


class EligibleUnit(msgspec.Struct, frozen=True, eq=False):
    """A permitted unit.

    `tier` is the tier that permits the unit, `first` the first tier that would permit it without the vetoes of whole
    gangs, and `votes` are the plugins' votes in all tiers up to `tier`.
    """

    unit: Unit
    tier: int
    first: int
    votes: tuple[tuple[str, bool], ...]


class VictimFilter:
    """Collect the votes on the candidates of one request, and the reasons that protect candidates."""

    def __init__(self, request: PreemptionRequest, order: Order) -> None:
        self._request = request
        self._order = order
        self._session = request.session
        self._tiers = request.hook.by_tier()
        self._unit_entries = request.unit_hook.entries
        self._tier_of = {entry.plugin: tier for tier, entries in request.unit_hook.by_tier() for entry in entries}
        self._limiting = frozenset(entry.plugin for entry in request.spares.entries)
        self.denials: dict[str, Protection] = {}
        """Task → what protects it from eviction."""
        self.seen: dict[str, str] = {}
        """The candidates that were examined, protected or not, with their queues."""
        self._gang_verdicts: dict[tuple[str, int], EligibleUnit | None] = {}

    def switch_to(self, request: PreemptionRequest) -> None:
        """Collect votes for another request of the same kind from now on."""
        self._request = request

    # ----------------------------------------------------------------------------------------------------- candidates

    def candidates(self, preemptor: Task, node: NodeInfo) -> list[Task]:
        """Return the candidates on a node; record what protects the other tasks."""
        jobs, concerns, protection_of = self._session.jobs, self._request.concerns, self._request.protection
        found: list[Task] = []
        self._session.work.spend(15 + 8 * len(node.tasks))
        for task in node.tasks.values():
            job = jobs.get(task.job)
            if job is None or not task.status & HOLDING or not concerns(job):
                continue
            self.seen[task.key] = job.queue
            if protection := protection_of(preemptor, task):
                self.denials[task.key] = Protected(protection)
            else:
                found.append(task)
        return found

    def least_protected(self, candidates: Sequence[Task]) -> Sequence[Task]:
        """Return the candidates of the lowest level."""
        request, jobs = self._request, self._session.jobs
        levels: dict[tuple[str, int], list[Task]] = {}
        for task in candidates:
            job = jobs[task.job]
            levels.setdefault((job.queue, request.priority(job, task)), []).append(task)
        return candidates if len(levels) < 2 else min(levels.values(), key=lambda tasks: self._level(tasks[0]))

    def _level(self, task: Task) -> Level:
        job = self._session.jobs[task.job]
        return self._order.level(job, self._request.priority(job, task))

    def units(self, candidates: Sequence[Task]) -> list[Unit]:
        """Return the units to which candidates on one node belong. Votes are not considered."""
        within_job = self._request.within_job
        jobs, spares = self._session.jobs, self._request.spares
        limiting = None if within_job else spares
        units: list[Unit] = []
        gangs: dict[str, Unit] = {}
        for task in candidates:
            job = jobs[task.job]
            if (unit := single(job, task, limiting)) is not None:
                units.append(unit)
            if not within_job and job.key not in gangs and may_be_evicted_whole(job, spares):
                gangs[job.key] = whole_gang(job)
        return [*units, *gangs.values()]

    def permitted(self, preemptor: Task, node: NodeInfo) -> list[EligibleUnit]:
        """Return the units on a node that may be evicted in the present state, the least protected first."""
        return self._judged(preemptor, self._ranked(self.candidates(preemptor, node)))

    def permits_any(self, preemptor: Task, nodes: Iterable[NodeInfo]) -> bool:
        """Whether any unit on these nodes may be evicted. Reasons are recorded only if no unit may."""
        before, is_order_relevant = dict(self.denials), any(map(self._votes_on_tasks, self._request.hook.entries))
        for node in nodes:
            candidates = self.candidates(preemptor, node)
            ranked = self._ranked(candidates) if is_order_relevant else self._unprotected(preemptor, candidates)
            if self._judged(preemptor, ranked):
                self.denials = before
                self._gang_verdicts.clear()
                return True
        return False

    def _ranked(self, candidates: list[Task]) -> list[Task]:
        """Sort candidates of one node, the least protected first."""
        if len(candidates) > 1:  # most nodes have one candidate: no key to compute
            candidates.sort(key=lambda task: (self._level(task), self._order.age_key(task)))
        return candidates

    def _unprotected(self, preemptor: Task, candidates: Sequence[Task]) -> Sequence[Task]:
        """Deny, without a unit, the candidates that are all of their job and protected: there may be thousands."""
        if self._request.within_job:
            return candidates
        jobs, left = self._session.jobs, []
        for task in candidates:
            if len(jobs[task.job].holding) == 1 and (denial := self.objection(preemptor, (task,))) is not None:
                self._record(task, denial)
            else:
                left.append(task)
        return left

    def _judged(self, preemptor: Task, candidates: Sequence[Task]) -> list[EligibleUnit]:
        """Return the units of candidates on one node that may be evicted."""
        tier_votes, found = _TierVotes(preemptor, candidates), []
        for unit in self.units(candidates):
            verdict = self._of_gang(preemptor, unit) if unit.whole else self._verdict(preemptor, unit, tier_votes)
            if verdict is not None:
                found.append(verdict)
                for task in unit.tasks:
                    self.denials.pop(task.key, None)
        return found

    def protects_lastingly(self) -> bool:
        """Whether every denial also holds for other preemptors of the queue that request the same resources."""
        plugins = self._session.plugins
        return all(
            isinstance(denial.why, plugins.by_name[denial.plugin].lasting)
            if isinstance(denial, Vetoed)
            else isinstance(denial, Protected | PartOfProtectedGang)
            for denial in self.denials.values()
        )

    def protections(self, keys: Iterable[str], otherwise: Protection) -> tuple[ProtectedCount, ...]:
        """Count what protects the given candidates, the most frequent first; `otherwise`: what stands for no denial.

        A gang protects as many pods as it needs, those that would be evicted last: a spare pod that was not evicted
        because others were is not needed by its gang.
        """
        tasks, found = self._session.cluster.tasks, Counter[Protection]()
        needed: dict[str, set[str]] = {}
        for key in keys:
            why = self.denials.get(key, otherwise)
            if isinstance(why, GangMinimum):
                job = self._session.jobs[tasks[key].job]
                if job.key not in needed:
                    needed[job.key] = self._needed_members(job)
                is_needed = key in needed[job.key]
                why = msgspec.structs.replace(why, pods=job.count(HOLDING)) if is_needed else otherwise
            found[why] += 1
        ranked = sorted(found.items(), key=lambda item: (-item[1], repr(item[0])))
        return tuple(ProtectedCount(count, why) for why, count in ranked)

    def _needed_members(self, job: Job) -> set[str]:
        """Return the members that a gang cannot lose now, in addition to what was evicted."""
        spare = [task for task in job.holding if single(job, task, self._request.spares) is not None]
        spare.sort(key=self._order.age_key)
        gone = {task.key for task in spare[: max(job.ready - job.min_available, 0)]}
        needed = [task.key for task in sorted(job.holding, key=self._order.age_key) if task.key not in gone]
        return set(needed[-max(job.min_available, 1) :])  # members that leave together only are not all needed

    # ---------------------------------------------------------------------------------------------------------- votes

    def objection(self, preemptor: Task, unit: Sequence[Task]) -> Protection | None:
        """Return the protection that applies to a unit in every tier, in the present state."""
        for entry in self._unit_entries:
            denial = entry.fn(preemptor, unit)
            if denial is not None:
                return (
                    denial if isinstance(denial, Vetoed) else Vetoed(entry.plugin, self._tier_of[entry.plugin], denial)
                )
        return None

    def _of_gang(self, preemptor: Task, unit: Unit) -> EligibleUnit | None:
        if len(unit.tasks) == 1:  # no other node has a part of it
            return self._verdict(preemptor, unit, None)
        key = (unit.job.key, len(self._session.nodes.touched))
        if key not in self._gang_verdicts:
            self._gang_verdicts[key] = self._verdict(preemptor, unit, None)
        return self._gang_verdicts[key]

    def _verdict(self, preemptor: Task, unit: Unit, tier_votes: _TierVotes | None) -> EligibleUnit | None:
        denial = self._protected_member(preemptor, unit) if len(unit.tasks) > 1 else None  # a candidate is unprotected
        denial = denial or self.objection(preemptor, unit.tasks)
        if denial is not None:
            self._deny(unit, denial)
            return None
        first, votes, last = -1, [], 0
        vetoed: tuple[str, int] | None = None
        for number, entries in self._tiers:
            of_tier = [
                (entry.plugin, vote)
                for entry in entries
                if (vote := self._vote(entry, preemptor, unit, tier_votes)) is not None
            ]
            votes += of_tier
            if of_tier and first < 0 and all(vote for plugin, vote in of_tier if plugin not in self._limiting):
                first = number
            if of_tier and all(vote for _, vote in of_tier):
                voted = {plugin for plugin, _ in votes}
                votes += [(entry.plugin, True) for entry in self._unit_entries if entry.plugin not in voted]
                return EligibleUnit(unit, number, first, tuple(votes))
            against = [plugin for plugin, vote in of_tier if not vote]
            last = number if self._limiting.intersection(against) else last
            vetoed = next(((plugin, number) for plugin in against if plugin not in self._limiting), vetoed)
        if vetoed is None:
            self._deny(unit, GangMinimum(unit.job.key, unit.job.min_available, unit.job.count(HOLDING), last))
        else:
            self._deny(unit, Vetoed(*vetoed, self._veto_reason(vetoed[0], preemptor, unit)))
        return None

    def _veto_reason(self, plugin: str, preemptor: Task, unit: Unit) -> Rule | None:
        functions = (entry.fn for entry in self._session.hooks.veto_reason.entries if entry.plugin == plugin)
        return next((reason for function in functions if (reason := function(preemptor, unit.tasks)) is not None), None)

    def _vote(self, entry: Voter, preemptor: Task, unit: Unit, tier_votes: _TierVotes | None) -> bool | None:
        """Return a plugin's vote on a unit that no unit hook protects; None if it abstains."""
        if not self._votes_on_tasks(entry):
            return not (unit.whole and entry.plugin in self._limiting)
        if tier_votes is not None:
            permitted = tier_votes.permitted(entry)
            return None if permitted is None else unit.tasks[0].uid in permitted
        # A gang is one victim: each member is judged in the present state, in which the other members still run.
        votes = [entry.fn(preemptor, [task]) for task in unit.tasks]
        return None if all(vote == Vote.ABSTAIN for _, vote in votes) else all(tasks for tasks, _ in votes)

    def _votes_on_tasks(self, entry: Voter) -> bool:
        """Whether a plugin votes task by task: it neither limits what a job can lose nor judges units."""
        return entry.plugin not in self._limiting and entry.plugin not in self._tier_of

    def _protected_member(self, preemptor: Task, unit: Unit) -> Protection | None:
        for task in unit.tasks:
            if self._request.protection(preemptor, task):
                return PartOfProtectedGang(unit.job.key, task.key)
        return None

    def _deny(self, unit: Unit, denial: Protection) -> None:
        """Record why the unit is protected. A spare member keeps the reason why it may not be evicted alone."""
        for task in unit.tasks:
            is_known = task.key in self.denials
            if not (is_known and unit.whole and single(unit.job, task, self._request.spares) is not None):
                self._record(task, denial)

    def _record(self, task: Task, denial: Protection) -> None:
        known = self.denials.get(task.key)
        if not isinstance(known.why if isinstance(known, Vetoed) else known, Protected):
            self.denials[task.key] = denial


class _TierVotes:
    """Votes on the candidates of one node by plugins that vote task by task. Each plugin is called once."""

    def __init__(self, preemptor: Task, candidates: Sequence[Task]) -> None:
        self._preemptor = preemptor
        self._candidates = candidates
        self._permitted: dict[int, set[str] | None] = {}

    def permitted(self, entry: Voter) -> set[str] | None:
        """Return the uids of the tasks whose eviction the plugin permits; None if it abstains."""
        key = id(entry)
        if key not in self._permitted:
            tasks, vote = entry.fn(self._preemptor, self._candidates)
            self._permitted[key] = None if vote == Vote.ABSTAIN else {task.uid for task in tasks}
        return self._permitted[key]
