"""A run on a shared cluster starts only if no check fails, and writes nothing before the checks have passed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product, starmap
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from schedspec.api.client import Api, Object
from schedspec.api.errors import ForeignObjectError, HarnessError, MissingRightsError
from schedspec.api.kinds import Kind, Ref
from schedspec.clusters.protocol import SCENARIO
from schedspec.scenario import preflight
from schedspec.scenario.nodes import WORLD
from schedspec.scenario.ownership import Ownership
from schedspec.scenario.preflight import Claim
from schedspec.scenario.restore import WAS
from tests.support.memory_api import MemoryApi

Stored = tuple[str, Object]
ROOT = Path(__file__).parents[3]


def node(name: str, *taints: str, labels: dict[str, str] | None = None, **annotations: str) -> Stored:
    meta = {"labels": labels or {}, "annotations": annotations}
    return f"/api/v1/nodes/{name}", {"metadata": meta, "spec": {"taints": [{"key": t, "effect": t} for t in taints]}}


def pod(
    name: str, namespace: str = "team", scheduler: str = "default-scheduler", owner: str = "", on: str = ""
) -> Stored:
    meta: dict[str, Any] = {"name": name, "namespace": namespace}
    meta |= {"ownerReferences": [{"kind": owner}]} if owner else {}
    spec = {"nodeName": on, "schedulerName": scheduler}
    return f"/api/v1/namespaces/{namespace}/pods/{name}", {"metadata": meta, "spec": spec}


def namespace(name: str, **labels: str) -> Stored:
    return f"/api/v1/namespaces/{name}", {"metadata": {"labels": labels}}


def of_volcano(plural: str, name: str, **labels: str) -> Stored:
    return f"/apis/scheduling.volcano.sh/v1beta1/{plural}/{name}", {"metadata": {"labels": labels}}


def of_kueue(plural: str, name: str) -> Stored:
    return f"/apis/kueue.x-k8s.io/v1beta2/{plural}/{name}", {"metadata": {"name": name}}


REMAINING = namespace("spec-1-a-1", **{SCENARIO: "spec-1-a-1"})
"""The namespace of a killed run's scenario."""

FINE: dict[str, list[Stored]] = {
    "an empty cluster": [],
    "foreign work, queues and nodes": [
        node("n"),
        pod("p", on="n"),
        of_volcano("queues", "team-a"),
        namespace("team"),
    ],
    "a node to adopt with housekeeping on it": [
        node("real", "PreferNoSchedule"),
        pod("proxy", "kube-system", on="real"),
        pod("logs", owner="DaemonSet", on="real"),
    ],
    "a scenario's node of a killed run": [node("n", labels={WORLD: "true", SCENARIO: "spec-1-a-1"}), node("real")],
    "an adopted node of a killed run": [
        REMAINING,
        ("/api/v1/nodes/real", {"metadata": {"labels": {WORLD: "true"}, "annotations": {WAS: "{}"}}, "spec": {}}),
        pod("a", "spec-1-a-1", "schedspec", on="real"),
    ],
}

REFUSED: dict[str, tuple[list[Stored], type[Exception], str]] = {
    "a node with our label that belongs to no scenario": (
        [node("n7", labels={WORLD: "true"})],
        ForeignObjectError,
        rf"node n7 has the label {WORLD} .*\n  do next: kubectl label node n7 {WORLD}-",
    ),
    "a missing node": (
        [node("n1")],
        HarnessError,
        r"there is no node real\n.*--adopt-nodes\n.*name some of: n1",
    ),
    "a tainted node": ([node("real", "NoSchedule")], HarnessError, r"node real accepts no ordinary pods"),
    "a KWOK node": (
        [node("real", **{"kwok.x-k8s.io/node": "fake"})],
        HarnessError,
        r"node real accepts no ordinary pods: it is tainted or a KWOK node",
    ),
    "foreign work on a node": (
        [node("real"), pod("db-0", on="real"), pod("db-1", on="real")],
        ForeignObjectError,
        r"foreign pods are bound to node real \(2\): team/db-0, team/db-1\n(.|\n)*kubectl drain real",
    ),
    "pods of our scheduler": (
        [node("real"), pod("prod", scheduler="schedspec")],
        ForeignObjectError,
        r"foreign pods \(1\) name the scheduler that this run would start, schedspec: team/prod\n.*--scheduler none",
    ),
}


def check(
    api: MemoryApi,
    *,
    sees_all: bool = False,
    scheduler: str = "schedspec",
    adopt: tuple[str, ...] = (),
) -> None:
    ownership = Ownership(True, "spec-x-", adopt)
    preflight.check(cast("Api", api), ownership, scheduler, sees_all=sees_all)


@pytest.mark.parametrize("objects", FINE.values(), ids=FINE)
def test_a_run_may_start_with(objects: list[Stored]) -> None:
    api = MemoryApi(*objects)
    check(api, adopt=("real",) if any(path.endswith("/real") for path, _ in objects) else ())
    assert api.writes == []


