"""Selectors and tolerations match labels and taints as in Kubernetes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from schedspec.scheduler.model.matching import requirement_holds, selector_matches
from schedspec.scheduler.model.objects import LabelSelector, SelectorRequirement, Taint, Toleration
from schedspec.scheduler.placement.node_index import Tolerations

LABELS = {"zone": "a", "rank": "7"}


@pytest.mark.parametrize(
    ("key", "operator", "values", "holds"),
    [
        ("zone", "In", ["a", "b"], True),
        ("none", "In", ["a"], False),
        ("zone", "NotIn", ["b"], True),
        ("zone", "NotIn", ["a"], False),
        ("none", "NotIn", ["a"], True),  # NotIn matches an absent label
        ("zone", "Exists", [], True),
        ("none", "Exists", [], False),
        ("zone", "DoesNotExist", [], False),
        ("none", "DoesNotExist", [], True),
        ("rank", "Gt", ["6"], True),
        ("rank", "Gt", ["7"], False),
        ("rank", "Lt", ["8"], True),
        ("rank", "Lt", ["7"], False),
        ("zone", "Gt", ["1"], False),  # no number
        ("rank", "Gt", [], False),
        ("none", "Lt", ["1"], False),
        ("rank", "Gt", ["+6"], True),
        ("rank", "Gt", ["-1"], True),
        ("rank", "Lt", ["1_000"], False),  # numbers are written as in Go's ParseInt
        ("rank", "Gt", [" 6 "], False),
        ("rank", "Lt", ["٨"], False),
        ("rank", "Lt", ["9223372036854775807"], True),
        ("rank", "Lt", ["9223372036854775808"], False),  # beyond 64 bits, which Go refuses
        ("rank", "Gt", ["-9223372036854775808"], True),
        ("rank", "Gt", ["-9223372036854775809"], False),
        ("zone", "Near", ["a"], False),
    ],
)
def test_a_requirement_matches_labels(key: str, operator: str, values: list[str], holds: bool) -> None:
    assert requirement_holds(SelectorRequirement(key, operator, values), LABELS) is holds


@pytest.mark.parametrize(
    ("selector", "holds"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"zone": "a"}}, True),
        ({"matchLabels": {"zone": "b"}}, False),
        ({"matchLabels": {"zone": "a"}, "matchExpressions": [{"key": "rank", "operator": "DoesNotExist"}]}, False),
    ],
)
def test_a_label_selector_matches_labels(selector: dict[str, Any] | None, holds: bool) -> None:
    parsed = None if selector is None else msgspec.convert(selector, LabelSelector)
    assert selector_matches(parsed, LABELS) is holds


@pytest.mark.parametrize(
    ("toleration", "covers"),
    [
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "value": "w"}, False),
        ({"key": "k", "operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"operator": "Exists"}, True),
        ({"operator": "Equal", "value": "v"}, False),  # without a key only Exists covers anything
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "k", "operator": "Near", "value": "v"}, False),
    ],
)
def test_a_toleration_covers_a_taint(toleration: dict[str, str], covers: bool) -> None:
    taint = Taint(key="k", value="v", effect="NoSchedule")
    assert Tolerations([msgspec.convert(toleration, Toleration)]).cover(taint) is covers
