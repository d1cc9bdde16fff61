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
    history.record(
        Ref(Kind.NODE, "n2", ""), "added", {"metadata": {"name": "n2", "labels": {"zone": "b", "rank": "7"}}}
    )
    meta = {"name": "train-0", "namespace": "ns", "uid": "1", "labels": {"schedspec.dev/workload": "train"}}
    bound = {"nodeName": node} if node else {}
    history.record(Ref(Kind.POD, "train-0", "ns"), "added", {"metadata": meta, "spec": {**spec, **bound}, "status": {}})
    return history


NO_SUCH_LABEL: dict[str, Any] = {"nodeSelector": {"gpu": "NVIDIA-A10"}, "containers": []}
NO_SUCH_RESOURCE: dict[str, Any] = {"containers": [{"resources": {"requests": {"cpu": "1", "nvidia.com/gpus": "1"}}}]}
FITS: dict[str, Any] = {
    "nodeSelector": {"gpu": "NVIDIA-A100"},
    "containers": [{"resources": {"requests": {"cpu": "1"}}}],
}


def affinity(*terms: tuple[str, ...]) -> dict[str, Any]:
    """Return the spec of a pod that requires one of these terms, each a text of expressions."""
    said = [
        {
            "matchExpressions": [
                {"key": key, "operator": how, "values": values} for key, how, *values in map(str.split, term)
            ]
        }
        for term in terms
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": said}}
    return {"affinity": {"nodeAffinity": required}, "containers": []}


UNMET = {
    (("gpu In NVIDIA-A10",),): "gpu In NVIDIA-A10 (is 'gpu=NVIDIA-A100' meant?)",
    (("rack Exists",),): "rack Exists",
    (("gpu Exists", "zone In b"),): "gpu Exists and zone In b",
    (("rank Gt 7",), ("rank Lt 7",)): "rank Gt 7 or rank Lt 7",
    (("gpu DoesNotExist", "zone NotIn b"),): "gpu DoesNotExist and zone NotIn b",
}
MET = [(("gpu In NVIDIA-A100 x",),), (("rack Exists",), ("zone Exists",)), (("rank Gt 6", "rank Lt 8"),),
       (("rack DoesNotExist",),), (("zone NotIn b",),)]  # fmt: skip
SENTENCE = '"train" stays pending'


@pytest.mark.parametrize(
    ("spec", "unmet"),
    [
        (NO_SUCH_LABEL, "the label gpu=NVIDIA-A10 (is 'gpu=NVIDIA-A100' meant?)"),
        (NO_SUCH_RESOURCE, "the resource nvidia.com/gpus (is 'nvidia.com/gpu' meant?)"),
        *((affinity(*terms), f"a node with {words}") for terms, words in UNMET.items()),
    ],
    ids=["a label", "a resource", *map(str, UNMET.values())],
)
def test_a_pod_with_a_request_that_no_node_meets_is_reported(spec: dict[str, Any], unmet: str) -> None:
    assert unplaceable.find(scene(spec), [SENTENCE]) == [f"pod train-0 waits for what no node has: {unmet}"]
    assert unplaceable.find(scene(spec), ['"train" waits because of "selector"']) == []
    assert unplaceable.find(scene(spec), ['"other" waits because of "selector"']) != []


@pytest.mark.parametrize("terms", MET)
def test_a_node_affinity_that_a_node_meets_is_not_reported(terms: tuple[tuple[str, ...], ...]) -> None:
    assert unplaceable.find(scene(affinity(*terms)), [SENTENCE]) == []


def test_labels_of_two_nodes_do_not_meet_one_selector() -> None:
    both = {"nodeSelector": {"gpu": "NVIDIA-A100", "zone": "b"}, "containers": []}
    assert unplaceable.find(scene(both), [SENTENCE])[0].endswith("a node with gpu In NVIDIA-A100 and zone In b")


def test_a_pod_that_fits_a_node_or_is_bound_is_not_reported() -> None:
    assert unplaceable.find(scene(FITS), [SENTENCE]) == []
    assert unplaceable.find(scene(NO_SUCH_LABEL, node="n1"), [SENTENCE]) == []
