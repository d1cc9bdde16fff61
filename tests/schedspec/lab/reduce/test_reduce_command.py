"""`schedspec reduce` as an engineer runs it: lists of kubectl, recordings, and unusable inputs."""

from __future__ import annotations

import gzip
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from schedspec import distribution
from schedspec.cli.reduce import reduce_command
from schedspec.lab.reduce.feature import clean
from schedspec.lab.reduce.of_recording import moments
from schedspec.lab.reduce.written import MAX_LINES
from schedspec.scheduler.core import Core
from schedspec.scheduler.framework.decisions import Decisions
from schedspec.scheduler.inputs import Decided, PolicyLoaded, Started, apply_input, write_line
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.preemption.request import PreemptionRequest
from schedspec.scheduler.recording import segments as recorded_segments
from schedspec.scheduler.recording.segments import VERSION, SegmentWriter
from schedspec.virtual.state import listed, read_state
from tests.schedspec.lab.reduce import large_state, unprotected
from tests.support.simulating import simulate

CAPACITY = distribution.folder("templates") / "policies" / "capacity.yaml"
BORN = "2026-11-01T00:00:00Z"
GPU = "nvidia.com/gpu"
MAX_SECONDS = 120.0
"""CPU seconds of a reduction. The command's own budget is wall-clock time, which depends on other programs."""


def queue(name: str, cards: int) -> dict[str, Any]:
    spec = {"deserved": {GPU: str(cards)}}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
    }


def work(name: str, of: str, node: str = "", **pod: Any) -> list[dict[str, Any]]:
    marks = {"scheduling.k8s.io/group-name": name}
    meta = {"name": f"{name}-0", "namespace": "t", "uid": name, "creationTimestamp": BORN, "annotations": marks}
    spec = {"containers": [{"name": "c", "resources": {"requests": {GPU: "1"}}}], "nodeName": node, **pod}
    group = {"name": name, "namespace": "t", "uid": f"{name}-g", "creationTimestamp": BORN}
    return [
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": group,
            "spec": {"minMember": 1, "queue": of},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": meta,
            "spec": spec,
            "status": {"phase": "Running" if node else "Pending"},
        },
    ]


def written(folder: Path, *items: dict[str, Any]) -> Path:
    ready = [{"type": "Ready", "status": "True"}]
    has = {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "10", GPU: "4"}, "conditions": ready}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": has}
    path = folder / "list.json"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [node, *items]}))
    return path


@pytest.fixture
def lent(tmp_path: Path) -> Path:
    """Return a queue that reclaims a lent card; one pod requires its node."""
    taken = [item for number in range(4) for item in work(f"b{number}", "b", "n")]
    bound = work("b9", "b", nodeSelector={"zone": "x\n    Then nothing is evicted"})
    return written(tmp_path, queue("a", 1), queue("b", 3), *taken, *bound, *work("new", "a"))


def run(*words: object) -> Result:
    return CliRunner().invoke(reduce_command, [str(word) for word in words], standalone_mode=False)


def test_a_file_of_the_user_is_not_overwritten(lent: Path, tmp_path: Path) -> None:
    out = tmp_path / "own.feature"
    for text, status in (("Feature: own\n", 2), ("Feature: f\n  # Reduced by schedspec 1\n", 0)):
        out.write_text(text)
        ran = run(lent, "--because", "job t/b9 waits", "--policy", CAPACITY, "-o", out)
        assert (ran.return_value, out.read_text("utf-8") == text) == (status, status == 2)


def test_an_eviction_of_a_list_becomes_a_feature_that_passes(lent: Path, tmp_path: Path) -> None:
    out = tmp_path / "found" / "evicted.feature"
    ran = run(lent, "--because", "pod t/b3-0 was evicted", "--policy", CAPACITY, "-o", out)
    assert ran.return_value == 0, ran.output
    text = out.read_text("utf-8")
    assert len(text.splitlines()) <= MAX_LINES
    assert 'Given the policy "capacity"' in text
    assert '"train-1" is evicted' in text
    assert "node selector of job t/b9" in ran.output


