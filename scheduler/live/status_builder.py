"""Build what users read after a cycle: statuses, conditions, events, metrics.

Only changes are processed: jobs that changed since the last cycle, and jobs with a new reason.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..framework.decisions import Bind, Decisions, Evict
from ..inputs import Overdue
from ..kube import NORMAL, PODGROUPS, PODS, QUEUES, WARNING, EventData, EventRecorder, KubeError
from ..kube.clock import wall_time
from ..model.job import Job, PodGroupPhase
from ..model.names import TOO_COSTLY
from ..model.task import Task, TaskStatus
from ..reasons import (
    NoGroup,
    PodsMissing,
    Refusal,
    StillTerminating,
    refusal_annotations,
    render_overdue,
    render_refusal,
    render_victim,
    victim_annotations,
)
from . import statuses
from .inbox import Bound, Trouble
from .metrics import Metrics, is_too_costly
from .series import CardSeries, JobSeries, QueueSeries
from .state_feed import Intake, StateFeed
from .status_writer import StatusWriter
from .turns import ITEMS_PER_TURN, Turns

SECONDS = 2.0
"""Seconds that a reason has to hold before it is reported."""


class Debounce:
    """The current reason of each key, and the end of its delay.

    The next event may make a reason obsolete: a PodGroup does not exist yet, pods are being created. So a job's reason
    for waiting is reported once it has held for `SECONDS`.
    """

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}
        self._until: dict[str, float] = {}
        """When the delay of each delayed reason ends."""

    def has_run_out(self, key: str, reason: str, now: float) -> bool:
        """Record a reason that holds now. Return True if its delay is over."""
        if self._reasons.get(key) != reason:
            self._reasons[key] = reason
            self._until[key] = now + SECONDS
        elif self._until.get(key, now) <= now:
            self._until.pop(key, None)
        return key not in self._until

    def forget(self, key: str) -> None:
        """Remove the reason of a key."""
        self._reasons.pop(key, None)
        self._until.pop(key, None)

    def due(self, now: float) -> list[str]:
        """Return the keys whose reasons are due to be reported."""
        return [key for key, until in self._until.items() if until <= now]

    def next(self) -> float | None:
        """Return when the next delay ends."""
        return min(self._until.values(), default=None)


class StatusBuilder:
    """Pass statuses to the status writer and events to the event recorder."""

    def __init__(self, feed: StateFeed, status_writer: StatusWriter, events: EventRecorder, metrics: Metrics) -> None:
        self._feed = feed
        self._status_writer = status_writer
        self._events = events
        self._metrics = metrics
        self._refusals: dict[str, Refusal] = {}
        self._too_costly: set[str] = set()
        """Jobs whose refusal in `_refusals` is that deciding about them is too costly."""
        self._reported: dict[str, str] = {}
        """Reason of the last event of each job."""
        self._queues: dict[str, statuses.Status] = {}
        self._troubles = 0
        self._debounce = Debounce()
        self._turns = Turns(ITEMS_PER_TURN)
        self.again_at: float | None = None
        """When a delayed reason is to be reported although nothing changes, in seconds since the epoch."""
        self._job_series = JobSeries(self._has_group, metrics.started)
        self._queue_series = QueueSeries(lambda: feed.cluster.queues, self._job_series.phases)
        self._card_series = CardSeries(lambda: feed.cluster.nodes.by_name)
        for reflector in feed.reflectors:
            reflector.add_handler(events.on_object)
        metrics.show(self._job_series, self._queue_series, self._card_series)

    async def publish(self, decisions: Decisions, now: float, *, only_urgent: bool = False) -> None:
        """Queue the statuses that follow from a cycle.

        The state must not change until this returns. With `only_urgent`, binds are in flight and leave no time for all
        statuses: only statuses for which other controllers wait are queued, and a later call queues the remainder.
        """
        if self._troubles != len(self._feed.troubles):  # an object is valid again, or deleted
            self._count_troubles()
        touched, refusals = set(self._feed.touched), decisions.refusals
        touched.update(decisions.phases)
        changed = self._changed(refusals)
        touched.update(changed)
        touched.update(self._debounce.due(now))
        for bind in decisions.binds:
            self._status_writer.forget(bind.uid)  # a pending reason for waiting must not overwrite the bind's condition
        if only_urgent:
            touched = {key for key, phase in decisions.phases.items() if phase == PodGroupPhase.INQUEUE}
        else:
            self._refusals = refusals
            self._count_too_costly(changed)
        self._feed.touched -= touched
        for key in sorted(touched):
            await self._publish_job(key, decisions.phases.get(key, ""), refusals.get(key), now)
            await self._turns.spent()
        for nomination in decisions.nominations:
            task = self._feed.cluster.tasks.get(nomination.task)
            if task is not None and task.uid == nomination.uid:
                self._publish_pod(task, "", nomination.node, now)
        if not only_urgent:
            self._publish_queues(decisions)
            self._job_series.forget_all_but(self._feed.cluster.jobs)
        self.again_at = None if only_urgent else self._debounce.next()

    def _changed(self, refusals: dict[str, Refusal]) -> set[str]:
        """Return the jobs whose refusal is new, different or gone. Most refusals are the same object as before."""
        before = self._refusals
        changed = {key for key, refusal in refusals.items() if before.get(key) is not refusal}
        return {key for key in changed if before.get(key) != refusals[key]} | (before.keys() - refusals.keys())

    def _count_too_costly(self, changed: set[str]) -> None:
        self._too_costly -= changed
        self._too_costly.update(key for key in changed if (why := self._refusals.get(key)) and is_too_costly(why))
        self._metrics.too_costly(len(self._too_costly))

    def _has_group(self, key: str) -> bool:
        job = self._feed.cluster.jobs.get(key)
        return job is not None and job.group is not None

    async def _publish_job(self, key: str, phase: str, refusal: Refusal | None, now: float) -> None:
        """Publish the status of a job's PodGroup and, if the job waits, of its pods."""
        job = self._feed.cluster.jobs.get(key)
        message = render_refusal(refusal) if refusal is not None else ""
        if job is None or refusal is None or not message:
            self._reported.pop(key, None)
            self._debounce.forget(key)
        if job is None:
            return
        is_too_early = refusal is not None and self._is_too_early(key, refusal, message, now)
        if job.group is not None:
            self._job_series.note(job, phase or job.phase, waits=bool(message))
            shown = statuses.shown_reason(job.group) if is_too_early else message
            is_costly = refusal is not None and is_too_costly(refusal)
            reason = TOO_COSTLY if is_costly else statuses.NOT_ENOUGH
            self._publish_group(job, statuses.of_podgroup(job, phase or job.phase, shown, now, reason))
        if refusal is not None and message and not is_too_early:
            await self._publish_refusal(job, refusal, message, now)

    def _is_too_early(self, key: str, refusal: Refusal, message: str, now: float) -> bool:
        """Return True if the next event may resolve a job's reason for waiting, and the reason is still new."""
        if message and all(isinstance(why, PodsMissing | NoGroup) for why in refusal.items):
            return not self._debounce.has_run_out(key, message, now)
        self._debounce.forget(key)
        return False

    def _publish_group(self, job: Job, status: statuses.Status) -> None:
        if job.group is None or not statuses.differs(status, job.group):
            return
        meta = job.group.metadata
        # a controller creates the pods once the phase is Inqueue
        wanted_now = status["phase"] == PodGroupPhase.INQUEUE and not job.tasks
        self._status_writer.apply(PODGROUPS, meta.namespace, meta.name, meta.uid, status, at_once=wanted_now)

    async def _publish_refusal(self, job: Job, refusal: Refusal, message: str, now: float) -> None:
        """Publish why a job waits, in the conditions of its pods and in events."""
        key = job.key
        # the API server itself sets the condition of a gated pod
        pending = [task for task in job.by_status.get(TaskStatus.PENDING, {}).values() if not task.gated]
        for task in pending:
            self._publish_pod(task, message, None, now)
            await self._turns.spent()
        if self._reported.get(key) != message:
            self._reported[key] = message
            data = EventData(annotations=refusal_annotations(refusal))
            if job.group is not None:
                self._events.event(PODGROUPS, job.group.metadata, WARNING, statuses.UNSCHEDULABLE, message, data=data)
            for task in pending:
                own = data if job.group is None else EventData()
                self._events.event(PODS, task.pod.metadata, WARNING, "FailedScheduling", message, data=own)
                await self._turns.spent()

    def _publish_pod(self, task: Task, message: str, nominated: str | None, now: float) -> None:
        if change := statuses.of_pod(task, message, nominated, now):
            self._status_writer.merge(PODS, task.namespace, task.name, task.uid, change)

    def _publish_queues(self, decisions: Decisions) -> None:
        self._queue_series.numbers = decisions.queues
        self._card_series.is_shown = True
        for name, numbers in decisions.queues.items():
            queue = self._feed.cluster.queues.get(name)
            status = statuses.of_queue(numbers)
            if queue is None or not queue.object.metadata.uid or self._queues.get(name) == status:
                continue  # a presumed queue (kube/scope.py) has no uid
            self._queues[name] = status
            self._status_writer.apply(QUEUES, "", name, queue.object.metadata.uid, status)
        for gone in self._queues.keys() - decisions.queues.keys():
            del self._queues[gone]

    # ---------------------------------------------------------------------------------------------------------- events

    def evicting(self, eviction: Evict) -> None:
        """Publish events on the victim and its PodGroup that name the preempting job."""
        task = self._feed.cluster.tasks.get(eviction.task)
        if task is None:
            return
        message = render_victim(eviction.reason)
        self._events.event(PODS, task.pod.metadata, WARNING, "Evict", message, data=self._data_of(eviction))
        job = self._feed.cluster.jobs.get(eviction.job)
        if job is not None and job.group is not None:
            self._events.event(PODGROUPS, job.group.metadata, NORMAL, "Evict", f"pod {task.name} {message}")

    def _data_of(self, eviction: Evict) -> EventData:
        """Return an eviction's reason in a form for programs: the preemptor, and the votes behind the decision."""
        reason = eviction.reason
        namespace, _, name = reason.preemptor_task.partition("/")
        related = {"apiVersion": PODS.api_version, "kind": PODS.kind, "namespace": namespace, "name": name}
        if (preemptor := self._feed.cluster.tasks.get(reason.preemptor_task)) is not None:
            related["uid"] = preemptor.uid
        return EventData(reason.action, related, victim_annotations(reason))

    def report(self, intake: Intake) -> None:
        """Report the side effects of inputs: objects that cannot be read, overdue victims, outcomes of writes."""
        for trouble in intake.troubles:
            self._report_trouble(trouble)
        for overdue in intake.overdue:
            self._report_overdue(overdue)
        for outcome in intake.outcomes:
            if isinstance(outcome, Bound):
                self._report_bound(outcome.decision, outcome.at)
            else:
                self._report_refused(outcome.decision, outcome.error)

    def _report_overdue(self, overdue: Overdue) -> None:
        """Warn about a victim that does not terminate, on the pod and on its PodGroup."""
        task = self._feed.cluster.tasks.get(overdue.key)
        if task is None or task.uid != overdue.uid or not task.is_disruption_target:
            return
        message = render_overdue(StillTerminating(task.node, overdue.seconds))
        self._events.event(PODS, task.pod.metadata, WARNING, "EvictionOverdue", message)
        job = self._feed.cluster.jobs.get(task.job)
        if job is not None and job.group is not None:
            self._events.event(PODGROUPS, job.group.metadata, WARNING, "EvictionOverdue", f"pod {task.name} {message}")

    def _report_bound(self, bind: Bind, at: float) -> None:
        task = self._feed.cluster.tasks.get(bind.task)
        if task is not None and task.uid == bind.uid:
            self._metrics.waited(at - task.creation)
            if (job := self._feed.cluster.jobs.get(task.job)) is not None:
                self._job_series.bound(job, at)
            message = f"Successfully assigned {bind.task} to {bind.node}"
            self._events.event(PODS, task.pod.metadata, NORMAL, "Scheduled", message)

    def _report_refused(self, decision: Bind | Evict, error: KubeError) -> None:
        task = self._feed.cluster.tasks.get(decision.task)
        if task is not None and task.uid == decision.uid:
            reason = "FailedBinding" if isinstance(decision, Bind) else "FailedEviction"
            self._events.event(PODS, task.pod.metadata, WARNING, reason, str(error))

    def _report_trouble(self, trouble: Trouble) -> None:
        self._count_troubles()
        meta: Any = trouble.metadata
        if not meta.key:
            return
        effect = "used without this part" if trouble.is_partial else "ignored, because it cannot be read"
        message = f"{effect}: {trouble.error}"
        self._events.event(trouble.resource, meta, WARNING, "Malformed", message)
        if trouble.resource == PODGROUPS:
            status = {"phase": "Pending", "conditions": [statuses.malformed(message, wall_time())]}
            self._status_writer.apply(PODGROUPS, meta.namespace, meta.name, meta.uid, status)
        elif trouble.resource == QUEUES:
            status = {"conditions": [statuses.malformed(message, wall_time())]}
            self._status_writer.apply(QUEUES, "", meta.name, meta.uid, status)

    def _count_troubles(self) -> None:
        self._troubles = len(self._feed.troubles)
        self._metrics.malformed(Counter(kind for kind, _ in self._feed.troubles))
