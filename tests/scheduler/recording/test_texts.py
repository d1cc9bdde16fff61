"""The texts of reasons: one clause for each rule, with its numbers."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from schedspec.scheduler.reasons import (
    GangMinimum,
    GangShort,
    NodeRule,
    NoNode,
    NotLower,
    NotNeeded,
    NoVictims,
    PingPong,
    PluginMessage,
    Protected,
    ProtectedBy,
    ProtectedCount,
    Protection,
    QueueGuarantee,
    QueueLimit,
    QueueSurplus,
    QueueWithinDeserved,
    Refusal,
    UnschedulableReason,
    Vetoed,
    VictimReason,
    refusal_annotations,
    refusal_data,
    render_denial,
    render_refusal,
    render_victim,
    render_why,
)

GPU = "nvidia.com/gpu"


@pytest.mark.parametrize(
    ("why", "text"),
    [
        (
            QueueLimit("training", GPU, 6000, 4000, "capability", 8000),
            "queue training: 6 of 8 nvidia.com/gpu allocated, 4 requested, capability 8",
        ),
        (
            NoNode("t/x", 12, (NodeRule(8, "resource", GPU), NodeRule(4, "taint", "x"))),
            "12 nodes: 8 lack nvidia.com/gpu, 4 have the taint x",
        ),
        (NoNode("t/x", 1, (NodeRule(1, "resource", "cpu"),)), "1 node: 1 lacks cpu"),
        (GangShort(3, 4), "gang: 3 of at least 4 tasks can be placed"),
        (
            NoVictims(
                "reclaim",
                "t/x",
                3,
                (ProtectedCount(2, QueueWithinDeserved("b", GPU, 4000, 4000)), ProtectedCount(1, NotLower(5, 5))),
            ),
            (
                "reclaim: 3 candidates: "
                "2 protected by queue b at its deserved (4 of 4 nvidia.com/gpu), 1 of equal priority 5"
            ),
        ),
        (NoVictims("preempt", "t/x", 0), "preempt: no candidates"),
        (PluginMessage("mine", "not on Mondays"), "mine: not on Mondays"),
    ],
)
def test_text_of_a_reason_for_waiting(why: UnschedulableReason, text: str) -> None:
    assert render_why(why) == text


@pytest.mark.parametrize(
    ("denial", "text"),
    [
        (
            QueueGuarantee("b", "cpu", 4000, 2000),
            "protected by the guarantee of queue b (2 of 4 cpu allocated is guaranteed)",
        ),
        (PingPong("b"), "protected because queue b could reclaim the room at once"),
        (NotLower(9, 5), "of higher priority (9 against 5)"),
        (Vetoed("priority", 0, NotLower(9, 5)), "of higher priority (9 against 5; priority, tier 1)"),
        (Vetoed("conformance", 1, Protected(ProtectedBy.SYSTEM)), "part of the system (conformance, tier 2)"),
        (Vetoed("mine", 1), "vetoed (mine, tier 2)"),
        (GangMinimum("t/old", 4), "needed by gang t/old (minimum 4)"),
        (GangMinimum("t/old", 4, 4, 0), "needed by gang t/old, which needs all 4 pods (gang, tier 1)"),
        (GangMinimum("t/old", 4, 6, 1), "needed by gang t/old, which needs 4 of its 6 pods (gang, tier 2)"),
        (Protected(ProtectedBy.PREEMPTABLE), "not preemptable"),
        (Protected(ProtectedBy.BUDGET, "t/keep"), "protected by disruption budget t/keep"),
        (NotNeeded(), "not needed"),
    ],
)
def test_text_of_a_candidates_protection(denial: Protection, text: str) -> None:
    assert render_denial(denial) == text


def test_text_of_an_eviction_names_the_preemptor_and_the_deciding_tier() -> None:
    reason = VictimReason("reclaim", "t/new", "t/new-0", "a", "b", tier=1, whole_gang=True, votes=(("gang", False),))

    assert render_victim(reason) == (
        "reclaimed for t/new of queue a (victim's queue: b), the whole gang; tier 2 decided (gang vetoes)"
    )


def test_data_of_a_refusal_contain_its_numbers_as_quantities() -> None:
    spared = (ProtectedCount(8, GangMinimum("t/train", 8, 8, 0)),)
    refusal = Refusal((NoVictims("reclaim", "t/x", 8, spared, (QueueSurplus("research", GPU, 10000, 6000),)),))
    (data,) = json.loads(refusal_annotations(refusal)["schedspec.dev/waits"])

    assert data["text"] == (
        "reclaim: 8 candidates: 8 needed by gang t/train, which needs all 8 pods (gang, tier 1), "
        "queue research holds 4 of 10 nvidia.com/gpu above deserved"
    )
    assert data["type"] == "no-victims"
    assert (data["spared"][0]["count"], data["spared"][0]["why"]["type"]) == (8, "gang-minimum")
    assert data["surplus"] == [{"queue": "research", "dimension": GPU, "allocated": "10", "deserved": "6"}]


def test_data_of_a_protection_contain_its_plugin_and_tier() -> None:
    vetoed = Vetoed("capacity", 1, QueueWithinDeserved("b", GPU, 4000, 6000))
    spared = (ProtectedCount(4, vetoed), ProtectedCount(1, Vetoed("mine", 0)))
    (data,) = refusal_data(Refusal((NoVictims("reclaim", "t/x", 5, spared),)))

    assert [it["why"] for it in data["spared"]] == [
        {
            "type": "within-deserved",
            "queue": "b",
            "dimension": GPU,
            "allocated": "4",
            "deserved": "6",
            "plugin": "capacity",
            "tier": 1,
            "text": "protected by queue b at its deserved (4 of 6 nvidia.com/gpu; capacity, tier 2)",
        },
        {"type": "vetoed", "plugin": "mine", "tier": 0, "why": None, "text": "vetoed (mine, tier 1)"},
    ]


def test_an_equal_reason_is_rendered_once() -> None:
    refusal = Refusal((GangShort(0, 2),)).also(GangShort(0, 2), PluginMessage("x", "y"))

    assert render_refusal(refusal) == "gang: 0 of at least 2 tasks can be placed; x: y"


@pytest.mark.parametrize("kind", list(dict.fromkeys((*UnschedulableReason.__args__, *Protection.__args__))))
def test_every_reason_has_a_text_and_survives_encoding(kind: type[msgspec.Struct]) -> None:
    samples: dict[Any, Any] = {str: "s", int: 1, float: 1000.0, bool: True, ProtectedBy: ProtectedBy.BUDGET}
    values = [samples.get(field.type, None if field.default is None else ()) for field in msgspec.structs.fields(kind)]
    reason = kind(*values)

    assert (render_why if kind in UnschedulableReason.__args__ else render_denial)(reason)
    assert msgspec.json.decode(msgspec.json.encode(reason), type=kind) == reason
