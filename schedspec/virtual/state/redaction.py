"""Redact a state: keep only what influences decisions.

The one rule: a text field that is not named here is removed. Names, also those of images and disks, are replaced
(`renaming`). Messages, and labels and annotations that neither a selector nor the core reads, are removed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import msgspec

from ...scheduler.inputs import PolicyLoaded
from ...scheduler.model import names
from ...scheduler.model.card_demand import APART, AVOID_CARD, AVOID_TYPE, MODE, USE_CARD, USE_TYPE
from ...scheduler.model.card_notation import GPU_INDEX, REGISTER, UNHEALTHY, VGPU_IDS
from ...scheduler.model.state_kinds import STATE_KINDS
from ...scheduler.topology.hyper_nodes import PatternError, compiled
from .kueue import put_served
from .kueue_redaction import KueueRedaction, labels_of
from .redacted_policy import PolicyText
from .renaming import NameRow, ReplacedNames, StateNames
from .state import State

_CORE_LABELS = frozenset(
    {f"{domain}/{part}" for domain in ("topology.kubernetes.io", "failure-domain.beta.kubernetes.io")
     for part in ("zone", "region")}
    | {"kubernetes.io/hostname", "kubernetes.io/os", names.PREEMPTABLE, names.TASK_SPEC, names.NODE_GROUP,
       names.COOLDOWN}
)  # fmt: skip
"""Labels that the core reads without a selector."""
_KEPT = frozenset(
    {"apiVersion", "kind", "type", "status", "phase", "state", "operator", "effect", "whenUnsatisfiable",
     "preemptionPolicy", "restartPolicy", "protocol", "hostIP", "reason", "creationTimestamp", "deletionTimestamp",
     "startTime", "lastTransitionTime", "schedulerName", "nodeAffinityPolicy", "nodeTaintsPolicy", "driver", "action",
     "mode", "minAvailable", "maxUnavailable"}
)  # fmt: skip
"""Text fields whose values are constants of an API, times, or names of programs."""
_AMOUNTS = frozenset({"allocatable", "capacity", "requests", "limits", "overhead", "capability", "deserved",
                      "minResources", "allocated", "hard", "used"})  # fmt: skip
_PLAIN_ANNOTATIONS = frozenset(
    {names.PREEMPTABLE, names.TASK_PRIORITY, names.CARD_NAME, names.CARD_QUOTA, names.CARD_REQUEST,
     names.SERVICE_TYPE, names.DISRUPTION_MODE, names.UNSUPPORTED, names.COOLDOWN, names.ON_EVICTED,
     GPU_INDEX, UNHEALTHY, USE_TYPE, AVOID_TYPE, MODE, APART}
)  # fmt: skip
_ENTRY = re.compile(r"(^|[:;])([^:;,]+)(?=,)")
"""The name of a card in a list of cards: the first field of an entry."""
_SLA = "sla-waiting-time"
_DISKS = frozenset({"awsElasticBlockStore", "azureDisk", "cinder", "gcePersistentDisk", "iscsi", "portworxVolume",
                    "rbd", "vsphereVolume"})  # fmt: skip
_DISK_NAMES = ("volumeID", "diskURI", "pdName", "volumePath")
_LABEL_KEYS = ("matchLabelKeys", "mismatchLabelKeys")
_SELECTING = frozenset({"key", "topologyKey"})
_NOTHING = "a^"
"""A pattern that matches no name."""
_CLUSTER_NAMES = frozenset({"nodeName", "nominatedNodeName", "queue", "parent", "priorityClassName", "volumeName"})
_WITHIN = frozenset({"podGroupName"})


def redact(state: State, keep: Callable[[NameRow], None] = lambda _row: None) -> State:
    """Return a redacted copy of the state; `keep` receives each name and what replaces it."""
    plain = {kind: [msgspec.to_builtins(item) for item in state.objects[kind].values()] for kind in STATE_KINDS}
    resources = (node["status"].get(field) or {} for node in plain["Node"] for field in ("allocatable", "capacity"))
    domains = {name.partition("/")[0] for amounts in resources for name in amounts if "/" in name}
    policy = None if state.policy is None else PolicyText(state.policy.text)
    rules = [] if policy is None else [*policy.rules()]
    of_kueue = [noted.object for noted in state.noted()]
    kept = _CORE_LABELS.union(state.node_selector, _selecting(plain), *rules, *map(labels_of, of_kueue))
    claims = _ephemeral_claims(plain)
    for item in plain["HyperNode"]:
        item["spec"]["members"] = [*named_members(item["spec"].get("members") or (), sorted(state.objects["Node"]))]
    collected = StateNames(domains)
    for kind, items in plain.items():
        for item in items:
            ObjectRedaction(collected, kept, claims, kind, item).redacted()
    for labels in (state.node_selector, *rules):
        redacted_labels(collected, labels)
    for item in of_kueue:
        KueueRedaction(collected, item).redacted()
    new = ReplacedNames(collected)
    for row in new.rows():
        keep(row)
    result = State(state.source, state.taken, state.is_exact, redacted=True, notes=[*state.notes])
    result.policy = None if policy is None else PolicyLoaded("policy", policy.redacted(partial(redacted_labels, new)))
    result.scheduler_names = [*state.scheduler_names]
    result.node_selector = redacted_labels(new, state.node_selector)
    for kind, items in plain.items():
        for item in items:
            done = ObjectRedaction(new, kept, claims, kind, item).redacted()
            result.put(kind, msgspec.convert(done, STATE_KINDS[kind].struct))
    for item in of_kueue:
        put_served(result, KueueRedaction(new, item).redacted())
    return result


def _walk(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the name and value of a field, and of all fields within it."""
    yield key, value
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _walk(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _walk(inner, key)


def _selecting(plain: dict[str, list[Any]]) -> set[str]:
    """Return the keys of labels that selectors and topologies use."""
    found = {
        key
        for group in plain["PodGroup"]
        if (key := (group["metadata"].get("annotations") or {}).get(names.TOPOLOGY_KEY))
    }
    for items in plain.values():
        for name, value in (pair for item in items for pair in _walk(item.get("spec") or {})):
            if name in _SELECTING and isinstance(value, str):
                found.add(value)
            elif name in ("nodeSelector", "matchLabels") and isinstance(value, dict):
                found.update(value)
            elif name in _LABEL_KEYS and isinstance(value, str):
                found.add(value)
    return found


def named_members(given: Iterable[Any], nodes: list[str]) -> Iterator[Any]:
    """Yield the members of a HyperNode, with the matching nodes in place of a pattern, which cannot be renamed."""
    for member in given:
        selector = {key: value for key, value in (member.get("selector") or {}).items() if value is not None}
        if "regexMatch" not in selector:
            yield member
            continue
        pattern = selector["regexMatch"].get("pattern", "")
        try:
            search = compiled(pattern).search
            found = [name for name in nodes if search(name.encode())]
        except PatternError:
            found = []
        if not found or len(selector) > 1:  # an invalid member, which stays invalid
            yield {**member, "selector": {**selector, "regexMatch": {"pattern": _NOTHING}}}
            continue
        for name in found:
            yield {**member, "selector": {"exactMatch": {"name": name}}}


def _ephemeral_claims(plain: dict[str, list[Any]]) -> dict[tuple[str, str], tuple[str, str]]:
    """Return the claims that are named after a pod and its volume."""
    found = {}
    for pod in plain["Pod"]:
        meta = pod["metadata"]
        for volume in pod["spec"].get("volumes") or ():
            if volume.get("ephemeral") is not None:
                name = f"{meta['name']}-{volume['name']}"
                found[meta["namespace"], name] = meta["name"], volume["name"]
    return found


def redacted_labels(new: StateNames, labels: Mapping[str, str]) -> dict[str, str]:
    return {new.key(key): _label(new, key, value) for key, value in labels.items()}


def _label(new: StateNames, key: str, value: str) -> str:
    scope = {names.TASK_SPEC: "roles", names.NODE_GROUP: "groups"}.get(key)
    return new.value(key, value) if scope is None else new.of(scope, value)


class ObjectRedaction:
    def __init__(
        self,
        new: StateNames,
        kept: Container[str] | None,
        claims: dict[tuple[str, str], tuple[str, str]],
        kind: str,
        item: Any,
    ) -> None:
        self._new, self._kept, self._claims, self._kind, self._item = new, kept, claims, kind, item
        self._namespace: str = item["metadata"].get("namespace", "")

    def redacted(self) -> Any:
        meta = self._item["metadata"]
        rest = {key: self._field(key, value) for key, value in self._item.items() if key != "metadata"}
        return {"metadata": self._metadata(meta), **rest}

    def _metadata(self, meta: Any) -> Any:
        new = self._new
        kept: dict[str, Any] = {
            name: meta[name]
            for name in ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
            if meta.get(name) is not None
        }
        owners = [self._owner(owner) for owner in meta.get("ownerReferences") or ()]
        labels = {key: value for key, value in (meta.get("labels") or {}).items() if self._keeps_label(key)}
        return {
            **kept,
            "name": self._own_name(meta["name"]),
            "namespace": new.namespace(self._namespace),
            "uid": new.of("uids", meta.get("uid", "")),
            "labels": self._labels(labels) or None,
            "annotations": self._annotations(meta.get("annotations") or {}) or None,
            "ownerReferences": owners or None,
        }

    def _keeps_label(self, key: str) -> bool:
        return self._kept is None or key in self._kept or (self._kind == "Node" and self._new.is_of_card(key))

    def _own_name(self, name: str) -> str:
        if self._kind == "Namespace":
            return self._new.namespace(name)
        if not self._namespace:
            return self._new.cluster(name)
        return self._claim(name) if self._kind == "PersistentVolumeClaim" else self._new.within(self._namespace, name)

    def _claim(self, name: str) -> str:
        """Return the name of a claim; an ephemeral one is named after its pod."""
        if (found := self._claims.get((self._namespace, name))) is None:
            return self._new.within(self._namespace, name)
        pod, volume = found
        return f"{self._new.within(self._namespace, pod)}-{self._new.of('volumes', volume)}"

    def _owner(self, owner: Any) -> Any:
        return {
            "apiVersion": owner.get("apiVersion", ""),
            "kind": owner.get("kind", ""),
            "name": self._new.within(self._namespace, owner.get("name", "")),
            "uid": self._new.of("uids", owner.get("uid", "")),
            "controller": owner.get("controller"),
        }

    def _labels(self, labels: dict[str, str]) -> dict[str, str]:
        return redacted_labels(self._new, labels)

    def _limits(self, text: str) -> str:
        """Return the limits of node groups. Invalid texts become `?`, because all of them have the same effect."""
        try:
            return json.dumps({self._new.of("groups", group): limits for group, limits in json.loads(text).items()})
        except (ValueError, AttributeError):
            return "?"

    def _groups(self, given: Any) -> Any:
        return {term: [self._new.of("groups", group) for group in groups or ()] for term, groups in given.items()}

    def _scope(self, given: Any) -> Any:
        """Return a requirement of a quota's scope, whose values are names of priority classes."""
        return {**given, "values": [self._new.cluster(value) for value in given.get("values") or ()]}

    def _annotations(self, given: dict[str, str]) -> dict[str, str]:
        new, found = self._new, {}
        for key, value in given.items():
            if key in _PLAIN_ANNOTATIONS or key.rpartition("/")[2] == _SLA:
                found[key] = value
            elif key in (names.GROUP_NAME, names.VOLCANO_GROUP_NAME):
                found[key] = new.within(self._namespace, value)
            elif key in (names.QUEUE_NAME, names.JOB_QUEUE):
                found[key] = new.cluster(value)
            elif key == names.TASK_SPEC:
                found[key] = new.of("roles", value)
            elif key == names.TOPOLOGY_KEY:
                found[key] = new.key(value)
            elif key in (REGISTER, VGPU_IDS):
                found[key] = _ENTRY.sub(lambda match: match[1] + new.of("cards", match[2]), value)
            elif key in (USE_CARD, AVOID_CARD):
                found[key] = ",".join(new.of("cards", card.strip()) for card in value.split(","))
            elif key == names.NODE_GROUP_LIMITS:
                found[key] = self._limits(value)
            elif key == names.NAMESPACES:
                found[key] = ",".join(new.namespace(namespace.strip()) for namespace in value.split(","))
        return found

    def _field(self, key: str, value: Any) -> Any:  # noqa: PLR0911 - one return for each kind of field
        special: Callable[[Any], Any] | None = _SPECIAL[key](self) if key in _SPECIAL else None
        if value is None or isinstance(value, bool | int | float) or key in _AMOUNTS:
            return value
        if special is not None:
            return special(value)
        if key == "resource" and self._kind == "Queue":
            return value
        if isinstance(value, dict):
            if "scopeName" in value:
                return self._scope(value)
            if "key" in value and "operator" in value:
                return self._requirement(value)
            return {name: self._field(name, inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self._field(key, inner) for inner in value]
        if key in _KEPT:
            return value
        if key in _CLUSTER_NAMES:
            return self._new.cluster(value)
        return self._new.within(self._namespace, value) if key in _WITHIN else ""

    def _requirement(self, given: Any) -> Any:
        """Return a requirement of a selector, or a toleration."""
        key, new = given["key"], self._new
        kept: dict[str, Any] = {"key": new.key(key), "operator": given["operator"]}
        if "effect" in given:
            return {**kept, "effect": given["effect"], "value": new.value(key, given.get("value", ""))}
        if given.get("values") is None:
            return kept
        is_name = key == "metadata.name"
        kept["key"] = key if is_name else kept["key"]
        return {
            **kept,
            "values": [new.cluster(value) if is_name else _label(new, key, value) for value in given["values"]],
        }

    def _taint(self, given: Any) -> Any:
        if isinstance(given, list):
            return [self._taint(taint) for taint in given]
        key = given["key"]
        return {"key": self._new.key(key), "value": self._new.value(key, given["value"]), "effect": given["effect"]}

    def _disk(self, given: Any) -> Any:
        name = next((given[name] for name in _DISK_NAMES if name in given), "")
        field = next((name for name in _DISK_NAMES if name in given), "volumeID")
        return {field: self._new.of("volumes", str(name))}

    def _images(self, given: Any) -> Any:
        return [self._new.of("images", _tagged(image)) for image in given]


def _tagged(image: str) -> str:
    return image if ":" in image.rsplit("/", 1)[-1] else f"{image}:latest"


def _role_minima(obj: ObjectRedaction) -> Callable[[Any], Any]:
    return lambda given: {obj._new.of("roles", role): least for role, least in given.items()}


_SPECIAL: dict[str, Callable[[ObjectRedaction], Callable[[Any], Any] | None]] = {
    **dict.fromkeys(_DISKS, lambda obj: obj._disk),
    **dict.fromkeys(("scopes", "accessModes", "regexMatch", "os", "drivers"), lambda _: lambda given: given),
    **dict.fromkeys(("claims", "resourceClaims"), lambda _: lambda given: [{} for _ in given]),
    **dict.fromkeys(_LABEL_KEYS, lambda obj: lambda given: [obj._new.key(key) for key in given]),
    **dict.fromkeys(("tierName", "highestTierName"), lambda obj: lambda given: obj._new.of("tiers", given)),
    **dict.fromkeys(("nodeGroupAffinity", "nodeGroupAntiAffinity"), lambda obj: obj._groups),
    "taints": lambda obj: obj._taint,
    "nodeSelector": lambda obj: obj._labels if obj._kind == "Pod" else None,
    "matchLabels": lambda obj: obj._labels,
    "topologyKey": lambda obj: obj._new.key,
    "namespaces": lambda obj: lambda given: [obj._new.namespace(name) for name in given],
    "claimName": lambda obj: obj._claim,
    "volumeHandle": lambda obj: lambda given: obj._new.of("volumes", given),
    "ephemeral": lambda _: lambda _given: {"volumeClaimTemplate": {}},
    "workloadRef": lambda _: lambda given: {"name": "workload"} if given else given,
    "minTaskMember": _role_minima,
    "exactMatch": lambda obj: lambda given: {"name": obj._new.cluster(given.get("name", ""))},
    "image": lambda obj: lambda given: obj._new.of("images", _tagged(given)) if given else "",
    "names": lambda obj: obj._images,
    "volumes": lambda obj: lambda given: [_volume(obj, volume) for volume in given],
}
"""Field → how its value is redacted, for fields that need more than the general rules."""


def _volume(obj: ObjectRedaction, given: Any) -> Any:
    rest = {key: obj._field(key, value) for key, value in given.items() if key != "name"}
    return {"name": obj._new.of("volumes", given["name"]), **rest}
