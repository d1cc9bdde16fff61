"""Find the states from which an incident follows, and reduce the first one that shows it again.

1. A state file, and a recording of our scheduler, lead to one state, or to one for each finding of a monitor.
2. The recording of a cluster leads to several, because a decision is written over seconds. The state of another
   scheduler is expressed in the terms of scenarios (`foreign`).
3. What a monitor found in the recording of a cluster, and no decision of the model repeats, is reduced as it was acted
   (`acted`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from ...scheduler.policy.loader import load_policy, plain_text
from ...virtual.state import State, read_state, require_ours
from ...virtual.state.over_time import segments_over_time, state_over_time
from ..recorder.judge import HOPELESS, PING_PONG, Finding
from . import acted, of_recording
from .foreign import decider_of, expressed
from .reduce import (
    BROKEN,
    EVICTED,
    WAITS,
    IncidentError,
    Reduced,
    ReductionInput,
    SilentError,
    parse_because,
    reduce_state,
)

OF_RECORDINGS = (PING_PONG, HOPELESS)
"""Rules of `judge` that no scenario is judged by."""
_MAX_MOMENTS = 10
"""Maximum number of states, or of findings of a monitor, that are tried, in order."""


def reduce_incident(path: Path, because: str, policy: str, known: ReductionInput) -> Reduced:
    """Reduce an incident in a state file or a recording.

    `because`: `pod NAMESPACE/NAME was evicted`, `job NAMESPACE/NAME waits`, `monitor NAME` or `policy FILE`. `policy`:
    the text of the policy in force; empty: the policy of the state. Raises StateError, IncidentError, PolicyError.
    """
    name, kind = parse_because(because)
    if segments_over_time(path):
        return _reduce_recorded(path, because, policy, known)
    if kind == BROKEN and of_recording.is_recording(path):
        silent = f"{because}: the monitor finds nothing in {path}\n  do next: name a recording of that time"
        states = (
            of_recording.state_before(path, of_recording.at_moment(moment)) for moment in known.moments(path, name)
        )
        return _reduce_first(path, ((state, because) for state in states), policy, known, silent=silent)
    decides = of_recording.evicts(name) if kind == EVICTED else None
    return _reduce_at(path, of_recording.state_before(path, decides), because, policy, known)


def _reduce_recorded(path: Path, because: str, policy: str, known: ReductionInput) -> Reduced:
    """Reduce an incident in the recording of a cluster."""
    name, kind = parse_because(because)
    silent = f"{because}: nothing of it is in {path}\n  do next: `schedspec judge {path}`"
    if kind != BROKEN:
        states = _recorded_states(path, name, kind)
        return _reduce_first(path, ((state, because) for state in states), policy, known, silent=silent)
    if name == PING_PONG and known.is_live:
        raise IncidentError(
            f"{because}: no scenario is judged by this rule\n"
            "  do next: leave out --scheduler, or name one of the evictions: 'pod NAMESPACE/NAME was evicted'"
        )
    found = of_recording.findings(path, name, policy)[:_MAX_MOMENTS]
    played = [] if name == PING_PONG else found  # no scenario is judged by that rule
    moments = (_moment_of(path, finding, name, because) for finding in played)
    try:
        return _reduce_first(path, moments, policy, known, silent=silent)
    except SilentError:
        if known.is_live or name == HOPELESS or not found:
            raise
    return _reduce_acts(path, found, policy, known)


def _moment_of(path: Path, finding: Finding, name: str, because: str) -> tuple[State, str]:
    """Return the state from which a finding may follow, and what to show again in it."""
    if name == HOPELESS:
        return state_over_time(path, finding.at), f"job {finding.job or finding.about} waits"
    return of_recording.state_before_finding(path, finding), because


def _reduce_acts(path: Path, found: Iterable[Finding], policy: str, known: ReductionInput) -> Reduced:
    problem: IncidentError | None = None
    for finding in found:
        try:
            return acted.reduce_acts(path, finding, policy, known)
        except IncidentError as error:
            problem = error
    assert problem is not None
    raise problem


def _recorded_states(path: Path, name: str, kind: str) -> Iterator[State]:
    """Yield the states of a cluster's recording from which an incident may follow."""
    if kind == EVICTED:
        yield from of_recording.states_before_evictions(path, name)
        return
    yield read_state(path, with_kueue=True)
    if kind == WAITS:
        yield from of_recording.states_while_waiting(path, name)


def _reduce_first(
    path: Path, moments: Iterable[tuple[State, str]], policy: str, known: ReductionInput, *, silent: str
) -> Reduced:
    """Reduce an incident in a recording, from the first state that shows it again; `silent`: there was no state."""
    problem = SilentError(silent)
    for state, because in islice(moments, _MAX_MOMENTS):
        try:
            return _reduce_at(path, state, because, policy, known)
        except SilentError as error:
            problem = error
            if known.is_over():
                break
    raise problem


def _reduce_at(path: Path, given: State, because: str, policy: str, known: ReductionInput) -> Reduced:
    """Reduce an incident in a state, once as it is, and once with the pods that terminate as if they were running."""
    state, stands_for = expressed(given)
    require_ours(state)
    text = policy or known.policies.get(stands_for, "") or (state.policy.text if state.policy is not None else "")
    if not text:
        raise IncidentError(f"{path}: the state names no policy\n  do next: name the one in force with --policy")
    load_policy(text, "policy" if policy else str(path))
    try:
        found = reduce_state(state, because, plain_text(text), known)
    except SilentError:
        if known.is_live:  # there, all pods that terminate are submitted anyway
            raise
        found = reduce_state(state, because, plain_text(text), known, undo_evictions=True)
    if not known.is_live:
        found.stands_in_for = decider_of(given)
    return found
