"""`explain` states why a pod or job of a recorded cycle was placed, evicted or left waiting."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from schedspec.scheduler.__main__ import main
from schedspec.scheduler.recording.explain import NotNamedError, RecordedNames


def explained(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["explain", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_a_victims_explanation_names_the_preemptor_and_the_votes(
    reclaimed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = explained(capsys, reclaimed, "pod", "t/old-3")

    assert "pod t/old-3, cycle 2 at" in out
    assert (
        "evicted: reclaimed for t/new of queue a (victim's queue: b); "
        "tier 1 decided (gang permits, conformance permits, capacity permits); others: 2 not needed"
    ) in out
    assert "queue b: cpu" not in out
    assert "nvidia.com/gpu 4 allocated, 2 deserved, 4 requested in total, 4 at most" in out


def test_a_preemptors_explanation_names_its_victims(reclaimed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = explained(capsys, reclaimed, "job", "t/new", "--cycle", 2)

    assert "t/new-0: t/old-3 is evicted for it" in out
    assert "t/new-1: t/old-2 is evicted for it" in out
    assert "t/new-0: waits for room on n1" in out


def test_a_waiting_jobs_explanation_states_why_it_may_not_reclaim(
    reclaimed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = explained(capsys, reclaimed, "pod", "t/more-0")

    assert "its job t/more waits: " in out
    assert "queue a may not reclaim: 2 nvidia.com/gpu allocated and 1 requested, deserved 2" in out


def test_json_output_contains_the_numbers_of_protected_candidates(
    scheduler: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    live = scheduler()
    live.show({"nodes": [{"name": "n1", "has": "4 gpu"}]})
    live.show({"queues": [{"name": "a", "deserved": "2 gpu"}, {"name": "b", "deserved": "4 gpu"}]})
    live.show({"jobs": [{"name": "old", "queue": "b", "tasks": "4 x 1 gpu running on n1"}]})
    live.show({"jobs": [{"name": "new", "queue": "a", "tasks": "1 x 1 gpu", "phase": "Inqueue"}]})
    live.cycle()
    live.recorder.close()
    explanation = json.loads(explained(capsys, live.recorder.directory, "job", "t/new", "-o", "json"))

    (why,) = [it for it in explanation["cycles"][-1]["waits"] if it["type"] == "no-victims"]
    (spared,) = why["spared"]
    assert (why["candidates"], spared["count"]) == (4, 4)
    expected = {"type": "within-deserved", "queue": "b", "dimension": "nvidia.com/gpu", "allocated": "4"}
    assert expected.items() <= spared["why"].items()


def test_a_jobs_explanation_states_its_phase_and_why_it_waits(
    scheduler: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    live = scheduler()
    live.show({"nodes": [{"name": "n[1-3]", "has": "1 cpu"}], "queues": [{"name": "default"}]})
    live.show({"jobs": [{"name": "a", "tasks": "1 x 2 cpu"}]})
    live.cycle()
    live.recorder.close()
    out = explained(capsys, live.recorder.directory, "job", "t/a")
    assert "  its PodGroup becomes Inqueue\n" in out
    assert "  waits: 3 nodes: 3 lack cpu" in out


@pytest.mark.parametrize("name", ["", "nowhere"])
def test_explain_refuses_a_folder_without_a_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["explain", name, "job", "t/new"]) == 2
    assert "contains no recording; create one with" in capsys.readouterr().err


def test_explain_refuses_a_file_that_is_not_a_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no recording\n")
    assert main(["explain", str(plain), "job", "t/new"]) == 2
    assert f"{plain}: " in capsys.readouterr().err


def test_all_shows_every_cycle_with_a_decision(reclaimed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = explained(capsys, reclaimed, "job", "t/new", "--all")

    assert "cycle 2 at" in out
    assert "cycle 3 at" in out
    assert "t/new-0: bound to n1" in out


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t/old-0", "no recorded cycle made a decision about it"),
        ("t/olt-0", "the recording contains no pod 't/olt-0'; similar names: t/old-0"),
        ("old", "'old' matches several pods; name one: t/old-0, t/old-1, t/old-2, t/old-3"),
        ("x", "it contains: t/old-0, t/old-1, t/old-2, t/old-3, t/new-0, t/new-1, t/more-0"),
    ],
)
def test_an_object_without_a_decision_or_match_is_reported(
    reclaimed: Path, capsys: pytest.CaptureFixture[str], name: str, text: str
) -> None:
    assert main(["explain", str(reclaimed), "pod", name]) == 1
    assert text in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{folder}", "pod", "t/old-0"], "contains no recording; there is one in"),
        (["{cut}", "pod", "t/old-0"], "contains no cycle: the scheduler decided nothing, or the recording is cut off"),
        (["{recording}", "pod", "t/old-3", "--cycle", "99"], "contains no cycle 99"),
    ],
)
def test_a_recording_that_cannot_explain_anything_is_refused(
    reclaimed: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    (segment,) = reclaimed.glob("cycles-*")
    cut = reclaimed / "cut.jsonl.gz"
    cut.write_bytes(segment.read_bytes()[:300])
    deep = reclaimed / "runs" / "one" / "recording"
    deep.mkdir(parents=True)
    (deep / segment.name).write_bytes(segment.read_bytes())
    places = {"folder": reclaimed / "runs", "cut": cut, "recording": reclaimed}
    assert main(["explain", *(argument.format_map(places) for argument in arguments)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("name", ["t/old-3", "old-3", "d-3"])
def test_a_pod_is_found_by_a_part_of_its_name(reclaimed: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert "pod t/old-3, cycle 2" in explained(capsys, reclaimed, "pod", name)


UID = "6f1c2b34-0a1b-4c2d-8e3f-001122334455"


@pytest.mark.parametrize(
    ("searched", "key"),
    [
        ("default/build", f"default/build-{UID}"),
        ("build", f"default/build-{UID}"),
        (f"default/build-{UID}", f"default/build-{UID}"),
        ("chat", "default/podgroup-0815"),  # the name of its owner, a Deployment; ambiguous
        ("other/chat", "other/chat"),
        ("buil", f"default/build-{UID}"),  # a part of its name; in another key, only a part of the namespace
        ("release-build", "release-build/nightly"),
    ],
)
def test_a_job_is_found_by_the_name_of_its_workload(searched: str, key: str) -> None:
    names = RecordedNames()
    names.add("job", f"default/build-{UID.replace('6', '7')}")  # the PodGroup of the deleted workload
    names.add("job", f"default/build-{UID}", "build")
    names.add("job", "default/podgroup-0815", "chat")
    names.add("job", "other/chat")
    names.add("job", "release-build/nightly")
    if searched == "chat":
        with pytest.raises(NotNamedError, match="name one: default/podgroup-0815, other/chat"):
            names.find("job", searched)
    else:
        assert names.find("job", searched) == key


def test_the_explanation_of_a_recreated_pod_names_the_earlier_eviction(
    scheduler: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    live = scheduler()
    live.show({"nodes": [{"name": "n1", "has": "2 gpu"}]})
    live.show({"queues": [{"name": "a", "deserved": "2 gpu"}, {"name": "b"}]})
    live.show({"jobs": [{"name": "old", "queue": "b", "tasks": "1 x 2 gpu running on n1"}]})
    live.show({"jobs": [{"name": "new", "queue": "a", "tasks": "1 x 2 gpu", "phase": "Inqueue"}]})
    (evict,) = live.cycle().evictions
    live.delete("Pod", evict.task)
    pod = msgspec.to_builtins(
        next(
            it
            for kind, it in live.notation.objects({"jobs": [{"name": "old", "queue": "b", "tasks": "1 x 2 gpu"}]})
            if kind == "Pod"
        )
    )
    pod["metadata"]["uid"] = "another"
    live.add("Pod", pod)
    live.cycle()
    live.recorder.close()
    out = explained(capsys, live.recorder.directory, "pod", "old-0")
    assert "an earlier pod of this name was evicted in cycle 1 at" in out
    assert "reclaimed for t/new of queue a" in out


def test_json_output_contains_the_decisions(reclaimed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    explanation = json.loads(explained(capsys, reclaimed, "pod", "old-3", "-o", "json"))
    assert (explanation["kind"], explanation["name"], explanation["earlier"]) == ("pod", "t/old-3", [])
    assert explanation["cycles"][0]["says"][0].startswith("evicted: reclaimed for t/new")
