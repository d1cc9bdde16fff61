"""The victim sets of the topology-aware mode, as pure arithmetic; whole cycles are in tests/scheduler/decide/tables."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given

from schedspec.scheduler.preemption.topology_aware import node_cost, reprieved_cover
from schedspec.scheduler.preemption.victim_set import VictimOption, cheapest_cover
from tests.scheduler.preemption.test_victim_set import amounts, options, suffices


def option(name: str, freed: int, priority: int = 0, age_key: int = 0, pods: int = 1, **more: object) -> VictimOption:
    return VictimOption((freed,), (priority,), int("whole" in more), pods, (age_key,), name, **more)  # type: ignore[arg-type]


@given(lacking=amounts, offered=options())
def test_the_set_makes_room_where_that_is_possible_and_needs_every_victim(
    lacking: tuple[int, int], offered: list[VictimOption]
) -> None:
    chosen = reprieved_cover(lacking, offered)

    assert (chosen is None) == (cheapest_cover(lacking, offered) is None)
    for one in chosen or ():
        assert not suffices(lacking, [other for other in chosen or () if other is not one])


@given(lacking=amounts, offered=options())
def test_the_protection_of_victims_is_minimal(lacking: tuple[int, int], offered: list[VictimOption]) -> None:
    chosen, cheapest = reprieved_cover(lacking, offered), cheapest_cover(lacking, offered)

    if chosen and cheapest:
        assert max(one.level for one in chosen) == max(one.level for one in cheapest)


def test_the_oldest_is_reprieved_first() -> None:
    large, small, smaller = option("old", 2, age_key=9), option("young", 1, age_key=2), option("younger", 1, age_key=1)

    assert reprieved_cover((2,), [large, small, smaller]) == [smaller, small]
    assert cheapest_cover((2,), [large, small, smaller]) == [large]


def test_a_gang_loses_only_as_many_spare_tasks_as_needed_if_they_suffice() -> None:
    limits = (("gang", 2),)
    spare = [option("gang", 1, age_key=age, limits=limits) for age in range(3)]
    whole = option("gang", 3, age_key=0, pods=3, whole=True)

    assert reprieved_cover((1,), [whole, *spare]) == [spare[0]]
    assert reprieved_cover((2,), [whole, *spare]) == spare[:2]
    assert reprieved_cover((3,), [whole, *spare]) == [whole]
    assert reprieved_cover((4,), [whole, *spare]) is None
    other = option("other", 1, age_key=5)
    assert reprieved_cover((3,), [whole, other, *spare]) == [*spare[:2], other]


def test_a_gang_of_low_priority_is_evicted_before_a_pod_of_higher_priority() -> None:
    gang, pod = option("gang", 2, priority=1, pods=2, whole=True), option("pod", 2, priority=2)

    assert reprieved_cover((2,), [gang, pod]) == [gang]


def test_nodes_are_compared_by_top_protection_then_gangs_pods_priorities_and_age() -> None:
    ranked = [
        [],
        [option("a", 1, 1), option("b", 1, 1), option("c", 1, 1)],
        [option("a", 1, 2, age_key=1)],
        [option("a", 1, 2, age_key=5)],
        [option("a", 1, 2, age_key=3), option("b", 1, 0, age_key=9)],
        [option("a", 1, 2, age_key=4), option("b", 1, 0, age_key=0)],
        [option("a", 1, 2, age_key=3), option("b", 1, 1, age_key=0)],
        [option("a", 1, 2), option("b", 1, 0), option("c", 1, 0)],
        [option("a", 1, 2, age_key=1), option("b", 1, 0), option("c", 1, 1)],
        [option("a", 1, 2), option("b", 1, 1, pods=2)],
        [option("a", 1, 2, whole=True)],
        [option("a", 1, 3)],
    ]

    for cheaper, dearer in pairwise(ranked):
        assert node_cost(cheaper) < node_cost(dearer), dearer
