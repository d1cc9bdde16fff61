"""A run on a shared cluster: the audit log shows no write to foreign objects, and all of them are unchanged."""

from __future__ import annotations

import gzip
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from schedspec.api.client import MERGE, Object
from schedspec.api.kinds import Kind, Ref
from schedspec.clusters.protocol import SCENARIO
from schedspec.scenario import lease
from schedspec.scenario.lease import RunLease
from schedspec.scenario.nodes import WORLD
from schedspec.scenario.restore import WAS, is_borrowed
from tests.support.cluster_api import within
from tests.support.foreign_cluster import (
    CONTEXT,
    SPARE,
    ForeignCluster,
    content,
    foreign_cluster,
    has_our_label,
    name_of,
)

pytestmark = [pytest.mark.embedded, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
SUITE = ("features/lifecycle/first_job.feature", "features/queue_capacity/freed_room.feature", "features/kubeflow")
"""Features with jobs, services, PyTorchJobs, reclaim, preemption, priority classes and the queue `default`."""

STEPS = '''
import time
from schedspec.api import timeouts
from schedspec.api.kinds import Kind
from schedspec.gherkin.step_decorators import given, then, when

@given('others have a queue "team-a"')
def known():
    """Do nothing: after a project's own sentence, later sentences may name any object, because it may exist now."""

@given('a {kind} "{name}" that no sentence declares')
def made(world, kind, name):
    """Apply an object whose name collides only when the API server is queried."""
    world.apply(kind, name=name, cpu="4", memory="8Gi", value=5)

@when("the scenario wants to change their node")
def patched(world):
    """Change a foreign node without adopting it."""
    world.patch(Kind.NODE, "worker-1", {"spec": {"unschedulable": True}})

@when("the scenario wants to remove their node")
def removed(world):
    """Remove a foreign node."""
    world.remove_node("worker-1")

@when('the scenario wants to delete their queue')
def deleted(world):
    """Delete a foreign queue."""
    world.delete(Kind.QUEUE, "team-a")

@when('adopted nodes have {cpu:d} cpus and a taint')
def changed(world, cpu):
    """Change the adopted node, as a scenario may."""
    world.patch(Kind.NODE, "spare", {"status": {"allocatable": {"cpu": str(cpu)}}}, subresource="status")
    world.patch(Kind.NODE, "spare", {"metadata": {"labels": {"zone": "a"}}})

@then("it hangs")
def hangs():
    """Sleep until the run is killed."""
    time.sleep(600)
'''

COLLISIONS = """\
Feature: Names that others have
  Scenario: The default queue
    Given these queues:
      | queue   | weight |
      | default | 7      |
    And these jobs wait:
      | job | cpu |
      | own | 1   |
    Then nothing is evicted
  Scenario: A command to their queue
    Given others have a queue "team-a"
    When queue "team-a" is closed
    Then nothing is evicted
  Scenario: A change of their node
    When the scenario wants to change their node
    Then nothing is evicted
  Scenario: The removal of their node
    When the scenario wants to remove their node
    Then nothing is evicted
  Scenario: The deletion of their queue
    When the scenario wants to delete their queue
    Then nothing is evicted
  Scenario: Their nodes that no option names
    Given the real nodes of the cluster
    And these jobs wait:
      | job | cpu |
      | own | 1   |
    Then nothing is evicted
"""

COLLIDING = """\
Feature: Names that others have
  Background:
    Given the policy "hierarchy"
    And these nodes:
      | node     | cpu | memory |
      | worker-1 | 4   | 8Gi    |
    And these queues:
      | queue        | deserved | parent |
      | team-a       | cpu 4    | root   |
      | team-a-child | cpu 2    | team-a |
      | ours         | cpu 2    | team-a |
    And these priority classes:
      | class         | value |
      | team-critical | 5     |
    And these jobs run:
      | job    | queue        | replicas | min available | cpu | priority      |
      | team-a | team-a-child | 4        | 1             | 1   | team-critical |
  Scenario: The queue gives back what it borrowed
    When these jobs are submitted:
      | job  | queue | replicas | cpu |
      | mine | ours  | 2        | 1   |
    Then "mine" runs
    And exactly 2 pods are evicted, once each
  Scenario: No sentence declares it
    Given a node "spare" that no sentence declares
    Then queue "ours" holds at most 0 cpu
  Scenario: Too much is expected
    When these jobs are submitted:
      | job   | queue        | replicas | cpu |
      | large | team-a-child | 1        | 4   |
    Then "large" runs
"""
RENAMED = (
    "nodes /worker-1",
    "queues /team-a",
    "queues /team-a-child",
    "priorityclasses /team-critical",
    "nodes /spare",
)

REFUSED = {
    "The default queue": ["*queue default exists and is not the scenario's*"],
    "A command to their queue": ["*queue team-a exists and is not the scenario's*"],
    "A change of their node": [
        "*node worker-1 exists and is not the scenario's*",
        "*do next: *(--adopt-nodes worker-1)",
    ],
    "The removal of their node": ["*node worker-1 exists and is not the scenario's*"],
    "The deletion of their queue": ["*queue team-a exists and is not the scenario's*"],
    "Their nodes that no option names": ["*no real nodes that scenarios may use", "*--adopt-nodes NAME*"],
}

ADOPTED = """\
Feature: A node of the cluster
  Scenario: It is used and changed
    Given the real nodes of the cluster
    When adopted nodes have 3 cpus and a taint
    And these jobs are submitted:
      | job | cpu |
      | own | 1   |
    Then nothing is evicted
"""
HANGS = f"{ADOPTED}    Then it hangs\n"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForeignCluster]:
    with foreign_cluster(tmp_path_factory.mktemp("foreign")) as it:
        yield it


