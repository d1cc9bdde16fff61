"""Run one world on a twin: etcd, API server and KWOK with the objects of a state, and the real scheduler.

The world has settled when the scheduler has decided nothing for as long as its adapter says.

A twin has its own names where a scheduler under test has them: its pods are placed by the scheduler that the adapter
starts, and its nodes have the label by which our runs select nodes. All times are later by the age of the state, so
that waits and deadlines are what they were when it was taken.

The owners of work, whose controllers are not in a twin, are played: a pod that has an owner and is gone is created
again, with the same name, and waits; a VolcanoJob whose policy restarts or ends it, or a task, deletes its other pods
(`names.ON_EVICTED`); an evicted Workload of Kueue gives its reservation back, as job controllers do when its pods have
ended.
"""

from __future__ import annotations

import copy
import re
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ...api import crds
from ...api.client import MERGE, Api, Object
from ...api.errors import RejectedError
from ...api.kinds import SERVED, WORLD, Kind
from ...clusters.embedded import EmbeddedCluster
from ...clusters.protocol import Settings
from ...observe import view
from ...observe.history import History, Version
from ...observe.watcher import HistoryWriter, Watches
from ...scheduler.controllers.job.phases import ENDS
from ...scheduler.model import names
from ...scheduler.model.objects import Pod, Queue
from ...scheduler.model.task import job_key_of
from ...scheduler.model.times import timestamp
from ...schedulers.adapter import Adapter, AdapterError, Site
from ...virtual.state import State
from ...virtual.state.state import api_object
from ..plan.answer import PlannedWorld
from ..simulate.present import opened
from .decisions import Decisions, Work
from .etcd import Etcd

_EVICTED, _RESERVED, _ADMITTED = "Evicted", "QuotaReserved", "Admitted"


class Owners:
    """The owners of a twin's work. Feed it each version in order; not thread-safe.

    `grace`: seconds until the pods of an evicted Workload have ended. `deleted` receives the uids of pods that a policy
    deletes.
    """

    def __init__(self, api: Api, etcd: Etcd, grace: float, deleted: set[str]) -> None:
        self._api, self._etcd, self._grace = api, etcd, grace
        self._ending: dict[str, tuple[float, Object]] = {}
        """Evicted Workload → when its pods have ended (monotonic), and its last version."""
        self._deleted = deleted
        self._ended: set[str] = set()
        """Uids of VolcanoJobs that a policy has ended."""

    def feed(self, version: Version) -> None:
        obj = version.object
        if version.ref.kind == Kind.POD and version.change == "gone" and obj["metadata"].get("ownerReferences"):
            self._on_gone(obj)
        elif version.ref.kind == Kind.WORKLOAD:
            uid = obj["metadata"]["uid"]
            self._ending.pop(uid, None)
            if version.change != "gone" and _must_give_back(obj):
                self._ending[uid] = time.monotonic() + self._grace, obj

    @property
    def are_busy(self) -> bool:
        """Whether an evicted Workload still ends."""
        return bool(self._ending)

    def act(self) -> None:
        """Write what is due."""
        for uid, (due, workload) in [*self._ending.items()]:
            if time.monotonic() >= due:
                del self._ending[uid]
                self._give_back(workload)

    def _on_gone(self, pod: Object) -> None:
        """Carry out the policy of the pod's VolcanoJob, once for all pods that it deletes, and create the pod again."""
        meta = pod["metadata"]
        action = meta["annotations"].get(names.ON_EVICTED, "") if meta["uid"] not in self._deleted else ""
        owner = meta["ownerReferences"][0]["uid"]
        if action in ENDS:
            self._ended.add(owner)
        if action in ("RestartJob", "RestartTask", *ENDS):
            role = meta["annotations"].get(names.TASK_SPEC) if action == "RestartTask" else None
            self._delete_others(meta["namespace"], owner, role)
        if owner not in self._ended:
            self._etcd.put([_created_again(pod)])

    def _delete_others(self, namespace: str, owner: str, role: str | None) -> None:
        path = SERVED[Kind.POD].path(namespace=namespace)
        for pod in self._api.call("GET", path)["items"]:
            meta = pod["metadata"]
            owners = [it["uid"] for it in meta.get("ownerReferences") or ()]
            if owner in owners and role in (None, meta["annotations"].get(names.TASK_SPEC)):
                self._deleted.add(meta["uid"])
                self._api.delete(f"{path}/{meta['name']}")

    def _give_back(self, workload: Object) -> None:
        meta, status = workload["metadata"], workload["status"]
        why = "Evicted: " + str(view.condition(workload, _EVICTED).get("message", ""))
        conditions = [
            _changed(found, why) if found["type"] in (_RESERVED, _ADMITTED) else found for found in status["conditions"]
        ]
        resource = self._api.resource(workload["apiVersion"], workload["kind"])
        body = {
            "metadata": {"resourceVersion": meta["resourceVersion"]},
            "status": {"admission": None, "conditions": conditions},
        }
        try:
            path = resource.path(meta["name"], meta["namespace"], "status")
            self._api.call("PATCH", path, body=body, content_type=MERGE)
        except RejectedError as problem:
            if problem.status not in (404, 409):  # it changed meanwhile: its next version is fed
                raise


