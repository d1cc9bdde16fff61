"""Check that the cluster is empty before a scenario, and empty it afterwards.

Objects are deleted by force, and the watches confirm it. Nothing waits for the removal of a namespace, which takes
seconds: an empty namespace affects no other scenario.

Before the first scenario, what earlier runs left behind because they were killed is removed: objects with a scenario's
label are deleted; borrowed objects, which carry a record of their fields, are restored.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from ..api import clock, timeouts
from ..api.client import MERGE, Api, Object
from ..api.errors import DirtyClusterError, RejectedError, Unmet
from ..api.kinds import BUILT_IN_QUEUES, GANGS, OWNERS, QUEUE_COMMAND_NAMESPACE, SERVED, Kind, Ref
from ..clusters.protocol import SCENARIO
from ..observe.expect import Expect, Outcome
from ..observe.history import History, View
from . import nodes, refused_bindings
from .restore import is_borrowed, restore_fields

NAMESPACED: Final = (
    *(*OWNERS, Kind.COMMAND, *GANGS, Kind.POD, Kind.LOCALQUEUE, Kind.BINDREQUEST),
    *(Kind.RESOURCEQUOTA, Kind.LIMITRANGE),
)
CLUSTER_WIDE: Final = (
    Kind.QUEUE,
    Kind.PRIORITYCLASS,
    Kind.NODE,
    Kind.CLUSTERQUEUE,
    Kind.COHORT,
    Kind.RESOURCEFLAVOR,
    Kind.TOPOLOGY,
    Kind.WORKLOADPRIORITYCLASS,
    Kind.ADMISSIONCHECK,
    Kind.HYPERNODE,
    Kind.KAI_QUEUE,
)
_ALSO_OF_CLUSTERS = (Kind.POD, Kind.DEPLOYMENT, Kind.STATEFULSET, Kind.JOB)
"""Kinds of work that a cluster has itself."""
_FINALIZER_SECONDS = 2.0
"""Seconds in which the owner of a finalizer can act before the finalizer is removed."""
_RETRY_SECONDS = 0.1
"""Seconds between two attempts. A controller may create another pod in between."""


class Cleanup:
    """Empties one scenario's part of the cluster."""

    def __init__(self, api: Api, history: History, namespaces: Callable[[], Sequence[str]]) -> None:
        self._api, self._history = api, history
        self._namespaces = namespaces
        self.borrowed: set[Ref] = set()
        """Foreign objects that the scenario changed and that have to be restored."""

    def require_empty(self, expect: Expect) -> None:
        """Check that no object uses capacity or shares in what queues deserve.

        Raises:
            DirtyClusterError: there are such objects.
        """
        with contextlib.suppress(Unmet):  # the watch may lag behind the end of the previous scenario
            expect.eventually(nothing_foreign, within=timeouts.LAGS)
        found = [
            f"{ref} (namespace {ref.namespace})" if ref.namespace else str(ref) for ref in foreign(self._history.now())
        ]
        if found:
            raise DirtyClusterError(
                f"the cluster is not empty before the scenario; there are: {', '.join(found[:8])}\n"
                "  do next: delete them, or run on a cluster of your own (--cluster embedded)"
            )

    def empty(self, expect: Expect) -> None:
        """Delete all objects of the scenario.

        Raises:
            DirtyClusterError: objects could not be deleted; the text names them.
        """
        self._restore_borrowed()
        view = self._history.now()
        kinds = [kind for kind in NAMESPACED if any(True for _ in view.mine(kind))]
        for namespace in self._namespaces():
            delete_namespace(self._api, namespace, kinds)
        self._delete_each([entry for entry in self._left(view) if entry[0].kind in CLUSTER_WIDE], strip=False)
        last = clock.monotonic()
        force_after = last + _FINALIZER_SECONDS

        def gone(view: View) -> Outcome:
            nonlocal last
            left = list(self._left(view))
            if left and clock.monotonic() > last + _RETRY_SECONDS:
                last = clock.monotonic()
                self._delete_each(left, strip=last > force_after)
            names = ", ".join(str(ref) for ref, _ in left[:8])
            return Outcome(not left, "the scenario's objects are gone", f"left: {names}", tuple(ref for ref, _ in left))

        try:
            expect.eventually(gone, within=timeouts.EMPTY)
        except Unmet as problem:
            real = self._api.names.hint(ref for ref, _ in self._left(self._history.now()))
            raise DirtyClusterError(
                f"objects of the scenario could not be deleted; {problem.seen}{real and f'{chr(10)}  do next: {real}'}"
            ) from None

    def _restore_borrowed(self) -> None:
        for ref in self.borrowed:
            with contextlib.suppress(RejectedError):  # already deleted by another process
                restore_fields(self._api, ref)

    def _left(self, view: View) -> Iterator[tuple[Ref, Object]]:
        for kind in NAMESPACED:
            for obj in view.mine(kind):
                yield Ref(kind, obj["metadata"]["name"], self._history.namespace), obj
        for kind in (*CLUSTER_WIDE, Kind.COMMAND):  # a Command to a queue is in another namespace
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
    """Return the objects that could affect the next scenario: queues, nodes, workloads, gangs and pods."""
    found = []
    for kind in (*OWNERS, *GANGS, Kind.QUEUE, Kind.NODE, Kind.POD):
        for obj in view.all(kind):
            meta = obj["metadata"]
            labels = meta.get("labels") or {}
            if kind == Kind.QUEUE and meta["name"] in BUILT_IN_QUEUES:
                continue
            if kind == Kind.NODE and nodes.WORLD not in labels:
                continue
            if kind in (Kind.POD, Kind.DEPLOYMENT, Kind.STATEFULSET, Kind.JOB) and not _ours(
                labels, meta.get("namespace", "")
            ):
                continue
            found.append(Ref(kind, meta["name"], meta.get("namespace", "")))
    return found


