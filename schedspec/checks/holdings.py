"""Check what a queue holds, in every state that the cluster showed.

A queue holds what its pods on nodes request, until the pods end or are marked as victims, as in monitors and reports.
With a policy whose queues form a tree, a queue also holds what its descendants hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from ..api.kinds import Kind
from ..monitors import Ledger, Rules
from ..monitors.amounts import NONE, of_world, spoken
from ..monitors.reading import in_order, read
from ..observe.expect import Check, Outcome
from ..observe.history import Version, View
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
    """The queue holds at most the amount in every state since the scenario began. The nodes could hold more."""
    expected = f"queue {queue} holds at most {spoken(resource, most)}"

    def check(view: View) -> Outcome:
        if text := _always_below(view, resource, most):
            return Outcome(False, expected, text, hopeless=0.0)
        states = _holdings(view, queue, resource, rules)
        broken = next((_at(version, resource, held) for version, held in states if held > most), None)
        return _outcome(view, queue, expected, broken, "it holds no more", ok=True)

    return check


def is_between(queue: str, resource: str, least: Decimal, most: Decimal, rules: Rules) -> Check:
    """The queue holds an amount in this range."""
    low, high = spoken(resource, least), spoken(resource, most)
    expected = f"queue {queue} holds {high if least == most else f'between {low} and {high}'}"

    def check(view: View) -> Outcome:
        if not least and (text := _always_below(view, resource, most)):
            return Outcome(False, expected, text, hopeless=0.0)
        held = [NONE, *(held for _, held in _holdings(view, queue, resource, rules))][-1]
        ok, seen = least <= held <= most, f"it holds {spoken(resource, held)}"
        return _outcome(view, queue, expected, None, seen, ok=ok)

    return check


def _always_below(view: View, resource: str, most: Decimal) -> str:
    """Return why no queue could hold more than this amount; empty if the nodes could hold more."""
    nodes = {version.ref.name: version.object for version in view.versions(Kind.NODE)}
    has = of_world(nodes.values()).get(resource, NONE)
    if not nodes or most < has:
        return ""
    return f"all nodes have {spoken(resource, has)}, so that this says nothing; name a smaller amount"


_Broken = tuple[Version, str]
"""The version that broke the condition, and a text about the state after it."""


def _at(version: Version, resource: str, held: Decimal) -> _Broken:
    return version, f"it held {spoken(resource, held)}"


def _outcome(view: View, queue: str, expected: str, broken: _Broken | None, seen: str, *, ok: bool) -> Outcome:
    ref, missing = view.history.ref(Kind.QUEUE, queue), no_queue(view, queue)
    if broken is None:
        return Outcome(ok and not missing, expected, missing or seen, (ref,))
    version, what = broken
    at = max(0.0, view.history.seconds(version.at))
    text = f"{what} at {at:.2f} s, when {version.ref.kind} {version.ref.name} changed"
    return Outcome(False, expected, text, (ref, version.ref), hopeless=0.0)


def _holdings(view: View, queue: str, resource: str, rules: Rules) -> Iterator[tuple[Version, Decimal]]:
    """Yield the versions that changed what the queue held, oldest first, with the amount held after each."""
    history, ledger, held = view.history, Ledger(rules), NONE
    own = (it for it in history.since(0) if it.seq <= view.seq and it.ref.namespace in ("", history.namespace))
    for version in in_order(own):
        read(ledger, version)
        if held != (now := ledger.below(queue).get(resource, NONE)):
            held = now
            yield version, held
