"""Share one embedded cluster among the fault tests and the tests of the whole process. Each test finds it empty."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from schedspec.clusters import Settings
from schedspec.clusters.embedded import EmbeddedCluster
from tests.support.live.target_cluster import TargetCluster


@pytest.fixture(scope="session")
def cluster(components: list[subprocess.Popen[bytes]]) -> Iterator[EmbeddedCluster]:
    del components  # outlives the cluster
    cluster = EmbeddedCluster(Settings(kind="embedded", gang_api=True))
    cluster.up(lambda _: None)
    yield cluster
    cluster.down()


@pytest.fixture(scope="session")
def components() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Yield a list for the cluster components that tests restart; kill them after the cluster has ended."""
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def target(cluster: EmbeddedCluster, components: list[subprocess.Popen[bytes]]) -> TargetCluster:
    return TargetCluster(cluster.kubeconfig, cluster.context, components)
