"""The shell of the PodGroup controller: map changes of pods, owners and PodGroups to gangs.

Its keys are PodGroups, so two pods of one owner never compete for the same PodGroup.
"""

from __future__ import annotations

import asyncio
from functools import partial

from ...kube import NAMESPACES, PODGROUPS, PODS, WorkQueue
from ...model.objects import Pod, PodGroup, read_annotations
from ..runtime.controller import Context
from ..runtime.executor import About
from ..runtime.objects import Workload
from ..runtime.ownership import scoped
from ..runtime.writes import ReconcileResult
from .members import Members
from .mirror_controller import MirrorController
from .reconcile import OWNERS, ObservedGang, group_of, reconcile


class PodGroupController:
    """Create PodGroups for our schedulers' pods: for pods without one, and as mirrors of Kubernetes' own PodGroups."""

    name = "podgroup"

    def __init__(self, context: Context) -> None:
        self._context = context
        self._queue = WorkQueue(self.name)
        self._pods = context.view(PODS)
        self._groups = context.view(PODGROUPS)
        self._namespaces = context.view(NAMESPACES)
        self._owners = [context.view(resource) for resource in OWNERS]
        self._members = Members(self._pods, self._key_of)
        self._pods.informer.on_change(self._pod_changed)
        self._groups.informer.on_change(self._group_changed)
        for view in self._owners:
            view.informer.on_change(self._owner_changed)
        self._mirror = MirrorController(context)

    async def run(self) -> None:
        needs = (self._pods, self._groups, self._namespaces, *self._owners)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._context.work(self.name, self._queue, self._decide, *needs))
            group.create_task(self._mirror.run())

    def _pod_changed(self, before: Pod | None, after: Pod | None) -> None:
        left, joined = self._members.follow(before, after)
        is_unchanged = before is not None and after is not None and _annotations(before) == _annotations(after)
        for key in {left, joined} if left != joined or not is_unchanged else ():
            if key:
                self._queue.add(key)

    def _key_of(self, pod: Pod) -> str:
        """Return the key of the PodGroup that this controller creates for a pod, or empty."""
        if pod.spec.scheduler_name not in self._context.scheduler_names:
            return ""
        name = group_of(pod)
        return f"{pod.metadata.namespace}/{name}" if name else ""

    def _group_changed(self, before: PodGroup | None, after: PodGroup | None) -> None:
        group = after or before
        if group is not None and (after is None or before is None or before.spec != after.spec):
            self._queue.add(group.metadata.key)

    def _owner_changed(self, before: Workload | None, after: Workload | None) -> None:
        owner = after or before
        if owner is None:
            return
        key = f"{owner.metadata.namespace}/podgroup-{owner.metadata.uid}"
        if key in self._members or self._groups.get(key) is not None:
            self._queue.add(key)

    async def _decide(self, key: str) -> tuple[ReconcileResult, About | None]:
        namespace, _, name = key.partition("/")
        pods = self._members.of(key)
        group = self._groups.get(key)
        if not name.startswith("podgroup-"):
            return ReconcileResult(), None
        uid = name.removeprefix("podgroup-")
        owner: Workload | None = next(
            (found for view in self._owners for found in view.by("uid", scoped(namespace, uid))), None
        )
        home = self._namespaces.get(namespace)
        annotations = home.metadata.annotations if home else None
        about: About | None = (PODS, pods[0].metadata) if pods else None
        seen = ObservedGang(namespace, name, pods, group, owner, annotations)
        return await self._context.run_decision(len(pods), partial(reconcile, seen)), about


def _annotations(pod: Pod) -> dict[str, str] | None:
    return read_annotations(pod.metadata.annotations)
