"""PyTorchJobs that are stopped, are refused or wait for their queue, and controllers that crash."""

from __future__ import annotations

from typing import Any

import pytest

from schedspec.scheduler.controllers.runtime.objects import PYTORCH_JOBS, SERVICES
from schedspec.scheduler.kube.resource import PODGROUPS, PRIORITY_CLASSES
from schedspec.scheduler.model.objects import Namespace, ObjectMeta
from tests.support.controllers.fake_cluster import template
from tests.support.controllers.fake_training import FakeTrainingCluster


def last(fake: FakeTrainingCluster) -> tuple[str, str]:
    condition = fake.job.status.conditions[-1]
    return condition.type, condition.reason


@pytest.mark.parametrize("policy", ["", "None", "Running", "All"])
def test_a_job_past_its_deadline_deletes_its_pods_under_any_clean_pod_policy(policy: str) -> None:
    fake = FakeTrainingCluster(runPolicy={"activeDeadlineSeconds": 60, "cleanPodPolicy": policy}).run()
    fake.now += 60
    fake.work()
    assert last(fake) == ("Failed", "DeadlineExceeded")
    assert fake.pods() == []
    assert fake.group is None


def test_a_job_with_too_many_restarts_deletes_its_pods() -> None:
    fake = FakeTrainingCluster(runPolicy={"backoffLimit": 0}).run()
    fake.set_phase("Failed", ["t-worker-0"])
    fake.work()
    assert last(fake) == ("Failed", "BackoffLimitExceeded")
    assert fake.pods() == []


@pytest.mark.parametrize("policy", ["", "None", "Running", "All"])
def test_the_counts_of_a_finished_job_outlive_its_pods(policy: str) -> None:
    fake = FakeTrainingCluster(runPolicy={"cleanPodPolicy": policy}).run()
    fake.set_phase("Succeeded", ["t-master-0"])
    fake.work()
    fake.remove_terminating()
    status = fake.work().job.status.replica_statuses
    assert {kind: (one.active, one.succeeded, one.failed) for kind, one in status.items()} == {
        "Master": (0, 1, 0),
        "Worker": (0, 2, 0),
    }


def test_failed_pods_are_counted_after_their_deletion() -> None:
    fake = FakeTrainingCluster(replica={"restartPolicy": "Never"}, runPolicy={"cleanPodPolicy": "All"}).run()
    fake.set_phase("Failed", ["t-worker-0"], exit_code=1)
    fake.work()
    fake.remove_terminating()
    status = fake.work().job.status.replica_statuses["Worker"]
    assert (status.active, status.failed) == (0, 1)


