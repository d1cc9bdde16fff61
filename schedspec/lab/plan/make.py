"""Make a plan: read the state, find the two worlds, and compare their immediate effects and those over the load."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from ...scheduler.model import times
from ...scheduler.reasons.text import count
from ...scheduler.recording.segments import segments
from ...virtual import Arrival, Settings
from ...virtual.state import At, State, holds_load, read_state, require_ours
from ..simulate.columns import PRESETS, InputError, changed, parse_mapping
from ..simulate.present import ANNOTATION, Present, RecordedLoad, RunTimes
from ..simulate.trace import Trace, arrivals, read_trace
from . import at_once, over_load
from .answer import OverLoad, Plan, PlanInputs, PlannedWorld
from .changes import PolicyUse, Side, Worlds, copied, find_worlds
from .submitted import add_submitted

DAY = 86400.0
RULES = {"best": 1 / 3, "expected": 1.0, "worst": 3.0}
"""Remaining time of a running job ÷ its age: quartiles of the estimate from its age alone (`RunTimes`)."""
AGE, RANGE = "age", "range"


@dataclass(frozen=True, slots=True)
class Request:
    state: Path
    now: Side | None
    proposed: Side
    policy_path: str = ""
    load: str = "none"
    """`none`: only the immediate effects; `drain`: nothing arrives; otherwise the path of a trace or a recording."""
    preset: str = ""
    mapping: str = ""
    run_times: str = AGE
    """`age`, `range`, or seconds that each running job still runs."""
    resource: str = ""
    """The resource in which amounts are counted; empty: the extended resource that most nodes have, or cpu."""
    start_delay: float = 1.0
    """Seconds from a pod's bind to its start."""
    grace: float = 30.0
    """Seconds from a pod's eviction to its end: the default of Kubernetes. The live scheduler decides while victims
    terminate; with 0 seconds no cycle here would, and other jobs would get surplus capacity.
    """
    until: float = math.inf
    """Seconds of virtual time after which the load is cut."""
    max_age: float = 30 * DAY
    out: Path = Path("plan")
    clock: float = 0.0
    """The time now, in seconds since 1970."""
    submit: Path | None = None
    """A file with work that is submitted in the proposed world."""
    at: float | None = None
    """The time of the state in the recording of a cluster, in seconds since 1970."""


class Decided(NamedTuple):
    """What a scheduler decides at once in the world as it is and in the proposed one."""

    now: Sequence[PlannedWorld]
    proposed: Sequence[PlannedWorld]
    assumptions: Sequence[str]
    by: str = ""
    """The program that decided, with its version; empty for the model."""
    asked: tuple[str, str] = ("", "")
    """The scheduler of each world, as `--scheduler` names it; empty for the model."""
    model: tuple[PlannedWorld, PlannedWorld] | None = None
    """What our model decides in both worlds, beside a scheduler's own program."""


class DecidingScheduler(Protocol):
    """Who decides at once in the two worlds of a plan."""

    @property
    def definitions(self) -> Path | None:
        """The folder of Kueue's definitions, if Kueue decides."""

    @property
    def policies(self) -> PolicyUse:
        """What it does with policy files."""

    def decide(self, request: Request, worlds: Worlds) -> Decided:
        """Let the scheduler decide until both worlds settle."""


class ModelScheduler:
    """Our own scheduler decides, in virtual time."""

    @property
    def definitions(self) -> None:
        """None: the model reads no objects of Kueue."""

    policies = PolicyUse.DECIDES

    def decide(self, request: Request, worlds: Worlds) -> Decided:
        """Run both worlds until they settle."""
        settings = Settings(start_delay=request.start_delay, grace=request.grace)
        (now, present), (proposed, _) = at_once.settle_both(
            (worlds.state, worlds.now),
            (worlds.proposed_state, worlds.proposed),
            request.resource or resource_of(worlds.state),
            settings,
        )
        return Decided([now], [proposed], _assumptions(request, worlds.state, present))


def our_model(state: State) -> ModelScheduler:
    """Return the model. Raises StateError if only Kueue decides on the state."""
    require_ours(state)
    return ModelScheduler()


