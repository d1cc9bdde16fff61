"""List what a case reaches: actions, plugins and switches of its policy, its changes, and the types of reasons.

Exploration prefers seeds that reach something new, and prints how much of the space was reached.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from ...scheduler import plugins as _plugins  # noqa: F401 - importing them declares their switches
from ...scheduler.policy import schema
from ...scheduler.reasons.victims import Rule
from ...scheduler.reasons.waiting import UnschedulableReason
from ..reduce.case import Case, Step
from ..reduce.play import Story, policy_of
from ..reduce.signature import of_eviction, reason_type


def _tags(union: object) -> frozenset[str]:
    return frozenset(str(reason.__struct_config__.tag) for reason in get_args(union))


def _change(step: type[Step]) -> str:
    return step.__name__.removesuffix("Step").lower()


SPACE: dict[str, frozenset[str]] = {
    "action": frozenset(schema.ACTIONS),
    "plugin": frozenset(schema.PLUGINS),
    "switch": frozenset(
        f"{name}.{switch}" for name, rule in schema.PLUGINS.items() for switch in rule.switches - rule.refused.keys()
    ),
    "change": frozenset(map(_change, get_args(Step))),
    "reason": _tags(UnschedulableReason),
    "protection": _tags(Rule),
}
"""The space: what a case can reach, by kind. A switch counts once it is set in a policy."""


def reach_of(case: Case, story: Story) -> frozenset[str]:
    """Return what a case reaches, as `kind name`; details of reasons make a case new, but are not part of the space."""
    return frozenset(_found(case, story))


def _found(case: Case, story: Story) -> Iterator[str]:
    for text in case.policies:
        policy = policy_of(text)
        yield from (f"action {action}" for action in policy.actions)
        for option in (option for tier in policy.tiers for option in tier):
            yield f"plugin {option.name}"
            yield from (f"switch {option.name}.{switch}" for switch in option.switches)
            yield from (f"set {option.name}.{switch} {value}" for switch, value in option.switches.items())
    yield from (f"change {_change(type(step))}" for step in case.steps)
    for settled in story.settled:
        for refusal in settled.waits.values():
            for why in refusal.items:
                yield f"reason {why.__struct_config__.tag}"
                yield f"detail {reason_type(why)}"
                yield from (f"protection {tag}" for tag in _protections(why))
    for eviction in story.evictions:
        found = of_eviction(eviction)
        yield f"detail evicted {found.action} {found.within_queue} {found.whole_gang}"


def _protections(why: object) -> Iterator[str]:
    for spared in getattr(why, "spared", ()):
        rule = spared.why
        rule = getattr(rule, "why", None) or rule
        config = getattr(rule, "__struct_config__", None)
        if config is not None:
            yield str(config.tag)
