"""Records from other machines take bounded memory, whatever their content is."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import msgspec
import pytest

from schedspec.api import untrusted
from schedspec.report import record
from schedspec.report.record import ScenarioRecord
from tests.support.scene import reclaim

SIZE = 500_000
ITEMS = {
    "queues": '{"at":0,"queue":"q"}',
    "acts": '{"at":0,"act":"","pod":"","uid":"","node":""}',
    "sentences": '{"keyword":"","text":"","line":0,"table":[' + "[]," * 50 + "[]]}",
    "reasons": '{"at":0,"kind":"","name":"","message":"","data":[' + "{}," * 50 + "{}]}",
    "findings": '{"at":0.5,"monitor":"","about":"a","text":"b"}',
    "monitors_off": '"a"',
    "tags": '"' + "a" * SIZE + '\U0001f600"',
}


@pytest.mark.parametrize("field", ITEMS)
def test_decoding_a_record_takes_no_more_memory_than_estimated(field: str) -> None:
    whole = json.loads(msgspec.json.encode(reclaim()))
    count = max(1, SIZE // len(ITEMS[field]))
    del whole[field]
    raw = (json.dumps(whole)[:-1] + f',"{field}":[{",".join([ITEMS[field]] * count)}]}}').encode()
    tracemalloc.start()
    try:
        msgspec.json.decode(raw, type=ScenarioRecord)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert taken <= untrusted.memory_of(raw)


def test_records_that_take_too_much_memory_together_are_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = reclaim()
    paths = [record.write(one, tmp_path / name / "scenarios" / "s") for name in ("a", "b", "c")]
    monkeypatch.setattr(untrusted, "MAX_MEMORY", 2 * untrusted.memory_of(paths[0].read_bytes()))
    assert list(record.read_all([tmp_path / "a", tmp_path / "b"])) == [one]
    with pytest.raises(record.RecordError, match=rf"{paths[2]}: takes too much memory.* read fewer files at a time"):
        list(record.read_all([tmp_path / "a", tmp_path / "b", tmp_path / "c"]))
