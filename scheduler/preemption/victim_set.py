"""Find the cheapest set of victims that makes enough room on one node.

1. Victims of the first permitting tier and the nearest queue are preferred (`VictimOption.near`).
2. Among these, a set that frees more than twice the request is a waste, and is chosen only if every set is a waste.
3. Then the cost decides.

This module is pure arithmetic: all options are permitted, and it knows no votes, queues or cluster.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np

from ..model.resources import MAX_AMOUNT

TWICE = 2.0
"""The ratio of freed to requested above which a set is a waste."""
ROUNDING = 1e-9
"""The tolerance for rounding when ratios are added."""
EXACT = 12
"""Up to this number of options of one level, all smaller sets are tried; above it, only the order decides."""

Amounts = tuple[int, ...]
Ratios = tuple[float, ...]


class VictimOption(msgspec.Struct, frozen=True, eq=False):
    """One unit as an option: what it frees in each lacking dimension, and what it costs.

    `limits`: how many options with the same key may be chosen together (spare tasks of a job, or of one of its roles).
    `whole`: the option contains every other option of `job`.
    """

    freed: Amounts
    level: tuple[Any, ...]
    gangs: int
    pods: int
    age_key: tuple[Any, ...]
    job: str
    whole: bool = False
    limits: tuple[tuple[Any, int], ...] = ()
    takes: Ratios = ()
    """Ratios of what the unit's tasks hold, on all nodes, to what is requested, by requested dimension."""

    @property
    def rank(self) -> tuple[Any, ...]:
        """Return the sort key; smaller is evicted first."""
        return (self.level, self.gangs, self.pods, self.age_key)

    @property
    def near(self) -> tuple[Any, ...]:
        """Return the part of the level that decides before waste: the permitting tier, the distance of the queue."""
        return self.level[:2]


def ratio(chosen: Sequence[VictimOption]) -> float:
    """Return the ratio of freed to requested, in the dimension where it is largest."""
    if len(chosen) == 1:  # the usual case
        return max(chosen[0].takes, default=0.0)
    return max(map(sum, zip(*(option.takes for option in chosen), strict=True)), default=0.0)


def is_waste(chosen: Sequence[VictimOption]) -> bool:
    """Whether a set frees more than twice the request."""
    return ratio(chosen) > TWICE + ROUNDING


def cost(chosen: Sequence[VictimOption]) -> tuple[Any, ...]:
    """Return the cost of a set as a comparable key.

    The key is: the nearest level, whether the set is a waste, then for each level from the best protected one the
    number of gangs, the number of pods and the ages, oldest first.
    """
    if not chosen:
        return ()
    if len(chosen) == 1:  # the usual case
        (one,) = chosen
        return ((one.near, is_waste(chosen)), (one.level, one.gangs, one.pods, (one.age_key,)))
    levels = itertools.groupby(sorted(chosen, key=lambda o: o.rank, reverse=True), key=lambda o: o.level)
    parts = tuple((level, *_within_level(tuple(options))) for level, options in levels)
    return ((max(option.near for option in chosen), is_waste(chosen)), *parts)


def cheapest_cover(lacking: Amounts, options: Sequence[VictimOption]) -> list[VictimOption] | None:
    """Return the cheapest set of `options` that frees `lacking`, sorted by rank; None if all options do not suffice.

    Every option of the set is needed. The result is exact if no level has more than `EXACT` options; otherwise a
    cheaper set may exist.
    """
    ranked = sorted(options, key=lambda o: o.rank)
    if _first_suffices(lacking, ranked) and (len(ranked) == 1 or not is_waste(ranked[:1])):
        return ranked[:1]  # the usual case
    for near in dict.fromkeys(option.near for option in ranked) or [()]:
        nearest = ranked if ranked and near == ranked[-1].near else [one for one in ranked if one.near <= near]
        found = _cheapest(lacking, nearest)
        if found is not None:
            return (_cheapest_without_waste(lacking, nearest) or found) if is_waste(found) else found
    return None


def _cheapest_without_waste(lacking: Amounts, ranked: Sequence[VictimOption]) -> list[VictimOption] | None:
    """Return the cheapest set that is no waste; None if none was found. The result is exact for few options."""
    small = [option for option in ranked if not is_waste([option])]
    found = _cheapest(lacking, small)
    if found is None or not is_waste(found):
        return found
    if len(small) > EXACT:
        found = _accumulate(lacking, sorted(small, key=lambda o: (max(o.takes), o.rank)), ())
        return found if found is not None and not is_waste(found) else None
    sets = (np.arange(1, 1 << len(small))[:, None] >> np.arange(len(small))) & 1
    half = MAX_AMOUNT // 2  # keeps the sum of all below the maximum of an int64
    suffices = (sets @ np.array([o.freed for o in small]).clip(max=half) >= np.minimum(lacking, half)).all(axis=1)
    is_no_waste = (sets @ np.array([o.takes for o in small]) <= TWICE + ROUNDING).all(axis=1)
    covers = ([small[i] for i in np.flatnonzero(row)] for row in sets[suffices & is_no_waste])
    needed = [
        chosen for chosen in covers if len(_needed(lacking, chosen)) == len(chosen) and _compatible(lacking, chosen)
    ]
    return min(needed, key=cost, default=None)


