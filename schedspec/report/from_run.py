"""Make the record of a scenario that has ended.

A record contains nothing of other scenarios. It keeps the cluster-scoped objects (queues, nodes, priority classes) that
existed at the first sentence or were created later, and the namespaced objects of the scenario's own namespace.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from ..api.clock import monotonic
from ..api.errors import Unmet
from ..api.kinds import GANGS, SERVED, Kind, Ref
from ..monitors import Rules, Violation
from ..monitors.amounts import Amounts
from ..monitors.ledger import Ledger
from ..monitors.limits import card_quota
from ..monitors.reading import in_order, read
from ..observe.history import History, Object, Version
from ..scenario.run import ScenarioRun, SentenceRun
from . import course, record
from .failure import RECORDING
from .objects import QueueIndex, parsed, plain, quantities, state_of, unit_of

_AT_ONCE = 0.001
"""Seconds within which changes of one queue are one moment."""


def queue_moments(
    ledger: Ledger, versions: Iterable[Version], clock: Callable[[float], float]
) -> list[record.QueueMoment]:
    """Feed an empty ledger with a history, and return the queues' numbers at every change.

    `clock` converts a history's time to the record's.
    """
    found, now, known = _QueueHistory(), 0.0, dict[str, Amounts]()
    for version in in_order(versions):
        ledger.counts_binds = version.change != "was"  # how it came about was not observed
        read(ledger, version)
        name = version.ref.name
        changed = [queue for queue in found.queues if known.get(queue) is not ledger.sums.below.get(queue)]
        if version.ref.kind == Kind.QUEUE:
            found.queues[name] = version.object
            if version.change == "gone":
                del found.queues[name]
            changed = [name, *changed]
        if changed:
            now = max(now, clock(version.at))
        for queue in changed:
            found.note(queue, now, ledger.below(queue))
        known = {queue: ledger.below(queue) for queue in found.queues} if changed else known
    return found.moments


@dataclass(slots=True)
class _QueueHistory:
    """The moments at which what a queue holds, or the queue's object, has changed."""

    queues: dict[str, Object] = field(default_factory=dict)
    moments: list[record.QueueMoment] = field(default_factory=list)
    _last: dict[str, int] = field(default_factory=dict)

    def note(self, name: str, now: float, held: Amounts) -> None:
        """Record the queue's numbers if they have changed; simultaneous changes are one moment."""
        if name not in self.queues:
            return
        moment, index = _queue_moment(now, name, held, self.queues[name]), self._last.get(name)
        if index is not None:
            before = self.moments[index]
            if msgspec.structs.replace(moment, at=before.at) == before:
                return
            if now - before.at < _AT_ONCE:
                self.moments[index] = msgspec.structs.replace(moment, at=before.at)
                return
        self._last[name] = len(self.moments)
        self.moments.append(moment)


def _queue_moment(at: float, name: str, held: Amounts, queue: Object) -> record.QueueMoment:
    spec, status = queue.get("spec") or {}, queue.get("status") or {}
    share, kept = status.get("deserved") or spec.get("deserved"), (spec.get("guarantee") or {}).get("resource")
    deserved, capability, guarantee = (parsed(part) for part in (share, spec.get("capability"), kept))
    cards, parent = {model: plain(amount) for model, amount in card_quota(queue).items()}, str(spec.get("parent") or "")
    return record.QueueMoment(at, name, quantities(held), deserved, capability, guarantee, cards, parent)


_WHOLE = 600
"""A record with more pod versions than this keeps no whole pods."""


