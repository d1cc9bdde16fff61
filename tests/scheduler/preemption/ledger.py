"""Check evictions across cycles: each eviction lets its preemptor start, or a reason is published.

The checks use only the decisions of the cycles and the fate of the pods, not the scheduler's own computations.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from schedspec.scheduler.framework.decisions import Decisions, Evict
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.model.task import TaskStatus


@dataclass(slots=True)
class EvictionRecord:
    """An eviction, and the fate of its preemptor."""

    cycle: int
    evict: Evict
    preemptor: str
    """The uid of the preemptor's pod."""
    is_justified: bool = False


@dataclass(slots=True)
class Ledger:
    """The evictions of a sequence of cycles."""

    records: list[EvictionRecord] = field(default_factory=list)

    def record(self, number: int, cluster: Cluster, decisions: Decisions) -> None:
        """Record a cycle's decisions before they are carried out."""
        self._check_nominations(cluster, decisions)
        self._update(cluster, decisions)
        for evict in decisions.evictions:
            preemptor = cluster.tasks[evict.reason.preemptor_task].uid
            for record in self.records:
                again = (record.evict.task, record.preemptor) == (evict.task, preemptor)
                assert not again, (
                    f"{evict.task} is evicted for {evict.reason.preemptor_task} in cycles {record.cycle} and {number}"
                )
            self.records.append(EvictionRecord(number, evict, preemptor))

    def close(self) -> None:
        """Check the settled state: every eviction let its preemptor start, or a reason was published."""
        for record in self.records:
            evict = record.evict
            assert record.is_justified, (
                f"{evict.task}, evicted in cycle {record.cycle} for {evict.reason.preemptor_task}, helped nobody"
            )

    def _update(self, cluster: Cluster, decisions: Decisions) -> None:
        bound = {bind.job for bind in decisions.binds}
        published = {nominate.uid for nominate in decisions.nominations if not nominate.node and nominate.whys}
        evicted = {evict.uid for evict in decisions.evictions}
        for record in self.records:
            job = record.evict.reason.preemptor
            record.is_justified = (
                record.is_justified
                or job in bound
                or record.preemptor in published | evicted
                or record.preemptor not in {task.uid for task in cluster.jobs[job].tasks.values()}
            )

    @staticmethod
    def _check_nominations(cluster: Cluster, decisions: Decisions) -> None:
        """Check that every nominated task waits on its node, runs there, or has a published reason."""
        bound = {bind.task for bind in decisions.binds}
        last = {nominate.task: nominate for nominate in decisions.nominations}
        for key in sorted(cluster.nominated):
            task = cluster.tasks[key]
            if task.status is not TaskStatus.PENDING or key in bound:
                continue
            nominate = last.get(key)
            node = task.nominated if nominate is None else nominate.node
            assert node or (nominate is not None and nominate.whys), f"{key} loses its nomination without a reason"
            # A member that finds idle room while the rest of its gang waits is neither bound nor pipelined.
            waits_on = decisions.pipelined.get(key, node if cluster.jobs[task.job].min_available > 1 else "")
            assert not node or waits_on == node, f"{key} is nominated for {node} and waits on {waits_on or 'no node'}"
        for key, node in decisions.pipelined.items():
            if any(evict.reason.preemptor_task == key for evict in decisions.evictions):
                nominate = last.get(key)
                nominated = nominate.node if nominate is not None else cluster.tasks[key].nominated
                assert nominated == node, f"{key} has victims on {node}, but is nominated for {nominated or 'no node'}"
