"""Name the incident of a failed scenario for `schedspec reduce --because`, from the sentence that failed."""

from __future__ import annotations

import re
from pathlib import Path

from ..api.errors import HarnessError
from ..report import record as records
from ..report.record import ScenarioRecord

FAILED = "sentence failed"
_RUNS = re.compile(r'^"([^"]+)" runs\b|pods? of "([^"]+)" runs?$')
_STAYS = re.compile(r'^"([^"]+)" keeps running$')
_EVICTIONS = re.compile(r"^nothing is evicted$|^exactly \d+ pods? (is|are) evicted")


def because_of(path: Path) -> str:
    """Return the incident of a failed scenario: of the first sentence that failed, or of a monitor.

    Args:
        path: The folder of a scenario's record, or the record itself.

    Raises:
        HarnessError: there is no record, it did not fail, or its sentence is about no wait and no eviction.
    """
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if len(files) != 1:
        raise HarnessError(
            f"{path}: holds {len(files)} records of scenarios\n  do next: name one of the folders in out/*/scenarios"
        )
    record = records.read(files[0])
    sentence = next((step.text for step in record.sentences if step.verdict == "failed"), "")
    found = _of_sentence(sentence, record) or next((f"monitor {finding.monitor}" for finding in record.findings), "")
    if not found:
        what = f"the sentence {sentence!r} is about no wait and no eviction" if sentence else "no sentence failed"
        raise HarnessError(f"{files[0]}: {what}\n  do next: name what happened, such as 'job NAMESPACE/NAME waits'")
    return found


def _of_sentence(sentence: str, record: ScenarioRecord) -> str:
    """Return the incident that breaks a sentence; empty if there is none."""
    evicted = [act for act in record.acts if act.act == "evict"]
    if match := _RUNS.search(sentence):
        return f"job {record.namespace}/{match[1] or match[2]} waits"
    if match := _STAYS.search(sentence):
        evicted = [act for act in evicted if records.UID.sub("", act.group) == match[1]]
    elif not _EVICTIONS.search(sentence):
        return ""
    return f"pod {record.namespace}/{evicted[-1].pod} was evicted" if evicted else ""
