"""Compute the binds and evictions of a scenario from the object versions that the cluster showed.

This module is pure and, unless preemptors are inferred, linear in the number of versions: 5,000 pods have 30,000.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ..api.kinds import Kind
from ..monitors import amounts
from ..monitors.amounts import NONE, Amounts
from ..monitors.ledger import Ledger, Monitor
from ..monitors.lives import Eviction, Pod
from ..monitors.rules import Rules
from ..observe import view
from ..observe.history import Object, Version
from .objects import QueueIndex, quantities
from .record import ActMoment, EvictedAmounts

Clock = Callable[[float], float]
_SOON = 60.0
"""Maximum seconds from an eviction to the bind of the preemptor that is inferred for it."""


class Act(NamedTuple):
    """A bind or an eviction, and the pod after it."""

    at: float
    pod: Object
    eviction: Eviction | None = None

    @property
    def uid(self) -> str:
        return str(self.pod["metadata"]["uid"])

    @property
    def node(self) -> str:
        return str(self.pod["spec"].get("nodeName", ""))


class ActMonitor(Monitor):
    """Keeps the binds and evictions of a history, in the order in which the API server recorded them."""

    def __init__(self, ledger: Ledger, rules: Rules) -> None:
        super().__init__(ledger, rules)
        self.acts: list[Act] = []

    def on_bound(self, pod: Pod) -> None:
        self.acts.append(Act(self.ledger.at, self.ledger.shown(pod.source)))

    def on_evicted(self, pod: Pod, eviction: Eviction) -> None:
        self.acts.append(Act(self.ledger.at, self.ledger.shown(pod.source), eviction))


def acts_of(acts: Sequence[Act], versions: Sequence[Version], queues: QueueIndex, clock: Clock) -> list[ActMoment]:
    """Return the binds and evictions of a history as records."""
    preemptor_events = {
        str((version.object.get("involvedObject") or {}).get("uid")): version.object
        for version in versions
        if version.ref.kind == Kind.EVENT and version.object.get("related")
    }
    uids = {(v.ref.namespace, v.ref.name): v.uid for v in versions if v.ref.kind == Kind.POD}
    return [
        _act(act, queues, clock) if act.eviction is None
        else _eviction(act, preemptor_events[act.uid], queues, clock, uids=uids) if act.uid in preemptor_events
        else _inferred(acts[number + 1 :], act, queues, clock)
        for number, act in enumerate(acts)
    ]  # fmt: skip


def _act(act: Act, queues: QueueIndex, clock: Clock, **more: object) -> ActMoment:
    why = act.eviction
    return ActMoment(
        at=clock(act.at),
        act="bind" if why is None else "evict",
        pod=str(act.pod["metadata"]["name"]),
        uid=act.uid,
        node=act.node,
        group=view.group_of(act.pod),
        queue=queues.of(act.pod),
        amounts=quantities(amounts.of_pod(act.pod)),
        message=why.message if why is not None else "",
        action=why.action if why is not None else "",
        **more,  # type: ignore[arg-type]
    )


def _eviction(
    act: Act, event: Object, queues: QueueIndex, clock: Clock, *, uids: dict[tuple[str, str], str]
) -> ActMoment:
    """Return an eviction whose event names its preemptor."""
    related, notes = event["related"], event["metadata"].get("annotations") or {}
    details = {key.removeprefix("schedspec.dev/"): str(value) for key, value in notes.items()}
    name = str(related.get("name", ""))
    return _act(
        act,
        queues,
        clock,
        preemptor=name,
        preemptor_uid=str(related.get("uid") or uids.get((str(related.get("namespace", "")), name), "")),
        preemptor_queue=details.get("preemptor-queue", ""),
        tier=int(details.get("tier", 0)),
        votes=json.loads(details.get("votes", "{}")),
        whole_gang=details.get("whole-gang") == "true",
    )


def _inferred(later: Sequence[Act], act: Act, queues: QueueIndex, clock: Clock) -> ActMoment:
    """Infer the preemptor for a scheduler that names none: the next pod of another group bound to the victim's node."""
    mine = view.group_of(act.pod)
    for other in later:
        if other.eviction is not None or other.node != act.node or other.at - act.at > _SOON:
            continue
        if not mine or view.group_of(other.pod) != mine:
            name, queue = str(other.pod["metadata"]["name"]), queues.of(other.pod)
            named = {"preemptor": name, "preemptor_uid": other.uid, "preemptor_queue": queue}
            return _act(act, queues, clock, **named, inferred=True)
    return _act(act, queues, clock, inferred=True)


def evicted_of(acts: Sequence[ActMoment], versions: Iterable[Version]) -> EvictedAmounts:
    """Return what was evicted, and what the preemptors requested for their waiting pods."""
    evictions = [act for act in acts if act.act == "evict"]
    if not evictions:
        return EvictedAmounts()
    pods = {v.uid: v.object for v in versions if v.ref.kind == Kind.POD}
    bound = {act.uid: act.at for act in acts if act.act == "bind"}
    began: dict[str, float] = {}
    for act in evictions:
        preemptor = pods.get(act.preemptor_uid)
        if preemptor is not None:
            began.setdefault(view.group_of(preemptor) or act.preemptor_uid, act.at)
    requested: dict[str, Amounts] = {}
    for uid, pod in pods.items():
        first = began.get(view.group_of(pod) or uid)
        if first is not None and bound.get(uid, first) >= first:
            requested[str(pod["metadata"]["name"])] = amounts.of_pod(pod)
    evicted = amounts.total(amounts.of_pod(pods[act.uid]) for act in evictions)
    wanted = amounts.total(requested.values())
    ratio = {name: float(round(evicted.get(name, NONE) / want, 3)) for name, want in wanted.items() if want}
    ratio.pop("pods", None)
    return EvictedAmounts(len(evictions), quantities(evicted), quantities(wanted), ratio)
