"""Judge one case in virtual time: the monitors of scenarios, and the general promises."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from ...monitors import Rules, Violation
from ...monitors.evictions.repeated import RepeatedMonitor
from ...monitors.ledger import BURST
from ...scheduler.model.errors import BadInputError
from ...virtual.outcomes import Evicted
from ..reduce import written
from ..reduce.case import Case, UseStep
from ..reduce.play import NOT_PLAYED, PAUSE, START, play
from ..simulate.monitored import MonitoredRun
from .promises import Worlds, broken_promises, error_of
from .reach import reach_of

_NEED = {"needless-eviction: preempt", "needless-eviction: reclaim"}
"""Signatures that do not count if no object shows what an eviction is needed for (`_hides_needs`)."""

Events = list[tuple[float, object]]
"""The inputs of the core and the outcomes of a play, each with its time."""


@dataclass(frozen=True, slots=True)
class CaseFinding:
    """A monitor or promise that a case breaks."""

    name: str
    """The signature: monitor or promise, and the type of the reason."""
    text: str
    case: Case
    """The world that shows the finding: the case itself, or a variant that is played beside it."""
    drawn: Case
    thens: tuple[str, ...] = ()
    """Sentences that would hold if nothing were broken."""
    by: str = ""
    """The scheduler and its version, on a cluster."""


@dataclass(slots=True)
class CaseJudgement:
    findings: list[CaseFinding] = field(default_factory=list)
    reached: frozenset[str] = frozenset()
    unjudged: str = ""
    """Why the case was not judged; empty if it was."""


def judge(case: Case, worlds: Worlds | None = None) -> CaseJudgement:
    """Play a case; return its findings and the situations that it reaches.

    `worlds`: the variants that are played beside the case; by default all.
    """
    events: Events = []
    try:
        story = play(case, listener=lambda at, given: events.append((at, given)))
        promises = [*broken_promises(case, story, worlds or Worlds())]  # plays variants of the case
    except BadInputError:  # a reduction cut the policy down too far
        raise
    except Exception as problem:  # noqa: BLE001 - whatever it is, the explored scheduler raised it
        story, promises = NOT_PLAYED, [error_of(case, problem)]
    findings = [*_monitored(case, events)]
    findings += (CaseFinding(promise.name, promise.text, promise.case, case, promise.thens) for promise in promises)
    return CaseJudgement(_once(findings), reach_of(case, story))


def _once(findings: list[CaseFinding]) -> list[CaseFinding]:
    return list({finding.name: finding for finding in reversed(findings)}.values())[::-1]


def _monitored(case: Case, events: Events) -> Iterator[CaseFinding]:
    """Judge each span of time by the policy that was in force in it."""
    spans = [(-math.inf, case.policy)]
    spans += [(START + PAUSE * at, step.text) for at, step in enumerate(case.steps, 1) if isinstance(step, UseStep)]
    for (since, policy), (until, _) in pairwise([*spans, (math.inf, "")]):
        rules = _rules(policy)
        monitors = MonitoredRun(rules, burst=BURST)
        for at, given in events:
            monitors.observe(at, given)
        for violation in monitors.close():
            name = f"{violation.monitor}: {'bind' if violation.is_bind else violation.action or 'bind'}"
            if name in _NEED and _hides_needs(rules):
                continue
            if violation.monitor == RepeatedMonitor.NAME and not _was_evicted_since(events, violation, since):
                continue
            if since <= violation.time < until:
                thens = written.thens_of_monitor(name, violation.about.rpartition("/")[2].partition("-task-")[0], case)
                yield CaseFinding(name, f"{violation.about}: {violation.text}", case, case, tuple(thens))


def _hides_needs(rules: Rules) -> bool:
    """Whether no object shows what an eviction is needed for: a share by weight, or capacity that `sla` holds.

    Under proportion a queue deserves less until its evicted pods are created again, and meanwhile preempts although
    capacity is idle. Under `sla` a job may not use idle capacity that an older job holds. If its victim is older still,
    the victim comes back on that capacity.
    """
    return rules.queue_plugin == "proportion" or rules.is_enabled("sla", "enableJobPipelined")


def _was_evicted_since(events: Events, violation: Violation, since: float) -> bool:
    """Whether the pod was evicted before, after the policy in force was put into force at `since`.

    A new policy is a new cause: it may let the preemptor claim capacity for more of its pods.
    """
    before = (given for at, given in events if isinstance(given, Evicted) and since <= at < violation.time)
    return any(given.pod.rpartition("/")[2] == violation.about for given in before)


@lru_cache(4096)
def _rules(policy: str) -> Rules:
    return Rules(policy)


def monitors(case: Case) -> set[str]:
    """Return the signatures of the violations that monitors find in a case."""
    return {finding.name for finding in found_by_monitors(case)}


def found_by_monitors(case: Case) -> list[CaseFinding]:
    events: Events = []
    play(case, listener=lambda at, given: events.append((at, given)))
    return _once([*_monitored(case, events)])
