"""Queues become quotas, and recorded objects of Kueue v0.19.2 are interpreted, without a cluster."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from schedspec import schedulers
from schedspec.api.capabilities import Capability
from schedspec.api.errors import PolicyRefusedError
from schedspec.api.kinds import LEVELS, Kind
from schedspec.api.marks import READ
from schedspec.clusters.programs.pinned import program, versions
from schedspec.observe import view as views
from schedspec.observe.watcher import HistoryWriter
from schedspec.scenario.templates import Templates
from schedspec.schedulers import AdapterError
from schedspec.schedulers.kueue import Kueue, processes, quota
from schedspec.schedulers.kueue.adapter import converted
from schedspec.schedulers.readiness import NotReadyError

ROOT = Path(__file__).parents[3]
POLICIES = ROOT / "templates" / "kueue" / "policies"
AMOUNTS = quota.KueuePolicy()


def queue(name: str, **spec: Any) -> dict[str, Any]:
    if "guarantee" in spec:
        spec["guarantee"] = {"resource": spec["guarantee"]}
    return {"metadata": {"name": name}, "spec": spec}


def node(name: str = "n1", **allocatable: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"allocatable": allocatable or {"cpu": "4", "memory": "16Gi"}}}


def quotas_of(
    queues: list[dict[str, Any]], nodes: list[dict[str, Any]], how: quota.KueuePolicy = AMOUNTS
) -> dict[str, Any]:
    """Return the spec of each object by kind and name."""
    return {f"{it['kind']} {it['metadata']['name']}": it["spec"] for it in quota.of_scenario(queues, nodes, how)}


def quota_in(spec: dict[str, Any], resource: str) -> dict[str, str]:
    """Return the quota of one resource in a ClusterQueue or a Cohort."""
    quotas = spec["resourceGroups"][0]["flavors"][0]["resources"]
    return {name: value for it in quotas if it["name"] == resource for name, value in it.items() if name != "name"}


class TestTopology:
    def test_the_levels_of_a_topology_begin_with_the_widest(self) -> None:
        inside = {**node(), "metadata": {"name": "n1", "labels": {LEVELS["rack"]: "a", LEVELS["spine"]: "s"}}}
        found = quotas_of([], [inside, node("n2")])
        levels = [it["nodeLabel"] for it in found[f"Topology {quota.FLAVOR}"]["levels"]]
        assert levels == ["schedspec.dev/spine", "schedspec.dev/rack", "kubernetes.io/hostname"]
        assert found[f"ResourceFlavor {quota.FLAVOR}"]["topologyName"] == quota.FLAVOR

    def test_nodes_without_racks_need_no_topology(self) -> None:
        assert f"Topology {quota.FLAVOR}" not in quotas_of([], [node()])


class TestQuota:
    def test_deserved_becomes_nominal_quota_and_the_cohort_has_the_remainder(self) -> None:
        found = quotas_of([queue("team", deserved={"cpu": "3"})], [node(), node("n2")])
        assert quota_in(found["ClusterQueue team"], "cpu") == {"nominalQuota": "3"}
        assert quota_in(found[f"Cohort {quota.TOP}"], "cpu") == {"nominalQuota": "5"}
        assert found["ClusterQueue team"]["cohortName"] == quota.TOP

    def test_the_top_cohort_has_no_quota_if_queues_deserve_more_than_exists(self) -> None:
        found = quotas_of([queue("team", deserved={"cpu": "9"})], [node()])
        assert quota_in(found[f"Cohort {quota.TOP}"], "cpu") == {"nominalQuota": "0"}

    def test_capability_becomes_the_borrowing_limit(self) -> None:
        found = quotas_of([queue("team", deserved={"cpu": "2"}, capability={"cpu": "5"})], [node()])
        assert quota_in(found["ClusterQueue team"], "cpu") == {"nominalQuota": "2", "borrowingLimit": "3"}

    def test_a_guarantee_is_not_lent(self) -> None:
        found = quotas_of([queue("team", deserved={"cpu": "2"}, guarantee={"cpu": "1500m"})], [node()])
        assert quota_in(found["ClusterQueue team"], "cpu") == {"nominalQuota": "2", "lendingLimit": "500m"}

    def test_a_guarantee_without_deserved_is_nominal_and_not_lent(self) -> None:
        found = quotas_of([queue("team", guarantee={"cpu": "1"})], [node()])
        assert quota_in(found["ClusterQueue team"], "cpu") == {"nominalQuota": "1", "lendingLimit": "0"}

    def test_a_resource_that_no_queue_names_is_not_limited_and_not_lent(self) -> None:
        memory = quota_in(quotas_of([queue("team", deserved={"cpu": "2"})], [node()])["ClusterQueue team"], "memory")
        assert int(memory["nominalQuota"]) > 16 * 2**30
        assert memory["lendingLimit"] == "0"

    def test_a_resource_that_one_queue_names_is_limited_for_all(self) -> None:
        found = quotas_of([queue("a", deserved={"memory": "8Gi"}), queue("b")], [node()])
        assert quota_in(found["ClusterQueue b"], "memory") == {"nominalQuota": "0"}

    def test_devices_are_limited(self) -> None:
        found = quotas_of([queue("team")], [node(**{"cpu": "4", "nvidia.com/gpu": "8"})])
        assert quota_in(found["ClusterQueue team"], "nvidia.com/gpu") == {"nominalQuota": "0"}
        assert quota_in(found[f"Cohort {quota.TOP}"], "nvidia.com/gpu") == {"nominalQuota": "8"}

    def test_a_queue_with_children_is_a_cohort(self) -> None:
        parent = queue("a", parent="root", deserved={"cpu": "4"}, capability={"cpu": "5"})
        found = quotas_of([parent, queue("a1", parent="a", deserved={"cpu": "3"})], [node()])
        assert "ClusterQueue a" not in found
        assert found["Cohort a"]["parentName"] == quota.TOP
        assert quota_in(found["Cohort a"], "cpu") == {"nominalQuota": "1", "borrowingLimit": "1"}
        assert found["ClusterQueue a1"]["cohortName"] == "a"
        assert quota_in(found[f"Cohort {quota.TOP}"], "cpu") == {"nominalQuota": "0"}

    def test_weights_leave_the_quota_to_the_cohort(self) -> None:
        weights = quota.KueuePolicy(shares="weights")
        found = quotas_of([queue("small", weight=1), queue("large", weight=3)], [node()], weights)
        assert quota_in(found["ClusterQueue large"], "cpu") == {"nominalQuota": "0"}
        assert found["ClusterQueue large"]["fairSharing"] == {"weight": "3"}
        assert quota_in(found[f"Cohort {quota.TOP}"], "cpu") == {"nominalQuota": "4"}

    def test_parts_split_the_total_by_weight(self) -> None:
        found = quotas_of([queue("a", weight=1), queue("b", weight=3)], [node()], quota.KueuePolicy(shares="parts"))
        assert [quota_in(found[f"ClusterQueue {name}"], "cpu")["nominalQuota"] for name in ("a", "b")] == ["1", "3"]
        assert quota_in(found["ClusterQueue schedspec-default"], "cpu") == {"nominalQuota": "0"}

    def test_a_part_never_exceeds_the_capability(self) -> None:
        queues = [queue("a", capability={"cpu": "1"}), queue("b")]
        found = quotas_of(queues, [node()], quota.KueuePolicy(shares="parts"))
        assert quota_in(found["ClusterQueue a"], "cpu") == {"nominalQuota": "1", "borrowingLimit": "0"}
        assert quota_in(found[f"Cohort {quota.TOP}"], "cpu") == {"nominalQuota": "1"}

    def test_the_first_flavor_is_not_borrowed_and_the_second_is_the_cohorts(self) -> None:
        flavors = quota.KueuePolicy(shares="flavors")
        found = quotas_of([queue("team", deserved={"cpu": "1"})], [node()], flavors)
        own, idle = found["ClusterQueue team"]["resourceGroups"][0]["flavors"]
        assert {"name": "cpu", "nominalQuota": "1", "borrowingLimit": "0"} in own["resources"]
        assert {"name": "cpu", "nominalQuota": "0"} in idle["resources"]
        assert found[f"Cohort {quota.TOP}"]["resourceGroups"][0]["flavors"][0]["name"] == quota.IDLE
        assert quota_in(found[f"Cohort {quota.TOP}"], "cpu") == {"nominalQuota": "3"}
        assert {f"ResourceFlavor {quota.FLAVOR}", f"ResourceFlavor {quota.IDLE}"} <= found.keys()

    def test_a_queue_borrows_the_second_flavor_up_to_its_capability(self) -> None:
        team = queue("team", deserved={"cpu": "1"}, capability={"cpu": "3"})
        found = quotas_of([team], [node()], quota.KueuePolicy(shares="flavors"))
        own, idle = found["ClusterQueue team"]["resourceGroups"][0]["flavors"]
        assert {"name": "cpu", "nominalQuota": "1", "borrowingLimit": "0"} in own["resources"]
        assert {"name": "cpu", "nominalQuota": "0", "borrowingLimit": "2"} in idle["resources"]

    def test_queues_that_share_by_use_are_local_queues_of_one_cluster_queue(self) -> None:
        use = quota.KueuePolicy(shares="use")
        found = quotas_of([queue("spare", deserved={"cpu": "0"}), queue("team", deserved={"cpu": "2"})], [node()], use)
        assert quota_in(found[f"ClusterQueue {quota.TOP}"], "cpu") == {"nominalQuota": "4"}
        assert found["LocalQueue spare"] == {"clusterQueue": quota.TOP, "fairSharing": {"weight": "0"}}
        assert found["LocalQueue team"]["fairSharing"] == {"weight": "2"}
        assert not [name for name in found if name.startswith(("Cohort", "LocalQueue schedspec"))]

    def test_without_queues_the_default_queue_has_the_whole_quota(self) -> None:
        found = quotas_of([], [node()], quota.KueuePolicy(shares="parts"))
        assert quota_in(found["ClusterQueue schedspec-default"], "cpu") == {"nominalQuota": "4"}

    def test_each_cluster_queue_has_a_local_queue_of_its_name(self) -> None:
        found = quotas_of([queue("team")], [node()])
        assert found["LocalQueue team"] == {"clusterQueue": "team"}
        assert found["LocalQueue schedspec-default"] == {"clusterQueue": "schedspec-default"}
        assert "LocalQueue default" not in found, "an installed Kueue would admit every Job through it"

    def test_the_settings_of_the_policy_are_in_every_cluster_queue(self) -> None:
        never = quota.KueuePolicy(clusterQueue={"preemption": {"withinClusterQueue": "Never"}})
        found = quotas_of([queue("team")], [], never)
        assert found["ClusterQueue team"]["preemption"] == {"withinClusterQueue": "Never"}


class TestPolicies:
    @pytest.mark.parametrize("file", sorted(POLICIES.glob("*.yaml")), ids=lambda it: it.stem)
    def test_every_policy_file_is_a_valid_policy(self, file: Path) -> None:
        assert quota.read(file.read_text("utf-8")).clusterQueue["preemption"]

    def test_a_policy_of_another_scheduler_is_rejected(self) -> None:
        with pytest.raises(PolicyRefusedError, match="unknown field `actions`"):
            quota.read((ROOT / "templates" / "policies" / "capacity.yaml").read_text("utf-8"))

    @pytest.mark.parametrize(
        ("version", "known"), [("v0.19.1", False), ("v0.19.2", True), ("v0.20.0-rc.1", True), ("main", True)]
    )
    def test_a_gate_is_set_for_its_version_and_later_ones(self, version: str, known: bool) -> None:
        found = quota.KueuePolicy(featureGates={"Old": False}, gatesSince={"v0.19.2": {"New": True}})
        assert found.gates(version) == {"Old": False, **({"New": True} if known else {})}

    def test_a_configuration_is_merged(self) -> None:
        wanted = quota.KueuePolicy(configuration={"fairSharing": {"x": 1}}, gatesSince={"v0.19.2": {"New": True}})
        found = yaml.safe_load(processes.configured(wanted, "v0.19.2", {"port": 1}))
        assert found["fairSharing"] == {"x": 1}
        assert found["webhook"] == {"port": 1}
        assert found["featureGates"] == {"VisibilityOnDemand": False, "New": True}


LINE = '{{"level":"info","logger":"{}","caller":"controller/controller.go","msg":"Starting workers"}}'
LOGGERS = ("job", "v1_pod", *(f"{it}-reconciler" for it in ("workload", "clusterqueue", "localqueue", "cohort")))


class TestReadiness:
    def test_kueue_is_ready_only_when_every_controller_runs(self) -> None:
        log = "\n".join(LINE.format(it) for it in LOGGERS)
        with pytest.raises(NotReadyError, match="controllers of resourceflavor-reconciler"):
            processes.require_running(log)
        processes.require_running(f"{log}\n{LINE.format('resourceflavor-reconciler')}")


def pod(uid: str = "u1", **metadata: Any) -> dict[str, Any]:
    meta = {"name": "train-x", "namespace": "s", "uid": uid, "resourceVersion": "5", **metadata}
    return {"metadata": meta, "spec": {}, "status": {"phase": "Running"}}


def workload(owner: str, *conditions: dict[str, str]) -> dict[str, Any]:
    meta = {"name": "job-train", "namespace": "s", "uid": "w", "resourceVersion": "4"}
    meta["ownerReferences"] = [{"uid": owner, "name": "train"}]  # type: ignore[assignment]
    return {"metadata": meta, "spec": {"queueName": "team"}, "status": {"conditions": list(conditions)}}


PREEMPTED = {
    "type": "Evicted",
    "status": "True",
    "reason": "Preempted",
    "message": "Preempted to accommodate a workload (UID: 2, JobUID: 3) due to reclamation within the cohort",
}
WAITS = {
    "type": "QuotaReserved",
    "status": "False",
    "reason": "Pending",
    "message": "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor schedspec",
}
DELETED = {"deletionTimestamp": "2026-11-23T19:45:14Z"}


class TestAnswers:
    """Kueue's conditions are interpreted when an object arrives."""

    def writer(self, *units: dict[str, Any]) -> HistoryWriter:
        found = HistoryWriter(Kueue.marks)
        found.begin("s")
        for unit in units:
            found.record(Kind.WORKLOAD, unit)
        return found

    @pytest.mark.parametrize(
        ("conditions", "metadata", "evicted"),
        [((PREEMPTED,), DELETED, True), ((PREEMPTED,), {}, False), ((WAITS,), DELETED, False), ((), DELETED, False)],
        ids=["evicted", "not deleted yet", "not evicted", "deleted by the user"],
    )
    def test_a_deleted_pod_of_a_job_is_a_victim_if_its_workload_was_preempted(
        self, conditions: tuple[dict[str, str], ...], metadata: dict[str, str], evicted: bool
    ) -> None:
        found = pod(ownerReferences=[{"uid": "j", "name": "train"}], **metadata)
        self.writer(workload("j", *conditions)).record(Kind.POD, found)
        assert (views.eviction(found) is not None) is evicted

    def test_a_workload_of_another_job_does_not_count(self) -> None:
        found = pod(ownerReferences=[{"uid": "other", "name": "other"}], **DELETED)
        self.writer(workload("j", PREEMPTED)).record(Kind.POD, found)
        assert views.eviction(found) is None

    def test_a_pod_with_a_termination_target_condition_is_a_victim(self) -> None:
        found = pod()
        found["status"]["conditions"] = [{"type": "TerminationTarget", "status": "True", "reason": "WorkloadEvicted"}]
        self.writer().record(Kind.POD, found)
        assert views.eviction(found) is not None

    def test_the_reason_is_read_from_the_workload(self) -> None:
        unit = workload("j", WAITS)
        writer = self.writer(unit)
        assert views.reason(unit) == WAITS["message"]
        assert views.queue_of(writer.history.now(), "train") == "team"

    def test_a_workload_without_a_queue_is_in_the_queue_default(self) -> None:
        unit = workload("j", WAITS)
        unit["spec"]["queueName"] = rendered("job", name="train")["metadata"]["labels"]["kueue.x-k8s.io/queue-name"]
        assert unit["spec"]["queueName"] == "schedspec-default"
        assert views.queue_of(self.writer(unit).history.now(), "train") == "default"

    def test_a_scheduling_gate_is_not_a_reason(self) -> None:
        found = pod()
        gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "blocked"}
        found["status"]["conditions"] = [gated]
        self.writer().record(Kind.POD, found)
        assert found[READ] == {"evicted": None, "reason": ""}


