"""Read the input of a simulation: the cluster, the load, and their sources.

1. A trace or a synthetic load on a cluster that `--nodes` and `--queues` describe.
2. A state (`--state`): its nodes, queues and jobs. The load is a trace or a synthetic load whose first job arrives at
   the time of the state; or, for a recording, what it recorded after its last checkpoint; or nothing.

A file of nodes is CSV, one node a row, plain or compressed with gzip. Besides our own column names, those of two public
node lists are accepted: Alibaba's openb and its spot trace.
"""

from __future__ import annotations

import csv
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec

from ...scheduler.lint.objects import ManifestError, documents, refusals
from ...scheduler.lint.resource_rules import NATIVE, may_be_of_a_node
from ...scheduler.model import objects, resources
from ...scheduler.model.cluster import Cluster
from ...scheduler.model.input_files import read_text
from ...scheduler.policy.source import suggest
from ...scheduler.reasons.text import count
from ...virtual import Arrival, OnEviction, Simulation, node
from ...virtual.state import At, State, holds_load, read_state
from .columns import CellError, InputError, RowError, changed, parse_mapping, quantity, unreadable
from .present import RecordedLoad, RunTimes, begin, opened
from .synthetic import read_synthetic
from .trace import Trace, arrivals, open_text, read_trace

MODEL = "nvidia.com/gpu.product"
"""The label of a node with the model of its cards."""
_COLUMNS = {
    "name": ("name", "sn", "node_name"),
    "cards": ("cards", "gpu", "gpu_capacity_num"),
    "cpu": ("cpu", "cpu_num"),
    "cpu_milli": ("cpu_milli",),
    "memory": ("memory",),
    "memory_mib": ("memory_mib",),
    "model": ("model", "gpu_model"),
}
_NEEDED = ("name", "cards")
_UNITS = {"cpu": ("cpu", ""), "cpu_milli": ("cpu", "m"), "memory": ("memory", ""), "memory_mib": ("memory", "Mi")}
"""Field → resource, and the unit that turns its number into a quantity."""


def read_nodes(path: Path, resource: str) -> list[objects.Node]:
    """Return the nodes of a file; `resource` is the resource name of cards. Raises InputError, RowError."""
    try:
        with open_text(path) as file:
            rows = csv.reader(file, strict=True)
            header = next(rows, [])
            places = {
                field: header.index(column)
                for field, columns in _COLUMNS.items()
                for column in columns
                if column in header
            }
            for field in _NEEDED:
                if field not in places:
                    named = " or ".join(_COLUMNS[field])
                    raise InputError(f"{path}:1", f"no column {named}", f"columns are {', '.join(header) or 'missing'}")
            read = _NodeReader(str(path), header, places, resource)
            return [read.node(row, rows.line_num) for row in rows if row]
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise unreadable(path, error) from error


class _NodeReader:
    def __init__(self, source: str, header: list[str], places: dict[str, int], resource: str) -> None:
        self._source, self._header, self._places = source, header, places
        self._units = {"cards": (resource, ""), **_UNITS}
        self._names: set[str] = set()

    def node(self, row: list[str], line: int) -> objects.Node:
        cells = {field: row[at].strip() if at < len(row) else "" for field, at in self._places.items()}

        def wrong(field: str, problem: str, remedy: str) -> RowError:
            column = self._header[self._places[field]]
            return RowError((self._source, line), column, cells[field], problem=problem, remedy=remedy)

        name, amounts = cells["name"], dict[str, str]()
        if not name or name in self._names:
            raise wrong("name", "is the name of another node" if name else "is no name", "name each node once")
        self._names.add(name)
        for given, (dimension, unit) in self._units.items():
            if given in cells:
                try:
                    amounts[dimension] = quantity(dimension)(cells[given] + unit)
                except CellError as error:
                    raise wrong(given, error.problem, error.remedy) from None
        return node(name, amounts, {MODEL: cells["model"]} if cells.get("model") else None)


_NODES = re.compile(r"(?P<count>[1-9]\d*)x(?P<cards>\d+)(?P<more>(,[^,=]+=[^,=]+)*)", re.ASCII)
_MOST = {"count": (100_000, "nodes"), "cards": (1_000, "cards of a node")}
"""What a cluster of `--nodes` may have; more would take all memory before the run begins."""


@dataclass(slots=True)
class InitialState:
    """The objects that exist when a simulation begins."""

    nodes: list[objects.Node] = field(default_factory=list)
    queues: list[objects.Queue] = field(default_factory=list)
    priority_classes: list[objects.PriorityClass] = field(default_factory=list)

    @property
    def total(self) -> dict[str, int]:
        """The capacity of all nodes, in the units of `model.resources`."""
        return resources.total_of(
            resources.parse(node.status.allocatable or node.status.capacity) for node in self.nodes
        )


