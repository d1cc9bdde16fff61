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


COVERED: dict[str, tuple[Kind, dict[str, Any], bool]] = {
    "a queue of the scenario": (Kind.QUEUE, obj("q", labels=LABEL), True),
    "a foreign queue": (Kind.QUEUE, obj("team-a"), False),
    "the cluster's default queue": (Kind.QUEUE, obj("default"), False),
    "a node of the scenario": (Kind.NODE, obj("n", labels={**LABEL, WORLD: "true"}), True),
    "a foreign node": (Kind.NODE, obj("worker-1", labels={"kubernetes.io/os": "linux"}), False),
    "a foreign node that scenarios may use": (Kind.NODE, obj("real"), True),
    "a pod of the scenario": (Kind.POD, obj("p", "spec-3f-a-1"), True),
    "a pod of another run": (Kind.POD, obj("p", "spec-77-a-1"), False),
    "a foreign pod": (Kind.POD, obj("p", "team", nodeName="worker-1"), False),
    "a foreign pod on a node that scenarios may use": (Kind.POD, obj("p", "kube-system", nodeName="real"), True),
    "a foreign PodGroup": (Kind.PODGROUP, obj("g", "team"), False),
    "a Command to a queue of the scenario": (Kind.COMMAND, obj("c", "kube-system", labels=LABEL), True),
    "a foreign Command": (Kind.COMMAND, obj("c", "kube-system"), False),
    "a priority class: any pod may name it": (Kind.PRIORITYCLASS, obj("high"), True),
}


@pytest.mark.parametrize(("kind", "item", "covered"), COVERED.values(), ids=COVERED)
def test_the_history_of_a_scenario_covers(kind: Kind, item: dict[str, Any], covered: bool) -> None:
    assert SHARED.covers(kind, item) is covered
    assert OURS.covers(kind, item)


def test_on_a_shared_cluster_scenarios_use_only_foreign_nodes_that_the_user_named() -> None:
    assert [SHARED.may_adopt("real"), SHARED.may_adopt("worker-1"), OURS.may_adopt("worker-1")] == [True, False, True]


def test_our_nodes_are_tainted_and_only_our_pods_tolerate_the_taint() -> None:
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


def test_in_a_cluster_of_our_own_no_taint_is_added() -> None:
    node: dict[str, Any] = {"kind": "Node", "spec": {"taints": []}}
    OURS.keep_apart(node)
    assert node == {"kind": "Node", "spec": {"taints": []}}
