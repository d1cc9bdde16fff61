"""Play what the owners of work would do, whose controllers are not in a twin.

* A pod that has an owner and is gone is created again, with the same name, and waits.
* A VolcanoJob whose policy restarts or ends it, or a task, deletes its other pods (`names.ON_EVICTED`).
* An evicted Workload of Kueue gives its reservation back, as job controllers do when its pods have ended.
"""

from __future__ import annotations

import copy
import time
import uuid

from ...api.client import MERGE, Api, Object
from ...api.errors import RejectedError
from ...api.kinds import SERVED, Kind
from ...observe import view
from ...observe.history import Version
from ...scheduler.controllers.job.phases import ENDS
from ...scheduler.model import names
from ...scheduler.model.times import timestamp
from .etcd import Etcd

_EVICTED, _RESERVED, _ADMITTED = "Evicted", "QuotaReserved", "Admitted"


class Owners:
    """The owners of a twin's work. Feed it each version in order; not thread-safe.

    Args:
        api: The twin's API server.
        etcd: Its database.
        grace: Seconds from the eviction of a Workload until its pods have ended.
        deleted: Receives the uids of the pods that a policy deletes.
    """

    def __init__(self, api: Api, etcd: Etcd, grace: float, deleted: set[str]) -> None:
        self._api, self._etcd, self._grace = api, etcd, grace
        self._ending: dict[str, tuple[float, Object]] = {}
        """Evicted Workload → when its pods have ended (monotonic), and its last version."""
        self._deleted = deleted
        self._ended: set[str] = set()
        """Uids of VolcanoJobs that a policy has ended."""

    def feed(self, version: Version) -> None:
        """React to a version."""
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