def read_scene(nodes: Sequence[str], manifests: Sequence[Path], resource: str) -> InitialState:
    """Read the options `--nodes` and `--queues`. Raises InputError."""
    scene = InitialState()
    for path in manifests:
        _read_manifest(path, scene)
    for text in nodes:
        is_file = text.endswith((".csv", ".csv.gz"))
        scene.nodes += read_nodes(Path(text), resource) if is_file else _parse_nodes(text, resource, len(scene.nodes))
    if not scene.nodes:
        remedy = "write --nodes 125x8, or name a CSV file, or manifests of Nodes with --queues"
        raise InputError("--nodes", "the cluster has no node", remedy)
    return scene


def add_queues(scene: InitialState, names: Iterable[str]) -> list[str]:
    """Add a queue of weight 1 for each name without a queue. Return the names of the added queues."""
    known = {queue.metadata.name for queue in scene.queues}
    added = [name for name in names if name not in known]
    scene.queues += [opened(objects.Queue(objects.ObjectMeta(name=name))) for name in added]
    return added


def _parse_nodes(text: str, resource: str, before: int) -> list[objects.Node]:
    match = _NODES.fullmatch(text)
    if match is None:
        remedy = "write 125x8, or 125x8,cpu=96,memory=768Gi, or the name of a CSV file"
        raise InputError("--nodes", f"{text!r} is not COUNTxCARDS", remedy)
    for name, (most, things) in _MOST.items():
        if len(match[name]) > len(str(most)) or int(match[name]) > most:
            raise InputError("--nodes", f"{text!r} has {match[name]} {things}", f"name at most {most}")
    more: dict[str, str] = {}
    for part in filter(None, match["more"].split(",")):
        name, _, amount = part.partition("=")
        if name in more or name == resource:
            raise InputError("--nodes", f"{text!r} has {name} twice", "write each resource once")
        if not may_be_of_a_node(name):
            remedy = suggest(name, (*NATIVE, "example.com/resource"))
            raise InputError("--nodes", f"{name!r} is no resource of a node", remedy)
        try:
            more[name] = quantity(name)(amount)
        except CellError as error:
            raise InputError("--nodes", f"{name}={amount} {error.problem}", error.remedy) from None
        if name in ("cpu", "memory", "pods") and not resources.amount_of(more[name], 1):
            raise InputError("--nodes", f"{name}={amount}: no pod could run on these nodes", f"name more {name}")
    allocatable = {resource: match["cards"], **more}
    return [node(f"node-{before + index:05}", allocatable) for index in range(int(match["count"]))]


def _read_manifest(path: Path, scene: InitialState) -> None:
    place, ignored, used = str(path), Counter[str](), False
    try:
        for document in documents(read_text(path, pipes=True)):
            place = f"{path}:{document.line}"
            for refusal in refusals(document, str(path)):
                if refusal.is_error:
                    problem = f"{refusal.field}: {refusal.text}"
                    raise InputError(f"{path}:{refusal.line}", problem, refusal.remedy)
            is_read = _add(document.item, scene)
            used |= is_read
            ignored[str(document.item.get("kind") or "an object without a kind")] += not is_read
    except ManifestError as error:
        raise InputError(f"{path}:{error.line}", error.problem, error.remedy) from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(str(path), f"cannot be read: {error}", "name a file with manifests in UTF-8") from error
    except (msgspec.ValidationError, resources.QuantityError) as error:
        raise InputError(place, str(error), "correct this field") from error
    if not used:
        kinds = ", ".join(sorted(ignored)) or "no object"
        remedy = "name a file with Queues of scheduling.volcano.sh, Nodes or PriorityClasses"
        raise InputError(str(path), f"has nothing that a simulation reads: {kinds}", remedy)


def _add(item: dict[str, Any], scene: InitialState) -> bool:
    """Add a queue, a node or a priority class to the scene; return False for any other object."""
    match item.get("kind"), str(item.get("apiVersion", "")).partition("/")[0]:
        case "Queue", "scheduling.volcano.sh":
            scene.queues.append(opened(msgspec.convert(item, objects.Queue)))
        case "Node", _:
            found = msgspec.convert(item, objects.Node)
            resources.parse(found.status.allocatable or found.status.capacity)
            scene.nodes.append(found)
        case "PriorityClass", _:
            scene.priority_classes.append(msgspec.convert(item, objects.PriorityClass))
        case _:
            return False
    return True


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
    scene: InitialState = field(default_factory=InitialState)
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
    recorded = RecordedLoad(given.state, state)
    run_times = RunTimes(recorded.run_times, given.run_time)
    found.load, found.jobs = recorded.arrivals(run_times), found.jobs + len(recorded)
    found.until, found.span = recorded.until, max(recorded.until - state.taken, 1.0)
    found.name = f"{given.state}, from its last checkpoint"
    found.begin = partial(begin, state=state, run_times=run_times)
