"""Find fields of a Job that are not supported, and specs that can never run.

The Job waits, and its status names the field: no field of a spec is ignored silently. (Our own schema rejects most of
them; a cluster may have Volcano's schema.)
"""

from __future__ import annotations

from collections.abc import Iterator

from ..runtime.objects import Policy, TaskSpec, VolcanoJob
from .events import EVENTS
from .phases import ACTIONS
from .state import tasks_of

PLUGINS: dict[str, tuple[str, ...]] = {"env": (), "svc": ("publish-not-ready-addresses", "disable-network-policy")}
"""The supported plugins, and the flags of each."""


_MAX_BYTES_OF_HOSTS = 1_000_000
"""Maximum bytes of the host lists; the API server accepts 1 MiB of data in a ConfigMap."""


def flag(argument: str) -> tuple[str, bool]:
    """Parse a boolean flag as Go does: `--flag` or `--flag=true`."""
    name, _, value = argument.lstrip("-").partition("=")
    return name, value.lower() in ("", "true", "1", "t")


def unhonoured(job: VolcanoJob) -> str:
    """Return the fields of a Job that are not supported; empty if there are none."""
    spec = job.spec
    found = list(_plugins(job))
    found += ["spec.volumes"] if spec.volumes else []
    found += _policies("spec", spec.policies)
    for index, task in enumerate(spec.tasks):
        found += _of_task(f"spec.tasks[{index}]", task)
    return ", ".join(found)


def _plugins(job: VolcanoJob) -> Iterator[str]:
    for name, arguments in sorted((job.spec.plugins or {}).items()):
        if name not in PLUGINS:
            yield f"spec.plugins.{name}"
            continue
        for argument in arguments:
            if flag(argument)[0] not in PLUGINS[name]:
                yield f"spec.plugins.{name} ({argument})"


def _of_task(path: str, task: TaskSpec) -> Iterator[str]:
    if task.topology_policy not in ("", "none"):
        yield f"{path}.topologyPolicy ({task.topology_policy})"
    if task.depends_on is not None and task.depends_on.iteration not in ("", "any", "all"):
        yield f"{path}.dependsOn.iteration ({task.depends_on.iteration})"
    yield from _policies(path, task.policies)


def _policies(path: str, policies: list[Policy] | None) -> Iterator[str]:
    for index, policy in enumerate(policies or ()):
        if policy.action not in ACTIONS:
            yield f"{path}.policies[{index}].action ({policy.action or 'none'})"
        for event in (*(policy.events or ()), *([policy.event] if policy.event else ())):
            if event not in EVENTS:
                yield f"{path}.policies[{index}].event ({event})"


def impossible(job: VolcanoJob) -> str:
    """Return why a Job can never run (a task without a pod spec, a dependency cycle, …); empty if it can."""
    tasks = list(tasks_of(job))
    names = {task.name for task in tasks}
    for index, task in enumerate(tasks):
        if "spec" not in task.template:
            return f"spec.tasks[{index}].template.spec: missing"
        if problem := _partition_problem(task):
            return f"spec.tasks[{index}].partitionPolicy: {problem}"
        if unknown := [name for name in _needs(task) if name not in names]:
            return f"spec.tasks[{index}].dependsOn.name: there is no task {', '.join(unknown)}"
    if "svc" in (job.spec.plugins or {}) and (size := _size_of_hosts(job)) > _MAX_BYTES_OF_HOSTS:
        return f"spec.plugins.svc: the names of all hosts are {size} bytes, and a ConfigMap holds {_MAX_BYTES_OF_HOSTS}"
    started = _can_start(tasks)
    for index, task in enumerate(tasks):
        if task.name not in started:
            return f"spec.tasks[{index}].dependsOn.name: {task.name} would wait for itself by way of {_needs(task)[0]}"
    return ""


def _partition_problem(task: TaskSpec) -> str:
    """Return what is wrong with the partition policy of a task; empty if nothing is."""
    policy = task.partition_policy
    if policy is None:
        return ""
    if policy.total_partitions < 1 or policy.partition_size < 1:
        return "totalPartitions and partitionSize have to be 1 or more"
    if policy.total_partitions * policy.partition_size != task.replicas:
        parts = f"{policy.total_partitions} partitions of {policy.partition_size}"
        return f"{parts} are not the {task.replicas} replicas of the task"
    if (policy.min_partitions or 0) > policy.total_partitions:
        return f"minPartitions {policy.min_partitions} is above totalPartitions {policy.total_partitions}"
    return ""


def _size_of_hosts(job: VolcanoJob) -> int:
    """Return the approximate size of the two host lists of the plugin svc."""
    name = len(job.metadata.name)
    return sum(2 * task.replicas * (2 * name + len(task.name) + len(str(task.replicas)) + 4) for task in tasks_of(job))


def _needs(task: TaskSpec) -> list[str]:
    return list(task.depends_on.name or ()) if task.depends_on else []


def _can_start(tasks: list[TaskSpec]) -> set[str]:
    """Return the names of the tasks whose dependencies can be met. Each dependency is visited once."""
    missing = [_missing_at_first(task) for task in tasks]
    dependents: dict[str, list[int]] = {}
    for index, task in enumerate(tasks):
        for name in _needs(task):
            dependents.setdefault(name, []).append(index)
    ready = [task.name for task, number in zip(tasks, missing, strict=True) if not number]
    started: set[str] = set()
    while ready:
        name = ready.pop()
        if name in started:
            continue
        started.add(name)
        for index in dependents.get(name, ()):
            missing[index] -= 1
            if not missing[index]:
                ready.append(tasks[index].name)
    return started


def _missing_at_first(task: TaskSpec) -> int:
    """Return how many dependencies of a task have to start before the task can start."""
    needs = len(_needs(task))
    is_any = task.depends_on is not None and task.depends_on.iteration == "any"
    return min(needs, 1) if is_any else needs
