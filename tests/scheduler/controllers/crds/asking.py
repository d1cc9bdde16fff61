"""Ask a real API server whether it accepts an object."""

from __future__ import annotations

import copy
from itertools import count
from typing import Any

from schedspec.api.client import Api

Body = dict[str, Any]
KINDS = {
    "Queue": ("scheduling.volcano.sh/v1beta1", "queues"),
    "PodGroup": ("scheduling.volcano.sh/v1beta1", "podgroups"),
    "Job": ("batch.volcano.sh/v1alpha1", "jobs"),
    "Command": ("bus.volcano.sh/v1alpha1", "commands"),
    "PyTorchJob": ("kubeflow.org/v1", "pytorchjobs"),
}
NUMBERS = count()
"""Numbers for names that did not exist before."""


def path(kind: str, name: str = "") -> str:
    version, plural = KINDS[kind]
    place = "" if kind == "Queue" else "namespaces/default/"
    return f"/apis/{version}/{place}{plural}" + (f"/{name}" if name else "")


def create(api: Api, kind: str, body: Body) -> Body:
    """Create an object and delete it again; return the object as created. Unknown fields are errors."""
    full = {"apiVersion": KINDS[kind][0], "kind": kind, **copy.deepcopy(body)}
    full.setdefault("metadata", {}).setdefault("name", f"case-{next(NUMBERS)}")
    return api.call("POST", path(kind), body=full, query={"fieldValidation": "Strict", "dryRun": "All"})


def pod(image: Any = "i") -> Body:
    return {"spec": {"containers": [{"name": "pytorch", "image": image}]}}
