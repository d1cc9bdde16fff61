"""Objects of the cluster that a scenario changes although they are not its own: the queue `default` above all.

The one rule: before its first change, an object carries what it was as an annotation, so that whoever comes after a
killed run can put it back.
"""

from __future__ import annotations

import json

from ..api.client import JSON_PATCH, MERGE, Api, Object
from ..api.kinds import Ref

WAS = "schedspec.dev/was"


def borrow(api: Api, ref: Ref, obj: Object) -> None:
    """Note on the object what it is. Raises RejectedError."""
    meta = obj["metadata"]
    was = {"/spec": obj.get("spec", {})}
    was |= {f"/metadata/{field}": meta.get(field) or {} for field in ("labels", "annotations")}
    note = {"metadata": {"annotations": {WAS: json.dumps(was)}}}
    api.call("PATCH", ref.path(), body=note, content_type=MERGE)


def give_back(api: Api, ref: Ref) -> bool:
    """Make the object what it was, and take the note off; False if there is none. Raises RejectedError."""
    now = api.call("GET", ref.path())
    was = (now["metadata"].get("annotations") or {}).get(WAS)
    if was is None:
        return False
    patch = [{"op": "add", "path": path, "value": value} for path, value in json.loads(was).items()]
    api.call("PATCH", ref.path(), body=patch, content_type=JSON_PATCH)
    return True
