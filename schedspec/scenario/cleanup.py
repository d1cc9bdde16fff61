"""A scenario starts from an empty cluster and leaves one. Deletion is by force, and checked in what the watches show.

Namespaces go in the background: their removal takes seconds, and nothing in them is left by then.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator
from typing import Final

from ..api import timeouts
from ..api.client import MERGE, Api, Object
from ..api.errors import DirtyClusterError, RejectedError, Unmet
from ..api.kinds import BUILT_IN_QUEUES, GANGS, OWNERS, SERVED, Kind, Ref
from ..clusters.protocol import SCENARIO
from ..observe.expect import Expect, Outcome
from ..observe.history import History, View
from . import nodes
from .restore import give_back

NAMESPACED: Final = (*OWNERS, Kind.COMMAND, *GANGS, Kind.POD)
CLUSTER_WIDE: Final = (Kind.QUEUE, Kind.PRIORITYCLASS, Kind.NODE)
_PATIENCE = 2.0
"""Seconds that whoever has put a finalizer on an object gets; then it is taken off."""
_AGAIN = 0.1
"""A controller may have made one more pod in between: delete what is left this often."""


class Cleanup:
    """Empties one scenario's part of the cluster."""

    def __init__(self, api: Api, history: History) -> None:
        self._api, self._history = api, history
        self.borrowed: set[Ref] = set()
        """Objects that were there before the scenario changed them."""

    def require_empty(self, expect: Expect) -> None:
        """Raise DirtyClusterError if anything is there that shares in what queues deserve or takes room."""
        with contextlib.suppress(Unmet):  # the watch may lag behind the end of the scenario before
            expect.eventually(nothing_foreign, within=timeouts.LAGS)
        found = [
            f"{ref} (namespace {ref.namespace})" if ref.namespace else str(ref) for ref in foreign(self._history.now())
        ]
        if found:
            raise DirtyClusterError(
                f"the scenario does not start from an empty cluster; there are: {', '.join(found[:8])}\n"
                "  do next: delete them, or run on a cluster of your own (--cluster embedded)"
            )

    def empty(self, expect: Expect) -> None:
        """Take everything away. Raises DirtyClusterError, which names what would not go."""
        self._give_back()
        view = self._history.now()
        there = [kind for kind in NAMESPACED if any(True for _ in view.mine(kind))]
        delete_namespace(self._api, self._history.namespace, there)
        self._delete_each([it for it in self._left(view) if it[0].kind in CLUSTER_WIDE], strip=False)
        last = time.monotonic()
        force_after = last + _PATIENCE

        def gone(view: View) -> Outcome:
            nonlocal last
            left = list(self._left(view))
            if left and time.monotonic() > last + _AGAIN:
                last = time.monotonic()
                self._delete_each(left, strip=last > force_after)
            names = ", ".join(str(ref) for ref, _ in left[:8])
            return Outcome(not left, "the scenario's objects are gone", f"left: {names}", tuple(ref for ref, _ in left))

        try:
            expect.eventually(gone, within=timeouts.EMPTY)
        except Unmet as problem:
            raise DirtyClusterError(f"the scenario left something behind that would not go; {problem.seen}") from None

    def _give_back(self) -> None:
        for ref in self.borrowed:
            with contextlib.suppress(RejectedError):  # somebody else has deleted it
                give_back(self._api, ref)

    def _left(self, view: View) -> Iterator[tuple[Ref, Object]]:
        for kind in NAMESPACED:
            for obj in view.mine(kind):
                yield Ref(kind, obj["metadata"]["name"], self._history.namespace), obj
        for kind in (*CLUSTER_WIDE, Kind.COMMAND):  # a Command to a queue stands in another namespace
            for obj in view.all(kind):
                meta = obj["metadata"]
                ours = (meta.get("labels") or {}).get(SCENARIO) == self._history.namespace
                if ours and meta.get("namespace") != self._history.namespace:
                    yield Ref(kind, meta["name"], meta.get("namespace", "")), obj

    def _delete_each(self, left: list[tuple[Ref, Object]], *, strip: bool) -> None:
        for ref, obj in left:
            with contextlib.suppress(RejectedError):
                if strip and obj["metadata"].get("finalizers"):
                    body = {"metadata": {"finalizers": None}}
                    self._api.call("PATCH", ref.path(), body=body, content_type=MERGE)
                self._api.delete(ref.path(), grace=0)


def foreign(view: View) -> list[Ref]:
    """What is in the cluster although no scenario runs: everything that takes room, shares, or would be scheduled."""
    found = []
    for kind in (*OWNERS, *GANGS, Kind.QUEUE, Kind.NODE, Kind.POD):
        for obj in view.all(kind):
            meta = obj["metadata"]
            labels = meta.get("labels") or {}
            if kind == Kind.QUEUE and meta["name"] in BUILT_IN_QUEUES:
                continue
            if kind == Kind.NODE and nodes.WORLD not in labels:
                continue
            if kind in (Kind.POD, Kind.DEPLOYMENT, Kind.JOB) and not _ours(labels, meta.get("namespace", "")):
                continue
            found.append(Ref(kind, meta["name"], meta.get("namespace", "")))
    return found


def nothing_foreign(view: View) -> Outcome:
    """A check: nothing is there that a scenario would share the cluster with."""
    left = foreign(view)
    text = ", ".join(str(ref) for ref in left[:8])
    return Outcome(not left, "the cluster is empty", f"there are: {text}", tuple(left))


def _ours(labels: dict[str, str], namespace: str) -> bool:
    """Work of a scenario, and not of the cluster that runs it."""
    return SCENARIO in labels or namespace.startswith("spec-")


def delete_namespace(api: Api, namespace: str, kinds: Iterable[Kind] = NAMESPACED) -> None:
    """Delete a namespace, and at once by force all objects of `kinds` in it: its own removal takes seconds."""
    api.delete(f"/api/v1/namespaces/{namespace}")  # first: from now on nobody makes anything new in it
    for kind in kinds:
        api.delete(SERVED[kind].path(namespace=namespace), grace=0)
        if kind == Kind.DEPLOYMENT:
            api.delete(f"/apis/apps/v1/namespaces/{namespace}/replicasets", grace=0)
