"""HyperNodes (`topology.volcano.sh`), and the topology that a PodGroup requests."""

from __future__ import annotations

import msgspec

from .meta import Condition, LabelSelector, Object, ObjectMeta, Quantities


class Taint(Object):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Object):
    unschedulable: bool = False
    taints: list[Taint] | None = None


class ContainerImage(Object):
    names: list[str] | None = None
    size_bytes: int = 0


class NodeStatus(Object):
    allocatable: Quantities | None = None
    capacity: Quantities | None = None
    conditions: list[Condition] | None = None
    images: list[ContainerImage] | None = None


class Node(Object):
    metadata: ObjectMeta
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class ExactMatch(Object):
    name: str = ""


class RegexMatch(Object):
    pattern: str = ""


class MemberSelector(Object):
    exact_match: ExactMatch | None = None
    regex_match: RegexMatch | None = None
    label_match: LabelSelector | None = None


class HyperNodeMember(Object):
    """`type` is Node or HyperNode."""

    type: str = ""
    selector: MemberSelector = msgspec.field(default_factory=MemberSelector)


class HyperNodeSpec(Object):
    tier: int = 0
    tier_name: str = ""
    members: list[HyperNodeMember] | None = None


class HyperNode(Object):
    metadata: ObjectMeta
    spec: HyperNodeSpec = msgspec.field(default_factory=HyperNodeSpec)


class NetworkTopology(Object):
    """How close the pods of a gang have to be: `mode` is hard (also if empty) or soft."""

    mode: str = ""
    highest_tier_allowed: int | None = None
    highest_tier_name: str = ""

    @property
    def is_hard(self) -> bool:
        return self.mode != "soft"


class SubGroupPolicy(Object):
    """Which pods of a PodGroup form subgroups. Each is a gang of `sub_group_size` pods, with its own topology."""

    name: str = ""
    label_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    sub_group_size: int | None = None
    min_sub_groups: int | None = None
    network_topology: NetworkTopology | None = None
