"""An owner reference is valid in its own namespace only: the API server checks neither its uid nor its name."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from schedspec.scheduler.controllers import Context, build
from schedspec.scheduler.controllers.runtime.objects import JOBS, PYTORCH_JOBS, REPLICA_SETS
from schedspec.scheduler.controllers.runtime.writes import ReconcileResult
from schedspec.scheduler.kube import PODGROUPS, PODS, Client, Connection, EventRecorder, Http, Present, Resource

CASES = {
    "job": (JOBS, "ns/o", lambda seen: [*seen.pods, *([seen.group] if seen.group else ())]),
    "pytorchjob": (PYTORCH_JOBS, "ns/o", lambda seen: [*seen.pods, *([seen.group] if seen.group else ())]),
    "podgroup": (REPLICA_SETS, "ns/podgroup-u", lambda seen: [seen.owner] if seen.owner else []),
}
"""For each controller: the owner's kind, a key, and the other objects that its decision sees."""


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize(("namespace", "found"), [("ns", True), ("elsewhere", False)])
async def test_an_owner_reference_reaches_no_object_of_another_namespace(
    monkeypatch: pytest.MonkeyPatch, kind: str, namespace: str, found: bool
) -> None:
    resource, key, others = CASES[kind]
    decided: list[Any] = []

    def reconcile(seen: Any) -> ReconcileResult:
        decided.append(seen)
        return ReconcileResult()

    monkeypatch.setattr(f"schedspec.scheduler.controllers.{kind}.controller.reconcile", reconcile)

    context = Context(
        Client(Http(Connection("127.0.0.1", 9))),
        EventRecorder(Client(Http(Connection("127.0.0.1", 9))), "me"),
        [""],
    )
    (controller,) = build([kind], context)
    reference = {"apiVersion": resource.api_version, "kind": resource.kind, "name": "o", "uid": "u"}
    of_owner = {"ownerReferences": [{**reference, "controller": True}]}

    def show(shown: Resource[Any], name: str, space: str, **meta: Any) -> None:
        body = {"metadata": {"name": name, "namespace": space, "resourceVersion": "1", "uid": name, **meta}}
        context.view(shown).informer._on_report(Present(msgspec.convert(body, shown.struct)))

    show(resource, "o", "ns" if kind != "podgroup" else namespace, uid="u")
    if kind != "podgroup":
        show(PODS, "p", namespace, **of_owner)
        show(PODGROUPS, "g", namespace, **of_owner)
    await controller._decide(key)  # type: ignore[attr-defined]
    assert bool(others(decided[0])) == found
