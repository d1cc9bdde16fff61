"""Commands reach the object that they name, in order; a Command whose object is gone is removed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from schedspec.scheduler.controllers.runtime.commands import commands_to, is_forbidden, refusal
from schedspec.scheduler.controllers.runtime.objects import JOBS, QUEUES, Command
from schedspec.scheduler.controllers.runtime.writes import EmitEvent, Remove

NOW = 1_800_000_000.0


def command(
    name: str, uid: str = "", kind: str = "Job", namespace: str = "ns", at: str = "2027-01-15T08:00:00Z", **more: Any
) -> Command:
    meta = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "creationTimestamp": at, **more}
    return msgspec.convert(
        {"metadata": meta, "action": "AbortJob", "target": {"kind": kind, "name": "x", "uid": uid}}, Command
    )


@pytest.mark.parametrize(
    ("given", "to_carry_out"),
    [
        (command("c"), True),
        (command("c", uid="u1"), True),
        (command("c", kind="Queue"), False),
        (command("c", namespace="elsewhere"), False),
        (command("c", deletionTimestamp="2027-01-15T08:00:00Z"), False),
    ],
)
def test_a_command_applies_to_its_target_only(given: Command, to_carry_out: bool) -> None:
    batch = commands_to([given], JOBS, "ns/x", "u1", NOW)
    assert (batch.to_carry_out == [given], batch.to_remove) == (to_carry_out, [])


def test_a_command_to_a_predecessor_is_removed_and_not_carried_out() -> None:
    batch = commands_to([command("c", uid="u0")], JOBS, "ns/x", "u1", NOW)
    assert batch.to_carry_out == []
    assert [stray.name for stray in batch.to_remove] == ["c"]


def test_commands_are_carried_out_in_the_order_of_their_creation() -> None:
    late, early = command("a", at="2027-01-15T08:00:02Z"), command("b", at="2027-01-15T08:00:01Z")
    assert commands_to([late, early], JOBS, "ns/x", "u1", NOW).to_carry_out == [early, late]


def test_a_command_to_a_queue_in_the_namespace_of_the_operators_is_carried_out() -> None:
    given = command("c", kind="Queue", namespace="operators")
    assert commands_to([given], QUEUES, "x", "u1", NOW).to_carry_out == [given]


@pytest.mark.parametrize(
    ("kind", "namespace", "refused"),
    [("Queue", "tenant", True), ("Queue", "operators", False), ("Job", "tenant", False)],
)
def test_a_command_to_a_queue_in_another_namespace_is_forbidden(kind: str, namespace: str, refused: bool) -> None:
    assert is_forbidden(command("c", kind=kind, namespace=namespace), "operators") is refused


def test_a_forbidden_command_is_rejected_with_an_event_and_deleted() -> None:
    event, removal = refusal(command("c", kind="Queue", namespace="tenant"), "operators").writes
    assert isinstance(event, EmitEvent)
    assert (event.about.namespace, event.reason) == ("tenant", "CommandRefused")
    assert "count only in namespace operators (--queue-command-namespace)" in event.message
    assert isinstance(removal, Remove)
    assert removal.name == "c"


def test_a_command_to_a_missing_object_waits_for_one_minute() -> None:
    given = command("c", at="2027-01-15T08:00:00Z")
    assert commands_to([given], JOBS, "ns/x", None, NOW).requeue_after == 60.0
    assert commands_to([given], JOBS, "ns/x", None, NOW + 45).requeue_after == 15.0
    (stray,) = commands_to([given], JOBS, "ns/x", None, NOW + 60).to_remove
    assert stray.uid == "uid-c"
