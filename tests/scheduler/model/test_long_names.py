"""A name of 250 KB, which a tenant may write into annotations and specs, is kept once: in the tenant's object."""

from __future__ import annotations

from typing import Any

import pytest

from schedspec.scheduler.inputs import Decided, apply_input
from schedspec.scheduler.model import names
from schedspec.scheduler.reasons import render_refusal
from tests.support.core.events import policy_of
from tests.support.core.world import World

LONG = "x" * 250_000
MOST = 5_000
"""Characters of any text or key: two clauses and some names."""


def _claim(name: str) -> dict[str, Any]:
    return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]}


CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "the pod's PodGroup": ({"metadata": {"annotations": {names.GROUP_NAME: LONG}}}, {}),
    "the pod's PodGroup, by Volcano's annotation": (
        {"metadata": {"annotations": {names.GROUP_NAME: "", names.VOLCANO_GROUP_NAME: LONG}}},
        {},
    ),
    "the pod's scheduling group": ({"spec": {"schedulingGroup": {"podGroupName": LONG}}}, {}),
    "the pod's claim": ({"spec": _claim(LONG)}, {}),
    "the pod's role": ({"metadata": {"annotations": {names.TASK_SPEC: LONG}}}, {}),
    "the pod's card": ({"metadata": {"annotations": {names.CARD_NAME: LONG}}}, {}),
    "the pod's toleration": ({"spec": {"tolerations": [{"key": LONG}]}}, {}),
    "the PodGroup's queue": ({}, {"spec": {"queue": LONG}}),
    "the PodGroup's priority class": ({}, {"spec": {"priorityClassName": LONG}}),
    "the PodGroup's roles": ({}, {"spec": {"minTaskMember": {LONG: 2}}}),
    "the PodGroup's tier": ({}, {"spec": {"networkTopology": {"mode": "hard", "highestTierName": LONG}}}),
    "the PodGroup's resource": ({}, {"spec": {"minResources": {LONG: "1"}}}),
}


@pytest.mark.parametrize(("pod", "group"), CASES.values(), ids=CASES)
def test_no_key_or_text_of_a_cycle_repeats_a_long_name(pod: dict[str, Any], group: dict[str, Any]) -> None:
    world = World(policy_of("capacity"))
    world.load({"nodes": [{"name": "n", "has": "1 cpu"}], "queues": [{"name": "q"}]})
    world.load({"jobs": [{"name": "j", "queue": "q", "tasks": "1 x 9 cpu", "phase": "Inqueue"}]})
    world.change("PodGroup", "t/j", group)
    world.change("Pod", "t/j-0", pod)
    decisions = world.core.decide(world.policy, world.now)
    assert decisions.refusals, "the job waits"
    apply_input(world.core, Decided(0, world.now, decisions))
    backlog = world.core.backlog
    topics = [topic for entry in backlog.entries.values() for topic in entry.topics]
    bounds = [bound.queue for entry in backlog.entries.values() for bound in entry.quotas]
    texts = [render_refusal(refusal) for refusal in decisions.refusals.values()]
    keys = [*world.cluster.jobs, *(job.queue for job in world.cluster.jobs.values()), *backlog.entries]
    assert max(map(len, (*topics, *bounds, *texts, *keys))) <= MOST


@pytest.mark.parametrize(("length", "is_cut"), [(names.MAX_NAME, False), (names.MAX_NAME + 1, True)])
def test_only_a_name_that_no_object_can_have_is_cut(length: int, is_cut: bool) -> None:
    assert (names.reference("x" * length) != "x" * length) is is_cut
