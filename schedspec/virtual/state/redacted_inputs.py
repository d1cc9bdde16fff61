"""Redact the inputs of a recording as they are written, by the allow lists of a redacted dump.

A dump sorts all names before it replaces them. A recording meets names one by one, so their order is not kept: where a
scheduler breaks a tie by name, a plan on a redacted recording may break it otherwise. Labels that no selector reads yet
may be read by a later one: their keys and values are replaced, not removed.

The one rule: a text that is not on an allow list is not written. The table of names is a file of its own.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import yaml

from ...scheduler.inputs import Input, Noted, ObjectGone, ObjectSeen, PolicyLoaded, Unnoted
from ...scheduler.model.state_kinds import STATE_KINDS
from ...scheduler.model.task import index_of
from .kueue_redaction import KueueRedaction
from .redacted_policy import PolicyText
from .redaction import ObjectRedaction, named_members, redacted_labels
from .renaming import KNOWN, KNOWN_NAMESPACES, UIDS, NameRow, Scope, StateNames, read_names
from .state import StateError

_CARDS = ("nvidia.com", "amd.com", "intel.com", "huawei.com", "cambricon.com", "volcano.sh")
"""Domains of cards, whose labels are kept before a node with such a card is read."""
_READ_OF_EVENTS = ("reason", "type", "count", "action", "lastTimestamp", "eventTime")


class NameTable(StateNames):
    """The replacements of names.

    Args:
        rows: The known ones.
        write: Keeps each new one, before it is used.
    """

    def __init__(self, rows: Iterable[NameRow], write: Callable[[NameRow], None]) -> None:
        super().__init__(set(_CARDS))
        self._write = write
        self._new: dict[Scope, dict[str, str]] = {}
        self._key = ""
        for row in rows:
            if row.scope == UIDS:
                self._key = row.key
            else:
                self._new.setdefault(row.scope, {})[row.name] = row.new
        if not self._key:
            self._key = secrets.token_hex(32)
            write(NameRow(UIDS, key=self._key))

    def of(self, scope: Scope, name: str) -> str:
        """Return the replacement of a name; a new one is written into the file before it is used."""
        if not name:
            return ""
        if scope == UIDS:
            return hashlib.blake2b(name.encode(), key=bytes.fromhex(self._key), digest_size=16).hexdigest()
        known = self._new.setdefault(scope, {})
        if name not in known:
            known[name] = new = self._made(scope, name, sum(map(len, self._new.values())))
            self._write(NameRow(scope, name, new))
        return known[name]

    @staticmethod
    def _made(scope: Scope, name: str, number: int) -> str:
        if name in {"/": KNOWN, "namespaces": KNOWN_NAMESPACES}.get(scope, ()):
            return name
        index = index_of(name)
        tail = f"-{index}" if index >= 0 and scope.endswith("/") and scope != "/" else ""
        return f"a{number:07}{tail}{':r' if scope == 'images' else ''}"


def table_in(path: Path) -> NameTable:
    """Return the table in a file that only its owner can read. A recorder that begins again continues it.

    Raises:
        StateError: the file cannot be used, or holds something else.
    """

    def write(row: NameRow) -> None:
        with path.open("ab") as file:
            file.write(msgspec.json.encode(row) + b"\n")

    try:
        rows = [*read_names(path)] if path.exists() else []
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        return NameTable(rows, write)
    except OSError as error:
        problem = f"cannot be used: {error.strerror}"
        raise StateError(str(path), problem, "name another file with --names") from error


class InputRedaction:
    def __init__(self, names: NameTable) -> None:
        self._names = names
        self._claims: dict[tuple[str, str], tuple[str, str]] = {}
        self._nodes: set[str] = set()

    def __call__(self, given: Input) -> Input:
        match given:
            case ObjectSeen():
                return ObjectSeen(given.kind, self._object(given.kind, msgspec.to_builtins(given.object)))
            case ObjectGone():
                return ObjectGone(given.kind, self._key(given.kind, given.key), self._names.of(UIDS, given.uid))
            case Noted():
                return Noted(self._noted(given.object))
            case Unnoted():
                key = self._key(given.kind, given.key)
                return Unnoted(given.api_version, given.kind, key, self._names.of(UIDS, given.uid))
            case PolicyLoaded():
                return self._policy(given)
            case _:
                return given

    def _object(self, kind: str, item: dict[str, Any]) -> Any:
        meta = item["metadata"]
        if kind == "Node":
            self._nodes.add(meta["name"])
            for amounts in (item["status"].get(name) or {} for name in ("allocatable", "capacity")):
                self._names.domains |= {name.partition("/")[0] for name in amounts if "/" in name}  # type: ignore[operator]
        elif kind == "Pod":
            for volume in item["spec"].get("volumes") or ():
                if volume.get("ephemeral") is not None:
                    claim = meta["namespace"], f"{meta['name']}-{volume['name']}"
                    self._claims[claim] = meta["name"], volume["name"]
        elif kind == "HyperNode":
            item["spec"]["members"] = [*named_members(item["spec"].get("members") or (), sorted(self._nodes))]
        found = ObjectRedaction(self._names, None, self._claims, kind, item).redacted()
        found["metadata"]["resourceVersion"] = meta.get("resourceVersion", "")
        return msgspec.convert(found, STATE_KINDS[kind].struct)

    def _noted(self, obj: Mapping[str, Any]) -> dict[str, Any]:
        found = self._event(obj) if obj["kind"] == "Event" else KueueRedaction(self._names, dict(obj)).redacted()
        version = obj["metadata"].get("resourceVersion")
        return {**found, "metadata": {**found["metadata"], **({"resourceVersion": version} if version else {})}}

    def _event(self, event: Mapping[str, Any]) -> dict[str, Any]:
        meta, source = event["metadata"], (event.get("source") or {}).get("component")
        place = str(meta.get("namespace", ""))
        return {
            "apiVersion": event["apiVersion"],
            "kind": "Event",
            "metadata": {
                "name": self._names.of("events", meta["name"]),
                "namespace": self._names.namespace(place),
                "uid": self._names.of(UIDS, meta.get("uid", "")),
            },
            **{name: event[name] for name in _READ_OF_EVENTS if event.get(name)},
            **{name: self._reference(event[name]) for name in ("involvedObject", "related") if event.get(name)},
            **({"source": {"component": source}} if source else {}),
        }

    def _reference(self, given: Mapping[str, Any]) -> dict[str, str]:
        place, name, kind = (str(given.get(key, "")) for key in ("namespace", "name", "kind"))
        return {
            "kind": kind,
            "namespace": self._names.namespace(place),
            "name": self._names.within(place, name) if place and kind != "Node" else self._names.cluster(name),
            "uid": self._names.of(UIDS, str(given.get("uid", ""))),
        }

    def _key(self, kind: str, key: str) -> str:
        place, _, name = key.rpartition("/")
        if kind == "Namespace":
            return self._names.namespace(name)
        if not place:
            return self._names.cluster(name)
        item = {"metadata": {"namespace": place, "name": name}}
        own = ObjectRedaction(self._names, None, self._claims, kind, item)._own_name(name)
        return f"{self._names.namespace(place)}/{own}"

    def _policy(self, given: PolicyLoaded) -> PolicyLoaded:
        replaced: Callable[[dict[str, str]], dict[str, str]] = partial(redacted_labels, self._names)
        try:
            return PolicyLoaded("policy", PolicyText(given.text).redacted(replaced) if given.text else "")
        except (ValueError, yaml.YAMLError, AttributeError, TypeError, KeyError, RecursionError):
            return PolicyLoaded("", "")
