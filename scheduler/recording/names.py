"""Find the pod or job of a recording that a user's name means.

A name may lack the namespace, be that of the workload instead of its PodGroup, or be a part of a name. If it is
ambiguous or unknown, the error lists similar names.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from .events import ObjectSeen
from .segments import RecordError, read_segment, segments

_UID = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_SHOWN = 8


class NotNamedError(RecordError):
    """The name means no pod or job, or several. The text lists similar names."""


class Names:
    """Every pod and PodGroup in a recording, by `namespace/name`, with its other names."""

    def __init__(self) -> None:
        self._called: dict[str, dict[str, set[str]]] = {"pod": {}, "job": {}}

    def see(self, kind: str, key: str, *names: str) -> None:
        """Add an object.

        Args:
            kind: `pod` or `job`.
            key: `namespace/name`.
            names: Other names of the object in its namespace.
        """
        namespace, _, name = key.partition("/")
        plain = {name, _UID.sub("", name), *names}
        self._called[kind].setdefault(key, set()).update({key, *plain, *(f"{namespace}/{name}" for name in plain)})

    def find(self, kind: str, text: str) -> str:
        """Return the key of the object with this name, or with this unique part of a name, else of a namespace.

        A workload that was created again has several PodGroups of one name; the youngest is returned.

        Raises:
            NotNamedError: no object has the name, or several have.
        """
        known = self._called[kind]
        if text in known:
            return text
        whole = [key for key, names in known.items() if text in names]
        bare = [key for key, names in known.items() if any(text in name for name in names if "/" not in name)]
        parts = whole or bare or [key for key, names in known.items() if any(text in name for name in names)]
        if len({_plain(key) for key in parts}) == 1:
            return parts[-1]
        if parts:
            raise NotNamedError(f"{text!r} may be any of these {kind}s; name one: {_listed(map(_plain, parts))}")
        near = difflib.get_close_matches(text, {name: None for key in known for name in (_plain(key), _bare(key))})
        hint = f"; near names: {_listed(near)}" if near else f"; it knows: {_listed(map(_plain, known))}"
        raise NotNamedError(f"the recording knows no {kind} {text!r}{hint}")


def read_names(path: Path) -> Names:
    """Return the names in a recording, without deciding anything.

    Raises:
        RecordError: the recording cannot be read.
    """
    names = Names()
    for segment in segments(path):
        for given in read_segment(segment):
            if isinstance(given, ObjectSeen) and given.kind in ("Pod", "PodGroup"):
                meta = given.object.metadata
                owners = [owner.name for owner in meta.owner_references or ()] if given.kind == "PodGroup" else []
                names.see("pod" if given.kind == "Pod" else "job", meta.key, *owners)
    return names


def _plain(key: str) -> str:
    return _UID.sub("", key)


def _bare(key: str) -> str:
    return _plain(key).partition("/")[2]


def _listed(names: Iterable[str]) -> str:
    found: Sequence[str] = list(dict.fromkeys(names))
    more = f" … {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return (", ".join(found[:_SHOWN]) or "none") + more
