"""On a shared cluster a scenario sees only its own objects; on our own cluster it sees all."""

from __future__ import annotations

from typing import Any

import pytest

from schedspec.api.kinds import Kind
from schedspec.clusters.protocol import SCENARIO
from schedspec.scenario.nodes import WORLD
from schedspec.scenario.ownership import TAINT, Ownership

OURS, SHARED = Ownership(), Ownership(shared=True, namespace_prefix="spec-3f-", adoptable=("real",))
LABEL = {SCENARIO: "spec-3f-a-1"}


def obj(name: str, namespace: str = "", labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    meta = (
        {"name": name, "labels": labels} if not namespace else {"name": name, "namespace": namespace, "labels": labels}
    )
    return {"metadata": meta, "spec": spec}


SEEN: dict[str, tuple[Kind, dict[str, Any], bool]] = {
    "a queue of the scenario": (Kind.QUEUE, obj("q", labels=LABEL), True),
    "a queue of others": (Kind.QUEUE, obj("team-a"), False),
    "the cluster's default queue": (Kind.QUEUE, obj("default"), False),
    "a node of the scenario": (Kind.NODE, obj("n", labels={**LABEL, WORLD: "true"}), True),
    "a node of others": (Kind.NODE, obj("worker-1", labels={"kubernetes.io/os": "linux"}), False),
    "a node of others that scenarios may use": (Kind.NODE, obj("real"), True),
    "a pod of the scenario": (Kind.POD, obj("p", "spec-3f-a-1"), True),
    "a pod of another run": (Kind.POD, obj("p", "spec-77-a-1"), False),
    "a pod of others": (Kind.POD, obj("p", "team", nodeName="worker-1"), False),
    "a pod of others that takes room where scenarios run": (Kind.POD, obj("p", "kube-system", nodeName="real"), True),
    "a group of others": (Kind.PODGROUP, obj("g", "team"), False),
    "an order to a queue of the scenario": (Kind.COMMAND, obj("c", "kube-system", labels=LABEL), True),
    "an order of others": (Kind.COMMAND, obj("c", "kube-system"), False),
    "a priority class, which pods of all may name": (Kind.PRIORITYCLASS, obj("high"), True),
}


@pytest.mark.parametrize(("kind", "item", "seen"), SEEN.values(), ids=SEEN)
def test_what_a_scenario_sees(kind: Kind, item: dict[str, Any], seen: bool) -> None:
    assert SHARED.covers(kind, item) is seen
    assert OURS.covers(kind, item)


def test_nodes_of_others_are_used_where_they_are_named() -> None:
    assert [SHARED.may_adopt("real"), SHARED.may_adopt("worker-1"), OURS.may_adopt("worker-1")] == [True, False, True]


def test_other_schedulers_place_nothing_on_our_nodes_and_ours_does() -> None:
    node = {"kind": "Node", "spec": {"taints": [{"key": "own", "effect": "NoSchedule"}]}}
    bare = {"kind": "Node"}
    pod = {"kind": "Pod", "spec": {"containers": [{}], "tolerations": [{"key": "own"}]}}
    job = {"kind": "Job", "spec": {"tasks": [{"template": {"spec": {"containers": [{}]}}}]}}
    torch = {"kind": "PyTorchJob", "spec": {"replicas": {"Master": {"template": {"spec": {"containers": [{}]}}}}}}
    for item in (node, bare, pod, job, torch):
        SHARED.keep_apart(item)
    toleration = {"key": SCENARIO, "operator": "Exists", "effect": "NoSchedule"}
    assert node["spec"]["taints"] == [{"key": "own", "effect": "NoSchedule"}, TAINT]  # type: ignore[index]
    assert bare["spec"] == {"taints": [TAINT]}  # type: ignore[comparison-overlap]
    assert pod["spec"]["tolerations"] == [{"key": "own"}, toleration]  # type: ignore[index]
    for workload in (job["spec"]["tasks"][0], torch["spec"]["replicas"]["Master"]):  # type: ignore[index]
        assert workload["template"]["spec"]["tolerations"] == [toleration]


def test_in_a_cluster_of_our_own_nothing_is_added() -> None:
    node: dict[str, Any] = {"kind": "Node", "spec": {"taints": []}}
    OURS.keep_apart(node)
    assert node == {"kind": "Node", "spec": {"taints": []}}
