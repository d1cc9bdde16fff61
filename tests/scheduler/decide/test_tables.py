"""Test decisions by tables: scenarios as data (`tables/*.yaml`) with a cluster, a policy and one or several cycles.

    - name: a gang that does not fit binds nothing
      policy: plain                     # a name in policies.yaml, or the text of a policy file
      nodes / queues / jobs: …          # see notation.py
      cycles:
      - when: [{restart: true}]         # events before the cycle, in order; see events.py
        binds: {new: 4}                 # job → number of pods, or pod → node; absent means no binds
        evictions: {old: 2}             # job → number of pods, or [pods]; absent means no evictions
        waiting: {new: 2}               # job → number of pipelined tasks, or pod → node
        phases: {new: Inqueue}
        reasons: {new: "12 nodes: 8 lack nvidia.com/gpu"}   # job → a part of its refusal's text
        nominations: {new-0: n1}
        cards: {new-0: "GPU-a 4000"}          # pod → the shared cards that it gets, and the MiB of each
        scores: {new-0: {n1: 75, n2: 37.5}}   # pod → scores of nodes for the pod before the cycle

After each cycle, its decisions are carried out: bound pods run, and victims are deleted (unless the table or the cycle
has `victims: stay`, `return` or `return after 1`). The invariants are checked in every cycle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from schedspec.scheduler.framework.decisions import Decisions
from schedspec.scheduler.reasons import render_refusal
from tests.support.core.device_plugins import cards_in
from tests.support.core.events import happen, policy_of
from tests.support.core.notation import NAMESPACE
from tests.support.core.world import World

HERE = Path(__file__).parent
TABLES = [
    pytest.param(table, id=f"{path.stem}: {table['name']}")
    for path in sorted((HERE / "tables").glob("*.yaml"))
    for table in yaml.safe_load(path.read_text()) or ()
]
FIELDS = {"name", "semantics", "why", "policy", "nodes", "queues", "jobs", "objects", "cycles", "victims"}
EXPECTED = {"when", "binds", "evictions", "waiting", "phases", "reasons", "nominations", "scores", "victims", "cards"}


@pytest.mark.parametrize("table", TABLES)
def test_table(table: dict[str, Any]) -> None:
    assert set(table) <= FIELDS, f"unknown fields {set(table) - FIELDS}"
    world = World(policy_of(table.get("policy", "default")))
    world.load(table)
    if not table.get("queues"):
        world.load({"queues": [{"name": "default"}]})
    for number, cycle in enumerate(table["cycles"], 1):
        assert set(cycle) <= EXPECTED, f"unknown fields {set(cycle) - EXPECTED} of cycle {number}"
        for event in cycle.get("when", ()):
            happen(world, event)
        for pod, scores in cycle.get("scores", {}).items():
            assert world.scores(pod) == pytest.approx(scores, abs=0.005), f"cycle {number}"
        decisions = world.cycle()
        texts = {key: render_refusal(refusal) for key, refusal in decisions.refusals.items()}
        assert _found(decisions, cycle) == _expected(cycle), f"cycle {number}; refused: {texts}"
        for job, part in cycle.get("reasons", {}).items():
            assert part in texts.get(f"{NAMESPACE}/{job}", ""), f"cycle {number}; refused: {texts}"
        world.carry_out(decisions, cycle.get("victims", table.get("victims", "leave")))


# --------------------------------------------------------------------------------------------------------- expectations


def _found(decisions: Decisions, cycle: Mapping[str, Any]) -> dict[str, Any]:
    """Return the decisions of a cycle in the form in which the table states its expectations."""
    bare = lambda key: key.removeprefix(f"{NAMESPACE}/")  # noqa: E731
    found = {
        "binds": _as_expected({bare(b.task): b.node for b in decisions.binds}, cycle.get("binds")),
        "evictions": _as_expected({bare(e.task): "" for e in decisions.evictions}, cycle.get("evictions")),
    }
    if "cards" in cycle:
        found["cards"] = {bare(b.task): cards_in(b.annotations) for b in decisions.binds}
    if "waiting" in cycle:
        found["waiting"] = _as_expected({bare(k): n for k, n in decisions.pipelined.items()}, cycle["waiting"])
    if "nominations" in cycle:
        found["nominations"] = {bare(n.task): n.node for n in decisions.nominations}
    if "phases" in cycle:
        found["phases"] = {bare(k): p for k, p in decisions.phases.items()}
    return found


def _expected(cycle: Mapping[str, Any]) -> dict[str, Any]:
    expected = {name: cycle.get(name) or {} for name in ("binds", "evictions")}
    expected |= {name: cycle[name] or {} for name in ("waiting", "nominations", "phases", "cards") if name in cycle}
    return {name: sorted(value) if isinstance(value, list) else value for name, value in expected.items()}


def _as_expected(pods: dict[str, str], wanted: Any) -> Any:
    """Return pods as a list, as pod → node, or as job → number of pods, like the expectation."""
    if isinstance(wanted, list):
        return sorted(pods)
    if isinstance(wanted, dict) and any(isinstance(value, str) for value in wanted.values()):
        return pods
    return dict(Counter(pod.rsplit("-", 1)[0] for pod in pods))
