"""The Job controller's decision: what to write so that a Job comes nearer to what its spec says.

The one rule: the status is written before anything is done because of it. Whoever comes after a crash finds in it what
was meant.
"""

from __future__ import annotations

import copy

from ...kube.resource import PODS
from ...model.times import render_duration, seconds, timestamp
from ..runtime.objects import COMMANDS, JOBS, JobCondition, JobStatus, TaskState
from ..runtime.pods import TemplateError, check_size
from ..runtime.slices import in_hand
from ..runtime.writes import ApplyObject, EmitEvent, ReconcileResult, Remove, Write
from .events import Order, next_due, orders
from .group import gang_problem, group_removal, group_version, group_writes
from .phases import advance, follow, pods_to_delete, pods_to_restart
from .plugins import MANAGER, plugin_writes
from .pods import missing_pods
from .refusals import impossible, unhonoured
from .state import ENDING, FINISHED, Census, JobPhase, ObservedJob, count, min_available

_REMEMBERED_PHASES = 30
_OBSTACLES = ("NotHonoured", "Malformed", "QueueNotUsable", "GangTooLarge")
"""Reasons of a state that a user has to do something about."""


def reconcile(seen: ObservedJob) -> ReconcileResult:
    """What to write for one Job now, and when to look again. Pure: equal input, equal outcome."""
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
    """A Job that cannot be run as it is written waits, and says why."""
    status = copy.deepcopy(seen.job.status)
    status.state.phase = status.state.phase or JobPhase.PENDING
    status.state.reason, status.state.message = reason, message
    return ReconcileResult(_status_writes(seen, status))


def _reconcile(seen: ObservedJob) -> ReconcileResult:
    job = seen.job
    status = copy.deepcopy(job.status)
    if not status.state.phase:
        status.state.phase = JobPhase.PENDING
    order, commands = _order(seen, status)
    status.restarting = pods_to_restart(status, seen.pods, order) or None
    to_delete = pods_to_delete(job, status, seen.pods)
    census = count(seen.pods, frozenset(pod.metadata.uid for pod in to_delete))
    phase = advance(job, status, census)
    if phase != status.state.phase and order is None:
        status.state.phase = phase
        status.state.reason = status.state.message = ""
    _fill(status, seen, census)
    writes = plugin_writes(job) if job.status.observed_generation != job.metadata.generation else []
    writes += _status_writes(seen, status)
    writes += commands
    writes += [Remove.of(PODS, pod.metadata) for pod in to_delete]
    writes += _surroundings(seen, status, census)
    removal, ttl = _expiry(seen, status)
    due = (ttl, next_due(status.delayed or [], seen.now), in_hand(writes))
    waits = [wait for wait in due if wait is not None]
    return ReconcileResult([*writes, *removal], min(waits, default=None))


def _order(seen: ObservedJob, status: JobStatus) -> tuple[Order | None, list[Write]]:
    """Take up a command or what the policies want; the status says afterwards what was taken up."""
    done: list[Write] = []
    for command in seen.commands:
        done.append(Remove.of(COMMANDS, command.metadata))
        if status.last_command == command.metadata.uid:
            continue
        status.last_command = command.metadata.uid
        order = Order(command.action, f"command {command.metadata.name}")
        if follow(order, status):
            return order, [*done, _told(seen, order)]
    if status.state.phase not in (JobPhase.PENDING, JobPhase.RUNNING):
        return None, done
    order_of_policies, waiting = orders(seen, count(seen.pods, frozenset(status.restarting or ())))
    status.delayed = waiting or None
    if order_of_policies is not None and follow(order_of_policies, status):
        return order_of_policies, [*done, _told(seen, order_of_policies)]
    return None, done


def _told(seen: ObservedJob, order: Order) -> EmitEvent:
    return EmitEvent(
        JOBS, seen.job.metadata, "Normal", "ExecuteAction", f"Start to execute action {order.action}: {order.cause}"
    )


def _surroundings(seen: ObservedJob, status: JobStatus, census: Census) -> list[Write]:
    """The PodGroup, the plugins' objects and missing pods, as the phase wants them."""
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
        writes += [*(plugin_writes(seen.job) if pods else ()), *pods]  # no pod comes before what it mounts
    return writes


def _fill(status: JobStatus, seen: ObservedJob, census: Census) -> None:
    """Counters, what was seen, and why a waiting Job waits."""
    job = seen.job
    status.min_available = min_available(job)
    status.pending, status.running = census.of("Pending"), census.of("Running")
    status.succeeded, status.failed = census.of("Succeeded"), census.of("Failed")
    status.unknown, status.terminating = census.of("Unknown"), census.terminating
    status.task_status_count = {task: TaskState(dict(phases)) for task, phases in census.by_task.items()} or None
    status.observed_generation = job.metadata.generation
    status.controlled_resources = {f"plugin-{name}": name for name in job.spec.plugins or ()} or None
    if status.state.phase == JobPhase.PENDING:
        status.state.reason = status.state.message = ""
        if problem := seen.queue_problem:
            status.state.reason, status.state.message = "QueueNotUsable", problem
        elif problem := gang_problem(seen):
            status.state.reason, status.state.message = "GangTooLarge", problem


def _status_writes(seen: ObservedJob, status: JobStatus) -> list[Write]:
    """The status, if it changes, and an event where its phase does."""
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
            told = f"The job is {status.state.phase}: {status.succeeded} succeeded, {status.failed} failed"
            writes.append(EmitEvent(JOBS, job.metadata, kind, status.state.phase, told))
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
        )
        writes.insert(0, change)
    return writes


def _expiry(seen: ObservedJob, status: JobStatus) -> tuple[list[Write], float | None]:
    """The end of a finished Job's time to live."""
    ttl = seen.job.spec.ttl_seconds_after_finished
    if ttl is None or status.state.phase not in FINISHED:
        return [], None
    left = seconds(status.state.last_transition_time) + ttl - seen.now
    meta = seen.job.metadata
    return ([Remove.of(JOBS, meta, "Background")], None) if left <= 0 else ([], left)
