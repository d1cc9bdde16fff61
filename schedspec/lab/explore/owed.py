"""Find waiting jobs that fit on idle capacity to which their queues are entitled, by the case's own numbers.

Only jobs are found that have to run. A job that another rule of the policy may delay (a guarantee of another queue, a
waiting-time promise, an admission that counts other waiting jobs) does not count. Neither does a job that needs its
capacity in one place: on one card, or in one rack.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from ...scheduler.policy.model import Policy
from ..reduce.case import CARD_MEMORY, Case, CaseQueue, FailStep, Work, ancestors
from ..reduce.play import Story, policy_of
from .timeline import Sums, add, closed_at, idle_of, nodes_at, queues_at, slots, sum_of

OTHER_RULES = ("sla", "resourcequota", "nodegroup", "cdp", "pdb", "network-topology-aware", "capacity-card")
"""Plugins that may delay a job, or protect a pod, for reasons that the amounts of the case do not show."""


def owed_jobs(case: Case, story: Story) -> Iterator[Work]:
    """Yield the jobs that wait at the end although they fit and their queues are entitled to their requests."""
    policy = policy_of(case.policies[-1])
    if "allocate" in policy.actions and not any(policy.plugin(plugin) for plugin in OTHER_RULES):
        end = End(case, story, policy)
        yield from (work for work in end.judged if end.fits(work) and end.is_owed(work))


class End:
    """The cluster at the end of a play."""

    def __init__(self, case: Case, story: Story, policy: Policy) -> None:
        self.policy, self._placed = policy, story.end.placed
        self.queues = queues_at(case, len(case.steps))
        self._case = case
        over = case.completed
        self._jobs = {job.name: job for job in case.jobs if job.name not in over}
        self.waiting = [job for name, job in self._jobs.items() if self.missing(job) and job.queue in self.queues]
        nodes = nodes_at(case, len(case.steps))
        self.total = sum_of(nodes.values())
        self.on_nodes = [
            (node, self._jobs[name])
            for name, pods in self._placed.items()
            for node in pods.values()
            if name in self._jobs and node in nodes
        ]
        """The node of each pod that holds capacity, and the job of the pod."""
        closed, parents = closed_at(case, len(case.steps)), {queue.parent for queue in self.queues.values()}
        self.judged = [
            job
            for job in self.waiting
            if job.name not in case.failed and job.queue not in closed | parents and not needs_one_place(job)
        ]
        """The waiting jobs that no failed pod, no closed queue and no place keeps from running."""
        self.idle = idle_of(nodes, ((node, work.requests) for node, work in self.on_nodes))

    def job(self, name: str) -> Work:
        return self._jobs[name]

    def nodes_of_jobs(self) -> Iterator[tuple[str, list[str]]]:
        """Yield each job that holds capacity, with the node of each of its pods."""
        nodes: dict[str, list[str]] = {}
        for node, work in self.on_nodes:
            nodes.setdefault(work.name, []).append(node)
        yield from sorted(nodes.items())

    def placed(self, work: Work) -> int:
        return len(self._placed.get(work.name, ()))

    def missing(self, work: Work) -> int:
        """Return how many pods have to be placed together: the rest of the minimum, or one; 0 if no pod waits."""
        has = len(self._placed.get(work.name, ()))
        return max(work.minimum - has, 1) if has < work.pods else 0

    def fits(self, work: Work) -> bool:
        """Whether the idle capacity suffices for the missing pods."""
        return sum(slots(idle, work.requests) for idle in self.idle.values()) >= self.missing(work)

    def is_owed(self, work: Work) -> bool:
        """Whether no rule of queues can delay the job."""
        policy, requests = self.policy, {name: value * self.missing(work) for name, value in work.requests}
        if ("enqueue" in policy.actions or policy.plugin("overcommit")) and len(self.waiting) > 1:
            return False
        capacity, proportion = policy.plugin("capacity"), policy.plugin("proportion")
        if capacity is None and proportion is None:
            return True
        if any(queue.guarantee for queue in self.queues.values()):
            return False
        is_tree = capacity is not None and capacity.enabled("enableHierarchy")
        kin = ancestors(self._case, work.queue) if is_tree else {work.queue}
        return all(self.has_share(self.queues[name], requests, is_tree=is_tree) for name in kin if name in self.queues)

    def has_share(self, queue: CaseQueue, requests: Mapping[str, int], *, is_tree: bool) -> bool:
        """Whether a queue is entitled to an amount in addition to what it holds."""
        held = self.held(queue.name, is_tree=is_tree)
        if any(held.get(name, 0) + requests.get(name, 0) > most for name, most in queue.capability):
            return False
        if self.policy.plugin("capacity") is not None:
            share = dict(queue.deserved)
        else:
            weights = sum(other.weight for other in self.queues.values())
            share = {name: amount * queue.weight // weights for name, amount in self.total.items()}
        return all(held.get(name, 0) + requests[name] <= share.get(name, 0) for name in requests)

    def requested(self, queue: str, *, counts_failed: bool) -> Sums:
        """Return what the pods of a queue request, placed or not, with or without the pods that may have failed."""
        failed = Counter(
            job for job, _ in {(one.job, one.index) for one in self._case.steps if isinstance(one, FailStep)}
        )
        found: Sums = {}
        for work in self._jobs.values():
            if work.queue == queue:
                left = work.pods if counts_failed else work.pods - failed[work.name]
                add(found, work.requests, max(left, self.placed(work)))
        return found

    def held(self, queue: str, *, is_tree: bool) -> Sums:
        """Return what the pods of a queue hold; in a tree, the pods of its descendants count too."""
        held: Sums = {}
        for name, work in self._jobs.items():
            if queue in (ancestors(self._case, work.queue) if is_tree else {work.queue}):
                add(held, work.requests, len(self._placed.get(name, ())))
        return held


def needs_one_place(work: Work) -> bool:
    """Whether a job needs its capacity in one place, which sums do not show: on one card, or in one rack."""
    return bool(work.rack) or CARD_MEMORY in dict(work.requests)
