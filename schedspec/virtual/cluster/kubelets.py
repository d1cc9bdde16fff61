"""Simulate the kubelets of a virtual cluster: nodes become Ready, bound pods start, run, end and stop.

They do what KWOK does with `kind-config/stages`, and read the same annotations of pods: `schedspec.dev/start-after`,
`run-for`, `exit-code` and `stop-after`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...scheduler.model.times import duration, timestamp
from . import merge, store
from .store import Key, Kind, Object, Store

_DELAY = 0.02
"""The delay in seconds of each act of a kubelet."""
_RESTART_PAUSE = 10.0
"""Minimum seconds between two restarts of a container."""
_NOT_READY = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")


class Kubelets:
    """The kubelets of all nodes. `later` runs a function after some virtual seconds."""

    def __init__(self, store: Store, later: Callable[[float, Callable[[], None]], object]) -> None:
        self._store, self._later = store, later
        self._since: dict[str, float] = {}
        """Pod uid → the time of its last start."""
        self._planned: dict[str, tuple[str, float]] = {}
        """Pod uid → the next act on the pod, and the time of that act."""
        store.add_listener(self._changed)

    def _changed(self, kind: Kind, change: str, item: Object) -> None:
        if kind is store.PODS:
            if change == "DELETED":
                self._since.pop(item["metadata"]["uid"], None)
                self._planned.pop(item["metadata"]["uid"], None)
            else:
                self._plan(item)
        elif kind is store.NODES and change == "ADDED":
            self._later(_DELAY, lambda: self._make_ready(item["metadata"]["name"]))

    # -------------------------------------------------------------------------------------------------------- nodes

    def _make_ready(self, name: str) -> None:
        node = self._store.get(store.NODES, Key("", name))
        status = (node or {}).get("status") or {}
        if node is None or any(condition["type"] == "Ready" for condition in status.get("conditions") or ()):
            return
        now = timestamp(self._store.clock())
        has = status.get("allocatable") or status.get("capacity") or {"cpu": "32", "memory": "256Gi", "pods": "110"}
        statuses = [{"type": kind, "status": "False"} for kind in _NOT_READY] + [{"type": "Ready", "status": "True"}]
        conditions = [{**condition, "lastTransitionTime": now, "lastHeartbeatTime": now} for condition in statuses]
        filled = {"capacity": has, "allocatable": has, **status, "conditions": conditions, "phase": "Running"}
        self._store.change(store.NODES, Key("", name), {**node, "status": filled})

    # --------------------------------------------------------------------------------------------------------- pods

    def _plan(self, pod: Object) -> None:
        """Plan the next act on a pod."""
        meta, phase, now = pod["metadata"], pod["status"].get("phase"), self._store.clock()
        if not pod["spec"].get("nodeName"):
            return
        if meta.get("deletionTimestamp"):
            grace = float(meta.get("deletionGracePeriodSeconds") or 0)
            self._schedule(pod, "stop", now + min(_seconds_of(pod, "stop-after") or 0.0, grace) + _DELAY, once=True)
        elif phase == "Pending":
            self._schedule(pod, "start", now + (_seconds_of(pod, "start-after") or 0.0) + _DELAY, once=True)
        elif phase == "Running" and (span := _seconds_of(pod, "run-for")) is not None:
            restarts = _is_restarted(pod)
            statuses = pod["status"].get("containerStatuses") or [{}]
            pause = _RESTART_PAUSE if restarts and statuses[0].get("restartCount") else 0.0
            since = self._since.get(meta["uid"], now)
            self._schedule(pod, "restart" if restarts else "end", max(since + max(span, pause), now + _DELAY))

    def _schedule(self, pod: Object, what: str, at: float, *, once: bool = False) -> None:
        uid, key = pod["metadata"]["uid"], Key(pod["metadata"]["namespace"], pod["metadata"]["name"])
        known = self._planned.get(uid)
        if known is not None and known[0] == what and (once or known[1] == at):
            return
        self._planned[uid] = what, at
        self._later(at - self._store.clock(), lambda: self._act(key, uid, what, at))

    def _act(self, key: Key, uid: str, what: str, at: float) -> None:
        pod = self._store.get(store.PODS, key)
        if pod is None or pod["metadata"]["uid"] != uid or self._planned.get(uid) != (what, at):
            return
        del self._planned[uid]
        {"start": self._start, "end": self._end, "restart": self._start, "stop": self._stop}[what](key, pod)

    def _start(self, key: Key, pod: Object) -> None:
        if self._store.get(store.NODES, Key("", pod["spec"]["nodeName"])) is None:
            return
        now = self._store.clock()
        moment = timestamp(now)
        self._since[pod["metadata"]["uid"]] = now
        before = {
            container["name"]: container.get("restartCount", -1)
            for container in pod["status"].get("containerStatuses") or ()
        }
        states = [
            {
                **_state(container, before.get(container["name"], -1) + 1),
                "ready": True,
                "started": True,
                "state": {"running": {"startedAt": moment}},
            }
            for container in pod["spec"]["containers"]
        ]
        ready = [{"type": kind, "status": "True"} for kind in ("Initialized", "Ready", "ContainersReady")]
        status = {
            "phase": "Running",
            "startTime": pod["status"].get("startTime") or moment,
            "containerStatuses": states,
        }
        self._write(key, pod, status, ready)

    def _end(self, key: Key, pod: Object) -> None:
        code = int((pod["metadata"].get("annotations") or {}).get("schedspec.dev/exit-code") or 0)
        self._finish(key, pod, "Failed" if code else "Succeeded", code)

    def _finish(self, key: Key, pod: Object, phase: str, code: int) -> None:
        reason = "PodFailed" if code else "PodCompleted"
        over = [{"type": kind, "status": "False", "reason": reason} for kind in ("Ready", "ContainersReady")]
        restarts = {
            container["name"]: container.get("restartCount", 0)
            for container in pod["status"].get("containerStatuses") or ()
        }
        states = [
            {
                **_state(container, restarts.get(container["name"], 0)),
                "ready": False,
                "state": {"terminated": {"exitCode": code}},
            }
            for container in pod["spec"]["containers"]
        ]
        self._write(key, pod, {"phase": phase, "containerStatuses": states}, over)

    def _stop(self, key: Key, pod: Object) -> None:
        if pod["metadata"].get("finalizers"):
            if pod["status"].get("phase") == "Running":
                self._finish(key, pod, "Failed", 143)
        else:
            self._store.remove(store.PODS, key)

    def _write(self, key: Key, pod: Object, status: Object, conditions: list[Object]) -> None:
        moment = timestamp(self._store.clock())
        stamped = [{**condition, "lastTransitionTime": moment} for condition in conditions]
        merged = merge.merge(pod["status"], {**status, "conditions": stamped}, keyed=True)
        self._store.change(store.PODS, key, {**pod, "status": {**merged, **status}})


def _seconds_of(pod: Object, name: str) -> float | None:
    """Return the seconds in an annotation; None without a readable value."""
    value: Any = (pod["metadata"].get("annotations") or {}).get(f"schedspec.dev/{name}")
    return duration(value) if value else None


def _is_restarted(pod: Object) -> bool:
    """Whether a container that ends is restarted in its pod."""
    code = (pod["metadata"].get("annotations") or {}).get("schedspec.dev/exit-code") or "0"
    rule = pod["spec"].get("restartPolicy")
    return rule == "Always" or (rule == "OnFailure" and code != "0")


def _state(container: Object, restarts: int) -> Object:
    return {"name": container["name"], "image": container.get("image", ""), "restartCount": restarts}
