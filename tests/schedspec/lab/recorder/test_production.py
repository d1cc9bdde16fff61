"""Real schedulers on real control planes: what they do is recorded with the deployed rights, judged and explained."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from schedspec.api.client import Api
from schedspec.lab.recorder.evictions import about
from schedspec.scheduler.inputs import Gap, ObjectSeen, Taken, write_line
from schedspec.virtual.state import State, read_state
from schedspec.virtual.state.dump import take
from schedspec.virtual.state.over_time import inputs_over_time
from tests.schedspec.lab.recorder.nights import KUBE, RECLAIM, evictions, judged
from tests.schedspec.lab.recorder.plants import KUEUE, guarantee, hopeless, in_part, kueue_job, needless, ping_pong
from tests.schedspec.lab.recorder.production import SPACE, Production, eventually, named, production, subject_of

pytestmark = pytest.mark.embedded


def queues_of_volcano(cluster: Production) -> None:
    for name in ("online", "batch"):
        spec = {"weight": 1, "deserved": {"cpu": "4"}, "reclaimable": True}
        cluster.apply(named("scheduling.volcano.sh/v1beta1", "Queue", name, spec=spec))


def reclaim(cluster: Production) -> tuple[str, str]:
    """Fill the cluster from one queue, then claim the share of the other; return the jobs of victim and preemptor."""
    cluster.group("lender", "batch")
    for number in range(2):
        cluster.pod(f"lender-{number}", 4, group="lender")
    cluster.runs("lender-0", "lender-1")
    cluster.group("owner", "online")
    cluster.pod("owner-0", 4, group="owner")
    cluster.runs("owner-0")
    return f"{SPACE}/lender", f"{SPACE}/owner"


def preempt(cluster: Production) -> tuple[str, str]:
    """Fill the cluster with unimportant pods, then create an important one."""
    for name, value in (("low", 1), ("high", 1000)):
        cluster.apply(named("scheduling.k8s.io/v1", "PriorityClass", name, value=value))
    cluster.pod("low-0", 8, priorityClassName="low")
    cluster.runs("low-0")
    cluster.pod("high-0", 8, priorityClassName="high")
    cluster.runs("high-0")
    return f"{SPACE}/low-0", f"{SPACE}/high-0"


def kueue_queues(cluster: Production) -> None:
    cluster.apply(named(KUEUE, "ResourceFlavor", "any", spec={}))
    for name in ("online", "batch"):
        flavors = [{"name": "any", "resources": [{"name": "cpu", "nominalQuota": "4"}]}]
        groups = [{"coveredResources": ["cpu"], "flavors": flavors}]
        preemption = {"reclaimWithinCohort": "Any", "withinClusterQueue": "Never"}
        spec = {"cohortName": "all", "namespaceSelector": {}, "preemption": preemption, "resourceGroups": groups}
        cluster.apply(named(KUEUE, "ClusterQueue", name, spec=spec))
        cluster.apply(named(KUEUE, "LocalQueue", name, SPACE, spec={"clusterQueue": name}))


def reclaim_by_kueue(cluster: Production) -> tuple[str, str]:
    def admitted(job: str) -> str:
        items = cluster.api.call("GET", f"/apis/{KUEUE}/namespaces/{SPACE}/workloads")["items"]
        for item in items:
            conditions = {it["type"]: it["status"] for it in item.get("status", {}).get("conditions", ())}
            if item["metadata"]["name"].startswith(f"job-{job}-") and conditions.get("Admitted") == "True":
                return f"{SPACE}/{item['metadata']['name']}"
        return ""

    for number in range(2):
        kueue_job(cluster, f"lender{number}", "batch", 4)
    eventually(lambda: admitted("lender0") and admitted("lender1"), "both jobs of the lender are admitted")
    pods = f"/api/v1/namespaces/{SPACE}/pods"
    running = lambda: sum(it["status"].get("phase") == "Running" for it in cluster.api.call("GET", pods)["items"])  # noqa: E731
    eventually(lambda: running() == 2, "both run")
    before = {admitted(f"lender{number}") for number in range(2)}
    kueue_job(cluster, "owner", "online", 4)
    owner = eventually(lambda: admitted("owner"), "the owner is admitted")
    [victim] = before - {admitted(f"lender{number}") for number in range(2)}
    eventually(lambda: running() == 2, "the owner runs")
    return victim, owner


def dumped(cluster: Production) -> State:
    return asyncio.run(take(cluster.cluster.kubeconfig, None))


def names_in(state: State) -> dict[str, list[str]]:
    """Return the names of the objects of each kind that has any."""
    return {kind: sorted(found) for part in (state.objects, state.others) for kind, found in part.items() if found}


def test_our_scheduler_is_recorded_with_the_deployed_rights_through_ten_deaths(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(RECLAIM)
    with production(tmp_path, "schedspec", RECLAIM) as cluster:
        cluster.node("n1", 8)
        queues_of_volcano(cluster)
        cluster.record("--policy", str(policy))
        assert "without" not in cluster.said
        assert_rights_are_cut(cluster)
        victim, owner = reclaim(cluster)
        is_named = lambda: any(not one.is_inferred for one in evictions(cluster.recording))  # noqa: E731
        eventually(is_named, "the event that names the preemptor is recorded")
        made = {}
        for death in range(10):
            name = f"between-{death}"
            made[name] = time.time()
            cluster.pod(name, 0, scheduler="nobody")
            cluster.kill()
            cluster.record("--policy", str(policy))
        cluster.stop()
    inputs = [*inputs_over_time(cluster.recording)]
    gaps = [given for _, given in inputs if isinstance(given, Gap)]
    assert len([gap for gap in gaps if not gap.kind]) == 10
    seen: dict[str, float] = {}
    for at, given in inputs:
        if isinstance(given, ObjectSeen) and given.kind == "Pod":
            seen.setdefault(given.object.metadata.name, at)
    for name, at in made.items():
        assert any(gap.since <= at + 2.0 and at - 2.0 <= gap.until for gap in gaps) or abs(seen[name] - at) < 2.0
    assert made.keys() <= {pod.metadata.name for pod in read_state(cluster.recording).objects["Pod"].values()}
    assert [note for _, given in inputs if isinstance(given, Taken) for note in given.notes] == []
    first = evictions(cluster.recording)[0]
    assert (first.job, first.preemptor_job, first.is_inferred) == (victim, owner, False)
    assert judged(cluster.recording) == []


def recorded_node(cluster: Production, pod: str) -> str:
    found = read_state(cluster.recording).objects["Pod"].get(f"{SPACE}/{pod}")
    return str(found.spec.node_name) if found is not None else ""


def test_what_is_planted_on_a_real_control_plane_is_found_and_explained(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(RECLAIM.replace(", enableReclaimable: false", ""))
    with production(tmp_path, "schedspec", policy.read_text()) as cluster:
        for name in ("p1", "p2", "p3"):
            cluster.node(name, 8)
        queues_of_volcano(cluster)
        cluster.record("--policy", str(policy))
        for plant in (needless, in_part, guarantee, ping_pong):
            plant(cluster)
        eventually(lambda: recorded_node(cluster, "pong-3"), "the last bind is recorded")
        cluster.stop()
    found = {(one.monitor, one.about.partition("-")[0]) for one in judged(cluster.recording)}
    assert found >= {
        ("needless-eviction", "team/spared"),
        ("ping-pong", "team/ping"),
        ("gang", "team/half"),
        ("guarantee", "team/greedy"),
    }
    assert {monitor for monitor, _ in found} <= {"needless-eviction", "ping-pong", "gang", "guarantee"}
    pairs = [(one.job, one.preemptor_job, one.is_inferred) for one in evictions(cluster.recording)]
    assert pairs[0] == ("team/spared", "team/wants", False)
    assert pairs[1:] == [
        ("team/ping", "team/pong", True),
        ("team/pong", "team/ping", True),
        ("team/ping", "team/pong", True),
    ]


def assert_rights_are_cut(cluster: Production) -> None:
    """Check that the recorder's account may not read secrets and may write nothing."""
    kubeconfig = cluster._kubeconfig()
    assert subject_of(kubeconfig) == "system:serviceaccount:schedspec-record:schedspec-record"
    api = Api(kubeconfig, "recorder")
    try:
        for method, path in (
            ("GET", "/api/v1/secrets"),
            ("GET", "/api/v1/configmaps"),
            ("GET", f"/api/v1/namespaces/{SPACE}/pods/x/log"),
            ("DELETE", f"/api/v1/namespaces/{SPACE}/pods/x"),
        ):
            assert api.raw(method, path).status == 403, path
        assert api.raw("GET", "/api/v1/pods").status == 200
    finally:
        api.close()


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("scheduler", "policy", "setup", "act", "inferred"),
    [
        ("volcano", RECLAIM, queues_of_volcano, reclaim, True),
        ("kube-scheduler", KUBE, None, preempt, False),
        ("kueue", "{}", kueue_queues, reclaim_by_kueue, False),
    ],
    ids=["volcano", "kube-scheduler", "kueue"],
)
def test_another_scheduler_is_recorded_and_its_evictions_are_explained(
    tmp_path: Path, scheduler: str, policy: str, setup: object, act: object, inferred: bool
) -> None:
    more: list[str] = []
    if scheduler == "volcano":
        (tmp_path / "policy.yaml").write_text(policy)
        more = ["--policy", str(tmp_path / "policy.yaml")]
    with production(tmp_path, scheduler, policy) as cluster:
        cluster.node("n1", 8)
        if callable(setup):
            setup(cluster)
        cluster.record(*more, "--judge")
        assert "without" not in cluster.said
        assert callable(act)
        victim, preemptor = act(cluster)
        hopeless(cluster)
        eventually(lambda: "hopeless-wait" in cluster.said, "the wait is found while it lasts", 240.0)
        same = lambda: names_in(dumped(cluster)) == names_in(read_state(cluster.recording, with_kueue=True))  # noqa: E731
        if scheduler != "kube-scheduler":  # `dump` refuses a cluster without queues
            eventually(same, "the recording ends with the objects of a dump")
        cluster.stop()
    [one, *_] = evictions(cluster.recording)
    assert (one.job, one.preemptor_job, one.is_inferred) == (victim, preemptor, inferred)
    assert ("inferred" in about(one.pod, [one])) == inferred
    assert {finding.monitor for finding in judged(cluster.recording)} == {"hopeless-wait"}
    assert not any(b"s3cr3t" in write_line(given) for _, given in inputs_over_time(cluster.recording))
