"""Elastic PyTorchJobs: they start with their fewest workers, grow and shrink within their bounds, and end together."""

from __future__ import annotations

from typing import Any

import pytest

from schedspec.scheduler.controllers.runtime.objects import PYTORCH_JOBS
from schedspec.scheduler.kube.resource import PODS
from tests.support.controllers.fake_training import FakeTrainingCluster


def variables(fake: FakeTrainingCluster, pod: str) -> dict[str, str]:
    """Return the variables of a pod's container."""
    found = fake.get(PODS, pod)
    assert found is not None
    return {entry["name"]: entry["value"] for entry in found["spec"]["containers"][0]["env"]}


MINIMA: dict[str, tuple[dict[str, Any], bool, int]] = {
    "its fewest workers and the master": ({"minReplicas": 2, "maxReplicas": 4}, True, 3),
    "its fewest workers": ({"minReplicas": 2, "maxReplicas": 4}, False, 2),
    "all workers without a bound": ({}, False, 4),
    "all workers with an upper bound only": ({"maxReplicas": 6}, True, 5),
}


@pytest.mark.parametrize("needs", MINIMA)
def test_an_elastic_job_starts_with_its_fewest_workers(needs: str) -> None:
    policy, master, members = MINIMA[needs]
    fake = FakeTrainingCluster(workers=4, master=master, elasticPolicy=policy).work()
    assert fake.group.spec.min_member == members
    assert fake.group.spec.min_resources == {"cpu": str(members), "memory": f"{members}Gi"}
    fake.admit()
    assert len(fake.work().pods()) == 4 + master


SCHEDULED: dict[str, Any] = {"runPolicy": {"schedulingPolicy": {"minAvailable": 2}}}
MASTERS: dict[str, tuple[dict[str, Any], bool, dict[str, int] | None]] = {
    "of an elastic job": ({"elasticPolicy": {"minReplicas": 1}}, True, {"master": 1}),
    "of a gang in part": (SCHEDULED, True, {"master": 1}),
    "of a whole gang": ({}, True, None),
    "that there is not": ({"elasticPolicy": {"minReplicas": 1}}, False, None),
}


@pytest.mark.parametrize("master", MASTERS)
def test_a_gang_in_part_needs_its_master(master: str) -> None:
    given, has_one, members = MASTERS[master]
    assert FakeTrainingCluster(workers=4, master=has_one, **given).work().group.spec.min_task_member == members


def test_the_minimum_of_the_gang_comes_before_that_of_the_policy() -> None:
    given = {"schedulingPolicy": {"minAvailable": 4}}
    fake = FakeTrainingCluster(workers=4, elasticPolicy={"minReplicas": 1}, runPolicy=given).work()
    assert fake.group.spec.min_member == 4


BOUNDS = {
    "both": ({"minReplicas": 2, "maxReplicas": 6}, True, "3:7", "t-master-0"),
    "the lower one": ({"minReplicas": 2}, True, "3:5", "t-master-0"),
    "the upper one": ({"maxReplicas": 5}, False, "4:5", "t-worker-0"),
}


@pytest.mark.parametrize("given", BOUNDS)
def test_the_pods_of_an_elastic_job_know_its_bounds_and_where_they_meet(given: str) -> None:
    policy, master, nodes, host = BOUNDS[given]
    found = variables(FakeTrainingCluster(workers=4, master=master, elasticPolicy=policy).run(), "t-worker-1")
    assert found["PET_NNODES"] == nodes
    assert found["PET_RDZV_ENDPOINT"] == f"{host}:23456"
    assert found["PET_RDZV_BACKEND"] == "c10d"
    assert {name for name in found if "RDZV" in name} == {"PET_RDZV_ENDPOINT", "PET_RDZV_BACKEND"}


SETTINGS: dict[str, tuple[Any, dict[str, str]]] = {
    "rdzvBackend": ("etcd", {"PET_RDZV_BACKEND": "etcd"}),
    "rdzvHost": ("meet", {"PET_RDZV_ENDPOINT": "meet:23456"}),
    "rdzvPort": (29400, {"PET_RDZV_ENDPOINT": "t-master-0:29400"}),
    "rdzvId": ("run-1", {"PET_RDZV_ID": "run-1"}),
    "rdzvConf": ([{"key": "a", "value": "1"}, {"key": "b", "value": "2"}], {"PET_RDZV_CONF": "a=1,b=2"}),
    "standalone": (True, {"PET_STANDALONE": ""}),
    "maxRestarts": (0, {"PET_MAX_RESTARTS": "0"}),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_of_the_rendezvous_is_a_variable(setting: str) -> None:
    value, expected = SETTINGS[setting]
    usual = variables(FakeTrainingCluster(elasticPolicy={}).run(), "t-worker-0")
    found = variables(FakeTrainingCluster(elasticPolicy={setting: value}).run(), "t-worker-0")
    assert dict(found.items() - usual.items()) == expected


def test_a_job_that_is_not_elastic_has_no_rendezvous() -> None:
    assert not [name for name in variables(FakeTrainingCluster().run(), "t-worker-0") if "RDZV" in name]


@pytest.mark.parametrize("workers", [2, 6])
def test_an_elastic_job_grows_and_shrinks_while_its_minimum_stays(workers: int) -> None:
    fake = FakeTrainingCluster(workers=4, elasticPolicy={"minReplicas": 2, "maxReplicas": 6}).run()
    fake.change_spec(PYTORCH_JOBS, "t", lambda spec: spec["pytorchReplicaSpecs"]["Worker"].update(replicas=workers))
    fake.work()
    fake.remove_terminating()
    fake.work()
    assert len(fake.pods()) == workers + 1
    assert fake.group.spec.min_member == 3


@pytest.mark.parametrize(("elastic", "state"), [({"elasticPolicy": {"minReplicas": 1}}, "Succeeded"), ({}, "Running")])
def test_one_worker_that_succeeds_ends_an_elastic_job_without_a_master(elastic: dict[str, Any], state: str) -> None:
    fake = FakeTrainingCluster(master=False, **elastic).run()
    fake.set_phase("Succeeded", ["t-worker-1"])
    assert fake.work().state == state


def test_a_worker_that_succeeds_does_not_end_an_elastic_job_with_a_master() -> None:
    fake = FakeTrainingCluster(elasticPolicy={"minReplicas": 1}).run()
    fake.set_phase("Succeeded", ["t-worker-1"])
    assert fake.work().state == "Running"
