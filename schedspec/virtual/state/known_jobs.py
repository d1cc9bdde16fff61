"""Add to a state what only its VolcanoJobs know: pods that do not exist yet, and what the eviction of a pod causes.

A state keeps no Jobs. Their pods are made as our controller makes them, and each pod carries the action of its Job's
policy on `PodEvicted` as an annotation: a template has environments and commands, which no state has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import msgspec

from ...scheduler.controllers.job.events import POD_EVICTED, JobEvent, policy_for
from ...scheduler.controllers.job.reconcile import pod_body
from ...scheduler.controllers.job.state import FINISHED, ObservedJob, task_of, tasks_of
from ...scheduler.controllers.runtime.objects import JOBS, VolcanoJob
from ...scheduler.model import names, objects
from ...scheduler.model.auxiliary import priority_of
from ...scheduler.reasons.text import count
from .state import State

AWAITS_PODS = ("", "Pending", "Inqueue")
"""Phases of PodGroups whose pods may not exist yet."""


def add_known_jobs(state: State, jobs: Sequence[VolcanoJob]) -> None:
    """Add the pods of waiting jobs that have none, and note on every pod of a job what its eviction causes."""
    groups = {owner: group for group in state.objects["PodGroup"].values() for owner in _owners(group.metadata)}
    pods_of: dict[str, list[objects.Pod]] = {}
    for pod in state.objects["Pod"].values():
        for owner in _owners(pod.metadata):
            pods_of.setdefault(owner, []).append(pod)
    made = without = 0
    for job in jobs:
        group, pods = groups.get(job.metadata.uid), pods_of.get(job.metadata.uid, [])
        if not pods and group is not None and group.status.phase in AWAITS_PODS and not _is_over(job):
            pods = [*_pods_of(state, job, group)]
            made, without = made + len(pods), without + bool(pods)
        for pod in pods:
            state.put("Pod", _marked(pod, job))
    if without:
        state.notes.append(f"{count(without, 'job')} had no pods yet: {count(made, 'pod')} were made from their Jobs")


def _owners(meta: objects.ObjectMeta) -> Iterator[str]:
    """Yield the uids of the VolcanoJobs that own an object."""
    return (owner.uid for owner in meta.owner_references or () if owner.kind == JOBS.kind)


def _is_over(job: VolcanoJob) -> bool:
    return job.status.state.phase in FINISHED


def _pods_of(state: State, job: VolcanoJob, group: objects.PodGroup) -> Iterator[objects.Pod]:
    """Yield all pods of a job, as they are once `enqueue` admits it."""
    seen = ObservedJob(job, group=group, queue=group.spec.queue, scheduler_name=_scheduler(state))
    for task in tasks_of(job):
        for index in range(task.replicas):
            body = pod_body(seen, task, index, group.metadata.name, job.status.version)
            pod = msgspec.convert(body, objects.Pod)
            meta = msgspec.structs.replace(
                pod.metadata,
                uid=f"{job.metadata.uid}-{task.name}-{index}",
                creation_timestamp=group.metadata.creation_timestamp,
                annotations=objects.read_annotations(pod.metadata.annotations),
            )
            classes = state.objects["PriorityClass"]
            spec = msgspec.structs.replace(pod.spec, priority=priority_of(pod.spec.priority_class_name, classes))
            yield objects.Pod(meta, spec, objects.PodStatus("Pending"))


def _scheduler(state: State) -> str:
    known: Collection[str] = state.scheduler_names or {pod.spec.scheduler_name for pod in state.objects["Pod"].values()}
    return min(known, default="")


def _marked(pod: objects.Pod, job: VolcanoJob) -> objects.Pod:
    policy = policy_for(ObservedJob(job), JobEvent(POD_EVICTED, task_of(pod)))
    if policy is None or policy.timeout:  # its pod is there again before the time is over
        return pod
    annotations = {**(pod.metadata.annotations or {}), names.ON_EVICTED: policy.action}
    return objects.Pod(msgspec.structs.replace(pod.metadata, annotations=annotations), pod.spec, pod.status)
