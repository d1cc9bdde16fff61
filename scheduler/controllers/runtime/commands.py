"""Commands: orders to a Job or a Queue, in the order in which they were given.

The one rule: an order is for the object that it names by uid, never for a successor of the same name; one whose object
is gone is removed.
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

_PATIENCE = 60.0
"""Seconds that an order waits for an object that does not exist (yet)."""


@dataclass(frozen=True, slots=True)
class Orders:
    """What was ordered of one object: orders to take up, orders that came too late, when to look again."""

    meant: list[Command]
    strays: list[Remove]
    again: float | None = None


def orders_to(commands: Iterable[Command], target: Resource[Any], key: str, uid: str | None, now: float) -> Orders:
    """Sort the orders to the object of a key (``namespace/name``, or a queue's name); no ``uid``: it is not there.

    Orders to queues are taken as they come: who may give any is asked before (:func:`is_overreach`).
    """
    mine = [command for command in commands if _is_to(command, target, key)]
    mine.sort(key=lambda command: (command.metadata.creation_timestamp or "", command.metadata.name))
    if uid is not None:
        meant = [command for command in mine if command.target.uid in ("", uid)]
        return Orders(meant, [Remove.of(COMMANDS, command.metadata) for command in mine if command not in meant])
    waited = {command.metadata.uid: now - seconds(command.metadata.creation_timestamp) for command in mine}
    late = [command for command in mine if waited[command.metadata.uid] >= _PATIENCE]
    again = min((_PATIENCE - past for past in waited.values() if past < _PATIENCE), default=None)
    return Orders([], [Remove.of(COMMANDS, command.metadata) for command in late], again)


def is_overreach(command: Command, namespace: str) -> bool:
    """Whether this is an order to a queue, which all tenants share, not in the operator's ``namespace``."""
    return command.target.kind == QUEUES.kind and command.metadata.namespace != namespace


def refusal(command: Command, namespace: str) -> ReconcileResult:
    """An order to a queue that does not count says so and goes."""
    told = (
        f"{command.action} of queue {command.target.name} is not carried out: Commands to queues count only in "
        f"namespace {namespace} (--queue-command-namespace)"
    )
    meta = command.metadata
    return ReconcileResult([EmitEvent(COMMANDS, meta, WARNING, "CommandRefused", told), Remove.of(COMMANDS, meta)])


def _is_to(command: Command, target: Resource[Any], key: str) -> bool:
    if command.target.kind != target.kind or command.metadata.deletion_timestamp is not None:
        return False
    return key == (f"{command.metadata.namespace}/{command.target.name}" if target.namespaced else command.target.name)
