"""Objects of the cluster that a scenario changes although they are not its own: an adopted node, the queue `default`.

The one rule: before each change the object carries, as an annotation, what every field was that was ever changed, so
that whoever comes after a killed run can put it back. Other fields are others' and stay as they are.
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
"""Paths of fields and what they were; None: absent."""


def is_borrowed(obj: Object) -> bool:
    """Whether the object is to be put back."""
    return WAS in (obj["metadata"].get("annotations") or {})


def borrow(api: Api, ref: Ref, before: Object, change: Object, subresource: str = "") -> None:
    """Note on the object what a merge patch is about to change. `before`: as it is. Raises RejectedError."""
    noted = json.loads((before["metadata"].get("annotations") or {}).get(WAS, "{}"))
    noted[subresource] = _noted(noted.get(subresource, []), change, before)
    note = {"metadata": {"annotations": {WAS: json.dumps(noted)}}}
    api.call("PATCH", ref.path(), body=note, content_type=MERGE)


def give_back(api: Api, ref: Ref) -> bool:
    """Make all noted fields what they were, and take the note off; False if there is none. Raises RejectedError."""
    now = api.call("GET", ref.path())
    if not is_borrowed(now):
        return False
    noted = json.loads(now["metadata"]["annotations"][WAS])
    own = noted.pop("", [])
    for subresource, fields in noted.items():
        api.call("PATCH", ref.path(subresource), body=_patch(fields, now), content_type=MERGE)
    body = _patch([*own, (["metadata", "annotations", WAS], None)], now)
    api.call("PATCH", ref.path(), body=body, content_type=MERGE)  # the last: until here the note tells what to do
    return True


def at(pointer: str, value: object, before: Object) -> Object:
    """The change that a JSON pointer's replacement makes, as a merge patch: what the old value had besides goes."""
    first, *rest = pointer.strip("/").split("/")
    first = first.replace("~1", "/").replace("~0", "~")
    was = before.get(first)
    if rest and isinstance(was, dict):
        return {first: at("/".join(rest), value, was)}
    if isinstance(was, dict) and isinstance(value, dict):
        value = {**dict.fromkeys(was), **value}
    return {first: value}


def _noted(noted: Fields, change: Object, before: Object) -> Fields:
    """What is noted after one more change: of each field what it was before the first."""
    for path, now in _changed(change, before, []):
        if any(path[: len(known)] == known for known, _ in noted):
            continue
        inner = [(known, was) for known, was in noted if known[: len(path)] == path]
        whole = copy.deepcopy(now)
        for known, was in inner:
            _put(whole, known[len(path) :], was)
        noted = [*(it for it in noted if it not in inner), (path, whole)]
    return noted


def _changed(change: Object, before: Object, path: list[str]) -> Iterator[tuple[list[str], Any]]:
    """Every field that a merge patch sets, and what it is."""
    for key, value in change.items():
        was = before.get(key)
        if isinstance(value, dict) and isinstance(was, dict):
            yield from _changed(value, was, [*path, key])
        else:
            yield [*path, key], was


def _patch(fields: Sequence[tuple[list[str], Any]], now: Object) -> Object:
    """The merge patch that makes fields exactly this."""
    patch: Object = {}
    for path, was in fields:
        place, there = patch, now
        for key in path[:-1]:
            place = place.setdefault(key, {})
            inner = there.get(key)
            there = inner if isinstance(inner, dict) else {}
        place[path[-1]] = _exactly(was, there.get(path[-1]))
    return patch


def _exactly(was: Any, now: Any) -> Any:
    """What a merge patch has to say so that `now` becomes `was`."""
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
