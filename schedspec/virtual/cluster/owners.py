"""Simulate the controllers of Deployments, ReplicaSets, StatefulSets and Kubernetes Jobs in a virtual cluster.

They keep as many pods alive as the spec names. No other part of kube-controller-manager matters to a scheduler.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Mapping

import msgspec

from ...scheduler.model.times import timestamp
from . import store
from .server import ApiServer, suffix
from .store import Key, Kind, Object, RefusedError

_DELAY = 0.02
"""Seconds until a controller notices a change."""
_OWNERS = (store.DEPLOYMENTS, store.REPLICA_SETS, store.STATEFUL_SETS, store.BATCH_JOBS)


class Owners:
    """The controllers. `later` runs a function after some virtual seconds."""

    def __init__(self, server: ApiServer, later: Callable[[float, Callable[[], None]], object]) -> None:
        self._server, self._store, self._later = server, server.store, later
        self._names = itertools.count(1)
        self._due: set[tuple[Kind, Key]] = set()
        self._revisions: dict[str, str] = {}
        """Uid of a StatefulSet's pod → the template that it was created from, or first seen with."""
        self._store.add_listener(self._changed)

    def _changed(self, kind: Kind, change: str, item: Object) -> None:
        meta = item["metadata"]
        if kind in _OWNERS and change != "DELETED":
            self._enqueue(kind, Key(meta["namespace"], meta["name"]))
        for owner in meta.get("ownerReferences") or ():
            for owner_kind in _OWNERS:
                if (owner["apiVersion"], owner["kind"]) == owner_kind[:2]:
                    self._enqueue(owner_kind, Key(meta["namespace"], owner["name"]))

    def _enqueue(self, kind: Kind, key: Key) -> None:
        if (kind, key) not in self._due:
            self._due.add((kind, key))
            self._later(_DELAY, lambda: self._reconcile(kind, key))

    def _reconcile(self, kind: Kind, key: Key) -> None:
        self._due.discard((kind, key))
        item = self._store.get(kind, key)
        if item is None or item["metadata"].get("deletionTimestamp"):
            return
        work = {
            store.DEPLOYMENTS: self._deployment,
            store.REPLICA_SETS: self._replica_set,
            store.STATEFUL_SETS: self._stateful_set,
            store.BATCH_JOBS: self._job,
        }
        try:
            work[kind](key, item)
        except RefusedError:  # the namespace is being deleted, or the priority class does not exist (yet)
            self._later(1.0, lambda: self._enqueue(kind, key))

    def _owned(self, owner: Object, kind: Kind) -> list[Object]:
        found = (self._store.get(*key) for key in self._store.owned_by(owner["metadata"]["uid"]) if key[0] == kind)
        return [item for item in found if item is not None]

    def _deployment(self, key: Key, item: Object) -> None:
        spec = item["spec"]
        wanted = spec.get("replicas", 1)
        code = hashlib.blake2b(msgspec.json.encode(spec["template"]), digest_size=5).hexdigest()
        name, sets = f"{key.name}-{code}", self._owned(item, store.REPLICA_SETS)
        sizes = {it["metadata"]["name"]: it["spec"].get("replicas", 0) for it in sets}
        ready = {it["metadata"]["name"]: (it.get("status") or {}).get("readyReplicas", 0) for it in sets}
        strategy = spec.get("strategy") or {}
        if strategy.get("type") == "Recreate":
            left = any(self._owned(it, store.PODS) for it in sets if it["metadata"]["name"] != name)
            target = dict.fromkeys(sizes, 0) | ({} if left else {name: wanted})
        else:
            target = _rollout(name, sizes, ready, wanted, strategy.get("rollingUpdate") or {})
        if name in target and name not in sizes:
            template = _labelled(spec["template"], {"pod-template-hash": code})
            body = {"replicas": target[name], "selector": spec.get("selector"), "template": template}
            self._create(store.REPLICA_SETS, item, name, {"spec": body}, {"labels": template["metadata"]["labels"]})
        for owned in sets:
            own = owned["metadata"]["name"]
            if sizes[own] != target[own]:
                body = {**owned["spec"], "replicas": target[own]}
                self._store.change(store.REPLICA_SETS, Key(key.namespace, own), {**owned, "spec": body})
        total = sum(ready.values())
        available = "True" if total >= wanted else "False"
        status = {"replicas": sum(target.values()), "readyReplicas": total, "availableReplicas": total}
        conditions = [{"type": "Available", "status": available}]
        updated = {"updatedReplicas": target.get(name, 0)}
        self._write_status(store.DEPLOYMENTS, key, item, {**status, **updated, "conditions": conditions})

    def _replica_set(self, key: Key, item: Object) -> None:
        pods = self._owned(item, store.PODS)
        live = [pod for pod in pods if _is_live(pod)]
        wanted = item["spec"].get("replicas", 1)
        self._make(item, item["spec"]["template"], wanted - len(live))
        spare = sorted(live, key=lambda pod: (bool(pod["spec"].get("nodeName")), _is_ready(pod)))
        for pod in spare[: max(0, len(live) - wanted)]:
            self._server.delete(store.PODS, Key(key.namespace, pod["metadata"]["name"]))
        ready = sum(map(_is_ready, live))
        self._write_status(store.REPLICA_SETS, key, item, {"replicas": len(live), "readyReplicas": ready})

    def _stateful_set(self, key: Key, item: Object) -> None:
        """Create the pods in the order of their numbers, each after its predecessor is ready, unless in parallel."""
        spec, pods = item["spec"], {pod["metadata"]["name"]: pod for pod in self._owned(item, store.PODS)}
        wanted = [f"{key.name}-{number}" for number in range(spec.get("replicas", 1))]
        over = [name for name, pod in pods.items() if pod["status"].get("phase") in ("Succeeded", "Failed")]
        for name in (*over, *sorted(pods.keys() - set(wanted), reverse=True)):
            self._server.delete(store.PODS, Key(key.namespace, name))
        code = hashlib.blake2b(msgspec.json.encode(spec["template"]), digest_size=5).hexdigest()
        for pod in pods.values():
            self._revisions.setdefault(pod["metadata"]["uid"], code)
        in_order = spec.get("podManagementPolicy", "OrderedReady") == "OrderedReady"
        for name in wanted:
            if name not in pods:
                template = _labelled(spec["template"], {"statefulset.kubernetes.io/pod-name": name})
                made = self._create(store.PODS, item, name, {"spec": template["spec"]}, template["metadata"])
                self._revisions[made["metadata"]["uid"]] = code
            if in_order and not (name in pods and _is_ready(pods[name])):
                break
        else:
            self._update_one(key, spec, [pods[name] for name in wanted if name in pods], code)
        ready = sum(map(_is_ready, pods.values()))
        self._write_status(store.STATEFUL_SETS, key, item, {"replicas": len(pods), "readyReplicas": ready})

    def _update_one(self, key: Key, spec: Object, pods: list[Object], code: str) -> None:
        """Delete the last pod of an older template, if all pods behind it are ready: a rolling update."""
        strategy = spec.get("updateStrategy") or {}
        if strategy.get("type", "RollingUpdate") != "RollingUpdate":
            return
        for pod in reversed(pods[(strategy.get("rollingUpdate") or {}).get("partition", 0) :]):
            meta = pod["metadata"]
            if self._revisions[meta["uid"]] != code and not meta.get("deletionTimestamp"):
                self._server.delete(store.PODS, Key(key.namespace, meta["name"]))
                return
            if meta.get("deletionTimestamp") or not _is_ready(pod):
                return

    def _job(self, key: Key, item: Object) -> None:
        spec, pods, status = item["spec"], self._owned(item, store.PODS), item.get("status") or {}
        if any(condition["type"] in ("Complete", "Failed") for condition in status.get("conditions") or ()):
            return
        suspended = bool(spec.get("suspend"))
        if suspended:
            for pod in filter(_is_live, pods):
                self._server.delete(store.PODS, Key(key.namespace, pod["metadata"]["name"]))
            pods = [pod for pod in pods if not _is_live(pod)]
        succeeded = sum(pod["status"].get("phase") == "Succeeded" for pod in pods)
        failed = sum(pod["status"].get("phase") == "Failed" for pod in pods)
        live = [pod for pod in pods if _is_live(pod)]
        completions = spec.get("completions") or spec.get("parallelism", 1)
        ready = sum(map(_is_ready, live))
        batch: Object = {"active": len(live), "succeeded": succeeded, "failed": failed, "ready": ready}
        if suspended or status.get("conditions"):
            batch["conditions"] = [{"type": "Suspended", "status": str(suspended)}]
        if suspended:
            pass
        elif succeeded >= completions:
            batch["conditions"] = [{"type": "Complete", "status": "True"}]
            batch["completionTime"] = timestamp(self._store.clock())
        else:
            wanted = min(spec.get("parallelism", 1), completions - succeeded)
            names = {"batch.kubernetes.io/job-name": key.name, "job-name": key.name}
            self._make(item, _labelled(spec["template"], names), wanted - len(live))
        self._write_status(store.BATCH_JOBS, key, item, batch)

    def _make(self, owner: Object, template: Object, number: int) -> None:
        for _ in range(number):
            name = f"{owner['metadata']['name']}-{suffix(next(self._names))}"
            self._create(store.PODS, owner, name, {"spec": template["spec"]}, template.get("metadata") or {})

    def _create(self, kind: Kind, owner: Object, name: str, body: Object, marks: Object) -> Object:
        """Create an object that an owner controls; `marks` holds its labels and annotations."""
        meta = owner["metadata"]
        reference = {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": meta["name"],
            "uid": meta["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        made: Object = {"name": name, "ownerReferences": [reference]}
        made |= {field: dict(marks[field]) for field in ("labels", "annotations") if marks.get(field)}
        return self._server.create(kind, meta["namespace"], {**body, "metadata": made})

    def _write_status(self, kind: Kind, key: Key, item: Object, status: Object) -> None:
        now = self._store.get(kind, key) or item
        self._store.change(kind, key, {**now, "status": {**(now.get("status") or {}), **status}})


def _rollout(
    name: str, sizes: Mapping[str, int], ready: Mapping[str, int], wanted: int, rolling: Object
) -> dict[str, int]:
    """Return the next sizes of a Deployment's ReplicaSets, of which `name` has the newest template.

    Args:
        name: The ReplicaSet of the newest template.
        sizes: The sizes that the ReplicaSets have now, without one that is still to be created.
        ready: How many pods of each are ready.
        wanted: The number of pods that the Deployment wants.
        rolling: Its `maxSurge` and `maxUnavailable`.
    """
    old = [other for other in sizes if other != name]
    if not any(sizes[other] for other in old):
        return {**dict.fromkeys(sizes, 0), name: wanted}
    surge = _part_of(rolling.get("maxSurge", "25%"), wanted, up=True)
    missing = _part_of(rolling.get("maxUnavailable", "25%"), wanted, up=False) or int(not surge)
    target = dict(sizes)
    room = max(0, wanted + surge - sum(sizes.values()))
    target[name] = min(wanted, sizes.get(name, 0) + room)
    spare = sum(target.values()) - (wanted - missing) - (target[name] - min(target[name], ready.get(name, 0)))
    for other in old:  # pods that are not ready are no loss
        target[other] -= (gone := max(0, min(spare, target[other] - min(target[other], ready[other]))))
        spare -= gone
    spare = min(spare, sum(ready.values()) - (wanted - missing))
    for other in old:
        target[other] -= (gone := max(0, min(spare, target[other])))
        spare -= gone
    return target


def _part_of(value: int | str, total: int, *, up: bool) -> int:
    """Return a number of pods, or the part of a total that a percentage is, rounded up or down."""
    if isinstance(value, int):
        return value
    hundredths = total * int(value.removesuffix("%"))
    return -(-hundredths // 100) if up else hundredths // 100


def _is_live(pod: Object) -> bool:
    return not pod["metadata"].get("deletionTimestamp") and pod["status"].get("phase") not in ("Succeeded", "Failed")


def _is_ready(pod: Object) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _labelled(template: Object, labels: dict[str, str]) -> Object:
    meta = template.get("metadata") or {}
    return {**template, "metadata": {**meta, "labels": {**(meta.get("labels") or {}), **labels}}}
