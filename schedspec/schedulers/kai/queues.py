"""Translate the queues of a scenario into KAI's Queues. No I/O.

| queue | Queue of scheduling.run.ai/v2 |
| --- | --- |
| deserved | quota |
| capability | limit |
| weight | overQuotaWeight |
| priority | priority |
| parent | parentQueue; the top queues are below one Queue that has the whole cluster |

Quota of cpu is in thousandths, of memory in megabytes, of cards in cards (KAI, `docs/queues/README.md`). A queue has no
quota of cpu, cards or what another queue of the scenario names unless it deserves some: all that it holds is above it.
Memory that no queue names is not limited.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

from kubernetes.utils.quantity import parse_quantity

from ...api.kinds import GPU

Object = dict[str, Any]
API: Final = "scheduling.run.ai/v2"
TOP: Final = "schedspec-root"
DEFAULT: Final = "default"
_UNITS: Final = {"cpu": Decimal("0.001"), "memory": Decimal(10**6), GPU: Decimal(1)}
_NAMES: Final = {"cpu": "cpu", "memory": "memory", GPU: "gpu"}
_UNLIMITED: Final = -1


def of_scenario(queues: Sequence[Object]) -> list[Object]:
    """Return KAI's Queues for those of a scenario, the top one first."""
    found = {str(queue["metadata"]["name"]): queue.get("spec") or {} for queue in queues}
    found.setdefault(DEFAULT, {})
    named = {resource for spec in found.values() for amounts in _named(spec) for resource in amounts}
    shared = {"cpu", GPU, *named}
    top = _made(TOP, {"resources": {name: _amounts(_UNLIMITED, _UNLIMITED, 1) for name in _NAMES.values()}})
    return [top, *(_queue(name, spec, found, shared) for name, spec in found.items() if name != "root")]


def _named(spec: Object) -> list[Object]:
    """Return the amounts that a queue names."""
    guarantee = (spec.get("guarantee") or {}).get("resource")
    return [spec.get("deserved") or {}, spec.get("capability") or {}, guarantee or {}]


def _queue(name: str, spec: Object, queues: dict[str, Object], shared: set[str]) -> Object:
    parent = str(spec.get("parent") or "root")
    own: Object = {"parentQueue": parent if parent in queues and parent != "root" else TOP}
    if "priority" in spec:
        own["priority"] = spec["priority"]
    weight = spec.get("weight", 1)
    own["resources"] = {
        name: _amounts(
            _in_units(spec.get("deserved"), resource, 0 if resource in shared else _UNLIMITED),
            _in_units(spec.get("capability"), resource, _UNLIMITED),
            weight,
        )
        for resource, name in _NAMES.items()
    }
    return _made(name, own)


def _in_units(amounts: Object | None, resource: str, otherwise: int) -> int | float:
    if not amounts or resource not in amounts:
        return otherwise
    amount = Decimal(parse_quantity(str(amounts[resource]))) / _UNITS[resource]  # type: ignore[no-untyped-call]
    return int(amount) if amount == amount.to_integral_value() else float(amount)


def _amounts(quota: float, limit: float, weight: int) -> Object:
    return {"quota": quota, "limit": limit, "overQuotaWeight": weight}


def _made(name: str, spec: Object) -> Object:
    return {"apiVersion": API, "kind": "Queue", "metadata": {"name": name}, "spec": spec}
