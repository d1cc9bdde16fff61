"""Restore foreign objects that a scenario changed: an adopted node, the queue `default`.

Before each change an annotation on the object records the original values of all changed fields, so that a later run
can restore the object if this run is killed. Other fields are not touched.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from typing import Any

from ..api.client import MERGE, Api, Object
from ..api.kinds import Ref

WAS = "schedspec.dev/was"

Fields = list[tuple[list[str], Any]]
"""Paths of fields with their original values; None for an absent field."""


def is_borrowed(obj: Object) -> bool:
    """Whether the object has to be restored."""
    return WAS in (obj["metadata"].get("annotations") or {})


def borrow(api: Api, ref: Ref, before: Object, change: Object, subresource: str = "") -> None:
    """Record on the object the fields that a merge patch will change.

    Args:
        api: The API server.
        ref: The object.
        before: The object's current state.
        change: The merge patch.
        subresource: Subresource that the patch changes.

    Raises:
        RejectedError: the API server refused the request.
    """
    recorded = json.loads((before["metadata"].get("annotations") or {}).get(WAS, "{}"))
    recorded[subresource] = _recorded(recorded.get(subresource, []), change, before)
    note = {"metadata": {"annotations": {WAS: json.dumps(recorded)}}}
    api.call("PATCH", ref.path(), body=note, content_type=MERGE)


def restore_fields(api: Api, ref: Ref) -> bool:
    """Restore all recorded fields and remove the record. Return False if there is no record.

    Raises:
        RejectedError: the API server refused the request.
    """
    now = api.call("GET", ref.path())
    if not is_borrowed(now):
        return False
    recorded = json.loads(now["metadata"]["annotations"][WAS])
    own = recorded.pop("", [])
    for subresource, fields in recorded.items():
        api.call("PATCH", ref.path(subresource), body=_patch(fields, now), content_type=MERGE)
    body = _patch([*own, (["metadata", "annotations", WAS], None)], now)
    api.call("PATCH", ref.path(), body=body, content_type=MERGE)  # last: until here the record is needed for a retry
    return True


def at(pointer: str, value: object, before: Object) -> Object:
    """Return the merge patch that replaces the value at a JSON pointer exactly, without remains of the old value."""
    first, *rest = pointer.strip("/").split("/")
    first = first.replace("~1", "/").replace("~0", "~")
    was = before.get(first)
    if rest and isinstance(was, dict):
        return {first: at("/".join(rest), value, was)}
    if isinstance(was, dict) and isinstance(value, dict):
        value = {**dict.fromkeys(was), **value}
    return {first: value}


def _recorded(recorded: Fields, change: Object, before: Object) -> Fields:
    """Return the record after one more change: for each field, the value before its first change."""
    for path, now in _changed(change, before, []):
        if any(path[: len(known)] == known for known, _ in recorded):
            continue
        inner = [(known, was) for known, was in recorded if known[: len(path)] == path]
        whole = copy.deepcopy(now)
        for known, was in inner:
            _put(whole, known[len(path) :], was)
        recorded = [*(entry for entry in recorded if entry not in inner), (path, whole)]
    return recorded


def _changed(change: Object, before: Object, path: list[str]) -> Iterator[tuple[list[str], Any]]:
    """Yield every field that a merge patch sets, with its current value."""
    for key, value in change.items():
        was = before.get(key)
        if isinstance(value, dict) and isinstance(was, dict):
            yield from _changed(value, was, [*path, key])
        else:
            yield [*path, key], was


def _patch(fields: Sequence[tuple[list[str], Any]], now: Object) -> Object:
    """Return the merge patch that sets fields to exactly these values."""
    patch: Object = {}
    for path, was in fields:
        place, current = patch, now
        for key in path[:-1]:
            place = place.setdefault(key, {})
            inner = current.get(key)
            current = inner if isinstance(inner, dict) else {}
        place[path[-1]] = _exactly(was, current.get(path[-1]))
    return patch


def _exactly(was: Any, now: Any) -> Any:
    """Return the value in a merge patch that turns `now` into `was`."""
    if not (isinstance(was, dict) and isinstance(now, dict)):
        return was
    return {**dict.fromkeys(now), **{key: _exactly(value, now.get(key)) for key, value in was.items()}}


def _put(whole: Any, path: list[str], value: Any) -> None:
    for key in path[:-1]:
        whole = whole.setdefault(key, {})
    if value is None:
        whole.pop(path[-1], None)
    else:
        whole[path[-1]] = value
