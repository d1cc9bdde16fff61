"""Schedulers as processes: start, change of policy, rejection, end. Scripts replace the programs."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import psutil
import pytest

from schedspec.api.client import Api
from schedspec.api.errors import PolicyRefusedError, RejectedError, SchedulerDiedError
from schedspec.clusters import Settings, provide
from schedspec.clusters.protocol import ClusterFacts
from schedspec.schedulers import Scheduler, Site, UnsuitableClusterError
from schedspec.schedulers.kube_scheduler import KubeScheduler
from schedspec.schedulers.readiness import NotReadyError, retrying
from schedspec.schedulers.volcano import Volcano

VOLCANO = """\
#!/bin/sh
echo "$@" > "$0.arguments"
while [ $# -gt 0 ]; do [ "$1" = --scheduler-conf ] && conf=$2; shift; done
if grep -q alocate "$conf"; then
  echo "E1122 05:06:11.120 scheduler.go:201] Scheduler config $(cat "$conf") is invalid: failed to find Action alocate"
fi
echo "I1122 05:06:11.350 session.go:616] Close Session 5f0c2c5e"
exec sleep 60
"""
CONTROLLERS = '#!/bin/sh\necho "$@" > "$0.arguments"\nexec sleep 60\n'
KUBE = """\
#!/bin/sh
echo "$@" > "$0.arguments"
conf=$2
if grep -q nonsense "$conf"; then
  echo 'E1122 05:06:11.120 run.go:72] "command failed" err="no kind nonsense is registered"'
  exit 1
fi
echo 'I1122 05:06:11.341 scheduler.go:1] "Handlers synced"'
exec sleep 60
"""


class Server:
    """The part of an API server that the start of a scheduler needs."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def call(self, method: str, path: str, **more: Any) -> Any:
        if (method, path) == ("POST", "/api/v1/namespaces"):
            name = more["body"]["metadata"]["name"]
            if name in self.made:
                raise RejectedError("it exists already", 409, "AlreadyExists")
            self.made.append(name)
            return more["body"]
        assert (method, path) == ("GET", "/apis/scheduling.volcano.sh/v1beta1/queues/default")
        return {"status": {"state": "Open"}}


class Cluster:
    """The part of a cluster that an adapter uses."""

    def __init__(self, version: str) -> None:
        self._version = version

    def facts(self) -> ClusterFacts:
        return ClusterFacts(self._version, (), 0.0)


def program(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    programs = tmp_path / "programs"
    programs.mkdir()
    program(programs, "vc-scheduler", VOLCANO)
    program(programs, "vc-controller-manager", CONTROLLERS)
    program(programs, "kube-scheduler", KUBE)
    return Site(
        folder=tmp_path / "run",
        api=cast(Api, Server()),
        kubeconfig=tmp_path / "kubeconfig",
        context="c",
        cluster=provide(Settings(kind="embedded")),
        programs=None,
        scheduler_programs=programs,
        scale=1.0,
        progress=lambda _: None,
    )


def on(site: Site, kubernetes: str) -> Site:
    return dataclasses.replace(site, cluster=cast(Any, Cluster(kubernetes)))


@pytest.fixture
def volcano(site: Site) -> Iterator[Scheduler]:
    scheduler = Volcano().scheduler(site)
    yield scheduler
    scheduler.stop()


@pytest.fixture
def kube(site: Site) -> Iterator[Scheduler]:
    scheduler = KubeScheduler().scheduler(on(site, "v1.36.3"))
    yield scheduler
    scheduler.stop()


def arguments_of(site: Site, name: str) -> str:
    assert site.scheduler_programs is not None
    return (site.scheduler_programs / f"{name}.arguments").read_text()


def running(handle: dict[str, Any]) -> list[bool]:
    """Whether each process of a handle runs."""
    return [psutil.pid_exists(pid) for pid in handle.values() if isinstance(pid, int)]


def test_volcano_starts_with_its_controllers_and_the_policy(site: Site, volcano: Scheduler) -> None:
    volcano.launch("actions: allocate\n")
    volcano.start("actions: allocate\n")
    volcano.check()
    assert cast(Any, site.api).made == ["volcano-system", "volcano-monitoring"]
    arguments = arguments_of(site, "vc-scheduler")
    policy = site.folder / "policy" / "policy.yaml"
    assert f"--scheduler-conf {policy} --node-selector schedspec.dev/world:true" in arguments
    assert "--scheduler-name schedspec" in arguments_of(site, "vc-controller-manager")
    assert policy.read_text() == "actions: allocate\n"


def test_the_log_of_volcano_is_not_in_the_folder_of_its_policy(site: Site, volcano: Scheduler) -> None:
    volcano.start("actions: allocate\n")
    (policy,) = site.folder.rglob("policy.yaml")
    (log,) = site.folder.rglob("scheduler.log")
    assert log.parent != policy.parent


def test_a_new_policy_restarts_volcanos_scheduler_but_not_its_controllers(volcano: Scheduler) -> None:
    volcano.start("actions: allocate\n")
    before = volcano.handle()
    volcano.use_policy("actions: allocate\n")
    assert volcano.handle() == before
    volcano.use_policy("actions: backfill\n")
    after = volcano.handle()
    assert before["vc-scheduler"] != after["vc-scheduler"]
    assert before["vc-controller-manager"] == after["vc-controller-manager"]


def test_the_error_for_a_rejected_policy_quotes_volcano(volcano: Scheduler) -> None:
    volcano.start("actions: allocate\n")
    with pytest.raises(PolicyRefusedError, match="failed to find Action alocate"):
        volcano.use_policy("actions: alocate\n")


@pytest.mark.parametrize("which", ["vc-scheduler", "vc-controller-manager"])
def test_volcano_counts_as_dead_when_one_of_its_programs_died(volcano: Scheduler, which: str) -> None:
    volcano.start("actions: allocate\n")
    os.kill(volcano.handle()[which], 9)
    with pytest.raises(SchedulerDiedError, match="was killed by signal 9"):
        _check_until_it_ended(volcano)


def test_stop_ends_both_programs_of_volcano(volcano: Scheduler) -> None:
    volcano.start("actions: allocate\n")
    handle = volcano.handle()
    volcano.stop()
    volcano.stop()
    assert running(handle) == [False, False]


GANG_FEATURES = "GenericWorkload=true,TopologyAwareWorkloadScheduling=true"


@pytest.mark.parametrize(
    ("kubernetes", "gates"),
    [
        ("v1.36.3", f"{GANG_FEATURES},GangScheduling=true,WorkloadAwarePreemption=true"),
        ("v1.37.1", GANG_FEATURES),
    ],
)
def test_kube_scheduler_starts_with_the_gates_of_its_version(site: Site, kubernetes: str, gates: str) -> None:
    scheduler = KubeScheduler().scheduler(on(site, kubernetes))
    try:
        scheduler.start("kind: KubeSchedulerConfiguration\n")
        scheduler.check()
        assert f"--feature-gates {gates} " in arguments_of(site, "kube-scheduler")
        assert f"kubeconfig: {site.kubeconfig}" in (site.folder / "policy.yaml").read_text()
    finally:
        scheduler.stop()


def test_the_error_for_a_rejected_configuration_quotes_kube_scheduler(kube: Scheduler) -> None:
    kube.start("kind: KubeSchedulerConfiguration\n")
    before = kube.handle()
    kube.use_policy("kind: KubeSchedulerConfiguration\n")
    assert kube.handle() == before
    with pytest.raises(PolicyRefusedError, match="no kind nonsense is registered"):
        kube.use_policy("kind: nonsense\n")


def test_the_death_of_kube_scheduler_is_detected(kube: Scheduler) -> None:
    kube.start("kind: KubeSchedulerConfiguration\n")
    handle = kube.handle()
    os.kill(handle["kube-scheduler"], 9)
    with pytest.raises(SchedulerDiedError, match="was killed by signal 9"):
        _check_until_it_ended(kube)
    kube.stop()
    assert running(handle) == [False]


def test_a_kubernetes_version_without_gang_scheduling_is_unsuitable(site: Site) -> None:
    with pytest.raises(UnsuitableClusterError, match=r"pinned for Kubernetes 1\.30"):
        KubeScheduler().scheduler(on(site, "v1.30.0"))


def _check_until_it_ended(scheduler: Scheduler) -> None:
    """Wait until a killed process has ended."""
    for attempt in retrying(10.0, 0.02):
        with attempt:
            scheduler.check()
            raise NotReadyError("the process is still running")
