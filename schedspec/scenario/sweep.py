"""What a killed run left in a cluster that outlives runs is taken away before the first scenario.

Only what carries the label of a scenario is touched, and what a scenario has borrowed: it says so itself.
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
from .restore import give_back, is_borrowed


def sweep(api: Api) -> bool:
    """Delete every object of earlier scenarios; False if there were none. Raises RejectedError."""
    found = False
    for space in labelled(api, "/api/v1/namespaces"):
        found = True
        cleanup.delete_namespace(api, space)
    for name in BUILT_IN_QUEUES:
        with contextlib.suppress(RejectedError):  # a cluster that has none yet
            found |= give_back(api, Ref(Kind.QUEUE, name))
    for kind, space in (*((kind, "") for kind in cleanup.CLUSTER_WIDE), (Kind.COMMAND, QUEUE_COMMAND_NAMESPACE)):
        for name in labelled(api, SERVED[kind].path(namespace=space)):
            found = True
            api.delete(Ref(kind, name, space).path(), grace=0)
    for node in api.call("GET", SERVED[Kind.NODE].path())["items"]:
        if is_borrowed(node):
            found |= give_back(api, Ref(Kind.NODE, node["metadata"]["name"]))
    return found


def require_gone(api: Api) -> None:
    """Wait for the namespaces that went in the background. Raises DirtyClusterError, which names those that stay."""
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
                    f"the run leaves namespaces behind that do not go: {', '.join(left)}\n"
                    f"  do next: kubectl get namespace {left[0]} -o yaml (its conditions say what holds it)"
                )


def labelled(api: Api, path: str) -> list[str]:
    """The names of all objects there that a run has made. Raises RejectedError."""
    try:
        items = api.call("GET", path, query={"labelSelector": SCENARIO})["items"]
    except RejectedError as problem:
        if problem.status != 404:
            raise
        return []  # a kind that is not served here
    return [str(item["metadata"]["name"]) for item in items]
