"""The kinds that a recording has, and what it keeps of their objects.

The one rule: only fields of these structs are kept. No struct has the environment, the command or a secret of a
container; a pod template within a Workload is reduced to what a scheduler reads of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import msgspec

from ...scheduler.kube import PODS, WATCHED, Resource
from ...scheduler.model.footprint import check_size, kept_of_pod
from ...scheduler.model.objects import Object, ObjectMeta, Pod, read_annotations
from ...virtual.state import kueue
from ...virtual.state.dump import CONFIGS, POLICIES

_KAI = "scheduling.run.ai"
_READ_DOMAINS = (kueue.GROUP, "kai.scheduler", _KAI)
_READ_NAMES = ("pod-group-name",)
"""Annotations by which Kueue's and KAI's pods belong to their groups, beside those that our scheduler reads."""


class Reference(Object):
    """The object that an event is about."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class Source(Object):
    component: str = ""


class Event(Object):
    """An event, by which schedulers explain what they do."""

    metadata: ObjectMeta
    involved_object: Reference = msgspec.field(default_factory=Reference)
    related: Reference | None = None
    reason: str = ""
    message: str = ""
    type: str = ""
    action: str = ""
    count: int | None = None
    source: Source | None = None
    reporting_component: str = ""
    last_timestamp: str | None = None
    event_time: str | None = None


@dataclass(frozen=True, slots=True)
class FollowedKind:
    """A kind that is recorded, and where its objects are read."""

    resource: Resource[Any]
    versions: tuple[str, ...] = ()
    """The versions of its API, the preferred first; empty if it has one."""
    is_noted: bool = False
    """Whether its objects are noted as the API serves them: our scheduler does not read the kind."""
    namespace: str = ""
    name: str = ""
    """The only object that is read; empty for all."""

    @property
    def selector(self) -> str:
        """The field selector. Kubelets write most events, and none of them explains a decision."""
        if self.resource.struct is Event:
            return "source!=kubelet"
        return f"metadata.name={self.name}" if self.name else ""


def _pod(pod: Pod, size: int) -> Pod:
    return kept_of_pod(_described(pod), size, ())


def _any(item: Any, size: int) -> Any:
    return check_size(_described(item), size)


def _served(item: kueue.ServedObject, size: int) -> kueue.ServedObject:
    item.spec = kueue.without_secrets(item.spec)
    item.data = None
    return check_size(_described(item), size)  # type: ignore[no-any-return]


def _described(item: Any) -> Any:
    """Keep the annotations that explain a decision."""
    given = item.metadata.annotations
    if given:
        kept = read_annotations(given) or {}
        more = {key: value for key, value in given.items() if _is_read(key)}
        item.metadata.annotations = {**kept, **more} or None
    return item


def _is_read(key: str) -> bool:
    domain, _, name = key.rpartition("/")
    return domain in _READ_DOMAINS or name in _READ_NAMES


def _served_kind(group: str, versions: tuple[str, ...], plural: str, kind: str, *, namespaced: bool) -> FollowedKind:
    resource = Resource(group, versions[0], plural, kind, kueue.ServedObject, namespaced, optional=True, trim=_served)
    return FollowedKind(resource, versions if len(versions) > 1 else (), is_noted=True)


FOLLOWED: tuple[FollowedKind, ...] = (
    *(FollowedKind(replace(each, optional=True, trim=_pod if each is PODS else _any)) for each in WATCHED),
    *(
        _served_kind(kueue.GROUP, kueue.VERSIONS, plural, kind, namespaced=namespaced)
        for kind, (plural, namespaced) in kueue.PLURALS.items()
    ),
    _served_kind("scheduling.k8s.io", ("v1beta1", "v1alpha2"), "podgroups", "PodGroup", namespaced=True),
    _served_kind(_KAI, ("v2",), "queues", "Queue", namespaced=False),
    _served_kind(_KAI, ("v2alpha2",), "podgroups", "PodGroup", namespaced=True),
    FollowedKind(Resource("", "v1", "events", "Event", Event, optional=True, trim=_any), is_noted=True),
    *(FollowedKind(replace(CONFIGS, optional=True), namespace=space, name=name) for space, name in POLICIES),
    FollowedKind(
        Resource("", "v1", "configmaps", "ConfigMap", kueue.ServedObject, optional=True),
        is_noted=True,
        namespace=kueue.CONFIG_NAMESPACE,
        name=kueue.CONFIG_NAME,
    ),
)