def make_record(
    running: ScenarioRun, findings: Sequence[Violation] = (), off: Sequence[str] = ()
) -> record.ScenarioRecord:
    """Return the record of a scenario that has ended. Without a cluster it has the failure but no objects."""
    history = running.history
    zero = history.began if history is not None else running.began
    ended = running.ended or monotonic()
    cleanup = running.cleanup_began or ended

    def clock(at: float) -> float:
        return round(max(0.0, at - zero), 4)

    versions = list(own(history)) if history is not None else []
    shown = observed(versions, Rules(running.policy), clock, cleanup)
    recording = running.folder / RECORDING
    return record.ScenarioRecord(
        feature=running.feature,
        feature_file=running.feature_file,
        rule=running.rule,
        scenario=running.name,
        example=running.example,
        node_id=running.item.nodeid,
        line=running.line,
        tags=running.tags,
        namespace=history.namespace if history is not None else "",
        cluster=_cluster(running),
        scheduler=_scheduler(running),
        policy=running.policy,
        policy_sha256=record.digest(running.policy),
        policy_name=running.policy_name,
        began=running.began_wall + zero - running.began,
        seconds=clock(cleanup),
        boot_seconds=round(running.boot_seconds, 4),
        cleanup=record.Span(clock(cleanup), round(ended - cleanup, 4)) if history is not None else None,
        verdict=running.verdict,
        failure=_failure(running),
        known=running.known,
        sentences=list(_sentences(running, clock, cleanup)),
        units=shown.units,
        objects=shown.objects,
        queues=shown.queues,
        acts=shown.acts,
        evicted=shown.evicted,
        reasons=shown.reasons,
        findings=[
            record.Judgement(clock(finding.time), finding.monitor, finding.about, finding.text) for finding in findings
        ],
        monitors_off=list(off),
        logs=running.logs,
        recording=os.path.relpath(recording) if recording.is_dir() else "",
    )


class ObservedRecord(NamedTuple):
    """The part of a record that follows from the versions of objects."""

    units: dict[str, str]
    objects: list[record.Story]
    queues: list[record.QueueMoment]
    acts: list[record.ActMoment]
    evicted: record.EvictedAmounts
    reasons: list[record.Reason]


def observed(
    versions: Sequence[Version],
    rules: Rules,
    clock: course.Clock,
    cleanup: float,
    explained: Callable[[record.ActMoment], record.ActMoment] | None = None,
) -> ObservedRecord:
    """Return what versions show, by the rules of the policy in force.

    `clock`: converts a time of a version to the record's. `cleanup`: later versions show no decision of the scheduler.
    `explained`: gives each act its preemptor, instead of the events, which tenants of a recorded cluster may forge.
    """
    lived = [version for version in versions if version.at < cleanup]
    queues, ledger = QueueIndex(versions), Ledger(rules)
    recorded = course.ActMonitor(ledger, rules)
    ledger.attach(recorded)
    stories = _stories(versions, queues, clock, cleanup)
    numbers = queue_moments(ledger, lived, clock)
    acts = course.acts_of(recorded.acts, lived if explained is None else (), queues, clock)
    if explained is not None:
        acts = [*map(explained, acts)]
    evicted = course.evicted_of(acts, lived)
    return ObservedRecord(_units(stories), stories, numbers, acts, evicted, _reasons(stories))


def own(history: History) -> Iterator[Version]:
    """Yield the versions that belong to this scenario, in the order of their arrival."""
    everything = history.since(0)
    opened = history.opened or history.began
    deleted = set()
    for version in everything:
        if version.at > opened:
            break
        if version.change == "gone":
            deleted.add((version.ref, version.uid))
    uids: set[str] = set()
    for version in everything:
        ref = version.ref
        if ref.kind == Kind.EVENT:
            about = version.object.get("involvedObject") or {}
            mine = ref.namespace == history.namespace or (about.get("uid") in uids and version.change != "was")
        elif SERVED[ref.kind].namespaced:
            mine = ref.namespace == history.namespace
        else:
            mine = (ref, version.uid) not in deleted
            uids.add(version.uid)
        if mine:
            yield version


def _stories(
    versions: Sequence[Version], queues: QueueIndex, clock: course.Clock, cleanup: float
) -> list[record.Story]:
    keeps_whole = sum(version.ref.kind == Kind.POD for version in versions) <= _WHOLE
    by_ref: dict[Ref, list[record.Moment]] = {}
    for version in versions:
        moments = by_ref.setdefault(version.ref, [])
        state, over = state_of(version.ref.kind, version.object, queues), version.at >= cleanup
        last = moments[-1] if moments else None
        if version.change == "changed" and last and (last.uid, last.state, last.cleanup) == (version.uid, state, over):
            continue
        whole = version.object if keeps_whole and version.ref.kind == Kind.POD and not over else {}
        moments.append(record.Moment(clock(version.at), version.change, version.uid, state, whole, over))
    return [record.Story(ref.kind, ref.name, moments, ref.namespace) for ref, moments in by_ref.items()]


