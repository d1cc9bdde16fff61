"""Policies that the loader accepts, and policies that it refuses with exact messages (`refusals.yaml`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from schedspec.scheduler.actions import ACTIONS as IMPLEMENTED_ACTIONS
from schedspec.scheduler.plugins import PLUGINS as IMPLEMENTED
from schedspec.scheduler.policy.loader import DEFAULT_TEXT, PolicyError, load_policy
from schedspec.scheduler.policy.model import OFF_BY_DEFAULT, PluginOption
from schedspec.scheduler.policy.schema import ACTIONS, MISSING_ACTIONS, MISSING_PLUGINS, PLUGINS, SCORING_ONLY, SWITCHES

HERE = Path(__file__).parent
TEMPLATES = HERE.parents[2] / "templates" / "policies"
REFUSALS = yaml.safe_load((HERE / "refusals.yaml").read_text())

CLOUD = """
default_scheduler_conf:
  actions: allocate, backfill, preempt, reclaim # Enable the reclaim action.
  metrics:
    interval: 30s
    type: ''
  tiers:
    - plugins:
        - name: priority
        - enableJobStarving: false
          enablePreemptable: false
          name: gang
        - name: conformance
    - plugins:
        - enablePreemptable: false
          name: drf
        - name: predicates
        - name: capacity # Enable the capacity plugin.
          enableHierarchy: true # Enable hierarchical queues.
        - name: nodeorder
        - arguments:
            binpack.cpu: 1
            binpack.memory: 1
            binpack.resources: nvidia.com/gpu
            binpack.resources.nvidia.com/gpu: 2
            binpack.weight: 10
          name: binpack
