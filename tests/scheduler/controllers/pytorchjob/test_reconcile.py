"""PyTorchJobs are run as by the training operator with Volcano as its gang scheduler."""

from __future__ import annotations

import pytest

from schedspec.scheduler.controllers.runtime.objects import PYTORCH_JOBS, SERVICES
from schedspec.scheduler.kube.resource import PODGROUPS, PODS
from tests.support.controllers.fake_training import FakeTrainingCluster

ALL = ["t-master-0", "t-worker-0", "t-worker-1"]


def types(fake: FakeTrainingCluster) -> list[tuple[str, str]]:
    return [(one.type, one.status) for one in fake.job.status.conditions]


def test_the_podgroup_has_the_name_of_the_job_and_is_created_first() -> None:
    policy = {"queue": "test", "priorityClass": "high"}
    fake = FakeTrainingCluster(workers=5, runPolicy={"schedulingPolicy": policy}).work()
    assert fake.group.metadata.name == "t"
    spec = fake.group.spec
    assert (spec.min_member, spec.queue, spec.priority_class_name) == (6, "test", "high")
    assert spec.min_resources == {"cpu": "6", "memory": "6Gi"}
    assert fake.state == "Created"
    assert fake.pods() == []
    fake.admit("Inqueue")
    assert len(fake.work().pods()) == 6


def test_a_gang_may_be_smaller_than_the_job() -> None:
    policy = {"minAvailable": 2, "minResources": {"cpu": "3"}}
    spec = FakeTrainingCluster(workers=5, runPolicy={"schedulingPolicy": policy}).work().group.spec
    assert (spec.min_member, spec.min_resources, spec.queue) == (2, {"cpu": "3"}, "default")


def test_a_users_podgroup_keeps_its_queue_and_is_not_removed() -> None:
    fake = FakeTrainingCluster(runPolicy={"schedulingPolicy": {"queue": "test"}})
    fake.put(PODGROUPS, {"metadata": {"name": "t"}, "spec": {"queue": "mine", "minMember": 3}})
    before = fake.get(PODGROUPS, "t")["spec"].copy()  # type: ignore[index]
    fake.run()
    assert fake.get(PODGROUPS, "t")["spec"] == before  # type: ignore[index]
    assert (fake.group.spec.queue, fake.group.spec.min_member) == ("mine", 3)
    fake.set_phase("Succeeded", ["t-master-0"])
    fake.work()
    assert fake.group is not None


def test_a_users_podgroup_of_another_size_is_not_changed_and_keeps_the_job_waiting() -> None:
    fake = FakeTrainingCluster()
    mine = fake.put(PODGROUPS, {"metadata": {"name": "t"}, "spec": {"queue": "default", "minMember": 1}})
    fake.work()
    fake.admit()
    assert fake.work().pods() == []
    assert mine["spec"] == {"queue": "default", "minMember": 1}
    condition = fake.job.status.conditions[-1]
    assert (condition.type, condition.reason) == ("Created", "NameTaken")
    assert [event.reason for event in fake.events if event.kind == "Warning"] == ["NameTaken"]
    mine["spec"]["minMember"] = 3
    assert len(fake.work().pods()) == 3


def test_the_states_of_a_job_that_succeeds() -> None:
    fake = FakeTrainingCluster()
    states = []
    for step in (fake.work, lambda: fake.admit() or fake.work(), fake.run):
        step()
        states.append(fake.state)
    fake.set_phase("Succeeded", ["t-master-0"])
    fake.work()
    states.append(fake.state)
    assert states == ["Created", "Created", "Running", "Succeeded"]
    assert types(fake) == [("Created", "True"), ("Running", "False"), ("Succeeded", "True")]
    assert fake.group is None
    assert fake.job.status.completion_time


def test_pods_have_the_address_of_their_master_and_their_rank() -> None:
    fake = FakeTrainingCluster(nprocPerNode="2").run()
    pod = fake.get(PODS, "t-worker-1")
    assert pod is not None
    found = {entry["name"]: entry["value"] for entry in pod["spec"]["containers"][0]["env"]}
    assert found == {
        "PYTHONUNBUFFERED": "1",
        "MASTER_ADDR": "t-master-0",
        "MASTER_PORT": "23456",
        "WORLD_SIZE": "6",
        "RANK": "2",
        "PET_MASTER_ADDR": "t-master-0",
        "PET_MASTER_PORT": "23456",
        "PET_NNODES": "3",
        "PET_NODE_RANK": "2",
        "PET_NPROC_PER_NODE": "2",
    }
    service = fake.get(SERVICES, "t-master-0")
    assert service is not None
    selector = service["spec"]["selector"]
    master = fake.get(PODS, "t-master-0")
    assert master is not None
    assert selector.items() <= master["metadata"]["labels"].items()
    assert master["metadata"]["labels"]["training.kubeflow.org/job-role"] == "master"
    assert pod["metadata"]["annotations"] == {"scheduling.k8s.io/group-name": "t", "volcano.sh/task-spec": "worker"}
    assert pod["spec"]["restartPolicy"] == "OnFailure"


@pytest.mark.parametrize(("given", "processes", "world"), [("", "auto", "3"), ("gpu", "gpu", "3"), ("4", "4", "12")])
def test_processes_per_pod_are_left_to_the_launcher_unless_the_job_sets_them(
    given: str, processes: str, world: str
) -> None:
    fake = FakeTrainingCluster(**({"nprocPerNode": given} if given else {})).run()
    pod = fake.get(PODS, "t-master-0")
    assert pod is not None
    found = {entry["name"]: entry["value"] for entry in pod["spec"]["containers"][0]["env"]}
    assert (found["PET_NPROC_PER_NODE"], found["WORLD_SIZE"]) == (processes, world)


