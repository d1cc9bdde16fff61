"""Write objects into etcd directly, through its HTTP gateway.

No client of the API can set an object's uid, creation time or status, and schedulers order work by them. The API server
serves what etcd has: JSON as well as its own encoding (seen on Kubernetes v1.36.3).
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import urllib3

from ...api.client import Api, Object
from ...api.errors import ClusterUnreachableError, RejectedError
from ...api.kinds import Resource
from ...schedulers.readiness import NotReadyError, retrying

MOST_OBJECTS = 100
"""Objects of one transaction: etcd refuses more than 128 operations."""
MOST_BYTES = 1 << 20
"""Bytes of one transaction: etcd refuses more than 1.5 MiB."""
_PREFIX = "/registry"
_PLURALS = {"nodes": "minions"}
_SECONDS = 60.0


class Etcd:
    """The database of one API server. Not thread-safe."""

    def __init__(self, address: str, api: Api) -> None:
        self._api, self._url = api, f"{address}/v3/kv/txn"
        self._http = urllib3.PoolManager(retries=False)

    def close(self) -> None:
        self._http.clear()

    def put(self, objects: Iterable[Object]) -> int:
        """Write objects, each in its `apiVersion`, and return their number. An object that exists is replaced.

        Raises:
            ClusterUnreachableError: etcd does not answer or refused a transaction.
            RejectedError: the API server does not serve a kind.
        """
        total = 0
        for batch in _batches((self._key(obj), msgspec.json.encode(obj)) for obj in objects):
            operations = [{"requestPut": {"key": _text(key.encode()), "value": _text(value)}} for key, value in batch]
            self._transact({"success": operations})
            total += len(batch)
        return total

    def load(self, objects: Iterable[Object]) -> int:
        """Write the objects of a world, and return their number when the API server serves all of them.

        All objects of a transaction have one revision. A client that lists a kind while the API server's cache has read
        half of them would miss the other half: its watch begins after that revision.

        Raises:
            ClusterUnreachableError: etcd does not answer or refused a transaction, or the API server does not serve
                what was written.
        """
        found = sorted(objects, key=lambda obj: not obj["metadata"].get("deletionTimestamp"))  # these may end at once
        total = self.put(found)
        for kind, obj in {(obj["apiVersion"], obj["kind"]): obj for obj in found}.items():
            if not obj["metadata"].get("deletionTimestamp"):
                wait_until_served(self._api, self._api.resource(*kind), obj)
        return total

    def _key(self, obj: Object) -> str:
        resource = self._api.resource(obj["apiVersion"], obj["kind"])
        return key_of(resource, obj["metadata"]["name"], obj["metadata"].get("namespace", ""))

    def _transact(self, body: dict[str, Any]) -> None:
        try:
            answer = self._http.request("POST", self._url, body=msgspec.json.encode(body), timeout=_SECONDS)
        except urllib3.exceptions.HTTPError as problem:
            raise ClusterUnreachableError(f"etcd at {self._url} does not answer: {problem}") from problem
        if answer.status != 200:
            text = answer.data.decode(errors="replace")[:500]
            raise ClusterUnreachableError(f"etcd at {self._url} refused a transaction: {answer.status} {text}")


def wait_until_served(api: Api, resource: Resource, obj: Object, seconds: float = _SECONDS) -> None:
    """Return when the API server's cache has an object. It reads each kind in the order in which it was written.

    Raises:
        ClusterUnreachableError: it does not have the object in time.
    """
    meta = obj["metadata"]
    path = resource.path(meta["name"], meta.get("namespace", ""))
    problem = f"the API server does not serve {path}, which was written into etcd"
    try:
        for attempt in retrying(seconds, 0.05):
            with attempt:
                if not _is_served(api, path, meta.get("uid")):
                    raise NotReadyError(problem)
    except NotReadyError as late:
        raise ClusterUnreachableError(f"{problem} {seconds:g} s ago") from late


def _is_served(api: Api, path: str, uid: str | None) -> bool:
    try:
        found = api.call("GET", path, query={"resourceVersion": "0"})  # from the cache
    except RejectedError as problem:
        if problem.status == 404:
            return False
        raise
    return uid is None or found["metadata"].get("uid") == uid


def key_of(resource: Resource, name: str, namespace: str = "") -> str:
    """Return the key under which an API server stores an object.

    Kinds of Kubernetes itself have no group in their keys.

    >>> key_of(Resource("v1", "Node", "nodes", False), "n1")
    '/registry/minions/n1'
    >>> key_of(Resource("kueue.x-k8s.io/v1beta2", "Workload", "workloads", True), "w", "ns")
    '/registry/kueue.x-k8s.io/workloads/ns/w'
    """
    group = resource.api_version.rpartition("/")[0]
    parts = [_PREFIX, *([] if group in _BUILT_IN else [group]), _PLURALS.get(resource.plural, resource.plural)]
    return "/".join([*parts, *([namespace] if resource.namespaced else []), name])


_BUILT_IN = ("", "apps", "batch", "policy", "scheduling.k8s.io", "storage.k8s.io")
"""Groups of Kubernetes itself, of the kinds that a state has."""


def _batches(rows: Iterable[tuple[str, bytes]]) -> Iterator[list[tuple[str, bytes]]]:
    """Yield the rows in groups that one transaction may have."""
    batch: list[tuple[str, bytes]] = []
    size = 0
    for key, value in itertools.chain(rows, [("", b"")]):
        if batch and (not key or len(batch) == MOST_OBJECTS or size + len(value) > MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append((key, value))
        size += len(value)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
