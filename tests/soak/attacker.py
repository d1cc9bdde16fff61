"""Create the objects of one attack in a separate process, and delete them when its standard input ends.

python -m tests.soak.attacker KUBECONFIG NAMESPACE NAME NUMBER [UID]

The attack has a separate process because encoding its JSON would delay measurements in the same process. When all
objects have been sent, it prints how many were created and how many were refused. At the end it prints a line for each
object of another owner that the attack changed. UID is the uid of the Job that the other tenant runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schedspec.scheduler.controllers.runtime.objects import COMMANDS, JOBS, PYTORCH_JOBS
from schedspec.scheduler.kube import PODS, ApiError, Client, Conflict, KubeError, NotFound, Patch
from schedspec.scheduler.kube.resource import Resource
from schedspec.scheduler.model.objects import ObjectMeta
from tests.support.hostile import ATTACKS, BYSTANDER, OF_VICTIM, Body
from tests.support.live.api_objects import client_of, each

_WIDTH = 8


@dataclass(frozen=True)
class Made:
    """An object of an attack, as the API server created it."""

    resource: Resource[Any]
    metadata: ObjectMeta

    @property
    def is_bystander(self) -> bool:
        return BYSTANDER in (self.metadata.labels or {})


async def make(client: Client, resource: Resource[Any], body: Body, namespace: str, victim: str = "") -> Made:
    """Create an object of an attack. If its body has a `status`, write it as a kubelet would.

    Raises:
        KubeError: The API server refuses the object, or does not answer.
    """
    if "ownerReferences" in body["metadata"] or "target" in body:
        body = json.loads(json.dumps(body).replace(OF_VICTIM, victim))
    space = namespace if resource.namespaced else ""
    made = await client.create(resource.bare, body, space)
    if "status" in body:
        await client.patch(resource.bare, made.metadata.name, {"status": body["status"]}, space, sub="status")
    return Made(resource, made.metadata)


async def change_of(client: Client, made: Made) -> str:
    """Return what happened to an object that must not change; empty if it is unchanged."""
    before, what = made.metadata, f"{made.resource.kind} {made.metadata.name}"
    try:
        after = (await client.get(made.resource.bare, before.name, before.namespace)).metadata
    except NotFound:
        return f"{what} was deleted"

    def content(meta: ObjectMeta) -> tuple[Any, ...]:
        version = meta.generation or meta.resource_version  # a status does not change the generation
        return meta.uid, meta.labels, meta.owner_references, version

    return "" if content(after) == content(before) else f"{what} was changed"


async def remove(client: Client, resource: Resource[Any], name: str, namespace: str) -> None:
    """Delete an object, and remove its finalizers."""
    with contextlib.suppress(NotFound, Conflict):
        await client.delete(resource, name, namespace, grace=0 if resource is PODS else None)
    if resource is COMMANDS:
        with contextlib.suppress(ApiError):
            patch = {"metadata": {"finalizers": None}}
            await client.patch(resource.bare, name, patch, namespace, kind=Patch.MERGE)


class Attacker:
    """One attack in a namespace."""

    def __init__(self, client: Client, namespace: str, victim: str = "") -> None:
        self._client, self._namespace, self._victim = client, namespace, victim
        self.made: list[Made] = []
        self.refused = 0

    async def create(self, name: str, number: int) -> None:
        """Create the objects of the attack."""

        async def one(item: tuple[Resource[Any], Body]) -> None:
            try:
                self.made.append(await make(self._client, *item, self._namespace, self._victim))
            except KubeError:  # refused, or not answered in time: the attack loads the API server too
                self.refused += 1

        await each(ATTACKS[name].make(name, number), one, _WIDTH)

    async def changed(self) -> list[str]:
        """Return a text for each changed object of those that must not change."""
        bystanders = [made for made in self.made if made.is_bystander]
        return [found for made in bystanders if (found := await change_of(self._client, made))]

    async def end(self) -> list[str]:
        """Delete all objects, the jobs first; return the same as `changed`, before and after the deletion."""
        found = await self.changed()
        await each(reversed([made for made in self.made if not made.is_bystander]), self._remove, _WIDTH)
        while jobs := await self._jobs():  # including jobs that were created although their request timed out
            await each(jobs, self._remove, _WIDTH)
            await asyncio.sleep(1)
        found += await self.changed()
        await each([made for made in self.made if made.is_bystander], self._remove, _WIDTH)
        while (await self._client.list(PODS.bare, self._namespace)).items:
            await asyncio.sleep(0.2)
        return found

    async def _jobs(self) -> list[Made]:
        """Return the Jobs and PyTorchJobs in the namespace."""
        return [
            Made(resource, job.metadata)
            for resource in (JOBS, PYTORCH_JOBS)
            for job in (await self._client.list(resource.bare, self._namespace)).items
        ]

    async def _remove(self, made: Made) -> None:
        await remove(self._client, made.resource, made.metadata.name, made.metadata.namespace)


async def _run(kubeconfig: Path, namespace: str, name: str, number: int, victim: str) -> None:
    async with client_of(kubeconfig) as client:
        attacker = Attacker(client, namespace, victim)
        await attacker.create(name, number)
        sys.stdout.write(f"{len(attacker.made)} {attacker.refused}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)
        for found in await attacker.end():
            sys.stdout.write(f"{found}\n")


if __name__ == "__main__":
    asyncio.run(_run(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]), "".join(sys.argv[5:])))