def _cheapest(lacking: Amounts, ranked: Sequence[VictimOption]) -> list[VictimOption] | None:
    """Return the cheapest set as `cheapest_cover` does, without regard to waste."""
    if _first_suffices(lacking, ranked):
        return list(ranked[:1])
    chosen = _accumulate(lacking, ranked, ())
    settled: list[VictimOption] = []
    while chosen:
        top = chosen[-1].level
        lower = [o for o in ranked if o.level < top]
        same, found = [o for o in ranked if o.level == top], [o for o in chosen if o.level == top]
        settled += _fewer(lacking, same, lower, settled, found)
        chosen = _accumulate(lacking, lower, settled)
        chosen = [o for o in chosen or () if o not in settled]
    return None if chosen is None else _needed(lacking, settled)


def _first_suffices(lacking: Amounts, ranked: Sequence[VictimOption]) -> bool:
    """Whether the first option frees enough: no set is cheaper than this option alone."""
    return bool(ranked) and max(lacking, default=0) > 0 and _suffice(ranked[0].freed, lacking)


class VictimSet:
    """A set of options with the sums of what they free."""

    def __init__(self, lacking: Amounts, options: Iterable[VictimOption] = ()) -> None:
        self._lacking = lacking
        self._freed = [0] * len(lacking)
        self._chosen: defaultdict[Any, int] = defaultdict(int)
        """Number of chosen options: by job and `whole`, and by key of a limit."""
        self.options: list[VictimOption] = []
        for option in options:
            self._count(option, 1)

    def _count(self, option: VictimOption, sign: int) -> None:
        if sign > 0:
            self.options.append(option)
        else:
            self.options.remove(option)
        for i, amount in enumerate(option.freed):
            self._freed[i] += sign * amount
        self._chosen[option.job, option.whole] += sign
        for key, _ in option.limits:
            self._chosen[key] += sign

    def add(self, option: VictimOption) -> None:
        """Add an option if its limits allow it; a whole gang replaces its single tasks."""
        if self._chosen[option.job, True] or any(self._chosen[key] >= limit for key, limit in option.limits):
            return
        if option.whole and self._chosen[option.job, False]:
            for other in [o for o in self.options if o.job == option.job]:
                self._count(other, -1)
        self._count(option, 1)

    def covers(self) -> bool:
        """Whether the set frees enough."""
        return _suffice(self._freed, self._lacking)

    def reprieve(self, option: VictimOption, instead: Sequence[VictimOption] = ()) -> None:
        """Remove an option if the remaining options suffice, together with `instead` if given."""
        if option not in self.options:
            return
        if instead:
            self._count(option, -1)
            for other in instead:
                self.add(other)
            if not self.covers():
                self.add(option)
        elif all(
            have - amount >= lacking
            for have, amount, lacking in zip(self._freed, option.freed, self._lacking, strict=True)
        ):
            self._count(option, -1)


def _suffice(freed: Sequence[int], lacking: Amounts) -> bool:
    return all(have >= amount for have, amount in zip(freed, lacking, strict=True))


def _accumulate(
    lacking: Amounts, ranked: Sequence[VictimOption], base: Sequence[VictimOption]
) -> list[VictimOption] | None:
    """Add options in order until they suffice, then drop those that are not needed."""
    chosen = VictimSet(lacking, base)
    for option in ranked:
        if chosen.covers():
            break
        chosen.add(option)
    return _needed(lacking, chosen.options) if chosen.covers() else None


def _needed(lacking: Amounts, options: Sequence[VictimOption]) -> list[VictimOption]:
    """Return the options that are needed; the best protected options are dropped first."""
    ranked = sorted(options, key=lambda o: o.rank)
    if _all_are_needed(lacking, ranked):
        return ranked
    chosen = VictimSet(lacking, ranked)
    for option in reversed(ranked):
        chosen.reprieve(option)
    return chosen.options


def _all_are_needed(lacking: Amounts, options: Sequence[VictimOption]) -> bool:
    by_dimension = zip(*[option.freed for option in options], strict=True)
    return any(sum(freed) - min(freed) < amount for freed, amount in zip(by_dimension, lacking, strict=False))


def _fewer(
    lacking: Amounts,
    same: list[VictimOption],
    lower: list[VictimOption],
    settled: list[VictimOption],
    found: list[VictimOption],
) -> list[VictimOption]:
    """Return a cheaper choice within one level, given all lower options; otherwise `found`."""
    if len(found) < 2 or len(same) > EXACT or len({(o.freed, o.gangs, o.pods) for o in same}) == 1:
        return found
    best, best_cost = found, _within_level(found)
    for size in range(1, len(found) + 1):
        for combination in itertools.combinations(same, size):
            price = _within_level(combination)
            if price < best_cost and _suffices(lacking, [*combination, *settled], lower):
                best, best_cost = list(combination), price
        if best is not found:
            break
    return best


def _within_level(options: Sequence[VictimOption]) -> tuple[Any, ...]:
    ages = tuple(sorted((o.age_key for o in options), reverse=True))
    return (sum(o.gangs for o in options), sum(o.pods for o in options), ages)


def _suffices(lacking: Amounts, base: Sequence[VictimOption], lower: Sequence[VictimOption]) -> bool:
    if not _compatible(lacking, base):
        return False
    chosen = VictimSet(lacking, base)
    for option in lower:
        chosen.add(option)
    return chosen.covers()


def _compatible(lacking: Amounts, options: Sequence[VictimOption]) -> bool:
    """Whether the limits permit these options together."""
    chosen = VictimSet(lacking)
    for option in options:
        chosen.add(option)
    return len(chosen.options) == len(options)
