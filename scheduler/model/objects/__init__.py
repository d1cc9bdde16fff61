"""The API objects that the scheduler reads, reduced to the fields that it uses.

A struct has a field only if code reads the field. msgspec skips the rest of the JSON without decoding it, so that a
watch event costs microseconds. Fields that constrain placement are included even if we do not support them: the pod
then remains pending with that reason, and is not placed against the constraint.
"""

from __future__ import annotations

from .auxiliary import (
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    CSIVolume,
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
    PriorityClass,
    ResourceQuota,
    ResourceQuotaSpec,
    ResourceQuotaStatus,
    ScopeRequirement,
    VolumeNodeAffinity,
    VolumeNodeResources,
)
from .meta import (
    Condition,
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    Object,
    ObjectMeta,
    OwnerReference,
    Quantities,
    Quantity,
    SelectorRequirement,
    read_annotations,
)
from .pods import (
    Affinity,
    ClaimSource,
    Container,
    ContainerPort,
    ContainerState,
    ContainerStateTerminated,
    ContainerStatus,
    NodeAffinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PodStatus,
    PreferredNodeTerm,
    Resources,
    SchedulingGate,
    Toleration,
    TopologySpreadConstraint,
    Volume,
    WeightedPodAffinityTerm,
)
from .queueing import (
    GroupTerms,
    Guarantee,
    PodGroup,
    PodGroupSpec,
    PodGroupStatus,
    Queue,
    QueueAffinity,
    QueueSpec,
    QueueStatus,
)
from .topology import (
    ContainerImage,
    ExactMatch,
    HyperNode,
    HyperNodeMember,
    HyperNodeSpec,
    MemberSelector,
    NetworkTopology,
    Node,
    NodeSpec,
    NodeStatus,
    SubGroupPolicy,
    Taint,
)
