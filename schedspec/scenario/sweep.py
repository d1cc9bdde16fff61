"""Clean a cluster before the first scenario: remove what earlier runs left behind because they were killed.

Objects with a scenario's label are deleted; borrowed objects, which carry a record of their fields, are restored.
"""

from __future__ import annotations

import contextlib

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from ..api import timeouts
from ..api.client import Api
from ..api.errors import DirtyClusterError, RejectedError
from ..api.kinds import BUILT_IN_QUEUES, QUEUE_COMMAND_NAMESPACE, SERVED, Kind, Ref
from ..clusters.protocol import SCENARIO
from . import cleanup
from .restore import is_borrowed, restore_fields


def sweep(api: Api) -> bool:
    """Delete every object of earlier scenarios and restore borrowed ones. Return False if there were none.

    Raises:
        RejectedError: the API server refused a request.
    """
    found = False
    for space in labelled(api, "/api/v1/namespaces"):
        found = True
        cleanup.delete_namespace(api, space)
    for name in BUILT_IN_QUEUES:
        with contextlib.suppress(RejectedError):  # the cluster has no Queues
            found |= restore_fields(api, Ref(Kind.QUEUE, name))
    for kind, space in (*((kind, "") for kind in cleanup.CLUSTER_WIDE), (Kind.COMMAND, QUEUE_COMMAND_NAMESPACE)):
        for name in labelled(api, SERVED[kind].path(namespace=space)):
            found = True
            api.delete(Ref(kind, name, space).path(), grace=0)
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
