"""A fault test is judged only after the monitors' watch has shown every version that the test's watch has shown."""

from __future__ import annotations

from typing import Any

import msgspec

from schedspec.api.kinds import Kind
from schedspec.observe.history import History
from schedspec.scheduler.model.objects import Pod
from tests.schedspec.monitors.written_history import WrittenHistory, findings
from tests.support.live.monitored import shows


def a_job_that_reclaims_a_node(binds: int) -> WrittenHistory:
    """Two victims of 2 cpu make room for three pods of 1 cpu, of which `binds` are bound."""
    history = WrittenHistory()
    history.node("n1", cpu="4")
    history.queue("a", deserved={"cpu": "1"})
    history.queue("b", deserved={"cpu": "3"})
    for group, queue, minimum in (("one", "a", 1), ("two", "a", 1), ("job", "b", 3)):
        history.group(group, queue, minimum)
    for victim in ("one", "two"):
        history.bind(victim, victim, "n1", "2")
    for number in range(3):
        history.wait(f"job-{number}", "job", "1")
    for victim in ("one", "two"):
        history.evict(victim, "reclaimed for ns/job of queue b")
    for number in range(binds):
        history.bind(f"job-{number}", "job", "n1", "1")
    return history


def test_victims_look_needless_until_all_later_binds_are_observed() -> None:
    seen = {binds: set(findings(a_job_that_reclaims_a_node(binds))) for binds in (1, 3)}
    assert seen == {1: {"needless-eviction", "disproportionate-eviction"}, 3: set()}


def test_the_monitors_wait_for_the_last_version_of_each_pod() -> None:
    versions = a_job_that_reclaims_a_node(3).versions
    latest: dict[str, dict[str, Any]] = {version.ref.name: version.object for version in versions[-3:]}
    pods = [msgspec.convert(obj, Pod) for obj in latest.values()]
    history, waited = History("ns"), []
    for version in versions:
        waited.append(shows(history, pods))
        history.record(version.ref, version.change, version.object)
    assert (any(waited), shows(history, pods)) == (False, True)
    assert {version.ref.kind for version in versions[-3:]} == {Kind.POD}
