"""Redact the objects of Kueue: an allow list by field, so that a text which is not listed here never leaves.

Names are replaced as those of all other objects (`renaming`); amounts, times and words of Kueue's API stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import yaml

from .kueue import CONFIGURATION, READ_OF_PODS
from .renaming import StateNames

Object = dict[str, Any]
_WORD = re.compile(r"[A-Z][A-Za-z]*|[+-]?\d[\dA-Za-z.:+-]*")
"""A word of an API such as `LowerPriority`, an amount, or a time: the only texts that stay as they are."""
_FIELD = re.compile(r"[a-z][A-Za-z0-9]*")
"""The name of a field. Other keys are those of maps that people fill."""
_LISTS_OF_WORDS = frozenset({"coveredResources", "excludeResourcePrefixes"})
_CLUSTER = frozenset({
    *("clusterQueue", "cohortName", "cohort", "parentName", "topologyName", "priorityClassName"),
    *("admissionChecks", "nodeName"),
})  # fmt: skip
"""Fields that name an object of the cluster."""
_WITHIN = frozenset({"queueName"})
_TEXTS = frozenset({"message", "description", "image", "command", "args"})
"""Fields that people or programs fill with sentences."""
_AMOUNTS = frozenset({"resourceUsage", "requests", "limits", "resources", "allocatable", "capacity", "overhead"})
_CLUSTER_PARTS = ("flavors", "flavorsReservation", "flavorsUsage", "admissionChecksStrategy", "priorityClassRef")
_NAMED_IN: Mapping[str, str] = {
    **dict.fromkeys(_CLUSTER_PARTS, "/"),
    **dict.fromkeys(("podSets", "podSetAssignments"), "roles"),
    **dict.fromkeys(("containers", "initContainers"), ""),
}
"""List or object → the scope of the names of its parts; empty: these names decide nothing."""


def labels_of(item: Object) -> set[str]:
    """Return the keys of nodes' labels by which an object selects nodes."""
    spec = item.get("spec") or {}
    return {*(spec.get("nodeLabels") or {}), *(level.get("nodeLabel", "") for level in spec.get("levels") or ())}


class KueueRedaction:
    """The redaction of one object of Kueue; `new` collects its names, or replaces them."""

    def __init__(self, new: StateNames, item: Object) -> None:
        self._new, self._item = new, item
        self._namespace = str(item["metadata"].get("namespace", ""))

    def redacted(self) -> Object:
        item, meta, new = self._item, self._item["metadata"], self._new
        if item["kind"] == "ConfigMap":
            return _configuration(item)
        kept: Object = {key: meta[key] for key in ("creationTimestamp", "deletionTimestamp") if key in meta}
        kept["name"] = new.within(self._namespace, meta["name"]) if self._namespace else new.cluster(meta["name"])
        kept["uid"] = new.of("uids", meta.get("uid", ""))
        if self._namespace:
            kept["namespace"] = new.namespace(self._namespace)
        owners = [self._owner(owner) for owner in meta.get("ownerReferences") or ()]
        rest: Object = {key: self._field(key, item[key], "") for key in ("spec", "status", "value") if key in item}
        return {
            "apiVersion": item["apiVersion"],
            "kind": item["kind"],
            "metadata": kept | ({"ownerReferences": owners} if owners else {}),
            **rest,
        }

    def _owner(self, owner: Object) -> Object:
        kept: Object = {key: owner[key] for key in ("apiVersion", "kind", "controller") if key in owner}
        name, uid = self._new.within(self._namespace, owner["name"]), self._new.of("uids", owner.get("uid", ""))
        return {**kept, "name": name, "uid": uid}

    def _field(self, key: str, value: Any, parent: str) -> Any:  # noqa: PLR0911 - one return for each kind of field
        if value is None or isinstance(value, bool | int | float) or key in _LISTS_OF_WORDS:
            return value
        special: Callable[[Any], Any] | None = getattr(self, _SPECIAL.get(key, ""), None)
        if special is not None:
            return special(value)
        if key in _AMOUNTS and isinstance(value, dict):
            return {name: self._field("", amount, key) for name, amount in value.items()}
        if isinstance(value, dict):
            return {name: self._field(name, inner, key) for name, inner in value.items() if _FIELD.fullmatch(name)}
        if isinstance(value, list):
            return [self._field(key, inner, parent) for inner in value]
        if key == "name":
            return self._name(value, parent)
        if key in _CLUSTER:
            return self._new.cluster(value)
        if key in _WITHIN:
            return self._new.within(self._namespace, value)
        return value if _WORD.fullmatch(value) and key not in _TEXTS else ""

    def _name(self, value: str, parent: str) -> str:
        """Return the name of a part: of a list whose names are names of objects, or of resources."""
        if parent in ("resources", "resourceUsage"):
            return value
        scope = _NAMED_IN.get(parent)
        if scope is None:
            return ""
        return self._new.of(scope, value) if scope else "part"

    def _labels(self, given: Object) -> Object:
        return {self._new.key(key): self._new.value(key, value) for key, value in given.items()}

    def _flavors(self, given: Any) -> Any:
        if isinstance(given, dict):  # of an assignment: resource → flavor
            return {name: self._new.cluster(flavor) for name, flavor in given.items()}
        return [self._field("", flavor, "flavors") for flavor in given]

    def _parts(self, given: Any) -> Any:
        return [{**self._field("", part, ""), "name": self._new.of("roles", part.get("name", ""))} for part in given]

    def _levels(self, given: Any) -> Any:
        return [{"nodeLabel": self._new.key(level.get("nodeLabel", ""))} for level in given]

    def _requirements(self, given: Any) -> Any:
        found = []
        for each in given:
            key = each.get("key", "")
            values = [self._new.value(key, value) for value in each.get("values") or ()]
            kept = {name: each[name] for name in ("operator", "effect") if name in each}
            value = {"value": self._new.value(key, each["value"])} if each.get("value") else {}
            found.append({"key": self._new.key(key), **kept, **value, **({"values": values} if values else {})})
        return found

    def _template(self, given: Object) -> Object:
        """Return a pod template: only what Kueue and kube-scheduler read of its spec."""
        spec = given.get("spec") or {}
        kept = {key: self._field(key, spec[key], "spec") for key in READ_OF_PODS if key in spec}
        return {"spec": kept}

    def _nothing(self, given: Any) -> Any:
        return [] if isinstance(given, list) else {}


_SPECIAL = {
    **dict.fromkeys(("nodeLabels", "nodeSelector", "matchLabels"), "_labels"),
    **dict.fromkeys(("podSets", "podSetAssignments"), "_parts"),
    **dict.fromkeys(("matchExpressions", "tolerations", "nodeTaints"), "_requirements"),
    **dict.fromkeys(("annotations", "labels", "parameters", "env"), "_nothing"),
    "flavors": "_flavors",
    "levels": "_levels",
    "template": "_template",
}
"""Field → the method that redacts it, for fields that need more than the general rules."""


def _configuration(item: Object) -> Object:
    """Return Kueue's configuration without the texts that name things of the cluster."""
    found = yaml.safe_load(item["data"][CONFIGURATION]) or {}
    kept = {key: found[key] for key in ("featureGates", "waitForPodsReady", "fairSharing", "resources") if key in found}
    meta = {key: item["metadata"][key] for key in ("name", "namespace")}
    return {**item, "metadata": meta, "data": {CONFIGURATION: yaml.safe_dump(kept)}}
