"""Queries for past events of pods, computed from versions. Pure; a query uses only the versions up to its view."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from ..api.kinds import Kind, Ref
from . import view as views
from .expect import Check, Outcome
from .history import Object, Version, View


class Happened(NamedTuple):
    """An event of one pod."""

    pod: str
    uid: str
    seq: int
    at: float
    object: Object


def evictions(view: View) -> list[Happened]:
    """Return the pods that a scheduler marked as victims, each once, in the order of the marks."""
    return _first(view, lambda version: views.eviction(version.object) is not None)


def starts(view: View) -> list[Happened]:
    """Return the pods that became Running, each once, in order. A successor of the same name counts again."""
    return _first(view, lambda version: views.phase(version.object) == "Running")


def binds(view: View) -> list[Happened]:
    """Return the pods that were bound, each once, in order."""
    return _first(view, lambda version: bool(version.object["spec"].get("nodeName")))


def of_workload(happened: Iterable[Happened], workload: str) -> list[Happened]:
    """Return the events of one workload's pods, or of the pod of that name."""
    return [event for event in happened if workload in (views.workload_of(event.object), event.pod)]


def workload(happened: Happened) -> str:
    """Return the workload of the event's pod."""
    return views.workload_of(happened.object)


def phases(view: View, kind: Kind, name: str) -> list[str]:
    """Return the phases of an object in order; a phase that was entered twice is returned twice."""
    found: list[str] = []
    for version in view.versions(kind, name):
        phase = views.phase(version.object)
        if phase and (not found or found[-1] != phase):
            found.append(phase)
    return found


def evicted_before(first: str, others: list[str]) -> Check:
    """The first eviction of one workload has happened, before every eviction of the others."""

    def check(view: View) -> Outcome:
        happened = evictions(view)
        mine = of_workload(happened, first)
        theirs = [eviction for other in others for eviction in of_workload(happened, other)]
        ok = bool(mine) and all(mine[0].seq < eviction.seq for eviction in theirs)
        seen = ", ".join(eviction.pod for eviction in happened) or "nothing was evicted"
        expected = f"{first} is evicted before {', '.join(others)}"
        return Outcome(
            ok, expected, f"in this order: {seen}", _refs(view, happened), _hopeless_if(bool(theirs) and not ok)
        )

    return check


def start_in_order(workloads: list[str]) -> Check:
    """Each workload has started, none before its predecessor in the list."""

    def check(view: View) -> Outcome:
        happened = starts(view)
        firsts = [next(iter(of_workload(happened, name)), None) for name in workloads]
        order = [first.seq for first in firsts if first is not None]
        ok = len(order) == len(workloads) and order == sorted(order)
        started = {first.seq: name for name, first in zip(workloads, firsts, strict=True) if first is not None}
        seen = ", ".join(started[seq] for seq in sorted(started)) or "none has started"
        about = tuple(Ref(Kind.POD, first.pod, view.history.namespace) for first in firsts if first is not None)
        broken = order != [first.seq for first in firsts[: len(order)] if first is not None] or order != sorted(order)
        return Outcome(ok, f"they start in this order: {', '.join(workloads)}", seen, about, _hopeless_if(broken))

    return check


def evicted_exactly(pods: list[str]) -> Check:
    """Exactly these pods were evicted so far, once each."""

    def check(view: View) -> Outcome:
        happened = evictions(view)
        seen = sorted(eviction.pod for eviction in happened)
        expected = _expected_of(pods)
        more = Counter(seen) - Counter(pods)
        already = _evictions(len(seen)) if more else ""
        return Outcome(
            seen == sorted(pods), expected, _evicted(seen), _refs(view, happened), _hopeless_if(bool(more)), already
        )

    return check


def evicted_count(number: int) -> Check:
    """Exactly `number` pods were evicted so far, no pod name twice."""

    def check(view: View) -> Outcome:
        happened = evictions(view)
        twice = len(happened) > len({eviction.pod for eviction in happened})
        more = len(happened) > number or twice
        already = _evictions(len(happened)) if more else ""
        ok, seen = len(happened) == number and not twice, _evicted([eviction.pod for eviction in happened])
        expected = f"exactly {_evictions(number)}{' of different pods' if number > 1 else ''}"
        return Outcome(ok, expected, seen, _refs(view, happened), _hopeless_if(more), already)

    return check


def exactly_of(number: int, workloads: list[str], claim: str, holds: Iterable[bool]) -> Outcome:
    """Check that a claim, such as `lose a pod`, holds for exactly `number` of the workloads."""
    true = [name for name, ok in zip(workloads, holds, strict=True) if ok]
    seen = f"{len(true)}: {', '.join(true)}" if true else "none"
    expected = f"exactly {number} of {', '.join(workloads)} {claim}"
    many = len(true) > number
    already = f"{len(true)} of them {claim}" if many else ""
    return Outcome(not many and len(true) == number, expected, seen, hopeless=_hopeless_if(many), already=already)


def _expected_of(pods: Iterable[str]) -> str:
    """Describe expected evictions: `exactly 1 eviction: a-0`, or `no eviction`."""
    names = sorted(pods)
    return f"exactly {_evictions(len(names))}: {', '.join(names)}" if names else "no eviction"


def _evicted(pods: Sequence[str]) -> str:
    """Describe evictions in the given order: `2 evictions: a-0, a-1`."""
    return f"{_evictions(len(pods))}: {', '.join(pods)}" if pods else "no eviction"


def _evictions(number: int) -> str:
    return f"{number} eviction{'' if number == 1 else 's'}"


def _hopeless_if(broken: bool) -> float | None:
    """Return `hopeless` for a condition on past events: 0 if it is violated, because the past does not change."""
    return 0.0 if broken else None


def _first(view: View, holds: Callable[[Version], bool]) -> list[Happened]:
    found: dict[str, Happened] = {}
    for version in _pods(view):
        if version.uid not in found and holds(version):
            found[version.uid] = Happened(version.ref.name, version.uid, version.seq, version.at, version.object)
    return list(found.values())


def _pods(view: View) -> Iterator[Version]:
    return (version for version in view.versions(Kind.POD) if version.change != "gone")


def _refs(view: View, happened: Iterable[Happened]) -> tuple[Ref, ...]:
    return tuple(dict.fromkeys(view.history.ref(Kind.POD, event.pod) for event in happened))
