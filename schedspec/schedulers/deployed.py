"""A scheduler's Deployment, reached through the API server only: its image, its configuration, its pods."""

from __future__ import annotations

import functools
import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from ..api import timeouts
from ..api.client import MERGE, Api, Object
from ..api.errors import ClusterUnreachableError, RejectedError, SchedulerDiedError
from .readiness import NotReadyError, retrying

_TOUCHED: Final = "schedspec.dev/files-changed"
_TAIL: Final = 25
_NEVER_STARTS: Final = (
    *("CrashLoopBackOff", "CreateContainerConfigError", "ErrImagePull", "ImagePullBackOff", "InvalidImageName"),
    *("ErrImageNeverPull", "RunContainerError"),
)


class Pods:
    """The pods of one namespace. `readable` formats a line of a log for users."""

    def __init__(self, api: Api, namespace: str, title: str, readable: Callable[[str], str] = str) -> None:
        self._api, self._title, self._readable = api, title, readable
        self.path = f"/api/v1/namespaces/{namespace}/pods"

    def all(self, selector: str) -> list[Object]:
        items: list[Object] = self._api.call("GET", self.path, query={"labelSelector": selector})["items"]
        return items

    def log(self, name: str, count: int | None = None, *, previous: bool = False) -> list[str]:
        """Return the last lines of a pod's log; all lines without a count."""
        query = {"previous": str(previous).lower()} | ({"tailLines": str(count)} if count else {})
        try:
            response = self._api.raw("GET", f"{self.path}/{name}/log", query=query)
        except ClusterUnreachableError as problem:
            return [str(problem)]
        return response.data.decode(errors="replace").splitlines() if response.status == 200 else []

    def touch(self, names: Iterable[str]) -> None:
        """Change an annotation of the pods, so that the kubelets update their files now.

        A kubelet writes a new ConfigMap or Secret into its pods up to a minute later, unless the pod itself changes.
        """
        body = {"metadata": {"annotations": {_TOUCHED: f"{time.time():.3f}"}}}
        for name in names:
            self._api.call("PATCH", f"{self.path}/{name}", body=body, content_type=MERGE)

    def require_alive(self, pod: Object) -> None:
        """Check that no container of the pod ended or can never start. Raises SchedulerDiedError."""
        name = pod["metadata"]["name"]
        for status in pod.get("status", {}).get("containerStatuses") or ():
            waits = (status.get("state", {}).get("waiting") or {}).get("reason", "")
            ended = status.get("state", {}).get("terminated") or status.get("lastState", {}).get("terminated")
            if ended or waits in _NEVER_STARTS:
                how = (
                    f"ended ({ended.get('reason')}, exit code {ended.get('exitCode')})" if ended else f"waits: {waits}"
                )
                words = self.log(name, _TAIL, previous=True) or self.log(name, _TAIL)
                lines = "\n".join(f"  | {self._readable(line)}" for line in words) or "  | (its log is empty)"
                raise SchedulerDiedError(f"{self._title}, pod {name}, {how}\n{lines}")


OF_A_RUN: Final = "schedspec.dev/deployed-by-run"
"""Label of the objects that a run deploys itself (from_images.py)."""
_CONFIGURED: Final = "schedspec.dev/policy"
_CHECK_EVERY = 1.0
_TOUCH_EVERY = 2.0


class DeploymentSite(NamedTuple):
    namespace: str
    deployment: str
    config: str
    key: str

    @property
    def path(self) -> str:
        return f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{self.deployment}"

    @property
    def config_path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/configmaps/{self.config}"


def installed(api: Api, place: DeploymentSite) -> str:
    """Return the version (the tag of the image) of a scheduler that a user installed; empty if there is none."""
    answer = api.raw("GET", place.path)
    if answer.status != 200 or OF_A_RUN in (answer.json()["metadata"].get("labels") or {}):
        return ""
    image = str(answer.json()["spec"]["template"]["spec"]["containers"][0]["image"])
    return tag_of(image) or "without a version"


def tag_of(image: str) -> str:
    """Return the tag of an image's name; empty if it has none."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[2]


class DeployedProgram:
    """One Deployment. Not thread-safe."""

    def __init__(self, api: Api, place: DeploymentSite, title: str, scale: float) -> None:
        self._api, self._place, self._title, self._scale = api, place, title, max(scale, 1.0)
        self._pods = Pods(api, place.namespace, title)
        self._checked_at = 0.0

    @functools.cached_property
    def _selector(self) -> str:
        labels = self._api.call("GET", self._place.path)["spec"]["selector"]["matchLabels"]
        return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))

    def configuration(self) -> str:
        return str(self._api.call("GET", self._place.config_path)["data"].get(self._place.key, ""))

    def configure(self, text: str) -> None:
        """Write the configuration and restart the pods without waiting: a restart is safer than a watch of the file."""
        body = {"data": {self._place.key: text}}
        self._api.call("PATCH", self._place.config_path, body=body, content_type=MERGE)
        mark = {_CONFIGURED: hashlib.sha256(text.encode()).hexdigest()}
        pods = {"spec": {"template": {"metadata": {"annotations": mark}}}}
        self._api.call("PATCH", self._place.path, body=pods, content_type=MERGE)

    def wait(self, ready: Callable[[], None] = lambda: None, *, touch: bool = False) -> None:
        """Return when the pods are rolled out and `ready` raises no NotReadyError.

        Args:
            ready: A further condition.
            touch: Touch the pods meanwhile, so that the files that the scheduler waits for appear soon.

        Raises:
            SchedulerDiedError: a container ended.
            NotReadyError: the pods were not ready in time.
        """
        touched = time.monotonic()
        for attempt in retrying(timeouts.ROLLED_OUT * self._scale, 0.2):
            with attempt:
                if touch and time.monotonic() > touched + _TOUCH_EVERY:
                    touched = time.monotonic()
                    self._pods.touch(pod["metadata"]["name"] for pod in self._pods.all(self._selector))
                self._require_rolled_out()
                ready()

    def check(self) -> None:
        """Check, at most once a second, that no container ended."""
        if time.monotonic() >= self._checked_at + _CHECK_EVERY:
            self._checked_at = time.monotonic()
            self._require_alive()

    def last_lines(self, count: int | None = None) -> Sequence[str]:
        """Return the last lines of the log; all lines without a count."""
        pods = self._pods.all(self._selector)
        lines = [line for pod in pods for line in self._pods.log(pod["metadata"]["name"], count)]
        return lines if count is None else lines[-count:]

    def _require_alive(self) -> None:
        for pod in self._pods.all(self._selector):
            if "deletionTimestamp" not in pod["metadata"]:  # a roll-out stops the other pods
                self._pods.require_alive(pod)

    def _require_rolled_out(self) -> None:
        try:
            found = self._api.call("GET", self._place.path)
        except RejectedError as problem:
            raise NotReadyError(f"{self._title} is not deployed: {problem}") from None
        self._require_alive()
        status, wanted = found.get("status") or {}, found["spec"].get("replicas", 1)
        current = status.get("observedGeneration", 0) >= found["metadata"]["generation"]
        counts = [status.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")]
        if not current or counts != [wanted] * 3:
            raise NotReadyError(f"{self._title} is not rolled out: {status}")