COMMON = {"namespace": "s", "scheduler_name": "schedspec", "image": "i", "simulated": True}


def rendered(template: str, **given: Any) -> dict[str, Any]:
    folders = [ROOT / "templates" / "kueue", ROOT / "templates"]
    return Templates(folders, COMMON).render(template, given)[0].object


class TestObjects:
    def test_a_job_is_suspended_and_names_its_queue(self) -> None:
        job = rendered("job", name="train", queue="team", replicas=3, priority="high", cpu="1")
        assert job["kind"] == "Job"
        assert job["spec"]["suspend"] is True
        assert job["metadata"]["labels"] == {
            "kueue.x-k8s.io/queue-name": "team",
            "kueue.x-k8s.io/priority-class": "high",
        }
        assert "schedulingGates" not in job["spec"]["template"]["spec"]

    def test_the_pods_of_a_job_with_a_minimum_of_one_are_admitted_one_by_one(self) -> None:
        job = rendered("job", name="train", queue="team", replicas=3, min_available=1)
        template = job["spec"]["template"]
        assert job["spec"]["suspend"] is False
        assert template["spec"]["schedulingGates"] == [{"name": "kueue.x-k8s.io/admission"}]
        assert template["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team"

    def test_the_pods_of_a_gang_are_one_group(self) -> None:
        metadata = rendered("gang", name="train", replicas=4)["spec"]["template"]["metadata"]
        assert metadata["labels"]["kueue.x-k8s.io/pod-group-name"] == "train"
        assert metadata["annotations"]["kueue.x-k8s.io/pod-group-total-count"] == "4"

    @pytest.mark.parametrize("how", ["required", "preferred"])
    def test_the_pods_of_a_gang_with_a_topology_have_one_role_hash(self, how: str) -> None:
        template = rendered("gang", name="train", replicas=4, **{how: "rack"})["spec"]["template"]
        assert template["metadata"]["annotations"]["kueue.x-k8s.io/role-hash"] == "worker"
        assert template["metadata"]["annotations"][f"kueue.x-k8s.io/podset-{how}-topology"] == "schedspec.dev/rack"
        alone = rendered("pod", name="alone", replicas=1, **{how: "rack"})["metadata"]["annotations"]
        assert "kueue.x-k8s.io/role-hash" not in alone

    @pytest.mark.parametrize("name", ["job", "gang", "service", "pod", "kubernetesjob"])
    def test_no_pod_has_a_priority_class_for_kube_scheduler(self, name: str) -> None:
        assert "priorityClassName" not in yaml.safe_dump(rendered(name, name="x", priority="high"))


class TestConfigurations:
    @pytest.mark.parametrize("name", ["fair-sharing", "topology", "wait-for-pods-ready"])
    def test_a_configuration_can_be_selected_with_a_version(self, name: str) -> None:
        found = schedulers.find(f"kueue+{name}@v0.19.0")
        assert (found.configuration, found.wanted, found.title) == (name, "v0.19.0", f"kueue+{name}")

    def test_each_configuration_changes_what_a_policy_says(self) -> None:
        texts = [found.read("clusterQueue: {}") for name in Kueue.configurations() for found in [Kueue("", name)]]
        assert len({str(text) for text in [*texts, Kueue().read("clusterQueue: {}")]}) == len(texts) + 1

    def test_what_a_policy_says_itself_comes_first(self) -> None:
        policy_text = "configuration: {fairSharing: {preemptionStrategies: [LessThanInitialShare]}}"
        found = Kueue("", "fair-sharing").read(policy_text)
        assert found.configuration["fairSharing"]["preemptionStrategies"] == ["LessThanInitialShare"]

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("kueue+", "no configuration ''; there are: fair-sharing, topology, wait-for-pods-ready"),
            ("kueue+topolgy", r"\(is 'topology' meant\?\); there are"),
            ("kueue+topology+fair-sharing", "no configuration 'topology"),
            ("volcano+topology", "there are: none"),
            ("schedspec+topology", "there are: none"),
        ],
    )
    def test_an_unknown_configuration_is_rejected_with_those_that_exist(self, text: str, says: str) -> None:
        with pytest.raises(AdapterError, match=says):
            schedulers.find(text)

    def test_with_topology_every_node_is_a_place(self) -> None:
        objects = quota.of_scenario([queue("a")], [node()], quota.KueuePolicy(topology=True))
        [found] = [it for it in objects if it["kind"] == "Topology"]
        assert found["spec"]["levels"] == [{"nodeLabel": "kubernetes.io/hostname"}]


