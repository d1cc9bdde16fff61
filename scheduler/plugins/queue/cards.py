"""Read the card (accelerator) models of nodes from labels, and the requests for cards from pods, jobs and queues.

Semantics: Volcano's capacity-card.

A card model is named by a node label (`nvidia.com/gpu.product`), also where cards are shared or partitioned. A name
that no node has is an error of the object that uses the name, never a new card.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ...model.names import CARD_NAME
from ...model.nodes import NodeInfo
from ...model.resources import Resource, amount_of
from ...model.task import Task

EITHER = "|"
"""The separator between the models that a pod accepts, the preferred first.

Such a pod counts in a dimension with this separator (`A|B`) until it has a node.
"""

_MAX_CARDS = 10**9
"""The largest valid count in an annotation."""

_PRODUCT = re.compile(r"(.+?/\w+)\.product")
_MIG = "nvidia.com/mig-"
_SHARED = "nvidia.com/gpu.shared"
_REPLICAS = "nvidia.com/gpu.replicas"


class CardError(ValueError):
    """A request for cards that is malformed or ambiguous, or that names a card that no node or container has."""


@dataclass(slots=True)
class Catalog:
    """The cards of a cluster: the resource name of each card, and how many each node has, in millis."""

    resource_of: dict[str, str] = field(default_factory=dict)
    on_node: dict[str, dict[str, int]] = field(default_factory=dict)

    def models_of(self, resource: str) -> list[str]:
        """Return the cards that are requested by a resource name."""
        return sorted(card for card, name in self.resource_of.items() if name == resource)

    def accepted(self, task: Task) -> dict[str, int]:
        """Return the cards that a task accepts, the preferred first, with counts in millis; empty if it requests none.

        A pod that requests a card's resource without naming a card accepts the only model with that resource.

        Raises:
            CardError: several models have the resource, a named model does not exist, or no container requests it.
        """
        names = named(task)
        for name in names:
            if name not in self.resource_of:
                raise CardError(f"no node has the card {name} that annotation {CARD_NAME} names")
        if not names:
            requested = sorted(
                {name for name, amount in task.request.items() if amount > 0} & set(self.resource_of.values())
            )
            names = self.models_of(requested[0]) if requested else []
            if len(names) > 1:
                models = " and ".join(names)
                raise CardError(
                    f"it requests {requested[0]}, which {models} provide; name one in annotation {CARD_NAME}"
                )
        counted = {name: task.request.get(self.resource_of[name], 0) for name in names}
        found = {name: count for name, count in counted.items() if count > 0}
        if names and not found:
            missing = self.resource_of[names[0]]
            raise CardError(f"annotation {CARD_NAME} names the card {names[0]}, but no container requests {missing}")
        return found

    def held(self, task: Task) -> dict[str, int]:
        """Return the card that a placed task holds, with its count in millis; empty if its node has no such card.

        It is the first of the task's named cards that the node has; without a name, the card whose resource the task
        requests.
        """
        on_node = self.on_node.get(task.node, {})
        for name in [name for name in named(task) if name in on_node] or sorted(on_node):
            if (count := task.request.get(self.resource_of[name], 0)) > 0:
                return {name: count}
        return {}

    def on(self, node: str, names: Iterable[str]) -> str | None:
        """Return the first of the named cards that a node has; None if it has none of them."""
        on_node = self.on_node.get(node, {})
        return next((name for name in names if name in on_node), None)


def named(task: Task) -> list[str]:
    """Return the models that a task accepts by its annotation, the preferred first."""
    text = (task.pod.metadata.annotations or {}).get(CARD_NAME, "")
    return list(dict.fromkeys(name.strip() for name in text.split(EITHER) if name.strip()))


def discover(nodes: Iterable[NodeInfo]) -> Catalog:
    """Return the catalog of a cluster."""
    catalog = Catalog()
    for node in nodes:
        cards = dict(cards_of(node))
        if cards:
            catalog.on_node[node.name] = {card: amount for card, (_, amount) in cards.items()}
            for card, (resource, _) in cards.items():
                catalog.resource_of.setdefault(card, resource)
    return catalog


def cards_of(node: NodeInfo) -> Iterable[tuple[str, tuple[str, int]]]:
    """Yield a node's cards with their resource names and amounts.

    A node has one product; its cards are whole, shared (MPS) or partitioned (MIG).
    """
    labels = node.labels
    keys = (key for key in sorted(labels) if key.endswith(".product") and _MIG not in key and _PRODUCT.fullmatch(key))
    label = next(keys, None)
    if label is None or not labels[label]:
        return
    product, prefix = labels[label], label.removesuffix(".product")
    for resource, amount in node.allocatable.items():
        if amount <= 0:
            continue
        if resource.startswith(_MIG):
            yield f"{product}/mig-{resource.removeprefix(_MIG)}-mixed", (resource, amount)
        elif resource == _SHARED:
            replicas, memory = _number(labels.get(_REPLICAS)), _number(labels.get(f"{prefix}.memory"))
            if replicas > 0:
                yield f"{product}/mps-{round(memory / 1024)}g*1/{replicas}", (resource, amount)
        elif resource.startswith(prefix) and not resource.startswith(f"{prefix}."):
            yield product, (resource, amount)


def counts(annotations: Mapping[str, str], key: str) -> Resource:
    """Return the cards in an annotation (`{"NVIDIA-A100": 8}`), in millis; empty if the annotation is absent.

    Raises:
        CardError: the annotation is no JSON object of non-negative numbers.
    """
    text = annotations.get(key, "")
    if not text:
        return {}
    try:
        amounts = json.loads(text)
    except (ValueError, RecursionError):
        amounts = None
    if not isinstance(amounts, dict) or not all(_is_count(number) for number in amounts.values()):
        raise CardError(f'annotation {key} must be like {{"NVIDIA-A100": 8}}, not {text[:80]}')
    return {card.strip(): amount_of(number, 1000) for card, number in amounts.items()}


def _is_count(number: object) -> bool:
    return isinstance(number, int | float) and not isinstance(number, bool) and 0 <= number <= _MAX_CARDS


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else 0
