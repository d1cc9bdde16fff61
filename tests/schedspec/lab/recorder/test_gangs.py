"""How many pods of a gang start together is read from any kind of group: by `judge`, the page and `reduce`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from schedspec.cli import schedspec
from schedspec.lab.recorder.window import record_of
from schedspec.observe import view
from tests.schedspec.lab.recorder.nights import judged
from tests.schedspec.lab.reduce.recordings import START, Recorded

BETA, ALPHA = "scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha2"
WHOLE = {BETA: {"all": {}}, ALPHA: "PodGroup"}
SINGLE = {BETA: {"single": {}}, ALPHA: "Pod"}
SUB_GROUPS = [{"name": "workers", "subGroupSize": 2, "minSubGroups": 1}]


def sets(*given: dict[str, Any]) -> dict[str, Any]:
    return {"podSets": [{"name": f"set-{number}", **each} for number, each in enumerate(given)]}


@pytest.mark.parametrize(
    ("spec", "minimum"),
    [
        pytest.param({"minMember": 3}, 3, id="volcano"),
        pytest.param({}, 0, id="volcano-without-a-minimum"),
        pytest.param({"minMember": 4, "subGroupPolicy": SUB_GROUPS}, 4, id="volcano-with-subgroups"),
        pytest.param({"minMember": 4, "minTaskMember": {"ps": 1, "worker": 2}}, 4, id="volcano-with-tasks"),
        pytest.param({"schedulingPolicy": {"gang": {"minCount": 2}}}, 2, id="kubernetes"),
        pytest.param({"schedulingPolicy": {"basic": {}}}, 0, id="kubernetes-one-by-one"),
        pytest.param({"schedulingPolicy": None}, 0, id="kubernetes-without-a-policy"),
        pytest.param(sets({"count": 3}), 3, id="kueue"),
        pytest.param(sets({"count": 3, "minCount": 1}, {"count": 2}), 3, id="kueue-that-may-start-with-fewer"),
        pytest.param(sets({}), 1, id="kueue-without-a-count"),
        pytest.param({"minMember": 2, "subGroups": [{"name": "a", "minMember": 1}]}, 2, id="kai"),
    ],
)
def test_each_kind_of_group_says_how_many_pods_start_together(spec: dict[str, Any], minimum: int) -> None:
    assert view.minimum_of({"spec": spec}) == minimum


class Gangs(Recorded):
    """A recording under kube-scheduler of a gang of Kubernetes whose pods wait, beside another pod that waits."""

    def __init__(self, folder: Path, version: str, pods: int = 3, **spec: Any) -> None:
        super().__init__(folder)
        self.node("n1", 8)
        self.pod("other-0", 8)
        self.gang("half", api_version=version, **spec)
        for number in range(pods):
            self.pod(f"half-{number}", 2, owner="half", schedulingGroup={"podGroupName": "half"})
        self.pass_time(1.0)

    def bind_all(self, number: int) -> None:
        for each in range(number):
            self.bind(f"half-{each}")
        self.pass_time(10.0)

    def evict_all(self, number: int) -> None:
        self.bind_all(3)
        for each in range(number):
            self.evict(f"half-{each}", "default-scheduler: preempting to accommodate a higher priority pod")
        self.pass_time(10.0)


def gang(minimum: int) -> dict[str, Any]:
    return {"schedulingPolicy": {"gang": {"minCount": minimum}}}


def binds(number: int) -> Callable[[Gangs], None]:
    return lambda made: made.bind_all(number)


def evicts(number: int) -> Callable[[Gangs], None]:
    return lambda made: made.evict_all(number)


def binds_one_of_two_nominated(made: Gangs) -> None:
    made.nominate("half-1")
    made.bind_all(1)


@pytest.mark.parametrize(
    ("spec", "acts", "found"),
    [
        pytest.param(gang(2), binds(1), "bound in part: 1 of 2 pods hold capacity", id="bound-in-part"),
        pytest.param(gang(2), binds(2), "", id="bound-up-to-its-minimum"),
        pytest.param(gang(2), binds_one_of_two_nominated, "", id="bound-while-another-pod-is-nominated"),
        pytest.param({"schedulingPolicy": {"basic": {}}}, binds(1), "", id="bound-one-by-one"),
        pytest.param(gang(2), evicts(2), "", id="evicted-in-part-without-a-mode"),
        pytest.param(gang(2) | {"disruptionMode": SINGLE}, evicts(2), "", id="evicted-in-part-one-by-one"),
        pytest.param(gang(2) | {"disruptionMode": WHOLE}, evicts(2), "left incomplete: 1 of 2", id="left-in-part"),
        pytest.param(gang(2) | {"disruptionMode": WHOLE}, evicts(1), "", id="left-with-its-minimum"),
        pytest.param(gang(2) | {"disruptionMode": WHOLE}, evicts(3), "", id="evicted-as-a-whole"),
    ],
)
@pytest.mark.parametrize("version", [BETA, ALPHA], ids=["v1beta1", "v1alpha2"])
def test_a_gang_of_kubernetes_is_judged_by_its_own_minimum(
    tmp_path: Path, version: str, spec: dict[str, Any], acts: Callable[[Gangs], None], found: str
) -> None:
    mode = spec.get("disruptionMode")
    made = Gangs(tmp_path, version, **{**spec, **({"disruptionMode": mode[version]} if mode else {})})
    acts(made)
    made.close()
    texts = [(one.about, one.text) for one in judged(tmp_path) if one.monitor == "gang"]
    assert [about for about, _ in texts] == (["team/half"] if found else [])
    assert all(found in text for _, text in texts)


@pytest.mark.parametrize(("version", "kind"), [(BETA, ".scheduling.k8s.io"), (ALPHA, ".v1alpha2.scheduling.k8s.io")])
def test_the_page_has_the_minimum_of_a_gang(tmp_path: Path, version: str, kind: str) -> None:
    made = Gangs(tmp_path, version, **gang(2))
    made.workload("train", "online", 1, pods=4)
    made.close()
    stories = {
        (story.kind, story.name): story.moments[-1].state for story in record_of(tmp_path, START, made.now).objects
    }
    assert stories[f"podgroup{kind}", "half"]["minMember"] == 2
    assert stories["workload", "job-train-1a2b3"]["minMember"] == 4


@pytest.mark.parametrize(
    ("minimum", "row"), [(2, "| train-1 | 3 | 2 | 2 |"), (3, "| train-1 | 3 | 2 |")], ids=["less-than-all", "all"]
)
def test_a_gang_of_kubernetes_is_reduced_with_its_minimum(tmp_path: Path, minimum: int, row: str) -> None:
    made = Gangs(tmp_path / "recording", BETA, **gang(minimum))
    made.bind_all(1)
    made.close()
    out = tmp_path / "half.feature"
    done = CliRunner().invoke(schedspec, ["reduce", str(made.folder), "--because", "monitor gang", "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert row in [" ".join(line.split()) for line in out.read_text().splitlines()]