def _must_give_back(workload: Object) -> bool:
    """Whether a Workload is evicted and still has its reservation."""
    return all(view.condition(workload, name).get("status") == "True" for name in (_EVICTED, _RESERVED))


def _changed(condition: Object, why: str) -> Object:
    since = timestamp(time.time())
    return {**condition, "status": "False", "reason": "Pending", "message": why, "lastTransitionTime": since}


def _created_again(pod: Object) -> Object:
    """Return the successor of a pod, as its owner creates it."""
    found = copy.deepcopy({name: part for name, part in pod.items() if name in ("apiVersion", "kind", "spec")})
    found["spec"].pop("nodeName", None)
    kept = ("name", "namespace", "labels", "annotations", "ownerReferences")
    meta = {name: pod["metadata"][name] for name in kept if pod["metadata"].get(name)}
    found["metadata"] = {**meta, "uid": str(uuid.uuid4()), "creationTimestamp": timestamp(time.time())}
    found["status"] = {"phase": "Pending"}
    return found


_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
_STOP_AFTER = "schedspec.dev/stop-after"


def objects_of(
    state: State,
    scheduler_name: str,
    shift: float,
    grace: float,
    ours: Collection[str] = (),
    *,
    serves_kueue: bool = True,
) -> Iterator[Object]:
    """Yield the objects of a state as a twin has them; namespaces first.

    `scheduler_name`: name of the twin's scheduler in the spec of pods. `ours`: names of the scheduler in the state's
    pods; empty: every pod of a PodGroup is its. `shift`: seconds by which all times are later. `grace`: seconds that a
    victim takes to end. `serves_kueue`: whether the twin's API server has Kueue's kinds.
    """
    spaces = {item.metadata.namespace for found in state.objects.values() for item in found.values()}
    spaces |= {obj["metadata"].get("namespace", "") for found in state.others.values() for obj in found.values()}
    for name in sorted(spaces - {""} - state.objects["Namespace"].keys()):
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, **_ACTIVE}
    for kind, found in state.objects.items():
        for _, item in sorted(found.items()):
            obj = _for_twin(api_object(kind, opened(item) if isinstance(item, Queue) else item), grace)
            if isinstance(item, Pod) and (item.spec.scheduler_name in ours if ours else job_key_of(item)):
                obj["spec"]["schedulerName"] = scheduler_name
            yield _later(obj, shift)
    for found in state.others.values() if serves_kueue else ():
        for _, obj in sorted(found.items()):
            if obj["kind"] != "ConfigMap":
                yield _later(_unserved(obj), shift)


_ACTIVE = {"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}


def _for_twin(obj: Object, grace: float) -> Object:
    meta = obj["metadata"]
    meta.pop("resourceVersion", None)
    for owner in meta.get("ownerReferences") or ():  # the API server refuses every later write without them
        owner.setdefault("uid", owner.get("name", "owner"))
    if obj["kind"] == "Namespace":
        obj.update(_ACTIVE)
    elif obj["kind"] == "Node":
        meta["labels"] = {**(meta.get("labels") or {}), WORLD: "true"}
    elif obj["kind"] == "Pod":
        spec = obj.setdefault("spec", {})
        meta["annotations"] = {**(meta.get("annotations") or {}), _STOP_AFTER: f"{grace:g}s"}
        spec["terminationGracePeriodSeconds"] = max(int(grace) + 1, 1)
        for container in spec.get("containers") or ():
            container.setdefault("name", "work")
            container.setdefault("image", "work")
    return obj


def _unserved(obj: Object) -> Object:
    """Return an object without what the API server adds to each that it serves."""
    unserved = ("resourceVersion", "managedFields", "selfLink")
    meta = {name: value for name, value in obj["metadata"].items() if name not in unserved}
    return {**obj, "metadata": meta}


def _later(value: Any, shift: float) -> Any:
    """Return a value with each time in it later by `shift` seconds."""
    if isinstance(value, dict):
        return {name: _later(item, shift) for name, item in value.items()}
    if isinstance(value, list):
        return [_later(item, shift) for item in value]
    if isinstance(value, str) and _TIME.fullmatch(value):
        moved = datetime.fromisoformat(value).astimezone(UTC) + timedelta(seconds=shift)
        return moved.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if "." in value else "%Y-%m-%dT%H:%M:%SZ")
    return value


