"""Query the events and the conditions of an object."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from schedspec.scheduler.kube import Client, Resource
from schedspec.scheduler.model.objects import Condition, Object, ObjectMeta
from tests.support.fake_server import SAFETY_NET


class About(Object):
    kind: str = ""
    name: str = ""


class Event(Object):
    metadata: ObjectMeta
    involved_object: About
    type: str = ""
    reason: str = ""
    message: str = ""


EVENTS: Resource[Event] = Resource("", "v1", "events", "Event", Event)


class _StatusOnly(Object):
    metadata: ObjectMeta
    status: dict[str, Any] = msgspec.field(default_factory=dict)


async def events(client: Client, namespace: str, kind: str, name: str) -> dict[str, tuple[str, str]]:
    """Return type and message of an object's events, by reason."""
    found = (await client.list(EVENTS, namespace)).items
    about = [event for event in found if (event.involved_object.kind, event.involved_object.name) == (kind, name)]
    return {event.reason: (event.type, event.message) for event in about}


async def conditions(client: Client, resource: Resource[Any], name: str, namespace: str = "") -> dict[str, Condition]:
    """Return an object's conditions by type, even of a malformed object."""
    found = msgspec.convert((await status(client, resource, name, namespace)).get("conditions") or [], list[Condition])
    return {condition.type: condition for condition in found}


async def status(client: Client, resource: Resource[Any], name: str, namespace: str = "") -> dict[str, Any]:
    """Return an object's status as plain data."""
    return (await client.get(resource.reading(_StatusOnly), name, namespace)).status


async def eventually(what: str, check: Callable[[], Awaitable[bool]]) -> None:
    """Wait until `check`, which may query the API server, returns True."""
    try:
        async with asyncio.timeout(SAFETY_NET):
            while not await check():
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"not within {SAFETY_NET:g} s: {what}") from None