@pytest.fixture
def untouched(cluster: ForeignCluster) -> Iterator[None]:
    """Check after each test that foreign objects were not written to and are unchanged, and that ours are gone."""
    before, seen = cluster.everything(), len(cluster.audited())
    yield
    after = cluster.everything()
    writes = cluster.audited()[seen:]
    allowed = {f"nodes /{SPARE}"} if any(name_of(it) == f"nodes /{SPARE}" for it in writes) else set()
    wrong = [
        f"{it['verb']} {name_of(it)} by {it['userAgent']}" for it in writes if name_of(it) in before.keys() - allowed
    ]
    assert not wrong
    homes = {key.partition("/")[2] for key in before if key.startswith("namespaces ")}
    unexpected = {f"{it['verb']} {name_of(it)}" for it in writes if _is_unexpected(it, homes)}
    assert not unexpected
    assert {key: content(obj) for key, obj in after.items() if key in before} == {
        key: content(obj) for key, obj in before.items()
    }
    of_schedulers = [key for key in before if key.partition(" ")[0] in ("queues", "podgroups", "commands")]
    assert {"queues /team-a", "queues /default", "podgroups team/waits"} <= set(of_schedulers)
    assert [after[key] for key in of_schedulers] == [before[key] for key in of_schedulers], (
        "their statuses too are unchanged"
    )
    assert not [key for key, obj in after.items() if has_our_label(obj) or is_borrowed(obj)]
    ours = {manager for obj in after.values() for manager in _managers(obj) if manager.startswith("schedspec-")}
    assert not ours
    assert cluster.api.raw("GET", lease.PATH).status == 404


def _is_unexpected(event: Object, homes: set[str]) -> bool:
    """Whether a write went into a foreign namespace in which a run has no objects."""
    ref = event["objectRef"]
    if ref.get("namespace", "") not in homes:
        return False
    where = (ref["namespace"], ref["resource"])
    return where not in {
        ("kube-system", "leases"),
        ("kube-system", "events"),
        ("kube-system", "commands"),
        ("default", "events"),
    }


def _managers(obj: Object) -> set[str]:
    return {entry["manager"] for entry in obj["metadata"].get("managedFields") or ()}


def command(cluster: ForeignCluster, folder: Path, *arguments: str) -> tuple[list[str], dict[str, str]]:
    given = ["--cluster", "existing", "--kube-context", CONTEXT, "--out", str(folder / "out"), *arguments]
    call = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-v", *given]
    return call, {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "PYTHONPATH": str(ROOT)}


def run(cluster: ForeignCluster, folder: Path, feature: str, *arguments: str) -> pytest.LineMatcher:
    """Run a feature of this test module and return the output."""
    call, environment = command(cluster, folder, "-p", "schedspec.plugin", *arguments)
    _write(folder, feature)
    done = subprocess.run(call, cwd=folder, env=environment, capture_output=True, text=True, timeout=900, check=False)
    return pytest.LineMatcher((done.stdout + done.stderr).splitlines())


def _write(folder: Path, feature: str) -> None:
    (folder / "pytest.ini").write_text("[pytest]\nstrict = true\n")
    (folder / "conftest.py").write_text(STEPS)
    (folder / "it.feature").write_text(feature)


