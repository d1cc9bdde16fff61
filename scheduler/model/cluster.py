"""The state of the cluster, kept up to date event by event.

The one rule: this is the only place that turns API objects into tasks, jobs, queues and nodes, and it gives the same
state whatever the order in which the objects came. An object that makes no sense is refused with an ``ObjectError``
and leaves the state as it was. A cycle works on this state and leaves it as it found it; what the shell has written
and the API has not yet confirmed is held here as an assumption.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from . import objects, resources
from .auxiliary import Others
from .backlog import CLAIMS, FREED, GROUPS, PLACED, RUNNING
from .equality import runs_ahead, same_group, same_node, same_queue, same_task
from .errors import names_the_object
from .job import Job, PodGroupPhase
from .nodes import Nodes
from .queue import Queue
from .sums import Sums
from .task import COMPLETED, HOLDING, Task, TaskStatus, job_key_of
from .times import seconds

ON_ITS_WAY = {
    ("", PodGroupPhase.PENDING),
    ("", PodGroupPhase.INQUEUE),
    (PodGroupPhase.PENDING, PodGroupPhase.INQUEUE),
    (PodGroupPhase.INQUEUE, PodGroupPhase.RUNNING),
}
"""Changes of a PodGroup's phase as its job goes on: each follows from a decision and gives no other job anything."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a pod stands, as far as others depend on it."""

    job: str
    status: TaskStatus
    node: str
    nominated: str

    @classmethod
    def of(cls, task: Task) -> _Place:
        return cls(task.job, task.status, task.node, task.nominated)

    @property
    def holds(self) -> bool:
        return bool(self.node) and not self.is_done

    @property
    def is_done(self) -> bool:
        return bool(self.status & COMPLETED)

    def goes_on(self, now: _Place) -> bool:
        """Whether what was held is held still."""
        holds = now.holds and self.node == now.node and (not self.status & HOLDING or now.status & HOLDING)
        return self.holds and bool(holds)


