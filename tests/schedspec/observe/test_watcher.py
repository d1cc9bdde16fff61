"""The history that lists and watches are recorded into."""

from __future__ import annotations

from typing import Any

from schedspec.api.kinds import Kind
from schedspec.observe.history import History
from schedspec.observe.watcher import HistoryWriter


def node(name: str, version: int, uid: str = "u", **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"{uid}-{name}", "resourceVersion": str(version), **more}}


def changes(history: History) -> list[tuple[str, str]]:
    return [(version.change, version.ref.name) for version in history.since(0)]


def test_a_scenario_begins_with_what_is_there() -> None:
    recorder = HistoryWriter()
    recorder.saw(Kind.NODE, node("n1", 1))
    history = recorder.begin("ns")
    assert changes(history) == [("was", "n1")]


def test_an_earlier_scenario_gets_nothing_more() -> None:
    recorder = HistoryWriter()
    first = recorder.begin("a")
    second = recorder.begin("b")
    recorder.saw(Kind.NODE, node("n1", 1))
    assert (changes(first), changes(second)) == ([], [("added", "n1")])


def test_managed_fields_are_not_kept() -> None:
    recorder = HistoryWriter()
    recorder.saw(Kind.NODE, node("n1", 1, managedFields=[{"manager": "x"}]))
    assert "managedFields" not in next(recorder.begin("ns").now().all(Kind.NODE))["metadata"]


def test_the_same_version_twice_is_one() -> None:
    recorder = HistoryWriter()
    history = recorder.begin("ns")
    recorder.saw(Kind.NODE, node("n1", 1))
    recorder.saw(Kind.NODE, node("n1", 1))
    assert changes(history) == [("added", "n1")]


def test_a_new_list_is_recorded_as_its_difference() -> None:
    recorder = HistoryWriter()
    for name in ("stays", "changes", "goes"):
        recorder.saw(Kind.NODE, node(name, 1))
    recorder.saw(Kind.QUEUE, node("another-kind", 1))
    history = recorder.begin("ns")
    recorder.relisted(Kind.NODE, [node("stays", 1), node("changes", 2), node("comes", 3)])
    assert changes(history)[4:] == [("gone", "goes"), ("changed", "changes"), ("added", "comes")]


def test_a_successor_of_the_same_name_is_another_object() -> None:
    recorder = HistoryWriter()
    recorder.saw(Kind.NODE, node("n1", 1, uid="old"))
    history = recorder.begin("ns")
    recorder.relisted(Kind.NODE, [node("n1", 5, uid="new")])
    assert changes(history)[1:] == [("gone", "n1"), ("added", "n1")]
    assert [it.uid for it in history.story(history.ref(Kind.NODE, "n1"))] == ["old-n1", "old-n1", "new-n1"]
