"""Shared cards that a pod requests: parts of cards by memory, whole cards, or virtual GPUs (Volcano's `deviceshare`).

`volcano.sh/gpu-memory` requests a part of one card, `volcano.sh/gpu-number` whole cards, and both count init containers
as every resource does. With `volcano.sh/vgpu-number`, each container requests cards of its own, and `vgpu-memory` MiB
and `vgpu-cores` percent of each card. All amounts of memory are in MiB.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from .objects import Container, Pod
from .resources import Resource, amount_of

GPU_MEMORY = "volcano.sh/gpu-memory"
GPU_NUMBER = "volcano.sh/gpu-number"
VGPU_NUMBER = "volcano.sh/vgpu-number"
VGPU_MEMORY = "volcano.sh/vgpu-memory"
VGPU_CORES = "volcano.sh/vgpu-cores"
VGPU_PERCENT = "volcano.sh/vgpu-memory-percentage"
CARD_RESOURCES = frozenset({GPU_MEMORY, GPU_NUMBER, VGPU_NUMBER, VGPU_MEMORY, VGPU_CORES})
_VGPU = frozenset({VGPU_NUMBER, VGPU_MEMORY, VGPU_CORES, VGPU_PERCENT})

USE_TYPE, AVOID_TYPE = "nvidia.com/use-gputype", "nvidia.com/nouse-gputype"
USE_CARD, AVOID_CARD = "volcano.sh/vgpu-use-gpuuuid", "volcano.sh/vgpu-nouse-gpuuuid"
MODE, APART = "volcano.sh/vgpu-mode", "volcano.sh/vgpu-podgroup-policy"
ALL_CORES = 100
_ONE, _WHOLE = 1000, 100_000
"""One card, and 100 percent, in the units of `scheduler.model.resources`."""

Scheme = Literal["memory", "number", "vgpu"]


class CardPart(msgspec.Struct, frozen=True):
    """Equal cards that one container requests, or the whole pod unless the scheme is `vgpu`.

    `percent` is a share of the card's memory and replaces `memory` unless it is 0; `cores` is in percent of a card.
    """

    cards: int = 0
    memory: int = 0
    percent: int = 0
    cores: int = 0

    def memory_of(self, whole: int) -> int:
        """Return the memory that the part uses of a card with `whole` memory."""
        return whole * self.percent // 100 if self.percent else self.memory


class CardDemand(msgspec.Struct, frozen=True):
    """A pod's request for shared cards, and the cards that it permits.

    Attributes:
        parts: One for each container, also for containers without a card; exactly one unless the scheme is `vgpu`.
        types: Substrings of a card's model, in capitals, of which one has to match; empty permits all cards.
        uuids: The only permitted cards; empty permits all cards.
        apart: Whether pods of the same PodGroup must not share a card.
        problem: Why no node can satisfy the request; empty if a node can.
    """

    scheme: Scheme
    parts: tuple[CardPart, ...]
    types: tuple[str, ...] = ()
    not_types: tuple[str, ...] = ()
    uuids: tuple[str, ...] = ()
    not_uuids: tuple[str, ...] = ()
    apart: bool = False
    problem: str = ""

    @property
    def is_in_percent(self) -> bool:
        """Whether a part requests a share of a card's memory, or all of it."""
        return any(part.percent for part in self.parts)

    @property
    def largest(self) -> CardPart:
        """Return the part that requests the most of a card."""
        return max(self.parts, key=lambda part: (part.cards > 0, part.percent, part.memory, part.cores))

    def permits(self, card: str, model: str) -> bool:
        """Whether the pod's annotations permit a card."""
        if card in self.not_uuids or (self.uuids and card not in self.uuids):
            return False
        model = model.upper()
        if self.types:
            return any(part in model for part in self.types)
        return not any(part in model for part in self.not_types)


