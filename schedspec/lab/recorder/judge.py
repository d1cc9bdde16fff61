"""Judge a recording by the monitors of its scheduler, as a stream: memory grows with what lives, not with time.

1. The ledger begins with the objects that live at a checkpoint, without judging how they came about.
2. Each later version is an act, or a change of an object, as in a scenario. A finding is reported when it is certain.
3. After a gap the ledger begins anew. What was open shortly before the gap is not judged: its end was not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import msgspec

from ...api.kinds import Kind, Ref
from ...checks import unplaceable
from ...monitors import Ledger, Rules, Violation, judged
from ...monitors.reading import key_of, read
from ...observe import view
from ...observe.history import Object, Version
from ...scheduler.inputs import Gap
from ...scheduler.model.printable import one_line
from ...scheduler.model.times import seconds, timestamp
from ...schedulers import Adapter
from .evictions import Eviction, EvictionLog, begun_ledger

SETTLED = 60.0
"""Seconds after which an act counts as over, although the monitor that watches it has not seen its end."""
PING_PONG = "ping-pong"
"""Name of the rule about two jobs that are evicted for each other in turn."""
BACK_AND_FORTH = 3600.0
"""Seconds within which such turns belong together."""
_TURNS = 3
"""Number of turns from which on they are a finding: a queue may get its share back once."""
HOPELESS = "hopeless-wait"
"""Name of the rule about pods that wait for what no node has."""
WAITED = 120.0
"""Seconds for which a pod waits before a request that no node meets is a finding: a node may be on its way."""
_EVERY = 15.0


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """A violation that a monitor found in a recording."""

    at: float
    """Seconds since 1970."""
    time: str
    """The same, in UTC."""
    monitor: str
    about: str
    """The pod or the PodGroup, with its namespace if that is known."""
    text: str
    job: str = ""
    queue: str = ""
    action: str = ""
    reason: str = ""

    @property
    def line(self) -> str:
        """The finding in one line, whatever a tenant wrote into its objects."""
        queue = f" (queue {self.queue})" if self.queue else ""
        return one_line(f"{self.time} {self.monitor}: {self.about}{queue}: {self.text}")


class Judge:
    """Judges the versions that it reads. `found` receives each finding, once.

    Args:
        off: Names of monitors to skip, beside those whose rule does not hold for the scheduler.
        since: Findings about acts before this time are not reported.
        evicted: Receives each eviction, with its preemptor.
    """

    def __init__(
        self,
        found: Callable[[Finding], None],
        off: Collection[str] = (),
        since: float = -float("inf"),
        evicted: Callable[[Eviction], None] = lambda _: None,
    ) -> None:
        self._found, self._off, self._since, self._evicted = found, off, since, evicted
        self._ledger = Ledger(Rules(""))
        self._waits, self._pairs = _Waits(), _PingPongMonitor()
        self._evictions = EvictionLog(self._on_eviction)
        self.adapter: Adapter | None = None
        self.policy = ""
        self.versions = 0
        self.gaps: list[Gap] = []

    def restart(self, at: float, adapter: Adapter, policy: str, live: Mapping[Ref, Object], gap: Gap | None) -> None:
        self.end(gap.since if gap is not None else at)
        if gap is not None:
            self.gaps.append(gap)
        self.adapter, self.policy = adapter, policy
        self._ledger = judged(begun_ledger(at, policy, live), [*self._off, *adapter.monitors_off])
        self._evictions.begin(self._ledger, live)

    def read(self, version: Version) -> None:
        self._evictions.note(version)
        if version.ref.kind != Kind.EVENT:
            self.versions += version.at >= self._since
            read(self._ledger, version)
            self._report()

    def pass_time(self, at: float) -> None:
        """Look at the pods that wait, and at evictions whose preemptor is known meanwhile."""
        if at > self._ledger.at:
            self._ledger.advance(at)
            self._report()
        self._evictions.pass_time(at)
        if HOPELESS not in self._off and at >= self._since:
            for pod, text in self._waits.hopeless(self._ledger, at):
                self._tell(Violation(HOPELESS, at, key_of(pod), text, job=_job_of(self._ledger, pod)), key_of(pod))

    def end(self, at: float) -> None:
        """Report what the monitors decide at the end of what can be read, if it was over before."""
        self._evictions.end()
        self._ledger.close()
        self._report(until=at - SETTLED)

    def _on_eviction(self, eviction: Eviction) -> None:
        self._evicted(eviction)
        if PING_PONG not in self._off and (text := self._pairs.text_about(eviction)):
            found = Violation(PING_PONG, eviction.at, eviction.pod, text, job=eviction.job, action=eviction.action)
            self._tell(found, eviction.pod)

    def _report(self, until: float = float("inf")) -> None:
        found = self._ledger.found
        for violation in found:
            if violation.time <= until:
                self._tell(violation, violation.pod or violation.about)
        found.clear()

    def _tell(self, found: Violation, about: str) -> None:
        if found.time < self._since:
            return
        job = self._ledger.jobs.get(found.job)
        queue, moment = job.queue if job is not None else "", timestamp(found.time)
        act = found.job, queue, found.action, found.reason
        self._found(Finding(round(found.time, 3), moment, found.monitor, about, found.text, *act))


class _PingPongMonitor:
    """Pairs of jobs of which each was evicted for the other. The last evictions of each pair are kept."""

    def __init__(self) -> None:
        self._turns: dict[frozenset[str], list[Eviction]] = {}
        """Pair → its evictions in turn: each victim is the preemptor of the one before. The oldest pair first."""

    def text_about(self, eviction: Eviction) -> str:
        """Return what is wrong with an eviction that takes back, again, what was taken back; else nothing."""
        if not eviction.preemptor_job or eviction.preemptor_job == eviction.job or eviction.is_claim:
            return ""
        pair = frozenset((eviction.job, eviction.preemptor_job))
        turns = [one for one in self._turns.pop(pair, []) if eviction.at - one.at <= BACK_AND_FORTH]
        if not turns or turns[-1].job != eviction.job:
            turns.append(eviction)
        self._turns[pair] = turns
        while eviction.at - next(iter(self._turns.values()))[-1].at > BACK_AND_FORTH:
            del self._turns[next(iter(self._turns))]
        if len(turns) < _TURNS or turns[-1] is not eviction:
            return ""
        inferred = " (inferred)" if any(one.is_inferred for one in turns) else ""
        seconds_since = eviction.at - turns[0].at
        return (
            f"evicted for {eviction.preemptor_job}{inferred}, as in {len(turns)} turns within {seconds_since:.0f} s in "
            "which one of the two was evicted for the other"
        )


class _Waits:
    """The pods that wait for what no node has. Each is reported once."""

    def __init__(self) -> None:
        self._looked = -float("inf")
        self._reported: dict[str, str] = {}
        """Key of a pod → its uid."""

    def hopeless(self, ledger: Ledger, at: float) -> Iterable[tuple[Object, str]]:
        """Return the pods that have waited long for what no node has, with what that is."""
        if at - self._looked < _EVERY or not ledger.nodes:
            return []
        self._looked = at
        self._reported = {key: uid for key, uid in self._reported.items() if key in ledger.pods}
        offered = unplaceable.offered(ledger.nodes.values())
        found = []
        for pod in (pod for job in ledger.jobs.values() for pod in job.waiting.values()):
            source: Any = pod.source
            if self._reported.get(pod.key) == pod.uid or not view.waits(source) or view.is_gated(source):
                continue
            if at - seconds(source["metadata"].get("creationTimestamp")) < WAITED:
                continue
            if text := ", ".join(_unmet(ledger, pod.requests, source["spec"], offered)):
                self._reported[pod.key] = pod.uid
                found.append((source, f"waits for what no node has: {text}"))
        return found


def _unmet(
    ledger: Ledger, requests: Mapping[str, Any], spec: dict[str, Any], offered: unplaceable.Offered
) -> Iterable[str]:
    yield from unplaceable.unmet_requests(spec, offered)
    for name in sorted(requests.keys() & offered[1]):
        most = max((has.get(name, 0) for has in ledger.has.values()), default=0)
        if requests[name] > most:
            yield f"{requests[name]:f} {name}, of which the largest node has {most:f}"


def _job_of(ledger: Ledger, pod: Object) -> str:
    found = ledger.pods.get(key_of(pod))
    return found.job.key if found is not None else ""
