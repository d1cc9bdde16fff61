"""What happened in a scenario, computed from the versions that the cluster showed: acts, and what queues held.

Pure, and linear in the versions: a scenario of 5,000 pods has 30,000 of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal

from ..api.kinds import Kind
from ..monitors import amounts
from ..monitors.amounts import NONE, Amounts
from ..monitors.ledger import Act, Ledger, is_leaving, is_over
from ..monitors.queues import usage
from ..observe import view
from ..observe.history import Object, Version
from .objects import Queues, parsed, plain, quantities
from .record import ActMoment, Evicted, QueueMoment

Clock = Callable[[float], float]
"""A history's time as the record's."""
_AT_ONCE = 0.001
"""Seconds within which changes of one queue are one moment."""
_SOON = 60.0
"""Seconds after an eviction within which who comes to the node may be whom it was for."""


def acts_of(ledger: Ledger, queues: Queues, clock: Clock) -> list[ActMoment]:
    """Binds and evictions in the order in which the API server made them."""
    said = {
        str((version.object.get("involvedObject") or {}).get("uid")): version.object
        for version in ledger.versions
        if version.ref.kind == Kind.EVENT and version.object.get("related")
    }
    uids = {(v.ref.namespace, v.ref.name): v.uid for v in ledger.versions if v.ref.kind == Kind.POD}
    return [
        _act(act, queues, clock) if act.kind == "bind"
        else _eviction(act, said[act.uid], queues, clock, uids=uids) if act.uid in said
        else _inferred(ledger, act, queues, clock)
        for act in ledger.acts
    ]  # fmt: skip


def _act(act: Act, queues: Queues, clock: Clock, **more: object) -> ActMoment:
    return ActMoment(
        at=clock(act.time),
        act=act.kind,
        pod=act.name,
        uid=act.uid,
        node=act.node,
        group=view.group_of(act.pod),
        queue=queues.of(act.pod),
        amounts=quantities(amounts.of_pod(act.pod)),
        message=act.message,
        action=act.action,
        **more,  # type: ignore[arg-type]
    )


def _eviction(act: Act, event: Object, queues: Queues, clock: Clock, *, uids: dict[tuple[str, str], str]) -> ActMoment:
    """One whose event names the pod that it was for."""
    related, notes = event["related"], event["metadata"].get("annotations") or {}
    said = {key.removeprefix("schedspec.dev/"): str(value) for key, value in notes.items()}
    name = str(related.get("name", ""))
    return _act(
        act,
        queues,
        clock,
        preemptor=name,
        preemptor_uid=str(related.get("uid") or uids.get((str(related.get("namespace", "")), name), "")),
        preemptor_queue=said.get("preemptor-queue", ""),
        tier=int(said.get("tier", 0)),
        votes=json.loads(said.get("votes", "{}")),
        whole_gang=said.get("whole-gang") == "true",
    )


def _inferred(ledger: Ledger, act: Act, queues: Queues, clock: Clock) -> ActMoment:
    """Of a scheduler that names no preemptor: who was bound to that node next, of another group."""
    mine = view.group_of(act.pod)
    for other in ledger.binds():
        if other.position <= act.position or other.node != act.node or other.time - act.time > _SOON:
            continue
        if not mine or view.group_of(other.pod) != mine:
            queue = queues.of(other.pod)
            return _act(
                act,
                queues,
                clock,
                preemptor=other.name,
                preemptor_uid=other.uid,
                preemptor_queue=queue,
                inferred=True,
            )
    return _act(act, queues, clock, inferred=True)


def evicted_of(acts: Sequence[ActMoment], ledger: Ledger) -> Evicted:
    """What was evicted against what it was evicted for."""
    evictions = [act for act in acts if act.act == "evict"]
    if not evictions:
        return Evicted()
    pods = {v.uid: v.object for v in ledger.versions if v.ref.kind == Kind.POD}
    bound = {act.uid: act.at for act in acts if act.act == "bind"}
    began: dict[str, float] = {}
    for act in evictions:
        preemptor = pods.get(act.preemptor_uid)
        if preemptor is not None:
            began.setdefault(view.group_of(preemptor) or act.preemptor_uid, act.at)
    asked: dict[str, Amounts] = {}
    for uid, pod in pods.items():
        first = began.get(view.group_of(pod) or uid)
        if first is not None and bound.get(uid, first) >= first:
            asked[str(pod["metadata"]["name"])] = amounts.of_pod(pod)
    gone = amounts.total(amounts.of_pod(pods[act.uid]) for act in evictions)
    wanted = amounts.total(asked.values())
    ratio = {name: float(round(gone.get(name, NONE) / want, 3)) for name, want in wanted.items() if want}
    ratio.pop("pods", None)
    return Evicted(len(evictions), quantities(gone), quantities(wanted), ratio)


def queue_moments(ledger: Ledger, queues: Queues, is_tree: bool, clock: Clock) -> list[QueueMoment]:
    """The queues' numbers, again whenever they changed: held is the sum of a queue's pods, its descendants included."""
    holding: dict[str, tuple[str, Amounts]] = {}
    held: dict[str, dict[str, Decimal]] = {}
    known: dict[str, Object] = {}
    last: dict[str, QueueMoment] = {}
    found: list[QueueMoment] = []
    now = 0.0

    def lineage(name: str) -> Iterable[str]:
        seen: dict[str, None] = {}
        while name and name not in seen and name != "root":
            seen[name] = None
            name = str((known.get(name, {}).get("spec") or {}).get("parent") or "") if is_tree else ""
        return seen

    def add(queue: str, parts: Amounts, sign: int) -> None:
        for name in lineage(queue):
            sums = held.setdefault(name, {})
            for dimension, amount in parts.items():
                sums[dimension] = sums.get(dimension, NONE) + sign * amount

    def note(name: str) -> None:
        if name not in known:
            return
        moment = _queue_moment(now, name, held.get(name, {}), known[name])
        before = last.get(name)
        if before is not None:
            if _same(before, moment):
                return
            if now - before.at < _AT_ONCE:
                found[found.index(before, max(0, len(found) - 64))] = last[name] = _at(moment, before.at)
                return
        found.append(moment)
        last[name] = moment

    for version in ledger.versions:
        kind, name = version.ref.kind, version.ref.name
        if kind not in (Kind.POD, Kind.QUEUE):
            continue
        now = max(now, clock(version.at))
        if kind == Kind.QUEUE:
            if version.change == "gone":
                known.pop(name, None)
            else:
                known[name] = version.object
            note(name)
            continue
        old, new = holding.pop(version.uid, None), _holds(version, queues)
        if new is not None:
            holding[version.uid] = new
        if old == new:
            continue
        touched: dict[str, None] = {}
        for part, sign in ((old, -1), (new, 1)):
            if part is not None:
                add(*part, sign)
                touched |= dict.fromkeys(lineage(part[0]))
        for queue in touched:
            note(queue)
    return found


def _holds(version: Version, queues: Queues) -> tuple[str, Amounts] | None:
    pod = version.object
    if version.change == "gone" or not pod["spec"].get("nodeName") or is_over(pod) or is_leaving(pod):
        return None
    queue = queues.of(pod)
    return (queue, amounts.of_pod(pod)) if queue else None


def _queue_moment(at: float, name: str, held: Amounts, queue: Object) -> QueueMoment:
    spec, status = queue.get("spec") or {}, queue.get("status") or {}
    return QueueMoment(
        at,
        name,
        quantities(held),
        parsed(status.get("deserved") or spec.get("deserved")),
        parsed(spec.get("capability")),
        parsed((spec.get("guarantee") or {}).get("resource")),
        {model: plain(it) for model, it in usage.card_quota(queue).items()},
        str(spec.get("parent") or ""),
    )


def _same(one: QueueMoment, other: QueueMoment) -> bool:
    return _at(one, 0.0) == _at(other, 0.0)


def _at(moment: QueueMoment, at: float) -> QueueMoment:
    return QueueMoment(
        at,
        moment.queue,
        moment.held,
        moment.deserved,
        moment.capability,
        moment.guarantee,
        moment.card_quota,
        moment.parent,
    )
