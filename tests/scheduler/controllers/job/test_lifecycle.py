"""A Job's life: gang first, pods when admitted, phases, scaling, commands, crashes in between."""

from __future__ import annotations

import pytest

from scheduler.controllers.runtime.objects import CONFIG_MAPS, JOBS, SERVICES
from scheduler.kube.resource import PODGROUPS, PODS, PRIORITY_CLASSES
from scheduler.model.objects import Namespace, ObjectMeta
from tests.support.controllers.fake_cluster import JobDesk, task


def test_the_podgroup_comes_first_and_pods_only_when_it_is_admitted() -> None:
    desk = JobDesk({"tasks": [task("a", 2), task("b", 1, minAvailable=0)], "priorityClassName": "high"})
    desk.work()
    spec = desk.group.spec
    assert (spec.min_member, spec.min_task_member) == (2, {"a": 2, "b": 0})
    assert (spec.queue, spec.priority_class_name) == ("default", "high")
    assert spec.min_resources == {"cpu": "2", "memory": "2Gi"}
    for phase in ("", "Pending"):
        desk.admit(phase)
        assert desk.work().pods() == []
    desk.admit("Inqueue")
    assert desk.work().pods() == ["j-a-0", "j-a-1", "j-b-0"]


def test_a_pod_says_what_it_was_made_for() -> None:
    desk = JobDesk(
        {"tasks": [task("a", 1)], "queue": "q", "priorityClassName": "high"},
        annotations={"volcano.sh/preemptable": "false", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
    ).run()
    pod = desk.get(PODS, "j-a-0")
    assert pod is not None
    annotations, labels = pod["metadata"]["annotations"], pod["metadata"]["labels"]
    group = desk.group.metadata
    assert annotations["scheduling.k8s.io/group-name"] == group.name == f"j-{desk.job.metadata.uid}"
    assert annotations["volcano.sh/task-spec"] == labels["volcano.sh/task-spec"] == "a"
    assert annotations["volcano.sh/job-name"] == labels["volcano.sh/job-name"] == "j"
    assert annotations["volcano.sh/queue-name"] == "q"
    assert annotations["volcano.sh/job-version"] == "0"
    assert annotations["volcano.sh/preemptable"] == "false"
    assert pod["spec"]["schedulerName"] == "schedspec"
    assert pod["spec"]["priorityClassName"] == "high"
    assert {"name": "VC_TASK_INDEX", "value": "0"} in pod["spec"]["containers"][0]["env"]
    assert "kubectl.kubernetes.io/last-applied-configuration" not in group.annotations


def test_a_task_without_a_name_is_called_by_its_place() -> None:
    desk = JobDesk({"tasks": [{"replicas": 1}, {"replicas": 1}]}).run()
    assert desk.pods() == ["j-default0-0", "j-default1-0"]


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
def test_a_job_ends_as_its_pods_do(spec: dict, succeed: int, fail: int, phase: str) -> None:
    desk = JobDesk(spec).run()
    names = desk.pods()
    desk.become("Succeeded", names[:succeed])
    desk.become("Failed", names[succeed : succeed + fail])
    assert desk.work().phase == phase
    if phase != "Running":
        assert desk.group is None
        assert desk.pods("Running") == []
        assert len(desk.pods()) == succeed + fail, "what has finished stays to be read"


def test_a_job_waits_again_when_too_many_of_its_pods_do() -> None:
    desk = JobDesk({"tasks": [task("a", 3)], "minAvailable": 2}).run()
    desk.evict("j-a-0")
    desk.work()
    desk.leave()
    assert desk.work().phase == "Running"
    desk.evict("j-a-1")
    desk.work()
    desk.leave()
    assert desk.work().phase == "Pending"


def test_the_counters_are_those_of_kubectl() -> None:
    desk = JobDesk({"tasks": [task("a", 4)], "minAvailable": 2}).run()
    desk.become("Succeeded", ["j-a-0"])
    desk.become("Failed", ["j-a-1"])
    desk.evict("j-a-2")
    status = desk.work().job.status
    assert (status.running, status.succeeded, status.failed, status.terminating, status.pending) == (1, 1, 1, 1, 0)
    assert status.min_available == 2
    assert status.task_status_count["a"].phase == {"Running": 1, "Succeeded": 1, "Failed": 1}
    desk.become("Unknown", ["j-a-3"])
    assert (desk.work().job.status.unknown, desk.job.status.running) == (1, 0)
    assert (desk.job.status.version, desk.job.status.retry_count) == (0, 0)


def test_a_finished_job_goes_when_its_time_is_over() -> None:
    desk = JobDesk({"tasks": [task("a", 1)], "ttlSecondsAfterFinished": 60}).run()
    desk.now += 30
    desk.become("Succeeded")
    desk.work()
    assert desk.job.status.running_duration == "30s"
    assert desk.again == 60.0
    desk.now += 60
    desk.turn(desk.decide)
    assert desk.job is None


def test_a_task_waits_for_those_it_depends_on() -> None:
    tasks = [task("a", 2), task("b", 1, dependsOn={"name": ["a"]})]
    desk = JobDesk({"tasks": tasks, "minAvailable": 2})
    desk.work()
    desk.admit()
    assert desk.work().pods() == ["j-a-0", "j-a-1"]
    desk.become("Running", ["j-a-0"])
    assert desk.work().pods() == ["j-a-0", "j-a-1"]
    desk.become("Running")
    assert desk.work().pods() == ["j-a-0", "j-a-1", "j-b-0"]


@pytest.mark.parametrize("given", [{}, {"minAvailable": 3}])
def test_a_task_that_waits_for_others_is_no_part_of_the_gang_that_those_start_in(given: dict) -> None:
    desk = JobDesk({"tasks": [task("a", 2), task("b", 1, dependsOn={"name": ["a"]})], **given}).work()
    spec = desk.group.spec
    assert (spec.min_member, spec.min_task_member) == (2, {"a": 2, "b": 0})
    assert spec.min_resources == {"cpu": "2", "memory": "2Gi"}
    desk.admit()
    desk.work()
    desk.become("Running")
    assert desk.work().phase == "Pending"
    desk.become("Running")
    assert desk.work().phase == "Running"
    desk.become("Succeeded", ["j-a-0", "j-a-1"])
    desk.become("Failed", ["j-b-0"])
    assert desk.work().phase == "Failed", "it is part of the job"


def test_a_gang_of_none_is_a_gang_of_all_as_with_volcano() -> None:
    assert JobDesk({"tasks": [task("a", 3)], "minAvailable": 0}).work().group.spec.min_member == 3


@pytest.mark.parametrize(("named", "queue"), [("default", "team"), ("", "team"), ("mine", "mine")])
def test_a_job_without_a_queue_has_its_namespaces(named: str, queue: str) -> None:
    desk = JobDesk({"tasks": [task("a", 1)], "queue": named})
    desk.home = Namespace(ObjectMeta(annotations={"scheduling.volcano.sh/queue-name": "team"}))
    desk.run()
    pod = desk.get(PODS, "j-a-0")
    assert pod is not None
    assert (desk.group.spec.queue, pod["metadata"]["labels"]["volcano.sh/queue-name"]) == (queue, queue)
    desk.home = None
    assert desk.work().group.spec.queue == queue, "what its PodGroup says stays"


def test_minimum_resources_are_those_of_the_most_important_pods() -> None:
    tasks = [
        {"name": "low", "replicas": 4, "template": {"spec": {"containers": [_container("1")]}}},
        {
            "name": "high",
            "replicas": 2,
            "template": {"spec": {"priorityClassName": "h", "containers": [_container("8")]}},
        },
    ]
    desk = JobDesk({"tasks": tasks, "minAvailable": 3})
    desk.put(PRIORITY_CLASSES, {"metadata": {"name": "h"}, "value": 100})
    desk.work()
    assert desk.group.spec.min_resources == {"cpu": "17"}


def _container(cpu: str) -> dict:
    return {"name": "x", "image": "i", "resources": {"requests": {"cpu": cpu}}}


def test_the_svc_plugin_lets_pods_find_each_other() -> None:
    desk = JobDesk({"tasks": [task("ps", 1), task("wk", 2)], "plugins": {"svc": []}}).run()
    hosts = desk.get(CONFIG_MAPS, "j-svc")
    assert hosts is not None
    assert hosts["data"]["VC_WK_HOSTS"] == "j-wk-0.j,j-wk-1.j"
    assert hosts["data"]["ps.host"] == "j-ps-0.j"
    assert desk.get(SERVICES, "j") is not None
    pod = desk.get(PODS, "j-wk-1")
    assert pod is not None
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("j-wk-1", "j")
    desk.change_spec(JOBS, "j", lambda spec: spec["tasks"][1].update(replicas=3))
    desk.work()
    hosts = desk.get(CONFIG_MAPS, "j-svc")
    assert hosts is not None
    assert hosts["data"]["VC_WK_NUM"] == "3"
    assert desk.job.status.controlled_resources == {"plugin-svc": "svc"}


@pytest.mark.parametrize("written", range(9))
def test_a_controller_that_dies_leaves_no_pod_without_its_hosts(written: int) -> None:
    desk = JobDesk({"tasks": [task("ps", 1), task("wk", 2)], "plugins": {"svc": []}})
    desk.turn(desk.decide, most=written)
    desk.run()
    assert desk.get(CONFIG_MAPS, "j-svc") is not None
    assert desk.get(SERVICES, "j") is not None
    desk.change_spec(JOBS, "j", lambda spec: spec["tasks"][1].update(replicas=1))
    desk.turn(desk.decide, most=written)
    desk.work()
    hosts = desk.get(CONFIG_MAPS, "j-svc")
    assert hosts is not None
    assert hosts["data"]["VC_WK_NUM"] == "1"


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({"containers": [{"name": "x", "image": "i"}], "tolerations": "all"}, "$.tolerations"),
        ({"containers": [{"name": "x", "resources": {"requests": {"cpu": "lots"}}}]}, "'lots' is not a quantity"),
    ],
)
def test_a_template_that_no_pod_can_be_made_of_is_named(spec: dict, named: str) -> None:
    desk = JobDesk({"tasks": [{"name": "a", "replicas": 1, "template": {"spec": spec}}]}).work()
    assert (desk.phase, desk.job.status.state.reason) == ("Pending", "Malformed")
    assert named in desk.job.status.state.message
    assert desk.group is None


def test_a_job_that_is_going_is_left_alone() -> None:
    desk = JobDesk({"tasks": [task()]}).run()
    desk.objects[JOBS.id, "j"]["metadata"]["deletionTimestamp"] = "now"
    assert desk.decide().writes == ()


def test_a_podgroup_that_somebody_deletes_comes_back() -> None:
    desk = JobDesk({"tasks": [task()]}).run()
    del desk.objects[PODGROUPS.id, desk.group.metadata.name]
    assert desk.work().group is not None
