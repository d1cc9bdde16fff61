"""Tell which capabilities of a scheduler a policy needs, from its plugins and actions."""

from __future__ import annotations

from .. import distribution
from ..api.capabilities import Capability
from ..monitors.rules import Rules

_BY_PLUGIN = {"capacity": Capability.AMOUNTS, "capacity-card": Capability.CARDS}


def needs_of_policy(name: str) -> set[Capability]:
    """Return what `templates/policies/NAME.yaml` needs; of an unknown name, a policy."""
    file = distribution.folder("templates") / "policies" / f"{name}.yaml"
    rules = Rules(file.read_text("utf-8") if file.is_file() else "")
    found = {Capability.POLICY, *([_BY_PLUGIN[rules.queue_plugin]] if rules.queue_plugin in _BY_PLUGIN else [])}
    found |= {Capability.ACTIONS} if file.is_file() and _reorders(rules) else set()
    return found | {Capability.HIERARCHY} if rules.is_tree else found


def _reorders(rules: Rules) -> bool:
    """Whether the policy leaves out backfill, reclaims before it allocates, or orders by waiting time."""
    before = rules.actions[: rules.actions.index("allocate")] if "allocate" in rules.actions else []
    return "backfill" not in rules.actions or "reclaim" in before or rules.has("sla")
