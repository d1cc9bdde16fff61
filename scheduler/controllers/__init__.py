"""The controllers of the objects that scenarios use: Job, PodGroup, Queue, PyTorchJob.

Each controller has a pure `reconcile.py` that maps an observed state to writes. `runtime` observes the state and
carries out the writes. `gang_job` is the shell that Job and PyTorchJob share.

    await run_controllers(client, recorder, ["job", "queue"], scheduler_names=["schedspec"],
                          queue_command_namespace="kube-system")   # until cancelled
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..kube import Client, EventRecorder, Reflector
from .job.controller import JobController
from .podgroup.controller import PodGroupController
from .pytorchjob.controller import PyTorchJobController
from .queue.controller import QueueController
from .runtime.controller import Context, Controller

KNOWN: dict[str, Callable[[Context], Controller]] = {
    "job": JobController,
    "podgroup": PodGroupController,
    "queue": QueueController,
    "pytorchjob": PyTorchJobController,
}


def build(names: Iterable[str], context: Context) -> list[Controller]:
    """Return the controllers with these names, over one context.

    Raises:
        ValueError: A name is unknown.
    """
    names = list(names)
    for name in names:
        if name not in KNOWN:
            raise ValueError(f"unknown controller {name!r}; known: {', '.join(KNOWN)}")
    return [KNOWN[name](context) for name in names]


async def run_controllers(
    client: Client,
    recorder: EventRecorder,
    names: Iterable[str],
    *,
    scheduler_names: Sequence[str],
    queue_command_namespace: str,
    node_selector: Mapping[str, str] | None = None,
    reflectors: Iterable[Reflector[Any]] = (),
    on_started: Callable[[Context], None] = lambda _: None,
) -> None:
    """Run the controllers until cancelled.

    The caller runs the recorder and the reflectors. `on_started` receives the context once all controllers are built.
    """
    context = Context(
        client,
        recorder,
        scheduler_names,
        reflectors=reflectors,
        queue_command_namespace=queue_command_namespace,
        node_selector=node_selector,
    )
    controllers = build(names, context)
    on_started(context)
    async with asyncio.TaskGroup() as group:
        group.create_task(context.watch(), name="watches of the controllers")
        for controller in controllers:
            group.create_task(controller.run(), name=f"controller {controller.name}")


__all__ = ["KNOWN", "Context", "Controller", "build", "run_controllers"]
