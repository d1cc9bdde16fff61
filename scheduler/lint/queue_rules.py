"""Report Queues that are legal but almost certainly wrong under a policy.

A rule checks all queues of a manifest together. Sums are compared with the parent's amounts, or with the nodes if the
manifest has any.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import NamedTuple

from ..framework.plugin import PLUGINS as CLASSES
from ..model import resources
from ..model.names import CARD_QUOTA, CLOSED_BY_PARENT, NAMESPACES, NODE_GROUP_LIMITS
from ..model.queue import DEFAULT, ROOT, Queue
from ..model.resources import Resource, render_amount
from ..plugins.nodegroup import GroupRules
from ..plugins.queue.cards import CardError, counts
from ..policy.model import Policy
from ..policy.schema import PLUGINS
from .objects import LintFinding, Manifest
from .resource_rules import unknown_amounts

_DOMAINS = ("volcano.sh", "scheduling.volcano.sh", "schedspec.dev")
_READ_ANNOTATIONS = (CARD_QUOTA, NODE_GROUP_LIMITS, NAMESPACES, CLOSED_BY_PARENT)
"""The annotations of a Queue that plugins and controllers read."""
_INSTEAD = {
    "volcano.sh/hierarchy": "write spec.parent, under capacity with enableHierarchy: true",
    "volcano.sh/hierarchy-weights": "write spec.deserved, under capacity with enableHierarchy: true",
    "volcano.sh/dequeue-strategy": "remove it: a later job may start before one that cannot",
}
Found = Iterator[tuple[str, str, str, str]]
"""Queue, field, text, remedy."""


class Setting(NamedTuple):
    """One setting of a queue: where it stands, whether a queue has it, and what is true where nothing reads it."""

    field: str
    is_set: Callable[[Queue], object]
    text: str
    remedy: str


SETTINGS: Mapping[str, Setting] = {
    "parent": Setting(
        "spec.parent",
        lambda queue: queue.parent not in ("", ROOT),
        "has no effect: this policy treats all queues as siblings",
        "use capacity with enableHierarchy: true, or remove parent",
    ),
    "weight": Setting(
        "spec.weight",
        lambda queue: queue.weight != 1,
        "has no effect: only proportion divides the cluster by weight",
        "set deserved, or use proportion",
    ),
    "deserved": Setting(
        "spec.deserved",
        lambda queue: queue.deserved,
        "has no effect: no plugin of this policy reads it (proportion divides by weight)",
        "use capacity, or set weight under proportion",
    ),
    "capability": Setting(
        "spec.capability",
        lambda queue: queue.capability,
        "has no effect: no plugin of this policy limits queues",
        "use capacity or proportion, or remove capability",
    ),
    "guarantee": Setting(
        "spec.guarantee",
        lambda queue: queue.guarantee,
        "has no effect: no plugin of this policy keeps guarantees",
        "use capacity or proportion, or remove guarantee",
    ),
    "priority": Setting(
        "spec.priority",
        lambda queue: queue.priority,
        "has no effect: no plugin of this policy orders queues",
        "use capacity or proportion with enableQueueOrder on, or remove priority",
    ),
    "reclaimable": Setting(
        "spec.reclaimable",
        lambda queue: not queue.reclaimable and queue.name != ROOT,
        "has no effect: this policy does not run the action reclaim",
        "add reclaim to actions, or remove reclaimable",
    ),
    "card quota": Setting(
        f"metadata.annotations.{CARD_QUOTA}",
        lambda queue: CARD_QUOTA in queue.annotations,
        "has no effect: only capacity-card counts cards by model",
        "use capacity-card, or write deserved and capability in gpus",
    ),
    "affinity": Setting(
        "spec.affinity",
        lambda queue: queue.object.spec.affinity is not None,
        "needs the plugin nodegroup, which the policy does not name: no job of the queue is scheduled",
        "add nodegroup, or remove the field",
    ),
    **{
        f"pods of {name}": Setting(
            f"spec.{field}.{resources.PODS}",
            lambda queue, name=name: resources.PODS in getattr(queue, name),  # type: ignore[misc]
            "has no effect: no plugin counts the pods of a queue",
            "name cpu, memory or a device that each pod requests",
        )
        for name, field in (
            ("deserved", "deserved"),
            ("capability", "capability"),
            ("guarantee", "guarantee.resource"),
        )
    },
}
"""The settings of a queue, by the name of their column in tables."""


def unread(policy: Policy) -> Mapping[str, Setting]:
    """Return the settings of queues that nothing in the policy reads."""
    options = [option for tier in policy.tiers for option in tier]
    read = {field for option in options for field in CLASSES[option.name].fields_read(option)}
    read |= {"reclaimable"} if "reclaim" in policy.actions else set()
    return {name: setting for name, setting in SETTINGS.items() if name not in read}


def queue_findings(manifest: Manifest, policy: Policy | None) -> list[LintFinding]:
    """Return the findings on queues. Without a readable policy, rules about plugins are skipped."""
    rules: list[Callable[[Manifest], Found]] = [_order_of_amounts, unknown_amounts, _circles, _annotations]
    if policy is not None:
        plugin = next((name for name, rule in PLUGINS.items() if rule.decides_queues and policy.plugin(name)), "")
        option = policy.plugin(plugin)
        tree = plugin == "capacity" and option is not None and option.enabled("enableHierarchy")
        own = {"capacity": [_deserved], "proportion": [_guarantees], "capacity-card": [_cards]}
        rules += [functools.partial(_unread, unread(policy)), *own.get(plugin, [])]
        rules += [_tree, _sums_in_tree] if tree else []
        rules += [_sums] if plugin == "capacity" and not tree else []
        rules += [_groups] if policy.plugin("nodegroup") else []
        rules += [_zero_capabilities] if plugin in ("capacity", "proportion") else []
        rules += [_none_reclaimable] if "reclaim" in policy.actions else []
    found = [
        LintFinding(*_place(manifest, name, field), f"Queue {name}.{field}", text, remedy, is_error=rule is _circles)
        for rule in rules
        for name, field, text, remedy in rule(manifest)
    ]
    return sorted(found, key=lambda finding: (finding.source, finding.line))


def _place(manifest: Manifest, name: str, field: str) -> tuple[str, int]:
    """Return the file and the line of a queue's field."""
    source, document = manifest.places[name]
    head, is_annotation, key = field.partition("metadata.annotations.")
    return source, document.line_of(("metadata", "annotations", key) if is_annotation else head.split("."))


