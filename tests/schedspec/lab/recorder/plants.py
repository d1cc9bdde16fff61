"""Incidents that a test plants in a production: it binds and evicts its own pods, as a faulty scheduler would.

One incident is Volcano's own: it breaks a guarantee when it is given the occasion.

The pods request what the load does not use, so that a plant and the load cannot disturb each other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from schedspec.lab.recorder.judge import Finding
from schedspec.monitors.ledger import LATELY
from schedspec.virtual.state import read_state
from tests.schedspec.lab.recorder.production import SPACE, Production, eventually, named

BY_TEST = {"scheduler": "planted"}
"""Pods that the scheduler leaves to the test."""
KUEUE = "kueue.x-k8s.io/v1beta2"
DEVICE = "example.com/device"
"""A resource that one node has, 8 of it."""
QUEUE = "planted"
"""The ClusterQueue of Kueue's planted work, and its LocalQueue."""


@dataclass(frozen=True, slots=True)
class Planted:
    """One incident, as it has to be found and explained."""

    monitor: str
    about: str
    """The beginning of the name of its pod or job."""
    job: str = ""
    """The job of the victim; empty if nothing is evicted."""
    preemptor: str = ""
    is_inferred: bool = False
    is_own: bool = False
    """Whether the scheduler does it by itself, so that it does it again in a feature."""

    @property
    def because(self) -> str:
        """The argument of `reduce --because`."""
        return f"monitor {self.monitor}"

    def is_found_by(self, finding: Finding) -> bool:
        """Whether a finding is this incident."""
        return finding.monitor == self.monitor and finding.about.startswith(self.about)


Plant = Callable[[Production], Planted]


def hopeless(cluster: Production) -> Planted:
    """Create a pod that waits for a resource that nobody has."""
    cluster.pod("hopeless-0", 1, "example.com/fpga")
    return Planted("hopeless-wait", f"{SPACE}/hopeless")


# ------------------------------------------------------------------------------------------------ Volcano and schedspec


def needless(cluster: Production) -> Planted:
    """Evict a pod although its node has room for the preemptor beside it."""
    cluster.group("spared", "batch")
    cluster.pod("spared-0", 4, group="spared", **BY_TEST)
    cluster.bind("spared-0", "p1")
    cluster.group("wants", "online")
    cluster.pod("wants-0", 2, group="wants", **BY_TEST)
    cluster.evict("spared-0", "reclaim for team/wants of queue online")
    cluster.bind("wants-0", "p1")
    return Planted("needless-eviction", f"{SPACE}/spared", f"{SPACE}/spared", f"{SPACE}/wants")


def in_part(cluster: Production) -> Planted:
    """Bind half of a gang."""
    cluster.group("half", "batch", 2)
    for number in range(2):
        cluster.pod(f"half-{number}", 1, group="half", **BY_TEST)
    cluster.bind("half-0", "p2")
    return Planted("gang", f"{SPACE}/half")


def guarantee(cluster: Production) -> Planted:
    """Guarantee all cpu but one to another queue, and bind a pod to 7 of it."""
    free = str(free_cpu(cluster) - 1)
    spec = {"weight": 1, "guarantee": {"resource": {"cpu": free}}, "deserved": {"cpu": free}}
    cluster.apply(named("scheduling.volcano.sh/v1beta1", "Queue", "safe", spec=spec))
    cluster.group("greedy", "batch")
    cluster.pod("greedy-0", 7, group="greedy", **BY_TEST)
    is_recorded = lambda: "safe" in read_state(cluster.recording).objects["Queue"]  # noqa: E731
    eventually(is_recorded, "the guarantee is recorded")
    time.sleep(LATELY)  # for so long the scheduler may not have seen the guarantee
    cluster.bind("greedy-0", "p2")
    return Planted("guarantee", f"{SPACE}/greedy")