colocation_enable: ''
"""


@pytest.mark.parametrize("case", REFUSALS, ids=[case["name"] for case in REFUSALS])
def test_a_file_is_refused_with_line_field_value_and_remedy(case: dict[str, Any]) -> None:
    with pytest.raises(PolicyError) as caught:
        load_policy(case["file"], "conf")
    rendered = [problem.render("conf") for problem in caught.value.problems]
    assert len(rendered) == len(case["errors"]), "\n".join(rendered)
    for expected in case["errors"]:
        assert any(expected in text for text in rendered), f"{expected}\nnot in\n{caught.value}"
    assert [problem.line for problem in caught.value.problems] == sorted(p.line for p in caught.value.problems)
    assert all(problem.remedy for problem in caught.value.problems)


def test_the_default_policy_is_volcanos() -> None:
    policy = load_policy(DEFAULT_TEXT, "default")
    assert policy.actions == ("enqueue", "allocate", "backfill")
    assert [[option.name for option in tier] for tier in policy.tiers] == [
        ["priority", "gang", "conformance"],
        ["overcommit", "drf", "predicates", "proportion", "nodeorder"],
    ]


def test_a_file_wrapped_by_a_cloud_provider_is_read_unchanged() -> None:
    policy = load_policy(CLOUD, "conf")
    assert policy.actions == ("allocate", "backfill", "preempt", "reclaim")
    assert [[option.name for option in tier] for tier in policy.tiers] == [
        ["priority", "gang", "conformance"],
        ["drf", "predicates", "capacity", "nodeorder", "binpack"],
    ]
    gang, capacity, binpack = (policy.plugin(name) for name in ("gang", "capacity", "binpack"))
    assert gang is not None
    assert capacity is not None
    assert binpack is not None
    assert not gang.enabled("enableJobStarving")
    assert gang.enabled("enableReclaimable")
    assert capacity.enabled("enableHierarchy")
    assert binpack.arguments["binpack.resources.nvidia.com/gpu"] == 2


def test_a_file_in_a_config_map_is_read_and_errors_have_the_lines_of_the_manifest() -> None:
    manifest = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: volcano-scheduler-configmap}\ndata:\n"
        "  volcano-scheduler.conf: |\n    actions: allocate\n    tiers:\n    - plugins:\n      - name: %s\n"
    )
    assert load_policy(manifest % "gang", "conf").actions == ("allocate",)
    with pytest.raises(PolicyError, match=r"conf:9: tiers\[0\]\.plugins\[0\]\.name: 'gangg'"):
        load_policy(manifest % "gangg", "conf")
    with pytest.raises(PolicyError, match="this object contains no policy"):
        load_policy("kind: ConfigMap\ndata: {}", "conf")


def test_every_switch_is_on_by_default_except_two() -> None:
    option = PluginOption("capacity")
    assert {switch for switch in SWITCHES if not option.enabled(switch)} == OFF_BY_DEFAULT
    for switch in SWITCHES:
        assert PluginOption("capacity", {switch: True}).enabled(switch)
        assert not PluginOption("capacity", {switch: False}).enabled(switch)


def test_every_switch_is_accepted_in_volcanos_spelling() -> None:
    lines = "\n".join(f"    {switch}: false" for switch in sorted(SWITCHES))
    policy = load_policy(
        f"actions: allocate\ntiers:\n- plugins:\n  - name: gang\n{lines}\n    enableNamespaceOrder: true", "conf"
    )
    assert policy.tiers[0][0].switches == dict.fromkeys(SWITCHES, False)


def test_arguments_of_actions_are_kept_by_action() -> None:
    text = "actions: preempt\nconfigurations:\n- name: preempt\n  arguments: {enableTopologyAwarePreemption: true}"
    assert load_policy(text, "conf").configurations == {"preempt": {"enableTopologyAwarePreemption": True}}


def test_a_plugin_of_volcano_that_only_ranks_is_accepted_and_ignored() -> None:
    policy = load_policy("actions: allocate\ntiers:\n- plugins:\n  - name: task-topology\n  - name: gang", "conf")
    assert [option.name for option in policy.tiers[0]] == ["gang"]


def test_all_service_type_arguments_of_capacity_card_are_accepted() -> None:
    text = (
        "actions: reclaim\ntiers:\n- plugins:\n  - name: capacity-card\n    arguments:\n      overCommitFactor: 2\n"
        "      podOwnerReferenceToServiceType: {ReplicaSet: inference, Job: training}\n"
        "      allowServiceTypeByPodOwnerReferences: true\n"
    )
    option = load_policy(text, "conf").plugin("capacity-card")
    assert option is not None
    assert option.arguments["podOwnerReferenceToServiceType"] == {"ReplicaSet": "inference", "Job": "training"}


def test_the_schema_names_exactly_the_plugins_that_exist() -> None:
    assert set(PLUGINS) == set(IMPLEMENTED)
    assert not set(PLUGINS) & (set(MISSING_PLUGINS) | SCORING_ONLY)


def test_the_schema_names_exactly_the_actions_that_exist() -> None:
    assert set(ACTIONS) == set(IMPLEMENTED_ACTIONS)


@pytest.mark.parametrize("path", sorted(TEMPLATES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_policy_template_loads_except_the_contradictory_one(path: Path) -> None:
    if path.stem == "capacity-and-proportion":
        with pytest.raises(PolicyError, match="not together with capacity"):
            load_policy(path.read_text(), path.name)
    else:
        assert load_policy(path.read_text(), path.name).actions


def test_docs_name_every_action_plugin_switch_and_argument() -> None:
    text = (HERE.parents[2] / "docs" / "policies.md").read_text()
    names = {*SWITCHES, *ACTIONS, *MISSING_ACTIONS, *PLUGINS, *SCORING_ONLY}
    names |= {name for rule in PLUGINS.values() for name in (*rule.arguments, *(f"{p}<name>" for p in rule.families))}
    names |= {name for arguments in ACTIONS.values() for name in arguments}
    assert not [name for name in sorted(names) if f"`{name}`" not in text]


@pytest.mark.parametrize("bracket", ["[", "{"])
def test_a_file_that_is_nested_too_deeply_is_refused(bracket: str) -> None:
    with pytest.raises(PolicyError, match="conf:1: file: nested too deep; close the brackets that were opened"):
        load_policy(bracket * 5000, "conf")


@given(st.text())
def test_any_text_is_a_policy_or_a_policy_error(text: str) -> None:
    try:
        load_policy(text, "conf")
    except PolicyError as error:
        assert error.problems  # noqa: PT017


_SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text("abc:-[]", max_size=4)
)
_WORDS = st.sampled_from(
    [
        "actions",
        "tiers",
        "plugins",
        "name",
        "arguments",
        "configurations",
        "gang",
        "capacity",
        "enableHierarchy",
        "metrics",
    ]
)


@given(
    st.recursive(
        _SCALARS | _WORDS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=4)
    )
)
def test_any_yaml_is_a_policy_or_a_policy_error(value: object) -> None:
    try:
        load_policy(yaml.safe_dump(value), "conf")
    except PolicyError as error:
        assert all(problem.line > 0 and problem.text for problem in error.problems)  # noqa: PT017
