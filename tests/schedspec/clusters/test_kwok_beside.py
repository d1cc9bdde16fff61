"""KWOK beside a cluster that we did not create leaves foreign objects alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from schedspec.clusters import ClusterError, Settings, provide
from schedspec.clusters.embedded import EmbeddedCluster
from schedspec.clusters.kwok import Kwok
from schedspec.clusters.protocol import SCENARIO
from schedspec.clusters.registry import Registry
from schedspec.clusters.subprocess_run import programs_of
from tests.support.cluster_api import Api, a_node, condition, heartbeat, make_not_ready, node, phase, pod, within

pytestmark = pytest.mark.embedded

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    """Yield a cluster without its own KWOK, like a cluster of kubelets."""
    cluster = EmbeddedCluster(Settings(kind="embedded"))
    cluster.up(print)
    record = Registry().find(cluster.name)
    assert record is not None
    for process in programs_of(record.home):
        if "kwok" in process.name():
            process.kill()
    yield cluster
    cluster.down()


@pytest.fixture
def api(bare: EmbeddedCluster) -> Iterator[Api]:
    api = Api(bare)
    yield api
    api.close()


def test_kwok_plays_the_annotated_nodes_only(bare: EmbeddedCluster, api: Api, tmp_path: Path) -> None:
    real = node("real", cpu="1", memory="1Gi", pods="10")
    del real["metadata"]["annotations"]
    api.create("/api/v1/nodes", real)
    api.create("/api/v1/nodes", node("simulated", cpu="1", memory="1Gi", pods="10"))
    kwok = Kwok(bare.kubeconfig, tmp_path, progress=print)
    kwok.start()
    try:
        api.create(api.pods, pod("on-simulated", "simulated"))
        within(lambda: phase(api.get(f"{api.pods}/on-simulated")), lambda seen: seen == "Running")
        api.create(api.pods, pod("on-real", "real"))
        api.create(api.pods, pod("after-it", "simulated"))  # KWOK has processed the earlier pods
        within(lambda: phase(api.get(f"{api.pods}/after-it")), lambda seen: seen == "Running")
        assert phase(api.get(f"{api.pods}/on-real")) == "Pending"
        assert condition(api.get("/api/v1/nodes/real"), "Ready") is None
        assert len(programs_of(tmp_path)) == 1
    finally:
        kwok.stop()
        kwok.stop()
    assert programs_of(tmp_path) == []
    for name in ("real", "simulated"):
        api.delete(f"/api/v1/nodes/{name}")


def test_the_status_of_a_simulated_node_is_renewed_and_its_faults_remain(
    bare: EmbeddedCluster, api: Api, tmp_path: Path
) -> None:
    kwok = Kwok(bare.kubeconfig, tmp_path, progress=print)
    kwok.start()
    try:
        with a_node(api, "alive"), a_node(api, "broken"), a_node(api, "forgotten"):
            make_not_ready(api, "broken")
            make_not_ready(api, "forgotten", "Unknown")
            within(lambda: condition(api.get("/api/v1/nodes/forgotten"), "Ready"), lambda seen: seen == "True")
            before = heartbeat(api, "alive")
            within(lambda: heartbeat(api, "alive"), lambda seen: seen > before)
            assert condition(api.get("/api/v1/nodes/alive"), "Ready") == "True"
            assert condition(api.get("/api/v1/nodes/broken"), "Ready") == "False"
    finally:
        kwok.stop()


def test_kwok_ends_with_the_process_that_started_it(bare: EmbeddedCluster, tmp_path: Path) -> None:
    script = f"""
from pathlib import Path
from schedspec.clusters.kwok import Kwok
Kwok(Path({str(bare.kubeconfig)!r}), Path({str(tmp_path)!r}), progress=print).start()
print("up", flush=True)
import time; time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"up\n"
        assert len(programs_of(tmp_path)) == 1
        run.kill()
    within(lambda: not programs_of(tmp_path))


def test_kwok_without_a_reachable_cluster_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("schedspec.clusters.kwok._START_SECONDS", 2.0)
    with pytest.raises(ClusterError, match=r"kwok (ended|did not answer)"):
        Kwok(tmp_path / "absent", tmp_path, progress=print).start()
    assert programs_of(tmp_path) == []


def test_an_existing_cluster_is_used_and_left_as_it_was(bare: EmbeddedCluster, api: Api) -> None:
    before = bare.kubeconfig.read_text()
    cluster = provide(Settings(kind="existing", kube_context=bare.context, kubeconfig=bare.kubeconfig))
    cluster.up(print)
    assert (cluster.context, cluster.name, cluster.simulated) == (bare.context, bare.context, False)
    assert cluster.kubeconfig != bare.kubeconfig
    assert cluster.kubeconfig.stat().st_mode & 0o777 == 0o600
    assert cluster.facts().server_version == bare.facts().server_version
    assert cluster.facts().boot_seconds == 0
    other = Api(cluster)
    played, foreign = (node(name, cpu="1", memory="1Gi", pods="10") for name in ("played", "foreign"))
    played["metadata"]["labels"] = {SCENARIO: "spec-x"}
    other.create("/api/v1/nodes", foreign)
    other.create("/api/v1/nodes", played)
    within(lambda: condition(other.get("/api/v1/nodes/played"), "Ready"), lambda seen: seen == "True")
    assert condition(other.get("/api/v1/nodes/foreign"), "Ready") is None  # its owner may run a KWOK of its own
    other.close()
    home = cluster.kubeconfig.parent
    cluster.down()
    cluster.down()
    assert not home.exists()
    assert programs_of(home) == []
    assert bare.kubeconfig.read_text() == before
    assert condition(api.get("/api/v1/nodes/played"), "Ready") == "True"  # down removes nothing of the cluster's
    for name in ("played", "foreign"):
        api.delete(f"/api/v1/nodes/{name}")
