"""Reduce a finding of `judge` to the jobs, queues and nodes without which the recorded acts do not show it.

A scheduler's act may be one that our model never decides. Then the model cannot tell whether a smaller case shows the
incident, but `judge` can: it judges acts, whoever decided them.

1. The inputs shortly before the finding are read, after a checkpoint of what lived then: as few as show the finding.
2. Jobs, queues and nodes are left out of these inputs while `judge` still finds the same.
3. What is left becomes a case: the jobs that ran at the checkpoint run first, and then the others are submitted. The
   feature says what the scheduler must not do; it fails where the scheduler acts as recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from ...monitors import Rules
from ...monitors.rules import lineage
from ...observe import view
from ...scheduler.inputs import (
    Gap,
    Input,
    Noted,
    ObjectGone,
    ObjectSeen,
    PolicyLoaded,
    Started,
    Taken,
    Unnoted,
)
from ...scheduler.model.objects import Pod
from ...scheduler.policy.loader import plain_text
from ...virtual.state import State
from ...virtual.state.over_time import Timed, apply_to, inputs_over_time
from ...virtual.state.state import api_object
from ..recorder.judge import SETTLED, Finding, Judge
from ..recorder.versions import VersionReader
from .case import Case, SubmitStep
from .foreign import VOLCANO, expressed
from .of_state import make_case
from .play import play
from .reduce import IncidentError, Reduced, ReductionInput, names_in_state
from .shrink import variants
from .signature import Broken
from .simplify import old_names, renamed

_SPANS = (15.0, 60.0, 300.0, 1200.0, 3600.0)
"""Seconds before a finding that are read: the shortest span that shows it."""
_NAMED = ("PriorityClass", "ResourceFlavor", "LocalQueue", "WorkloadPriorityClass")
"""Kinds that other objects name, which stay as long as these."""
_QUEUES = ("Queue", "ClusterQueue", "Cohort")
Unit = tuple[str, str]
"""`job`, `queue` or `node`, and its key."""


def reduce_acts(path: Path, finding: Finding, policy: str, known: ReductionInput) -> Reduced:
    """Reduce a finding in the recording of a cluster. Raises IncidentError or StateError."""
    acts = _Acts(finding, policy)
    spans = (_inputs_before(path, finding.at, span) for span in _SPANS)
    inputs = next(filter(acts.show, spans), None)
    if inputs is None:
        raise IncidentError(
            f"{finding.line}\n  it is not found in the recording of the last {_SPANS[-1] / 60:.0f} minutes alone\n"
            "  do next: name another finding of the monitor, or a recording of that time"
        )
    units = _Units(inputs)
    queues, nodes = units.of("queue"), units.of("node")
    nodes = _smallest(
        nodes, lambda some: acts.show(units.only([*units.within(some), *queues, *some])), known.is_over
    )  # together with the jobs on them, so that free capacity stays the same
    jobs, others = units.within(nodes), [*queues, *nodes]
    jobs = _smallest(jobs, lambda some: acts.show(units.only([*some, *others])), known.is_over)
    used = units.used_by(jobs)
    others = _smallest(
        [unit for unit in others if unit not in used],
        lambda some: acts.show(units.only([*jobs, *used, *some])),
        known.is_over,
    )
    left = units.only([*jobs, *used, *others])
    found = _case_of(left, finding, _simplest(finding, left, policy, known), known)
    found.before, found.tried, found.stands_in_for = len(units.all), acts.tried, acts.scheduler
    return found


class _Acts:
    """Judges recorded acts by the rule of a finding."""

    def __init__(self, finding: Finding, policy: str) -> None:
        self._finding, self._policy = finding, policy
        self.tried = 0
        self.scheduler = VOLCANO

    def show(self, inputs: Iterable[Timed]) -> bool:
        """Whether the rule finds something about the same pod or job."""
        found: list[Finding] = []
        judge = Judge(found.append)
        VersionReader(judge, policy=self._policy or None).read_all(inputs)
        judge.end(float("inf"))
        self.tried += 1
        if judge.adapter is not None and self.tried == 1:
            self.scheduler = judge.adapter.name
        rule = self._finding.monitor, self._finding.about
        return any((one.monitor, one.about) == rule for one in found)


def _inputs_before(path: Path, at: float, span: float) -> list[Timed]:
    """Return the inputs from `span` seconds before a time on, after a checkpoint of what lived then."""
    since, head, later = at - span, dict[tuple[str, str], Input](), list[Timed]()
    begins: list[Input] = []
    for moment, given in inputs_over_time(path, since, at + SETTLED):
        match given:
            case _ if later or moment > since:
                later.append((moment, given))
            case Started():
                begins, head = [given], {}
            case PolicyLoaded():
                begins.append(given)
            case ObjectSeen() | Noted():
                head[_name_of(given)] = given
            case ObjectGone() | Unnoted():
                head.pop((given.kind, given.key), None)
            case Gap():
                head.clear()
    return [*((since, each) for each in (*begins, *head.values(), Taken(since))), *later]


def _name_of(given: ObjectSeen | Noted) -> tuple[str, str]:
    if isinstance(given, ObjectSeen):
        return given.kind, given.object.metadata.key
    meta = given.object["metadata"]
    return str(given.object["kind"]), f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else meta["name"]


class _Units:
    """The jobs, queues and nodes of inputs, and which input belongs to which of them."""

    def __init__(self, inputs: Sequence[Timed]) -> None:
        self._inputs = inputs
        self._of: dict[tuple[str, str], Unit] = {}
        found: dict[Unit, None] = {}
        for _, given in inputs:
            if isinstance(given, ObjectSeen | Noted) and (unit := self._unit(given)) is not None:
                self._of[_name_of(given)] = unit
                found[unit] = None
        self.all = tuple(found)

    def of(self, kind: str) -> list[Unit]:
        """Return the units of a kind."""
        return [unit for unit in self.all if unit[0] == kind]

    def within(self, nodes: Iterable[Unit]) -> list[Unit]:
        """Return the jobs that have no pod on another node."""
        known = {name for _, name in nodes}
        pods = (given.object for _, given in self._inputs if isinstance(given, ObjectSeen) and given.kind == "Pod")
        elsewhere = {job_of(pod) for pod in pods if pod.spec.node_name and pod.spec.node_name not in known}
        return [unit for unit in self.of("job") if unit[1] not in elsewhere]

    def used_by(self, jobs: Iterable[Unit]) -> set[Unit]:
        """Return the queues that jobs name, with those above, and the nodes of their pods."""
        names, used = {key for _, key in jobs}, set[Unit]()
        parents, local = dict[str, str](), dict[str, str]()
        for _, given in self._inputs:
            match given:
                case ObjectSeen(kind="Pod", object=pod) if job_of(pod) in names and pod.spec.node_name:
                    used.add(("node", pod.spec.node_name))
                case ObjectSeen(kind="PodGroup", object=group) if group.metadata.key in names:
                    used.add(("queue", group.spec.queue or "default"))
                case ObjectSeen(kind="Queue", object=queue):
                    parents[queue.metadata.name] = queue.spec.parent
                case Noted(object=obj) if obj["kind"] == "LocalQueue":
                    local[_name_of(given)[1]] = str(obj["spec"].get("clusterQueue", ""))
                case Noted(object=obj) if obj["kind"] == "Workload" and _name_of(given)[1] in names:
                    key = f"{obj['metadata']['namespace']}/{obj['spec'].get('queueName', '')}"
                    used.add(("queue", local.get(key, "")))
        above = {name for _, queue in used for name in lineage(queue, lambda name: parents.get(name, ""))}
        return {unit for unit in {*used, *(("queue", name) for name in above)} if unit in self.all}

    def only(self, kept: Iterable[Unit]) -> list[Timed]:
        """Return the inputs of some units, and those that belong to no unit and matter."""
        units = {*kept}
        return [(at, given) for at, given in self._inputs if self._is_kept(given, units)]

    def _is_kept(self, given: Input, units: set[Unit]) -> bool:
        match given:
            case ObjectSeen() | Noted():
                name = _name_of(given)
            case ObjectGone() | Unnoted():
                name = given.kind, given.key
            case _:
                return True
        return self._of[name] in units if name in self._of else name[0] in _NAMED

    def _unit(self, given: ObjectSeen | Noted) -> Unit | None:
        kind, key = _name_of(given)
        if kind in _QUEUES:
            return "queue", key
        if kind == "Node":
            return "node", key
        if isinstance(given, ObjectSeen) and kind == "Pod":
            return "job", job_of(given.object)
        if kind in ("PodGroup", "Workload"):
            return "job", key
        if kind == "Event" and isinstance(given, Noted):
            about = given.object.get("involvedObject") or {}
            return self._of.get((str(about.get("kind")), f"{about.get('namespace')}/{about.get('name')}"))
        return None


def job_of(pod: Pod) -> str:
    """Return the key of a pod's PodGroup or Workload, else of its owner, else of the pod."""
    group = view.group_of(api_object("Pod", pod))
    owner = next((it.name for it in pod.metadata.owner_references or () if it.controller), "")
    return f"{pod.metadata.namespace}/{group or owner or pod.metadata.name}"


