"""Exports: Cucumber Messages, read back by their own library, and a trace in Chrome's JSON format."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from cucumber_messages import Envelope, message_converter

from schedspec.cli.report import report_command
from schedspec.report import build, cucumber, perfetto, record
from schedspec.report.record import Failure, RecordError, ScenarioRecord, Sentence
from tests.support.scene import reclaim

FEATURE = """\
Feature: Some feature

  Background:
    Given a cluster

  Rule: One
    Scenario Outline: A scenario
      When <n> pods come
        | pod |
        | a   |
      Then they run

      Examples:
        | n |
        | 1 |
        | 2 |
"""


def outline(n: int, *, fails: bool) -> ScenarioRecord:
    verdict = "failed" if fails else "passed"
    sentences = [
        Sentence("Given", "a cluster", 4, 0.1, 0.2, "passed", background=True),
        Sentence("When", f"{n} pods come", 8, 0.3, 0.1, "passed", table=[["pod"], ["a"]]),
        Sentence("Then", "they run", 11, 0.4, 1.0, verdict),
    ]
    failure = Failure("expected: they run\n    seen: none does", "they run", "none does") if fails else None
    return msgspec.structs.replace(
        reclaim(),
        node_id=f"some.feature::A scenario[{n}]",
        feature_file="some.feature",
        line=7,
        example=str(n),
        sentences=sentences,
        verdict=verdict,
        failure=failure,
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "some.feature").write_text(FEATURE)
    return tmp_path


def read(path: Path) -> list[dict[str, object]]:
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for row in rows:
        message_converter.from_dict(row, Envelope)
    return rows


def test_runs_and_shards_join_into_one_page_with_the_selected_exports(root: Path) -> None:
    for n in (1, 2):
        record.write(outline(n, fails=n == 2), root / f"shard-{n}" / "scenarios" / "x")
    page, trace, messages = root / "page.html", root / "trace.json", root / "run.ndjson"
    shards = [root / "shard-1", root / "shard-2"]
    assert build(shards, page, perfetto=trace, cucumber_messages=messages, root=root) == 2
    assert "1 of 2 scenarios failed" in page.read_text("utf-8")
    assert trace.stat().st_size > 1_000
    assert len(read(messages)) > 20
    done = CliRunner().invoke(report_command, [*map(str, shards), "-o", str(root / "again.html")])
    assert done.output == f"{root / 'again.html'}: 2 scenarios\n"
    assert (root / "again.html").read_text("utf-8") == page.read_text("utf-8")
    with pytest.raises(RecordError, match="no record of a scenario below"):
        build([root / "shard-1" / "scenarios" / "x"], page)


def test_messages_are_complete_in_order_and_refer_to_existing_ids(root: Path) -> None:
    rows = read(cucumber.write([outline(1, fails=False), outline(2, fails=True)], root, root / "messages.ndjson"))
    kinds = [next(iter(row)) for row in rows]
    assert kinds[:5] == ["meta", "source", "gherkinDocument", "pickle", "pickle"]
    assert kinds[-1] == "testRunFinished"
    count = Counter(kinds)
    assert (count["testCase"], count["testCaseStarted"], count["testCaseFinished"]) == (2, 2, 2)
    assert count["testStepStarted"] == count["testStepFinished"] == 8  # three sentences and the monitors, twice
    assert count["attachment"] == 1
    ids = [row[kind]["id"] for row, kind in zip(rows, kinds, strict=True) if "id" in row[kind]]  # type: ignore[index, operator]
    assert len(ids) == len(set(ids))
    pickles = {row["pickle"]["id"]: row["pickle"] for row in rows if "pickle" in row}  # type: ignore[index]
    for row in rows:
        if "testCase" in row:
            case = row["testCase"]
            steps = [it["id"] for it in pickles[case["pickleId"]]["steps"]]  # type: ignore[index]
            assert [it.get("pickleStepId") for it in case["testSteps"]] == [*steps, None]  # type: ignore[index]
    statuses = [row["testStepFinished"]["testStepResult"]["status"] for row in rows if "testStepFinished" in row]  # type: ignore[index]
    assert statuses == ["PASSED"] * 6 + ["FAILED", "PASSED"]
    assert rows[-1]["testRunFinished"]["success"] is False  # type: ignore[index]


def test_a_finding_of_a_monitor_fails_the_hook_after_the_sentences(root: Path) -> None:
    judged = msgspec.structs.replace(outline(1, fails=False), verdict="failed", failure=Failure("monitor node: n1"))
    rows = read(cucumber.write([judged], root, root / "messages.ndjson"))
    results = [row["testStepFinished"]["testStepResult"] for row in rows if "testStepFinished" in row]  # type: ignore[index]
    assert [it["status"] for it in results] == ["PASSED", "PASSED", "PASSED", "FAILED"]
    assert results[-1]["message"] == "monitor node: n1"


@pytest.mark.parametrize("text", [None, FEATURE.replace("they run", "they sleep")])
def test_the_error_names_a_missing_or_changed_feature_file(root: Path, text: str | None) -> None:
    if text is None:
        (root / "some.feature").unlink()
    else:
        (root / "some.feature").write_text(text)
    with pytest.raises(RecordError, match=r"some\.feature"):
        cucumber.write([outline(1, fails=False)], root, root / "messages.ndjson")


def test_a_trace_has_pods_as_slices_queues_as_counters_and_evictions_as_flows() -> None:
    events = perfetto.trace([reclaim()])
    names = {(it["pid"], it["tid"]): it["args"]["name"] for it in events if it["name"] == "thread_name"}
    slices = [it for it in events if it["ph"] == "X"]
    on_nodes = {it["name"] for it in slices if names[it["pid"], it["tid"]] == "node card-node-1"}
    assert on_nodes == {"medium-1-task-0", "medium-2-task-0", "low-1-task-0", "low-2-task-0", "chat-5f7-x2"}
    assert sum(it["ph"] == "i" for it in events) == 3
    begins, ends = ({it["id"]: it for it in events if it["ph"] == phase} for phase in "sf")
    assert begins.keys() == ends.keys()
    assert len(begins) == 3
    for flow, end in ends.items():
        assert begins[flow]["ts"] <= end["ts"]
        assert [it["name"] for it in slices if it["tid"] == end["tid"] and it["ts"] == end["ts"]] == ["chat-5f7-x2"]
    assert {it["name"] for it in events if it["ph"] == "C"} == {
        "queue inference: nvidia.com/gpu",
        "queue training: nvidia.com/gpu",
    }


def test_the_file_of_a_trace_has_only_events_of_the_format(tmp_path: Path) -> None:
    path = perfetto.write([reclaim(), reclaim()], tmp_path / "a" / "run.json")
    events = json.loads(path.read_text("utf-8"))["traceEvents"]
    assert {it["pid"] for it in events} == {1, 2}
    assert all({"ph", "ts", "pid", "name"} <= it.keys() and it["ts"] >= 0 for it in events)
    assert {it["ph"] for it in events} == set("MXCisf")


def test_slices_of_one_thread_do_not_overlap() -> None:
    ends: dict[int, float] = {}
    slices = [it for it in perfetto.trace([reclaim()]) if it["ph"] == "X"]
    for event in sorted(slices, key=lambda it: it["ts"]):
        assert ends.get(event["tid"], 0.0) <= event["ts"] + 1e-3
        ends[event["tid"]] = event["ts"] + event["dur"]