@pytest.mark.parametrize(("objects", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_an_obstacle_is_named_before_anything_is_written(
    objects: list[Stored], error: type[Exception], message: str
) -> None:
    api = MemoryApi(*objects)
    with pytest.raises(error, match=message):
        check(api, adopt=("real",) if "adopt" in message or "real" in message or len(objects) > 1 else ())
    assert api.writes == []


def taken(api: MemoryApi, claims: Sequence[Claim], adopt: tuple[str, ...] = ()) -> list[Ref]:
    return preflight.taken(cast("Api", api), Ownership(True, "spec-x-", adopt), claims)


def test_names_of_foreign_objects_are_found_before_a_sentence_uses_them() -> None:
    api = MemoryApi(
        of_volcano("queues", "team-a"),
        of_volcano("queues", "default"),
        of_volcano("queues", "left", **{SCENARIO: "spec-1-a-1"}),
        node("n1"),
    )
    wanted = [
        (Kind.QUEUE, "team-a", "a.feature:4"),
        (Kind.QUEUE, "default", "a.feature:5"),  # exempt: the sentence refuses it
        (Kind.QUEUE, "left", "a.feature:6"),  # left by a killed run, and deleted by this one
        (Kind.NODE, "n1", "a.feature:8"),
        (Kind.NODE, "team-a", "a.feature:9"),
        (Kind.PRIORITYCLASS, "high", "b.feature:3"),
        (Kind.QUEUE, "team-a", "b.feature:7"),
    ]
    claims = [Claim(Ref(kind, name), where) for kind, name, where in wanted]
    assert taken(api, claims) == [Ref(Kind.QUEUE, "team-a"), Ref(Kind.NODE, "n1")]
    assert api.writes == []


def test_a_queue_may_not_have_the_name_of_an_object_of_kueue() -> None:
    api = MemoryApi(*(of_kueue(plural, name) for plural, name in (("clusterqueues", "a"), ("cohorts", "b"))))
    claims = [Claim(Ref(Kind.QUEUE, name), "a.feature:4") for name in ("a", "b", "c")]
    assert taken(api, claims) == [Ref(Kind.QUEUE, "a"), Ref(Kind.QUEUE, "b")]


def test_a_scenario_may_not_create_a_node_that_it_may_adopt() -> None:
    claim = Claim(Ref(Kind.NODE, "n1"), "a.feature:8")
    with pytest.raises(ForeignObjectError) as caught:
        taken(MemoryApi(node("n1")), [claim, claim], adopt=("n1",))
    assert str(caught.value).splitlines() == [
        "a scenario of this run would create node n1, which it may adopt; used at a.feature:8",
        "  do next: rename the node in the scenario, or leave it out of --adopt-nodes",
    ]


def test_an_unrestricted_scheduler_is_not_started_beside_foreign_queues() -> None:
    api = MemoryApi(
        of_volcano("queues", "default"), of_volcano("queues", "team-a"), of_volcano("queues", "q", **{SCENARIO: "x"})
    )
    with pytest.raises(ForeignObjectError, match=r"write to foreign objects: queue team-a; it cannot be restricted"):
        check(api, sees_all=True)
    check(api, sees_all=True, scheduler="")  # the scheduler is installed already


SWEPT = "spec-1-a-1"
BEHIND_A_PAGE: dict[str, tuple[Stored, list[Stored], str]] = {
    "a pod": (pod("prod", scheduler="schedspec"), [pod(f"p{n}", SWEPT, "schedspec") for n in range(500)], "team/prod"),
    "a queue": (
        of_volcano("queues", "team-a"),
        [of_volcano("queues", f"q{n}", **{SCENARIO: SWEPT}) for n in range(500)],
        "queue team-a",
    ),
}


@pytest.mark.parametrize(("foreign", "swept", "named"), BEHIND_A_PAGE.values(), ids=BEHIND_A_PAGE)
def test_a_foreign_object_is_found_behind_a_page_of_swept_ones(
    foreign: Stored, swept: list[Stored], named: str
) -> None:
    with pytest.raises(ForeignObjectError, match=named):
        check(MemoryApi(REMAINING, *swept, foreign), sees_all=True)


def test_the_error_names_every_missing_right() -> None:
    api = MemoryApi()
    api.permits = lambda review: (
        review["group"] != "*"
        and (review["resource"], review["verb"])
        not in {
            ("queues", "create"),
            ("nodes", "patch"),
        }
    )
    with pytest.raises(MissingRightsError) as caught:
        check(api)
    message = str(caught.value)
    assert "lacks 3 of the" in message
    assert "patch nodes, patch nodes/status, create queues.scheduling.volcano.sh" in message
    assert "schedspec/scenario/rights.yaml" in message
    assert api.writes == []


def test_one_review_suffices_for_an_administrator() -> None:
    requests: list[Object] = []
    api = MemoryApi()
    api.permits = lambda review: bool(requests.append(review) or True)
    check(api)
    assert requests == [{"group": "*", "resource": "*", "subresource": "", "verb": "*"}]


def test_required_rights_are_unique_and_include_all_rights_of_the_roles() -> None:
    rights = set(preflight.required())
    assert len(rights) == len(list(preflight.required()))
    assert preflight.Right("coordination.k8s.io", "leases", "update") in rights
    roles = yaml.safe_load_all((ROOT / "deploy/rbac.yaml").read_text())
    for rule in (rule for role in roles if role["kind"] == "ClusterRole" for rule in role["rules"]):
        for right in starmap(preflight.Right, product(rule["apiGroups"], rule["resources"], rule["verbs"])):
            assert right in rights
