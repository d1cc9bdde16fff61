"""Pods are admitted by LimitRanges and ResourceQuotas as an API server admits them."""

from __future__ import annotations

from typing import Any

import pytest

from schedspec.virtual.cluster import pod_level, server
from schedspec.virtual.cluster.store import RefusedError


def pod(phase: str = "Running", **resources: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"resources": resources}]}, "status": {"phase": phase}}


def quota(**hard: str) -> dict[str, Any]:
    return {"metadata": {"name": "q"}, "spec": {"hard": {name.replace("_", "."): most for name, most in hard.items()}}}


def limits(**limit: Any) -> dict[str, Any]:
    return {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container", **limit}]}}


ONE = pod(requests={"cpu": "1", "nvidia.com/gpu": "1"}, limits={"cpu": "2", "nvidia.com/gpu": "1"})
REFUSED = {
    "the requests of all pods": (quota(requests_cpu="2500m"), "exceeded quota: q, limited: requests.cpu=2500m"),
    "cpu without a prefix": (quota(cpu="2500m"), "limited: cpu=2500m"),
    "the limits of all pods": (quota(limits_cpu="5"), "limited: limits.cpu=5"),
    "the number of pods": (quota(pods="2"), "limited: pods=2"),
    "the requests of a device": (
        {"metadata": {"name": "q"}, "spec": {"hard": {"requests.nvidia.com/gpu": "2"}}},
        "limited: requests.nvidia.com/gpu=2",
    ),
    "a resource that a pod must name": (quota(limits_memory="5Gi"), "failed quota: q: must specify limits.memory"),
}


@pytest.mark.parametrize(("limit", "says"), REFUSED.values(), ids=REFUSED)
def test_a_pod_above_a_quota_is_refused(limit: dict[str, Any], says: str) -> None:
    with pytest.raises(RefusedError, match=says):
        server.require_room(ONE, [limit], [ONE, ONE])


@pytest.mark.parametrize(
    "limit", [quota(requests_cpu="3"), quota(limits_cpu="6"), quota(pods="3"), quota(nvidia_com="0")]
)
def test_a_pod_within_a_quota_is_admitted(limit: dict[str, Any]) -> None:
    server.require_room(ONE, [limit], [ONE, ONE])


def test_a_pod_that_has_ended_uses_no_quota() -> None:
    server.require_room(ONE, [quota(pods="1")], [pod("Succeeded"), pod("Failed")])


def test_a_container_gets_the_defaults_that_it_does_not_name() -> None:
    ranges = [limits(default={"cpu": "2", "memory": "1Gi"}, defaultRequest={"cpu": "1"})]
    made = server.with_defaults({"resources": {"requests": {"memory": "512Mi"}}}, ranges)
    assert made["resources"] == {
        "limits": {"cpu": "2", "memory": "1Gi"},
        "requests": {"cpu": "1", "memory": "512Mi"},
    }
    assert server.with_defaults({}, []) == {}


@pytest.mark.parametrize(
    ("limit", "says"),
    [(limits(max={"cpu": "500m"}), "maximum cpu usage"), (limits(min={"cpu": "2"}), "minimum cpu usage")],
)
def test_a_container_outside_of_its_range_is_refused(limit: dict[str, Any], says: str) -> None:
    with pytest.raises(RefusedError, match=says):
        server.with_defaults({"resources": {"requests": {"cpu": "1"}}}, [limit])


def whole(requests: str = "", limits: str = "", of_container: str = "") -> dict[str, Any]:
    """Return the spec of a pod with cpu of its own, and one container."""
    own = {name: {"cpu": cpu} for name, cpu in (("requests", requests), ("limits", limits)) if cpu}
    given = {"resources": {"requests": {"cpu": of_container}}} if of_container else {}
    return {"resources": own, "containers": [{"name": "main", **given}]}


REQUESTED = {
    "the limit, where no container requests any": (whole(limits="4"), {"cpu": "4"}),
    "what the containers request, below the limit": (whole(limits="4", of_container="1"), {"cpu": "1"}),
    "its own request": (whole(requests="2", limits="4", of_container="1"), {"cpu": "2"}),
    "its own request without a limit": (whole(requests="2"), {"cpu": "2"}),
}


@pytest.mark.parametrize(("spec", "requests"), REQUESTED.values(), ids=REQUESTED)
def test_a_pod_as_a_whole_requests(spec: dict[str, Any], requests: dict[str, str]) -> None:
    assert pod_level.admitted(spec)["resources"]["requests"] == requests


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (whole(requests="0", of_container="8"), "spec.resources.requests.cpu"),
        (whole(limits="4", of_container="8"), "spec.resources.requests.cpu"),
        (whole(requests="5", limits="4"), "spec.resources.requests.cpu"),
    ],
    ids=["less than its containers", "a limit below its containers", "more than its limit"],
)
def test_a_pod_as_a_whole_is_refused(spec: dict[str, Any], field: str) -> None:
    with pytest.raises(RefusedError, match=field) as refused:
        pod_level.admitted(spec)
    assert refused.value.status == 422


def test_a_quota_counts_what_a_pod_requests_as_a_whole() -> None:
    one = {"metadata": {"name": "p"}, "spec": whole(requests="2", of_container="1"), "status": {"phase": "Running"}}
    server.require_room(one, [quota(requests_cpu="4")], [one])
    with pytest.raises(RefusedError, match="exceeded quota"):
        server.require_room(one, [quota(requests_cpu="3")], [one])
