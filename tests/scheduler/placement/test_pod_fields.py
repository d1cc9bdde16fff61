"""No field of a pod's spec that restricts where it may run is ignored (`pod_fields.yaml`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from scheduler.model.objects import PodSpec, Volume
from scheduler.reasons import render_refusal
from tests.support.core.events import policy_of
from tests.support.core.world import World

ROWS = yaml.safe_load((Path(__file__).parent / "pod_fields.yaml").read_text())
NODES = [
    {"name": "n1", "has": "2 cpu", "labels": {"zone": "a", "rank": "1"}},
    {"name": "n2", "has": "8 cpu", "labels": {"zone": "b", "rank": "2"}},
]
NOT_ABOUT_PLACES = {
    "nodeName": "the pod has its place already",
    "schedulerName": "whose pod it is (tests/scheduler/model/test_cluster.py)",
    "priorityClassName": "the API server makes a number of it, which priority holds",
    "terminationGracePeriodSeconds": "how long it takes to leave",
    "activeDeadlineSeconds": "whether the scopes of a ResourceQuota cover it",
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: " ".join(filter(None, (row["field"], row.get("name")))))
def test_a_field_is_honoured_or_keeps_the_pod_waiting_by_name(row: dict[str, Any]) -> None:
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
            "jobs": [*row.get("there", ()), new],
        }
    )
    decisions = world.cycle()
    where = {bind.task: bind.node for bind in decisions.binds}.get("t/new-0")
    refusal = decisions.refusals.get("t/new")
    text = "" if refusal is None else render_refusal(refusal)
    assert where == row.get("goes"), text
    assert row.get("waits", "") in text
    assert bool(text) == ("waits" in row)


@pytest.mark.parametrize(("struct", "prefix"), [(PodSpec, ""), (Volume, "volumes.")])
def test_every_field_that_is_read_has_a_row(struct: type[msgspec.Struct], prefix: str) -> None:
    rows = {row["field"].split(" ")[0].removeprefix(prefix).split(".")[0] for row in ROWS}
    fields = {field.encode_name for field in msgspec.structs.fields(struct)} - {"name"}
    assert fields - rows == ({*NOT_ABOUT_PLACES} if struct is PodSpec else set())
