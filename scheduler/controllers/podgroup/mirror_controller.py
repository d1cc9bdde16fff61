"""The controller of the mirrors (see `mirror`): reconcile the gang of each changed pod, original or mirror.

It starts when the API server serves PodGroups of `scheduling.k8s.io`, which requires a feature gate. Until then it does
nothing, and no other controller waits for it. Its keys are the gangs that our pods name.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from ...kube import NAMESPACES, PODGROUPS, PODS, Resource, WorkQueue
from ...model.objects import Pod, PodGroup
from ..runtime.controller import Context
from ..runtime.executor import About
from ..runtime.objects import KUBE_PODGROUPS, KubePodGroup
from ..runtime.write_through_cache import WriteThroughCache
from ..runtime.writes import ReconcileResult
from .members import Members
from .mirror import ObservedMirror, gang_of, is_terminating, original_of, reconcile


class MirrorController:
    """Mirrors of gangs; part of the PodGroup controller."""

    name = "podgroup, gangs of scheduling.k8s.io"

    def __init__(self, context: Context) -> None:
        self._context = context
        self._queue = WorkQueue(self.name)
        self._pods = context.view(PODS)
        self._groups = context.view(PODGROUPS)
        self._namespaces = context.view(NAMESPACES)
        self._served: Resource[Any] | None = None
        self._members = Members(self._pods, self._key_of)
        self._pods.informer.on_change(self._pod_changed)
        self._groups.informer.on_change(self._mirror_changed)

    async def run(self) -> None:
        """Work until cancelled, once PodGroups are served."""
        self._served = await self._context.first_served(KUBE_PODGROUPS)
        originals = self._originals()
        originals.informer.on_change(self._original_changed)
        async with asyncio.TaskGroup() as group:
            group.create_task(originals.informer.run())
            needs = (self._pods, self._groups, self._namespaces, originals)
            group.create_task(self._context.work(self.name, self._queue, self._decide, *needs))

    def _originals(self) -> WriteThroughCache[KubePodGroup]:
        assert self._served is not None
        return self._context.view(self._served)

    def _pod_changed(self, before: Pod | None, after: Pod | None) -> None:
        left, joined = self._members.follow(before, after)
        if before is None or after is None or left != joined or is_terminating(after):
            for key in {left, joined} - {""}:
                self._queue.add(key)

    def _key_of(self, pod: Pod) -> str:
        return gang_of(pod) if pod.spec.scheduler_name in self._context.scheduler_names else ""

    def _mirror_changed(self, before: PodGroup | None, after: PodGroup | None) -> None:
        group = after or before
        if group is not None and (original_of(group) or group.metadata.key in self._members):
            self._queue.add(group.metadata.key)

    def _original_changed(self, before: KubePodGroup | None, after: KubePodGroup | None) -> None:
        original = after or before
        if original is None:
            return
        key = original.metadata.key
        if key in self._members or self._groups.get(key) is not None:
            self._queue.add(key)

    async def _decide(self, key: str) -> tuple[ReconcileResult, About | None]:
        assert self._served is not None
        original = self._originals().get(key)
        pods = self._members.of(key)
        home = self._namespaces.get(key.partition("/")[0])
        seen = ObservedMirror(
            resource=self._served,
            original=original,
            mirror=self._groups.get(key),
            pods=pods,
            namespace_annotations=home.metadata.annotations if home else None,
            now=self._context.clock(),
        )
        outcome = await self._context.run_decision(len(pods), partial(reconcile, seen))
        return outcome, (self._served, original.metadata) if original is not None else None
