"""The decision of the Job controller: the writes that bring a Job closer to its spec.

The one rule: the status is written before any action that follows from it. After a crash, the next controller reads the
intended action in the status.

A pod's name (`job-task-index`) and annotations identify what the pod was created for; nothing else is stored.
"""

from __future__ import annotations

import copy
from collections.abc import Set
from functools import partial
from itertools import islice
from typing import Any

from ...kube.resource import PODS
from ...model import names
from ...model.times import render_duration, seconds, timestamp
from ..runtime.objects import COMMANDS, JOBS, JobCondition, JobStatus, TaskSpec, TaskState
from ..runtime.pod_batches import batch_size, creation_order, requeue_after
from ..runtime.pods import TemplateError, add_environment, check_size, copy_of
from ..runtime.writes import ApplyObject, Body, Create, EmitEvent, ReconcileResult, Remove, Write, owned_by
from .events import RequestedAction, next_due, requested_action
from .group import gang_problem, group_removal, group_version, group_writes
from .phases import advance, apply_action, pods_to_delete, pods_to_restart
from .plugins import MANAGER, add_svc, plugin_writes
from .refusals import impossible, unhonoured
from .state import (
    ENDING,
    FINISHED,
    Census,
    JobPhase,
    ObservedJob,
    count,
    min_available,
    pod_name,
    task_minimum,
    tasks_of,
)


def missing_pods(seen: ObservedJob, group: str, version: int, census: Census) -> list[Create]:
    """Return the next batch of missing pods. The name of a terminating pod is not free yet."""
    existing = {pod.metadata.name for pod in seen.pods}
    tasks = list(tasks_of(seen.job))
    ready = {task.name for task in tasks if census.of_task(task.name, "Running", "Succeeded") >= task_minimum(task)}
    tasks = [task for task in tasks if _may_start(task, ready)]
    number = batch_size(seen.pods, min_available(seen.job), (task.template for task in tasks))
    order = creation_order([(task_minimum(task), task.replicas) for task in tasks])
    wanted = ((tasks[task], index) for task, index in order)
    missing = ((task, index) for task, index in wanted if pod_name(seen.job, task.name, index) not in existing)
    return [Create(PODS, pod_body(seen, task, index, group, version)) for task, index in islice(missing, number)]


def _may_start(task: TaskSpec, ready: Set[str]) -> bool:
    """Whether the tasks that this task depends on (all, or any) have their minimum of running or succeeded pods."""
    if task.depends_on is None or not task.depends_on.name:
        return True
    met = [name in ready for name in task.depends_on.name]
    return any(met) if task.depends_on.iteration == "any" else all(met)