def nothing_foreign(view: View) -> Outcome:
    """Check that no foreign object shares the cluster with the scenario."""
    left = foreign(view)
    text = ", ".join(str(ref) for ref in left[:8])
    return Outcome(not left, "the cluster is empty", f"there are: {text}", tuple(left))


def _ours(labels: dict[str, str], namespace: str) -> bool:
    """Whether the object is work of a scenario, not of the cluster itself."""
    return SCENARIO in labels or namespace.startswith("spec-")


def delete_namespace(api: Api, namespace: str, kinds: Iterable[Kind] = NAMESPACED) -> None:
    """Delete a namespace, and force-delete all objects of `kinds` in it: removal of a namespace takes seconds."""
    api.delete(f"/api/v1/namespaces/{namespace}")  # the namespace first: afterwards no object can be created in it
    for kind in kinds:
        with contextlib.suppress(RejectedError):  # a kind of another scheduler, to which the user has no right
            api.delete_all(SERVED[kind].path(namespace=namespace), grace=0)
        if kind == Kind.DEPLOYMENT:
            api.delete_all(f"/apis/apps/v1/namespaces/{namespace}/replicasets", grace=0)


def sweep(api: Api) -> bool:
    """Delete every object of earlier scenarios and restore borrowed ones. Return False if there were none.

    Raises:
        RejectedError: the API server refused a request.
    """
    found = False
    for space in labelled(api, "/api/v1/namespaces"):
        found = True
        delete_namespace(api, space)
    for name in BUILT_IN_QUEUES:
        with contextlib.suppress(RejectedError):  # the cluster has no Queues
            found |= restore_fields(api, Ref(Kind.QUEUE, name))
    for kind, space in (*((kind, "") for kind in CLUSTER_WIDE), (Kind.COMMAND, QUEUE_COMMAND_NAMESPACE)):
        for name in labelled(api, SERVED[kind].path(namespace=space)):
            found = True
            api.delete(Ref(kind, name, space).path(), grace=0)
    for path in refused_bindings.PATHS:
        for name in labelled(api, path):
            api.delete(f"{path}/{name}")
    for node in api.call("GET", SERVED[Kind.NODE].path())["items"]:
        if is_borrowed(node):
            found |= restore_fields(api, Ref(Kind.NODE, node["metadata"]["name"]))
    return found


def require_gone(api: Api) -> None:
    """Wait for namespaces that are deleted in the background.

    Raises:
        DirtyClusterError: some remain; the text names them.
    """
    for attempt in Retrying(
        retry=retry_if_exception_type(DirtyClusterError),
        stop=stop_after_delay(timeouts.NAMESPACES),
        wait=wait_fixed(0.2),
        reraise=True,
    ):
        with attempt:
            left = labelled(api, "/api/v1/namespaces")
            if left:
                raise DirtyClusterError(
                    f"namespaces of the run could not be deleted: {', '.join(left)}\n"
                    f"  do next: kubectl get namespace {left[0]} -o yaml (its conditions state the reason)"
                )


def labelled(api: Api, path: str) -> list[str]:
    """Return the names of all objects at `path` that a run created.

    Raises:
        RejectedError: the API server refused the request.
    """
    try:
        items = api.call("GET", path, query={"labelSelector": SCENARIO})["items"]
    except RejectedError as problem:
        if problem.status not in (403, 404):
            raise
        return []  # the kind is not served: 404, or 403 for a user without a right to it
    return [str(item["metadata"]["name"]) for item in items]
