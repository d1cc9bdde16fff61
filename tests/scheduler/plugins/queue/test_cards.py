"""Card models of nodes, and valid and invalid annotations of card counts and service types."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedspec.scheduler.model.job import Job
from schedspec.scheduler.model.names import CARD_QUOTA
from schedspec.scheduler.model.nodes import NodeInfo
from schedspec.scheduler.model.objects import (
    Node,
    NodeStatus,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodGroup,
    PodGroupSpec,
    PodSpec,
)
from schedspec.scheduler.model.task import Task
from schedspec.scheduler.plugins.queue.cards import CardError, cards_of, counts
from schedspec.scheduler.plugins.queue.service_type import ANNOTATION, map_of, rank, service_type


def node(allocatable: dict[str, str], **labels: str) -> NodeInfo:
    named = {name.replace("__", "/").replace("_", "."): value for name, value in labels.items()}
    return NodeInfo(Node(ObjectMeta(name="n", labels=named), status=NodeStatus(allocatable=allocatable)))


@pytest.mark.parametrize(
    ("info", "cards"),
    [
        (node({"cpu": "8", "nvidia.com/gpu": "8"}, nvidia_com__gpu_product="A100"), {"A100": ("nvidia.com/gpu", 8000)}),
        (node({"huawei.com/npu": "4"}, huawei_com__npu_product="910B"), {"910B": ("huawei.com/npu", 4000)}),
        (node({"nvidia.com/gpu": "0"}, nvidia_com__gpu_product="A100"), {}),
        (node({"nvidia.com/gpu": "8"}), {}),
        (node({"nvidia.com/gpu": "8"}, nvidia_com__gpu_product=""), {}),
        (
            node(
                {"nvidia.com/gpu.shared": "16", "nvidia.com/gpu": "0"},
                nvidia_com__gpu_product="RTX",
                nvidia_com__gpu_memory="24564",
                nvidia_com__gpu_replicas="8",
            ),
            {"RTX/mps-24g*1/8": ("nvidia.com/gpu.shared", 16000)},
        ),
        (node({"nvidia.com/gpu.shared": "16"}, nvidia_com__gpu_product="RTX"), {}),
        (
            node({"nvidia.com/mig-3g.20gb": "2", "nvidia.com/gpu": "1"}, nvidia_com__gpu_product="A100"),
            {"A100/mig-3g.20gb-mixed": ("nvidia.com/mig-3g.20gb", 2000), "A100": ("nvidia.com/gpu", 1000)},
        ),
    ],
)
def test_the_cards_of_a_node_follow_from_its_labels(info: NodeInfo, cards: dict[str, Any]) -> None:
    assert dict(cards_of(info)) == cards


def test_an_annotation_counts_cards_in_millis() -> None:
    assert counts({CARD_QUOTA: '{"A100": 8, " RTX ": 0}'}, CARD_QUOTA) == {"A100": 8000, "RTX": 0}
    assert counts({CARD_QUOTA: '{"A100": 1000000000}'}, CARD_QUOTA) == {"A100": 1e12}  # the maximum
    assert counts({}, CARD_QUOTA) == {}


NO_COUNTS = ['{"A": 1000000001}', "A100: 8", "[]", "null", "8", "[" * 100_000, '{"A": 1' + "0" * 400 + "}"]
NO_COUNTS += ['{"A": "8"}', '{"A": -1}', '{"A": true}', '{"A": null}', '{"A": NaN}', '{"A": Infinity}']


@pytest.mark.parametrize("text", NO_COUNTS)
def test_the_error_of_an_invalid_count_shows_a_valid_one(text: str) -> None:
    with pytest.raises(CardError, match=r'must be like \{"NVIDIA-A100": 8\}') as caught:
        counts({CARD_QUOTA: text}, CARD_QUOTA)
    assert len(str(caught.value)) < 200


@given(st.text())
def test_any_annotation_is_either_valid_or_a_card_error(text: str) -> None:
    with contextlib.suppress(CardError):
        assert all(amount >= 0 for amount in counts({CARD_QUOTA: text}, CARD_QUOTA).values())


# ------------------------------------------------------------------------------------------------------- service types

FIXED = {"allowServiceTypeByPodOwnerReferences": True}
MAPPED = {"podOwnerReferenceToServiceType": {"Deployment": "inference", "PyTorchJob": "training", "Strange": "odd"}}


def pod(kind: str = "", annotation: str = "", priority: int | None = None) -> Task:
    owners = [OwnerReference(kind="Noise"), OwnerReference(kind=kind, controller=True)] if kind else None
    annotations = {ANNOTATION: annotation} if annotation else None
    meta = ObjectMeta(name="p", namespace="n", annotations=annotations, owner_references=owners)
    return Task(Pod(meta, PodSpec(priority=priority)), "n/j")


def job(annotation: str = "", priority_class: str = "", priority: int = 0) -> Job:
    meta = ObjectMeta(name="j", namespace="n", annotations={ANNOTATION: annotation} if annotation else None)
    made = Job("n/j")
    made.describe(PodGroup(meta, PodGroupSpec(priority_class_name=priority_class)), priority, None, 0.0)
    return made


@pytest.mark.parametrize(
    ("task", "group", "arguments", "type_"),
    [
        (pod("Job"), job(), FIXED, "training"),
        (pod("ReplicaSet"), job(), FIXED, "inference"),
        (pod("StatefulSet"), job(), FIXED, "unknown"),
        (pod(), job(), FIXED, "unknown"),
        (pod("Job"), job(), {}, "unknown"),
        (pod("ReplicaSet"), job(), MAPPED, "inference"),
        (pod("PyTorchJob"), job(), MAPPED, "training"),
        (pod("Job"), job(), MAPPED, "unknown"),
        (pod("Strange"), job(), MAPPED, "unknown"),
        (pod("Job"), job(), {**MAPPED, **FIXED}, "unknown"),
        (pod("Job", "inference"), job("training"), FIXED, "inference"),
        (pod("Job"), job("inference"), FIXED, "inference"),
        (pod("Job", "batch"), job("training"), FIXED, "unknown"),
    ],
)
def test_the_service_type(task: Task, group: Job, arguments: dict[str, Any], type_: str) -> None:
    assert service_type(task, group, map_of(arguments)) == type_


@pytest.mark.parametrize(
    ("task", "group", "expected"),
    [
        (pod(priority=5), job("", "high", 9), 9),
        (pod(priority=5), job("", "", 7), 5),
        (pod(), job("", "", 7), 0),
        (pod(priority=5), None, 5),
    ],
)
def test_the_priority_by_which_services_and_training_compare(task: Task, group: Job | None, expected: int) -> None:
    assert rank(task, group) == expected