REFUSED = {
    "spec.elasticPolicy.metrics": {"elasticPolicy": {"metrics": []}},
    "spec.elasticPolicy.nProcPerNode": {"elasticPolicy": {"nProcPerNode": 2}},
    "spec.elasticPolicy (without a Worker)": {
        "elasticPolicy": {"minReplicas": 1},
        "pytorchReplicaSpecs": {"Master": {"template": template("pytorch")}},
    },
    "spec.pytorchReplicaSpecs.Worker.replicas (outside of minReplicas and maxReplicas)": {
        "elasticPolicy": {"minReplicas": 3, "maxReplicas": 4}
    },
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
def test_an_unsupported_field_keeps_the_job_from_running_and_is_named(field: str) -> None:
    fake = FakeTrainingCluster(**REFUSED[field]).work()
    assert fake.group is None
    assert last(fake) == ("Created", "NotHonoured")
    assert field in fake.job.status.conditions[-1].message
    assert [(event.kind, event.reason) for event in fake.events] == [("Warning", "NotHonoured")]


def test_a_refused_job_that_is_corrected_runs() -> None:
    fake = FakeTrainingCluster(elasticPolicy={"metrics": []}).work()
    fake.change_spec(PYTORCH_JOBS, "t", lambda spec: spec.pop("elasticPolicy"))
    fake.work()
    assert last(fake) == ("Created", "PyTorchJobCreated")
    assert fake.run().state == "Running"
    assert fake.get(SERVICES, "t-master-0") is not None


@pytest.mark.parametrize(
    ("manager", "ours"), [("kubeflow.org/training-operator", True), ("kueue.x-k8s.io/multikueue", False)]
)
def test_a_job_with_another_manager_is_left_alone(manager: str, ours: bool) -> None:
    fake = FakeTrainingCluster(runPolicy={"managedBy": manager}).work()
    assert bool(fake.job.status.conditions) == ours


def test_a_queue_that_cannot_be_used_is_reported_until_it_can() -> None:
    fake = FakeTrainingCluster(runPolicy={"schedulingPolicy": {"queue": "q"}})
    for problem in ("queue q does not exist", "queue q is Closed"):
        fake.queue_problem = problem
        fake.work()
        assert last(fake) == ("Created", "QueueNotUsable")
        assert fake.job.status.conditions[-1].message == problem
    assert [(event.kind, event.reason) for event in fake.events] == [("Warning", "QueueNotUsable")]
    fake.queue_problem = ""
    fake.work()
    assert last(fake) == ("Created", "PyTorchJobCreated")


@pytest.mark.parametrize(("named", "queue"), [(None, "team"), ("default", "team"), ("mine", "mine")])
def test_a_job_without_a_queue_uses_the_queue_of_its_namespace(named: str | None, queue: str) -> None:
    policy: dict[str, Any] = {"schedulingPolicy": {"queue": named}} if named else {}
    fake = FakeTrainingCluster(runPolicy=policy)
    fake.namespace = Namespace(ObjectMeta(annotations={"scheduling.volcano.sh/queue-name": "team"}))
    assert fake.work().group.spec.queue == queue
    fake.namespace = None
    assert fake.work().group.spec.queue == queue, "the queue of its PodGroup is kept"


def test_minimum_resources_are_the_requests_of_the_pods_with_the_highest_priority() -> None:
    fake = FakeTrainingCluster(workers=4, runPolicy={"schedulingPolicy": {"minAvailable": 2}})
    replicas = fake.objects[PYTORCH_JOBS.id, "t"]["spec"]["pytorchReplicaSpecs"]
    replicas["Worker"]["template"] = template("pytorch", cpu="8", priorityClassName="high")
    fake.put(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 100})
    assert fake.work().group.spec.min_resources == {"cpu": "16", "memory": "2Gi"}


def test_annotations_of_the_job_are_copied_to_its_podgroup() -> None:
    fake = FakeTrainingCluster()
    given = {"volcano.sh/sla-waiting-time": "1h", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    fake.objects[PYTORCH_JOBS.id, "t"]["metadata"]["annotations"] = given
    assert fake.work().group.metadata.annotations == {"volcano.sh/sla-waiting-time": "1h"}


@pytest.mark.parametrize("phase", ["", "Pending"])
def test_no_pod_is_created_before_the_podgroup_is_admitted(phase: str) -> None:
    fake = FakeTrainingCluster().work()
    fake.admit(phase)
    assert fake.work().pods() == []


@pytest.mark.parametrize("written", range(5))
def test_the_job_runs_after_a_crash_at_any_write(written: int) -> None:
    fake = FakeTrainingCluster()
    fake.reconcile_once(fake.decide, most=written)
    fake.run()
    assert fake.state == "Running"
    assert fake.get(SERVICES, "t-master-0") is not None
    assert fake.get(PODGROUPS, "t") is not None


@pytest.mark.parametrize("written", range(6))
def test_a_restart_that_was_interrupted_is_one_restart(written: int) -> None:
    fake = FakeTrainingCluster(runPolicy={"backoffLimit": 1}).run()
    fake.set_phase("Failed", ["t-worker-0"])
    fake.reconcile_once(fake.decide, most=written)
    for _ in range(3):
        fake.work()
        fake.remove_terminating()
    assert fake.job.status.restarts == 1
    assert fake.created.count("t-worker-0") == 2
    fake.set_phase("Running")
    assert fake.work().state == "Running"


def test_a_deleted_service_of_the_master_is_created_again_before_a_missing_pod() -> None:
    fake = FakeTrainingCluster().run()
    del fake.objects[SERVICES.id, "t-master-0"]
    fake.evict("t-worker-0")
    fake.remove_terminating()
    fake.work()
    assert fake.get(SERVICES, "t-master-0") is not None
