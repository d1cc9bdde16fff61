"""The cards that nodes announce, and the cards of bound pods, in the formats of the device plugins.

Volcano's device plugin writes the number of a node's cards and the sum of their memory to `status.capacity`; a card's
name is its index. The vGPU device plugin lists a node's cards in an annotation:
`UUID,split,MiB,model,health,mode:UUID,…:`. The annotations of a bound pod, written with the bind, name its cards.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence

import msgspec

from . import resources
from .card_demand import GPU_MEMORY, GPU_NUMBER, VGPU_MEMORY, CardDemand, Scheme
from .objects import Node
from .resources import QuantityError, amount_of

REGISTER = "volcano.sh/node-vgpu-register"
UNHEALTHY = "volcano.sh/gpu-unhealthy-ids"
GPU_INDEX, GPU_TIME = "volcano.sh/gpu-index", "volcano.sh/predicate-time"
VGPU_IDS, VGPU_TO_ALLOCATE = "volcano.sh/vgpu-ids-new", "volcano.sh/devices-to-allocate"
VGPU_NODE, VGPU_TIME = "volcano.sh/vgpu-node", "volcano.sh/vgpu-time"
BIND_TIME, BIND_PHASE = "volcano.sh/bind-time", "volcano.sh/bind-phase"
KIND = "NVIDIA"
"""A substring of every usable card's model, and the kind that the device plugin expects in a pod's annotation."""
MAX_CARDS = 256
"""Maximum number of cards of a node, and of shares of a pod; further ones do not count."""
MAX_LIST = 12 * 1024
"""Maximum characters of a pod's list of cards. A longer list counts as unreadable: any tenant may write one."""
_SHORT_LIST = 1024
_WHOLE = re.compile(r"[0-9]{1,12}")
"""A number in an annotation. A longer one counts as unreadable: any tenant may write one."""
MAX_SHARES = 2**31
"""The split of a card whose number of pods is limited by its memory alone."""


class Card(msgspec.Struct, frozen=True):
    """A card of a node: its name, its memory in MiB, and how many shares it may be split into.

    `is_usable`: the card is healthy, and is shared by memory and cores (not as MIG instances).
    """

    name: str
    memory: int
    split: int = MAX_SHARES
    model: str = KIND
    is_usable: bool = True


class Share(msgspec.Struct, frozen=True):
    """A part of one card: MiB of its memory and percent of its cores."""

    card: str
    memory: int
    cores: int = 0


Shares = tuple[tuple[Share, ...], ...]
"""The cards of a pod, by the parts of its demand."""


def cards_of(node: Node, scheme: Scheme) -> tuple[Card, ...]:
    """Return the cards that a node announces for a scheme, in the order of their indexes."""
    annotations = node.metadata.annotations or {}
    if scheme == "vgpu":
        return _registered(annotations.get(REGISTER, ""))
    capacity = node.status.capacity or node.status.allocatable or {}
    try:
        memory, number = (amount_of(capacity.get(name, 0), 1) for name in (GPU_MEMORY, GPU_NUMBER))
    except QuantityError:
        return ()
    bad = {part.strip() for part in annotations.get(UNHEALTHY, "").split(",")}
    return tuple(
        Card(str(index), memory // number, is_usable=str(index) not in bad) for index in range(min(number, MAX_CARDS))
    )


def smallest_card(node: Node) -> int:
    """Return the memory of a node's smallest virtual GPU, in the unit of its resource; 0 without one.

    The unit is MiB unless the device plugin is configured with a larger one, so that the node's amount is smaller.
    """
    cards = [card for card in cards_of(node, "vgpu") if card.is_usable]
    total = resources.parse(node.status.allocatable).get(VGPU_MEMORY, 0)
    return min(total // len(cards), *(card.memory * 1000 for card in cards)) if cards else 0


@functools.lru_cache(maxsize=4096)
def _registered(text: str) -> tuple[Card, ...]:
    """Parse the annotation of the vGPU device plugin; a list with an unreadable or repeated card announces no cards."""
    found: dict[str, Card] = {}
    for entry in text.split(":") if ":" in text else ():
        if "," not in entry:
            continue
        fields = entry.split(",")
        if len(fields) < 6 or not (_WHOLE.fullmatch(fields[1]) and _WHOLE.fullmatch(fields[2])) or fields[0] in found:
            return ()
        name, split, memory, model, health, mode = fields[:6]
        is_usable = health.lower() in ("true", "1", "t") and mode != "mig" and KIND in model
        found[name] = Card(name, int(memory), int(split), model, is_usable)
    return tuple(found.values())[:MAX_CARDS]


def written(demand: CardDemand, shares: Shares, node: str, now: float) -> dict[str, str]:
    """Return the annotations from which the device plugin reads the cards of a pod that is bound at the time `now`."""
    if demand.scheme != "vgpu":
        indexes = ",".join(share.card for part in shares for share in part)
        return {GPU_INDEX: indexes, GPU_TIME: str(int(now * 1e9))}
    # One entry for each container, also for those without cards: the device plugin finds a container by its position.
    ids = ";".join("".join(f"{share.card},{KIND},{share.memory},{share.cores}:" for share in part) for part in shares)
    return {
        VGPU_IDS: ids,
        VGPU_TO_ALLOCATE: ids,
        VGPU_NODE: node,
        VGPU_TIME: str(int(now)),
        BIND_TIME: str(int(now)),
        BIND_PHASE: "allocating",
    }


def shares_of(annotations: Mapping[str, str], demand: CardDemand, cards: Sequence[Card]) -> tuple[Share, ...]:
    """Return the cards that the annotations of a bound pod name; `cards` are the cards of its node."""
    if demand.scheme == "vgpu":
        text = annotations.get(VGPU_IDS, "")
        return _short_list(text) if len(text) <= _SHORT_LIST else _long_list(text) if len(text) <= MAX_LIST else ()
    named = {part.strip() for part in annotations.get(GPU_INDEX, "").split(",")}
    part = demand.parts[0]
    memory = {card.name: part.memory if demand.scheme == "memory" else card.memory for card in cards}
    return tuple(Share(card.name, memory[card.name]) for card in cards if card.name in named)


def _shares_read(text: str) -> tuple[Share, ...]:
    entries = (entry.split(",") for entry in text.replace(";", ":").split(":"))
    found = (
        entry for entry in entries if len(entry) >= 4 and _WHOLE.fullmatch(entry[2]) and _WHOLE.fullmatch(entry[3])
    )
    return tuple(
        Share(entry[0], int(entry[2]), int(entry[3])) for _, entry in zip(range(MAX_CARDS), found, strict=False)
    )


# These caches keep lists after their pods are deleted, so they keep only a few long lists.
_short_list = functools.lru_cache(maxsize=4096)(_shares_read)
_long_list = functools.lru_cache(maxsize=256)(_shares_read)
