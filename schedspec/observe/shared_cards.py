"""Read the shared cards of a pod and of a node from the annotations that schedulers and device plugins use.

Monitors and checks read the annotations by themselves, because the scheduler's own reading is under test.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from kubernetes.utils.quantity import parse_quantity

from ..api.kinds import GPU_MEMORY, GPU_NUMBER, VGPU_MEMORY, VGPU_NUMBER
from .history import Object

_INDEX, _IDS, _REGISTER = "volcano.sh/gpu-index", "volcano.sh/vgpu-ids-new", "volcano.sh/node-vgpu-register"
_WHOLE = re.compile(r"[0-9]{1,12}")


class CardPart(NamedTuple):
    """A part of a card: MiB of its memory, percent of its cores; if `whole`, all of its memory."""

    card: str
    memory: int = 0
    cores: int = 0
    whole: bool = False


class Card(NamedTuple):
    """A card of a node: MiB of memory, and the maximum number of parts."""

    memory: int
    parts: int


def parts_of(pod: Object) -> list[CardPart]:
    """Return the parts of cards that the annotations of a pod name."""
    annotations = pod["metadata"].get("annotations") or {}
    if _INDEX in annotations:
        memory, whole = _sum(pod, GPU_MEMORY), bool(_sum(pod, GPU_NUMBER))
        return [CardPart(index.strip(), memory, whole=whole) for index in str(annotations[_INDEX]).split(",")]
    entries = str(annotations.get(_IDS, "")).replace(";", ":").split(":")
    fields = (entry.split(",") for entry in entries if entry.count(",") == 3)
    return [
        CardPart(part[0], int(part[2]), int(part[3]))
        for part in fields
        if _WHOLE.fullmatch(part[2]) and _WHOLE.fullmatch(part[3])
    ]


def cards_requested(pod: Object) -> int:
    """Return how many parts of cards the pod requests; 0 for a pod without shared cards."""
    if number := _sum(pod, GPU_NUMBER) or min(_sum(pod, GPU_MEMORY), 1):
        return number
    limits = [_limits(container) for container in pod["spec"].get("containers", ())]
    return sum(_whole(limit.get(VGPU_NUMBER, 1 if VGPU_MEMORY in limit else 0)) for limit in limits)


def cards_of(node: Object) -> dict[str, Card]:
    """Return the cards of a node by name."""
    register = str((node["metadata"].get("annotations") or {}).get(_REGISTER, ""))
    entries = [entry.split(",") for entry in register.split(":") if entry.count(",") >= 5]
    readable = (card for card in entries if _WHOLE.fullmatch(card[1]) and _WHOLE.fullmatch(card[2]))
    found = {card[0]: Card(int(card[2]), int(card[1])) for card in readable}
    if found:
        return found
    has = node.get("status", {}).get("capacity") or node.get("status", {}).get("allocatable") or {}
    number = _whole(has.get(GPU_NUMBER, 0))
    memory = _whole(has.get(GPU_MEMORY, 0)) // number if number else 0
    return {str(index): Card(memory, memory) for index in range(number)}


def _sum(pod: Object, name: str) -> int:
    return sum(_whole(_limits(container).get(name, 0)) for container in pod["spec"].get("containers", ()))


def _whole(amount: object) -> int:
    """Return a whole amount; the API server writes 24000 as `24k`."""
    return int(parse_quantity(amount))  # type: ignore[no-untyped-call]


def _limits(container: Object) -> dict[str, str]:
    given = container.get("resources") or {}
    return {**(given.get("requests") or {}), **(given.get("limits") or {})}
