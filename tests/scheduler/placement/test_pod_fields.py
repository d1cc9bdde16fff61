"""No field of a pod's spec that restricts where it may run is ignored (`pod_fields.yaml`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from schedspec.scheduler.model.objects import PodSpec, Volume
from schedspec.scheduler.reasons import render_refusal
from tests.support.core.events import policy_of
from tests.support.core.world import World

ROWS = yaml.safe_load((Path(__file__).parent / "pod_fields.yaml").read_text())
NODES = [
    {"name": "n1", "has": "2 cpu", "labels": {"zone": "a", "rank": "1"}},
    {"name": "n2", "has": "8 cpu", "labels": {"zone": "b", "rank": "2"}},
]
DO_NOT_CHOOSE_NODES = {
    "nodeName": "set once the pod is bound",
    "schedulerName": "selects the scheduler (tests/scheduler/model/test_cluster.py)",
    "priorityClassName": "the API server resolves it into the field priority",
    "terminationGracePeriodSeconds": "how long the pod may terminate",
    "activeDeadlineSeconds": "whether the scopes of a ResourceQuota cover the pod",
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: " ".join(filter(None, (row["field"], row.get("name")))))
def test_a_field_is_honoured_or_is_the_reason_why_the_pod_waits(row: dict[str, Any]) -> None:
    world = World(policy_of("plain-preempt"))
    new = {
        "name": "new",
        "priority": 5,
        "tasks": "1 x 1 cpu",
        "labels": row.get("labels", {}),
        "pod": {"spec": row.get("pod", {})},
        "podgroup": row.get("podgroup", {}),
    }
    world.load(
        {
            "nodes": row.get("nodes", NODES),
            "queues": [{"name": "default"}],
            "objects": row.get("objects", {}),
            "jobs": [*row.get("running", ()), new],
        }
    )
    decisions = world.cycle()
    node = {bind.task: bind.node for bind in decisions.binds}.get("t/new-0")
    refusal = decisions.refusals.get("t/new")
    text = "" if refusal is None else render_refusal(refusal)
    assert node == row.get("bound_to"), text
    assert row.get("reason", "") in text
    assert bool(text) == ("reason" in row)


@pytest.mark.parametrize(("struct", "prefix"), [(PodSpec, ""), (Volume, "volumes.")])
def test_every_field_that_is_read_has_a_row(struct: type[msgspec.Struct], prefix: str) -> None:
    rows = {row["field"].split(" ")[0].removeprefix(prefix).split(".")[0] for row in ROWS}
    fields = {field.encode_name for field in msgspec.structs.fields(struct)} - {"name"}
    assert fields - rows == ({*DO_NOT_CHOOSE_NODES} if struct is PodSpec else set())