def test_fields_that_the_api_server_adds_are_not_reported_as_left_out(tmp_path: Path) -> None:
    added = {
        "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
        "preemptionPolicy": "PreemptLowerPriority",
    }
    items = [item for number in range(5) for item in work(f"b{number}", "b", "n" if number < 4 else "", **added)]
    for item in items:
        if item["kind"] == "PodGroup":
            item["spec"]["minTaskMember"] = {"task": 1}
    state = written(tmp_path, queue("b", 4), *items)
    ran = run(state, "--because", "job t/b4 waits", "--policy", CAPACITY, "-o", tmp_path / "waits.feature")
    assert ran.return_value == 0, ran.output
    assert "left out" not in ran.output


def test_a_wait_becomes_a_feature_that_passes(lent: Path, tmp_path: Path) -> None:
    out = tmp_path / "waits.feature"
    ran = run(lent, "--because", "job t/b9 waits", "--policy", CAPACITY, "-o", out)
    assert ran.return_value == 0, ran.output
    text = out.read_text("utf-8")
    assert '"train-1" waits because of' in text
    assert re.search(r"^  # Jobs: train-1 stands for b9\b.* \(namespace t\)$", text, re.MULTILINE)
    assert "  # Run it: schedspec test waits.feature --cluster simulated" in text
    assert re.search(r"^  # Queues: .*\b\w+ (stands )?for b\b", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("nodes", "jobs"), [(10, 100), pytest.param(200, 2000, marks=pytest.mark.nightly)], ids=["small", "large"]
)
def test_a_wait_in_a_large_state_becomes_a_short_feature(nodes: int, jobs: int, tmp_path: Path) -> None:
    state = large_state.write_state(tmp_path / "list.json", nodes, jobs)
    out = tmp_path / "waits.feature"
    because = f"job {large_state.SUBJECT} waits"
    begun = time.process_time()
    ran = run(state, "--because", because, "--policy", CAPACITY, "-o", out, "--minutes", 60)
    assert time.process_time() - begun < MAX_SECONDS
    assert ran.return_value == 0, ran.output
    assert "budget" not in ran.output
    assert len(out.read_text("utf-8").splitlines()) <= MAX_LINES


def test_a_monitors_finding_becomes_a_feature_with_the_same_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted defect: a pod that is not preemptable is evicted."""
    monkeypatch.setattr(PreemptionRequest, "protection", unprotected.protection)
    monkeypatch.setenv("PYTEST_PLUGINS", unprotected.__name__)
    kept = [item for number in range(4) for item in work(f"b{number}", "b", "n")]
    for pod in kept[1::2]:
        pod["metadata"]["annotations"]["volcano.sh/preemptable"] = "false"
    state = written(tmp_path, queue("a", 2), queue("b", 2), *kept, *work("new", "a"), *work("other", "a"))
    out = tmp_path / "broken.feature"
    ran = run(state, "--because", "monitor protection", "--policy", CAPACITY, "-o", out)
    assert ran.return_value == 0, ran.output
    assert "it fails for the monitor protection" in ran.output
    assert len(out.read_text("utf-8").splitlines()) <= MAX_LINES


def test_a_monitors_finding_in_a_recording_is_reduced_from_its_cycle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted defect: queues that are not reclaimable are reclaimed. The last state does not show it."""
    monkeypatch.setattr(PreemptionRequest, "protection", unprotected.protection)
    monkeypatch.setenv("PYTEST_PLUGINS", unprotected.__name__)
    kept = {**queue("kept", 1), "spec": {"deserved": {GPU: "1"}, "reclaimable": False}}
    (tmp_path / "queues.json").write_text(json.dumps({"kind": "List", "items": [kept, queue("owed", 3)]}))
    rows = [f"{at},500,1,{of}" for at, of in [(number, "kept") for number in range(4)] + [(60, "owed"), (70, "owed")]]
    (tmp_path / "jobs.csv").write_text("\n".join(["submitted,duration,cards,queue", *rows]) + "\n")
    load = ["--trace", "jobs.csv", "--map", "submitted=submitted,duration=duration,cards=cards,queue=queue"]
    cluster = ["--nodes", "1x4", "--queues", "queues.json", "--policy", CAPACITY, "--record", "recording"]
    monkeypatch.chdir(tmp_path)
    assert simulate([*load, *map(str, cluster)]) == 0
    out = tmp_path / "broken.feature"
    ran = run("recording", "--because", "monitor protection", "-o", out)
    assert ran.return_value == 0, ran.output
    assert "it fails for the monitor protection" in ran.output
    text = out.read_text("utf-8")
    assert "It fails because of this finding: train-1-task-0: evicted although queue" in text
    assert "train-1 stands for job-" in text
    assert 'Then "train-1" keeps running' in text
    assert len(text.splitlines()) <= MAX_LINES


