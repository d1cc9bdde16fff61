"""One API server with our definitions, shared by the tests of definitions."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from schedspec.api.client import Api
from schedspec.api.crds import install
from schedspec.api.errors import RejectedError
from schedspec.clusters import Settings
from schedspec.clusters.embedded import EmbeddedCluster
from tests.support.fake_server import SAFETY_NET

CRDS = Path(__file__).parents[4] / "scheduler" / "crds"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"


@pytest.fixture(scope="session")
def api() -> Iterator[Api]:
    """Yield a client of a cluster with our definitions and admission policies in force."""
    cluster = EmbeddedCluster(Settings(kind="embedded"))
    cluster.up(print)
    try:
        api = Api(cluster.kubeconfig, cluster.context)
        install(api, CRDS)
        _wait_for_policies(api)
        yield api
        api.close()
    finally:
        cluster.down()


def _wait_for_policies(api: Api) -> None:
    """Wait until the admission policies are in force, a moment after they were written."""
    body = {"metadata": {"name": "probe"}, "spec": {"deserved": {"cpu": 2}, "capability": {"cpu": 1}}}
    full = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", **body}
    deadline = time.monotonic() + SAFETY_NET
    while time.monotonic() < deadline:
        try:
            api.call("POST", QUEUES, body=full, query={"dryRun": "All"})
        except RejectedError:
            return
        time.sleep(0.1)
    raise AssertionError("the admission policies are not in force")
