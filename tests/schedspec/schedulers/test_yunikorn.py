"""YuniKorn: how queues, work and policies of a scenario reach it, and how its evictions are seen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import psutil
import pytest
import yaml

from schedspec import distribution, schedulers
from schedspec.api import timeouts
from schedspec.api.errors import PolicyRefusedError, SchedulerDiedError
from schedspec.api.kinds import Kind
from schedspec.clusters.programs.pinned import program
from schedspec.observe import view
from schedspec.observe.watcher import HistoryWriter
from schedspec.scenario.templates import Templates
from schedspec.schedulers import AdapterError, Site, UnsuitableClusterError
from schedspec.schedulers.readiness import NotReadyError
from schedspec.schedulers.yunikorn import YuniKorn, queues
from schedspec.schedulers.yunikorn.process import YuniKornLog, YuniKornProcess

COMMON = {"namespace": "ns", "scheduler_name": "yunikorn", "image": "i", "simulated": False}
AMOUNTS, PARTS = queues.YuniKornPolicy(), queues.YuniKornPolicy(shares="parts")
DOMAIN = "yunikorn.apache.org/"
LINE = "2026-11-28T03:27:00.000Z\tINFO\tcore.scheduler.preemption\tobjects/preemption.go:686\tPreempting task\t%s\n"
IN_FORCE = "2026-11-28T03:27:00.000Z\tINFO\tcore\tpartition.go:179\tUpdating placement manager rules on config reload\n"
REFUSED = (
    '2026-11-28T03:27:00.000Z\tERROR\tshim.context\tcache/context.go:641\treload configuration failed\t{"error": 1}\n'
)


def queue(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


def node(**allocatable: str) -> dict[str, Any]:
    return {"status": {"allocatable": {"pods": "110", **allocatable}}}


def partition(*given: dict[str, Any], nodes: tuple[Any, ...] = (), policy: Any = AMOUNTS) -> dict[str, Any]:
    [found] = yaml.safe_load(queues.of_scenario(given, nodes, policy))["partitions"]
    return dict(found)


def resources_of(name: str, *given: dict[str, Any], **more: Any) -> dict[str, Any]:
    [root] = partition(*given, **more)["queues"]
    [found] = [it for it in root["queues"] if it["name"] == name]
    return dict(found.get("resources", {}))


@pytest.mark.parametrize(
    ("amount", "resource", "written"),
    [
        ("2", "cpu", {"vcore": "2000m"}),
        ("500m", "cpu", {"vcore": "500m"}),
        ("1Gi", "memory", {"memory": "1073741824"}),
        ("4", "nvidia.com/gpu", {"nvidia.com/gpu": "4"}),
        ("0", "nvidia.com/gpu", {"nvidia.com/gpu": "0"}),
    ],
)
def test_amounts_are_in_units_of_yunikorn(amount: str, resource: str, written: dict[str, str]) -> None:
    found = resources_of("a", queue("a", deserved={resource: amount}, capability={resource: amount}))
    assert found == {"guaranteed": written, "max": written}


def test_every_queue_has_the_order_of_applications_in_which_gangs_are_accepted() -> None:
    [root] = partition(queue("team"), queue("jobs", parent="team"))["queues"]
    every = [*root["queues"], *(below for it in root["queues"] for below in it.get("queues", []))]
    assert len(every) == 3
    assert {it["properties"]["application.sort.policy"] for it in every} == {"fifo"}


def test_a_guarantee_above_what_is_deserved_is_guaranteed() -> None:
    given = queue("a", deserved={"cpu": "1", "memory": "4"}, guarantee={"resource": {"cpu": "3", "memory": "2"}})
    assert resources_of("a", given) == {"guaranteed": {"vcore": "3000m", "memory": "4"}}


@pytest.mark.parametrize("others", [(), ("default",)])
def test_weights_divide_the_nodes_among_the_queues_of_a_scenario(others: tuple[str, ...]) -> None:
    given = queue("a", weight=3), *(queue(name) for name in others or ("b",))
    nodes = node(cpu="2", memory="8"), node(cpu="6", memory="8")
    found = {name: resources_of(name, *given, nodes=nodes, policy=PARTS) for name in ("a", *others, "default")}
    assert found["a"] == {"guaranteed": {"vcore": "6000m", "memory": "12"}}
    assert found["default"] == ({"guaranteed": {"vcore": "2000m", "memory": "4"}} if others else {})


def test_a_part_of_the_nodes_is_within_what_a_queue_may_hold_and_that_of_no_child() -> None:
    given = queue("small", capability={"cpu": "1"}), queue("team"), queue("jobs", parent="team", weight=5)
    [root] = partition(*given, nodes=(node(cpu="8"),), policy=PARTS)["queues"]
    found = {it["name"]: it.get("resources") for it in root["queues"]}
    one = {"vcore": "1000m"}
    assert found == {
        "default": None,
        "small": {"guaranteed": one, "max": one},
        "team": {"guaranteed": {"vcore": "4000m"}},
    }
    [team] = [it for it in root["queues"] if it["name"] == "team"]
    assert [it.get("resources") for it in team["queues"]] == [None]


def test_work_without_queues_deserves_the_whole_cluster() -> None:
    found = resources_of("default", nodes=(node(cpu="2"),), policy=PARTS)
    assert found == {"guaranteed": {"vcore": "2000m"}}


def test_work_is_placed_in_the_leaves_of_the_tree_of_a_scenario() -> None:
    found = partition(queue("root"), queue("team"), queue("jobs", parent="team", priority=7))
    placed = {rule["filter"]["users"][0]: rule["value"] for rule in found["placementrules"]}
    assert placed == {"queue:jobs": "root.team.jobs", "queue:default": "root.default"}
    [root] = found["queues"]
    [team] = [it for it in root["queues"] if it.get("parent")]
    assert [it["properties"]["priority.offset"] for it in team["queues"]] == ["7"]


@pytest.mark.parametrize(
    ("template", "row", "minimum"),
    [
        ("gang", {"replicas": 4}, 4),
        ("job", {"replicas": 4, "min_available": 2}, 2),
        ("job", {"replicas": 4, "min_available": 1}, 0),
        ("job", {}, 0),
        ("kubernetesjob", {"replicas": 4}, 0),
        ("service", {"replicas": 4}, 0),
        ("pod", {}, 0),
    ],
)
def test_the_pods_of_each_kind_of_work_are_one_application(template: str, row: dict[str, Any], minimum: int) -> None:
    folders = [distribution.folder("templates") / "yunikorn", distribution.folder("templates")]
    group, work = (it.object for it in Templates(folders, COMMON).render(template, {"name": "x", "queue": "q", **row}))
    pod = work if work["kind"] == "Pod" else work["spec"]["template"]
    assert group["spec"] == {"minMember": max(minimum, 1), "queue": "q"}
    assert view.group_of(pod) == group["metadata"]["name"] == "x"
    found = pod["metadata"]["annotations"]
    user = json.loads(found[f"{DOMAIN}user.info"])
    assert (found[f"{DOMAIN}app-id"], user) == ("ns-x", {"user": queues.user_of("q")})
    assert pod["spec"]["schedulerName"] == "yunikorn"
    groups = json.loads(found.get(f"{DOMAIN}task-groups", "[]"))
    assert [(it["name"], it["minMember"]) for it in groups] == ([("pods", minimum)] if minimum else [])
    assert found.get(f"{DOMAIN}task-group-name") == ("pods" if minimum else None)


def test_a_placeholder_requests_what_a_pod_of_its_gang_does() -> None:
    row = {
        "replicas": 2,
        "cpu": "1",
        "memory": "1Gi",
        "cards": 2,
        "card": "A|B",
        "tolerates": ["k"],
        "node_selector": {"zone": "a"},
        "resources": {"example.com/nic": 1},
    }
    folders = [distribution.folder("templates") / "yunikorn", distribution.folder("templates")]
    _, job = (it.object for it in Templates(folders, COMMON).render("job", {"name": "x", **row}))
    pod = job["spec"]["template"]
    [group] = json.loads(pod["metadata"]["annotations"][f"{DOMAIN}task-groups"])
    requests = pod["spec"]["containers"][0]["resources"]["requests"]
    assert {name: str(it) for name, it in group["minResource"].items()} == {k: str(it) for k, it in requests.items()}
    for field in ("nodeSelector", "tolerations", "affinity"):
        assert group[field] == pod["spec"][field]


def test_every_policy_of_the_package_is_one_of_yunikorn() -> None:
    files = sorted((distribution.folder("templates") / "yunikorn" / "policies").glob("*.yaml"))
    lacking = [file.stem for file in files if queues.read(file.read_text("utf-8")).lacks]
    assert sorted(lacking) == ["capacity-with-preempt", "gangs", "preempt", "preempt-with-enqueue", "share-of-use"]


@pytest.mark.parametrize("text", ["shares: all", "preemption: maybe", "preempt: true", "- shares", "{"])
def test_what_is_no_policy_of_yunikorn_is_refused(text: str) -> None:
    with pytest.raises(PolicyRefusedError, match="not a policy of YuniKorn"):
        queues.read(text)


def test_a_pod_that_the_log_names_before_its_deletion_is_evicted(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.log"
    log = YuniKornLog(file)
    writer = HistoryWriter(unmarked_eviction=log.eviction)
    history = writer.begin("ns")
    victim = json.dumps({"askApplicationID": "ns-claim", "victimAllocationKey": "victim"})
    file.write_text(LINE % victim, "utf-8")
    for uid in ("victim", "deleted-by-a-user"):
        meta = {"name": uid, "namespace": "ns", "uid": uid, "resourceVersion": "1"}
        writer.record(Kind.POD, {"metadata": meta})
        assert view.eviction(writer.live()[history.ref(Kind.POD, uid)]) is None
        writer.record(Kind.POD, {"metadata": {**meta, "resourceVersion": "2", "deletionTimestamp": "now"}})
    found = {ref.name: view.eviction(obj) for ref, obj in writer.live().items()}
    assert found["deleted-by-a-user"] is None
    assert found["victim"] is not None
    assert found["victim"]["message"] == "preempted for the application ns-claim"


def test_a_line_of_the_log_counts_when_it_is_complete(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.log"
    log = YuniKornLog(file)
    first, second = (LINE % json.dumps({"askApplicationID": "a", "victimAllocationKey": uid}) for uid in ("1", "2"))
    for cut in range(len(second)):
        log.restart()
        file.write_text(first + second[:cut], "utf-8")
        assert [log.eviction(uid) is not None for uid in ("1", "2")] == [True, False]
        file.write_text(first + second, "utf-8")
        assert log.eviction("2") is not None


def test_the_log_counts_configurations_that_came_into_force_or_were_refused(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.log"
    log = YuniKornLog(file)
    assert log.configurations() == (0, [])
    file.write_text(IN_FORCE + REFUSED, "utf-8")
    assert log.configurations() == (1, ['{"error": 1}'])
    with file.open("a", encoding="utf-8") as more:
        more.write(IN_FORCE)
    assert log.configurations()[0] == 2
    file.write_text("", "utf-8")
    log.restart()
    assert log.configurations() == (0, [])


def test_a_plan_cannot_ask_it() -> None:
    with pytest.raises(AdapterError, match="a dump has neither its queues nor its applications"):
        YuniKorn().alone(cast("Site", None))


def test_a_version_can_be_selected_and_has_its_default() -> None:
    assert schedulers.find("yunikorn@v1.8.1").wanted == "v1.8.1"
    assert program("yunikorn-scheduler").version == "v1.8.0"


class FakeApi:
    """An API server with one ConfigMap. YuniKorn's log gets `line` when a change is applied."""

    def __init__(self, log: Path, line: str = IN_FORCE) -> None:
        self.log, self.line = log, line
        self.config: dict[str, Any] = {}
        self.applied = 0

    def call(self, method: str, _path: str, *, body: Any = None) -> dict[str, Any]:
        return self.config if method == "GET" else body

    def apply(self, obj: dict[str, Any], _manager: str) -> dict[str, Any]:
        self.applied += 1
        self.config = obj
        if self.log.exists():
            with self.log.open("a", encoding="utf-8") as log:
                log.write(self.line)
        return obj


