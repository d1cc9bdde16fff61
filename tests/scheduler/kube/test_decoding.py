"""An object that no decoder can read becomes Malformed, and affects no other object."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedspec.scheduler.kube import PODGROUPS, PODS, Listing, Malformed
from schedspec.scheduler.kube.decoding import CHUNK_BYTES, TOO_DEEP, UNREADABLE, decode, decode_event, read, run_now
from schedspec.scheduler.model.objects import Pod, PodGroup

META = b'{"name":"deep","namespace":"ns","uid":"u","resourceVersion":"7","managedFields":[%s]}'


def nested(levels: int) -> bytes:
    return b'{"a":[' * (levels // 2) + b"1" + b"]}" * (levels // 2)


def deep(levels: int = 3_000) -> bytes:
    """Return a PodGroup that is nested this deep, in its spec and in its managedFields."""
    inside = nested(levels)
    return b'{"kind":"PodGroup","metadata":' + META % inside + b',"spec":{"networkTopology":' + inside + b"}}"


def good(name: str) -> bytes:
    meta = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "3", "labels": {"odd": '}{[]"\\'}}
    return json.dumps({"metadata": meta, "spec": {"minMember": 2}}).encode()


@pytest.mark.parametrize("levels", [1_500, 3_000, 100_000])
def test_an_object_that_is_nested_too_deep_is_malformed_and_keeps_its_name(levels: int) -> None:
    found = run_now(decode(PODGROUPS, deep(levels)))
    assert isinstance(found, Malformed)
    meta = found.metadata
    assert (meta.key, meta.uid, meta.resource_version) == ("ns/deep", "u", "7")
    assert found.error == TOO_DEEP


def test_an_object_nested_too_deep_is_scanned_in_several_turns() -> None:
    inside = b'{"a":' * 9_000 + b"1" + b"}" * 9_000
    parts = b",".join([inside] * 10)
    work = decode(PODS, b'{"metadata":{"name":"x"},"spec":{"containers":[%s]}}' % parts)
    assert sum(1 for _ in work) >= 2 * 9_000 * 10 / 5_000 - 1


def test_the_objects_of_a_large_page_are_decoded_in_several_turns() -> None:
    pods = [{"metadata": {"name": f"p{n}", "annotations": {"a": "x" * 1_000}}} for n in range(2_000)]
    page = json.dumps({"metadata": {"resourceVersion": "1"}, "items": pods}).encode()
    listing: Listing[Pod] = Listing()
    turns = sum(1 for _ in listing.add_page(PODS, page))
    assert turns >= len(page) / CHUNK_BYTES - 1
    assert len(listing.items) == len(pods)


def test_the_metadata_of_an_object_nested_too_deep_can_be_read_alone() -> None:
    assert run_now(read(PODGROUPS.bare, deep())).metadata.key == "ns/deep"


def test_a_list_with_an_object_nested_too_deep_is_read() -> None:
    listing: Listing[PodGroup] = Listing()
    page = b'{"metadata":{"resourceVersion":"9","continue":"next","odd":{}},"items":[%s,%s,%s]}'
    assert run_now(listing.add_page(PODGROUPS, page % (good("a"), deep(), good("b")))) == "next"
    assert [group.metadata.name for group in listing.items] == ["a", "b"]
    assert [malformed.metadata.key for malformed in listing.malformed] == ["ns/deep"]
    assert listing.resource_version == "9"


def test_the_watch_event_of_an_object_nested_too_deep_is_read() -> None:
    event = run_now(decode_event(b'{"type":"MODIFIED","object":%s}' % deep()))
    assert event.type == "MODIFIED"
    assert bytes(event.object) == deep()


JUNK = st.one_of(
    st.binary(max_size=60),
    st.text(max_size=40).map(str.encode),
    st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda x: st.lists(x) | st.dictionaries(st.text(), x))
    .map(json.dumps)
    .map(str.encode),
    st.integers(1, 3_000).map(lambda levels: b"[{" * levels),
    st.integers(1, 3_000).map(nested),
)


@given(JUNK)
def test_any_object_is_read_or_malformed(data: bytes) -> None:
    for text in (data, b'{"metadata":{"name":"x"},"spec":%s}' % data):
        assert isinstance(run_now(decode(PODGROUPS, text)), PodGroup | Malformed)


READERS: dict[str, Callable[[bytes], object]] = {
    "one object": lambda data: run_now(read(PODGROUPS, data)),
    "an event": lambda data: run_now(decode_event(data)),
    "a list": lambda data: run_now(Listing[PodGroup]().add_page(PODGROUPS, data)),
}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
@given(JUNK)
def test_an_unreadable_answer_raises_an_error_that_callers_expect(
    reader: Callable[[bytes], object], data: bytes
) -> None:
    with contextlib.suppress(*UNREADABLE):
        reader(data)