def ping_pong(cluster: Production) -> Planted:
    """Evict the pods of two groups for each other in turn; nobody is named."""
    cluster.group("ping", "batch")
    cluster.group("pong", "online")
    cluster.pod("ping-0", 8, group="ping", **BY_TEST)
    cluster.bind("ping-0", "p3")
    for number, (here, there) in enumerate((("ping", "pong"), ("pong", "ping"), ("ping", "pong"))):
        cluster.pod(f"{there}-{number + 1}", 8, group=there, **BY_TEST)
        cluster.evict(f"{here}-{number}", "evicted")
        cluster.bind(f"{there}-{number + 1}", "p3")
    return Planted("ping-pong", f"{SPACE}/ping", f"{SPACE}/ping", f"{SPACE}/pong", is_inferred=True)


def free_cpu(cluster: Production) -> int:
    """Return the whole cpu of all nodes that no pod holds."""
    nodes = cluster.api.call("GET", "/api/v1/nodes")["items"]
    pods = [pod for pod in cluster.api.call("GET", "/api/v1/pods")["items"] if pod["spec"].get("nodeName")]
    held = [box["resources"].get("requests", {}).get("cpu", "0") for pod in pods for box in pod["spec"]["containers"]]
    return sum(int(node["status"]["allocatable"]["cpu"]) for node in nodes) - sum(map(int, held))


# ------------------------------------------------------------------------------------------------------------- Volcano


def hopeless_group(cluster: Production) -> Planted:
    """Create a PodGroup whose pod waits for a resource that nobody has."""
    cluster.group("hopeless", "online")
    cluster.pod("hopeless-0", 1, "example.com/fpga", group="hopeless")
    return Planted("hopeless-wait", f"{SPACE}/hopeless")


def two_into_the_guarantee_of_a_third(cluster: Production) -> Planted:
    """Guarantee half of the devices to a queue; Volcano checks each of two others for itself (volcano#4996)."""
    amounts = {DEVICE: "4"}
    spec = {"weight": 1, "guarantee": {"resource": amounts}, "deserved": amounts}
    cluster.apply(named("scheduling.volcano.sh/v1beta1", "Queue", "safe", spec=spec))
    is_recorded = lambda: "safe" in read_state(cluster.recording).objects["Queue"]  # noqa: E731
    eventually(is_recorded, "the guarantee is recorded")
    time.sleep(LATELY)  # for so long the scheduler may not have seen the guarantee
    for queue in ("online", "batch"):
        cluster.group(f"greedy-{queue}", queue)
        cluster.pod(f"greedy-{queue}-0", 4, DEVICE, group=f"greedy-{queue}")
        cluster.runs(f"greedy-{queue}-0")
    return Planted("guarantee", f"{SPACE}/greedy", is_own=True)


# ------------------------------------------------------------------------------------------------------ kube-scheduler


def needless_pod(cluster: Production) -> Planted:
    """Evict a pod although its node has room for the preemptor beside it; nobody is named."""
    cluster.pod("spared-0", 4, **BY_TEST)
    cluster.bind("spared-0", "p1")
    cluster.pod("wants-0", 2, **BY_TEST)
    cluster.evict("spared-0", "preempting to accommodate a higher priority pod")
    cluster.bind("wants-0", "p1")
    return Planted("needless-eviction", f"{SPACE}/spared", f"{SPACE}/spared-0", f"{SPACE}/wants-0", is_inferred=True)


def ping_pong_of_pods(cluster: Production) -> Planted:
    """Evict two pods for each other in turn; each is created again."""
    cluster.pod("ping", 8, **BY_TEST)
    cluster.bind("ping", "p3")
    for here, there in (("ping", "pong"), ("pong", "ping"), ("ping", "pong")):
        cluster.pod(there, 8, **BY_TEST)
        cluster.evict(here, f"preempted for {there}")
        cluster.bind(there, "p3")
    return Planted("ping-pong", f"{SPACE}/ping", f"{SPACE}/ping", f"{SPACE}/pong", is_inferred=True)


# --------------------------------------------------------------------------------------------------------------- Kueue


