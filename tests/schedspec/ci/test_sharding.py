"""Shards: every scenario is in exactly one shard, durations are balanced, and all machines compute the same split."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedspec.ci import sharding
from schedspec.ci.joined import ResultsError, require_whole
from schedspec.ci.sharding import Shard, ShardError, ShardFacts

names = st.lists(st.text(min_size=1, max_size=4), unique=True, max_size=30)
durations = st.dictionaries(st.text(min_size=1, max_size=4), st.floats(0, 100), max_size=30)


@given(names, st.integers(1, 7), durations)
def test_every_scenario_is_in_one_shard(scenarios: list[str], of: int, seconds: dict[str, float]) -> None:
    shards = sharding.split(scenarios, of, seconds)
    assert sorted(name for shard in shards for name in shard) == sorted(scenarios)
    assert len(shards) == of


@given(names, st.integers(1, 7), durations, st.randoms())
def test_the_order_of_collection_does_not_matter(
    scenarios: list[str], of: int, seconds: dict[str, float], random: Random
) -> None:
    shuffled = random.sample(scenarios, len(scenarios))
    assert sharding.split(shuffled, of, seconds) == sharding.split(scenarios, of, seconds)


@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=40), st.integers(1, 6))
def test_no_shard_takes_longer_than_the_mean_plus_the_longest_scenario(took: list[float], of: int) -> None:
    seconds = {f"s{number}": it for number, it in enumerate(took)}
    loads = [sum(seconds[name] for name in shard) for shard in sharding.split(list(seconds), of, seconds)]
    assert max(loads) <= sum(took) / of + max(took) + 1e-6


def test_a_scenario_without_a_duration_counts_as_the_median() -> None:
    shards = sharding.split(["a", "b", "c", "new"], 2, {"a": 4.0, "b": 2.0, "c": 2.0})
    assert shards == [["a", "new"], ["b", "c"]]


@pytest.mark.parametrize("text", ["", "2", "0/3", "4/3", "1/0", "a/b", "1/2/3", "-1/3"])
def test_an_invalid_shard_is_rejected(text: str) -> None:
    with pytest.raises(ShardError, match="2/5, the second of five"):
        sharding.parse(text)


def test_shards_of_different_durations_do_not_join() -> None:
    one = sharding.facts(Shard(1, 2), sharding.split(["a", "b", "c"], 2, {}))
    other = sharding.facts(Shard(2, 2), sharding.split(["a", "b", "c"], 2, {"a": 9.0, "b": 1.0, "c": 1.0}))
    with pytest.raises(ResultsError, match="different suites"):
        require_whole([one, other])


@pytest.mark.parametrize(("numbers", "message"), [([1], "missing: 2"), ([1, 2, 2], "more than once: 2"), ([], "")])
def test_a_missing_or_duplicate_shard_is_detected(numbers: list[int], message: str) -> None:
    found = [ShardFacts(number, 2, "s", 1) for number in numbers]
    if message:
        with pytest.raises(ResultsError, match=message):
            require_whole(found)
    else:
        require_whole(found)
