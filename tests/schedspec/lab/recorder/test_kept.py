"""A recording keeps what decides and explains, never what a container runs with, and no object stops it."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from schedspec.lab.recorder.kinds import FOLLOWED
from schedspec.scheduler.inputs import Noted, ObjectGone, ObjectSeen, PolicyLoaded
from schedspec.scheduler.model.objects import ObjectMeta
from schedspec.virtual.state import kueue, read_state
from schedspec.virtual.state.over_time import inputs_over_time, segments_over_time
from tests.schedspec.lab.recorder.recorded_cluster import POLICY, SPACE, RecordedCluster, recorded


def names_of_pods(folder: Path) -> set[str]:
    seen = (it for _, it in inputs_over_time(folder) if isinstance(it, ObjectSeen) and it.kind == "Pod")
    return {it.object.metadata.name for it in seen}


def text_of(folder: Path) -> str:
    return "".join(gzip.decompress(path.read_bytes()).decode() for path in segments_over_time(folder))


def test_environments_commands_and_other_annotations_are_not_kept(tmp_path: Path) -> None:
    secret = "s3cr3t"
    with recorded(tmp_path) as cluster:
        more = {"env": [{"name": "TOKEN", "value": secret}], "command": [secret], "args": [secret]}
        cluster.pod("a-0", "a", 1, **more)
        path = f"/api/v1/namespaces/{SPACE}/pods/a-0"
        notes = {
            "metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": secret, "x/y": secret}}
        }
        cluster.call("PATCH", path, notes, "application/merge-patch+json")
        for kind in ("secrets", "configmaps"):
            cluster.make(f"/api/v1/namespaces/{SPACE}/{kind}", "mine", data={"token": secret})
        cluster.advance(3.0)
    assert "a-0" in names_of_pods(tmp_path)
    assert secret not in text_of(tmp_path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.just("s3cr3t") | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["env", "envFrom", "command", "args", "name", "image", "x"]), inner, max_size=3
        )
    ),
    max_leaves=10,
)


@given(JSON, JSON, JSON)
def test_a_workload_keeps_nothing_of_its_containers_but_what_a_scheduler_reads(
    containers: Any, inits: Any, more: Any
) -> None:
    spec = {"containers": containers, "initContainers": inits, "volumes": more, "hostname": "s3cr3t"}
    sets = [{"name": "main", "count": 1, "template": {"metadata": {"labels": more}, "spec": spec}}]
    item = kueue.ServedObject(ObjectMeta(name="w"), {"queueName": "q", "podSets": sets})
    followed = next(each for each in FOLLOWED if each.resource.kind == "Workload")
    assert followed.resource.trim is not None
    kept = followed.resource.trim(item, 1)
    template = kept.spec["podSets"][0]["template"]["spec"]
    assert template.keys() <= {"containers", "initContainers"}
    for each in (each for found in template.values() if isinstance(found, list) for each in found):
        assert each.keys() <= {"name", "resources", "restartPolicy"}


def test_no_kind_with_secrets_is_followed_and_configmaps_only_by_name() -> None:
    assert "secrets" not in {each.resource.plural for each in FOLLOWED}
    assert all(each.name for each in FOLLOWED if each.resource.plural == "configmaps")


def test_an_object_too_large_to_keep_stops_nothing(tmp_path: Path) -> None:
    with recorded(tmp_path) as cluster:
        recorder = cluster.recorder
        assert recorder is not None
        labels = {f"k{number}": "x" * 60 for number in range(20_000)}
        cluster.make(f"/api/v1/namespaces/{SPACE}/pods", "huge", metadata={"labels": labels}, spec={"containers": []})
        cluster.runs("small", "", "n1", 1)
        cluster.advance(5.0)
        assert recorder.unreadable == 1
    assert names_of_pods(tmp_path) == {"small"}
    assert sum(path.stat().st_size for path in segments_over_time(tmp_path)) < 50_000


def test_a_policy_in_a_configmap_is_recorded_with_each_change(tmp_path: Path) -> None:
    other = POLICY.replace("{name: drf}, ", "")
    cluster = RecordedCluster(tmp_path)
    try:
        cluster.node("n1", 8)
        cluster.make("/api/v1/namespaces", "volcano-system")
        path = "/api/v1/namespaces/volcano-system/configmaps"
        cluster.make(path, "volcano-scheduler-configmap", data={"volcano-scheduler.conf": POLICY})
        cluster.advance(1.0)
        cluster.record(policy=None)
        body = {"data": {"volcano-scheduler.conf": other}}
        cluster.call("PATCH", f"{path}/volcano-scheduler-configmap", body, "application/merge-patch+json")
        cluster.advance(3.0)
    finally:
        cluster.close()
    texts = [it.text for _, it in inputs_over_time(tmp_path) if isinstance(it, PolicyLoaded)]
    assert texts == [POLICY, other]
    policy = read_state(tmp_path).policy
    assert policy is not None
    assert policy.text == other


def test_the_last_version_of_a_deleted_pod_is_recorded_before_its_end(tmp_path: Path) -> None:
    with recorded(tmp_path) as cluster:
        cluster.runs("a-0", "a", "n1", 1)
        cluster.evict("a-0", "evicted for b")
        cluster.advance(5.0)
    of_pods = [it for _, it in inputs_over_time(tmp_path) if getattr(it, "kind", "") == "Pod"]
    last, gone = of_pods[-2:]
    assert isinstance(last, ObjectSeen)
    assert isinstance(gone, ObjectGone)
    assert (gone.key, gone.uid) == (f"{SPACE}/a-0", last.object.metadata.uid)
    assert "evicted for b" in [condition.message for condition in last.object.status.conditions]


def test_a_pod_that_is_deleted_at_once_has_the_version_of_its_deletion(tmp_path: Path) -> None:
    with recorded(tmp_path) as cluster:
        cluster.runs("a-0", "a", "n1", 1)
        cluster.advance(5.0)
        cluster.call("DELETE", f"/api/v1/namespaces/{SPACE}/pods/a-0", {"gracePeriodSeconds": 0})
        cluster.advance(5.0)
    seen = [it.object for _, it in inputs_over_time(tmp_path) if isinstance(it, ObjectSeen) and it.kind == "Pod"]
    versions = [int(pod.metadata.resource_version) for pod in seen]
    assert versions == sorted(set(versions))
    assert seen[-1].status == seen[-2].status  # only the deletion is new


def test_events_are_recorded_but_not_repeated_in_checkpoints(tmp_path: Path) -> None:
    with recorded(tmp_path) as cluster:
        event = {"involvedObject": {"kind": "Pod", "name": "a"}, "reason": "Preempted", "message": "told once"}
        cluster.make(f"/api/v1/namespaces/{SPACE}/events", "e", **event)
        cluster.advance(3.0)
        cluster.kill()
        cluster.record()
        cluster.advance(3.0)
    events = [it for _, it in inputs_over_time(tmp_path) if isinstance(it, Noted) and it.object["kind"] == "Event"]
    assert [event.object["message"] for event in events if event.object["metadata"]["name"] == "e"] == ["told once"]