def make_plan(request: Request, choose: Callable[[State], DecidingScheduler] = our_model) -> Plan:
    """Compute the effects of a change at once and over the load.

    `choose`: returns who decides at once on a state. Over the load, our own scheduler decides.

    Raises:
        StateError, ChangeError, InputError, PolicyError: an input cannot be used; the text says what to do next.
    """
    follows = request.load not in ("none", "drain") and Path(request.load).resolve() == request.state.resolve()
    moment = At.CHECKPOINT if follows else At.END
    state = read_state(request.state, moment if request.at is None else request.at, with_kueue=True)
    decider = choose(state)
    state.check_age(request.clock, request.max_age)
    _check(request, state)
    worlds = find_worlds(
        state,
        request.now,
        request.proposed,
        request.policy_path,
        decider.definitions,
        policies=decider.policies,
    )
    queues = state.queues_of_work()
    new: list[str] = []
    if request.submit is not None:
        worlds.proposed_state = copied(worlds.proposed_state)
        new = add_submitted(worlds.proposed_state, request.submit, decider.definitions)
        queues |= worlds.proposed_state.queues_of_work()
        worlds.changes.append(f"{count(len(new), 'job')} submitted: {', '.join(new)}")
    decided = decider.decide(request, worlds)
    present = at_once.any_of(decided.now)
    effects = [at_once.compare(present, world, queues, new) for world in decided.proposed]
    plan = Plan(
        _subject(request, state),
        worlds.changes,
        worlds.texts,
        at_once.merged(effects),
        runs=effects,
        decided_by=decided.by,
        asked=decided.asked,
        model=None if decided.model is None else at_once.compare(*decided.model, queues, new),
        notes=[*worlds.notes, *state.notes],
        assumptions=[*decided.assumptions],
        names=_names(worlds.proposed_state),
    )
    if request.load == "none":
        return plan
    load = _read_load(request, state)
    rules = _run_times(request, load.known)
    plan.assumptions.insert(2, _rule(rules))
    settings = Settings(start_delay=request.start_delay, grace=request.grace)
    plan.over_load = _over_load(request, worlds, settings, load, rules)
    return plan


def _check(request: Request, state: State) -> None:
    """Raise InputError, before anything is simulated, for options that do not fit the state."""
    _run_times(request, {})
    if request.preset and request.preset not in PRESETS:
        raise InputError("--preset", f"{request.preset!r} is not a preset", f"name one of {', '.join(sorted(PRESETS))}")
    if request.load not in ("none", "drain") and not Path(request.load).exists():
        raise InputError("--load", f"there is no {request.load}", "name a trace, a recording, drain or none")
    known = _resources(state)
    if request.resource and request.resource not in known:
        raise InputError("--resource", f"no node has {request.resource}", f"name one of {', '.join(sorted(known))}")


def _subject(request: Request, state: State) -> PlanInputs:
    pods = {pod.spec.scheduler_name for pods in state.of_job().values() for pod in pods} - {""}
    return PlanInputs(
        state.source,
        times.timestamp(state.taken),
        max(request.clock - state.taken, 0.0),
        state.digest,
        state.redacted,
        len(state.objects["Node"]),
        len(state.objects["Queue"]) + len(state.others.get("ClusterQueue", ())),
        len(state.objects["Pod"]),
        request.resource or resource_of(state),
        request.now.name if request.now else "the cluster",
        request.proposed.name,
        sorted(pods),
        len(state.others.get("Workload", ())),
    )


def _names(state: State) -> dict[str, str]:
    """Return the names of jobs whose PodGroups a controller named: `team/train` for `team/train-UID`."""
    found = {}
    for key, workload in state.others.get("Workload", {}).items():
        owner = next(iter(workload["metadata"].get("ownerReferences") or ()), None)
        if owner is not None:
            found[key] = f"{workload['metadata']['namespace']}/{owner['name']}"
    for key, group in state.objects["PodGroup"].items():
        owner = next(iter(group.metadata.owner_references or ()), None)
        if owner is not None and owner.name and owner.name != group.metadata.name:
            found[key] = f"{group.metadata.namespace}/{owner.name}"
    return found


def resource_of(state: State) -> str:
    """Return the extended resource that most nodes have, or ClusterQueues without nodes; cpu without one."""
    found = {name: nodes for name, nodes in _resources(state).items() if "/" in name}
    return min(found, key=lambda name: (-found[name], name), default="cpu")


def _resources(state: State) -> Counter[str]:
    """Return how many nodes have each resource."""
    found: Counter[str] = Counter()
    for node in state.objects["Node"].values():
        found.update((node.status.allocatable or node.status.capacity or {}).keys())
    if not found:
        for queue in state.others.get("ClusterQueue", {}).values():
            found.update(
                {name for group in queue["spec"].get("resourceGroups") or () for name in group["coveredResources"]}
            )
    return found


def _assumptions(request: Request, state: State, present: Present) -> list[str]:
    found = [
        "at once: nothing ends by itself, and a scheduler that has just started decides",
        f"a victim ends {request.grace:g} s later; its owner creates it again, and the rest of its gang keeps running",
    ]
    if present.without_owner:
        found.append(f"{present.without_owner} jobs have pods without an owner: no controller creates these again")
    if present.foreign_pods:
        found.append(f"{present.foreign_pods} pods that are not scheduled here keep their nodes")
    found.append("no autoscaler: nodes are added and removed only as recorded")
    if not state.is_exact:
        found.append("the state was taken at the time of its newest object")
    if state.cut:
        found.append("the recording ends in the middle: its last whole line is used")
    return found


