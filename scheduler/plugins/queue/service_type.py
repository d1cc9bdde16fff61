"""What kind of work a pod is: an online service, or offline training.

The one rule: the ``volcano.sh/service.type`` annotation says it, of the pod before that of its PodGroup; where it
does not, the kind of the pod's owner does, as far as the policy maps kinds. What neither says is unknown, and unknown
work neither takes nor is taken.
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
"""What ``allowServiceTypeByPodOwnerReferences.

True`` stands for. A Volcano Job and a batch Job are both of kind Job.
"""


def map_of(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Owner's kind → service type, from either spelling of the policy's argument.

    A Deployment's pods are owned by its ReplicaSet, so a map that names Deployment means both.
    """
    if (said := arguments.get("podOwnerReferenceToServiceType")) is not None:
        kinds = {str(kind): str(type_) for kind, type_ in said.items()}
    else:
        kinds = dict(BY_OWNER) if arguments.get("allowServiceTypeByPodOwnerReferences") else {}
    if "Deployment" in kinds:
        kinds.setdefault("ReplicaSet", kinds["Deployment"])
    return kinds


def service_type(task: Task, job: Job | None, kinds: Mapping[str, str]) -> str:
    """``inference``, ``training`` or ``unknown``."""
    group = job.group.metadata if job is not None and job.group is not None else None
    for meta in (task.pod.metadata, group):
        said = (meta.annotations or {}).get(ANNOTATION, "") if meta is not None else ""
        if said:
            return said if said in (ONLINE, OFFLINE) else UNKNOWN
    owners = task.pod.metadata.owner_references or []
    owner = next((owner for owner in owners if owner.controller), owners[0] if owners else None)
    type_ = kinds.get(owner.kind, UNKNOWN) if owner is not None else UNKNOWN
    return type_ if type_ in (ONLINE, OFFLINE) else UNKNOWN


def rank(task: Task, job: Job | None) -> int:
    """The priority by which work of different kinds is compared.

    The job's class, or the pod's where the job names none.
    """
    if job is not None and job.group is not None and job.group.spec.priority_class_name:
        return job.priority
    return task.pod.spec.priority or 0
