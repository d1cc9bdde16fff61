"""Which candidates the policy's plugins permit, and by which tier.

The one rule: a unit is permitted by the first tier all of whose plugins permit it; a tier that vetoes leaves the
question to the next one, as in Volcano. What a plugin says of units (``reclaim_unit``, ``preempt_unit``) stands
whatever tier decides. The gang plugin's vote is the arithmetic of :mod:`scheduler.preemption.units`: it permits spare
tasks and vetoes whole gangs in its tier.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..model.job import Job
from ..model.nodes import NodeInfo
from ..model.task import HOLDING, Task
from ..policy.hooks import Vote
from ..policy.tiers import Registered
from ..reasons import GangMinimum, PartOfProtectedGang, PluginMessage, Protected, Protection
from .order import Order
from .request import PreemptionRequest
from .units import GANG, Unit, goes_whole, single, whole_gang

Voter = Registered[Task, Sequence[Task], tuple[list[Task], Vote]]


@dataclass(slots=True, frozen=True, eq=False)
class EligibleUnit:
    """A permitted unit:

    The tier that permits it, the first tier that does so but for gang's veto, and what was voted.
    """

    unit: Unit
    tier: int
    first: int
    votes: tuple[tuple[str, bool], ...]


class VictimFilter:
    """The votes on the candidates of one request, and why those that were refused are spared."""

    def __init__(self, request: PreemptionRequest, order: Order) -> None:
        self._request = request
        self._order = order
        self._session = request.session
        self._tiers = request.hook.by_tier()
        self._judges = request.unit_hook.entries
        self._judging = {entry.plugin for entry in self._judges}
        self.gangs = any(entry.plugin == GANG for _, entries in self._tiers for entry in entries)
        self.denials: dict[str, Protection] = {}
        self.seen: set[str] = set()
        self._gang_verdicts: dict[tuple[str, int], EligibleUnit | None] = {}

    def serve(self, request: PreemptionRequest) -> None:
        """Judge for another request of the same kind from now on."""
        self._request = request

    # ----------------------------------------------------------------------------------------------------- candidates

    def candidates(self, preemptor: Task, node: NodeInfo) -> list[Task]:
        """The tasks on a node that may be asked to go, the first to go first."""
        request, jobs = self._request, self._session.jobs
        found: list[tuple[Job, Task]] = []
        self._session.work.spend(15 + 8 * len(node.tasks))
        for task in node.tasks.values():
            job = jobs.get(task.job)
            if job is None or not task.status & HOLDING or not request.concerns(job):
                continue
            self.seen.add(task.key)
            if protection := request.protection(preemptor, task):
                self.denials[task.key] = Protected(protection)
            else:
                found.append((job, task))
        found.sort(key=lambda pair: (self._order.level(pair[0], request.priority(*pair)), self._order.age_key(pair[1])))
        return [task for _, task in found]

    def units(self, candidates: Sequence[Task]) -> list[Unit]:
        """The units that candidates on one node belong to, votes not asked."""
        within_job = self._request.within_job
        jobs, gangs = self._session.jobs, self.gangs and not within_job
        units = [unit for task in candidates if (unit := single(jobs[task.job], task, gangs=gangs)) is not None]
        if not within_job:
            whole = dict.fromkeys(task.job for task in candidates)
            units += [whole_gang(jobs[key]) for key in whole if goes_whole(jobs[key], gangs=gangs)]
        return units

    def permitted(self, preemptor: Task, node: NodeInfo) -> list[EligibleUnit]:
        """What may go from a node as things stand."""
        candidates = self.candidates(preemptor, node)
        tier_votes = _TierVotes(preemptor, candidates)
        verdicts = []
        for unit in self.units(candidates):
            verdict = self._of_gang(preemptor, unit) if unit.whole else self._verdict(preemptor, unit, tier_votes)
            if verdict is not None:
                verdicts.append(verdict)
                for task in unit.tasks:
                    self.denials.pop(task.key, None)
        return verdicts

    def permits_anyone(self, preemptor: Task, nodes: Iterable[NodeInfo]) -> bool:
        """Whether anyone on some nodes may go; why not is noted only where nobody may."""
        before = dict(self.denials)
        if not any(self.permitted(preemptor, node) for node in nodes):
            return False
        self.denials = before
        self._gang_verdicts.clear()
        return True

    # ---------------------------------------------------------------------------------------------------------- votes

    def objection(self, preemptor: Task, unit: Sequence[Task]) -> Protection | None:
        """What stands against a unit whatever tier decides, as things stand."""
        for judge in self._judges:
            denial = judge.fn(preemptor, unit)
            if denial is not None:
                return denial
        return None

    def _of_gang(self, preemptor: Task, unit: Unit) -> EligibleUnit | None:
        key = (unit.job.key, len(self._session.nodes.touched))
        if key not in self._gang_verdicts:
            self._gang_verdicts[key] = self._verdict(preemptor, unit, None)
        return self._gang_verdicts[key]

    def _verdict(self, preemptor: Task, unit: Unit, tier_votes: _TierVotes | None) -> EligibleUnit | None:
        denial = self._protected_member(preemptor, unit) if unit.whole else None
        denial = denial or self.objection(preemptor, unit.tasks)
        if denial is not None:
            self._deny(unit, denial)
            return None
        first, votes, vetoed = -1, [], ""
        for number, entries in self._tiers:
            says = [
                (entry.plugin, vote)
                for entry in entries
                if (vote := self._vote(entry, preemptor, unit, tier_votes)) is not None
            ]
            votes += says
            if says and first < 0 and all(vote for plugin, vote in says if plugin != GANG):
                first = number
            if says and all(vote for _, vote in says):
                asked = {plugin for plugin, _ in votes}
                votes += [(judge.plugin, True) for judge in self._judges if judge.plugin not in asked]
                return EligibleUnit(unit, number, first, tuple(votes))
            vetoed = next((plugin for plugin, vote in says if not vote and plugin != GANG), vetoed)
        self._deny(
            unit, PluginMessage(vetoed, "vetoed") if vetoed else GangMinimum(unit.job.key, unit.job.min_available)
        )
        return None

    def _vote(self, entry: Voter, preemptor: Task, unit: Unit, tier_votes: _TierVotes | None) -> bool | None:
        """A plugin's vote on a unit that no judge objects to; None if it abstains."""
        if entry.plugin == GANG:
            return not unit.whole
        if entry.plugin in self._judging:
            return True
        if tier_votes is not None:
            named = tier_votes.named(entry)
            return None if named is None else unit.tasks[0].uid in named
        # A gang is one victim: each member is judged as it stands now, not as if the others had left already.
        said = [entry.fn(preemptor, [task]) for task in unit.tasks]
        return None if all(vote == Vote.ABSTAIN for _, vote in said) else all(permitted for permitted, _ in said)

    def _protected_member(self, preemptor: Task, unit: Unit) -> Protection | None:
        for task in unit.tasks:
            if self._request.protection(preemptor, task):
                return PartOfProtectedGang(unit.job.key, task.key)
        return None

    def _deny(self, unit: Unit, denial: Protection) -> None:
        for task in unit.tasks:
            known = self.denials.get(task.key)
            if known is None or not isinstance(known, Protected):
                self.denials[task.key] = denial


class _TierVotes:
    """What plugins that walk task by task permit of the candidates of one node; each is asked once."""

    def __init__(self, preemptor: Task, candidates: Sequence[Task]) -> None:
        self._preemptor = preemptor
        self._candidates = candidates
        self._named: dict[int, set[str] | None] = {}

    def named(self, entry: Voter) -> set[str] | None:
        key = id(entry)
        if key not in self._named:
            permitted, vote = entry.fn(self._preemptor, self._candidates)
            self._named[key] = None if vote == Vote.ABSTAIN else {task.uid for task in permitted}
        return self._named[key]
