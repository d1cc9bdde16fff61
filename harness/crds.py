"""The scheduler's API is part of the ground that a session stands on: applied from its files, and waited for."""

from __future__ import annotations

from pathlib import Path

import yaml
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from harness import timeouts
from harness.client import Api, Object
from harness.errors import HarnessError, RejectedError

_MANAGER = "schedspec"


class _NotYetError(HarnessError):
    """Worth another look."""


def install(api: Api, folder: Path, *, overwrite: bool) -> None:
    """Apply every object of `folder`; return when each kind is served.

    Without `overwrite` a definition that is there already stays as it is. Raises RejectedError, HarnessError.
    """
    definitions = []
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
                _served(api, definition)


def _exists(api: Api, obj: Object) -> bool:
    path = api.resource(obj["apiVersion"], obj["kind"]).path(obj["metadata"]["name"])
    return api.raw("GET", path).status == 200


def _served(api: Api, definition: Object) -> None:
    name, spec = definition["metadata"]["name"], definition["spec"]
    try:
        path = api.resource(definition["apiVersion"], definition["kind"]).path(name)
        conditions = api.call("GET", path).get("status", {}).get("conditions") or ()
        if not any(it["type"] == "Established" and it["status"] == "True" for it in conditions):
            raise _NotYetError(f"the definition {name} is not Established: {conditions}")
        for version in spec["versions"]:
            api.call("GET", f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}", query={"limit": "1"})
            api.resource(f"{spec['group']}/{version['name']}", spec["names"]["kind"])
    except RejectedError as problem:
        raise _NotYetError(f"{name} is not served: {problem}") from None
