"""Amounts and their comparisons (semantics of Volcano's `api/resource_info.go`)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedspec.scheduler.model import resources
from schedspec.scheduler.model.resources import MAX_AMOUNT, UNLIMITED, QuantityError, parse

AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "pods", "nvidia.com/gpu"]), st.integers(0, 2**70), max_size=4
)


@pytest.mark.parametrize(
    ("dimension", "text", "amount"),
    [
        ("cpu", "2", 2000),
        ("cpu", "500m", 500),
        ("cpu", 1.5, 1500),
        ("cpu", "1e3", 10**6),
        ("cpu", "100u", 1),  # rounded up, as Kubernetes does
        ("cpu", 0.29, 290),
        ("memory", "9007199254740993", 2**53 + 1),  # a float cannot represent this number
        ("memory", "1152921504606846975.1", MAX_AMOUNT),
        ("cpu", "9223372036854775807", MAX_AMOUNT),  # amounts are limited, as in Kubernetes
        ("memory", "9e99", MAX_AMOUNT),
        ("memory", "-9e99", -MAX_AMOUNT),
        ("memory", "8Gi", 8 * 2**30),
        ("memory", "4k", 4000),
        ("nvidia.com/gpu", "1", 1000),
        ("pods", "110", 110),
    ],
)
def test_a_quantity_is_read_in_the_units_of_its_dimension(dimension: str, text: str, amount: int) -> None:
    assert parse({dimension: text}) == {dimension: amount}


@pytest.mark.parametrize(
    "text", ["", "2 cpu", "1.2.3", ".", "Gi", "0x10", "8GiB", "--1", "1e999999999", "٣", "9" * 65, float("nan")]
)
def test_the_error_about_an_invalid_quantity_names_dimension_and_value(text: str | float) -> None:
    with pytest.raises(QuantityError, match=r"memory: .*is not a quantity; write for example"):
        parse({"memory": text})


def test_counts_of_a_resource_quota_are_skipped() -> None:
    assert parse({"count/pods": "3", "cpu": "1"}) == {"cpu": 1000}


@pytest.mark.parametrize(
    ("dimension", "amount", "text"),
    [
        ("cpu", 2000, "2"),
        ("cpu", 1500, "1.5"),
        ("cpu", 250, "250m"),
        ("memory", 2**33, "8Gi"),
        ("nvidia.com/gpu", 3000, "3"),
        ("pods", 7, "7"),
        ("cpu", 0, "0"),
        ("cpu", 12_345_670, "12345.67"),
        ("cpu", 12_345_678, "12345678m"),
        ("memory", 12_345_678 * 1024, "12345678Ki"),
        ("nvidia.com/gpu", 500, "0.5"),
        ("nvidia.com/gpu", -1500, "-1.5"),
        ("memory", 2**70, "1024Ei"),
    ],
)
def test_an_amount_is_formatted_as_users_write_it(dimension: str, amount: int, text: str) -> None:
    assert resources.render_amount(dimension, amount) == text


@given(st.sampled_from(["cpu", "memory", "pods", "nvidia.com/gpu"]), st.integers(0, 10**13))
def test_formatting_and_parsing_an_amount_does_not_change_it(dimension: str, amount: int) -> None:
    assert parse({dimension: resources.render_amount(dimension, amount)}) == {dimension: amount}


@pytest.mark.parametrize(
    ("a", "b", "holds"),
    [
        ({"cpu": 1}, {"cpu": 1}, True),
        ({"memory": 2**60 + 1}, {"memory": 2**60}, False),  # exact, however large
        ({"gpu": 1}, {"cpu": 9}, False),  # a missing dimension counts as zero
        ({"gpu": 0}, {}, True),
    ],
)
def test_less_equal_compares_every_dimension(a: dict[str, int], b: dict[str, int], holds: bool) -> None:
    assert resources.less_equal(a, b) is holds


def test_no_sum_exceeds_an_absent_limit() -> None:
    huge = {"cpu": 2**200}
    assert resources.smallest(huge, {"cpu": UNLIMITED}, missing_is_unlimited=False) == huge
    assert resources.smallest(huge, {"cpu": 2**200 - 1}, missing_is_unlimited=False) == {"cpu": 2**200 - 1}


@pytest.mark.parametrize(("amount", "factor", "product"), [(10_000, 1.2, 12_000), (100, 0.29, 29), (3, 0.5, 1)])
def test_a_factor_is_the_exact_decimal_fraction_that_a_user_wrote(amount: int, factor: float, product: int) -> None:
    assert resources.times(amount, resources.factor_of(factor)) == product


def test_only_requested_dimensions_can_exceed_and_pods_never_do() -> None:
    a, b = {"cpu": 5, "gpu": 3, "pods": 9}, {"cpu": 4, "gpu": 3}
    assert resources.exceeding(a, b, {"cpu": 1, "gpu": 1, "pods": 1, "memory": 0}) == ["cpu"]


@pytest.mark.parametrize(
    ("a", "b", "requested", "holds"),
    [
        ({"cpu": 2, "gpu": 9}, {"cpu": 2, "gpu": 1}, {"cpu": 1, "gpu": 1}, True),
        ({"gpu": 9}, {"gpu": 1}, {"cpu": 1, "gpu": 1}, False),  # cpu is zero on both sides and does not count
        ({}, {}, {"cpu": 1}, False),
    ],
)
def test_any_within_needs_one_requested_dimension_within_its_limit(
    a: dict[str, int], b: dict[str, int], requested: dict[str, int], holds: bool
) -> None:
    assert resources.any_within(a, b, requested) is holds


@pytest.mark.parametrize(
    ("a", "b", "holds"),
    [
        ({"gpu": 1}, {}, False),  # a scalar that b lacks is not relevant
        ({"gpu": 1}, {"gpu": 0}, True),  # a scalar that is zero in b is relevant
        ({"cpu": 1}, {"cpu": 0}, False),  # cpu that is zero in b is not relevant
        ({"cpu": 2}, {"cpu": 1}, True),
    ],
)
def test_any_above_needs_one_relevant_dimension_above_its_limit(
    a: dict[str, int], b: dict[str, int], holds: bool
) -> None:
    assert resources.any_above(a, b, {"cpu": 1, "gpu": 1}) is holds


@given(AMOUNTS, AMOUNTS)
def test_adding_and_then_subtracting_an_amount_changes_nothing(a: dict[str, int], b: dict[str, int]) -> None:
    back = resources.minus(resources.plus(a, b), b)
    assert {n: v for n, v in back.items() if v} == {n: v for n, v in a.items() if v}


@given(AMOUNTS, AMOUNTS)
def test_the_exceeding_part_and_the_part_within_add_up_to_the_whole(a: dict[str, int], b: dict[str, int]) -> None:
    over, shared = resources.exceeded_part(a, b), resources.smallest(a, b, missing_is_unlimited=False)
    assert resources.plus(over, shared) == a


@pytest.mark.parametrize(("part", "whole", "share"), [(0, 0, 0.0), (1, 0, 1.0), (1, 4, 0.25)])
def test_a_share_of_zero_is_zero_or_one(part: int, whole: int, share: float) -> None:
    assert resources.share(part, whole) == share
