"""Volcano's table tests of network topologies, and probes of Volcano, from `$TOPOLOGY_DIR` or `../shared/topology`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from schedspec.scheduler.decide import decide
from schedspec.scheduler.framework.plugin import Plugin
from schedspec.scheduler.model import objects
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.model.job import Job
from schedspec.scheduler.policy.hooks import JobEnqueueable, Vote
from schedspec.scheduler.policy.model import PluginOption, Policy
from tests.scheduler.conformance.cases import Case, outcome
from tests.scheduler.conformance.topology import cases, directory, tables
from tests.support.registrable import Registrable

CASES, PROBES = cases(), tables().get("probes", [])
MISSING = f"no cases of topologies in {directory()}; set TOPOLOGY_DIR"
NOW = 1_790_000_000.0
REJECTER = "test-rejecter"
DIFFERENT = (
    # Volcano binds the pod anywhere. Here the job waits with the reason that no HyperNode has the tier name.
    "here is no corresponding highestTierAllowed for highestTierName",
    # highestTierAllowed is above every tier: Volcano binds the pod to a node that no HyperNode joins to the others'.
    "can allocate job when LCAHyperNode is empty",
)
"""Cases whose job waits here with a reason, instead of being placed against its own constraint."""


@pytest.fixture
def _rejecter(registrable: Registrable) -> None:
    registrable(REJECTER)

    class Rejecter(Plugin, JobEnqueueable):
        """Reject one job, as the plugin of Volcano's test does."""

        name = REJECTER

        def job_enqueueable(self, job: Job) -> Vote:
            return Vote.REJECT if job.name == "pgA" else Vote.PERMIT


@pytest.mark.skipif(not CASES, reason=MISSING)
@pytest.mark.usefixtures("_rejecter")
@pytest.mark.parametrize("case", CASES, ids=[case.id.partition("/")[2] for case in CASES])
def test_a_case_of_volcano(case: Case) -> None:
    cluster = case.cluster()
    decisions = decide(cluster, case.policy(), NOW)
    got, expect = outcome(cluster, decisions), case.expect
    why = {job: [str(item) for item in refusal.items] for job, refusal in decisions.refusals.items()}

    assert got.evicted == sorted(expect.evicted), why
    waits = case.id.endswith(DIFFERENT)
    assert len(got.binds) == (0 if waits else expect.binds_num or 0), why
    assert not waits or why
    if not (expect.bind_count_only or case.bind_count_only or waits):
        assert got.binds == expect.binds, why
    for job, phase in expect.pod_group_phase.items():
        assert got.phases[job] == phase, why


def probe_objects(probe: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Return two racks of two nodes in one spine, a queue, and the probe's PodGroup with its pods."""
    racks = {"s0": ["s0-n1", "s0-n2"], "s1": ["s1-n3", "s1-n4"]}
    members = {**{rack: ("Node", nodes) for rack, nodes in racks.items()}, "s2": ("HyperNode", list(racks))}
    for name in (name for nodes in racks.values() for name in nodes):
        has = {"cpu": "2", "memory": "8Gi", "pods": "10"}
        yield "set_node", objects.Node(objects.ObjectMeta(name=name), status=objects.NodeStatus(allocatable=has))
    for name, (kind, inner) in members.items():
        spec = {
            "tier": 1 if kind == "Node" else 2,
            "members": [{"type": kind, "selector": {"exactMatch": {"name": one}}} for one in inner],
        }
        yield "set_hyper_node", msgspec.convert({"metadata": {"name": name}, "spec": spec}, objects.HyperNode)
    yield "set_queue", objects.Queue(objects.ObjectMeta(name="default"), status=objects.QueueStatus(state="Open"))
    spec = {key: probe[key] for key in ("minMember", "networkTopology", "subGroupPolicy") if key in probe}
    meta = {"name": "g", "namespace": "t"}
    yield (
        "set_podgroup",
        msgspec.convert({"metadata": meta, "spec": spec, "status": {"phase": "Inqueue"}}, objects.PodGroup),
    )
    for number in range(probe["pods"]):
        meta = {"name": f"p-{number}", "namespace": "t", "uid": f"p-{number}", "labels": {"group": "x"}}
        meta["annotations"] = {"scheduling.k8s.io/group-name": "g"}
        containers = [{"resources": {"requests": {"cpu": "2"}}}]
        yield "set_pod", msgspec.convert({"metadata": meta, "spec": {"containers": containers}}, objects.Pod)


@pytest.mark.skipif(not PROBES, reason=MISSING)
@pytest.mark.parametrize("probe", PROBES, ids=[probe["id"] for probe in PROBES])
def test_a_probe(probe: dict[str, Any]) -> None:
    """The result equals Volcano's result, or the better result that the table names."""
    cluster = Cluster()
    for method, item in probe_objects(probe):
        getattr(cluster, method)(item)
    plugins = (PluginOption("gang"), PluginOption("predicates"), PluginOption("network-topology-aware"))

    decisions = decide(cluster, Policy(("allocate",), (plugins,)), NOW)

    expect = WAITS if probe["id"] == "policy-without-matchLabelKeys" else probe.get("better", probe["volcano"])
    assert len(decisions.binds) == expect["bound"], decisions.refusals
    if expect.get("in") == "one rack":
        assert len({bind.node.partition("-")[0] for bind in decisions.binds}) == 1
    if not expect["bound"]:
        assert decisions.refusals["t/g"].items


WAITS = {"bound": 0}
"""Volcano silently ignores a policy without keys. Here it forms one subgroup of four pods, which fit into no rack."""
