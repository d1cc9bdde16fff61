"""Each turn of the event loop decodes one chunk of a large object; the result is that of decoding it in one piece."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schedspec.scheduler.controllers.runtime.objects import VolcanoJob
from schedspec.scheduler.kube import PODS, Listing
from schedspec.scheduler.kube import chunked_decoding as module
from schedspec.scheduler.kube.chunked_decoding import CHUNK_BYTES, Stepwise, decoded, run_now
from schedspec.scheduler.kube.decoding import decode
from schedspec.scheduler.model.objects import Pod

META = {"name": "large", "namespace": "ns", "uid": "u"}
TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
LARGE: dict[str, tuple[Any, dict[str, Any]]] = {
    "containers": (Pod, {"spec": {"containers": [{"name": f"c{i}", "image": "i"} for i in range(25_000)]}}),
    "affinity terms": (
        Pod,
        {
            "spec": {
                "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM] * 14_000}}
            }
        },
    ),
    "a template": (
        VolcanoJob,
        {"spec": {"tasks": [{"template": {"spec": {"containers": [{"name": f"c{i}"} for i in range(60_000)]}}}]}},
    ),
    "keys of a template": (
        VolcanoJob,
        {"spec": {"tasks": [{"template": {f"k{i}": {"a": [i]} for i in range(50_000)}}]}},
    ),
}


class Decoded:
    """Count the bytes that msgspec decodes into objects in each turn, without the cheap scans into `msgspec.Raw`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.turns = [0]
        original = module._decode

        def counting(kind: Any, data: bytes | msgspec.Raw, path: str, start: int = 0) -> Any:
            if "Raw" not in str(kind):
                self.turns[-1] += len(data)
            return original(kind, data, path, start)

        monkeypatch.setattr(module, "_decode", counting)

    def work(self, work: Stepwise[Any]) -> Any:
        while True:
            try:
                next(work)
            except StopIteration as end:
                return end.value
            self.turns.append(0)


@pytest.mark.parametrize(("kind", "body"), LARGE.values(), ids=LARGE)
def test_no_turn_decodes_more_than_a_chunk(kind: Any, body: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    data = json.dumps({"metadata": META, **body}).encode()
    assert len(data) > 800_000
    seen = Decoded(monkeypatch)
    assert seen.work(decoded(kind, data)) == msgspec.json.decode(data, type=kind)
    assert len(seen.turns) > len(data) / CHUNK_BYTES
    assert max(seen.turns) <= CHUNK_BYTES + 2  # brackets


def test_no_turn_decodes_more_than_a_chunk_of_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    kind, body = LARGE["containers"]
    small = {"metadata": {**META, "name": "small"}}
    items = [{"metadata": META, **body}, *[small] * 5_000]
    data = json.dumps({"metadata": {"resourceVersion": "1"}, "items": items}).encode()
    seen, listing = Decoded(monkeypatch), Listing[Pod]()
    seen.work(listing.add_page(PODS, data))
    assert listing.items == msgspec.convert(items, list[kind])
    assert max(seen.turns) <= 2 * CHUNK_BYTES


PARTS = st.recursive(
    st.none() | st.integers(-2, 2) | st.sampled_from(["", "a", "é\\"]),
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(st.sampled_from(["name", "b", "é"]), inside),
    max_leaves=12,
)
BODIES = st.fixed_dictionaries(
    {"metadata": st.just(META)},
    optional={
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "tasks": st.lists(
                    st.fixed_dictionaries({}, optional={"name": PARTS, "replicas": PARTS, "template": PARTS}),
                    max_size=4,
                )
                | PARTS,
                "minAvailable": PARTS,
                "plugins": st.dictionaries(st.sampled_from(["env", "svc"]), PARTS) | PARTS,
            },
        )
        | PARTS,
    },
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(BODIES)
def test_values_and_errors_equal_those_of_decoding_in_one_piece(
    monkeypatch: pytest.MonkeyPatch, body: dict[str, Any]
) -> None:
    data = json.dumps(body).encode()
    with monkeypatch.context() as patched:
        patched.setattr(module, "CHUNK_BYTES", 12)
        assert _outcome(decoded(VolcanoJob, data)) == _outcome(_whole(data))


def _whole(data: bytes) -> Stepwise[VolcanoJob]:
    yield
    return msgspec.json.decode(data, type=VolcanoJob)


def _outcome(work: Stepwise[VolcanoJob]) -> VolcanoJob | None:
    try:
        return run_now(work)
    except msgspec.ValidationError:  # if several fields are wrong, either decoder may name any of them
        return None


@pytest.mark.parametrize("wrong", ["spec", "spec.tasks", "spec.tasks[1].name", "spec.tasks[1].template"])
def test_errors_name_the_same_field_as_decoding_in_one_piece(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    body: dict[str, Any] = {"metadata": META, "spec": {"tasks": [{"name": "one"}, {"name": "two"}, {"name": "three"}]}}
    place: Any = body
    *way, last = wrong.replace("[1]", ".1").split(".")
    for step in way:
        place = place[int(step) if step.isdigit() else step]
    place[last] = [["a list"]] if last != "tasks" else {"an": "object"}
    data = json.dumps(body).encode()
    with pytest.raises(msgspec.ValidationError) as whole:
        msgspec.json.decode(data, type=VolcanoJob)
    monkeypatch.setattr(module, "CHUNK_BYTES", 12)
    with pytest.raises(msgspec.ValidationError) as chunked:
        run_now(decoded(VolcanoJob, data))
    assert str(chunked.value) == str(whole.value)


def test_an_object_nested_too_deep_is_scanned_in_several_turns() -> None:
    inside = b'{"a":' * 9_000 + b"1" + b"}" * 9_000
    parts = b",".join([inside] * 10)
    work = decode(PODS, b'{"metadata":{"name":"x"},"spec":{"containers":[%s]}}' % parts)
    turns = 0
    for _ in work:
        turns += 1
    assert turns >= 2 * 9_000 * 10 / 5_000 - 1
