"""Draw a policy: a policy that a sentence can name, or a variant with other switches, plugins or actions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from random import Random
from typing import Any

import yaml

from ...scheduler import plugins as _plugins  # noqa: F401 - importing them declares their switches
from ...scheduler.lint.policy_rules import policy_findings
from ...scheduler.policy import schema
from ...scheduler.policy.loader import WRAPPER, PolicyError, read_document
from ...scheduler.policy.model import Policy
from ...scheduler.policy.schema import EVICTING
from ..reduce.play import policy_of

_ADDED = ("binpack", "conformance", "drf", "nodeorder", "overcommit", "priority", "gang")
_KEPT = {
    *("EnabledClusterOrder", "enabledAllocatable", "deviceshare.enablePredicate", "capacity-card.enablePredicate"),
    *("gang.enableJobPipelined", "priority.enableJobOrder"),
}
"""Switches that are never changed: an order that only Volcano has, limits that monitors check in every policy, and two
switches without which every policy wastes capacity or evictions (lint warns of them)."""
_VARIANTS = 200
"""Number of variants of a policy. Loading a policy takes as long as a scenario, so scenarios share variants."""
_QUEUE_PLUGINS = ("capacity", "proportion")
_ACTIONS = ("enqueue", "allocate", "backfill", "preempt", "reclaim")


def draw_contested(random: Random, policies: Mapping[str, str], *, may_change: bool) -> str:
    """Return the text of a policy under which waiting jobs claim capacity: by eviction, or by their waiting time.

    Every combination of actions and queue plugins is drawn equally often, however many policies have it.
    """
    kinds: dict[tuple[object, ...], list[str]] = {}
    for name, text in sorted(policies.items()):
        if _is_contested(policy_of(text)):
            kinds.setdefault(_kind_of(text), []).append(name)
    if not kinds:
        return draw_policy(random, policies, may_change=may_change)
    text = policies[random.choice(random.choice(list(kinds.values())))]
    return text if random.random() < 0.7 or not may_change else _changed(text, random.randrange(_VARIANTS))


def _is_contested(policy: Policy) -> bool:
    evicts = bool(EVICTING.keys() & set(policy.actions)) and policy.plugin("capacity-card") is None
    return evicts or policy.plugin("sla") is not None


@lru_cache(4096)
def _kind_of(text: str) -> tuple[object, ...]:
    """Return the class of a policy: its actions, its queue plugins, and whether its queues form a tree."""
    policy = policy_of(text)
    plugins = [(name, policy.plugin(name)) for name in _QUEUE_PLUGINS]
    found = [(name, plugin.enabled("enableHierarchy")) for name, plugin in plugins if plugin is not None]
    return (policy.actions, *found)


def draw_policy(random: Random, policies: Mapping[str, str], *, may_change: bool) -> str:
    """Return the text of a policy. Half of the draws choose only among policies that evict."""
    evicting = sorted(name for name, text in policies.items() if "reclaim" in text or "preempt" in text)
    text = policies[random.choice(evicting if evicting and random.random() < 0.5 else sorted(policies))]
    return text if random.random() < 0.6 or not may_change else _changed(text, random.randrange(_VARIANTS))


@lru_cache(4096)
def _changed(text: str, seed: int) -> str:
    """Return a policy with one to three changes; the same text if lint finds an error in the result."""
    random = Random(seed)
    document: dict[str, Any] = yaml.safe_load(text)
    document = document.get(WRAPPER, document)
    for _ in range(random.randint(1, 3)):
        _change(random, document)
    changed = str(yaml.safe_dump(document, sort_keys=False))
    return text if is_refused(changed) else changed


@lru_cache(4096)
def is_refused(text: str) -> bool:
    """Whether lint finds an error in a policy."""
    try:
        findings = policy_findings(read_document(text, "policy"), "policy")
    except PolicyError:
        return True
    return any(finding.is_error for finding in findings)


def _change(random: Random, document: dict[str, Any]) -> None:
    plugins = [plugin for tier in document["tiers"] for plugin in tier["plugins"]]
    match random.randrange(4):
        case 0 | 1:
            plugin = random.choice(plugins)
            rule = schema.PLUGINS[plugin["name"]]
            free = rule.switches - rule.refused.keys() - _KEPT
            if switches := sorted(switch for switch in free if f"{plugin['name']}.{switch}" not in _KEPT):
                plugin[random.choice(switches)] = random.random() < 0.3
        case 2:
            missing = [name for name in _ADDED if all(name != plugin["name"] for plugin in plugins)]
            if missing:
                random.choice(document["tiers"])["plugins"].append({"name": random.choice(missing)})
        case 3:
            actions = [action.strip() for action in document["actions"].split(",")]
            action = random.choice(_ACTIONS)
            kept = [other for other in actions if other != action]
            if action not in actions or random.random() < 0.5:  # added, or moved
                kept.insert(random.randint(0, len(kept)), action)
            document["actions"] = ", ".join(kept if "allocate" in kept else actions)
