"""Decide which objects this process handles on a cluster that it shares with other teams.

Objects outside of the scope are not reported, so they are never written. By default, the scope covers everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ..model.queue import DEFAULT_QUEUES
from .resource import NAMESPACES, PODS, QUEUES, Resource, T


@dataclass(frozen=True, slots=True)
class Scope:
    """Queues with the label; namespaced objects in a namespace with the prefix, or labelled themselves.

    Pods of other schedulers are always visible, because they occupy nodes.

    With a label, the queues `root` and `default` are presumed to exist, with their default specs and without a uid.
    Real queues with these names belong to another team.
    """

    queue_label: tuple[str, str] | None = None
    """Key and value; an empty value matches any."""
    namespace_prefix: str = ""
    scheduler_names: tuple[str, ...] = ()

    def labels(self, resource: Resource[Any]) -> str:
        """Return the label selector for a kind; empty for all objects."""
        if self.queue_label is None or resource.id != QUEUES.id:
            return ""
        return "=".join(filter(None, self.queue_label))

    def presumed(self, resource: Resource[T]) -> Sequence[T]:
        """Return the objects that exist although the API server does not list them."""
        if self.queue_label is None or resource.id != QUEUES.id:
            return ()
        status = {"state": "Open"}
        return [
            msgspec.convert({"metadata": {"name": name}, "spec": spec, "status": status}, resource.struct)
            for name, spec in DEFAULT_QUEUES.items()
        ]

    def covers(self, resource: Resource[Any], item: Any) -> bool:
        """Return True if an object, or a malformed one, is visible."""
        if not self.namespace_prefix:
            return True
        meta = item.metadata
        if not resource.namespaced:
            return resource.id != NAMESPACES.id or meta.name.startswith(self.namespace_prefix)
        if meta.namespace.startswith(self.namespace_prefix) or self._has_label(meta.labels or {}):
            return True
        spec = getattr(item, "spec", None)
        return resource.id == PODS.id and spec is not None and spec.scheduler_name not in self.scheduler_names

    def _has_label(self, labels: dict[str, str]) -> bool:
        if self.queue_label is None:
            return False
        key, value = self.queue_label
        return key in labels and value in ("", labels[key])


EVERYTHING = Scope()
