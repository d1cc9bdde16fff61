"""Steps on Kueue's own objects: its queues as users have them, and AdmissionChecks, which a scenario answers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from schedspec.api import clock, timeouts
from schedspec.api.capabilities import Capability
from schedspec.api.errors import Unmet
from schedspec.api.kinds import Kind
from schedspec.checks import reasons
from schedspec.gherkin.step_decorators import given, makes, one_of, refers, then, when
from schedspec.gherkin.things import ADMISSION_CHECK, KUEUE_QUEUES_OF, WORKLOAD
from schedspec.observe import view as views
from schedspec.observe.expect import Expect
from schedspec.scenario import manifests
from schedspec.scenario.world import World
from schedspec.steps.columns import Beside

_STATES = {"approves": "Ready", "rejects": "Rejected", "retries": "Retry"}
"""What a controller of admission checks may do with a Workload, and the state that it writes."""


@given('the Kueue queues of "{file}"', needs=(Capability.QUEUES, Capability.KUEUE_QUEUES))
@refers(file=KUEUE_QUEUES_OF)
@makes(lambda _values, _rows: [])
def _(world: World, beside: Beside, file: str) -> None:
    """ClusterQueues, Cohorts, LocalQueues and ResourceFlavors of a manifest; work names the LocalQueue as its queue."""
    active = {**_written(reason="Active"), "type": "Active", "status": "True"}
    for ref in world.apply_rendered(manifests.kueue_queues(beside(file), world.namespace)):
        if ref.kind is Kind.ADMISSIONCHECK:
            world.patch(ref.kind, ref.name, {"status": {"conditions": [active]}}, subresource="status")


def _written(**more: str) -> dict[str, Any]:
    """Return a part of a status as a controller of admission checks writes it now."""
    since = datetime.fromtimestamp(clock.wall(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {**more, "lastTransitionTime": since, "message": "The scenario decides."}


@when('admission check "{check}" {does:Does} "{name}"', needs=(Capability.KUEUE_QUEUES,), Does=one_of(*_STATES))
@refers(check=ADMISSION_CHECK, name=WORKLOAD)
def _(world: World, expect: Expect, check: str, does: str, name: str) -> None:
    """The check lets a workload with quota start (approves), stops it (rejects), or has it queue again (retries)."""
    expect.eventually(reasons.waits_for_check(name, check), within=timeouts.PHASE)
    group = views.podgroup_of(world.history.now(), name)
    if group is None:
        raise Unmet(f"{name} waits for admission check {check}", "its Workload is gone")
    answer = _written(name=check, state=_STATES[does])
    states = [{**it, **answer} if it["name"] == check else it for it in group["status"]["admissionChecks"]]
    change = {"status": {"admissionChecks": states}}
    world.patch(Kind.WORKLOAD, str(group["metadata"]["name"]), change, subresource="status")


@then('"{name}" waits for admission check "{check}"', needs=(Capability.KUEUE_QUEUES,))
@refers(check=ADMISSION_CHECK, name=WORKLOAD)
def _(expect: Expect, name: str, check: str) -> None:
    """The workload has its quota, and no pod of it may start before the check approves it."""
    expect.eventually(reasons.waits_for_check(name, check), within=timeouts.PHASE)
