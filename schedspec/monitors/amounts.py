"""Arithmetic of resource amounts for monitors: exact values (`Decimal`) in cores, bytes and devices, by dimension."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from kubernetes.utils.quantity import parse_quantity as _parse_quantity

from ..api.kinds import GPU, WORLD

NONE = Decimal(0)
Amounts = dict[str, Decimal]
Object = dict[str, Any]


@functools.lru_cache(4096)
def parse_quantity(value: object) -> Decimal:
    return Decimal(_parse_quantity(value))  # type: ignore[no-untyped-call]


def parse(quantities: Mapping[str, Any] | None) -> Amounts:
    return {name: parse_quantity(value) for name, value in (quantities or {}).items()}


def of_world(nodes: Iterable[Object]) -> Amounts:
    """Return the total allocatable amounts of the nodes that the scheduler under test schedules to.

    A scenario marks its nodes, because Kind has others beside them. If none is marked, as in a recording, all count.
    """
    found = list(nodes)
    marked = [node for node in found if WORLD in (node["metadata"].get("labels") or {})]
    return total(parse(node.get("status", {}).get("allocatable")) for node in marked or found)


def of_pod(pod: Object) -> Amounts:
    """Return what a pod occupies: what it requests as a whole, else its containers or a larger init container.

    Side-cars, the overhead and one pod are added.
    """
    spec = pod.get("spec", {})
    running, side_cars, starting = total(map(_request, spec.get("containers", ()))), Amounts(), Amounts()
    for container in spec.get("initContainers", ()):
        needed = total((side_cars, _request(container)))
        if container.get("restartPolicy") == "Always":
            side_cars = needed
        starting = {n: max(starting.get(n, NONE), needed.get(n, NONE)) for n in {**starting, **needed}}
    running = total((running, side_cars))
    most = {n: max(running.get(n, NONE), starting.get(n, NONE)) for n in {**running, **starting}}
    most |= parse((spec.get("resources") or {}).get("requests"))  # those of the pod replace the containers' sum
    return total((most, parse(spec.get("overhead")), {"pods": Decimal(1)}))


def _request(container: Object) -> Amounts:
    given = container.get("resources") or {}
    return {**parse(given.get("limits")), **parse(given.get("requests"))}


def total(parts: Iterable[Mapping[str, Decimal]]) -> Amounts:
    sums: Amounts = {}
    for part in parts:
        for name, amount in part.items():
            sums[name] = sums.get(name, NONE) + amount
    return sums


def minus(amounts: Mapping[str, Decimal], less: Mapping[str, Decimal]) -> Amounts:
    """Return the amounts, each reduced by what `less` has of it."""
    return {name: amount - less.get(name, NONE) for name, amount in amounts.items()}


def at_most(amounts: Mapping[str, Decimal], limits: Mapping[str, Decimal]) -> Amounts:
    """Return the amounts, each reduced to its limit; an amount without a limit becomes 0."""
    return {name: min(amount, limits.get(name, NONE)) for name, amount in amounts.items()}


_BINARY = {"Ei": 2**60, "Pi": 2**50, "Ti": 2**40, "Gi": 2**30, "Mi": 2**20, "Ki": 2**10}


def shown(dimension: str, amount: Decimal | str) -> str:
    """Format an amount exactly, as in the scheduler's reasons: `4`, `500m`, `8Gi`.

    >>> shown("memory", "8589934592"), shown("cpu", "0.5"), shown("nvidia.com/gpu", Decimal("8.0"))
    ('8Gi', '500m', '8')
    """
    number = parse_quantity(str(amount))
    if dimension in ("memory", "ephemeral-storage") or "hugepages" in dimension:
        found = next(((suffix, size) for suffix, size in _BINARY.items() if number and number % size == 0), None)
        return f"{(number / found[1]).normalize():f}{found[0]}" if found else f"{number.normalize():f}"
    milli = number * 1000
    if dimension == "cpu" and milli and (milli % 10 or abs(milli) < 1000):
        return f"{milli.normalize():f}m"
    return f"{number.normalize():f}"


def spoken(dimension: str, amount: Decimal | str | float) -> str:
    """Format an amount with its resource as in features: `8 gpus`, `1 gpu`, `4 cpu`, `8Gi memory`."""
    text = shown(dimension, str(amount))
    if dimension == GPU:
        return f"{text} gpu" if text == "1" else f"{text} gpus"
    return f"{text} {dimension}"


def listed(amounts: Mapping[str, Any] | None) -> str:
    """Format several amounts: `cpu 4, memory 8Gi`, or `nothing`."""
    return ", ".join(f"{name} {shown(name, amount)}" for name, amount in (amounts or {}).items()) or "nothing"


def above(amounts: Mapping[str, Decimal], limits: Mapping[str, Decimal], within: Iterable[str]) -> list[str]:
    """Return the dimensions of `within` in which `amounts` exceeds an existing limit, each as `5 of 4 cpu`."""
    return [
        f"{shown(name, amounts[name])} of {shown(name, limits[name])} {name}"
        for name in sorted(within)
        if name in limits and amounts.get(name, NONE) > limits[name]
    ]
