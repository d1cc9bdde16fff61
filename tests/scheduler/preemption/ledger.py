"""What must hold across cycles, told from the decisions of each and from what became of the pods; nothing of the
scheduler's own reasoning is asked.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from scheduler.framework.decisions import Decisions, Evict
from scheduler.model.cluster import Cluster
from scheduler.model.task import TaskStatus


@dataclass(slots=True)
class Debt:
    """An eviction, and the fate of its preemptor."""

    cycle: int
    evict: Evict
    preemptor: str
    """The uid of the preemptor's pod."""
    is_settled: bool = False


@dataclass(slots=True)
class Ledger:
    """The evictions of a sequence of cycles."""

    debts: list[Debt] = field(default_factory=list)

    def note(self, number: int, cluster: Cluster, decisions: Decisions) -> None:
        """Record a cycle's decisions before they are carried out."""
        self._no_nomination_is_lost_in_silence(cluster, decisions)
        self._settle(cluster, decisions)
        for evict in decisions.evictions:
            preemptor = cluster.tasks[evict.reason.preemptor_task].uid
            for debt in self.debts:
                again = (debt.evict.task, debt.preemptor) == (evict.task, preemptor)
                assert not again, (
                    f"{evict.task} goes for {evict.reason.preemptor_task} in cycles {debt.cycle}, {number}"
                )
            self.debts.append(Debt(number, evict, preemptor))

    def close(self) -> None:
        """Check the settled state: every eviction served its preemptor, or a reason was published."""
        for debt in self.debts:
            assert debt.is_settled, (
                f"{debt.evict.task} went in cycle {debt.cycle} for {debt.evict.reason.preemptor_task}, in vain"
            )

    def _settle(self, cluster: Cluster, decisions: Decisions) -> None:
        bound = {bind.job for bind in decisions.binds}
        published = {nominate.uid for nominate in decisions.nominations if not nominate.node and nominate.whys}
        gone = {evict.uid for evict in decisions.evictions}
        for debt in self.debts:
            debt.is_settled = (
                debt.is_settled
                or debt.evict.reason.preemptor in bound
                or debt.preemptor in published | gone
                or debt.preemptor not in {task.uid for task in cluster.jobs[debt.evict.reason.preemptor].tasks.values()}
            )

    @staticmethod
    def _no_nomination_is_lost_in_silence(cluster: Cluster, decisions: Decisions) -> None:
        """Check that every nominated task waits on its node, runs there, or has a published reason."""
        bound = {bind.task for bind in decisions.binds}
        last = {nominate.task: nominate for nominate in decisions.nominations}
        for key in sorted(cluster.nominated):
            task = cluster.tasks[key]
            if task.status is not TaskStatus.PENDING or key in bound:
                continue
            nominate = last.get(key)
            node = task.nominated if nominate is None else nominate.node
            assert node or (nominate is not None and nominate.whys), f"{key} loses its nomination, and nobody says why"
            # A member that finds idle room while the rest of its gang waits is neither bound nor shown as waiting.
            waits = decisions.pipelined.get(key, node if cluster.jobs[task.job].min_available > 1 else "")
            assert not node or waits == node, f"{key} is nominated for {node} and waits on {waits or 'no node'}"
        for key, node in decisions.pipelined.items():
            if any(evict.reason.preemptor_task == key for evict in decisions.evictions):
                nominate = last.get(key)
                kept = nominate.node if nominate is not None else cluster.tasks[key].nominated
                assert kept == node, f"others go for {key}, which is nominated for {kept or 'no node'}"
