"""The API server as plain calls on plain dicts. Configuration, TLS and connections are the official client's; its
models are not used: they cost a hundred times what a dict does.

Every refusal is a RejectedError with the server's own words.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
import urllib3
from kubernetes import config as kubeconfig
from kubernetes.client import ApiClient, ApiException, Configuration

from .errors import ClusterUnreachableError, RejectedError
from .kinds import Resource

Object = dict[str, Any]
"""A Kubernetes object, as JSON has it."""

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"

_FIELD = re.compile(r"""(?:unknown field "|[;:] )(\.?(?:spec|metadata|status)[\w.\[\]-]*)""")
"""Fields that the server blames in the text only: those that its schema does not know."""


_EXEC = 10.0
"""Seconds that a command in a pod may take."""


class Api:
    """One cluster's API server. Thread-safe: connections come from a pool."""

    def __init__(self, kubeconfig_file: Path, context: str, connections: int = 32) -> None:
        self.configuration: Any = Configuration()
        load: Any = kubeconfig.load_kube_config  # it has no types
        load(str(kubeconfig_file), context, client_configuration=self.configuration)
        self.configuration.connection_pool_maxsize = connections
        self._client: Any = ApiClient(self.configuration)
        self.server: str = self.configuration.host
        self._known: dict[tuple[str, str], Resource] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """Give the connections back."""
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
        timeout: float = 10.0,
    ) -> urllib3.BaseHTTPResponse:
        """One request; the response whatever its status. With `stream` its body is not read.

        Raises ClusterUnreachableError.
        """
        headers: dict[str, str] = {"Accept": "application/json", "User-Agent": "schedspec"}
        params: list[tuple[str, str]] = []
        self._client.update_params_for_auth(headers, params, ["BearerToken"], path, method, body)
        if body is not None:
            headers["Content-Type"] = content_type
        url = self.server + path + (f"?{urlencode(query)}" if query else "")
        try:
            response: urllib3.BaseHTTPResponse = self._client.rest_client.pool_manager.request(
                method,
                url,
                headers=headers,
                body=None if body is None else msgspec.json.encode(body),
                preload_content=not stream,
                timeout=urllib3.Timeout(connect=timeout, read=timeout),
                retries=False,
            )
        except urllib3.exceptions.HTTPError as problem:
            raise ClusterUnreachableError(f"the API server at {self.server} does not answer: {problem}") from problem
        return response

    def call(self, method: str, path: str, **more: Any) -> Object:
        """One request and its answer. Raises RejectedError, ClusterUnreachableError."""
        response = self.raw(method, path, **more)
        if response.status >= 400:
            raise rejection(method, path, response.status, response.data)
        answer: Object = msgspec.json.decode(response.data)
        return answer

    def resource(self, api_version: str, kind: str) -> Resource:
        """Where `kind` is served; asked once. Raises RejectedError if it is not."""
        key = (api_version, kind)
        with self._lock:
            if key not in self._known:
                base = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
                for entry in self.call("GET", base)["resources"]:
                    if "/" not in entry["name"]:
                        found = Resource(api_version, entry["kind"], entry["name"], entry["namespaced"])
                        self._known[(api_version, entry["kind"])] = found
            if key not in self._known:
                raise RejectedError(f"the API server knows no kind {kind!r} in {api_version!r}", 404, "NotFound")
            return self._known[key]

    def apply(self, obj: Object, manager: str, *, namespace: str = "") -> Object:
        """Server-side apply, strict about fields. Raises RejectedError."""
        resource = self.resource(obj["apiVersion"], obj["kind"])
        return self.call(
            "PATCH",
            resource.path(obj["metadata"]["name"], obj["metadata"].get("namespace", namespace)),
            query={"fieldManager": manager, "force": "true", "fieldValidation": "Strict"},
            body=obj,
            content_type=APPLY,
        )

    def delete(self, path: str, *, grace: int | None = None, propagation: str = "Background", uid: str = "") -> bool:
        """False if there was nothing to delete. `path` may name a collection; with `uid`, a successor is refused."""
        options: Object = {"propagationPolicy": propagation}
        if uid:
            options["preconditions"] = {"uid": uid}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        try:
            self.call("DELETE", path, body=options)
        except RejectedError as problem:
            if problem.status == 404:
                return False
            raise
        return True


def run_in_pod(api: Api, namespace: str, pod: str, command: Sequence[str]) -> str:
    """Run a command in a real pod's container; what it wrote. Raises RejectedError."""
    from kubernetes import stream  # noqa: PLC0415 - these two take as long to import as all else together
    from kubernetes.client import CoreV1Api  # noqa: PLC0415

    call: Any = stream.stream  # it has no types
    core: Any = CoreV1Api(ApiClient(api.configuration))
    try:
        said = call(
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
        said.run_forever(timeout=_EXEC)
        return str(said.read_all())
    finally:
        said.sock.shutdown()  # its own close() leaves the socket to the garbage collector, which warns in a later test


def rejection(method: str, path: str, status: int, data: bytes) -> RejectedError:
    """The error that the server's answer describes."""
    causes: list[Object] = []
    try:
        answer = msgspec.json.decode(data)
        reason, message = str(answer.get("reason", "")), str(answer.get("message", ""))
        causes = (answer.get("details") or {}).get("causes") or []
    except (msgspec.DecodeError, AttributeError):  # a plain-text answer: the kind is not served (yet)
        reason, message = "", data.decode(errors="replace").strip()
    fields = [str(cause["field"]) for cause in causes if cause.get("field")]
    fields += [part.strip(".") for part in _FIELD.findall(message)]
    text = f"the API server refused {method} {path}: {status} {reason}\n  {message}"
    return RejectedError(text, status, reason, message, fields)
