"""The cheapest set of victims equals the result of an exhaustive search."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from schedspec.scheduler.preemption.victim_set import VictimOption, cheapest_cover, cost


@st.composite
def options(draw: st.DrawFn) -> list[VictimOption]:
    found = []
    for number in range(draw(st.integers(0, 6))):
        freed = (draw(st.integers(0, 4)) * 1000, draw(st.integers(0, 2)) * 1000)
        level, gangs, pods = (draw(st.integers(0, 2)),), draw(st.integers(0, 1)), draw(st.integers(1, 2))
        found.append(VictimOption(freed, level, gangs, pods, (number,), f"job{number}"))
    return found


amounts = st.tuples(st.integers(0, 8).map(lambda n: n * 1000), st.integers(0, 3).map(lambda n: n * 1000))


def suffices(lacking: tuple[int, int], chosen: list[VictimOption] | tuple[VictimOption, ...]) -> bool:
    return all(sum(option.freed[i] for option in chosen) >= amount for i, amount in enumerate(lacking))


@given(lacking=amounts, offered=options())
def test_the_chosen_set_is_the_cheapest(lacking: tuple[int, int], offered: list[VictimOption]) -> None:
    chosen = cheapest_cover(lacking, offered)
    sets = [s for n in range(len(offered) + 1) for s in itertools.combinations(offered, n) if suffices(lacking, s)]

    if chosen is None:
        assert not sets
    else:
        assert suffices(lacking, chosen)
        assert cost(chosen) == min(map(cost, sets))


@given(lacking=amounts, offered=options())
def test_every_member_of_the_set_is_needed(lacking: tuple[int, int], offered: list[VictimOption]) -> None:
    chosen = cheapest_cover(lacking, offered) or []

    for option in chosen:
        assert not suffices(lacking, [other for other in chosen if other is not option])


def test_a_whole_gang_replaces_its_spare_tasks() -> None:
    spare = VictimOption((1,), (0,), 0, 1, (0,), "gang", limits=(("gang", 1),))
    other = VictimOption((1,), (0,), 0, 1, (1,), "gang", limits=(("gang", 1),))
    whole = VictimOption((3,), (0,), 1, 3, (2,), "gang", whole=True)

    assert cheapest_cover((1,), [whole, other, spare]) == [spare]
    assert cheapest_cover((2,), [whole, other, spare]) == [whole]


def test_the_order_of_the_options_does_not_matter() -> None:
    offered = [VictimOption((i % 3,), (i % 2,), 0, 1, (i,), f"job{i}") for i in range(8)]

    assert cheapest_cover((4,), offered) == cheapest_cover((4,), offered[::-1])
