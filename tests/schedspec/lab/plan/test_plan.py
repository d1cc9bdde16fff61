"""`schedspec plan` as a team runs it: files and revisions, exit statuses, and the files that it writes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from schedspec import distribution
from schedspec.lab.plan import foreign, sources

Plan = Callable[..., "subprocess.CompletedProcess[str]"]
POLICY = """actions: "allocate, backfill, reclaim"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: capacity}, {name: nodeorder}]
"""


def queue(name: str, cards: int) -> dict[str, object]:
    spec = {"deserved": {"nvidia.com/gpu": str(cards)}}
    head = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}}
    return {**head, "spec": spec}


def pod(name: str, group: str, node: str = "") -> dict[str, object]:
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": group, "uid": group}
    meta = {"name": name, "namespace": "t", "uid": name, "creationTimestamp": "2026-11-01T00:00:00Z",
            "annotations": {"scheduling.k8s.io/group-name": group}, "ownerReferences": [owner]}  # fmt: skip
    spec = {
        "schedulerName": "volcano",
        "containers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": "1"}}}],
        **({"nodeName": node} if node else {}),
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec,
            "status": {"phase": "Running" if node else "Pending"}}  # fmt: skip


def group(name: str, of: str, least: int) -> dict[str, object]:
    meta = {"name": name, "namespace": "t", "uid": f"{name}-g", "creationTimestamp": "2026-11-01T00:00:00Z"}
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": meta,
            "spec": {"minMember": least, "queue": of}, "status": {"phase": "Inqueue"}}  # fmt: skip


def write_state(folder: Path) -> None:
    has = {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "10", "nvidia.com/gpu": "4"},
           "conditions": [{"type": "Ready", "status": "True"}]}  # fmt: skip
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": has}
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c"},
        "data": {"volcano-scheduler.conf": POLICY},
    }
    items = [node, config, queue("a", 1), queue("b", 2), group("low", "b", 1), group("new", "a", 2)]
    items += [pod(f"low-{at}", "low", "n") for at in range(4)] + [pod(f"new-{at}", "new") for at in range(2)]
    (folder / "state.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


@pytest.fixture
def team(tmp_path: Path) -> Path:
    """Return a repository with a state, whose last commit changes a queue."""
    write_state(tmp_path)
    (tmp_path / "queues").mkdir()
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    for cards, message in ((1, "first"), (2, "more for a")):
        (tmp_path / "queues" / "a.yaml").write_text(json.dumps(queue("a", cards)))
        (tmp_path / "queues" / "team.yaml").write_text(POLICY)
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-q", "-m", message], check=True)
    return tmp_path


@pytest.fixture
def plan(team: Path) -> Plan:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        age = () if "--max-age" in arguments else ("--max-age", "100000d")
        words = ["plan", "--model", "--state", "state.json", *age, *arguments]
        return subprocess.run(
            [sys.executable, "-P", "-m", "schedspec", *words],
            cwd=team, env=distribution.environment(), capture_output=True, text=True, check=False,
        )  # fmt: skip

    return run


def test_a_range_of_revisions_is_planned_from_their_merge_base(plan: Plan, team: Path) -> None:
    done = plan("--proposed", "main~1..main", "-o", "json", "--fail-on", "evictions>0")
    found = json.loads(done.stdout)
    assert done.returncode == 1
    assert found["changes"] == ["Queue a: deserved nvidia.com/gpu 1 → nvidia.com/gpu 2"]
    assert len(found["at_once"]["evictions"]) == 2
    assert found["failed"] == ["evictions>0: 2"]
    assert json.loads((team / "out" / "plan" / "plan.json").read_text())["subject"] == found["subject"]
    assert "| evicted at once |" in (team / "out" / "plan" / "plan.md").read_text()


def test_a_plan_without_fail_on_succeeds(plan: Plan) -> None:
    done = plan("--proposed", "queues")
    assert done.returncode == 0, done.stderr
    assert "- t/low-" in done.stdout
    assert "volcano schedules this cluster" in done.stdout.splitlines()[1]
    assert "known difference of Volcano" in done.stdout


def test_the_comment_begins_with_the_note_on_the_clusters_scheduler(plan: Plan) -> None:
    lines = plan("--proposed", "queues", "-o", "markdown").stdout.splitlines()
    assert lines[2].startswith("> volcano schedules this cluster; this plan was computed by schedspec's scheduler")
    notes = [line for line in lines[2:] if line.startswith("> ")]
    assert notes[-1].startswith("> known difference of Volcano")
    assert any("| evicted at once |" in line for line in lines[lines.index(notes[-1]) :])


def test_findings_on_the_change_stand_above_the_known_differences(plan: Plan, team: Path) -> None:
    child = queue("a", 2)
    child["spec"] = {**child["spec"], "parent": "nowhere"}  # type: ignore[dict-item]
    (team / "queues" / "a.yaml").write_text(json.dumps(child))
    (team / "queues" / "b.yaml").write_text(json.dumps({"kind": "Deployment", "metadata": {"name": "d"}}))
    lines = plan("--proposed", "queues").stdout.splitlines()
    assert [line.partition(":")[0].partition(",")[0] for line in lines[2:5]] == ["lint", "lint", "ignored"]


def test_a_change_without_effect_is_reported_as_such(plan: Plan) -> None:
    done = plan("--proposed", "main~1", "--fail-on", "evictions>0,refused>0")
    assert done.returncode == 0
    assert "no change that affects decisions" in done.stdout


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (["--proposed", "nowhere"], "neither a file, a folder nor a revision"),
        (["--proposed", "main..main~1"], "main has every commit of main~1: the range proposes nothing"),
        (["--proposed", "queues", "--fail-on", ""], "'' is not a condition"),
        (["--proposed", "queues", "--fail-on", "evictions>0,"], "'' is not a condition"),
        (["--proposed", "queues", "--map", "submitted=a"], "--map: nothing reads it without --load TRACE"),
        (["--proposed", "queues", "--load", "drain", "--preset", "philly"], "--preset: nothing reads it without"),
        (["--proposed", "queues", "--load", "queues", "--map", "submitted=a"], "--map: nothing reads it without"),
        (["--proposed", "queues", "--run-times", "2h"], "--run-times: nothing reads it without --load"),
        (["--proposed", "queues", "--until", "300"], "--until: nothing reads it without --load"),
        (["--proposed", "--output=x"], "--output=x: neither a folder nor a revision"),
        (["--proposed", "queues", "--fail-on", "joy"], "is not a condition"),
        (["--proposed", "queues", "--fail-on", "evictions>10%"], "has a unit that means nothing here"),
        (["--proposed", "queues", "--fail-on", "monitor>5m"], "has a unit that means nothing here"),
        (["--proposed", "queues", "--load", "nothing.csv", "--preset", "philly"], "there is no nothing.csv"),
        (["--proposed", "queues", "--load", "drain", "--run-times", "soon"], "is not a rule"),
        (["--proposed", "queues", "--max-age", "old"], "not a number of days"),
        (["--proposed", "queues", "--max-age", "1h"], "was taken"),
        (["--proposed", "queues", "--policy", "x.yaml"], "has no policy x.yaml"),
        (["--proposed", "main~1..main", "--now", "main"], "exclude each other"),
        (["--proposed", "main", "--now", "main"], "--now and --proposed are both main, which has no change"),
        (["--proposed", "queues", "--now", "./queues"], "--now and --proposed are both ./queues"),
        (["--proposed", "queues", "--fail-on", "starvation"], "cannot be judged without --load"),
        (["--proposed", "queues", "--fail-on", "flips"], "cannot be judged without --features"),
        (["--proposed", "queues", "--load", "queues"], "holds no recording"),
        (["--proposed", "queues", "--load", "t.csv", "--preset", "none"], "is not a preset"),
        (["--proposed", "queues", "--resource", "amd.com/gpu"], "no node has amd.com/gpu"),
        (["--proposed", ""], "an empty name"),
        (["--proposed", "queues", "--grace", "nan"], "not a number of seconds"),
        (["--proposed", "queues", "--until", "0"], "not a number of seconds"),
        (["--proposed", "queues", "--max-age", "nan"], "not a number of days"),
        (["--proposed", "queues", "--out", "state.json/plan"], "cannot be written"),
    ],
)
def test_an_invalid_argument_is_named_with_exit_status_2(plan: Plan, words: list[str], refusal: str) -> None:
    done = plan(*words)
    assert done.returncode == 2
    assert refusal in done.stderr
    assert "Traceback" not in done.stderr


def test_only_visible_files_with_known_suffixes_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("x: 1")
    (tmp_path / "b.txt").write_text("no")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "c.yaml").write_text("x: 2")
    assert sources.files_of(str(tmp_path)) == {"a.yaml": "x: 1"}


def test_a_folder_and_its_revision_have_the_same_files(team: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (team / "queues" / ".hidden").mkdir()
    for name in (".top.yaml", "queues/.b.yaml", "queues/.hidden/c.yaml"):
        (team / name).write_text("x: 1")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", "-C", str(team)]
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "hidden"], check=True)
    monkeypatch.chdir(team)
    assert sorted(sources.files_of(".")) == ["queues/a.yaml", "queues/team.yaml", "state.json"]
    assert sources.files_of("HEAD") == sources.files_of(".")


def test_a_plan_for_volcanos_cluster_notes_the_known_differences_of_its_policy() -> None:
    notes = foreign.foreign_notes(["volcano"], (POLICY, POLICY))
    assert "computed by schedspec's scheduler" in notes[0]
    assert any("known difference of Volcano" in note for note in notes[1:])
    assert foreign.foreign_notes(["schedspec"], (POLICY, POLICY)) == []
