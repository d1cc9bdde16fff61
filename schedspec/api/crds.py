"""The scheduler's API is part of the ground that a session stands on: applied from its files, and waited for."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path

import yaml
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from . import timeouts
from .client import Api, Object
from .errors import HarnessError, RejectedError

_MANAGER = "schedspec"


class _NotYetError(HarnessError):
    """Worth another look."""


NEW = 2.0
"""Seconds after its establishment in which a kind's API server holds every creation back, for as long again.

(apiextensions-apiserver, ``customresource_handler.go``: so that all servers of a cluster know the kind.)
"""


def install(api: Api, folder: Path, *, overwrite: bool) -> float:
    """Apply every object of `folder`; return when each kind is served: since when the youngest is, in epoch seconds.

    Without `overwrite` a definition that is there already stays as it is. Raises RejectedError, HarnessError.
    """
    definitions, youngest = [], 0.0
    for path in sorted(folder.glob("*.yaml")):
        for obj in yaml.safe_load_all(path.read_text("utf-8")):
            if overwrite or not _exists(api, obj):
                api.apply(obj, _MANAGER)
            if obj["kind"] == "CustomResourceDefinition":
                definitions.append(obj)
    for definition in definitions:
        for attempt in Retrying(
            retry=retry_if_exception_type(_NotYetError),
            stop=stop_after_delay(timeouts.CRD),
            wait=wait_fixed(timeouts.WAKE),
            reraise=True,
        ):
            with attempt:
                youngest = max(youngest, _served(api, definition))
    return youngest


def grow_up(youngest: float) -> None:
    """Wait until no kind is new any more: who waits here waits less than the first creation would."""
    time.sleep(min(NEW, max(0.0, youngest + NEW - time.time())))


def _exists(api: Api, obj: Object) -> bool:
    path = api.resource(obj["apiVersion"], obj["kind"]).path(obj["metadata"]["name"])
    return api.raw("GET", path).status == 200


def _served(api: Api, definition: Object) -> float:
    name, spec = definition["metadata"]["name"], definition["spec"]
    try:
        path = api.resource(definition["apiVersion"], definition["kind"]).path(name)
        conditions = api.call("GET", path).get("status", {}).get("conditions") or ()
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
