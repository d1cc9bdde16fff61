"""Checks of the phases of jobs, PodGroups and queues: the current phase and the phases so far."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ..api.kinds import Kind, Ref
from ..api.timeouts import IN_FLUX
from ..monitors.amounts import listed, parse
from ..observe import view as views
from ..observe.expect import Check, Outcome
from ..observe.history import Object, View
from .workloads import about, no_queue, of_known


@of_known
def group_is(name: str, phase: str) -> Check:
    """The workload's PodGroup is in that phase."""

    def check(view: View) -> Outcome:
        group = views.podgroup_of(view, name)
        seen = "there is none" if group is None else views.phase(group) or "no phase yet"
        return Outcome(seen == phase, f"the PodGroup of {name} is {phase}", seen, about(view, name))

    return check


@of_known
def group_went_through(name: str, phases: Sequence[str]) -> Check:
    """The workload's PodGroup was in these phases, in this order, possibly with others between."""

    def check(view: View) -> Outcome:
        group = views.podgroup_of(view, name)
        own = {str(group["metadata"]["name"])} if group is not None else set()
        versions = [v.object for v in view.versions(Kind.PODGROUP) if v.ref.name in own or _owned_by(v.object, name)]
        seen = _without_repetitions(_phase(version) for version in versions)
        expected = f"the PodGroup of {name} goes through {', '.join(phases)}"
        return Outcome(_in_order(phases, seen), expected, ", ".join(seen) or "no PodGroup", about(view, name))

    return check


@of_known
def job_is(name: str, phase: str) -> Check:
    """The job is in that phase."""

    def check(view: View) -> Outcome:
        kind, obj = _job(view, name)
        seen = _job_phase(kind, obj) if obj is not None else ""
        return Outcome(seen == phase, f"{name} is {phase}", seen or "no phase yet", about(view, name))

    return check


@of_known
def job_went_through(name: str, phases: Sequence[str]) -> Check:
    """The job was in these phases, in this order, possibly with others between."""

    def check(view: View) -> Outcome:
        kind, _ = _job(view, name)
        seen = _without_repetitions(_job_phase(kind, version.object) for version in view.versions(kind, name))
        expected = f"{name} goes through {', '.join(phases)}"
        return Outcome(_in_order(phases, seen), expected, ", ".join(seen) or "no phase yet", about(view, name))

    return check


@of_known
def job_counts(name: str, counter: str, number: int) -> Check:
    """A number in the status of a Volcano Job has this value; a missing one is 0."""

    def check(view: View) -> Outcome:
        seen = int(((view.get(Kind.VCJOB, name) or {}).get("status") or {}).get(counter) or 0)
        return Outcome(seen == number, f"{name} has {counter} {number}", f"{counter} {seen}", about(view, name))

    return check


def queue_is(name: str, state: str) -> Check:
    """The queue is in that state."""

    def check(view: View) -> Outcome:
        seen = str(((view.get(Kind.QUEUE, name) or {}).get("status") or {}).get("state", ""))
        outcome = Outcome(seen == state, f"queue {name} is {state}", seen or "no state yet", _ref(view, name))
        return _of_queue(view, name, outcome)

    return check


def has_state(kind: Kind, name: str, states: Sequence[str], one_of_them: bool) -> Check:
    """The Job's phase or the Queue's state is one of these, or none of these."""

    def check(view: View) -> Outcome:
        state = ((view.get(kind, name) or {}).get("status") or {}).get("state") or ""
        seen = str(state.get("phase", "") if isinstance(state, dict) else state)
        expected = f"{name} is {'' if one_of_them else 'not '}{' or '.join(states)}: else the command changes nothing"
        ref = view.history.ref(kind, name)
        return Outcome((seen in states) is one_of_them, expected, seen or "no state yet", (ref,))

    return check


def queue_has(name: str, field: str, amounts: dict[str, Any]) -> Check:
    """A field of the queue's status has these amounts; other dimensions may have any amount."""

    def check(view: View) -> Outcome:
        status = (view.get(Kind.QUEUE, name) or {}).get("status") or {}
        seen, want = parse(status.get(field)), parse(amounts)
        ok = all(seen.get(dimension, 0) == amount for dimension, amount in want.items())
        seen_amounts = listed(status[field]) if status.get(field) else "not set"
        expected, shown = f"queue {name} has {field} {listed(amounts)}", f"{field} {seen_amounts}"
        return _of_queue(view, name, Outcome(ok, expected, shown, _ref(view, name)))

    return check


def _ref(view: View, queue: str) -> tuple[Ref, ...]:
    return (view.history.ref(Kind.QUEUE, queue),)


def _of_queue(view: View, name: str, outcome: Outcome) -> Outcome:
    """Return the outcome, hopeless if the queue is missing: no condition on a missing queue can become true."""
    text = no_queue(view, name)
    return replace(outcome, ok=False, seen=text, hopeless=IN_FLUX) if text else outcome


@of_known
def group_needs(name: str, members: int) -> Check:
    """The workload's PodGroup has that minMember."""

    def check(view: View) -> Outcome:
        group = views.podgroup_of(view, name)
        seen = None if group is None else int(group["spec"].get("minMember", 0))
        expected = f"the PodGroup of {name} has minMember {members}"
        text = "there is none" if seen is None else f"minMember {seen}"
        return Outcome(seen == members, expected, text, about(view, name))

    return check


def _job(view: View, name: str) -> tuple[Kind, Object | None]:
    """Return the job of that name: a PyTorchJob or Kubernetes Job if there is one, else a Volcano Job."""
    for kind in (Kind.PYTORCHJOB, Kind.JOB):
        if (obj := view.get(kind, name)) is not None:
            return kind, obj
    return Kind.VCJOB, view.get(Kind.VCJOB, name)


def _owned_by(group: Object, name: str) -> bool:
    return any(owner["name"] == name for owner in group["metadata"].get("ownerReferences") or ())


def _phase(group: Object) -> str:
    return str((group.get("status") or {}).get("phase") or "Pending")


def _job_phase(kind: Kind, obj: Object) -> str:
    """Return a Volcano Job's phase; for other jobs, the last condition that became true.

    Times are whole seconds; of conditions of the same second, the last in the list is the newest.
    """
    status = obj.get("status") or {}
    if kind == Kind.VCJOB:
        return str((status.get("state") or {}).get("phase", ""))
    true = [c for c in status.get("conditions") or () if c.get("status") == "True"]
    return str(max(reversed(true), key=lambda c: str(c.get("lastTransitionTime", "")))["type"]) if true else ""


def _without_repetitions(phases: Iterable[str]) -> list[str]:
    seen: list[str] = []
    for phase in phases:
        if phase and (not seen or seen[-1] != phase):
            seen.append(phase)
    return seen


def _in_order(wanted: Sequence[str], seen: Sequence[str]) -> bool:
    rest = iter(seen)
    return all(phase in rest for phase in wanted)
