"""Limit exploration to what an adapter supports and what the level of a profile requires."""

from __future__ import annotations

from ... import distribution
from ...api.capabilities import Capability
from ...conformance.levels import Level, needs_of_policy
from ...monitors import Rules
from ...schedulers import Adapter
from ..reduce.written import known_policies
from .vocabulary import Vocabulary

_NEEDS = {
    "capability": Capability.AMOUNTS,
    "deserved": Capability.AMOUNTS,
    "guarantee": Capability.AMOUNTS,
    "weight": Capability.WEIGHTS,
    "parent": Capability.HIERARCHY,
    "priority": Capability.QUEUE_PRIORITY,
}
_COLUMNS = {
    Level.CORE: frozenset({"capability"}),
    Level.EXTENDED: frozenset(_NEEDS) - {"priority"},
    Level.DIALECT: frozenset(_NEEDS),
}


def vocabulary(adapter: Adapter, level: Level | None) -> Vocabulary:
    """Return what a case may use on a cluster. Pods must not fail: on a cluster, waiting ones would, too."""
    supported = {capability for capability in Capability if adapter.missing(capability) is None}
    level = level or Level.DIALECT
    return Vocabulary(
        columns=frozenset(column for column in _COLUMNS[level] if _NEEDS[column] in supported),
        has_queues=Capability.QUEUES in supported,
        has_spare_pods=Capability.SPARE_PODS in supported and level is not Level.CORE,
        has_protection=Capability.PROTECTION in supported and level is not Level.CORE,
        has_policy_files=Capability.POLICY_FILES in supported and level is Level.DIALECT,
        has_policy_changes=Capability.POLICY_REFUSAL in supported and level is Level.DIALECT,
        has_failures=False,
        has_closing=Capability.COMMANDS in supported and level is Level.DIALECT,
        has_card_quotas=Capability.CARDS in supported and level is Level.DIALECT,
        has_shared_cards=Capability.SHARED_CARDS in supported and level is Level.DIALECT,
        has_racks={Capability.TOPOLOGY, Capability.PREFERRED_TOPOLOGY} <= supported and level is Level.DIALECT,
    )


def policies(adapter: Adapter, level: Level | None) -> dict[str, str]:
    """Return our policy texts by name: those that fit the level and that the scheduler can load or has by that name."""
    own = distribution.folder("templates") / adapter.templates / "policies"
    names = {path.stem for path in own.glob("*.yaml")} if adapter.missing(Capability.POLICY_FILES) else None
    return {
        name: text
        for name, text in known_policies().items()
        if (names is None or name in names) and _fits(adapter, level, name, text)
    }


def _fits(adapter: Adapter, level: Level | None, name: str, text: str) -> bool:
    needs = needs_of_policy(name) - {Capability.POLICY}
    if level is Level.CORE and ("reclaim" in Rules(text).actions or Capability.HIERARCHY in needs):
        return False
    if level in (Level.CORE, Level.EXTENDED) and not needs.isdisjoint({Capability.ACTIONS, Capability.CARDS}):
        return False
    return all(
        adapter.missing(capability) is None for capability in needs if adapter.missing(Capability.QUEUES) is None
    )