def test_a_monitor_that_finds_nothing_in_a_recording_is_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "jobs.csv").write_text("at,seconds,cards\n0,10,1\n")
    monkeypatch.chdir(tmp_path)
    load = ["--trace", "jobs.csv", "--map", "submitted=at,duration=seconds,cards=cards"]
    assert simulate([*load, "--nodes", "1x4", "--record", "recording"]) == 0
    ran = run("recording", "--because", "monitor gang", "-o", tmp_path / "f.feature")
    assert ran.return_value == 2
    assert "monitor gang: the monitor finds nothing in recording" in ran.output


def test_a_finding_before_every_cycle_of_a_recording_belongs_to_no_cycle(tmp_path: Path) -> None:
    full = written(tmp_path, queue("b", 4), *(item for number in range(5) for item in work(f"b{number}", "b", "n")))
    core = Core(Cluster())
    for given in read_state(full).inputs():
        apply_input(core, given)
    recorder = SegmentWriter(tmp_path / "recording")
    recorder.checkpoint(core.cluster, PolicyLoaded("conf", CAPACITY.read_text("utf-8")))
    recorder.write(Decided(1, 1_800_000_000.0, Decisions()))
    recorder.close()
    assert list(moments(recorder.directory, "node")) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--shown", "4/2"), "not K/N"),
        (("--shown", "often"), "not K/N"),
        (("--cluster", "simulated", "--scheduler", "volcano"), "name --cluster embedded"),
        (("--scheduler", "no.such:Adapter"), "cannot be imported"),
    ],
    ids=["more-than-all", "no-number", "volcano-in-virtual-time", "no-adapter"],
)
def test_an_invalid_cluster_or_scheduler_is_one_clear_error(
    lent: Path, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    ran = run(lent, "--because", "job t/b9 waits", "--policy", CAPACITY, "-o", tmp_path / "f.feature", *options)
    assert ran.return_value == 2
    assert message in ran.output


def test_a_decision_that_differs_under_another_policy_becomes_a_feature(lent: Path, tmp_path: Path) -> None:
    out = tmp_path / "differs.feature"
    ran = run(lent, "--because", f"policy {CAPACITY.parent / 'default.yaml'}", "--policy", CAPACITY, "-o", out)
    assert ran.return_value == 0, ran.output
    assert "under the other policy: " in ran.output
    assert "under the other policy: evicted" not in ran.output
    text = out.read_text("utf-8")
    assert '"train-1" is evicted' in text
    assert len(text.splitlines()) <= MAX_LINES


@pytest.mark.parametrize(
    ("because", "message"),
    [
        ("policy gone.yaml", "cannot read the policy file"),
        (f"policy {CAPACITY}", "both policies decide every job of the state alike"),
        ("monitor gang", "finds nothing"),
        ("it is slow", "names no incident"),
        ("monitor gangs", "no monitor gangs\n  do next: name one of node, capability"),
        ("pod t/gone-0 was evicted", "no pod t/gone-0"),
        ("job t/gone waits", "match t/gone: 0"),
        ("job t/b1 waits", "does not wait"),
        ("pod t/b1-0\n was evicted now", "names no incident"),
    ],
    ids=[
        "no-policy",
        "same-policy",
        "silent-monitor",
        "no-incident",
        "no-monitor",
        "no-pod",
        "no-job",
        "runs",
        "sentence",
    ],
)
def test_an_unknown_incident_is_one_clear_error(lent: Path, tmp_path: Path, because: str, message: str) -> None:
    out = tmp_path / "f.feature"
    ran = run(lent, "--because", because, "--policy", CAPACITY, "-o", out)
    assert ran.return_value == 2
    assert message in ran.output
    assert re.search("do next: |; name a readable file", ran.output)
    assert not out.exists()


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:200])


