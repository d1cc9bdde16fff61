"""Amounts of resources, and Volcano's comparisons of them.

A resource is a plain `dict` from dimension to a whole number: `cpu` in thousandths, `memory` in bytes, `pods` as a
count, every other dimension in thousandths (`nvidia.com/gpu: 1` is 1000). An absent dimension differs from a zero one,
as in Volcano.

The one rule: arithmetic is exact, so that adding and then subtracting an amount changes nothing. Python's integers
never overflow; one object's amount is limited to `MAX_AMOUNT` when it is read. Only `add_to` and `take_from` change an
argument.

The comparisons are those of Volcano's `api/resource_info.go` under descriptive names. Volcano compares floats with a
tolerance of 0.1 of a unit; whole numbers need none.
"""

from __future__ import annotations

import decimal
import enum
import functools
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Final

from .objects import Quantities, Quantity

Resource = dict[str, int]

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"

MAX_AMOUNT = 2**60
"""The largest amount of one object; a larger one counts as this much (1 EiB, 10¹⁵ CPUs).

Kubernetes limits quantities to 2⁶³-1. The limit here is smaller, so that sums of a few amounts fit into the int64
arrays of `scheduler.model.nodes`.
"""
LEAST_BYTES = 2**20
"""Fewer bytes of memory are hardly meant."""
LONGEST = 64
"""Maximum characters of a quantity. Kubernetes writes at most 25."""


class Unlimited(enum.Enum):
    """The value of an absent limit: a separate type, because no number is larger than all sums."""

    UNLIMITED = "unlimited"


UNLIMITED: Final = Unlimited.UNLIMITED
Limit = int | Unlimited
Limits = dict[str, Limit]

_BINARY = {"Ei": 2**60, "Pi": 2**50, "Ti": 2**40, "Gi": 2**30, "Mi": 2**20, "Ki": 2**10}
_SUFFIXES: dict[str, int | decimal.Decimal] = {
    "": 1, "n": decimal.Decimal("1e-9"), "u": decimal.Decimal("1e-6"), "m": decimal.Decimal("1e-3"),
    "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18, **_BINARY,
}  # fmt: skip
_QUANTITY = re.compile(r"([+-]?[0-9.]+)(?:[eE]([+-]?[0-9]{1,3})|([numkMGTPE]|[KMGTPE]i)?)", re.ASCII)
_EXACT = decimal.Context(prec=200, rounding=decimal.ROUND_CEILING)


class QuantityError(ValueError):
    """A text that is not a Kubernetes quantity."""

    def __init__(self, value: object, dimension: str = "") -> None:
        where = f"{dimension}: " if dimension else ""
        shown = repr(value) if len(str(value)) <= LONGEST else f"{str(value)[:LONGEST]!r}…"
        super().__init__(f"{where}{shown} is not a quantity; write for example 2, 500m, 1.5 or 8Gi")


@functools.lru_cache(maxsize=4096)
def amount_of(value: Quantity, unit: int) -> int:
    """Convert `value` (`"500m"`, `"8Gi"`, `2`) to our units, rounded up as in Kubernetes and limited to `MAX_AMOUNT`.

    Args:
        value: The quantity.
        unit: Number of our units in one whole unit.

    Raises:
        QuantityError: the value is not a quantity.
    """
    match = _QUANTITY.fullmatch(str(value))
    if match is None or len(match[0]) > LONGEST:
        raise QuantityError(value)
    number, exponent, suffix = match.groups()
    try:
        whole = _EXACT.multiply(_EXACT.create_decimal(number), _SUFFIXES[suffix or ""])
        amount = _EXACT.multiply(_EXACT.scaleb(whole, int(exponent or 0)), unit)
    except decimal.InvalidOperation:
        raise QuantityError(value) from None
    if abs(amount) >= MAX_AMOUNT:
        return MAX_AMOUNT if amount > 0 else -MAX_AMOUNT
    return int(amount.to_integral_value(decimal.ROUND_CEILING))


def unit_of(dimension: str) -> int:
    """Return the number of our units in one whole unit of `dimension`."""
    return 1 if dimension in (MEMORY, PODS) else 1000


def lacks_unit(dimension: str, amount: int) -> bool:
    """Whether an amount of our units is a few bytes: a number of memory whose unit was forgotten."""
    is_bytes = dimension in (MEMORY, "ephemeral-storage") or dimension.startswith("hugepages-")
    return is_bytes and 0 < amount < LEAST_BYTES * unit_of(dimension)


def parse(quantities: Quantities | None) -> Resource:
    """Convert the API's quantities to our units.

    Keys that start with `count/` belong to ResourceQuota and are skipped.
    """
    if not quantities:
        return {}
    total: Resource = {}
    for name, value in quantities.items():
        if name.startswith("count/"):
            continue
        try:
            total[name] = amount_of(value, unit_of(name))
        except QuantityError:
            raise QuantityError(value, name) from None
    return total


def render_amount(dimension: str, amount: int) -> str:
    """Format an amount of our units exactly: `4`, `500m`, `8Gi`."""
    if dimension == MEMORY:
        suffix, factor = next(((s, f) for s, f in _BINARY.items() if amount and amount % f == 0), ("", 1))
        return f"{amount // factor}{suffix}"
    if dimension == CPU and amount and (amount % 10 or abs(amount) < 1000):
        return f"{amount}m"
    whole, part = divmod(abs(amount), unit_of(dimension))
    sign = "-" if amount < 0 else ""
    return f"{sign}{whole}.{part:03d}".rstrip("0").rstrip(".") if part else f"{sign}{whole}"


