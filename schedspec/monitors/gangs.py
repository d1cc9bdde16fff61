"""Monitor: a gang is bound as a whole and never left in part, where the policy enables the gang plugin.

A gang is judged after a burst of its binds or evictions, not after each one, because writes take time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..api.kinds import Kind
from ..observe.view import eviction
from .ledger import Act, Ledger, Violation
from .object_state import group_of, is_leaving
from .rules import Rules

NAME = "gang"
BURST = 2.0
"""Maximum seconds between two acts on one gang that belong to one decision."""

_MODE = "schedspec.dev/disruption-mode"
SWITCHES = {"reclaim": "enableReclaimable", "preempt": "enablePreemptable"}


def judge(ledger: Ledger, rules: Rules) -> Iterator[Violation]:
    if not rules.has("gang"):
        return
    for group in sorted({act.group for act in ledger.acts} - {""}):
        for last in _ends_of_bursts(ledger.acts_on(group)):
            if not is_kept_whole(last.kind, last.action, rules):
                continue
            if last.kind == "evict" and _is_evicted_pod_by_pod(ledger, group, last):
                continue
            yield from _judge_burst(ledger, group, last)


def is_kept_whole(kind: str, action: str, rules: Rules) -> bool:
    """Whether the policy lets the plugin gang decide on this kind of act."""
    return rules.is_enabled("gang", "enableJobReady" if kind == "bind" else SWITCHES.get(action, "enableReclaimable"))


def _is_evicted_pod_by_pod(ledger: Ledger, key: str, last: Act) -> bool:
    found = ledger.at(last.position, Kind.PODGROUP, key)
    return found is not None and loses_single_pods(found["metadata"].get("annotations"))


def loses_single_pods(annotations: Mapping[str, str] | None) -> bool:
    """Whether a gang's disruption mode permits the eviction of single pods."""
    return (annotations or {}).get(_MODE) == "pod"


def _ends_of_bursts(acts: Sequence[Act]) -> Iterator[Act]:
    for act, following in zip(acts, [*acts[1:], None], strict=True):
        if following is None or following.kind != act.kind or following.time - act.time > BURST:
            yield act


def _judge_burst(ledger: Ledger, key: str, last: Act) -> Iterator[Violation]:
    if last.kind == "bind" and _still_moving(ledger, last):
        return
    position = _settled(ledger, last)
    found = ledger.at(position, Kind.PODGROUP, key)
    needed = int((found or {"spec": {}})["spec"].get("minMember", 0))
    held = [p for p in ledger.members(position, key) if p["spec"].get("nodeName") and not is_leaving(p)]
    over = [p for p in held if p.get("status", {}).get("phase") == "Failed"]
    if found is None or over:  # the group is deleted, or a member ended by itself: not an act of the scheduler
        return
    if text := incomplete(last.kind, len(held), needed):
        yield Violation(NAME, last.time, key, text)


def incomplete(kind: str, held: int, minimum: int) -> str:
    """Return how binds or evictions (`kind`) left a gang with too few pods; empty if it has enough or none."""
    done = "bound in part" if kind == "bind" else "left incomplete"
    return f"{done}: {held} of {minimum} pods hold capacity" if 0 < held < minimum else ""


def _settled(ledger: Ledger, last: Act) -> int:
    """Return the last position before another writer changes the group, at most a burst later."""
    position = last.position
    others = {act.position for act in ledger.acts_on(last.group) if act.kind != last.kind}
    for later in range(last.position + 1, len(ledger.versions)):
        seen = ledger.versions[later]
        if seen.at - last.time > BURST or later in others:
            break
        if seen.ref.kind == Kind.POD and group_of(seen.object) == last.group:
            if seen.change == "gone" or (seen.change == "added" and last.kind == "evict"):
                break
            if seen.object["metadata"].get("deletionTimestamp") and not eviction(seen.object):
                break
        position = later
    return position


def _still_moving(ledger: Ledger, last: Act) -> bool:
    return ledger.versions[-1].at - last.time < BURST / 10
