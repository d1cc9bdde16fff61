"""Find every eviction of a recording with its preemptor (`preemptors`), and describe evictions in words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ...api.kinds import Kind, Ref
from ...monitors import Ledger, Rules, lives
from ...monitors.reading import key_of, read
from ...observe import view
from ...observe.history import Object, Version
from ...report import course
from ...report.objects import QueueIndex
from ...scheduler.inputs import Gap
from ...scheduler.model.printable import one_line
from ...scheduler.model.times import timestamp
from ...scheduler.reasons.text import count
from ...schedulers import Adapter
from .preemptors import NEXT, PreemptorLog, forget_old

AT_ONCE = 2.0
"""Seconds within which evictions for one preemptor count as one decision."""
_UID = re.compile(r"UID: ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_LONGEST_CHAIN = 5


class Eviction(msgspec.Struct, frozen=True, omit_defaults=True):
    at: float
    time: str
    pod: str
    uid: str
    node: str
    job: str
    """The PodGroup or Workload of the pod; the pod itself if it has none."""
    queue: str
    message: str
    action: str = ""
    preemptor: str = ""
    """The pod, or the job, for which the victim was evicted; empty if it is unknown."""
    preemptor_job: str = ""
    preemptor_queue: str = ""
    preemptor_uid: str = ""
    """Uid of the preemptor's pod, if it is known."""
    is_inferred: bool = False
    is_claim: bool = False
    """Whether only an event names the preemptor, which others than the scheduler can write."""
    evidence: str = ""
    """How the preemptor is known; empty if the victim's condition names it."""
    contradiction: str = ""
    """The claims of events about the preemptor that do not hold, in a sentence."""


class EvictionLog:
    """Follows a ledger, and passes on every eviction once its preemptor is known, or cannot be."""

    def __init__(self, found: Callable[[Eviction], None]) -> None:
        self._found = found
        self._done = 0
        """Number of the acts whose evictions were passed on."""
        self._gone: dict[str, tuple[float, str]] = {}
        """Uid of a deleted PodGroup or Workload → time and key, the oldest first."""
        self.begin(Ledger(Rules("")), {})

    def begin(self, ledger: Ledger, live: Mapping[Ref, Object]) -> None:
        self._ledger, self._queues, self._done = ledger, QueueIndex(()), 0
        for ref, obj in live.items():
            self._queues.see(ref, obj)
        self._acts, self._preemptors = course.ActMonitor(ledger, ledger.rules), PreemptorLog(ledger)
        ledger.attach(self._acts)
        ledger.attach(self._preemptors)
        for ref, obj in live.items():
            if ref.kind == Kind.POD:
                self._preemptors.note_pod(-float("inf"), obj)

    def note(self, version: Version) -> None:
        """Note a version before the ledger processes it."""
        if version.ref.kind == Kind.EVENT:
            self._preemptors.note_event(version.at, version.object)
            return
        self._queues.see(version.ref, version.object)
        if version.ref.kind == Kind.POD:
            self._preemptors.note_pod(version.at, version.object)
        if version.change == "gone" and version.ref.kind in view.QUEUED:
            self._gone[str(version.object["metadata"].get("uid"))] = version.at, key_of(version.object)
            forget_old(self._gone, version.at)

    def pass_time(self, at: float) -> None:
        """Pass on the evictions that are old enough, and forget older acts."""
        acts = self._acts.acts
        if not acts or at - acts[0].at < 2 * NEXT:
            return
        self._pass_on(at - NEXT)
        self._preemptors.forget(at)
        last = next((number for number, act in enumerate(acts) if act.at >= at - NEXT), len(acts))
        del acts[:last]
        self._done -= last

    def end(self) -> None:
        self._pass_on(float("inf"))

    def _pass_on(self, until: float) -> None:
        acts, first = self._acts.acts, self._done
        self._done = next((number for number, act in enumerate(acts) if act.at >= until), len(acts))
        if not any(act.eviction is not None for act in acts[first : self._done]):
            return
        told = course.acts_of(acts, (), self._queues, lambda at: at)
        for number in range(first, self._done):
            if acts[number].eviction is not None:
                self._found(self._eviction(acts[number], told[number], acts))

    def _eviction(self, act: course.Act, told: Any, acts: Sequence[course.Act]) -> Eviction:
        pod, why = act.pod, act.eviction
        assert why is not None
        bound = next((it.pod for it in acts if it.uid == told.preemptor_uid and it.eviction is None), None)
        found = self._preemptors.preemptor(act, self._named(why), bound)
        known = self._ledger.jobs.get(found.job)
        queue = known.queue if known is not None else ""
        return Eviction(
            at=round(act.at, 3),
            time=timestamp(act.at),
            pod=key_of(pod),
            uid=act.uid,
            node=act.node,
            job=f"{pod['metadata'].get('namespace', '')}/{told.group}" if told.group else key_of(pod),
            queue=told.queue,
            message=why.message,
            action=why.action,
            preemptor=found.name,
            preemptor_job=found.job,
            preemptor_queue=queue or (told.preemptor_queue if found.uid == told.preemptor_uid else ""),
            preemptor_uid=found.uid,
            is_inferred=found.is_inferred,
            is_claim=found.is_claim,
            evidence=found.evidence,
            contradiction=found.contradiction,
        )

    def _named(self, eviction: lives.Eviction) -> str:
        """Return the job that the condition of a victim names; empty if it names none."""
        if eviction.preemptors:
            return eviction.preemptors[0]
        named = _UID.search(eviction.message)
        for key, job in self._ledger.jobs.items() if named else ():
            if any(group["metadata"].get("uid") == named[1] for group in job.groups.values()):  # type: ignore[index]
                return key
        # a job may be over before its victims are explained
        return self._gone[named[1]][1] if named and named[1] in self._gone else ""


