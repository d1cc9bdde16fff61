"""The shell of the PodGroup controller: map changes of pods, owners and PodGroups to gangs.

Its keys are PodGroups, so two pods of one owner never compete for the same PodGroup.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from ...kube import NAMESPACES, PODGROUPS, PODS, Resource, WorkQueue
from ...model.objects import Pod, PodGroup, read_annotations
from ..runtime.controller import Context
from ..runtime.executor import About
from ..runtime.objects import KUBE_PODGROUPS, KubePodGroup, Workload
from ..runtime.ownership import scoped
from ..runtime.write_through_cache import WriteThroughCache
from ..runtime.writes import ReconcileResult
from .mirror import ObservedMirror, gang_of, is_terminating, original_of
from .mirror import reconcile as reconcile_mirror
from .reconcile import OWNERS, ObservedGang, group_of, reconcile


class MirrorController:
    """Reconcile the gang of each changed pod, original or mirror (see `mirror`); part of the PodGroup controller.

    It starts when the API server serves PodGroups of `scheduling.k8s.io`, which requires a feature gate. Until then it
    does nothing, and no other controller waits for it. Its keys are the gangs that our pods name.
    """

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
        outcome = await self._context.run_decision(len(pods), partial(reconcile_mirror, seen))
        return outcome, (self._served, original.metadata) if original is not None else None


class Members:
    """The pods of gangs. `key_of` returns the key of a pod's gang, empty where no gang is tracked."""

    def __init__(self, pods: WriteThroughCache[Pod], key_of: Callable[[Pod], str]) -> None:
        self._pods, self._key_of = pods, key_of
        self._by_gang: dict[str, dict[str, str]] = {}
        """For each gang (key) its pods: uid to key."""

    def __contains__(self, gang: str) -> bool:
        return gang in self._by_gang

    def follow(self, before: Pod | None, after: Pod | None) -> tuple[str, str]:
        """Apply a change of a pod. Return the keys of its old and its new gang, or empty."""
        left = self._key_of(before) if before is not None else ""
        joined = self._key_of(after) if after is not None else ""
        if before is not None and left:
            members = self._by_gang.get(left, {})
            members.pop(before.metadata.uid, None)
            if not members:
                self._by_gang.pop(left, None)
        if after is not None and joined:
            self._by_gang.setdefault(joined, {})[after.metadata.uid] = after.metadata.key
        return left, joined

    def of(self, gang: str) -> list[Pod]:
        """Return the existing pods of a gang."""
        return [pod for key in self._by_gang.get(gang, {}).values() if (pod := self._pods.get(key)) is not None]


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