_WATCHED = (Kind.POD, Kind.PODGROUP, Kind.WORKLOAD)
_LISTED_SECONDS = 60.0
_PAUSE = 0.1
_UNTOLD = 5
"""Times as long as usual a scheduler has to be silent if there is work of which it has shown nothing."""


@dataclass(frozen=True, slots=True)
class Twin:
    """The scheduler of a twin, and how its worlds run."""

    adapter: Adapter
    programs: Path | None
    """The user's folder with the scheduler's programs, if any."""
    progress: Callable[[str], None]
    settle: float = 120.0
    """Seconds after which a world that has not settled is cut."""
    grace: float = 1.0
    """Seconds that a victim takes to end."""
    stopped: threading.Event = field(default_factory=threading.Event)
    """Set by the caller to end all worlds."""

    @property
    def asks_kueue(self) -> bool:
        """Whether the scheduler decides by Workloads."""
        return self.adapter.marks.unit_evicted is not None


@dataclass(frozen=True, slots=True)
class World:
    state: State
    policy: str
    """The scheduler's own configuration."""
    work: Work
    """Names of the state's work."""
    resource: str
    ours: Collection[str] = ()
    """Names of the scheduler in the state's pods; empty: every pod of a PodGroup is its."""


def run_world(twin: Twin, world: World) -> tuple[PlannedWorld, str]:
    """Run one world until it settles. Takes seconds, and the memory of a control plane.

    Returns:
        What the scheduler decided, and its version.

    Raises:
        HarnessError, ClusterError: the world could not be made, or the scheduler ended.
    """
    decisions = Decisions(world.work, world.resource, twin.adapter.scheduler_name, by_workload=twin.asks_kueue)
    with tempfile.TemporaryDirectory() as folder, booted(twin, Path(folder)) as (site, cluster):
        etcd = Etcd(cluster.etcd, site.api)
        definitions = twin.adapter.definitions(site)
        if definitions is not None:
            crds.install(site.api, definitions)
        shift = time.time() - world.state.taken
        objects = objects_of(
            world.state,
            twin.adapter.scheduler_name,
            shift,
            twin.grace,
            world.ours,
            serves_kueue=twin.asks_kueue,
        )
        number = etcd.load(objects)
        version = twin.adapter.version(site)
        who = f"{twin.adapter} {version}".strip()
        twin.progress(f"{cluster.name}: {number} objects, {who} decides")
        with _watched(twin, site.api) as history:
            scheduler = twin.adapter.alone(site)
            if scheduler is None:
                raise AdapterError(f"{twin.adapter} has no program that a twin could run")
            owners = Owners(site.api, etcd, twin.grace, decisions.deleted)
            try:
                scheduler.start(world.policy)
                problem = _settle(twin, history, decisions, owners, scheduler.check)
            finally:
                scheduler.stop()
                etcd.close()
    return decisions.result({}, problem), version


@contextmanager
def booted(twin: Twin, folder: Path) -> Iterator[tuple[Site, EmbeddedCluster]]:
    """Boot an embedded cluster without controllers, and remove it at the end."""
    cluster = EmbeddedCluster(Settings(kind="embedded"), with_controllers=False)
    cluster.up(twin.progress)
    try:
        api = Api(cluster.kubeconfig, cluster.context)
        try:
            yield (
                Site(
                    folder, api, cluster.kubeconfig, cluster.context, cluster, None, twin.programs, 1.0, twin.progress
                ),
                cluster,
            )
        finally:
            api.close()
    finally:
        cluster.down()


@contextmanager
def _watched(twin: Twin, api: Api) -> Iterator[History]:
    writer = HistoryWriter(twin.adapter.marks)
    watches = Watches(api, writer, _WATCHED)
    try:
        watches.start(_LISTED_SECONDS)
        yield writer.begin("")
        watches.check()
    finally:
        watches.stop()


def _settle(twin: Twin, history: History, decisions: Decisions, owners: Owners, check: Callable[[], None]) -> str:
    """Feed versions until the scheduler has been silent for long enough. Return why the world did not settle."""
    began = last = time.monotonic()
    seen = 0
    while True:
        for version in history.since(seen):
            seen = version.seq
            owners.feed(version)
            if decisions.feed(version):
                last = time.monotonic()
        if twin.stopped.is_set():
            return "it was stopped"
        owners.act()
        check()
        now = time.monotonic()
        if owners.are_busy:
            last = now
        usual, publishes = twin.adapter.settles_after, not twin.adapter.silent_for
        if now - last >= usual and now - last >= usual * (_UNTOLD if publishes and not decisions.all_told else 1):
            return ""
        if now - began >= twin.settle:
            return f"the scheduler still decided after {twin.settle:g} s"
        history.wait(seen, _PAUSE)