class TestVersions:
    def test_a_version_can_be_selected_after_an_at_sign(self) -> None:
        found = schedulers.find("kueue@v0.19.0")
        assert isinstance(found, Kueue)
        assert program("kueue", version="v0.19.0").module.name == "kueue-0.19.0"

    def test_the_default_version_is_the_newest(self) -> None:
        assert next(iter(versions("kueue"))) == max(versions("kueue")) == program("kueue").version

    @pytest.mark.parametrize("name", ["kueue", "volcano", "kube-scheduler"])
    def test_a_version_that_is_not_pinned_can_be_selected(self, name: str) -> None:
        assert schedulers.find(f"{name}@v0.1.2").wanted == schedulers.find(f"{name}@0.1.2").wanted == "v0.1.2"

    @pytest.mark.parametrize("version", ["", "latest", "v1", "1.2", "v1.2.3..v1.2.4", "v1.2.3 ", "main"])
    def test_what_is_no_version_is_rejected_with_an_example(self, version: str) -> None:
        with pytest.raises(AdapterError, match=re.escape("write for instance kueue@v1.2.3")):
            schedulers.find(f"kueue@{version}")

    @pytest.mark.parametrize("name", ["schedspec", "none"])
    def test_a_scheduler_without_versions_is_rejected_with_those_that_have_some(self, name: str) -> None:
        with pytest.raises(
            AdapterError, match="no versions to choose from; volcano, kueue, kai, yunikorn, kube-scheduler have"
        ):
            schedulers.find(f"{name}@v1.2.3")


def test_every_lacking_capability_has_a_reason_for_users() -> None:
    assert all(why and not why.endswith(".") for why in Kueue.lacks.values())
    assert Capability.QUEUES not in Kueue.lacks


def test_definitions_name_a_conversion_webhook_where_kueue_expects_one() -> None:
    definition = {"spec": {"names": {"plural": "workloads"}}}
    assert converted(definition)["spec"]["conversion"]["strategy"] == "Webhook"
    assert "conversion" not in converted({"spec": {"names": {"plural": "topologies"}}})["spec"]
