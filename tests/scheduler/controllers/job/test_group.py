"""The PodGroup of a Job has the fields that the Job determines."""

from __future__ import annotations

from schedspec.scheduler.kube.resource import PODS
from schedspec.scheduler.model.objects import LabelSelector, NetworkTopology, SubGroupPolicy
from tests.support.controllers.fake_cluster import FakeJobCluster, task


def test_the_podgroup_has_the_topology_of_the_job() -> None:
    fake = FakeJobCluster({"tasks": [task()], "networkTopology": {"highestTierName": "rack"}}).work()

    assert fake.group is not None
    assert fake.group.spec.network_topology == NetworkTopology("hard", highest_tier_name="rack")


def test_the_partitions_of_a_task_are_subgroups() -> None:
    topology = {"mode": "hard", "highestTierName": "rack"}
    policy = {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1, "networkTopology": topology}
    fake = FakeJobCluster({"tasks": [task("worker", replicas=4, partitionPolicy=policy)]}).work()

    assert fake.group is not None
    [subgroup] = fake.group.spec.sub_group_policy or []
    assert subgroup == SubGroupPolicy(
        name="worker",
        label_selector=LabelSelector(match_labels={"volcano.sh/task-spec": "worker"}),
        match_label_keys=["volcano.sh/partition-id"],
        sub_group_size=2,
        min_sub_groups=1,
        network_topology=NetworkTopology("hard", highest_tier_name="rack"),
    )
    fake.admit()
    fake.work()
    pods = [(it.metadata.name, it) for it in fake.all(PODS)]
    parts = {name: (pod.metadata.labels or {})["volcano.sh/partition-id"] for name, pod in pods}
    assert parts == {"j-worker-0": "0", "j-worker-1": "0", "j-worker-2": "1", "j-worker-3": "1"}
