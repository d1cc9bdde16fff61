"""What a scenario may need of a scheduler: the closed list. Each is a tag `@needs-NAME` of a scenario, too.

A scheduler that lacks what a scenario needs is not judged by it: the scenario is skipped with the reason.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

TAG: Final = "needs-"


class Capability(StrEnum):
    """The value is the name in the tag."""

    POLICY = "policy"
    POLICY_REFUSAL = "policy-refusal"
    QUEUES = "queues"
    AMOUNTS = "amounts"
    WEIGHTS = "weights"
    HIERARCHY = "hierarchy"
    CARDS = "cards"
    VALIDATION = "validation"
    JOBS = "jobs"
    JOB_POLICIES = "job-policies"
    COMMANDS = "commands"
    PYTORCHJOBS = "pytorchjobs"
    PHASES = "phases"
    REASONS = "reasons"
    DESERVED = "deserved"
    GANGS = "gangs"
    DISRUPTION_MODE = "disruption-mode"


MEANING: Final[dict[Capability, str]] = {
    Capability.POLICY: "policy files as Volcano has them: actions, tiers, plugins",
    Capability.POLICY_REFUSAL: "a policy that contradicts itself is refused, with a message",
    Capability.QUEUES: "queues (scheduling.volcano.sh), and work that names its queue",
    Capability.AMOUNTS: "queues with deserved, capability and guarantee (the plugin capacity)",
    Capability.WEIGHTS: "queues with weights (the plugin proportion)",
    Capability.HIERARCHY: "queues that form a tree",
    Capability.CARDS: "quotas in cards of a model (the plugin capacity-card)",
    Capability.VALIDATION: "queues that contradict themselves are refused by the API server",
    Capability.JOBS: "Volcano Jobs",
    Capability.JOB_POLICIES: "what a Volcano Job does when a pod is evicted, fails or completes",
    Capability.COMMANDS: "Commands: abort and resume a job, close and open a queue",
    Capability.PYTORCHJOBS: "PyTorchJobs",
    Capability.PHASES: "the phases of PodGroups (scheduling.volcano.sh): Pending, Inqueue, Running",
    Capability.REASONS: "why work waits, in words that name the plugin or the limit",
    Capability.DESERVED: "what a queue deserves, in its status",
    Capability.GANGS: "gangs: pods that are bound together or not at all",
    Capability.DISRUPTION_MODE: "a gang says whether it may lose single pods or only goes as a whole",
}
"""For people: what is needed."""