def demand_of(pod: Pod) -> CardDemand | None:
    """Return a pod's request; None if it requests no shared card."""
    init = pod.spec.init_containers or []
    if not any(any(_amounts(container).values()) for container in (*pod.spec.containers, *init)):
        return None
    parts = tuple(map(_vgpu_part, pod.spec.containers))
    memory, number = (_whole_pod(pod.spec.containers, init, name) for name in (GPU_MEMORY, GPU_NUMBER))
    shared = [name for name, wanted in ((GPU_MEMORY, memory), (GPU_NUMBER, number)) if wanted]
    if any(part.cards for part in parts) or not shared:
        for_init = any(not _VGPU.isdisjoint(_amounts(container)) for container in init)
        return _vgpu_demand(pod, parts, _problem(shared, parts, for_init=for_init))
    if memory and number:
        return CardDemand("memory", (CardPart(1, memory),), problem=f"requests both {GPU_MEMORY} and {GPU_NUMBER}")
    return CardDemand("memory", (CardPart(1, memory),)) if memory else CardDemand("number", (CardPart(number),))


def counted(amounts: Resource, card_memory: int = 0) -> Resource:
    """Return the amounts of a container, with memory and cores multiplied by the number of its virtual GPUs.

    A share in percent, or a card without an amount of memory, counts as a part of `card_memory`, unless that is 0.
    """
    if _VGPU.isdisjoint(amounts):
        return amounts
    cards = amounts.get(VGPU_NUMBER, _ONE if amounts.get(VGPU_MEMORY) else 0)
    of_card = {name: amounts[name] for name in (VGPU_MEMORY, VGPU_CORES) if name in amounts}
    percent = amounts.get(VGPU_PERCENT, 0) or (0 if amounts.get(VGPU_MEMORY) else _WHOLE)
    if cards and card_memory and percent:
        of_card[VGPU_MEMORY] = card_memory * percent // _WHOLE
    of_cards = {name: amount * cards // _ONE for name, amount in of_card.items()}
    others = {name: amount for name, amount in amounts.items() if name != VGPU_PERCENT}
    return {**others, VGPU_NUMBER: cards, **of_cards}


def _vgpu_demand(pod: Pod, parts: tuple[CardPart, ...], problem: str) -> CardDemand:
    annotations = pod.metadata.annotations or {}
    use = _listed(annotations.get(USE_TYPE, "").upper())
    mode = annotations.get(MODE) or "hami-core"
    if mode != "hami-core":
        problem = problem or f"annotation {MODE} is {mode}: only hami-core is supported"
    return CardDemand(
        "vgpu",
        parts,
        types=use,
        not_types=() if use else _listed(annotations.get(AVOID_TYPE, "").upper()),
        uuids=_listed(annotations.get(USE_CARD, "")),
        not_uuids=_listed(annotations.get(AVOID_CARD, "")),
        apart=annotations.get(APART) == "spread",
        problem=problem,
    )


def _problem(shared: list[str], parts: tuple[CardPart, ...], *, for_init: bool) -> str:
    if shared:
        return f"requests both {shared[0]} and {VGPU_NUMBER}: no device plugin offers both"
    if for_init:
        return f"an init container requests {VGPU_NUMBER}, which device plugins support only in containers"
    if not any(part.cards for part in parts):
        return f"requests {VGPU_CORES} without {VGPU_NUMBER}"
    if any(part.cores > ALL_CORES for part in parts):
        return f"requests more than {ALL_CORES} {VGPU_CORES}, which are percent of one card"
    return f"requests more than 100 {VGPU_PERCENT}" if any(part.percent > 100 for part in parts) else ""


def _vgpu_part(container: Container) -> CardPart:
    amounts = _amounts(container)
    memory, percent = amounts.get(VGPU_MEMORY, 0), amounts.get(VGPU_PERCENT, 0)
    cards = amounts.get(VGPU_NUMBER, 1 if memory else 0)
    if not cards:
        return CardPart()
    if not percent and not memory:
        percent = 100
    return CardPart(cards, 0 if percent else memory, percent, amounts.get(VGPU_CORES, 0))


def _whole_pod(containers: Iterable[Container], init: Iterable[Container], name: str) -> int:
    """Return the sum of the containers' requests, or the request of the largest init container if that is more."""
    running = sum(_amounts(container).get(name, 0) for container in containers)
    return max([running, *(_amounts(container).get(name, 0) for container in init)])


def _amounts(container: Container) -> dict[str, int]:
    given = container.resources
    if given is None:
        return {}
    both = {**(given.limits or {}), **(given.requests or {})}
    return {name: amount_of(both[name], 1) for name in (*CARD_RESOURCES, VGPU_PERCENT) if name in both}


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
