"""Inputs that a simulation refuses, and the texts of the errors."""

from __future__ import annotations

import math
from typing import Any

import pytest

from schedspec.scheduler.recording.events import ObjectSeen
from schedspec.virtual import (
    Arrival,
    DrainNode,
    InvalidLoadError,
    OnEviction,
    PastEventError,
    StuckError,
    UnknownNodeError,
    Workload,
    node,
)
from schedspec.virtual.agenda import MAX_ROUNDS, Agenda, Rank
from schedspec.virtual.outcomes import Ended, Refused
from tests.support.core.virtual import CARDS, START, Run, policy

ONE = {CARDS: "1"}
EIGHT = {"n": {CARDS: "8"}}


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"name": ""}, "name"),
        ({"run_time": 0.0}, "run_time"),
        ({"run_time": -1.0}, "run_time"),
        ({"run_time": math.nan}, "run_time"),
        ({"pods": 0}, "pods"),
        ({"pods": 2, "min_member": 3}, "min_member"),
        ({"min_member": 0}, "min_member"),
        ({"requests": {CARDS: "many"}}, "requests"),
        ({"on_eviction": OnEviction.CHECKPOINT}, "checkpoint_every"),
    ],
)
def test_the_error_of_an_invalid_workload_names_the_field(given: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidLoadError) as refused:
        Workload(**{"name": "job", "run_time": 1.0, "requests": ONE, **given})
    assert refused.value.field == field
    assert field in str(refused.value)


def test_a_name_that_is_in_use_is_refused() -> None:
    job = Workload("job", 10, ONE)
    with pytest.raises(InvalidLoadError, match="has not ended"):
        Run(policy(), EIGHT).play((0, job), (5, job))


def test_a_name_may_be_used_again_after_its_workload_has_ended() -> None:
    job = Workload("job", 10, ONE)
    assert Run(policy(), EIGHT).play((0, job), (10, job)).times(Ended) == [10, 20]


def test_a_load_whose_time_goes_backwards_is_refused() -> None:
    with pytest.raises(PastEventError, match="sort the inputs by time"):
        Run(policy(), EIGHT).play((5, Workload("a", 10, ONE)), (4, Workload("b", 10, ONE)))


def test_a_load_that_begins_before_the_start_is_refused() -> None:
    with pytest.raises(PastEventError):
        Run(policy(), EIGHT).play((-1, Workload("a", 10, ONE)))


def test_the_error_names_a_missing_node() -> None:
    with pytest.raises(UnknownNodeError, match="no node m"):
        Run(policy(), EIGHT).play((0, DrainNode("m")))


def test_an_object_that_cannot_be_read_is_left_out_and_reported() -> None:
    run = Run(policy(), EIGHT).play((0, ObjectSeen("Node", node("bad", {"cpu": "lots"}))), (1, Workload("a", 10, ONE)))
    (refused,) = run.of(Refused)
    assert refused.object == "Node bad"
    assert "lots" in refused.message
    assert run.times(Ended) == [11]


def test_events_of_one_instant_run_in_the_order_of_their_rank() -> None:
    agenda, ran = Agenda(START), []
    for rank in (Rank.START, Rank.ARRIVAL, Rank.CHANGE, Rank.END, Rank.ARRIVAL):
        agenda.at(START, rank, lambda rank=rank: ran.append(rank))
    assert (agenda.run_due(), ran) == (5, sorted(ran))


def test_time_that_does_not_advance_is_an_error() -> None:
    agenda = Agenda(START)
    for _ in range(MAX_ROUNDS):
        agenda.advance(START)
    with pytest.raises(StuckError, match="the same work for ever"):
        agenda.advance(START)


def test_inputs_of_other_types_are_refused() -> None:
    with pytest.raises(TypeError, match="inputs of type str"):
        Run(policy(), EIGHT).simulation.run([Arrival(START, "job")])  # type: ignore[arg-type]
