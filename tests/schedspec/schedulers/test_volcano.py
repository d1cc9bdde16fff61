"""The adapter for Volcano with recorded output: logs, queues, the Deployment and `--version`."""

from __future__ import annotations

import dataclasses
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import psutil
import pytest
import urllib3

from schedspec.api.client import Api
from schedspec.api.errors import PolicyRefusedError, RejectedError, SchedulerDiedError
from schedspec.clusters import Settings, provide
from schedspec.clusters.programs import build
from schedspec.clusters.protocol import BinaryError
from schedspec.schedulers import Site, UnsuitableClusterError, volcano, volcano_processes
from schedspec.schedulers.readiness import NotReadyError
from schedspec.schedulers.volcano import PLACE, DeployedVolcano, Volcano, version_in

STARTED = """\
I1122 05:06:11.120 scheduler.go:158] Successfully loaded Scheduler conf as follows:
I1122 05:06:11.120 scheduler.go:160] actions: "enqueue, allocate, backfill"
I1122 05:06:11.341 scheduler.go:114] Scheduler completes Initialization and start to run
I1122 05:06:11.350 session.go:616] Close Session 5f0c2c5e
"""
REFUSED = """\
E1122 05:06:11.120 scheduler.go:201] Scheduler config actions: "allocate, alocate"
tiers: [] is invalid: failed to find Action alocate
I1122 05:06:11.341 scheduler.go:114] Scheduler completes Initialization and start to run
"""
VERSION = "API Version: v1alpha1\nVersion: {}\nGit SHA: {}\nBuilt At: Not provided.\nGo Version: go1.26.8\n"


class Server:
    """The part of an API server that a deployed Volcano needs."""

    def __init__(self) -> None:
        self.policy = "actions: enqueue\n"
        self.generation = self.observed = 1
        self.queue: dict[str, Any] | None = {"status": {"state": "Open"}}
        self.container: dict[str, Any] = {"state": {"running": {}}}
        self.deployed = True

    def call(self, method: str, path: str, **more: Any) -> Any:
        if path.endswith("/queues/default"):
            if self.queue is None:
                raise RejectedError("queues default not found", 404, "NotFound")
            return self.queue
        if path == PLACE.config_path:
            if method == "PATCH":
                self.policy = more["body"]["data"][PLACE.key]
            return {"data": {PLACE.key: self.policy}}
        if path == PLACE.path:
            if method == "PATCH":
                self.generation += 1
            else:
                self.observed = self.generation
            status = {"observedGeneration": self.observed, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}
            spec = {"replicas": 1, "selector": {"matchLabels": {"app": "volcano-scheduler"}}}
            return {"metadata": {"generation": self.generation}, "spec": spec, "status": status}
        assert path == "/api/v1/namespaces/volcano-system/pods"
        assert more["query"] == {"labelSelector": "app=volcano-scheduler"}
        return {"items": [{"metadata": {"name": "volcano-0"}, "status": {"containerStatuses": [self.container]}}]}

    def raw(self, method: str, path: str, **more: Any) -> urllib3.HTTPResponse:
        if path.endswith("/log"):
            return urllib3.HTTPResponse(b"one\ntwo\nthree", status=200)
        spec = b'"spec":{"template":{"spec":{"containers":[{"image":"docker.io/volcanosh/vc-scheduler:v1.15.1"}]}}}'
        image = b'{"metadata":{"name":"volcano-scheduler"},' + spec + b"}"
        return urllib3.HTTPResponse(image if self.deployed else b"{}", status=200 if self.deployed else 404)


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def site(tmp_path: Path, server: Server) -> Site:
    return Site(
        folder=tmp_path,
        api=cast(Api, server),
        kubeconfig=tmp_path / "kubeconfig",
        context="c",
        cluster=provide(Settings(kind="embedded")),
        programs=None,
        scheduler_programs=None,
        scale=0.01,
        progress=lambda _: None,
    )


def test_volcano_runs_when_its_log_shows_the_end_of_a_session() -> None:
    volcano_processes.require_running(STARTED)
    with pytest.raises(NotReadyError):
        volcano_processes.require_running(STARTED.rpartition("I1122")[0])


def test_a_rejected_policy_is_found_in_the_log() -> None:
    with pytest.raises(PolicyRefusedError, match="failed to find Action alocate") as refused:
        volcano_processes.require_running(REFUSED)
    assert refused.value.message == "failed to find Action alocate"


def test_an_action_of_a_newer_version_makes_the_cluster_unsuitable() -> None:
    log = REFUSED.replace("failed to find Action alocate", "failed to find Action  gangreclaim")
    with pytest.raises(UnsuitableClusterError, match=r"lacks the action gangreclaim \(needs v1\.15 from a folder"):
        volcano_processes.require_running(log)


@pytest.mark.parametrize(
    ("queue", "text"),
    [
        (None, "has not created the queue"),
        ({}, "is without a state, not Open"),
        ({"status": {"state": "Closed"}}, "is Closed"),
    ],
)
def test_volcano_is_not_ready_before_the_queue_default_is_open(
    server: Server, queue: dict[str, Any] | None, text: str
) -> None:
    volcano_processes.require_open(cast(Api, server))
    server.queue = queue
    with pytest.raises(NotReadyError, match=text):
        volcano_processes.require_open(cast(Api, server))


