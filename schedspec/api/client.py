"""Client of the API server: plain calls with plain dicts.

The official client provides configuration, TLS and connections. Its models are not used, because they cost a hundred
times as much as a dict. Every refusal is a RejectedError with the server's message.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
import urllib3
from kubernetes import config as kubeconfig
from kubernetes.client import ApiClient, ApiException, Configuration

from . import timeouts
from .errors import ClusterUnreachableError, RejectedError
from .kinds import Resource
from .names import Names

Object = dict[str, Any]
"""A Kubernetes object as decoded JSON."""

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"

_FIELD = re.compile(r"""(?:unknown field "|[;:] )(\.?(?:spec|metadata|status)[\w.\[\]-]*)""")
"""Fields that the server names only in its message: fields that the schema does not have."""


_EXEC = 10.0
"""Maximum seconds of a command in a pod."""


class Api:
    """One cluster's API server. Thread-safe: connections come from a pool."""

    def __init__(self, kubeconfig_file: Path, context: str, connections: int = 32, names: Names | None = None) -> None:
        self.names = names or Names()
        self.configuration: Any = Configuration()
        load: Any = kubeconfig.load_kube_config  # the function has no type annotations
        load(str(kubeconfig_file), context, client_configuration=self.configuration)
        self.configuration.connection_pool_maxsize = connections
        self._client: Any = ApiClient(self.configuration)
        self.server: str = self.configuration.host
        self._known: dict[tuple[str, str], Resource] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the connections."""
        self._client.rest_client.pool_manager.clear()

    def raw(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        body: object = None,
        content_type: str = "application/json",
        stream: bool = False,
        timeout: float = timeouts.ANSWERED,
    ) -> urllib3.BaseHTTPResponse:
        """Send one request and return the response, whatever its status. With `stream` the body is not read.

        Raises:
            ClusterUnreachableError: the API server did not answer.
        """
        headers: dict[str, str] = {"Accept": "application/json", "User-Agent": "schedspec"}
        params: list[tuple[str, str]] = []
        self._client.update_params_for_auth(headers, params, ["BearerToken"], path, method, body)
        if body is not None:
            headers["Content-Type"] = content_type
        url = self.server + self.names.path(path) + (f"?{urlencode(query)}" if query else "")
        try:
            response: urllib3.BaseHTTPResponse = self._client.rest_client.pool_manager.request(
                method,
                url,
                headers=headers,
                body=None if body is None else msgspec.json.encode(self.names.outgoing(body)),
                preload_content=not stream,
                timeout=urllib3.Timeout(connect=timeout, read=timeout),
                retries=False,
            )
        except urllib3.exceptions.HTTPError as problem:
            raise ClusterUnreachableError(f"the API server at {self.server} does not answer: {problem}") from problem
        return response

    def call(self, method: str, path: str, **more: Any) -> Object:
        """Send one request and return the decoded answer.

        Raises:
            RejectedError: the API server refused the request.
            ClusterUnreachableError: the API server did not answer.
        """
        response = self.raw(method, path, **more)
        if response.status >= 400:
            raise rejection(method, path, response.status, self.names.plain(response.data))
        answer: Object = self.decode(response.data)
        return answer

    def decode(self, data: bytes) -> Any:
        """Decode an answer, or a line of a watch, with the scenarios' names."""
        return msgspec.json.decode(self.names.plain(data))

    def resource(self, api_version: str, kind: str) -> Resource:
        """Return how the API server serves `kind`. The answer is cached.

        Raises:
            RejectedError: the API server does not serve the kind.
        """
        key = (api_version, kind)
        with self._lock:
            if key not in self._known:
                base = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
                for entry in self.call("GET", base)["resources"]:
                    if "/" not in entry["name"]:
                        found = Resource(api_version, entry["kind"], entry["name"], entry["namespaced"])
                        self._known[(api_version, entry["kind"])] = found
            if key not in self._known:
                raise RejectedError(f"the API server serves no kind {kind!r} in {api_version!r}", 404, "NotFound")
            return self._known[key]

    def apply(self, obj: Object, manager: str, *, namespace: str = "") -> Object:
        """Apply an object by server-side apply, with strict validation of fields.

        Raises:
            RejectedError: the API server refused the object.
        """
        resource = self.resource(obj["apiVersion"], obj["kind"])
        return self.call(
            "PATCH",
            resource.path(obj["metadata"]["name"], obj["metadata"].get("namespace", namespace)),
            query={"fieldManager": manager, "force": "true", "fieldValidation": "Strict"},
            body=obj,
            content_type=APPLY,
        )

    def delete_all(self, path: str, *, grace: int | None = None, propagation: str = "Background") -> None:
        """Delete all objects of the collection at `path`; see `delete`."""
        self.delete(path, grace=grace, propagation=propagation, timeout=timeouts.COLLECTION)

    def delete(
        self,
        path: str,
        *,
        grace: int | None = None,
        propagation: str = "Background",
        uid: str = "",
        timeout: float = timeouts.ANSWERED,
    ) -> bool:
        """Delete the object at `path`. Return False if it did not exist.

        Args:
            path: Path of the object.
            grace: Grace period in seconds.
            propagation: Propagation policy.
            uid: If set, a successor of the same name is not deleted.
            timeout: Maximum seconds until the answer.
        """
        options: Object = {"propagationPolicy": propagation}
        if uid:
            options["preconditions"] = {"uid": uid}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        try:
            self.call("DELETE", path, body=options, timeout=timeout)
        except RejectedError as problem:
            if problem.status == 404:
                return False
            raise
        return True


