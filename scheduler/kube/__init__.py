"""The API server, as the scheduler and its controllers need it: fast where it matters, and nothing more.

The one rule: nothing in here knows what is being scheduled.

::

    http = Http(connect("kubeconfig"))                 # config.py, http.py: kept-alive, bounded, typed errors
    client = Client(http)                              # client.py: get list create update patch delete bind
    pod = await client.get(PODS, "train-0", "team-a")  # resource.py: PODS, NODES, QUEUES, PODGROUPS …

Your own kind: ``JOBS = Resource("batch.volcano.sh", "v1alpha1", "jobs", "Job", JobStruct)``, where ``JobStruct`` is a
msgspec struct (subclass of :class:`scheduler.model.objects.Object`) with ``metadata: ObjectMeta`` and the fields that
you read; free-form parts are ``dict[str, Any]``.

* Bodies are plain dicts (a struct names only what we read). ``patch`` says its kind (``Patch.MERGE`` …) and
``sub="status"`` for a status.
* Errors: :class:`NotFound`, :class:`AlreadyExists` (a :class:`Conflict`), :class:`Conflict`, :class:`Invalid`,
:class:`Forbidden`, …, all
  :class:`ApiError`; no answer at all, or none that can be read, is :class:`Unreachable`. 429 is waited out inside, 5xx
  of what may be repeated too; a client that asks ``once`` leaves both to its caller (attempts.py, fair_queue.py).
* ``delete(…, uid=…)`` never hits a successor of the same name.

A controller is informers, one work queue and one function::

    pods = Informer(client, PODS, indexes={"job": lambda pod: [owner.uid for owner in pod.metadata.owner_references or
    ()]}) queue = WorkQueue("job")
    jobs.on_key(queue.add)                             # (key) whenever the object came, changed, went
    pods.on_change(lambda before, after: …)            # (before, after), None where there is nothing
    async with asyncio.TaskGroup() as group:
        group.create_task(pods.run()); group.create_task(jobs.run())
        await pods.synced.wait(); await jobs.synced.wait()
        group.create_task(queue.run(sync))             # async def sync(key): jobs.get(key), pods.by("job", uid)

What ``sync`` raises is logged and the key comes again after a pause that doubles; ``queue.add_after(key, seconds)``
for deadlines. A malformed object is in ``informer.malformed[key]`` (and not in ``informer.objects``).
``EventRecorder.event(PODS, pod.metadata, WARNING, "Evict", "…")`` writes events in the background.
"""

from .changes import Absent, Change, Present, Unreadable
from .client import Client, Patch
from .config import Connection, connect
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
    Unreachable,
    UnreadableAnswer,
)
from .http import Http
from .informer import Informer
from .recorder import NORMAL, WARNING, EventData, EventRecorder
from .reflector import Reflector
from .resource import (
    BUDGETS,
    CLAIMS,
    CSI_NODES,
    EVENTS,
    NAMESPACES,
    NODES,
    PODGROUPS,
    PODS,
    PRIORITY_CLASSES,
    QUEUES,
    VOLUMES,
    Resource,
)
from .scope import Scope
from .workqueue import WorkQueue

__all__ = [
    "BUDGETS",
    "CLAIMS",
    "CSI_NODES",
    "EVENTS",
    "NAMESPACES",
    "NODES",
    "NORMAL",
    "PODGROUPS",
    "PODS",
    "PRIORITY_CLASSES",
    "QUEUES",
    "VOLUMES",
    "WARNING",
    "Absent",
    "AlreadyExists",
    "ApiError",
    "Change",
    "Client",
    "ConfigError",
    "Conflict",
    "Connection",
    "EventData",
    "EventRecorder",
    "Forbidden",
    "Gone",
    "Http",
    "Informer",
    "Invalid",
    "KubeError",
    "LeadershipLost",
    "Listing",
    "Malformed",
    "NotFound",
    "Patch",
    "Present",
    "Reflector",
    "Resource",
    "Scope",
    "ServerError",
    "TooManyRequests",
    "Unauthorized",
    "Unreachable",
    "Unreadable",
    "UnreadableAnswer",
    "WorkQueue",
    "connect",
]
