"""Statuses of PodGroups, pods and queues that follow from a cycle's decisions."""

from __future__ import annotations

from typing import Any

import msgspec

from schedspec.scheduler.framework.decisions import QueueNumbers
from schedspec.scheduler.live import statuses
from schedspec.scheduler.model import objects
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.model.job import Job
from schedspec.scheduler.recording.events import ObjectSeen, apply_input

NOW = 1_800_000_000.0
STAMP = "2027-01-15T08:00:00Z"


def a_job(phases: list[str], conditions: list[dict[str, str]] | None = None, minimum: int = 1) -> Job:
    cluster = Cluster()
    group = {
        "metadata": {"name": "g", "namespace": "ns"},
        "spec": {"minMember": minimum},
        "status": {"phase": "Inqueue", "conditions": conditions},
    }
    apply_input(cluster, ObjectSeen("PodGroup", msgspec.convert(group, objects.PodGroup)))
    for i, phase in enumerate(phases):
        pod: dict[str, Any] = {
            "metadata": {"name": f"p{i}", "namespace": "ns", "uid": f"{i}"},
            "spec": {"nodeName": "" if phase == "Pending" else "n"},
            "status": {"phase": phase},
        }
        pod["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "g"}
        apply_input(cluster, ObjectSeen("Pod", msgspec.convert(pod, objects.Pod)))
    return cluster.jobs["ns/g"]


def test_a_podgroup_that_waits_states_the_reason() -> None:
    status = statuses.of_podgroup(a_job(["Pending"]), "Inqueue", "2 nodes: 2 lack cpu", NOW)
    assert status == {
        "phase": "Inqueue",
        "conditions": [
            {
                "type": "Unschedulable",
                "status": "True",
                "reason": "NotEnoughResources",
                "message": "2 nodes: 2 lack cpu",
                "lastTransitionTime": STAMP,
            }
        ],
    }


def test_a_running_podgroup_counts_its_pods_and_is_no_longer_unschedulable() -> None:
    before = [{"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "x"}]
    status = statuses.of_podgroup(a_job(["Running", "Succeeded", "Failed"], before), "Running", "", NOW)
    assert (status["running"], status["succeeded"], status["failed"]) == (1, 1, 1)
    assert [(c["type"], c["status"]) for c in status["conditions"]] == [
        ("Unschedulable", "False"),
        ("Scheduled", "True"),
    ]


def test_a_condition_keeps_its_transition_time_while_its_status_is_the_same() -> None:
    since = "2026-01-01T00:00:00Z"
    before = [{"type": "Unschedulable", "status": "True", "message": "old", "lastTransitionTime": since}]
    job = a_job(["Pending"], before)
    status = statuses.of_podgroup(job, "Inqueue", "new", NOW)
    assert status["conditions"][0]["lastTransitionTime"] == since
    assert job.group is not None
    assert statuses.differs(status, job.group)


def test_a_status_that_differs_only_in_time_does_not_differ() -> None:
    job = a_job(["Pending"])
    assert job.group is not None
    status = statuses.of_podgroup(job, "Inqueue", "why", NOW)
    job.group.status.conditions = [msgspec.convert(c, objects.Condition) for c in status["conditions"]]
    assert not statuses.differs(statuses.of_podgroup(job, "Inqueue", "why", NOW + 60), job.group)


def test_a_pods_status_is_changed_only_if_it_differs() -> None:
    task = a_job(["Pending"]).tasks["ns/p0"]
    change = statuses.of_pod(task, "no room", "node-1", NOW)
    assert change["nominatedNodeName"] == "node-1"
    [condition] = change["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "Unschedulable")
    task.pod.status.conditions = [msgspec.convert(condition, objects.Condition)]
    task.pod.status.nominated_node_name = "node-1"
    assert statuses.of_pod(task, "no room", "node-1", NOW + 60) == {}
    assert statuses.of_pod(task, "no room", None, NOW) == {}
    assert statuses.of_pod(task, "", "", NOW) == {"nominatedNodeName": None}


def test_a_queues_numbers_are_written_as_quantities() -> None:
    numbers = QueueNumbers(allocated={"cpu": 1500, "memory": 2**30, "nvidia.com/gpu": 2000}, deserved={"cpu": 4000})
    assert statuses.of_queue(numbers) == {
        "allocated": {"cpu": "1.5", "memory": "1Gi", "nvidia.com/gpu": "2"},
        "deserved": {"cpu": "4"},
    }
