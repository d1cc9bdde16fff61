"""PyTorchJobs: what the training operator does with Volcano as its gang scheduler."""

from __future__ import annotations

import pytest

from scheduler.controllers.runtime.objects import PYTORCH_JOBS, SERVICES
from scheduler.kube.resource import PODGROUPS, PODS
from tests.support.controllers.fake_training import PyTorchDesk

ALL = ["t-master-0", "t-worker-0", "t-worker-1"]


def types(desk: PyTorchDesk) -> list[tuple[str, str]]:
    return [(one.type, one.status) for one in desk.job.status.conditions]


def test_the_podgroup_is_called_as_the_job_and_comes_first() -> None:
    policy = {"queue": "test", "priorityClass": "high"}
    desk = PyTorchDesk(workers=5, runPolicy={"schedulingPolicy": policy}).work()
    assert desk.group.metadata.name == "t"
    spec = desk.group.spec
    assert (spec.min_member, spec.queue, spec.priority_class_name) == (6, "test", "high")
    assert spec.min_resources == {"cpu": "6", "memory": "6Gi"}
    assert desk.state == "Created"
    assert desk.pods() == []
    desk.admit("Inqueue")
    assert len(desk.work().pods()) == 6


def test_a_gang_may_be_smaller_than_the_job() -> None:
    policy = {"minAvailable": 2, "minResources": {"cpu": "3"}}
    spec = PyTorchDesk(workers=5, runPolicy={"schedulingPolicy": policy}).work().group.spec
    assert (spec.min_member, spec.min_resources, spec.queue) == (2, {"cpu": "3"}, "default")


def test_a_podgroup_that_a_user_made_keeps_its_queue_and_stays() -> None:
    desk = PyTorchDesk(runPolicy={"schedulingPolicy": {"queue": "test"}})
    desk.put(PODGROUPS, {"metadata": {"name": "t"}, "spec": {"queue": "mine", "minMember": 1}})
    desk.run()
    assert (desk.group.spec.queue, desk.group.spec.min_member) == ("mine", 3)
    desk.become("Succeeded", ["t-master-0"])
    desk.work()
    assert desk.group is not None


def test_the_states_of_a_job_that_goes_well() -> None:
    desk = PyTorchDesk()
    states = []
    for step in (desk.work, lambda: desk.admit() or desk.work(), desk.run):
        step()
        states.append(desk.state)
    desk.become("Succeeded", ["t-master-0"])
    desk.work()
    states.append(desk.state)
    assert states == ["Created", "Created", "Running", "Succeeded"]
    assert types(desk) == [("Created", "True"), ("Running", "False"), ("Succeeded", "True")]
    assert desk.group is None
    assert desk.job.status.completion_time


def test_pods_know_their_master_and_their_rank() -> None:
    desk = PyTorchDesk(nprocPerNode="2").run()
    pod = desk.get(PODS, "t-worker-1")
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
    service = desk.get(SERVICES, "t-master-0")
    assert service is not None
    selector = service["spec"]["selector"]
    master = desk.get(PODS, "t-master-0")
    assert master is not None
    assert selector.items() <= master["metadata"]["labels"].items()
    assert master["metadata"]["labels"]["training.kubeflow.org/job-role"] == "master"
    assert pod["metadata"]["annotations"] == {"scheduling.k8s.io/group-name": "t", "volcano.sh/task-spec": "worker"}
    assert pod["spec"]["restartPolicy"] == "OnFailure"


@pytest.mark.parametrize(("given", "processes", "world"), [("", "auto", "3"), ("gpu", "gpu", "3"), ("4", "4", "12")])
def test_how_many_processes_a_pod_starts_is_left_to_the_launcher_unless_it_is_said(
    given: str, processes: str, world: str
) -> None:
    desk = PyTorchDesk(**({"nprocPerNode": given} if given else {})).run()
    pod = desk.get(PODS, "t-master-0")
    assert pod is not None
    found = {entry["name"]: entry["value"] for entry in pod["spec"]["containers"][0]["env"]}
    assert (found["PET_NPROC_PER_NODE"], found["WORLD_SIZE"]) == (processes, world)


