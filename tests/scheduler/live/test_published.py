"""Events and conditions on a live cluster: each object states the reason of its state."""

from __future__ import annotations

from typing import Any

import pytest

from schedspec.scheduler.kube import PODGROUPS, PODS, QUEUES, Patch, Resource
from tests.support.live.api_objects import pod_body, queue
from tests.support.live.history import gang_of
from tests.support.live.status_queries import EVENTS, conditions, events, eventually
from tests.support.live.status_queries import status as status_of
from tests.support.live.target_cluster import NAMESPACE, TargetCluster

pytestmark = pytest.mark.embedded

UNREADABLE = {"cpu": "1e1.5"}
"""A text that passes the schema of a quantity but is not a quantity."""


def counted(page: str) -> list[str]:
    return [line for line in page.splitlines() if line.startswith("schedspec_malformed_objects{")]


@pytest.mark.deadline(90)
async def test_an_unreadable_object_carries_a_condition_until_it_is_repaired(
    target: TargetCluster,
) -> None:
    bad: list[tuple[Resource[Any], str, str, str, dict[str, Any], dict[str, Any]]] = [
        (PODGROUPS, "bad-0", NAMESPACE, NAMESPACE, {"minResources": UNREADABLE}, {"minResources": {"cpu": "2"}}),
        (QUEUES, "bad", "", "default", {"deserved": UNREADABLE}, {"deserved": {"cpu": "4"}}),
    ]
    async with target.scenario(nodes=2, cpu="4", queues=[queue("default"), queue("bad")]):
        client = target.client
        scheduler = target.start(controllers="podgroup,queue")
        await target.ready(scheduler)
        for resource, name, namespace, _, spec, _ in bad:
            if resource is PODGROUPS:
                await client.create(PODGROUPS.bare, {"metadata": {"name": name}, "spec": spec}, namespace)
            else:
                await client.patch(resource.bare, name, {"spec": spec}, kind=Patch.MERGE)
        for i in range(2):
            await client.create(PODS, pod_body(f"bad-0-{i}", "bad-0"), NAMESPACE)
        await target.gang("good", 2)
        await target.history.until(lambda: len(target.history.bound("good-0")) == 2, "the good gang runs")
        for resource, name, namespace, where, _, _ in bad:

            async def is_marked(kind: str = resource.kind, name: str = name, where: str = where) -> bool:
                return "Malformed" in await events(client, where, kind, name)

            await eventually(f"an event about {name}", is_marked)
            severity, message = (await events(client, where, resource.kind, name))["Malformed"]
            assert severity == "Warning"
            assert "1e1.5" in message

            async def has_condition(
                resource: Resource[Any] = resource, name: str = name, namespace: str = namespace
            ) -> bool:
                return "Malformed" in await conditions(client, resource, name, namespace)

            await eventually(f"a condition of {name}", has_condition)
            condition = (await conditions(client, resource, name, namespace))["Malformed"]
            assert (condition.status, condition.reason, condition.message) == ("True", "Unreadable", message)
        assert counted(scheduler.page("/metrics")) == [
            'schedspec_malformed_objects{kind="PodGroup"} 1.0',
            'schedspec_malformed_objects{kind="Queue"} 1.0',
        ]
        for resource, name, namespace, _, _, good in bad:
            await client.patch(resource.bare, name, {"spec": good}, namespace, kind=Patch.MERGE)
        await target.bound(4)
        for resource, name, namespace, _, _, _ in bad:

            async def is_clear(
                resource: Resource[Any] = resource, name: str = name, namespace: str = namespace
            ) -> bool:
                return "Malformed" not in await conditions(client, resource, name, namespace)

            await eventually(f"{name} without the condition", is_clear)
        assert counted(scheduler.page("/metrics")) == []
        published = [event for _, _, _, where, _, _ in bad for event in (await client.list(EVENTS, where)).items]
        about = sorted(event.involved_object.name for event in published if event.reason == "Malformed")
        assert about == ["bad", "bad-0"]  # one each, although the controllers see the objects too


@pytest.mark.deadline(60)
async def test_a_repaired_group_that_still_waits_loses_the_condition(
    target: TargetCluster,
) -> None:
    async with target.scenario(nodes=1, cpu="4"):
        client = target.client
        await target.ready(target.start())
        spec = {"minMember": 2, "minResources": UNREADABLE}
        await client.create(PODGROUPS.bare, {"metadata": {"name": "g"}, "spec": spec}, NAMESPACE)

        async def is_marked() -> bool:
            return "Malformed" in await conditions(client, PODGROUPS, "g", NAMESPACE)

        async def is_clear() -> bool:
            return not await is_marked()

        await eventually("the condition", is_marked)
        good = {"spec": {"minResources": {"cpu": "400"}}}
        await client.patch(PODGROUPS.bare, "g", good, NAMESPACE, kind=Patch.MERGE)
        await eventually("the end of the condition", is_clear)


