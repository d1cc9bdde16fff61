"""The harness and a deployed scheduler: what the harness waits for, and its error if a replica does not run."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any, cast

import pytest
import urllib3
import yaml

from schedspec.api.client import Api
from schedspec.api.errors import PolicyRefusedError, RejectedError, SchedulerDiedError
from schedspec.clusters import Settings
from schedspec.clusters.programs import binaries
from schedspec.schedulers import in_cluster
from schedspec.schedulers.in_cluster import SchedulerInCluster
from schedspec.schedulers.readiness import NotReadyError

OLD, NEW = "actions: allocate\n", "actions: enqueue\n"


class Server:
    """An API server with two replicas of a scheduler. `kubelet_waits`: reads until a new policy is mounted."""

    def __init__(self, kubelet_waits: int = 0) -> None:
        self.pods = {name: pod(name) for name in ("schedspec-a", "schedspec-b")}
        self.holder = "schedspec-b_1"
        self.policy = self.in_force = OLD
        self.logs = {"schedspec-a": "first", "schedspec-b": "one\ntwo\nthree"}
        self.refusal = ""
        self.patched: list[str] = []
        self._waits = kubelet_waits

    def call(self, method: str, path: str, **more: Any) -> Any:
        if method == "PATCH":
            self.patched.append(path.rpartition("/")[2])
            if path == in_cluster.POLICY:
                self.policy = more["body"]["data"]["policy.yaml"]
            return {}
        if path == in_cluster.DEPLOYMENT:
            return {"spec": {"replicas": 2}}
        if path == in_cluster.CONTROLLERS:
            return {"spec": {"replicas": 2}, "status": {"readyReplicas": 2}}
        if path == in_cluster.LEASE:
            if not self.holder:
                raise RejectedError("leases schedspec not found", 404, "NotFound")
            return {"spec": {"holderIdentity": self.holder}}
        assert path == in_cluster.PODS
        return {"items": list(self.pods.values())}

    def raw(self, method: str, path: str, **more: Any) -> urllib3.HTTPResponse:
        name, _, page = path.removeprefix(f"{in_cluster.PODS}/").partition("/")
        if page == "log":
            lines = self.logs[name].splitlines()[-int((more.get("query") or {}).get("tailLines", 100)) :]
            return urllib3.HTTPResponse("\n".join(lines).encode(), status=200)
        assert name.endswith(":8080")
        self._waits -= 1
        if self._waits < 0 and not self.refusal:
            self.in_force = self.policy
        expected = {"sha256": sha(self.in_force), "error": self.refusal, "refused_sha256": sha(self.policy)}
        return urllib3.HTTPResponse(json.dumps(expected).encode(), status=200)


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def pod(name: str, *, ready: bool = True, **status: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"image": "schedspec.local/scheduler:t"}]},
        "status": {"phase": "Running", "conditions": conditions, "containerStatuses": [{"restartCount": 0, **status}]},
    }


def attached(server: Server, tmp_path: Path) -> SchedulerInCluster:
    scheduler = SchedulerInCluster(
        tmp_path, cast(Api, server), tmp_path / "kubeconfig", load=print, programs=None, progress=print
    )
    scheduler.attach({"pods": ["schedspec-a", "schedspec-b"], "policy": OLD})
    return scheduler


ENDED = {"lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}, "restartCount": 1}
DEAD = {
    "its container ended": (ENDED, r"pod schedspec-a, ended \(OOMKilled, exit code 137\)\n  \| first"),
    "its image cannot be pulled": (
        {"state": {"waiting": {"reason": "ImagePullBackOff"}}},
        "pod schedspec-a, waits: ImagePullBackOff",
    ),
}


@pytest.mark.parametrize(("status", "expected"), DEAD.values(), ids=DEAD)
def test_a_replica_that_does_not_run_is_reported_with_its_last_log_lines(
    tmp_path: Path, status: dict[str, Any], expected: str
) -> None:
    server = Server()
    server.pods["schedspec-a"] = pod("schedspec-a", **status)
    with pytest.raises(SchedulerDiedError, match=expected):
        attached(server, tmp_path).check()


def test_a_deleted_replica_is_reported(tmp_path: Path) -> None:
    server = Server()
    del server.pods["schedspec-b"]
    with pytest.raises(SchedulerDiedError, match=r"pod schedspec-b .* was deleted"):
        attached(server, tmp_path).check()


def test_a_policy_that_is_in_force_is_not_written(tmp_path: Path) -> None:
    server = Server()
    assert attached(server, tmp_path).use_policy(OLD) == sha(OLD)
    assert server.patched == []


def test_a_new_policy_is_written_and_pods_are_patched_so_that_kubelets_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_cluster, "_TOUCH_EVERY", 0.0)
    server = Server(kubelet_waits=3)
    attached(server, tmp_path).use_policy(NEW)
    assert server.patched[0] == "schedspec-policy"
    assert {"schedspec-a", "schedspec-b"} <= set(server.patched)
    assert server.in_force == NEW


def test_a_refused_policy_raises_an_error_with_the_schedulers_text(tmp_path: Path) -> None:
    server = Server()
    server.refusal = "policy.yaml:1: no such action"
    with pytest.raises(PolicyRefusedError, match="no such action"):
        attached(server, tmp_path).use_policy(NEW)


def test_the_log_is_the_leaders_or_that_of_all_replicas_without_a_leader(tmp_path: Path) -> None:
    server = Server()
    scheduler = attached(server, tmp_path)
    assert scheduler.last_lines(2) == ["two", "three"]
    server.holder = ""
    assert scheduler.last_lines(1) == ["first", "three"]


def test_a_rollout_waits_until_all_replicas_have_the_image_and_are_ready(tmp_path: Path) -> None:
    server = Server()
    scheduler = attached(server, tmp_path)
    assert scheduler._rolled_out("t") == ("schedspec-a", "schedspec-b")
    with pytest.raises(NotReadyError, match="0 of 2 replicas"):
        scheduler._rolled_out("another")
    server.pods["schedspec-b"] = pod("schedspec-b", ready=False)
    with pytest.raises(NotReadyError, match="1 of 2 replicas"):
        scheduler._rolled_out("t")


@pytest.mark.embedded
def test_the_overlay_changes_only_image_node_selector_and_policy(tmp_path: Path) -> None:
    kubectl = binaries.provide(("kubectl",), folder=Settings().binaries, progress=print)["kubectl"].path

    def built(folder: Path) -> dict[tuple[str, str], Any]:
        done = subprocess.run([kubectl, "kustomize", folder], capture_output=True, text=True, check=True, timeout=60)
        return {(it["kind"], it["metadata"]["name"]): it for it in yaml.safe_load_all(done.stdout)}

    plain = built(Path(__file__).parents[2] / "deploy")
    ours = built(in_cluster.write_overlay(tmp_path / "deep" / "overlay", "t1", NEW))
    changed = {key for key in plain.keys() | ours.keys() if plain.get(key) != ours.get(key)}
    assert changed == {
        ("Deployment", "schedspec"),
        ("Deployment", "schedspec-controllers"),
        ("ConfigMap", "schedspec-policy"),
    }
    assert ours["ConfigMap", "schedspec-policy"]["data"] == {"policy.yaml": NEW}
    (before,) = plain["Deployment", "schedspec"]["spec"]["template"]["spec"]["containers"]
    (after,) = ours["Deployment", "schedspec"]["spec"]["template"]["spec"]["containers"]
    assert after["image"] == "schedspec.local/scheduler:t1"
    assert after["args"] == [*before["args"], "--node-selector=schedspec.dev/world=true"]
    assert plain["CustomResourceDefinition", "queues.scheduling.volcano.sh"]
