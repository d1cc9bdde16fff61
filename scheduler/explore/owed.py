"""Find waiting jobs that fit on idle capacity to which their queues are entitled, by the case's own numbers.

The judgement is a lower bound. Where another rule of the policy may hold a job back (a guarantee of another queue, a
waiting-time promise, an admission that counts other waiting jobs), the job is not called owed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..incident.case import Amounts, Case, Change, Complete, Fail, Leave, Queue, Work, ancestors
from ..incident.play import Story, policy_of
from ..policy.model import Policy

_HOLD_BACK = ("sla", "resourcequota", "nodegroup", "network-topology-aware", "cdp", "pdb")
Sums = dict[str, int]


def owed_jobs(case: Case, story: Story) -> Iterator[Work]:
    """Yield the jobs that wait at the end although they fit and their queues are entitled to their requests."""
    policy = policy_of(case.policies[-1])
    if "allocate" not in policy.actions or any(policy.plugin(plugin) is not None for plugin in _HOLD_BACK):
        return
    end = _End(case, story, policy)
    failed = {step.job for step in case.steps if isinstance(step, Fail)}
    for work in end.waiting:
        if work.name not in failed and end.fits(work) and end.is_owed(work):
            yield work


class _End:
    """The cluster at the end of a story."""

    def __init__(self, case: Case, story: Story, policy: Policy) -> None:
        self._policy, self._placed = policy, story.end.placed
        over = {step.job for step in case.steps if isinstance(step, Complete)}
        self._queues = _queues_at_end(case)
        self._case = case
        self._jobs = {job.name: job for job in case.jobs if job.name not in over}
        self.waiting = [job for name, job in self._jobs.items() if self._missing(job) and job.queue in self._queues]
        left = {step.node for step in case.steps if isinstance(step, Leave)}
        self._idle = {node.name: dict(node.has) for node in case.all_nodes if node.name not in left}
        for name, pods in self._placed.items():
            for node in pods.values():
                if name in self._jobs and node in self._idle:
                    _add(self._idle[node], self._jobs[name].requests, -1)

    def _missing(self, work: Work) -> int:
        """Return how many pods have to be placed together: those of its minimum, or one."""
        has = len(self._placed.get(work.name, ()))
        return max(work.minimum - has, 1) if has < work.pods else 0

    def fits(self, work: Work) -> bool:
        """Whether the idle capacity suffices for the missing pods."""
        room = sum(
            min((max(idle.get(name, 0), 0) // amount for name, amount in work.requests if amount), default=0)
            for idle in self._idle.values()
        )
        return room >= self._missing(work)

    def is_owed(self, work: Work) -> bool:
        """Whether no rule of queues can delay the job."""
        policy, asks = self._policy, _times(work.requests, self._missing(work))
        if ("enqueue" in policy.actions or policy.plugin("overcommit")) and len(self.waiting) > 1:
            return False
        capacity, proportion = policy.plugin("capacity"), policy.plugin("proportion")
        if policy.plugin("capacity-card"):
            return False
        if capacity is None and proportion is None:
            return True
        if any(queue.guarantee for queue in self._queues.values()):
            return False
        is_tree = capacity is not None and capacity.enabled("enableHierarchy")
        kin = ancestors(self._case, work.queue) if is_tree else {work.queue}
        if is_tree and any(queue.parent == work.queue for queue in self._queues.values()):
            return False
        return all(self._has_share(self._queues[name], asks, is_tree=is_tree) for name in kin if name in self._queues)

    def _has_share(self, queue: Queue, asks: Mapping[str, int], *, is_tree: bool) -> bool:
        held = self._held(queue.name, is_tree=is_tree)
        if any(held.get(name, 0) + asks.get(name, 0) > most for name, most in queue.capability):
            return False
        if self._policy.plugin("capacity") is not None:
            share = dict(queue.deserved)
            return all(held.get(name, 0) + asks[name] <= share.get(name, 0) for name in asks)
        weights = sum(queue.weight for queue in self._queues.values())
        total: Sums = {}
        for node in self._case.all_nodes:
            _add(total, node.has if node.name in self._idle else (), 1)
        return all(held.get(name, 0) + asks[name] <= total.get(name, 0) * queue.weight // weights for name in asks)

    def _held(self, queue: str, *, is_tree: bool) -> Sums:
        held: Sums = {}
        for name, work in self._jobs.items():
            if queue in (ancestors(self._case, work.queue) if is_tree else {work.queue}):
                _add(held, work.requests, len(self._placed.get(name, ())))
        return held


def _queues_at_end(case: Case) -> dict[str, Queue]:
    found = {"default": Queue("default"), **{queue.name: queue for queue in case.queues}}
    return found | {step.queue.name: step.queue for step in case.steps if isinstance(step, Change)}


def _add(sums: Sums, amount: Amounts, times: int) -> None:
    for name, value in amount:
        sums[name] = sums.get(name, 0) + value * times


def _times(amount: Amounts, times: int) -> Sums:
    return {name: value * times for name, value in amount}
