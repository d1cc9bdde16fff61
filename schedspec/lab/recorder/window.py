"""The record of a span of a recording, for the page of scenarios: who ran where, who waited, who was evicted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from ...api.errors import HarnessError
from ...api.kinds import Kind, Ref
from ...monitors import Rules
from ...observe.history import Change, Object, Version
from ...report.from_run import observed
from ...report.record import ActMoment, Failure, Judgement, ScenarioRecord, Software, digest
from ...scheduler.inputs import Gap
from ...scheduler.model.times import timestamp
from ...schedulers import Adapter
from ...schedulers.own import Own
from ...virtual.state.over_time import inputs_over_time, shown
from .evictions import Eviction
from .judge import SETTLED, Finding, Judge
from .versions import VersionReader

MOST = 100_000
"""Maximum number of versions of a page: a browser draws no more within seconds."""
_BEFORE = 600.0
"""Seconds before the span that are read as well."""


class TooLongError(HarnessError):
    """A span of time with more versions than a page can show."""


class WindowReader:
    """Keeps the versions between two times; first, as `was`, what lived when the span began. Raises TooLongError."""

    def __init__(self, since: float, until: float) -> None:
        self._since, self._until = since, until
        self.versions: list[Version] = []
        self.policy = ""
        self.adapter: Adapter = Own()
        self.gaps: list[Gap] = []
        self._live: dict[Ref, Object] = {}
        self._has_begun = False

    def restart(self, at: float, adapter: Adapter, policy: str, live: Mapping[Ref, Object], gap: Gap | None) -> None:
        """Continue with the objects that live at a time. When the differences happened is unknown."""
        self.policy, self.adapter = policy, adapter
        if gap is not None and gap.until >= self._since:
            self.gaps.append(gap)
        if at >= self._since and (self._has_begun or self._live):
            self._begin()
            for ref, obj in [*self._live.items()]:
                if ref not in live:
                    self._add(at, "gone", ref, obj)
            for ref, obj in live.items():
                known = self._live.get(ref)
                if known is None or known["metadata"]["resourceVersion"] != obj["metadata"]["resourceVersion"]:
                    self._add(at, "changed" if known else "added", ref, obj)
        self._live = dict(live)

    def read(self, version: Version) -> None:
        """Keep a version, if it lies in the span."""
        if version.at >= self._since:
            self._begin()
            self._add(version.at, version.change, version.ref, version.object)
        if version.change == "gone":
            self._live.pop(version.ref, None)
        elif version.ref.kind != Kind.EVENT:
            self._live[version.ref] = version.object

    def pass_time(self, at: float) -> None:
        """Begin the span once its time has come."""
        if at >= self._since:
            self._begin()

    def _begin(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            for ref, obj in self._live.items():
                self._add(self._since, "was", ref, obj)

    def _add(self, at: float, change: Change, ref: Ref, obj: Object) -> None:
        if len(self.versions) >= MOST:
            raise TooLongError(
                f"from {timestamp(self._since)} to {timestamp(self._until)} there are more than {MOST:,} versions\n"
                f"  do next: name a shorter span; {timestamp(at)} is the last time that fits"
            )
        self.versions.append(Version(len(self.versions) + 1, at, at, change, ref, obj))


def record_of(folder: Path, since: float, until: float) -> ScenarioRecord:
    """Return the record of a span of a recording. Raises StateError or TooLongError."""
    window, found, evictions = WindowReader(since, until), list[Finding](), dict[str, Eviction]()
    VersionReader(window).read_all(inputs_over_time(folder, since, until))
    judge = Judge(found.append, since=since, evicted=lambda one: evictions.update({one.uid: one}))
    VersionReader(judge).read_all(inputs_over_time(folder, since - _BEFORE, until + SETTLED))
    judge.end(until + SETTLED)
    found = sorted((one for one in found if one.at <= until), key=lambda one: one.at)
    rules = Rules(window.policy)

    def clock(at: float) -> float:
        return round(max(0.0, at - since), 3)

    seen = observed(window.versions, rules, clock, float("inf"), _explained_by(evictions))
    lines = [one.line for one in found] + [f"not seen: {shown(gap)}" for gap in window.gaps]
    return ScenarioRecord(
        feature=f"Recording {folder.name}",
        feature_file="",
        scenario=f"From {timestamp(since)} to {timestamp(until)}",
        node_id=str(folder),
        line=0,
        cluster=Software("existing"),
        scheduler=Software(window.adapter.name),
        policy=window.policy,
        policy_sha256=digest(window.policy),
        began=since,
        seconds=clock(until),
        verdict="failed" if found else "passed",
        failure=Failure("\n".join(lines)) if lines else None,
        units=seen.units,
        objects=seen.objects,
        queues=seen.queues,
        acts=seen.acts,
        evicted=seen.evicted,
        reasons=seen.reasons,
        findings=[Judgement(clock(one.at), one.monitor, one.about, one.text) for one in found],
        monitors_off=[*window.adapter.monitors_off],
    )


def _explained_by(evictions: Mapping[str, Eviction]) -> Callable[[ActMoment], ActMoment]:
    """Return a function that gives an eviction its preemptor, by the uid of the victim, as `who` names it."""

    def explained(act: ActMoment) -> ActMoment:
        found = evictions.get(act.uid) if act.act == "evict" else None
        if found is None:
            return act
        return msgspec.structs.replace(
            act,
            preemptor=found.preemptor.rpartition("/")[2],
            preemptor_uid=found.preemptor_uid,
            preemptor_queue=found.preemptor_queue,
            inferred=found.is_inferred or found.is_claim,
            evidence=" ".join(filter(None, (found.evidence, found.contradiction))),
        )

    return explained