class Cluster(Others):
    """Nodes, tasks, jobs, queues and the smaller objects that placement looks at.

    ``scheduler_names``: whose pods are ours to place (others only take room); empty means everyone's.
    ``node_selector``: labels that a node must carry to belong to this scheduler's world; empty means every node.
    ``nominated`` are the keys of tasks that have a nominated node. ``version`` grows with every change that could
    alter a decision.
    """

    def __init__(self, scheduler_names: Iterable[str] = (), node_selector: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.scheduler_names = frozenset(scheduler_names)
        self.node_selector = dict(node_selector or {})
        self.nodes = Nodes()
        self.tasks: dict[str, Task] = {}
        self.nominated: set[str] = set()
        self.jobs: dict[str, Job] = {}
        self._are_in_order = True
        self._sums = Sums()
        self.queues: dict[str, Queue] = {}
        self.priority_classes: dict[str, objects.PriorityClass] = {}
        self.last_cycle: Any = None
        """Where :mod:`scheduler.decide` keeps what it decided last on this state."""
        self._on_node: dict[str, dict[str, Task]] = {}

    # ---------------------------------------------------------------------------------------------------------- nodes

    @names_the_object
    def set_node(self, node: objects.Node) -> None:
        """A node as it is now; one outside of the scheduler's world is forgotten."""
        labels = node.metadata.labels or {}
        if any(labels.get(key) != value for key, value in self.node_selector.items()):
            self.delete_node(node.metadata.name)
            return
        known = self.nodes.by_name.get(node.metadata.name)
        if known is not None and same_node(known.object, node):
            known.object = node
            return
        info = self.nodes.put(node)
        if known is None:
            for task in self._on_node.get(info.name, {}).values():
                self.nodes.place(info, task, task.status)
        self._changed()

    def delete_node(self, name: str) -> None:
        if name in self.nodes.by_name:
            self.nodes.drop(name)
            self._changed()

    # ----------------------------------------------------------------------------------------------------------- pods

    @names_the_object
    def set_pod(self, pod: objects.Pod) -> None:
        """A pod as it is now. An assumption about the same pod (same uid) stands until the API shows or refuses it."""
        old = self.tasks.get(pod.metadata.key)
        again = None if old is None else old.seen_again(pod)
        task = again or Task(pod, self._job_of(pod))
        if old is not None:
            if old.uid == task.uid:
                self._keep_assumptions(old, task)
                if same_task(old, task):
                    old.pod = pod
                    return
            if again is not None and old.node == again.node and old.status & HOLDING and again.status & HOLDING:
                self._step(old, again)
                return
            self._forget(old)
        self._admit(task)
        self._moved(task, None if old is None else self._place_of(old), is_other=old is not None and again is None)

    def _step(self, old: Task, new: Task) -> None:
        """The pod goes on where it is, from its bind to running: what is taken stays as it is."""
        before = self._place_of(old)
        if old.job:
            self.jobs[old.job].move(old, new.status)
            self._sums.changed(old.job)
        old.pod, old.status, old.started, old.assumed = new.pod, new.status, new.started, new.assumed
        old.nominated, old.is_disruption_target = new.nominated, new.is_disruption_target
        (self.nominated.add if new.nominated else self.nominated.discard)(old.key)
        self._moved(old, before)

    @staticmethod
    def _keep_assumptions(old: Task, task: Task) -> None:
        if old.assumed and runs_ahead(old, task):
            task.status, task.node, task.assumed = old.status, old.node, True
        if task.nominated == old.pod.status.nominated_node_name:
            task.nominated = old.nominated  # what we assumed, if anything, the API has not spoken of yet

    def delete_pod(self, key: str, uid: str = "") -> None:
        """A pod is gone; with ``uid``, only if it is that one."""
        task = self.tasks.get(key)
        if task is not None and (not uid or task.uid == uid):
            self._forget(task)
            self._moved(task, self._place_of(task), is_gone=True)

    def _place_of(self, task: Task) -> _Place | None:
        """For :meth:`_moved`; None where nobody waits to hear of it, as is usual and several times a pod."""
        return _Place.of(task) if self.backlog.listens else None

    def _moved(self, task: Task, before: _Place | None, *, is_gone: bool = False, is_other: bool = False) -> None:
        """A pod came, went, or changed (``is_other``: in more than where it stands); say whom that may help."""
        self.version += 1
        backlog = self.backlog
        if not backlog.listens:
            return
        now = None if is_gone else _Place.of(task)
        for job in {task.job, "" if before is None else before.job}:
            backlog.tell_job(job)
        if task.key in backlog.claims:
            backlog.tell(CLAIMS)
        if before is not None and (is_other or (now != before and (now is None or not before.goes_on(now)))):
            self._tell_freed(before, now)
        if now is not None and now.holds and (is_other or before is None or before.node != now.node):
            backlog.tell(PLACED)
            if (job_of := self.jobs.get(task.job)) is not None:
                backlog.tell(f"{PLACED}:{job_of.queue}")
        if now is not None and now.status is TaskStatus.RUNNING:
            backlog.tell(RUNNING)

    def _tell_freed(self, before: _Place, now: _Place | None) -> None:
        """A pod does not hold any more, or not all of, what it held or asked for."""
        self.backlog.tell_room(before.node)
        self.backlog.tell_room(before.nominated)
        if before.holds or now is None or now.is_done:
            self.backlog.tell(FREED)

    def _job_of(self, pod: objects.Pod) -> str:
        ours = not self.scheduler_names or pod.spec.scheduler_name in self.scheduler_names
        return job_key_of(pod) if ours else ""

    def _admit(self, task: Task) -> None:
        self.tasks[task.key] = task
        self.nodes.intern(task.init_request)
        if task.nominated:
            self.nominated.add(task.key)
        if task.job:
            self._job(task.job).add(task)
            self._sums.changed(task.job)
        if task.node:
            self._on_node.setdefault(task.node, {})[task.key] = task
            if (info := self.nodes.by_name.get(task.node)) is not None:
                self.nodes.place(info, task, task.status)

    def _forget(self, task: Task) -> None:
        del self.tasks[task.key]
        self.nominated.discard(task.key)
        if task.node:
            del self._on_node[task.node][task.key]
            if (info := self.nodes.by_name.get(task.node)) is not None:
                self.nodes.lift(info, task, task.status)
        if task.job:
            job = self.jobs[task.job]
            job.remove(task)
            self._sums.changed(task.job)
            if job.group is None and not job.tasks:
                self._end(job)

    # ---------------------------------------------------------------------------------------------------- assumptions

    def assume_bound(self, key: str, uid: str, node: str) -> None:
        """A bind is in flight: the task occupies its node from now on."""
        self._assume(key, uid, TaskStatus.BINDING, node)

    def assume_evicted(self, key: str, uid: str) -> None:
        """An eviction is in flight: the task is Releasing from now on."""
        task = self.tasks.get(key)
        if task is not None:
            self._assume(key, uid, TaskStatus.RELEASING, task.node)

    def assume_nominated(self, key: str, uid: str, node: str) -> None:
        """A nomination is in flight: the room on ``node`` is kept for the task from now on (an empty node gives it
        up).
        """
        task = self.tasks.get(key)
        if task is not None and task.uid == uid and task.nominated != node:
            before = self._place_of(task)
            task.nominated = node
            (self.nominated.add if node else self.nominated.discard)(task.key)
            self._moved(task, before)

    def revert(self, key: str, uid: str) -> None:
        """The API refused: believe the pod again."""
        task = self.tasks.get(key)
        if task is not None and task.uid == uid:
            self._forget(task)
            again = Task(task.pod, task.job)
            self._admit(again)
            self._moved(again, self._place_of(task))

    def _assume(self, key: str, uid: str, status: TaskStatus, node: str) -> None:
        task = self.tasks.get(key)
        if task is None or task.uid != uid:
            return
        before = self._place_of(task)
        self._forget(task)
        task.status, task.node, task.assumed = status, node, True
        self._admit(task)
        self._moved(task, before)

    # ------------------------------------------------------------------------------------------- groups, queues, rest

    def _job(self, key: str) -> Job:
        job = self.jobs.get(key)
        if job is None:
            job = self.jobs[key] = Job(key)
            self._are_in_order = False
        return job

    def jobs_in_order(self) -> dict[str, Job]:
        """The jobs by key, in the order of the keys; sorted only after one has come."""
        if not self._are_in_order:
            self.jobs = dict(sorted(self.jobs.items()))
            self._are_in_order = True
        return self.jobs

    def sums(self) -> Sums:
        """What queues' jobs hold and ask for now. To be asked between cycles only: one under way moves tasks."""
        self._sums.refresh(self.jobs)
        return self._sums

    @names_the_object
    def set_podgroup(self, group: objects.PodGroup) -> None:
        known = self.jobs.get(group.metadata.key)
        if known is not None and known.group is not None and same_group(known.group, group):
            known.group = group
            return
        minimum = None if group.spec.min_resources is None else resources.parse(group.spec.min_resources)
        created = seconds(group.metadata.creation_timestamp)
        job = self._job(group.metadata.key)
        before, phase = job.group, job.phase
        job.describe(group, self.priority_of(group.spec.priority_class_name), minimum, created)
        goes_on = before is not None and before.spec == group.spec and (phase, job.phase) in ON_ITS_WAY
        self._regrouped(job.key, helps=before is not None and not goes_on)

    def _regrouped(self, key: str, *, helps: bool = True) -> None:
        """A PodGroup came, went or changed; ``helps``: it may ask for less than before, or be served later."""
        self.version += 1
        self._sums.changed(key)
        self.backlog.tell_job(key)
        if helps:
            self.backlog.tell(GROUPS)
            self.backlog.tell(CLAIMS)

    def _end(self, job: Job) -> None:
        del self.jobs[job.key]
        self.backlog.drop(job.key)

    def delete_podgroup(self, key: str) -> None:
        job = self.jobs.get(key)
        if job is not None and job.group is not None:
            job.group = None
            self._regrouped(key)
            self.backlog.tell(FREED)
            if not job.tasks:
                self._end(job)

    @names_the_object
    def set_queue(self, queue: objects.Queue) -> None:
        known = self.queues.get(queue.metadata.name)
        self.queues[queue.metadata.name] = Queue(queue)
        if known is None or not same_queue(known.object, queue):
            self._changed()

    def delete_queue(self, name: str) -> None:
        if self.queues.pop(name, None) is not None:
            self._changed()

    def priority_of(self, class_name: str) -> int:
        """The value of a priority class; of an unnamed or unknown one, the global default's, or 0."""
        if (named := self.priority_classes.get(class_name)) is not None:
            return named.value
        return next((c.value for _, c in sorted(self.priority_classes.items()) if c.global_default), 0)

    def set_priority_class(self, cls: objects.PriorityClass) -> None:
        known = self.priority_classes.get(cls.metadata.name)
        self.priority_classes[cls.metadata.name] = cls
        if known is None or (known.value, known.global_default) != (cls.value, cls.global_default):
            self._rank_jobs()

    def delete_priority_class(self, name: str) -> None:
        if self.priority_classes.pop(name, None) is not None:
            self._rank_jobs()

    def _rank_jobs(self) -> None:
        for job in self.jobs.values():
            if job.group is not None:
                job.priority = self.priority_of(job.group.spec.priority_class_name)
        self._changed()
