"""Limit the size of a PodGroup, and decide whether its new version frees something for other jobs."""

from __future__ import annotations

from collections.abc import Iterable

from . import objects
from .job import Job, PodGroupPhase
from .task import HOLDING

MAX_NAMES = 32
"""Maximum number of resources that a PodGroup may name."""
MAX_SUBGROUP_PARTS = 256
"""Maximum number of subgroup policies, labels and values of a PodGroup in all: each pod is matched with all."""
ON_ITS_WAY = {
    ("", PodGroupPhase.PENDING),
    ("", PodGroupPhase.INQUEUE),
    (PodGroupPhase.PENDING, PodGroupPhase.INQUEUE),
    (PodGroupPhase.INQUEUE, PodGroupPhase.RUNNING),
}
"""Changes of a PodGroup's phase that follow from a decision."""


def check_size(group: objects.PodGroup) -> None:
    """Reject a PodGroup with too many resources, subgroup policies or labels.

    Raises:
        ValueError: `minResources` or `subGroupPolicy` has more parts than the maximum.
    """
    if (number := len(group.spec.min_resources or ())) > MAX_NAMES:
        raise ValueError(f"spec.minResources names {number} resources; name at most {MAX_NAMES}")
    if (number := _parts(group.spec.sub_group_policy or ())) > MAX_SUBGROUP_PARTS:
        text = f"spec.subGroupPolicy has {number} policies and labels in all"
        raise ValueError(f"{text}; write at most {MAX_SUBGROUP_PARTS}")


def reserves_as_before(job: Job, phase: str) -> bool:
    """Whether a job's change from `phase` to its current phase frees nothing for other jobs.

    The cycle that admits a job reserves its whole minimum. Later cycles reserve what the job does not hold, or nothing
    if the job runs with too few tasks.
    """
    if (phase, job.phase) not in ON_ITS_WAY:
        return False
    if job.phase == PodGroupPhase.INQUEUE:
        return not job.allocated
    return job.phase == PodGroupPhase.PENDING or job.count(HOLDING) >= job.min_available


def _parts(policies: Iterable[objects.SubGroupPolicy]) -> int:
    """Return the number of subgroup policies and of the labels and values that they name."""
    number = 0
    for policy in policies:
        number += 1 + len(policy.match_label_keys or ())
        if (selector := policy.label_selector) is not None:
            number += len(selector.match_labels or ())
            number += sum(1 + len(item.values or ()) for item in selector.match_expressions or ())
    return number