@pytest.mark.usefixtures("untouched")
def test_the_suite_changes_no_foreign_object_and_removes_its_own(cluster: ForeignCluster, tmp_path: Path) -> None:
    before = cluster.everything()
    call, environment = command(cluster, tmp_path, *SUITE)
    done = subprocess.run(call, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert re.search(r"= \d+ passed", done.stdout)
    written = {name_of(event) for event in cluster.audited()}
    made = {"queues /research", "nodes /n1", "customresourcedefinitions /pytorchjobs.kubeflow.org"}
    assert made <= written, "the audit log shows what the run did"
    assert not made & before.keys()
    assert not cluster.everything().keys() & made


@pytest.mark.usefixtures("untouched")
def test_the_error_for_a_change_of_a_foreign_object_names_it(cluster: ForeignCluster, tmp_path: Path) -> None:
    output = run(cluster, tmp_path, COLLISIONS)
    parts = re.split(r"^_+ (.+?) _+$", output.str(), flags=re.MULTILINE)
    failures = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert failures.keys() == REFUSED.keys(), output.str()
    for scenario, lines in REFUSED.items():
        pytest.LineMatcher(failures[scenario].splitlines()).fnmatch_lines(lines)


@pytest.mark.usefixtures("untouched")
def test_scenarios_run_beside_foreign_objects_of_the_same_names(cluster: ForeignCluster, tmp_path: Path) -> None:
    before = len(cluster.audited())
    output = run(cluster, tmp_path, COLLIDING, "--record", "always")
    output.fnmatch_lines(
        ["*other users have objects of these names; in this run *queue team-a is team-a--*", "*1 failed, 2 passed*"]
    )
    names = {name_of(event) for event in cluster.audited()[before:]}
    [token] = {name.partition("--")[2] for name in names if name.startswith("queues /team-a--")}
    assert {f"{name}--{token}" for name in RENAMED} <= names
    assert not names & set(RENAMED)
    assert "queues /ours" in names, "a name without a collision is not changed"
    *_, story = output.str().partition("Too much is expected")
    assert f"queues.scheduling.volcano.sh/team-a-child--{token}" in story
    hint = f"to see the renamed objects: kubectl get nodes/worker-1--{token}"
    assert [line for line in story.splitlines() if token in line and "namespace" not in line] == [
        line for line in story.splitlines() if line.startswith(hint)
    ]
    written = [it for it in (tmp_path / "out").rglob("*") if it.is_file() and "logs" not in it.parts]
    assert {"history.jsonl", "scheduler.log", "report.html"} <= {it.name for it in written}
    for file in written:
        data = file.read_bytes()
        data = gzip.decompress(data) if file.suffix == ".gz" else data
        renamed = [line for line in data.splitlines() if f"--{token}".encode() in line]
        assert not [line for line in renamed if b"kubectl get" not in line], file
    [recording] = (tmp_path / "out").glob("**/*oo-much*/recording")
    words = [sys.executable, "-m", "schedspec", "scheduler", "explain", str(recording.parent), "job", "large"]
    explained = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True).stdout
    assert "team-a-child" in explained
    assert f"--{token}" not in explained


@pytest.mark.usefixtures("untouched")
def test_a_rejected_run_writes_nothing(cluster: ForeignCluster, tmp_path: Path) -> None:
    before = len(cluster.audited())
    output = run(cluster, tmp_path, ADOPTED, "--adopt-nodes", "worker-1")
    output.fnmatch_lines(["*foreign pods are bound to node worker-1 (*): *", "*kubectl drain worker-1*"])
    assert {event["objectRef"]["resource"] for event in cluster.audited()[before:]} == {"selfsubjectaccessreviews"}


@pytest.mark.usefixtures("untouched")
def test_the_error_for_a_second_run_names_the_first_run(cluster: ForeignCluster, tmp_path: Path) -> None:
    first = RunLease(cluster.api, CONTEXT)
    first.acquire()
    try:
        output = run(cluster, tmp_path, ADOPTED)
    finally:
        first.release()
    output.fnmatch_lines([f"*another run uses the cluster: {first.holder}, since 20*"])


@pytest.mark.usefixtures("untouched")
def test_an_adopted_node_is_restored(cluster: ForeignCluster, tmp_path: Path) -> None:
    output = run(cluster, tmp_path, ADOPTED, "--adopt-nodes", SPARE)
    output.fnmatch_lines(["*1 passed*"])
    _check_restored(cluster)


@pytest.mark.usefixtures("untouched")
def test_after_a_killed_run_the_next_run_restores_the_node(cluster: ForeignCluster, tmp_path: Path) -> None:
    call, environment = command(cluster, tmp_path, "-p", "schedspec.plugin", "--adopt-nodes", SPARE)
    _write(tmp_path, HANGS)
    with subprocess.Popen(call, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL) as killed:
        within(lambda: _spare(cluster)["metadata"]["labels"].get("zone"))
        os.kill(killed.pid, signal.SIGKILL)
    changed = _spare(cluster)
    assert WORLD in changed["metadata"]["labels"]
    assert WAS in changed["metadata"]["annotations"]
    assert {"key": SCENARIO, "effect": "NoSchedule"} in changed["spec"]["taints"]
    past = {"spec": {"renewTime": "2020-01-01T00:00:00.000000Z", "leaseDurationSeconds": 3}}
    cluster.api.call("PATCH", lease.PATH, body=past, content_type=MERGE)  # instead of waiting until it expires
    output = run(cluster, tmp_path, ADOPTED, "--adopt-nodes", SPARE)
    output.fnmatch_lines(["*1 passed*"])
    _check_restored(cluster)


def _spare(cluster: ForeignCluster) -> Object:
    return cluster.api.call("GET", Ref(Kind.NODE, SPARE).path())


def _check_restored(cluster: ForeignCluster) -> None:
    """Check the status and labels of the adopted node; `untouched` compares everything else."""
    node = _spare(cluster)
    assert node["status"]["allocatable"]["cpu"] == "64"
    assert "zone" not in node["metadata"]["labels"]
