"""The amounts on nodes are exact after any sequence of changes, and never overflow an array."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedspec.scheduler.model import objects, resources
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.model.resources import MAX_AMOUNT, Resource
from schedspec.scheduler.model.task import COMPLETED, Task, TaskStatus

HUGE = "9223372036854775807"


def node(name: str = "n1", cpu: str = "4") -> objects.Node:
    return msgspec.convert(
        {"metadata": {"name": name}, "status": {"allocatable": {"cpu": cpu, "pods": 9}}}, objects.Node
    )


def pod(name: str, cpu: str, *, on: str = "n1", memory: str = "0", scheduler: str = "theirs") -> objects.Pod:
    body = {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": name,
            "annotations": {"scheduling.k8s.io/group-name": "g"},
        },
        "spec": {
            "containers": [{"resources": {"requests": {"cpu": cpu, "memory": memory}}}],
            "nodeName": on,
            "schedulerName": scheduler,
        },
        "status": {"phase": "Running"},
    }
    return msgspec.convert(body, objects.Pod)


def row_of(cluster: Cluster, amounts: str) -> Resource:
    cluster.nodes.refresh()
    return cluster.nodes.sum_of(getattr(cluster.nodes, amounts)[:1])


@pytest.mark.parametrize("pods", [1, 2, 40])
@pytest.mark.parametrize("settled", [True, False])
def test_a_node_is_free_again_after_foreign_pods_that_requested_everything(pods: int, settled: bool) -> None:
    cluster = Cluster(scheduler_names=["ours"])
    cluster.set_node(node())
    cluster.set_pod(pod("small", "1"))
    before = row_of(cluster, "idle")
    for number in range(pods):
        cluster.set_pod(pod(f"huge-{number}", HUGE))
        if settled:
            assert row_of(cluster, "idle")["cpu"] <= -MAX_AMOUNT + 3000
    for number in reversed(range(pods)):
        cluster.delete_pod(f"ns/huge-{number}")
    assert row_of(cluster, "idle") == before == {"cpu": 3000, "pods": 8}


def test_a_jobs_amounts_are_unchanged_after_pods_that_requested_everything() -> None:
    cluster = Cluster(scheduler_names=["ours"])
    cluster.set_pod(pod("small", "1", scheduler="ours"))
    for number in range(40):
        cluster.set_pod(pod(f"huge-{number}", HUGE, scheduler="ours"))
    assert cluster.jobs["ns/g"].allocated["cpu"] == 40 * MAX_AMOUNT + 1000
    for number in range(40):
        cluster.delete_pod(f"ns/huge-{number}")
    assert cluster.jobs["ns/g"].allocated == {"cpu": 1000, "pods": 1}


def test_the_sum_over_all_nodes_is_exact_however_large_it_is() -> None:
    cluster = Cluster()
    for number in range(40):
        cluster.set_node(node(f"n{number}", HUGE))
    cluster.set_node(node("small", "4"))
    cluster.nodes.refresh()
    assert cluster.nodes.total()["cpu"] == 40 * MAX_AMOUNT + 4000


LARGE_AND_SMALL = st.sampled_from([1, 1000, 2**44, 2**44 + 1, 2**59, MAX_AMOUNT, 2**70])
STATUS = st.sampled_from([TaskStatus.RUNNING, TaskStatus.RELEASING, TaskStatus.PIPELINED, TaskStatus.SUCCEEDED])
TASK = st.tuples(LARGE_AND_SMALL, LARGE_AND_SMALL, STATUS, st.booleans())


def task_of(name: str, cpu: int, memory: int) -> Task:
    return Task(pod(name, f"{cpu}m", memory=str(memory)), "")


def amounts_of(tasks: Iterable[tuple[Task, TaskStatus]], allocatable: Resource) -> tuple[Resource, ...]:
    """Return idle, releasing and pipelined amounts by their definition."""
    idle, releasing, pipelined = dict(allocatable), Resource(), Resource()
    for task, status in tasks:
        if status is TaskStatus.PIPELINED:
            resources.add_to(pipelined, task.request)
        elif not status & COMPLETED:
            resources.take_from(idle, task.request)
            if status is TaskStatus.RELEASING:
                resources.add_to(releasing, task.request)
    cut = (
        {name: max(min(amount, MAX_AMOUNT), -MAX_AMOUNT) for name, amount in sums.items()}
        for sums in (idle, releasing, pipelined)
    )
    return tuple({name: amount for name, amount in sums.items() if amount} for sums in cut)


@given(st.lists(TASK, max_size=12))
def test_the_arrays_contain_the_exact_sums_within_their_limits(tasks: list[tuple[int, int, TaskStatus, bool]]) -> None:
    cluster = Cluster()
    info = cluster.nodes.put(node())
    cluster.nodes.refresh()
    on_node: list[tuple[Task, TaskStatus]] = []
    for number, (cpu, memory, status, leaves) in enumerate(tasks):
        task = task_of(f"p{number}", cpu, memory)
        cluster.nodes.place(info, task, status)
        on_node.append((task, status))
        if leaves:
            cluster.nodes.lift(info, *on_node.pop(0))
        found = tuple(row_of(cluster, amounts) for amounts in ("idle", "releasing", "pipelined"))
        assert found == amounts_of(on_node, info.allocatable)


@given(st.lists(TASK, max_size=6), st.lists(TASK, max_size=6))
def test_restored_amounts_equal_the_saved_amounts(
    tasks: list[tuple[int, int, TaskStatus, bool]], changes: list[tuple[int, int, TaskStatus, bool]]
) -> None:
    cluster = Cluster()
    info, other = cluster.nodes.put(node()), cluster.nodes.put(node("n2"))
    cluster.nodes.refresh()
    on_node: list[tuple[Task, TaskStatus]] = []
    for number, (cpu, memory, status, _) in enumerate(tasks):
        task = task_of(f"p{number}", cpu, memory)
        cluster.nodes.place(info, task, status)
        on_node.append((task, status))
    saved, moved = cluster.nodes.save(), dict[str, tuple[Task, str]]()
    for number, (cpu, memory, status, leaves) in enumerate(changes):
        if leaves and number < len(on_node):
            task, before = on_node[number]
            cluster.nodes.lift(info, task, before)
            cluster.nodes.place(other, task, status)
            task.node, moved[task.key] = "n2", (task, "n1")
        else:
            task = task_of(f"new-{number}", cpu, memory)
            cluster.nodes.place(info, task, status)
            moved[task.key] = (task, "")
    cluster.nodes.restore(saved, moved.values())
    found = tuple(row_of(cluster, amounts) for amounts in ("idle", "releasing", "pipelined"))
    assert found == amounts_of(on_node, info.allocatable)
    assert info.tasks.keys() == {task.key for task, _ in on_node}
    assert not other.tasks
    for task, status in on_node:  # `restore` also restores which rows are counted exactly
        cluster.nodes.lift(info, task, status)
    assert row_of(cluster, "idle") == info.allocatable