@pytest.mark.parametrize(
    ("version", "commit", "text"),
    [("v1.15.1", "abc", "v1.15.1"), ("Not provided.", "abc", "abc"), ("Not provided.", "Not provided.", "")],
)
def test_the_version_is_read_from_the_output(version: str, commit: str, text: str) -> None:
    assert version_in(VERSION.format(version, commit)) == text


def test_a_volcano_in_the_cluster_is_used(site: Site) -> None:
    adapter = Volcano()
    assert isinstance(adapter.scheduler(site), DeployedVolcano)
    assert adapter.scheduler_name == "volcano"
    assert adapter.version(site) == "v1.15.1"
    assert adapter.definitions(site) is None


def test_the_policy_is_written_into_the_config_map_and_restored_at_the_end(site: Site, server: Server) -> None:
    scheduler = DeployedVolcano(site)
    scheduler.start("actions: allocate\n")
    assert (server.policy, server.generation) == ("actions: allocate\n", 2)
    scheduler.use_policy("actions: allocate\n")
    assert server.generation == 2  # nothing to do
    scheduler.use_policy("actions: backfill\n")
    assert (server.policy, server.generation) == ("actions: backfill\n", 3)
    scheduler.stop()
    scheduler.stop()
    assert (server.policy, server.generation) == ("actions: enqueue\n", 4)


def test_a_restarted_container_counts_as_dead(site: Site, server: Server) -> None:
    scheduler = DeployedVolcano(site)
    scheduler.check()
    server.container = {"state": {"running": {}}, "lastState": {"terminated": {"exitCode": 2}}}
    scheduler.check()  # checks at most once a second
    with pytest.raises(SchedulerDiedError, match=r"pod volcano-0, ended \(None, exit code 2\)\n  \| one"):
        DeployedVolcano(site).check()


def test_the_last_lines_are_those_of_the_pods_log(site: Site) -> None:
    assert DeployedVolcano(site).last_lines(2) == ["two", "three"]


def test_a_folder_with_the_programs_takes_precedence(site: Site, tmp_path: Path) -> None:
    for name in volcano.PROGRAMS:
        (tmp_path / name).write_text("#!/bin/sh\necho 'Version: v9'\n")
        (tmp_path / name).chmod(0o755)
    site = dataclasses.replace(site, scheduler_programs=tmp_path)
    adapter = Volcano()
    assert not isinstance(adapter.scheduler(site), DeployedVolcano)
    assert adapter.version(site) == "v9"
    assert adapter.scheduler_name == "schedspec"
    assert adapter.definitions(site) == tmp_path / "crds"


def test_the_error_for_missing_programs_has_remedies(
    site: Site, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.deployed = False
    monkeypatch.setenv("SCHEDSPEC_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SCHEDSPEC_REGISTRY", "127.0.0.1:1")  # nobody listens there
    monkeypatch.setattr(build, "go", lambda: None)
    with pytest.raises(BinaryError, match=r"Go is not installed.*image.*refused\n.*\n.*install Go.*SCHEDSPEC_BINARIES"):
        Volcano().scheduler(site)


DIES_TWICE = """\
#!/bin/sh
echo once >> "$0.starts"
test $(wc -l < "$0.starts") -gt 2 || exit 2
echo 'I1122 05:06:11.350 session.go:616] Close Session 5f0c2c5e'
exec sleep 60
"""


@pytest.fixture
def restarting(site: Site, tmp_path: Path) -> Iterator[volcano_processes.VolcanoProcesses]:
    """Yield Volcano with a scheduler whose first two processes end in their first session."""
    program = tmp_path / "vc-scheduler"
    program.write_text(DIES_TWICE)
    program.chmod(0o755)
    found = volcano_processes.VolcanoProcesses(site, {program.name: program})
    yield found
    found.stop()


def test_a_scheduler_that_ends_in_its_first_session_is_restarted(
    restarting: volcano_processes.VolcanoProcesses, tmp_path: Path
) -> None:
    restarting.use_policy("actions: allocate")
    assert (tmp_path / "vc-scheduler.starts").read_text() == "once\n" * 3


def test_applying_the_same_policy_restarts_a_scheduler_that_ended(
    restarting: volcano_processes.VolcanoProcesses,
) -> None:
    restarting.use_policy("actions: allocate")
    first = restarting.handle()["vc-scheduler"]
    restarting.use_policy("actions: allocate")
    assert restarting.handle()["vc-scheduler"] == first
    os.kill(first, signal.SIGKILL)
    psutil.Process(first).wait()
    restarting.use_policy("actions: allocate")
    assert restarting.handle()["vc-scheduler"] != first


def test_a_scheduler_that_always_ends_is_an_error_after_some_starts(
    restarting: volcano_processes.VolcanoProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(volcano_processes, "_STARTS", 2)
    with pytest.raises(SchedulerDiedError, match="ended with status 2"):
        restarting.use_policy("actions: allocate")
