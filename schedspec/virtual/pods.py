"""Make the PodGroup and the pods of a workload, as the API server would show them.

Objects that differ only in their names share all other parts, because a run has millions of versions.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import msgspec

from ..scheduler.model import names, objects, resources
from ..scheduler.model.times import timestamp
from .load import Workload

PENDING = objects.PodStatus()


class ObjectMaker:
    """Makes the objects of workloads; equal parts are made once."""

    def __init__(self, scheduler_name: str = "") -> None:
        self._scheduler_name = scheduler_name
        self._specs: dict[Hashable, objects.PodSpec] = {}
        self._placed: dict[tuple[int, str], tuple[objects.PodSpec, objects.PodSpec]] = {}
        """Id of a spec and node → the spec, whose id is therefore not reused, and its copy with the node."""
        self._minima: dict[Hashable, objects.meta.Quantities] = {}
        self._running = ("", objects.PodStatus("Running"))

    def group(self, workload: Workload, attempt: int, priority_class: str, now: float) -> objects.PodGroup:
        """Return the new PodGroup of an attempt."""
        meta = objects.ObjectMeta(
            name=workload.name,
            namespace=workload.namespace,
            uid=f"{workload.key}.{attempt}",
            creation_timestamp=timestamp(now),
            annotations=dict(workload.annotations) or None,
        )
        spec = objects.PodGroupSpec(
            min_member=workload.minimum,
            queue=workload.queue,
            priority_class_name=priority_class,
            min_resources=self._minimum(workload),
        )
        return objects.PodGroup(meta, spec, objects.PodGroupStatus("Pending"))

    def _minimum(self, workload: Workload) -> objects.meta.Quantities:
        key = (tuple(workload.requests.items()), workload.minimum)
        found = self._minima.get(key)
        if found is None:
            total = {
                name: amount * workload.minimum for name, amount in resources.parse(dict(workload.requests)).items()
            }
            found = self._minima[key] = {**resources.quantities(total)}
        return found

    def pod(self, workload: Workload, index: int, uid: str, priority: int, now: float) -> objects.Pod:
        """Return a new pod with this index."""
        annotations = {names.GROUP_NAME: workload.name}
        if not workload.preemptable:
            annotations[names.PREEMPTABLE] = "false"
        meta = objects.ObjectMeta(
            name=f"{workload.name}-{index}",
            namespace=workload.namespace,
            uid=uid,
            creation_timestamp=timestamp(now),
            annotations=annotations,
        )
        return objects.Pod(meta, self._spec(workload, priority), PENDING)

    def _spec(self, workload: Workload, priority: int) -> objects.PodSpec:
        selector = tuple(workload.node_selector.items())
        key = (tuple(workload.requests.items()), selector, priority)
        found = self._specs.get(key)
        if found is None:
            requested = objects.pods.Resources(requests=dict(workload.requests))
            found = self._specs[key] = objects.PodSpec(
                containers=[objects.Container(name="work", resources=requested)],
                node_selector=dict(selector) or None,
                scheduler_name=self._scheduler_name,
                priority=priority,
            )
        return found

    def bound(self, pod: objects.Pod, node: str) -> objects.Pod:
        """Return the pod, bound to a node."""
        return objects.Pod(pod.metadata, self._on(pod.spec, node), PENDING)

    def running(self, pod: objects.Pod, node: str, now: float) -> objects.Pod:
        """Return the pod in the phase Running."""
        moment = timestamp(now)
        if self._running[0] != moment:
            self._running = moment, objects.PodStatus("Running", start_time=moment)
        return objects.Pod(pod.metadata, self._on(pod.spec, node), self._running[1])

    def _on(self, spec: objects.PodSpec, node: str) -> objects.PodSpec:
        if spec.node_name:
            return spec
        key = id(spec), node
        found = self._placed.get(key)
        if found is None:
            fields = {name: getattr(spec, name) for name in spec.__struct_fields__}
            found = self._placed[key] = spec, objects.PodSpec(**{**fields, "node_name": node})
        return found[1]


def annotated(pod: objects.Pod, annotations: Mapping[str, str]) -> objects.Pod:
    """Return the pod with the annotations of its bind."""
    both = {**(pod.metadata.annotations or {}), **annotations}
    return objects.Pod(msgspec.structs.replace(pod.metadata, annotations=both), pod.spec, pod.status)


def terminating(pod: objects.Pod, now: float) -> objects.Pod:
    """Return the pod with a deletion timestamp."""
    fields = {name: getattr(pod.metadata, name) for name in pod.metadata.__struct_fields__}
    meta = objects.ObjectMeta(**{**fields, "deletion_timestamp": timestamp(now)})
    return objects.Pod(meta, pod.spec, pod.status)
