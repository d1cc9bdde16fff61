"""PyTorchJobs that are stopped, refused, wait for their queue, or whose controller dies."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.controllers.runtime.objects import PYTORCH_JOBS, SERVICES
from scheduler.kube.resource import PODGROUPS, PRIORITY_CLASSES
from scheduler.model.objects import Namespace, ObjectMeta
from tests.support.controllers.fake_cluster import template
from tests.support.controllers.fake_training import PyTorchDesk


def last(desk: PyTorchDesk) -> tuple[str, str]:
    condition = desk.job.status.conditions[-1]
    return condition.type, condition.reason


@pytest.mark.parametrize("policy", ["", "None", "Running", "All"])
def test_a_job_that_is_stopped_gives_its_cards_back_whatever_is_said_of_its_pods(policy: str) -> None:
    desk = PyTorchDesk(runPolicy={"activeDeadlineSeconds": 60, "cleanPodPolicy": policy}).run()
    desk.now += 60
    desk.work()
    assert last(desk) == ("Failed", "DeadlineExceeded")
    assert desk.pods() == []
    assert desk.group is None


def test_a_job_that_restarted_too_often_gives_its_cards_back() -> None:
    desk = PyTorchDesk(runPolicy={"backoffLimit": 0}).run()
    desk.become("Failed", ["t-worker-0"])
    desk.work()
    assert last(desk) == ("Failed", "BackoffLimitExceeded")
    assert desk.pods() == []


@pytest.mark.parametrize("policy", ["", "None", "Running", "All"])
def test_the_counts_of_a_finished_job_outlive_its_pods(policy: str) -> None:
    desk = PyTorchDesk(runPolicy={"cleanPodPolicy": policy}).run()
    desk.become("Succeeded", ["t-master-0"])
    desk.work()
    desk.leave()
    status = desk.work().job.status.replica_statuses
    assert {kind: (one.active, one.succeeded, one.failed) for kind, one in status.items()} == {
        "Master": (0, 1, 0),
        "Worker": (0, 2, 0),
    }


def test_what_failed_stays_counted_too() -> None:
    desk = PyTorchDesk(replica={"restartPolicy": "Never"}, runPolicy={"cleanPodPolicy": "All"}).run()
    desk.become("Failed", ["t-worker-0"], exit_code=1)
    desk.work()
    desk.leave()
    status = desk.work().job.status.replica_statuses["Worker"]
    assert (status.active, status.failed) == (0, 1)


REFUSED = {
    "spec.elasticPolicy": {"elasticPolicy": {}},
    "spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds": {
        "runPolicy": {"schedulingPolicy": {"scheduleTimeoutSeconds": 60}}
    },
    "spec.runPolicy.cleanPodPolicy (Some)": {"runPolicy": {"cleanPodPolicy": "Some"}},
    "spec.pytorchReplicaSpecs.Chief": {"pytorchReplicaSpecs": {"Chief": {"template": template("pytorch")}}},
    "spec.pytorchReplicaSpecs.Worker.restartPolicy (Once)": {
        "pytorchReplicaSpecs": {"Worker": {"restartPolicy": "Once", "template": template("pytorch")}}
    },
}


@pytest.mark.parametrize("field", REFUSED)
def test_what_is_not_honoured_keeps_the_job_from_running_by_name(field: str) -> None:
    desk = PyTorchDesk(**REFUSED[field]).work()
    assert desk.group is None
    assert last(desk) == ("Created", "NotHonoured")
    assert field in desk.job.status.conditions[-1].message
    assert [(event.kind, event.reason) for event in desk.events] == [("Warning", "NotHonoured")]


def test_a_refused_job_that_is_corrected_runs() -> None:
    desk = PyTorchDesk(elasticPolicy={"minReplicas": 1}).work()
    desk.change_spec(PYTORCH_JOBS, "t", lambda spec: spec.pop("elasticPolicy"))
    desk.work()
    assert last(desk) == ("Created", "PyTorchJobCreated")
    assert desk.run().state == "Running"
    assert desk.get(SERVICES, "t-master-0") is not None


@pytest.mark.parametrize(
    ("manager", "ours"), [("kubeflow.org/training-operator", True), ("kueue.x-k8s.io/multikueue", False)]
)
def test_a_job_that_another_manages_is_left_alone(manager: str, ours: bool) -> None:
    desk = PyTorchDesk(runPolicy={"managedBy": manager}).work()
    assert bool(desk.job.status.conditions) == ours


def test_a_queue_that_cannot_be_used_is_said_until_it_can() -> None:
    desk = PyTorchDesk(runPolicy={"schedulingPolicy": {"queue": "q"}})
    for problem in ("queue q does not exist", "queue q is Closed"):
        desk.queue_problem = problem
        desk.work()
        assert last(desk) == ("Created", "QueueNotUsable")
        assert desk.job.status.conditions[-1].message == problem
    assert [(event.kind, event.reason) for event in desk.events] == [("Warning", "QueueNotUsable")]
    desk.queue_problem = ""
    desk.work()
    assert last(desk) == ("Created", "PyTorchJobCreated")


@pytest.mark.parametrize(("named", "queue"), [(None, "team"), ("default", "team"), ("mine", "mine")])
def test_a_job_without_a_queue_has_its_namespaces(named: str | None, queue: str) -> None:
    policy: dict[str, Any] = {"schedulingPolicy": {"queue": named}} if named else {}
    desk = PyTorchDesk(runPolicy=policy)
    desk.home = Namespace(ObjectMeta(annotations={"scheduling.volcano.sh/queue-name": "team"}))
    assert desk.work().group.spec.queue == queue
    desk.home = None
    assert desk.work().group.spec.queue == queue, "what its PodGroup says stays"


def test_what_the_gang_needs_is_what_its_most_important_pods_ask_for() -> None:
    desk = PyTorchDesk(workers=4, runPolicy={"schedulingPolicy": {"minAvailable": 2}})
    replicas = desk.objects[PYTORCH_JOBS.id, "t"]["spec"]["pytorchReplicaSpecs"]
    replicas["Worker"]["template"] = template("pytorch", cpu="8", priorityClassName="high")
    desk.put(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 100})
    assert desk.work().group.spec.min_resources == {"cpu": "16", "memory": "2Gi"}


def test_annotations_of_the_job_are_its_podgroups_too() -> None:
    desk = PyTorchDesk()
    given = {"volcano.sh/sla-waiting-time": "1h", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    desk.objects[PYTORCH_JOBS.id, "t"]["metadata"]["annotations"] = given
    assert desk.work().group.metadata.annotations == {"volcano.sh/sla-waiting-time": "1h"}


@pytest.mark.parametrize("phase", ["", "Pending"])
def test_no_pod_comes_before_the_podgroup_is_let_in(phase: str) -> None:
    desk = PyTorchDesk().work()
    desk.admit(phase)
    assert desk.work().pods() == []


@pytest.mark.parametrize("written", range(5))
def test_a_controller_that_dies_leaves_nothing_undone(written: int) -> None:
    """After any number of writes of each of its turns."""
    desk = PyTorchDesk()
    desk.turn(desk.decide, most=written)
    desk.run()
    assert desk.state == "Running"
    assert desk.get(SERVICES, "t-master-0") is not None
    assert desk.get(PODGROUPS, "t") is not None


@pytest.mark.parametrize("written", range(6))
def test_a_restart_that_was_interrupted_is_one_restart(written: int) -> None:
    desk = PyTorchDesk(runPolicy={"backoffLimit": 1}).run()
    desk.become("Failed", ["t-worker-0"])
    desk.turn(desk.decide, most=written)
    for _ in range(3):
        desk.work()
        desk.leave()
    assert desk.job.status.restarts == 1
    assert desk.created.count("t-worker-0") == 2
    desk.become("Running")
    assert desk.work().state == "Running"


def test_the_name_of_the_master_is_there_again_before_a_pod_looks_for_it() -> None:
    desk = PyTorchDesk().run()
    del desk.objects[SERVICES.id, "t-master-0"]
    desk.evict("t-worker-0")
    desk.leave()
    desk.work()
    assert desk.get(SERVICES, "t-master-0") is not None
