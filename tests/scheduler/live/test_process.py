"""The whole process on a live cluster: its HTTP pages, how it stops, what it records."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from schedspec.scheduler.kube import PODGROUPS, PODS
from schedspec.scheduler.recording.events import Decided
from schedspec.scheduler.recording.segments import read_segment, segments
from tests.support.live.scheduler_process import Scheduler
from tests.support.live.status_queries import EVENTS, events, eventually
from tests.support.live.target_cluster import NAMESPACE, TargetCluster

pytestmark = pytest.mark.embedded


async def reasons(target: TargetCluster, namespace: str) -> dict[str, str]:
    """Return the messages of the events of a namespace, by reason."""
    return {event.reason: event.message for event in (await target.client.list(EVENTS, namespace)).items}


async def counted(scheduler: Scheduler, line: str) -> None:
    """Wait until the metrics contain `line`."""

    async def has_line() -> bool:
        return line in scheduler.page("/metrics")

    await eventually(line, has_line)


@pytest.mark.deadline(60)
async def test_a_bound_gang_appears_in_status_events_and_metrics(target: TargetCluster) -> None:
    async with target.scenario(nodes=2, cpu="4"):
        scheduler = target.start()
        await target.ready(scheduler)
        await target.gang("g", 3)
        await target.bound(3)

        async def runs() -> bool:
            group = await target.client.get(PODGROUPS, "g-0", NAMESPACE)
            conditions = [(c.type, c.status) for c in group.status.conditions or ()]
            return (group.status.phase, group.status.running, conditions[-1:]) == (
                "Running",
                3,
                [("Scheduled", "True")],
            )

        async def is_marked() -> bool:
            return "Scheduled" in await reasons(target, NAMESPACE)

        await eventually("the group runs and is scheduled", runs)
        await eventually("an event of a bind", is_marked)
        assert (await reasons(target, NAMESPACE))["Scheduled"].startswith(f"Successfully assigned {NAMESPACE}/g-0-")
        await counted(scheduler, 'volcano_queue_pod_group_running_count{queue_name="default"} 1.0')
        metrics = scheduler.page("/metrics")
        assert 'volcano_schedule_attempts_total{result="scheduled"} 3.0' in metrics
        assert "volcano_e2e_scheduling_latency_milliseconds_count" in metrics
        assert 'volcano_action_scheduling_latency_milliseconds_count{action="allocate"}' in metrics
        assert 'volcano_plugin_scheduling_latency_milliseconds_count{OnSession="OnSessionOpen",plugin=' in metrics
        assert "volcano_e2e_job_scheduling_latency_milliseconds_count 1.0" in metrics
        of_job = f'{{job_name="g-0",job_namespace="{NAMESPACE}",queue="default"}}'
        assert f"volcano_e2e_job_scheduling_duration{of_job}" in metrics
        await target.client.delete(PODGROUPS, "g-0", NAMESPACE)
        await counted(scheduler, 'volcano_queue_pod_group_running_count{queue_name="default"} 0.0')
        assert of_job not in scheduler.page("/metrics")
        assert scheduler.page("/healthz") == "ok\n"
        assert await asyncio.to_thread(scheduler.stop) == 0
        target.stopped(scheduler)


@pytest.mark.deadline(60)
async def test_a_gang_that_does_not_fit_is_not_bound_and_states_the_reason(target: TargetCluster) -> None:
    async with target.scenario(nodes=2, cpu="4"):
        await target.ready(target.start())
        await target.gang("g", 9)

        async def are_published() -> bool:
            pod = await target.client.get(PODS, "g-0-0", NAMESPACE)
            group = await target.client.get(PODGROUPS, "g-0", NAMESPACE)
            found = [c.type for c in (*(pod.status.conditions or ()), *(group.status.conditions or ()))]
            return {"PodScheduled", "Unschedulable"} <= {*found} and "FailedScheduling" in await reasons(
                target, NAMESPACE
            )

        await eventually("conditions and an event", are_published)
        await target.assert_settled()
        assert target.history.bound() == []
        pod = await target.client.get(PODS, "g-0-0", NAMESPACE)
        [condition] = [c for c in pod.status.conditions or () if c.type == "PodScheduled"]
        group = await target.client.get(PODGROUPS, "g-0", NAMESPACE)
        [of_group] = [c for c in group.status.conditions or () if c.type == "Unschedulable"]
        assert (condition.status, condition.reason, of_group.status) == ("False", "Unschedulable", "True")
        assert condition.message == of_group.message != ""
        assert (await reasons(target, NAMESPACE))["FailedScheduling"] == of_group.message


@pytest.mark.deadline(60)
async def test_a_changed_policy_is_loaded_and_a_bad_one_is_refused(target: TargetCluster) -> None:
    async with target.scenario(nodes=1):
        scheduler = target.start("--lease-namespace", NAMESPACE)
        await target.ready(scheduler)
        before = json.loads(scheduler.page("/policy"))

        async def policy_page(is_expected: Callable[[dict[str, str]], bool]) -> None:
            async def shows_it() -> bool:
                return is_expected(json.loads(scheduler.page("/policy")))

            await eventually("the expected policy page", shows_it)

        scheduler.change_policy('actions: "alocate"\n')
        await policy_page(lambda page: page["error"] != "")
        refused = json.loads(scheduler.page("/policy"))
        assert refused["sha256"] == before["sha256"]
        assert "alocate" in refused["error"]
        scheduler.change_policy('actions: "allocate"\ntiers:\n- plugins: [{name: gang}]\n')
        await policy_page(lambda page: page["error"] == "" and page["sha256"] != before["sha256"])
        loaded = json.loads(scheduler.page("/policy"))

        async def are_recorded() -> bool:
            return {"PolicyRefused", "PolicyLoaded"} <= (await about_the_lease()).keys()

        async def about_the_lease() -> dict[str, tuple[str, str]]:
            return await events(target.client, NAMESPACE, "Lease", "schedspec")

        await eventually("events on the lease", are_recorded)
        lease = await about_the_lease()
        assert lease["PolicyRefused"] == ("Warning", f"the previous policy stays in force: {refused['error']}")
        where = f"{scheduler.policy_file}, sha256 {loaded['sha256']}"
        assert lease["PolicyLoaded"] == ("Normal", f"{where}, is in force")


@pytest.mark.deadline(60)
async def test_a_running_record_and_a_cycle_record_contain_the_decisions(target: TargetCluster, tmp_path: Path) -> None:
    async with target.scenario(nodes=2, cpu="4"):
        scheduler = target.start("--record", str(tmp_path))
        await target.ready(scheduler)
        await target.gang("g", 3)
        await target.bound(3)
        scheduler.process.send_signal(signal.SIGUSR2)

        async def is_written() -> bool:
            return any(folder.is_dir() for folder in tmp_path.iterdir())

        await eventually("the record of a cycle", is_written)
        assert await asyncio.to_thread(scheduler.stop) == 0
        target.stopped(scheduler)
    decided = [i for path in segments(tmp_path) for i in read_segment(path) if isinstance(i, Decided)]
    assert sorted(bind.task for item in decided for bind in item.decisions.binds) == [
        f"{NAMESPACE}/g-0-{i}" for i in range(3)
    ]
    [cycle] = [folder for folder in tmp_path.iterdir() if folder.is_dir()]
    [one] = [i for path in segments(cycle) for i in read_segment(path) if isinstance(i, Decided)]
    assert one.decisions.binds == []


@pytest.mark.deadline(60)
async def test_a_start_without_a_kubeconfig_fails_with_one_sentence(target: TargetCluster, tmp_path: Path) -> None:
    async with target.scenario(nodes=0):
        with pytest.raises(RuntimeError, match="no-such-file: no such kubeconfig file; name one with --kubeconfig"):
            target.start("--kubeconfig", "no-such-file")
