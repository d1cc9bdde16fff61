"""The kinds that a virtual cluster serves."""

from __future__ import annotations

from .store import Kind

PODS = Kind("v1", "Pod", "pods")
NODES = Kind("v1", "Node", "nodes", namespaced=False)
NAMESPACES = Kind("v1", "Namespace", "namespaces", namespaced=False)
EVENTS = Kind("v1", "Event", "events", has_status=False)
PRIORITY_CLASSES = Kind("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", namespaced=False, has_status=False)
DEPLOYMENTS = Kind("apps/v1", "Deployment", "deployments")
REPLICA_SETS = Kind("apps/v1", "ReplicaSet", "replicasets")
BATCH_JOBS = Kind("batch/v1", "Job", "jobs")
STATEFUL_SETS = Kind("apps/v1", "StatefulSet", "statefulsets")
RESOURCE_QUOTAS = Kind("v1", "ResourceQuota", "resourcequotas")
LIMIT_RANGES = Kind("v1", "LimitRange", "limitranges", has_status=False)
QUEUES = Kind("scheduling.volcano.sh/v1beta1", "Queue", "queues", namespaced=False)

SERVED = (
    PODS,
    NODES,
    NAMESPACES,
    EVENTS,
    PRIORITY_CLASSES,
    DEPLOYMENTS,
    REPLICA_SETS,
    BATCH_JOBS,
    QUEUES,
    Kind("v1", "ServiceAccount", "serviceaccounts", has_status=False),
    Kind("v1", "ConfigMap", "configmaps", has_status=False),
    Kind("v1", "Secret", "secrets", has_status=False),
    Kind("v1", "Service", "services"),
    Kind("v1", "PersistentVolume", "persistentvolumes", namespaced=False),
    Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    STATEFUL_SETS,
    RESOURCE_QUOTAS,
    LIMIT_RANGES,
    Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    Kind("storage.k8s.io/v1", "CSINode", "csinodes", namespaced=False, has_status=False),
    Kind("topology.volcano.sh/v1alpha1", "HyperNode", "hypernodes", namespaced=False),
    Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", has_status=False),
    Kind("scheduling.volcano.sh/v1beta1", "PodGroup", "podgroups"),
    Kind("batch.volcano.sh/v1alpha1", "Job", "jobs"),
    Kind("bus.volcano.sh/v1alpha1", "Command", "commands", has_status=False),
    Kind("kubeflow.org/v1", "PyTorchJob", "pytorchjobs"),
)
BY_PATH = {(kind.api_version, kind.plural): kind for kind in SERVED}
