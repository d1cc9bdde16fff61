"""Run the scheduler under test where users run it: two replicas in the cluster, from an image of this checkout.

The scheduler is reached through the API server only. A replica that ends fails the run even if the other takes over: a
crash is a bug even if no scenario notices it.

`kubectl apply -k` applies exactly what users apply: deploy/. The overlay sets only the image, the nodes of the
scenarios and the policy.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from ..api import timeouts
from ..api.client import MERGE, Api, Object
from ..api.errors import HarnessError, RejectedError, SchedulerDiedError
from ..clusters import subprocess_run
from ..clusters.docker import Docker
from ..clusters.images import scheduler_image
from ..clusters.paths import part
from ..clusters.programs import binaries
from .adapter import Scheduler, sha256
from .deployed import Pods
from .process import readable
from .readiness import NotReadyError, require_in_force, retrying

NAMESPACE = NAME = "schedspec"
"""The namespace in deploy/, and the name of the scheduler's objects; the controllers' objects have other names."""

DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{NAME}"
CONTROLLERS = f"{DEPLOYMENT}-controllers"
POLICY = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{NAME}-policy"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{NAME}"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
SELECTOR = f"app.kubernetes.io/name={NAME}"
EVERY_POD = f"app.kubernetes.io/name in ({NAME}, {NAME}-controllers)"

_APPLY_SECONDS = 60.0


def write_overlay(folder: Path, tag: str, policy: str) -> Path:
    """Write a kustomization over deploy/ for a run of the harness. Return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "policy.yaml").write_text(policy, "utf-8")
    argument = {"op": "add", "path": "/spec/template/spec/containers/0/args/-"}
    overlay = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [os.path.relpath(part("deploy"), folder.resolve())],
        "images": [{"name": scheduler_image.NAME, "newTag": tag}],
        "patches": [
            {
                "target": {"kind": "Deployment"},  # scheduler and controllers see the same nodes
                "patch": yaml.safe_dump([{**argument, "value": "--node-selector=schedspec.dev/world=true"}]),
            }
        ],
        "configMapGenerator": [
            {"name": f"{NAME}-policy", "namespace": NAMESPACE, "behavior": "replace", "files": ["policy.yaml"]}
        ],
        "generatorOptions": {"disableNameSuffixHash": True},
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(overlay, sort_keys=False), "utf-8")
    return folder


def apply(kubectl: Path, kubeconfig: Path, overlay: Path) -> None:
    """Apply an overlay. Raises HarnessError: kubectl failed; with its message."""
    command = [str(kubectl), "--kubeconfig", str(kubeconfig)]
    command += ["apply", "--server-side", "--force-conflicts", "-k", str(overlay)]
    done = subprocess_run.run(command, deadline=_APPLY_SECONDS)
    if done.status != 0:
        raise HarnessError(
            f"the scheduler could not be deployed (exit status {done.status}):\n{done.last_lines}\n"
            f"  where: {' '.join(command)}\n  do next: repair deploy/"
        )


def remove(api: Api) -> None:
    """Remove a deployed scheduler from the cluster. It would schedule beside the scheduler under test."""
    deleted = [api.delete(path, propagation="Foreground") for path in (DEPLOYMENT, CONTROLLERS)]
    if not any(deleted):
        return
    for attempt in retrying(timeouts.REMOVED, 0.1):
        with attempt:
            left = api.call("GET", PODS, query={"labelSelector": EVERY_POD})["items"]
            if left:
                raise NotReadyError(
                    f"pods of the scheduler are not deleted yet: {[pod['metadata']['name'] for pod in left]}"
                )


_CHECK_EVERY = 1.0
_TOUCH_EVERY = 2.0
"""Seconds between two changes of the annotation. One change usually suffices and takes effect within 0.6 to 1.3 s."""


