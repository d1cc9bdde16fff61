"""Steps on work: Volcano Jobs, services, Kubernetes Jobs, PyTorchJobs; submitted, running, bound, waiting."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

import pytest

from schedspec.api import timeouts
from schedspec.api.capabilities import Capability
from schedspec.api.errors import RejectedError, Unmet
from schedspec.api.kinds import GPU, LEVELS, Kind
from schedspec.checks import pods, reasons
from schedspec.gherkin import tables
from schedspec.gherkin.documents import Sentence
from schedspec.gherkin.step_decorators import Thing, given, makes, one_of, table, vacuous, when
from schedspec.gherkin.things import POD, PRIORITY_CLASS, WORKLOAD
from schedspec.monitors.rules import CARD_PLUGIN, Rules
from schedspec.observe.expect import Expect
from schedspec.scenario import own_work
from schedspec.scenario.world import World
from schedspec.steps import job_policies
from schedspec.steps.columns import OF_NETWORK, SHARED_CARDS, Cards, cards_without_model, needed_by_work, with_cards

_LONGEST_TRAINING = 54
"""Maximum number of characters in the name of a PyTorchJob."""


def _shape(
    name: str, own: Mapping[str, tables.Column], named: Callable[[str], str] = tables.plain_name
) -> tables.Shape:
    """Return the columns of work of one kind: its name, the common columns, and its own."""
    columns = {name: ("name", tables.in_namespace(named)), **_COMMON, **own}
    refers = {"priority": PRIORITY_CLASS}
    settings = frozenset(column for column, (parameter, _) in columns.items() if parameter in OF_NETWORK)
    return tables.Shape(columns, (name,), _flaws, refers, unique=name, needs=needed_by_work, settings=settings)


def _pods_of(row: tables.Row) -> int:
    """Return how many pods the work of a row has."""
    return cast("int", row["workers"]) + 1 if "workers" in row else cast("int", row.get("replicas", 1))


def _flaws(row: tables.Row) -> Iterator[tuple[str, str]]:
    yield from cards_without_model(row)
    wanted, least = _pods_of(row), cast("int", row.get("min_available", 0))
    if least > wanted:
        have = f"the {wanted} pods of master and workers" if "workers" in row else f"replicas {wanted}"
        yield "", f"min available {least} is above {have}: the gang could never start"
    workers = cast("int", row.get("workers", 0))
    if (fewest := cast("int", row.get("min_workers", workers))) > workers:
        yield "", f"min workers {fewest} is above workers {workers}: the job would never have them"
    if (most := cast("int", row.get("max_workers", workers))) < workers:
        yield "", f"max workers {most} is below workers {workers}: the job has more"
    if "partition" in row and "replicas" not in row:
        yield "", "partition needs the column replicas: how many pods there are to divide"
    elif (part := cast("int", row.get("partition", 1))) < 1 or wanted % part:
        yield "", f"partition {part} does not divide replicas {wanted}"
    if "partition_required" in row and "partition" not in row:
        yield "", "partition required needs the column partition: how many pods a part has"
    for column in ("policies", "task_policies", "job_policies"):
        yield from job_policies.flaws(cast("dict[str, object]", row.get(column, {})))
    if "required" in row and "preferred" in row:
        yield "", "required and preferred contradict each other: fill in one of the two columns"


def _training_name(text: str) -> str:
    """Return the name of a PyTorchJob, of which the names of its services are made. Raises ValueError."""
    if not tables.plain_name(text)[0].isalpha() or len(text) > _LONGEST_TRAINING:
        raise ValueError(f"write at most {_LONGEST_TRAINING} characters, the first one a letter")
    return text


def _minimum(text: str) -> int:
    """Return the number of pods that a gang needs. Raises ValueError."""
    if not (number := tables.count(text)):
        raise ValueError("write at least 1, or leave the cell empty: 0 would mean all replicas, as in Volcano")
    return number


def _truth(text: str) -> str:
    """Return the value of an annotation that Volcano reads: any other word counts as false. Raises ValueError."""
    if text not in ("true", "false"):
        raise ValueError("write true or false")
    return text


_COMMON: dict[str, tables.Column] = {
    "queue": ("queue", tables.name),
    "priority": ("priority", tables.name),
    "cpu": ("cpu", tables.cpus),
    "memory": ("memory", tables.memory),
    "gpus": (tables.of_resource(GPU), tables.whole_amount),
    "cards": ("cards", tables.count),
    "card": ("card", tables.models),
    **SHARED_CARDS,
    "node selector": ("node_selector", tables.labels),
    "tolerates": ("tolerates", tables.keys),
    "preemptable": ("preemptable", _truth),
    "start after": ("start_after", tables.duration),
    "stop after": ("stop_after", tables.duration),
}
_REPLICAS: dict[str, tables.Column] = {"replicas": ("replicas", tables.at_least_one)}


def _disruption(text: str) -> str:
    """Parse the disruption mode of a gang. Raises ValueError."""
    if text not in ("pod", "group"):
        raise ValueError("write pod (its pods may go one by one) or group (only all of them together)")
    return text


def _restart_policy(text: str) -> str:
    """Parse the restart policy of pods. Raises ValueError."""
    if text not in ("Never", "OnFailure", "Always"):
        raise ValueError("write Never, OnFailure or Always: whether a container that ends is restarted in its pod")
    return text


def _level(text: str) -> str:
    """Parse a level of the network. Raises ValueError."""
    if text not in LEVELS:
        raise ValueError(f"is none of the levels {', '.join(LEVELS)}")
    return text


_OF_NETWORK: dict[str, tables.Column] = {"required": ("required", _level), "preferred": ("preferred", _level)}
_PARTS: dict[str, tables.Column] = {
    "partition": ("partition", tables.count),
    "partition required": ("partition_required", _level),
}
_OF_JOBS: dict[str, tables.Column] = {
    **_REPLICAS,
    "task": ("task", tables.plain_name),
    "min available": ("min_available", _minimum),
    "max retry": ("max_retry", tables.count),
    "task retries": ("task_retries", tables.count),
    "restart policy": ("restart_policy", _restart_policy),
    **job_policies.columns("", "policies", "task_policies"),
    **_OF_NETWORK,
    **_PARTS,
}
_OF_GANGS: dict[str, tables.Column] = {
    **_REPLICAS,
    "min available": ("min_available", _minimum),
    "disruption": ("disruption", _disruption),
    **_OF_NETWORK,
}
_OF_TRAINING: dict[str, tables.Column] = {
    "workers": ("workers", tables.count),
    "min workers": ("min_workers", tables.at_least_one),
    "max workers": ("max_workers", tables.at_least_one),
    "min available": ("min_available", _minimum),
    "master cpu": ("master cpu", tables.cpus),
    "master memory": ("master memory", tables.memory),
    "master gpus": ("master gpus", tables.count),
}
TEMPLATES: dict[str, tuple[str, tables.Shape]] = {
    "jobs": ("job", _shape("job", _OF_JOBS)),
    "gangs": ("gang", _shape("gang", _OF_GANGS)),
    "pods": ("pod", _shape("pod", {}, tables.name)),
    "services": ("service", _shape("service", _REPLICAS, tables.name)),
    "Kubernetes jobs": ("kubernetesjob", _shape("job", _REPLICAS, tables.name)),
    "PyTorchJobs": ("pytorchjob", _shape("job", _OF_TRAINING, _training_name)),
}
_OF_WHOLE_JOB = {
    "name": "job",
    "queue": "queue",
    "max_retry": "max retry",
    "required": "required",
    "preferred": "preferred",
    "job_policies": "job on …",
}
"""Parameters that a job of several tasks has once, and their columns."""


def _one_job(rows: Sequence[tables.Row]) -> Iterator[tables.Flaw]:
    """Report rows that disagree about the job as a whole. A row may leave a cell of the job empty."""
    for parameter, column in _OF_WHOLE_JOB.items():
        first: dict[str, int] = {}
        for number, row in enumerate(rows, 1):
            if parameter in row:
                first.setdefault(str(row[parameter]), number)
        if len(first) > 1:
            one, other = list(first)[:2]
            yield first[other], f"{column} {other} contradicts {column} {one} of an earlier row: a job has one {column}"
    if rows and not any(row.get("min_available", 1) for row in rows):
        yield 1, "min available is 0 in every row, which would mean all replicas: a job needs at least 1 pod"


JOB_OF_TASKS = replace(
    _shape(
        "job",
        _OF_JOBS
        | {"min available": ("min_available", tables.count)}
        | job_policies.columns("", "policies", "policies")
        | job_policies.columns("job ", "job_policies", "job_policies"),
    ),
    required=("job", "task", "replicas"),
    unique="task",
    judge_all=_one_job,
)
"""A task may need none of its pods, unlike a job."""
SHAPES = {work: shape for work, (_, shape) in TEMPLATES.items()}
WORK = one_of(*TEMPLATES)
"""The kinds of work that a sentence can name."""


_BY_KIND = {
    "jobs": Capability.JOBS,
    "job": Capability.JOB_TASKS,
    "PyTorchJobs": Capability.PYTORCHJOBS,
    "gangs": Capability.GANGS,
}
_BY_COLUMN = {
    "queue": Capability.QUEUES,
    **dict.fromkeys(("max retry", "task retries", "restart policy"), Capability.JOB_POLICIES),
    "min workers": Capability.SPARE_PODS,
    "required": Capability.TOPOLOGY,
    "preferred": Capability.PREFERRED_TOPOLOGY,
    "partition": Capability.PARTITIONS,
    **dict.fromkeys(SHARED_CARDS, Capability.SHARED_CARDS),
}


def of_work(sentence: Sentence) -> set[Capability]:
    """Return the capabilities that a table of work needs, by its kind of work, its columns and its rows."""
    kind = sentence.text.split()[1]
    found = {_BY_COLUMN[name] for name in sentence.columns if name in _BY_COLUMN}
    found |= {Capability.JOB_POLICIES for name in sentence.columns if job_policies.has_one(name)}
    for row in sentence.rows:
        wanted = row.get("replicas") or "1"
        least = row.get("min available") or wanted
        one_by_one = least == wanted or (least == "1" and kind != "gangs")
        found |= set() if one_by_one else {Capability.SPARE_PODS}
        found |= {Capability.PROTECTION} if row.get("preemptable") == "false" else set()
        found |= {Capability.DISRUPTION_MODE} if row.get("disruption") == "pod" else set()
    return found | {_BY_KIND[kind]} if kind in _BY_KIND else found


def work_made(values: Mapping[str, object], rows: Sequence[tables.Row]) -> list[Thing]:
    """Return what exists after work is submitted: its workloads, and their pods as far as their names are known."""
    kind, made = values.get("work", "jobs"), []
    for row in rows:
        name = str(row.get("name", "*"))
        made.append((WORKLOAD, name))
        made += [(POD, pod) for pod in _names_of_pods(str(kind), name, row)]
    return made


def _names_of_pods(kind: str, name: str, row: tables.Row) -> list[str]:
    """Return the names of a workload's pods: patterns where the API server makes up the last letters."""
    if kind in ("jobs", "gangs"):
        return own_work.numbered(f"{name}-{row.get('task', 'task')}", cast("int", row.get("replicas", 1)))
    if kind == "PyTorchJobs":
        return [f"{name}-master-0", *own_work.numbered(f"{name}-worker", cast("int", row.get("workers", 0)))]
    if kind == "pods":
        return [name]
    return own_work.generated(name, Kind.DEPLOYMENT if kind == "services" else Kind.JOB)