def kueue_job(cluster: Production, name: str, queue: str, cpu: int, **spec: object) -> None:
    """Submit a Job of one pod to a LocalQueue."""
    container = {"name": "work", "image": "work", "resources": {"requests": {"cpu": str(cpu)}}}
    env = [{"name": "TOKEN", "value": "s3cr3t"}]
    template = {
        "spec": {
            "restartPolicy": "Never",
            "schedulerName": "schedspec",
            "terminationGracePeriodSeconds": 1,
            "containers": [container | {"env": env}],
            **spec,
        }
    }
    meta = {"labels": {"kueue.x-k8s.io/queue-name": queue}}
    body = {"suspend": True, "parallelism": 1, "completions": 1, "backoffLimit": 100, "template": template}
    cluster.apply(named("batch/v1", "Job", name, SPACE, metadata=meta, spec=body))


def running_pod(cluster: Production, job: str) -> str:
    """Return the name of the running pod of a Job; empty if there is none."""
    path = f"/api/v1/namespaces/{SPACE}/pods?labelSelector=batch.kubernetes.io/job-name={job}"
    for pod in cluster.api.call("GET", path)["items"]:
        if pod["status"].get("phase") == "Running" and not pod["metadata"].get("deletionTimestamp"):
            return str(pod["metadata"]["name"])
    return ""


def workload(cluster: Production, job: str) -> tuple[str, str]:
    """Return the key and the uid of the Workload of a Job."""
    items = cluster.api.call("GET", f"/apis/{KUEUE}/namespaces/{SPACE}/workloads")["items"]
    [found] = [item["metadata"] for item in items if item["metadata"]["name"].startswith(f"job-{job}-")]
    return f"{SPACE}/{found['name']}", str(found["uid"])


def _evict_for(cluster: Production, victim: str, preemptor: str) -> None:
    """Evict the pod of a Job for another Job in Kueue's words; the Job creates it again."""
    pod = eventually(lambda: running_pod(cluster, victim), f"{victim} runs")
    why = f"Preempted to accommodate a workload (UID: {workload(cluster, preemptor)[1]}, JobUID: planted)"
    cluster.evict(pod, f"{why} due to prioritization in the ClusterQueue", kind="TerminationTarget")


def needless_workload(cluster: Production) -> Planted:
    """Evict a Workload although its quota was free beside the preemptor, which starts afterwards."""
    kueue_job(cluster, "spared", QUEUE, 2)
    eventually(lambda: running_pod(cluster, "spared"), "the victim runs")
    kueue_job(cluster, "wants", QUEUE, 2, schedulerName="planted")
    path = f"/api/v1/namespaces/{SPACE}/pods?labelSelector=batch.kubernetes.io/job-name=wants"
    found = eventually(lambda: cluster.api.call("GET", path)["items"], "the preemptor is admitted")
    _evict_for(cluster, "spared", "wants")
    cluster.bind(found[0]["metadata"]["name"], "p1")
    eventually(lambda: running_pod(cluster, "wants"), "the preemptor runs")
    victim, preemptor = (workload(cluster, job)[0] for job in ("spared", "wants"))
    return Planted("needless-workload-eviction", f"{SPACE}/spared", victim, preemptor)


def ping_pong_of_workloads(cluster: Production) -> Planted:
    """Evict two Workloads for each other in turn."""
    for job in ("ping", "pong"):
        kueue_job(cluster, job, QUEUE, 2)
        eventually(lambda job=job: running_pod(cluster, job), f"{job} runs")
    for victim, preemptor in (("ping", "pong"), ("pong", "ping"), ("ping", "pong")):
        _evict_for(cluster, victim, preemptor)
    eventually(lambda: running_pod(cluster, "ping"), "ping runs again")
    victim, preemptor = (workload(cluster, job)[0] for job in ("ping", "pong"))
    return Planted("ping-pong", f"{SPACE}/ping", victim, preemptor)


PLANTS: Mapping[str, tuple[Plant, ...]] = {
    "schedspec": (hopeless, needless, in_part, ping_pong, guarantee),
    "volcano": (hopeless_group, needless, in_part, ping_pong, two_into_the_guarantee_of_a_third),
    "kube-scheduler": (hopeless, needless_pod, ping_pong_of_pods),
    "kueue": (hopeless, needless_workload, ping_pong_of_workloads),
}
"""What can be planted for each scheduler; docs/recorder.md says why the others have no other plants."""
