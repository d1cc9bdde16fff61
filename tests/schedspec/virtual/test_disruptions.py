"""Budgets in virtual time permit what Kubernetes' disruption controller lets them permit."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedspec.scheduler.core import Core
from schedspec.scheduler.inputs import Input, ObjectGone, ObjectSeen, apply_input
from schedspec.scheduler.model import objects
from schedspec.scheduler.model.cluster import Cluster
from schedspec.virtual.disruptions import DisruptionController, GuardedPods

SELECTOR = objects.LabelSelector(match_labels={"team": "b"})


def pod(name: str, state: str = "Running", owner: str = "ReplicaSet", team: str = "b") -> objects.Pod:
    meta = objects.ObjectMeta(name, "t", f"uid-{name}", labels={"team": team})
    if owner:
        meta.owner_references = [objects.OwnerReference(kind=owner, name="owner", controller=True)]
    if state == "Terminating":
        meta.deletion_timestamp = "2026-01-01T00:00:00Z"
    ready = [objects.Condition("Ready", "False")] if state == "Unready" else None
    phase = "Running" if state in ("Terminating", "Unready") else state
    return objects.Pod(
        meta, objects.PodSpec(node_name="" if phase == "Pending" else "n1"), objects.PodStatus(phase, ready)
    )


def budget(name: str = "keep", allowed: int = 0, **rule: Any) -> objects.PodDisruptionBudget:
    spec = objects.PodDisruptionBudgetSpec(SELECTOR, **rule)
    status = objects.PodDisruptionBudgetStatus(allowed)
    return objects.PodDisruptionBudget(objects.ObjectMeta(name, "t"), spec, status)


@pytest.mark.parametrize(
    ("rule", "states", "owner", "allowed"),
    [
        ({"min_available": 2}, "RRR", "ReplicaSet", 1),
        ({"min_available": 2}, "RRU", "ReplicaSet", 0),
        ({"min_available": 2}, "RRRT", "ReplicaSet", 1),
        ({"min_available": 2}, "RRRPPP", "ReplicaSet", 1),
        ({"min_available": 9}, "RRR", "ReplicaSet", 0),
        ({"min_available": 2}, "RRR", "Job", 1),
        ({"min_available": 2}, "RRR", "", 1),
        ({"min_available": "50%"}, "RRRRR", "StatefulSet", 2),  # three of five are required: rounded up
        ({"min_available": "50%"}, "RRRRR", "Job", 0),
        ({"max_unavailable": 1}, "RRR", "ReplicaSet", 1),
        ({"max_unavailable": 1}, "RRT", "ReplicaSet", 0),
        ({"max_unavailable": 1}, "RRS", "ReplicaSet", 1),
        ({"max_unavailable": "30%"}, "RRRRR", "ReplicaSet", 2),
        ({"max_unavailable": 1}, "RRR", "Job", 0),
        ({"max_unavailable": 3}, "RR", "ReplicaSet", 2),
        ({"min_available": "all"}, "RRR", "ReplicaSet", 0),
        ({"min_available": 1, "max_unavailable": 1}, "RRR", "ReplicaSet", 0),
        ({}, "RRR", "ReplicaSet", 7),
    ],
)
def test_a_budget_permits_the_healthy_pods_above_what_it_requires(
    rule: dict[str, Any], states: str, owner: str, allowed: int
) -> None:
    names = {"R": "Running", "U": "Unready", "T": "Terminating", "P": "Pending", "S": "Succeeded"}
    guarded = GuardedPods(budget(allowed=7, **rule))
    for number, state in enumerate(states):
        guarded.put(pod(f"p{number}", names[state], owner))
    guarded.put(pod("other", team="a"))
    assert guarded.allowed == allowed


RULES = ({"min_available": 2}, {"min_available": "34%"}, {"max_unavailable": 1}, {"max_unavailable": "50%"}, {})
PODS = st.builds(
    pod,
    st.sampled_from(["p1", "p2", "p3", "p4"]),
    st.sampled_from(["Running", "Pending", "Unready", "Terminating", "Failed"]),
    st.sampled_from(["ReplicaSet", "ReplicaSet", "Job", ""]),
    st.sampled_from(["a", "b"]),
)
EVENTS = st.one_of(
    PODS.map(lambda it: ObjectSeen("Pod", it)),
    st.sampled_from(["p1", "p2", "p3"]).map(lambda name: ObjectGone("Pod", f"t/{name}", f"uid-{name}")),
    st.builds(lambda name, rule: ObjectSeen("PodDisruptionBudget", budget(name, **rule)),
              st.sampled_from(["one", "two"]), st.sampled_from(RULES)),
    st.sampled_from(["one", "two"]).map(lambda name: ObjectGone("PodDisruptionBudget", f"t/{name}")),
)  # fmt: skip


@given(st.lists(EVENTS, max_size=30))
def test_after_any_inputs_every_budget_permits_what_its_present_pods_permit(inputs: list[Input]) -> None:
    cluster, controller = Cluster(), DisruptionController()
    core = Core(cluster)
    for given_input in inputs:
        apply_input(core, given_input)
        controller.observe(given_input, cluster.tasks)
        for changed in controller.changed():
            own = ObjectSeen("PodDisruptionBudget", changed)
            apply_input(core, own)
            controller.observe(own, cluster.tasks)
        for item in cluster.budgets.values():
            fresh = GuardedPods(item)
            for task in cluster.tasks.values():
                fresh.put(task.pod)
            assert item.status.disruptions_allowed == fresh.allowed
