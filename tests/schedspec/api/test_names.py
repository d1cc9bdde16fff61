"""Renaming on a cluster with objects of the same names: requests have the real names, answers the scenario's names."""

from __future__ import annotations

import json
from typing import Any

import pytest

from schedspec.api.kinds import Kind, Ref
from schedspec.api.names import Names

VOLCANO = "scheduling.volcano.sh/v1beta1"
KUEUE = "kueue.x-k8s.io/v1beta2"


@pytest.fixture
def names() -> Names:
    found = Names.of_run("3f09ac")
    for ref in (Ref(Kind.QUEUE, "research"), Ref(Kind.PRIORITYCLASS, "high"), Ref(Kind.NODE, "n1")):
        assert found.rename(ref)
    return found


OUTGOING: dict[str, tuple[Any, Any]] = {
    "a queue and its parent": (
        {"apiVersion": VOLCANO, "kind": "Queue", "metadata": {"name": "a"}, "spec": {"parent": "research"}},
        {"apiVersion": VOLCANO, "kind": "Queue", "metadata": {"name": "a"}, "spec": {"parent": "research--3f09ac"}},
    ),
    "the queue itself": (
        {"apiVersion": VOLCANO, "kind": "Queue", "metadata": {"name": "research"}, "spec": {"weight": 1}},
        {"apiVersion": VOLCANO, "kind": "Queue", "metadata": {"name": "research--3f09ac"}, "spec": {"weight": 1}},
    ),
    "a job of the queue's name": (
        {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "research"}, "spec": {}},
        {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "research"}, "spec": {}},
    ),
    "the pods of a job": (
        {"spec": {"queue": "research", "tasks": [{"template": {"spec": {"priorityClassName": "high"}}}]}},
        {
            "spec": {
                "queue": "research--3f09ac",
                "tasks": [{"template": {"spec": {"priorityClassName": "high--3f09ac"}}}],
            }
        },
    ),
    "an annotation": (
        {"metadata": {"annotations": {"scheduling.volcano.sh/queue-name": "research", "note": "research"}}},
        {"metadata": {"annotations": {"scheduling.volcano.sh/queue-name": "research--3f09ac", "note": "research"}}},
    ),
    "a command to the queue": (
        {"target": {"apiVersion": VOLCANO, "kind": "Queue", "name": "research", "uid": "u"}},
        {"target": {"apiVersion": VOLCANO, "kind": "Queue", "name": "research--3f09ac", "uid": "u"}},
    ),
    "a step of a JSON patch": (
        [
            {"op": "add", "path": "/spec/parent", "value": "research"},
            {"op": "add", "path": "/spec/x", "value": "research"},
        ],
        [
            {"op": "add", "path": "/spec/parent", "value": "research--3f09ac"},
            {"op": "add", "path": "/spec/x", "value": "research"},
        ],
    ),
    "the ClusterQueue of the queue": (
        {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": "research"}, "spec": {"cohortName": "x"}},
        {
            "apiVersion": KUEUE,
            "kind": "ClusterQueue",
            "metadata": {"name": "research--3f09ac"},
            "spec": {"cohortName": "x"},
        },
    ),
    "a LocalQueue, whose own name is in our namespace": (
        {
            "apiVersion": KUEUE,
            "kind": "LocalQueue",
            "metadata": {"name": "research"},
            "spec": {"clusterQueue": "research"},
        },
        {
            "apiVersion": KUEUE,
            "kind": "LocalQueue",
            "metadata": {"name": "research"},
            "spec": {"clusterQueue": "research--3f09ac"},
        },
    ),
    "the priority of a job that Kueue admits": (
        {"metadata": {"labels": {"kueue.x-k8s.io/priority-class": "high", "kueue.x-k8s.io/queue-name": "research"}}},
        {
            "metadata": {
                "labels": {"kueue.x-k8s.io/priority-class": "high--3f09ac", "kueue.x-k8s.io/queue-name": "research"}
            }
        },
    ),
    "a queue that is not renamed": ({"spec": {"queue": "other"}}, {"spec": {"queue": "other"}}),
}