# ------------------------------------------------------------------------------------------------------------ the load


@dataclass(frozen=True, slots=True)
class _Load:
    """A load and its description (`name`)."""

    name: str
    arrivals: over_load.Load
    known: dict[str, float]
    jobs: int | None
    until: float


def _over_load(
    request: Request, worlds: Worlds, settings: Settings, load: _Load, rules: dict[str, RunTimes]
) -> list[OverLoad]:
    resource = request.resource or resource_of(worlds.state)
    try:
        request.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError("--out", f"{request.out}: {error.strerror}", "name another folder") from error
    until = min(load.until, worlds.state.taken + request.until)
    courses = [
        over_load.Course(
            state, policy, text, load.arrivals, run_times, settings, resource,
            request.out / f"{side}{f'-{name}' if len(rules) > 1 else ''}.jsonl", side, until, load.jobs,
        )
        for name, run_times in rules.items()
        for side, state, policy, text in (
            ("now", worlds.state, worlds.now, worlds.texts[0]),
            ("proposed", worlds.proposed_state, worlds.proposed, worlds.texts[1]),
        )
    ]  # fmt: skip
    problems = over_load.run_courses(courses)
    ran = frozenset(
        key for key, pods in worlds.state.of_job().items() if any(pod.status.phase == "Running" for pod in pods)
    )
    found = []
    for number, name in enumerate(rules):
        first, second = courses[2 * number : 2 * number + 2]
        found.append(
            over_load.compare(
                over_load.Result(first.out, ran),
                over_load.Result(second.out, ran),
                load.name,
                name,
                next(filter(None, problems[2 * number : 2 * number + 2]), ""),
            )
        )
    return found


def _rule(rules: dict[str, RunTimes]) -> str:
    first = f"run times: from the load or the annotation {ANNOTATION}; otherwise "
    fixed = next(iter(rules.values())).fixed
    if fixed is not None:
        return f"{first}{fixed:g} s from now"
    parts = [f"{name} {rule.factor:.2g} × its age" for name, rule in rules.items()]
    return f"{first}a running job still runs for {', '.join(parts)}, and a waiting one for the median of these"


def _run_times(request: Request, known: dict[str, float]) -> dict[str, RunTimes]:
    if request.run_times == RANGE:
        return {name: RunTimes(known, factor=factor) for name, factor in RULES.items()}
    if request.run_times == AGE:
        return {"expected": RunTimes(known)}
    try:
        fixed = float(request.run_times)
    except ValueError:
        fixed = times.duration(request.run_times) or -1.0
    if not 0 < fixed < math.inf:
        raise InputError("--run-times", f"{request.run_times!r} is not a rule", "write age, range or a time such as 2h")
    return {"expected": RunTimes(known, fixed)}


def nothing(run_times: RunTimes) -> Iterable[Arrival]:
    del run_times
    return ()


def of_trace(run_times: RunTimes, trace: Trace, shift: float) -> Iterator[Arrival]:
    """Yield the arrivals of a trace, later by `shift` seconds."""
    del run_times
    for arrival in arrivals(trace):
        yield Arrival(arrival.at + shift, arrival.item)


def _read_load(request: Request, state: State) -> _Load:
    if request.load == "drain":
        return _Load("nothing arrives, and what the cluster has runs to its end", nothing, {}, None, math.inf)
    path = Path(request.load)
    if path.is_dir() or path.name.endswith(".jsonl.gz"):
        if not (segments(path) or holds_load(path)):
            remedy = "name a trace, the folder of `record` or `run --record`, drain or none"
            raise InputError("--load", f"{path} holds no recording", remedy)
        recorded = RecordedLoad(path, state)
        if not len(recorded) and recorded.until <= state.taken:
            problem = f"{path} has no cycle after the state"
            raise InputError("--load", problem, "name a recording of later inputs, or drain")
        name = f"{path}: {count(len(recorded), 'job')} that arrived until {times.timestamp(recorded.until)}"
        return _Load(name, recorded.arrivals, recorded.run_times, len(recorded), recorded.until)
    mapping = changed(request.preset, parse_mapping(request.mapping))
    resource = request.resource or resource_of(state)
    trace = read_trace(path, mapping, resource, queues=sorted(state.objects["Queue"]))
    shift = state.taken - trace.jobs[0].submitted
    name = f"{path}: {count(len(trace.jobs), 'job')}, the first at the time of the state"
    return _Load(name, partial(of_trace, trace=trace, shift=shift), {}, len(trace.jobs), math.inf)
