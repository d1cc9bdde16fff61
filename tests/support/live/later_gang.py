"""Wait until the scheduler has processed all earlier writes."""

from __future__ import annotations

from schedspec.scheduler.kube import PODGROUPS, PODS, Client
from schedspec.scheduler.kube.errors import Forbidden
from tests.support.live.api_objects import pod_body
from tests.support.live.status_queries import conditions, eventually


async def report_on_a_later_gang(client: Client, name: str, queue: str, namespace: str) -> None:
    """Create a gang that fits on no node, and wait until the scheduler has reported on it.

    The gang is newer than all other objects, so the scheduler has considered these by then.
    """
    body = pod_body(name, name, "1m")
    body["spec"]["nodeSelector"] = {"schedspec.dev/no-such": "node"}
    await client.create(PODGROUPS, {"metadata": {"name": name}, "spec": {"minMember": 1, "queue": queue}}, namespace)

    async def is_created() -> bool:
        try:
            await client.create(PODS, body, namespace)
        except Forbidden:  # of a new namespace: its service account appears later
            return False
        return True

    await eventually("the pod of a gang that fits nowhere", is_created)

    async def is_reported() -> bool:
        return "PodScheduled" in await conditions(client, PODS, name, namespace)

    await eventually("the report on a gang that fits nowhere", is_reported)
    await client.delete(PODS, name, namespace, grace=0)
    await client.delete(PODGROUPS, name, namespace)