def test_without_a_master_the_first_worker_leads() -> None:
    fake = FakeTrainingCluster(master=False).run()
    pod = fake.get(PODS, "t-worker-1")
    assert pod is not None
    found = {entry["name"]: entry["value"] for entry in pod["spec"]["containers"][0]["env"]}
    assert (found["MASTER_ADDR"], found["RANK"], found["WORLD_SIZE"]) == ("t-worker-0", "1", "2")
    assert fake.state == "Running"
    fake.set_phase("Succeeded", ["t-worker-0"])
    assert fake.work().state == "Running", "the other worker still runs"
    fake.set_phase("Succeeded", ["t-worker-1"])
    assert fake.work().state == "Succeeded"


@pytest.mark.parametrize(
    ("policy", "code", "state"),
    [
        ("Never", 1, "Failed"),
        ("OnFailure", 1, "Restarting"),
        ("Always", 1, "Restarting"),
        ("", 1, "Restarting"),
        ("ExitCode", 1, "Failed"),
        ("ExitCode", 137, "Restarting"),
    ],
)
def test_the_restart_policy_decides_about_a_failed_pod(policy: str, code: int, state: str) -> None:
    fake = FakeTrainingCluster(replica={"restartPolicy": policy}).run()
    fake.set_phase("Failed", ["t-worker-0"], exit_code=code)
    fake.reconcile_once(fake.decide)
    assert fake.state == state
    if state == "Failed":
        fake.work()
        assert fake.group is None
        assert "t-worker-0 failed (exit code 1)" in fake.job.status.conditions[-1].message
        return
    assert ("Running", "True") not in types(fake)
    fake.remove_terminating()
    fake.work()
    assert fake.created.count("t-worker-0") == 2
    fake.set_phase("Running")
    assert fake.work().state == "Running"
    assert ("Restarting", "True") not in types(fake)


def test_too_many_restarts_fail_the_job() -> None:
    fake = FakeTrainingCluster(runPolicy={"backoffLimit": 1}).run()
    for state in ("Running", "Failed"):
        fake.set_phase("Failed", ["t-worker-0"])
        fake.reconcile_once(fake.decide)
        fake.remove_terminating()
        fake.work()
        fake.set_phase("Running")
        assert fake.work().state == state
    assert fake.job.status.conditions[-1].reason == "BackoffLimitExceeded"


def test_an_evicted_pod_is_created_again_and_the_job_stays_running() -> None:
    fake = FakeTrainingCluster().run()
    fake.evict("t-worker-1")
    fake.work()
    assert fake.pods() == ALL[:2]
    fake.remove_terminating()
    fake.work()
    assert fake.pods() == ALL
    assert fake.state == "Running"


@pytest.mark.parametrize(("policy", "left"), [("All", []), ("Running", ["t-master-0"]), ("None", ALL), ("", ALL)])
def test_the_clean_pod_policy_decides_which_pods_are_kept(policy: str, left: list[str]) -> None:
    fake = FakeTrainingCluster(runPolicy={"cleanPodPolicy": policy}).run()
    fake.set_phase("Succeeded", ["t-master-0"])
    assert fake.work().pods() == left
    assert fake.get(PODGROUPS, "t") is None


def test_a_job_that_runs_too_long_fails() -> None:
    fake = FakeTrainingCluster(runPolicy={"activeDeadlineSeconds": 60}).run()
    assert fake.again == 60.0
    fake.now += 60
    assert fake.work().state == "Failed"


def test_a_finished_job_is_deleted_after_its_ttl() -> None:
    fake = FakeTrainingCluster(runPolicy={"ttlSecondsAfterFinished": 60}).run()
    fake.set_phase("Succeeded", ["t-master-0"])
    fake.work()
    assert fake.again == 60.0
    fake.now += 60
    fake.reconcile_once(fake.decide)
    assert fake.job is None


def test_a_suspended_job_has_no_pods_and_can_be_resumed() -> None:
    fake = FakeTrainingCluster().run()
    fake.change_spec(PYTORCH_JOBS, "t", lambda spec: spec.update(runPolicy={"suspend": True}))
    fake.work()
    fake.remove_terminating()
    assert fake.work().state == "Suspended"
    assert fake.pods() == []
    assert fake.group is None
    fake.change_spec(PYTORCH_JOBS, "t", lambda spec: spec.update(runPolicy={"suspend": False}))
    assert fake.run().state == "Running"


def test_scaling_down_deletes_workers() -> None:
    fake = FakeTrainingCluster().run()
    fake.change_spec(PYTORCH_JOBS, "t", lambda spec: spec["pytorchReplicaSpecs"]["Worker"].update(replicas=1))
    fake.work()
    assert fake.pods() == ALL[:2]
    assert fake.group.spec.min_member == 2


def test_replica_statuses_count_pods_by_type() -> None:
    fake = FakeTrainingCluster().run()
    fake.set_phase("Succeeded", ["t-worker-0"])
    status = fake.work().job.status.replica_statuses
    assert (status["Master"].active, status["Worker"].active, status["Worker"].succeeded) == (1, 1, 1)