@pytest.mark.deadline(60)
async def test_a_victim_keeps_its_grace_period_and_its_event_names_the_preemptor(
    target: TargetCluster,
) -> None:
    queues = [queue("a", deserved={"cpu": "2"}, reclaimable=True), queue("b", deserved={"cpu": "2"})]
    async with target.scenario(nodes=1, cpu="4", queues=queues):
        client = target.client
        await target.ready(target.start(controllers="queue"))
        for i in range(4):
            group = {"metadata": {"name": f"a-{i}"}, "spec": {"minMember": 1, "queue": "a"}}
            await client.create(PODGROUPS, group, NAMESPACE)
            body = pod_body(f"a-{i}-0", f"a-{i}")
            body["spec"]["terminationGracePeriodSeconds"] = 7
            body["metadata"]["annotations"]["schedspec.dev/stop-after"] = "1s"
            await client.create(PODS, body, NAMESPACE)
        await target.bound(4)
        await target.history.until(
            lambda: all(pod.status.phase == "Running" for pod in target.history.pods.values()), "all run"
        )
        await target.gang("b", 2, "b")
        await target.history.until(lambda: len(target.history.evicting) == 2, "two victims")
        await target.history.until(lambda: len(target.history.bound("b-0")) == 2, "the preemptor runs")
        nominated = {p.status.nominated_node_name for _, p in target.history.changes if p and gang_of(p) == "b-0"}
        assert "node-0" in nominated
        leaving = [p for _, p in target.history.changes if p and p.metadata.deletion_timestamp]
        assert {p.metadata.deletion_grace_period_seconds for p in leaving} <= {7, 0}  # 0: the kubelet's last deletion
        assert 7 in {p.metadata.deletion_grace_period_seconds for p in leaving}
        for uid in target.history.evicting:
            victim = [p for _, p in target.history.changes if p and p.metadata.uid == uid][-1]
            name, job = victim.metadata.name, gang_of(victim)
            [mark] = [c for c in victim.status.conditions or () if c.type == "DisruptionTarget"]
            assert (mark.status, mark.reason) == ("True", "PreemptionByScheduler")
            assert mark.message.startswith(f"reclaimed for {NAMESPACE}/b-0 of queue b (victim's queue: a)")
            assert "capacity permits" in mark.message

            async def is_marked(kind: str, name: str) -> bool:
                return "Evict" in await events(client, NAMESPACE, kind, name)

            for kind, about, severity, messages in (
                ("Pod", name, "Warning", mark.message),
                ("PodGroup", job, "Normal", f"pod {name} {mark.message}"),
            ):
                await eventually(f"an event about {about}", lambda k=kind, a=about: is_marked(k, a))  # type: ignore[misc]
                assert (await events(client, NAMESPACE, kind, about))["Evict"] == (severity, messages)

        async def numbers() -> bool:
            status = await status_of(client, QUEUES, "a")
            return (status.get("allocated") or {}).get("cpu") == "2" and status.get("running") == 2

        await eventually("the queue's numbers", numbers)
        status = await status_of(client, QUEUES, "a")
        assert (status["state"], status["deserved"]["cpu"]) == ("Open", "2")


@pytest.mark.deadline(60)
async def test_a_pod_states_that_it_waits_for_its_podgroup_or_its_gang(target: TargetCluster) -> None:
    """A pod without a readable PodGroup must show the reason, too."""
    async with target.scenario(nodes=1, cpu="4"):
        client = target.client
        await target.ready(target.start())
        spec = {"minMember": 1, "minResources": UNREADABLE}
        await client.create(PODGROUPS.bare, {"metadata": {"name": "unreadable"}, "spec": spec}, NAMESPACE)
        await client.create(PODGROUPS, {"metadata": {"name": "short"}, "spec": {"minMember": 3}}, NAMESPACE)
        for group in ("nothing", "unreadable", "short"):
            await client.create(PODS, pod_body(f"of-{group}", group), NAMESPACE)
        for group, why in (
            ("nothing", f"PodGroup {NAMESPACE}/nothing does not exist or cannot be read"),
            ("unreadable", f"PodGroup {NAMESPACE}/unreadable does not exist or cannot be read"),
            ("short", "gang: 1 of at least 3 pods exist"),
        ):
            name = f"of-{group}"

            async def has_condition(name: str = name, why: str = why) -> bool:
                condition = (await conditions(client, PODS, name, NAMESPACE)).get("PodScheduled")
                return condition is not None and condition.status == "False" and why in condition.message

            await eventually(f"a condition of {name}: {why}", has_condition)

            async def is_marked(name: str = name, why: str = why) -> bool:
                _, message = (await events(client, NAMESPACE, "Pod", name)).get("FailedScheduling", ("", ""))
                return why in message

            await eventually(f"an event about {name}", is_marked)
