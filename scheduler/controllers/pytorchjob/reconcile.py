"""The decision of the PyTorchJob controller: the writes that bring a training job closer to its end.

It does what Kubeflow's training operator does with Volcano as its gang scheduler: first the PodGroup, then the pods
once the PodGroup is admitted to its queue.
"""

from __future__ import annotations

import copy
from itertools import islice

from ...kube.resource import PODGROUPS, PODS
from ...model.objects import Pod
from ...model.task import index_of
from ...model.times import seconds, timestamp
from ..gang_job import group_update, is_outdated
from ..runtime.objects import PYTORCH_JOBS, PyTorchCondition, PyTorchJob, PyTorchJobStatus
from ..runtime.pod_batches import batch_size, creation_order, requeue_after
from ..runtime.pods import TemplateError, check_size, controller_of, exit_code, restarts
from ..runtime.writes import ApplyObject, Create, EmitEvent, ReconcileResult, Remove, Write
from . import status as conditions
from .pods import (
    MANAGER,
    gang_problem,
    group_body,
    group_spec,
    leader_of,
    minimum_of,
    pod_body,
    pod_name,
    replicas_of,
    service_of,
)
from .state import ObservedTraining, group_removal, removals, type_of, unhonoured

_RETRYABLE_FROM = 128
"""Exit codes from this one on mean that the pod was killed, not that its program failed (restartPolicy ExitCode)."""
_TRAINING_OPERATOR = "kubeflow.org/training-operator"
"""The manager of a job that names none (`runPolicy.managedBy`). A job with another manager is left alone."""
_STOPS = frozenset(("BackoffLimitExceeded", "DeadlineExceeded"))
"""Failures that delete the pods whatever cleanPodPolicy says; otherwise the pods would keep their cards."""


def reconcile(seen: ObservedTraining) -> ReconcileResult:
    """Return the writes for one PyTorchJob, and when to reconcile it again. Pure: equal input, equal outcome."""
    job = seen.job
    if job.metadata.deletion_timestamp is not None or job.spec.run_policy.managed_by not in ("", _TRAINING_OPERATOR):
        return ReconcileResult()
    if fields := unhonoured(job):
        message = f"{fields}: not honoured here; remove it, or let the training operator run this job"
        return _refusal(seen, "NotHonoured", message)
    try:
        check_size(replica.template for replica in job.spec.pytorch_replica_specs.values())
        return _reconcile(seen)
    except TemplateError as error:
        return _refusal(seen, "Malformed", f"a replica's {error}; correct it and create the job anew")


def _refusal(seen: ObservedTraining, reason: str, message: str) -> ReconcileResult:
    """Return the writes for a job that cannot run as written: it stays Created, and the condition has the reason."""
    status = copy.deepcopy(seen.job.status)
    conditions.put(seen.job, status, conditions.TrainingCondition.CREATED, seen.now, reason=reason, message=message)
    return ReconcileResult(_status_writes(seen, status))


def _reconcile(seen: ObservedTraining) -> ReconcileResult:
    job = seen.job
    status = copy.deepcopy(job.status)
    first = not status.conditions
    if first:
        conditions.put(job, status, conditions.TrainingCondition.CREATED, seen.now)
    live = [pod for pod in seen.pods if pod.metadata.deletion_timestamp is None]
    if conditions.is_finished(status):
        return _after_the_end(seen, status, live)
    if job.spec.run_policy.suspend:
        conditions.put(job, status, conditions.TrainingCondition.SUSPENDED, seen.now)
        status.start_time = None
        status.replica_statuses = conditions.count(job, [])
        return ReconcileResult([*_status_writes(seen, status), *removals(live), *group_removal(seen)])
    if conditions.has(status, conditions.TrainingCondition.SUSPENDED):
        conditions.resume(job, status, seen.now)
    status.start_time = status.start_time or timestamp(seen.now)
    to_restart = _restarting(seen, status, live)
    _progress(seen, status, live, to_restart)
    ended = conditions.is_finished(status)
    status.replica_statuses = conditions.count(job, [pod for pod in live if pod not in to_restart])
    writes: list[Write] = [service_of(job)] if first and not seen.name_taken else []
    writes += _status_writes(seen, status)
    if not ended:
        writes += [service_of(job)] if seen.name_taken else []
        writes += [*removals(to_restart), *_group_and_pods(seen)]
    waits = [] if ended else [wait for wait in (_time_left(seen, status), requeue_after(writes)) if wait is not None]
    return ReconcileResult(writes, min(waits, default=None))


