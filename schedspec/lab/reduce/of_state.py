"""Make a case from a state: what features can express becomes typed data; notes list the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from ...scheduler.model import names, objects, resources, times
from ...scheduler.model.demand import requests_of
from ...scheduler.model.task import COMPLETED, status_of
from ...virtual.state import State, StateError
from .case import Amounts, Case, CaseNode, CasePriorityClass, CaseQueue, Work, amounts

_FIELDS = (
    "affinity",
    "node_selector",
    "topology_spread_constraints",
    "scheduling_gates",
    "resource_claims",
)
_OF_EVERY_POD = "node.kubernetes.io/"
"""Tolerations of these taints are added to every pod by the API server."""
_MAX_NOTES = 8


def make_case(state: State, policy: str, *, undo_evictions: bool) -> tuple[Case, list[str], dict[str, str]]:
    """Return the case, notes on what it leaves out, and the job of each pod (by `namespace/name`).

    `undo_evictions`: whether terminating pods count as running, so that the case decides their eviction again.
    """
    return _Reader(state, undo_evictions).read(policy)


class _Reader:
    def __init__(self, state: State, undo_evictions: bool) -> None:
        self._state, self._undo_evictions = state, undo_evictions
        self._notes: Counter[str] = Counter()
        self._examples: dict[str, str] = {}
        self._nodes: dict[str, dict[str, int]] = {}
        self._keys: dict[str, str] = {}
        self._oldest = 0

    def read(self, policy: str) -> tuple[Case, list[str], dict[str, str]]:
        state = self._state
        for name, node in sorted(state.objects["Node"].items()):
            self._read_node(name, node)
        jobs = state.of_job()
        self._keys = _short_names(jobs)
        of_jobs = {pod.metadata.key: key for key, pods in jobs.items() for pod in pods}
        self._subtract_others(of_jobs)
        begun = [_created(group) for group in state.objects["PodGroup"].values()]
        self._oldest = min(begun, default=0)
        work = tuple(job for key, pods in jobs.items() for job in self._work(key, pods))
        for kind in ("PodDisruptionBudget", "ResourceQuota", "HyperNode", "PersistentVolumeClaim"):
            for key in sorted(state.objects[kind]):
                self._note(kind, key)
        queues = tuple(_queue(queue) for _, queue in sorted(state.objects["Queue"].items()))
        used = {job.priority for job in work}
        classes = tuple(
            CasePriorityClass(name, priority_class.value)
            for name, priority_class in sorted(state.objects["PriorityClass"].items())
            if name in used
        )
        nodes = tuple(CaseNode(name, amounts(has.items())) for name, has in self._nodes.items())
        return (
            Case(policy, nodes, queues, classes, work),
            self._listed(),
            {pod: self._keys[job] for pod, job in of_jobs.items()},
        )

    def _note(self, what: str, example: str) -> None:
        self._notes[what] += 1
        self._examples.setdefault(what, example)

    def _listed(self) -> list[str]:
        found = [
            f"{what} of {self._examples[what]}{f' and {number - 1} more' if number > 1 else ''}"
            for what, number in sorted(self._notes.items())
        ]
        return found[:_MAX_NOTES] + ([f"and {len(found) - _MAX_NOTES} more kinds"] if len(found) > _MAX_NOTES else [])

    def _read_node(self, name: str, node: objects.Node) -> None:
        ready = next(
            (condition.status for condition in node.status.conditions or () if condition.type == "Ready"), "True"
        )
        if node.spec.unschedulable or ready != "True":
            self._note("a node that accepts no pods", name)
            return
        if node.spec.taints:
            self._note("taints", f"node {name}")
        has = resources.parse(node.status.allocatable or node.status.capacity)
        self._nodes[name] = {key: amount for key, amount in has.items() if _is_counted(key) and amount}

    def _subtract_others(self, of_jobs: dict[str, str]) -> None:
        """Subtract the amounts of pods without a job from their nodes."""
        for key, pod in self._state.objects["Pod"].items():
            has = self._nodes.get(pod.spec.node_name)
            if key not in of_jobs and has is not None and not status_of(pod)[0] & COMPLETED:
                for name, amount in requests_of(pod)[0].items():
                    if name in has:
                        has[name] = max(has[name] - amount, 0)

    def _work(self, key: str, pods: list[objects.Pod]) -> Iterator[Work]:
        group: objects.PodGroup = self._state.objects["PodGroup"][key]
        live = [member for member in pods if not status_of(member)[0] & COMPLETED]
        kept = [member for member in live if self._undo_evictions or member.metadata.deletion_timestamp is None]
        for pod in kept:
            for what in _without_sentence(pod):
                self._note(what, f"job {key}")
        running = [member.spec.node_name for member in kept if member.spec.node_name in self._nodes]
        waiting = [member for member in kept if not member.spec.node_name]
        if not running and not waiting:
            return
        requests = [_requests(member) for member in kept]
        if len(set(requests)) > 1:
            self._note("pods that differ (each counts as the largest)", f"job {key}")
        has_tasks = len(group.spec.min_task_member or ()) > 1
        if group.spec.network_topology or group.spec.sub_group_policy or has_tasks:
            self._note("topology, subgroups or minima of tasks", f"job {key}")
        number = len(running) + len(waiting)
        done = sum(member.status.phase == "Succeeded" for member in pods)
        yield Work(
            self._keys[key],
            group.spec.queue or "default",
            group.spec.priority_class_name or next(iter(member.spec.priority_class_name for member in kept), ""),
            number,
            min(max(group.spec.min_member - done, 1), number),
            max(requests),
            all(_is_preemptable(member, group) for member in kept),
            tuple(running),
            max(_created(group) - self._oldest, 0),
            next((found[names.STOP_AFTER] for found in map(_annotations, kept) if names.STOP_AFTER in found), ""),
        )


def _is_counted(dimension: str) -> bool:
    return dimension not in ("pods", "ephemeral-storage") and not dimension.startswith("hugepages")


def _requests(pod: objects.Pod) -> Amounts:
    return amounts((name, amount) for name, amount in requests_of(pod)[0].items() if _is_counted(name) and amount)


def _is_preemptable(pod: objects.Pod, group: objects.PodGroup) -> bool:
    preemptable: Any = {
        **(group.metadata.annotations or {}),
        **(pod.metadata.labels or {}),
        **(pod.metadata.annotations or {}),
    }.get(names.PREEMPTABLE, "true")
    return str(preemptable).lower() != "false"


def _without_sentence(pod: objects.Pod) -> Iterator[str]:
    """Yield the fields of a pod that no sentence can express, except those that the API server adds to every pod."""
    spec = pod.spec
    yield from (field.replace("_", " ") for field in _FIELDS if getattr(spec, field))
    if any(not toleration.key.startswith(_OF_EVERY_POD) for toleration in spec.tolerations or ()):
        yield "tolerations"
    if spec.preemption_policy == "Never":
        yield "preemption policy"


def _annotations(pod: objects.Pod) -> dict[str, str]:
    return pod.metadata.annotations or {}


def _created(group: objects.PodGroup) -> int:
    return int(times.seconds(group.metadata.creation_timestamp))


def _queue(given: objects.Queue) -> CaseQueue:
    spec = given.spec
    return CaseQueue(
        given.metadata.name,
        spec.parent,
        spec.weight,
        spec.priority,
        amounts(resources.parse(spec.capability).items()),
        amounts(resources.parse(spec.deserved).items()),
        amounts(resources.parse(spec.guarantee.resource if spec.guarantee else None).items()),
        spec.reclaimable is not False,
    )


def _short_names(keys: Iterable[str]) -> dict[str, str]:
    """Return a short name for each key. The names sort like the keys, because their order decides among equal jobs."""
    ordered = sorted(keys)
    width = len(str(len(ordered)))
    return {key: f"job-{number:0{width}}" for number, key in enumerate(ordered, 1)}


def check_queues(case: Case, source: str) -> None:
    """Raise StateError if no job of the state waits or runs."""
    if not case.work:
        raise StateError(source, "has no job that waits or runs", "take the state with pods and PodGroups")
