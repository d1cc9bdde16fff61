"""A redacted state leads to the same decisions and contains nothing that identifies its owner."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schedspec.cli.names import names_command
from schedspec.scheduler.inputs import PolicyLoaded, write_line
from schedspec.scheduler.model.state_kinds import STATE_KINDS
from schedspec.virtual.state import State
from schedspec.virtual.state.redaction import redact
from schedspec.virtual.state.renaming import NameRow, with_names
from tests.support.core import random_clusters, random_gangs
from tests.support.core.random_tables import random_table
from tests.support.core.states import decisions_on, state_of


def _names(open_state: State, redacted: State) -> dict[str, str]:
    """Return the replacement of every key, from the objects in order: a redaction keeps the order of names."""
    found = {}
    for kind, items in open_state.objects.items():
        before, after = sorted(items), sorted(redacted.objects[kind])
        assert len(before) == len(after), kind
        found.update(zip(before, after, strict=True))
    return found


def _renamed(decisions: Any, new: dict[str, str]) -> Iterator[Any]:
    """Yield the decisions of a cycle, with the names replaced."""
    for it in decisions.binds:
        yield "bind", new[it.task], new[it.node]
    for it in decisions.evictions:
        yield "evict", new[it.task], new.get(it.reason.preemptor, ""), it.reason.action
    for it in decisions.nominations:
        yield "nominate", new[it.task], new[it.node] if it.node else ""
    yield "phases", sorted((new[job], phase) for job, phase in decisions.phases.items())
    yield "pipelined", sorted((new[task], new[node]) for task, node in decisions.pipelined.items())
    for job, refusal in sorted(decisions.refusals.items()):
        yield "refuse", new[job], [type(why).__name__ for why in refusal.items]
    yield (
        "queues",
        sorted((new[name], msgspec.json.encode(it, order="deterministic")) for name, it in decisions.queues.items()),
    )


def assert_same_decisions(state: State) -> int:
    """Compare the decisions on the state and on the redacted state; return the number of cycles.

    A text that names what was redacted can be read back.
    """
    rows: list[NameRow] = []
    redacted = redact(state, rows.append)
    new = _names(state, redacted)
    assert len({row.new for row in rows}) == len(rows)
    assert {name: with_names(f"why: “{token}”.", rows) for name, token in new.items()} == {
        name: f"why: “{name}”." for name in new
    }
    same = {name: name for name in new.values()}
    before = [list(_renamed(it, new)) for it in decisions_on(state)]
    after = [list(_renamed(it, same)) for it in decisions_on(redacted)]
    assert after == before
    return len(before)


@given(st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_redaction_changes_no_decision_about_evictions(rng: random.Random) -> None:
    assert assert_same_decisions(state_of(random_table(rng)))


@given(random_clusters.tables())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_redaction_changes_no_decision_about_constraints(table: dict[str, Any]) -> None:
    assert assert_same_decisions(state_of(table))


@pytest.mark.parametrize("seed", range(30))
def test_redaction_changes_no_decision_about_hyper_nodes(seed: int) -> None:
    rng = random.Random(seed)
    nodes, hyper_nodes = random_gangs.tree(rng)
    jobs = [random_gangs.job(rng, number, late=False) for number in range(rng.randint(2, 6))]
    queues = [{"name": name, "deserved": f"{rng.randint(0, 8)} cpu"} for name in "ab"]
    table = {"policy": rng.choice(random_gangs.POLICIES), "nodes": nodes, "queues": queues, "jobs": jobs}
    assert assert_same_decisions(state_of({**table, "objects": {"HyperNode": hyper_nodes}}))


def test_hyper_nodes_lose_their_names_and_patterns_and_keep_their_nodes() -> None:
    of_racks = {"labelMatch": {"matchLabels": {f"{SECRET}.com/rack": "r"}}}
    selectors = [{"regexMatch": {"pattern": f"^{SECRET}"}}, {"regexMatch": {"pattern": f"{SECRET}("}}, of_racks]
    members = [{"type": "Node", "selector": it} for it in selectors]
    spec = {"tier": 1, "tierName": SECRET, "members": members}
    rack = {"metadata": {"name": f"{SECRET}-rack"}, "spec": spec}
    wants = {**TABLE["jobs"][0], "podgroup": {"spec": {"networkTopology": {"mode": "hard", "highestTierName": SECRET}}}}
    nodes = [{**TABLE["nodes"][0], "labels": {f"{SECRET}.com/rack": "r"}}, {"name": "other", "has": "1 cpu"}]
    redacted = redact(state_of({**TABLE, "nodes": nodes, "jobs": [wants], "objects": {"HyperNode": [rack]}}))
    (found,) = redacted.objects["HyperNode"].values()
    assert SECRET not in b"".join(write_line(it) for it in redacted.inputs()).decode()
    assert found.spec.members[0].selector.exact_match.name == min(redacted.objects["Node"])
    labels = found.spec.members[-1].selector.label_match.match_labels
    assert labels.items() <= redacted.objects["Node"][min(redacted.objects["Node"])].metadata.labels.items()
    (group,) = redacted.objects["PodGroup"].values()
    assert group.spec.network_topology.highest_tier_name == found.spec.tier_name != ""


TABLES = Path(__file__).parents[3] / "scheduler" / "decide" / "tables"


def cases() -> Iterator[Any]:
    for path in sorted(TABLES.glob("*.yaml")):
        for case in yaml.safe_load(path.read_text("utf-8")):
            if isinstance(case, dict) and "policy" in case and "jobs" in case:
                yield pytest.param(case, id=f"{path.stem}: {case.get('name')}")


@pytest.mark.parametrize("case", [*cases()])
def test_redaction_changes_no_decision_in_the_tables_of_decide(case: dict[str, Any]) -> None:
    assert_same_decisions(state_of(case))


SECRET = "falcon"
TABLE = {
    "policy": (
        f"# {SECRET}: ask Ann\n"
        'actions: "enqueue, allocate, reclaim"\ntiers:\n'
        "- plugins: [{name: gang}, {name: predicates}, {name: capacity, enableHierarchy: true}, {name: nodeorder}]\n"
    ),
    "nodes": [{"name": f"{SECRET}-1", "has": "8 cpu, 4 gpu", "labels": {"zone": SECRET, f"{SECRET}.com/x": "y"}}],
    "queues": [
        {"name": SECRET, "deserved": "4 cpu"},
        {"name": f"{SECRET}-b", "parent": SECRET, "deserved": "4 cpu"},
        {"name": "default"},
    ],
    "jobs": [
        {
            "name": f"{SECRET}-train",
            "queue": f"{SECRET}-b",
            "tasks": "2 x 1 cpu",
            "pod": {
                "metadata": {
                    "labels": {"zone": SECRET, "owner": SECRET},
                    "annotations": {"volcano.sh/comment": SECRET},
                    "ownerReferences": [{"kind": "Job", "name": SECRET, "uid": SECRET}],
                },
                "spec": {
                    "nodeSelector": {"zone": SECRET},
                    "priorityClassName": SECRET,
                    "tolerations": [{"key": f"{SECRET}.com/t", "value": SECRET, "effect": "NoSchedule"}],
                    "volumes": [{"name": SECRET, "persistentVolumeClaim": {"claimName": SECRET}}],
                    "affinity": {
                        "podAntiAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": [
                                {"topologyKey": "zone", "namespaces": [SECRET],
                                 "labelSelector": {"matchLabels": {"owner": SECRET}}}
                            ]
                        }
                    },
                },
                "status": {"conditions": [{"type": "Ready", "status": "False", "message": SECRET}]},
            },
        }
    ],
}  # fmt: skip


def test_a_redacted_state_contains_no_name_of_the_owner() -> None:
    redacted = redact(state_of(TABLE))
    text = b"".join(write_line(it) for it in redacted.inputs()).decode()
    assert redacted.policy is not None
    assert SECRET not in text + redacted.policy.text + redacted.policy.source


def test_parents_of_queues_get_the_same_new_names_as_the_queues() -> None:
    queues = redact(state_of(TABLE)).objects["Queue"]
    parents = {name: it.spec.parent for name, it in queues.items()}
    child, parent = next((name, parent) for name, parent in parents.items() if parent)
    assert parent in queues
    assert child > parent
    assert "default" in queues


def test_labels_that_no_selector_uses_are_removed() -> None:
    node = next(iter(redact(state_of(TABLE)).objects["Node"].values()))
    assert len(node.metadata.labels) == 2  # the zone, and the name of the host
    assert node.metadata.labels["kubernetes.io/hostname"] == node.metadata.name


def test_keys_keep_their_order_if_one_namespace_is_a_prefix_of_another() -> None:
    state = state_of({**TABLE, "jobs": []})
    for namespace in ("a", "a-b", "a0", "default", "default-x", "defaults", "kube-system", "zed"):
        for name in ("train-2", "train-10", "train", "train-0x"):
            meta = {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}"}
            state.put("Pod", msgspec.convert({"metadata": meta}, STATE_KINDS["Pod"].struct))
    redacted = redact(state)
    new = {it.metadata.uid: it.metadata for it in redacted.objects["Pod"].values()}
    by_uid = dict(zip(sorted(it.metadata.uid for it in state.objects["Pod"].values()), sorted(new), strict=True))
    before = [by_uid[it.metadata.uid] for _, it in sorted(state.objects["Pod"].items())]
    assert before == [it.metadata.uid for _, it in sorted(redacted.objects["Pod"].items())]
    numbers = {it.metadata.name: new[by_uid[it.metadata.uid]].name for it in state.objects["Pod"].values()}
    assert numbers["train-10"].endswith("-10")
    assert new[by_uid["default-train"]].namespace == "default"


def test_rules_about_labels_of_pods_are_redacted_and_change_no_decision() -> None:
    """Two pods of one rule share no card; without the label or the rule they would share one."""
    policy = (
        'actions: "allocate"\ntiers:\n'
        "- plugins: [{name: gang}, {name: deviceshare, arguments: {deviceshare.VGPUEnable: true,\n"
        f"    deviceshare.GPUExclusiveRules: [{{{SECRET}/kind: {SECRET}, tier: gold}}],\n"
        f"    deviceshare.KnownGeometriesCMName: {SECRET}}}}}]\n"
    )
    has = "8 cpu, 10 volcano.sh/vgpu-number, 8000 volcano.sh/vgpu-memory, 100 volcano.sh/vgpu-cores"
    card = {"volcano.sh/node-vgpu-register": "GPU-a,10,8000,NVIDIA-A10,true,hami-core:"}
    job = {"tasks": "1 x 100 volcano.sh/vgpu-memory", "phase": "Inqueue"}
    labels = {f"{SECRET}/kind": SECRET, "tier": "gold"}
    pods = {"one": labels, "two": labels, "other": {"tier": "gold"}}
    table = {
        "policy": policy,
        "nodes": [{"name": "n1", "has": has, "annotations": card}],
        "queues": [{"name": "default"}],
        "jobs": [{**job, "name": name, "pod": {"metadata": {"labels": own}}} for name, own in pods.items()],
    }

    assert_same_decisions(state_of(table))

    redacted = redact(state_of(table))
    assert len(decisions_on(redacted)[0].binds) == 2
    assert redacted.policy is not None
    assert SECRET not in redacted.policy.text + b"".join(write_line(it) for it in redacted.inputs()).decode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "kind: ConfigMap\ndata:\n  volcano-scheduler.conf: |\n    actions: allocate\n",
        f"default_scheduler_conf: {{actions: allocate}}\nother: {SECRET}",
        f"actions: allocate\nmetrics: {{address: 'http://{SECRET}'}}",
    ],
)
def test_redaction_removes_everything_around_a_policy(text: str) -> None:
    state = state_of({**TABLE, "jobs": []})
    state.policy = PolicyLoaded(f"{SECRET}.yaml", text) if text else None
    policy = redact(state).policy
    assert policy is None if not text else policy is not None and policy.text == "actions: allocate\n"


def test_a_result_is_read_back_by_the_table_of_names(tmp_path: Path) -> None:
    rows: list[NameRow] = []
    pods = sorted(redact(state_of(TABLE), rows.append).objects["Pod"])
    (tmp_path / "names.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, rows)))
    found = CliRunner().invoke(names_command, [str(tmp_path / "names.jsonl")], input=f"evicted: {', '.join(pods)}\n")
    assert found.output == f"evicted: {', '.join(sorted(state_of(TABLE).objects['Pod']))}\n"


@pytest.mark.parametrize(
    ("table", "text", "problem"),
    [
        (b"{}\nno row", b"", "names.jsonl:1: is no line of a table of names"),
        (b"", b"\x1f\x8b\xff", "is no text: name a plan, a page or a feature, not a dump"),
    ],
)
def test_what_is_no_table_and_no_text_is_refused(tmp_path: Path, table: bytes, text: bytes, problem: str) -> None:
    (tmp_path / "names.jsonl").write_bytes(table)
    found = CliRunner().invoke(names_command, [str(tmp_path / "names.jsonl")], input=text)
    assert problem in found.output
    assert "Traceback" not in found.output
    assert isinstance(found.exception, SystemExit | None)
