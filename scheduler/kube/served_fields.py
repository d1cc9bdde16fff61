"""Leave out of a server-side apply the fields that the served definition of a kind does not have.

Another version of a definition, such as Volcano's own, may lack fields that we write. The API server refuses a whole
server-side apply because of one such field (500, `field not declared in schema`). After the first such refusal, the
schema of the kind is read from the API server, once, and every later apply of that kind leaves these fields out.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import msgspec

from .errors import KubeError
from .http import Http
from .resource import Resource

log = logging.getLogger(__name__)
Schema = Mapping[str, Any]

_VERSION_KIND = "x-kubernetes-group-version-kind"


class ServedFields:
    """The schemas of the kinds for which an apply was refused."""

    def __init__(self, http: Http) -> None:
        self._http = http
        self._schemas: dict[str, Schema] = {}
        """By the id of a resource."""

    def lacks(self, resource: Resource[Any], *path: str) -> bool:
        """Whether the served definition is known to lack the field at a path."""
        schema: Any = self._schemas.get(resource.id)
        for name in path:
            if not isinstance(schema, Mapping) or "properties" not in schema:
                return False
            if name not in schema["properties"]:
                return True
            schema = schema["properties"][name]
        return False

    def of(self, resource: Resource[Any], body: Any) -> Any:
        """Return the part of a body that the definition has; the whole body where no schema is known."""
        schema = self._schemas.get(resource.id)
        return body if schema is None else _declared(msgspec.to_builtins(body), schema)

    async def read(self, resource: Resource[Any]) -> bool:
        """Read the schema of a kind. Return False if it was known already, or if the API server does not tell it."""
        if resource.id in self._schemas:
            return False
        path = f"/openapi/v3/apis/{resource.api_version}"
        try:
            answer = await self._http.request("GET", path)
            schemas = msgspec.json.decode(answer.body)["components"]["schemas"].values()
        except (KubeError, msgspec.DecodeError, LookupError, TypeError, AttributeError) as error:
            log.warning("the schema of %s is unknown: %s", resource.id, error)
            return False
        kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        found = [schema for schema in schemas if kind in schema.get(_VERSION_KIND, ())]
        if found:
            self._schemas[resource.id] = found[0]
            log.warning("the definition of %s lacks fields that are written here; they are left out", resource.id)
        return bool(found)


def _declared(value: Any, schema: Any) -> Any:
    """Return the part of a value that a schema declares."""
    if not isinstance(schema, Mapping) or schema.get("x-kubernetes-preserve-unknown-fields"):
        return value
    if isinstance(value, list):
        return [_declared(item, schema.get("items")) for item in value]
    if not isinstance(value, dict):
        return value
    if fields := schema.get("properties"):
        return {name: _declared(item, fields[name]) for name, item in value.items() if name in fields}
    return {name: _declared(item, schema.get("additionalProperties")) for name, item in value.items()}
