"""Make the amounts of queues consistent: a tree's parents cover their children."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from ..reduce.case import Amounts, CaseQueue, amounts


def at_least(given: Amounts, other: Amounts) -> Amounts:
    least = dict(other)
    return amounts((name, max(amount, least.get(name, 0))) for name, amount in given)


def at_most(given: Amounts, other: Amounts) -> Amounts:
    """Return `given` with each amount lowered to at most that of `other`, if `other` has one."""
    most = dict(other)
    return amounts((name, min(amount, most.get(name, amount))) for name, amount in given)


def partly(random: Random, given: Amounts) -> Amounts:
    """Return `given` without one of its dimensions, in one of four draws that have several."""
    if len(given) == 1 or random.random() < 0.75:
        return given
    left_out = random.randrange(len(given))
    return given[:left_out] + given[left_out + 1 :]


def within_parents(queues: list[CaseQueue]) -> list[CaseQueue]:
    """Raise parents to the sums of their children's deserved and guarantee, and to each child's capability."""
    return [_covering(queue, [child for child in queues if child.parent == queue.name]) for queue in queues]


def _covering(queue: CaseQueue, children: list[CaseQueue]) -> CaseQueue:
    deserved, guarantee = (_cover(getattr(queue, field), children, field) for field in ("deserved", "guarantee"))
    if guarantee and deserved:
        deserved = at_least(deserved, guarantee)
    capability = queue.capability
    for least in (deserved, guarantee, *(child.capability for child in children)) if capability else ():
        capability = at_least(capability, least)
    return replace(queue, deserved=deserved, guarantee=guarantee, capability=capability)


def _cover(own: Amounts, children: list[CaseQueue], field: str) -> Amounts:
    promised: dict[str, int] = {}
    for name, amount in (pair for child in children for pair in getattr(child, field)):
        promised[name] = promised.get(name, 0) + amount
    return at_least(own or amounts((name, 0) for name in promised), amounts(promised.items()))
