"""Reviewers approve all texts of reasons, lint findings and policy errors: `messages.txt` contains each of them once.

`APPROVE=1 pytest tests/scheduler/reasons` writes the file again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml

from schedspec.scheduler.lint import lint
from schedspec.scheduler.policy.loader import PolicyError, load_policy
from schedspec.scheduler.reasons import (
    NodeRule,
    NodeUnfit,
    NoDomain,
    NoNode,
    NotLower,
    OfNoUse,
    OutOfProportion,
    PodsMissing,
    Protected,
    ProtectedBy,
    ProtectedCount,
    Protection,
    QueueExcess,
    QueueSurplus,
    UnschedulableReason,
    Vetoed,
    VictimReason,
    render_denial,
    render_victim,
    render_why,
    text,
)

APPROVED = Path(__file__).parent / "messages.txt"
TABLES = Path(__file__).parents[1]
WORDS = {"dimension": "cpu", "limit": "capability", "action": "reclaim", "state": "Closed", "service": "training"}
NUMBERS = {
    "allocated": 6000,
    "requested": 4000,
    "amount": 8000,
    "deserved": 6000,
    "guarantee": 2000,
    "left": 1000,
    "inqueue": 1000,
    "guaranteed_to_others": 4000,
}
SHAPES: dict[type, Callable[[], list[Any]]] = {
    NoNode: lambda: [
        NoNode("t/pod", 3),
        *(NoNode("t/pod", 9, (NodeRule(n, rule, "detail"),)) for rule in text._NODE_RULES for n in (1, 2)),
    ],
    NodeUnfit: lambda: [NodeUnfit("n1")],
    OutOfProportion: lambda: [OutOfProportion("preempt", "cpu", 5000, 1000)],
    QueueExcess: lambda: [
        QueueExcess("preempt", "q", "cpu", 9000, 4000, limit, 8000, set_by)
        for limit, set_by in (
            *(("capability", "q"), ("capability", "parent"), ("capability", "")),
            *(("deserved", "q"), ("quota", "q")),
        )
    ],
    NoDomain: lambda: [
        NoDomain("rack", 3, "rack-2", 6, 8, "nvidia.com/gpu", 6000, 8000),
        NoDomain("rack", 3, "rack-2", 6, 8, group="<group>"),
        NoDomain("rack", 1, "rack-2", 6, 8),
        NoDomain("rack", 3, "rack-2", 6, 8, above="tier 9"),
        NoDomain("rack", 0, "", 0, 8),
        NoDomain("rack", 3, "rack-2", 6, 8, nodes=NoNode("t/pod", 4, (NodeRule(4, "port"),))),
    ],
    PodsMissing: lambda: [PodsMissing(2, 2), PodsMissing(2, 2, "<role>"), PodsMissing(2, 2, group="<group>")],
    NotLower: lambda: [NotLower(5, 5), NotLower(9, 5)],
    Vetoed: lambda: [Vetoed("<plugin>", 1), Vetoed("<plugin>", 1, NotLower(9, 5)), Vetoed("<plugin>", 1, OfNoUse())],
    Protected: lambda: [Protected(by) for by in ProtectedBy],
}


def samples(kind: type[msgspec.Struct]) -> list[Any]:
    """Return one reason for each wording of this type of reason."""
    if kind in SHAPES:
        return SHAPES[kind]()
    full: dict[str, Any] = {}
    least: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        value: Any = ()
        if field.type is str:
            value = WORDS.get(field.name, f"<{field.name}>")
        elif field.type is int:
            value = NUMBERS.get(field.name, 2)
        elif field.name in ("others", "reserved_by"):
            value = ("t/most", "t/more")
        elif field.name == "spared":
            value = (ProtectedCount(2, Protected(ProtectedBy.PREEMPTABLE)),)
        elif field.name == "surplus":
            value = (QueueSurplus("b", "nvidia.com/gpu", 10000, 6000),)
        full[field.name] = value
        if field.required:
            least[field.name] = 0 if field.name == "candidates" else value
    return [kind(**full)] if full == least else [kind(**full), kind(**least)]


def reasons() -> Iterator[str]:
    for title, kinds, render in (
        ("Why a job waits", UnschedulableReason.__args__, render_why),
        ("Why a candidate is not evicted, after their number", Protection.__args__, render_denial),
    ):
        yield f"## {title}"
        for kind in kinds:
            yield from dict.fromkeys(f"{kind.__name__}: {render(sample)}" for sample in samples(kind))
    yield "## Why a pod was evicted"
    spared = (ProtectedCount(1, Protected(ProtectedBy.PREEMPTABLE)),)
    for reason in (
        VictimReason("reclaim", "t/new", "t/new-0", "a", "b"),
        VictimReason(
            *("preempt", "t/new", "t/new-0", "a", "a"),
            tier=1,
            whole_gang=True,
            votes=(("gang", False), ("priority", True)),
            spared=spared,
        ),
    ):
        yield render_victim(reason)


def findings() -> Iterator[str]:
    """Yield the texts of the lint findings and policy errors in the tables of their tests, each once."""
    yield "## Warnings of lint"
    found: dict[str, None] = {}
    for case in yaml.safe_load((TABLES / "lint" / "lint.yaml").read_text("utf-8")):
        manifests = [("queues", case["queues"])] if "queues" in case else []
        for finding in lint(case["policy"], "conf", manifests):
            found.setdefault(f"{finding.text}; {finding.remedy}")
    yield from sorted(found)
    yield "## Why a policy is refused"
    refused: dict[str, None] = {}
    for case in yaml.safe_load((TABLES / "policy" / "refusals.yaml").read_text("utf-8")):
        try:
            load_policy(case["file"], "conf")
        except PolicyError as error:
            refused.update(dict.fromkeys(f"{problem.text}; {problem.remedy}" for problem in error.problems))
    yield from sorted(refused)


def test_every_message_is_approved() -> None:
    rendered = "\n".join([*reasons(), *findings()]) + "\n"
    if os.environ.get("APPROVE"):
        APPROVED.write_text(rendered, "utf-8")
    assert rendered == APPROVED.read_text("utf-8"), "review the difference; APPROVE=1 writes messages.txt again"
