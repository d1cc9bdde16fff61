"""Divide the pods of a gang into subgroups, which are gangs within the gang, by the PodGroup's `subGroupPolicy`.

A pod belongs to the first policy that matches it. Pods with equal values of the policy's `matchLabelKeys` are one
subgroup; a policy without keys has one subgroup with all its pods. Pods that no policy matches are in no subgroup.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..model.job import Job
from ..model.matching import selector_matches
from ..model.objects import NetworkTopology, SubGroupPolicy
from ..model.task import READY, Statuses, Task, TaskStatus

GroupId = tuple[int, tuple[str, ...]]
"""Number of the policy, and the values of its keys; -1 for pods that no policy matches."""
REST: GroupId = (-1, ())


@dataclass(slots=True, eq=False)
class SubGroup:
    """Pods of one job that are placed together.

    Attributes:
        size: How many pods the subgroup needs to be ready.
        topology: How close the pods have to be; None if the subgroup has no constraint of its own.
    """

    id: GroupId
    name: str
    size: int
    topology: NetworkTopology | None
    tasks: list[Task] = field(default_factory=list)

    def count(self, statuses: Statuses) -> int:
        """Return how many of the subgroup's tasks have one of `statuses`, or need no room."""
        return sum(bool(task.status & statuses) or _needs_nothing(task) for task in self.tasks)

    @property
    def is_ready(self) -> bool:
        """Whether enough tasks of the subgroup are placed."""
        return self.count(READY) >= self.size

    @property
    def lacking(self) -> int:
        """Return how many tasks the subgroup needs beyond those that are placed or pipelined."""
        return max(self.size - self.count(READY | TaskStatus.PIPELINED), 0)


class SubGroups:
    """The subgroups of the jobs of one cycle. The assignment depends on labels, which no cycle changes."""

    def __init__(self, _session: object = None) -> None:
        self._known: dict[str, dict[GroupId, SubGroup]] = {}

    def of(self, job: Job) -> dict[GroupId, SubGroup]:
        """Return the subgroups of a job, with its other pods under `REST`; empty for a job without policies."""
        policies = job.group.spec.sub_group_policy if job.group is not None else None
        if not policies:
            return {}
        known = self._known.get(job.key)
        if known is None:
            known = self._known[job.key] = {}
            for key in sorted(job.tasks):
                task = job.tasks[key]
                id_ = id_of(policies, task)
                if id_ not in known:
                    known[id_] = _subgroup(policies, id_)
                known[id_].tasks.append(task)
        return known

    def group_of(self, job: Job, task: Task) -> SubGroup | None:
        """Return the subgroup of a task; None if no policy matches it."""
        found = self.of(job)
        id_ = id_of(job.group.spec.sub_group_policy or [], task) if found and job.group is not None else REST
        return found.get(id_) if id_ != REST else None

    def hold(self, job: Job, statuses: Statuses) -> bool:
        """Whether each policy has the number of complete subgroups that it requires."""
        return not self.missing(job, statuses)

    def missing(self, job: Job, statuses: Statuses) -> list[tuple[str, int, int]]:
        """Return the policies that lack complete subgroups: name, number of complete subgroups, required number."""
        policies = job.group.spec.sub_group_policy if job.group is not None else None
        if not policies:
            return []
        found = self.of(job)
        lacking = []
        for number, policy in enumerate(policies):
            least = policy.min_sub_groups or 0
            if least:
                groups = (group for id_, group in found.items() if id_[0] == number)
                complete = sum(group.count(statuses) >= group.size for group in groups)
                if complete < least:
                    lacking.append((policy.name, complete, least))
        return lacking


def id_of(policies: Iterable[SubGroupPolicy], task: Task) -> GroupId:
    """Return the id of a task's subgroup; `REST` if no policy matches the task."""
    labels = task.pod.metadata.labels or {}
    for number, policy in enumerate(policies):
        values = tuple(labels.get(key, "") for key in policy.match_label_keys or ())
        if all(values) and (policy.label_selector is None or selector_matches(policy.label_selector, labels)):
            return (number, values)
    return REST


def _subgroup(policies: list[SubGroupPolicy], id_: GroupId) -> SubGroup:
    if id_ == REST:
        return SubGroup(id_, "", 1, None)
    policy = policies[id_[0]]
    name = "-".join((policy.name or f"policy {id_[0] + 1}", *id_[1]))
    size = policy.sub_group_size if policy.sub_group_size is not None else 1
    return SubGroup(id_, name, max(size, 1), policy.network_topology)


def _needs_nothing(task: Task) -> bool:
    return task.status is TaskStatus.PENDING and task.best_effort and not task.gated
