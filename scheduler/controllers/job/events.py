"""Detect what happened to a Job, by comparing its status with the current pods.

Detection does not depend on the watch. A pod that was evicted while no controller ran is missing from the counts in the
status, so its policy is still carried out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...model.objects import Pod
from ...model.times import duration, seconds, timestamp
from ..runtime.objects import DelayedAction, Policy, TaskSpec
from ..runtime.pods import exit_code, restarts, version_of
from .state import Census, ObservedJob, is_live, pod_name, task_of, tasks_of

POD_FAILED, POD_EVICTED, POD_PENDING, POD_RUNNING = "PodFailed", "PodEvicted", "PodPending", "PodRunning"
TASK_FAILED, TASK_COMPLETED, UNKNOWN, JOB_UPDATED = "TaskFailed", "TaskCompleted", "Unknown", "JobUpdated"
ANY = "*"
EVENTS = frozenset(
    (ANY, POD_FAILED, POD_EVICTED, POD_PENDING, POD_RUNNING, TASK_FAILED, TASK_COMPLETED, UNKNOWN, JOB_UPDATED)
)
"""Events that a policy may name."""
ORDINARY = frozenset((POD_PENDING, POD_RUNNING, JOB_UPDATED))
"""Events of every healthy job. `*` does not include them; a policy has to name them."""
_SEEN_ONCE = frozenset((POD_EVICTED, TASK_COMPLETED, POD_RUNNING, JOB_UPDATED))
"""Events that only a comparison of the status with the present shows."""


@dataclass(frozen=True, slots=True)
class JobEvent:
    """One event; `task` and `pod` are set if it concerns one."""

    name: str
    task: str = ""
    pod: str = ""
    exit_code: int | None = None
    since: float | None = None
    """When the event began, in seconds since the epoch; None for now."""

    def __str__(self) -> str:
        about = self.pod or (f"task {self.task}" if self.task else "")
        return f"{self.name} ({about})" if about else self.name


@dataclass(frozen=True, slots=True)
class RequestedAction:
    """An action to carry out, and its cause."""

    action: str
    cause: str
    task: str = ""
    pod: str = ""


def detect_events(seen: ObservedJob, census: Census) -> Iterator[JobEvent]:
    """Yield the events since the status was written, the most severe first."""
    job, current, restarting = seen.job, seen.job.status.version, seen.job.status.restarting or ()
    live = [
        pod for pod in seen.pods if is_live(pod) and version_of(pod) == current and pod.metadata.uid not in restarting
    ]
    for pod in live:
        if pod.status.phase == "Failed":
            yield JobEvent(POD_FAILED, task_of(pod), pod.metadata.name, exit_code(pod))
    by_task: dict[str, list[Pod]] = {}
    for pod in live:
        by_task.setdefault(task_of(pod), []).append(pod)
    for task in tasks_of(job):
        yield from _of_task(task, seen, census, by_task.get(task.name, []))
    if seen.group is not None and seen.group.status.phase == "Unknown":
        yield JobEvent(UNKNOWN)
    if 0 < job.status.observed_generation != job.metadata.generation:
        yield JobEvent(JOB_UPDATED)
    for pod in live:
        if pod.status.phase == "Pending":
            created = seconds(pod.metadata.creation_timestamp)
            yield JobEvent(POD_PENDING, task_of(pod), pod.metadata.name, since=created)


def _of_task(task: TaskSpec, seen: ObservedJob, census: Census, live: list[Pod]) -> Iterator[JobEvent]:
    """Yield the events of one task. `live` are its pods of the current version."""
    if sum(restarts(pod) for pod in live if pod.status.phase in ("Running", "Pending")) > task.max_retry:
        yield JobEvent(TASK_FAILED, task.name)
    remembered = (seen.job.status.task_status_count or {}).get(task.name)
    phases = (remembered.phase or {}) if remembered else {}
    if sum(phases.values()) > census.of_task(task.name):
        existing = {pod.metadata.name for pod in seen.pods if is_live(pod)}
        wanted = (pod_name(seen.job, task.name, index) for index in range(task.replicas))
        missing = next((name for name in wanted if name not in existing), "")
        if missing:
            yield JobEvent(POD_EVICTED, task.name, missing)
    succeeded = census.of_task(task.name, "Succeeded")
    if task.replicas and succeeded >= task.replicas and phases.get("Succeeded", 0) < succeeded:
        yield JobEvent(TASK_COMPLETED, task.name)
    if census.of_task(task.name, "Running") > phases.get("Running", 0):
        yield JobEvent(POD_RUNNING, task.name)


def requested_action(seen: ObservedJob, census: Census) -> tuple[RequestedAction | None, list[DelayedAction]]:
    """Return the action to carry out now, and the actions that are delayed.

    A delayed action that is due precedes a new one and is no longer in the list. Beside an action, an event that only
    a comparison with the status shows is delayed too: the status that is written now no longer shows it.
    """
    waiting = [one for one in seen.job.status.delayed or () if not (one.until and _recovered(one, seen))]
    requested: RequestedAction | None = None
    due = next((one for one in waiting if not one.until or seconds(one.until) <= seen.now), None)
    if due is not None:
        waiting.remove(due)
        about = due.pod or due.task or "the job"
        cause = f"{due.event} of {about} outlasted its timeout" if due.until else f"{due.event} ({about})"
        requested = RequestedAction(due.action, cause, due.task, due.pod)
    known = {(one.event, one.task, one.pod) for one in (*waiting, *([due] if due is not None else ()))}
    for event in detect_events(seen, census):
        policy = policy_for(seen, event)
        if policy is None or not _has_target(policy.action, event):
            continue
        delay = duration(policy.timeout or "") or 0.0
        if not delay and requested is None:
            requested = RequestedAction(policy.action, str(event), event.task, event.pod)
        elif (event.name, event.task, event.pod) not in known and (delay or _is_lost(event, policy)):
            start = seen.now if event.since is None else event.since
            until = timestamp(start + delay) if delay else ""
            waiting.append(DelayedAction(event.name, policy.action, event.task, event.pod, until))
    return requested, waiting


def _is_lost(event: JobEvent, policy: Policy) -> bool:
    """Whether nothing shows the event later. The pod that replaces an evicted one has been restarted already."""
    return event.name in _SEEN_ONCE and (event.name, policy.action) != (POD_EVICTED, "RestartPod")


def policy_for(seen: ObservedJob, event: JobEvent) -> Policy | None:
    """Return the first policy for an event: the task's policies precede the Job's."""
    task = next((task for task in tasks_of(seen.job) if task.name == event.task), None)
    policies = [*((task.policies if task else None) or ()), *(seen.job.spec.policies or ())]
    return next((policy for policy in policies if _matches(policy, event)), None)


def _has_target(action: str, event: JobEvent) -> bool:
    """Return True if the event names the task or pod to restart; events of the whole job do not."""
    return bool({"RestartTask": event.task, "RestartPod": event.pod}.get(action, True))


def _matches(policy: Policy, event: JobEvent) -> bool:
    if policy.exit_code is not None:
        return event.exit_code is not None and policy.exit_code == event.exit_code
    events = [*(policy.events or ()), *([policy.event] if policy.event else ())]
    return event.name in events or (ANY in events and event.name not in ORDINARY)


def _recovered(waiting: DelayedAction, seen: ObservedJob) -> bool:
    """Return True if the cause of a delayed action has passed."""
    pod = next((pod for pod in seen.pods if pod.metadata.name == waiting.pod and is_live(pod)), None)
    match waiting.event:
        case "PodFailed" | "PodEvicted":
            return pod is not None and pod.status.phase in ("Running", "Succeeded")
        case "PodPending":
            return pod is None or pod.status.phase != "Pending"
        case "Unknown":
            return seen.group is None or seen.group.status.phase != "Unknown"
    return False


def next_due(waiting: list[DelayedAction], now: float) -> float | None:
    """Return the seconds until the first delayed action is due."""
    return min((max(seconds(one.until) - now, 0.0) if one.until else 0.0 for one in waiting), default=None)
