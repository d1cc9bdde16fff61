"""Read the input of a simulation: the cluster, the load, and their sources.

1. A trace or a synthetic load on a cluster that `--nodes` and `--queues` describe.
2. A state (`--state`): its nodes, queues and jobs. The load is a trace or a synthetic load whose first job arrives at
   the time of the state; or, for a recording, what it recorded after its last checkpoint; or nothing.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace

from ...scheduler.model import resources
from ...scheduler.model.cluster import Cluster
from ...scheduler.reasons.text import count
from ...virtual import Arrival, OnEviction, Simulation
from ...virtual.state import At, State, holds_load, read_state
from .columns import InputError, changed, parse_mapping
from .present import RunTimes, begin
from .recorded import Recorded
from .scene import Scene, add_queues, read_scene
from .synthetic import read_synthetic
from .trace import Trace, arrivals, read_trace

_DAY = 86400.0


@dataclass(slots=True)
class Inputs:
    """The cluster and the load of a run."""

    name: str
    """Source of the load."""
    load: Iterable[Arrival]
    start: float
    span: float
    """Seconds from the first to the last arrival of the load."""
    jobs: int
    nodes: int
    queues: list[str]
    total: dict[str, int]
    """Capacity of all nodes, in the units of `model.resources`."""
    scene: Scene = field(default_factory=Scene)
    seed: int | None = None
    until: float = math.inf
    """The time at which the known load ends."""
    begin: Callable[[Simulation], object] | None = None
    cluster: Cluster | None = None
    policy: str = ""
    """The policy of the state, if it has one."""


def read_inputs(given: SimpleNamespace) -> Inputs:
    """Read the inputs that the options name. Raises InputError, StateError."""
    if given.trace is not None and given.synthetic is not None:
        raise InputError("--trace", "a run has one load: --trace and --synthetic exclude each other", "leave one out")
    if given.trace is not None and given.state is None and holds_load(given.trace):
        for option, is_set in (("--map", given.map), ("--preset", given.preset), ("--skip-bad", given.skip_bad)):
            if is_set:
                what = f"nothing reads it: {given.trace} is a recording, which has no rows and columns"
                raise InputError(option, what, f"leave {option} out, or name a CSV file with --trace")
        given.trace, given.state = None, given.trace  # the recorded load, from the recorded state on
    _refuse_unread(given)
    if given.state is not None:
        return _of_state(given)
    if given.trace is None and given.synthetic is None:
        raise InputError("--trace", "the run has no load", "name a --trace, a --synthetic load or a --state")
    scene = read_scene(given.nodes, given.queues, given.resource)
    trace, seed = _read_load(given, [queue.metadata.name for queue in scene.queues] or None)
    added = add_queues(scene, trace.queues)
    if added:
        sys.stderr.write(f"queues of weight 1, because --queues has none: {', '.join(added)}\n")
    names = sorted(queue.metadata.name for queue in scene.queues)
    start = trace.jobs[0].submitted
    return Inputs(
        trace.source, _arrivals(given, trace, 0.0), start, trace.jobs[-1].submitted - start, len(trace.jobs),
        len(scene.nodes), names, scene.total, scene, seed,
    )  # fmt: skip


def _refuse_unread(given: SimpleNamespace) -> None:
    """Raise InputError for an option that nothing in this run reads."""
    keeps_work = given.on_eviction == OnEviction.CHECKPOINT
    for option, is_set, is_read, needs in (
        ("--map", given.map, given.trace, "--trace"),
        ("--preset", given.preset, given.trace, "--trace"),
        ("--skip-bad", given.skip_bad, given.trace, "--trace"),
        ("--seed", given.seed is not None, given.trace or given.synthetic, "--synthetic"),
        ("--run-time", given.run_time is not None, given.state, "--state"),
        ("--checkpoint-every", given.checkpoint_every, keeps_work, "--on-eviction checkpoint"),
    ):
        if is_set and not is_read:
            raise InputError(option, f"nothing reads it without {needs}", f"add {needs}, or leave {option} out")


def _read_load(given: SimpleNamespace, queues: list[str] | None) -> tuple[Trace, int | None]:
    if given.synthetic is not None:
        trace, seed = read_synthetic(given.synthetic, given.resource, given.seed, queues)
        sys.stderr.write(f"{given.synthetic}: {count(len(trace.jobs), 'job')} with seed {seed}\n")
        return trace, seed
    if given.seed is not None:
        raise InputError("--seed", "a trace is not random", "leave --seed out, or name a --synthetic load")
    mapping = changed(given.preset or "", parse_mapping(given.map))
    trace = read_trace(given.trace, mapping, given.resource, skip_bad=given.skip_bad, queues=queues)
    sys.stderr.writelines(f"{trace.source}: {note}\n" for note in trace.notes())
    return trace, None


def _arrivals(given: SimpleNamespace, trace: Trace, shift: float) -> Iterator[Arrival]:
    on_eviction = OnEviction(given.on_eviction)
    if on_eviction is OnEviction.CHECKPOINT and not given.checkpoint_every:
        raise InputError("--on-eviction checkpoint", "no time between checkpoints", "add --checkpoint-every 30m")
    found = arrivals(trace, on_eviction=on_eviction, checkpoint_every=given.checkpoint_every or 0.0)
    return (Arrival(arrival.at + shift, arrival.item) for arrival in found)


# ----------------------------------------------------------------------------------------------------------- a state


def _of_state(given: SimpleNamespace) -> Inputs:
    if given.nodes or given.queues:
        raise InputError("--state", "has nodes and queues of its own", "leave out --nodes and --queues")
    has_load = given.trace is not None or given.synthetic is not None
    is_recording = not has_load and holds_load(given.state)
    state = read_state(given.state, At.CHECKPOINT if is_recording else At.END)
    for note in state.notes:
        sys.stderr.write(f"{given.state}: {note}\n")
    found = _without_load(state)
    if is_recording:
        _use_recording_as_load(found, given, state)
    elif has_load:
        trace, found.seed = _read_load(given, found.queues)
        shift = state.taken - trace.jobs[0].submitted
        found.load, found.span = _arrivals(given, trace, shift), trace.jobs[-1].submitted - trace.jobs[0].submitted
        found.name, found.jobs = f"{trace.source} after {given.state}", found.jobs + len(trace.jobs)
    if found.begin is None:
        found.begin = partial(begin, state=state, run_times=RunTimes(fixed=given.run_time))
    return found


def _without_load(state: State) -> Inputs:
    """Return the inputs of a run that begins from the state and in which nothing arrives."""
    nodes = state.objects["Node"].values()
    total = resources.total_of(resources.parse(node.status.allocatable or node.status.capacity) for node in nodes)
    return Inputs(
        f"{state.source}, nothing arrives", (), state.taken, _DAY, len(state.of_job()), len(nodes),
        sorted(queue.metadata.name for queue in state.objects["Queue"].values()), total,
        cluster=Cluster(state.scheduler_names, state.node_selector),
        policy=state.policy.text if state.policy is not None else "",
    )  # fmt: skip


def _use_recording_as_load(found: Inputs, given: SimpleNamespace, state: State) -> None:
    """Use the inputs of a recording after its checkpoint as the load."""
    recorded = Recorded(given.state, state)
    run_times = RunTimes(recorded.run_times, given.run_time)
    found.load, found.jobs = recorded.arrivals(run_times), found.jobs + len(recorded)
    found.until, found.span = recorded.until, max(recorded.until - state.taken, 1.0)
    found.name = f"{given.state}, from its last checkpoint"
    found.begin = partial(begin, state=state, run_times=run_times)