def _restarting(seen: ObservedTraining, status: PyTorchJobStatus, live: list[Pod]) -> list[Pod]:
    """Return the failed pods to restart. Fail the job where a pod must not restart, or after too many restarts."""
    job = seen.job
    policies = {kind.lower(): spec.restart_policy or "OnFailure" for kind, spec in replicas_of(job)}
    found = []
    for pod in live:
        if pod.status.phase != "Failed":
            continue
        policy = policies.get(type_of(pod), "Never")
        code = exit_code(pod)
        if policy in ("Always", "OnFailure") or (policy == "ExitCode" and (code or 0) >= _RETRYABLE_FROM):
            found.append(pod)
            continue
        message = (
            f"PyTorchJob {job.metadata.name} has failed because pod {pod.metadata.name} failed (exit code {code})."
        )
        conditions.put(job, status, conditions.TrainingCondition.FAILED, seen.now, message=message)
        return []
    known = status.restarting or ()
    status.restarts += sum(pod.metadata.uid not in known for pod in found)
    status.restarting = [pod.metadata.uid for pod in found] or None
    limit = job.spec.run_policy.backoff_limit
    done = status.restarts + sum(restarts(pod) for pod in live)
    if limit is not None and done > limit:
        message = (
            f"PyTorchJob {job.metadata.name} has failed: {done} restarts are more than its backoffLimit of {limit}."
        )
        conditions.put(
            job, status, conditions.TrainingCondition.FAILED, seen.now, reason="BackoffLimitExceeded", message=message
        )
        return []
    return found


def _progress(seen: ObservedTraining, status: PyTorchJobStatus, live: list[Pod], to_restart: list[Pod]) -> None:
    """Set the condition that follows from the deadline, the pods' phases and obstacles to creating pods."""
    job, now = seen.job, seen.now
    taken = {"reason": conditions.NAME_TAKEN, "message": seen.name_taken} if seen.name_taken else {}
    if conditions.is_finished(status):
        return
    deadline = job.spec.run_policy.active_deadline_seconds
    if deadline is not None and now - seconds(status.start_time) >= deadline:
        message = f"PyTorchJob {job.metadata.name} has failed because it was active longer than {deadline} s."
        conditions.put(
            job, status, conditions.TrainingCondition.FAILED, now, reason="DeadlineExceeded", message=message
        )
        return
    if _has_succeeded(job, live):
        conditions.put(job, status, conditions.TrainingCondition.SUCCEEDED, now)
        status.completion_time = timestamp(now)
    elif to_restart:
        conditions.put(job, status, conditions.TrainingCondition.RESTARTING, now, **taken)
    elif any(pod.status.phase == "Running" and type_of(pod) == leader_of(job).lower() for pod in live):
        conditions.put(job, status, conditions.TrainingCondition.RUNNING, now, **taken)
    else:
        problem, reason = seen.queue_problem, "QueueNotUsable"
        if not problem:
            problem, reason = gang_problem(job, seen.classes, seen.limits), "GangTooLarge"
        if not problem:
            problem, reason = _group_problem(seen) or seen.name_taken, conditions.NAME_TAKEN
        conditions.put_obstacle(job, status, reason, problem, now)


def _group_problem(seen: ObservedTraining) -> str:
    """Return why a user's PodGroup with the job's name cannot be used; empty if it can, or if there is none.

    The controller uses such a PodGroup and never changes it, so its `minMember` has to be the job's.
    """
    group, minimum = seen.group, minimum_of(seen.job)
    if group is None or controller_of(group.metadata) is not None or group.spec.min_member == minimum:
        return ""
    return (
        f"PodGroup {group.metadata.name} exists and belongs to somebody else, and its minMember is "
        f"{group.spec.min_member}, not {minimum}; correct it, or delete or rename it"
    )


def _has_succeeded(job: PyTorchJob, live: list[Pod]) -> bool:
    """Return True if the master succeeded; without one, if all workers did, or one of an elastic job.

    The workers of an elastic job end together; those that were taken away meanwhile never end.
    """
    leader = leader_of(job)
    replicas = job.spec.pytorch_replica_specs[leader].replicas
    done = [pod for pod in live if type_of(pod) == leader.lower() and pod.status.phase == "Succeeded"]
    needed = replicas if job.spec.elastic_policy is None else 1
    return sum(0 <= index_of(pod.metadata.name) < replicas for pod in done) >= needed


