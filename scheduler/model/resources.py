"""Amounts of resources and the comparisons that Volcano makes between them.

A resource is a plain ``dict`` from dimension to amount: ``cpu`` in millis, ``memory`` in bytes, ``pods`` whole, every
other dimension in millis (``nvidia.com/gpu: 1`` is 1000). That a dimension is absent and that it is zero are different
things, as in Volcano. The one rule: no function here changes its arguments, except the two that say so (``add_to``,
``take_from``).

The comparisons are those of Volcano's ``api/resource_info.go`` under names that say what they ask.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

from .objects import Quantities, Quantity

Resource = dict[str, float]

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"
EPSILON = 0.1
"""Below this an amount counts as nothing (Volcano's ``minResource``), whatever the dimension."""

_SUFFIXES = {
    "": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50, "Ei": 2.0**60,
}  # fmt: skip
_QUANTITY = re.compile(r"([+-]?[0-9.]+)(?:[eE]([+-]?[0-9]+)|([numkMGTPE]|[KMGTPE]i)?)")


class QuantityError(ValueError):
    """A text that is no Kubernetes quantity."""

    def __init__(self, value: object, dimension: str = "") -> None:
        where = f"{dimension}: " if dimension else ""
        super().__init__(f"{where}{value!r} is not a quantity; write for example 2, 500m, 1.5 or 8Gi")


def parse_quantity(value: Quantity) -> float:
    """The amount that ``value`` (``"500m"``, ``"8Gi"``, ``2``) stands for, in whole units.

    :raises QuantityError: it is none.
    """
    if isinstance(value, int | float):
        return float(value)
    match = _QUANTITY.fullmatch(value.strip())
    if match is None:
        raise QuantityError(value)
    number, exponent, suffix = match.groups()
    try:
        return float(number) * (10.0 ** int(exponent) if exponent else _SUFFIXES[suffix or ""])
    except (ValueError, OverflowError):
        raise QuantityError(value) from None


def scale(dimension: str) -> float:
    """How many of our units one whole unit of ``dimension`` is."""
    return 1.0 if dimension in (MEMORY, PODS) else 1000.0


def parse(quantities: Quantities | None) -> Resource:
    """Quantities as the API has them, in our units, rounded up to whole ones as Kubernetes does.

    Keys that start with ``count/`` belong to ResourceQuota and are left out.
    """
    if not quantities:
        return {}
    total: Resource = {}
    for name, value in quantities.items():
        if name.startswith("count/"):
            continue
        try:
            total[name] = float(math.ceil(parse_quantity(value) * scale(name) - 1e-6))
        except QuantityError:
            raise QuantityError(value, name) from None
    return total


def render_amount(dimension: str, amount: float) -> str:
    """An amount in our units as people write it: ``4``, ``500m``, ``8Gi``; exact to one of our units."""
    if math.isinf(amount):
        return "unlimited"
    units = round(amount)
    if dimension == MEMORY:
        suffix = next((s for s in ("Ti", "Gi", "Mi", "Ki") if units and units % int(_SUFFIXES[s]) == 0), "")
        return f"{units // int(_SUFFIXES[suffix])}{suffix}"
    if dimension == CPU and units and (units % 10 or abs(units) < 1000):
        return f"{units}m"
    whole, part = divmod(abs(units), int(scale(dimension)))
    sign = "-" if units < 0 else ""
    return f"{sign}{whole}.{part:03d}".rstrip("0").rstrip(".") if part else f"{sign}{whole}"


def is_empty(resource: Mapping[str, float]) -> bool:
    """Whether every dimension but ``pods`` is nothing."""
    return all(amount < EPSILON for name, amount in resource.items() if name != PODS)


def add_to(total: Resource, more: Mapping[str, float]) -> None:
    """Add ``more`` to ``total`` in place."""
    for name, amount in more.items():
        total[name] = total.get(name, 0.0) + amount


def take_from(total: Resource, less: Mapping[str, float]) -> None:
    """Take ``less`` from ``total`` in place."""
    for name, amount in less.items():
        total[name] = total.get(name, 0.0) - amount


def plus(*parts: Mapping[str, float]) -> Resource:
    """The sum."""
    total: Resource = {}
    for part in parts:
        add_to(total, part)
    return total


def minus(a: Mapping[str, float], b: Mapping[str, float]) -> Resource:
    """``a - b``; may be negative."""
    total = dict(a)
    take_from(total, b)
    return total


def exceeded_part(a: Mapping[str, float], b: Mapping[str, float]) -> Resource:
    """How much of ``a`` lies above ``b``, per dimension, never below zero."""
    return {name: max(amount - b.get(name, 0.0), 0.0) for name, amount in a.items()}


def largest(a: Mapping[str, float], b: Mapping[str, float]) -> Resource:
    """The larger amount, per dimension."""
    return {name: max(a.get(name, 0.0), b.get(name, 0.0)) for name in {**a, **b}}


def smallest(a: Mapping[str, float], b: Mapping[str, float], *, missing_is_unlimited: bool) -> Resource:
    """``a`` cut to ``b`` (Volcano's ``MinDimensionResource``): a dimension that ``b`` lacks keeps ``a`` or becomes
    zero.
    """
    default = math.inf if missing_is_unlimited else 0.0
    return {name: min(amount, b.get(name, default)) for name, amount in a.items()}


def common(a: Mapping[str, float], b: Mapping[str, float]) -> Resource:
    """The dimensions that both have something of, with the smaller amount (Volcano's ``Intersection``)."""
    return {n: min(v, b[n]) for n, v in a.items() if v >= EPSILON and b.get(n, 0.0) >= EPSILON}


def share(part: float, whole: float) -> float:
    """``part / whole``; of nothing, nothing is 0 and something is 1."""
    if whole == 0:
        return 0.0 if part == 0 else 1.0
    return part / whole


def less_equal(a: Mapping[str, float], b: Mapping[str, float], *, missing_is_unlimited: bool = False) -> bool:
    """Every dimension of ``a`` is at most ``b``'s, to within :data:`EPSILON`.

    With ``missing_is_unlimited`` a scalar that ``b`` lacks is no limit, and one that ``b`` has and ``a`` lacks makes
    it false.
    """
    for name, amount in a.items():
        if name not in b:
            if missing_is_unlimited and name not in (CPU, MEMORY):
                continue
            if amount >= EPSILON:
                return False
        elif not (amount < b[name] + EPSILON):
            return False
    if missing_is_unlimited:
        return all(name in a or name in (CPU, MEMORY) for name in b)
    return True


def exceeding(a: Mapping[str, float], b: Mapping[str, float], requested: Mapping[str, float]) -> list[str]:
    """The requested dimensions in which ``a`` is above ``b``, strictly; ``pods`` never counts.

    Volcano's ``LessEqualWithDimensionAndResourcesName``: empty means that it fits. A scalar that ``b`` lacks counts as
    0.
    """
    return [
        name
        for name, wanted in requested.items()
        if wanted > 0 and name != PODS and a.get(name, 0.0) > b.get(name, 0.0)
    ]


def any_within(a: Mapping[str, float], b: Mapping[str, float], requested: Mapping[str, float]) -> bool:
    """In at least one requested dimension ``a`` is at most ``b``; those where both are nothing are left out."""
    for name, wanted in requested.items():
        if wanted <= 0 or name == PODS:
            continue
        have, limit = a.get(name, 0.0), b.get(name, 0.0)
        if have < EPSILON and limit < EPSILON:
            continue
        if have <= limit:
            return True
    return False


def any_above(a: Mapping[str, float], b: Mapping[str, float], requested: Mapping[str, float]) -> bool:
    """In at least one relevant dimension ``a`` is above ``b``.

    Relevant are requested dimensions that ``b`` speaks of: cpu and memory where ``b`` has some, a scalar where ``b``
    has the key.
    """
    for name, wanted in requested.items():
        if wanted <= 0 or name == PODS:
            continue
        relevant = b.get(name, 0.0) >= EPSILON if name in (CPU, MEMORY) else name in b
        if relevant and a.get(name, 0.0) > b.get(name, 0.0):
            return True
    return False


def total_of(resources: Iterable[Mapping[str, float]]) -> Resource:
    """The sum of many."""
    return plus(*resources)
