"""The incremental sums of queues equal the sums over all jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from schedspec.scheduler.decide import decide
from schedspec.scheduler.model import objects
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.model.sums import QueueSums, Sums
from schedspec.scheduler.policy.loader import DEFAULT_TEXT, load_policy

PODS, GROUPS, QUEUES = ("a", "b", "c", "d"), ("g", "h"), ("left", "right")
POLICY = load_policy(DEFAULT_TEXT, "default")
Event = tuple[Any, ...]

EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.tuples(
        st.just("pod"),
        st.sampled_from(PODS),
        st.sampled_from(GROUPS),
        st.sampled_from(["0", "1", "2"]),
        st.sampled_from(["", "n"]),
        st.sampled_from(["Pending", "Running", "Succeeded"]),
    ),
    st.tuples(
        st.just("group"),
        st.sampled_from(GROUPS),
        st.sampled_from(QUEUES),
        st.sampled_from([None, "1", "3"]),
        st.sampled_from(["Pending", "Inqueue", "Running"]),
    ),
    st.tuples(st.sampled_from(["gone", "bound", "evicted", "revert"]), st.sampled_from(PODS)),
    st.tuples(st.just("no group"), st.sampled_from(GROUPS)),
    st.tuples(st.just("queue"), st.sampled_from(QUEUES)),
    st.tuples(st.just("no queue"), st.sampled_from(QUEUES)),
    st.tuples(st.just("cycle")),
)


def apply(cluster: Cluster, event: Event) -> None:
    match event:
        case "pod", name, group, cpu, node, phase:
            cluster.set_pod(_pod(name, group, cpu, node, phase if node else "Pending"))
        case "group", name, queue, minimum, phase:
            spec = {"minMember": 1, "queue": queue} | ({"minResources": {"cpu": minimum}} if minimum else {})
            body = {"metadata": {"name": name, "namespace": "t"}, "spec": spec, "status": {"phase": phase}}
            cluster.set_podgroup(msgspec.convert(body, objects.PodGroup))
        case "gone", name:
            cluster.delete_pod(f"t/{name}")
        case "bound", name:
            cluster.assume_bound(f"t/{name}", name, "n")
        case "evicted", name:
            cluster.assume_evicted(f"t/{name}", name)
        case "revert", name:
            cluster.revert(f"t/{name}", name)
        case "no group", name:
            cluster.delete_podgroup(f"t/{name}")
        case "queue", name:
            cluster.set_queue(msgspec.convert({"metadata": {"name": name}}, objects.Queue))
        case "no queue", name:
            cluster.delete_queue(name)
        case _:
            decide(cluster, POLICY, 0.0)


def _pod(name: str, group: str, cpu: str, node: str, phase: str) -> objects.Pod:
    body = {
        "metadata": {
            "name": name,
            "namespace": "t",
            "uid": name,
            "annotations": {"scheduling.k8s.io/group-name": group},
        },
        "spec": {"containers": [{"resources": {"requests": {"cpu": cpu}}}], "nodeName": node},
        "status": {"phase": phase},
    }
    return msgspec.convert(body, objects.Pod)


API_SHOWS_A_BIND: list[Event] = [
    ("group", "g", "left", None, "Running"),
    ("pod", "a", "g", "1", "", "Pending"),
    ("bound", "a"),
    ("pod", "a", "g", "1", "n", "Running"),
]


@given(st.lists(EVENTS, max_size=25))
@example(API_SHOWS_A_BIND)
def test_sums_updated_event_by_event_equal_the_sums_over_all_jobs(events: list[Event]) -> None:
    cluster = Cluster()
    body = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "3", "pods": 9}}}
    cluster.set_node(msgspec.convert(body, objects.Node))
    for event in events:
        apply(cluster, event)
        whole = Sums()
        for key in cluster.jobs:
            whole.changed(key)
        whole.refresh(cluster.jobs)
        kept = cluster.sums()
        assert (kept.undecided, kept.reserving) == (whole.undecided, whole.reserving)
        assert (kept.uncovered, kept.waiting) == (whole.uncovered, whole.waiting)
        assert _amounts(kept.by_queue) == _amounts(whole.by_queue)


def _amounts(sums: Mapping[str, QueueSums]) -> dict[str, Any]:
    """Return the sums without zero amounts."""
    return {
        queue: {
            name: {dimension: amount for dimension, amount in value.items() if amount}
            if isinstance(value, dict)
            else value
            for name, value in asdict(of_queue).items()
        }
        for queue, of_queue in sums.items()
    }