def _order_of_amounts(manifest: Manifest) -> Found:
    for name, queue in manifest.queues.items():
        amounts = (("guarantee", queue.guarantee), ("deserved", queue.deserved), ("capability", queue.capability))
        for (low, small), (high, large) in itertools.combinations(amounts, 2):
            for dimension, amount in small.items():
                if dimension in large and amount > large[dimension]:
                    text = f"{_show(dimension, amount)} is more than its {high}, {_show(dimension, large[dimension])}"
                    yield name, f"spec.{low}", text, f"keep {low} at or below {high}"


def _annotations(manifest: Manifest) -> Found:
    """Report annotations of Volcano that no scheduler, or no version of Volcano any more, reads."""
    for name, queue in manifest.queues.items():
        for key in sorted(queue.annotations):
            domain = key.partition("/")[0]
            if domain in _DOMAINS and key not in _READ_ANNOTATIONS:
                near = get_close_matches(key, _READ_ANNOTATIONS, n=1, cutoff=0.8)
                remedy = f"did you mean {near[0]}?" if near else _INSTEAD.get(key, "remove it")
                yield name, f"metadata.annotations.{key}", "nothing reads this annotation", remedy


def _zero_capabilities(manifest: Manifest) -> Found:
    """Report capabilities of zero, which limit nothing, as in the plugins capacity and proportion of Volcano."""
    for name, queue in manifest.queues.items():
        for dimension in (resources.CPU, resources.MEMORY):
            if queue.capability.get(dimension) == 0:
                text = f"{dimension} 0 counts as not set"
                yield name, "spec.capability", text, f"close the queue, or set more {dimension}"


def _deserved(manifest: Manifest) -> Found:
    parents = {queue.parent for queue in manifest.queues.values()}
    for name, queue in manifest.queues.items():
        if name != ROOT and name not in parents and resources.is_empty(queue.deserved) and not queue.guarantee:
            text = "deserves nothing: all its pods can be reclaimed at any time, and it reclaims none"
            yield name, "spec.deserved", text, "set deserved, unless the queue may lose all of its pods"
        elif name not in parents and queue.deserved and not queue.deserved.keys() & {resources.CPU, resources.MEMORY}:
            text = "names neither cpu nor memory: its pods that request only these can be reclaimed at any time"
            yield name, "spec.deserved", text, "add cpu and memory"


def _unread(settings: Mapping[str, Setting], manifest: Manifest) -> Found:
    for name, queue in manifest.queues.items():
        for setting in settings.values():
            if setting.is_set(queue):
                yield name, setting.field, setting.text, setting.remedy


def _none_reclaimable(manifest: Manifest) -> Found:
    names = [name for name in manifest.queues if name != ROOT]
    if names and not any(manifest.queues[name].reclaimable for name in names):
        text = "no queue here is reclaimable: the policy's reclaim never finds a victim"
        yield names[-1], "spec.reclaimable", text, "leave it true for queues that may lend, or remove reclaim"


