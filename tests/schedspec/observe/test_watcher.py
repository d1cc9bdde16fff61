"""The writer records lists and watch events as versions of a history."""

from __future__ import annotations

from typing import Any

from schedspec.api.kinds import Kind
from schedspec.observe.history import History
from schedspec.observe.watcher import HistoryWriter


def node(name: str, version: int, uid: str = "u", **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"{uid}-{name}", "resourceVersion": str(version), **more}}


def changes(history: History) -> list[tuple[str, str]]:
    return [(version.change, version.ref.name) for version in history.since(0)]


def test_a_history_begins_with_the_existing_objects() -> None:
    writer = HistoryWriter()
    writer.record(Kind.NODE, node("n1", 1))
    history = writer.begin("ns")
    assert changes(history) == [("was", "n1")]


def test_an_earlier_history_receives_no_further_versions() -> None:
    writer = HistoryWriter()
    first = writer.begin("a")
    second = writer.begin("b")
    writer.record(Kind.NODE, node("n1", 1))
    assert (changes(first), changes(second)) == ([], [("added", "n1")])


def test_managed_fields_are_not_kept() -> None:
    writer = HistoryWriter()
    writer.record(Kind.NODE, node("n1", 1, managedFields=[{"manager": "x"}]))
    assert "managedFields" not in next(writer.begin("ns").now().all(Kind.NODE))["metadata"]


def test_a_repeated_version_is_recorded_once() -> None:
    writer = HistoryWriter()
    history = writer.begin("ns")
    writer.record(Kind.NODE, node("n1", 1))
    writer.record(Kind.NODE, node("n1", 1))
    assert changes(history) == [("added", "n1")]


def test_the_differences_of_a_new_list_are_recorded() -> None:
    writer = HistoryWriter()
    for name in ("same", "updated", "deleted"):
        writer.record(Kind.NODE, node(name, 1))
    writer.record(Kind.QUEUE, node("another-kind", 1))
    history = writer.begin("ns")
    writer.relisted(Kind.NODE, [node("same", 1), node("updated", 2), node("new", 3)])
    assert changes(history)[4:] == [("gone", "deleted"), ("changed", "updated"), ("added", "new")]


def test_a_successor_of_the_same_name_is_a_new_object() -> None:
    writer = HistoryWriter()
    writer.record(Kind.NODE, node("n1", 1, uid="old"))
    history = writer.begin("ns")
    writer.relisted(Kind.NODE, [node("n1", 5, uid="new")])
    assert changes(history)[1:] == [("gone", "n1"), ("added", "n1")]
    assert [it.uid for it in history.story(history.ref(Kind.NODE, "n1"))] == ["old-n1", "old-n1", "new-n1"]
