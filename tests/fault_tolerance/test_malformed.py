"""Among hundreds of malformed objects, the well-formed gangs run, and each waiting pod has a reason."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from schedspec.scheduler.kube import PODGROUPS, PODS, ApiError
from tests.support.live.api_objects import each, pod_body
from tests.support.live.target_cluster import NAMESPACE, TargetCluster

pytestmark = [pytest.mark.embedded, pytest.mark.faults]

NASTY = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["", "-1", "1e400", "NaN", "0x10", "null", "{}", "[]", "{", '{"a": ', "true", "9" * 40, "🂡", "\u0000"]
    ),
)
KEYS = st.sampled_from(
    [
        "volcano.sh/task-spec",
        "volcano.sh/task-priority",
        "volcano.sh/preemptable",
        "volcano.sh/card.name",
        "volcano.sh/card.request",
        "volcano.sh/service.type",
        "volcano.sh/cooldown-time",
        "sla-waiting-time",
        "scheduling.k8s.io/group-name",
        "scheduling.volcano.sh/group-min-member",
        "scheduling.volcano.sh/queue-name",
    ]
)
ANNOTATIONS = st.dictionaries(KEYS, NASTY, min_size=1, max_size=5)
AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "pods", "x/y", ""]), NASTY, max_size=4)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "minMember": st.one_of(st.integers(-(2**31), 2**31 - 1), NASTY),
        "queue": NASTY,
        "priorityClassName": NASTY,
        "minResources": AMOUNTS,
        "minTaskMember": st.dictionaries(NASTY, st.integers(-3, 2**31 - 1), max_size=3),
    },
)
SELECTORS = st.fixed_dictionaries(
    {"key": NASTY, "operator": st.sampled_from(["In", "NotIn", "Gt", "Lt", "Exists"])},
    optional={"values": st.lists(NASTY, max_size=2)},
)
BAD = 500


def generated(strategy: st.SearchStrategy[Any], count: int) -> list[Any]:
    """Return `count` examples of the strategy, the same in every run."""
    found: list[Any] = []

    @settings(
        max_examples=count,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )
    @given(strategy)
    def collect(example: Any) -> None:
        found.append(example)

    collect()
    return found


def _without_reason(target: TargetCluster) -> list[str]:
    """Return the waiting pods that have no reason."""
    waiting = [pod for pod in target.history.pods.values() if not pod.spec.node_name]
    return [
        pod.metadata.name
        for pod in waiting
        if not any(
            condition.type == "PodScheduled" and condition.status == "False" and condition.message
            for condition in pod.status.conditions or ()
        )
    ]


@pytest.mark.deadline(180)
async def test_gangs_run_among_hundreds_of_malformed_objects(target: TargetCluster) -> None:
    pairs = generated(st.tuples(ANNOTATIONS, SPECS, st.lists(SELECTORS, max_size=2)), BAD)
    async with target.scenario(nodes=10, cpu="32"):
        scheduler = target.start("--log-level", "warning", controllers="podgroup,job,queue")
        await target.ready(scheduler)
        accepted = 0

        async def bad(item: tuple[int, Any]) -> None:
            nonlocal accepted
            i, (annotations, spec, selectors) = item
            group = {"metadata": {"name": f"bad-{i}", "annotations": annotations}, "spec": spec}
            pod = pod_body(f"bad-{i}", f"bad-{i}")
            pod["metadata"]["annotations"].update(annotations)
            if selectors:
                term = {"nodeSelectorTerms": [{"matchExpressions": selectors}]}
                pod["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}
            for resource, body in ((PODGROUPS, group), (PODS, pod)):
                with contextlib.suppress(ApiError):
                    await target.client.create(resource, body, NAMESPACE)
                    accepted += 1

        await each(enumerate(pairs), bad, width=16)
        for i in range(25):
            await target.gang(f"good{i}", 4)
        good = [f"good{i}-0" for i in range(25)]
        await target.history.until(
            lambda: all(len(target.history.bound(gang)) == 4 for gang in good), "all good gangs run"
        )
        assert accepted > BAD / 2, f"only {accepted} malformed objects were admitted by the API server"
        assert scheduler.process.poll() is None
        assert "cycle failed" not in scheduler.log.read_text()
        scheduler.page("/healthz")
        await target.history.until(lambda: not _without_reason(target), "each waiting pod has a reason")
        target.history.forget("bad")
