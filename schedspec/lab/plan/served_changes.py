"""Compare manifests of Kueue with the objects of a cluster, field by field.

The API server sets defaults, and a manifest need not have them: both sides are completed by Kueue's definitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from ...scheduler.lint.schemas import Definitions
from ...virtual.state import State
from ...virtual.state.kueue import CONFIGURATION

Key = tuple[str, str]
Object = dict[str, Any]


def changed_objects(
    state: State, before: Mapping[Key, Object] | None, after: Mapping[Key, Object], definitions: Definitions
) -> tuple[dict[str, dict[str, Object]], list[str], list[str]]:
    """Return Kueue's objects with the changes of the files, the changes in words, and notes.

    Args:
        state: The cluster.
        before: The objects of the files as they are; None: the cluster itself.
        after: The objects of the files as proposed.
        definitions: Kueue's definitions, whose defaults complete both sides.
    """
    others = {kind: {**found} for kind, found in state.others.items()}
    changes, notes = [], []
    for (kind, key), item in sorted(after.items()):
        known = others.get(kind, {}).get(key)
        was, old, new = (
            None if it is None else _content(it, definitions) for it in (known, (before or {}).get((kind, key)), item)
        )
        if old is not None and old == new:
            continue
        fields = [] if was is None else [*differences(was, new)]
        if was is not None and not fields:
            continue
        if old is not None and was is not None and old != was:
            notes.append(f"{kind} {key}: the cluster's object differs from that of the present files")
        changes.append(f"{kind} {key} is new" if known is None else f"{kind} {key}: {', '.join(fields)}")
        others.setdefault(kind, {})[key] = _as_served(item, known)
    for kind, key in sorted((before or {}).keys() - after.keys()):
        if others.get(kind, {}).pop(key, None) is not None:
            changes.append(f"{kind} {key} is removed")
    return others, changes, notes


def _content(obj: Object, definitions: Definitions) -> Object:
    """Return the parts of an object that people write."""
    if obj["kind"] == "ConfigMap":
        return {"configuration": yaml.safe_load((obj.get("data") or {}).get(CONFIGURATION, "")) or {}}
    full = definitions.complete({name: part for name, part in obj.items() if name != "status"})
    return {name: part for name, part in full.items() if name in ("spec", "value")}


def _as_served(item: Object, known: Object | None) -> Object:
    """Return a manifest's object as the cluster would serve it."""
    if known is None:
        return {**item, "metadata": {"uid": f"new-{item['metadata']['name']}", **item["metadata"]}}
    kept = {name: known["metadata"][name] for name in ("uid", "creationTimestamp") if name in known["metadata"]}
    served = {**item, "metadata": {**item["metadata"], **kept}}
    return served | ({"status": known["status"]} if known.get("status") else {})


def differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Yield each field that differs: `spec.queueingStrategy A → B`. Parts of lists go by their names.

    >>> [*differences({"a": [{"name": "x", "n": 1}]}, {"a": [{"name": "x", "n": 2}]})]
    ['a[x].n 1 → 2']
    """
    if isinstance(old, list) and isinstance(new, list):
        one, other = _by_name(old), _by_name(new)
        if one is not None and other is not None:
            for name in sorted(one.keys() | other.keys()):
                yield from differences(one.get(name), other.get(name), f"{path}[{name}]")
            return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in sorted(old.keys() | new.keys()):
            yield from differences(old.get(name), new.get(name), f"{path}.{name}" if path else name)
    elif old != new and str(old) != str(new):
        yield f"{path} {_short(old)} → {_short(new)}"


def _by_name(parts: list[Any]) -> dict[str, Any] | None:
    """Return the parts of a list by their names; groups of resources go by what they cover. None without names."""
    found = {}
    for part in parts:
        name = part.get("name") or ",".join(part.get("coveredResources") or ()) if isinstance(part, Mapping) else ""
        if not name:
            return None
        found[str(name)] = part
    return found


def _short(value: Any) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
