"""The state of the cluster, updated event by event.

The one rule: only this module converts API objects into tasks, jobs, queues and nodes, and the resulting state does not
depend on the order of the objects. An invalid object is rejected with an `ObjectError` and leaves the state unchanged.
A cycle works on this state and restores it at its end. Writes that the API has not confirmed yet are assumptions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from . import objects, resources
from .auxiliary import AuxiliaryObjects, priority_of, runs_ahead, same_group, same_node, same_queue, same_task
from .card_notation import smallest_card
from .changes import CLAIMS, FREED, GROUPS, REQUESTS, WORK, PodState, check_size, report_pod, reserves_as_before
from .errors import names_the_object
from .job import Job
from .names import TOO_COSTLY
from .nodes import FEW_SHAPES, Nodes
from .queue import Queue
from .sums import Sums
from .task import HOLDING, NamedResources, Task, TaskStatus, job_key_of
from .times import seconds


class Cluster(AuxiliaryObjects):
    """Nodes, tasks, jobs, queues and the auxiliary objects for placement.

    Attributes:
        scheduler_names: Schedulers whose pods we place; other pods only occupy capacity. Empty means all pods.
        node_selector: Labels of the nodes that belong to this scheduler. Empty means every node.
        nominated: Keys of tasks with a nominated node.
        version: Grows with every change that could alter a decision.
    """

    def __init__(self, scheduler_names: Iterable[str] = (), node_selector: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.scheduler_names = frozenset(scheduler_names)
        self.node_selector = dict(node_selector or {})
        self.nodes = Nodes()
        self.tasks: dict[str, Task] = {}
        self.nominated: set[str] = set()
        self.jobs: dict[str, Job] = {}
        self._sums = Sums()
        self.queues: dict[str, Queue] = {}
        self.priority_classes: dict[str, objects.PriorityClass] = {}
        self._on_node: dict[str, dict[str, Task]] = {}
        self._known = NamedResources()
        self.costly: set[str] = set()
        """Keys of jobs that an earlier process found too costly, or was trying when it exited; they are tried last."""
        self.refused_binds: set[str] = set()
        """Keys of tasks whose bind the API refused since the last cycle. In the next one, all others come first."""
        self._incomplete: set[str] = set()
        """Keys of tasks that request a resource which no node or queue names."""

    # ---------------------------------------------------------------------------------------------------------- nodes

    @names_the_object
    def set_node(self, node: objects.Node) -> None:
        """Add or update a node. A node that does not belong to this scheduler is removed."""
        labels = node.metadata.labels or {}
        if any(labels.get(key) != value for key, value in self.node_selector.items()):
            self.delete_node(node.metadata.name)
            return
        known = self.nodes.by_name.get(node.metadata.name)
        if known is not None and same_node(known.object, node):
            known.object = node
            return
        before = known.allocatable if known is not None else ()
        info = self.nodes.put(node)
        self._name(info.allocatable, before, info.name, smallest_card(node))
        if known is None:
            for task in self._on_node.get(info.name, {}).values():
                self.nodes.place(info, task, task.status)
        self._changed()

    def delete_node(self, name: str) -> None:
        if name in self.nodes.by_name:
            before = self.nodes.by_name[name].allocatable
            self.nodes.drop(name)
            self._name((), before, name)
            self._changed()

    def _name(self, now: Iterable[str], before: Iterable[str], node: str = "", card: int = 0) -> None:
        """Update the resources that a node or a queue names, and recount the tasks that this concerns."""
        card_before = self._known.card_memory
        added, removed = self._known.update(now, before)
        if node:
            self._known.set_card(node, card)
        if removed:
            self.nodes.drop_dimensions(removed)
        concerned = self._incomplete if added else set[str]()
        if removed:
            concerned = concerned.union(key for key, task in self.tasks.items() if not removed.isdisjoint(task.request))
        if self._known.card_memory != card_before:
            in_percent = (key for key, task in self.tasks.items() if task.cards and task.cards.is_in_percent)
            concerned = concerned.union(in_percent)
        for key in sorted(concerned):
            task = self.tasks[key]
            self._forget(task)
            self._admit(task.recounted(self._known))

    # ----------------------------------------------------------------------------------------------------------- pods

    @names_the_object
    def set_pod(self, pod: objects.Pod) -> None:
        """Add or update a pod. An assumption about the pod (same uid) holds until the API confirms or refuses it."""
        old = self.tasks.get(pod.metadata.key)
        again = None if old is None else old.seen_again(pod)
        task = again or self._new_task(pod)
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
        self._moved(task, None if old is None else self._state_of(old), is_other=old is not None and again is None)

    def _new_task(self, pod: objects.Pod) -> Task:
        key = self._job_of(pod)
        job = self.jobs.get(key)
        sibling = next(iter(job.tasks.values()), None) if job is not None else None
        return (sibling and sibling.of_sibling(pod)) or Task(pod, key, self._known)

    def _step(self, old: Task, new: Task) -> None:
        """Update a pod that progresses on its node, from its bind to running: the occupied amounts do not change."""
        before = self._state_of(old)
        if old.job:
            self.jobs[old.job].move(old, new.status)
            self._sums.changed(old.job)
        old.pod, old.status, old.started, old.assumed = new.pod, new.status, new.started, new.assumed
        old.assigned = new.assigned
        old.nominated, old.is_disruption_target = new.nominated, new.is_disruption_target
        (self.nominated.add if new.nominated else self.nominated.discard)(old.key)
        self._moved(old, before)

    @staticmethod
    def _keep_assumptions(old: Task, task: Task) -> None:
        if old.assumed and runs_ahead(old, task):
            task.status, task.node, task.assumed, task.assigned = old.status, old.node, True, old.assigned
        if task.nominated == old.pod.status.nominated_node_name:
            task.nominated = old.nominated  # our assumption, if any: the API has not confirmed it yet

    def delete_pod(self, key: str, uid: str = "") -> None:
        """Remove a pod; with `uid`, only the pod with this uid."""
        task = self.tasks.get(key)
        if task is not None and (not uid or task.uid == uid):
            self._forget(task)
            self.refused_binds.discard(key)
            self._moved(task, self._state_of(task), is_gone=True)

    def _state_of(self, task: Task) -> PodState | None:
        """Return the state for `_moved`, or None (the usual case) if the listener needs no reports."""
        return PodState.of(task) if self.listener.is_interested else None

    def _moved(self, task: Task, before: PodState | None, *, is_gone: bool = False, is_other: bool = False) -> None:
        """Report a change of a pod; `is_other`: more than its `PodState` has changed."""
        self.version += 1
        if self.listener.is_interested:
            job = self.jobs.get(task.job)
            now = None if is_gone else PodState.of(task)
            report_pod(self.listener, task, job, before, now, is_other=is_other)

    def _job_of(self, pod: objects.Pod) -> str:
        ours = not self.scheduler_names or pod.spec.scheduler_name in self.scheduler_names
        return job_key_of(pod) if ours else ""

    def _admit(self, task: Task) -> None:
        self.tasks[task.key] = task
        self.nodes.most_shapes = FEW_SHAPES + 2 * len(self.tasks)
        self.nodes.intern(task.init_request)
        if task.missing:
            self._incomplete.add(task.key)
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
        self._incomplete.discard(task.key)
        if task.node:
            on_node = self._on_node[task.node]
            del on_node[task.key]
            if not on_node:  # pods may name nodes that never exist
                del self._on_node[task.node]
            if (info := self.nodes.by_name.get(task.node)) is not None:
                self.nodes.lift(info, task, task.status)
        if task.job:
            job = self.jobs[task.job]
            job.remove(task)
            self._sums.changed(task.job)
            if job.group is None and not job.tasks:
                self._end(job)

    # ---------------------------------------------------------------------------------------------------- assumptions

    def assume_bound(self, key: str, uid: str, node: str, annotations: Mapping[str, str] | None = None) -> None:
        """Assume a bind in flight: the task occupies its node and has these annotations from now on."""
        self._assume(key, uid, TaskStatus.BINDING, node, annotations)

    def assume_evicted(self, key: str, uid: str) -> None:
        """Assume an eviction in flight: the task is Releasing from now on."""
        task = self.tasks.get(key)
        if task is not None:
            self._assume(key, uid, TaskStatus.RELEASING, task.node)

    def assume_overdue(self, key: str, uid: str) -> None:
        """Record that a pod terminates longer than the grace period: its capacity does not count as being freed."""
        task = self.tasks.get(key)
        if task is not None and task.status is TaskStatus.RELEASING:
            self._assume(key, uid, TaskStatus.UNKNOWN, task.node)

    def assume_nominated(self, key: str, uid: str, node: str) -> None:
        """Assume a nomination in flight: capacity on `node` is reserved for the task; an empty node releases it."""
        task = self.tasks.get(key)
        if task is not None and task.uid == uid and task.nominated != node:
            before = self._state_of(task)
            task.nominated = node
            (self.nominated.add if node else self.nominated.discard)(task.key)
            self._moved(task, before)

    def revert(self, key: str, uid: str) -> None:
        """Drop the assumption about a pod: the API refused the write."""
        task = self.tasks.get(key)
        if task is not None and task.uid == uid:
            if task.status is not TaskStatus.RELEASING:
                self.refused_binds.add(key)
            self._forget(task)
            again = Task(task.pod, task.job, self._known)
            self._admit(again)
            self._moved(again, self._state_of(task))

    def _assume(
        self, key: str, uid: str, status: TaskStatus, node: str, annotations: Mapping[str, str] | None = None
    ) -> None:
        task = self.tasks.get(key)
        if task is None or task.uid != uid:
            return
        before = self._state_of(task)
        self._forget(task)
        self.refused_binds.discard(key)
        task.status, task.node, task.assumed = status, node, True
        task.assigned = annotations or task.assigned
        self._admit(task)
        self._moved(task, before)

    # --------------------------------------------------------------------------------- groups, queues, priority classes

    def _job(self, key: str) -> Job:
        job = self.jobs.get(key)
        if job is None:
            job = self.jobs[key] = Job(key)
        return job

    def sums(self) -> Sums:
        """Return what the jobs of queues hold and request. Call only between cycles: a running cycle moves tasks."""
        sums = self._sums
        for key in sums.refresh(self.jobs):
            self.listener.report_undecided(key, key in sums.undecided)
        return sums

    @names_the_object
    def set_podgroup(self, group: objects.PodGroup) -> None:
        known = self.jobs.get(group.metadata.key)
        if known is not None and known.group is not None and same_group(known.group, group):
            known.group = group
            return
        check_size(group)
        minimum = None if group.spec.min_resources is None else resources.parse(group.spec.min_resources)
        created = seconds(group.metadata.creation_timestamp)
        job = self._job(group.metadata.key)
        if job.group is None and any(
            c.reason == TOO_COSTLY for c in group.status.conditions or () if c.status == "True"
        ):
            self.costly.add(job.key)
        before, phase = job.group, job.phase
        job.describe(group, self.priority_of(group.spec.priority_class_name), minimum, created)
        is_same = before is not None and before.spec == group.spec
        frees_nothing = is_same and reserves_as_before(job, phase)
        self._regrouped(job.key, job.queue if is_same else "", helps=before is not None and not frees_nothing)
        if before is None:
            self.listener.report(REQUESTS)
        if before is None and job.queue not in self._sums.by_queue and any(q.guarantee for q in self.queues.values()):
            self.listener.report(WORK)

    def _regrouped(self, key: str, queue: str = "", *, helps: bool = True) -> None:
        """Report a PodGroup that was added, deleted or changed.

        Args:
            key: The PodGroup's job.
            queue: The only queue that the change concerns; empty if it may concern other queues.
            helps: The job may request less, or be served later.
        """
        self.version += 1
        self._sums.changed(key)
        self.listener.report_job(key)
        if helps:
            self.listener.report(GROUPS, queue)
            self.listener.report(CLAIMS, queue)

    def _end(self, job: Job) -> None:
        del self.jobs[job.key]
        self.costly.discard(job.key)
        self.listener.drop(job.key)

    def delete_podgroup(self, key: str) -> None:
        job = self.jobs.get(key)
        if job is not None and job.group is not None:
            queue, job.group = job.queue, None
            self._regrouped(key, queue)
            self.listener.report(FREED, queue)
            if not job.tasks:
                self._end(job)

    @names_the_object
    def set_queue(self, queue: objects.Queue) -> None:
        """Add or update a queue. If no decision depends on what has changed, data kept between cycles remains valid."""
        known, found = self.queues.get(queue.metadata.name), Queue(queue)
        if known is not None and known.creation == found.creation and same_queue(known.object, queue):
            known.object = queue
            return
        self.queues[found.name] = found
        self._name(found.resource_names, known.resource_names if known is not None else ())
        self._changed()

    def delete_queue(self, name: str) -> None:
        known = self.queues.pop(name, None)
        if known is not None:
            self._name((), known.resource_names)
            self._changed()

    def priority_of(self, class_name: str) -> int:
        """Return the value of a priority class; if it is unknown, return that of the global default class, or 0."""
        return priority_of(class_name, self.priority_classes)

    def set_priority_class(self, cls: objects.PriorityClass) -> None:
        known = self.priority_classes.get(cls.metadata.name)
        self.priority_classes[cls.metadata.name] = cls
        if known is None or (known.value, known.global_default) != (cls.value, cls.global_default):
            self._rank_jobs()

    def delete_priority_class(self, name: str) -> None:
        if self.priority_classes.pop(name, None) is not None:
            self._rank_jobs()

    def _rank_jobs(self) -> None:
        """Set the priority of each job anew. Waiting jobs are concerned only if a job gets another priority."""
        has_changed = False
        for job in self.jobs.values():
            if job.group is not None:
                before, job.priority = job.priority, self.priority_of(job.group.spec.priority_class_name)
                if job.priority != before:
                    has_changed = True
                    self._sums.changed(job.key)  # its rank among the reservations changes
        if has_changed:
            self._changed()
        else:
            self.version += 1