class EvictionReader:
    """Reads versions, and passes on every eviction."""

    def __init__(self, found: Callable[[Eviction], None]) -> None:
        self._evictions = EvictionLog(found)
        self._ledger = Ledger(Rules(""))
        self.gaps: list[Gap] = []

    def restart(self, at: float, adapter: Adapter, policy: str, live: Mapping[Ref, Object], gap: Gap | None) -> None:
        del adapter
        self._evictions.end()
        if gap is not None:
            self.gaps.append(gap)
        self._ledger = begun_ledger(at, policy, live)
        self._evictions.begin(self._ledger, live)

    def read(self, version: Version) -> None:
        self._evictions.note(version)
        if version.ref.kind != Kind.EVENT:
            read(self._ledger, version)

    def pass_time(self, at: float) -> None:
        self._evictions.pass_time(at)

    def end(self) -> None:
        self._evictions.end()


def begun_ledger(at: float, policy: str, live: Mapping[Ref, Object]) -> Ledger:
    """Return a ledger that has the objects which live at a time. No monitor is notified of how they came about."""
    ledger = Ledger(Rules(policy))
    for ref, obj in sorted(live.items(), key=lambda pair: pair[0].kind == Kind.POD):
        read(ledger, Version(0, at, at, "was", ref, obj))
    ledger.advance(at + 0.001)
    return ledger


# ------------------------------------------------------------------------------------------------------------- in words


def about(pod: str, evictions: Sequence[Eviction]) -> str:
    """Return a paragraph about the last eviction of a pod or job (`NAMESPACE/NAME`); empty if it was not evicted."""
    own = [one for one in evictions if pod in (one.pod, one.job)]
    if not own:
        return ""
    last = own[-1]
    beside = [
        one for one in evictions
        if one.preemptor_job == last.preemptor_job and abs(one.at - last.at) <= AT_ONCE and one.pod != last.pod
    ] if last.preemptor else []  # fmt: skip
    sentences = [_sentence(last, len(beside))]
    if len(own) > 1:
        sentences.append(f"It was evicted {len(own)} times, first at {own[0].time}.")
    sentences += _chain(last, evictions)
    if last.preemptor_job:
        sentences.append(_pair(last.job, last.preemptor_job, evictions))
    return one_line(" ".join(sentences))