def _smallest(units: Sequence[Unit], shows: Callable[[list[Unit]], bool], is_over: Callable[[], bool]) -> list[Unit]:
    """Return as few of the units as show the same, by leaving out halves, then quarters, down to single ones."""
    left, size = [*units], len(units)
    while size and not is_over():
        at = len(left)
        while at > 0 and not is_over():
            rest = [*left[: max(at - size, 0)], *left[at:]]
            if shows(rest):
                left = rest
            at -= size
        size //= 2
    return left


# ------------------------------------------------------------------------------------------------------------ the case


def _simplest(finding: Finding, inputs: Sequence[Timed], policy: str, known: ReductionInput) -> str:
    """Return the first known policy that has the action of a finding and under which the acts show it, or the given."""
    for text in known.policies.values():
        if finding.action in ("", *Rules(text).actions) and _Acts(finding, text).show(inputs):
            return text
    return policy


def _case_of(inputs: Sequence[Timed], finding: Finding, policy: str, known: ReductionInput) -> Reduced:
    """Return the case of what is left of the inputs."""
    given = _state_of(inputs)
    jobs = {pod.metadata.key: job_of(pod) for pod in given.objects["Pod"].values()}
    state, stands_for = expressed(given)
    text = known.policies.get(stands_for, "") or policy or (state.policy.text if state.policy is not None else "")
    case, left_out, of_pod = make_case(state, plain_text(text), undo_evictions=True)
    subjects = {finding.about, finding.job}
    about = (of_pod[pod] for pod, job in jobs.items() if pod in of_pod and subjects & {pod, job})
    case = replace(case, subject=next(about, ""))
    if not case.subject:
        raise IncidentError(
            f"{finding.line}\n  what it is about did not run and did not wait shortly before\n"
            "  do next: name another finding of the monitor"
        )
    submitted = _submitted(case)
    named = renamed(submitted)
    found = Reduced(named, Broken(finding.monitor, lambda _: set()), 0, left_out=left_out, acted=finding.text)
    found.names_in_state = names_in_state(old_names(submitted, named), state, of_pod)
    found.policy_name = next((name for name, one in known.policies.items() if one == named.policy), "")
    return found


