"""The lifecycle of a Job: its PodGroup, its pods after the admission, its phases, and crashes in between."""

from __future__ import annotations

import pytest

from schedspec.scheduler.controllers.runtime.objects import CONFIG_MAPS, JOBS, SERVICES
from schedspec.scheduler.kube.resource import PODGROUPS, PODS, PRIORITY_CLASSES
from schedspec.scheduler.model.objects import Namespace, ObjectMeta
from tests.support.controllers.fake_cluster import FakeJobCluster, task


def test_the_podgroup_is_created_first_and_pods_after_its_admission() -> None:
    fake = FakeJobCluster({"tasks": [task("a", 2), task("b", 1, minAvailable=0)], "priorityClassName": "high"})
    fake.work()
    spec = fake.group.spec
    assert (spec.min_member, spec.min_task_member) == (2, {"a": 2, "b": 0})
    assert (spec.queue, spec.priority_class_name) == ("default", "high")
    assert spec.min_resources == {"cpu": "2", "memory": "2Gi"}
    for phase in ("", "Pending"):
        fake.admit(phase)
        assert fake.work().pods() == []
    fake.admit("Inqueue")
    assert fake.work().pods() == ["j-a-0", "j-a-1", "j-b-0"]


def test_a_pod_has_the_metadata_of_its_job_task_and_queue() -> None:
    fake = FakeJobCluster(
        {"tasks": [task("a", 1)], "queue": "q", "priorityClassName": "high"},
        annotations={"volcano.sh/preemptable": "false", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
    ).run()
    pod = fake.get(PODS, "j-a-0")
    assert pod is not None
    annotations, labels = pod["metadata"]["annotations"], pod["metadata"]["labels"]
    group = fake.group.metadata
    assert annotations["scheduling.k8s.io/group-name"] == group.name == f"j-{fake.job.metadata.uid}"
    assert annotations["volcano.sh/task-spec"] == labels["volcano.sh/task-spec"] == "a"
    assert annotations["volcano.sh/job-name"] == labels["volcano.sh/job-name"] == "j"
    assert annotations["volcano.sh/queue-name"] == "q"
    assert annotations["volcano.sh/job-version"] == "0"
    assert annotations["volcano.sh/preemptable"] == "false"
    assert pod["spec"]["schedulerName"] == "schedspec"
    assert pod["spec"]["priorityClassName"] == "high"
    assert {"name": "VC_TASK_INDEX", "value": "0"} in pod["spec"]["containers"][0]["env"]
    assert "kubectl.kubernetes.io/last-applied-configuration" not in group.annotations


def test_a_task_without_a_name_is_named_by_its_index() -> None:
    fake = FakeJobCluster({"tasks": [{"replicas": 1}, {"replicas": 1}]}).run()
    assert fake.pods() == ["j-default0-0", "j-default1-0"]


@pytest.mark.parametrize(
    ("spec", "succeed", "fail", "phase"),
    [
        ({"tasks": [task("a", 3)]}, 3, 0, "Completed"),
        ({"tasks": [task("a", 3)]}, 2, 1, "Failed"),
        ({"tasks": [task("a", 3)]}, 2, 0, "Running"),
        ({"tasks": [task("a", 3)], "minAvailable": 2}, 2, 1, "Completed"),
        ({"tasks": [task("a", 3)], "minAvailable": 2}, 2, 0, "Running"),
        ({"tasks": [task("a", 3)], "minSuccess": 1}, 1, 0, "Completed"),
        ({"tasks": [task("a", 3)], "minSuccess": 3}, 2, 1, "Failed"),
        ({"tasks": [task("a", 3, minAvailable=2)]}, 1, 2, "Failed"),
        ({"tasks": [task("a", 3, minAvailable=2)]}, 2, 1, "Completed"),
    ],
)
def test_the_final_phase_follows_from_the_pods(spec: dict, succeed: int, fail: int, phase: str) -> None:
    fake = FakeJobCluster(spec).run()
    names = fake.pods()
    fake.set_phase("Succeeded", names[:succeed])
    fake.set_phase("Failed", names[succeed : succeed + fail])
    assert fake.work().phase == phase
    if phase != "Running":
        assert fake.group is None
        assert fake.pods("Running") == []
        assert len(fake.pods()) == succeed + fail, "finished pods are kept"


def test_a_job_is_pending_again_when_too_many_of_its_pods_are() -> None:
    fake = FakeJobCluster({"tasks": [task("a", 3)], "minAvailable": 2}).run()
    fake.evict("j-a-0")
    fake.work()
    fake.remove_terminating()
    assert fake.work().phase == "Running"
    fake.evict("j-a-1")
    fake.work()
    fake.remove_terminating()
    assert fake.work().phase == "Pending"


def test_the_status_counts_pods_by_phase() -> None:
    fake = FakeJobCluster({"tasks": [task("a", 4)], "minAvailable": 2}).run()
    fake.set_phase("Succeeded", ["j-a-0"])
    fake.set_phase("Failed", ["j-a-1"])
    fake.evict("j-a-2")
    status = fake.work().job.status
    assert (status.running, status.succeeded, status.failed, status.terminating, status.pending) == (1, 1, 1, 1, 0)
    assert status.min_available == 2
    assert status.task_status_count["a"].phase == {"Running": 1, "Succeeded": 1, "Failed": 1}
    fake.set_phase("Unknown", ["j-a-3"])
    assert (fake.work().job.status.unknown, fake.job.status.running) == (1, 0)
    assert (fake.job.status.version, fake.job.status.retry_count) == (0, 0)


def test_a_finished_job_is_deleted_after_its_ttl() -> None:
    fake = FakeJobCluster({"tasks": [task("a", 1)], "ttlSecondsAfterFinished": 60}).run()
    fake.now += 30
    fake.set_phase("Succeeded")
    fake.work()
    assert fake.job.status.running_duration == "30s"
    assert fake.again == 60.0
    fake.now += 60
    fake.reconcile_once(fake.decide)
    assert fake.job is None


def test_a_task_waits_for_the_tasks_that_it_depends_on() -> None:
    tasks = [task("a", 2), task("b", 1, dependsOn={"name": ["a"]})]
    fake = FakeJobCluster({"tasks": tasks, "minAvailable": 2})
    fake.work()
    fake.admit()
    assert fake.work().pods() == ["j-a-0", "j-a-1"]
    fake.set_phase("Running", ["j-a-0"])
    assert fake.work().pods() == ["j-a-0", "j-a-1"]
    fake.set_phase("Running")
    assert fake.work().pods() == ["j-a-0", "j-a-1", "j-b-0"]


@pytest.mark.parametrize("given", [{}, {"minAvailable": 3}])
def test_a_dependent_task_is_not_part_of_the_gang(given: dict) -> None:
    fake = FakeJobCluster({"tasks": [task("a", 2), task("b", 1, dependsOn={"name": ["a"]})], **given}).work()
    spec = fake.group.spec
    assert (spec.min_member, spec.min_task_member) == (2, {"a": 2, "b": 0})
    assert spec.min_resources == {"cpu": "2", "memory": "2Gi"}
    fake.admit()
    fake.work()
    fake.set_phase("Running")
    assert fake.work().phase == "Pending"
    fake.set_phase("Running")
    assert fake.work().phase == "Running"
    fake.set_phase("Succeeded", ["j-a-0", "j-a-1"])
    fake.set_phase("Failed", ["j-b-0"])
    assert fake.work().phase == "Failed", "it is part of the job"


def test_min_available_of_0_means_all_pods_as_in_volcano() -> None:
    assert FakeJobCluster({"tasks": [task("a", 3)], "minAvailable": 0}).work().group.spec.min_member == 3


@pytest.mark.parametrize(("named", "queue"), [("default", "team"), ("", "team"), ("mine", "mine")])
def test_a_job_without_a_queue_uses_the_queue_of_its_namespace(named: str, queue: str) -> None:
    fake = FakeJobCluster({"tasks": [task("a", 1)], "queue": named})
    fake.namespace = Namespace(ObjectMeta(annotations={"scheduling.volcano.sh/queue-name": "team"}))
    fake.run()
    pod = fake.get(PODS, "j-a-0")
    assert pod is not None
    assert (fake.group.spec.queue, pod["metadata"]["labels"]["volcano.sh/queue-name"]) == (queue, queue)
    fake.namespace = None
    assert fake.work().group.spec.queue == queue, "the queue of its PodGroup is kept"


def test_minimum_resources_are_the_requests_of_the_pods_with_the_highest_priority() -> None:
    tasks = [
        {"name": "low", "replicas": 4, "template": {"spec": {"containers": [_container("1")]}}},
        {
            "name": "high",
            "replicas": 2,
            "template": {"spec": {"priorityClassName": "h", "containers": [_container("8")]}},
        },
    ]
    fake = FakeJobCluster({"tasks": tasks, "minAvailable": 3})
    fake.put(PRIORITY_CLASSES, {"metadata": {"name": "h"}, "value": 100})
    fake.work()
    assert fake.group.spec.min_resources == {"cpu": "17"}


def _container(cpu: str) -> dict:
    return {"name": "x", "image": "i", "resources": {"requests": {"cpu": cpu}}}


def test_the_svc_plugin_lets_pods_find_each_other() -> None:
    fake = FakeJobCluster({"tasks": [task("ps", 1), task("wk", 2)], "plugins": {"svc": []}}).run()
    hosts = fake.get(CONFIG_MAPS, "j-svc")
    assert hosts is not None
    assert hosts["data"]["VC_WK_HOSTS"] == "j-wk-0.j,j-wk-1.j"
    assert hosts["data"]["ps.host"] == "j-ps-0.j"
    assert fake.get(SERVICES, "j") is not None
    pod = fake.get(PODS, "j-wk-1")
    assert pod is not None
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("j-wk-1", "j")
    fake.change_spec(JOBS, "j", lambda spec: spec["tasks"][1].update(replicas=3))
    fake.work()
    hosts = fake.get(CONFIG_MAPS, "j-svc")
    assert hosts is not None
    assert hosts["data"]["VC_WK_NUM"] == "3"
    assert fake.job.status.controlled_resources == {"plugin-svc": "svc"}


@pytest.mark.parametrize("written", range(9))
def test_after_a_crash_no_pod_lacks_the_host_list(written: int) -> None:
    fake = FakeJobCluster({"tasks": [task("ps", 1), task("wk", 2)], "plugins": {"svc": []}})
    fake.reconcile_once(fake.decide, most=written)
    fake.run()
    assert fake.get(CONFIG_MAPS, "j-svc") is not None
    assert fake.get(SERVICES, "j") is not None
    fake.change_spec(JOBS, "j", lambda spec: spec["tasks"][1].update(replicas=1))
    fake.reconcile_once(fake.decide, most=written)
    fake.work()
    hosts = fake.get(CONFIG_MAPS, "j-svc")
    assert hosts is not None
    assert hosts["data"]["VC_WK_NUM"] == "1"


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({"containers": [{"name": "x", "image": "i"}], "tolerations": "all"}, "$.tolerations"),
        ({"containers": [{"name": "x", "resources": {"requests": {"cpu": "lots"}}}]}, "'lots' is not a quantity"),
    ],
)
def test_a_template_that_is_no_valid_pod_is_named(spec: dict, named: str) -> None:
    fake = FakeJobCluster({"tasks": [{"name": "a", "replicas": 1, "template": {"spec": spec}}]}).work()
    assert (fake.phase, fake.job.status.state.reason) == ("Pending", "Malformed")
    assert named in fake.job.status.state.message
    assert fake.group is None


def test_a_job_that_is_being_deleted_is_left_alone() -> None:
    fake = FakeJobCluster({"tasks": [task()]}).run()
    fake.objects[JOBS.id, "j"]["metadata"]["deletionTimestamp"] = "now"
    assert fake.decide().writes == ()


def test_a_deleted_podgroup_is_created_again() -> None:
    fake = FakeJobCluster({"tasks": [task()]}).run()
    del fake.objects[PODGROUPS.id, fake.group.metadata.name]
    assert fake.work().group is not None
