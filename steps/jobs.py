"""Work of every kind: Volcano Jobs, services, Kubernetes Jobs, PyTorchJobs; submitted, running, bound, waiting."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import pytest

from schedspec.api import timeouts
from schedspec.api.capabilities import Capability
from schedspec.checks import pods, reasons
from schedspec.gherkin import tables
from schedspec.gherkin.bdd import Sentence
from schedspec.gherkin.step_decorators import Thing, given, makes, one_of, table, when
from schedspec.gherkin.things import POD, PRIORITY_CLASS, WORKLOAD
from schedspec.observe.expect import Expect
from schedspec.scenario.world import World

from .columns import Cards, cards_without_model


def _on(event: str) -> Callable[[str], object]:
    return lambda action: [{"event": event, "action": tables.word(action)}]


def _shape(name: str, own: Mapping[str, tables.Column], *required: str) -> tables.Shape:
    """Of work of one kind: its name, what all work has, and columns of its own."""
    columns = {name: ("name", tables.name), **_COMMON, **own}
    return tables.Shape(columns, (name, *required), cards_without_model, {"priority": PRIORITY_CLASS})


_COMMON: dict[str, tables.Column] = {
    "queue": ("queue", tables.name),
    "priority": ("priority", tables.name),
    "cpu": ("cpu", tables.quantity),
    "memory": ("memory", tables.quantity),
    "cards": ("cards", tables.count),
    "card": ("card", tables.word),
    "replicas": ("replicas", tables.count),
    "preemptable": ("preemptable", tables.word),
    "start after": ("start_after", tables.duration),
    "stop after": ("stop_after", tables.duration),
}
_OF_JOBS: dict[str, tables.Column] = {
    "task": ("task", tables.name),
    "min available": ("min_available", tables.count),
    "max retry": ("max_retry", tables.count),
    "on PodEvicted": ("policies", _on("PodEvicted")),
    "on TaskCompleted": ("task_policies", _on("TaskCompleted")),
}
_OF_GANGS: dict[str, tables.Column] = {
    "min available": ("min_available", tables.count),
    "disruption": ("disruption", tables.word),
}
_JOB_OF_TASKS = _shape("job", _OF_JOBS, "task", "replicas")
_TEMPLATES: dict[str, tuple[str, tables.Shape]] = {
    "jobs": ("job", _shape("job", _OF_JOBS)),
    "gangs": ("gang", _shape("gang", _OF_GANGS)),
    "pods": ("pod", _shape("pod", {})),
    "services": ("service", _shape("service", {})),
    "Kubernetes jobs": ("kubernetesjob", _shape("job", {})),
    "PyTorchJobs": ("pytorchjob", _shape("job", {"workers": ("workers", tables.count)})),
}
_SHAPES = {work: shape for work, (_, shape) in _TEMPLATES.items()}
WORK = one_of(*_TEMPLATES)
"""The kinds of work that a sentence can speak of."""


_BY_KIND = {
    "jobs": Capability.JOBS,
    "job": Capability.JOBS,
    "PyTorchJobs": Capability.PYTORCHJOBS,
    "gangs": Capability.GANGS,
}
_BY_COLUMN = {
    "queue": Capability.QUEUES,
    "on PodEvicted": Capability.JOB_POLICIES,
    "on TaskCompleted": Capability.JOB_POLICIES,
    "max retry": Capability.JOB_POLICIES,
}


def of_work(sentence: Sentence) -> set[Capability]:
    """What a table of work needs: its kind, and what its columns say."""
    kind = sentence.text.split()[1]
    found = {_BY_COLUMN[name] for name in sentence.columns if name in _BY_COLUMN}
    return found | {_BY_KIND[kind]} if kind in _BY_KIND else found


def _work(values: Mapping[str, object], rows: Sequence[tables.Row]) -> list[Thing]:
    """What is there once work is submitted: its workloads, and their pods as far as their names are known."""
    kind, made = values.get("work", "jobs"), []
    for row in rows:
        name = str(row.get("name", "*"))
        made.append((WORKLOAD, name))
        if kind == "jobs":
            task, replicas = row.get("task", "task"), row.get("replicas", 1)
            made += [(POD, f"{name}-{task}-{number}") for number in range(cast("int", replicas))]
        else:
            made.append((POD, name if kind == "pods" else f"{name}-*"))
    return made


class Submit:
    """Applies the rows of a table as workloads of one kind, and gives their names."""

    def __init__(self, world: World, cards: Cards) -> None:
        self._world, self._cards = world, cards

    def __call__(self, what: str, table: tables.Table) -> list[str]:
        template, shape = _TEMPLATES[what]
        rows = shape.rows(table)
        for row in rows:
            if "cards" in row and self._cards.model:
                row.setdefault("card", self._cards.model)
        self._world.apply_all((template, row) for row in rows)
        return [str(row["name"]) for row in rows]


@pytest.fixture
def submit(world: World, cards: Cards) -> Submit:
    """How workloads of this scenario are submitted."""
    return Submit(world, cards)


@given("these {work:Work} are submitted:", needs=of_work, Work=WORK)
@when("these {work:Work} are submitted:", needs=of_work, Work=WORK)
@table(_SHAPES)
@makes(_work)
def _(submit: Submit, work: str, datatable: tables.Table) -> None:
    """Work is jobs (of Volcano), services (Deployments), Kubernetes jobs or PyTorchJobs: name, queue, cards …"""
    submit(work, datatable)


@given("these {work:Work} run:", needs=of_work, Work=WORK)
@table(_SHAPES)
@makes(_work)
def _(submit: Submit, expect: Expect, work: str, datatable: tables.Table) -> None:
    """Work is submitted, and all of it runs before the next sentence."""
    for name in submit(work, datatable):
        expect.eventually(pods.runs(name), within=timeouts.RUNS)


@given("these {work:Work} wait:", needs=of_work, Work=WORK)
@table(_SHAPES)
@makes(_work)
def _(submit: Submit, expect: Expect, work: str, datatable: tables.Table) -> None:
    """Work is submitted, and the scheduler has said of each why it waits."""
    for name in submit(work, datatable):
        expect.decided(reasons.waits_and_was_told_why(name))
        expect.now(pods.waits(name))


@given("these {work:Work} are bound:", needs=of_work, Work=WORK)
@table(_SHAPES)
@makes(_work)
def _(submit: Submit, expect: Expect, work: str, datatable: tables.Table) -> None:
    """Work is submitted, and every pod of it has a node, running or not."""
    for name in submit(work, datatable):
        expect.eventually(pods.is_bound(name), within=timeouts.BOUND)


@given("a second has passed")
def _() -> None:
    """What comes now is younger than all that is there: Kubernetes tells creation times in whole seconds."""
    time.sleep(1.0)


@given("this job with tasks runs:", needs=of_work)
@table(_JOB_OF_TASKS)
@makes(_work)
def _(world: World, expect: Expect, datatable: tables.Table) -> None:
    """One Volcano Job of several tasks, one a row: job, queue, task, replicas, cpu, on TaskCompleted."""
    rows = _JOB_OF_TASKS.rows(datatable)
    first = rows[0]
    world.apply("job", name=first["name"], queue=first.get("queue", "default"), tasks=rows)
    expect.eventually(pods.runs(str(first["name"])), within=timeouts.RUNS)
