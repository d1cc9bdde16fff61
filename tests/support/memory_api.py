"""An in-memory API server with the methods of `schedspec.api.client.Api`. It records all writes."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable, Mapping
from typing import Any

from schedspec.api.client import APPLY, MERGE, Object, rejection
from schedspec.api.errors import RejectedError
from schedspec.api.kinds import Resource
from schedspec.api.names import Names

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class Answer:
    """The response of `Api.raw`."""

    def __init__(self, status: int, body: Object) -> None:
        self.status, self.data = status, json.dumps(body).encode()

    def json(self) -> Any:
        return json.loads(self.data)


class MemoryApi:
    """`objects`: path → object. `permits` answers access reviews; everything else is permitted."""

    server = "https://memory"

    def __init__(self, *objects: tuple[str, Object]) -> None:
        self.names = Names()
        self._versions = itertools.count(1)
        self.objects: dict[str, Object] = {}
        for path, obj in objects:
            self._store(path, obj)
        self.writes: list[tuple[str, str]] = []
        self.permits: Callable[[Object], bool] = lambda _: True

    def call(self, verb: str, path: str, **more: Any) -> Object:
        answer = self.raw(verb, path, **more)
        if answer.status >= 400:
            raise rejection(verb, path, answer.status, answer.data)
        found: Object = answer.json()
        return found

    def raw(
        self,
        verb: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Answer:
        if path == REVIEWS:
            return Answer(201, {"status": {"allowed": self.permits(body["spec"]["resourceAttributes"])}})
        if verb != "GET":
            self.writes.append((verb, path))
        if verb == "POST":
            path = f"{path}/{body['metadata']['name']}"
            return self._conflict() if path in self.objects else Answer(201, self._store(path, body))
        if verb == "GET" and path not in self.objects and not self._is_name(path):
            return Answer(200, self._page(self._listed(path, query or {}), query or {}))
        if content_type == APPLY and path not in self.objects:
            return Answer(201, self._store(path, body))
        if path.removesuffix("/status") not in self.objects:
            return Answer(404, {"reason": "NotFound", "message": path})
        return self._change(verb, path.removesuffix("/status"), body, content_type)

    def resource(self, api_version: str, kind: str) -> Resource:
        return Resource(api_version, kind, f"{kind.lower()}s".replace("classs", "classes").replace("ys", "ies"), False)

    def apply(self, obj: Object, manager: str, *, namespace: str = "") -> Object:
        path = self.resource(obj["apiVersion"], obj["kind"]).path(obj["metadata"]["name"])
        return self.call("PATCH", path, body=obj, content_type=APPLY)

    def delete(self, path: str, *, grace: int | None = None, propagation: str = "", uid: str = "") -> bool:
        try:
            self.call("DELETE", path, body={"uid": uid})
        except RejectedError as problem:
            if problem.status == 404:
                return False
            raise
        return True

    def _change(self, verb: str, path: str, body: Any, content_type: str) -> Answer:
        now = self.objects[path]
        if verb == "GET":
            return Answer(200, now)
        if verb == "DELETE":
            if body and body.get("uid") not in (None, "", now["metadata"]["uid"]):
                return self._conflict()
            return Answer(200, self.objects.pop(path))
        if verb == "PUT":
            if body["metadata"]["resourceVersion"] != now["metadata"]["resourceVersion"]:
                return self._conflict()
            return Answer(200, self._store(path, body))
        assert content_type in (MERGE, APPLY), content_type
        return Answer(200, self._store(path, merged(now, body)))

    def _store(self, path: str, obj: Object) -> Object:
        obj = copy.deepcopy(obj)
        meta = obj.setdefault("metadata", {})
        meta.setdefault("name", path.rpartition("/")[2])
        meta.setdefault("uid", f"uid-{next(self._versions)}")
        meta["resourceVersion"] = str(next(self._versions))
        self.objects[path] = obj
        return obj

    def _is_name(self, path: str) -> bool:
        """Whether the last part of a path is a name: kinds and names alternate."""
        parts = path.removesuffix("/status").strip("/").split("/")
        return len(parts[2:] if parts[0] == "api" else parts[3:]) % 2 == 0

    def _page(self, found: list[Object], query: Mapping[str, object]) -> Object:
        start = int(str(query.get("continue") or 0))
        end = start + int(str(query.get("limit") or len(found)))
        return {"metadata": {"continue": str(end)} if end < len(found) else {}, "items": found[start:end]}

    def _listed(self, path: str, query: Mapping[str, object]) -> list[Object]:
        plural = path.rpartition("/")[2]
        base = path.removesuffix(f"/{plural}")
        found = [
            obj
            for place, obj in self.objects.items()
            if place.startswith(f"{base}/") and place.split("/")[-2] == plural
        ]
        label = str(query.get("labelSelector", ""))
        if label:
            found = [obj for obj in found if label in (obj["metadata"].get("labels") or {})]
        key, _, value = str(query.get("fieldSelector", "")).partition("=")
        if key:
            found = [obj for obj in found if obj["spec"].get(key.removeprefix("spec.")) == value]
        return found

    def _conflict(self) -> Answer:
        return Answer(409, {"reason": "Conflict", "message": "the object exists already, or has changed"})


def merged(target: Any, patch: Any) -> Any:
    """Return the object after a JSON merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result
