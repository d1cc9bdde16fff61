"""Questions about what has happened, answered from versions alone. Pure; each looks no further than its view."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ..api.kinds import Kind, Ref
from . import view as views
from .expect import Check, Outcome
from .history import Object, Version, View


class Happened(NamedTuple):
    """Something that came to pass with one pod."""

    pod: str
    uid: str
    seq: int
    at: float
    object: Object


def evictions(view: View) -> list[Happened]:
    """The pods that a scheduler marked as its victims, each once, in the order of the marks."""
    return _first(view, lambda version: views.eviction(version.object) is not None)


def starts(view: View) -> list[Happened]:
    """The pods that became Running, each once, in that order. A successor of the same name counts anew."""
    return _first(view, lambda version: views.phase(version.object) == "Running")


def binds(view: View) -> list[Happened]:
    """The pods that got a node, each once, in that order."""
    return _first(view, lambda version: bool(version.object["spec"].get("nodeName")))


def of_workload(happened: Iterable[Happened], workload: str) -> list[Happened]:
    """Those that happened to pods of one workload, or to the pod of that name."""
    return [it for it in happened if workload in (views.workload_of(it.object), it.pod)]


def workload(happened: Happened) -> str:
    """The workload that it happened to a pod of."""
    return views.workload_of(happened.object)


def phases(view: View, kind: Kind, name: str) -> list[str]:
    """The phases that an object went through, each as often as it was entered."""
    found: list[str] = []
    for version in view.versions(kind, name):
        phase = views.phase(version.object)
        if phase and (not found or found[-1] != phase):
            found.append(phase)
    return found


def evicted_before(first: str, others: list[str]) -> Check:
    """The first eviction of one workload comes before every eviction of the others, and has come."""

    def check(view: View) -> Outcome:
        told = evictions(view)
        mine = of_workload(told, first)
        theirs = [it for other in others for it in of_workload(told, other)]
        ok = bool(mine) and all(mine[0].seq < it.seq for it in theirs)
        seen = ", ".join(it.pod for it in told) or "nothing was evicted"
        expected = f"{first} is evicted before {', '.join(others)}"
        return Outcome(ok, expected, f"in this order: {seen}", _refs(view, told), _never(bool(theirs) and not ok))

    return check


def start_in_order(workloads: list[str]) -> Check:
    """Each workload has started, and none before the one that stands before it."""

    def check(view: View) -> Outcome:
        told = starts(view)
        firsts = [next(iter(of_workload(told, it)), None) for it in workloads]
        order = [it.seq for it in firsts if it is not None]
        ok = len(order) == len(workloads) and order == sorted(order)
        started = {it.seq: name for name, it in zip(workloads, firsts, strict=True) if it is not None}
        seen = ", ".join(started[seq] for seq in sorted(started)) or "none has started"
        about = tuple(Ref(Kind.POD, it.pod, view.history.namespace) for it in firsts if it is not None)
        broken = order != [it.seq for it in firsts[: len(order)] if it is not None] or order != sorted(order)
        return Outcome(ok, f"they start in this order: {', '.join(workloads)}", seen, about, _never(broken))

    return check


def evicted_exactly(pods: list[str]) -> Check:
    """Exactly these pods were evicted so far, once each."""

    def check(view: View) -> Outcome:
        told = evictions(view)
        seen = sorted(it.pod for it in told)
        expected = f"evicted are exactly {', '.join(sorted(pods)) or 'none'}, once each"
        text, more = ", ".join(seen) or "nothing was evicted", Counter(seen) - Counter(pods)
        return Outcome(seen == sorted(pods), expected, text, _refs(view, told), _never(bool(more)))

    return check


def evicted_count(number: int) -> Check:
    """So many pods were evicted so far, no name twice."""

    def check(view: View) -> Outcome:
        told = evictions(view)
        twice = len(told) > len({it.pod for it in told})
        seen = ", ".join(it.pod for it in told) or "nothing was evicted"
        expected, more = f"exactly {number} evictions, of {number} pods", len(told) > number or twice
        return Outcome(len(told) == number and not twice, expected, seen, _refs(view, told), _never(more))

    return check


def exactly_of(number: int, workloads: list[str], happened: str, check_one: Iterable[bool]) -> Outcome:
    """To how many of several workloads something has happened, as an outcome."""
    true = [name for name, ok in zip(workloads, check_one, strict=True) if ok]
    seen = f"{len(true)}: {', '.join(true)}" if true else "none"
    expected = f"exactly {number} of {', '.join(workloads)} {happened}"
    return Outcome(len(true) == number, expected, seen, hopeless=_never(len(true) > number))


def _never(broken: bool) -> float | None:
    """What has happened cannot be undone: where that is broken already, no wait mends it."""
    return 0.0 if broken else None


def _first(view: View, holds: Callable[[Version], bool]) -> list[Happened]:
    found: dict[str, Happened] = {}
    for version in _pods(view):
        if version.uid not in found and holds(version):
            found[version.uid] = Happened(version.ref.name, version.uid, version.seq, version.at, version.object)
    return list(found.values())


def _pods(view: View) -> Iterator[Version]:
    return (it for it in view.versions(Kind.POD) if it.change != "gone")


def _refs(view: View, told: Iterable[Happened]) -> tuple[Ref, ...]:
    return tuple(dict.fromkeys(view.history.ref(Kind.POD, it.pod) for it in told))