def _group_and_pods(seen: ObservedTraining) -> list[Write]:
    """Return the writes for the PodGroup, and for missing pods once it is admitted to its queue."""
    job, group = seen.job, seen.group
    if gang_problem(seen.job, seen.classes, seen.limits) or _group_problem(seen):
        return []
    if group is None:
        return [Create(PODGROUPS, group_body(job, group_spec(job, seen.queue, seen.classes)))]
    if group.metadata.deletion_timestamp is not None:
        return []
    writes: list[Write] = []
    wanted = group_spec(job, seen.queue, seen.classes)
    if controller_of(group.metadata) is not None and is_outdated(group, wanted):
        writes.append(group_update(group, wanted))
    if group.status.phase in ("", "Pending"):
        return writes
    pods = _missing_pods(seen)
    if pods:
        writes.append(service_of(job))  # the master's name must resolve before a pod starts
    return [*writes, *pods, *removals(_surplus(seen))]


def _missing_pods(seen: ObservedTraining) -> list[Write]:
    """Return the next batch of missing pods, the leader first."""
    job, kinds = seen.job, list(replicas_of(seen.job))
    existing = {pod.metadata.name for pod in seen.pods}
    number = batch_size(seen.pods, minimum_of(job), (spec.template for _, spec in kinds))
    order = ((*kinds[place], index) for place, index in creation_order([(0, spec.replicas) for _, spec in kinds]))
    missing = ((kind, spec, index) for kind, spec, index in order if pod_name(job, kind, index) not in existing)
    return [
        Create(PODS, pod_body(job, kind, spec, index, seen.scheduler_name))
        for kind, spec, index in islice(missing, number)
    ]


def _surplus(seen: ObservedTraining) -> list[Pod]:
    """Return the live pods that the spec does not include."""
    replicas = {kind.lower(): spec.replicas for kind, spec in replicas_of(seen.job)}
    return [
        pod
        for pod in seen.pods
        if pod.metadata.deletion_timestamp is None
        and not 0 <= index_of(pod.metadata.name) < replicas.get(type_of(pod), 0)
    ]


def _after_the_end(seen: ObservedTraining, status: PyTorchJobStatus, live: list[Pod]) -> ReconcileResult:
    """Return the writes that clean up as the policies require, and finally remove the job."""
    job, policy = seen.job, seen.job.spec.run_policy
    stopped = any(
        one.type == conditions.TrainingCondition.FAILED and one.reason in _STOPS for one in status.conditions or ()
    )
    to_delete = {
        "All": live,
        "Running": [pod for pod in live if pod.status.phase in ("Running", "Pending", "Unknown")],
    }.get("All" if stopped else policy.clean_pod_policy, [])
    status.replica_statuses = conditions.final_count(job, status, [pod for pod in live if pod not in to_delete])
    writes = [*_status_writes(seen, status), *removals(to_delete), *group_removal(seen)]
    if policy.ttl_seconds_after_finished is None:
        return ReconcileResult(writes)
    left = seconds(conditions.finished_at(status)) + policy.ttl_seconds_after_finished - seen.now
    if left > 0:
        return ReconcileResult(writes, left)
    meta = job.metadata
    return ReconcileResult([*writes, Remove.of(PYTORCH_JOBS, meta, "Background")])


def _status_writes(seen: ObservedTraining, status: PyTorchJobStatus) -> list[Write]:
    job, before = seen.job, seen.job.status
    if status == before:
        return []
    meta = job.metadata
    body = {"status": status}
    writes: list[Write] = [
        ApplyObject(PYTORCH_JOBS, meta.namespace, meta.name, body, "status", meta.resource_version, meta.uid, MANAGER)
    ]
    last, old = (one.conditions[-1] if one.conditions else PyTorchCondition() for one in (status, before))
    if (last.type, last.reason) != (old.type, old.reason):
        bad = (
            last.type in (conditions.TrainingCondition.FAILED, conditions.TrainingCondition.RESTARTING)
            or last.reason in conditions.OBSTACLES
        )
        kind = "Warning" if bad else "Normal"
        writes.append(EmitEvent(PYTORCH_JOBS, meta, kind, last.reason, last.message))
    return writes


def _time_left(seen: ObservedTraining, status: PyTorchJobStatus) -> float | None:
    deadline = seen.job.spec.run_policy.active_deadline_seconds
    return None if deadline is None else max(seconds(status.start_time) + deadline - seen.now, 0.0)
