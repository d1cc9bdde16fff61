"""Limit the memory of one object, so that a tenant's object costs at most `MAX_BYTES` of memory.

For a pod of another scheduler, only the parts that affect other pods are kept: requests, labels, host ports, volumes,
terms about other pods, and the node. An object that is still too large is rejected, with one exception: a pod on a node
occupies capacity there in any case, so its request is kept, and nothing else of its spec.

The size is estimated only for objects with more than `SMALL_BYTES` of JSON. A smaller object is below the limit
whatever it contains.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable
from itertools import chain, islice
from typing import Any

import msgspec

from . import names, resources
from .card_notation import GPU_INDEX, VGPU_IDS
from .demand import host_ports_of, requests_of
from .objects import (
    Affinity,
    Container,
    ContainerPort,
    Object,
    ObjectMeta,
    Pod,
    PodSpec,
    PodStatus,
    Quantities,
    Resources,
    read_annotations,
)
from .resources import Resource

MAX_BYTES = 512 * 1024
"""Maximum memory of one object in Python."""
SMALL_BYTES = 12 * 1024
"""JSON of this size takes less memory than `MAX_BYTES` when decoded, whatever it contains."""
MAX_NAMES = 64
"""Maximum number of resources that are counted for a pod that has a node and is too large to be kept."""
_WITHOUT_EFFECT = (
    "$.spec.tolerations",
    "$.spec.topologySpreadConstraints",
    "$.spec.nodeSelector",
    "$.spec.affinity.nodeAffinity",
)
"""Fields that can be large and that `_with_effect_on_others` removes."""
_COUNTED_FIRST = (resources.CPU, resources.MEMORY, "ephemeral-storage")


class _SpecHead(Object):
    scheduler_name: str = ""
    node_name: str = ""


class _PodHead(Object):
    spec: _SpecHead = msgspec.field(default_factory=_SpecHead)


_heads = msgspec.json.Decoder(_PodHead)


class TooLargeError(ValueError):
    """An object exceeds the memory limit. The text names the largest field."""

    def __init__(self, field: str, most: int = MAX_BYTES) -> None:
        super().__init__(
            f"{field} is too large: the object would take more than {most // 1024} KiB of the scheduler's memory"
        )
        self.field = field


def kept_of_pod(pod: Pod, size: int, scheduler_names: Collection[str]) -> Pod:
    """Return the part of a pod that is kept.

    Args:
        pod: The decoded pod; the caller must not use it afterwards.
        size: Bytes of JSON, or a larger estimate.
        scheduler_names: Schedulers whose pods we place; empty means all.

    Raises:
        TooLargeError: the pod exceeds the limit and has no node.
        QuantityError: an amount of a pod of another scheduler is invalid.
    """
    is_ours = not scheduler_names or pod.spec.scheduler_name in scheduler_names
    if size > SMALL_BYTES and not (is_ours and not pod.spec.node_name):
        _limit_names(pod.spec)
    if not is_ours:
        pod = _with_effect_on_others(pod)
    if size <= SMALL_BYTES or memory_of(pod) <= MAX_BYTES:
        return pod
    if not pod.spec.node_name:
        raise TooLargeError(_largest_field(pod))
    return _request_only(pod)


def unread_of_pod(data: bytes | msgspec.Raw, scheduler_names: Collection[str]) -> Collection[str] | None:
    """Return the paths in a too large pod that `kept_of_pod` does not need; None if it keeps nothing of the pod."""
    spec = _heads.decode(data).spec
    if scheduler_names and spec.scheduler_name not in scheduler_names:
        return _WITHOUT_EFFECT
    return () if spec.node_name else None


def check_size(item: Any, size: int, most: int = MAX_BYTES) -> Any:
    """Return an object of any other kind, with `size` bytes of JSON, unchanged if its memory is within the limit.

    Raises:
        TooLargeError: the object exceeds the limit.
    """
    if size > SMALL_BYTES and memory_of(item, most) > most:
        raise TooLargeError(_largest_field(item, most), most)
    return item


def memory_of(value: Any, most: int = MAX_BYTES) -> int:
    """Return the bytes of memory of an object and its parts. Counting stops above `most`."""
    total, waiting = 0, [value]
    while waiting and total <= most:
        item = waiting.pop()
        total += sys.getsizeof(item)
        if isinstance(item, msgspec.Struct):
            waiting += [part for part in msgspec.structs.astuple(item) if part is not None and part != ""]
        elif isinstance(item, dict):
            waiting += item.keys()
            waiting += item.values()
        elif isinstance(item, list | tuple):
            waiting += item
    return total


def identity_of(meta: ObjectMeta) -> ObjectMeta:
    """Return the part of an object's metadata that identifies it, and its labels unless they are large."""
    labels = meta.labels if memory_of(meta.labels, SMALL_BYTES) <= SMALL_BYTES else None
    return ObjectMeta(
        labels=labels,
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        resource_version=meta.resource_version,
        generation=meta.generation,
        creation_timestamp=meta.creation_timestamp,
        deletion_timestamp=meta.deletion_timestamp,
    )


