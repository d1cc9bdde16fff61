"""Volcano's table of node groups (`TestNodeGroup`), read from `$TOPOLOGY_DIR` or `../shared/topology`."""

from __future__ import annotations

from typing import Any

import pytest

from schedspec.scheduler.framework.session import Session
from schedspec.scheduler.model import objects
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.plugins import PLUGINS
from schedspec.scheduler.policy.model import PluginOption, Policy
from tests.scheduler.conformance.topology import directory, tables

TABLE = tables().get("nodegroup", {})
CASES = TABLE.get("cases", [])
MISSING = f"no cases of node groups in {directory()}; set TOPOLOGY_DIR"
LESS = {"n4"}
"""Nodes that only Volcano permits: their group is named by an anti-affinity alone, which here only excludes."""


def affinity(name: str) -> objects.QueueAffinity | None:
    given = TABLE["affinities"].get(name)
    if given is None:
        return None
    towards = objects.GroupTerms(given.get("required"), given.get("preferred"))
    away = objects.GroupTerms(given.get("antiRequired"), given.get("antiPreferred"))
    return objects.QueueAffinity(towards, away)


def cluster(case: dict[str, Any]) -> Cluster:
    """Return five nodes, the queue of the case with its ancestors, and a pod in the queue."""
    found = Cluster()
    for number in range(1, 6):
        labels = {"volcano.sh/nodegroup-name": f"group{number}"} if number < 5 else {}
        meta = objects.ObjectMeta(name=f"n{number}", labels=labels)
        found.set_node(objects.Node(meta, status=objects.NodeStatus(allocatable={"cpu": "4", "pods": "10"})))
    lineage = [case["queue"], *(case[key] for key in ("parent", "grandparent") if key in case)]
    for number, name in enumerate(lineage):
        parent = f"q{number + 1}" if number + 1 < len(lineage) else ""
        spec = objects.QueueSpec(parent=parent, affinity=affinity(name))
        found.set_queue(objects.Queue(objects.ObjectMeta(name=f"q{number}"), spec, objects.QueueStatus(state="Open")))
    meta = objects.ObjectMeta(name="g", namespace="t")
    found.set_podgroup(objects.PodGroup(meta, objects.PodGroupSpec(min_member=1, queue="q0")))
    named = {"scheduling.k8s.io/group-name": "g"}
    requests = objects.Resources(requests={"cpu": "1"})
    spec_of_pod = objects.PodSpec(containers=[objects.Container(resources=requests)])
    found.set_pod(objects.Pod(objects.ObjectMeta(name="p", namespace="t", uid="p", annotations=named), spec_of_pod))
    return found


@pytest.mark.skipif(not CASES, reason=MISSING)
@pytest.mark.parametrize("number", range(len(CASES)))
def test_a_queue_uses_the_groups_of_the_table(number: int) -> None:
    case = CASES[number]
    option = PluginOption(
        "nodegroup", {"enableHierarchy": case.get("enableHierarchy", False)}, case.get("arguments", {})
    )
    state = cluster(case)
    session = Session(state, Policy(("allocate",), ((option,),)), 0.0, PLUGINS)
    task = state.tasks["t/p"]

    mask = session.placement.static(task)
    scores = dict(zip((node.name for node in session.nodes.rows), session.placement.static_score(task), strict=True))

    fits = {node.name for node in session.nodes.rows if mask[node.row]}
    assert fits == set(case["fits"]) - LESS
    for node, score in case["scores"].items():
        assert scores[node] == score