class Submit:
    """Apply the rows of a table as workloads of one kind; return their names. A `number` is added to each name."""

    def __init__(self, world: World, cards: Cards) -> None:
        self._world, self._cards = world, cards

    def __call__(self, what: str, table: tables.Table, number: int = 0) -> list[str]:
        template, shape = TEMPLATES[what]
        rows = [with_cards(row, self._cards.model) for row in shape.rows(table)]
        rows = [{**row, "name": f"{row['name']}-{number}"} for row in rows] if number else rows
        self._world.apply_all((template, {**row, **_policy_facts(self._world)}) for row in rows)
        return [str(row["name"]) for row in rows]


def _policy_facts(world: World) -> tables.Row:
    """Return what templates need to know of the policy: whether it chooses the nodes of pods with cards."""
    return {"cards_by_policy": Rules(world.policy).queue_plugin == CARD_PLUGIN}


@pytest.fixture
def schedspec_submit(schedspec_world: World, schedspec_cards: Cards) -> Submit:
    """Return a function that submits workloads of this scenario."""
    return Submit(schedspec_world, schedspec_cards)


@given("these {work:Work} are submitted:", needs=of_work, Work=WORK)
@when("these {work:Work} are submitted:", needs=of_work, Work=WORK)
@table(SHAPES)
@makes(work_made)
def _(submit: Submit, work: str, datatable: tables.Table) -> None:
    """Work is jobs (of Volcano), gangs, pods, services (Deployments), Kubernetes jobs or PyTorchJobs."""
    submit(work, datatable)


