"""Run a Job of the other tenant, which must keep running although an attack in another namespace names it."""

from __future__ import annotations

from schedspec.scheduler.controllers.runtime.objects import JOBS, VolcanoJob
from schedspec.scheduler.kube import PODS, Client
from tests.support.hostile import VICTIM
from tests.support.live.status_queries import eventually


class Victim:
    """The Job. A failed pod would restart it."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client, self._namespace = client, namespace
        self.uid = ""
        self._pods: set[str] = set()

    async def start(self) -> None:
        """Create the Job and wait until its pods run."""
        container = {"name": "main", "image": "worker", "resources": {"requests": {"cpu": "100m"}}}
        tasks = [{"name": "main", "replicas": 2, "template": {"spec": {"containers": [container]}}}]
        policies = [{"events": ["PodFailed", "PodEvicted"], "action": "RestartJob"}]
        spec = {"schedulerName": "schedspec", "minAvailable": 2, "tasks": tasks, "policies": policies}
        made = await self._client.create(JOBS, {"metadata": {"name": VICTIM}, "spec": spec}, self._namespace)
        self.uid = made.metadata.uid

        async def is_running() -> bool:
            return (await self._job()).status.state.phase == "Running"

        await eventually("the Job of the other tenant runs", is_running)
        self._pods = await self._running()

    async def problem(self) -> str:
        """Return what happened to the Job; empty if it still runs."""
        state = (await self._job()).status.state
        if state.phase != "Running":
            return f"the Job of the other tenant is {state.phase}: {state.reason} {state.message}"
        return "" if await self._running() == self._pods else "the Job of the other tenant was restarted"

    async def _job(self) -> VolcanoJob:
        return await self._client.get(JOBS, VICTIM, self._namespace)

    async def _running(self) -> set[str]:
        pods = (await self._client.list(PODS, self._namespace)).items
        return {
            pod.metadata.uid for pod in pods if pod.metadata.name.startswith(VICTIM) and pod.status.phase == "Running"
        }
