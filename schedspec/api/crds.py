"""Install the scheduler's API in a session: apply the definitions, wait for them, and remove those made for one run.

On a shared cluster, only objects with the run's label are changed or deleted here.
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


class _UnsettledError(HarnessError):
    """The cluster has not settled yet: try again."""


NEW = 2.0
"""Seconds after a kind is established in which the API server delays each creation, by as many seconds.

The delay lets all servers of a cluster learn the kind (apiextensions-apiserver, `customresource_handler.go`).
"""


def install(api: Api, folder: Path, label: str = "") -> float:
    """Apply every object of `folder` and return when each kind is served.

    On a shared cluster, objects without the label stay unchanged, new objects get the label, and admission policies
    apply to labelled objects only.

    Args:
        api: The API server.
        folder: Folder with definitions and admission policies.
        label: The run's label; set on a shared cluster.

    Returns:
        The time since which the youngest kind is served, in seconds since 1970.

    Raises:
        RejectedError: the API server refused an object.
        HarnessError: a kind was not served in time.
    """
    objects, youngest = list(_read(folder)), 0.0
    for obj in objects:
        if not label:
            api.apply(obj, _MANAGER)
        elif (existing := _find(api, obj)) is None or label in (existing["metadata"].get("labels") or {}):
            api.apply(_for_one_run(obj, label), _MANAGER)
    for definition in (obj for obj in objects if obj["kind"] == _DEFINITION):
        for attempt in _until_done():
            with attempt:
                youngest = max(youngest, _served(api, definition))
    return youngest


def wait_for_creation(youngest: float) -> None:
    """Wait until the API server no longer delays creations: an early creation would take longer than this wait."""
    time.sleep(min(NEW, max(0.0, youngest + NEW - time.time())))


def remove(api: Api, folder: Path, label: str) -> list[str]:
    """Delete the labelled objects of `folder` and return when they are gone.

    Returns:
        Names of the definitions that are kept because foreign objects use them.

    Raises:
        HarnessError: an object was not deleted in time.
    """
    kept: list[str] = []
    deleted: list[str] = []
    objects = [(obj, _find(api, obj)) for obj in _read(folder)]
    ours = [(obj, found) for obj, found in objects if found and label in (found["metadata"].get("labels") or {})]
    # first the policies, which could refuse deletions
    for obj, found in sorted(ours, key=lambda pair: pair[0]["kind"] == _DEFINITION):
        path, name = _path(api, obj), obj["metadata"]["name"]
        users = _instances(api, obj) if obj["kind"] == _DEFINITION else []
        if users:
            kept.append(f"{name} (used by {', '.join(users[:3])})")
        elif api.delete(path, uid=found["metadata"]["uid"]):
            deleted.append(path)
    for path in deleted:
        for attempt in _until_done():
            with attempt:
                if api.raw("GET", path).status != 404:
                    raise _UnsettledError(f"{path} was deleted but still exists")
    return kept


def _read(folder: Path) -> Iterator[Object]:
    for path in sorted(folder.glob("*.yaml")):
        yield from yaml.safe_load_all(path.read_text("utf-8"))


def _for_one_run(obj: Object, label: str) -> Object:
    """Return the object as it is created on a shared cluster."""
    obj = copy.deepcopy(obj)
    obj["metadata"].setdefault("labels", {})[label] = "run"
    if obj["kind"] == "ValidatingAdmissionPolicy":
        exists = {"key": label, "operator": "Exists"}
        obj["spec"]["matchConstraints"]["objectSelector"] = {"matchExpressions": [exists]}
    return obj


def _instances(api: Api, definition: Object) -> list[str]:
    """Return the names of all objects of a kind."""
    spec = definition["spec"]
    path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
    found = [item["metadata"] for item in api.call("GET", path)["items"]]
    return [f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else meta["name"] for meta in found]


def _path(api: Api, obj: Object) -> str:
    return api.resource(obj["apiVersion"], obj["kind"]).path(obj["metadata"]["name"])


def _find(api: Api, obj: Object) -> Object | None:
    """Return the object in the cluster, or None if it does not exist.

    Raises:
        RejectedError: the API server refused the request.
    """
    try:
        return api.call("GET", _path(api, obj))
    except RejectedError as problem:
        if problem.status == 404:
            return None
        raise


def _until_done() -> Retrying:
    return Retrying(
        retry=retry_if_exception_type(_UnsettledError),
        stop=stop_after_delay(timeouts.CRD),
        wait=wait_fixed(timeouts.WAKE),
        reraise=True,
    )


def _served(api: Api, definition: Object) -> float:
    name, spec = definition["metadata"]["name"], definition["spec"]
    try:
        conditions = api.call("GET", _path(api, definition)).get("status", {}).get("conditions") or ()
        since = [
            condition["lastTransitionTime"]
            for condition in conditions
            if condition["type"] == "Established" and condition["status"] == "True"
        ]
        if not since:
            raise _UnsettledError(f"the definition {name} is not Established: {conditions}")
        for version in spec["versions"]:
            api.call("GET", f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}", query={"limit": "1"})
            api.resource(f"{spec['group']}/{version['name']}", spec["names"]["kind"])
    except RejectedError as problem:
        raise _UnsettledError(f"{name} is not served: {problem}") from None
    return datetime.fromisoformat(since[0]).timestamp()
