"""Subgroups: gangs within a gang, which a PodGroup's `subGroupPolicy` makes of its pods.

A pod belongs to the first policy that matches it. Equal values of the policy's `matchLabelKeys` make one subgroup; a
policy without keys makes one of all its pods. The other pods are no subgroup.
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
        size: How many of them it needs to be ready.
        topology: How close they have to be; None for no constraint of their own.
    """

    id: GroupId
    name: str
    size: int
    topology: NetworkTopology | None
    tasks: list[Task] = field(default_factory=list)

    def count(self, statuses: Statuses) -> int:
        """Return how many of its tasks have one of `statuses`, or need no room at all."""
        return sum(bool(task.status & statuses) or _needs_nothing(task) for task in self.tasks)

    @property
    def is_ready(self) -> bool:
        """Whether enough of it is placed."""
        return self.count(READY) >= self.size

    @property
    def lacking(self) -> int:
        """Return how many tasks it has to get beyond those that are placed or wait for room."""
        return max(self.size - self.count(READY | TaskStatus.PIPELINED), 0)


class SubGroups:
    """The subgroups of the jobs of one cycle. The assignment follows from labels, which no cycle changes."""

    def __init__(self, _session: object = None) -> None:
        self._known: dict[str, dict[GroupId, SubGroup]] = {}

    def of(self, job: Job) -> dict[GroupId, SubGroup]:
        """Return the subgroups of a job, those of no policy included; none for a job without policies."""
        policies = job.group.spec.sub_group_policy if job.group is not None else None
        if not policies:
            return {}
        known = self._known.get(job.key)
        if known is None:
            known = self._known[job.key] = {}
            for key in sorted(job.tasks):
                task = job.tasks[key]
                place = id_of(policies, task)
                if place not in known:
                    known[place] = _made(policies, place)
                known[place].tasks.append(task)
        return known

    def group_of(self, job: Job, task: Task) -> SubGroup | None:
        """Return the subgroup of a task; None if no policy matches it."""
        found = self.of(job)
        place = id_of(job.group.spec.sub_group_policy or [], task) if found and job.group is not None else REST
        return found.get(place) if place != REST else None

    def hold(self, job: Job, statuses: Statuses) -> bool:
        """Whether each policy has the number of complete subgroups that it requires."""
        return not self.missing(job, statuses)

    def missing(self, job: Job, statuses: Statuses) -> list[tuple[str, int, int]]:
        """Return the policies that lack complete subgroups, with their names, existing and required numbers."""
        policies = job.group.spec.sub_group_policy if job.group is not None else None
        if not policies:
            return []
        found = self.of(job)
        lacking = []
        for number, policy in enumerate(policies):
            least = policy.min_sub_groups or 0
            if least:
                groups = (group for place, group in found.items() if place[0] == number)
                complete = sum(group.count(statuses) >= group.size for group in groups)
                if complete < least:
                    lacking.append((policy.name, complete, least))
        return lacking


def id_of(policies: Iterable[SubGroupPolicy], task: Task) -> GroupId:
    """Return the subgroup of a task."""
    labels = task.pod.metadata.labels or {}
    for number, policy in enumerate(policies):
        values = tuple(labels.get(key, "") for key in policy.match_label_keys or ())
        if all(values) and (policy.label_selector is None or selector_matches(policy.label_selector, labels)):
            return (number, values)
    return REST


def _made(policies: list[SubGroupPolicy], place: GroupId) -> SubGroup:
    if place == REST:
        return SubGroup(place, "", 1, None)
    policy = policies[place[0]]
    name = "-".join((policy.name or f"policy {place[0] + 1}", *place[1]))
    size = policy.sub_group_size if policy.sub_group_size is not None else 1
    return SubGroup(place, name, max(size, 1), policy.network_topology)


def _needs_nothing(task: Task) -> bool:
    return task.status is TaskStatus.PENDING and task.best_effort and not task.gated
