"""What a killed run left in a cluster that outlives runs is taken away before the first scenario.

Only what carries the label of a scenario is touched.
"""

from __future__ import annotations

from harness import cleanup, nodes
from harness.client import MERGE, Api
from harness.kinds import OWNERS, SERVED, Kind


def sweep(api: Api) -> bool:
    """Delete every object of earlier scenarios; False if there were none. Raises RejectedError."""
    found = False
    for space in _labelled(api, "/api/v1/namespaces"):
        found = True
        for kind in (*OWNERS, Kind.COMMAND, Kind.PODGROUP, Kind.POD):
            api.delete(cleanup.path_in(space, kind), grace=0)
        api.delete(f"/apis/apps/v1/namespaces/{space}/replicasets", grace=0)
        api.delete(f"/api/v1/namespaces/{space}")
    for kind in (Kind.QUEUE, Kind.PRIORITYCLASS, Kind.NODE):
        for name in _labelled(api, SERVED[kind].path):
            found = True
            api.delete(f"{SERVED[kind].path}/{name}", grace=0)
    for name in _labelled(api, "/api/v1/nodes", f"{nodes.WORLD}=true"):
        found = True
        body = {"metadata": {"labels": {nodes.WORLD: None}}}
        api.call("PATCH", f"/api/v1/nodes/{name}", body=body, content_type=MERGE)
    return found


def _labelled(api: Api, path: str, selector: str = cleanup.SCENARIO) -> list[str]:
    items = api.call("GET", path, query={"labelSelector": selector})["items"]
    return [str(item["metadata"]["name"]) for item in items]
