"""The record of one scenario: everything that a report or a picture of it needs, as one JSON document.

The one rule: whoever draws a page draws it from this document and from nothing else; so what is not here cannot be
shown. ``python -m schedspec.report.record`` prints the schema, ``docs/report.md`` explains it. Times are
seconds since the scenario began.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ..api.kinds import Kind
from ..monitors import Violation
from ..monitors.ledger import Ledger, group_of
from ..monitors.queues import usage
from ..monitors.rules import Rules
from ..observe import view
from ..observe.history import History, Object, Version
from ..observe.view import eviction


class Sentence(msgspec.Struct, frozen=True):
    """One step of the scenario, as written, and how it went."""

    keyword: str
    text: str
    line: int
    began: float
    seconds: float
    verdict: str
    """``passed``, ``failed`` or ``skipped``."""


class Moment(msgspec.Struct, frozen=True):
    """One version of an object, reduced to what people look at; :func:`state_of` says what that is."""

    at: float
    change: str
    uid: str
    state: dict[str, Any]


class Story(msgspec.Struct, frozen=True):
    """One object's versions, oldest first. A successor of the same name is in the same story, with another uid."""

    kind: str
    name: str
    namespace: str
    moments: list[Moment]


class QueueMoment(msgspec.Struct, frozen=True):
    """What a queue held (from the pods) and said (from its object) at a time; quantities as strings."""

    at: float
    queue: str
    held: dict[str, str]
    deserved: dict[str, Any]
    capability: dict[str, Any]
    guarantee: dict[str, Any]


class ActMoment(msgspec.Struct, frozen=True):
    """A bind or an eviction, with the scheduler's own words on an eviction."""

    at: float
    act: str
    pod: str
    node: str
    group: str
    message: str


class Reason(msgspec.Struct, frozen=True):
    """What the scheduler published about something that waits."""

    at: float
    kind: str
    name: str
    message: str


class Judgement(msgspec.Struct, frozen=True):
    """A monitor's finding."""

    at: float
    monitor: str
    about: str
    text: str


class ScenarioRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario, whole."""

    schema: int = 1
    feature: str
    feature_file: str
    scenario: str
    line: int
    tags: list[str]
    cluster: str
    policy: str
    policy_sha256: str
    began: float
    """Seconds since 1970."""
    seconds: float
    verdict: str
    failure: str
    sentences: list[Sentence]
    objects: list[Story]
    queues: list[QueueMoment]
    acts: list[ActMoment]
    reasons: list[Reason]
    findings: list[Judgement]
    monitors_off: list[str]


def stories(history: History) -> list[Story]:
    """The versions of every object, events included, as moments."""
    by_ref: dict[Any, list[Version]] = {}
    for version in history.since(0):
        by_ref.setdefault(version.ref, []).append(version)
    return [
        Story(ref.kind, ref.name, ref.namespace, [_moment(history, version) for version in versions])
        for ref, versions in by_ref.items()
    ]


def _moment(history: History, version: Version) -> Moment:
    state = state_of(version.ref.kind, version.object)
    return Moment(round(history.seconds(version.at), 4), version.change, version.uid, state)


def state_of(kind: Kind, obj: Object) -> dict[str, Any]:
    """What a reader wants to know of an object of this kind. Fields that are not set are left out."""
    spec, status, metadata = obj.get("spec") or {}, obj.get("status") or {}, obj["metadata"]
    match kind:
        case Kind.POD:
            state = {
                "phase": status.get("phase"),
                "node": spec.get("nodeName"),
                "group": group_of(obj),
                "nominated": status.get("nominatedNodeName"),
                "leaving": bool(metadata.get("deletionTimestamp")),
                "evicted": (eviction(obj) or {}).get("message"),
                "waits": message_of(obj, "PodScheduled"),
                "requests": [(c.get("resources") or {}).get("requests") for c in spec.get("containers", ())],
                "priority": spec.get("priorityClassName"),
            }
        case Kind.PODGROUP:
            state = {k: spec.get(k) for k in ("queue", "minMember", "priorityClassName")}
            state |= {"phase": status.get("phase"), "waits": message_of(obj, "Unschedulable", "True")}
        case Kind.GANG | Kind.GANG_ALPHA:
            gang = (spec.get("schedulingPolicy") or {}).get("gang") or {}
            state = {"minMember": gang.get("minCount"), "priorityClassName": spec.get("priorityClassName")}
            state |= {"disruptionMode": spec.get("disruptionMode"), "waits": view.reason(obj)}
        case Kind.VCJOB:
            state = {"queue": spec.get("queue"), "phase": (status.get("state") or {}).get("phase")}
        case Kind.QUEUE:
            state = {**spec, "state": status.get("state"), "allocated": status.get("allocated")}
        case Kind.NODE:
            state = {"allocatable": status.get("allocatable"), "unschedulable": spec.get("unschedulable")}
        case Kind.PYTORCHJOB | Kind.JOB | Kind.DEPLOYMENT:
            state = {"conditions": [c.get("type") for c in status.get("conditions") or () if c.get("status") == "True"]}
        case Kind.EVENT:
            about = obj.get("involvedObject") or {}
            state = {k: obj.get(k) for k in ("type", "reason", "message", "count")}
            state |= {"about": f"{about.get('kind')} {about.get('name')}"}
        case Kind.COMMAND:
            state = {"action": obj.get("action"), "target": (obj.get("target") or {}).get("name")}
        case Kind.PRIORITYCLASS:
            state = {"value": obj.get("value")}
    return {name: value for name, value in state.items() if value not in (None, "", [], {}, False)}


def message_of(obj: Object, condition: str, status: str = "False") -> str:
    """The message of a condition that has this status, or empty."""
    for item in (obj.get("status") or {}).get("conditions") or ():
        if item.get("type") == condition and item.get("status") == status:
            return str(item.get("message", ""))
    return ""


def queue_moments(history: History, rules: Rules) -> list[QueueMoment]:
    """The queues' numbers after every bind, eviction and change of a queue."""
    ledger = Ledger(history.since(0))
    positions = {act.position for act in ledger.acts}
    positions |= {
        n for n, seen in enumerate(ledger.versions) if seen.ref.kind in (Kind.QUEUE, Kind.POD) and seen.change == "gone"
    }
    positions |= {n for n, seen in enumerate(ledger.versions) if seen.ref.kind == Kind.QUEUE}
    found: list[QueueMoment] = []
    last: dict[str, QueueMoment] = {}
    for position in sorted(positions):
        at = round(history.seconds(ledger.versions[position].at), 4)
        for queue in ledger.all_at(position, Kind.QUEUE):
            name, spec = str(queue["metadata"]["name"]), queue.get("spec") or {}
            held = usage.held_below(ledger, position, name, rules)
            moment = QueueMoment(
                at,
                name,
                {k: f"{v.normalize():f}" for k, v in sorted(held.items())},
                (queue.get("status") or {}).get("deserved") or spec.get("deserved") or {},
                spec.get("capability") or {},
                (spec.get("guarantee") or {}).get("resource") or {},
            )
            if name not in last or msgspec.structs.replace(last[name], at=at) != moment:
                found.append(moment)
                last[name] = moment
    return found


def act_moments(history: History) -> list[ActMoment]:
    return [
        ActMoment(round(history.seconds(act.time), 4), act.kind, act.name, act.node, group_of(act.pod), act.message)
        for act in Ledger(history.since(0)).acts
    ]


def reasons(stories_: Sequence[Story]) -> list[Reason]:
    """What the scheduler published of waiting pods and PodGroups, each text once per object and change."""
    found: list[Reason] = []
    for story in stories_:
        said = ""
        for moment in story.moments:
            text = str(moment.state.get("waits", ""))
            if text and text != said and story.kind in (Kind.POD, Kind.PODGROUP):
                found.append(Reason(moment.at, story.kind, story.name, text))
            said = text
    return sorted(found, key=lambda reason: reason.at)


def judgements(history: History, findings: Iterable[Violation]) -> list[Judgement]:
    return [Judgement(round(history.seconds(f.time), 4), f.monitor, f.about, f.text) for f in findings]


def write(record: ScenarioRecord, directory: Path) -> Path:
    """Write the record into a file named after feature, line and scenario; give its path."""
    directory.mkdir(parents=True, exist_ok=True)
    stem = "".join(
        c if c.isalnum() else "-" for c in f"{Path(record.feature_file).stem}-{record.line}-{record.scenario}"
    )
    path = directory / f"{stem[:120]}.json"
    path.write_bytes(msgspec.json.encode(record))
    return path


if __name__ == "__main__":
    sys.stdout.buffer.write(
        msgspec.json.format(msgspec.json.encode(msgspec.json.schema(ScenarioRecord)), indent=2) + b"\n"
    )
