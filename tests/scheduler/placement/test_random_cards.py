"""No card is shared beyond its memory, cores and number of parts: random cards, pods and evictions."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from schedspec.observe.shared_cards import CardPart, cards_of, cards_requested, parts_of
from schedspec.scheduler.policy.loader import load_policy
from tests.support.core.world import World

CYCLES = 6
POLICY = """
actions: "enqueue, allocate, backfill, preempt"
tiers:
- plugins:
  - {name: priority}
  - {name: gang, enablePreemptable: %s}
  - {name: predicates}
  - {name: deviceshare, arguments: {%s}}
"""
VGPU, SHARING, NUMBER = (f"deviceshare.{name}Enable" for name in ("VGPU", "GPUSharing", "GPUNumber"))


def policy(rng: random.Random, scheme: str) -> str:
    order = rng.choice(["binpack", "spread", ""])
    more = f", deviceshare.SchedulePolicy: {order}, deviceshare.ScheduleWeight: 5" if order else ""
    return POLICY % (rng.choice(["true", "false"]), f"{scheme}: true{more}")


def node(rng: random.Random, scheme: str, number: int) -> dict[str, Any]:
    """Return a node with one to four cards."""
    cards, memory = rng.randint(1, 4), rng.choice([4000, 8000])
    if scheme != VGPU:
        has = f"64 cpu, {cards * memory} volcano.sh/gpu-memory, {cards} volcano.sh/gpu-number"
        return {"name": f"n{number}", "has": has}
    split = rng.randint(1, 4)
    entries = [f"GPU-{number}-{it},{split},{memory},NVIDIA-A10,true,hami-core:" for it in range(cards)]
    has = f"64 cpu, {cards * split} volcano.sh/vgpu-number, {cards * memory} volcano.sh/vgpu-memory"
    return {
        "name": f"n{number}",
        "has": f"{has}, {cards * 100} volcano.sh/vgpu-cores",
        "annotations": {"volcano.sh/node-vgpu-register": "".join(entries)},
    }


def job(rng: random.Random, scheme: str, name: str, priority: int) -> dict[str, Any]:
    requests = {
        SHARING: f"{rng.randint(1, 8) * 1000} volcano.sh/gpu-memory",
        NUMBER: f"{rng.randint(1, 3)} volcano.sh/gpu-number",
        VGPU: f"{rng.randint(1, 3)} volcano.sh/vgpu-number",
    }[scheme]
    if scheme == VGPU and rng.random() < 0.8:
        requests += f", {rng.randint(1, 8) * 1000} volcano.sh/vgpu-memory"
    if scheme == VGPU and rng.random() < 0.6:
        requests += f", {rng.choice([10, 40, 60, 100])} volcano.sh/vgpu-cores"
    count = rng.randint(1, 3)
    return {"name": name, "priority": priority, "tasks": f"{count} x {requests}", "min": rng.randint(1, count)}


def check_cards(world: World) -> int:
    """Check that pods have the cards that they request and no card is overcommitted; return the number of parts."""
    held: dict[tuple[str, str], list[CardPart]] = {}
    for (kind, key), pod in world.objects.items():
        node = pod["spec"].get("nodeName") if kind == "Pod" else None
        if not node:
            continue
        parts = parts_of(pod)
        assert len(parts) == cards_requested(pod), key
        assert max(Counter(part.card for part in parts).values()) == 1, f"{key} has one card twice"
        for part in parts:
            held.setdefault((node, part.card), []).append(part)
    for (node, name), parts in held.items():
        card = cards_of(world.objects["Node", node])[name]
        assert sum(card.memory if part.whole else part.memory for part in parts) <= card.memory, (node, name, parts)
        assert sum(part.cores for part in parts) <= 100, (node, name, parts)
        assert len(parts) <= card.parts, (node, name, parts)
        assert len(parts) == 1 or not any(part.cores == 100 for part in parts), (node, name, parts)
    return sum(map(len, held.values()))


@pytest.mark.parametrize("seed", range(40))
def test_no_card_is_shared_beyond_its_capacity(seed: int) -> None:
    rng = random.Random(seed)
    scheme = rng.choice([VGPU, SHARING, NUMBER])
    world = World(load_policy(policy(rng, scheme), "random"))
    world.load({"nodes": [node(rng, scheme, it) for it in range(rng.randint(1, 3))], "queues": [{"name": "default"}]})
    parts = 0
    for number in range(CYCLES):
        jobs = [job(rng, scheme, f"c{number}j{it}", rng.randint(1, 5)) for it in range(rng.randint(0, 4))]
        world.load({"jobs": jobs})
        world.now += 30
        world.carry_out(world.cycle(), rng.choice(["leave", "return", "return after 1"]))
        parts += check_cards(world)
        running = [key for (kind, key), pod in world.objects.items() if kind == "Pod" and pod["spec"].get("nodeName")]
        if running and rng.random() < 0.5:
            world.end(rng.choice(running), again=rng.random() < 0.5)
        if rng.random() < 0.2:
            world.restart()
    assert parts
