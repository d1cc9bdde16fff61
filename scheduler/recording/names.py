"""The names that people have for what a recording knows: without a namespace, of the workload instead of its
PodGroup, a part of one; and which were near, where none is meant.
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
    """No pod or job is meant, or several are. The text names what is near."""


class Names:
    """Every pod and PodGroup that a recording has seen, by ``namespace/name``, with what people call them."""

    def __init__(self) -> None:
        self._called: dict[str, dict[str, set[str]]] = {"pod": {}, "job": {}}

    def see(self, kind: str, key: str, *names: str) -> None:
        """Know an object: ``kind`` is pod or job, ``names`` are what else it is called in its namespace."""
        namespace, _, name = key.partition("/")
        plain = {name, _UID.sub("", name), *names}
        self._called[kind].setdefault(key, set()).update({key, *plain, *(f"{namespace}/{it}" for it in plain)})

    def find(self, kind: str, asked: str) -> str:
        """The key of the one that is meant: by its whole name, else by a part that no other has; a part of a name
        comes before one of a namespace.

        A workload that was made anew has several PodGroups of one name; the youngest is meant.

        Raises NotNamedError: none is meant, or several are.
        """
        known = self._called[kind]
        if asked in known:
            return asked
        whole = [key for key, names in known.items() if asked in names]
        bare = [key for key, names in known.items() if any(asked in name for name in names if "/" not in name)]
        parts = whole or bare or [key for key, names in known.items() if any(asked in name for name in names)]
        if len({_plain(key) for key in parts}) == 1:
            return parts[-1]
        if parts:
            raise NotNamedError(f"{asked!r} may be any of these {kind}s; name one: {_listed(map(_plain, parts))}")
        near = difflib.get_close_matches(asked, {name: None for key in known for name in (_plain(key), _bare(key))})
        hint = f"; near names: {_listed(near)}" if near else f"; it knows: {_listed(map(_plain, known))}"
        raise NotNamedError(f"the recording knows no {kind} {asked!r}{hint}")


def read_names(path: Path) -> Names:
    """The names in a recording, without deciding anything. Raises RecordError: it cannot be read."""
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
