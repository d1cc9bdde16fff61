"""A job creates few pods at a time for any number of replicas, and none for a gang that can never start."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedspec.scheduler.controllers.queue.state import limits_above
from schedspec.scheduler.controllers.runtime.pod_batches import (
    MAX_WAITING,
    Capacity,
    CapacityLimits,
    creation_order,
    too_large,
)
from schedspec.scheduler.controllers.runtime.writes import Create
from schedspec.scheduler.kube.resource import PODS
from schedspec.scheduler.model.objects import Node, Queue
from tests.support.controllers.fake_cluster import FakeJobCluster, template
from tests.support.controllers.fake_training import FakeTrainingCluster

GB = 2**30


def made(cluster: FakeJobCluster | FakeTrainingCluster) -> int:
    return sum(isinstance(write, Create) and write.resource is PODS for write in cluster.decide().writes)


def place(cluster: FakeJobCluster | FakeTrainingCluster, number: int) -> None:
    """Give a node to this number of waiting pods."""
    waiting = [pod for pod in cluster.all(PODS) if not pod.spec.node_name][:number]
    for pod in waiting:
        cluster.objects[PODS.id, pod.metadata.name]["spec"]["nodeName"] = "n"


def admitted(cluster: FakeJobCluster | FakeTrainingCluster) -> FakeJobCluster | FakeTrainingCluster:
    cluster.work()
    cluster.admit()
    cluster.settle(cluster.decide)
    return cluster


def job(*tasks: dict[str, Any], **spec: Any) -> FakeJobCluster:
    return FakeJobCluster({"tasks": list(tasks), **spec})


@pytest.mark.parametrize(
    ("cluster", "at_first"),
    [
        (lambda: job({"name": "a", "replicas": 5_000_000}, minAvailable=1), MAX_WAITING),
        (lambda: job({"name": "a", "replicas": 1_000}, minAvailable=300), 300),
        (lambda: job({"name": "a", "replicas": 150}, minAvailable=1), 150),
        (lambda: FakeTrainingCluster(1_000_000, runPolicy={"schedulingPolicy": {"minAvailable": 2}}), MAX_WAITING),
        (lambda: FakeTrainingCluster(999, runPolicy={"schedulingPolicy": {"minAvailable": 250}}), 250),
    ],
    ids=["millions", "a large gang", "few", "a million workers", "a gang of workers"],
)
def test_a_limited_number_of_pods_waits_for_nodes_at_a_time(
    cluster: Callable[[], FakeJobCluster | FakeTrainingCluster], at_first: int
) -> None:
    fake = admitted(cluster())
    assert len(fake.created) == at_first
    if at_first < 200:
        return
    place(fake, 10)
    fake.settle(fake.decide)
    assert len(fake.created) == at_first + 10


def test_a_reconciliation_creates_few_pods_and_is_repeated_at_once() -> None:
    fake = job({"name": "a", "replicas": 5_000_000}, minAvailable=1).work()
    fake.admit()
    fake.reconcile_once(fake.decide)
    assert 0 < len(fake.created) <= 64
    assert fake.again == 0.0


def test_a_reconciliation_creates_fewer_pods_of_a_large_template() -> None:
    large = template()
    large["spec"]["containers"][0]["args"] = ["x" * 100_000]
    fake = job({"name": "a", "replicas": 100, "template": large}).work()
    fake.admit()
    fake.reconcile_once(fake.decide)
    assert len(fake.created) == 1


def test_a_decision_costs_the_same_for_any_number_of_replicas() -> None:
    def seconds(replicas: int) -> float:
        fake = job({"name": "a", "replicas": replicas}, minAvailable=1).work()
        fake.admit()
        best = float("inf")
        for _ in range(5):
            began = time.perf_counter()
            fake.decide()
            best = min(best, time.perf_counter() - began)
        return best

    assert seconds(5_000_000) < 3 * seconds(300) + 0.001


def test_every_tasks_minimum_comes_first() -> None:
    """Otherwise the gang would wait for pods that are created only after its start."""
    tasks = [{"name": "a", "replicas": 9_000, "minAvailable": 0}, {"name": "b", "replicas": 250, "minAvailable": 250}]
    fake = admitted(job(*tasks, minAvailable=250))
    assert {name.split("-")[1] for name in fake.created} == {"b"}


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=4))
def test_every_pod_is_created_once(tasks: list[tuple[int, int]]) -> None:
    order = list(creation_order(tasks))
    assert sorted(order) == [(task, index) for task, (_, n) in enumerate(tasks) for index in range(n)]


# ------------------------------------------------------------------------------------------------------------ the gang

SMALL = CapacityLimits({"cpu": 64_000, "memory": 256 * GB, "pods": 440})


@pytest.mark.parametrize(
    ("members", "needs", "limits", "text"),
    [
        (200, {"cpu": 10**12}, SMALL, ""),
        (441, {}, SMALL, "441 pods have to start together and exceed the capacity of all nodes: pods 441 > 440"),
        (300, {"cpu": 64_000}, SMALL, ""),
        (300, {"cpu": 65_000}, SMALL, "exceed the capacity of all nodes: cpu 65 > 64; no pod is created; lower"),
        (300, {"nvidia.com/gpu": 1000}, SMALL, "exceed the capacity of all nodes: nvidia.com/gpu 1 > 0"),
        (
            300,
            {"cpu": 5_000},
            CapacityLimits(None, [("team", {"cpu": 4_000})]),
            "exceed queue team's capability: cpu 5 > 4",
        ),
        (300, {"memory": GB}, CapacityLimits(None, [("team", {"cpu": 4_000})]), ""),
    ],
)
def test_the_reason_why_a_gang_can_never_start_is_named(
    members: int, needs: dict[str, int], limits: CapacityLimits, text: str
) -> None:
    found = too_large(members, needs, limits)
    assert text in found
    assert bool(text) == bool(found)


def test_a_job_that_can_never_start_has_no_pods_until_it_can() -> None:
    fake = job({"name": "a", "replicas": 500})
    fake.limits = CapacityLimits({"cpu": 400_000, "memory": 500 * GB, "pods": 10_000})
    fake.work()
    assert (fake.group, fake.created, fake.phase) == (None, [], "Pending")
    assert fake.job.status.state.reason == "GangTooLarge"
    assert "exceed the capacity of all nodes: cpu 500 > 400" in fake.job.status.state.message
    assert [event.reason for event in fake.events if event.kind == "Warning"] == ["GangTooLarge"]
    fake.limits = CapacityLimits({"cpu": 500_000, "memory": 500 * GB, "pods": 10_000})
    admitted(fake)
    assert len(fake.created) == 500
    assert fake.job.status.state.reason == ""


def test_a_training_job_that_can_never_start_has_no_pods() -> None:
    fake = FakeTrainingCluster(2_000_000_000)
    fake.limits = CapacityLimits({"cpu": 400_000, "pods": 10_000})
    fake.work()
    assert (fake.group, fake.created) == (None, [])
    last = fake.job.status.conditions[-1]
    assert (last.type, last.reason) == ("Created", "GangTooLarge")


def test_a_host_list_that_is_too_large_for_a_configmap_is_reported() -> None:
    fake = job({"name": "a", "replicas": 5_000_000}, minAvailable=1, plugins={"svc": []}).work()
    assert fake.job.status.state.reason == "Malformed"
    assert "spec.plugins.svc: the names of all hosts are" in fake.job.status.state.message


def queue(name: str, parent: str, **capability: str) -> Queue:
    return msgspec.convert({"metadata": {"name": name}, "spec": {"parent": parent, "capability": capability}}, Queue)


def test_limits_are_those_of_the_queue_and_its_ancestors() -> None:
    queues = [queue("root", ""), queue("dept", "root", cpu="8"), queue("a", "dept", cpu="0", memory="1Gi")]
    assert limits_above("a", queues) == [("a", {"memory": GB}), ("dept", {"cpu": 8000})]
    assert limits_above("x", [queue("x", "y", cpu="1"), queue("y", "x")]) == [("x", {"cpu": 1000})]


def test_an_unreadable_capability_of_an_ancestor_limits_no_job() -> None:
    assert limits_above("a", [queue("a", "dept", cpu="2"), queue("dept", "root", cpu="many")]) == [("a", {"cpu": 2000})]


def test_capacity_follows_changes_of_nodes() -> None:
    def node(cpu: str, world: str = "true") -> Node:
        body = {"metadata": {"name": "n", "labels": {"world": world}}, "status": {"allocatable": {"cpu": cpu}}}
        return msgspec.convert(body, Node)

    capacity = Capacity({"world": "true"})
    assert capacity.changed(None, node("4"))
    assert not capacity.changed(node("4"), node("4"))
    assert not capacity.changed(None, node("9", world="false"))
    assert capacity.changed(node("4"), node("6"))
    assert capacity.total == {"cpu": 6000}
    assert capacity.changed(node("6"), None)
    assert capacity.total == {"cpu": 0}
