"""Apply the named changes between two cycles of a table (node lost, job done, policy changed, …)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from schedspec.scheduler.inputs import Assumed, Reverted, apply_input
from schedspec.scheduler.policy.loader import load_policy
from schedspec.scheduler.policy.model import Policy
from tests.support.core.notation import NAMESPACE
from tests.support.core.world import World


@cache
def policy_of(text: str) -> Policy:
    """Return a policy by its name in `policies.yaml`, or by its text."""
    known = yaml.safe_load((Path(__file__).parent / "policies.yaml").read_text())
    return load_policy(known.get(text, text), f"policy {text!r}" if text in known else "the table's policy")


def happen(world: World, event: Mapping[str, Any]) -> None:
    """Apply an event; an event about a missing object does nothing."""
    for name, value in event.items():
        EVENTS[name](world, value)


def _add(world: World, table: dict[str, Any]) -> None:
    world.load(table)


def _finish(world: World, job: str) -> None:
    for pod in world.pods_of(job):
        world.change("Pod", pod, {"status": {"phase": "Succeeded"}})


def _delete(world: World, what: Mapping[str, str]) -> None:
    for kind, name in what.items():
        if kind == "job":
            for pod in world.pods_of(name):
                world.remove("Pod", pod)
            world.remove("PodGroup", f"{NAMESPACE}/{name}")
        elif kind in ("pod", "podgroup"):
            world.remove({"pod": "Pod", "podgroup": "PodGroup"}[kind], f"{NAMESPACE}/{name}")
        else:
            world.remove(kind.capitalize(), name)


def _change(world: World, changes: Mapping[str, Any]) -> None:
    """Overlay objects with fields: `{Node n1: {spec: {unschedulable: true}}}`."""
    for what, over in changes.items():
        kind, name = what.split()
        for key in (name, f"{NAMESPACE}/{name}"):
            if (kind, key) in world.objects:
                world.change(kind, key, over)


def _recreate(world: World, job: str) -> None:
    for pod in world.pods_of(job):
        world.end(pod, again=True)


def _leave(world: World, pod: str) -> None:
    if world.objects.get(("Pod", f"{NAMESPACE}/{pod}"), {}).get("spec", {}).get("nodeName"):
        world.change("Pod", f"{NAMESPACE}/{pod}", {"metadata": {"deletionTimestamp": "2026-09-21T00:00:00Z"}})


def _nominate(world: World, what: tuple[str, str]) -> None:
    pod, node = what
    _change(world, {f"Pod {pod}": {"status": {"nominatedNodeName": node}}})


def _refuse(world: World, what: tuple[str, str]) -> None:
    pod, node = f"{NAMESPACE}/{what[0]}", what[1]
    uid = world.objects["Pod", pod]["metadata"]["uid"]
    apply_input(world.core, Assumed(pod, uid, node))
    apply_input(world.core, Reverted(pod, uid))


def _policy(world: World, text: str) -> None:
    world.policy = policy_of(text)


EVENTS: dict[str, Callable[[World, Any], None]] = {
    "add": _add,  # nodes, queues, jobs, as in a table
    "finish": _finish,  # all pods of a job succeed
    "delete": _delete,  # {job: name}, {pod: name}, {podgroup: name}, {node: name}, {queue: name}
    "change": _change,
    "recreate": _recreate,  # the job's controller replaces all its pods by pending ones
    "leave": _leave,  # a running pod is being deleted
    "nominate": _nominate,  # [pod, node]
    "refuse": _refuse,  # [pod, node]: the API has refused to bind the pod there
    "restart": lambda world, _: world.restart(),
    "later": lambda world, seconds: setattr(world, "now", world.now + seconds),
    "policy": _policy,
}
