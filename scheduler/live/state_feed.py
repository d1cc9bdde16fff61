"""Keep the scheduler's state up to date from watches and from the outcomes of writes.

The state changes only between two cycles, when the cycle loop empties the inbox. Until then, inputs from the watches
and the writer wait in the inbox: a watch never waits for a cycle, and the state never changes during a cycle.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..core import Core
from ..inputs import Assumed, Input, Nominated, ObjectGone, ObjectSeen, Overdue, Reverted, apply_input
from ..kube import (
    HYPER_NODES,
    WATCHED,
    Absent,
    Change,
    Client,
    Present,
    Reflector,
    Resource,
    Unreadable,
)
from ..model.changes import ON_ITS_WAY
from ..model.cluster import Cluster
from ..model.task import TaskStatus
from ..topology.hyper_nodes import topology_now
from .inbox import Bound, Inbox, RefusedWrite, Trouble
from .terminations import GraceLimit, Terminations

log = logging.getLogger(__name__)

ALL = 1 << 62
DEFAULT_GRACE = GraceLimit()
_STARTING = TaskStatus.BINDING | TaskStatus.BOUND


class Urgency(enum.IntEnum):
    """How soon a cycle should follow a change."""

    NONE = 0
    LAZY = 1
    """The change confirms an expectation: a bound pod runs, a PodGroup has the phase that was decided."""
    SOON = 2
    NOW = 3
    """The change completes a gang, or a pod is a gang by itself: no further pods are expected."""


@dataclass(slots=True)
class Intake:
    """The effects of applied inputs on other parts of the scheduler, besides the changed state."""

    urgency: Urgency = Urgency.NONE
    gone: list[str] = field(default_factory=list)
    """Uids of deleted pods."""
    troubles: list[Trouble] = field(default_factory=list)
    overdue: list[Overdue] = field(default_factory=list)
    """Pods that still terminate after the longest grace."""
    outcomes: list[Bound | RefusedWrite] = field(default_factory=list)
    """Outcomes of writes that change nothing in the state."""


class StateFeed:
    """The reflectors, the inbox, and the state to which the items of the inbox are applied.

    `on_input` receives each applied input, for the record.
    """

    def __init__(
        self,
        cluster: Cluster,
        client: Client,
        *,
        on_input: Callable[[Input], None] | None = None,
        grace: GraceLimit = DEFAULT_GRACE,
    ) -> None:
        self.core = Core(cluster)
        self.cluster = cluster
        self.inbox = Inbox()
        self.terminations = Terminations(grace, self.inbox.put)
        self.troubles: dict[tuple[str, str], Trouble] = {}
        """Rejected objects by kind and key, until the object changes."""
        self.on_input = on_input
        self.touched: set[str] = set()
        """Jobs whose tasks or PodGroup changed since their status was published. The status builder removes entries."""
        watched = [resource.bounded(cluster.scheduler_names) for resource in WATCHED]
        self.reflectors = [Reflector(client, resource, self._handler_of(resource)) for resource in watched]
        self._resources = {resource.kind: resource for resource in watched}
        self._intake = Intake()
        self._faults: dict[str, str] = {}
        """HyperNode → its fault that was reported."""
        self._faults_versions = (0, 0)
        """Versions of HyperNodes and nodes at the last report."""

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            for reflector in self.reflectors:
                group.create_task(reflector.run(), name=f"watch {reflector.resource.id}")

    async def synced(self) -> None:
        """Wait until every watch has listed."""
        for reflector in self.reflectors:
            await reflector.synced.wait()

    def _handler_of(self, resource: Resource[Any]) -> Callable[[Change[Any]], None]:
        kind = resource.kind

        def handle(change: Change[Any]) -> None:
            match change:
                case Present():
                    self.inbox.put(ObjectSeen(kind, change.object))
                case Absent():
                    self.inbox.put(ObjectGone(kind, change.key, change.uid))
                case Unreadable():
                    self.inbox.put(Trouble(resource, change.malformed.metadata, change.malformed.error))

        return handle

    # --------------------------------------------------------------------------------------------------------- emptying

    def empty(self, most: int = ALL) -> Intake:
        """Apply the oldest items of the inbox, at most `most`, to the state."""
        urgency = Urgency.NONE
        for item in self.inbox.take(most):
            match item:
                case Trouble():
                    urgency = max(urgency, self._refuse(item))
                case Bound() | RefusedWrite():
                    self._intake.outcomes.append(item)
                case _:
                    urgency = max(urgency, self.apply(item))
        self._report_faults()
        intake, self._intake = self._intake, Intake()
        intake.urgency = urgency
        return intake

    def _report_faults(self) -> None:
        """Report each fault in the tree of HyperNodes once. The state uses the rest of the tree."""
        cluster = self.cluster
        versions = (cluster.hyper_nodes_version, cluster.nodes.version)
        if versions == self._faults_versions or not (cluster.hyper_nodes or self._faults):
            return
        self._faults_versions = versions
        cluster.nodes.refresh()
        found = topology_now(cluster).faults if cluster.hyper_nodes else {}
        for name in self._faults.keys() - found.keys():
            self.troubles.pop((HYPER_NODES.kind, name), None)
        for name, text in sorted(found.items()):
            if self._faults.get(name) != text:
                trouble = Trouble(HYPER_NODES, cluster.hyper_nodes[name].metadata, text, is_partial=True)
                self.troubles[HYPER_NODES.kind, name] = trouble
                self._intake.troubles.append(trouble)
        self._faults = dict(found)

    def apply(self, given: Input) -> Urgency:
        """Apply one input to the state. The cycle loop calls this between two cycles."""
        if isinstance(given, ObjectSeen | ObjectGone) and self.troubles:
            self.troubles.pop((given.kind, _key_of(given)), None)
        before = self._part_for_urgency(given)
        if isinstance(given, ObjectGone) and given.kind == "Pod":
            self._intake.gone.append(given.uid)
            self.terminations.gone(given.uid)
            if (task := self.cluster.tasks.get(given.key)) is not None:
                self.touched.add(task.job)
        version = self.cluster.version
        try:
            apply_input(self.core, given)
        except Exception as error:  # one bad object must not stop the others
            if not isinstance(given, ObjectSeen):
                raise
            if not isinstance(error, ValueError):
                log.exception("cannot apply %s %s to the state", given.kind, _key_of(given))
            return self._refuse(Trouble(self._resources[given.kind], given.object.metadata, str(error)))
        if self.on_input is not None:
            self.on_input(given)
        self._note_side_effects(given)
        if self.cluster.version == version:
            return Urgency.NONE
        urgency = _urgency(given, before, self._part_for_urgency(given))
        return Urgency.NOW if urgency is Urgency.SOON and self._completes_gang(given) else urgency

    def _completes_gang(self, given: Input) -> bool:
        """Return True if an input is a pending pod whose job now has all the pods that the job needs to start."""
        if not isinstance(given, ObjectSeen) or given.kind != "Pod":
            return False
        task = self.cluster.tasks.get(given.object.metadata.key)
        job = self.cluster.jobs.get(task.job) if task is not None and task.status is TaskStatus.PENDING else None
        return job is not None and job.group is not None and len(job.tasks) >= job.min_available

    def _part_for_urgency(self, given: Input) -> Any:
        """Return the part of an object in the state that determines the urgency of an input."""
        if not isinstance(given, ObjectSeen):
            return None
        if given.kind == "Pod":
            task = self.cluster.tasks.get(given.object.metadata.key)
            if task is None:
                return None
            # annotations count: the one that names the pod's PodGroup may be added after the pod's creation
            meta = task.pod.metadata
            return task.uid, task.status, task.node, task.gated, meta.annotations, meta.labels
        if given.kind == "PodGroup":
            job = self.cluster.jobs.get(given.object.metadata.key)
            group = job.group if job is not None else None
            return group and (group.metadata.uid, group.spec, group.status.phase, group.metadata.annotations)
        if given.kind == "Queue":
            queue = self.cluster.queues.get(given.object.metadata.name)
            found = queue.object if queue is not None else None
            return found and (found.metadata.uid, found.spec, found.status.state, found.metadata.annotations)
        return None

    def _note_side_effects(self, given: Input) -> None:
        match given:
            case ObjectSeen(kind="Pod"):
                self.touched.add(self.cluster.tasks[given.object.metadata.key].job)
                self.terminations.seen(given.object)
            case Overdue():
                self._intake.overdue.append(given)
            case ObjectSeen(kind="PodGroup"):
                self.touched.add(given.object.metadata.key)
            case ObjectGone(kind="PodGroup"):
                self.touched.add(given.key)
            case Assumed() | Nominated() | Reverted():
                if (task := self.cluster.tasks.get(given.key)) is not None:
                    self.touched.add(task.job)

    def _refuse(self, trouble: Trouble) -> Urgency:
        kind, meta = trouble.resource.kind, trouble.metadata
        self.troubles[kind, meta.key] = trouble
        self._intake.troubles.append(trouble)
        version = self.cluster.version
        if meta.key:
            lost = ObjectGone(kind, meta.key)
            apply_input(self.core, lost)
            if self.on_input is not None:
                self.on_input(lost)
        return Urgency.SOON if self.cluster.version != version else Urgency.NONE


def _key_of(given: ObjectSeen | ObjectGone) -> str:
    key: str = given.key if isinstance(given, ObjectGone) else given.object.metadata.key
    return key


def _urgency(given: Input, before: Any, after: Any) -> Urgency:
    if isinstance(given, Reverted) or before is None or after is None:
        return Urgency.SOON
    if before == after:
        return Urgency.NONE
    if isinstance(given, ObjectSeen) and given.kind == "Pod":
        (uid, was, *_), (now_uid, status, *_) = before, after
        expected = uid == now_uid and was & _STARTING and status & (TaskStatus.BOUND | TaskStatus.RUNNING)
        return Urgency.LAZY if expected else Urgency.SOON
    if isinstance(given, ObjectSeen) and given.kind == "PodGroup":
        (uid, spec, phase, annotations), (now_uid, now_spec, now_phase, now_annotations) = before, after
        expected = (phase, now_phase) in ON_ITS_WAY and (uid, spec, annotations) == (now_uid, now_spec, now_annotations)
        return Urgency.LAZY if expected else Urgency.SOON
    return Urgency.SOON
