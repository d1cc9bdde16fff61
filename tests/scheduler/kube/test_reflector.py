"""A reflector reports all changes of a server whose watches end, expire, break and send garbage."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedspec.scheduler.kube import HYPER_NODES, PODGROUPS, Absent, Change, Present, Reflector, Unreadable
from schedspec.scheduler.kube import reflector as reflector_module
from schedspec.scheduler.kube.client import Client
from schedspec.scheduler.kube.wire import Answer as HttpAnswer
from schedspec.scheduler.model.objects import HyperNode, PodGroup
from schedspec.virtual.cluster.virtual_cluster import VirtualLoop
from tests.support.fake_server import Answer, Cut, Reply, Request, cancelled, serving, status, until


def group(name: str, version: int, uid: str = "", **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "ns", "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": meta, "spec": spec}


def rack(version: int) -> dict[str, Any]:
    return {"metadata": {"name": "rack", "uid": "rack", "resourceVersion": str(version)}, "spec": {"tier": 1}}


def listing(version: int, *items: dict[str, Any]) -> Reply:
    return Reply(body={"metadata": {"resourceVersion": str(version)}, "items": list(items)})


def event(kind: str, item: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": item}).encode() + b"\n"


class Script:
    """Lists and watches in turn; a watch beyond the script hangs."""

    def __init__(self, lists: list[Answer], watches: list[Answer]) -> None:
        self.lists, self.watches = lists, watches
        self.versions: list[str] = []

    def __call__(self, request: Request) -> Answer:
        if "watch=true" not in request.path:
            return self.lists.pop(0) if len(self.lists) > 1 else self.lists[0]
        self.versions.append(request.path.partition("resourceVersion=")[2].partition("&")[0])
        return self.watches.pop(0) if self.watches else Reply(chunks=[], then="hang")


@asynccontextmanager
async def reflecting(script: Callable[[Request], Answer]) -> AsyncIterator[tuple[list[str], Reflector[PodGroup]]]:
    changes: list[str] = []

    def handler(change: Change[PodGroup]) -> None:
        match change:
            case Present():
                meta = change.object.metadata
                changes.append(f"+{meta.name}@{meta.resource_version}")
            case Absent():
                changes.append(f"-{change.key}")
            case Unreadable():
                changes.append(f"?{change.key}")

    async with serving(script) as (_, client):
        reflector = Reflector(client, PODGROUPS, handler)
        task = asyncio.create_task(reflector.run())
        try:
            yield changes, reflector
        finally:
            await cancelled(task)


async def expect(script: Script, wanted: list[str], versions: list[str], lists: int = 1) -> None:
    async with reflecting(script) as (changes, reflector):
        await until(lambda: len(changes) >= len(wanted) and len(script.versions) >= len(versions))
        await asyncio.sleep(0.02)
        assert changes == wanted
        assert script.versions == versions
        assert reflector.lists == lists
        assert reflector.synced.is_set()


async def test_the_watch_starts_at_the_version_of_the_list() -> None:
    script = Script([listing(5, group("a", 3))], [Reply(chunks=[event("MODIFIED", group("a", 6))], then="hang")])
    await expect(script, ["+a@3", "+a@6"], ["5"])


async def test_a_watch_that_ends_is_resumed_from_its_last_event() -> None:
    watches: list[Answer] = [
        Reply(chunks=[event("ADDED", group("b", 7)), event("DELETED", group("b", 8))]),
        Reply(chunks=[event("ADDED", group("c", 9))], then="cut"),
    ]
    await expect(Script([listing(5)], watches), ["+b@7", "-ns/b", "+c@9"], ["5", "8", "9"])


async def test_a_bookmark_advances_the_version_and_is_not_reported() -> None:
    bookmark = {"metadata": {"resourceVersion": "50"}}
    watches: list[Answer] = [Reply(chunks=[event("BOOKMARK", bookmark)])]
    await expect(Script([listing(5)], watches), [], ["5", "50"])


async def test_after_an_expired_version_a_list_finds_the_differences() -> None:
    expired = {"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old"}
    script = Script(
        [listing(5, group("a", 1), group("b", 2), group("c", 3)), listing(20, group("a", 1), group("c", 15))],
        [Reply(chunks=[event("ERROR", expired)])],
    )
    await expect(script, ["+a@1", "+b@2", "+c@3", "+c@15", "-ns/b"], ["5", "20"], lists=2)


async def test_410_as_the_status_of_a_watch_means_an_expired_version() -> None:
    script = Script([listing(5, group("a", 1)), listing(9, group("a", 1))], [status(410, "Expired")])
    await expect(script, ["+a@1"], ["5", "9"], lists=2)


async def test_a_list_that_expires_between_two_pages_is_restarted_and_reported_once() -> None:
    first = {"metadata": {"resourceVersion": "5", "continue": "next"}, "items": [group("a", 1)]}
    lists = [Reply(body=first), status(410, "Expired"), Reply(body=first), listing(5, group("b", 2))]
    await expect(Script(lists, []), ["+a@1", "+b@2"], ["5"])


async def test_a_successor_found_by_a_list_is_reported_as_a_deletion_and_a_creation() -> None:
    script = Script([listing(5, group("a", 1)), listing(9, group("a", 8, uid="new"))], [status(410, "Expired")])
    await expect(script, ["+a@1", "-ns/a", "+a@8"], ["5", "9"], lists=2)


async def test_events_that_are_split_anywhere_are_joined() -> None:
    data = event("ADDED", group("a", 6)) + event("ADDED", group("b", 7))
    script = Script([listing(5)], [Reply(chunks=[data[:11], data[11:90], data[90:]], then="hang")])
    await expect(script, ["+a@6", "+b@7"], ["5"])


async def test_a_malformed_object_is_reported_and_affects_no_other() -> None:
    chunks = [event("ADDED", group("bad", 6, minMember="two")), event("ADDED", group("good", 7))]
    script = Script(
        [listing(5)], [Reply(chunks=chunks), Reply(chunks=[event("DELETED", group("bad", 8, minMember="x"))])]
    )
    await expect(script, ["?ns/bad", "+good@7", "-ns/bad"], ["5", "7", "8"])


async def test_lists_and_watches_are_retried_after_errors() -> None:
    script = Script(
        [Reply(404, b"404 page not found"), status(503, "ServiceUnavailable"), Cut(), listing(5, group("a", 1))],
        [status(500, "InternalError"), Cut()],
    )
    await expect(script, ["+a@1"], ["5", "5", "5"])


CORRUPT = {
    "no JSON": b"} not json\n",
    "not UTF-8": event("ADDED", group("a", 6, queue="?")).replace(b"?", b"\xff"),
    "null": b"null\n",
    "an event without an object": b'{"type": "ADDED"}\n',
    "an error that is null": b'{"type": "ERROR", "object": null}\n',
    "an error that is a list": b'{"type": "ERROR", "object": [1]}\n',
    "an error whose code is a word": b'{"type": "ERROR", "object": {"code": "strange"}}\n',
    "an error without a code": b'{"type": "ERROR", "object": {"message": "no"}}\n',
    "an error whose code is no HTTP status": b'{"type": "ERROR", "object": {"code": 99999999999}}\n',
}


@pytest.mark.parametrize("line", CORRUPT.values(), ids=CORRUPT)
async def test_a_line_that_is_no_event_leads_to_a_new_list(line: bytes) -> None:
    script = Script([listing(5), listing(6, group("a", 6))], [Reply(chunks=[line])])
    await expect(script, ["+a@6"], ["5", "6"], lists=2)


CORRUPT_LISTS = {
    "a page": b"<html>sign in</html>",
    "null": b"null",
    "not UTF-8": b'{"metadata": {"resourceVersion": "\xff"}, "items": []}',
    "no version": b'{"metadata": {}, "items": []}',
}


@pytest.mark.parametrize("body", CORRUPT_LISTS.values(), ids=CORRUPT_LISTS)
async def test_an_answer_that_is_no_list_is_retried(body: bytes) -> None:
    script = Script([Reply(body=body), listing(5, group("a", 1))], [])
    await expect(script, ["+a@1"], ["5"])


async def test_an_object_nested_too_deep_is_reported_as_unreadable_and_as_deleted() -> None:
    item = json.dumps(group("deep", 6)).encode()[:-1] + b',"status":' + b'{"a":' * 3000 + b"1" + b"}" * 3001
    chunks = [
        b'{"type":"MODIFIED","object":%s}\n' % item,
        event("ADDED", group("good", 7)),
        b'{"type":"DELETED","object":%s}\n' % item.replace(b'"6"', b'"8"'),
    ]
    script = Script([listing(5, group("deep", 3))], [Reply(chunks=chunks)])
    await expect(script, ["+deep@3", "?ns/deep", "+good@7", "-ns/deep"], ["5", "8"])


async def test_a_large_object_is_reported_like_any_other() -> None:
    large = {f"k{i}": "v" * 90 for i in range(2_000)}
    bad = group("bad", 8, minMember="two", minResources=large)
    chunks = [
        event("ADDED", group("large", 6, minMember=2, minResources=large)),
        event("MODIFIED", group("large", 7, minMember=3, minResources=large)),
        event("ADDED", bad),
        event("BOOKMARK", group("", 9, minResources=large)),
        event("DELETED", group("large", 10, minResources=large)),
    ]
    script = Script([listing(5, group("listed", 3, minResources=large))], [Reply(chunks=chunks)])
    await expect(script, ["+listed@3", "+large@6", "+large@7", "?ns/bad", "-ns/large"], ["5", "10"])


async def test_a_handler_that_fails_for_one_object_receives_the_next() -> None:
    changes = []

    def handler(change: Change[PodGroup]) -> None:
        assert isinstance(change, Present)
        changes.append(change.object.metadata.name)
        if changes == ["a"]:
            raise RecursionError

    async with serving(Script([listing(5, group("a", 1), group("b", 2))], [])) as (_, client):
        task = asyncio.create_task(Reflector(client, PODGROUPS, handler).run())
        await until(lambda: changes == ["a", "b"])
        await cancelled(task)


@pytest.mark.parametrize("by_event", [True, False])
async def test_if_each_version_expires_at_once_there_are_pauses_between_lists(by_event: bool) -> None:
    expired = {"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old"}
    answer: Answer = Reply(chunks=[event("ERROR", expired)]) if by_event else status(410, "Expired")
    began = asyncio.get_running_loop().time()
    async with reflecting(Script([listing(5)], [answer] * 1000)) as (_, reflector):
        await until(lambda: reflector.lists >= 6)
        assert asyncio.get_running_loop().time() - began >= 0.2


async def test_a_watch_that_exceeds_its_timeout_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflector_module, "_LATE", 0.1)
    script = Script([listing(5)], [])
    async with serving(script) as (_, client):
        reflector = Reflector(client, PODGROUPS, lambda _: None, watch_seconds=0.1)
        task = asyncio.create_task(reflector.run())
        await until(lambda: len(script.versions) >= 2)
        assert not task.done()
        await cancelled(task)


HELLO = event("ADDED", group("a", 6))
BOOKMARK = event("BOOKMARK", {"metadata": {"resourceVersion": "8"}})
SILENT: dict[str, list[bytes]] = {
    "from its beginning": [],
    "after an event": [HELLO],
    "after a bookmark": [HELLO, BOOKMARK],
    "within an event": [HELLO, BOOKMARK[:-9]],
}


@pytest.mark.parametrize("chunks", SILENT.values(), ids=SILENT)
async def test_a_silent_watch_is_replaced_and_unready_until_a_watch_sends_an_event(
    chunks: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reflector_module, "SILENCE", 0.2)
    sends = False

    def answers(request: Request) -> Answer:
        if "watch=true" not in request.path:
            return listing(5)
        versions.append(request.path.partition("resourceVersion=")[2].partition("&")[0])
        first = len(versions) == 1
        return Reply(chunks=chunks if first else [BOOKMARK] if sends else [], then="cut" if sends else "hang")

    versions: list[str] = []
    async with reflecting(answers) as (changes, reflector):
        await until(lambda: bool(reflector.unready) and len(versions) >= 3)
        assert "no event and no bookmark" in reflector.unready
        assert versions[1] == ("8" if BOOKMARK in chunks else "6" if chunks else "5")
        assert reflector.lists == 1
        assert changes == (["+a@6"] if chunks else [])
        sends = True
        await until(lambda: not reflector.unready)


class LateBookmarks:
    """A server in virtual time that sends a bookmark this many seconds after the previous one, or after its opening."""

    def __init__(self, delays: list[float]) -> None:
        self._delays, self.watches = itertools.cycle(delays or [1e6]), 0

    async def request(self, *_: object, **__: object) -> HttpAnswer:
        return HttpAnswer(200, {}, b'{"metadata": {"resourceVersion": "5"}, "items": []}')

    @asynccontextmanager
    async def stream(self, path: str, **_: object) -> AsyncIterator[AsyncIterator[bytes]]:
        del path
        self.watches += 1

        async def pieces() -> AsyncIterator[bytes]:
            while True:
                await asyncio.sleep(next(self._delays))
                yield BOOKMARK

        yield pieces()


def _unready_moments(delays: list[float], hours: float) -> list[float]:
    """Return the virtual seconds at which a reflector of such a server is not ready."""
    loop = VirtualLoop(0.0)

    async def sample() -> list[float]:
        client = Client(LateBookmarks(delays), once=True)  # type: ignore[arg-type]
        reflector, found = Reflector(client, PODGROUPS, lambda _: None), []
        task = asyncio.create_task(reflector.run())
        await reflector.synced.wait()
        while loop.time() < hours * 3600:
            await asyncio.sleep(1.0)
            if reflector.unready:
                found.append(loop.time())
        await cancelled(task)
        return found

    try:
        return loop.run_until_complete(sample())
    finally:
        loop.close()


@given(st.lists(st.floats(1, 175), min_size=1, max_size=20))
def test_a_loaded_server_that_sends_bookmarks_late_does_not_flap(delays: list[float]) -> None:
    assert _unready_moments(delays, 1.0) == []


def test_a_server_that_stays_silent_is_unready_until_it_sends_something() -> None:
    silent = _unready_moments([], 0.5)
    assert 3 * reflector_module.SILENCE <= silent[0] <= 3 * reflector_module.SILENCE + 10
    assert silent[-1] >= 1800


async def test_a_watch_that_sends_bookmarks_only_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflector_module, "SILENCE", 0.5)
    script = Script([listing(5)], [Reply(chunks=[BOOKMARK] * 40, then="hang", pause=0.05)])
    async with reflecting(script) as (_, reflector):
        await until(lambda: reflector.events == 40)
        assert (script.versions, reflector.unready) == (["5"], "")


async def test_a_late_handler_receives_the_existing_objects_and_then_all_changes() -> None:
    bad = group("bad", 6, minMember="two")
    more = asyncio.Event()

    def answers(request: Request) -> Answer:
        if "watch=true" not in request.path:
            return listing(5, group("a", 3), bad, group("c", 4))
        if not more.is_set():
            return Reply(chunks=[event("DELETED", group("c", 7))])
        return Reply(chunks=[event("MODIFIED", group("a", 8))], then="hang")

    async with reflecting(answers) as (changes, reflector):
        await until(lambda: "-ns/c" in changes)
        late: list[Change[PodGroup]] = []
        reflector.add_handler(late.append)
        match late:
            case [Present() as present, Unreadable(key="ns/bad")]:
                assert present.object.metadata.name == "a"
            case _:
                raise AssertionError(late)
        more.set()
        await until(lambda: changes[-1] == "+a@8")
        assert isinstance(late[-1], Present)
        assert len(late) == 3


async def test_other_tasks_run_while_a_burst_of_events_is_read() -> None:
    events = [event("ADDED", group(f"g{i}", 10 + i)) for i in range(3000)]
    script = Script([listing(5)], [Reply(chunks=[b"".join(events)], then="hang")])
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with reflecting(script) as (changes, _):
        task = asyncio.create_task(other())
        await until(lambda: len(changes) > 0)
        before = turns
        await until(lambda: len(changes) == 3000)
        assert turns > before + 5
        await cancelled(task)


async def test_an_optional_kind_that_is_not_served_has_no_objects_until_it_is_served() -> None:
    not_served = Reply(404, b"404 page not found")
    script = Script([listing(5, rack(1)), not_served, not_served, listing(9, rack(7))], [status(410, "Expired")])
    reported: list[Change[HyperNode]] = []
    async with serving(script) as (_, client):
        reflector = Reflector(client, HYPER_NODES, reported.append)
        task = asyncio.create_task(reflector.run())
        await until(lambda: len(reported) == 3)
        assert [type(change) for change in reported] == [Present, Absent, Present]
        assert (reflector.trouble, reflector.synced.is_set()) == ("", True)
        await cancelled(task)


async def test_an_optional_kind_that_was_never_served_counts_as_listed() -> None:
    script = Script([Reply(404, b"404 page not found")], [])
    async with serving(script) as (_, client):
        reflector = Reflector(client, HYPER_NODES, lambda _: None)
        task = asyncio.create_task(reflector.run())
        await reflector.synced.wait()
        assert reflector.trouble == "hypernodes.topology.volcano.sh is not served (is its CRD applied?)"
        await cancelled(task)


async def test_trouble_names_a_kind_that_is_not_served() -> None:
    async with reflecting(Script([Reply(404, b"404 page not found")], [])) as (_, reflector):
        await until(lambda: bool(reflector.trouble))
        assert reflector.trouble == "podgroups.scheduling.volcano.sh is not served (is its CRD applied?)"
        assert not reflector.synced.is_set()
