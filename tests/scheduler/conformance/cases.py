"""Read conformance cases from every `*.json` in `$CONFORMANCE_DIR` or `../shared/conformance`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from schedspec.scheduler.framework.decisions import Decisions
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.model.state_kinds import STATE_KINDS
from schedspec.scheduler.model.task import TaskStatus
from schedspec.scheduler.policy.model import PluginOption, Policy
from schedspec.scheduler.policy.schema import SWITCHES

KINDS = {f"{name[0].lower()}{name[1:]}s": kind for name, kind in STATE_KINDS.items()} | {
    "csiNodes": STATE_KINDS["CSINode"],
    "priorityClasses": STATE_KINDS["PriorityClass"],
}


class PluginSpec(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    enabled: list[str] = []
    arguments: dict[str, Any] = {}


class Configuration(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    arguments: dict[str, Any] = {}


class Expect(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    binds: dict[str, str] = {}
    binds_num: int | None = None
    bind_count_only: bool = False
    evicted: list[str] = []
    pipelined: dict[str, list[str]] = {}
    pod_group_phase: dict[str, str] = {}
    task_status_nums: dict[str, dict[str, int]] = {}


class Case(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    id: str
    actions: list[str]
    tiers: list[list[PluginSpec]]
    objects: dict[str, list[dict[str, Any]]]
    expect: Expect
    configurations: list[Configuration] = []
    bind_count_only: bool = False
    note: str = ""

    def policy(self) -> Policy:
        """Return a policy with only those features on that the case enables."""
        off = dict.fromkeys(SWITCHES, False)
        return Policy(
            actions=tuple(self.actions),
            tiers=tuple(
                tuple(PluginOption(p.name, {**off, **dict.fromkeys(p.enabled, True)}, p.arguments) for p in tier)
                for tier in self.tiers
            ),
            configurations={item.name: item.arguments for item in self.configurations},
        )

    def cluster(self) -> Cluster:
        """Return the cluster of the snapshot, without kinds that the scheduler does not read (storageClasses)."""
        cluster = Cluster()
        for kind, items in self.objects.items():
            known = KINDS.get(kind)
            for item in items if known else ():
                known.set(cluster, msgspec.convert(item, known.struct))
        return cluster


@dataclass(frozen=True)
class Outcome:
    """The outcome of a cycle, in the terms of `expect`."""

    binds: dict[str, str]
    evicted: list[str]
    pipelined: dict[str, set[str]]
    phases: dict[str, str]
    statuses: dict[str, dict[str, int]]


def outcome(cluster: Cluster, decisions: Decisions) -> Outcome:
    """Return the outcome of decisions on their state."""
    status = {key: task.status for key, task in cluster.tasks.items()}
    status |= {bind.task: TaskStatus.BINDING for bind in decisions.binds}
    status |= {evict.task: TaskStatus.RELEASING for evict in decisions.evictions}
    status |= dict.fromkeys(decisions.pipelined, TaskStatus.PIPELINED)
    statuses: dict[str, dict[str, int]] = {}
    pipelined: dict[str, set[str]] = {}
    for key, value in status.items():
        counts = statuses.setdefault(cluster.tasks[key].job, {})
        counts[str(int(value))] = counts.get(str(int(value)), 0) + 1
    for task, node in decisions.pipelined.items():
        pipelined.setdefault(cluster.tasks[task].job, set()).add(node)
    return Outcome(
        binds={bind.task: bind.node for bind in decisions.binds},
        evicted=sorted(evict.task for evict in decisions.evictions),
        pipelined=pipelined,
        phases={key: decisions.phases.get(key, job.phase) for key, job in cluster.jobs.items()},
        statuses=statuses,
    )


def directory() -> Path:
    """Return the directory of the cases."""
    given = os.environ.get("CONFORMANCE_DIR")
    return Path(given) if given else Path(__file__).resolve().parents[3].parent / "shared" / "conformance"


def cases() -> list[Case]:
    """Return all cases, in the order of file names; none without the directory."""
    return [
        case
        for path in sorted(directory().glob("*.json"))
        for case in msgspec.json.decode(path.read_bytes(), type=list[Case])
    ]
