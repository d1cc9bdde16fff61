"""The quotas of Kueue, for monitors: whether what an evicted Workload used is free, in its flavors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from ..api.kinds import Kind
from ..observe import view
from .amounts import NONE, Object, parse_quantity

Quotas = Mapping[tuple[Kind, str], Object]
_Use = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Admission:
    """The quota of a ClusterQueue that a Workload uses."""

    queue: str
    uses: Mapping[_Use, Decimal]
    is_placed: bool
    """Whether Kueue counted what is free on nodes, too."""


def admission_of(workload: Object | None) -> Admission | None:
    found = ((workload or {}).get("status") or {}).get("admission")
    if not found:
        return None
    uses: dict[_Use, Decimal] = {}
    parts = found.get("podSetAssignments") or ()
    for part in parts:
        for resource, amount in (part.get("resourceUsage") or {}).items():
            use = str((part.get("flavors") or {}).get(resource, "")), str(resource)
            uses[use] = uses.get(use, NONE) + parse_quantity(amount)
    return Admission(str(found.get("clusterQueue")), uses, any("topologyAssignment" in part for part in parts))


def counts(workload: Object) -> bool:
    """Whether the admission of a Workload counts against quotas."""
    return not any(view.condition(workload, name).get("status") == "True" for name in ("Evicted", "Finished"))


def pool_of(admission: Admission | None, quotas: Quotas) -> str:
    """Return the cohort, or else the queue, whose quota an admission uses; empty if it may use what any other does."""
    queue = quotas.get((Kind.CLUSTERQUEUE, admission.queue)) if admission is not None else None
    if admission is None or queue is None or admission.is_placed:
        return ""
    return _root(queue, quotas) or f"queue {admission.queue}"


def is_free(wanted: Admission, others: Iterable[Admission], quotas: Quotas) -> bool:
    """Whether a Workload fits beside others: within its queue's borrowing limit, and within its cohorts' quota.

    False as well where limits between cohorts decide, which are not judged.
    """
    own = quotas.get((Kind.CLUSTERQUEUE, wanted.queue))
    if own is None or not wanted.uses:
        return False
    root, held = _root(own, quotas), [*others]
    kin = {
        name: obj
        for (kind, name), obj in quotas.items()
        if obj is own or (root and kind == Kind.CLUSTERQUEUE and _root(obj, quotas) == root)
    }
    above = [obj for (kind, name), obj in quotas.items() if kind == Kind.COHORT and _top(name, quotas) == root]
    for use, amount in wanted.uses.items():
        nominal, borrowed, _ = _quota(own, use)
        alone = amount + sum((it.uses.get(use, NONE) for it in held if it.queue == wanted.queue), NONE)
        together = amount + sum((it.uses.get(use, NONE) for it in held if it.queue in kin), NONE)
        total = nominal + sum((min(_quota(it, use)[::2]) for it in kin.values() if it is not own), NONE)
        for cohort in above:
            more, *limits = _quota(cohort, use)
            if any(limit != _UNLIMITED for limit in limits):
                return False
            total += more
        if alone > nominal + borrowed or together > total:
            return False
    return True


_UNLIMITED = Decimal("Infinity")


def _root(queue: Object, quotas: Quotas) -> str:
    """Return the topmost cohort of a ClusterQueue; empty if it has none."""
    spec = queue.get("spec") or {}
    return _top(str(spec.get("cohortName") or spec.get("cohort") or ""), quotas)


def _top(cohort: str, quotas: Quotas) -> str:
    seen: set[str] = set()
    while cohort not in seen:
        seen.add(cohort)
        spec = (quotas.get((Kind.COHORT, cohort)) or {}).get("spec") or {}
        cohort = str(spec.get("parentName") or spec.get("parent") or cohort)
    return cohort


def _quota(obj: Object, use: _Use) -> tuple[Decimal, Decimal, Decimal]:
    """Return the nominal quota of a flavor's resource, and how much of it may be borrowed and lent at most."""
    for resource in _resources(obj, use[0]):
        if resource.get("name") == use[1]:
            limits = (resource.get("borrowingLimit"), resource.get("lendingLimit"))
            borrowed, lent = (_UNLIMITED if limit is None else parse_quantity(limit) for limit in limits)
            return parse_quantity(resource.get("nominalQuota") or 0), borrowed, lent
    return NONE, _UNLIMITED, _UNLIMITED


def _resources(obj: Object, flavor: str) -> Iterator[dict[str, Any]]:
    for group in (obj.get("spec") or {}).get("resourceGroups") or ():
        for found in group.get("flavors") or ():
            if found.get("name") == flavor:
                yield from found.get("resources") or ()
