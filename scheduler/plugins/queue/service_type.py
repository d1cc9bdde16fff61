"""Classify pods as online services or offline training.

The annotation `volcano.sh/service.type` of the pod decides, then that of its PodGroup. Without the annotation, the kind
of the pod's owner decides if the policy maps that kind. Otherwise the type is unknown; unknown work neither reclaims
nor is reclaimed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...model import names
from ...model.job import Job
from ...model.task import Task

ANNOTATION = names.SERVICE_TYPE
ONLINE, OFFLINE, UNKNOWN = "inference", "training", "unknown"
BY_OWNER = {"Job": OFFLINE, "ReplicaSet": ONLINE}
"""The kinds that `allowServiceTypeByPodOwnerReferences: true` maps.

A Volcano Job and a batch Job are both of kind Job.
"""


def map_of(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the map from the owner's kind to the service type, from either of the two arguments of the policy.

    A Deployment's pods are owned by its ReplicaSet, so a map that names Deployment means both.
    """
    if (value := arguments.get("podOwnerReferenceToServiceType")) is not None:
        kinds = {str(kind): str(type_) for kind, type_ in value.items()}
    else:
        kinds = dict(BY_OWNER) if arguments.get("allowServiceTypeByPodOwnerReferences") else {}
    if "Deployment" in kinds:
        kinds.setdefault("ReplicaSet", kinds["Deployment"])
    return kinds


def service_type(task: Task, job: Job | None, kinds: Mapping[str, str]) -> str:
    """Return `inference`, `training` or `unknown`."""
    group = job.group.metadata if job is not None and job.group is not None else None
    for meta in (task.pod.metadata, group):
        value = (meta.annotations or {}).get(ANNOTATION, "") if meta is not None else ""
        if value:
            return value if value in (ONLINE, OFFLINE) else UNKNOWN
    owners = task.pod.metadata.owner_references or []
    owner = next((owner for owner in owners if owner.controller), owners[0] if owners else None)
    type_ = kinds.get(owner.kind, UNKNOWN) if owner is not None else UNKNOWN
    return type_ if type_ in (ONLINE, OFFLINE) else UNKNOWN


def rank(task: Task, job: Job | None) -> int:
    """Return the priority by which services and training are compared.

    It is the priority of the job's class, or that of the pod if the job names no class.
    """
    if job is not None and job.group is not None and job.group.spec.priority_class_name:
        return job.priority
    return task.pod.spec.priority or 0
