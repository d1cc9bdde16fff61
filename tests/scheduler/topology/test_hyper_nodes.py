"""Faults of HyperNodes are reported, and affect only the faulty HyperNode."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from schedspec.scheduler.model import objects
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.topology import hyper_nodes
from schedspec.scheduler.topology.domains import Topology
from schedspec.scheduler.topology.hyper_nodes import PatternMatches, topology_now

Member = tuple[str, dict[str, Any]]


def node(name: str) -> Member:
    return ("Node", {"exactMatch": {"name": name}})


def pattern(text: str) -> Member:
    return ("Node", {"regexMatch": {"pattern": text}})


def hyper_node(name: str) -> Member:
    return ("HyperNode", {"exactMatch": {"name": name}})


def topology(*specs: tuple[str, int, list[Member]], nodes: int = 4) -> Topology:
    """Return the domains of nodes n1, n2 … (n1 has the label zone=a) and of these HyperNodes, the oldest first."""
    cluster = Cluster()
    for number in range(1, nodes + 1):
        labels = {"zone": "a"} if number == 1 else {}
        cluster.set_node(objects.Node(objects.ObjectMeta(name=f"n{number}", labels=labels)))
    for second, (name, tier, members) in enumerate(specs):
        spec = {"tier": tier, "members": [{"type": kind, "selector": selector} for kind, selector in members]}
        meta = {"name": name, "creationTimestamp": f"2026-01-01T00:00:{second:02}Z"}
        cluster.set_hyper_node(msgspec.convert({"metadata": meta, "spec": spec}, objects.HyperNode))
    cluster.nodes.refresh()
    return topology_now(cluster)


def nodes_of(found: Topology, domain: str) -> list[str]:
    return [f"n{row + 1}" for row in found.by_name[domain].rows]


def test_members_by_name_pattern_and_label() -> None:
    label = ("Node", {"labelMatch": {"matchLabels": {"zone": "a"}}})
    found = topology(
        ("a", 1, [label]), ("b", 1, [node("n2")]), ("c", 1, [pattern("3|n4$")]), ("top", 5, [hyper_node("c")])
    )

    assert {name: nodes_of(found, name) for name in found.by_name} == {
        "a": ["n1"],
        "b": ["n2"],
        "c": ["n3", "n4"],
        "top": ["n3", "n4"],
    }
    assert not found.faults
    assert [domain.name for domain in found.around([2, 3])] == ["c", "top"]


GOOD = ("good", 1, [node("n4")])


@pytest.mark.parametrize(
    ("specs", "fault", "nodes"),
    [
        ([("bad", 1, [node("n1"), node("n9")])], "spec.members[1].selector: there is no node n9", ["n1"]),
        ([("bad", 1, [node("n1"), pattern("x")])], "spec.members[1].selector: the pattern x matches no node", ["n1"]),
        ([("bad", 1, [node("n1"), pattern("(")])], "spec.members[1].selector.regexMatch.pattern: missing )", ["n1"]),
        ([("bad", 1, [node("n1"), ("Node", {})])], "spec.members[1].selector: needs one of exactMatch", ["n1"]),
        ([("bad", 1, [node("n1"), ("Rack", {"exactMatch": {"name": "n2"}})])], "spec.members[1].type: Rack", ["n1"]),
        ([("bad", 2, [node("n1"), hyper_node("gone")])], "spec.members[1]: there is no HyperNode gone", ["n1"]),
        ([("bad", 1, [node("n1"), hyper_node("good")])], "spec.members[1]: tier 1 of member good is not below", ["n1"]),
        ([("bad", 2, [node("n1"), hyper_node("bad")])], "spec.members[1]: cyclic dependency: bad is below", ["n1"]),
        (
            [("first", 2, [hyper_node("good")]), ("bad", 2, [node("n1"), hyper_node("good")])],
            "spec.members[1]: HyperNode good already has the parent first",
            ["n1"],
        ),
        ([("bad", 1, [pattern("n[14]")])], "spec.members: node n4 is in HyperNode good already", ["n1"]),
    ],
)
def test_a_fault_is_reported_and_affects_only_its_hyper_node(
    specs: list[tuple[str, int, list[Member]]], fault: str, nodes: list[str]
) -> None:
    found = topology(GOOD, *specs)

    assert list(found.faults) == ["bad"]
    assert found.faults["bad"].startswith(fault)
    assert nodes_of(found, "bad") == nodes
    assert nodes_of(found, "good") == ["n4"]


def test_hyper_nodes_in_a_cycle_keep_their_own_nodes() -> None:
    found = topology(("a", 2, [node("n1"), hyper_node("b")]), ("b", 1, [node("n2"), hyper_node("a")]))

    assert "cyclic dependency" in found.faults["a"]
    assert "cyclic dependency" in found.faults["b"]
    assert nodes_of(found, "a") == ["n1"]
    assert nodes_of(found, "b") == ["n2"]


def test_a_hyper_node_may_also_name_a_node_of_its_child() -> None:
    found = topology(("rack", 1, [node("n1")]), ("spine", 2, [hyper_node("rack"), node("n1"), node("n2")]))

    assert not found.faults
    assert nodes_of(found, "spine") == ["n1", "n2"]


def test_a_new_node_that_matches_a_pattern_removes_the_fault() -> None:
    assert topology(("rack", 1, [pattern("n5")]), nodes=4).faults
    assert not topology(("rack", 1, [pattern("n5")]), nodes=5).faults


def test_matches_of_patterns_and_labels_are_updated_with_the_nodes() -> None:
    cluster = Cluster()

    def set_node(name: str, rack: str) -> None:
        cluster.set_node(objects.Node(objects.ObjectMeta(name=name, labels={"rack": rack, "zone": "a"})))

    def found() -> dict[str, list[str]]:
        cluster.nodes.refresh()
        domains = topology_now(cluster).by_name.values()
        return {it.name: [cluster.nodes.rows[row].name for row in it.rows] for it in domains}

    for name, selector in {
        "by-pattern": {"regexMatch": {"pattern": "^p"}},
        "by-labels": {"labelMatch": {"matchLabels": {"zone": "a", "rack": "2"}}},
    }.items():
        spec = {"tier": 1, "members": [{"type": "Node", "selector": selector}]}
        cluster.set_hyper_node(msgspec.convert({"metadata": {"name": name}, "spec": spec}, objects.HyperNode))
    set_node("p1", "1")
    set_node("x1", "2")
    assert found() == {"by-pattern": ["p1"], "by-labels": ["x1"]}
    set_node("p2", "1")
    set_node("x2", "2")
    assert found() == {"by-pattern": ["p1", "p2"], "by-labels": ["x1", "x2"]}
    cluster.delete_node("p1")
    set_node("x1", "3")
    assert found() == {"by-pattern": ["p2"], "by-labels": ["x2"]}
    set_node("p1", "1")
    assert found() == {"by-pattern": ["p1", "p2"], "by-labels": ["x2"]}


def test_a_name_is_searched_once_for_each_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[tuple[str, bytes]] = []

    class Recorded:
        def __init__(self, text: str) -> None:
            self._text = text

        def search(self, name: bytes) -> bool:
            searched.append((self._text, name))
            return True

    monkeypatch.setattr(hyper_nodes, "compiled", Recorded)
    matches = PatternMatches()
    for names in (["a"], ["a"], ["a", "b"], ["b"]):
        matches.begin(names)
        assert sorted(matches.of("x")) == names
    assert searched == [("x", b"a"), ("x", b"b")]


def topology_of_long_names(text: str) -> Topology:
    """Return the domains of a HyperNode with this pattern, for nodes whose names have the maximum length."""
    cluster = Cluster()
    for ending in "xyz":
        cluster.set_node(objects.Node(objects.ObjectMeta(name="a" * 252 + ending)))
    spec = {"tier": 1, "members": [{"type": "Node", "selector": {"regexMatch": {"pattern": text}}}]}
    cluster.set_hyper_node(msgspec.convert({"metadata": {"name": "bad"}, "spec": spec}, objects.HyperNode))
    cluster.nodes.refresh()
    return topology_now(cluster)


@pytest.mark.parametrize(
    "text", ["(a+)+b", "(a|a)*b", "(a|aa)+b", "a*a*a*a*a*a*a*b", "(.*a){12}b", "(([a-z])+.)+[A-Z]"]
)
def test_a_pattern_that_would_backtrack_for_hours_in_re_ends_at_once(text: str) -> None:
    found = topology_of_long_names(text)

    assert found.faults["bad"] == (
        f"spec.members[0].selector: the pattern {text} matches no node; correct or remove it"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a" * 257, "longer than 256 characters"),
        ("(.{0,900}x)", "pattern too large"),
        ("(.{0,100}x){0,9}y", "pattern too large"),
        (r"(a)\1", "invalid escape sequence"),
        ("(?=a)", "invalid perl operator"),
    ],
)
def test_a_pattern_that_is_too_large_or_not_regular_is_refused(text: str, reason: str) -> None:
    found = topology_of_long_names(text)

    assert found.faults["bad"].startswith(f"spec.members[0].selector.regexMatch.pattern: {reason}")
