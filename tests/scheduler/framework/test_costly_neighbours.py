"""What a tenant has written or runs costs the jobs of others a bounded number of executed lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from schedspec.scheduler.framework.work import Budget
from schedspec.scheduler.inputs import Decided, apply_input
from schedspec.scheduler.placement import pod_index
from schedspec.scheduler.reasons import TooCostly, render_refusal
from tests.scheduler.framework.specs import (
    BUDGET,
    LINES_A_PART,
    LINES_A_STEP,
    NODES,
    REQUIRED,
    anti_affinity,
    check,
    merged,
    one_long_term,
    ports,
    spread,
    tolerations,
    world_of,
)
from tests.support.core.events import policy_of
from tests.support.core.lines import counted
from tests.support.core.world import World


def test_the_refusal_of_a_job_with_a_too_costly_spec_names_the_field() -> None:
    world = world_of([{"affinity": anti_affinity(400)["affinity"]}, {}])
    decisions = world.core.decide(world.policy, world.now, budget=Budget(100_000, 3_000))
    (why,) = decisions.refusals["t/bad0"].items
    assert why == TooCostly("allocate", "spec.affinity")
    assert "shorten spec.affinity" in render_refusal(decisions.refusals["t/bad0"])
    assert [bind.job for bind in decisions.binds] == ["t/bad1"]


def test_ports_of_several_pods_are_not_compared_pair_by_pair() -> None:
    check([ports(600, first=1 + 600 * number) for number in range(3)], 3 * 600)


def with_terms_on_nodes(pods: int, terms: int) -> World:
    """Return pods on nodes, each with this number of anti-affinity terms that no other pod has."""
    world = world_of([])
    for number in range(pods):
        spec = anti_affinity(terms)
        for term in spec["affinity"]["podAntiAffinity"][REQUIRED]:
            term["labelSelector"]["matchExpressions"][0]["key"] += f"-{number}"
        job = {"name": f"holds{number}", "queue": "q", "phase": "Running", "pod": {"spec": spec}}
        world.load({"jobs": [{**job, "tasks": f"1 x 0.01 cpu running on n{number % NODES}"}]})
    return world


@pytest.mark.parametrize("pods", [3, 20])
def test_the_cost_of_the_terms_of_running_pods_to_other_jobs_is_bounded(
    pods: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_index, "MAX_TERMS", 500)
    world = with_terms_on_nodes(pods, 100)
    more = {"name": "more", "queue": "q", "tasks": "1 x 1 cpu", "phase": "Inqueue", "pod": {"spec": anti_affinity(1)}}
    good = {"name": "good", "queue": "q", "tasks": "3 x 1 cpu", "phase": "Inqueue"}
    world.load({"jobs": [good, more]})
    decisions = world.core.decide(world.policy, world.now, budget=BUDGET)
    assert [bind.job for bind in decisions.binds].count("t/good") == 3
    assert decisions.steps < 40 * 500
    refused = {key: list(why.items) for key, why in decisions.refusals.items()}
    assert refused == ({} if pods * 100 < 500 else {"t/more": [TooCostly("allocate", "spec.affinity")]})


def test_the_terms_of_running_pods_do_not_use_up_the_steps_of_a_job_without_terms() -> None:
    world = with_terms_on_nodes(40, 100)
    world.load({"jobs": [{"name": "good", "queue": "q", "tasks": "3 x 1 cpu", "phase": "Inqueue"}]})
    steps = world.core.decide(world.policy, world.now).steps
    assert steps > 8_000, "each of 4,000 terms is matched with the job"
    world.core.forget_last_cycle()
    decisions = world.core.decide(world.policy, world.now, budget=Budget(cycle=steps, job=steps - 500))
    assert [bind.job for bind in decisions.binds] == ["t/good"] * 3
    world.core.forget_last_cycle()
    decisions = world.core.decide(world.policy, world.now, budget=Budget(cycle=steps, job=steps // 2))
    why = TooCostly("allocate", "the affinity terms of pods on nodes")
    assert list(decisions.refusals["t/good"].items) == [why]


@pytest.mark.parametrize("field", [anti_affinity, spread], ids=["anti-affinity", "spread"])
def test_labels_of_running_pods_cost_other_jobs_nothing(field: Callable[[int], dict[str, Any]]) -> None:
    def lines_with(labels: int) -> int:
        world = world_of([{} for _ in range(20)], "1 x 1 cpu running on n1")
        for number in range(20):
            many = {f"l{number}-{i}": "v" for i in range(labels)}
            world.change("Pod", f"t/bad{number}-0", {"metadata": {"labels": many}})
        good = {"name": "good", "queue": "q", "tasks": "1 x 1 cpu", "phase": "Inqueue", "pod": {"spec": field(1)}}
        world.load({"jobs": [good]})
        decisions, lines = counted(lambda: world.core.decide(world.policy, world.now, budget=BUDGET))
        assert [bind.job for bind in decisions.binds] == ["t/good"]
        return lines

    lines_with(1)  # at first use, numpy imports further modules
    assert lines_with(600) <= lines_with(6) + 600


def test_constraints_of_one_pod_do_not_multiply_each_other() -> None:
    check([merged([spread(100), one_long_term(100), tolerations(100)])] * 3, 3 * 300)


RECLAIM = 'actions: "reclaim"\ntiers: [{plugins: [{name: gang}, {name: pdb}, {name: predicates}, {name: capacity}]}]'


def with_budgets(number: int) -> World:
    """Return a queue that may reclaim half of what twenty pods hold, with different labels and this many budgets."""
    world = World(policy_of(RECLAIM))
    old = {"name": "old", "queue": "b", "min": 1, "tasks": "20 x 1 cpu running on n1", "phase": "Running"}
    claims = {"name": "claims", "queue": "a", "tasks": "2 x 1 cpu", "phase": "Inqueue"}
    queues = [{"name": "a", "deserved": "10 cpu"}, {"name": "b", "deserved": "10 cpu"}]
    world.load({"nodes": [{"name": "n1", "has": "20 cpu"}], "queues": queues, "jobs": [old, claims]})
    for position, key in enumerate(world.pods_of("old")):
        world.change("Pod", key, {"metadata": {"labels": {"number": str(position)}}})
    for budget in range(number):
        meta = {"name": f"budget{budget}", "namespace": "t"}
        spec, status = {"selector": {"matchLabels": {"number": f"x{budget}"}}}, {"disruptionsAllowed": 1}
        world.put("PodDisruptionBudget", {"metadata": meta, "spec": spec, "status": status})
    return world


def test_the_cost_of_a_namespaces_disruption_budgets_to_preemptors_is_bounded() -> None:
    found = {}
    for number in (0, 100, 5_000):
        world = with_budgets(number)
        found[number] = counted(lambda world=world: world.core.decide(world.policy, world.now))  # type: ignore[misc]
    assert [len(found[number][0].evictions) for number in (0, 100, 5_000)] == [2, 2, 0]
    assert found[5_000][1] < found[0][1] + LINES_A_PART * 5_000
    (why,) = found[5_000][0].refusals["t/claims"].items
    assert "protected by disruption budget" in render_refusal(found[5_000][0].refusals["t/claims"]), why


QUOTAS = 'actions: "enqueue"\ntiers: [{plugins: [{name: resourcequota}, {name: capacity}]}]'


def with_quotas(quotas: int, jobs: int) -> World:
    """Return a namespace with this many quotas, each with scopes and values, and as many admitted as new jobs."""
    world = World(policy_of(QUOTAS))
    values = [f"class-{at}" for at in range(60)]
    selector = [{"scopeName": "PriorityClass", "operator": "NotIn", "values": values}, {"scopeName": "NotBestEffort"}]
    spec = {"scopeSelector": {"matchExpressions": selector}}
    status = {"hard": {"requests.cpu": "10", "pods": "99"}, "used": {"requests.cpu": "1", "pods": "1"}}
    world.load({"nodes": [{"name": "n1", "has": "99 cpu"}], "queues": [{"name": "q"}]})
    for at in range(quotas):
        world.put("ResourceQuota", {"metadata": {"name": f"q{at}", "namespace": "t"}, "spec": spec, "status": status})
    row = {"queue": "q", "tasks": [], "min": 1, "requests": "12 cpu"}
    world.load({"jobs": [{"name": f"a{at}", "phase": "Inqueue", **row} for at in range(jobs)]})
    world.load({"jobs": [{"name": f"b{at}", "phase": "Pending", **row} for at in range(jobs)]})
    return world


def test_quotas_of_a_namespace_are_not_multiplied_by_its_admitted_jobs() -> None:
    quotas, lines = 300, {}
    for jobs in (1, 8):
        world = with_quotas(quotas, jobs)
        decisions, lines[jobs] = counted(lambda world=world: world.core.decide(world.policy, world.now))  # type: ignore[misc]
        assert decisions.refusals.keys() == {f"t/b{at}" for at in range(jobs)}
        assert lines[jobs] <= LINES_A_STEP * decisions.steps
    assert lines[8] < 8 * 1.2 * lines[1], "each new job looks at each quota, however many jobs were admitted"


def test_quotas_that_have_not_changed_cost_a_cycle_next_to_nothing() -> None:
    world, lines = with_quotas(300, 1), []
    for _ in range(2):
        decisions, number = counted(lambda: world.core.decide(world.policy, world.now))
        apply_input(world.core, Decided(0, world.now, decisions))
        world.core.forget_last_cycle()
        lines.append(number)
    assert lines[1] < 300 * 10 < lines[0]
