"""Capabilities that a scenario may require of a scheduler. Each is also a tag `@needs-NAME`. The list is closed.

If the scheduler lacks a capability, the scenario is skipped with the reason.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

TAG: Final = "needs-"


class Capability(StrEnum):
    """A capability; the value is its name in the tag."""

    POLICY = "policy"
    POLICY_FILES = "policy-files"
    POLICY_REFUSAL = "policy-refusal"
    ACTIONS = "actions"
    QUEUES = "queues"
    AMOUNTS = "amounts"
    WEIGHTS = "weights"
    HIERARCHY = "hierarchy"
    CARDS = "cards"
    QUEUE_PRIORITY = "queue-priority"
    PROTECTION = "protection"
    VALIDATION = "validation"
    JOBS = "jobs"
    JOB_TASKS = "job-tasks"
    JOB_POLICIES = "job-policies"
    COMMANDS = "commands"
    PYTORCHJOBS = "pytorchjobs"
    PHASES = "phases"
    REASONS = "reasons"
    DESERVED = "deserved"
    GANGS = "gangs"
    SPARE_PODS = "spare-pods"
    GROWTH = "growth"
    POD_NAMES = "pod-names"
    DISRUPTION_MODE = "disruption-mode"
    TOPOLOGY = "topology"
    PREFERRED_TOPOLOGY = "preferred-topology"
    PARTITIONS = "partitions"
    SHARED_CARDS = "shared-cards"
    NODE_ORDER = "node-order"
    CLASS_SETTINGS = "class-settings"
    PAST_USE = "past-use"
    KUEUE_QUEUES = "kueue-queues"


MEANING: Final[dict[Capability, str]] = {
    Capability.POLICY: "policies by name: what may be evicted for what",
    Capability.POLICY_FILES: "policy files in Volcano's format: actions, tiers, plugins",
    Capability.ACTIONS: "steps of scheduling that a policy leaves out or reorders: enqueue, backfill, reclaim, sla",
    Capability.POLICY_REFUSAL: "contradictory policies are rejected with a message",
    Capability.QUEUES: "queues (scheduling.volcano.sh), and work with a queue",
    Capability.AMOUNTS: "queues with deserved, capability and guarantee (the plugin capacity)",
    Capability.WEIGHTS: "queues with weights (the plugin proportion)",
    Capability.HIERARCHY: "queues that form a tree",
    Capability.CARDS: "quotas in cards of a model (the plugin capacity-card)",
    Capability.QUEUE_PRIORITY: "queues with a priority",
    Capability.PROTECTION: "queues and pods that no other work may evict",
    Capability.VALIDATION: "contradictory queues and changes of a Volcano Job are rejected by the API server",
    Capability.JOBS: "jobs that start all of their pods together or, with a minimum of one, pod by pod",
    Capability.JOB_TASKS: "jobs of several tasks (Volcano Jobs)",
    Capability.JOB_POLICIES: "the policies of a Volcano Job when a pod is evicted, fails or completes",
    Capability.COMMANDS: "Commands: abort and resume a job, close and open a queue",
    Capability.PYTORCHJOBS: "PyTorchJobs",
    Capability.PHASES: "the phases of PodGroups (scheduling.volcano.sh): Pending, Inqueue, Running",
    Capability.REASONS: "the reason why work waits, with the plugin or the limit",
    Capability.DESERVED: "the deserved amounts of a queue, in its status",
    Capability.GANGS: "gangs: pods that are bound together or not at all",
    Capability.SPARE_PODS: "gangs whose minimum is below all: the pods above the minimum come and go one by one",
    Capability.GROWTH: "running gangs that get more pods",
    Capability.POD_NAMES: "the names of a job's pods: JOB-TASK-NUMBER",
    Capability.DISRUPTION_MODE: "the disruption mode of a gang: single pods or the whole gang only",
    Capability.TOPOLOGY: "gangs whose pods have to stay within one rack or one spine of the network",
    Capability.PREFERRED_TOPOLOGY: "gangs whose pods stay as close together as there is room",
    Capability.PARTITIONS: "gangs of several parts, each with a topology of its own",
    Capability.SHARED_CARDS: "pods that share cards: parts of cards by memory, and virtual GPUs",
    Capability.NODE_ORDER: "policies that choose among nodes: binpack, nodegroup, and nodeorder with weights",
    Capability.CLASS_SETTINGS: "priority classes that evict nothing, a default class, and the deletion of a class",
    Capability.PAST_USE: "policies that serve first the queue that used least in the past",
    Capability.KUEUE_QUEUES: "ClusterQueues, Cohorts, LocalQueues and ResourceFlavors of Kueue, as its users have them",
}
"""Description of each capability for users."""
