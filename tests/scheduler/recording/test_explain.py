"""`explain` states why a pod or job of a recorded cycle was placed, evicted or left waiting."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from scheduler.__main__ import main
from scheduler.recording.names import Names, NotNamedError


def explained(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["explain", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_a_victim_learns_for_whom_and_by_whose_vote(reclaimed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = explained(capsys, reclaimed, "pod", "t/old-3")

    assert "pod t/old-3, cycle 2 at" in out
    assert (
        "evicted: reclaimed for t/new of queue a (victim's queue: b); "
        "tier 1 decided (gang permits, conformance permits, capacity permits); others: 2 not needed"
    ) in out
    assert "queue b: cpu" not in out
    assert "nvidia.com/gpu 4 allocated, 2 deserved, 4 asked for in all, 4 at most" in out


def test_a_preemptor_learns_who_made_room(reclaimed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = explained(capsys, reclaimed, "job", "t/new", "--cycle", 2)

    assert "t/new-0: t/old-3 makes room for it" in out
    assert "t/new-1: t/old-2 makes room for it" in out
    assert "t/new-0: waits for room on n1" in out


def test_a_waiting_job_learns_what_stands_in_its_way(reclaimed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = explained(capsys, reclaimed, "pod", "t/more-0")

    assert "its job t/more waits: " in out
    assert "queue a may not reclaim: 2 nvidia.com/gpu allocated and 1 requested, deserved 2" in out


def test_a_program_reads_why_nothing_was_reclaimed_with_its_numbers(
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


def test_a_job_learns_its_phase_and_what_it_waits_for(
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


def test_what_is_no_recording_is_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no recording\n")
    assert main(["explain", str(plain), "job", "t/new"]) == 2
    assert f"{plain}: " in capsys.readouterr().err


def test_every_cycle_is_shown_on_request(reclaimed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = explained(capsys, reclaimed, "job", "t/new", "--all")

    assert "cycle 2 at" in out
    assert "cycle 3 at" in out
    assert "t/new-0: bound to n1" in out


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t/old-0", "no recorded cycle decided anything about it"),
        ("t/olt-0", "the recording knows no pod 't/olt-0'; near names: t/old-0"),
        ("old", "'old' may be any of these pods; name one: t/old-0, t/old-1, t/old-2, t/old-3"),
        ("x", "it knows: t/old-0, t/old-1, t/old-2, t/old-3, t/new-0, t/new-1, t/more-0"),
    ],
)
def test_what_no_cycle_decided_about_is_said_so(
    reclaimed: Path, capsys: pytest.CaptureFixture[str], name: str, text: str
) -> None:
    assert main(["explain", str(reclaimed), "pod", name]) == 1
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("name", ["t/old-3", "old-3", "d-3"])
def test_a_pod_is_found_by_the_name_that_people_have(
    reclaimed: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert "pod t/old-3, cycle 2" in explained(capsys, reclaimed, "pod", name)


UID = "6f1c2b34-0a1b-4c2d-8e3f-001122334455"


@pytest.mark.parametrize(
    ("searched", "key"),
    [
        ("default/build", f"default/build-{UID}"),
        ("build", f"default/build-{UID}"),
        (f"default/build-{UID}", f"default/build-{UID}"),
        ("chat", "default/podgroup-0815"),  # of a Deployment: its owner's name
        ("other/chat", "other/chat"),
        ("buil", f"default/build-{UID}"),  # a part of its name, not of that of another's namespace
        ("release-build", "release-build/nightly"),
    ],
)
def test_a_job_is_called_as_its_workload(searched: str, key: str) -> None:
    names = Names()
    names.see("job", f"default/build-{UID.replace('6', '7')}")  # the one before
    names.see("job", f"default/build-{UID}", "build")
    names.see("job", "default/podgroup-0815", "chat")
    names.see("job", "other/chat")
    names.see("job", "release-build/nightly")
    if searched == "chat":
        with pytest.raises(NotNamedError, match="name one: default/podgroup-0815, other/chat"):
            names.find("job", searched)
    else:
        assert names.find("job", searched) == key


def test_a_successor_learns_that_the_pod_before_it_was_evicted(
    scheduler: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    live = scheduler()
    live.show({"nodes": [{"name": "n1", "has": "2 gpu"}]})
    live.show({"queues": [{"name": "a", "deserved": "2 gpu"}, {"name": "b"}]})
    live.show({"jobs": [{"name": "old", "queue": "b", "tasks": "1 x 2 gpu running on n1"}]})
    live.show({"jobs": [{"name": "new", "queue": "a", "tasks": "1 x 2 gpu", "phase": "Inqueue"}]})
    (evict,) = live.cycle().evictions
    live.lose("Pod", evict.task)
    pod = msgspec.to_builtins(
        next(
            it
            for kind, it in live.notation.objects({"jobs": [{"name": "old", "queue": "b", "tasks": "1 x 2 gpu"}]})
            if kind == "Pod"
        )
    )
    pod["metadata"]["uid"] = "another"
    live.see("Pod", pod)
    live.cycle()
    live.recorder.close()
    out = explained(capsys, live.recorder.directory, "pod", "old-0")
    assert "an earlier pod of this name was evicted in cycle 1 at" in out
    assert "reclaimed for t/new of queue a" in out


def test_a_program_reads_json(reclaimed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    explanation = json.loads(explained(capsys, reclaimed, "pod", "old-3", "-o", "json"))
    assert (explanation["kind"], explanation["name"], explanation["earlier"]) == ("pod", "t/old-3", [])
    assert explanation["cycles"][0]["says"][0].startswith("evicted: reclaimed for t/new")
