"""Apply the patches of the Kubernetes API: merge, strategic merge, JSON patch and server-side apply.

An object is never changed in place: a patch returns a new object that shares the unchanged parts with the old one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Object = dict[str, Any]

_MERGED_BY = {
    "conditions": "type",
    "containers": "name",
    "containerStatuses": "name",
    "env": "name",
    "ownerReferences": "uid",
    "taints": "key",
    "volumes": "name",
}
"""List → the field by which strategic merge and apply identify its items."""


def merge(target: Any, patch: Any, *, keyed: bool = False) -> Any:
    """Return `target` with `patch` merged in; null removes a field. If `keyed`, lists of `_MERGED_BY` merge by item."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif keyed and key in _MERGED_BY and isinstance(value, Sequence) and isinstance(result.get(key), Sequence):
            result[key] = _merge_items(result[key], value, _MERGED_BY[key])
        elif isinstance(value, Mapping):
            result[key] = merge(result.get(key), value, keyed=keyed)
        else:
            result[key] = value
    return result


def _merge_items(old: Sequence[Any], new: Sequence[Any], by: str) -> list[Any]:
    items = {item.get(by): item for item in old}
    for item in new:
        items[item.get(by)] = merge(items.get(item.get(by)), item, keyed=True)
    return list(items.values())


def apply(target: Object, before: Object, wanted: Object) -> Object:
    """Return the object after a server-side apply: the manager's fields were `before` and become exactly `wanted`."""
    result: Object = merge(_without(target, before, wanted), wanted, keyed=True)
    return result


def _without(target: Any, before: Any, wanted: Any) -> Any:
    """Return the target without the fields that the manager had and no longer wants."""
    if not (isinstance(target, Mapping) and isinstance(before, Mapping) and isinstance(wanted, Mapping)):
        return target
    result = dict(target)
    for key, was in before.items():
        if key not in result:
            continue
        if key not in wanted:
            if key in _MERGED_BY and isinstance(was, Sequence):
                result[key] = _remove_items(result[key], was, (), _MERGED_BY[key])
            else:
                del result[key]
        elif key in _MERGED_BY and isinstance(was, Sequence):
            result[key] = _remove_items(result[key], was, wanted[key], _MERGED_BY[key])
        else:
            result[key] = _without(result[key], was, wanted[key])
    return result


def _remove_items(items: Sequence[Any], before: Sequence[Any], wanted: Sequence[Any], by: str) -> list[Any]:
    dropped = {item.get(by) for item in before} - {item.get(by) for item in wanted}
    return [item for item in items if item.get(by) not in dropped]


def json_patch(target: Object, operations: Sequence[Mapping[str, Any]]) -> Object:
    """Return the object after a JSON patch of `add`, `replace` and `remove`."""
    for operation in operations:
        path = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].strip("/").split("/")]
        target = _patched(target, path, operation)
    return target


def _patched(target: Any, path: Sequence[str], operation: Mapping[str, Any]) -> Any:
    """Return the target after one operation at a path below it."""
    key, *rest = path
    if isinstance(target, list):
        items, at = list(target), len(target) if key == "-" else int(key)
        if rest:
            items[at] = _patched(items[at], rest, operation)
        else:  # `add` inserts an item
            items[at : at + (operation["op"] != "add")] = [] if operation["op"] == "remove" else [operation["value"]]
        return items
    result = dict(target)
    if rest:
        result[key] = _patched(result.get(key) or {}, rest, operation)
    elif operation["op"] == "remove":
        result.pop(key, None)
    else:
        result[key] = operation["value"]
    return result
