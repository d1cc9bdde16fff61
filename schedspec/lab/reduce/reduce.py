"""Reduce an incident in a state to the smallest case that shows the same incident.

1. The state becomes a case, and the case is played: the signature describes what happens to the subject.
2. Objects, fields, policy and amounts are removed while the signature stays; running work keeps its nodes.
3. Steps that submit the remaining work, as sentences do, replace running work, and the case is reduced again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...scheduler.model.errors import BadInputError
from ...scheduler.policy.loader import load_policy, plain_text, read_policy
from ...virtual.state import State
from . import of_recording, signature
from .case import Case, map_work
from .feature import describe, title_of
from .of_state import check_queues, make_case
from .play import play
from .shrink import OutOfBudgetError, Tester, merge_steps, remove_objects, variants
from .simplify import (
    fill_empty_nodes,
    old_names,
    renamed,
    simplify_amounts,
    simplify_fields,
    simplify_names,
    simplify_policy,
)

EVICTED, WAITS, BROKEN, DIFFERS = "was evicted", "waits", "monitor", "policy"
_WHAT = "'pod NAMESPACE/NAME was evicted', 'job NAMESPACE/NAME waits', 'monitor NAME' or 'policy FILE'"


class IncidentError(BadInputError):
    """An incident that cannot be reduced: what is wrong, and what to do next."""


class SilentError(IncidentError):
    """The incident does not happen again when the state is played."""


@dataclass(slots=True)
class Reduced:
    """The smallest case that was found."""

    case: Case
    signature: signature.Signature
    before: int
    policy_name: str = ""
    """The policy of `templates/policies` that shows the incident; empty: `case.policy` is cut down."""
    left_out: list[str] = field(default_factory=list)
    """Parts of the state that no sentence can express."""
    tried: int = 0
    notes: list[str] = field(default_factory=list)
    stands_in_for: str = ""
    """The scheduler of the incident, in whose place our model decides; empty if none is replaced."""
    acted: str = ""
    """What `judge` finds in the recorded acts, which our model does not repeat; empty if it does."""
    names_in_state: dict[str, str] = field(default_factory=dict)
    """Names in the state of the jobs and queues of the case, by new name; a job is named `namespace/name`."""

    @property
    def title(self) -> str:
        return title_of(self.signature)


@dataclass(frozen=True, slots=True)
class ReductionInput:
    policies: Mapping[str, str]
    """Policies that a sentence can name, the simplest first."""
    is_over: Callable[[], bool]
    judge: Callable[[Case], set[str]] = lambda _: set()
    """Returns what monitors find in a case: the monitor and the action, such as `protection: reclaim`."""
    moments: Callable[[Path, str], Iterable[of_recording.Moment]] = lambda _path, _monitor: ()
    """Yields the cycles of a recording that broke a monitor."""
    shows: Callable[[Case, signature.Signature], bool] = signature.shows
    """Whether a case shows an incident. By default it is played in virtual time with our scheduler."""

    @property
    def is_live(self) -> bool:
        """Whether cases are played on a cluster, where no work runs before it is submitted."""
        return self.shows is not signature.shows


def reduce_state(
    state: State, because: str, policy: str, known: ReductionInput, *, undo_evictions: bool = False
) -> Reduced:
    """Reduce an incident that follows from a state.

    `undo_evictions`: whether pods that terminate count as running; a victim that is to be evicted always does.

    Raises:
        IncidentError: the state does not contain the incident or lead to it.
        PolicyError: the policy cannot be read.
    """
    name, kind = parse_because(because)
    if known.is_live:
        return _reduce_live(state, because, policy, known)
    marked = state.objects["Pod"].get(name)
    is_marked = kind == EVICTED and marked is not None and marked.metadata.deletion_timestamp is not None
    case, left_out, of_pod = make_case(state, policy, undo_evictions=undo_evictions or is_marked)
    check_queues(case, state.source)
    wanted: signature.Signature
    if kind == BROKEN:
        case, wanted = _broken([case, make_case(state, policy, undo_evictions=True)[0]], because, name, known)
    elif kind == DIFFERS:
        case, wanted = _difference(case, because, _policy_at(Path(name)))
    else:
        case = replace(case, subject=_subject(state, name, kind, of_pod))
        case, wanted = _signature(case, because, kind)
    found = reduce_case(case, wanted, known)
    found.left_out, found.names_in_state = left_out, names_in_state(found.names_in_state, state, of_pod)
    if isinstance(wanted, signature.DifferentFate):
        found.notes.append(f"{describe(wanted.fate)}; under the other policy: {describe(wanted.other)}")
    return found


def _reduce_live(state: State, because: str, policy: str, known: ReductionInput) -> Reduced:
    """Reduce what another scheduler did. Its reasons are unknown: a case shows only an eviction, a wait or a breach."""
    name, kind = parse_because(because)
    if kind == DIFFERS:
        raise IncidentError(f"{because}: policies are compared with our scheduler\n  do next: leave out --scheduler")
    case, left_out, of_pod = make_case(state, policy, undo_evictions=True)
    check_queues(case, state.source)
    wanted: signature.Signature = signature.Broken(name, known.judge)
    if kind != BROKEN:
        case = replace(case, subject=_subject(state, name, kind, of_pod))
        wanted = (
            signature.WaitingFate(frozenset())
            if kind == WAITS
            else signature.EvictedFate("", within_queue=False, whole_gang=False)
        )
    found = reduce_part(case, wanted, known)
    found.left_out, found.names_in_state = left_out, names_in_state(found.names_in_state, state, of_pod)
    return found


def reduce_part(case: Case, wanted: signature.Signature, known: ReductionInput) -> Reduced:
    """Reduce the first part of a case that shows an incident: the jobs that compete for one resource, or else all.

    A load of many jobs seldom happens again as it did, and each attempt costs a run.
    """
    parts = [
        map_work(case, {job.name: None for job in case.jobs if name not in dict(job.requests)})
        for name in sorted({name for job in case.jobs for name, _ in job.requests})
    ]
    parts = sorted((part for part in parts if part.jobs != case.jobs), key=lambda part: (_is_idle(part), part.size))
    for part in parts:
        if not case.subject or case.subject in {job.name for job in part.jobs}:
            with suppress(IncidentError):
                found = reduce_case(part, wanted, known)
                found.before = case.size
                return found
    return reduce_case(case, wanted, known)


def _is_idle(case: Case) -> bool:
    """Whether no job of a case waits beside one that runs."""
    return not (any(job.nodes for job in case.jobs) and any(len(job.nodes) < job.pods for job in case.jobs))


def names_in_state(found: Mapping[str, str], state: State, of_pod: Mapping[str, str]) -> dict[str, str]:
    """Return new name → name in the state; `found`: new name → name in the case.

    `make_case` has numbered the jobs, but not renamed the queues.
    """
    jobs = {of_pod[pod.metadata.key]: key for key, pods in state.of_job().items() for pod in pods}
    return {new: jobs.get(old, old) for new, old in found.items()}


def parse_because(because: str) -> tuple[str, str]:
    """Return the object, monitor or file that an incident names, and what happened to it."""
    words = because.split()
    if len(words) == 4 and words[0] == "pod" and " ".join(words[2:]) == EVICTED:
        return words[1], EVICTED
    if len(words) == 3 and words[0] == "job" and words[2] == WAITS:
        return words[1], WAITS
    if len(words) == 2 and words[0] in (BROKEN, DIFFERS):
        return words[1], words[0]
    raise IncidentError(f"--because {because!r} names no incident\n  do next: write {_WHAT}")


def _subject(state: State, name: str, kind: str, of_pod: Mapping[str, str]) -> str:
    if name in of_pod:
        return of_pod[name]
    if kind == EVICTED:
        raise IncidentError(
            f"{state.source}: no pod {name} that belongs to a PodGroup\n"
            "  do next: name a pod of the state as NAMESPACE/NAME; if the pod was deleted, reduce a recording"
        )
    groups = state.objects["PodGroup"]
    jobs = [key for key in groups if name in (key, _owner(groups[key]))]
    pods = state.of_job().get(jobs[0]) if len(jobs) == 1 else None
    if not pods:
        raise IncidentError(
            f"{state.source}: jobs that match {name}: {len(jobs)}; exactly one job with pods is required\n"
            "  do next: name one PodGroup or Job of the state as NAMESPACE/NAME"
        )
    return of_pod[pods[0].metadata.key]


def _owner(group: object) -> str:
    meta = group.metadata  # type: ignore[attr-defined]
    return next((f"{meta.namespace}/{owner.name}" for owner in meta.owner_references or ()), "")


def _broken(cases: list[Case], because: str, name: str, known: ReductionInput) -> tuple[Case, signature.Broken]:
    """Return the first case in which the monitor finds something, and its first finding."""
    for case in cases:
        if found := sorted(broken for broken in known.judge(case) if broken.partition(":")[0] == name):
            return case, signature.Broken(found[0], known.judge)
    raise SilentError(
        f"{because}: the monitor finds nothing when our scheduler decides on the state and nothing ends\n"
        "  do next: name the policy that was in force with --policy, or dump the state before it happened"
    )


def _policy_at(path: Path) -> str:
    text = read_policy(path)
    load_policy(text, str(path))
    return plain_text(text)


def _difference(case: Case, because: str, policy: str) -> tuple[Case, signature.Signature]:
    """Return the case, its subject being the first job whose fate the other policy changes, and both fates."""
    found = signature.of_difference(case, policy)
    if found is None:
        raise IncidentError(
            f"{because}: both policies decide every job of the state alike when nothing ends\n"
            "  do next: compare the policies over a load: schedspec plan --load"
        )
    job, wanted = found
    return replace(case, subject=job), wanted


def _signature(case: Case, because: str, kind: str) -> tuple[Case, signature.Signature]:
    """Return the case, with its preemptor if the subject is evicted, and what happens to the subject."""
    if kind == WAITS:
        if (waits := signature.of_wait(play(case), case, case.subject)) is not None:
            return case, waits
    else:
        story = play(case, stop=lambda eviction: eviction.job == case.subject)
        evicted = next((eviction for eviction in story.evictions if eviction.job == case.subject), None)
        if evicted is not None:
            return replace(case, preemptor=signature.preemptor_of(evicted)), signature.of_eviction(evicted)
    what = "does not wait" if kind == WAITS else "is not evicted"
    raise SilentError(
        f"{because}: it {what} when our scheduler decides on the state and nothing ends\n"
        "  do next: name the policy that was in force with --policy, or reduce a recording of that time"
    )


def reduce_case(case: Case, wanted: signature.Signature, known: ReductionInput) -> Reduced:
    """Reduce a case that shows an incident. Raises IncidentError if no sentences show the incident."""
    found = Reduced(case, wanted, case.size)
    tester = Tester(lambda candidate: known.shows(candidate, wanted), case, known.is_over)
    named, policies = case, known.policies
    if known.is_live and (name := next((name for name, text in policies.items() if text == case.policy), "")):
        policies = {name: case.policy}  # other policies cost a run each, and a sentence can name this one
    try:
        if case.work:
            if not known.is_live:
                _shrink(tester, policies)
            steps = _submitted(tester, wanted, known)
            if steps is None:
                raise SilentError(
                    f"the smallest case ({tester.best.size} objects) does not show it once its work is submitted\n"
                    "  do next: report this state; no feature was written"
                )
            tester.best = steps
            merge_steps(tester)
        _shrink(tester, policies)
        merge_steps(tester)
        fill_empty_nodes(tester)
        named = tester.best
        simplify_names(tester)
    except OutOfBudgetError:
        if tester.best.work:  # nothing was submitted yet: the smallest case whose work can be
            steps = _submitted(tester, wanted, known)
            if steps is None:
                raise IncidentError(
                    f"the budget is used up; the smallest case has {tester.best.size} objects, and none of the cases "
                    "shows it once its work is submitted\n  do next: allow more time with --minutes"
                ) from None
            tester.best = steps
        found.notes.append("the budget was used up: this may not be the smallest case")
        named = tester.best
        tester.best = renamed(named)  # no sentence contains names of the state
    found.case, found.tried = tester.best, tester.tried
    found.names_in_state = old_names(named, found.case)
    found.policy_name = next((name for name, text in known.policies.items() if text == found.case.policy), "")
    return found


def _submitted(tester: Tester, wanted: signature.Signature, known: ReductionInput) -> Case | None:
    """Return the first case (from the smallest, in growing strides) that shows the incident with its work in steps."""
    back = 1
    while back <= len(tester.found):
        case = tester.found[-back]
        if (steps := next((variant for variant in variants(case) if known.shows(variant, wanted)), None)) is not None:
            return steps
        back = back + max(back // 4, 1)
    return None


def _shrink(tester: Tester, policies: Mapping[str, str]) -> None:
    """Reduce in the fixed order until nothing changes."""
    while True:
        before = tester.best
        remove_objects(tester)
        simplify_fields(tester)
        simplify_policy(tester, policies)
        simplify_amounts(tester)
        if tester.best == before:
            return
