"""A Kind cluster is created and deleted, with fakes of docker, kind, kubectl and kwok."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedspec.clusters import Settings
from schedspec.clusters.images.node_image import KINDEST
from schedspec.clusters.kind.cluster import KindCluster
from schedspec.clusters.protocol import BootError, Cluster, PortTakenError
from schedspec.clusters.registry import Registry
from tests.schedspec.clusters.kind.fakes import Fakes

BROKEN = "ERROR: failed to create cluster: could not find a log line that matches"
TAKEN = "docker: Error: Bind for 127.0.0.1:6443 failed: port is already allocated."


@pytest.fixture
def cluster(fakes: Fakes, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KindCluster:
    worker = tmp_path / "worker.tar"
    worker.touch()
    monkeypatch.setattr("schedspec.clusters.images.worker_image.archive", lambda progress: worker)
    fakes.engine_has(KINDEST)
    return KindCluster(Settings(kind="kind", binaries=fakes.folder))


def test_up_creates_loads_and_advertises_and_down_removes_everything(cluster: KindCluster, fakes: Fakes) -> None:
    cluster.up(print)
    assert isinstance(cluster, Cluster)
    assert cluster.kubeconfig.is_file()
    assert cluster.context == f"kind-{cluster.name}"
    assert fakes.lines("networks") == [cluster.name], "a network of its own"
    created, loaded = fakes.calls("kind")
    assert created.startswith(f"create cluster --retain --name {cluster.name} --image {KINDEST}")
    assert loaded.startswith("load image-archive")
    assert [call for call in fakes.calls("kubectl") if call.startswith("patch node a-worker --subresource=status")]
    facts = cluster.facts()
    assert facts.server_version == "v1.36.3"
    assert facts.made_of[0] == "node image kindest/node:v1.37.0"
    home = cluster.kubeconfig.parent
    cluster.down()
    cluster.down()
    assert not home.exists()
    assert not fakes.lines("networks")
    assert not fakes.lines("containers")
    assert not Registry().records()


def test_a_failed_creation_is_retried_once(cluster: KindCluster, fakes: Fakes) -> None:
    fakes.creation_fails(1, BROKEN)
    messages: list[str] = []
    cluster.up(messages.append)
    assert any("trying again (logs: " in line for line in messages)
    cluster.down()


def test_a_creation_that_fails_twice_exports_logs_and_is_cleaned_up(
    cluster: KindCluster, fakes: Fakes, state: Path
) -> None:
    fakes.creation_fails(1, BROKEN)
    fakes.creation_fails(2, BROKEN)
    with pytest.raises(BootError) as caught:
        cluster.up(print)
    assert BROKEN in caught.value.what
    logs = state / "logs" / cluster.name
    assert caught.value.where == str(logs)
    assert (logs / "journal.log").is_file()
    assert not fakes.lines("containers")
    assert not fakes.lines("networks")
    assert not Registry().records()


def test_a_taken_port_is_reported_as_the_cause(cluster: KindCluster, fakes: Fakes) -> None:
    fakes.creation_fails(1, TAKEN)
    fakes.creation_fails(2, TAKEN)
    with pytest.raises(PortTakenError) as caught:
        cluster.up(print)
    assert "Bind for 127.0.0.1:6443 failed: port is already allocated" in caught.value.what
    assert "--kind-config" in caught.value.do_next


def test_a_reused_cluster_is_named_after_its_configuration(fakes: Fakes, tmp_path: Path) -> None:
    def name(**more: object) -> str:
        return KindCluster(Settings(kind="kind", reuse=True, binaries=fakes.folder, **more)).name  # type: ignore[arg-type]

    other = tmp_path / "other.yaml"
    other.write_text("kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n")
    assert name() == name()
    assert len({name(), name(kind_config=other), name(kind_image="kindest/node:v1.35.0"), name(suffix="gw1")}) == 4
