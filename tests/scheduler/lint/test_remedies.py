"""A remedy of lint ends its finding, and no chain of remedies goes on for ever.

The remedies are read as a person reads them: each alternative is applied to the policy, which is judged again.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from schedspec.scheduler.lint import LintFinding, lint
from schedspec.scheduler.policy.schema import ACTIONS, PLUGINS

Policy = dict[str, Any]
CASES = yaml.safe_load((Path(__file__).parent / "lint.yaml").read_text())
UNREADABLE = (
    r"did you mean|add one of|give every queue|name |set one of|set it to|write |to binpack\.resources|with enableJobS"
)
"""Remedies that leave a choice to the reader."""


def _plugins(policy: Policy) -> Iterator[tuple[list[Policy], Policy]]:
    for tier in policy["tiers"]:
        for plugin in [*tier["plugins"]]:
            yield tier["plugins"], plugin


def _of(policy: Policy, name: str) -> tuple[list[Policy], Policy]:
    return next(found for found in _plugins(policy) if found[1]["name"] == name)


def _set_actions(policy: Policy, change: Callable[[list[str]], object]) -> None:
    names = [name.strip() for name in policy["actions"].split(",")]
    change(names)
    policy["actions"] = ", ".join(names)


def _remove(policy: Policy, name: str) -> None:
    if name in ACTIONS:
        _set_actions(policy, lambda names: names.remove(name))
    else:
        tier, plugin = _of(policy, name)
        tier.remove(plugin)


def _add(policy: Policy, name: str) -> None:
    if name in PLUGINS:
        policy["tiers"][0]["plugins"].append({"name": name})
    else:
        _set_actions(policy, lambda names: names.insert(0 if name in ("enqueue", "allocate") else len(names), name))


def _reorder(policy: Policy, action: str, after: str | None) -> None:
    _remove(policy, action)
    _set_actions(policy, lambda names: names.insert(names.index(after) + 1 if after else 0, action))


def _delete_field(policy: Policy, field: str) -> None:
    """Delete what a finding names: a switch, an argument, a plugin or a configuration."""
    place, _, key = field.partition(".arguments.")
    numbers = [int(number) for number in re.findall(r"\[(\d+)\]", place)]
    is_plugin, switch = place.startswith("tiers"), place.rpartition("].")[2] if "]." in place[-40:] else ""
    items = policy["tiers"][numbers[0]]["plugins"] if is_plugin else policy["configurations"]
    item = items[numbers[-1]]
    if key:
        del item["arguments"][key]
    elif switch.startswith("enable"):
        del item[switch]
    else:
        items.remove(item)


def _set(policy: Policy, field: str, key: str, value: str, name: str) -> None:
    plugin = (
        _of(policy, name)[1] if name else policy["tiers"][int(field[6])]["plugins"][int(re.findall(r"\d+", field)[1])]
    )
    holder = plugin if key.startswith("enable") and key not in PLUGINS[plugin["name"]].arguments else (
        plugin.setdefault("arguments", {})
    )  # fmt: skip
    holder[key] = yaml.safe_load(value)


def _move(policy: Policy, name: str, place: str, others: str) -> None:
    tier, plugin = _of(policy, name)
    tier.remove(plugin)
    if place == "before":
        policy["tiers"].insert(0, {"plugins": [plugin]})
    else:
        target = policy["tiers"][int(others) - 1]["plugins"] if others.isdecimal() else _of(policy, others)[0]
        target.append(plugin)


def _apply(policy: Policy, finding: LintFinding, alternative: str) -> None:
    text = re.sub(r"^(to [^,]*|for Volcano), ", "", alternative)
    for step in text.split(" and keep ")[0].split("; "):
        if step in ("leave it on", "remove it", "remove this configuration"):
            _delete_field(policy, finding.field)
        elif step == "add it to actions":
            _add(policy, finding.text.split()[0])
        elif found := re.fullmatch(r"remove (\S+)", step):
            _remove(policy, found[1])
        elif found := re.fullmatch(r"add (\S+)(?: after allocate| to the first tier| or reclaim)?", step):
            _add(policy, found[1])
        elif found := re.fullmatch(r"set (\S+): (\S+)(?: on (\S+))?", step):
            _set(policy, finding.field, found[1], found[2], found[3] or "")
        elif found := re.fullmatch(r"leave (\w+) on", step):
            del policy["tiers"][0]["plugins"][int(re.findall(r"\d+", finding.field)[1])][found[1]]
        elif found := re.fullmatch(r"put (\S+) (?:after (\S+)|first)", step):
            _reorder(policy, found[1], found[2])
        elif found := re.fullmatch(r"put (\S+) into (?:tier (\d+)|a tier (before) (\S+))", step):
            _move(policy, found[1], found[3] or "", found[2] or found[4])
        elif found := re.fullmatch(r"put (\S+) and (\S+) into one tier", step.replace(", ", ",")):
            first, *others = found[1].split(",")
            for name in (*others, found[2]):
                _move(policy, name, "", first)
        else:
            raise AssertionError(f"no reader of remedies understands {step!r}")


def _findings(policy: str, case: dict[str, Any]) -> list[LintFinding]:
    manifests = [("queues", case["queues"])] if "queues" in case else []
    return [finding for finding in lint(policy, "conf", manifests) if finding.source == "conf"]


def _alternatives(finding: LintFinding) -> list[str]:
    return [text for text in finding.remedy.split(", or ") if not re.search(UNREADABLE, text)]


REMEDIES = [
    pytest.param(case, finding, alternative, id=f"{case['name']}: {finding.field}: {alternative}")
    for case in CASES
    for finding in _findings(case["policy"], case)
    for alternative in _alternatives(finding)
]


@pytest.mark.parametrize(("case", "finding", "alternative"), REMEDIES)
def test_a_remedy_ends_its_finding_and_no_later_remedy_undoes_it(
    case: dict[str, Any], finding: LintFinding, alternative: str
) -> None:
    policy, chosen = yaml.safe_load(case["policy"]), [(finding, alternative)]
    seen = [copy.deepcopy(policy)]
    while chosen:
        found, text = chosen[0]
        _apply(policy, found, text)
        after = _findings(yaml.safe_dump(policy, sort_keys=False), case)
        assert found.text not in {other.text for other in after}
        assert policy not in seen, "the remedies lead in a circle"
        seen.append(copy.deepcopy(policy))
        chosen = [(other, text) for other in after for text in _alternatives(other)[:1]]
