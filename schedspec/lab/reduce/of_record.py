"""Read an incident from the record of a failed scenario: what happened, and the state before it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from ...api import untrusted
from ...api.errors import HarnessError
from ...report import record as records
from ...report.record import ScenarioRecord

FAILED = "sentence failed"
HISTORY = "history.jsonl"
"""File in the folder of a failed scenario. It has every version of every object that the watcher saw."""
_RUNS = re.compile(r'^"([^"]+)" runs\b|pods? of "([^"]+)" runs?$')
_STAYS = re.compile(r'^"([^"]+)" keeps running$')
_EVICTIONS = re.compile(r"^nothing is evicted$|^exactly \d+ pods? (is|are) evicted")


def has_history(state: Path) -> bool:
    """Whether a path is the folder of a failed scenario."""
    return (state / HISTORY).exists()


def list_before(folder: Path, because: str, into: Path) -> Path:
    """Write the objects of a scenario before its incident as a List, as kubectl does, from the scenario's history.

    For an eviction, or a monitor's finding about a pod, the list has the state before the first eviction of the pod
    (of any pod, if that pod was not evicted); for a wait, it has the last state.

    `folder`: the folder of a failed scenario's record. Raises HarnessError: the record or its history cannot be read.
    """
    record, words = _record(folder), because.split()
    about = words[1].rpartition("/")[2] if words[0] == "pod" else ""
    if words[0] == "monitor":
        about = next((finding.about for finding in record.findings if finding.monitor == words[1]), "")
    evicted = [act for act in record.acts if act.act == "evict"]
    own = [act for act in evicted if act.pod == about or records.UID.sub("", act.group) == about]
    until = float("inf") if words[0] == "job" else min((act.at for act in own or evicted), default=float("inf"))
    objects: dict[tuple[str, str, str], dict[str, Any]] = {}
    for number, line in enumerate(untrusted.read_bytes(folder / HISTORY).splitlines(), 1):
        try:
            row = msgspec.json.decode(line, type=_Row)
        except msgspec.DecodeError as problem:
            raise HarnessError(f"{folder / HISTORY}:{number}: {problem}\n  do next: run the scenario again") from None
        meta = row.object.get("metadata", {})
        key = str(row.object.get("kind")), str(meta.get("namespace", "")), str(meta.get("name"))
        if row.at < until:
            objects[key] = row.object
            if row.change == "gone":
                del objects[key]
    path = into / f"{HISTORY}.json"
    path.write_bytes(msgspec.json.encode({"kind": "List", "apiVersion": "v1", "items": list(objects.values())}))
    return path


class _Row(msgspec.Struct):
    at: float
    change: str
    object: dict[str, Any]


def because_of(path: Path) -> str:
    """Return the incident of a failed scenario (its record, or the folder): of its first failed sentence, or a monitor.

    Raises:
        HarnessError: there is no record, or it has neither a failed sentence about a wait or an eviction nor a finding.
    """
    record = _record(path)
    failed = record.failed_sentence
    sentence = failed.text if failed is not None else ""
    found = _of_sentence(sentence, record) or next((f"monitor {finding.monitor}" for finding in record.findings), "")
    if not found:
        what = f"{sentence!r} is about neither a wait nor an eviction" if sentence else "no sentence failed"
        raise HarnessError(f"{path}: {what}\n  do next: name what happened, such as 'job NAMESPACE/NAME waits'")
    return found


def _record(path: Path) -> ScenarioRecord:
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if len(files) != 1:
        raise HarnessError(
            f"{path}: {len(files)} records of scenarios, not one\n  do next: name one of the folders in out/*/scenarios"
        )
    return records.read(files[0])


def _of_sentence(sentence: str, record: ScenarioRecord) -> str:
    """Return the incident that made a sentence fail; empty if there is none."""
    evicted = [act for act in record.acts if act.act == "evict"]
    if match := _RUNS.search(sentence):
        return f"job {record.namespace}/{match[1] or match[2]} waits"
    if match := _STAYS.search(sentence):
        evicted = [act for act in evicted if records.UID.sub("", act.group) == match[1]]
    elif not _EVICTIONS.search(sentence):
        return ""
    return f"pod {record.namespace}/{evicted[-1].pod} was evicted" if evicted else ""
