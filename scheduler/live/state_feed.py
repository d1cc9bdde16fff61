"""From watches to the state.

The one rule: what the watches and the writer tell is put into an inbox as it comes, and reaches the state only when
the cycle loop asks for it, between two cycles; so the reader never waits for a cycle and a cycle never sees the state
move.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..kube import (
    BUDGETS,
    CLAIMS,
    CSI_NODES,
    NAMESPACES,
    NODES,
    PODGROUPS,
    PODS,
    PRIORITY_CLASSES,
    QUEUES,
    VOLUMES,
    Absent,
    Change,
    Client,
    Present,
    Reflector,
    Resource,
    Unreadable,
)
from ..model.cluster import ON_ITS_WAY, Cluster
from ..model.task import TaskStatus
from ..recording.events import Assumed, Input, Nominated, ObjectGone, ObjectSeen, Reverted, apply_input
from .inbox import Bound, Inbox, Refused, Trouble

log = logging.getLogger(__name__)

WATCHED: tuple[Resource[Any], ...] = (
    PRIORITY_CLASSES,
    NAMESPACES,
    QUEUES,
    PODGROUPS,
    NODES,
    PODS,
    BUDGETS,
    VOLUMES,
    CLAIMS,
    CSI_NODES,
)
"""What the state is made of."""

ALL = 1 << 62
_COMING = TaskStatus.BINDING | TaskStatus.BOUND


class Urgency(enum.IntEnum):
    """How soon a change wants a cycle."""

    NONE = 0
    LAZY = 1
    """It confirms what was expected: a bound pod runs, a PodGroup has the phase that was decided."""
    SOON = 2


@dataclass(slots=True)
class Intake:
    """What the state took in, and what of it concerns others."""

    urgency: Urgency = Urgency.NONE
    """How soon a cycle should follow."""
    gone: list[str] = field(default_factory=list)
    """Uids of pods that are gone."""
    troubles: list[Trouble] = field(default_factory=list)
    outcomes: list[Bound | Refused] = field(default_factory=list)
    """What became of writes, as far as it changes nothing in the state."""


class StateFeed:
    """The reflectors, the inbox and the state that it is emptied into.

    ``on_input`` is told of each input that was taken in (for the record).
    """

    def __init__(
        self,
        cluster: Cluster,
        client: Client,
        *,
        on_input: Callable[[Input], None] | None = None,
    ) -> None:
        self.cluster = cluster
        self.inbox = Inbox()
        self.troubles: dict[tuple[str, str], Trouble] = {}
        """By kind and key, for as long as the object is as it is."""
        self.on_input = on_input
        self.touched: set[str] = set()
        """Jobs whose tasks or PodGroup changed since the publication of their status; who publishes empties it."""
        self.reflectors = [Reflector(client, resource, self._hearing(resource)) for resource in WATCHED]
        self._resources = {resource.kind: resource for resource in WATCHED}
        self._intake = Intake()

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            for reflector in self.reflectors:
                group.create_task(reflector.run(), name=f"watch {reflector.resource.id}")

    async def synced(self) -> None:
        """Wait until every watch has listed."""
        for reflector in self.reflectors:
            await reflector.synced.wait()

    def _hearing(self, resource: Resource[Any]) -> Callable[[Change[Any]], None]:
        kind = resource.kind

        def hear(change: Change[Any]) -> None:
            match change:
                case Present():
                    self.inbox.put(ObjectSeen(kind, change.object))
                case Absent():
                    self.inbox.put(ObjectGone(kind, change.key, change.uid))
                case Unreadable():
                    self.inbox.put(Trouble(resource, change.malformed.metadata, change.malformed.error))

        return hear

    # --------------------------------------------------------------------------------------------------------- emptying

    def empty(self, most: int = ALL) -> Intake:
        """Take in what has arrived, the oldest first."""
        urgency = Urgency.NONE
        for item in self.inbox.take(most):
            match item:
                case Trouble():
                    urgency = max(urgency, self._refuse(item))
                case Bound() | Refused():
                    self._intake.outcomes.append(item)
                case _:
                    urgency = max(urgency, self.apply(item))
        intake, self._intake = self._intake, Intake()
        intake.urgency = urgency
        return intake

    def apply(self, given: Input) -> Urgency:
        """Take in one input now. For the cycle loop, between two cycles."""
        place = (given.kind, _key_of(given)) if isinstance(given, ObjectSeen | ObjectGone) else None
        if place is not None and self.troubles:
            self.troubles.pop(place, None)
        before = self._look(given)
        if isinstance(given, ObjectGone) and given.kind == "Pod":
            self._intake.gone.append(given.uid)
            if (task := self.cluster.tasks.get(given.key)) is not None:
                self.touched.add(task.job)
        version = self.cluster.version
        try:
            apply_input(self.cluster, given)
        except Exception as error:  # whatever one object does to us must not stop the others
            if not isinstance(given, ObjectSeen):
                raise
            if not isinstance(error, ValueError):
                log.exception("cannot take in %s %s", given.kind, _key_of(given))
            return self._refuse(Trouble(self._resources[given.kind], given.object.metadata, str(error)))
        if self.on_input is not None:
            self.on_input(given)
        self._touch(given)
        if self.cluster.version == version:
            return Urgency.NONE
        return _urgency(given, before, self._look(given))

    def _look(self, given: Input) -> Any:
        """What the state knows of the thing that an input is about, as far as it decides how urgent the input is."""
        if not isinstance(given, ObjectSeen):
            return None
        if given.kind == "Pod":
            task = self.cluster.tasks.get(given.object.metadata.key)
            if task is None:
                return None
            meta = task.pod.metadata  # its annotations name its PodGroup, which may come after the pod, and be Inqueue
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

    def _touch(self, given: Input) -> None:
        match given:
            case ObjectSeen(kind="Pod"):
                self.touched.add(self.cluster.tasks[given.object.metadata.key].job)
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
            apply_input(self.cluster, lost)
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
        expected = uid == now_uid and was & _COMING and status & (TaskStatus.BOUND | TaskStatus.RUNNING)
        return Urgency.LAZY if expected else Urgency.SOON
    if isinstance(given, ObjectSeen) and given.kind == "PodGroup":
        (uid, spec, phase, annotations), (now_uid, now_spec, now_phase, now_annotations) = before, after
        expected = (phase, now_phase) in ON_ITS_WAY and (uid, spec, annotations) == (now_uid, now_spec, now_annotations)
        return Urgency.LAZY if expected else Urgency.SOON
    return Urgency.SOON
