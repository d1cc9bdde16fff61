"""What of a cluster is looked at where it is shared with others who have queues, groups and jobs of the same kinds.

The one rule: what is not seen is not written either. The default sees everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ..model.queue import ALWAYS_THERE
from .resource import NAMESPACES, PODS, QUEUES, Resource, T


@dataclass(frozen=True, slots=True)
class Scope:
    """Of queues those that bear a label; of what has a namespace that in namespaces of a prefix, and what bears the
    label itself. Pods of other schedulers are always seen: they take room.

    Where a label is asked for, the queues `root` and `default` are presumed as they are made where nobody made any,
    without a uid, and whatever queues of these names are there are somebody else's.
    """

    queue_label: tuple[str, str] | None = None
    """Key and value; no value: any."""
    namespace_prefix: str = ""
    scheduler_names: tuple[str, ...] = ()

    def labels(self, resource: Resource[Any]) -> str:
        """The label selector for a kind; empty for all."""
        if self.queue_label is None or resource.id != QUEUES.id:
            return ""
        return "=".join(filter(None, self.queue_label))

    def presumed(self, resource: Resource[T]) -> Sequence[T]:
        """What is there although the API server has not listed it."""
        if self.queue_label is None or resource.id != QUEUES.id:
            return ()
        status = {"state": "Open"}
        return [
            msgspec.convert({"metadata": {"name": name}, "spec": spec, "status": status}, resource.struct)
            for name, spec in ALWAYS_THERE.items()
        ]

    def covers(self, resource: Resource[Any], item: Any) -> bool:
        """Whether an object, or what could be read of it, is to be seen."""
        if not self.namespace_prefix:
            return True
        meta = item.metadata
        if not resource.namespaced:
            return resource.id != NAMESPACES.id or meta.name.startswith(self.namespace_prefix)
        if meta.namespace.startswith(self.namespace_prefix) or self._bears_label(meta.labels or {}):
            return True
        spec = getattr(item, "spec", None)
        return resource.id == PODS.id and spec is not None and spec.scheduler_name not in self.scheduler_names

    def _bears_label(self, labels: dict[str, str]) -> bool:
        if self.queue_label is None:
            return False
        key, value = self.queue_label
        return key in labels and value in ("", labels[key])


EVERYTHING = Scope()
