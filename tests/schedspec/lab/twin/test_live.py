"""The programs of schedulers decide on twins: ours as its model foretells, Volcano and Kueue as they do in clusters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from schedspec.api import crds
from schedspec.cli.dump import dump_command
from schedspec.lab.plan import Plan, Request, Side, make_plan, render_text
from schedspec.lab.twin import Choice
from schedspec.lab.twin.etcd import Etcd
from schedspec.lab.twin.world import Twin, booted, objects_of
from schedspec.scheduler.model.names import ON_EVICTED
from schedspec.scheduler.model.objects import OwnerReference
from schedspec.schedulers import find
from schedspec.virtual.state import read_state
from schedspec.virtual.state.dump import write_state
from tests.schedspec.lab.plan.test_at_once import RECLAIM, TABLE, gpus, queue
from tests.support.core.states import NOW, state_of
from tests.support.kueue_state import GPU, cluster_queue, cohort, flavor, listed, local_queue, workload

pytestmark = pytest.mark.embedded
RECLAIMS = {"preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}}


def asked(choice: Choice, state: Path, proposed: dict[str, str], out: Path) -> Plan:
    return make_plan(Request(state, None, Side("new", proposed), out=out, clock=NOW, max_age=float("inf")), choice.of)


def table(tmp_path: Path) -> Path:
    write_state(state_of(TABLE), tmp_path / "state.jsonl.gz")
    return tmp_path / "state.jsonl.gz"


def test_our_own_program_decides_as_its_model_foretells(tmp_path: Path) -> None:
    change = {"q.yaml": queue("a", deserved=gpus(4))}
    twin = asked(Choice("schedspec"), table(tmp_path), change, tmp_path / "twin")
    model = asked(Choice(by_model=True), table(tmp_path), change, tmp_path / "model")
    assert twin.decided_by.startswith("schedspec")
    for real, foretold in ((twin.at_once.now, model.at_once.now), (twin.at_once.proposed, model.at_once.proposed)):
        assert {(one.pod, one.node) for one in real.evictions} == {(one.pod, one.node) for one in foretold.evictions}
        assert {(one.job, one.pods) for one in real.starts} == {(one.job, one.pods) for one in foretold.starts}
        assert real.held == foretold.held
        assert real.waiting.keys() == foretold.waiting.keys()
    assert twin.model is not None
    assert "our model decides the same" in render_text(twin)
    assert {one.pod for one in twin.at_once.evictions} == {one.pod for one in model.at_once.evictions} != set()


@pytest.mark.nightly
@pytest.mark.parametrize("action", ["RestartJob", "AbortJob"])
def test_the_policy_of_a_job_acts_in_a_twin_as_in_the_model(tmp_path: Path, action: str) -> None:
    state = state_of(TABLE)
    for key, pod in state.objects["Pod"].items():
        pod.metadata.annotations = {**(pod.metadata.annotations or {}), ON_EVICTED: action}
        job = key.rpartition("-")[0]
        pod.metadata.owner_references = [OwnerReference("batch.volcano.sh/v1alpha1", "Job", job, f"job-{job}")]
    write_state(state, tmp_path / "state.jsonl.gz")
    change = {"q.yaml": queue("a", deserved=gpus(4))}
    twin = asked(Choice("schedspec"), tmp_path / "state.jsonl.gz", change, tmp_path / "twin").at_once
    model = asked(Choice(by_model=True), tmp_path / "state.jsonl.gz", change, tmp_path / "model").at_once
    assert {one.pod for one in twin.evictions} == {one.pod for one in model.evictions} != set()
    assert twin.proposed.held == model.proposed.held
    assert twin.proposed.waiting.keys() == model.proposed.waiting.keys()


@pytest.mark.nightly
def test_volcano_decides_by_a_plugin_that_our_model_does_not_have(tmp_path: Path) -> None:
    policy = RECLAIM.replace("{name: nodeorder}", "{name: nodeorder}, {name: tdm}")
    plan = asked(Choice("volcano", runs=1), table(tmp_path), {"p.yaml": policy}, tmp_path)
    assert plan.model is None
    assert [change.partition(":")[0] for change in plan.changes] == ["the policy p.yaml"]
    assert plan.at_once.proposed.held == {"a": 2.0, "b": 6.0}


@pytest.mark.nightly
def test_volcano_reclaims_what_a_larger_share_asks_for(tmp_path: Path) -> None:
    plan = asked(Choice("volcano"), table(tmp_path), {"q.yaml": queue("a", deserved=gpus(4))}, tmp_path)
    assert plan.decided_by.startswith("volcano v1.")
    assert len(plan.runs) == 3
    for run in plan.runs:
        assert (len(run.now.evictions), len(run.proposed.evictions)) != (0, 0)
        assert run.proposed.held == {"a": 4.0, "b": 4.0}
    assert {one.queue for one in plan.at_once.evictions} == {"b"}
    assert {one.runs for one in plan.at_once.starts} == {3}


def kueue_list(tmp_path: Path, *queues: dict[str, Any]) -> Path:
    names = [item["metadata"]["name"] for item in queues]
    items = [flavor(), *queues, *map(local_queue, names)]
    items += [workload(f"l{number}", "lender", 1, admitted=10 + number) for number in range(8)]
    items.append(workload("w", "owner", 3))
    for item in items:
        if item["kind"] == "Workload":
            owned(item)
    (tmp_path / "list.json").write_text(json.dumps(listed(*items)))
    return tmp_path / "list.json"


def owned(item: dict[str, Any]) -> None:
    """Name the Job of a Workload as Kueue does. A state has no Jobs."""
    name = item["metadata"]["name"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": f"job-{name}", "controller": True}
    item["metadata"] |= {"ownerReferences": [owner], "labels": {"kueue.x-k8s.io/job-uid": owner["uid"]}}


def manifest(**spec: Any) -> dict[str, str]:
    item = cluster_queue("owner", **spec)
    return {"q.yaml": yaml.safe_dump(item | {"metadata": {"name": "owner"}})}


@pytest.mark.nightly
def test_kueue_reclaims_from_the_youngest_until_the_quota_changes(tmp_path: Path) -> None:
    state = kueue_list(tmp_path, cluster_queue("lender", 4, **RECLAIMS), cluster_queue("owner", 4, **RECLAIMS))
    plan = asked(Choice(), state, manifest(gpus=2, **RECLAIMS), tmp_path)
    assert plan.decided_by.startswith("kueue v0.")
    assert {one.pod for one in plan.at_once.spared} == {"team/l5", "team/l6", "team/l7"}
    assert {(one.preemptor, one.action) for one in plan.at_once.spared} == {("team/w", "InCohortReclamation")}
    assert [(one.job, one.queue, one.was) for one in plan.at_once.refused] == [("team/w", "owner", "starts")]
    assert "insufficient unused quota" in plan.at_once.refused[0].why
    quota = f"spec.resourceGroups[{GPU}].flavors[gpu].resources[{GPU}].nominalQuota"
    assert plan.changes == [f"ClusterQueue owner: {quota} 4 → 2"]


def test_kube_scheduler_preempts_by_priority_and_needs_no_queue(tmp_path: Path) -> None:
    table: dict[str, Any] = {
        "policy": "capacity",
        "nodes": [{"name": "n1", "has": "4 cpu"}],
        "jobs": [
            {"name": "low", "tasks": "4 x 1 cpu running on n1", "pod": {"spec": {"priority": 1}}},
            {"name": "high", "tasks": "1 x 2 cpu", "pod": {"spec": {"priority": 9}}},
        ],
    }
    state = state_of(table)
    for pod in state.objects["Pod"].values():
        pod.spec.scheduler_name = "default-scheduler"
    state.objects["PodGroup"].clear()
    write_state(state, tmp_path / "state.jsonl.gz")
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "spec": {"unschedulable": True}}
    change = {"node.yaml": yaml.safe_dump(node)}
    plan = asked(Choice("kube-scheduler"), tmp_path / "state.jsonl.gz", change, tmp_path)
    assert plan.decided_by.startswith("kube-scheduler v1.")
    assert [len(world.evictions) for world in (plan.at_once.now, plan.at_once.proposed)] == [2, 0]
    assert plan.changes[0].startswith("Node n1 is cordoned")
    assert len(plan.at_once.spared) == 2


@pytest.mark.nightly
def test_old_work_is_not_evicted_by_a_deadline_that_the_cluster_lacks(tmp_path: Path) -> None:
    state = kueue_list(tmp_path, cluster_queue("lender", 12, **RECLAIMS), cluster_queue("owner", 4, **RECLAIMS))
    state.write_text(state.read_text().replace("2026-11-20T08:1", "2026-10-20T08:1"))
    plan = asked(Choice("kueue"), state, manifest(gpus=3, **RECLAIMS), tmp_path)
    assert (plan.at_once.now.evictions, plan.at_once.proposed.evictions) == ([], [])
    assert [one.job for one in plan.at_once.proposed.starts] == ["team/w"]


@pytest.mark.nightly
def test_an_upgrade_shows_the_repair_of_kueue_13607_as_its_only_difference(tmp_path: Path) -> None:
    # A queue has used its own quota, which it may not exceed; the idle quota of the whole tree is a second flavor.
    own = {"name": GPU, "nominalQuota": "2", "borrowingLimit": "0"}
    flavors = [{"name": "own", "resources": [own]}, {"name": "idle", "resources": [{"name": GPU, "nominalQuota": "0"}]}]
    prefers = {"preference": "PreemptionOverBorrowing"} | dict.fromkeys(
        ("whenCanBorrow", "whenCanPreempt"), "TryNextFlavor"
    )
    spec = {
        "flavorFungibility": prefers,
        "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "Never"},
        "resourceGroups": [{"coveredResources": [GPU], "flavors": flavors}],
    }
    top = cohort("root", {"name": "idle", "resources": [{"name": GPU, "nominalQuota": "4"}]})
    queues = [cluster_queue(name, 2, cohort="org", **spec) for name in ("team", "sibling")]
    held = workload("held", "team", 2, admitted=5, flavor="own")
    items = [flavor("own"), flavor("idle"), top, cohort("org", parent="root"), *queues, local_queue("team"), held]
    (tmp_path / "list.json").write_text(json.dumps(listed(*items, workload("more", "team", 2))))
    plan = make_plan(
        Request(tmp_path / "list.json", None, Side("v0.19.1", {}), out=tmp_path, clock=NOW, max_age=float("inf")),
        Choice("kueue@v0.19.0..v0.19.1").of,
    )
    assert plan.decided_by == "kueue v0.19.1 against v0.19.0"
    assert plan.changes == []
    assert [(one.job, one.queue) for one in plan.at_once.starts] == [("team/more", "team")]
    assert (plan.at_once.now.starts, plan.at_once.evictions, plan.at_once.refused) == ([], [], [])


@pytest.mark.nightly
def test_a_dump_takes_kueues_objects_from_a_cluster(tmp_path: Path) -> None:
    twin = Twin(find("kueue"), None, print)
    queues = [cluster_queue("lender", 4, **RECLAIMS), cluster_queue("owner", 4, **RECLAIMS)]
    listed_state = read_state(kueue_list(tmp_path, *queues), with_kueue=True)
    with booted(twin, tmp_path / "site") as (site, cluster):
        definitions = twin.adapter.definitions(site)
        assert definitions is not None
        crds.install(site.api, definitions)
        etcd = Etcd(cluster.etcd, site.api)
        etcd.put(objects_of(listed_state, "schedspec", 0.0, 1.0))
        etcd.close()
        done = CliRunner().invoke(
            dump_command,
            ["--kubeconfig", str(cluster.kubeconfig), "--context", cluster.context, "--out", str(tmp_path / "s.gz")],
        )
        assert done.exit_code == 0, done.output
    taken = read_state(tmp_path / "s.gz", with_kueue=True)
    assert {kind: set(found) for kind, found in taken.others.items()} == {
        kind: set(found) for kind, found in listed_state.others.items()
    }
    assert taken.queues_of_work() == listed_state.queues_of_work()
    for key, workload_ in listed_state.others["Workload"].items():
        assert taken.others["Workload"][key]["status"] == workload_.get("status", {}) or not workload_.get("status")
        assert taken.others["Workload"][key]["metadata"]["uid"] == workload_["metadata"]["uid"]
