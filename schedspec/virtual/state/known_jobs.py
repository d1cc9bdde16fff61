"""Add to a state the pods that do not exist yet, and the actions that follow an eviction.

A controller creates the pods of a waiting job once `enqueue` admits its PodGroup; without them, such a job would take
part in nothing. If the Job is known, its pods are made as our controller makes them, and each pod carries the action of
the Job's policy on `PodEvicted` as an annotation. A state keeps no Jobs: a template has environments and commands.
Without the Job, the PodGroup says how many pods start together and what they request together, by role.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from ...scheduler.controllers.job.events import POD_EVICTED, JobEvent, policy_for
from ...scheduler.controllers.job.reconcile import pod_body
from ...scheduler.controllers.job.state import FINISHED, ObservedJob, task_of, tasks_of
from ...scheduler.controllers.runtime.objects import JOBS, VolcanoJob
from ...scheduler.model import names, objects, resources
from ...scheduler.model.auxiliary import priority_of
from ...scheduler.reasons.text import count
from .state import State

_AWAITS_PODS = ("", "Pending", "Inqueue")
"""Phases of PodGroups whose pods may not exist yet."""


def add_known_jobs(state: State, jobs: Sequence[VolcanoJob]) -> None:
    """Add the pods of waiting jobs that have none, and note on every pod of a job what its eviction causes."""
    groups = {owner: group for group in state.objects["PodGroup"].values() for owner in _owners(group.metadata)}
    pods_of: dict[str, list[objects.Pod]] = {}
    for pod in state.objects["Pod"].values():
        for owner in _owners(pod.metadata):
            pods_of.setdefault(owner, []).append(pod)
    scheduler = _usual_scheduler(state)
    made = without = 0
    for job in jobs:
        group, pods = groups.get(job.metadata.uid), pods_of.get(job.metadata.uid, [])
        if not pods and group is not None and group.status.phase in _AWAITS_PODS and not _is_over(job):
            pods = [*_pods_of(state, job, group, scheduler)]
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


def _pods_of(state: State, job: VolcanoJob, group: objects.PodGroup, scheduler: str) -> Iterator[objects.Pod]:
    """Yield all pods of a job, as they are once `enqueue` admits it."""
    seen = ObservedJob(job, group=group, queue=group.spec.queue, scheduler_name=scheduler)
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


def _usual_scheduler(state: State) -> str:
    """Return the scheduler of pods whose work names none."""
    known = state.scheduler_names or sorted({pod.spec.scheduler_name for pod in state.objects["Pod"].values()})
    return known[0] if known else ""


def _marked(pod: objects.Pod, job: VolcanoJob) -> objects.Pod:
    policy = policy_for(ObservedJob(job), JobEvent(POD_EVICTED, task_of(pod)))
    if policy is None or policy.timeout:  # its pod is there again before the time is over
        return pod
    annotations = {**(pod.metadata.annotations or {}), names.ON_EVICTED: policy.action}
    return objects.Pod(msgspec.structs.replace(pod.metadata, annotations=annotations), pod.spec, pod.status)


def add_missing_pods(state: State) -> None:
    """Add pending pods to each waiting PodGroup that has none and that a controller owns; note how many."""
    having = {key for key, pods in state.of_job().items() if pods}
    scheduler = _usual_scheduler(state)
    made = jobs = 0
    for key, group in sorted(state.objects["PodGroup"].items()):
        if key in having or group.status.phase not in _AWAITS_PODS or not group.metadata.owner_references:
            continue
        pods = _pods_of_minimum(state, group, scheduler)
        made, jobs = made + len(pods), jobs + bool(pods)
        for pod in pods:
            state.put("Pod", pod)
    if jobs:
        state.notes.append(
            f"{count(jobs, 'job')} had no pods yet: {count(made, 'pod')} were made from minTaskMember and "
            "minResources, all of a job alike"
        )


def _pods_of_minimum(state: State, group: objects.PodGroup, scheduler: str) -> list[objects.Pod]:
    """Return the pods of a gang's minimum: as many of each role as it needs, each with an equal part of its request."""
    spec = group.spec
    roles = [role for role, number in sorted((spec.min_task_member or {}).items()) for _ in range(number)]
    roles += [""] * (spec.min_member - len(roles))
    total = resources.parse(spec.min_resources)
    each = {name: -(-amount // len(roles)) for name, amount in total.items() if roles and name != resources.PODS}
    requested = objects.pods.Resources(requests=dict(resources.quantities(each)))
    made = objects.PodSpec(
        containers=[objects.Container(name="work", resources=requested)],
        scheduler_name=scheduler,
        priority=priority_of(spec.priority_class_name, state.objects["PriorityClass"]),
        priority_class_name=spec.priority_class_name,
    )
    return [objects.Pod(_meta(group, role, number), made) for number, role in enumerate(roles)]


def _meta(group: objects.PodGroup, role: str, number: int) -> objects.ObjectMeta:
    owner = (group.metadata.owner_references or [objects.meta.OwnerReference()])[0]
    annotations = {key: text for key, text in (group.metadata.annotations or {}).items() if key == names.PREEMPTABLE}
    return objects.ObjectMeta(
        name=f"{owner.name}-{role or 'task'}-{number}",
        namespace=group.metadata.namespace,
        uid=f"{group.metadata.uid}-{number}",
        creation_timestamp=group.metadata.creation_timestamp,
        annotations={**annotations, names.GROUP_NAME: group.metadata.name} | ({names.TASK_SPEC: role} if role else {}),
        owner_references=group.metadata.owner_references,
    )
