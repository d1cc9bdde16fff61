"""Kueue and Volcano in the cluster, deployed by a run or installed by a user, against a fake API server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import urllib3
import yaml

from schedspec.api.client import Api
from schedspec.api.errors import RejectedError, SchedulerDiedError
from schedspec.api.kinds import Resource
from schedspec.clusters import Settings, provide
from schedspec.clusters.before_boot import Access
from schedspec.clusters.docker import DockerError
from schedspec.schedulers import AdapterError, Site, UnsuitableClusterError, deployed, from_images, installable
from schedspec.schedulers.adapter import Adapter
from schedspec.schedulers.kueue import Kueue
from schedspec.schedulers.kueue import deployed as kueue
from schedspec.schedulers.kueue.processes import _LOGGERS as LOGGERS
from schedspec.schedulers.kueue.quota import KueuePolicy
from schedspec.schedulers.readiness import NotReadyError
from schedspec.schedulers.volcano import DeployedVolcano, Volcano

STARTED = "\n".join(f'{{"level":"info","logger":"{name}","msg":"Starting workers"}}' for name in LOGGERS)
STARTED += "\nI1122 05:06:11.350 session.go:616] Close Session 5f0c2c5e"
CONFIGURATION: dict[str, Any] = {
    "apiVersion": "config.kueue.x-k8s.io/v1beta2",
    "integrations": {"frameworks": ["batch/job", "ray.io/rayjob", "pod", "deployment"]},
}
FAIR = KueuePolicy(configuration={"fairSharing": {"preemptionStrategies": ["LessThanInitialShare"]}})


class Server:
    """Fake API server that reports Deployments as ready. Kueue logs its start after `touches` changes of its pod."""

    server = "https://server"

    def __init__(self, touches: int = 0) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.writes: list[str] = []
        self.served = True
        self.container: dict[str, Any] = {"state": {"running": {}}}
        self.pod_metadata: dict[str, str] = {}
        self._touches = touches

    def resource(self, api_version: str, kind: str) -> Resource:
        wide = kind in ("Namespace", "ClusterRoleBinding")
        return Resource(api_version, kind, f"{kind.lower()}s", not wide)

    def apply(self, obj: dict[str, Any], manager: str) -> None:
        del manager
        meta = obj["metadata"]
        path = self.resource(obj["apiVersion"], obj["kind"]).path(meta["name"], meta.get("namespace", ""))
        self.writes.append(f"APPLY {path}")
        self.objects[path] = obj

    def delete(self, path: str, **_: Any) -> bool:
        self.writes.append(f"DELETE {path}")
        deleted = [name for name in self.objects if name == path or path.rpartition("/")[2] in name.split("/")]
        for name in deleted:
            del self.objects[name]
        return bool(deleted)

    def delete_all(self, path: str, **_: Any) -> None:
        self.delete(path)

    def call(self, method: str, path: str, **more: Any) -> Any:
        if path.endswith("/queues/default"):
            return {"status": {"state": "Open"}}
        if method == "PATCH":
            self.writes.append(f"PATCH {path}")
            if path in self.objects:
                _merge(self.objects[path], more["body"])
            else:
                self._touches -= 1
            return {}
        if path.endswith("/pods"):
            meta = {"name": "pod-0", **self.pod_metadata}
            return {"items": [{"metadata": meta, "status": {"containerStatuses": [self.container]}}]}
        if "labelSelector" in (more.get("query") or {}):
            label = more["query"]["labelSelector"]
            found = [obj for name, obj in self.objects.items() if name.rpartition("/")[0] == path]
            return {"items": [obj for obj in found if label in (obj["metadata"].get("labels") or {})]}
        if path not in self.objects:
            raise RejectedError(f"{path} not found", 404, "NotFound")
        status = {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}
        return _merge({"metadata": {"generation": 1}, "status": status}, self.objects[path])

    def raw(self, method: str, path: str, **more: Any) -> urllib3.HTTPResponse:
        if path == "/apis/kueue.x-k8s.io/v1beta2":
            return urllib3.HTTPResponse(b"{}", status=200 if self.served else 404)
        if path.endswith("/log"):
            return urllib3.HTTPResponse(STARTED.encode() if self._touches <= 0 else b"waits", status=200)
        try:
            return urllib3.HTTPResponse(json.dumps(self.call(method, path, **more)).encode(), status=200)
        except RejectedError:
            return urllib3.HTTPResponse(b"{}", status=404)

    def install(self, place: deployed.DeploymentSite, image: str, configuration: str, **labels: str) -> None:
        """Install a scheduler as a user does."""
        containers = {"template": {"spec": {"containers": [{"image": image}]}}}
        selector = {"selector": {"matchLabels": {"control-plane": "controller-manager", "app": "x"}}}
        meta = {"name": place.deployment, "labels": labels}
        self.objects[place.path] = {"metadata": meta, "spec": {**containers, **selector}}
        self.objects[place.config_path] = {"metadata": {}, "data": {place.key: configuration}}

    def close(self) -> None:
        """Do nothing."""


def _merge(into: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    for key, value in change.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value
    return into


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def loaded() -> list[str]:
    return []


@pytest.fixture
def site(tmp_path: Path, server: Server, loaded: list[str], monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setenv("SCHEDSPEC_CACHE", str(tmp_path / "cache"))
    cluster = provide(Settings(kind="embedded"))
    monkeypatch.setattr(cluster, "load_image", lambda archive: loaded.append(archive.name))
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("kueue", "vc-scheduler", "vc-controller-manager"):
        (programs / name).write_text("#!/bin/sh\necho 'Version: v9'\n")
        (programs / name).chmod(0o755)
    return Site(
        folder=tmp_path,
        api=cast(Api, server),
        kubeconfig=tmp_path / "kubeconfig",
        context="c",
        cluster=cluster,
        programs=None,
        scheduler_programs=programs,
        scale=0.01,
        progress=lambda _: None,
    )


def images(site: Site, *programs: str) -> from_images.Images:
    assert site.scheduler_programs is not None
    return from_images.Images("v9", programs={name: site.scheduler_programs / name for name in programs})


class TestInPods:
    def test_kueue_runs_from_an_image_made_of_its_program(self, site: Site, server: Server, loaded: list[str]) -> None:
        manager = kueue.KueueInPods(site, images(site, "kueue"))
        manager.configure(KueuePolicy())
        (archive,) = loaded
        assert archive.startswith("kueue-")
        pod = server.objects[kueue.PLACE.path]["spec"]["template"]["spec"]
        container = pod["containers"][0]
        assert container["image"] == "schedspec.local/kueue:v9"
        assert container["args"][0] == "--config=/config/controller_manager_config.yaml"
        configured = yaml.safe_load(server.objects[kueue.PLACE.config_path]["data"][kueue.PLACE.key])
        assert configured["webhook"]["certDir"] in [mount["mountPath"] for mount in container["volumeMounts"]]
        (term,) = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        assert term == {"matchExpressions": [{"key": "schedspec.dev/scenario", "operator": "DoesNotExist"}]}

    def test_a_policy_with_another_configuration_restarts_the_pod(self, site: Site, server: Server) -> None:
        manager = kueue.KueueInPods(site, images(site, "kueue"))
        manager.configure(KueuePolicy())
        before = list(server.writes)
        manager.configure(KueuePolicy(clusterQueue={"preemption": {}}))  # the same configuration
        assert server.writes == before
        manager.configure(FAIR)
        assert server.writes[len(before) :][:2] == [f"PATCH {kueue.PLACE.config_path}", f"PATCH {kueue.PLACE.path}"]

    def test_the_pod_is_touched_until_it_has_its_certificates(
        self, site: Site, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(deployed, "_TOUCH_EVERY", 0.0)
        server._touches = 2
        kueue.KueueInPods(site, images(site, "kueue")).configure(KueuePolicy())
        assert server.writes.count("PATCH /api/v1/namespaces/kueue-system/pods/pod-0") == 2

    def test_a_pod_that_cannot_start_is_reported_with_its_log(self, site: Site, server: Server) -> None:
        server.container = {"state": {"waiting": {"reason": "ErrImageNeverPull"}}}
        with pytest.raises(SchedulerDiedError, match=r"Kueue, pod pod-0, waits: ErrImageNeverPull\n  \| "):
            kueue.KueueInPods(site, images(site, "kueue")).configure(KueuePolicy())

    def test_a_pod_that_a_roll_out_stops_does_not_count_as_dead(self, site: Site, server: Server) -> None:
        server.container = {"state": {"terminated": {"reason": "Error", "exitCode": 1}}}
        server.pod_metadata = {"deletionTimestamp": "2026-11-24T17:00:00Z"}
        kueue.KueueInPods(site, images(site, "kueue")).configure(KueuePolicy())

    def test_volcano_runs_from_two_images(self, site: Site, server: Server, loaded: list[str]) -> None:
        adapter = Volcano()
        adapter.run_in_pods([])
        scheduler = adapter.scheduler(site)
        scheduler.start("actions: allocate\n")
        assert [name.partition("-")[0] for name in loaded] == ["vcscheduler", "vccontrollermanager"]
        assert server.objects[Volcano.place.config_path]["data"] == {"volcano-scheduler.conf": "actions: allocate\n"}
        assert adapter.scheduler_name == "volcano"
        assert adapter.version(site) == "v9"
        scheduler.use_policy("actions: reclaim\n")
        assert server.objects[Volcano.place.config_path]["data"] == {"volcano-scheduler.conf": "actions: reclaim\n"}

    @pytest.mark.parametrize("of", ["kueue", "volcano"])
    def test_stop_removes_everything(self, of: str, site: Site, server: Server) -> None:
        if of == "kueue":
            manager = kueue.KueueInPods(site, images(site, "kueue"))
            manager.configure(KueuePolicy())
            stop: Callable[[], None] = manager.stop
        else:
            scheduler = DeployedVolcano(site, images(site, "vc-scheduler", "vc-controller-manager"))
            scheduler.start("actions: allocate\n")
            stop = scheduler.stop
        assert server.objects
        stop()
        assert server.objects == {}
        after = len(server.writes)
        stop()
        assert len(server.writes) == after

    def test_images_that_the_user_names_are_loaded_from_the_engine(
        self, site: Site, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        docker = tmp_path / "docker"
        docker.write_text('#!/bin/sh\nif [ "$1" = save ]; then echo "$4" >"$3"; fi\n')
        docker.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
        adapter = Kueue()
        adapter.run_in_pods(["registry.example/kueue/kueue:v0.19.1"])
        assert str(adapter) == "kueue in the cluster from registry.example/kueue/kueue:v0.19.1"
        assert adapter.version(site) == "v0.19.1"
        adapter._manager(site).configure(KueuePolicy())
        assert (tmp_path / "kueue.tar").read_text() == "registry.example/kueue/kueue:v0.19.1\n"
        container = server.objects[kueue.PLACE.path]["spec"]["template"]["spec"]["containers"][0]
        assert container["image"] == "registry.example/kueue/kueue:v0.19.1"


class TestInstalled:
    @pytest.fixture
    def manager(self, site: Site, server: Server) -> kueue.InstalledKueue:
        server.install(kueue.PLACE, "registry.k8s.io/kueue/kueue:v0.19.2", yaml.safe_dump(CONFIGURATION))
        return kueue.InstalledKueue(site, "v0.19.2")

    def test_an_installation_is_used_and_nothing_is_written(
        self, manager: kueue.InstalledKueue, server: Server
    ) -> None:
        manager.prepare()
        manager.configure(KueuePolicy(clusterQueue={"preemption": {"reclaimWithinCohort": "Any"}}))
        manager.check()
        manager.stop()
        assert server.writes == []

    @pytest.mark.parametrize(
        ("policy", "setting"),
        [(FAIR, "fairSharing"), (KueuePolicy(gatesSince={"v0.19.2": {"New": True}}), "New")],
        ids=["fair sharing", "a feature gate"],
    )
    def test_a_policy_that_needs_another_configuration_is_not_available(
        self, manager: kueue.InstalledKueue, server: Server, policy: KueuePolicy, setting: str
    ) -> None:
        with pytest.raises(UnsuitableClusterError, match=f"kueue lacks this policy here .*setting of {setting}"):
            manager.configure(policy)
        assert server.writes == []

    def test_an_installation_with_fair_sharing_lacks_policies_without_it(self, site: Site, server: Server) -> None:
        fair = {**CONFIGURATION, "fairSharing": {}, "featureGates": {"New": True}}
        server.install(kueue.PLACE, "kueue:v0.19.2", yaml.safe_dump(fair))
        manager = kueue.InstalledKueue(site, "v0.19.2")
        manager.configure(KueuePolicy(configuration={"fairSharing": {"x": 1}}, featureGates={"New": True}))
        with pytest.raises(UnsuitableClusterError, match="another setting of fairSharing"):
            manager.configure(KueuePolicy())

    @pytest.mark.parametrize(
        ("image", "version"),
        [
            ("registry.k8s.io/kueue/kueue:v0.19.2", "v0.19.2"),
            ("registry:5000/kueue:v0.19.2@sha256:abc", "v0.19.2"),
            ("registry:5000/kueue@sha256:abc", "without a version"),
        ],
    )
    def test_the_version_of_an_installation_is_its_image_tag(self, image: str, version: str, server: Server) -> None:
        server.install(kueue.PLACE, image, "")
        assert deployed.installed(cast(Api, server), kueue.PLACE) == version

    def test_objects_of_a_killed_run_are_not_an_installation_and_are_removed(self, server: Server) -> None:
        server.install(kueue.PLACE, "schedspec.local/kueue:v0.19.2", "", **{deployed.OF_A_RUN: "true"})
        space = "/api/v1/namespaces/kueue-system"
        server.objects[space] = {"metadata": {"name": "kueue-system", "labels": {deployed.OF_A_RUN: "true"}}}
        assert deployed.installed(cast(Api, server), kueue.PLACE) == ""
        from_images.remove(cast(Api, server))
        assert server.objects == {}

    def test_remove_leaves_objects_of_other_owners_alone(self, server: Server) -> None:
        server.objects["/api/v1/namespaces/team"] = {"metadata": {"name": "team"}}
        from_images.remove(cast(Api, server))
        assert server.writes == []

    def test_the_error_for_a_missing_deployment_names_it(self, site: Site) -> None:
        with pytest.raises(NotReadyError, match=r"Kueue is not deployed: .*kueue-controller-manager not found"):
            deployed.DeployedProgram(site.api, kueue.PLACE, "Kueue", 0.01)._require_rolled_out()


class TestBeforeBoot:
    """A run names missing parts before a cluster boots."""

    @pytest.fixture(autouse=True)
    def running(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        access = Access(Path("kubeconfig"), "team")
        monkeypatch.setattr(installable.before_boot, "running", lambda _: access)
        monkeypatch.setattr(installable, "Api", lambda *_: server)

    SETTINGS = Settings(kind="existing", kube_context="team")

    @pytest.mark.parametrize("adapter", [Kueue(), Volcano()], ids=str)
    def test_an_installation_needs_no_programs(self, adapter: installable.InstallableAdapter, server: Server) -> None:
        assert not adapter.is_provided(self.SETTINGS, None)
        server.install(adapter.place, "registry.example/it:v1", yaml.safe_dump(CONFIGURATION))
        assert adapter.is_provided(self.SETTINGS, None)

    def test_the_users_volcano_takes_precedence_over_an_installation(self, server: Server) -> None:
        server.install(Volcano.place, "registry.example/it:v1", "")
        assert not Volcano().is_provided(self.SETTINGS, Path("programs"))

    @pytest.mark.parametrize(
        ("adapter", "in_pods", "folder"),
        [(Kueue(), False, Path("programs")), (Kueue(), True, None), (Volcano(), True, None)],
        ids=["kueue's program", "kueue in pods", "volcano in pods"],
    )
    def test_a_second_scheduler_beside_an_installation_is_rejected(
        self, adapter: installable.InstallableAdapter, in_pods: bool, folder: Path | None, server: Server
    ) -> None:
        server.install(adapter.place, "registry.example/it:v1", yaml.safe_dump(CONFIGURATION))
        if in_pods:
            adapter.run_in_pods([])
        with pytest.raises(
            AdapterError, match=r"v1 is installed in this cluster, .*\n  where: context team\n  do next: "
        ):
            adapter.is_provided(self.SETTINGS, folder)
        assert server.writes == []

    def test_an_installation_that_does_not_manage_the_kinds_is_rejected(self, server: Server) -> None:
        narrow = {**CONFIGURATION, "integrations": {"frameworks": ["batch/job"]}}
        server.install(kueue.PLACE, "kueue:v0.19.2", yaml.safe_dump(narrow))
        with pytest.raises(AdapterError, match=r"v0\.19\.2 does not manage pod, deployment\n.*\n  do next: add"):
            Kueue().is_provided(self.SETTINGS, None)

    def test_an_installation_with_an_old_api_is_rejected(self, server: Server) -> None:
        server.install(kueue.PLACE, "kueue:v0.8.0", yaml.safe_dump(CONFIGURATION))
        server.served = False
        with pytest.raises(AdapterError, match=r"v0\.8\.0 does not serve kueue.*/v1beta2\n.*\n  do next:"):
            Kueue().is_provided(self.SETTINGS, None)

    @pytest.mark.parametrize("name", ["kueue", "volcano"])
    def test_an_unavailable_image_is_rejected(self, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        docker = tmp_path / "docker"
        docker.write_text('#!/bin/sh\n[ "$1" = version ] && echo 27.0\n')
        docker.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        adapter: Adapter = Kueue() if name == "kueue" else Volcano()
        adapter.run_in_pods([f"registry.example/{number}:v1" for number in range(len(adapter.programs))])
        with pytest.raises(
            DockerError, match=r"registry\.example/0:v1 is not in the Docker engine, .*\n.*\n  do next: "
        ):
            adapter.require_programs(Settings(kind="embedded"), None, print)
        assert adapter.missing_parts(tmp_path) == [], "a folder with definitions alone is sufficient"
