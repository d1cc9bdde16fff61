"""Client of the API server for the scheduler and its controllers.

Nothing in here depends on what is being scheduled:

    http = Http(connect("kubeconfig"))                 # config.py, http.py: kept-alive, bounded, typed errors
    client = Client(http)                              # client.py: get list create update patch delete bind
    pod = await client.get(PODS, "train-0", "team-a")  # resource.py: PODS, NODES, QUEUES, PODGROUPS …

Define a kind with `JOBS = Resource("batch.volcano.sh", "v1alpha1", "jobs", "Job", JobStruct)`. `JobStruct` is a
subclass of `scheduler.model.objects.Object` with `metadata: ObjectMeta` and the fields that you read; free-form parts
are `dict[str, Any]`.

* Bodies are plain dicts, because a struct names only the fields that we read. `patch` takes the kind of the patch
  (`Patch.MERGE` …), and `sub="status"` for a status.
* `ApiError` and its subclasses (`NotFound`, `Conflict`, `AlreadyExists`, `Invalid`, `Forbidden` …): the server
  refused the request. `Unreachable`: there was no answer, or an unreadable one.
* The client retries after 429, and repeatable requests after 5xx too. With `once`, the caller has to retry
  (backoff.py, fair_queue.py).
* `delete(…, uid=…)` never deletes a successor of the same name.

A controller consists of informers, one work queue and one function:

    pods = Informer(client, PODS, indexes={"job": lambda pod: [owner.uid for owner in pod.metadata.owner_references]})
    queue = WorkQueue("job")
    jobs.on_key(queue.add)                             # (key): created, changed or deleted
    pods.on_change(lambda before, after: …)            # None stands for a missing object
    async with asyncio.TaskGroup() as group:
        group.create_task(pods.run()); group.create_task(jobs.run())
        await pods.synced.wait(); await jobs.synced.wait()
        group.create_task(queue.run(sync))             # async def sync(key): jobs.get(key), pods.by("job", uid)

Errors of `sync` are logged, and the key is requeued with a backoff that doubles. `queue.add_after(key, seconds)` queues
a key later. A malformed object is in `informer.malformed[key]` instead of `informer.objects`.
`EventRecorder.event(PODS, pod.metadata, WARNING, "Evict", "…")` writes events in the background.
"""

from .client import Client, Patch
from .config import Connection, connect, connect_as_kubectl
from .decoding import Listing, Malformed
from .errors import (
    AlreadyExists,
    ApiError,
    ConfigError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    KubeError,
    LeadershipLost,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
    UndeclaredField,
    Unreachable,
    UnreadableAnswer,
)
from .http import Http
from .informer import Informer
from .recorder import NORMAL, WARNING, EventData, EventRecorder
from .reflector import Absent, Change, Present, Reflector, Unreadable
from .resource import (
    BUDGETS,
    CLAIMS,
    CSI_NODES,
    EVENTS,
    HYPER_NODES,
    NAMESPACES,
    NODES,
    PODGROUPS,
    PODS,
    PRIORITY_CLASSES,
    QUEUES,
    QUOTAS,
    VOLUMES,
    WATCHED,
    Resource,
)
from .scope import Scope
from .workqueue import WorkQueue
