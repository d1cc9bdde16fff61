"""Find the pod or job in a recording that a user names.

The user may omit the namespace, name the workload instead of its PodGroup, or write only a part of a name. If the text
is ambiguous or unknown, the error lists similar names.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..inputs import Decided, ObjectSeen
from .segments import RecordError, read_segment, required_segments

_UID = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_SHOWN = 8


class NotNamedError(RecordError):
    """No pod or job has the name, or several have. The message lists similar names."""


class RecordedNames:
    """Every pod and PodGroup in a recording, by `namespace/name`, with its other names."""

    def __init__(self) -> None:
        self._names: dict[str, dict[str, set[str]]] = {"pod": {}, "job": {}}
        """Kind → key → all names of the object."""

    def add(self, kind: str, key: str, *names: str) -> None:
        """Add an object.

        Args:
            kind: `pod` or `job`.
            key: `namespace/name`.
            names: Other names of the object in its namespace.
        """
        namespace, _, name = key.partition("/")
        plain = {name, _UID.sub("", name), *names}
        self._names[kind].setdefault(key, set()).update({key, *plain, *(f"{namespace}/{name}" for name in plain)})

    def find(self, kind: str, text: str) -> str:
        """Return the key of the object that `text` names: by a name, a unique part of a name, or a part of a key.

        A workload that was created again has several PodGroups of one name; the youngest is returned.

        Raises:
            NotNamedError: No object matches, or several match.
        """
        known = self._names[kind]
        if text in known:
            return text
        by_name = [key for key, names in known.items() if text in names]
        by_part = [key for key, names in known.items() if any(text in name for name in names if "/" not in name)]
        found = by_name or by_part or [key for key, names in known.items() if any(text in name for name in names)]
        if len({_plain(key) for key in found}) == 1:
            return found[-1]
        if found:
            raise NotNamedError(f"{text!r} matches several {kind}s; name one: {_listed(map(_plain, found))}")
        similar = difflib.get_close_matches(text, {name: None for key in known for name in (_plain(key), _bare(key))})
        hint = f"similar names: {_listed(similar)}" if similar else f"it contains: {_listed(map(_plain, known))}"
        raise NotNamedError(f"the recording contains no {kind} {text!r}; {hint}")


def read_names(path: Path) -> RecordedNames:
    """Return the names in a recording, without deciding its cycles again.

    Raises:
        RecordError: There is no recording, or it cannot be read.
    """
    names, has_cycle = RecordedNames(), False
    for segment in required_segments(path):
        for given in read_segment(segment):
            has_cycle |= isinstance(given, Decided)
            if isinstance(given, ObjectSeen) and given.kind in ("Pod", "PodGroup"):
                meta = given.object.metadata
                owners = [owner.name for owner in meta.owner_references or ()] if given.kind == "PodGroup" else []
                names.add("pod" if given.kind == "Pod" else "job", meta.key, *owners)
    if not has_cycle:
        raise RecordError(f"{path} contains no cycle: the scheduler decided nothing, or the recording is cut off")
    return names


def _plain(key: str) -> str:
    return _UID.sub("", key)


def _bare(key: str) -> str:
    return _plain(key).partition("/")[2]


def _listed(names: Iterable[str]) -> str:
    found: Sequence[str] = list(dict.fromkeys(names))
    more = f" … {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return (", ".join(found[:_SHOWN]) or "none") + more