def _with_effect_on_others(pod: Pod) -> Pod:
    """Reduce a pod of another scheduler to what affects other pods, with its request as one container."""
    spec, affinity = pod.spec, pod.spec.affinity
    request, _ = requests_of(pod)
    apart = None
    if affinity is not None and (affinity.pod_affinity or affinity.pod_anti_affinity):
        apart = Affinity(pod_affinity=affinity.pod_affinity, pod_anti_affinity=affinity.pod_anti_affinity)
    pod.spec = _requesting(spec, request)
    pod.spec.containers[0].ports = [
        ContainerPort(container_port=number, host_port=number, host_ip=address, protocol=protocol)
        for protocol, address, number in host_ports_of(Pod(pod.metadata, spec))
    ] or None
    pod.spec.affinity = apart
    pod.spec.scheduling_group = spec.scheduling_group
    pod.spec.volumes = [
        volume for volume in spec.volumes or () if volume.persistent_volume_claim or volume.ephemeral
    ] or None
    pod.metadata.annotations = read_annotations(pod.metadata.annotations)
    return pod


def _limit_names(spec: PodSpec) -> None:
    """Limit the number of resources that a pod names, because all of them have to be parsed at once.

    Resources of every node are kept, and the first ones of the other resources.
    """
    given = [container.resources for container in (*spec.containers, *(spec.init_containers or ()))]
    parts = list(filter(None, (*given, spec.resources)))
    of_parts = [amounts for part in parts for amounts in (part.requests, part.limits)]
    distinct = dict.fromkeys(chain.from_iterable(filter(None, (*of_parts, spec.overhead))))
    if len(distinct) <= 2 * MAX_NAMES:
        return
    kept = dict.fromkeys((*_COUNTED_FIRST, *islice(distinct, MAX_NAMES)))
    for part in parts:
        part.requests, part.limits = _only(part.requests, kept), _only(part.limits, kept)
    spec.overhead = _only(spec.overhead, kept)


def _only(amounts: Quantities | None, kept: Iterable[str]) -> Quantities | None:
    return amounts and {name: amounts[name] for name in kept if name in amounts}


def _request_only(pod: Pod) -> Pod:
    """Reduce a pod that is too large and has a node to its identity, its request and its phase."""
    request, _ = requests_of(pod)
    first = [name for name in _COUNTED_FIRST if name in request]
    counted = [*first, *sorted(request.keys() - {*first, resources.PODS})][:MAX_NAMES]
    meta, status = identity_of(pod.metadata), pod.status
    read = (names.GROUP_NAME, names.VOLCANO_GROUP_NAME, GPU_INDEX, VGPU_IDS)
    given = ((key, (pod.metadata.annotations or {}).get(key)) for key in read)
    meta.annotations = {key: value for key, value in given if value and len(value) <= SMALL_BYTES} or None
    meta.owner_references = (pod.metadata.owner_references or [])[:1] or None
    return Pod(
        meta,
        _requesting(pod.spec, {name: request[name] for name in counted}),
        PodStatus(phase=status.phase, start_time=status.start_time, nominated_node_name=status.nominated_node_name),
    )


def _requesting(spec: PodSpec, request: Resource) -> PodSpec:
    """Return a spec with only this request, and the node, scheduler and priority of `spec`."""
    amounts = resources.quantities({name: amount for name, amount in request.items() if name != resources.PODS})
    return PodSpec(
        containers=[Container(resources=Resources(requests=dict(amounts)))],
        node_name=spec.node_name,
        scheduler_name=spec.scheduler_name,
        priority=spec.priority,
        priority_class_name=spec.priority_class_name,
        preemption_policy=spec.preemption_policy,
    )


def _largest_field(item: Any, most: int = MAX_BYTES) -> str:
    """Return the path of the largest part of an object, two levels deep."""
    path: list[str] = []
    for _ in range(2):
        parts: Iterable[msgspec.structs.FieldInfo] = (
            msgspec.structs.fields(item) if isinstance(item, msgspec.Struct) else ()
        )
        sizes = {field.encode_name: (memory_of(getattr(item, field.name), most), field.name) for field in parts}
        if not sizes:
            break
        name = max(sizes, key=lambda field: sizes[field][0])
        path.append(name)
        item = getattr(item, sizes[name][1])
    return ".".join(path)