def between(evictions: Sequence[Eviction], since: float, until: float) -> list[str]:
    """Return a line for each pair of jobs of which one was evicted for the other within a span of time."""
    pairs: dict[tuple[str, str], list[Eviction]] = {}
    for one in evictions:
        if since <= one.at <= until:
            pairs.setdefault((one.preemptor_job, one.job), []).append(one)
    lines = []
    for (preemptor, _), found in pairs.items():
        first = found[0]
        who = f"{first.preemptor_job}{_of(first.preemptor_queue)}" if preemptor else "an unknown preemptor"
        inferred = _marked(found) if preemptor else ""
        back = sum(one.job == preemptor and one.preemptor_job == first.job for one in evictions) if preemptor else 0
        also = f"; in return, {count(back, 'pod')} the other way round" if back else ""
        lines.append(
            f"{first.time} {count(len(found), 'pod')} of {first.job}{_of(first.queue)} for {who}{inferred}{also}"
        )
    return [*map(one_line, lines)]


def _marked(found: Sequence[Eviction]) -> str:
    """Return how the preemptor of some evictions is known, unless the scheduler names it."""
    if all(one.is_claim for one in found):
        return ", only named by an event"
    return ", inferred" if all(one.is_inferred or one.is_claim for one in found) else ""


def _of(queue: str) -> str:
    return f" (queue {queue})" if queue else ""


def _sentence(last: Eviction, beside: int) -> str:
    where = f" on {last.node}" if last.node else ""
    together = f", together with {count(beside, 'pod')}" if beside else ""
    said = f' The scheduler said: "{last.message}".' if last.message else " The scheduler published no reason."
    wrong = f" {last.contradiction}" if last.contradiction else ""
    if not last.preemptor:
        return (
            f"{last.pod}{_of(last.queue)} was evicted{where} at {last.time}{together}; for whom is unknown: within "
            f"{NEXT:.0f} s no pod of another group was nominated for its node or bound there.{said}{wrong}"
        )
    by = f" by {last.action}" if last.action else ""
    whom = f"{last.preemptor}{_of(last.preemptor_queue)}"
    how = f" ({last.evidence})" if last.evidence else ""
    return f"{last.pod}{_of(last.queue)} was evicted{where} at {last.time}{by} for {whom}{how}{together}.{said}{wrong}"


def _chain(last: Eviction, evictions: Sequence[Eviction]) -> list[str]:
    """Return who had made room for the victim before, and who was evicted for the preemptor's successor after."""
    before, one = list[Eviction](), last
    while len(before) < _LONGEST_CHAIN:
        earlier = [each for each in evictions if each.at < one.at and each.preemptor_job == one.job]
        if not earlier:
            break
        one = earlier[-1]
        before.append(one)
    found = []
    if before:
        steps = ", ".join(f"{each.job} at {each.time} for {each.preemptor_job}" for each in before)
        found.append(f"Before, others had made room for {last.job}: {steps}.")
    after = next((each for each in evictions if each.at > last.at and each.job == last.preemptor_job), None)
    if after is not None and last.preemptor_job:
        found.append(f"Later {after.job} was evicted itself, at {after.time} for {after.preemptor_job or 'unknown'}.")
    return found


def _pair(victim: str, preemptor: str, evictions: Sequence[Eviction]) -> str:
    lost = sum(one.job == victim and one.preemptor_job == preemptor for one in evictions)
    won = sum(one.job == preemptor and one.preemptor_job == victim for one in evictions)
    lost_pods, won_pods = (count(number, "pod") for number in (lost, won))
    return f"In this recording, {victim} lost {lost_pods} to {preemptor}, and {preemptor} lost {won_pods} to {victim}."
