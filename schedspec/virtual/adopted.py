"""Adopt the gangs that a cluster already has: each PodGroup and its pods, as the API server showed them.

An adopted gang differs from any other gang in two ways. Its pods need not be equal: a replaced pod is a copy of its own
predecessor. Its objects keep the fields of the state, such as selectors and owners.
"""

from __future__ import annotations

import msgspec

from ..scheduler.model import objects
from ..scheduler.model.task import COMPLETED, status_of
from ..scheduler.model.times import timestamp
from .load import Adopted, Workload
from .pods import PENDING, ObjectMaker


class CopyMaker(ObjectMaker):
    """Create the objects of adopted gangs again, from copies without node and status."""

    def __init__(self) -> None:
        super().__init__()
        self._groups: dict[str, objects.PodGroup] = {}
        self._pods: dict[str, list[objects.Pod]] = {}

    def add(self, given: Adopted) -> None:
        """Keep the templates of a gang's objects."""
        self._groups[given.key] = given.group
        self._pods[given.key] = [_template(pod) for pod in given.pods]

    def group(self, workload: Workload, attempt: int, priority_class: str, now: float) -> objects.PodGroup:
        """Return the new PodGroup of an attempt."""
        del priority_class
        known = self._groups[workload.key]
        meta = _new_meta(known.metadata, f"{workload.key}.{attempt}", now)
        return objects.PodGroup(meta, known.spec, objects.PodGroupStatus("Pending"))

    def pod(self, workload: Workload, index: int, uid: str, priority: int, now: float) -> objects.Pod:
        """Return a new copy of the pod with this index."""
        del priority
        known = self._pods[workload.key][index]
        return objects.Pod(_new_meta(known.metadata, uid, now), known.spec, PENDING)


def live_pods(given: Adopted) -> list[tuple[int, objects.Pod]]:
    """Return the pods that have not ended, with their indexes."""
    return [(index, pod) for index, pod in enumerate(given.pods) if not status_of(pod)[0] & COMPLETED]


def as_workload(given: Adopted) -> Workload:
    """Return the work of an adopted gang; pods that succeeded count towards its minimum."""
    live = len(live_pods(given))
    succeeded = sum(pod.status.phase == "Succeeded" for pod in given.pods)
    spec, meta = given.group.spec, given.group.metadata
    return Workload(
        meta.name,
        given.run_time,
        given.requests,
        max(live, 1),
        min_member=min(max(spec.min_member - succeeded, 1), max(live, 1)),
        queue=spec.queue or "default",
        namespace=meta.namespace,
        priority_class=spec.priority_class_name,
        on_eviction=given.on_eviction,
        checkpoint_every=given.checkpoint_every,
    )


def _new_meta(meta: objects.ObjectMeta, uid: str, now: float) -> objects.ObjectMeta:
    return msgspec.structs.replace(
        meta, uid=uid, creation_timestamp=timestamp(now), deletion_timestamp=None, deletion_grace_period_seconds=None
    )


def _template(pod: objects.Pod) -> objects.Pod:
    return objects.Pod(pod.metadata, msgspec.structs.replace(pod.spec, node_name=""), PENDING)
