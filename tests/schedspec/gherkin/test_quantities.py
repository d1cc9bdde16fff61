"""Quantities as people say them: what they permit of a total, in English and in Chinese."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

import pytest

from schedspec.gherkin import quantities
from schedspec.gherkin.quantities import LIMIT, MANY, MANY_ZH, RANGE, RANGE_ZH

OF_NINE = {
    "exactly 2": (2, 2),
    "2": (2, 2),
    "at least 3": (3, LIMIT),
    "at most 3": (0, 3),
    "between 2 and 4": (2, 4),
    "all of the": (9, 9),
    "all but one of the": (8, 8),
    "all but 3 of the": (6, 6),
    "a third of the": (3, 3),
    "two thirds of the": (6, 6),
    "0 % of the": (0, 0),
    "100 % of the": (9, 9),
}
CHINESE = {
    "恰好有 2 个": "exactly 2",
    "至少有 3 个": "at least 3",
    "至多有3个": "at most 3",
    "有 2 到 4 个": "between 2 and 4",
    "有全部的": "all of the",
    "有一半的": "half of the",
    "有三分之一的": "a third of the",
    "有四分之三的": "three quarters of the",
    "有除一个外的全部的": "all but one of the",
    "有除 3 个外的全部的": "all but 3 of the",
    "有 30 %的": "30 % of the",
}
RANGES = {
    "8 gpus": "8 gpus",
    "2 到 4 gpus": "between 2 and 4 gpus",
    "三分之一的 gpus": "a third of the gpus",
    "除一个外的全部的 amd.com/gpu": "all but one of the amd.com/gpu",
}


@pytest.mark.parametrize(("words", "bounds"), OF_NINE.items())
def test_words_permit_numbers_of_a_total(words: str, bounds: tuple[int, int]) -> None:
    assert re.fullmatch(MANY.pattern, words)
    assert quantities.problem(MANY(words)) == ""
    assert quantities.bounds(MANY(words), 9) == bounds


@pytest.mark.parametrize("words", ["half of the", "a quarter of the", "50 % of the", "all but 10 of the"])
def test_a_part_that_is_no_whole_number_of_pods_is_refused(words: str) -> None:
    with pytest.raises(ValueError, match="write a whole number, or a range"):
        quantities.bounds(words, 9)


@pytest.mark.parametrize("words", ["between 4 and 2", "between 2 and 2", "at least 0", "101 % of the"])
def test_words_that_say_nothing_are_refused(words: str) -> None:
    assert quantities.problem(words)


@pytest.mark.parametrize(("chinese", "english"), CHINESE.items())
def test_a_chinese_number_means_the_english_one(chinese: str, english: str) -> None:
    assert re.fullmatch(MANY_ZH.pattern, chinese)
    assert MANY_ZH(chinese) == english
    assert re.fullmatch(MANY.pattern, english)


@pytest.mark.parametrize(("chinese", "english"), RANGES.items())
def test_a_chinese_amount_means_the_english_one(chinese: str, english: str) -> None:
    assert re.fullmatch(RANGE_ZH.pattern, chinese)
    assert RANGE_ZH(chinese) == english
    assert re.fullmatch(RANGE.pattern, english)


TOTAL = {"cpu": Decimal(10), "memory": Decimal(2**30), "nvidia.com/gpu": Decimal(8)}
AMOUNTS = {
    "cpu 4, gpus 8": {"cpu": "4", "nvidia.com/gpu": "8"},
    "half of the gpus, 30 % of the cpu": {"nvidia.com/gpu": "4", "cpu": "3"},
    "a quarter of the cpu, all but one of the gpus": {"cpu": "2500m", "nvidia.com/gpu": "7"},
    "a third of the memory": {"memory": "357913941"},
}


@pytest.mark.parametrize(("text", "amounts"), AMOUNTS.items())
def test_a_part_of_all_nodes_is_an_amount_of_a_queue(text: str, amounts: dict[str, str]) -> None:
    assert quantities.of_nodes(quantities.amounts(text), TOTAL) == amounts


@pytest.mark.parametrize("text", ["a fifth of the gpus", "some of the cpu", "gpus 2, half of the gpus", "half of gpus"])
def test_a_part_that_nobody_can_read_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no part|appears twice|write a"):
        quantities.amounts(text)


@pytest.mark.parametrize("text", ["a third of the gpus", "a third of the cpu", "half of the amd.com/gpu"])
def test_a_part_that_no_queue_can_have_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write an amount"):
        quantities.of_nodes(quantities.amounts(text), TOTAL)


def test_parts_of_amounts_are_exact() -> None:
    assert quantities.share("a third", 8) == Fraction(8, 3)
    assert quantities.share("30 %", 10) == 3