def quantities(amounts: Mapping[str, int]) -> dict[str, str]:
    """Format amounts exactly, as quantities of the API.

    >>> quantities({"memory": 2**31, "cpu": 1500, "nvidia.com/gpu": 8000})
    {'cpu': '1.5', 'memory': '2Gi', 'nvidia.com/gpu': '8'}
    """
    return {name: render_amount(name, amount) for name, amount in sorted(amounts.items())}


def cut(resource: Mapping[str, int]) -> Resource:
    """Limit each amount to `MAX_AMOUNT`."""
    return {name: min(amount, MAX_AMOUNT) for name, amount in resource.items()}


def is_empty(resource: Mapping[str, int]) -> bool:
    """Whether no dimension except `pods` is above zero."""
    return all(amount <= 0 for name, amount in resource.items() if name != PODS)


def add_to(total: Resource, more: Mapping[str, int]) -> None:
    """Add `more` to `total` in place."""
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def take_from(total: Resource, less: Mapping[str, int]) -> None:
    """Subtract `less` from `total` in place."""
    for name, amount in less.items():
        total[name] = total.get(name, 0) - amount


def plus(*parts: Mapping[str, int]) -> Resource:
    """Return the sum."""
    total: Resource = {}
    for part in parts:
        add_to(total, part)
    return total


def minus(a: Mapping[str, int], b: Mapping[str, int]) -> Resource:
    """Return `a - b`, which may be negative."""
    total = dict(a)
    take_from(total, b)
    return total


def exceeded_part(a: Mapping[str, int], b: Mapping[str, int]) -> Resource:
    """Return by how much `a` exceeds `b` in each dimension, never below zero."""
    return {name: max(amount - b.get(name, 0), 0) for name, amount in a.items()}


def largest(a: Mapping[str, int], b: Mapping[str, int]) -> Resource:
    """Return the larger amount in each dimension."""
    return {name: max(a.get(name, 0), b.get(name, 0)) for name in {**a, **b}}


def smallest(a: Mapping[str, int], b: Mapping[str, Limit], *, missing_is_unlimited: bool) -> Resource:
    """Limit `a` to `b` (Volcano's `MinDimensionResource`). A dimension that `b` lacks is unlimited, or becomes zero."""
    default: Limit = UNLIMITED if missing_is_unlimited else 0
    return {
        name: amount if (limit := b.get(name, default)) is UNLIMITED or amount <= limit else limit
        for name, amount in a.items()
    }


def common(a: Mapping[str, int], b: Mapping[str, int]) -> Resource:
    """Return the smaller amount in each dimension in which both are positive (Volcano's `Intersection`)."""
    return {n: min(v, b[n]) for n, v in a.items() if v > 0 and b.get(n, 0) > 0}


def overlap(a: Mapping[str, int], b: Mapping[str, int]) -> bool:
    """Whether both are positive in some dimension."""
    for name, amount in a.items():  # noqa: SIM110 - called for every candidate for eviction
        if amount > 0 and b.get(name, 0) > 0:
            return True
    return False


def share(part: int, whole: int) -> float:
    """Return `part / whole`. If `whole` is zero, return 0 for a zero part and 1 for any other part."""
    if whole == 0:
        return 0.0 if part == 0 else 1.0
    return part / whole


def less_equal(a: Mapping[str, int], b: Mapping[str, int]) -> bool:
    """Whether every dimension of `a` is at most that of `b`; a dimension that `b` lacks is zero."""
    return all(amount <= b.get(name, 0) for name, amount in a.items())


@functools.lru_cache(maxsize=256)
def factor_of(number: float) -> Fraction:
    """Return the exact fraction that a user wrote: 1.2 is twelve tenths, not the nearest binary fraction."""
    return Fraction(str(number))


def times(amount: int, factor: Fraction) -> int:
    """Multiply an amount by a factor, rounded down."""
    return amount * factor.numerator // factor.denominator


def exceeding(a: Mapping[str, int], b: Mapping[str, int], requested: Mapping[str, int]) -> list[str]:
    """Return the requested dimensions in which `a` exceeds `b`; `pods` never counts.

    This is Volcano's `LessEqualWithDimensionAndResourcesName`: an empty list means that `a` fits. A scalar that `b`
    lacks counts as 0.
    """
    return [
        name for name, wanted in requested.items() if wanted > 0 and name != PODS and a.get(name, 0) > b.get(name, 0)
    ]


def any_within(a: Mapping[str, int], b: Mapping[str, int], requested: Mapping[str, int]) -> bool:
    """Whether `a` is at most `b` in a requested dimension. Dimensions in which both are zero do not count."""
    for name, wanted in requested.items():
        if wanted <= 0 or name == PODS:
            continue
        have, limit = a.get(name, 0), b.get(name, 0)
        if have <= 0 and limit <= 0:
            continue
        if have <= limit:
            return True
    return False


def any_above(a: Mapping[str, int], b: Mapping[str, int], requested: Mapping[str, int]) -> bool:
    """Whether `a` exceeds `b` in a relevant dimension.

    A requested dimension is relevant if `b` has it: cpu and memory if not zero in `b`, a scalar if `b` has its key.
    """
    for name, wanted in requested.items():
        if wanted <= 0 or name == PODS:
            continue
        relevant = b.get(name, 0) > 0 if name in (CPU, MEMORY) else name in b
        if relevant and a.get(name, 0) > b.get(name, 0):
            return True
    return False


def total_of(resources: Iterable[Mapping[str, int]]) -> Resource:
    """Return the sum of many resources."""
    return plus(*resources)
