"""Keeps the history fed: one raw watch a kind, each in a thread of its own. The only reader of the API's watches.

A watch that ends is normal (EOF, timeoutSeconds, a changed CRD): it goes on from the last resourceVersion. Only 410
makes it list again, and then the difference to what was known is recorded, deletions included.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
import urllib3

from ..api.client import Api
from ..api.errors import ClusterUnreachableError, HarnessError
from ..api.kinds import SERVED, Kind, Ref
from ..api.marks import USUAL, Marks
from .history import Change, History, Object

_PATIENCE = 10.0
"""Seconds for which an API server may be out of reach before a watch gives up."""


_UNSERVED = 1.0
"""Seconds between two looks for a kind that the API server does not serve: not every scheduler has all of them."""


class _StaleError(Exception):
    """The resourceVersion is too old: list again."""


class HistoryWriter:
    """What is live in the cluster, and the history of the scenario that runs now. Thread-safe.

    `marks`: by what the scheduler says what it did and why. What `covers` says no to is left out; an object that it no
    longer covers is gone.
    """

    def __init__(self, marks: Marks = USUAL, covers: Callable[[Kind, Object], bool] = lambda _kind, _obj: True) -> None:
        self._marks = marks
        self._covers = covers
        self._lock = threading.Lock()
        self._live: dict[Ref, Object] = {}
        self.history = History()

    def begin(self, namespace: str) -> History:
        """A new history, which starts with what is there."""
        with self._lock:
            self.history = History(namespace, self._live)
            return self.history

    def saw(self, kind: Kind, obj: Object, *, gone: bool = False) -> None:
        """Record one object; without managedFields, which nobody reads."""
        meta = obj["metadata"]
        meta.pop("managedFields", None)
        self._marks.read(obj)
        ref = Ref(kind, meta["name"], meta.get("namespace", ""))
        with self._lock:
            known = self._live.get(ref)
            if not self._covers(kind, obj):
                if known is None:
                    return
                gone = True
            if known is not None and not gone:
                if known["metadata"]["resourceVersion"] == meta["resourceVersion"]:
                    return
                if known["metadata"]["uid"] != meta["uid"]:  # its end fell into a gap between two lists
                    self.history.record(ref, "gone", known)
                    known = None
            change: Change = "gone" if gone else "changed" if known is not None else "added"
            if gone:
                self._live.pop(ref, None)
            else:
                self._live[ref] = obj
            self.history.record(ref, change, obj)

    def relisted(self, kind: Kind, objects: Iterable[Object]) -> None:
        """Record what a new list differs in from what was known."""
        listed = {(obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): obj for obj in objects}
        with self._lock:
            lost = [
                obj for ref, obj in self._live.items() if ref.kind == kind and (ref.namespace, ref.name) not in listed
            ]
        for obj in lost:
            self.saw(kind, obj, gone=True)
        for obj in listed.values():
            self.saw(kind, obj)


class Watches:
    """All watches of a session. `start` returns when each has listed; `stop` ends their threads."""

    def __init__(self, api: Api, recorder: HistoryWriter, kinds: Iterable[Kind] = tuple(Kind)) -> None:
        self._recorder = recorder
        self._all = [_Watch(api, recorder, kind) for kind in kinds]

    def start(self, timeout: float) -> None:
        """Raises ClusterUnreachableError if a list does not come in time."""
        deadline = time.monotonic() + timeout
        for watch in self._all:
            watch.start()
        for watch in self._all:
            if not watch.listed.wait(max(0.0, deadline - time.monotonic())):
                self.check()
                raise ClusterUnreachableError(f"no list of {watch.kind}s within {timeout:g} s")

    def check(self) -> None:
        """Raise what ended a watch for good: what comes after would be read from a history with a hole."""
        for watch in self._all:
            if watch.failure is not None:
                raise HarnessError(f"the watch of {watch.kind}s ended: {watch.failure}") from watch.failure

    def stop(self) -> None:
        """End every thread."""
        for watch in self._all:
            watch.stop()
        for watch in self._all:
            watch.thread.join(5.0)


class _Watch:
    """One kind's list and watch."""

    def __init__(self, api: Api, recorder: HistoryWriter, kind: Kind) -> None:
        self.kind = kind
        self.listed = threading.Event()
        """Set once listed, or once the API server has said that it does not serve the kind."""
        self.failure: BaseException | None = None
        self.thread = threading.Thread(target=self._run, name=f"watch-{kind}", daemon=True)
        self._api, self._recorder = api, recorder
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
            except (OSError, ValueError, RuntimeError):  # it has just ended by itself
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
                if time.monotonic() - lost_since > _PATIENCE and not self._stopping.is_set():
                    return self._fail(problem)
                self._stopping.wait(0.2)
            except Exception as problem:  # noqa: BLE001 - a thread must not die in silence
                return self._fail(problem)
        return None

    def _fail(self, problem: BaseException) -> None:
        if not self._stopping.is_set():
            self.failure = problem
            self._recorder.history.wake()

    def _list(self) -> str:
        served, objects, query = SERVED[self.kind], [], {"limit": "500"}
        while True:
            response = self._api.raw("GET", served.path(), query=query)
            if response.status == 404:
                self.listed.set()
                self._stopping.wait(_UNSERVED)
            if response.status != 200:
                raise _StaleError
            page = msgspec.json.decode(response.data)
            for item in page["items"]:  # which name neither
                item["apiVersion"], item["kind"] = served.api_version, served.kind
            objects += page["items"]
            if not page["metadata"].get("continue"):
                break
            query["continue"] = page["metadata"]["continue"]
        self._recorder.relisted(self.kind, objects)
        self.listed.set()
        return str(page["metadata"]["resourceVersion"])

    def _watch(self, version: str) -> str:
        """Follow until the stream ends; the last resourceVersion seen."""
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
                event = msgspec.json.decode(line)
                if event["type"] == "ERROR":
                    raise _StaleError
                version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    self._recorder.saw(self.kind, event["object"], gone=event["type"] == "DELETED")
        except urllib3.exceptions.HTTPError:
            pass  # cut off: go on from where we are
        finally:
            self._response = None
            response.close()
        return version


def _lines(response: urllib3.BaseHTTPResponse) -> Iterator[Any]:
    """The complete lines of a stream, as they come."""
    rest = b""
    for chunk in response.stream(1 << 16):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from filter(None, lines)
