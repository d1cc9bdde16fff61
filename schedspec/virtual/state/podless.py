"""Make the pods of jobs that have none and are not known (`known_jobs`): a controller creates them once admitted.

Without them, such a job would take part in nothing: under Volcano's default policy that is every waiting job. A
PodGroup says how many pods start together and what they request together, by role; how one pod's request differs from
the mean, and how many more pods the job has, only the Job knows.
"""

from __future__ import annotations

from ...scheduler.controllers.runtime.pods import priority_of
from ...scheduler.model import names, objects, resources
from ...scheduler.reasons.text import count
from .known_jobs import AWAITS_PODS
from .state import State


def add_missing_pods(state: State) -> None:
    """Add pending pods to each waiting PodGroup that has none and that a controller owns; note how many."""
    having = {key for key, pods in state.of_job().items() if pods}
    made = jobs = 0
    for key, group in sorted(state.objects["PodGroup"].items()):
        if key in having or group.status.phase not in AWAITS_PODS or not group.metadata.owner_references:
            continue
        pods = _pods_of(state, group)
        made, jobs = made + len(pods), jobs + bool(pods)
        for pod in pods:
            state.put("Pod", pod)
    if jobs:
        state.notes.append(
            f"{count(jobs, 'job')} had no pods yet: {count(made, 'pod')} were made from minTaskMember and "
            "minResources, all of a job alike"
        )


def _pods_of(state: State, group: objects.PodGroup) -> list[objects.Pod]:
    """Return the pods of a gang's minimum: as many of each role as it needs, each with an equal part of its request."""
    spec = group.spec
    roles = [role for role, number in sorted((spec.min_task_member or {}).items()) for _ in range(number)]
    roles += [""] * (spec.min_member - len(roles))
    total = resources.parse(spec.min_resources)
    each = {name: -(-amount // len(roles)) for name, amount in total.items() if roles and name != resources.PODS}
    requested = objects.pods.Resources(requests=dict(resources.quantities(each)))
    schedulers = state.scheduler_names or sorted({pod.spec.scheduler_name for pod in state.objects["Pod"].values()})
    made = objects.PodSpec(
        containers=[objects.Container(name="work", resources=requested)],
        scheduler_name=schedulers[0] if schedulers else "",
        priority=priority_of(spec.priority_class_name, state.objects["PriorityClass"].values()),
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
