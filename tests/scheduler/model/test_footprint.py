"""The kept part of a pod has bounded size, and includes every field that affects decisions."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import msgspec
import pytest

from schedspec.scheduler.controllers.runtime.objects import JOBS, PYTORCH_JOBS
from schedspec.scheduler.kube import PODS
from schedspec.scheduler.kube.decoding import Listing, Malformed, decode, run_now
from schedspec.scheduler.model.demand import requests_of
from schedspec.scheduler.model.footprint import (
    MAX_BYTES,
    MOST_VALUES,
    SMALL_BYTES,
    TooLargeError,
    kept_of_pod,
    memory_of,
)
from schedspec.scheduler.model.objects import Pod
from schedspec.scheduler.model.task import Task
from tests.support.core.lines import counted

MAX_JSON = 1_800_000
"""Bytes of the largest pod that the API server accepts."""
OURS = frozenset({"schedspec"})
REQUESTS = {"requests": {"cpu": "2", "memory": "1Gi"}}
MAIN = {"name": "main", "image": "worker", "resources": REQUESTS}


def filled(part: Any, size: int) -> list[Any]:
    """Repeat a part until the list has about `size` bytes of JSON."""
    return [part] * (size // (len(json.dumps(part)) + 2))


def bodies(size: int, **more: Any) -> dict[str, dict[str, Any]]:
    """Return pods of `size` bytes of JSON, by the field that is large."""
    meta = {"name": "p", "namespace": "n", "uid": "u"}
    numbers = range(size // 30)

    def body(more_meta: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
        return {"metadata": {**meta, **(more_meta or {})}, "spec": {"containers": [MAIN], **spec, **more}}

    term = {"topologyKey": "k", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return {
        "containers": body(containers=[MAIN, *filled({"name": "c", "image": "i"}, size)]),
        "ports": body(containers=[{**MAIN, "ports": [{"containerPort": n, "hostPort": n} for n in numbers]}]),
        "requests": body(containers=[{**MAIN, "resources": {"requests": {f"a.b/r{n}": "1" for n in numbers}}}]),
        "tolerations": body(tolerations=filled({}, size)),
        "spread": body(topologySpreadConstraints=filled({"topologyKey": "a"}, size)),
        "terms": body(affinity={"podAntiAffinity": {required: filled(term, size)}}),
        "nodes": body(affinity={"nodeAffinity": {required: {"nodeSelectorTerms": filled({"matchFields": []}, size)}}}),
        "volumes": body(volumes=filled({"name": "v"}, size)),
        "labels": body({"labels": {f"label{n}": "v" for n in numbers}}),
        "annotations": body({"annotations": {f"volcano.sh/{n}": "v" for n in numbers}}),
        "owners": body({"ownerReferences": filled({"uid": "a"}, size)}),
    }


@pytest.mark.parametrize("what", bodies(1))
@pytest.mark.parametrize("node", ["", "n1"])
@pytest.mark.parametrize("scheduler", ["schedspec", "another"])
def test_the_memory_of_any_pod_is_bounded(what: str, node: str, scheduler: str) -> None:
    for size in (SMALL_BYTES, MAX_JSON):
        raw = json.dumps(bodies(size, nodeName=node, schedulerName=scheduler)[what]).encode()
        pod = msgspec.json.decode(raw, type=Pod)
        try:
            kept = kept_of_pod(pod, len(raw), OURS)
        except TooLargeError:
            assert (node, size) == ("", MAX_JSON)
        else:
            assert memory_of(kept, 100 * MAX_BYTES) <= MAX_BYTES
            if node and what != "requests":
                assert Task(kept, "").request["cpu"] == 2000


def test_the_parts_of_another_schedulers_pod_that_affect_other_pods_are_kept() -> None:
    term = {"topologyKey": "zone", "labelSelector": {}}
    body = {
        "metadata": {"name": "p", "namespace": "n", "uid": "u", "labels": {"a": "b"}},
        "spec": {
            "nodeName": "n1",
            "schedulerName": "another",
            "containers": [
                {**MAIN, "ports": [{"containerPort": 80, "hostPort": 8080, "hostIP": "10.0.0.1"}]},
                {"name": "two", "image": "i", "resources": {"requests": {"cpu": "300m", "a.b/c": "1"}}},
            ],
            "initContainers": [{"name": "i", "image": "i", "resources": {"requests": {"memory": "7Gi"}}}],
            "overhead": {"cpu": "50m"},
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}, {"name": "x"}],
            "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
            "tolerations": [{"key": "a"}],
        },
        "status": {"phase": "Running"},
    }
    raw = json.dumps(body).encode()
    whole = Task(msgspec.json.decode(raw, type=Pod), "")
    kept = Task(kept_of_pod(msgspec.json.decode(raw, type=Pod), len(raw), OURS), "")
    for name in ("request", "host_ports", "identity", "has_inter_pod_constraints", "status", "node", "priority"):
        assert getattr(kept, name) == getattr(whole, name), name
    assert kept.pod.spec.tolerations is None
    assert [volume.name for volume in kept.pod.spec.volumes or ()] == ["v"]


def test_a_too_large_pod_is_malformed_and_the_error_names_the_field() -> None:
    kind = PODS.bounded(OURS)
    raw = json.dumps(bodies(MAX_JSON, schedulerName="schedspec")["tolerations"]).encode()
    small = json.dumps({"metadata": {"name": "s", "namespace": "n"}, "spec": {"schedulerName": "schedspec"}}).encode()
    found = run_now(decode(kind, raw))
    assert isinstance(found, Malformed)
    assert found.error.startswith("spec.tolerations is too large")
    for size in (len(raw), 300_000):
        raw = json.dumps(bodies(size, schedulerName="schedspec")["tolerations"]).encode()
        listing: Listing[Pod] = Listing()
        page = b'{"metadata":{"resourceVersion":"1"},"items":[' + small + b"," + raw + b"]}"
        run_now(listing.add_page(kind, page))
        assert [item.metadata.name for item in listing.items] == ["s"]
        assert [bad.metadata.name for bad in listing.malformed] == ["p"]


@pytest.mark.parametrize("size", [300_000, MAX_JSON])
def test_fields_without_effect_in_a_large_pod_of_another_scheduler_are_not_read(size: int) -> None:
    body = bodies(1, schedulerName="another", nodeName="n1", tolerations=filled("none", size))["tolerations"]
    found = run_now(decode(PODS.bounded(OURS), json.dumps(body).encode()))
    assert isinstance(found, Pod)
    assert Task(found, "").request == Task(msgspec.convert({**body, "spec": {"containers": [MAIN]}}, Pod), "").request


@pytest.mark.parametrize("part", ["labels", "annotations"])
@pytest.mark.parametrize("wrong", [{"containers": "none"}, {"affinity": 7}], ids=["containers", "affinity"])
def test_only_the_identity_of_an_unreadable_object_is_kept(wrong: dict[str, Any], part: str) -> None:
    many = {f"volcano.sh/key-{i}": "v" for i in range(MAX_JSON // 40)}
    meta = {"name": "p", "namespace": "n", "uid": "u", part: many}
    found = run_now(decode(PODS, json.dumps({"metadata": meta, "spec": wrong}).encode()))
    assert isinstance(found, Malformed)
    assert (found.metadata.key, found.metadata.uid) == ("n/p", "u")
    assert memory_of(found.metadata) <= SMALL_BYTES


@pytest.mark.parametrize("what", [name for name in bodies(1) if name != "requests"])
@pytest.mark.parametrize("node", ["", "n1"])
@pytest.mark.parametrize("scheduler", ["schedspec", "another"])
def test_memory_stays_within_the_limit_while_a_large_pod_is_decoded(scheduler: str, node: str, what: str) -> None:
    body = bodies(MAX_JSON, schedulerName=scheduler, nodeName=node)[what]
    raw = json.dumps(body).encode()
    tracemalloc.start()
    try:
        found = run_now(decode(PODS.bounded(OURS), raw))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(found, Pod if node else Malformed)
    assert peak <= 3 * len(raw) + 8 * MAX_BYTES
    if isinstance(found, Pod):
        small = msgspec.convert({**body, "spec": {**body["spec"], "containers": [MAIN]}}, Pod)
        assert Task(found, "").request == Task(small, "").request


@pytest.mark.parametrize("values", [MOST_VALUES - 100, MOST_VALUES + 100])
def test_a_pod_with_many_values_that_are_not_read_is_kept_up_to_their_limit(values: int) -> None:
    env = [{"name": "N", "value": "v"}] * (values // 3)
    body = {"metadata": {"name": "p"}, "spec": {"schedulerName": "schedspec", "containers": [{**MAIN, "env": env}]}}
    found = run_now(decode(PODS.bounded(OURS), json.dumps(body).encode()))
    assert isinstance(found, Pod if values < MOST_VALUES else Malformed)


def test_a_large_pod_on_a_node_keeps_its_gang_its_cards_and_its_phase() -> None:
    annotations = {"scheduling.k8s.io/group-name": "gang", "volcano.sh/gpu-index": "1", "other": "x" * SMALL_BYTES}
    body = bodies(MAX_JSON, schedulerName="schedspec", nodeName="n1", priority=7)["containers"]
    body["metadata"] |= {"annotations": annotations, "ownerReferences": [{"name": "o"}], "labels": {"a": "b"}}
    body["status"] = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z", "containerStatuses": [{"name": "c"}]}
    found = run_now(decode(PODS.bounded(OURS), json.dumps(body).encode()))
    whole = kept_of_pod(msgspec.convert(body, Pod), MAX_JSON, OURS)
    assert found == whole


@pytest.mark.parametrize("part", [{}, [], "a", {"name": "c"}], ids=str)
@pytest.mark.parametrize("resource", [JOBS, PYTORCH_JOBS], ids=lambda it: it.kind)
def test_the_memory_of_a_job_with_any_template_is_bounded(resource: Any, part: Any) -> None:
    template = {"spec": {"anything": filled(part, MAX_JSON)}}
    specs = {
        "Job": {"tasks": [{"template": template}]},
        "PyTorchJob": {"pytorchReplicaSpecs": {"W": {"template": template}}},
    }
    body = {"metadata": {"name": "j", "namespace": "n"}, "spec": specs[resource.kind]}
    found = run_now(decode(resource.bounded(OURS), json.dumps(body).encode()))
    assert isinstance(found, Malformed)
    assert memory_of(found) <= SMALL_BYTES


def test_a_job_of_a_hundred_tasks_is_not_too_large() -> None:
    template = {"spec": {"containers": [{**MAIN, "env": [{"name": f"E{n}", "value": "v"} for n in range(20)]}]}}
    tasks = [{"name": f"t{n}", "replicas": 4, "template": template} for n in range(100)]
    body = {"metadata": {"name": "j", "namespace": "n"}, "spec": {"tasks": tasks}}
    assert not isinstance(run_now(decode(JOBS.bounded(OURS), json.dumps(body).encode())), Malformed)


@pytest.mark.parametrize("scheduler", ["schedspec", "another"])
@pytest.mark.parametrize("policy", ["Always", None], ids=["sidecars", "init containers"])
def test_the_cost_of_reading_a_request_is_linear_in_the_number_of_containers(
    scheduler: str, policy: str | None
) -> None:
    def lines_of(containers: int) -> tuple[int, int]:
        names = [{f"a.b/{number}-{k}": "1" for k in range(20)} for number in range(containers)]
        init = [{"name": "i", "restartPolicy": policy, "resources": {"requests": amounts}} for amounts in names]
        body = {
            "metadata": {"name": "p"},
            "spec": {"nodeName": "n1", "schedulerName": scheduler, "initContainers": init},
        }
        pod = msgspec.convert(body, Pod)
        return counted(lambda: requests_of(pod))[1], counted(lambda: kept_of_pod(pod, MAX_JSON, OURS))[1]

    few, many = lines_of(20), lines_of(80)
    assert many[0] <= 4 * few[0] + 200
    assert many[1] <= 4 * few[1] + 200
