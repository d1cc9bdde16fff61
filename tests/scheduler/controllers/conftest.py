"""A live cluster with controllers and without a scheduler: tests admit and bind by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from schedspec.api.client import APPLY, MERGE, Api
from schedspec.api.crds import install
from schedspec.clusters import Settings
from schedspec.clusters.embedded import EmbeddedCluster
from tests.support.controllers.live_controllers import Controllers, LiveControllers

CRDS = Path(__file__).parents[3] / "scheduler" / "crds"


@pytest.fixture(scope="session")
def live() -> Iterator[tuple[Api, Controllers]]:
    """A cluster with one KWOK node and the controllers."""
    cluster = EmbeddedCluster(Settings(kind="embedded", gang_api=True))
    cluster.up(print)
    try:
        api = Api(cluster.kubeconfig, cluster.context)
        install(api, CRDS)
        _a_node(api)
        controllers = Controllers(cluster)
        controllers.start()
        yield api, controllers
        controllers.stop()
        api.close()
    finally:
        cluster.down()


def _a_node(api: Api) -> None:
    shape = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    meta = {"name": "by-hand", "annotations": {"kwok.x-k8s.io/node": "fake"}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": {"allocatable": shape, "capacity": shape}}
    api.call("PATCH", "/api/v1/nodes/by-hand", body=node, query={"fieldManager": "t"}, content_type=APPLY)
    api.call(
        "PATCH",
        "/api/v1/nodes/by-hand/status",
        body={"status": {"capacity": shape, "allocatable": shape}},
        content_type=MERGE,
    )


@pytest.fixture
def place(live: tuple[Api, Controllers]) -> Iterator[LiveControllers]:
    place = LiveControllers(*live)
    yield place
    for kind in ("Job", "PyTorchJob", "Deployment", "Pod"):
        place.api.delete(place.path(kind), grace=0)
    place.api.delete(f"/api/v1/namespaces/{place.namespace}")
