"""What users get to read of a cycle: statuses, conditions, events, metrics.

The one rule: only what changed is looked at: jobs that something happened to since the last cycle, and those whose
reason is another.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from ..framework.decisions import Bind, Decisions, Evict
from ..kube import NORMAL, PODGROUPS, PODS, QUEUES, WARNING, EventData, EventRecorder, KubeError
from ..model.job import Job, PodGroupPhase
from ..model.objects import PodGroup
from ..model.task import Task, TaskStatus
from ..reasons import NoGroup, PodsMissing, Refusal, render_refusal, render_victim, victim_annotations
from . import statuses
from .debounce import Debounce
from .inbox import Bound, Trouble
from .job_series import JobSeries
from .metrics import Metrics
from .queue_series import QueueSeries
from .state_feed import Intake, StateFeed
from .status_writer import StatusWriter
from .turns import SLICE, Turns


class StatusBuilder:
    """Turns decisions into wishes for the publisher and events for the recorder."""

    def __init__(self, feed: StateFeed, status_writer: StatusWriter, events: EventRecorder, metrics: Metrics) -> None:
        self._feed = feed
        self._publisher = status_writer
        self._events = events
        self._metrics = metrics
        self._refusals: dict[str, Refusal] = {}
        self._told: dict[str, str] = {}
        """Job → the reason that its last event gave."""
        self._queues: dict[str, statuses.Status] = {}
        self._troubles = 0
        self._patience = Debounce()
        self._turns = Turns(SLICE)
        self.again_at: float | None = None
        """When something is to be told though nothing will have happened, in seconds since the epoch."""
        self._job_series = JobSeries(self._is_there, metrics.started)
        self._queue_series = QueueSeries(lambda: feed.cluster.queues, self._job_series.phases)
        metrics.show(self._job_series, self._queue_series)

    async def publish(self, decisions: Decisions, now: float, *, only_urgent: bool = False) -> None:
        """Wish for the statuses that follow from a cycle. The state must stand still until it returns.

        ``only_urgent``: there is no time for statuses now (binds are on their way); those that others wait for are
        wished, the others remembered.
        """
        if self._troubles != len(self._feed.troubles):  # one is good again, or gone
            self._count_troubles()
        touched, refusals = set(self._feed.touched), decisions.refusals
        touched.update(decisions.phases)
        touched.update(key for key, refusal in refusals.items() if self._refusals.get(key) != refusal)
        touched.update(self._refusals.keys() - refusals.keys())
        touched.update(self._patience.due(now))
        for bind in decisions.binds:
            self._publisher.forget(bind.uid)  # why it waited must not be written over what the bind says
        if only_urgent:
            touched = {key for key, phase in decisions.phases.items() if phase == PodGroupPhase.INQUEUE}
        else:
            self._refusals = refusals
        self._feed.touched -= touched
        for key in sorted(touched):
            await self._job(key, decisions.phases.get(key, ""), refusals.get(key), now)
            await self._turns.spent()
        for nomination in decisions.nominations:
            task = self._feed.cluster.tasks.get(nomination.task)
            if task is not None and task.uid == nomination.uid:
                self._pod(task, "", nomination.node, now)
        if not only_urgent:
            self._publish_queues(decisions)
            self._job_series.forget_all_but(self._feed.cluster.jobs)
        self.again_at = None if only_urgent else self._patience.next()

    def _is_there(self, key: str) -> bool:
        job = self._feed.cluster.jobs.get(key)
        return job is not None and job.group is not None

    async def _job(self, key: str, phase: str, refusal: Refusal | None, now: float) -> None:
        """Tell what became of a job: its PodGroup and, where it waits, its pods."""
        job = self._feed.cluster.jobs.get(key)
        message = render_refusal(refusal) if refusal is not None else ""
        if job is None or refusal is None or not message:
            self._told.pop(key, None)
            self._patience.forget(key)
        if job is None:
            return
        is_too_early = refusal is not None and self._is_too_early(key, refusal, message, now)
        if job.group is not None:
            self._job_series.note(job, phase or job.phase, waits=bool(message))
            said = statuses.said(job.group) if is_too_early else message
            self._group(job, job.group, phase or job.phase, said, now)
        if message and not is_too_early:
            await self._waiting(job, message, now)

    def _is_too_early(self, key: str, refusal: Refusal, message: str, now: float) -> bool:
        """Whether a job's reason is one that the next event may make void, and has not stood for long."""
        if message and all(isinstance(why, PodsMissing | NoGroup) for why in refusal.items):
            return not self._patience.has_run_out(key, message, now)
        self._patience.forget(key)
        return False

    def _group(self, job: Job, group: PodGroup, phase: str, message: str, now: float) -> None:
        status = statuses.of_podgroup(job, phase, message, now)
        meta = group.metadata
        if statuses.differs(status, group):
            wanted_now = (
                phase == PodGroupPhase.INQUEUE and not job.tasks
            )  # a controller waits for it to create the pods
            self._publisher.apply(PODGROUPS, meta.namespace, meta.name, meta.uid, status, at_once=wanted_now)

    async def _waiting(self, job: Job, message: str, now: float) -> None:
        """Tell the pods of a job why they wait, and whoever reads events."""
        key = job.key
        # Of a gated pod the API server says itself why it waits.
        pending = [task for task in job.by_status.get(TaskStatus.PENDING, {}).values() if not task.gated]
        for task in pending:
            self._pod(task, message, None, now)
            await self._turns.spent()
        if self._told.get(key) != message:
            self._told[key] = message
            if job.group is not None:
                self._events.event(PODGROUPS, job.group.metadata, WARNING, statuses.UNSCHEDULABLE, message)
            for task in pending:
                self._events.event(PODS, task.pod.metadata, WARNING, "FailedScheduling", message)
                await self._turns.spent()

    def _pod(self, task: Task, message: str, nominated: str | None, now: float) -> None:
        if change := statuses.of_pod(task, message, nominated, now):
            self._publisher.merge(PODS, task.namespace, task.name, task.uid, change)

    def _publish_queues(self, decisions: Decisions) -> None:
        self._queue_series.numbers = decisions.queues
        for name, numbers in decisions.queues.items():
            queue = self._feed.cluster.queues.get(name)
            status = statuses.of_queue(numbers)
            if queue is None or not queue.object.metadata.uid or self._queues.get(name) == status:
                continue  # without a uid: presumed (kube/scope.py)
            self._queues[name] = status
            self._publisher.apply(QUEUES, "", name, queue.object.metadata.uid, status)
        for gone in self._queues.keys() - decisions.queues.keys():
            del self._queues[gone]

    # ---------------------------------------------------------------------------------------------------------- events

    def evicting(self, eviction: Evict) -> None:
        """An eviction was decided: tell the victim, and its PodGroup, who takes its place."""
        task = self._feed.cluster.tasks.get(eviction.task)
        if task is None:
            return
        message = render_victim(eviction.reason)
        self._events.event(PODS, task.pod.metadata, WARNING, "Evict", message, data=self._data_of(eviction))
        job = self._feed.cluster.jobs.get(eviction.job)
        if job is not None and job.group is not None:
            self._events.event(PODGROUPS, job.group.metadata, NORMAL, "Evict", f"pod {task.name} {message}")

    def _data_of(self, eviction: Evict) -> EventData:
        """An eviction's reason for programs: the pod that it makes room for, and how that was decided."""
        reason = eviction.reason
        namespace, _, name = reason.preemptor_task.partition("/")
        related = {"apiVersion": PODS.api_version, "kind": PODS.kind, "namespace": namespace, "name": name}
        if (preemptor := self._feed.cluster.tasks.get(reason.preemptor_task)) is not None:
            related["uid"] = preemptor.uid
        return EventData(reason.action, related, victim_annotations(reason))

    def tell(self, intake: Intake) -> None:
        """Tell of what the state took in: objects that cannot be read, and what became of writes."""
        for trouble in intake.troubles:
            self._trouble(trouble)
        for outcome in intake.outcomes:
            if isinstance(outcome, Bound):
                self._bound(outcome.decision, outcome.at)
            else:
                self._refused(outcome.decision, outcome.error)

    def _bound(self, bind: Bind, at: float) -> None:
        task = self._feed.cluster.tasks.get(bind.task)
        if task is not None and task.uid == bind.uid:
            self._metrics.waited(at - task.creation)
            if (job := self._feed.cluster.jobs.get(task.job)) is not None:
                self._job_series.bound(job, at)
            message = f"Successfully assigned {bind.task} to {bind.node}"
            self._events.event(PODS, task.pod.metadata, NORMAL, "Scheduled", message)

    def _refused(self, decision: Bind | Evict, error: KubeError) -> None:
        task = self._feed.cluster.tasks.get(decision.task)
        if task is not None and task.uid == decision.uid:
            reason = "FailedBinding" if isinstance(decision, Bind) else "FailedEviction"
            self._events.event(PODS, task.pod.metadata, WARNING, reason, str(error))

    def _trouble(self, trouble: Trouble) -> None:
        self._count_troubles()
        meta: Any = trouble.metadata
        if not meta.key:
            return
        message = f"cannot be read and is left out: {trouble.error}"
        self._events.event(trouble.resource, meta, WARNING, "Malformed", message)
        if trouble.resource is PODGROUPS:
            status = {"phase": "Pending", "conditions": [statuses.malformed(message, time.time())]}
            self._publisher.apply(PODGROUPS, meta.namespace, meta.name, meta.uid, status)
        elif trouble.resource is QUEUES:
            status = {"conditions": [statuses.malformed(message, time.time())]}
            self._publisher.apply(QUEUES, "", meta.name, meta.uid, status)

    def _count_troubles(self) -> None:
        self._troubles = len(self._feed.troubles)
        self._metrics.malformed(Counter(kind for kind, _ in self._feed.troubles))
