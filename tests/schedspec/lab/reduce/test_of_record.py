"""The incident for which a failed scenario is reduced, from its record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from schedspec.api.errors import HarnessError
from schedspec.lab.reduce.of_record import HISTORY, because_of, list_before
from schedspec.report import record
from schedspec.report.record import ActMoment, Judgement, ScenarioRecord, Sentence, Software

EVICTIONS = [
    ActMoment(1.0, "evict", f"{job}-task-0", "u", "n1", group=f"{job}-00000000-0000-4000-8000-0000000006d4")
    for job in ("low", "medium")
]


def written(folder: Path, sentence: str, findings: list[Judgement] | None = None) -> Path:
    sentences = [Sentence("Given", "these nodes:", 3, verdict="passed")]
    sentences += [Sentence("Then", sentence, 4, verdict="failed")] if sentence else []
    found = ScenarioRecord(
        feature="f",
        feature_file="f.feature",
        scenario="s",
        node_id="f.feature::s",
        line=2,
        namespace="spec-s-1",
        cluster=Software("embedded"),
        scheduler=Software("schedspec"),
        policy="",
        policy_sha256="",
        began=0.0,
        seconds=1.0,
        verdict="failed",
        sentences=sentences,
        acts=EVICTIONS,
        findings=findings or [],
    )
    return record.write(found, folder).parent


@pytest.mark.parametrize(
    ("sentence", "because"),
    [
        ('"train" runs', "job spec-s-1/train waits"),
        ('exactly 2 pods of "train" run', "job spec-s-1/train waits"),
        ('"low" keeps running', "pod spec-s-1/low-task-0 was evicted"),
        ("nothing is evicted", "pod spec-s-1/medium-task-0 was evicted"),
        ("exactly 1 pod is evicted", "pod spec-s-1/medium-task-0 was evicted"),
    ],
)
def test_the_incident_of_a_failed_sentence(tmp_path: Path, sentence: str, because: str) -> None:
    assert because_of(written(tmp_path, sentence)) == because


def test_the_incident_is_a_monitors_finding_if_no_sentence_failed(tmp_path: Path) -> None:
    folder = written(tmp_path, "", [Judgement(1.0, "gang", "a", "in part")])
    assert because_of(folder) == "monitor gang"


@pytest.mark.parametrize("sentence", ["", 'queue "a" is Open', '"other" keeps running'])
def test_a_scenario_that_cannot_be_reduced_is_an_error_with_a_remedy(tmp_path: Path, sentence: str) -> None:
    with pytest.raises(HarnessError, match="do next"):
        because_of(written(tmp_path, sentence))


def test_a_folder_without_a_record_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="0 records"):
        because_of(tmp_path)


def history(folder: Path, *rows: tuple[float, str, str]) -> Path:
    lines = [
        {"at": at, "change": change, "object": {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name}}}
        for at, change, name in rows
    ]
    (folder / HISTORY).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_the_state_of_an_eviction_is_the_history_before_the_first_one(tmp_path: Path) -> None:
    rows = [(0.1, "added", "gone"), (0.2, "added", "low"), (0.3, "gone", "gone"), (1.5, "added", "later")]
    finding = Judgement(2.0, "repeated-eviction", "low-task-0", "evicted again")
    folder = history(written(tmp_path, "", [finding]), *rows)
    listed = json.loads(list_before(folder, "monitor repeated-eviction", tmp_path).read_text("utf-8"))
    assert [item["metadata"]["name"] for item in listed["items"]] == ["low"]


def test_a_wait_is_reduced_from_the_last_state(tmp_path: Path) -> None:
    folder = history(written(tmp_path, ""), (0.2, "added", "low"), (1.5, "added", "later"))
    listed = json.loads(list_before(folder, "job spec-s-1/later waits", tmp_path).read_text("utf-8"))
    assert [item["metadata"]["name"] for item in listed["items"]] == ["low", "later"]


def test_a_truncated_history_is_one_clear_error(tmp_path: Path) -> None:
    folder = history(written(tmp_path, ""), (0.2, "added", "low"))
    (folder / HISTORY).write_text((folder / HISTORY).read_text("utf-8")[:-20])
    with pytest.raises(HarnessError, match=r"history\.jsonl:1: .*\n  do next: run the scenario again"):
        list_before(folder, "job spec-s-1/low waits", tmp_path)