def pod_body(seen: ObservedJob, task: TaskSpec, index: int, group: str, version: int) -> dict[str, Any]:
    """Return one pod. The template's own values are kept, except for those that identify the pod as this Job's."""
    job = seen.job
    metadata, spec = copy_of(task.template)
    marks = {
        names.TASK_SPEC: task.name,
        names.JOB_NAME: job.metadata.name,
        names.JOB_QUEUE: seen.queue,
        names.TASK_INDEX: str(index),
    }
    annotations = {
        **_inherited(job.metadata.annotations),
        **(metadata.get("annotations") or {}),
        **marks,
        names.GROUP_NAME: group,
        names.JOB_VERSION: str(version),
        names.TEMPLATE: f"{job.metadata.name}-{task.name}",
    }
    labels = {
        **_inherited(job.metadata.labels),
        **(metadata.get("labels") or {}),
        **marks,
        names.JOB_NAMESPACE: job.metadata.namespace,
    }
    if task.partition_policy is not None:
        labels[names.PARTITION] = str(index // task.partition_policy.partition_size)
    if not spec.get("schedulerName"):
        spec["schedulerName"] = job.spec.scheduler_name or seen.scheduler_name
    if spec.get("hostNetwork") and not spec.get("dnsPolicy"):
        spec["dnsPolicy"] = "ClusterFirstWithHostNet"
    if job.spec.priority_class_name and not spec.get("priorityClassName"):
        spec["priorityClassName"] = job.spec.priority_class_name
    add_environment(
        spec, [{"name": "VC_TASK_INDEX", "value": str(index)}, {"name": "VK_TASK_INDEX", "value": str(index)}]
    )
    add_svc(job, pod_name(job, task.name, index), spec)
    return {
        "metadata": {
            "name": pod_name(job, task.name, index),
            "namespace": job.metadata.namespace,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [owned_by(JOBS, job.metadata)],
        },
        "spec": spec,
    }


def _inherited(given: dict[str, str] | None) -> dict[str, str]:
    """Return the annotations or labels that a Job passes on to its pods."""
    return {names.PREEMPTABLE: given[names.PREEMPTABLE]} if given and names.PREEMPTABLE in given else {}


_REMEMBERED_PHASES = 30
NAME_TAKEN = "NameTaken"
_OBSTACLES = ("NotHonoured", "Malformed", "QueueNotUsable", "GangTooLarge", NAME_TAKEN)
"""Reasons of a state that a user has to act on."""


def reconcile(seen: ObservedJob) -> ReconcileResult:
    """Return the writes for one Job, and when to reconcile it again. Pure: equal input, equal outcome."""
    job = seen.job
    if job.metadata.deletion_timestamp is not None:
        return ReconcileResult()
    if fields := unhonoured(job):
        return _refusal(seen, "NotHonoured", f"{fields}: not honoured here; remove it and create the job anew")
    if problem := impossible(job):
        return _refusal(seen, "Malformed", f"{problem}; correct it and create the job anew")
    try:
        check_size(task.template for task in job.spec.tasks)
        return _reconcile(seen)
    except TemplateError as error:
        return _refusal(seen, "Malformed", f"a task's {error}; correct it and create the job anew")


def _refusal(seen: ObservedJob, reason: str, message: str) -> ReconcileResult:
    """Return the writes for a Job that cannot run as written: it waits, and its status has the reason."""
    status = copy.deepcopy(seen.job.status)
    status.state.phase = status.state.phase or JobPhase.PENDING
    status.state.reason, status.state.message = reason, message
    return ReconcileResult(_status_writes(seen, status))


def _reconcile(seen: ObservedJob) -> ReconcileResult:
    job = seen.job
    status = copy.deepcopy(job.status)
    if not status.state.phase:
        status.state.phase = JobPhase.PENDING
    requested, commands = _requested_action(seen, status)
    status.restarting = pods_to_restart(status, seen.pods, requested) or None
    to_delete = pods_to_delete(job, status, seen.pods)
    census = count(seen.pods, frozenset(pod.metadata.uid for pod in to_delete))
    phase = advance(job, status, census)
    if phase != status.state.phase and requested is None:
        status.state.phase = phase
        status.state.reason = status.state.message = ""
    _fill(status, seen, census)
    plugins = plugin_writes(job) if _plugins_are_due(seen, status) else []
    # if a name is taken, write the status first: a failing write of a plugin would keep it from being reported
    writes = [] if seen.name_taken else plugins
    writes += _status_writes(seen, status)
    writes += plugins if seen.name_taken else []
    writes += commands
    writes += [Remove.of(PODS, pod.metadata) for pod in to_delete]
    writes += _dependent_writes(seen, status, census)
    removal, ttl = _expiry(seen, status)
    delayed = status.delayed if status.state.phase in (JobPhase.PENDING, JobPhase.RUNNING) else None
    due = (ttl, next_due(delayed or [], seen.now), requeue_after(writes))
    waits = [wait for wait in due if wait is not None]
    return ReconcileResult([*writes, *removal], min(waits, default=None))


def _plugins_are_due(seen: ObservedJob, status: JobStatus) -> bool:
    """Return True if the spec has changed, or the name of an object was taken at the last attempt."""
    job = seen.job
    if job.status.observed_generation != job.metadata.generation:
        return True
    taken = bool(seen.name_taken) or job.status.state.reason == NAME_TAKEN
    return taken and status.state.phase in (JobPhase.PENDING, JobPhase.RUNNING)


def _requested_action(seen: ObservedJob, status: JobStatus) -> tuple[RequestedAction | None, list[Write]]:
    """Apply a command or an action of the policies to the status; return the action, and the writes that go with it."""
    done: list[Write] = []
    for command in seen.commands:
        done.append(Remove.of(COMMANDS, command.metadata))
        if status.last_command == command.metadata.uid:
            continue
        status.last_command = command.metadata.uid
        commanded = RequestedAction(command.action, f"command {command.metadata.name}")
        if apply_action(commanded, status):
            return commanded, [*done, _action_event(seen, commanded)]
    if status.state.phase not in (JobPhase.PENDING, JobPhase.RUNNING):
        return None, done
    requested, waiting = requested_action(seen, count(seen.pods, frozenset(status.restarting or ())))
    status.delayed = waiting or None
    if requested is not None and apply_action(requested, status):
        return requested, [*done, _action_event(seen, requested)]
    return None, done


def _action_event(seen: ObservedJob, requested: RequestedAction) -> EmitEvent:
    return EmitEvent(
        JOBS,
        seen.job.metadata,
        "Normal",
        "ExecuteAction",
        f"Start to execute action {requested.action}: {requested.cause}",
    )


def _dependent_writes(seen: ObservedJob, status: JobStatus, census: Census) -> list[Write]:
    """Return the writes for the PodGroup, the plugins' objects and missing pods in the current phase."""
    phase = status.state.phase
    if phase in ENDING or phase in FINISHED or phase == JobPhase.ABORTED:
        return group_removal(seen)
    if phase == JobPhase.RESTARTING:
        stale = seen.group is not None and group_version(seen.group) != status.version
        return group_removal(seen) if stale else []
    if status.state.reason == "GangTooLarge":
        return []
    writes = group_writes(seen, status.version)
    group = seen.group
    admitted = group is not None and group.status.phase not in ("", JobPhase.PENDING)
    if group is not None and admitted and group_version(group) == status.version:
        pods = missing_pods(seen, group.metadata.name, status.version, census)
        writes += [*(plugin_writes(seen.job) if pods else ()), *pods]  # a pod's mounts must exist before the pod
    return writes


def _fill(status: JobStatus, seen: ObservedJob, census: Census) -> None:
    """Set counters, the observed generation, and why a pending Job waits."""
    job = seen.job
    status.min_available = min_available(job)
    status.pending, status.running = census.of("Pending"), census.of("Running")
    status.succeeded, status.failed = census.of("Succeeded"), census.of("Failed")
    status.unknown, status.terminating = census.of("Unknown"), census.terminating
    status.task_status_count = {task: TaskState(dict(phases)) for task, phases in census.by_task.items()} or None
    status.observed_generation = job.metadata.generation
    status.controlled_resources = {f"plugin-{name}": name for name in job.spec.plugins or ()} or None
    if status.state.phase == JobPhase.PENDING or status.state.reason == NAME_TAKEN:
        status.state.reason = status.state.message = ""
    if status.state.phase in (JobPhase.PENDING, JobPhase.RUNNING) and seen.name_taken:
        status.state.reason, status.state.message = NAME_TAKEN, seen.name_taken
    if status.state.phase == JobPhase.PENDING:
        if problem := seen.queue_problem:
            status.state.reason, status.state.message = "QueueNotUsable", problem
        elif problem := gang_problem(seen):
            status.state.reason, status.state.message = "GangTooLarge", problem


def _status_writes(seen: ObservedJob, status: JobStatus) -> list[Write]:
    """Return the write of a changed status, and the events for the end of the Job and for a new obstacle."""
    job, before = seen.job, seen.job.status
    writes: list[Write] = []
    if status.state.phase != before.state.phase:
        moment = timestamp(seen.now)
        status.state.last_transition_time = moment
        conditions = [*(status.conditions or ()), JobCondition(status.state.phase, moment)]
        status.conditions = conditions[-_REMEMBERED_PHASES:]
        if status.state.phase in FINISHED:
            started = next((c for c in conditions if c.status == JobPhase.RUNNING), None)
            if started is not None:
                status.running_duration = render_duration(seen.now - seconds(started.last_transition_time))
            kind = "Normal" if status.state.phase == "Completed" else "Warning"
            message = f"The job is {status.state.phase}: {status.succeeded} succeeded, {status.failed} failed"
            writes.append(EmitEvent(JOBS, job.metadata, kind, status.state.phase, message))
    if status.state.reason in _OBSTACLES and status.state.message != before.state.message:
        writes.append(EmitEvent(JOBS, job.metadata, "Warning", status.state.reason, status.state.message))
    if status != before:
        change = ApplyObject(
            JOBS,
            job.metadata.namespace,
            job.metadata.name,
            {"status": status},
            "status",
            job.metadata.resource_version,
            job.metadata.uid,
            MANAGER,
            on_refusal=partial(_refused, status.state.phase),
        )
        writes.insert(0, change)
    return writes


def _refused(phase: str, message: str) -> Body:
    """Return the part of the status that reports that the API server refuses the rest."""
    return {"status": {"state": {"phase": phase, "reason": "StatusRefused", "message": message}}}


def _expiry(seen: ObservedJob, status: JobStatus) -> tuple[list[Write], float | None]:
    """Return the removal of a finished Job whose TTL has expired, or the seconds left."""
    ttl = seen.job.spec.ttl_seconds_after_finished
    if ttl is None or status.state.phase not in FINISHED:
        return [], None
    left = seconds(status.state.last_transition_time) + ttl - seen.now
    meta = seen.job.metadata
    return ([Remove.of(JOBS, meta, "Background")], None) if left <= 0 else ([], left)