@given("these {work:Work} run:", needs=of_work, Work=WORK)
@table(SHAPES)
@makes(work_made)
def _(submit: Submit, expect: Expect, work: str, datatable: tables.Table) -> None:
    """Work is submitted, and all of it runs before the next sentence."""
    for name in submit(work, datatable):
        expect.eventually(pods.runs(name), within=timeouts.RUNS)


@given("these {work:Work} wait:", needs=of_work, Work=WORK)
@table(SHAPES)
@makes(work_made)
def _(submit: Submit, expect: Expect, work: str, datatable: tables.Table) -> None:
    """Work is submitted, and the scheduler has published why each workload waits."""
    for name in submit(work, datatable):
        expect.decided(reasons.waits_with_reason(name))
        expect.now(pods.waits(name))


@given("these {work:Work} are bound:", needs=of_work, Work=WORK)
@table(SHAPES)
@makes(work_made)
def _(submit: Submit, expect: Expect, work: str, datatable: tables.Table) -> None:
    """Work is submitted, and every pod of it has a node, running or not."""
    for name in submit(work, datatable):
        expect.eventually(pods.is_bound(name), within=timeouts.BOUND)


_REFUSED_SHAPES = {work: replace(shape, refers={}, needs=tables.nothing) for work, shape in SHAPES.items()}
"""Columns of work that is refused: it may name what does not exist."""