@pytest.fixture
def api(tmp_path: Path) -> FakeApi:
    return FakeApi(tmp_path / "scheduler.log")


@pytest.fixture
def process(tmp_path: Path, api: FakeApi) -> Iterator[YuniKornProcess]:
    """Return a process that has started, of a program that does nothing but log that it is ready."""
    program = tmp_path / "yunikorn-scheduler"
    program.write_text("#!/bin/sh\necho scheduler state initialized\nexec sleep 600\n", "utf-8")
    program.chmod(0o755)
    site = Site(tmp_path, cast("Any", api), tmp_path / "kubeconfig", "", cast("Any", None), None, None, 1.0, print)
    found = YuniKornProcess(site, program)
    found.start("{}")
    yield found
    found.stop()


def test_the_program_starts_with_a_configuration(process: YuniKornProcess, api: FakeApi) -> None:
    process.check()
    assert api.config["metadata"]["namespace"] == "yunikorn"
    assert "root.default" in api.config["data"]["queues.yaml"]


def test_queues_are_written_once_until_they_change(process: YuniKornProcess, api: FakeApi) -> None:
    for text, applied in (("a", 2), ("a", 2), ("b", 3)):
        process.configure(text)
        assert (api.applied, api.config["data"]["queues.yaml"]) == (applied, text)


def test_queues_that_yunikorn_refuses_are_an_error_with_its_reason(process: YuniKornProcess, api: FakeApi) -> None:
    api.line = REFUSED
    with pytest.raises(PolicyRefusedError, match="YuniKorn refused these queues"):
        process.configure("a")


def test_queues_are_not_in_force_before_the_log_says_so(
    process: YuniKornProcess, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeouts, "READY", 0.1)
    api.line = ""
    with pytest.raises(NotReadyError, match="YuniKorn has not taken over the queues"):
        process.configure("a")


def test_the_end_of_the_program_is_noticed_while_queues_wait(process: YuniKornProcess, api: FakeApi) -> None:
    api.line = ""
    psutil.Process(process.handle()["yunikorn-scheduler"]).kill()
    with pytest.raises(SchedulerDiedError, match="was killed by signal 9"):
        process.configure("a")


def test_a_policy_that_yunikorn_lacks_skips_the_scenario(process: YuniKornProcess) -> None:
    assert process.use_policy("preemption: true") == process.use_policy("preemption: true")
    with pytest.raises(UnsuitableClusterError, match=r"yunikorn lacks this policy \(it preempts between queues\)"):
        process.use_policy("lacks: it preempts between queues")