@pytest.mark.parametrize(("body", "real"), OUTGOING.values(), ids=OUTGOING)
def test_requests_have_the_real_names(names: Names, body: Any, real: Any) -> None:
    before = json.dumps(body)
    assert names.outgoing(body) == real
    assert json.dumps(body) == before, "the caller's object is not changed"


@pytest.mark.parametrize(("body", "real"), OUTGOING.values(), ids=OUTGOING)
def test_answers_have_the_names_in_the_scenario(names: Names, body: Any, real: Any) -> None:
    assert json.loads(names.plain(json.dumps(real).encode())) == body


@pytest.mark.parametrize(
    ("path", "real"),
    [
        ("/api/v1/nodes/n1/status", "/api/v1/nodes/n1--3f09ac/status"),
        (f"/apis/{VOLCANO}/queues/research", f"/apis/{VOLCANO}/queues/research--3f09ac"),
        (f"/apis/{VOLCANO}/queues/team", f"/apis/{VOLCANO}/queues/team"),
        (f"/apis/{VOLCANO}/queues", f"/apis/{VOLCANO}/queues"),
        ("/api/v1/namespaces/n1/pods/n1", "/api/v1/namespaces/n1/pods/n1"),
        ("/api/v1/namespaces/nodes/pods/n1", "/api/v1/namespaces/nodes/pods/n1"),
    ],
)
def test_a_path_has_the_real_name(names: Names, path: str, real: str) -> None:
    assert names.path(path) == real


POLICY = """\
# research is a word here
actions: "allocate"
tiers:
- plugins:
  - name: limits
    arguments:
      limits.queue: research   # one
      queues: [team, "research"]
      limits.queues: "research, team"
      other: research
"""


def test_a_policy_gets_the_real_queue_names_and_is_otherwise_unchanged(names: Names) -> None:
    changed = [
        (was, now)
        for was, now in zip(POLICY.splitlines(), names.policy(POLICY).splitlines(), strict=True)
        if was != now
    ]
    assert [now.strip() for _, now in changed] == [
        "limits.queue: research--3f09ac   # one",
        'queues: [team, "research--3f09ac"]',
        'limits.queues: "research--3f09ac, team"',
    ]
    assert names.text(names.policy(POLICY)) == POLICY
    assert names.policy("tiers: [") == "tiers: ["


def test_built_in_queues_and_namespaced_objects_keep_their_names(names: Names) -> None:
    for ref in (Ref(Kind.QUEUE, "default"), Ref(Kind.QUEUE, "root"), Ref(Kind.POD, "p", "ns")):
        assert not names.rename(ref)
        assert names.real(ref.kind, ref.name) == ref.name


def test_a_run_with_a_cluster_of_its_own_renames_nothing() -> None:
    names = Names()
    assert not names.rename(Ref(Kind.QUEUE, "research"))
    assert names.plain(b"research--3f09ac") == b"research--3f09ac"


def test_renaming_preserves_the_order_of_names() -> None:
    names = Names.of_run("3f09ac")
    plain = ["a", "a-b", "a.b", "a0", "ab", "b"]
    for name in plain:
        names.rename(Ref(Kind.NODE, name))
    assert sorted(plain) == plain
    assert sorted(names.real(Kind.NODE, it) for it in plain) == [names.real(Kind.NODE, it) for it in plain]


def test_a_hint_for_kubectl_has_the_real_names(names: Names) -> None:
    seen = {Ref(Kind.QUEUE, "research"), Ref(Kind.NODE, "n1"), Ref(Kind.QUEUE, "team"), Ref(Kind.POD, "p", "ns")}
    assert names.hint(seen) == "kubectl get nodes/n1--3f09ac queues.scheduling.volcano.sh/research--3f09ac"
    assert names.hint([Ref(Kind.QUEUE, "team")]) == ""


def test_a_schema_with_field_names_like_those_of_objects_is_not_changed(names: Names) -> None:
    fields = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"name": {"type": "string"}}}
    schema = {"properties": {**fields, "queue": {"type": "string"}, "op": {"type": "string"}, "path": {"x": 1}}}
    assert names.outgoing(schema) == schema
