"""Translate the queues of a scenario into YuniKorn's configuration. No I/O.

| queue | queue of `queues.yaml` |
| --- | --- |
| deserved, guarantee | `guaranteed`: the larger of both |
| capability | `max` |
| priority | `priority.offset` |
| parent | the queue above it; the top queues are below `root` |
| weight | `guaranteed`: its part of the nodes, where the policy shares by `parts` |

Every queue has a priority fence: the priorities of its work count within the queue, as they do in Volcano. Every queue
names its order of applications, because a leaf that had children before would keep the order of parents, in which
YuniKorn refuses gangs.

Work names its queue as the user of its application (`user_of`). A placement rule for each leaf places the applications
of that user there, so that work needs not know the path of its queue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, Literal

import msgspec
import yaml
from kubernetes.utils.quantity import parse_quantity

from ...api.kinds import DEFAULT_QUEUE
from ..adapter import read_policy

Object = dict[str, Any]
Amounts = dict[str, Decimal]
ROOT: Final = "root"
_NAMES: Final = {"cpu": "vcore"}
_NOT_SHARED: Final = ("pods", "ephemeral-storage")
_DELAY: Final = "1ms"
"""Age at which waiting work may preempt. YuniKorn's default is 30 s, and it wants more than zero."""


class YuniKornPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A policy file: settings of YuniKorn, and the rules for the monitors in the format of our policies."""

    preemption: bool = False
    shares: Literal["amounts", "parts"] = "amounts"
    """How queues get guaranteed amounts: their own, or parts of the nodes by weight."""
    lacks: str = ""
    """Why YuniKorn has no such policy; empty if it has one."""
    tiers: list[dict[str, Any]] = []


def read(text: str) -> YuniKornPolicy:
    return read_policy(text, YuniKornPolicy, "YuniKorn")


def user_of(queue: str) -> str:
    return f"queue:{queue}"


def of_scenario(queues: Sequence[Object], nodes: Sequence[Object], policy: YuniKornPolicy) -> str:
    """Return the text of `queues.yaml` for the queues of a scenario."""
    named = {str(queue["metadata"]["name"]): queue.get("spec") or {} for queue in queues}
    named.pop(ROOT, None)
    specs = {DEFAULT_QUEUE: {}, **named}
    guaranteed = _parts(named or specs, nodes) if policy.shares == "parts" else _amounts(specs)
    tree = _Tree(specs, guaranteed)
    partition = {
        "name": "default",
        "queues": [{"name": ROOT, "submitacl": "*", "queues": tree.below(ROOT)}],
        "placementrules": tree.rules(),
        "preemption": {"enabled": policy.preemption},
    }
    return yaml.safe_dump({"partitions": [partition]}, sort_keys=False)


class _Tree:
    def __init__(self, specs: Mapping[str, Object], guaranteed: Mapping[str, Amounts]) -> None:
        self._specs, self._guaranteed = specs, guaranteed

    def below(self, parent: str) -> list[Object]:
        return [self._queue(name) for name in self._children(parent)]

    def rules(self) -> list[Object]:
        """Return a placement rule for each leaf."""
        leaves = [name for name in self._specs if not self._children(name)]
        return [
            {"name": "fixed", "value": self._path(name), "filter": {"type": "allow", "users": [user_of(name)]}}
            for name in leaves
        ]

    def _children(self, parent: str) -> list[str]:
        return [name for name in self._specs if _parent_of(name, self._specs) == parent]

    def _path(self, name: str) -> str:
        parent = _parent_of(name, self._specs)
        return f"{ROOT if parent == ROOT else self._path(parent)}.{name}"

    def _queue(self, name: str) -> Object:
        spec = self._specs[name]
        found: Object = {
            "name": name,
            "properties": {
                "priority.policy": "fence",
                "priority.offset": str(spec.get("priority", 0)),
                "preemption.delay": _DELAY,
                "application.sort.policy": "fifo",
            },
        }
        limits = {"guaranteed": self._guaranteed.get(name), "max": _parsed(spec.get("capability"))}
        if resources := {key: _written(amounts) for key, amounts in limits.items() if amounts}:
            found["resources"] = resources
        if below := self.below(name):
            found |= {"parent": True, "queues": below}
        return found


def _amounts(specs: Mapping[str, Object]) -> dict[str, Amounts]:
    """Return what each queue deserves, or what is guaranteed to it if that is more."""
    return {
        name: _largest(spec.get("deserved"), (spec.get("guarantee") or {}).get("resource"))
        for name, spec in specs.items()
    }


def _parts(specs: Mapping[str, Object], nodes: Sequence[Object]) -> dict[str, Amounts]:
    """Split the capacity of the nodes among the top queues by weight, within what each may hold."""
    weights = {name: Decimal(it.get("weight", 1)) for name, it in specs.items() if _parent_of(name, specs) == ROOT}
    total: Amounts = {}
    for node in nodes:
        for name, amount in _parsed(node["status"]["allocatable"]).items():
            if name not in _NOT_SHARED:
                total[name] = total.get(name, Decimal(0)) + amount
    found = {}
    for queue, weight in weights.items():
        part, most = weight / (sum(weights.values()) or 1), _parsed(specs[queue].get("capability"))
        found[queue] = {name: min(amount * part, most.get(name, amount)) for name, amount in total.items()}
    return found


def _parent_of(name: str, specs: Mapping[str, Object]) -> str:
    parent = str(specs[name].get("parent") or ROOT)
    return parent if parent in specs else ROOT


def _parsed(amounts: Object | None) -> Amounts:
    return {name: Decimal(parse_quantity(str(it))) for name, it in (amounts or {}).items()}  # type: ignore[no-untyped-call]


def _largest(*several: Object | None) -> Amounts:
    found: Amounts = {}
    for amounts in several:
        for name, amount in _parsed(amounts).items():
            found[name] = max(amount, found.get(name, amount))
    return found


def _written(amounts: Amounts) -> dict[str, str]:
    """Write amounts as YuniKorn reads them: thousandths of a cpu, whole units of all else."""
    return {
        _NAMES.get(name, name): f"{int(amount * 1000)}m" if name == "cpu" else str(int(amount))
        for name, amount in amounts.items()
    }
