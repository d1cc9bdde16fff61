"""What has happened to a Job, found by comparing what its status remembers with what is there now.

The one rule: nothing depends on having watched. A pod that was evicted while no controller ran is missed by the count
that the status kept, so the policy for it is still carried out.
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
"""What a policy may name."""
ORDINARY = frozenset((POD_PENDING, POD_RUNNING, JOB_UPDATED))
"""Events of every healthy life; ``*`` does not mean them, they have to be named."""


@dataclass(frozen=True, slots=True)
class Happening:
    """One event; ``task`` and ``pod`` where it is about one."""

    event: str
    task: str = ""
    pod: str = ""
    exit_code: int | None = None
    since: float | None = None
    """When it began, if not now."""

    def __str__(self) -> str:
        about = self.pod or (f"task {self.task}" if self.task else "")
        return f"{self.event} ({about})" if about else self.event


@dataclass(frozen=True, slots=True)
class Order:
    """An action to carry out, and what it is for."""

    action: str
    cause: str
    task: str = ""
    pod: str = ""


def detect_events(seen: ObservedJob, census: Census) -> Iterator[Happening]:
    """What has happened since the status was written, the worst first."""
    job, current, as_good_as_gone = seen.job, seen.job.status.version, seen.job.status.restarting or ()
    live = [
        pod
        for pod in seen.pods
        if is_live(pod) and version_of(pod) == current and pod.metadata.uid not in as_good_as_gone
    ]
    for pod in live:
        if pod.status.phase == "Failed":
            yield Happening(POD_FAILED, task_of(pod), pod.metadata.name, exit_code(pod))
    by_task: dict[str, list[Pod]] = {}
    for pod in live:
        by_task.setdefault(task_of(pod), []).append(pod)
    for task in tasks_of(job):
        yield from _of_task(task, seen, census, by_task.get(task.name, []))
    if seen.group is not None and seen.group.status.phase == "Unknown":
        yield Happening(UNKNOWN)
    if 0 < job.status.observed_generation != job.metadata.generation:
        yield Happening(JOB_UPDATED)
    for pod in live:
        if pod.status.phase == "Pending":
            created = seconds(pod.metadata.creation_timestamp)
            yield Happening(POD_PENDING, task_of(pod), pod.metadata.name, since=created)


def _of_task(task: TaskSpec, seen: ObservedJob, census: Census, live: list[Pod]) -> Iterator[Happening]:
    """What happened to one task; ``live`` are its pods of the current version."""
    if sum(restarts(pod) for pod in live if pod.status.phase in ("Running", "Pending")) > task.max_retry:
        yield Happening(TASK_FAILED, task.name)
    remembered = (seen.job.status.task_status_count or {}).get(task.name)
    phases = (remembered.phase or {}) if remembered else {}
    if sum(phases.values()) > census.of_task(task.name):
        there = {pod.metadata.name for pod in seen.pods if is_live(pod)}
        wanted = (pod_name(seen.job, task.name, index) for index in range(task.replicas))
        missing = next((name for name in wanted if name not in there), "")
        if missing:
            yield Happening(POD_EVICTED, task.name, missing)
    succeeded = census.of_task(task.name, "Succeeded")
    if task.replicas and succeeded >= task.replicas and phases.get("Succeeded", 0) < succeeded:
        yield Happening(TASK_COMPLETED, task.name)
    if census.of_task(task.name, "Running") > phases.get("Running", 0):
        yield Happening(POD_RUNNING, task.name)


def orders(seen: ObservedJob, census: Census) -> tuple[Order | None, list[DelayedAction]]:
    """What the policies want done now, and what they want done later.

    The first order that is due wins: one that waited before one that is new.
    """
    waiting = [one for one in seen.job.status.delayed or () if not _recovered(one, seen)]
    for one in waiting:
        if seconds(one.until) <= seen.now:
            cause = f"{one.event} of {one.pod or one.task or 'the job'} lasted its timeout"
            return Order(one.action, cause, one.task, one.pod), []
    known = {(one.event, one.task, one.pod) for one in waiting}
    for happening in detect_events(seen, census):
        policy = policy_for(seen, happening)
        if policy is None or not _has_target(policy.action, happening):
            continue
        delay = duration(policy.timeout or "") or 0.0
        if not delay:
            return Order(policy.action, str(happening), happening.task, happening.pod), waiting
        if (happening.event, happening.task, happening.pod) not in known:
            start = seen.now if happening.since is None else happening.since
            until = timestamp(start + delay)
            waiting.append(DelayedAction(happening.event, policy.action, happening.task, happening.pod, until))
    return None, waiting


def policy_for(seen: ObservedJob, happening: Happening) -> Policy | None:
    """The first policy that names what happened: those of its task before those of the Job."""
    task = next((task for task in tasks_of(seen.job) if task.name == happening.task), None)
    policies = [*((task.policies if task else None) or ()), *(seen.job.spec.policies or ())]
    return next((policy for policy in policies if _matches(policy, happening)), None)


def _has_target(action: str, happening: Happening) -> bool:
    """Whether the event says which task or pod to restart; of the whole job's events none does."""
    return bool({"RestartTask": happening.task, "RestartPod": happening.pod}.get(action, True))


def _matches(policy: Policy, happening: Happening) -> bool:
    if policy.exit_code is not None:
        return happening.exit_code is not None and policy.exit_code == happening.exit_code
    events = [*(policy.events or ()), *([policy.event] if policy.event else ())]
    return happening.event in events or (ANY in events and happening.event not in ORDINARY)


def _recovered(waiting: DelayedAction, seen: ObservedJob) -> bool:
    """Whether what the action waits for has passed, so that it is not needed any more."""
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
    """In how many seconds the first waiting action is due."""
    return min((max(seconds(one.until) - now, 0.0) for one in waiting), default=None)