def _other(path: Path) -> None:
    path.write_bytes(gzip.compress(write_line(Started(VERSION + 1, [], {})) + b"\n"))


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _garbage(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 40)


def _deep(path: Path) -> None:
    path.write_text("[" * 100_000)


def _of_a_sentence(path: Path) -> None:
    path.write_text("Feature: x\n  Scenario: y\n    Then nothing is evicted\n")


def _without_policy(path: Path) -> None:
    del path


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_cut, "is cut off"),
        (_other, "version"),
        (_empty, "is empty"),
        (_garbage, ""),
        (_deep, ""),
        (_of_a_sentence, ""),
        (_without_policy, "names no policy"),
    ],
    ids=["cut", "other-version", "empty", "garbage", "deep", "sentence", "without-policy"],
)
def test_an_unusable_state_is_one_clear_error(lent: Path, tmp_path: Path, spoil: Any, message: str) -> None:
    spoil(lent)
    ran = run(lent, "--because", "job t/b9 waits", "-o", tmp_path / "f.feature")
    assert ran.return_value == 2
    assert message in ran.output
    assert str(lent) in ran.output
    assert len(ran.output.splitlines()) <= 3


def test_names_of_a_hostile_dump_never_reach_the_feature(tmp_path: Path) -> None:
    sentence = 'b"\n    Then nothing is evicted\n    # |'
    taken = [item for number in range(4) for item in work(f"{sentence}{number}", sentence, "n")]
    state = written(tmp_path, queue("a", 1), queue(sentence, 3), *taken, *work("new", "a"))
    state = state.rename(tmp_path / "a\n    Then nothing is evicted.json")
    out = tmp_path / "evicted.feature"
    ran = run(state, "--because", "job t/new waits", "--policy", CAPACITY.parent / "default.yaml", "-o", out)
    assert ran.return_value == 0, ran.output
    assert not any(line.startswith("    Then nothing") for line in out.read_text("utf-8").splitlines())
    assert sentence not in out.read_text("utf-8")


def test_a_foreign_text_becomes_one_line() -> None:
    assert clean("x\n    Then nothing is evicted\u2028 y") == "x     Then nothing is evicted  y"
    assert len(clean("x" * 1000)) == 112


def _sparse(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a list above the real bound as a sparse file, which occupies no disk space."""
    del monkeypatch
    with path.open("wb") as file:
        file.truncate(listed.MAX_BYTES + 1)


def _unpacks(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed, "MAX_BYTES", 1 << 20)
    path.write_bytes(gzip.compress(b'{"kind":"List","items":[' + b" " * (1 << 20)))


def _endless_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_segments, "MAX_LINE", 1 << 20)
    path.write_bytes(gzip.compress(write_line(Started(VERSION, [], {})) + b"\n" + b"9" * (5 << 20)))


@pytest.mark.parametrize("spoil", [_sparse, _unpacks, _endless_line], ids=["list", "packed-list", "recording"])
def test_a_huge_state_is_one_clear_error_before_it_is_read(
    lent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: Any
) -> None:
    spoil(lent, monkeypatch)
    ran = run(lent, "--because", "job t/b9 waits", "-o", tmp_path / "f.feature")
    assert ran.return_value == 2, ran.output
    assert re.search(r"(has|than) \d+ bytes", ran.output)
    assert str(lent) in ran.output
    assert len(ran.output.splitlines()) <= 3
