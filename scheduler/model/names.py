"""Names of annotations and labels of Kubernetes, Volcano, Kubeflow and schedspec."""

from __future__ import annotations

GROUP_NAME = "scheduling.k8s.io/group-name"
VOLCANO_GROUP_NAME = "scheduling.volcano.sh/group-name"
QUEUE_NAME = "scheduling.volcano.sh/queue-name"
GROUP_MIN_MEMBER = "scheduling.volcano.sh/group-min-member"
TASK_SPEC = "volcano.sh/task-spec"
PARTITION = "volcano.sh/partition-id"
"""On a Pod, as a label: the number of the partition of its task to which it belongs."""
TASK_PRIORITY = "volcano.sh/task-priority"
TASK_INDEX = "volcano.sh/task-index"
JOB_NAME = "volcano.sh/job-name"
JOB_NAMESPACE = "volcano.sh/job-namespace"
JOB_VERSION = "volcano.sh/job-version"
JOB_QUEUE = "volcano.sh/queue-name"
TEMPLATE = "volcano.sh/template-uid"
PREEMPTABLE = "volcano.sh/preemptable"
CARD_NAME = "volcano.sh/card.name"
CARD_QUOTA = "volcano.sh/card.quota"
CARD_REQUEST = "volcano.sh/card.request"
SERVICE_TYPE = "volcano.sh/service.type"
NODE_GROUP = "volcano.sh/nodegroup-name"
"""On a Node: the group that it belongs to."""
NODE_GROUP_LIMITS = "volcano.sh/nodegroup-resource-limits"
"""On a Queue: the maximum that it may hold in each node group, as JSON: group → resource → amount."""
COOLDOWN = "volcano.sh/cooldown-time"
"""On a Pod, as a label or an annotation: the time after its start during which it cannot be a victim."""
NAMESPACES = "schedspec.dev/namespaces"
"""On a Queue: the namespaces whose jobs it accepts, separated by commas; all if absent."""
DISRUPTION_MODE = "schedspec.dev/disruption-mode"
"""On a PodGroup: `pod` (each of its pods may be preempted alone) or `group` (only all of them together)."""
TOPOLOGY_KEY = "schedspec.dev/topology-key"
"""On the mirror of a PodGroup of `scheduling.k8s.io`: the node label of which all its pods need the same value."""
STOP_AFTER = "schedspec.dev/stop-after"
"""On a pod of a scenario: how long it takes to terminate."""
ON_EVICTED = "schedspec.dev/on-evicted"
"""On a pod of a state: the action of its VolcanoJob when the pod is evicted (`RestartJob`). No scheduler reads it."""
UNSUPPORTED = "schedspec.dev/unsupported"
"""On the mirror of a PodGroup of `scheduling.k8s.io`: the field of that PodGroup that is not supported."""
TOO_COSTLY = "TooCostly"
"""Reason of a PodGroup's condition. After a restart, the scheduler tries such a job after all other jobs."""
CLOSED_BY_PARENT = "volcano.sh/closed-by-parent"
VOLCANO_PREFIX = "volcano.sh/"
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
OF_ONE_JOB = frozenset(
    {GROUP_NAME, VOLCANO_GROUP_NAME, JOB_NAME, JOB_NAMESPACE, JOB_VERSION, TASK_INDEX, TEMPLATE, APPLIED}
)
"""Annotations that identify a job or its pods, and on which no decision depends."""

TRAINING_JOB = "training.kubeflow.org/job-name"
TRAINING_OPERATOR = "training.kubeflow.org/operator-name"
TRAINING_TYPE = "training.kubeflow.org/replica-type"
TRAINING_INDEX = "training.kubeflow.org/replica-index"
TRAINING_ROLE = "training.kubeflow.org/job-role"

MAX_NAME = 253
"""Characters of the longest name that the API server permits for an object."""


def reference(name: str) -> str:
    """Return a name by which a spec refers to an object; a name that is too long for any object is cut.

    The cut name ends with an ellipsis, which no name contains, so that it refers to nothing either. A tenant may write
    250 KB of name, which keys, topics and messages would repeat.
    """
    return name if len(name) <= MAX_NAME else f"{name[:MAX_NAME]}…"
