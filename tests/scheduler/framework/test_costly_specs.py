"""No field of a pod costs a cycle more than the maximum of one job, whatever a tenant writes into the field.

The tests count the executed lines of the core, and compare them with the steps that the cycle reports and with the size
of the specs. A loop over a tenant's data that spends no steps, or that multiplies a spec by the nodes or by itself,
executes more lines than these two allow. Only the property about the limit of the API server uses a clock: the CPU time
of a cycle.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from scheduler.decide import decide
from scheduler.framework.work import Budget
from scheduler.live.pace import CYCLE, JOB, Pace
from scheduler.live.stopwatch import Stopwatch
from scheduler.model.task import TaskStatus
from scheduler.placement import pod_index
from scheduler.reasons import TooCostly, render_refusal
from scheduler.recording.events import Decided, apply_input
from tests.support.core.events import policy_of
from tests.support.core.lines import counted
from tests.support.core.world import World

HOSTNAME = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NODES = 100
LINES_A_STEP = 40
LINES_A_PART = 60
"""Lines for each part of a spec, to read or compare the part a few times."""
BUDGET = Budget(cycle=300_000, job=1_200_000)


def _expressions(n: int, operator: str = "NotIn") -> list[dict[str, Any]]:
    return [{"key": f"k{i}", "operator": operator, "values": [f"v{i}"]} for i in range(n)]


def _values(n: int) -> list[dict[str, Any]]:
    return [{"key": HOSTNAME, "operator": "In", "values": [f"x{i}" for i in range(n)]}]


def _required_terms(n: int) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": f"k{i}", "operator": "Exists"}]} for i in range(n)]
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}}


def _one_long_term(n: int) -> dict[str, Any]:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": _expressions(n)}]}}}}


def _many_values(n: int) -> dict[str, Any]:
    terms = [{"matchExpressions": _values(n)}, {"matchExpressions": [{"key": HOSTNAME, "operator": "Exists"}]}]
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}}


def _preferred_terms(n: int) -> dict[str, Any]:
    preferred = [{"weight": 1, "preference": {"matchExpressions": [item]}} for item in _expressions(n)]
    return {"affinity": {"nodeAffinity": {PREFERRED: preferred}}}


def _tolerations(n: int) -> dict[str, Any]:
    return {"tolerations": [{"key": f"k{i}", "operator": "Exists"} for i in range(n)]}


def _ports(n: int, first: int = 1) -> dict[str, Any]:
    ports = [{"containerPort": i, "hostPort": i, "hostIP": f"10.0.0.{i % 200}"} for i in range(first, first + n)]
    requests = {"requests": {"cpu": "1"}}
    return {"containers": [{"name": "main", "image": "worker", "resources": requests, "ports": ports}]}


def _spread(n: int, when: str = "DoNotSchedule") -> dict[str, Any]:
    return {
        "topologySpreadConstraints": [
            {"maxSkew": 5000, "topologyKey": f"{HOSTNAME}{i or ''}", "whenUnsatisfiable": when, "labelSelector": {}}
            for i in range(n)
        ]
    }


def _soft_spread(n: int) -> dict[str, Any]:
    return _spread(n, "ScheduleAnyway")


def _pod_terms(kind: str, n: int) -> dict[str, Any]:
    terms = [
        {
            "topologyKey": HOSTNAME,
            "namespaceSelector": {},
            "labelSelector": {"matchExpressions": [{"key": f"k{i}", "operator": "Exists"}]},
        }
        for i in range(n)
    ]
    return {"affinity": {kind: {REQUIRED: terms}}}


def _anti_affinity(n: int) -> dict[str, Any]:
    return _pod_terms("podAntiAffinity", n)


def _pod_affinity(n: int) -> dict[str, Any]:
    return _pod_terms("podAffinity", n)


def _namespaces(n: int) -> dict[str, Any]:
    term = {"topologyKey": HOSTNAME, "namespaces": [f"n{i}" for i in range(n)], "labelSelector": {}}
    return {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}


def _namespace_expressions(n: int) -> dict[str, Any]:
    term = {"topologyKey": HOSTNAME, "namespaceSelector": {"matchExpressions": _expressions(n)}, "labelSelector": {}}
    return {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}


def _pod_values(n: int) -> dict[str, Any]:
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchExpressions": _values(n)}}
    return {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}


def _node_selector(n: int) -> dict[str, Any]:
    return {"nodeSelector": {f"k{i}": "v" for i in range(n)}}


def _containers(n: int) -> dict[str, Any]:
    return {"containers": [{"name": f"c{i}", "image": f"image{i}"} for i in range(n)]}


def _claims(n: int) -> dict[str, Any]:
    return {"volumes": [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": f"c{i}"}} for i in range(n)]}


def _names(n: int) -> dict[str, Any]:
    requests = {"requests": {"cpu": "1", **{f"example.com/r{i}": "1" for i in range(n)}}}
    return {"containers": [{"name": "main", "image": "worker", "resources": requests}]}


FIELDS: list[Callable[[int], dict[str, Any]]] = [
    _required_terms, _one_long_term, _many_values, _preferred_terms, _tolerations, _ports, _spread, _soft_spread,
    _anti_affinity, _pod_affinity, _namespaces, _namespace_expressions, _pod_values, _node_selector, _containers,
    _claims, _names,
]  # fmt: skip


def world_of(specs: list[dict[str, Any]], tasks: str = "1 x 1 cpu") -> World:
    world = World(policy_of("plain"))
    nodes = [{"name": f"n{i}", "has": "32 cpu", "labels": {HOSTNAME: f"n{i}"}} for i in range(NODES)]
    jobs = [
        {"name": f"bad{i}", "queue": "q", "tasks": tasks, "phase": "Inqueue", "pod": {"spec": spec}}
        for i, spec in enumerate(specs)
    ]
    world.load({"nodes": nodes, "queues": [{"name": "q"}], "jobs": jobs})
    return world


def merged(specs: list[dict[str, Any]]) -> dict[str, Any]:
    """Merge several fields into one spec."""
    spec: dict[str, Any] = {}
    for fields in specs:
        affinity = {**spec.get("affinity", {}), **fields.get("affinity", {})}
        spec |= fields
        if affinity:
            spec["affinity"] = affinity
    return spec


def base() -> int:
    """Return the lines of a cycle with three pods without special fields."""
    world = world_of([{}, {}, {}])
    return counted(lambda: decide(world.cluster, world.policy, world.now, budget=BUDGET))[1]


def check(specs: list[dict[str, Any]], parts: int) -> None:
    world, usual = world_of(specs), base()
    for _ in range(3):
        decisions, lines = counted(lambda: decide(world.cluster, world.policy, world.now, budget=BUDGET))
        assert lines <= usual + LINES_A_STEP * decisions.steps + LINES_A_PART * parts
        assert decisions.steps <= BUDGET.cycle + BUDGET.job * len(world.policy.actions)
        apply_input(world.cluster, Decided(0, world.now, decisions, BUDGET))
        world.carry_out(decisions)
        world.now += 1.0
    world.load({"jobs": [{"name": "good", "queue": "q", "tasks": "1 x 1 cpu", "phase": "Inqueue"}]})
    decisions = decide(world.cluster, world.policy, world.now, budget=BUDGET)
    assert "t/good" in {bind.job for bind in decisions.binds}


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.__name__.strip("_"))
def test_the_cost_of_each_field_is_bounded_by_its_steps_and_length(field: Callable[[int], dict[str, Any]]) -> None:
    check([field(600)] * 3, 3 * 600)


@given(st.lists(st.lists(st.tuples(st.sampled_from(FIELDS), st.integers(1, 400)), min_size=1, max_size=3), max_size=3))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_cost_of_combined_fields_is_bounded_by_their_steps_and_lengths(
    pods: list[list[tuple[Callable[[int], dict[str, Any]], int]]],
) -> None:
    specs = [merged([field(n) for field, n in pod]) for pod in pods]
    check(specs, sum(n for pod in pods for _, n in pod))


API_LIMIT = 1_500_000
"""Maximum size in bytes of an object that the API server accepts."""
SIZES = st.sampled_from([100, 2_000, 12_000, 25_000])


@given(st.lists(st.lists(st.tuples(st.sampled_from(FIELDS), SIZES), min_size=1, max_size=3), min_size=1, max_size=3))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_no_cycle_takes_longer_than_its_budget_up_to_the_limit_of_the_api_server(
    pods: list[list[tuple[Callable[[int], dict[str, Any]], int]]],
) -> None:
    """The time is CPU time of this thread; the budget follows the pace that the live scheduler would measure."""
    specs = [merged([field(n) for field, n in pod]) for pod in pods]
    assume(all(len(json.dumps(spec)) < API_LIMIT for spec in specs))
    world, pace = world_of(specs), Pace()
    world.load({"jobs": [{"name": "good", "queue": "q", "tasks": "1 x 1 cpu", "phase": "Inqueue"}]})
    for number in range(3):
        watch, budget, began = Stopwatch(), pace.budget, time.thread_time()
        decisions = decide(world.cluster, world.policy, world.now, watch.step, budget=budget)
        took = time.thread_time() - began
        assert took <= CYCLE + JOB * len(specs)
        pace.note(decisions.steps, watch.jobs)
        assert number or "t/good" in {bind.job for bind in decisions.binds} or decisions.cut
        apply_input(world.cluster, Decided(0, world.now, decisions, budget))
        world.carry_out(decisions)
        world.now += 1.0
    assert not world.cluster.jobs["t/good"].by_status.get(TaskStatus.PENDING)


NODES_OF_GRAMMAR = 1_000
LINES_OF_WALK = 12
"""Executed lines that a step of a walk stands for, at most: about a microsecond."""
SMALL = Budget(cycle=60_000, job=240_000)
KEYS = st.sampled_from([HOSTNAME, "zone", "rank", "absent"])
OPERATORS = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])


@st.composite
def requirements(draw: st.DrawFn, key: st.SearchStrategy[str] = KEYS) -> Callable[[int], dict[str, Any]]:
    """Return a requirement by its number: its values are ones that exist, or ones that nothing has."""
    name, operator, values = draw(key), draw(OPERATORS), draw(st.sampled_from([1, 20, 300]))
    word = draw(st.sampled_from(["n", "x", "", "r"]))
    if operator in ("Exists", "DoesNotExist"):
        return lambda _: {"key": name, "operator": operator}
    count = 1 if operator in ("Gt", "Lt") else values
    return lambda i: {"key": name, "operator": operator, "values": [f"{word}{i * count + n}" for n in range(count)]}


@st.composite
def node_parts(draw: st.DrawFn) -> Callable[[int], dict[str, Any]]:
    by_name = draw(st.booleans())
    item = draw(requirements(st.just("metadata.name") if by_name else KEYS))
    expressions = "matchFields" if by_name else "matchExpressions"
    if draw(st.booleans()):
        return lambda n: {
            "affinity": {
                "nodeAffinity": {PREFERRED: [{"weight": 1, "preference": {expressions: [item(i)]}} for i in range(n)]}
            }
        }
    if draw(st.booleans()):
        terms = lambda n: [{expressions: [item(i)]} for i in range(n)]  # noqa: E731
    else:
        terms = lambda n: [{expressions: [item(i) for i in range(n)]}]  # noqa: E731
    return lambda n: {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms(n)}}}}


@st.composite
def pod_parts(draw: st.DrawFn) -> Callable[[int], dict[str, Any]]:
    item = draw(requirements(st.sampled_from(["app", "absent"])))
    topology = draw(st.sampled_from([HOSTNAME, "zone", "absent"]))
    where = draw(st.sampled_from(["own", "namespaces", "all", "selected"]))
    kind, strength = (
        draw(st.sampled_from(["podAffinity", "podAntiAffinity"])),
        draw(st.sampled_from([REQUIRED, PREFERRED])),
    )

    def term(i: int) -> dict[str, Any]:
        found: dict[str, Any] = {"topologyKey": topology, "labelSelector": {"matchExpressions": [item(i)]}}
        if where == "namespaces":
            found["namespaces"] = ["t", f"n{i}"]
        elif where != "own":
            found["namespaceSelector"] = {} if where == "all" else {"matchExpressions": [item(i)]}
        return found if strength == REQUIRED else {"weight": 1, "podAffinityTerm": found}

    return lambda n: {"affinity": {kind: {strength: [term(i) for i in range(n)]}}}


@st.composite
def spread_parts(draw: st.DrawFn) -> Callable[[int], dict[str, Any]]:
    item = draw(requirements(st.sampled_from(["app", "absent"])))
    topology, when = (
        draw(st.sampled_from([HOSTNAME, "zone", "absent"])),
        draw(st.sampled_from(["DoNotSchedule", "ScheduleAnyway"])),
    )
    return lambda n: {
        "topologySpreadConstraints": [
            {
                "maxSkew": i + 1,
                "topologyKey": topology,
                "whenUnsatisfiable": when,
                "labelSelector": {"matchExpressions": [item(i)]},
            }
            for i in range(n)
        ]
    }


@st.composite
def other_parts(draw: st.DrawFn) -> Callable[[int], dict[str, Any]]:
    """Return claims (bound, to one volume or to many), ports, tolerations, node selectors, gates, containers."""
    claim = draw(st.sampled_from(["bound", "bound{}", "absent{}"]))
    parts: list[Callable[[int], dict[str, Any]]] = [
        lambda n: {
            "volumes": [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": claim.format(i)}} for i in range(n)]
        },
        lambda n: {"schedulingGates": [{"name": f"gate{i}"} for i in range(n)]},
        _tolerations, _ports, _node_selector, _containers, _names,
    ]  # fmt: skip
    return draw(st.sampled_from(parts))


PARTS = st.one_of(node_parts(), pod_parts(), spread_parts(), other_parts())
LENGTHS = st.sampled_from([1, 30, 300, 2_000, 12_000])


def spec_of(parts: list[tuple[Callable[[int], dict[str, Any]], int]]) -> dict[str, Any]:
    """Return the spec of these parts, each as long as it says, or as the API server still accepts."""
    spec: dict[str, Any] = {}
    for part, length in parts:
        size = length
        while len(json.dumps(wider := merged([spec, part(size)]))) > API_LIMIT:
            size //= 2
        spec = wider
    return spec


def parts_of(item: Any) -> int:
    """Return how many values a spec consists of."""
    if isinstance(item, dict):
        return sum(map(parts_of, item.values()))
    return sum(map(parts_of, item)) if isinstance(item, list) else 1


def world_of_grammar(specs: list[dict[str, Any]]) -> World:
    """Return nodes with distinct names and ranks, a hundred zones, bound claims, and pods in several namespaces."""
    world = World(policy_of("plain"))
    nodes = [
        {"name": f"n{i}", "has": "32 cpu", "labels": {HOSTNAME: f"n{i}", "zone": f"{i % 100}", "rank": f"{i}"}}
        for i in range(NODES_OF_GRAMMAR)
    ]
    jobs = [
        {"name": f"bad{i}", "queue": "q", "tasks": "1 x 1 cpu", "phase": "Inqueue", "pod": {"spec": spec}}
        for i, spec in enumerate(specs)
    ]
    for name in ("bound", *(f"bound{i}" for i in range(2_000))):
        affinity = {"matchExpressions": [{"key": HOSTNAME, "operator": "NotIn", "values": ["n1"]}]}
        reach = {"nodeAffinity": {"required": {"nodeSelectorTerms": [affinity]}}}
        meta, spec = {"name": name, "namespace": "t"}, {"volumeName": name, "accessModes": ["ReadWriteMany"]}
        world.put("PersistentVolumeClaim", {"metadata": meta, "spec": spec})
        csi = {"csi": {"driver": "d", "volumeHandle": name}}
        world.put("PersistentVolume", {"metadata": {"name": name}, "spec": {**csi, **reach}})
    running = [{"name": f"r{i}", "queue": "q", "tasks": f"1 x 1 cpu running on n{i}"} for i in range(20)]
    world.load({"nodes": nodes, "queues": [{"name": "q"}], "jobs": [*running, *jobs]})
    for number in range(20):
        world.change("Pod", f"t/r{number}-0", {"metadata": {"labels": {"app": f"n{number}"}}})
    return world


@given(st.lists(st.lists(st.tuples(PARTS, LENGTHS), min_size=1, max_size=3), min_size=1, max_size=3))
@settings(max_examples=20)
def test_the_price_of_any_spec_is_that_of_the_work_it_makes(
    pods: list[list[tuple[Callable[[int], dict[str, Any]], int]]],
) -> None:
    """No walk is longer than its steps, nor do steps stand for work that is not done (at most four a line)."""
    specs = [spec_of(parts) for parts in pods]
    world, parts = world_of_grammar(specs), sum(map(parts_of, specs))
    fixed = 70 * NODES_OF_GRAMMAR * (1 + len(specs))
    decisions, lines = counted(lambda: decide(world.cluster, world.policy, world.now, budget=SMALL))
    assert lines <= fixed + LINES_OF_WALK * decisions.steps + LINES_A_PART * parts
    assert decisions.steps <= 4 * lines
    assert decisions.steps <= SMALL.cycle + SMALL.job


def test_the_refusal_of_a_job_with_a_too_costly_spec_names_the_field() -> None:
    world = world_of([{"affinity": _anti_affinity(400)["affinity"]}, {}])
    decisions = decide(world.cluster, world.policy, world.now, budget=Budget(100_000, 3_000))
    (why,) = decisions.refusals["t/bad0"].items
    assert why == TooCostly("allocate", "spec.affinity")
    assert "shorten spec.affinity" in render_refusal(decisions.refusals["t/bad0"])
    assert [bind.job for bind in decisions.binds] == ["t/bad1"]


def test_ports_of_several_pods_are_not_compared_pair_by_pair() -> None:
    check([_ports(600, first=1 + 600 * number) for number in range(3)], 3 * 600)


def with_terms_on_nodes(pods: int, terms: int) -> World:
    """Return pods on nodes, each with this number of anti-affinity terms that no other pod has."""
    world = world_of([])
    for number in range(pods):
        spec = _anti_affinity(terms)
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
    more = {"name": "more", "queue": "q", "tasks": "1 x 1 cpu", "phase": "Inqueue", "pod": {"spec": _anti_affinity(1)}}
    good = {"name": "good", "queue": "q", "tasks": "3 x 1 cpu", "phase": "Inqueue"}
    world.load({"jobs": [good, more]})
    decisions = decide(world.cluster, world.policy, world.now, budget=BUDGET)
    assert [bind.job for bind in decisions.binds].count("t/good") == 3
    assert decisions.steps < 40 * 500
    refused = {key: list(why.items) for key, why in decisions.refusals.items()}
    assert refused == ({} if pods * 100 < 500 else {"t/more": [TooCostly("allocate", "spec.affinity")]})


def test_the_terms_of_running_pods_do_not_use_up_the_steps_of_a_job_without_terms() -> None:
    world = with_terms_on_nodes(40, 100)
    world.load({"jobs": [{"name": "good", "queue": "q", "tasks": "3 x 1 cpu", "phase": "Inqueue"}]})
    steps = decide(world.cluster, world.policy, world.now).steps
    assert steps > 8_000, "each of 4,000 terms is matched with the job"
    world.cluster.last_cycle = None
    decisions = decide(world.cluster, world.policy, world.now, budget=Budget(cycle=steps, job=steps - 500))
    assert [bind.job for bind in decisions.binds] == ["t/good"] * 3
    world.cluster.last_cycle = None
    decisions = decide(world.cluster, world.policy, world.now, budget=Budget(cycle=steps, job=steps // 2))
    why = TooCostly("allocate", "the affinity terms of pods on nodes")
    assert list(decisions.refusals["t/good"].items) == [why]


@pytest.mark.parametrize("field", [_anti_affinity, _spread], ids=["anti-affinity", "spread"])
def test_labels_of_running_pods_cost_other_jobs_nothing(field: Callable[[int], dict[str, Any]]) -> None:
    def lines_with(labels: int) -> int:
        world = world_of([{} for _ in range(20)], "1 x 1 cpu running on n1")
        for number in range(20):
            many = {f"l{number}-{i}": "v" for i in range(labels)}
            world.change("Pod", f"t/bad{number}-0", {"metadata": {"labels": many}})
        good = {"name": "good", "queue": "q", "tasks": "1 x 1 cpu", "phase": "Inqueue", "pod": {"spec": field(1)}}
        world.load({"jobs": [good]})
        decisions, lines = counted(lambda: decide(world.cluster, world.policy, world.now, budget=BUDGET))
        assert [bind.job for bind in decisions.binds] == ["t/good"]
        return lines

    lines_with(1)  # at first use, numpy imports further modules
    assert lines_with(600) <= lines_with(6) + 600


def test_constraints_of_one_pod_do_not_multiply_each_other() -> None:
    check([merged([_spread(100), _one_long_term(100), _tolerations(100)])] * 3, 3 * 300)


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
        found[number] = counted(lambda world=world: decide(world.cluster, world.policy, world.now))  # type: ignore[misc]
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
        decisions, lines[jobs] = counted(lambda world=world: decide(world.cluster, world.policy, world.now))  # type: ignore[misc]
        assert decisions.refusals.keys() == {f"t/b{at}" for at in range(jobs)}
        assert lines[jobs] <= LINES_A_STEP * decisions.steps
    assert lines[8] < 8 * 1.2 * lines[1], "each new job looks at each quota, however many jobs were admitted"


def test_quotas_that_have_not_changed_cost_a_cycle_next_to_nothing() -> None:
    world, lines = with_quotas(300, 1), []
    for _ in range(2):
        decisions, number = counted(lambda: decide(world.cluster, world.policy, world.now))
        apply_input(world.cluster, Decided(0, world.now, decisions))
        world.cluster.last_cycle = None
        lines.append(number)
    assert lines[1] < 300 * 10 < lines[0]
