"""Check what a queue holds, in every state that the cluster showed.

A queue holds what its pods on nodes request, until the pods end or are marked as victims, as in monitors and reports.
With a policy whose queues form a tree, a queue also holds what its descendants hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from ..api.kinds import Kind
from ..monitors import Rules, amounts
from ..monitors.amounts import NONE, spoken
from ..monitors.object_state import keeps
from ..observe import view as views
from ..observe.expect import Check, Outcome
from ..observe.history import History, Object, Version, View
from .workloads import no_queue


def never_below(queue: str, resource: str, least: Decimal, rules: Rules) -> Check:
    """The queue holds the amount in some state, and never less in a later one."""
    expected = f"queue {queue} never holds less than {spoken(resource, least)}"

    def check(view: View) -> Outcome:
        most, broken = NONE, None
        for version, held in _holdings(view, queue, resource, rules):
            broken = broken or (_at(version, resource, held) if held < least <= most else None)
            most = max(most, held)
        seen = f"it has held {spoken(resource, most)} at most so far"
        return _outcome(view, queue, expected, broken, seen, ok=most >= least)

    return check


def never_above(queue: str, resource: str, most: Decimal, rules: Rules) -> Check:
    """The queue holds at most the amount in every state since the scenario began."""
    expected = f"queue {queue} holds at most {spoken(resource, most)}"

    def check(view: View) -> Outcome:
        states = _holdings(view, queue, resource, rules)
        broken = next((_at(version, resource, held) for version, held in states if held > most), None)
        return _outcome(view, queue, expected, broken, "it holds no more", ok=True)

    return check


_Broken = tuple[Version, str]
"""The pod version that broke the condition, and a text about the state after it."""


def _at(version: Version, resource: str, held: Decimal) -> _Broken:
    return version, f"it held {spoken(resource, held)}"


def _outcome(view: View, queue: str, expected: str, broken: _Broken | None, seen: str, *, ok: bool) -> Outcome:
    ref, missing = view.history.ref(Kind.QUEUE, queue), no_queue(view, queue)
    if broken is None:
        return Outcome(ok and not missing, expected, missing or seen, (ref,))
    version, what = broken
    at = max(0.0, view.history.seconds(version.at))
    text = f"{what} at {at:.2f} s, when pod {version.ref.name} changed"
    return Outcome(False, expected, text, (ref, version.ref), hopeless=0.0)


def _holdings(view: View, queue: str, resource: str, rules: Rules) -> Iterator[tuple[Version, Decimal]]:
    """Yield the versions of pods that changed what the queue held, oldest first, with the amount held after each."""
    groups, parents = _queues_of_groups(view.history), _parents(view.history) if rules.is_tree else {}
    holding: dict[str, Decimal] = {}
    held = NONE
    for version in view.versions(Kind.POD):
        now = _counts(version, queue, resource, groups, parents)
        before = holding.get(version.uid, NONE)
        if now == before:
            continue
        holding[version.uid] = now
        held += now - before
        yield version, held


def _counts(version: Version, queue: str, resource: str, groups: dict[str, str], parents: dict[str, str]) -> Decimal:
    pod = version.object
    if version.change == "gone" or not keeps(pod):
        return NONE
    return (
        amounts.of_pod(pod).get(resource, NONE)
        if queue in _lineage(groups.get(views.group_of(pod), ""), parents)
        else NONE
    )


def _lineage(queue: str, parents: dict[str, str]) -> list[str]:
    """Return the queue and its ancestors."""
    lineage: list[str] = []
    while queue and queue not in lineage:
        lineage.append(queue)
        queue = parents.get(queue, "")
    return lineage


def _queues_of_groups(history: History) -> dict[str, str]:
    """Return the queue that the last version of each PodGroup names."""
    versions = (version for kind in views.QUEUED for version in history.versions(kind))
    return {version.ref.name: views.queue_named_by(version.object) for version in versions}


def _parents(history: History) -> dict[str, str]:
    return {
        version.ref.name: str(_spec(version.object).get("parent") or "") for version in history.versions(Kind.QUEUE)
    }


def _spec(obj: Object) -> Object:
    spec: Object = obj.get("spec") or {}
    return spec
