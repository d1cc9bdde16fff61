"""The controllers of the objects that scenarios use: Job, PodGroup, Queue, PyTorchJob.

The one rule: a controller decides purely (``job.py``, ``podgroup.py``, ``queue.py``, ``pytorchjob.py``: what is seen
comes in, what to write goes out); ``runtime.py`` carries it out.

::

    context = Context(client, recorder, scheduler_names=["schedspec"])
    controllers = build(["job", "queue"], context)
    async with asyncio.TaskGroup() as group:
        group.create_task(context.watch())
        for controller in controllers:
            group.create_task(controller.run())
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from scheduler.controllers.job_controller import JobController
from scheduler.controllers.podgroup_controller import PodGroupController
from scheduler.controllers.runtime import Context, Controller

KNOWN: dict[str, Callable[[Context], Controller]] = {
    "job": JobController,
    "podgroup": PodGroupController,
}


def build(names: Iterable[str], context: Context) -> list[Controller]:
    """The controllers of these names, over one context. Raises ValueError for a name that is not known."""
    names = list(names)
    for name in names:
        if name not in KNOWN:
            raise ValueError(f"no controller {name!r}; there are {', '.join(KNOWN)}")
    return [KNOWN[name](context) for name in names]


__all__ = ["KNOWN", "Context", "Controller", "build"]
