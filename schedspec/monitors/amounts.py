"""Amounts of resources as the monitors add them up: whole units by dimension, exact (``Decimal``)."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from kubernetes.utils.quantity import parse_quantity as _parse_quantity

NONE = Decimal(0)
Amounts = dict[str, Decimal]
Object = dict[str, Any]


@functools.lru_cache(4096)
def parse_quantity(value: object) -> Decimal:
    return Decimal(_parse_quantity(value))  # type: ignore[no-untyped-call]


def parse(quantities: Mapping[str, Any] | None) -> Amounts:
    return {name: parse_quantity(value) for name, value in (quantities or {}).items()}


def of_pod(pod: Object) -> Amounts:
    """What a pod takes on its node: containers and side-cars, the largest init container, overhead, one pod."""
    spec = pod.get("spec", {})
    running, side_cars, starting = total(map(_request, spec.get("containers", ()))), Amounts(), Amounts()
    for container in spec.get("initContainers", ()):
        needed = total((side_cars, _request(container)))
        if container.get("restartPolicy") == "Always":
            side_cars = needed
        starting = {n: max(starting.get(n, NONE), needed.get(n, NONE)) for n in {**starting, **needed}}
    running = total((running, side_cars))
    most = {n: max(running.get(n, NONE), starting.get(n, NONE)) for n in {**running, **starting}}
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


def above(amounts: Mapping[str, Decimal], limits: Mapping[str, Decimal], within: Iterable[str]) -> list[str]:
    """The dimensions of ``within`` in which ``amounts`` is above a limit that is there, each as ``5 of 4 cpu``."""
    return [
        f"{amounts[name].normalize():f} of {limits[name].normalize():f} {name}"
        for name in sorted(within)
        if name in limits and amounts.get(name, NONE) > limits[name]
    ]
