"""Create the objects of one attack in a process of its own, and delete them when the standard input ends.

python -m tests.soak.attacker KUBECONFIG NAMESPACE NAME NUMBER

The attack's own CPU time must not count: who measures in the same process waits for the attack's JSON. Prints how many
objects were created and refused once all were tried.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path
from typing import Any

from scheduler.controllers.runtime.objects import COMMANDS
from scheduler.kube import PODS, ApiError, Client, Conflict, KubeError, NotFound, Patch
from scheduler.kube.resource import Resource
from tests.soak.hostile import ATTACKS
from tests.support.live.api_objects import client_of, each

Made = list[tuple[Resource[Any], str]]
_WIDTH = 8


async def create(client: Client, namespace: str, name: str, number: int) -> tuple[Made, int]:
    """Create the objects of an attack; return those that were created, and how many were refused."""
    made: Made = []
    refused = 0

    async def one(item: tuple[Resource[Any], dict[str, Any]]) -> None:
        nonlocal refused
        resource, body = item
        try:
            await client.create(resource, body, namespace if resource.namespaced else "")
            made.append((resource, body["metadata"]["name"]))
        except KubeError:  # or there was no answer in time: the API server is attacked as well
            refused += 1

    await each(ATTACKS[name].make(name, number), one, _WIDTH)
    return made, refused


async def remove(client: Client, resource: Resource[Any], name: str, namespace: str) -> None:
    """Delete an object, its finalizers included."""
    with contextlib.suppress(NotFound, Conflict):
        await client.delete(resource, name, namespace, grace=0 if resource is PODS else None)
    if resource is COMMANDS:
        with contextlib.suppress(ApiError):
            patch = {"metadata": {"finalizers": None}}
            await client.patch(resource.bare, name, patch, namespace, kind=Patch.MERGE)


async def _run(kubeconfig: Path, namespace: str, name: str, number: int) -> None:
    async with client_of(kubeconfig) as client:
        made, refused = await create(client, namespace, name, number)
        sys.stdout.write(f"{len(made)} {refused}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)

        async def end(item: tuple[Resource[Any], str]) -> None:
            resource, of = item
            await remove(client, resource, of, namespace if resource.namespaced else "")

        await each(reversed(made), end, _WIDTH)
        while (await client.list(PODS.bare, namespace)).items:
            await asyncio.sleep(0.2)


if __name__ == "__main__":
    asyncio.run(_run(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])))
