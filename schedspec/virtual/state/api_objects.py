"""Write the objects of a state as the API server serves them, without empty fields."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from ...scheduler.kube import WATCHED

API_VERSIONS = {resource.kind: resource.api_version for resource in WATCHED}
"""Kind of a state's object → its API version."""


def api_object(kind: str, item: msgspec.Struct) -> dict[str, Any]:
    """Return an object of a state as JSON has it."""
    return {"apiVersion": API_VERSIONS[kind], "kind": kind, **_plain(item)}


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return {
            field.encode_name: _plain(found)
            for field in _fields(type(value))
            if (found := getattr(value, field.name)) is not None and (found or found != field.default)
        }
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


@cache
def _fields(struct: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(struct)