def of_refused_work(sentence: Sentence) -> set[Capability]:
    """Return the capabilities that a table of refused work needs: definitions of a kind of its own judge it."""
    own = {Capability.VALIDATION} if sentence.text.split()[1] in _BY_KIND else set()
    return of_work(sentence) | own


@when('these {work:Work} are refused because of "{text}":', needs=of_refused_work, Work=WORK)
@table(_REFUSED_SHAPES)
@makes(lambda _values, _rows: [])
@vacuous(lambda values, _: "" if values["text"].strip() else "every refusal has the empty text; name a word of it")
def _(submit: Submit, work: str, text: str, datatable: tables.Table) -> None:
    """Work is submitted, and the API server refuses each row: its message contains this text."""
    for row in datatable[1:]:
        try:
            submit(work, [datatable[0], row])
        except RejectedError as refused:
            message = refused.message
        else:
            message = "it was accepted"
        if message == "it was accepted" or text.lower() not in message.lower():
            raise Unmet(f'a refusal of {" ".join(row[:1])} that names "{text}"', message)


@given("this job with tasks runs:", needs=of_work)
@table(JOB_OF_TASKS)
@makes(work_made)
def _(world: World, cards: Cards, expect: Expect, datatable: tables.Table) -> None:
    """One Volcano Job with a task for each row: job, queue, task, replicas, cpu, on TaskCompleted."""
    expect.eventually(pods.runs(_submit_tasks(world, cards, datatable)), within=timeouts.RUNS)


@when("this job with tasks is submitted:", needs=of_work)
@table(JOB_OF_TASKS)
@makes(work_made)
def _(world: World, cards: Cards, datatable: tables.Table) -> None:
    """One Volcano Job with a task for each row. Columns as in `this job with tasks runs:`."""
    _submit_tasks(world, cards, datatable)


def _submit_tasks(world: World, cards: Cards, table: tables.Table) -> str:
    """Apply one Volcano Job with several tasks and return its name."""
    job = job_of_tasks(JOB_OF_TASKS.rows(table), cards.model)
    world.apply("job", **job, **_policy_facts(world))
    return str(job["name"])


def job_of_tasks(rows: Sequence[tables.Row], model: str = "") -> tables.Row:
    """Return the parameters of one job whose tasks are these rows.

    A task has its own minimum; the job's is their sum. The job has the priority that all of its tasks share.
    """
    job: tables.Row = {name: row[name] for name in _OF_WHOLE_JOB for row in rows if name in row}
    priorities = {row.get("priority") for row in rows}
    if len(priorities) == 1 and None not in priorities:
        job["priority"] = priorities.pop()
    tasks = [with_cards({name: cell for name, cell in row.items() if name not in _OF_WHOLE_JOB}, model) for row in rows]
    job["min_available"] = sum(cast("int", task.get("min_available", task["replicas"])) for task in tasks)
    return {**job, "tasks": tasks}