def _cards(manifest: Manifest) -> Found:
    for name, queue in manifest.queues.items():
        try:
            quota = counts(queue.annotations, CARD_QUOTA)
        except CardError as error:
            yield name, f"metadata.annotations.{CARD_QUOTA}", str(error), "write JSON"
            continue
        if not quota and name != ROOT:
            text = "names no card: under capacity-card its pods get none"
            yield name, f"metadata.annotations.{CARD_QUOTA}", text, 'write for example {"NVIDIA-A100": 8}'
        for field, amounts in (("capability", queue.capability), ("deserved", queue.deserved)):
            for dimension in sorted(amounts.keys() - {resources.CPU, resources.MEMORY, resources.PODS}):
                text = f"{dimension} has no effect under capacity-card: cards are counted by {CARD_QUOTA}"
                yield name, f"spec.{field}", text, "remove it"


def _groups(manifest: Manifest) -> Found:
    """Report contradictions in the node groups of queues."""
    for name, queue in manifest.queues.items():
        rules = GroupRules(queue, queue.object.spec.affinity)
        if rules.problem:
            yield name, "spec.affinity", f"no job of the queue is scheduled: {rules.problem}", "correct it"
        for group in sorted(rules.avoided & rules.excluded):
            text = f"node group {group} is both excluded and avoided: it counts as excluded"
            yield name, "spec.affinity.nodeGroupAntiAffinity", text, "remove it from one list"
        named = {*rules.required, *rules.preferred}
        for group in sorted(rules.avoided - rules.excluded - named) if named else ():
            text = f"node group {group} is avoided, and not among the groups that the queue may use"
            yield name, "spec.affinity.nodeGroupAntiAffinity", text, "name it in nodeGroupAffinity too, or remove it"


def _tree(manifest: Manifest) -> Found:
    queues = manifest.queues
    for name, queue in queues.items():
        if name == ROOT:
            continue
        if queue.parent not in ("", ROOT) and queue.parent not in queues:
            text = f"queue {queue.parent} does not exist: until it does, no job of {name} is scheduled"
            yield name, "spec.parent", text, "create it, or correct the name"
        if queue.parent == DEFAULT:
            text = "default takes no new jobs once it has a child, and jobs that name no queue go to default"
            yield name, "spec.parent", text, "name another parent, or name a queue in every job"
        elif queue.parent != ROOT and (busy := manifest.podgroups.get(queue.parent)):
            text = f"{queue.parent} holds {busy} PodGroups: with a child, it finishes them and takes no new jobs"
            yield name, "spec.parent", text, "submit to its children from now on"
        parent = queues.get(queue.parent or ROOT)
        for dimension, amount in queue.capability.items() if parent else ():
            if amount > parent.capability.get(dimension, amount):  # type: ignore[union-attr]
                text = f"{_show(dimension, amount)} is more than its parent {queue.parent} may have"
                yield name, "spec.capability", text, "keep it at or below the parent's"


def _circles(manifest: Manifest) -> Found:
    for name, queue in manifest.queues.items():
        if _is_own_ancestor(queue, manifest.queues):
            yield (
                name,
                "spec.parent",
                "the queue is its own ancestor: none of its jobs is scheduled",
                "break the circle",
            )


def _is_own_ancestor(queue: Queue, queues: dict[str, Queue]) -> bool:
    seen, at = set(), queue.parent
    while at in queues and at not in seen:
        if at == queue.name:
            return True
        seen.add(at)
        at = queues[at].parent
    return False


def _sums(manifest: Manifest) -> Found:
    if manifest.total is not None:
        yield from _excess(list(manifest.queues.values()), manifest.total, "the nodes have")


def _guarantees(manifest: Manifest) -> Found:
    if manifest.total is not None:
        yield from _excess(list(manifest.queues.values()), manifest.total, "the nodes have", ("guarantee",))


def _sums_in_tree(manifest: Manifest) -> Found:
    for name in {queue.parent or ROOT for queue in manifest.queues.values() if queue.name != ROOT}:
        children = [q for q in manifest.queues.values() if q.name != ROOT and (q.parent or ROOT) == name]
        parent = manifest.queues.get(name)
        deserved = parent.deserved if parent is not None else {}
        if name == ROOT and not deserved and manifest.total is not None:
            yield from _excess(children, manifest.total, "the nodes have")
        elif deserved:
            yield from _excess(children, deserved, f"their parent {name} deserves")


def _excess(
    queues: list[Queue], limit: Resource, limit_text: str, fields: tuple[str, ...] = ("deserved", "guarantee")
) -> Found:
    for field in fields:
        total = resources.total_of(getattr(queue, field) for queue in queues)
        for dimension, amount in total.items():
            if dimension != resources.PODS and amount > limit.get(dimension, 0):
                names = ", ".join(sorted(queue.name for queue in queues if getattr(queue, field).get(dimension)))
                last = max((q.name for q in queues if getattr(q, field).get(dimension)), default=queues[0].name)
                text = (
                    f"{names}: {_show(dimension, amount)} of {field} together, {limit_text} "
                    f"{_show(dimension, limit.get(dimension, 0))}"
                )
                yield last, f"spec.{field}", text, "keep the sum at or below that: only then all queues can get theirs"


def _show(dimension: str, amount: int) -> str:
    return f"{render_amount(dimension, amount)} {dimension}"
