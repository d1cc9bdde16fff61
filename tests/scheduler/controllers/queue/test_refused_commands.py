"""An invalid Command is refused once, even if a finalizer delays its deletion."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from schedspec.scheduler.controllers.queue.controller import QueueController
from schedspec.scheduler.controllers.runtime.objects import Command
from schedspec.scheduler.controllers.runtime.writes import EmitEvent, Remove

REFUSED = {
    "metadata": {"name": "c", "namespace": "tenant", "uid": "u"},
    "action": "CloseQueue",
    "target": {"kind": "Queue", "name": "default"},
}


def controller_of(command: Command) -> QueueController:
    """Return a queue controller that sees one Command."""
    view = SimpleNamespace(informer=SimpleNamespace(on_change=lambda _: None), get={"tenant/c": command}.get)
    context = SimpleNamespace(view=lambda _: view, queue_command_namespace="kube-system")
    return QueueController(cast("Any", context))


@pytest.mark.parametrize(("deleted", "writes"), [(None, [EmitEvent, Remove]), ("2026-01-01T00:00:00Z", [])])
async def test_a_refused_command_is_left_alone_once_its_deletion_is_requested(
    deleted: str | None, writes: list[type]
) -> None:
    metadata = {**REFUSED["metadata"], "deletionTimestamp": deleted}  # type: ignore[dict-item]
    command = msgspec.convert({**REFUSED, "metadata": metadata}, Command)
    controller = controller_of(command)
    outcome, _ = await controller._decide("tenant/c")
    assert [type(write) for write in outcome.writes] == writes
    controller._command_changed(None, command)
    assert len(controller._queue) == bool(writes)
