"""The decision of the Queue controller: state, counts and problems of a queue.

The state follows Commands and the parent. The scheduler alone writes `allocated` and `deserved`.

The rules are those of Volcano's `pkg/controllers/queue`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...model import names, resources
from ...model.objects import Condition
from ...model.queue import DEFAULT_QUEUES
from ...model.resources import QuantityError, Resource
from ...model.times import timestamp
from ..runtime.objects import COMMANDS, QUEUES, Command, ControlledQueue, QueueSpec
from ..runtime.writes import ApplyObject, Create, EmitEvent, ReconcileResult, Remove, Write
from .state import ROOT, QueueState, is_in_cycle, parent_of, readable_amounts

MANAGER = "schedspec-queue-controller"
CONDITION = "Ready"
_MALFORMED = "Malformed"
_STATES = frozenset((QueueState.OPEN, QueueState.CLOSING, QueueState.CLOSED, QueueState.UNKNOWN))


@dataclass(frozen=True, slots=True)
class ObservedQueue:
    """One queue (None: it does not exist), all `known` queues, its number of PodGroups by phase, and its Commands."""

    name: str
    queue: ControlledQueue | None
    known: Mapping[str, ControlledQueue]
    phases: Mapping[str, int] = field(default_factory=dict)
    commands: Sequence[Command] = ()
    now: float = 0.0


def reconcile(seen: ObservedQueue) -> ReconcileResult:
    """Return the writes for one queue. Pure: equal input, equal outcome."""
    queue = seen.queue
    if queue is None:
        if seen.name in DEFAULT_QUEUES:
            return ReconcileResult(
                [Create(QUEUES, {"metadata": {"name": seen.name}, "spec": DEFAULT_QUEUES[seen.name]})]
            )
        return ReconcileResult()
    if queue.metadata.deletion_timestamp is not None:
        return ReconcileResult()
    state, writes = _commanded(seen, queue)
    state, marks = _inherited(seen, queue, state)
    if state in (QueueState.CLOSING, QueueState.CLOSED):
        state = QueueState.CLOSING if any(seen.phases.values()) else QueueState.CLOSED
    status, events = _status(seen, queue, state)
    opens = state == QueueState.OPEN
    return ReconcileResult([*([] if opens else marks), *status, *(marks if opens else []), *writes, *events])


def _commanded(seen: ObservedQueue, queue: ControlledQueue) -> tuple[str, list[Write]]:
    """Return the state that Commands request. Each Command is removed once its effect is in the status."""
    state = queue.status.state or QueueState.OPEN
    state = state if state in _STATES else QueueState.UNKNOWN
    writes: list[Write] = []
    for command in seen.commands:
        writes.append(Remove.of(COMMANDS, command.metadata))
        if command.action == "CloseQueue":
            if seen.name == ROOT:
                message = "root cannot be closed: every queue is part of it; close its children"
                writes.append(EmitEvent(QUEUES, queue.metadata, "Warning", "CloseRefused", message))
            elif state not in (QueueState.CLOSING, QueueState.CLOSED):
                state = QueueState.CLOSING
        elif command.action == "OpenQueue":
            parent = seen.known.get(parent_of(queue))
            if parent is not None and parent.status.state in (QueueState.CLOSING, QueueState.CLOSED):
                message = f"the parent {parent.metadata.name} is {parent.status.state}; open that first"
                writes.append(EmitEvent(QUEUES, queue.metadata, "Warning", "OpenRefused", message))
            else:
                state = QueueState.OPEN
    return state, writes


def _inherited(seen: ObservedQueue, queue: ControlledQueue, state: str) -> tuple[str, list[Write]]:
    """Return the state that follows from the parent, and the write that marks a queue as closed by its parent."""
    parent = seen.known.get(parent_of(queue))
    if parent is None or is_in_cycle(seen.name, seen.known):
        return state, []
    marked = (queue.metadata.annotations or {}).get(names.CLOSED_BY_PARENT) == "true"
    if parent.status.state in (QueueState.CLOSING, QueueState.CLOSED):
        if state == QueueState.OPEN:
            return QueueState.CLOSING, [] if marked else [_mark(queue, "true")]
        return state, []
    if marked:
        return QueueState.OPEN, [_mark(queue, None)]
    return state, []


def _mark(queue: ControlledQueue, value: str | None) -> Write:
    body = {"metadata": {"annotations": {names.CLOSED_BY_PARENT: value}}}
    return ApplyObject(QUEUES, "", queue.metadata.name, body, uid=queue.metadata.uid)


def _status(seen: ObservedQueue, queue: ControlledQueue, state: str) -> tuple[list[Write], list[Write]]:
    """Return the status if it changes, and events for the changes."""
    before, counts = queue.status, {phase.lower(): number for phase, number in seen.phases.items()}
    wanted: dict[str, Any] = {
        "state": state,
        **{key: counts.get(key, 0) for key in ("pending", "running", "inqueue", "unknown", "completed")},
    }
    problems = list(_problems(seen, queue))
    reason = problems[0][0] if problems else "Ready"
    message = "; ".join(text for _, text in problems)
    condition = {"type": CONDITION, "status": "False" if problems else "True", "reason": reason, "message": message}
    old = next((one for one in before.conditions or () if one.type == CONDITION), Condition())
    same = (old.status, old.reason, old.message) == (condition["status"], reason, message)
    events: list[Write] = []
    # The scheduler itself reports malformed queues.
    news = [problem for problem in problems if problem[0] != _MALFORMED]
    if not same and news:
        events.append(EmitEvent(QUEUES, queue.metadata, "Warning", news[0][0], "; ".join(text for _, text in news)))
    if before.state and before.state != state:
        events.append(EmitEvent(QUEUES, queue.metadata, "Normal", state, f"the queue is {state}"))
    if same and all(getattr(before, key) == value for key, value in wanted.items()):
        return [], events
    flipped = old.status != condition["status"] or not old.last_transition_time
    condition["lastTransitionTime"] = timestamp(seen.now) if flipped else old.last_transition_time or ""
    body = {"status": {**wanted, "conditions": [condition]}}
    return [ApplyObject(QUEUES, "", seen.name, body, "status", uid=queue.metadata.uid, manager=MANAGER)], events


def _problems(seen: ObservedQueue, queue: ControlledQueue) -> Iterator[tuple[str, str]]:
    """Yield the problems of the queue in its hierarchy, as reason and text, the worst first."""
    parent_name = parent_of(queue)
    parent = seen.known.get(parent_name)
    if parent_name and parent is None:
        yield "ParentMissing", f"spec.parent: queue {parent_name} does not exist; create it, or name another"
    if is_in_cycle(seen.name, seen.known):
        yield "Cycle", f"spec.parent: {seen.name} is its own ancestor by way of {parent_name}; name another parent"
    for what, quantities in (
        ("deserved", queue.spec.deserved),
        ("guarantee.resource", queue.spec.guarantee.resource if queue.spec.guarantee else None),
        ("capability", queue.spec.capability),
    ):
        try:
            resources.parse(quantities)
        except QuantityError as error:
            yield _MALFORMED, f"spec.{what}: {error}"
    children = [child for child in seen.known.values() if parent_of(child) == seen.name]
    for what, of in (("deserved", _deserved), ("guarantee.resource", _guarantee)):
        own, total = of(queue), resources.total_of(of(child) for child in children)
        if children and own and (over := _over(total, own)):
            reason = "ChildrenDeservedExceed" if what == "deserved" else "ChildrenGuaranteeExceed"
            yield (
                reason,
                f"spec.{what}: the children have more than their parent: {over}; lower theirs or raise it",
            )
    if parent is not None and (over := _over(_capability(queue), _capability(parent))):
        yield "CapabilityExceeds", f"spec.capability: more than the parent {parent_name} has: {over}; lower it"
    if children and (busy := sum(number for phase, number in seen.phases.items() if phase != "Completed")):
        text = (
            f"{busy} PodGroups are in this queue, which has child queues (the oldest is {_first(children)}) and "
            "drains: PodGroups older than that child finish here, newer ones wait and have to name a child queue"
        )
        yield "NotALeaf", text
    if fields := [name for name, is_set in _unhonoured(queue.spec) if is_set]:
        yield "NotHonoured", f"spec.{', spec.'.join(fields)}: not honoured here; leave it out"


def _first(children: Sequence[ControlledQueue]) -> str:
    """Return the name of the oldest queue."""
    return min((child.metadata.creation_timestamp or "", child.metadata.name) for child in children)[1]


def _unhonoured(spec: QueueSpec) -> Iterator[tuple[str, bool]]:
    yield "extendClusters", bool(spec.extend_clusters)
    yield "dequeueStrategy", spec.dequeue_strategy not in ("", "traverse")
    yield "dra", spec.dra is not None


def _over(amounts: Resource, limits: Resource) -> str:
    """Return a text of the resources in which `amounts` exceeds a limit that is set; empty if there are none."""
    return ", ".join(
        f"{name} {resources.render_amount(name, amount)} > {resources.render_amount(name, limits[name])}"
        for name, amount in sorted(amounts.items())
        if name in limits and amount > limits[name]
    )


def _deserved(queue: ControlledQueue) -> Resource:
    return readable_amounts(queue.spec.deserved)


def _capability(queue: ControlledQueue) -> Resource:
    return readable_amounts(queue.spec.capability)


def _guarantee(queue: ControlledQueue) -> Resource:
    return readable_amounts(queue.spec.guarantee.resource if queue.spec.guarantee else None)
