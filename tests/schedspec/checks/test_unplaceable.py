"""Pods that request what no node has are reported with the nearest name, unless the scenario is about the reason."""

from __future__ import annotations

from typing import Any

import pytest

from schedspec.api.kinds import Kind, Ref
from schedspec.checks import unplaceable
from schedspec.observe.history import History


def scene(spec: dict[str, Any], *, node: str = "") -> History:
    history = History("ns")
    has = {
        "metadata": {"name": "n1", "labels": {"gpu": "NVIDIA-A100"}},
        "status": {"allocatable": {"nvidia.com/gpu": "8"}},
    }
    history.record(Ref(Kind.NODE, "n1", ""), "added", has)
    meta = {"name": "train-0", "namespace": "ns", "uid": "1", "labels": {"schedspec.dev/workload": "train"}}
    bound = {"nodeName": node} if node else {}
    history.record(Ref(Kind.POD, "train-0", "ns"), "added", {"metadata": meta, "spec": {**spec, **bound}, "status": {}})
    return history


SELECTS: dict[str, Any] = {"nodeSelector": {"gpu": "NVIDIA-A10"}, "containers": []}
ASKS: dict[str, Any] = {"containers": [{"resources": {"requests": {"cpu": "1", "nvidia.com/gpus": "1"}}}]}
FITS: dict[str, Any] = {
    "nodeSelector": {"gpu": "NVIDIA-A100"},
    "containers": [{"resources": {"requests": {"cpu": "1"}}}],
}
STAYS = '"train" stays pending'


@pytest.mark.parametrize(
    ("spec", "wish"),
    [
        (SELECTS, "the label gpu=NVIDIA-A10 (is 'gpu=NVIDIA-A100' meant?)"),
        (ASKS, "the resource nvidia.com/gpus (is 'nvidia.com/gpu' meant?)"),
    ],
    ids=["a label", "a resource"],
)
def test_a_pod_that_no_node_could_take_is_told(spec: dict[str, Any], wish: str) -> None:
    assert unplaceable.find(scene(spec), [STAYS]) == [f"pod train-0 waits for what no node has: {wish}"]
    assert unplaceable.find(scene(spec), ['"train" waits because of "selector"']) == []
    assert unplaceable.find(scene(spec), ['"other" waits because of "selector"']) != []


def test_a_pod_that_a_node_could_take_is_not_told() -> None:
    assert unplaceable.find(scene(FITS), [STAYS]) == []
    assert unplaceable.find(scene(SELECTS, node="n1"), [STAYS]) == []
