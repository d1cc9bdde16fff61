"""The numbers of a queue begin with the resources that decided, and leave out those that nobody uses."""

from __future__ import annotations

import pytest

from schedspec.scheduler.framework.decisions import QueueNumbers
from schedspec.scheduler.recording.explain import explain_queue

GPU = "nvidia.com/gpu"
LIMITS = {"ephemeral-storage": 131_941_395_333_120, "cpu": 8000, "memory": 8 << 30, GPU: 4000, "pods": 110}
CASES = {
    "used resources, cards first": ({"cpu": 1000, GPU: 1000}, (), [GPU, "cpu"]),
    "what decided": ({"cpu": 1000, GPU: 1000}, ("cpu",), ["cpu", GPU]),
    "what decided, though nobody uses it": ({"cpu": 1000}, ("memory",), ["memory", "cpu"]),
    "nothing is used": ({}, (), [GPU, "cpu", "ephemeral-storage", "memory", "pods"]),
    "a resource that the queue does not have": ({"cpu": 1000}, ("other",), ["cpu"]),
}


@pytest.mark.parametrize(("held", "deciding", "order"), CASES.values(), ids=CASES)
def test_the_resource_that_decides_comes_first(
    held: dict[str, int], deciding: tuple[str, ...], order: list[str]
) -> None:
    text = explain_queue("a", QueueNumbers(allocated=held, capability=LIMITS), deciding)
    assert [part.split()[0] for part in text.removeprefix("queue a: ").split("; ")] == order