def _sentences(running: ScenarioRun, clock: course.Clock, cleanup: float) -> Iterator[record.Sentence]:
    """Yield the sentences that ran, then the sentences that did not."""
    planned = running.planned
    for number, sentence in enumerate(running.sentences):
        plan = planned[number] if number < len(planned) else sentence
        ended = sentence.ended or cleanup
        verdict = sentence.verdict or "skipped"
        yield _sentence(plan, clock(sentence.began), round(ended - sentence.began, 4), verdict)
    for plan in planned[len(running.sentences) :]:
        yield _sentence(plan, 0.0, 0.0, "skipped")


def _sentence(sentence: SentenceRun, began: float, seconds: float, verdict: str) -> record.Sentence:
    times = began, seconds, verdict
    under = sentence.background, sentence.table, sentence.doc
    return record.Sentence(sentence.keyword.strip(), sentence.text, sentence.line, *times, *under)


def _failure(running: ScenarioRun) -> record.Failure | None:
    problem = running.problem
    if problem is None:
        return record.Failure("\n".join(running.findings)) if running.findings else None
    if isinstance(problem, Unmet):
        return record.Failure(str(problem), problem.expected, problem.seen, problem.waited)
    return record.Failure(str(problem) or type(problem).__name__)


def _units(stories: Sequence[record.Story]) -> dict[str, str]:
    found = {
        name
        for story in stories
        if story.kind in (Kind.POD, Kind.NODE)
        for moment in story.moments
        for name in {**moment.state.get("requests", {}), **moment.state.get("allocatable", {})}
    }
    return {name: unit_of(name) for name in sorted(found)}


def _reasons(stories: Sequence[record.Story]) -> list[record.Reason]:
    """Return the published reasons of waiting pods and PodGroups. An unchanged text is not repeated."""
    found: list[record.Reason] = []
    data = _published_data(stories)
    for story in stories:
        previous = ""
        for moment in story.moments:
            text = str(moment.state.get("waits", ""))
            if text and text != previous and story.kind in (Kind.POD, *GANGS) and not moment.cleanup:
                found.append(record.Reason(moment.at, story.kind, story.name, text, data.get(text, [])))
            previous = text
    return sorted(found, key=lambda reason: reason.at)


def _published_data(stories: Sequence[record.Story]) -> dict[str, list[dict[str, Any]]]:
    """Return the reasons in the annotation of each event, by the event's message; skip unreadable annotations."""
    found: dict[str, list[dict[str, Any]]] = {}
    for story in stories:
        for moment in story.moments if story.kind == Kind.EVENT else ():
            text = moment.state.get("annotations", {}).get("schedspec.dev/waits")
            if text:
                with suppress(msgspec.MsgspecError):
                    found[str(moment.state.get("message"))] = msgspec.json.decode(text, type=list[dict[str, Any]])
    return found


def _cluster(running: ScenarioRun) -> record.Software:
    session, facts = running.session, running.facts
    if session is None or facts is None:  # the scheduler did not start
        return record.Software("none")
    return record.Software(session.cluster.kind, facts.server_version, list(facts.made_of))


def _scheduler(running: ScenarioRun) -> record.Software:
    name, version = running.scheduler
    if not version:  # unknown, or not queried because the scheduler was already running
        name = _binding_component(running.history) or name
    return record.Software(name or "unknown", version)


def _binding_component(history: History | None) -> str:
    """Return the component whose events report scheduled pods."""
    for version in history.versions(Kind.EVENT) if history is not None else ():
        if version.object.get("reason") == "Scheduled":
            source = version.object.get("source") or {}
            return str(source.get("component") or version.object.get("reportingComponent") or "")
    return ""
