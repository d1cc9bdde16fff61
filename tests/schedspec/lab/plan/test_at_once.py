"""The immediate effects of a change, and the world with which it is compared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from schedspec.lab.plan import ChangeError, Plan, Request, Side, judge, make_plan, parse_conditions
from schedspec.lab.plan.text import MAX_LINES, render_markdown, render_text
from schedspec.scheduler.model.names import GROUP_NAME
from schedspec.scheduler.model.objects.meta import OwnerReference
from schedspec.scheduler.policy.source import PolicyError
from schedspec.schedulers import find
from schedspec.virtual.state import TooOldError
from schedspec.virtual.state.dump import write_state
from tests.support.core.states import NOW, state_of
from tests.support.kueue_state import cluster_queue

RECLAIM = """
actions: "allocate, backfill, reclaim"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: capacity}, {name: nodeorder}]
"""
OWNED = {"metadata": {"ownerReferences": [{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j"}]}}
TABLE: dict[str, Any] = {
    "policy": RECLAIM,
    "nodes": [{"name": "n[1-2]", "has": "16 cpu, 4 gpu"}],
    "queues": [{"name": "a", "deserved": "2 gpu"}, {"name": "b", "deserved": "4 gpu"}],
    "jobs": [
        {"name": "low", "queue": "b", "min": 1, "tasks": "4 x 1 gpu running on n1", "pod": OWNED},
        {"name": "too", "queue": "b", "min": 1, "tasks": "4 x 1 gpu running on n2", "pod": OWNED},
        {"name": "new1", "queue": "a", "tasks": "2 x 1 gpu", "pod": OWNED},
        {"name": "new2", "queue": "a", "tasks": "2 x 1 gpu", "pod": OWNED},
    ],
}


def queue(name: str, **spec: Any) -> str:
    head = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
    return yaml.safe_dump({**head, "metadata": {"name": name}, "spec": spec})


def gpus(number: int) -> dict[str, str]:
    return {"nvidia.com/gpu": str(number)}


def plan(
    tmp_path: Path,
    proposed: dict[str, str],
    now: dict[str, str] | None = None,
    table: dict[str, Any] = TABLE,
    **more: Any,
) -> Plan:
    write_state(state_of(table), tmp_path / "state.jsonl.gz")
    return make_plan(
        Request(
            tmp_path / "state.jsonl.gz",
            None if now is None else Side("old", now),
            Side("new", proposed),
            out=tmp_path / "out",
            clock=NOW + 7200,
            **more,
        )
    )


def test_a_change_without_effect_causes_no_evictions_and_no_starts(tmp_path: Path) -> None:
    found = plan(tmp_path, {"q.yaml": queue("a", deserved=gpus(2))})
    assert found.changes == []
    assert (found.at_once.evictions, found.at_once.starts, found.at_once.refused) == ([], [], [])
    assert len(found.at_once.now.evictions) == len(found.at_once.proposed.evictions) == 2


def test_defaults_and_the_notation_of_an_amount_are_no_change(tmp_path: Path) -> None:
    found = plan(tmp_path, {"q.yaml": queue("a", deserved={"nvidia.com/gpu": 2}, reclaimable=True, weight=1)})
    assert found.changes == []


def test_a_field_that_a_manifest_no_longer_has_is_a_change(tmp_path: Path) -> None:
    found = plan(tmp_path, {"q.yaml": queue("a", reclaimable=False)})
    assert found.changes == ["Queue a: reclaimable none → False, deserved nvidia.com/gpu 2 → none"]


def test_a_larger_share_evicts_pods_of_the_queue_above_its_share(tmp_path: Path) -> None:
    found = plan(tmp_path, {"q.yaml": queue("a", deserved=gpus(4))})
    assert found.changes == ["Queue a: deserved nvidia.com/gpu 2 → nvidia.com/gpu 4"]
    assert {(it.queue, it.preemptor, it.action, it.runs_again) for it in found.at_once.evictions} == {
        ("b", "t/new2", "reclaim", False)
    }
    assert len(found.at_once.evictions) == 2
    assert all(it.node in ("n1", "n2") and it.why for it in found.at_once.evictions)


def test_a_smaller_share_spares_pods_and_refuses_their_preemptor(tmp_path: Path) -> None:
    found = plan(tmp_path, {"q.yaml": queue("a", deserved=gpus(1))})
    assert len(found.at_once.spared) == 2
    assert [(it.job, it.was) for it in found.at_once.refused] == [("t/new1", "starts")]
    assert found.at_once.refused[0].why


def test_without_reclaim_no_pod_is_evicted(tmp_path: Path) -> None:
    found = plan(tmp_path, {"p.yaml": RECLAIM.replace(", reclaim", "")}, {"p.yaml": RECLAIM})
    assert found.changes == ["the policy p.yaml: actions allocate, backfill, reclaim → allocate, backfill"]
    assert len(found.at_once.spared) == 2


def test_only_what_differs_between_the_two_sets_is_a_change(tmp_path: Path) -> None:
    drifted = queue("b", deserved=gpus(9))
    found = plan(tmp_path, {"b.yaml": drifted, "a.yaml": queue("a", deserved=gpus(4))}, {"b.yaml": drifted})
    assert [it.partition(":")[0] for it in found.changes] == ["Queue a"]


def test_an_object_that_only_the_first_set_has_is_removed(tmp_path: Path) -> None:
    found = plan(tmp_path, {}, {"a.yaml": queue("a", deserved=gpus(2))})
    assert found.changes == ["Queue a is removed: 2 jobs and 0 running pods in it have no queue"]
    assert [it.job for it in found.at_once.refused] == ["t/new1"]


def test_a_removed_class_names_the_work_that_needs_it(tmp_path: Path) -> None:
    job = {**TABLE["jobs"][0], "pod": {**OWNED, "spec": {"priorityClassName": "low"}}}
    kept = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "low"}, "value": 1}
    table = {**TABLE, "jobs": [job], "objects": {"PriorityClass": [kept]}}
    found = plan(tmp_path, {"q.yaml": queue("a", deserved=gpus(2))}, {"c.yaml": yaml.safe_dump(kept)}, table=table)
    assert any("PriorityClass low is removed: 4 objects that name it" in change for change in found.changes)


IGNORED = {
    "a.yaml": "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: v}\nspec: {}\n"
    "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n---\napiVersion: apps/v1\nkind: Deployment\n",
    "chart/templates/b.yaml": "kind: Service\nmetadata:\n  name: {{ .Values.name }}\n  {{- with .Values.x }}\n",
}


def test_a_plan_names_every_manifest_that_it_did_not_take(tmp_path: Path) -> None:
    found = plan(tmp_path, {**IGNORED, "q.yaml": queue("a", deserved=gpus(4))})
    text = "ignored, because a plan does not read them: 1 ClusterQueue, 2 Deployments, 1 file that is not YAML"
    assert text in found.notes


@pytest.mark.parametrize(
    ("file", "text", "kinds"),
    [
        ("job.yaml", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\n", "1 Job"),
        ("a.yaml", IGNORED["a.yaml"], "1 ClusterQueue, 2 Deployments"),
        ("x.feature", "Feature: f\n", "no manifest"),
        ("empty.yaml", "", "no manifest"),
    ],
)
def test_one_file_of_which_a_plan_reads_nothing_is_refused(tmp_path: Path, file: str, text: str, kinds: str) -> None:
    with pytest.raises(ChangeError, match=f"has nothing that a plan reads: {kinds}; name a policy.*--submit"):
        plan(tmp_path, {file: text})


def test_lint_judges_the_queues_that_a_plan_takes(tmp_path: Path) -> None:
    found = plan(tmp_path, {"q.yaml": queue("a", deserved=gpus(4), parent="lost")})
    assert any("lint: new:q.yaml:8: warning: Queue a.spec.parent: has no effect" in note for note in found.notes)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"deservd": {"cpu": "1"}}, "Queue a.spec.deservd: unknown field"),
        ({"deserved": {"cpu": "1 Gi"}}, "is not a quantity"),
        ({"weight": 0}, "must be at least 1"),
    ],
)
def test_a_queue_that_the_api_server_would_refuse_is_refused_at_its_line(
    tmp_path: Path, spec: dict[str, Any], text: str
) -> None:
    with pytest.raises(ChangeError, match=text) as refused:
        plan(tmp_path, {"q.yaml": queue("a", **spec)})
    assert str(refused.value).startswith("new:q.yaml:6: ") or ":7: " in str(refused.value)


def test_a_hyper_node_is_a_change(tmp_path: Path) -> None:
    text = (
        "apiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata: {name: rack}\n"
        "spec: {tier: 1, members: [{type: Node, selector: {exactMatch: {name: n1}}}]}\n"
    )
    assert plan(tmp_path, {"h.yaml": text}).changes == ["HyperNode rack is new"]


BY_BUDGETS = RECLAIM.replace("{name: conformance}]", "{name: conformance}, {name: pdb}]")
LABELLED = {**TABLE, "jobs": [{**job, "labels": {"team": "b"}} for job in TABLE["jobs"][:2]] + TABLE["jobs"][2:]}


def budget(**spec: Any) -> str:
    head = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "keep", "namespace": "t"}}
    return yaml.safe_dump({**head, "spec": {"selector": {"matchLabels": {"team": "b"}}, **spec}})


@pytest.mark.parametrize(
    ("spec", "policy", "evicted"),
    [
        ({"minAvailable": 8}, BY_BUDGETS, 0),
        ({"minAvailable": 7}, BY_BUDGETS, 1),
        ({"maxUnavailable": 1}, BY_BUDGETS, 0),  # a Job has no scale, so that the budget permits nothing
        ({"minAvailable": 8}, RECLAIM, 2),
        ({"minAvailable": 8}, BY_BUDGETS.replace(", reclaim", ""), 0),
    ],
)
def test_the_policy_decides_the_effect_of_a_budget(
    tmp_path: Path, spec: dict[str, Any], policy: str, evicted: int
) -> None:
    pod = {"metadata": {"ownerReferences": [{**OWNED["metadata"]["ownerReferences"][0], "controller": True}]}}
    waiting = [{"name": name, "queue": "a", "tasks": "1 x 1 gpu"} for name in ("one", "two")]
    jobs = [{**job, "pod": pod} for job in LABELLED["jobs"][:2]] + waiting
    found = plan(tmp_path, {"b.yaml": budget(**spec)}, table={**LABELLED, "policy": policy, "jobs": jobs})
    assert len(found.at_once.proposed.evictions) == evicted
    is_read = policy is BY_BUDGETS
    assert any("PodDisruptionBudget t/keep is new: it permits" in it for it in found.changes) is is_read
    assert any("1 PodDisruptionBudget; budgets need" in it for it in found.notes) is not is_read


def test_a_removed_budget_names_the_pods_that_it_covers(tmp_path: Path) -> None:
    kept = yaml.safe_load(budget())
    table = {**LABELLED, "policy": BY_BUDGETS, "objects": {"PodDisruptionBudget": [kept]}}
    found = plan(tmp_path, {"q.yaml": queue("b", deserved=gpus(4))}, {"b.yaml": budget()}, table=table)
    assert found.changes == ["PodDisruptionBudget t/keep is removed: it covers 8 pods"]
    assert len(found.at_once.evictions) == 2


@pytest.mark.parametrize(
    "spec",
    [{"minAvailable": "7"}, {"minAvailable": -1}, {"maxUnavailable": "101%"}, {"minAvailable": 1, "maxUnavailable": 1}],
)
def test_a_budget_that_the_api_server_would_refuse_is_refused(tmp_path: Path, spec: dict[str, Any]) -> None:
    with pytest.raises(ChangeError, match=r"new:b.yaml:\d+: .*spec.*(percentage|exclude)"):
        plan(tmp_path, {"b.yaml": budget(**spec)}, table={**LABELLED, "policy": BY_BUDGETS})


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("p.conf", RECLAIM.replace("backfill, ", "")),
        ("custom_scheduler_config_override", RECLAIM.replace("backfill, ", "")),
    ],
)
def test_the_object_that_holds_the_policy_is_not_named_as_ignored(tmp_path: Path, key: str, text: str) -> None:
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}, "data": {"a": "b"}}
    held = yaml.safe_dump({**other, "metadata": {"name": "policy"}, "data": {key: text}})
    found = plan(tmp_path, {"p.yaml": held, "o.yaml": yaml.safe_dump(other)})
    assert "ignored, because a plan does not read them: 1 ConfigMap" in found.notes
    assert found.changes == ["the policy p.yaml: actions allocate, backfill, reclaim → allocate, reclaim"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"status": {"allocatable": {"cpu": "16", "nvidia.com/gpu": "2", "pods": "110"}}}, "nvidia.com/gpu 4 → 2"),
        ({"status": {"allocatable": {"cpu": "16", "pods": "110"}}}, "nvidia.com/gpu 4 → none"),
        ({"spec": {"taints": [{"key": "spot", "effect": "NoSchedule"}]}}, "changes its taints"),
        ({"metadata": {"name": "n1", "labels": {"zone": "a"}}}, "changes its labels"),
        ({"spec": {"unschedulable": True}}, "is cordoned"),
    ],
)
def test_a_changed_node_says_what_changes(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    known = state_of(TABLE).objects["Node"]["n1"]
    item = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": known.metadata.labels}, **change}
    (found,) = plan(tmp_path, {"n.yaml": yaml.safe_dump(item)}).changes
    assert words in found


def test_a_note_names_an_object_that_two_files_have(tmp_path: Path) -> None:
    found = plan(tmp_path, {"base.yaml": queue("a", deserved=gpus(2)), "over.yaml": queue("a", deserved=gpus(4))})
    assert "Queue a is in new:base.yaml and in new:over.yaml: the latter is used" in found.notes
    assert found.changes == ["Queue a: deserved nvidia.com/gpu 2 → nvidia.com/gpu 4"]


def test_a_note_names_an_object_that_an_unchanged_file_has_as_well(tmp_path: Path) -> None:
    base = {"base.yaml": queue("a", deserved=gpus(2)), "not-read.yaml": "kind: Queue\nmetadata: [\n"}
    found = plan(tmp_path, base | {"over.yaml": queue("a", deserved=gpus(4))}, base)
    assert "Queue a is in new:base.yaml and in new:over.yaml: the latter is used" in found.notes


@pytest.mark.parametrize("text", [yaml.safe_dump(cluster_queue("q", 1)), queue("q", deserved=gpus(4))])
def test_of_kueue_a_note_names_what_two_files_have_and_what_kueue_does_not_read(text: str) -> None:
    crds = find("kueue").judging_definitions(None)
    if crds is None:
        pytest.skip("needs the definitions of Kueue")
    found = Side("new", {"a.yaml": text, "b.yaml": text}).declared(None, crds)
    is_read = "ClusterQueue" in text
    assert found.repeated == ["ClusterQueue q is in new:a.yaml and in new:b.yaml: the latter is used"] * is_read
    assert dict(found.ignored) == ({} if is_read else {"Queue": 2})


def test_a_note_names_objects_that_differ_from_the_first_set(tmp_path: Path) -> None:
    found = plan(tmp_path, {"a.yaml": queue("a", deserved=gpus(4))}, {"a.yaml": queue("a", deserved=gpus(3))})
    assert any("differs from" in note for note in found.notes)


def test_a_pod_without_an_owner_is_not_created_again(tmp_path: Path) -> None:
    table = {**TABLE, "jobs": [{key: it for key, it in job.items() if key != "pod"} for job in TABLE["jobs"]]}
    found = plan(tmp_path, {"q.yaml": queue("a", deserved=gpus(4))}, table=table)
    assert any("without an owner" in text for text in found.assumptions)
    assert len(found.at_once.evictions) == 2


# ------------------------------------------------------------------------------------------------------------- display


def test_the_text_has_at_most_forty_lines_and_names_victims_and_preemptors(tmp_path: Path) -> None:
    many = {**TABLE, "nodes": [{"name": "n[1-2]", "has": "90 cpu, 40 gpu"}], "queues": [{"name": "a"}, {"name": "b"}]}
    many["jobs"] = [
        {"name": f"low{at}", "queue": "b", "min": 0, "tasks": f"4 x 1 gpu running on n{at % 2 + 1}"} for at in range(20)
    ] + [{"name": f"new{at}", "queue": "a", "tasks": "4 x 1 gpu"} for at in range(20)]
    found = plan(tmp_path, {"q.yaml": queue("a", deserved=gpus(40))}, table=many, load="drain")
    found.assumptions = [f"assumption {at}" for at in range(50)]
    found.failed = ["evictions>0: 40"]
    lines = render_text(found).splitlines()
    assert len(lines) <= MAX_LINES
    assert lines[-1] == "worse than permitted: evictions>0: 40"
    assert any(line.startswith("  - t/low") and " for t/new" in line for line in lines)
    assert any("more evictions (-o json)" in line for line in lines)


def test_the_cause_of_an_eviction_is_not_cut_off_by_long_names(tmp_path: Path) -> None:
    found = plan(tmp_path, {"q.yaml": queue("a", deserved=gpus(4))})
    one = found.at_once.evictions[0]
    one.pod, one.why = f"t/{'long-' * 20}", "reclaimed for x; tier 1 decided (gang permits); others: 5 not needed"
    line = next(line for line in render_text(found).splitlines() if "long-" in line)
    assert line.endswith("tier 1 decided (gang permits)")


def test_names_of_a_cluster_cannot_end_a_table_or_mention_a_user(tmp_path: Path) -> None:
    found = plan(tmp_path, {"q.yaml": queue("a", deserved=gpus(4))})
    found.at_once.evictions[0].why = "x | <img src=y> `code` @everyone\n| z"
    row = next(line for line in render_markdown(found).splitlines() if "img src" in line)
    assert "<img" not in row
    assert "@everyone" not in row
    assert row.replace("\\|", "").count("|") == 5


def test_the_answer_survives_encoding_as_json(tmp_path: Path) -> None:
    found = plan(tmp_path, {"q.yaml": queue("a", deserved=gpus(4))})
    again = msgspec.json.decode(msgspec.json.encode(found), type=Plan)
    assert again == found
    assert (again.subject.resource, again.subject.nodes, len(again.subject.sha256)) == ("nvidia.com/gpu", 2, 64)


# ------------------------------------------------------------------------------------------------------------ over load


def test_over_the_load_a_queue_with_a_larger_share_waits_less(tmp_path: Path) -> None:
    found = plan(tmp_path, {"q.yaml": queue("a", deserved=gpus(4))}, load="drain", run_times="1h")
    (load,) = found.over_load
    waits = {it.queue: (it.now["wait_max"], it.proposed["wait_max"]) for it in load.queues}
    assert waits["a"] == (3601.0, 31.0)  # a pod starts after 1 s, and a victim ends after 30 s
    assert load.proposed["evicted_pods"] == 4
    assert load.now["evicted_pods"] == 2
    assert (tmp_path / "out" / "now.jsonl").is_file()
    assert load.jobs == 4


def test_a_range_of_run_times_yields_a_range_of_waits(tmp_path: Path) -> None:
    found = plan(tmp_path, {"q.yaml": queue("a", deserved=gpus(1))}, load="drain", run_times="range")
    waits = [it.proposed["wait_p95"] for it in found.over_load]
    assert [it.run_times for it in found.over_load] == ["best", "expected", "worst"]
    assert all(it is not None for it in waits)
    assert waits == sorted(waits, key=lambda it: it or 0.0)
    assert waits[0] != waits[2]
    assert " … " in render_text(found)


def test_a_trace_arrives_at_the_time_of_the_state(tmp_path: Path) -> None:
    trace = tmp_path / "jobs.csv"
    trace.write_text("at,seconds,cards,team\n100,60,1,a\n160,60,1,b\n")
    mapping = "submitted=at,duration=seconds,job_cards=cards,queue=team"
    found = plan(tmp_path, {"q.yaml": queue("a", deserved=gpus(4))}, load=str(trace), mapping=mapping, run_times="30m")
    assert found.over_load[0].jobs == 6


# -------------------------------------------------------------------------------------------------- verdict and errors


@pytest.mark.parametrize(
    ("condition", "fails"),
    [
        ("evictions>0", True),
        ("evictions>1", True),
        ("evictions>2", False),
        ("refused>0", False),
        ("evictions-over-load>1", True),
        ("lost-card-hours>1000", False),
        ("starvation", False),
        ("wait-p95>+10%", False),
        ("monitor", False),
    ],
)
def test_a_condition_fails_where_the_change_is_worse(tmp_path: Path, condition: str, *, fails: bool) -> None:
    found = plan(tmp_path, {"q.yaml": queue("a", deserved=gpus(4))}, load="drain", run_times="1h")
    failed = judge(found, parse_conditions([condition]))
    assert bool(failed) is fails
    assert all(it.startswith(condition) for it in failed)


def test_a_job_that_no_longer_starts_starves(tmp_path: Path) -> None:
    found = plan(tmp_path, {"q.yaml": queue("a", deserved=gpus(1), capability=gpus(1))}, load="drain", run_times="1h")
    assert found.over_load[0].starved == ["t/new1", "t/new2"]
    assert judge(found, parse_conditions(["starvation"])) == ["starvation: 2"]
    assert "2 jobs never start with the change" in render_text(found)


def test_a_queue_below_its_guarantee_is_a_finding(tmp_path: Path) -> None:
    without_reclaim = RECLAIM.replace(", reclaim", "")
    table = {
        **TABLE,
        "policy": without_reclaim,
        "queues": [{"name": "a", "deserved": "2 gpu"}, {"name": "b", "deserved": "4 gpu"}],
    }
    files = {"q.yaml": queue("a", deserved=gpus(4), guarantee={"resource": gpus(2)})}
    found = plan(tmp_path, files, table=table, load="drain", run_times="1h")
    (finding,) = found.over_load[0].findings
    assert (finding.rule, finding.subject) == ("below-guarantee", "a")
    assert judge(found, parse_conditions(["monitor"])) == ["monitor: 1"]
    assert "! below-guarantee: a (a): below its guarantee for 3600 s" in render_text(found)
    assert "| below-guarantee | a |" in render_markdown(found)


@pytest.mark.parametrize("text", ["evictions>", "waits>3", "evictions<3", "evictions>0; true"])
def test_an_invalid_condition_is_refused(text: str) -> None:
    with pytest.raises(ChangeError, match="is not a condition"):
        parse_conditions([text])


@pytest.mark.parametrize(
    ("files", "error", "problem"),
    [
        ({"p.yaml": RECLAIM.replace("reclaim", "recliam")}, PolicyError, "recliam"),
        ({"p.yaml": RECLAIM + "# 1", "o.yaml": RECLAIM.replace("backfill, ", "")}, None, ""),
        ({"p.yaml": RECLAIM.replace("backfill, ", ""), "o.yaml": "actions: allocate"}, ChangeError, "several policies"),
        ({"q.yaml": "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\n"}, ChangeError, "spec: Required value"),
        ({"q.yaml": queue("a", deserved={"cpu": "many"})}, ChangeError, "new:q.yaml:7"),
        ({"q.yaml": "kind: Queue\n a: ["}, ChangeError, "not YAML"),
    ],
)
def test_the_error_names_a_file_that_cannot_be_planned(
    tmp_path: Path, files: dict[str, str], error: type[Exception] | None, problem: str
) -> None:
    if error is None:
        plan(tmp_path, files)
        return
    with pytest.raises(error, match=problem):
        plan(tmp_path, files)


def test_an_old_state_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TooOldError):
        plan(tmp_path, {}, max_age=3600.0)


# ------------------------------------------------------------------------------------------------- cards, queues, names


def test_the_text_says_what_each_queue_holds_and_deserves(tmp_path: Path) -> None:
    found = plan(tmp_path, {"q.yaml": queue("a", deserved=gpus(4))})
    assert [(it.queue, it.now, it.proposed, it.deserved, it.lose, it.start) for it in found.at_once.queues] == [
        ("b", 6, 4, 4, 2, 0),
        ("a", 2, 4, 4, 0, 1),
    ]
    for text in (render_text(found), render_markdown(found)):
        assert "b 6 → 4 gpus of 4 deserved; 2 jobs lose pods" in text
        assert "a 2 → 4 gpus of 4 deserved; 1 job starts" in text


def test_a_queue_that_holds_the_same_has_no_line(tmp_path: Path) -> None:
    assert plan(tmp_path, {"q.yaml": queue("a", deserved=gpus(2))}).at_once.queues == []


def test_equal_sentences_are_one_line(tmp_path: Path) -> None:
    many = {
        **TABLE,
        "nodes": [{"name": "n1", "has": "90 cpu, 25 gpu"}],
        "queues": [{"name": "a", "capability": "1 gpu"}],
    }
    many["jobs"] = [{"name": f"new{at:02}", "queue": "a", "tasks": "1 x 1 gpu"} for at in range(25)]
    found = plan(tmp_path, {"q.yaml": queue("a", capability=gpus(25))}, table=many)
    lines = [line for line in render_text(found).splitlines() if line.startswith("  + ")]
    assert lines == [f"  + {found.at_once.starts[0].job} and {len(found.at_once.starts) - 1} more jobs (a): 1 pod"]
    rows = [line for line in render_markdown(found).splitlines() if line.startswith("| t/new")]
    assert len(rows) == 1


UID = "3f2504e0-4f89-11d3-9a0c-0305e82c3301"


def test_jobs_have_the_names_that_their_users_gave_them(tmp_path: Path) -> None:
    state = state_of(TABLE)
    for name, made in (("new1", f"new1-{UID}"), ("new2", f"podgroup-{UID[:-1]}2")):
        group = state.objects["PodGroup"].pop(f"t/{name}")
        group.metadata.name = made
        group.metadata.owner_references = [msgspec.convert({"kind": "Job", "name": name}, OwnerReference)]
        state.put("PodGroup", group)
        for pod in state.objects["Pod"].values():
            annotations = pod.metadata.annotations or {}
            if annotations.get(GROUP_NAME) == name:
                annotations[GROUP_NAME] = made
    write_state(state, tmp_path / "state.jsonl.gz")
    change = Side("new", {"q.yaml": queue("a", deserved=gpus(4))})
    found = make_plan(Request(tmp_path / "state.jsonl.gz", None, change, out=tmp_path / "out", clock=NOW + 7200))
    assert any(UID[:-1] in start.job for start in found.at_once.starts)  # the data have the keys of the objects
    for text in (render_text(found), render_markdown(found)):
        assert UID[:8] not in text
        assert "t/new2" in text


@pytest.mark.parametrize(
    ("was", "now", "text"),
    [
        ({}, {"unschedulable": True}, "Node n1 is cordoned"),
        ({}, {"unschedulable": True, "taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]},
         "Node n1 is cordoned"),
        ({"unschedulable": True}, {}, "Node n1 is no longer cordoned"),
        ({}, {"unschedulable": True, "taints": [{"key": "x", "effect": "NoSchedule"}]},
         "Node n1 is cordoned, changes its taints"),
        ({}, {"taints": [{"key": "x", "effect": "NoSchedule"}]}, "Node n1 changes its taints"),
    ],
)  # fmt: skip
def test_a_cordon_is_called_a_cordon(tmp_path: Path, was: dict[str, Any], now: dict[str, Any], text: str) -> None:
    state = state_of(TABLE)
    node = state.objects["Node"]["n1"]
    node.spec = msgspec.convert(was, type(node.spec))
    write_state(state, tmp_path / "state.jsonl.gz")
    manifest = {"apiVersion": "v1", "kind": "Node", "metadata": msgspec.to_builtins(node.metadata), "spec": now}
    manifest["metadata"] = {"name": "n1", "labels": node.metadata.labels or {}}
    change = Side("new", {"n.yaml": yaml.safe_dump(manifest)})
    found = make_plan(Request(tmp_path / "state.jsonl.gz", None, change, out=tmp_path / "out", clock=NOW + 7200))
    assert found.changes == [text]


def test_a_state_without_a_policy_gets_one_by_the_option_that_the_error_names(tmp_path: Path) -> None:
    table = {**TABLE}
    state = state_of(table)
    state.policy = None
    write_state(state, tmp_path / "state.jsonl.gz")
    change = Side("new", {"q.yaml": queue("a", deserved=gpus(4))})
    request = Request(tmp_path / "state.jsonl.gz", None, change, out=tmp_path / "out", clock=NOW + 7200)
    with pytest.raises(ChangeError, match="add --policy FILE, the policy that the cluster runs"):
        make_plan(request)
    (tmp_path / "team.yaml").write_text(RECLAIM)
    found = make_plan(replace(request, policy_path=str(tmp_path / "team.yaml")))
    assert len(found.at_once.evictions) == 2


def test_a_plan_that_nobody_judges_is_not_called_good(tmp_path: Path) -> None:
    found = plan(tmp_path, {"q.yaml": queue("a", deserved=gpus(4))})
    assert "Not judged" in render_markdown(found)
    found.conditions = ["evictions>9"]
    assert "Nothing is worse than permitted." in render_markdown(found)


@pytest.mark.parametrize(("name", "place"), [("new", "new:q.yaml"), ("q.yaml", "q.yaml"), ("of/q.yaml", "of/q.yaml")])
def test_the_place_of_an_error_names_a_file_once(name: str, place: str) -> None:
    assert Side(name, {}).place("q.yaml") == place
