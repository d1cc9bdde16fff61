"""Feed the history: one raw watch for each kind, each in its own thread. No other code watches the API.

A watch may end at any time (EOF, timeoutSeconds, a changed CRD) and continues from the last resourceVersion. An error
(usually status 410) leads to a new list, and its differences from the known objects are recorded, deletions included.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import urllib3

from ..api.client import Api, pages
from ..api.errors import ClusterUnreachableError, HarnessError, RejectedError
from ..api.kinds import SERVED, Kind, Ref
from ..api.marks import READ, USUAL, Marks
from .history import Change, History, Object

_UNREACHABLE_SECONDS = 10.0
"""Seconds for which an API server may be unreachable before a watch gives up."""


_UNSERVED = 1.0
"""Seconds between two attempts for a kind that the API server does not serve. Not every scheduler has all kinds."""


class _StaleError(Exception):
    """The watch cannot continue, for instance because its resourceVersion is too old: list again."""


class HistoryWriter:
    """Write the live objects and the history of the running scenario. Thread-safe.

    Args:
        marks: The conditions by which the scheduler marks victims and publishes reasons.
        covers: Whether to record an object. An object that is no longer covered is recorded as gone.
        unmarked_eviction: Returns a condition for the uid of a pod that the scheduler evicts without a mark, else None.
    """

    def __init__(
        self,
        marks: Marks = USUAL,
        covers: Callable[[Kind, Object], bool] = lambda _kind, _obj: True,
        unmarked_eviction: Callable[[str], Object | None] = lambda _uid: None,
    ) -> None:
        self._marks = marks
        self._covers = covers
        self._unmarked_eviction = unmarked_eviction
        self._lock = threading.Lock()
        self._live: dict[Ref, Object] = {}
        self.history = History()

    def begin(self, namespace: str) -> History:
        """Begin a new history that starts with the live objects."""
        with self._lock:
            self.history = History(namespace, self._live)
            return self.history

    def known(self, ref: Ref) -> Object | None:
        """Return the live object of a reference, or None."""
        with self._lock:
            return self._live.get(ref)

    def live(self) -> dict[Ref, Object]:
        """Return all live objects."""
        with self._lock:
            return dict(self._live)

    def record(self, kind: Kind, obj: Object, *, gone: bool = False) -> None:
        """Record one object, without its managedFields."""
        meta = obj["metadata"]
        meta.pop("managedFields", None)
        ref = Ref(kind, meta["name"], meta.get("namespace", ""))
        with self._lock:
            self._marks.read(obj, self._unit(kind, obj) if self._marks.unit_evicted else None)
            if kind == Kind.POD and meta.get("deletionTimestamp") and (mark := self._unmarked_eviction(meta["uid"])):
                obj[READ] = {"evicted": mark, "reason": ""}
            known = self._live.get(ref)
            if not self._covers(kind, obj):
                if known is None or known["metadata"]["uid"] != meta["uid"]:
                    return
                gone = True
            if known is not None and not gone:
                if known["metadata"]["resourceVersion"] == meta["resourceVersion"]:
                    return
                if known["metadata"]["uid"] != meta["uid"]:  # the old object was deleted between two lists
                    self.history.record(ref, "gone", known)
                    known = None
            change: Change = "gone" if gone else "changed" if known is not None else "added"
            if gone:
                self._live.pop(ref, None)
            else:
                self._live[ref] = obj
            self.history.record(ref, change, obj)

    def _unit(self, kind: Kind, pod: Object) -> Object | None:
        """Return the Workload of a pod that is being deleted, or None. The caller holds the lock."""
        if kind != Kind.POD or not pod["metadata"].get("deletionTimestamp"):
            return None
        owners = {pod["metadata"]["uid"], *(owner["uid"] for owner in pod["metadata"].get("ownerReferences") or ())}
        units = (unit for ref, unit in self._live.items() if ref.kind == Kind.WORKLOAD)
        of_pod = lambda unit: owners & {own["uid"] for own in unit["metadata"].get("ownerReferences") or ()}  # noqa: E731
        return next(filter(of_pod, units), None)

    def relisted(self, kind: Kind, objects: Iterable[Object]) -> None:
        """Record the differences between a new list and the known objects."""
        objects = list(objects)
        covered = (obj["metadata"] for obj in objects if self._covers(kind, obj))
        listed = {(meta.get("namespace", ""), meta["name"]) for meta in covered}
        with self._lock:
            lost = [
                obj for ref, obj in self._live.items() if ref.kind == kind and (ref.namespace, ref.name) not in listed
            ]
        for obj in lost:
            self.record(kind, obj, gone=True)
        for obj in objects:
            self.record(kind, obj)


class Watches:
    """All watches of a session. `start` returns when each has listed; `stop` ends their threads."""

    def __init__(self, api: Api, writer: HistoryWriter, kinds: Iterable[Kind] = tuple(Kind)) -> None:
        self._writer = writer
        self._all = [_Watch(api, writer, kind) for kind in kinds]

    def start(self, timeout: float) -> None:
        """Start the watches and wait for their first lists.

        Raises:
            ClusterUnreachableError: a list did not arrive within `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        for watch in self._all:
            watch.start()
        for watch in self._all:
            if not watch.listed.wait(max(0.0, deadline - time.monotonic())):
                self.check()
                raise ClusterUnreachableError(f"no list of {watch.kind}s within {timeout:g} s")

    def check(self) -> None:
        """Raise the error that ended a watch: the history after it would have a gap."""
        for watch in self._all:
            if watch.failure is not None:
                raise HarnessError(f"the watch of {watch.kind}s ended: {watch.failure}") from watch.failure

    def stop(self) -> None:
        """Stop every thread."""
        for watch in self._all:
            watch.stop()
        for watch in self._all:
            watch.thread.join(5.0)


class _Watch:
    """List and watch of one kind."""

    def __init__(self, api: Api, writer: HistoryWriter, kind: Kind) -> None:
        self.kind = kind
        self.listed = threading.Event()
        """Set after the first list, or once the API server has answered that it does not serve the kind."""
        self.failure: BaseException | None = None
        self.thread = threading.Thread(target=self._run, name=f"watch-{kind}", daemon=True)
        self._api, self._writer = api, writer
        self._stopping = threading.Event()
        self._response: urllib3.BaseHTTPResponse | None = None

    def start(self) -> None:
        self.thread.start()

    def stop(self) -> None:
        self._stopping.set()
        response = self._response
        if isinstance(response, urllib3.HTTPResponse):
            try:
                response.shutdown()
            except (OSError, ValueError, RuntimeError):  # the watch has ended meanwhile
                return

    def _run(self) -> None:
        lost_since: float | None = None
        version = ""
        while not self._stopping.is_set():
            try:
                version = version or self._list()
                began, before = time.monotonic(), version
                version = self._watch(version)
                if version == before and time.monotonic() - began < 1.0:
                    self._stopping.wait(0.05)
                lost_since = None
            except _StaleError:
                version = ""
                self._stopping.wait(0.1)
            except (ClusterUnreachableError, OSError) as problem:
                lost_since = lost_since or time.monotonic()
                if time.monotonic() - lost_since > _UNREACHABLE_SECONDS and not self._stopping.is_set():
                    return self._fail(problem)
                self._stopping.wait(0.2)
            except Exception as problem:  # noqa: BLE001 - else the thread ends unnoticed
                return self._fail(problem)
        return None

    def _fail(self, problem: BaseException) -> None:
        if not self._stopping.is_set():
            self.failure = problem
            self._writer.history.wake()

    def _list(self) -> str:
        served, objects, version = SERVED[self.kind], [], ""
        try:
            for page in pages(self._api, served.path()):
                for item in page["items"]:  # items of a list have neither field
                    item["apiVersion"], item["kind"] = served.api_version, served.kind
                objects += page["items"]
                version = str(page["metadata"]["resourceVersion"])
        except RejectedError as problem:
            if problem.status == 401:
                raise ClusterUnreachableError(str(problem)) from problem
            if problem.status in (403, 404):  # 403 hides whether the server serves the kind
                self.listed.set()
                self._stopping.wait(_UNSERVED)
            raise _StaleError from problem
        self._writer.relisted(self.kind, objects)
        self.listed.set()
        return version

    def _watch(self, version: str) -> str:
        """Watch until the stream ends. Return the last resourceVersion seen."""
        seconds = random.randint(240, 300)
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": seconds,
        }
        response = self._api.raw("GET", SERVED[self.kind].path(), query=query, stream=True, timeout=seconds + 10.0)
        self._response = response
        try:
            if response.status != 200 or self._stopping.is_set():
                raise _StaleError
            for line in _lines(response):
                event = self._api.decode(line)
                if event["type"] == "ERROR":
                    raise _StaleError
                version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    self._writer.record(self.kind, event["object"], gone=event["type"] == "DELETED")
        except urllib3.exceptions.HTTPError:
            pass  # the connection was cut: continue from the last resourceVersion
        finally:
            self._response = None
            response.close()
        return version


def _lines(response: urllib3.BaseHTTPResponse) -> Iterator[Any]:
    """Yield the complete lines of a stream as they arrive."""
    rest = b""
    for chunk in response.stream(1 << 16):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from filter(None, lines)
