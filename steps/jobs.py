"""Work of every kind: Volcano Jobs, services, Kubernetes Jobs, PyTorchJobs; submitted, running, bound, waiting."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness import checks, tables, timeouts
from harness.claims import pods
from harness.columns import Cards
from harness.expect import Expect
from harness.sentences import given, then, when
from harness.world import World


def _on(event: str) -> Callable[[str], object]:
    return lambda action: [{"event": event, "action": action}]


_COMMON: dict[str, tables.Column] = {
    "queue": ("queue", str),
    "priority": ("priority", str),
    "cpu": ("cpu", str),
    "memory": ("memory", str),
    "cards": ("cards", int),
    "card": ("card", str),
    "replicas": ("replicas", int),
    "preemptable": ("preemptable", str),
    "start after": ("start_after", str),
}
_JOBS: dict[str, tables.Column] = {
    "job": ("name", str),
    **_COMMON,
    "task": ("task", str),
    "min available": ("min_available", int),
    "max retry": ("max_retry", int),
    "on PodEvicted": ("policies", _on("PodEvicted")),
    "on TaskCompleted": ("task_policies", _on("TaskCompleted")),
}
_SERVICES: dict[str, tables.Column] = {"service": ("name", str), **_COMMON}
_PYTORCHJOBS: dict[str, tables.Column] = {"job": ("name", str), **_COMMON, "workers": ("workers", int)}
_TEMPLATES: dict[str, tuple[str, dict[str, tables.Column]]] = {
    "jobs": ("job", _JOBS),
    "services": ("service", _SERVICES),
    "Kubernetes jobs": ("kubernetesjob", {"job": ("name", str), **_COMMON}),
    "PyTorchJobs": ("pytorchjob", _PYTORCHJOBS),
}


class Submit:
    """Applies the rows of a table as workloads of one kind, and gives their names."""

    def __init__(self, world: World, cards: Cards) -> None:
        self._world, self._cards = world, cards

    def __call__(self, what: str, table: tables.Table) -> list[str]:
        template, columns = _TEMPLATES[what]
        rows = tables.rows(table, columns, required=(table[0][0],))
        for row in rows:
            if "cards" in row and self._cards.model:
                row.setdefault("card", self._cards.model)
        self._world.apply_all((template, row) for row in rows)
        return [str(row["name"]) for row in rows]


@pytest.fixture
def submit(world: World, cards: Cards) -> Submit:
    """How workloads of this scenario are submitted."""
    return Submit(world, cards)


@given("these jobs are submitted:")
@when("these jobs are submitted:")
def _(submit: Submit, datatable: tables.Table) -> None:
    """Volcano Jobs: job, queue, priority, task, replicas, min available, cpu, memory, cards, on PodEvicted …"""
    submit("jobs", datatable)


@when("these services are submitted:")
def _(submit: Submit, datatable: tables.Table) -> None:
    """Deployments that serve online: service, queue, priority, replicas, cpu, memory, cards."""
    submit("services", datatable)


@when("these PyTorchJobs are submitted:")
def _(submit: Submit, datatable: tables.Table) -> None:
    """PyTorchJobs of one master and so many workers: job, queue, priority, workers, cpu, memory, cards."""
    submit("PyTorchJobs", datatable)


@given("these jobs run:")
def _(submit: Submit, expect: Expect, datatable: tables.Table) -> None:
    """Volcano Jobs are submitted, and each runs before the next sentence."""
    _run(submit("jobs", datatable), expect)


@given("these services run:")
def _(submit: Submit, expect: Expect, datatable: tables.Table) -> None:
    """Services are submitted, and each runs before the next sentence."""
    _run(submit("services", datatable), expect)


@given("these Kubernetes jobs run:")
def _(submit: Submit, expect: Expect, datatable: tables.Table) -> None:
    """Plain Kubernetes Jobs are submitted, and each runs before the next sentence."""
    _run(submit("Kubernetes jobs", datatable), expect)


@given("these PyTorchJobs run:")
def _(submit: Submit, expect: Expect, datatable: tables.Table) -> None:
    """PyTorchJobs are submitted, and each runs before the next sentence."""
    _run(submit("PyTorchJobs", datatable), expect)


def _run(names: list[str], expect: Expect) -> None:
    for name in names:
        expect.eventually(checks.runs(name), within=timeouts.RUNS)


@given("these jobs wait:")
def _(submit: Submit, expect: Expect, datatable: tables.Table) -> None:
    """Volcano Jobs are submitted, and the scheduler has said of each why it waits."""
    _wait(submit("jobs", datatable), expect)


@given("these services wait:")
def _(submit: Submit, expect: Expect, datatable: tables.Table) -> None:
    """Services are submitted, and the scheduler has said of each why it waits."""
    _wait(submit("services", datatable), expect)


@given("these PyTorchJobs wait:")
def _(submit: Submit, expect: Expect, datatable: tables.Table) -> None:
    """PyTorchJobs are submitted, and the scheduler has said of each why it waits."""
    _wait(submit("PyTorchJobs", datatable), expect)


def _wait(names: list[str], expect: Expect) -> None:
    for name in names:
        expect.eventually(pods.was_told_why(name), within=timeouts.SAID)
        expect.now(checks.waits(name))


@given("these jobs are bound:")
def _(submit: Submit, expect: Expect, datatable: tables.Table) -> None:
    """Volcano Jobs are submitted, and every pod of each has a node, running or not."""
    for name in submit("jobs", datatable):
        expect.eventually(pods.is_bound(name), within=timeouts.BOUND)


@given("this job with tasks runs:")
def _(world: World, expect: Expect, datatable: tables.Table) -> None:
    """One Volcano Job of several tasks, one a row: job, queue, task, replicas, cpu, on TaskCompleted."""
    rows = tables.rows(datatable, _JOBS, required=("job", "task", "replicas"))
    first = rows[0]
    world.apply("job", name=first["name"], queue=first.get("queue", "default"), tasks=rows)
    expect.eventually(checks.runs(str(first["name"])), within=timeouts.RUNS)


@then('the PodGroup of "{name}" is {phase:w}')
def _(expect: Expect, name: str, phase: str) -> None:
    """The workload's PodGroup reaches a phase: Pending, Inqueue, Running, Completed."""
    expect.eventually(checks.podgroup_is(name, phase), within=timeouts.PHASE)