def test_without_a_master_the_first_worker_leads() -> None:
    desk = PyTorchDesk(master=False).run()
    pod = desk.get(PODS, "t-worker-1")
    assert pod is not None
    found = {entry["name"]: entry["value"] for entry in pod["spec"]["containers"][0]["env"]}
    assert (found["MASTER_ADDR"], found["RANK"], found["WORLD_SIZE"]) == ("t-worker-0", "1", "2")
    assert desk.state == "Running"
    desk.become("Succeeded", ["t-worker-0"])
    assert desk.work().state == "Running", "nobody decides for the others"
    desk.become("Succeeded", ["t-worker-1"])
    assert desk.work().state == "Succeeded"


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
def test_a_failed_pod(policy: str, code: int, state: str) -> None:
    desk = PyTorchDesk(replica={"restartPolicy": policy}).run()
    desk.become("Failed", ["t-worker-0"], exit_code=code)
    desk.turn(desk.decide)
    assert desk.state == state
    if state == "Failed":
        desk.work()
        assert desk.group is None
        assert "t-worker-0 failed (exit code 1)" in desk.job.status.conditions[-1].message
        return
    assert ("Running", "True") not in types(desk)
    desk.leave()
    desk.work()
    assert desk.created.count("t-worker-0") == 2
    desk.become("Running")
    assert desk.work().state == "Running"
    assert ("Restarting", "True") not in types(desk)


def test_too_many_restarts_fail_the_job() -> None:
    desk = PyTorchDesk(runPolicy={"backoffLimit": 1}).run()
    for state in ("Running", "Failed"):
        desk.become("Failed", ["t-worker-0"])
        desk.turn(desk.decide)
        desk.leave()
        desk.work()
        desk.become("Running")
        assert desk.work().state == state
    assert desk.job.status.conditions[-1].reason == "BackoffLimitExceeded"


def test_an_evicted_pod_is_created_again_without_a_word() -> None:
    desk = PyTorchDesk().run()
    desk.evict("t-worker-1")
    desk.work()
    assert desk.pods() == ALL[:2]
    desk.leave()
    desk.work()
    assert desk.pods() == ALL
    assert desk.state == "Running"


@pytest.mark.parametrize(("policy", "left"), [("All", []), ("Running", ["t-master-0"]), ("None", ALL), ("", ALL)])
def test_what_is_left_of_a_finished_job(policy: str, left: list[str]) -> None:
    desk = PyTorchDesk(runPolicy={"cleanPodPolicy": policy}).run()
    desk.become("Succeeded", ["t-master-0"])
    assert desk.work().pods() == left
    assert desk.get(PODGROUPS, "t") is None


def test_a_job_that_runs_too_long_fails() -> None:
    desk = PyTorchDesk(runPolicy={"activeDeadlineSeconds": 60}).run()
    assert desk.again == 60.0
    desk.now += 60
    assert desk.work().state == "Failed"


def test_a_finished_job_goes_when_its_time_is_over() -> None:
    desk = PyTorchDesk(runPolicy={"ttlSecondsAfterFinished": 60}).run()
    desk.become("Succeeded", ["t-master-0"])
    desk.work()
    assert desk.again == 60.0
    desk.now += 60
    desk.turn(desk.decide)
    assert desk.job is None


def test_a_suspended_job_has_no_pods_and_comes_back() -> None:
    desk = PyTorchDesk().run()
    desk.change_spec(PYTORCH_JOBS, "t", lambda spec: spec.update(runPolicy={"suspend": True}))
    desk.work()
    desk.leave()
    assert desk.work().state == "Suspended"
    assert desk.pods() == []
    assert desk.group is None
    desk.change_spec(PYTORCH_JOBS, "t", lambda spec: spec.update(runPolicy={"suspend": False}))
    assert desk.run().state == "Running"


def test_workers_come_and_go() -> None:
    desk = PyTorchDesk().run()
    desk.change_spec(PYTORCH_JOBS, "t", lambda spec: spec["pytorchReplicaSpecs"]["Worker"].update(replicas=1))
    desk.work()
    assert desk.pods() == ALL[:2]
    assert desk.group.spec.min_member == 2


def test_the_counts_are_kubeflows() -> None:
    desk = PyTorchDesk().run()
    desk.become("Succeeded", ["t-worker-0"])
    status = desk.work().job.status.replica_statuses
    assert (status["Master"].active, status["Worker"].active, status["Worker"].succeeded) == (1, 1, 1)
