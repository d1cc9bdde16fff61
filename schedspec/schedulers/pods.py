"""Read the logs of a scheduler's pods and detect that a pod has ended, through the API server only."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final

from ..api.client import MERGE, Api, Object
from ..api.errors import ClusterUnreachableError, SchedulerDiedError

_TOUCHED: Final = "schedspec.dev/files-changed"
_TAIL: Final = 25
_NEVER_STARTS: Final = (
    *("CrashLoopBackOff", "CreateContainerConfigError", "ErrImagePull", "ImagePullBackOff", "InvalidImageName"),
    *("ErrImageNeverPull", "RunContainerError"),
)


class Pods:
    """The pods of one namespace.

    Args:
        api: The API server.
        namespace: Namespace of the pods.
        title: Name of the scheduler in messages.
        readable: Formats a line of a log for users.
    """

    def __init__(self, api: Api, namespace: str, title: str, readable: Callable[[str], str] = str) -> None:
        self._api, self._title, self._readable = api, title, readable
        self.path = f"/api/v1/namespaces/{namespace}/pods"

    def all(self, selector: str) -> list[Object]:
        """Return the pods that the label selector matches."""
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
        """Check that no container of the pod ended or can never start.

        Raises:
            SchedulerDiedError: a container did. The error has the last lines of the pod's log.
        """
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