class SchedulerInCluster(Scheduler):
    """One Deployment. `folder` receives the overlay and, at the end, the logs of its pods."""

    def __init__(
        self,
        folder: Path,
        api: Api,
        kubeconfig: Path,
        *,
        load: Callable[[Path], None],
        programs: Path | None,
        progress: Callable[[str], None],
        scale: float = 1.0,
    ) -> None:
        """Prepare a deployment; `load` loads an image into the nodes, `programs` is the user's folder with kubectl."""
        self._folder = folder
        self._load, self._programs, self._progress = load, programs, progress
        self._api, self._kubeconfig, self._scale = api, kubeconfig, scale
        self._all = Pods(api, NAMESPACE, "the scheduler under test", readable)
        self._deployed = False
        self._pods: tuple[str, ...] = ()
        self._policy = ""
        self._checked_at = 0.0

    def start(self, policy: str) -> None:
        """Build and load the image, and deploy. Return when one replica leads and the policy is in force."""
        tag, archive = scheduler_image.archive(Docker(), self._progress)
        self._progress(f"{scheduler_image.NAME}:{tag}: loading into the nodes")
        self._load(archive)
        kubectl = binaries.provide(("kubectl",), folder=self._programs, progress=self._progress)["kubectl"].path
        self._progress("kubectl apply -k deploy/")
        self._deployed = True
        apply(kubectl, self._kubeconfig, write_overlay(self._folder / "overlay", tag, policy))
        self._policy = policy
        for attempt in self._until(timeouts.ROLLED_OUT, pause=0.2):
            with attempt:
                self._pods = self._rolled_out(tag)
        for attempt in self._until(timeouts.ROLLED_OUT, pause=0.2):
            with attempt:
                self._leader()
        self.use_policy(policy)

    def stop(self) -> None:
        deployed, self._deployed, self._pods = self._deployed, False, ()
        if not deployed:
            return
        for pod in self._all.all(EVERY_POD):
            name = pod["metadata"]["name"]
            text = "\n".join(self._all.log(name))
            (self._folder / f"scheduler-{name}.log").write_text(f"{text}\n", "utf-8")
        remove(self._api)

    def handle(self) -> dict[str, Any]:
        return {"pods": self._pods, "policy": self._policy}

    def attach(self, handle: dict[str, Any]) -> None:
        self._pods, self._policy = tuple(handle["pods"]), handle["policy"]

    def check(self) -> None:
        """Check once a second that no replica ended, even if the other took over."""
        if time.monotonic() < self._checked_at + _CHECK_EVERY:
            return
        self._checked_at = time.monotonic()
        pods = {pod["metadata"]["name"]: pod for pod in self._all.all(EVERY_POD)}
        for name, pod in pods.items():
            if name not in self._pods:
                self._all.require_alive(pod)  # a replica of the controllers
        for name in self._pods:
            if name not in pods:
                raise SchedulerDiedError(f"pod {name} of the scheduler under test was deleted")
            self._all.require_alive(pods[name])

    def use_policy(self, text: str) -> str:
        """Put a policy into force in every replica and return its sha256. Return at once if it is in force already.

        The pods are touched until the replicas have the policy.
        """
        wanted = sha256(text)
        if text != self._policy:
            self._api.call("PATCH", POLICY, body={"data": {"policy.yaml": text}}, content_type=MERGE)
            self._policy = text
        touched = time.monotonic() - _TOUCH_EVERY + 0.02  # the kubelet needs a moment to receive the ConfigMap
        for attempt in self._until(timeouts.POLICY_IN_CLUSTER, pause=0.02):
            with attempt:
                try:
                    for pod in self._pods:
                        require_in_force(self._page_of(pod), wanted)
                except NotReadyError:
                    if time.monotonic() >= touched + _TOUCH_EVERY:
                        touched = time.monotonic()
                        self._all.touch(self._pods)
                    raise
        return wanted

    def policy(self) -> dict[str, Any]:
        """Return the leader's report of the policy in force: path, sha256, error."""
        return self._page_of(self._leader())

    def metrics(self) -> str:
        return self._get(self._leader(), "metrics").decode()

    def last_lines(self, count: int) -> Sequence[str]:
        """Return the last lines of the leader's log; of all logs if no replica leads."""
        with contextlib.suppress(NotReadyError):
            return self._all.log(self._leader(), count)
        return [line for pod in self._pods for line in self._all.log(pod, count)]

    # ------------------------------------------------------------------------------------------------------ rolling out

    def _rolled_out(self, tag: str) -> tuple[str, ...]:
        wanted = self._api.call("GET", DEPLOYMENT)["spec"]["replicas"]
        pods = [pod for pod in self._all.all(SELECTOR) if "deletionTimestamp" not in pod["metadata"]]
        for pod in pods:
            self._all.require_alive(pod)
        ready = [pod for pod in pods if _is_ready(pod) and pod["spec"]["containers"][0]["image"].endswith(f":{tag}")]
        if len(ready) != wanted or len(pods) != wanted:
            state = "; ".join(f"{pod['metadata']['name']} {_state(pod)}" for pod in pods) or "there are no pods"
            raise NotReadyError(f"{len(ready)} of {wanted} replicas of the scheduler are ready: {state}")
        controllers = self._api.call("GET", CONTROLLERS)
        count, wanted = controllers.get("status", {}).get("readyReplicas", 0), controllers["spec"]["replicas"]
        if count != wanted:
            raise NotReadyError(f"{count} of {wanted} replicas of the controllers are ready")
        return tuple(sorted(pod["metadata"]["name"] for pod in ready))

    def _leader(self) -> str:
        try:
            holder = str(self._api.call("GET", LEASE)["spec"].get("holderIdentity") or "")
        except RejectedError as problem:
            raise NotReadyError(f"no replica of the scheduler leads: {problem}") from None
        for pod in self._pods:
            if holder.startswith(f"{pod}_"):
                return pod
        raise NotReadyError(f"no replica of the scheduler leads; the lease is held by {holder or 'nobody'}")

    # ------------------------------------------------------------------------------------------- through the API server

    def _page_of(self, pod: str) -> dict[str, Any]:
        page: dict[str, Any] = msgspec.json.decode(self._get(pod, "policy"))
        return page

    def _get(self, pod: str, page: str) -> bytes:
        self.check()
        response = self._api.raw("GET", f"{PODS}/{pod}:8080/proxy/{page}")
        if response.status != 200:
            text = response.data.decode(errors="replace")[:500]
            raise NotReadyError(f"pod {pod} of the scheduler answers {response.status} to /{page}: {text}")
        return response.data

    def _until(self, seconds: float, pause: float) -> Any:
        return retrying(seconds * self._scale, pause)


def _is_ready(pod: Object) -> bool:
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _state(pod: Object) -> str:
    for status in pod.get("status", {}).get("containerStatuses") or ():
        waiting = status.get("state", {}).get("waiting")
        if waiting:
            return f"{waiting.get('reason')} {waiting.get('message', '')}".strip()
    conditions = pod.get("status", {}).get("conditions") or ()
    refused = next(
        (condition for condition in conditions if condition["status"] == "False" and condition.get("message")), None
    )
    return str(refused["message"]) if refused else str(pod.get("status", {}).get("phase"))
