"""Write a large state as kubectl prints it: full nodes, several queues, priorities, and one gang that waits."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

GPU = "nvidia.com/gpu"
CARDS = 8
_BORN = "2026-11-01T{:02}:{:02}:{:02}Z"
_QUEUES = ("ads", "chat", "maps", "search", "speech", "vision")
_CLASSES = {"batch": 10, "usual": 100, "urgent": 1000}
SUBJECT = "t/large-gang"


def write_state(path: Path, nodes: int, jobs: int) -> Path:
    """Write nodes and jobs. Jobs run if they fit, all others wait; the gang `SUBJECT` waits for a whole node."""
    draw, items = random.Random(5), list[dict[str, Any]]()
    for name, value in _CLASSES.items():
        items.append(_object("scheduling.k8s.io/v1", "PriorityClass", {"name": name}, value=value))
    share = str(nodes * CARDS // len(_QUEUES))
    for name in _QUEUES:
        spec = {"deserved": {GPU: share, "cpu": str(int(share) * 8)}}
        items.append(_object("scheduling.volcano.sh/v1beta1", "Queue", {"name": name}, spec=spec))
    ready = [{"type": "Ready", "status": "True"}]
    has = {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: str(CARDS)}
    for number in range(nodes):
        status = {"allocatable": has, "conditions": ready}
        items.append(_object("v1", "Node", {"name": f"node-{number:03}"}, status=status))
    free = {f"node-{number:03}": CARDS for number in range(nodes)}
    for number in range(jobs - 1):
        cards = draw.choice((1, 1, 1, 1, 2, 4))
        node = next((name for name, left in free.items() if left >= cards), "")
        if node:
            free[node] -= cards
        items += _job(f"job-{number:04}", number, draw, [node], cards)
    return _written(path, [*items, *_job(SUBJECT.partition("/")[2], jobs, draw, ["", ""], CARDS)])


def _job(name: str, number: int, draw: random.Random, nodes: list[str], cards: int) -> list[dict[str, Any]]:
    born = _BORN.format(number // 3600, number // 60 % 60, number % 60)
    meta = {"namespace": "t", "creationTimestamp": born}
    spec = {"minMember": len(nodes), "queue": draw.choice(_QUEUES), "priorityClassName": draw.choice([*_CLASSES])}
    group = {"name": name, "uid": f"{name}-g", **meta}
    found = [_object("scheduling.volcano.sh/v1beta1", "PodGroup", group, spec=spec)]
    requests = {GPU: str(cards), "cpu": str(cards * 4), "memory": f"{cards * 16}Gi"}
    for index, node in enumerate(nodes):
        marks = {"scheduling.k8s.io/group-name": name}
        pod = {"name": f"{name}-{index}", "uid": f"{name}-{index}", "annotations": marks, **meta}
        body = {
            "containers": [{"name": "c", "resources": {"requests": requests}}],
            "nodeName": node,
            "priorityClassName": spec["priorityClassName"],
            "priority": _CLASSES[str(spec["priorityClassName"])],
        }
        status = {"phase": "Running" if node else "Pending"}
        found.append(_object("v1", "Pod", pod, spec=body, status=status))
    return found


def _object(version: str, kind: str, metadata: dict[str, Any], **body: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **body}


def _written(path: Path, items: list[dict[str, Any]]) -> Path:
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}), "utf-8")
    return path
