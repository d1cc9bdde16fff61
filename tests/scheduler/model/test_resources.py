"""Amounts and their comparisons (semantics of Volcano's ``api/resource_info.go``)."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.model import resources
from scheduler.model.resources import QuantityError, parse

AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "pods", "nvidia.com/gpu"]), st.integers(0, 10**6).map(float), max_size=4
)


@pytest.mark.parametrize(
    ("dimension", "text", "amount"),
    [
        ("cpu", "2", 2000.0),
        ("cpu", "500m", 500.0),
        ("cpu", 1.5, 1500.0),
        ("cpu", "1e3", 1e6),
        ("cpu", "100u", 1.0),  # rounded up, as Kubernetes does
        ("memory", "8Gi", 8.0 * 2**30),
        ("memory", "4k", 4000.0),
        ("nvidia.com/gpu", "1", 1000.0),
        ("pods", "110", 110.0),
    ],
)
def test_a_quantity_is_read_in_the_units_of_its_dimension(dimension: str, text: str, amount: float) -> None:
    assert parse({dimension: text}) == {dimension: amount}


@pytest.mark.parametrize("text", ["", "2 cpu", "1.2.3", "Gi", "0x10", "8GiB", "--1"])
def test_what_is_no_quantity_is_refused_by_dimension_and_value(text: str) -> None:
    with pytest.raises(QuantityError, match=r"memory: .*is not a quantity; write for example"):
        parse({"memory": text})


def test_keys_of_resource_quotas_are_left_out() -> None:
    assert parse({"count/pods": "3", "cpu": "1"}) == {"cpu": 1000.0}


@pytest.mark.parametrize(
    ("dimension", "amount", "text"),
    [
        ("cpu", 2000.0, "2"),
        ("cpu", 1500.0, "1.5"),
        ("cpu", 250.0, "250m"),
        ("memory", 2.0**33, "8Gi"),
        ("nvidia.com/gpu", 3000.0, "3"),
        ("pods", 7.0, "7"),
        ("cpu", 0.0, "0"),
        ("cpu", 12_345_670.0, "12345.67"),
        ("cpu", 12_345_678.0, "12345678m"),
        ("cpu", 3333.4, "3333m"),
        ("memory", 12_345_678.0 * 1024, "12345678Ki"),
        ("nvidia.com/gpu", 500.0, "0.5"),
        ("nvidia.com/gpu", -1500.0, "-1.5"),
        ("cpu", math.inf, "unlimited"),
    ],
)
def test_an_amount_is_written_as_people_write_it(dimension: str, amount: float, text: str) -> None:
    assert resources.render_amount(dimension, amount) == text


@given(st.sampled_from(["cpu", "memory", "pods", "nvidia.com/gpu"]), st.integers(0, 10**13))
def test_what_is_written_reads_as_the_same_amount(dimension: str, amount: int) -> None:
    assert parse({dimension: resources.render_amount(dimension, amount)}) == {dimension: amount}


@pytest.mark.parametrize(
    ("a", "b", "unlimited", "holds"),
    [
        ({"cpu": 1.0}, {"cpu": 1.05}, False, True),
        ({"cpu": 1.0}, {"cpu": 0.95}, False, True),  # within epsilon
        ({"cpu": 1.0}, {"cpu": 0.9}, False, False),
        ({"gpu": 1.0}, {"cpu": 9.0}, False, False),  # a missing dimension is none
        ({"gpu": 1.0}, {"cpu": 9.0}, True, True),  # or no limit
        ({"cpu": 1.0}, {"cpu": 1.0, "gpu": 0.0}, True, False),  # b has a scalar that a lacks
        ({"cpu": 1.0}, {}, True, False),  # cpu and memory are never without limit here
    ],
)
def test_at_most_in_every_dimension(a: dict[str, float], b: dict[str, float], unlimited: bool, holds: bool) -> None:
    assert resources.less_equal(a, b, missing_is_unlimited=unlimited) is holds


def test_only_what_is_requested_can_exceed_and_pods_never_do() -> None:
    a, b = {"cpu": 5.0, "gpu": 3.0, "pods": 9.0}, {"cpu": 4.0, "gpu": 3.0}
    assert resources.exceeding(a, b, {"cpu": 1.0, "gpu": 1.0, "pods": 1.0, "memory": 0.0}) == ["cpu"]


@pytest.mark.parametrize(
    ("a", "b", "requested", "holds"),
    [
        ({"cpu": 2.0, "gpu": 9.0}, {"cpu": 2.0, "gpu": 1.0}, {"cpu": 1.0, "gpu": 1.0}, True),
        ({"gpu": 9.0}, {"gpu": 1.0}, {"cpu": 1.0, "gpu": 1.0}, False),  # cpu: nothing on either side, left out
        ({}, {}, {"cpu": 1.0}, False),
    ],
)
def test_within_in_any_requested_dimension(
    a: dict[str, float], b: dict[str, float], requested: dict[str, float], holds: bool
) -> None:
    assert resources.any_within(a, b, requested) is holds


@pytest.mark.parametrize(
    ("a", "b", "holds"),
    [
        ({"gpu": 1.0}, {}, False),  # b does not speak of it
        ({"gpu": 1.0}, {"gpu": 0.0}, True),  # it does, and says none
        ({"cpu": 1.0}, {"cpu": 0.0}, False),  # of cpu, none is not speaking of it
        ({"cpu": 2.0}, {"cpu": 1.0}, True),
    ],
)
def test_above_in_any_relevant_dimension(a: dict[str, float], b: dict[str, float], holds: bool) -> None:
    assert resources.any_above(a, b, {"cpu": 1.0, "gpu": 1.0}) is holds


@given(AMOUNTS, AMOUNTS)
def test_adding_and_taking_back_leaves_the_amount(a: dict[str, float], b: dict[str, float]) -> None:
    back = resources.minus(resources.plus(a, b), b)
    assert {n: v for n, v in back.items() if v} == {n: v for n, v in a.items() if v}


@given(AMOUNTS, AMOUNTS)
def test_the_exceeded_part_and_what_is_common_make_the_whole(a: dict[str, float], b: dict[str, float]) -> None:
    over, shared = resources.exceeded_part(a, b), resources.smallest(a, b, missing_is_unlimited=False)
    assert resources.plus(over, shared) == a


@pytest.mark.parametrize(("part", "whole", "share"), [(0.0, 0.0, 0.0), (1.0, 0.0, 1.0), (1.0, 4.0, 0.25)])
def test_a_share_of_nothing_is_nothing_or_all(part: float, whole: float, share: float) -> None:
    assert resources.share(part, whole) == share