def run_in_pod(api: Api, namespace: str, pod: str, command: Sequence[str]) -> str:
    """Run a command in a real pod's container and return its output.

    Raises:
        RejectedError: the command could not be run.
    """
    from kubernetes import stream  # noqa: PLC0415 - importing these two takes as long as all other imports
    from kubernetes.client import CoreV1Api  # noqa: PLC0415

    call: Any = stream.stream  # the function has no type annotations
    core: Any = CoreV1Api(ApiClient(api.configuration))
    try:
        websocket = call(
            core.connect_get_namespaced_pod_exec,
            *(pod, namespace),
            command=list(command),
            stdout=True,
            stderr=True,
            stdin=False,
            tty=False,
            _preload_content=False,
        )
    except ApiException as problem:
        text = f"the command {' '.join(command)} did not run in pod {pod}: {problem.reason}"
        raise RejectedError(text, int(problem.status or 0), str(problem.reason)) from None
    try:
        websocket.run_forever(timeout=_EXEC)
        return str(websocket.read_all())
    finally:
        websocket.sock.shutdown()  # close() leaves the socket to the garbage collector, which warns in a later test


def rejection(method: str, path: str, status: int, data: bytes) -> RejectedError:
    """Return the error that the server's answer describes."""
    causes: list[Object] = []
    try:
        answer = msgspec.json.decode(data)
        reason, message = str(answer.get("reason", "")), str(answer.get("message", ""))
        causes = (answer.get("details") or {}).get("causes") or []
    except (msgspec.DecodeError, AttributeError):  # an answer in plain text: the kind is not served (yet)
        reason, message = "", data.decode(errors="replace").strip()
    fields = [str(cause["field"]) for cause in causes if cause.get("field")]
    fields += [part.strip(".") for part in _FIELD.findall(message)]
    text = f"the API server refused {method} {path}: {status} {reason}\n  {message}"
    return RejectedError(text, status, reason, message, fields)


def pages(api: Api, path: str, **query: str) -> Iterator[Object]:
    """Yield the pages of a list of objects, each with at most 500 of them.

    Raises:
        RejectedError: the API server refused the request.
        ClusterUnreachableError: the API server did not answer.
    """
    query["limit"] = "500"
    while True:
        page = api.call("GET", path, query=query)
        yield page
        query["continue"] = (page.get("metadata") or {}).get("continue", "")
        if not query["continue"]:
            return
