"""Every cell of a table of work is read: it changes the objects that a template renders, or the table refuses it.

The table is every kind of work × every column × every folder of templates × every row. A scheduler that lacks what a
column needs skips the scenario, so its templates need not read that column.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import pytest

from schedspec import distribution
from schedspec.api import spaces
from schedspec.gherkin import tables
from schedspec.gherkin.documents import Sentence
from schedspec.scenario.templates import Templates
from schedspec.scheduler.lint.schemas import definitions
from schedspec.schedulers import ADAPTERS, Own
from schedspec.schedulers.adapter import KUBERNETES, Adapter
from schedspec.steps import columns, job_policies, jobs, queues

CELLS = {
    **dict.fromkeys(("queue", "priority"), "team-b"),
    **dict.fromkeys(("min available", "partition", "vgpus", "whole gpus", "cards", "gpus"), "1"),
    **dict.fromkeys(("replicas", "max retry", "workers", "cpu", "vgpu cores"), "2"),
    **dict.fromkeys(("memory", "gpu memory", "vgpu memory"), "3Gi"),
    **dict.fromkeys(("start after", "stop after"), "3s"),
    **dict.fromkeys(("required", "preferred", "partition required"), "rack"),
    **dict.fromkeys(job_policies.columns("", "", ""), "CompleteJob"),
    **dict.fromkeys(job_policies.columns("job ", "", ""), "CompleteJob after 5m"),
    **dict.fromkeys(("on exit code", "job on exit code"), "3 CompleteJob"),
    **dict.fromkeys(("task retries", "min workers"), "1"),
    "max workers": "5",
    **dict.fromkeys(("master cpu", "master gpus"), "3"),
    "master memory": "5Gi",
    "restart policy": "OnFailure",
    "preemptable": "false",
    "disruption": "pod",
    "task": "worker",
    "card": "NVIDIA-A100",
    "node selector": "zone=a",
    "tolerates": "spot",
}
"""A value for each column that differs from what the column stands for when it is left out."""
NEEDS = {
    "partition required": {"partition": "1"},
    "cards": {"card": "NVIDIA-L40"},
    "min available": {"replicas": "4", "workers": "3"},
    **{column: {"workers": "3"} for column in ("min workers", "max workers")},
}
"""What a row must have beside a column to be valid."""
KUBERNETES_GANGS = Own()
KUBERNETES_GANGS.gang_api = KUBERNETES
SCHEDULERS: Mapping[str, Adapter] = {
    "schedspec": Own(),
    "schedspec, gangs of Kubernetes": KUBERNETES_GANGS,
    "volcano": ADAPTERS["volcano"](),
    "kueue": ADAPTERS["kueue"](),
    "kai": ADAPTERS["kai"](),
    "yunikorn": ADAPTERS["yunikorn"](),
    "kube-scheduler": ADAPTERS["kube-scheduler"](),
}
COMMON = {"namespace": "ns", "scheduler_name": "s", "image": "i", "simulated": True, "gang_api_version": "v1alpha2"}
SHAPES = {
    **{work: (f"these {work} run:", shape) for work, (_, shape) in jobs.TEMPLATES.items()},
    "tasks": ("this job with tasks runs:", jobs.JOB_OF_TASKS),
}


def _table(work: str, column: str, cell: str) -> list[list[str]]:
    """Return a table with the column and what it needs; without the column if `cell` is empty."""
    shape = SHAPES[work][1]
    base = {shape.required[0]: "w", "cpu": "1"}
    base |= {"task": "t", "replicas": "4"} if work == "tasks" else {}
    base |= {"replicas": "4"} if column.startswith("partition") else {}
    base |= {name: value for name, value in NEEDS.get(column, {}).items() if name in SHAPES[work][1].columns}
    base |= {column: cell} if cell else {}
    rows = [base, {**base, "task": "second"}] if work == "tasks" and column != "task" else [base]
    return [list(base), *(list(row.values()) for row in rows)]


def _cases() -> Iterator[tuple[str, str, str]]:
    """Yield scheduler, work and column; without columns that need what the scheduler lacks."""
    for scheduler, adapter in SCHEDULERS.items():
        for work, (sentence, shape) in SHAPES.items():
            for column in shape.columns.keys() - {shape.required[0]}:
                table = tuple(map(tuple, _table(work, column, CELLS[column])))
                needs = jobs.of_work(Sentence("given", "Given", sentence, 1, table))
                if not any(map(adapter.missing, needs)):
                    yield scheduler, work, column


def _rendered(scheduler: Adapter, work: str, table: list[list[str]]) -> str:
    shape = SHAPES[work][1]
    rows, flaws = shape.read(table)
    assert not flaws
    assert not [text for row in rows for kind, text in shape.judge(row) if not kind]
    folders = [distribution.folder("templates") / name for name in (*scheduler.template_folders(), "")]
    found = []
    for row in [jobs.job_of_tasks(rows)] if work == "tasks" else [columns.with_cards(row) for row in rows]:
        template = "job" if work == "tasks" else jobs.TEMPLATES[work][0]
        found += [one.object for one in Templates(folders, COMMON).render(template, row)]
    return json.dumps(found, sort_keys=True, default=str)


@pytest.mark.parametrize(("scheduler", "work", "column"), sorted(_cases()))
def test_each_cell_changes_the_objects(scheduler: str, work: str, column: str) -> None:
    adapter = SCHEDULERS[scheduler]
    with_cell, without = _table(work, column, CELLS[column]), _table(work, column, "")
    assert _rendered(adapter, work, with_cell) != _rendered(adapter, work, without)


@pytest.mark.parametrize("column", [name for name in jobs.JOB_OF_TASKS.columns if name != "job"])
def test_the_second_row_of_a_job_of_tasks_is_read_or_refused(column: str) -> None:
    """A later row that differs changes its task, or contradicts the job of the first row."""
    needed = {name: value for name, value in NEEDS.get(column, {}).items() if name in jobs.JOB_OF_TASKS.columns}
    first = {"job": "w", "task": "a", "replicas": "4", "cpu": "1", "partition": "2", **needed}
    first |= {column: CELLS[column]}
    second = {**first, "task": "b", column: _other(column)}
    rows, flaws = jobs.JOB_OF_TASKS.read([list(first), list(first.values()), list(second.values())])
    assert not flaws
    alike, _ = jobs.JOB_OF_TASKS.read([list(first), list(first.values()), list({**first, "task": "b"}.values())])
    if list(jobs.JOB_OF_TASKS.judge_all(rows)):
        return
    assert json.dumps(jobs.job_of_tasks(rows), default=str) != json.dumps(jobs.job_of_tasks(alike), default=str)


def _other(column: str) -> str:
    """Return another valid value for a column."""
    found = CELLS[column]
    others = {
        "rack": "spine",
        "false": "true",
        "CompleteJob": "RestartJob",
        "CompleteJob after 5m": "RestartJob after 5m",
        "3 CompleteJob": "4 CompleteJob",
        "OnFailure": "Always",
        "3s": "4s",
        "3Gi": "4Gi",
        "zone=a": "zone=b",
    }
    return others.get(found, "2" if column == "partition" else "4" if found.isdecimal() else f"{found}x")


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ((("a", "q1", ""), ("b", "q2", "")), "queue q2 contradicts queue q1"),
        ((("a", "q1", "2"), ("b", "q1", "3")), "max retry 3 contradicts max retry 2"),
        ((("a", "", "2"), ("b", "q1", "")), ""),
    ],
)
def test_rows_of_one_job_agree_about_the_job(rows: tuple[tuple[str, str, str], ...], text: str) -> None:
    header = ("job", "task", "replicas", "queue", "max retry")
    read, _ = jobs.JOB_OF_TASKS.read([header, *(("w", task, "1", queue, retry) for task, queue, retry in rows)])
    found = [flaw for _, flaw in jobs.JOB_OF_TASKS.judge_all(read)]
    assert [text in flaw for flaw in found] == ([True] if text else [])


OF_AMOUNTS = (tables.quantity, tables.memory, tables.whole_amount, tables.mebibytes, tables.count, tables.amounts)
ALL_SHAPES = {**{work: shape for work, (_, shape) in SHAPES.items()}, "nodes": columns.NODES, "queues": columns.QUEUES}
AMOUNTS = [
    (what, column, read is tables.amounts)
    for what, shape in ALL_SHAPES.items()
    for column, (_, read) in shape.columns.items()
    if read in OF_AMOUNTS
]


@pytest.mark.parametrize("amount", ["256 Gi", "-1", "4x", "1,5", "0x10", "Gi", "1e", "\u0664", "nan"])
@pytest.mark.parametrize(("what", "column", "by_name"), AMOUNTS)
def test_no_column_accepts_an_amount_that_kubernetes_refuses(
    what: str, column: str, by_name: bool, amount: str
) -> None:
    cell = f"cpu {amount}" if by_name else amount
    _, flaws = ALL_SHAPES[what].read(((column,), (cell,)))
    assert [text for number, text in flaws if number == 1 and text.startswith(f"{column} {cell!r}: ")]


NAMES = [
    "a",
    "a.b",
    "1a",
    "a..b",
    "a-.b",
    ".a",
    "-a",
    "a_b",
    "a/b",
    "A",
    *("a" * number for number in (54, 55, 63, 64)),
]
TEXTS = {
    **dict.fromkeys(("node", "queue", "class", "rack", "spine", "task", "job", "gang", "pod", "service"), NAMES),
    "card": ["A100", "A/100", "A 100", "-A", "A" * 63, "A" * 64, "A|", "|A", "A.b_c"],
    "labels": ["a=b", "a..b/c=d", "a/=c", f"a={'b' * 64}", f"{'a' * 64}=b", f"{'a' * 254}/b=c", "a/b/c=d"],
}
"""Texts of a column that templates write into names and labels."""
OBJECTS = {
    **{work: (template, shape) for work, (template, shape) in jobs.TEMPLATES.items()},
    "nodes": ("node", columns.NODES),
    "queues": ("queue", columns.QUEUES),
    "classes": ("priorityclass", queues.CLASSES),
}
BASE = {"cpu": "1", "memory": "1Gi", "value": "5", "cards": "1"}
NAMED = [(what, column) for what, (_, shape) in OBJECTS.items() for column in TEXTS if column in shape.columns]


@pytest.mark.parametrize(("what", "column"), NAMED)
def test_a_text_in_a_name_or_a_label_is_refused_or_fits(what: str, column: str) -> None:
    """What a table accepts the API server accepts; what it refuses is named with its column."""
    template, shape = OBJECTS[what]
    base = {name: BASE[name] for name in BASE if name in shape.required or (name == "cards" and column == "card")}
    for text in TEXTS[column]:
        row = {shape.required[0]: "w", **base, column: text}
        rows, flaws = shape.read([list(row), list(row.values())])
        if flaws:
            assert [flaw for _, flaw in flaws if flaw.startswith(f"{column} {text!r}: ")]
            continue
        own = dict(columns.with_cards(rows[0]))
        for field in own.keys() & {"name", "gang"}:  # as a scenario renders it: `a/b` is b in the namespace a
            own["namespace"], own[field] = spaces.real("ns", str(own[field]))
        for made in Templates([distribution.folder("templates")], COMMON).render(template, own):
            assert not definitions().flaws(made.object), text
