"""Derive the capabilities that a policy needs of a scheduler, from its plugins and actions."""

from __future__ import annotations

from .. import distribution
from ..api.capabilities import Capability
from ..monitors.rules import Rules

_BY_PLUGIN = {"capacity": Capability.AMOUNTS, "capacity-card": Capability.CARDS}


def needs_of_policy(name: str) -> set[Capability]:
    """Return the capabilities that `templates/policies/NAME.yaml` needs; only POLICY if the name is unknown."""
    file = distribution.folder("templates") / "policies" / f"{name}.yaml"
    rules = Rules(file.read_text("utf-8") if file.is_file() else "")
    found = {Capability.POLICY, *([_BY_PLUGIN[rules.queue_plugin]] if rules.queue_plugin in _BY_PLUGIN else [])}
    found |= {Capability.ACTIONS} if file.is_file() and _changes_order(rules) else set()
    found |= {Capability.NODE_ORDER} if rules.has("binpack") or rules.has("nodegroup") else set()
    return found | {Capability.HIERARCHY} if rules.is_tree else found


def _changes_order(rules: Rules) -> bool:
    """Whether the policy leaves out backfill, reclaims before it allocates, or orders by waiting time."""
    before = rules.actions[: rules.actions.index("allocate")] if "allocate" in rules.actions else []
    return "backfill" not in rules.actions or "reclaim" in before or rules.has("sla")