def _submitted(case: Case) -> Case:
    """Return the case with its work in steps: the first one in which our model runs what ran at the beginning."""
    options = [*variants(case)]
    for option in options:
        story, ran = play(option), {work.name: len(work.nodes) for work in case.work if work.nodes}
        first = story.settled[1].placed if len(story.settled) > 1 and isinstance(option.steps[0], SubmitStep) else {}
        if all(len(first.get(name, ())) >= number for name, number in ran.items()):
            return option
    return options[0]


def _state_of(inputs: Sequence[Timed]) -> State:
    """Return the state at the checkpoint of inputs, with the jobs that came later.

    A pod that was bound before the last job came counts as running. Queues and nodes are those of the end. A pod that
    replaces a pod of its job is left out.
    """
    began: dict[str, float] = {}
    for at, given in inputs:
        if isinstance(given, ObjectSeen) and given.kind == "Pod":
            began.setdefault(job_of(given.object), at)
    reader = _BeginReader(max(began.values(), default=0.0))
    for at, given in inputs:
        if reader.matters(at, given):
            apply_to(reader.state, given)
        reader.state.taken = at
    return reader.state


class _BeginReader:
    """Decides which inputs change the state from which a case begins. `last`: the time at which the last job came."""

    def __init__(self, last: float) -> None:
        self.state = State("recording")
        self._last, self._counts, self._has_begun = last, _Counts(), False

    def matters(self, at: float, given: Input) -> bool:
        pods, groups = self.state.objects["Pod"], self.state.objects["PodGroup"]
        match given:
            case Taken():
                self._has_begun = True
            case ObjectSeen(kind="Pod", object=pod):
                is_new = self._counts.see(pod) or not self._has_begun
                return is_new or (at < self._last and _is_bind(pod, pods.get(pod.metadata.key)))
            case ObjectGone(kind="Pod", key=key):
                self._counts.lose(key)
                return False
            case ObjectGone(kind=kind) | Unnoted(kind=kind):
                return kind in (*_QUEUES, "Node")
            case Noted():
                kind, key = _name_of(given)
                return kind in _QUEUES or key not in self.state.others.get(kind, {})
            case ObjectSeen(kind="PodGroup", object=group):
                return group.metadata.key not in groups
        return True


def _is_bind(pod: Pod, known: Pod | None) -> bool:
    """Whether a pod that waited has a node."""
    is_same = known is not None and known.metadata.uid == pod.metadata.uid and not known.spec.node_name
    return is_same and bool(pod.spec.node_name) and pod.metadata.deletion_timestamp is None


class _Counts:
    """How many pods each job had at once."""

    def __init__(self) -> None:
        self._live: dict[str, set[str]] = {}
        self._most: dict[str, int] = {}
        self._job: dict[str, str] = {}

    def see(self, pod: Pod) -> bool:
        """Note a pod; return whether its job had never as many pods."""
        key, job = pod.metadata.key, job_of(pod)
        live = self._live.setdefault(job, set())
        self._job[key] = job
        is_over = pod.metadata.deletion_timestamp is not None or pod.status.phase in ("Succeeded", "Failed")
        if is_over:
            live.discard(key)
            return False
        live.add(key)
        is_new = len(live) > self._most.get(job, 0)
        self._most[job] = max(self._most.get(job, 0), len(live))
        return is_new

    def lose(self, key: str) -> None:
        """Note the end of a pod."""
        self._live.get(self._job.get(key, ""), set()).discard(key)
