"""A Job with an unsupported or impossible field waits, and its status names the field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from schedspec.scheduler.controllers.job.reconcile import reconcile
from schedspec.scheduler.controllers.job.state import ObservedJob
from schedspec.scheduler.controllers.runtime.objects import DependsOn, VolcanoJob
from tests.support.controllers.fake_cluster import FakeJobCluster, task

Body = dict[str, Any]
POD = {"spec": {"containers": [{"name": "c"}]}}


def of_task(**given: Any) -> Body:
    return {"tasks": [task(), task("b", **given)]}


def policy(**given: Any) -> Body:
    return {"policies": [{"event": "PodFailed", "action": "AbortJob", **given}]}


PLUGINS_OF_OTHERS = ("ssh", "pytorch", "tensorflow", "mpi", "ray", "hcclrank")
UNHONOURED: dict[str, Body] = {
    **{f"spec.plugins.{name}": {"plugins": {"svc": [], name: ["--x"]}} for name in PLUGINS_OF_OTHERS},
    "spec.plugins.svc (--port=23)": {"plugins": {"svc": ["--disable-network-policy", "--port=23"]}},
    "spec.plugins.env (--x)": {"plugins": {"env": ["--x"]}},
    "spec.volumes": {"volumes": [{"mountPath": "/x"}]},
    "spec.policies[0].action (RestartPartition)": policy(action="RestartPartition"),
    "spec.policies[0].action (none)": policy(action=""),
    "spec.policies[0].event (OutOfSync)": policy(event="OutOfSync"),
    "spec.tasks[1].policies[0].event (CommandIssued)": of_task(
        **policy(event=None, events=["PodFailed", "CommandIssued"])
    ),
    "spec.tasks[1].topologyPolicy (single-numa-node)": of_task(topologyPolicy="single-numa-node"),
    "spec.tasks[1].dependsOn.iteration (some)": of_task(dependsOn={"name": ["a"], "iteration": "some"}),
}


@pytest.mark.parametrize("field", UNHONOURED)
def test_an_unsupported_field_keeps_the_job_pending_and_is_named(field: str) -> None:
    fake = FakeJobCluster({"tasks": [task()], **UNHONOURED[field]}).work()
    assert (fake.phase, fake.job.status.state.reason) == ("Pending", "NotHonoured")
    assert fake.job.status.state.message.startswith(f"{field}: not honoured here")
    assert fake.group is None
    assert [(event.kind, event.reason) for event in fake.events] == [("Warning", "NotHonoured")]


@pytest.mark.parametrize(
    "spec",
    [
        {"plugins": {"env": [], "svc": ["--publish-not-ready-addresses=true", "-disable-network-policy"]}},
        of_task(topologyPolicy="none"),
        of_task(dependsOn={"name": ["a"], "iteration": "any"}),
        of_task(dependsOn={"name": ["a"], "iteration": ""}),
        of_task(dependsOn={}),
    ],
)
def test_a_job_with_supported_fields_runs(spec: Body) -> None:
    assert FakeJobCluster({"tasks": [task()], **spec}).work().group is not None


@pytest.mark.parametrize(
    ("needs", "named"),
    [
        ({"b": ["c"]}, "spec.tasks[1].dependsOn.name: there is no task c"),
        ({"b": ["b"]}, "spec.tasks[1].dependsOn.name: b would wait for itself by way of b"),
        ({"a": ["b"], "b": ["a"]}, "spec.tasks[0].dependsOn.name: a would wait for itself by way of b"),
    ],
)
def test_a_dependency_that_can_never_be_met_is_named(needs: dict[str, list[str]], named: str) -> None:
    tasks = [task(name, dependsOn={"name": needs.get(name, [])}) for name in "ab"]
    fake = FakeJobCluster({"tasks": tasks}).work()
    assert (fake.phase, fake.job.status.state.reason) == ("Pending", "Malformed")
    assert named in fake.job.status.state.message
    assert fake.group is None


def test_with_iteration_any_one_running_task_is_enough() -> None:
    tasks = [task("a"), task("b", dependsOn={"name": ["b", "a"], "iteration": "any"})]
    fake = FakeJobCluster({"tasks": tasks}).work()
    fake.admit()
    fake.work()
    fake.set_phase("Running")
    assert fake.work().pods() == ["j-a-0", "j-a-1", "j-b-0", "j-b-1"]


def test_a_task_without_a_pod_spec_is_named() -> None:
    fake = FakeJobCluster({"tasks": [{"name": "a", "replicas": 1, "template": {}}]}).work()
    assert "spec.tasks[0].template.spec: missing" in fake.job.status.state.message


@pytest.mark.parametrize(
    ("policy", "named"),
    [
        ({}, "totalPartitions and partitionSize have to be 1 or more"),
        ({"totalPartitions": 2, "partitionSize": 3}, "2 partitions of 3 are not the 4 replicas of the task"),
        ({"totalPartitions": 2, "partitionSize": 2, "minPartitions": 3}, "minPartitions 3 is above totalPartitions 2"),
    ],
)
def test_an_inconsistent_partition_policy_is_named(policy: Body, named: str) -> None:
    fake = FakeJobCluster({"tasks": [task(replicas=4, partitionPolicy=policy)]}).work()
    assert (fake.phase, fake.job.status.state.reason) == ("Pending", "Malformed")
    assert f"spec.tasks[0].partitionPolicy: {named}" in fake.job.status.state.message
    assert fake.group is None


class CountedNames(list[str]):
    """The names in one `dependsOn`; counts how many of them are read."""

    reads = 0

    def __iter__(self) -> Iterator[str]:
        CountedNames.reads += len(self)
        return super().__iter__()

    def __contains__(self, name: object) -> bool:
        CountedNames.reads += len(self)
        return super().__contains__(name)


@pytest.mark.parametrize("iteration", ["all", "any"])
def test_the_cost_of_dependencies_is_linear_in_their_number(iteration: str) -> None:
    def reads(number: int) -> int:
        body = {
            "metadata": {"name": "j"},
            "spec": {"tasks": [{"name": f"t{n}", "template": POD} for n in range(number)]},
        }
        job = msgspec.convert(body, VolcanoJob)
        for place, task_spec in enumerate(job.spec.tasks[1:]):
            task_spec.depends_on = DependsOn(name=CountedNames([f"t{place}"]), iteration=iteration)
        CountedNames.reads = 0
        reconcile(ObservedJob(job))
        return CountedNames.reads

    assert reads(40) <= 2 * reads(20) + 10
