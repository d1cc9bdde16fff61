"""List the Commands to a Job or a Queue, in the order of their creation.

A Command that names a uid applies to the object with this uid, never to a successor of the same name. The Command is
removed at once if its object has a successor, and after a minute if its object does not exist.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ...kube import WARNING
from ...kube.resource import Resource
from ...model.times import seconds
from .objects import COMMANDS, QUEUES, Command
from .writes import EmitEvent, ReconcileResult, Remove

_KEEP_FOR = 60.0
"""Seconds that a Command waits for an object that does not exist (yet)."""


@dataclass(frozen=True, slots=True)
class CommandBatch:
    """The Commands to one object: those to carry out, those to remove, and the seconds until the next check."""

    to_carry_out: list[Command]
    to_remove: list[Remove]
    requeue_after: float | None = None


NO_COMMANDS = CommandBatch([], [])


def commands_to(
    commands: Iterable[Command], target: Resource[Any], key: str, uid: str | None, now: float
) -> CommandBatch:
    """Sort the Commands to object `key` (`namespace/name`, or a queue's name) into those to carry out and to remove.

    Without `uid`, the object does not exist. The caller has filtered out forbidden Commands (`is_forbidden`).
    """
    applicable = [command for command in commands if _is_to(command, target, key)]
    applicable.sort(key=lambda command: (command.metadata.creation_timestamp or "", command.metadata.name))
    if uid is not None:
        to_carry_out = [command for command in applicable if command.target.uid in ("", uid)]
        return CommandBatch(
            to_carry_out,
            [Remove.of(COMMANDS, command.metadata) for command in applicable if command not in to_carry_out],
        )
    waited = {command.metadata.uid: now - seconds(command.metadata.creation_timestamp) for command in applicable}
    late = [command for command in applicable if waited[command.metadata.uid] >= _KEEP_FOR]
    again = min((_KEEP_FOR - past for past in waited.values() if past < _KEEP_FOR), default=None)
    return CommandBatch([], [Remove.of(COMMANDS, command.metadata) for command in late], again)


def is_forbidden(command: Command, namespace: str) -> bool:
    """Return True for a Command to a queue, which tenants share, outside of the operator's `namespace`."""
    return command.target.kind == QUEUES.kind and command.metadata.namespace != namespace


def refusal(command: Command, namespace: str) -> ReconcileResult:
    """Return the writes that reject a Command to a queue: an event and the deletion of the Command."""
    message = (
        f"{command.action} of queue {command.target.name} is not carried out: Commands to queues count only in "
        f"namespace {namespace} (--queue-command-namespace)"
    )
    meta = command.metadata
    return ReconcileResult([EmitEvent(COMMANDS, meta, WARNING, "CommandRefused", message), Remove.of(COMMANDS, meta)])


def _is_to(command: Command, target: Resource[Any], key: str) -> bool:
    if command.target.kind != target.kind or command.metadata.deletion_timestamp is not None:
        return False
    return key == (f"{command.metadata.namespace}/{command.target.name}" if target.namespaced else command.target.name)
