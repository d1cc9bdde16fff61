"""Counts by class of pods equal counts pod by pod, and equal terms are counted once."""

from __future__ import annotations

from typing import Any
from unittest import mock

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from schedspec.scheduler.framework.session import Session
from schedspec.scheduler.model.matching import selector_matches
from schedspec.scheduler.model.objects import LabelSelector
from schedspec.scheduler.model.task import TaskStatus
from schedspec.scheduler.placement.pod_affinity import PodAffinities
from schedspec.scheduler.placement.pod_index import labels_of
from schedspec.scheduler.plugins import PLUGINS
from tests.support.core.events import policy_of
from tests.support.core.world import World

LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["1", "2", "10", "x"]), max_size=3)
REQUIREMENT = st.fixed_dictionaries(
    {
        "key": st.sampled_from("abcd"),
        "operator": st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Near"]),
        "values": st.lists(st.sampled_from(["1", "2", "10", "x"]), max_size=2),
    }
)
SELECTOR = st.none() | st.fixed_dictionaries(
    {"matchLabels": LABELS, "matchExpressions": st.lists(REQUIREMENT, max_size=2)}
)
NODES = [{"name": f"n{i}", "has": "90 cpu", "labels": {"kubernetes.io/hostname": f"n{i}"}} for i in range(3)]


def anti_affinity(*names: str) -> dict[str, Any]:
    """Return required anti-affinity terms against pods with these labels."""
    terms = [{"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {name: "1"}}} for name in names]
    return {"spec": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}}


def session_of(jobs: list[dict[str, Any]]) -> Session:
    world = World(policy_of("plain"))
    world.load({"nodes": NODES, "queues": [{"name": "q"}], "jobs": [{"queue": "q", **job} for job in jobs]})
    return Session(world.cluster, world.policy, world.now, PLUGINS)


@given(st.lists(LABELS, min_size=1, max_size=6), SELECTOR, st.lists(st.integers(0, 5), max_size=6))
def test_the_counts_of_a_selector_equal_those_of_matching_pod_by_pod(
    labels: list[dict[str, str]], selector: dict[str, Any] | None, evicted: list[int]
) -> None:
    session = session_of(
        [
            {"name": f"j{i}", "tasks": f"2 x 1 cpu running on n{i % 3}", "pod": {"metadata": {"labels": own}}}
            for i, own in enumerate(labels)
        ]
    )
    matched = msgspec.convert(selector, LabelSelector | None)
    counts = session.placement.pods.counts("key", lambda: session.placement.pods.selected(matched))
    tasks = list(session.cluster.tasks.values())
    statement = session.statement()
    for number in [None, *evicted]:
        if number is not None and tasks[number % len(tasks)].status is TaskStatus.RUNNING:
            statement.evict(tasks[number % len(tasks)], mock.sentinel.reason)
        matching = [task for task in tasks if selector_matches(matched, labels_of(task))]
        present = [sum(task.node == node["name"] for task in matching) for node in NODES]
        remaining = [
            sum(task.node == node["name"] and task.status is TaskStatus.RUNNING for task in matching) for node in NODES
        ]
        assert counts.present(future=False).tolist() == present
        assert counts.remaining().tolist() == remaining
    session.close()


def test_tasks_with_equal_terms_share_one_count_for_each_topology() -> None:
    names = [f"key{i}" for i in range(100)]
    jobs = [{"name": f"j{i}", "tasks": "1 x 1 cpu", "pod": anti_affinity(*names)} for i in range(20)]
    session = session_of([*jobs, {"name": "old", "tasks": "6 x 1 cpu running on n1"}])
    with mock.patch.object(PodAffinities, "_classes", autospec=True, side_effect=PodAffinities._classes) as matched:
        for task in session.cluster.tasks.values():
            session.placement.neighbours(task)
    assert matched.call_count == len(names)
    session.close()


def test_each_term_is_counted_once_for_any_number_of_pods() -> None:
    """Sixty pods have a hundred terms each, all different: each term is matched with all pods at once."""
    jobs = [
        {"name": f"j{i}", "tasks": "1 x 1 cpu", "pod": anti_affinity(*(f"k{i}-{n}" for n in range(100)))}
        for i in range(60)
    ]
    for pods in (10, 40):
        session = session_of([*jobs, {"name": "old", "tasks": f"{pods} x 1 cpu running on n1"}])
        with mock.patch.object(PodAffinities, "_classes", autospec=True, side_effect=PodAffinities._classes) as matched:
            masks = [
                session.placement.neighbours(task)
                for task in session.cluster.tasks.values()
                if task.status is TaskStatus.PENDING
            ]
        assert matched.call_count == 60 * 100
        assert all(mask is not None and np.all(mask) for mask in masks)
        session.close()


@given(
    st.lists(LABELS, min_size=1, max_size=5),
    st.lists(st.tuples(SELECTOR, LABELS, st.sampled_from(["podAffinity", "podAntiAffinity"])), min_size=1, max_size=3),
)
def test_matching_one_class_and_matching_all_classes_give_the_same_effects(
    labels: list[dict[str, str]], with_terms: list[tuple[dict[str, Any] | None, dict[str, str], str]]
) -> None:
    results = []
    for few in (0, 1_000):
        holders = [
            {
                "name": f"h{i}",
                "tasks": "1 x 1 cpu running on n1",
                "pod": {"metadata": {"labels": own}, **terms_with(kind, selector)},
            }
            for i, (selector, own, kind) in enumerate(with_terms)
        ]
        waiting = [
            {"name": f"w{i}", "tasks": "1 x 1 cpu", "pod": {"metadata": {"labels": own}}}
            for i, own in enumerate(labels)
        ]
        session = session_of([*holders, *waiting])
        affinities = PodAffinities(session.cluster, session.placement.pods, session.work.for_others)
        with mock.patch("schedspec.scheduler.placement.pod_affinity.FEW", few):
            effects = [affinities._effects_on(session.cluster.tasks[f"t/w{i}-0"]) for i in range(len(labels))]
        results.append([(effect.excluding, effect.preferring) for effect in effects])
        session.close()
    assert results[0] == results[1]


def terms_with(kind: str, selector: dict[str, Any] | None) -> dict[str, Any]:
    term = {"topologyKey": "kubernetes.io/hostname", **({} if selector is None else {"labelSelector": selector})}
    return {"spec": {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term, term]}}}}
