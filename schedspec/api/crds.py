"""The scheduler's API is part of what a session sets up: applied from its files, waited for, and taken
away again where it was made for one run.

The one rule: on a cluster of others, only what bears the run's label is ever changed or deleted here.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import yaml
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from . import timeouts
from .client import Api, Object
from .errors import HarnessError, RejectedError

_MANAGER = "schedspec"
_DEFINITION = "CustomResourceDefinition"


class _NotYetError(HarnessError):
    """Worth another look."""


NEW = 2.0
"""Seconds after its establishment in which a kind's API server holds every creation back, for as long again.

(apiextensions-apiserver, ``customresource_handler.go``: so that all servers of a cluster know the kind.)
"""


def install(api: Api, folder: Path, label: str = "") -> float:
    """Apply every object of `folder`; return when each kind is served: since when the youngest is, in epoch seconds.

    With a `label` the cluster is shared: what is there without it stays as it is, what is made bears it, and admission
    policies are for objects that bear it. Raises RejectedError, HarnessError.
    """
    objects, youngest = list(_read(folder)), 0.0
    for obj in objects:
        if not label:
            api.apply(obj, _MANAGER)
        elif (there := _find(api, obj)) is None or label in (there["metadata"].get("labels") or {}):
            api.apply(_for_one_run(obj, label), _MANAGER)
    for definition in (obj for obj in objects if obj["kind"] == _DEFINITION):
        for attempt in _until_done():
            with attempt:
                youngest = max(youngest, _served(api, definition))
    return youngest


def grow_up(youngest: float) -> None:
    """Wait until no kind is new any more: who waits here waits less than the first creation would."""
    time.sleep(min(NEW, max(0.0, youngest + NEW - time.time())))


def remove(api: Api, folder: Path, label: str) -> list[str]:
    """Delete those objects of `folder` that bear the label; return when they are gone.

    A definition that somebody else's object has come to depend on stays: the answer names these. Raises HarnessError.
    """
    kept: list[str] = []
    going: list[str] = []
    objects = [(obj, _find(api, obj)) for obj in _read(folder)]
    ours = [(obj, there) for obj, there in objects if there and label in (there["metadata"].get("labels") or {})]
    for obj, there in sorted(ours, key=lambda it: it[0]["kind"] == _DEFINITION):  # policies would refuse deletions
        path, name = _path(api, obj), obj["metadata"]["name"]
        users = _instances(api, obj) if obj["kind"] == _DEFINITION else []
        if users:
            kept.append(f"{name} (used by {', '.join(users[:3])})")
        elif api.delete(path, uid=there["metadata"]["uid"]):
            going.append(path)
    for path in going:
        for attempt in _until_done():
            with attempt:
                if api.raw("GET", path).status != 404:
                    raise _NotYetError(f"{path} is deleted and does not go")
    return kept


def _read(folder: Path) -> Iterator[Object]:
    for path in sorted(folder.glob("*.yaml")):
        yield from yaml.safe_load_all(path.read_text("utf-8"))


def _for_one_run(obj: Object, label: str) -> Object:
    """The object as it is made on a shared cluster."""
    obj = copy.deepcopy(obj)
    obj["metadata"].setdefault("labels", {})[label] = "run"
    if obj["kind"] == "ValidatingAdmissionPolicy":
        exists = {"key": label, "operator": "Exists"}
        obj["spec"]["matchConstraints"]["objectSelector"] = {"matchExpressions": [exists]}
    return obj


def _instances(api: Api, definition: Object) -> list[str]:
    """The names of all objects of a kind."""
    spec = definition["spec"]
    path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
    found = [item["metadata"] for item in api.call("GET", path)["items"]]
    return [f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else meta["name"] for meta in found]


def _path(api: Api, obj: Object) -> str:
    return api.resource(obj["apiVersion"], obj["kind"]).path(obj["metadata"]["name"])


def _find(api: Api, obj: Object) -> Object | None:
    """The object as it is in the cluster; None if it is not there. Raises RejectedError."""
    try:
        return api.call("GET", _path(api, obj))
    except RejectedError as problem:
        if problem.status == 404:
            return None
        raise


def _until_done() -> Retrying:
    return Retrying(
        retry=retry_if_exception_type(_NotYetError),
        stop=stop_after_delay(timeouts.CRD),
        wait=wait_fixed(timeouts.WAKE),
        reraise=True,
    )


def _served(api: Api, definition: Object) -> float:
    name, spec = definition["metadata"]["name"], definition["spec"]
    try:
        conditions = api.call("GET", _path(api, definition)).get("status", {}).get("conditions") or ()
        since = [
            it["lastTransitionTime"] for it in conditions if it["type"] == "Established" and it["status"] == "True"
        ]
        if not since:
            raise _NotYetError(f"the definition {name} is not Established: {conditions}")
        for version in spec["versions"]:
            api.call("GET", f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}", query={"limit": "1"})
            api.resource(f"{spec['group']}/{version['name']}", spec["names"]["kind"])
    except RejectedError as problem:
        raise _NotYetError(f"{name} is not served: {problem}") from None
    return datetime.fromisoformat(since[0]).timestamp()
