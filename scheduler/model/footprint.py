"""Limit the memory of one object, so that a tenant's object costs at most `MAX_BYTES` of memory.

For a pod of another scheduler, only the parts that affect other pods are kept: requests, labels, host ports, volumes,
terms about other pods, and the node. An object that is still too large is rejected, with one exception: a pod on a node
occupies capacity there in any case, so its request is kept, and nothing else of its spec.

The size is estimated only for objects with more than `SMALL_BYTES` of JSON. A smaller object is below the limit
whatever it contains. An object with more than `MOST_VALUES` JSON values is not decoded as a whole, which could take
tens of milliseconds and megabytes: only the request of a pod on a node is read from it.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable
from itertools import chain, islice
from typing import Any, NoReturn, cast

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
MOST_VALUES = 25_000
"""Maximum number of values in the JSON of an object that is decoded as a whole, in less than 5 ms and 4 MiB."""
_COUNTED_FIRST = (resources.CPU, resources.MEMORY, "ephemeral-storage")


class _LargeContainer(Object):
    resources: Resources | None = None
    restart_policy: str | None = None


class _LargeSpec(Object):
    containers: list[_LargeContainer] = msgspec.field(default_factory=list)
    init_containers: list[_LargeContainer] | None = None
    resources: Resources | None = None
    overhead: Quantities | None = None
    node_name: str = ""
    scheduler_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None


class _LargeStatus(Object):
    phase: str = "Pending"
    start_time: str | None = None
    nominated_node_name: str = ""


class _LargePod(Object):
    """The fields of a pod that `_request_only` reads; its metadata is read by `identity_in`."""

    metadata: msgspec.Raw
    spec: _LargeSpec = msgspec.field(default_factory=_LargeSpec)
    status: _LargeStatus = msgspec.field(default_factory=_LargeStatus)


class _GroupAnnotations(Object, omit_defaults=True):
    group: str | None = msgspec.field(default=None, name=names.GROUP_NAME)
    volcano_group: str | None = msgspec.field(default=None, name=names.VOLCANO_GROUP_NAME)
    gpu_index: str | None = msgspec.field(default=None, name=GPU_INDEX)
    vgpu_ids: str | None = msgspec.field(default=None, name=VGPU_IDS)


_large_pods = msgspec.json.Decoder(_LargePod)
_group_annotations = msgspec.json.Decoder(_GroupAnnotations)
_metas = msgspec.json.Decoder(ObjectMeta)
_parts = msgspec.json.Decoder(dict[str, msgspec.Raw])


class TooLargeError(ValueError):
    """An object exceeds the memory limit. The text names the largest field."""

    def __init__(self, field: str, most: int = MAX_BYTES) -> None:
        super().__init__(
            f"{field} is too large: the object would take more than {most // 1024} KiB of the scheduler's memory"
        )


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


def has_many_values(data: bytes | msgspec.Raw) -> bool:
    """Whether a JSON text may have more than `MOST_VALUES` values. Commas and brackets in texts count as well."""
    return len(data) > MOST_VALUES and len(data) - len(bytes(data).translate(None, b",{[")) > MOST_VALUES


def request_of_large_pod(data: bytes | msgspec.Raw) -> Pod:
    """Return the identity, the request and the phase of a pod with many values.

    Raises:
        TooLargeError: the pod has no node.
    """
    found = _large_pods.decode(data)
    if not found.spec.node_name:
        refuse_large(data)
    pod = Pod(identity_in(found.metadata), cast("PodSpec", found.spec), cast("PodStatus", found.status))
    _limit_names(pod.spec)
    return _request_only(pod)


def refuse_large(data: bytes | msgspec.Raw, most: int = MAX_BYTES) -> NoReturn:
    """Raise TooLargeError for an object with many values."""
    path: list[str] = []
    while len(path) < 2 and bytes(data).startswith(b"{") and (parts := _parts.decode(data)):
        path.append(max(parts, key=lambda name: len(parts[name])))
        data = parts[path[-1]]
    raise TooLargeError(".".join(path), most)


def identity_in(metadata: bytes | msgspec.Raw) -> ObjectMeta:
    """Read the parts of an object's metadata that are small, and the annotations of a gang and of cards."""
    parts = _parts.decode(metadata)
    kept: dict[str, Any] = {name: part for name, part in parts.items() if len(part) <= SMALL_BYTES}
    if "annotations" in parts and "annotations" not in kept:
        kept["annotations"] = _group_annotations.decode(parts["annotations"])
    return _metas.decode(msgspec.json.encode(kept))


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
